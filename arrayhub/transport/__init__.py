"""Transport of arrays to other processes: pickle, IPC handles, dask, MPI."""

from arrayhub.transport.dask import register_dask
from arrayhub.transport.device_placement import pickling
from arrayhub.transport.mpi import as_mpi

__all__ = ["as_mpi", "pickling", "register_dask"]
