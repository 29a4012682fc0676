"""Arrays that leave their process: pickle, dask, MPI. None of these libraries is imported here."""

import sys


def join_loaded_dask() -> None:
    """Register with dask if it is loaded: a worker may be about to read an array that another process sent."""
    if "distributed.protocol" in sys.modules:
        from arrayhub.transport.dask import register_arrival

        register_arrival()
