# Importing this module fills the table for C code. It does not have a Python interface.
