"""Layer 3, one module per protocol: `parse` makes a descriptor of a foreign object, `emit` the reverse."""
