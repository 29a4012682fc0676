"""The matrix: every producer, element type and layout through the hub into every consumer, from three tables."""
