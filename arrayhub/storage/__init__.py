"""New arrays with layout, alignment and labelled dimensions, in any kind of memory (seed 001)."""
