"""The producers of the matrix: for each, the supported types and layouts, and a function that creates an array.

Memory comes from `aligned` or from the producer's own allocator. Each `Made` refers to the object whose deallocation
frees the memory.
"""

import array
import contextlib
import ctypes
import importlib
import mmap
import tempfile
from dataclasses import dataclass, field
from multiprocessing import shared_memory
from typing import NamedTuple

import numpy as np
from numpy_release import HAS_DLPACK_1

from .elements import BOOL, COMPLEX, DATES, EXTENDED, FLOAT8, FLOATS, INTEGERS, NUMBERS, SMALL, SWAPPED, TEXT, fill
from .layouts import ALL
from .memory import BOUNDARY, aligned, buffer_address, called


@dataclass
class Made:
    """The result of a producer.

    Attributes
    ----------
    obj : object
        Argument of ``asarray``.
    root : object
        Object whose deallocation frees the memory; `memory.watch` tests it. None if the memory is never freed.
    address : int or None
        Address of element zero as reported by the producer. None if each access creates new memory.
    byte_strides : tuple of int
    values : bytes
        The elements in C order.
    access : str
        Expected value of ``USMArray.access``.
    close : callable
        Releases resources of the operating system at the end of the test. Raises an error while a view exists.
    """

    obj: object
    root: object
    address: int | None
    shape: tuple
    byte_strides: tuple
    values: bytes
    access: str = "readwrite"
    close: object = field(default=lambda: None)


class Producer(NamedTuple):
    """A producer, which is one row of docs/matrix.md.

    Attributes
    ----------
    name : str
        Name of the row.
    library : str or None
        Library to import.
    make : callable
        Creates a `Made` from an `Element` and a `Layout`.
    elements, layouts : list of str
        Names of the element types and layouts that the producer supports.
    memory : str
        "cpu", or the USM type.
    boundary : int or None
        Alignment of element zero of a compact array in bytes. None if it depends on the allocator.
    readonly : bool
        Whether arrays of every layout are read-only.
    only : callable, optional
        Returns whether the producer supports a pair of an element name and a layout name.
    """

    name: str
    library: str | None
    make: object
    elements: list
    layouts: list
    memory: str = "cpu"
    boundary: int | None = BOUNDARY
    readonly: bool = False
    only: object = lambda element, layout: True

    def pairs(self):
        """Return the (element name, layout name) pairs that the producer supports."""
        return [(e, x) for e in self.elements for x in self.layouts if self.only(e, x)]


# -------------------------------------------------------------------------------------------------------------- numpy


def as_numpy(element, layout):
    """Return an ndarray with the given type and layout on aligned memory, and the ndarray that owns the memory."""
    base = int(np.prod(layout.base))
    itemsize = element.bits_as.itemsize
    root = aligned(max(base * itemsize, 1), misfit=1 if layout.name == "unaligned" else 0)
    flat = np.ndarray((base,), element.bits_as, root)
    filled = np.empty(base, element.bits_as)
    fill(filled, element)
    flat[...] = filled
    compact = flat.reshape(layout.base)
    if layout.name == "broadcast":
        return np.ndarray((3, 4), element.bits_as, root, 0, (0, itemsize)), root
    view = layout.view(compact)
    if layout.name == "read-only":
        view.flags.writeable = False
    return view, root


def _owner(root):
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root


def _described(obj, root, view, access=None):
    """Return a `Made` for `obj`. The ndarray `view` shares the memory of `obj`, and provides the description."""
    access = access or ("readwrite" if view.flags.writeable else "readonly")
    return Made(obj, _owner(root), view.ctypes.data, view.shape, view.strides, view.tobytes(), access)


def _of_view(wrap, access=None):
    """Return a function that creates a `Made` whose object is ``wrap(view)``, with an ndarray `view`."""

    def make(element, layout):
        view, root = as_numpy(element, layout)
        return _described(wrap(view), root, view, access)

    return make


_make_numpy = _of_view(lambda view: view)


# ------------------------------------------------------------------------------------- libraries on a NumPy allocation


def _make_torch(element, layout):
    import torch

    model, root = as_numpy(element, layout)
    compact = torch.from_numpy(root)[: int(np.prod(layout.base)) * element.bits_as.itemsize]
    tensor = compact.view(getattr(torch, element.name)).reshape(layout.base)
    tensor = tensor.broadcast_to(3, 4) if layout.name == "broadcast" else layout.view(tensor)
    assert tensor.data_ptr() == model.ctypes.data or model.size == 0
    return _described(tensor, root, model)


def _make_tvm(element, layout):
    import tvm_ffi

    if element.name == "bfloat16":
        import torch

        made = _make_torch(element, layout)
        made.obj = tvm_ffi.from_dlpack(torch.utils.dlpack.to_dlpack(made.obj))
        return made
    view, root = as_numpy(element, layout)
    return _described(tvm_ffi.from_dlpack(view), root, view)


def _make_strict(element, layout):
    import array_api_strict

    model, root = as_numpy(element, layout)
    compact = array_api_strict.asarray(np.ndarray(layout.base, element.dtype, root), copy=False)
    if layout.name == "broadcast":
        obj = array_api_strict.broadcast_to(compact, (3, 4))
        model = np.broadcast_to(np.asarray(compact), (3, 4))
    elif layout.name == "negative":
        obj = compact[::-1, ::-1]
    else:
        obj = layout.view(compact)
    return _described(obj, root, model)


def _make_arrow_array(element, layout):
    import pyarrow

    view, root = as_numpy(element, layout)
    buffer = pyarrow.py_buffer(root)
    values = pyarrow.Array.from_buffers(pyarrow.from_numpy_dtype(element.dtype), layout.base[0], [None, buffer])
    del buffer
    # pyarrow exports legacy DLPack capsules, which cannot represent read-only memory.
    return _described(layout.view(values), root, view, access="readonly")


# ------------------------------------------------------------------------------------- libraries with their own memory


def _own(obj, model, address, access=None):
    """Return a `Made` for an object with its own memory. The ndarray `model` has the same values, shape and strides."""
    made = _described(obj, model, model, access)
    made.root, made.address = obj, address
    return made


def _make_jax(element, layout):
    import jax

    model, _ = as_numpy(element, layout)
    with jax.enable_x64(True):
        obj = jax.numpy.array(model, copy=True).block_until_ready()
    assert obj.dtype == element.dtype
    return _own(obj, model, obj.unsafe_buffer_pointer(), "immutable")


def _usm(kind, element, layout):
    """Return a usm_ndarray with the given type and layout on aligned USM, the USM, and an equal ndarray."""
    import dpctl.memory
    import dpnp.tensor

    model, _ = as_numpy(element, layout)
    base = int(np.prod(layout.base))
    allocate = getattr(dpctl.memory, f"MemoryUSM{kind.capitalize()}")
    memory = allocate(max(base * element.dtype.itemsize, 1), alignment=BOUNDARY)
    filled = np.empty(base, element.dtype)
    fill(filled, element)
    if base:
        memory.copy_from_host(filled.view("u1"))
    compact = dpnp.tensor.usm_ndarray(layout.base, dtype=element.dtype, buffer=memory)
    if layout.name == "broadcast":
        view = dpnp.tensor.broadcast_to(compact, (3, 4))
        view.flags.writable = True
    else:
        view = layout.view(compact)
    if layout.name == "read-only":
        view.flags.writable = False
    return view, memory, model


def _make_usm(kind, wrap):
    def make(element, layout):
        view, memory, model = _usm(kind, element, layout)
        interface = view.__sycl_usm_array_interface__
        address = interface["data"][0] + interface["offset"] * element.dtype.itemsize
        made = _described(wrap(view), model, model)
        made.root, made.address = memory, address
        return made

    return make


def _make_memory(kind):
    def make(element, layout):
        import dpctl.memory

        values = bytes(range(1, 13))
        memory = getattr(dpctl.memory, f"MemoryUSM{kind.capitalize()}")(12, alignment=BOUNDARY)
        memory.copy_from_host(values)
        return Made(memory, memory, memory._pointer, (12,), (1,), values)

    return make


def _of_values(build, access="readwrite"):
    """Return a function that creates a `Made` whose object is ``build(elements as bytes, element type)``."""

    def make(element, layout):
        model, _ = as_numpy(element, layout)
        obj = build(model.tobytes(), element)
        made = _own(obj, model, buffer_address(obj), access)
        made.root = None if obj == b"" else obj  # the interpreter shares b"", which is never freed
        return made

    return make


def _bytes(values, element):
    return bytes(bytearray(values))  # bytes(values) would return `values` itself if it is of type bytes


ARRAY_CODES = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
    "float32": "f", "float64": "d",
}  # fmt: skip


def _array(values, element):
    return array.array(ARRAY_CODES[element.name], values)


C_TYPES = {
    "bool": ctypes.c_bool, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8, "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16, "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double, "longdouble": ctypes.c_longdouble,
    ">i4": ctypes.c_int32.__ctype_be__, ">f8": ctypes.c_double.__ctype_be__,
}  # fmt: skip


class Record(ctypes.Structure):
    """C struct with the fields of the element type "record"."""

    _fields_ = [("x", ctypes.c_double), ("n", ctypes.c_int), ("m", ctypes.c_int)]


def _make_ctypes(element, layout):
    model, _ = as_numpy(element, layout)
    kind = {**C_TYPES, "record": Record}[element.name]
    for length in reversed(layout.base):
        kind = kind * length
    obj = kind.from_buffer_copy(model.tobytes())
    return _own(obj, model, ctypes.addressof(obj))


def _mmap(values, element):
    obj = mmap.mmap(-1, len(values))
    obj.write(values)
    return obj


def _mmap_readonly(values, element):
    with tempfile.TemporaryFile() as file:
        file.write(values)
        file.flush()
        return mmap.mmap(file.fileno(), len(values), access=mmap.ACCESS_READ)


def _make_shared(element, layout):
    model, _ = as_numpy(element, layout)
    memory = shared_memory.SharedMemory(create=True, size=model.nbytes)
    obj = memory.buf[: model.nbytes]
    obj[:] = model.tobytes()
    made = _own(obj, model, buffer_address(obj))

    def close():
        with contextlib.suppress(FileNotFoundError):
            memory.unlink()
        memory.close()  # raises an error while a view exists

    made.close = close
    return made


PIL_MODES = {"uint8": "L", "int32": "I", "float32": "F", "uint16": "I;16"}


def _make_pil(element, layout):
    from PIL import Image

    model, _ = as_numpy(element, layout)
    obj = Image.frombytes(PIL_MODES[element.name], model.shape[::-1], model.tobytes())
    return _own(obj, model, None, "readonly")  # the address is unknown, because Pillow does not export it


# ---------------------------------------------------------------------------------------------------------- the table


DPNP_ARRAY = called("dpnp", "ndarray._create_from_usm_ndarray")
STANDARD = BOOL + INTEGERS + ["float32", "float64"] + COMPLEX  # types of the array API standard
ONE_DIMENSION = ["1-d", "1-d empty"]
TORCH_FLOAT8 = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
WITHOUT = {name: [layout for layout in ALL if layout != name] for name in ALL}


PRODUCERS = [
    Producer("numpy", None, _make_numpy, NUMBERS + EXTENDED + DATES + TEXT + SWAPPED + ["record"], ALL),
    Producer("ml_dtypes", None, _make_numpy, ["bfloat16", *FLOAT8, *SMALL], ALL),
    Producer(
        "torch", "torch", _make_torch, [*NUMBERS, "bfloat16", "complex32", *TORCH_FLOAT8],
        ["C", "F", "sliced", "broadcast", "0-d", "empty"],
    ),
    Producer("jax", "jax", _make_jax, [*NUMBERS, "bfloat16", *FLOAT8], ["C", "0-d", "empty"], readonly=True),
    *(
        Producer(f"{name} ({kind})", "dpnp", _make_usm(kind, wrap), NUMBERS, WITHOUT["unaligned"], memory=kind)
        for name, wrap in (("dpnp", DPNP_ARRAY), ("usm_ndarray", lambda u: u))
        for kind in ("device", "shared", "host")
    ),
    *(
        Producer(f"MemoryUSM{kind.capitalize()}", "dpctl", _make_memory(kind), ["uint8"], ["1-d"], memory=kind)
        for kind in ("device", "shared", "host")
    ),
    Producer(
        "pyarrow.Array", "pyarrow", _make_arrow_array, INTEGERS + FLOATS, ["1-d", "1-d offset", "1-d empty"],
        readonly=True,
    ),
    Producer("pyarrow.Buffer", "pyarrow", _of_view(called("pyarrow", "py_buffer")), ["int8"], ["1-d", "1-d empty"]),
    Producer(
        "pyarrow.Tensor", "pyarrow", _of_view(called("pyarrow", "Tensor.from_numpy")), INTEGERS + FLOATS,
        ["C", "F", "sliced", "read-only"],
    ),
    Producer(
        "tvm-ffi", "tvm_ffi", _make_tvm, [*NUMBERS, "bfloat16"], ["C", "F", "sliced", "broadcast", "0-d", "empty"]
    ),
    Producer(
        "array_api_strict", "array_api_strict", _make_strict, STANDARD,
        ["C", "F", "sliced", "negative", "broadcast", "0-d", "empty"],
    ),
    Producer("PIL.Image", "PIL", _make_pil, list(PIL_MODES), ["C"], boundary=None, readonly=True),
    Producer("bytes", None, _of_values(_bytes, "immutable"), ["uint8"], ONE_DIMENSION, boundary=None,
             readonly=True),
    Producer("bytearray", None, _of_values(lambda values, element: bytearray(values)), ["uint8"], ONE_DIMENSION,
             boundary=None),
    Producer("array.array", None, _of_values(_array), list(ARRAY_CODES), ONE_DIMENSION, boundary=None),
    Producer("memoryview", None, _of_view(memoryview), NUMBERS + EXTENDED + TEXT + SWAPPED + ["record"], ALL),
    Producer("mmap", None, _of_values(_mmap), ["uint8"], ["1-d"]),
    Producer("mmap (read-only)", None, _of_values(_mmap_readonly, "readonly"), ["uint8"], ["1-d"], readonly=True),
    Producer("ctypes array", None, _make_ctypes, [*C_TYPES, "record"], ["C", "empty", *ONE_DIMENSION], boundary=None),
    Producer("ctypes scalar", None, _make_ctypes, list(C_TYPES), ["0-d"], boundary=None),
    Producer("ctypes.Structure", None, _make_ctypes, ["record"], ["0-d"], boundary=None),
    Producer("shared_memory", None, _make_shared, ["uint8"], ["1-d"]),
    Producer("capsule (legacy)", None, _of_view(lambda view: view.__dlpack__(), "readonly"), NUMBERS,
             WITHOUT["read-only"], readonly=True),
    Producer("capsule (versioned)", None, _of_view(lambda view: view.__dlpack__(max_version=(1, 0))), NUMBERS, ALL),
]  # fmt: skip


if not HAS_DLPACK_1:  # NumPy 2.0 exports only legacy capsules for these producers
    PRODUCERS = [row for row in PRODUCERS if row.name not in ("array_api_strict", "capsule (versioned)")]


def installed(producer):
    """Return whether the library of a producer can be imported."""
    if producer.library is None:
        return True
    try:
        importlib.import_module(producer.library)
    except ImportError:
        return False
    return True
