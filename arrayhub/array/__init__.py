"""Layer 6: the class `USMArray` with its views, scalars, assignment and casts."""
