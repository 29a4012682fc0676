# Importing it fills in the functions that C code calls; nothing of it is for Python.
