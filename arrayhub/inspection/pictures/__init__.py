"""Pictures of arrays: the geometry of a layout, the scene that shows it, and its text and SVG."""
