"""The table of targets. Each target draws one input, and returns its description and a function that uses the input.

This function may raise any of REFUSALS with a message. Imported arrays must be inside the memory of the input.
"""

import contextlib
import copy
import ctypes
import importlib.util
import io
import os
import pathlib
import pickle
import reprlib
import struct
import tempfile
from multiprocessing.reduction import ForkingPickler
from typing import ClassVar

import dlpack_by_hand
import exporters
import numpy as np
from exporters import Index

import arrayhub as ah
from arrayhub import datashape
from arrayhub.adapters.format_language import parse_format

from . import arrow, arrow_edges, chance, nesting, sparse, values

REFUSALS = (ValueError, TypeError, BufferError, MemoryError, pickle.UnpicklingError)

TYPES = ["<f8", "<i4", "|u1", "|b1", "<c16", "<f2", ">i4", "|S5", "<U3", "|V8", "<M8[ns]", "<m8[3s]", "<f16"]
WRONG_TYPES = ["|O8", "<f3", "f8,f8", "StringDType()", "", "<", "<f99999999999", "<V0", "|V-1", "<M8[", "<é8"]
FORMATS = [
    "@", "=", "<", ">", "!", "^", "i", "d", "Zd", "Zf", "T{", "}", ":a:", ":b:", "(2,3)", "(", ")", "x", "5s", "3w",
    "?", "g", "e", "l", "q", "0", "99999999999999999999", " ", "&", "O", "P", "X{}", "u", "1", ",",
]  # fmt: skip
RIGHT_FORMATS = ["i", "<d", "T{i:a:d:b:}", "T{(2,3)<f:x:3x}", "=Zd", "5s", "T{T{b:a:}:in:^g:g:}", "(2,2)T{>i:a:}"]
SHAPES = [
    "3 * ", "var * ", "N * ", "... * ", "int32", "float64", "complex[", "]", "bytes[", "string[", "{", "}", ": ",
    ", ", "a", "'A'", "?", "datetime[", "'ns'", "fixed_bytes(", "8", ")", "void", "byteswap[", "unaligned[",
    "99999999999999999999",
]  # fmt: skip
RIGHT_SHAPES = [
    "3 * 4 * int32",
    "var * float64",
    "{a: int32, b: 2 * float64}",
    "byteswap[int16]",
    "2 * {x: complex[float32]}",
]


# ------------------------------------------------------------------------------------------------ interface dicts


class Host:
    """An object with an interface dict as the attribute `name`, and valid memory."""

    def __init__(self, name, interface, memory):
        self.memory = memory
        setattr(self, name, interface)


def typestr(r):
    return r.choice(TYPES) if r.random() < 0.85 else r.choice([*WRONG_TYPES, chance.strange(r)])


def descr(r, depth=0):
    """Draw the ``descr`` of a record type. Some nest a list of fields that occurs twice at each level."""
    if r.random() < 0.1:
        return chance.strange(r)
    if depth == 0 and r.random() < 0.1:
        fields = [("a", "|u1")]
        for _ in range(r.choice([3, 31, 40])):
            fields = [("a", fields), ("b", fields)]
        return fields
    fields = []
    for k in range(r.randint(0, 3)):
        kind = descr(r, depth + 1) if depth < 3 and r.random() < 0.2 else typestr(r)
        field = (r.choice(["", f"f{k}", "a", ("title", "b"), None]), kind)
        fields.append((*field, chance.lengths(r)) if r.random() < 0.2 else field)
    return fields


def stranger_of(address):
    def draw(r, key):
        if key == "data":
            return r.choice(
                [
                    (address, False), (chance.scalar(r), r.choice([True, False, None, 0, 1, 2, "x"])), (address,),
                    None, bytearray(64), b"x" * 8, memoryview(bytearray(64))[::2], chance.strange(r),
                    (Index(address), True),
                ]
            )  # fmt: skip
        if key in ("shape", "strides"):
            return chance.lengths(r) if r.random() < 0.7 else chance.strange(r)
        if key == "typestr":
            return typestr(r)
        return descr(r) if key in ("descr", "typedescr") else chance.scalar(r)

    return draw


def interface_target(name, extra):
    def draw(r):
        memory = bytearray(256)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        shape = tuple(r.randint(0, 2) for _ in range(r.randint(0, 3)))
        said = {
            "shape": shape,
            "typestr": r.choice(TYPES),
            "data": (address, False),
            "version": 3,
            "strides": None,
            **extra(r),
        }
        said = chance.spoilt(r, said, stranger_of(address))
        if r.random() < 0.1:
            said["mask"] = r.choice([None, chance.strange(r)])
        if r.random() < 0.3:
            said["descr"] = descr(r)
        if name == "__sycl_usm_array_interface__":
            if type(said.get("version")) is int:
                said["version"] = 1
            said["syclobj"] = r.choice(["cpu", "opencl:cpu:0", chance.strange(r)])
        obj = Host(name, said, memory)
        return show(said), lambda: inside_description(ah.asarray(obj, via=VIA[name]), said, obj)

    return draw


VIA = {
    "__array_interface__": "array_interface",
    "__cuda_array_interface__": "cuda",
    "__sycl_usm_array_interface__": "sycl",
}


def inside_description(x, said, obj):
    """Check that an imported array has the shape, size and address of the dict `said`."""
    assert x.shape == tuple(int(n.__index__()) for n in said["shape"]), x.shape
    low, high = reach(x)
    data = said.get("data")
    if isinstance(data, tuple) and x.size:
        start = data[0].__index__()
        assert x.ptr >= start, (x.ptr, start)
        if said.get("strides") is None:
            assert (low, high) == (0, x.size * x.itemsize), (low, high)
    elif x.size and not isinstance(data, tuple):
        with memoryview(obj if data is None else data) as view:
            start = np.frombuffer(view.cast("B") if view.c_contiguous else view.obj, "u1").ctypes.data
            assert start <= x.ptr + low and x.ptr + high <= start + view.nbytes * (1 if view.c_contiguous else 2)
        ah.as_numpy(x).tobytes()
    return x


def reach(x):
    """Return the range of bytes that the elements cover, relative to element zero."""
    if x.size == 0:
        return 0, 0
    steps = [(n - 1) * step for n, step in zip(x.shape, x.byte_strides, strict=True)]
    return sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps) + x.itemsize


def inside_memory(x):
    """Check that an array is inside its memory block."""
    low, high = reach(x)
    if x.size:
        assert x.memory.address <= x.ptr + low and x.ptr + high <= x.memory.address + x.memory.nbytes


def show(value):
    try:
        return reprlib.repr(value)  # limits the length: repr prints shared lists at each occurrence
    except Exception as error:  # raised by `repr` of some invalid values
        return f"{type(value).__name__} whose repr raises {type(error).__name__}"


# ------------------------------------------------------------------------------------------------------ C structs


def draw_struct(r):
    said = {"two": 2, "nd": 1, "typekind": b"i", "itemsize": 4, "flags": 0x600, "shape": [3], "strides": [4]}
    wrong = {
        "two": lambda: r.choice([0, 2, 3, -2]),
        "nd": lambda: r.choice([0, 1, -1, 65, 2**31 - 1]),
        "typekind": lambda: r.choice([b"i", b"f", b"V", b"O", b"M", b"U", b"c", b"\xff", b"\0"]),
        "itemsize": lambda: r.choice([0, 1, 2, 8, 16, -1, 3, 2**31 - 1]),
        "flags": lambda: r.getrandbits(12),
        "shape": lambda: r.choice([None, [r.randint(0, 3)], [2**62], [-1]]),
        "strides": lambda: r.choice([None, [r.choice([0, 4, 8, -4, 2**62])]]),
    }
    said = chance.spoilt(r, said, lambda _, key: wrong[key]())
    fields = descr(r) if r.random() < 0.4 else None
    producer = exporters.StructProducer(descr=fields, **said)
    if fields is not None:
        producer.struct.flags |= 0x800
        if r.random() < 0.5:
            change_during(r, producer, fields)
    if producer.struct.nd > 1 and producer.struct.nd <= 64:
        producer.struct.nd = 1  # the arrays of shape and strides have only one element, which consumers cannot check

    def call():
        x = ah.asarray(producer, via="array_struct")
        assert x.ndim <= 1, x.ndim
        return x

    return show((said, fields)), call


def change_during(r, producer, fields):
    """Add a field to the ``descr`` whose ``__index__`` changes the struct while arrayhub reads the ``descr``."""

    def change():
        producer.struct.nd, producer.struct.itemsize = 60, r.choice([4, 1 << 20])
        producer.struct.shape = None if r.random() < 0.3 else producer.struct.shape
        producer.struct.descr = None

    if isinstance(fields, list):
        fields.append(("n", "|u1", (Index(1, change),)))


def draw_buffer(r):
    said = {"len": 12, "itemsize": 4, "readonly": 0, "ndim": 1, "format": b"i", "shape": [3], "strides": [4]}
    edges = [0, 1, 2, 3, 4, 12, -1, -4, 2**62, -(2**63), 2**63 - 1]
    wrong = {
        "len": lambda: r.choice(edges),
        "itemsize": lambda: r.choice([*edges, 8, 16]),
        "readonly": lambda: r.choice([0, 1, 7]),
        "ndim": lambda: r.choice([0, 1, 1, -1, 65, 64, 2**31 - 1]),
        "format": lambda: r.choice(
            [None, b"", *(sentence(r).encode("utf-8", "replace").replace(b"\0", b"") for _ in range(4))]
        ),
        "shape": lambda: r.choice([None, [r.choice(edges)]]),
        "strides": lambda: r.choice([None, [r.choice(edges)]]),
    }
    said = chance.spoilt(r, said, lambda _, key: wrong[key]())
    if said.get("ndim", 1) in (64,):
        said["shape"], said["strides"] = [1] * 64, [4] * 64
    if r.random() < 0.1:
        said["suboffsets"] = [r.choice([-1, 0, 8])] * 64
    obj = exporters.exporter(**said)

    def call():
        x = ah.asarray(obj, via="buffer")
        assert x.size * x.itemsize <= max(said.get("len", 12), 0), (x.shape, x.itemsize)
        return x

    return show(said), call


def draw_dlpack(r):
    said = {
        "shape": (4,),
        "strides": "c",
        "dtype": (2, 64, 1),
        "device": (1, 0),
        "byte_offset": 0,
        "version": (1, 0),
        "flags": 0,
    }
    clip = [0, 1, 2, 3, 4, -1, 2**31, 2**62, 2**63 - 1, -(2**63)]
    wrong = {
        "shape": lambda: tuple(r.choice(clip) for _ in range(r.randint(0, 3))),
        "strides": lambda: r.choice(["c", None, (1,), (r.choice(clip),)]),
        "dtype": lambda: (
            r.randint(0, 19),
            r.choice([0, 1, 2, 4, 6, 8, 16, 32, 64, 128, 255]),
            r.choice([1, 1, 1, 0, 2]),
        ),
        "device": lambda: (r.randint(-1, 20), r.choice([0, 0, -1, 7, 2**31 - 1])),
        "byte_offset": lambda: r.choice([0, 8, 2**63, 2**64 - 1]),
        "version": lambda: (r.choice([0, 1, 2]), r.randint(0, 9)),
        "flags": lambda: r.getrandbits(r.choice([3, 64])),
    }
    said = chance.spoilt(r, said, lambda _, key: wrong[key]())
    versioned = r.random() < 0.6
    strides = said.get("strides")
    if isinstance(strides, tuple) and len(strides) < len(said.get("shape", (4,))):
        said["strides"] = strides * len(said["shape"])
    if not isinstance(said.get("strides", "c"), tuple) and said.get("strides", "c") == "c":
        said["strides"] = None if any(abs(n) > 2**20 for n in said.get("shape", (4,))) else said.get("strides", "c")
    announced = r.choice([(1, 0)] * 5 + [(2, 0), (14, 0), chance.strange(r), (chance.strange(r), 0), (2**70, 1)])
    made = dlpack_by_hand.Handmade(versioned=versioned, announced=announced, **said)
    dlpack_by_hand._kept[:-50] = []

    def call():
        try:
            x = ah.asarray(made, via="dlpack")
            assert x.shape == tuple(said.get("shape", (4,))), x.shape
            del x
        finally:
            assert made.deleted <= 1, made.deleted
        assert made.deleted == 1, made.deleted

    return show((versioned, announced, said)), call


# ------------------------------------------------------------------------------------------------------- languages


def sentence(r):
    return chance.changed(r, r.choice(RIGHT_FORMATS), FORMATS) if r.random() < 0.6 else chance.text(r, FORMATS)


def draw_format(r):
    format, itemsize = sentence(r), r.choice([1, 4, 8, 12, 16, 24, r.randint(0, 64), 2**40])

    def call():
        assert parse_format(format, itemsize).itemsize == itemsize

    return show((format, itemsize)), call


def draw_datashape(r):
    s = chance.changed(r, r.choice(RIGHT_SHAPES), SHAPES) if r.random() < 0.6 else chance.text(r, SHAPES)
    return show(s), lambda: str(datashape.parse(s))


# --------------------------------------------------------------------------------------------- index, constructors


def key_part(r):
    kind = r.random()
    if kind < 0.4:
        return r.randint(-4, 4)
    if kind < 0.7:
        return slice(*(r.choice([None, r.randint(-5, 5), chance.scalar(r)]) for _ in range(3)))
    return r.choice([None, ..., chance.scalar(r), Index(r.randint(-3, 3))])


def draw_index(r):
    shape = r.choice([(120,), (4, 5, 6), (2, 3, 4, 5), (1, 120), (0, 3)])
    source = np.arange(np.prod(shape), dtype="u1").reshape(shape)
    key = tuple(key_part(r) for _ in range(r.randint(0, 5)))
    key = key[0] if len(key) == 1 else key

    def call():
        x = ah.asarray(source)[key]
        wanted = source[
            key if type(key) is not tuple else (*key, ...) if ... not in [k for k in key if k is ...] else key
        ]
        assert (x.shape, ah.as_numpy(x).tobytes()) == (wanted.shape, wanted.tobytes()), (x.shape, wanted.shape)

    return show((source.shape, key)), call


def draw_constructor(r):
    memory = bytearray(256)
    said = {"shape": (2, 3), "dtype": "<f4", "buffer": memory, "strides": None, "offset": 0, "order": "C"}
    wrong = {
        "shape": lambda: r.choice([chance.lengths(r), chance.scalar(r)]),
        "dtype": lambda: r.choice([typestr(r), "f8", None, float, chance.strange(r)]),
        "buffer": lambda: r.choice([memory, b"x" * 99, memoryview(memory)[::3], chance.strange(r), np.zeros(9)]),
        "strides": lambda: r.choice([None, chance.lengths(r), chance.strange(r)]),
        "offset": lambda: chance.scalar(r),
        "order": lambda: r.choice(["C", "F", "A", "c", chance.strange(r)]),
    }
    said = chance.spoilt(r, said, lambda _, key: wrong[key]())
    said.setdefault("shape", (2,))
    said.setdefault("buffer", memory)

    def call():
        x = ah.USMArray(**said)
        inside_memory(x)
        ah.as_numpy(x).tobytes()

    return show(said), call


def small(r, value):
    """Return whether an allocation is harmless, because it is small, or so large that it fails at once."""
    try:
        lengths = [int(n.__index__()) for n in (value if isinstance(value, (tuple, list)) else (value,))]
    except Exception:
        return True
    total = 64
    for n in lengths:
        total *= max(n, 1)
    return total < 2**24 or total >= 2**50


def draw_storage(r):
    said = {"shape": (3, 4), "dtype": "<f4"}
    for key, draw in {
        "alignment": lambda: r.choice([1, 8, 64, 4096, chance.scalar(r)]),
        "layout": lambda: r.choice(["C", "F", (0, 1), (1, 0), chance.lengths(r), chance.strange(r)]),
        "halo": lambda: r.choice([(1, 1), ((1, 2), 0), chance.lengths(r), chance.strange(r)]),
        "dimensions": lambda: r.choice([("I", "J"), "IJ", chance.lengths(r), chance.strange(r)]),
        "aligned_index": lambda: r.choice([(1, 1), chance.lengths(r), chance.strange(r)]),
        "memory": lambda: r.choice(["cpu", "nowhere", chance.strange(r)]),
    }.items():
        if r.random() < 0.3:
            said[key] = draw()
    if r.random() < 0.4:
        said["shape"] = r.choice([chance.lengths(r), chance.scalar(r)])
    if r.random() < 0.2:
        said["dtype"] = typestr(r)
    for key in ("shape", "halo", "aligned_index", "alignment"):
        if key in said and not small(r, said[key]):
            said[key] = 3 if key == "alignment" else (3, 4)

    def call():
        x = ah.empty(**copy.copy(said))
        inside_memory(x)

    return show(said), call


def draw_reshape(r):
    x = ah.asarray(np.zeros((2, 3, 4), "u1")[:, :: r.choice([1, -1, 2])])
    new, axes = chance.lengths(r), chance.lengths(r)
    what = r.choice(["reshape", "transpose"])

    def call():
        y = x.reshape(new) if what == "reshape" else x.transpose(axes)
        assert y.size == x.size

    return show((x.shape, x.strides, what, new if what == "reshape" else axes)), call


PICKLED = [
    lambda: np.arange(24.0).reshape(2, 3, 4),
    lambda: np.arange(24, dtype="i2").reshape(4, 6)[::-1, ::2],
    lambda: np.broadcast_to(np.arange(3), (4, 3)),
    lambda: np.zeros(3, "M8[ns]"),
    lambda: np.zeros(3, [("a", "u1"), ("b", "f8")]),
    lambda: bytes(100),
    lambda: np.zeros(2000),
]


def spoilt_state(r, state):
    """Replace some parts of a pickle's state, possibly by invalid values."""
    wrong = [
        lambda: r.choice([1, 1, 1, 2, chance.scalar(r)]),
        lambda: r.choice([chance.lengths(r), chance.scalar(r)]),
        lambda: r.choice([None, chance.lengths(r), tuple(8 * n for n in range(len(state[1]))), chance.strange(r)]),
        lambda: chance.scalar(r),
        lambda: r.choice([typestr(r), ("bfloat16", 4, 16, False), ("int4", 0, 4, True), chance.strange(r)]),
        lambda: r.choice([0, 1, 2, chance.scalar(r)]),
        lambda: r.choice([None, (None, chance.lengths(r), None), (chance.strange(r),) * 3, chance.strange(r)]),
        lambda: r.choice([None, ("cuda", 70000), (chance.strange(r), 0), chance.strange(r)]),
    ]
    parts = [draw() if r.random() < 0.2 else part for part, draw in zip(state, wrong, strict=True)]
    return tuple(parts) if r.random() < 0.95 else chance.strange(r)


def draw_unpickle(r):
    """Draw arguments for the function that restores a pickled array. Some may be invalid."""
    _, (state, data) = ah.asarray(r.choice(PICKLED)()).__reduce_ex__(r.choice([2, 5]))
    said = spoilt_state(r, state)
    if r.random() < 0.2:
        data = r.choice([b"", b"x" * 50, (b"x" * 96,), (chance.scalar(r),) * 6, bytearray(97), chance.strange(r)])

    def call():
        x = ah._unpickle(said, data)
        inside_memory(x)
        x.copy()

    return show((said, data)), call


def _bytearray_of_sane_length(reader):
    """Read a bytearray of limited length, because pickle allocates the bytearray before it reads the elements."""
    (length,) = struct.unpack("<Q", reader.read(8))
    if length > 1 << 30:
        raise pickle.UnpicklingError("a bytearray of more than 1 GiB")
    reader.append(bytearray(reader.read(length)))


def _dtype_of_whole_state(reader):
    """Reject states except of 8 or 9 elements, because numpy.dtype (2.4) crashes the process for 6 elements."""
    state = reader.stack[-1]
    if not isinstance(state, tuple) or len(state) not in (8, 9):
        raise pickle.UnpicklingError("a state that numpy.dtype does not check")
    reader.load_build()


KNOWN = {("arrayhub", "_unpickle"), ("numpy", "dtype"), ("numpy._core.numeric", "_frombuffer")}


def asked_of_us(stream, buffers=()):
    """Return the arguments of each call of arrayhub's function by a pickle.

    Raise ValueError for pickles that call unknown functions, and for invalid pickles.
    """
    asked = []

    class Reader(pickle._Unpickler):
        dispatch: ClassVar = dict(pickle._Unpickler.dispatch)
        dispatch[pickle.BYTEARRAY8[0]] = _bytearray_of_sane_length
        dispatch[pickle.BUILD[0]] = _dtype_of_whole_state

        def find_class(self, module, name):
            if (module, name) not in KNOWN:
                raise pickle.UnpicklingError("another function")
            return (lambda *args: asked.append(args)) if module == "arrayhub" else super().find_class(module, name)

    try:
        Reader(io.BytesIO(bytes(stream)), buffers=buffers).load()
    except Exception as error:
        raise ValueError(f"error of pickle itself: {error!r}") from error
    return asked


def bytes_changed(r, stream):
    """Change some bytes of a stream, and truncate some streams."""
    stream = bytearray(stream)
    for _ in range(r.randint(1, 3)):
        stream[r.randrange(len(stream))] = r.randrange(256)
    if r.random() < 0.3:
        del stream[r.randrange(len(stream)) :]
    return stream


def draw_pickle(r):
    """Draw a pickle with changed bytes. Only pickles that call no unknown functions are loaded."""
    stream = bytes_changed(r, pickle.dumps(ah.asarray(r.choice(PICKLED)()), r.choice([2, 4, 5])))

    def call():
        for arguments in asked_of_us(stream):
            ah._unpickle(*arguments).copy()

    return show(bytes(stream)), call


# --------------------------------------------------------------------------------------------- pickles by name, frames


def file_of(r, nbytes):
    """Create a file of `nbytes` bytes, on disk or in shared memory, and return its path."""
    folder = "/dev/shm" if os.path.isdir("/dev/shm") and r.random() < 0.5 else None
    handle, path = tempfile.mkstemp(prefix="arrayhub-fuzz-", dir=folder)
    os.write(handle, bytes(nbytes))
    os.close(handle)
    return path


def draw_by_name(r):
    """Draw a pickle that contains the name of a file instead of the elements.

    Other parts of the pickle may be invalid. The file may be too short, missing, or not a regular file.
    """
    _, (state, data) = ah.asarray(r.choice(PICKLED)()).__reduce_ex__(4)
    nbytes = memoryview(data[0] if type(data) is tuple else data).nbytes
    start = r.choice([0, 0, 8, 4096, 4100])
    said = spoilt_state(r, state) if r.random() < 0.5 else state
    length = r.choice([start + nbytes, start + nbytes, start + nbytes - 1, 0, 1 << 16])
    what = r.choice(["file", "file", "file", "gone", "folder", "pipe", "device", "link", "other"])
    paths = ["", "\0", "/", "/proc/self/mem", "/proc/self/maps", "x" * 5000]
    strangers = [paths, *[[chance.integer(r), nbytes, 4096, 65536]] * 4, [True, False, 1]]
    replaced = {k: r.choice([*some, chance.strange(r)]) for k, some in enumerate(strangers) if r.random() < 0.1}
    writable, extra = r.random() < 0.7, r.choice([0, 0, 0, 0, 1, -1])

    def call():
        path = file_of(r, max(length, 0))
        others = [path]
        try:
            given = path
            if what in ("gone", "pipe", "other"):
                about = os.stat(path)
                os.unlink(path)
                if what == "pipe":
                    os.mkfifo(path)
                elif what == "other":
                    pathlib.Path(path).write_bytes(bytes(length))
            elif what == "link":
                given = path + "-link"
                os.symlink(path, given)
                others.append(given)
            elif what in ("folder", "device"):
                given = os.path.dirname(path) if what == "folder" else "/dev/zero"
            if what not in ("gone", "other"):
                about = os.stat(given)
            name = [given, about.st_dev, about.st_ino, start, nbytes, writable]
            for key, value in replaced.items():
                name[key] = value
            name = (*name[: 6 + min(extra, 0)], *[0] * max(extra, 0))
            x = ah._unpickle(said, name)
            inside_memory(x)
            x.copy()
            if x.flags.writeable and x.size:
                assert name[5] is True
                np.asarray(x).view("u1" if x.flags.c_contiguous and x.ndim else x.dtype)[...] = 0
        finally:
            for other in others:
                with contextlib.suppress(OSError):
                    os.unlink(other)

    return show((said, what, start, nbytes, length, replaced, writable, extra)), call


def draw_name_pickle(r):
    """Draw a pickle of a mapped file, as multiprocessing sends it, with changed bytes."""
    element, writable, step = r.choice(["f8", "u1", "<i2"]), r.random() < 0.5, r.choice([1, 1, 3, -1])

    def call():
        path = file_of(r, 8000)
        try:
            mapped = np.memmap(path, element, mode="r+" if writable else "r")[::step]
            stream = bytes(ForkingPickler.dumps(ah.asarray(mapped)))
            assert len(stream) < 500, "the elements are in the stream"
            for arguments in asked_of_us(bytes_changed(r, stream)):
                x = ah._unpickle(*arguments)
                inside_memory(x)
                x.copy()
        finally:
            os.unlink(path)

    return show((element, writable, step)), call


def draw_frames(r):
    """Draw dask's header and frames of an array, some of them invalid. The frames share a buffer or have their own."""
    from distributed.protocol.serialize import pickle_loads

    from arrayhub.transport import dask

    header, frames = dask.serialize(ah.asarray(r.choice(PICKLED)()))
    frames = [bytes(memoryview(frame).cast("B")) for frame in frames]
    for _ in range(r.choice([0, 0, 1, 2])):
        key = r.choice(["form", "writeable", "serializer"])
        header[key] = r.choice([1, 2, (), (True,), (False,), (True, True), [True], chance.strange(r)])
        if r.random() < 0.2:
            del header[key]
    for _ in range(r.choice([0, 0, 1, 2])):
        at = r.randrange(len(frames)) if frames else 0
        what = r.choice(["drop", "double", "cut", "change", "swap", "space"])
        if not frames:
            break
        if what == "drop":
            del frames[at]
        elif what == "double":
            frames.insert(at, frames[at])
        elif what == "cut":
            frames[at] = frames[at][: r.randint(0, len(frames[at]))]
        elif what == "change" and frames[at]:
            frames[at] = bytes(bytes_changed(r, frames[at]))
        elif what == "space" and len(frames) > 1:
            frames[1] = bytes([r.randrange(256)]) + frames[1][1:]
        else:
            r.shuffle(frames)
    behind, apart, frozen = r.randrange(70), r.random() < 0.3, r.random() < 0.3
    buffer = bytearray(behind) + b"".join(frames)
    stops = [behind + sum(map(len, frames[: k + 1])) for k in range(len(frames))]
    arrived = [bytearray(frame) for frame in frames] if apart else [
        memoryview(buffer)[stop - len(frame) : stop] for frame, stop in zip(frames, stops, strict=True)
    ]  # fmt: skip
    arrived = [memoryview(frame).toreadonly() for frame in arrived] if frozen else arrived
    if r.random() < 0.05:
        arrived = r.choice([[], [chance.strange(r)], [*arrived[:1], chance.strange(r), chance.strange(r)]])
    if r.random() < 0.03:
        header = chance.strange(r)

    def call():
        if arrived and isinstance(arrived[0], (bytes, bytearray, memoryview)):
            # Raises ValueError for pickles that call unknown functions.
            asked_of_us(bytes(arrived[0]), [bytearray(10000)] * len(frames))
        for _ in range(2):
            try:
                x = dask.deserialize(header, list(arrived))
            except (EOFError, AttributeError, IndexError, KeyError) as error:
                if not went_through(error, pickle_loads):
                    raise
                raise ValueError(f"pickle's own refusal: {error!r}") from error
            if isinstance(x, ah.USMArray):
                inside_memory(x)
                x.copy()
                assert not (frozen and x.flags.writeable and inside(x, buffer)), "a read-only frame is writeable"

    return show((header, [len(frame) for frame in frames], behind, apart, frozen)), call


def went_through(error, function):
    """Return whether an error was raised during a call of `function`."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is function.__code__:
            return True
        trace = trace.tb_next
    return False


def inside(x, buffer):
    """Return whether the memory of an array belongs to a bytearray."""
    start = ctypes.addressof(ctypes.c_char.from_buffer(buffer)) if buffer else 0
    return start <= x.ptr < start + len(buffer)


TARGETS = {
    "array_interface": interface_target("__array_interface__", lambda r: {"offset": r.choice([None, 0])}),
    "cuda": interface_target("__cuda_array_interface__", lambda r: {"stream": r.choice([None, 1, 2])}),
    "array_struct": draw_struct, "buffer": draw_buffer, "dlpack": draw_dlpack, "format": draw_format,
    "datashape": draw_datashape, "index": draw_index, "constructor": draw_constructor, "storage": draw_storage,
    "reshape": draw_reshape, "unpickle": draw_unpickle, "pickle": draw_pickle,
    "by_name": draw_by_name, "name_pickle": draw_name_pickle, "arrow": arrow.draw, **arrow_edges.TARGETS,
    "values": values.draw, "sparse": sparse.draw, "lists": nesting.draw_lists, "empty": nesting.draw_empty,
}  # fmt: skip
if importlib.util.find_spec("distributed") is not None:
    TARGETS["frames"] = draw_frames
if importlib.util.find_spec("dpctl") is not None:
    TARGETS["sycl"] = interface_target("__sycl_usm_array_interface__", lambda r: {"offset": r.choice([None, 0, 1])})
