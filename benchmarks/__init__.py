"""Compare the costs of our calls with the costs of other libraries' calls: ``python -m benchmarks``.

``rows`` and ``storage`` are the tables of what is compared, ``copies`` the same for large arrays, ``sweep`` the
worst of copies of any kind, ``growth`` and ``startup`` the other questions; ``measure`` times, ``report`` prints.
``nanobind_peer`` is the one peer that has to be compiled. ``gpu`` and ``breakdown`` are programs of their own, for
machines with a GPU and with valgrind.
"""
