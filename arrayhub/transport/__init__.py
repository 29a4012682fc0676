"""Transport of arrays to other processes: pickle, IPC handles, dask, MPI."""
