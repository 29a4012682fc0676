"""Transport of arrays to other processes: pickle, IPC handles, dask, MPI."""

from arrayhub.transport.dask import register_dask
from arrayhub.transport.mpi import as_mpi
from arrayhub.transport.policy import pickling

__all__ = ["as_mpi", "pickling", "register_dask"]
