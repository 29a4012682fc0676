"""Layer 3: the protocols. `parse` imports a foreign object as a Descriptor, and `emit` exports a Descriptor."""
