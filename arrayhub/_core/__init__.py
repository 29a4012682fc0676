"""Layer 1: element types, layouts, devices, memory and the Descriptor, independent of protocols and libraries."""
