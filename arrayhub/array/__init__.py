"""Layer 6: the class `USMArray`, its views, scalars, assignment and casts. Knows no protocol and no library."""
