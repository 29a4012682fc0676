"""Arrays that leave their process: pickle, dask, MPI."""
