"""C interface: the functions in the capsule's table, and the paths of the headers."""
