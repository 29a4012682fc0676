"""Code that depends on the interpreter: exceptions, atomics, notes on types."""
