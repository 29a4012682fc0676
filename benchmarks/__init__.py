"""What a call of ours costs beside the same thing done by others: ``python -m benchmarks``.

``rows`` is the table of what is compared, ``growth`` and ``startup`` are the three other questions, ``measure`` times,
``report`` prints. ``nanobind_peer`` is the one peer that has to be compiled. ``gpu`` and ``breakdown`` are programs of
their own, for machines with a GPU and with valgrind.
"""
