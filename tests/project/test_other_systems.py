"""The package does not need what only Linux has, except where a function cannot work without it."""

from children import python

# Modules and functions of the standard library that Windows lacks, and macOS in part.
WITHOUT = """
    import ctypes, os, socket, sys
    for name in ("register_at_fork", "sched_getaffinity", "memfd_create", "fork", "O_CLOEXEC", "O_NONBLOCK"):
        delattr(os, name)
    del socket.AF_UNIX
    for name in ("fcntl", "pwd", "resource"):
        sys.modules[name] = None
    load = ctypes.CDLL.__init__
    def load_by_name(self, name, mode=ctypes.DEFAULT_MODE, handle=None, *others, **options):
        assert name or handle, "the libraries of the process do not have a common name on Windows"
        load(self, name, mode, handle, *others, **options)
    ctypes.CDLL.__init__ = load_by_name
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


def test_every_module_is_imported_without_what_windows_lacks():
    python(
        WITHOUT
        + """
    import importlib, pkgutil, arrayhub
    for module in pkgutil.walk_packages(arrayhub.__path__, "arrayhub."):
        if module.name in ("arrayhub.__main__", "arrayhub.demo"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert not error.name.startswith("arrayhub"), error
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
    except OSError as error:
        assert "Linux" in str(error), error
    else:
        raise SystemExit("memory was allocated")
    """
    )


def test_ipc_handles_are_refused_where_they_do_not_exist():
    python(
        WITHOUT
        + """
    from arrayhub.transport import ipc_server
    sys.platform = "win32"
    for call in (ipc_server.server, lambda: ipc_server.Borrow("name", b"")):
        try:
            call()
        except OSError as error:
            assert "Linux" in str(error), error
        else:
            raise SystemExit("a socket was created")
    """
    )


def test_file_names_in_pickles_are_refused_where_files_cannot_be_opened_safely(tmp_path):
    """Windows does not have O_NONBLOCK, without which opening a pipe could block."""
    path = tmp_path / "data"
    path.write_bytes(bytes(8))
    python(
        WITHOUT
        + """
    import pickle
    from arrayhub.transport import shared_memory
    found = os.stat(sys.argv[1])
    try:
        shared_memory.map_file((sys.argv[1], found.st_dev, found.st_ino, 0, 8, False))
    except pickle.UnpicklingError as error:
        assert "cannot be mapped" in str(error), error
    else:
        raise SystemExit("the file was mapped")
    """,
        str(path),
    )


def test_checks_of_functions_without_a_name_are_refused_without_fork():
    python(
        WITHOUT
        + """
    import arrayhub.testing
    try:
        arrayhub.testing.check_producer(lambda array: array)
    except OSError as error:
        assert "fork" in str(error), error
    else:
        raise SystemExit("the producer was checked")
    """
    )
