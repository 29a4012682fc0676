"""What a call of ours costs beside the same thing done by others: ``python -m benchmarks``.

``rows`` and ``storage`` are the tables of what is compared, ``growth`` and ``startup`` the other questions, ``measure``
times, ``report`` prints. ``gpu`` and ``breakdown`` are programs of their own, for machines with a GPU and with
valgrind.
"""
