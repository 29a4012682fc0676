"""Layer 4: `known` has one row per library. A library that needs more than its protocol has a module here."""
