"""Compare the times of arrayhub's calls with those of other libraries' calls: ``python -m benchmarks``.

- by_hand: conversions and adapted calls, compared with the same written by hand
- rows, storage, authors, native: calls on small arrays, compared with calls of other libraries
- copies: copies of large arrays, compared with copies by other libraries
- sweep: copies of many shapes and layouts, with a report of the slowest
- growth: cost of a call by number of dimensions, types and threads
- startup: cost of ``import arrayhub``
- engines, clusters: pickles and hashes, and transport by dask, ray, joblib and MPI
- measure, peaks, report: timing, peak memory, and output of the results
- nanobind_peer, native_peers: extension modules, which are compiled on first use
- gpu, gpu_copies, gpu_sweep, gpu_jax: programs for machines with a GPU
- breakdown: a program that counts instructions with valgrind
- pythons: a program that combines the results of several Python versions
- mpi_exchange: a program that clusters runs in two processes
"""
