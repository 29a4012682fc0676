# Importing this module fills in the table for C code. It does not have a Python interface.
