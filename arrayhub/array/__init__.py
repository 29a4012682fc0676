"""Layer 6: the class `USMArray` with its views, elements, assignment and casts."""
