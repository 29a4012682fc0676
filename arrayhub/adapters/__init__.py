"""Layer 3: one module per protocol. `parse` imports a foreign object as a Descriptor, `emit` exports a Descriptor."""
