"""Compare the time of arrayhub's calls with that of other libraries' calls: ``python -m benchmarks``.

- rows, storage: tables of calls on small arrays, and of the calls to compare them with
- copies: table of copies of large arrays
- sweep: copies of all shapes and layouts, with a report of the slowest
- growth, startup: cost by number of dimensions, types and threads, and cost of the import
- measure, report: timing, and output of the results
- nanobind_peer: a peer that must be compiled
- gpu, breakdown: separate programs for machines with a GPU, and with valgrind
"""
