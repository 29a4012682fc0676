"""What child processes of tests run: a module of its own, which every start method finds on its import path."""

import numpy as np


def send(connection, x):
    """Send what an array is in this process, and the array itself."""
    connection.send((x.shape, x.byte_strides, float(np.asarray(x).sum()), x.access))
    connection.send(x)
    connection.close()
