"""Layer 4: `known` has one row per library, and a library that wants more than its protocol has a module here."""
