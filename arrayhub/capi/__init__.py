"""What C code calls: the functions of the table in the capsule, and where compilers find the headers."""
