"""Code that depends on the interpreter: exceptions, atomics, frames, notes on types."""
