"""Arrays in other processes: pickle, IPC handles, dask, MPI."""
