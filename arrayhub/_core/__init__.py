"""Layer 1: element types, layouts, devices, memory and the descriptor. Knows no protocol and no library."""
