"""Tables of public calls, and a program that repeats each call, with another failing allocation in each repetition."""

import ctypes
import gc
import os
import re
import sys
import sysconfig
import tempfile
import types
from pathlib import Path
from typing import NamedTuple

import numpy as np
import routes

import arrayhub

# More allocations than any call makes. The limit is finite, because CPython 3.11 loops forever in an exception handler
# of a long function if all allocations fail: it cannot allocate an int for the number of the instruction, and enters
# the handler again.
ALL = 10_000
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
WIDTHS = (ALL, 3, 1)  # number of consecutive failing allocations
STARTS = 4000  # maximum number of allocations of a call that are tested


class Other(NamedTuple):
    """An exception other than MemoryError that is permitted, because another package causes it."""

    kind: type
    words: str
    reason: str


OTHERS = (
    Other(SystemError, "numpy.nditer", "numpy.nditer loses the MemoryError"),
    Other(ctypes.ArgumentError, "MemoryError", "ctypes raises this for every argument that it cannot convert"),
)

# Text of a SystemError that CPython causes. When a Python function ends with an exception, take_ownership
# (Python/frame.c) creates the frame object of the Python function that called it. If this allocation fails,
# take_ownership clears the exception, and the interpreter raises the SystemError. It occurs only if one Python function
# calls another; see `nests`. A request of the C interface adds its name to the text.
TAKE_OWNERSHIP = "error return without exception set"

# If an allocation fails, NumPy 2.4 ends the process in three functions: the attribute `__array_interface__` of its
# arrays, `numpy.errstate`, and a cast that overflows. The statements below therefore do not assign NaN or numbers that
# a type cannot represent.


def host():
    # Prevent imports of these libraries: `explain` queries their devices, and jaxlib crashes if an allocation fails.
    for library in ("jax", "torch", "dpctl", "cupy"):
        sys.modules.setdefault(library, None)
    names = routes.namespace("host")
    return {
        **names,
        "u4": arrayhub.asarray(names["a"].astype("f4")),
        "bad": names["bad_capsule"](names["a"]),
        "used": names["used_capsule"](names["a"]),
    }


def make(table):
    """Call the table's allocator, which reports errors through a callback instead of an exception."""
    if table.make(table.at_right, table.at, None, table.set_error):
        raise MemoryError


def take_over(table):
    """Import the managed tensor that `ready` has exported. The call takes ownership of the tensor."""
    table.give(table.out.value, table.to)


def drop(table):
    """Call the deleter of the managed tensor that `ready` has exported."""
    table.drop()
    table.out.value = None


def interface():
    """Return the namespace of tests of the exchange table and of the C interface, which a compiled module calls."""
    import native_build

    with tempfile.TemporaryDirectory() as folder:
        path = native_build.compiled(Path(folder), "probe", [native_build.SOURCES / "probe.c"], "-std=c11")
        probe = native_build.load(path)
    names = host()
    owner = np.zeros(3)
    return {
        **names, "c": probe, "make": make, "take_over": take_over, "drop": drop, "owner": owner,
        "address": owner.ctypes.data, "F8": (2, 64, 1), "F4": (2, 32, 1), "I1": (0, 8, 1), "unaligned": UNALIGNED,
        "ones": [1.0, 2.0], "small": [1, 2], "large": [1, 300],
        "model": np.zeros(1),
    }  # fmt: skip


UNALIGNED = np.frombuffer(bytearray(25), "u1")[1:].view("f8")


def nested():
    import pyarrow as pa

    lists = arrayhub.asnested(pa.array([[1, 2], None, [3]]))
    return {"n": lists, "nt": arrayhub.asnested(pa.table({"x": [[1], [2]], "s": ["a", "b"]}))}


# Calls that make C structs with a destructor, or import them.
HOST = (
    "asarray(a)", "asarray(b)", "asarray(bad)", "asarray(used)", "u.copy()", "u[1:]", "u.T", "u.__array__()",
    "u.__dlpack__(max_version=(1, 3), dl_device=(1, 0))", "u.__arrow_c_array__()", "u.__arrow_c_schema__()",
    "u1.__arrow_c_array__()", "u1.__arrow_c_schema__()", "u1.__arrow_c_stream__()", "u1.__arrow_c_device_array__()",
    "u1.__arrow_c_device_stream__()", "us.__arrow_c_array__()",
)  # fmt: skip

# MAY_CAST is 1, MAY_RELAYOUT 2, MAY_TRANSFER 4, MAY_BUILD 8; C_CONTIGUOUS 1, WRITEABLE 4.
INTERFACE = (
    "c.from_object(a)", "c.from_object(u)", "c.from_object(ones)", "c.from_object(nothing)", "c.request(a)",
    "c.request(u)", "c.request(a, dtypes=(F8,), min_nd=2, max_nd=2)", "c.request(u4, dtypes=(F8,))",
    "c.request(u4, dtypes=(F8,), may=1)", "c.request(u4, dtypes=(F8,), flags=4)",
    "c.request(u4, dtypes=(I1,), may=1)", "c.request(swapped)",
    "c.request(swapped, may=2)", "c.request(part, flags=1)", "c.request(part, flags=1, may=2)", "c.request(unaligned)",
    "c.request(unaligned, may=2)", "c.request(ones)", "c.request(ones, may=8)", "c.request(small, dtypes=(I1,), may=9)",
    "c.request(ones, flags=4, may=8)", "c.request(large, dtypes=(I1,), may=9)", "c.request(nothing, name='f: x')",
    "c.request(a, name='f: x', min_nd=3)", "c.request(a, max_nd=2, shape=(-1, 3))", "c.request(ub, flags=4)",
    "c.request(a, where=4)", "c.request(a, stream='no stream')", "c.request(a, flags=1 << 25)", "c.request_null(a)",
    "c.request(a, struct_size=0)", "c.match(u)", "c.match(u4, dtypes=(F8,))", "c.match(a)", "c.explain(a)",
    "c.explain(a, min_nd=3)", "c.explain(part, flags=1, may=2)",
    "c.make(address, (3,), owner=owner)", "c.make(None, (2, 3))", "c.make(address, (-3,), owner=owner)",
    "c.make(address, (3,), owner=owner, dtype=(9, 9, 9))", "c.make(address, (3,), byte_strides=(-8,), owner=owner)",
    "c.make(address, (3,))", "c.make_null()", "c.to_host(u)", "c.to_host(a)", "c.host_ready(u)",
    "c.host_ready(nothing)",
    "c.device(u)", "c.queue_ref(u)", "c.type_of_number(12)", "c.type_of_number(-7)", "c.type_of_dlpack(2, 64, 1)",
    "c.type_of_dlpack(9, 9, 9)", "c.type_of_object('float32')", "c.type_of_object(np.float64)",
    "c.type_of_object('nonsense')", "c.type_of_object(None)", "c.convert(u, 'numpy')", "c.convert(u, 'os')",
    "c.convert(u, None)", "c.like(u, model)", "c.like(u, model, True)", "c.like(a, u)", "c.like(u, nothing)",
    "c.of_null('PyUSMArray_FromObject', False)", "table.export(u, table.at)", "table.export(ub, table.at)",
    "take_over(table)", "drop(table)", "make(table)", "table.give(None, table.to)",
)  # fmt: skip

NESTED = (
    "n[1:]", "nt['x']", "n.__arrow_c_array__()", "n.__arrow_c_schema__()", "n.__arrow_c_stream__()",
    "n.__arrow_c_device_array__()", "n.__arrow_c_device_stream__()", "nt.__arrow_c_stream__()",
)  # fmt: skip


class Table(NamedTuple):
    """Statements, a function that creates the names in the statements, and the required libraries."""

    names: object
    statements: tuple
    libraries: tuple = ()


TABLES = {
    "host": Table(host, HOST),
    "interface": Table(interface, INTERFACE),
    "nested": Table(nested, NESTED, ("pyarrow",)),
}


def shown(result):
    """Return the properties of a result that are equal in every call."""
    if isinstance(result, arrayhub.USMArray):
        return "USMArray", result.shape, result.byte_strides, str(result.dtype), result.access, result.protocol
    if isinstance(result, np.ndarray):
        return "ndarray", result.shape, result.strides, str(result.dtype), result.flags.writeable
    if isinstance(result, (tuple, list)):
        return type(result).__name__, *map(shown, result)
    if isinstance(result, str):
        return re.sub(r"refcount: \d+|0x[0-9a-f]+|\d{9,}|[0-9.]+ [nµm]?s\b", "-", result)
    if isinstance(result, (int, float, bytes, type(None))):
        return result
    return type(result).__name__


def runner(statement, names):
    """Compile a statement into a function without arguments."""
    scope = {**names, "_frame": sys._getframe}
    try:
        # `_frame()` creates the frame object of `run`. Otherwise take_ownership (see TAKE_OWNERSHIP) would create it
        # while an exception is set.
        code = compile(f"def run():\n _frame()\n return ({statement})", statement, "exec")
    except SyntaxError:
        code = compile(f"def run():\n _frame()\n {statement}", statement, "exec")
    exec(code, scope)
    return scope["run"]


def expected_of(run, names):
    """Return the result of the third call, or the type of its exception. The first two calls fill caches."""
    for _ in range(3):
        ready(run, names)
        try:
            answer = shown(run())
        except Exception as error:
            answer = type(error)
        give_back(names)
    return answer


def attempt(run, start, width):
    """Run a call in which `width` consecutive allocations fail, the first after `start` successful ones.

    Returns
    -------
    result : object
    error : BaseException or None
    reached : bool
        Whether the call made at least `start` allocations. Only meaningful if `width` is `ALL`.
    """
    import _testcapi

    stop, probe = _testcapi.remove_mem_hooks, bytearray
    result = error = None
    reached = True
    sys._getframe()  # creates the frame object first, as in `runner`
    _testcapi.set_nomemory(start, start + width)
    try:
        result = run()
    except BaseException as raised:
        error = raised
    if not isinstance(error, MemoryError):
        try:
            probe(1)
            reached = False
        except MemoryError:
            pass
    stop()
    try:
        return result, error, reached
    finally:  # break the cycle through the traceback: CPython has only sixteen MemoryErrors in reserve
        result = error = None


# Value of `table.back` before `to_py_object` is called. This call takes ownership of the managed tensor, even if it
# fails.
UNCALLED = 1


def ready(run, names):
    """Export a managed tensor if the statement uses one."""
    table = names.get("table")
    if table is None:
        return
    table.takes_over = "take_over" in run.__code__.co_names
    if table.takes_over or "drop" in run.__code__.co_names:
        table.export(names["u"], table.at)
    if table.takes_over:
        table.back.value = UNCALLED


def give_back(names):
    """Delete the managed tensor that `ready` has exported, or the array that now owns the tensor."""
    table = names.get("table")
    if table is None:
        return
    if table.back.value not in (None, UNCALLED):
        ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(table.back.value))
    elif table.out.value and (table.back.value == UNCALLED or not table.takes_over):
        table.drop()
    table.out.value = table.back.value = None


def nests(run, names):
    """Return whether a Python function calls another Python function while the statement runs."""
    found = False
    ready(run, names)

    def profile(frame, event, arg):
        nonlocal found
        found |= event == "call" and run.__code__ not in (frame.f_code, frame.f_back.f_code)

    sys.setprofile(profile)
    try:
        run()
    except Exception:
        pass
    finally:
        sys.setprofile(None)
    give_back(names)
    return found


def has_cells(run, names):
    """Return whether a Python function of arrayhub with a closure runs while the statement runs or is refused.

    If CPython 3.11 cannot allocate a cell (`MAKE_CELL`), it leaks the arguments of the function. Python code may use
    closures and comprehensions nevertheless, so the reference counts of such calls are not compared.
    """
    found = False
    ready(run, names)

    def profile(frame, event, arg):
        nonlocal found
        of_package = frame.f_globals.get("__name__", "").startswith("arrayhub.")
        found |= event == "call" and of_package and bool(frame.f_code.co_cellvars)

    sys.setprofile(profile)
    try:
        run()
    except Exception as error:
        str(error)
    finally:
        sys.setprofile(None)
    give_back(names)
    return found


def allowed(error, expected, nesting):
    if isinstance(error, MemoryError) or type(error) is expected:
        return True
    if nesting and type(error) is SystemError and str(error).endswith(TAKE_OWNERSHIP):
        return True
    return any(isinstance(error, other.kind) and other.words in str(error) for other in OTHERS)


def allocations_of(run, names):
    """Return the number of allocations that a call makes."""
    for start in range(STARTS):
        ready(run, names)
        reached = attempt(run, start, ALL)[2]
        give_back(names)
        if not reached:
            return start
    return STARTS


def wrong_of(statement, names, note):
    """Run a statement with every failing allocation, and return descriptions of the faults."""
    run = runner(statement, names)
    note(f"{statement}: without failures")
    expected, nesting = expected_of(run, names), nests(run, names)
    note(f"{statement}: counting its allocations")
    count = allocations_of(run, names)
    cells = sys.version_info < (3, 12) and has_cells(run, names)
    watched = {} if cells else {name: value for name, value in names.items() if is_counted(value)}
    expected_of(run, names)
    gc.collect()
    gc.freeze()  # shortens the collections below
    before = {name: sys.getrefcount(value) for name, value in watched.items()}
    wrong = []
    for width in WIDTHS:
        for start in range(count):
            where = f"{statement}: {'all' if width == ALL else width} failing from allocation {start} of {count}"
            note(where)
            ready(run, names)
            result, error, _ = attempt(run, start, width)
            if error is not None and not allowed(error, expected, nesting):
                wrong.append(f"{where}: {error!r}")
            elif error is None and shown(result) != expected and not (nesting and TAKE_OWNERSHIP in repr(result)):
                wrong.append(f"{where}: {shown(result)!r} instead of {expected!r}")
            result = error = None
            give_back(names)
            before = moved(watched, before, where, wrong)
    return wrong


def is_counted(value):
    """Return whether the reference count of an object is exact.

    The counts of modules are not exact, nor are the counts of functions in free-threaded builds.
    """
    return not isinstance(value, types.ModuleType) and not (FREE_THREADED and callable(value))


def moved(watched, before, where, wrong):
    """Append a message to `wrong` for each reference count that differs from `before`. Return the current counts."""
    after = {name: sys.getrefcount(value) for name, value in watched.items()}
    if after != before:
        gc.collect()
        after = {name: sys.getrefcount(value) for name, value in watched.items()}
        for name, n in after.items():
            if n != before[name]:
                wrong.append(f"{where}: the reference count of {name} changes by {n - before[name]:+}")
    return after


def main(name, path, only=None):
    """Run the statements of a table, and print the faults. Before each attempt, write its description to `path`."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    names = TABLES[name].names()
    arrayhub.explain(np.arange(2)[::-1])  # the first refusal imports modules, which would change the reference counts
    for statement in TABLES[name].statements:
        if only is None or only in statement:
            for line in wrong_of(statement, names, lambda text: os.pwrite(file, text.encode().ljust(300), 0)):
                print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
