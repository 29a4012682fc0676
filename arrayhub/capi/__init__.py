"""C interface: the functions behind the table of the capsule, and the paths of the headers."""
