"""Layer 7: the public functions that import arrays (`dispatch`, `asarray`) and hand them to libraries (`convert`)."""
