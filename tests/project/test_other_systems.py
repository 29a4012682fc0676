"""The package does not need what only Linux has, except where a function cannot work without it."""

from children import python

# Modules and functions of the standard library that Windows lacks, and macOS in part.
WITHOUT = """
    import os, sys
    for name in ("register_at_fork", "sched_getaffinity", "memfd_create"):
        delattr(os, name)
    for name in ("fcntl", "pwd", "resource"):
        sys.modules[name] = None
"""


def test_host_arrays_need_nothing_of_linux():
    python(
        WITHOUT
        + """
    import pickle
    import numpy as np, arrayhub
    x = arrayhub.asarray(np.arange(6).reshape(2, 3))
    assert (np.from_dlpack(arrayhub.as_numpy(pickle.loads(pickle.dumps(x)))) == [[0, 1, 2], [3, 4, 5]]).all()
    assert (np.asarray(x.T.copy()) == np.asarray(x).T).all()
    arrayhub.explain(x), arrayhub.check(x), arrayhub.zeros(3)
    """
    )


def test_shared_memory_is_refused_where_it_does_not_exist():
    python(
        WITHOUT
        + """
    import arrayhub
    sys.platform = "win32"
    try:
        arrayhub.zeros(3, memory="shared_memory")
    except (ImportError, OSError, ValueError) as error:
        assert "Linux" in str(error), error
    else:
        raise SystemExit("memory was allocated")
    """
    )
