"""Layer 1: element types, layouts, devices, memory and the descriptor. Independent of protocols and libraries."""
