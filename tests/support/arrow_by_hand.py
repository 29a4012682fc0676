"""Hand-made Arrow structs, valid and invalid, created with ctypes.

`main` imports all invalid structs and prints one JSON object: for each case, the type and text of the error, and the
numbers of releases of the structs. Tests call `main` in a separate process, because an invalid read would crash it.
"""

import ctypes
import gc
import json
import mmap
import sys

from dlpack_by_hand import new_capsule

import arrayhub


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]


class DeviceArray(ctypes.Structure):
    _fields_ = [
        ("array", Array),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


class Stream(ctypes.Structure):
    pass


class DeviceStream(ctypes.Structure):
    pass


def _functions(stream, array):
    """Return the types of a stream's functions: get_schema, get_next, get_last_error, release."""
    this = ctypes.POINTER(stream)
    return (
        ctypes.CFUNCTYPE(ctypes.c_int, this, ctypes.POINTER(Schema)),
        ctypes.CFUNCTYPE(ctypes.c_int, this, ctypes.POINTER(array)),
        ctypes.CFUNCTYPE(ctypes.c_void_p, this),
        ctypes.CFUNCTYPE(None, this),
    )


NAMES = ("get_schema", "get_next", "get_last_error", "release")
STREAM_FUNCTIONS, DEVICE_FUNCTIONS = _functions(Stream, Array), _functions(DeviceStream, DeviceArray)
Stream._fields_ = [*zip(NAMES, STREAM_FUNCTIONS, strict=True), ("private_data", ctypes.c_void_p)]
DeviceStream._fields_ = [
    ("device_type", ctypes.c_int32),
    *zip(NAMES, DEVICE_FUNCTIONS, strict=True),
    ("private_data", ctypes.c_void_p),
]


EXPORTED = set()  # producers whose structs a consumer may release


class Producer:
    """A producer of one array with the given fields. It counts the releases of its structs, and lives until then.

    Parameters
    ----------
    format : bytes
    buffers : list of ctypes array, bytes or None
    children : list of Producer
    dictionary : Producer, optional
    **said
        Values that replace fields of the array struct (``length=``) or of the schema struct (``schema_n_children=``).
    """

    def __init__(self, format=b"l", buffers=(), children=(), dictionary=None, **said):
        self.released = [0, 0]
        self.keep = [
            *children, dictionary, *buffers, said,
            RELEASE_SCHEMA(self.release_schema), RELEASE_ARRAY(self.release_array),
        ]  # fmt: skip
        addresses = [None if b is None else ctypes.cast(b, ctypes.c_void_p).value for b in buffers]
        self.pointers = (ctypes.c_void_p * max(len(buffers), 1))(*addresses)
        below = (
            [ctypes.pointer(child.schema) for child in children],
            [ctypes.pointer(child.array) for child in children],
        )
        self.below = (
            (ctypes.POINTER(Schema) * max(len(children), 1))(*below[0]),
            (ctypes.POINTER(Array) * max(len(children), 1))(*below[1]),
        )
        self.schema = Schema(format, b"", None, 0, len(children), self.below[0], None, self.keep[-2], None)
        self.array = Array(
            3, 0, 0, len(buffers), len(children), self.pointers, self.below[1], None, self.keep[-1], None
        )
        if dictionary is not None:
            self.schema.dictionary = ctypes.pointer(dictionary.schema)
            self.array.dictionary = ctypes.pointer(dictionary.array)
        for name, value in said.items():
            struct = self.schema if name.startswith("schema_") else self.array
            setattr(struct, name.removeprefix("schema_").removeprefix("array_"), value)

    def release_schema(self, pointer):
        self.count_release(0)
        pointer.contents.release = RELEASE_SCHEMA()

    def release_array(self, pointer):
        self.count_release(1)
        pointer.contents.release = RELEASE_ARRAY()

    def count_release(self, struct):
        self.released[struct] += 1
        if all(self.released):
            EXPORTED.discard(self)

    def __arrow_c_array__(self, requested_schema=None):
        EXPORTED.add(self)
        return (
            new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )


class OnDevice:
    """An exporter of a producer's array that supports only Arrow's device interface."""

    def __init__(self, producer, device_type=1, device_id=-1, sync_event=None):
        self.producer = producer
        self.struct = DeviceArray(producer.array, device_id, device_type, sync_event)

    released = property(lambda self: self.producer.released)

    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        return (
            new_capsule(ctypes.addressof(self.producer.schema), b"arrow_schema", None),
            new_capsule(ctypes.addressof(self.struct), b"arrow_device_array", None),
        )


class Streamed:
    """A stream that contains the arrays of producers. ``said`` contains values that replace fields of the struct.

    ``code`` is the error code that get_next returns, and ``schema_code`` the one that get_schema returns.
    """

    struct_type, functions = Stream, STREAM_FUNCTIONS

    def __init__(self, *producers, code=0, schema_code=0, **said):
        self.producers, self.left = producers, list(producers)
        self.code, self.schema_code, self.streams_released = code, schema_code, 0
        made = [kind(getattr(self, name)) for name, kind in zip(NAMES, self.functions, strict=True)]
        self.struct = self.struct_type(**dict(zip(NAMES, made, strict=True)))
        self.said = ctypes.create_string_buffer(b"the disk is full")
        for name, value in said.items():
            setattr(self.struct, name, value)

    released = property(
        lambda self: [sum(counts) for counts in zip(*(p.released for p in self.producers), strict=True)]
    )

    def get_schema(self, stream, out):
        if not self.schema_code:
            ctypes.memmove(out, ctypes.byref(self.producers[0].schema), ctypes.sizeof(Schema))
            self.producers[0].schema.release = RELEASE_SCHEMA()
        return self.schema_code

    def get_next(self, stream, out):
        if self.code:
            return self.code
        self.hand_over(self.left.pop(0) if self.left else None, out)
        return 0

    def hand_over(self, producer, out):
        if producer is None:
            out.contents.release = RELEASE_ARRAY()
            return
        ctypes.memmove(out, ctypes.byref(producer.array), ctypes.sizeof(Array))

    def get_last_error(self, stream):
        return ctypes.addressof(self.said)

    def release(self, stream):
        self.streams_released += 1
        stream.contents.release = type(self.struct.release)()

    def __arrow_c_stream__(self, requested_schema=None):
        return new_capsule(ctypes.addressof(self.struct), b"arrow_array_stream", None)


class StreamedOnDevice(Streamed):
    """A device stream whose struct names `device_type`, and whose arrays name `array_type`."""

    struct_type, functions = DeviceStream, DEVICE_FUNCTIONS
    __arrow_c_stream__ = property()

    def __init__(self, *producers, array_type=1, device_id=-1, sync_event=None, device_type=1, **said):
        super().__init__(*producers, device_type=device_type, **said)
        self.place = (device_id, array_type, sync_event)

    def hand_over(self, producer, out):
        if producer is None:
            out.contents.array.release = RELEASE_ARRAY()
            return
        found = DeviceArray(producer.array, *self.place)
        ctypes.memmove(out, ctypes.byref(found), ctypes.sizeof(DeviceArray))

    def __arrow_c_device_stream__(self, requested_schema=None, **keywords):
        return new_capsule(ctypes.addressof(self.struct), b"arrow_device_array_stream", None)


def given(attribute, capsules):
    """Return an object whose only Arrow method, `attribute`, returns `capsules`."""
    return type("Given", (), {attribute: lambda self, requested_schema=None, **keywords: capsules})()


def struct_in(capsule, kind):
    """Return the struct in a capsule. The struct is valid while the capsule exists."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return kind.from_address(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


FORMS = {"array": lambda producer: producer, "device": OnDevice, "stream": Streamed, "device stream": StreamedOnDevice}


def unreadable():
    """Return the address of a page without read access, for use as the address of buffers of 0 bytes.

    The page before it is readable.
    """
    size = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * size)
    _PAGES.append(memory)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + size
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), 0) == 0
    return ctypes.c_void_p(address)


_PAGES = []


def int32(*values):
    return (ctypes.c_int32 * len(values))(*values)


def int64(*values):
    return (ctypes.c_int64 * len(values))(*values)


def numbers(count=3, **said):
    return Producer(b"l", [None, int64(*range(count))], **{"length": count, **said})


def lists(offsets, count=3, **said):
    return Producer(b"+l", [None, int32(*offsets)], [numbers(count)], **{"length": len(offsets) - 1, **said})


def int8(*values):
    return (ctypes.c_int8 * len(values))(*values)


def named(producer, name):
    producer.keep.append(name)
    producer.schema.name = name
    return producer


def union(codes, offsets=None, format=None, **said):
    """Return a union of two arrays of three numbers. It is a dense union if `offsets` is given, else a sparse union."""
    format = format or (b"+us:0,1" if offsets is None else b"+ud:0,1")
    buffers = [None if codes is None else int8(*codes), *([] if offsets is None else [int32(*offsets)])]
    return Producer(format, buffers, [named(numbers(), b"a"), named(numbers(), b"b")], **said)


def run_ends(ends, values=3, format=b"i", missing=0, **said):
    """Return a run-end encoded array with the run ends `ends`, and with `values` numbers."""
    bitmap = (ctypes.c_uint8 * 1)(0b101) if missing else None
    child = Producer(format, [bitmap, int32(*ends)], length=len(ends), null_count=missing)
    return Producer(b"+r", [], [named(child, b"run_ends"), named(numbers(values), b"values")], **said)


def itself():
    """Return a list array whose child is this list array."""
    producer = Producer(b"+l", [None, int32(0, 1)], [numbers()], length=1)
    producer.below[0][0] = ctypes.pointer(producer.schema)
    producer.below[1][0] = ctypes.pointer(producer.array)
    return producer


def two_of_itself():
    """Return a struct array that is its own first and second child. A reader without a limit would never end."""
    producer = Producer(b"+s", [None], [numbers(), numbers()], length=1)
    for k, name in enumerate((b"a", b"b")):
        producer.keep.append(name)
        producer.below[0][k] = ctypes.pointer(producer.schema)
        producer.below[1][k] = ctypes.pointer(producer.array)
    return producer


def view(length, index, offset):
    return (ctypes.c_char * 16).from_buffer_copy(
        b"".join(v.to_bytes(4, "little", signed=True) for v in (length, 0, index, offset))
    )


FOUR_BYTES = int64(4)


def views(first, sizes=FOUR_BYTES):
    return Producer(b"vu", [None, first, ctypes.create_string_buffer(b"abcd", 4), sizes], length=1)


METADATA = {
    "metadata with a negative number of pairs": b"\xff\xff\xff\xff",
    "metadata with too many pairs": b"\xff\xff\xff\x7f",
    "metadata with a key of negative length": b"\x01\x00\x00\x00\xff\xff\xff\xff",
    "metadata with a key that is too long": b"\x01\x00\x00\x00\xff\xff\xff\x7f",
}


def tensor(said):
    name, text = b"ARROW:extension:name", b"arrow.fixed_shape_tensor"
    strings = [name, text, b"ARROW:extension:metadata", said]
    return b"\x02\x00\x00\x00" + b"".join(len(s).to_bytes(4, "little") + s for s in strings)


def tensors(said):
    producer = Producer(b"+w:2", [None], [numbers(6)], length=3)
    raw = tensor(said)
    producer.keep.append(raw)
    producer.schema.metadata = raw
    return producer


def with_metadata(raw):
    producer = numbers()
    padded = ctypes.create_string_buffer(raw, 64)
    producer.keep.append(padded)
    ctypes.memmove(ctypes.addressof(producer.schema) + Schema.metadata.offset,
                   ctypes.byref(ctypes.c_void_p(ctypes.addressof(padded))), 8)  # fmt: skip
    return producer


def released_schema():
    producer = numbers()
    producer.schema.release = RELEASE_SCHEMA()
    return producer


def released_array():
    producer = numbers()
    producer.array.release = RELEASE_ARRAY()
    return producer


def released_child():
    producer = lists([0, 1])
    producer.keep[0].array.release = RELEASE_ARRAY()
    return producer


def half_dictionary():
    producer = Producer(b"i", [None, int32(0, 0, 0)], dictionary=numbers())
    producer.array.dictionary = ctypes.POINTER(Array)()
    return producer


def index(format, width, value):
    """Return a dictionary array of three values with three indices of type `format`. The last index is out of range."""
    raw = b"".join(v.to_bytes(width, "little") for v in (0, 2, value))
    return Producer(format, [None, ctypes.create_string_buffer(raw, 3 * width)], dictionary=numbers())


INDICES = {
    f"index {value:#x} of format {format.decode()}": lambda format=format, width=width, value=value: index(
        format, width, value
    )
    for format, width in zip((b"c", b"C", b"s", b"S", b"i", b"I", b"l", b"L"), (1, 1, 2, 2, 4, 4, 8, 8), strict=True)
    for value in (3, 1 << (8 * width - 1), (1 << 8 * width) - 1)
}

# For each case, the function that creates the producer. Every import must raise an InterfaceError. The exception is a
# released array in a stream, which marks the end of the stream.
CASES = {
    "format is empty": lambda: Producer(b"", [None, int64(1, 2, 3)]),
    "format is NULL": lambda: Producer(None, [None, int64(1, 2, 3)]),
    "format is unknown": lambda: Producer(b"xyz", [None, int64(1, 2, 3)]),
    "format is not ASCII": lambda: Producer(b"\xff", [None, int64(1, 2, 3)]),
    "fixed-size list without a size": lambda: Producer(b"+w:", [None], [numbers()]),
    "fixed-size list of negative size": lambda: Producer(b"+w:-1", [None], [numbers()]),
    "fixed-size list of very large size": lambda: Producer(b"+w:999999999999999999", [None], [numbers()]),
    "too few buffers": lambda: Producer(b"l", [None]),
    "too many buffers": lambda: Producer(b"l", [None, int64(1, 2, 3), None]),
    "pointer to the buffers is NULL": lambda: numbers(array_buffers=ctypes.POINTER(ctypes.c_void_p)()),
    "number of buffers is negative": lambda: numbers(n_buffers=-1),
    **{
        f"{count} buffers of format {format.decode()}": lambda format=format, count=count: Producer(
            format, [None, view(1, 0, 0), int64(0)], length=1, n_buffers=count
        )
        for format in (b"vu", b"vz")
        for count in (-(2**63), -2, -1, 0, 1, 2, 2**31, 2**63 - 1)
    },
    "data buffer is NULL": lambda: Producer(b"l", [None, None]),
    "character buffer is NULL": lambda: Producer(b"u", [None, int32(0, 4), None], length=1),
    "buffer of views is NULL": lambda: views(None),
    "variadic buffer is NULL": lambda: Producer(b"vu", [None, view(4, 0, 0), None, FOUR_BYTES], length=1),
    "sizes of list views are NULL": lambda: Producer(b"+vl", [None, int32(2), None], [numbers()], length=1),
    "buffer of booleans is NULL": lambda: Producer(b"b", [None, None], length=1),
    "length is negative": lambda: numbers(length=-1),
    "length is 2**63 - 1": lambda: numbers(length=2**63 - 1),
    "offset is negative": lambda: numbers(offset=-1),
    "offset is 2**63 - 1": lambda: numbers(offset=2**63 - 1),
    "sum of offset and length overflows": lambda: numbers(offset=2**62, length=2**62),
    "null_count is below -1": lambda: numbers(null_count=-2),
    "null_count is above the length": lambda: numbers(null_count=4),
    "nulls without a validity bitmap": lambda: numbers(null_count=1),
    "list without a child": lambda: Producer(b"+l", [None, int32(0, 1, 2, 3)]),
    "integers with a child": lambda: Producer(b"l", [None, int64(1, 2, 3)], [numbers()]),
    "child only in the schema": lambda: lists([0, 1], n_children=0),
    "number of children is negative": lambda: lists([0, 1], schema_n_children=-1, n_children=-1),
    "pointer to the children is NULL": lambda: lists([0, 1], array_children=ctypes.POINTER(ctypes.POINTER(Array))()),
    "pointer to a child is NULL": lambda: lists([0, 1], array_children=(ctypes.POINTER(Array) * 1)()),
    "2**40 children": lambda: Producer(b"+s", [None], [numbers()], schema_n_children=2**40, n_children=2**40),
    "struct longer than its child": lambda: Producer(b"+s", [None], [numbers()], length=4),
    "fixed-size list longer than its child": lambda: Producer(b"+w:2", [None], [numbers()], length=2),
    "list that is its own child": itself,
    "struct that is both of its children": two_of_itself,
    "dictionary only in the schema": half_dictionary,
    "dictionary indices are floats": lambda: Producer(b"g", [None, int64(0, 0, 0)], dictionary=numbers()),
    "offsets decrease": lambda: lists([0, 2, 1, 3]),
    "first offset is negative": lambda: lists([-1, 2]),
    "last offset is beyond the child": lambda: lists([0, 4]),
    "last offset of a string is negative": lambda: Producer(
        b"u", [None, int32(0, -4), ctypes.create_string_buffer(b"abcd")], length=1
    ),
    "offsets of strings decrease": lambda: Producer(
        b"u", [None, int32(0, 4, 2, 3), ctypes.create_string_buffer(b"abcd")]
    ),
    "offsets are NULL": lambda: Producer(b"+l", [None, None], [numbers()]),
    "list view ends beyond the child": lambda: Producer(b"+vl", [None, int32(2), int32(2)], [numbers()], length=1),
    "list view has a negative size": lambda: Producer(b"+vl", [None, int32(2), int32(-1)], [numbers()], length=1),
    "list view overflows": lambda: Producer(b"+vl", [None, int32(2**31 - 1), int32(2**31 - 1)], [numbers()], length=1),
    "string view has a negative length": lambda: views(view(-1, 0, 0)),
    "string view has a buffer index that is too large": lambda: views(view(20, 7, 0)),
    "string view has a negative buffer index": lambda: views(view(20, -1, 0)),
    "string view ends beyond its buffer": lambda: views(view(20, 0, 0)),
    "string view has a negative offset": lambda: views(view(20, 0, -20)),
    "size of a variadic buffer is negative": lambda: views(view(4, 0, 0), int64(-1)),
    "sizes of variadic buffers are NULL": lambda: views(view(4, 0, 0), None),
    "dictionary index is too large": lambda: Producer(b"i", [None, int32(0, 1, 3)], dictionary=numbers()),
    "dictionary index is negative": lambda: Producer(b"i", [None, int32(0, 1, -1)], dictionary=numbers()),
    **INDICES,
    "type id of a dense union is unknown": lambda: union([0, 2, 1], [0, 0, 0]),
    "type id of a dense union is negative": lambda: union([0, -1, 1], [0, 0, 0]),
    "type id of a sparse union is unknown": lambda: union([0, 1, 5]),
    "offset of a dense union is beyond its child": lambda: union([0, 0, 1], [0, 3, 0]),
    "offset of a dense union is negative": lambda: union([0, 0, 1], [0, -1, 0]),
    "type ids of a union are NULL": lambda: union(None, [0, 0, 0]),
    "offsets of a union are NULL": lambda: Producer(
        b"+ud:0,1", [int8(0, 0, 1), None], [named(numbers(), b"a"), named(numbers(), b"b")]
    ),
    "union with fewer type ids than children": lambda: union([0, 0, 0], [0, 0, 0], format=b"+ud:0"),
    "union with more type ids than children": lambda: union([0, 0, 0], format=b"+us:0,1,2"),
    "union with equal type ids": lambda: union([0, 0, 0], [0, 0, 0], format=b"+ud:1,1"),
    "union with a type id above 127": lambda: union([0, 0, 0], [0, 0, 0], format=b"+ud:0,128"),
    "union whose type id is not a number": lambda: union([0, 0, 0], [0, 0, 0], format=b"+ud:0,b"),
    "sparse union longer than its children": lambda: union([0, 0, 0, 0], length=4),
    "sparse union with offsets": lambda: union([0, 0, 0], [0, 0, 0], format=b"+us:0,1"),
    "run ends are equal": lambda: run_ends([1, 1, 3]),
    "first run end is zero": lambda: run_ends([0, 2, 3]),
    "run ends decrease": lambda: run_ends([2, 1, 3]),
    "last run end is below the length": lambda: run_ends([1, 2]),
    "no run ends": lambda: run_ends([]),
    "last run end is below the offset plus the length": lambda: run_ends([1, 2, 3], offset=1),
    "run-end encoded array with a large offset": lambda: run_ends([1, 2, 3], offset=2**63 - 4),
    "more run ends than values": lambda: run_ends([1, 2, 3], values=2),
    "run ends are bytes": lambda: run_ends([1, 2, 3], format=b"c"),
    "run ends are floats": lambda: run_ends([1, 2, 3], format=b"f"),
    "a run end is null": lambda: run_ends([1, 2, 3], missing=1),
    "run-end encoded array with a buffer": lambda: run_ends([1, 2, 3], n_buffers=1),
    "null array with a buffer": lambda: Producer(b"n", [int64(0)]),
    "null array with two buffers": lambda: Producer(b"n", [None, None]),
    "null array of negative length": lambda: Producer(b"n", [], length=-1),
    "decimal without a scale": lambda: Producer(b"d:5", [None, int64(0, 0, 0, 0, 0, 0)]),
    "decimal with a scale that is not a number": lambda: Producer(b"d:5,x", [None, int64(0, 0, 0, 0, 0, 0)]),
    "decimal of 65 bits": lambda: Producer(b"d:5,2,65", [None, int64(0, 0, 0, 0, 0, 0)]),
    "decimal of 77 digits": lambda: Producer(b"d:77,2", [None, int64(0, 0, 0, 0, 0, 0)]),
    "data buffer of decimals is NULL": lambda: Producer(b"d:5,2", [None, None]),
    "data buffer of intervals is NULL": lambda: Producer(b"tin", [None, None]),
    "interval with an unknown unit": lambda: Producer(b"tiX", [None, int64(0, 0, 0)]),
    "released schema": released_schema,
    "released array": released_array,
    "released child": released_child,
    "tensor metadata is not JSON": lambda: tensors(b"{"),
    "tensor without a shape": lambda: tensors(b"{}"),
    "tensor shape does not match the list size": lambda: tensors(b'{"shape": [3]}'),
    "tensor shape is negative": lambda: tensors(b'{"shape": [-1, -2]}'),
    "tensor shape is 2**70": lambda: tensors(b'{"shape": [%d]}' % 2**70),
    "tensor shape is not a number": lambda: tensors(b'{"shape": ["a"]}'),
    "tensor permutation is invalid": lambda: tensors(b'{"shape": [2], "permutation": [1]}'),
    "tensor has more names than dimensions": lambda: tensors(b'{"shape": [2], "dim_names": ["a", "b"]}'),
    **{name: lambda raw=raw: with_metadata(raw) for name, raw in METADATA.items()},
}  # fmt: skip


# Invalid fields of a stream, and of a device array or device stream. The arrays in these structs are valid.
FALSE_STREAMS = {
    "get_schema is NULL": {"get_schema": None},
    "get_next is NULL": {"get_next": None},
    "release is NULL": {"release": None},
}
FALSE_PLACES = {
    "device type 0": {"device_type": 0},
    "an unknown device type": {"device_type": 99},
    "a negative device type": {"device_type": -1},
    "a negative device id": {"device_type": 2, "device_id": -5},
    "a device id of 2**40": {"device_type": 2, "device_id": 2**40},
}


def false_streams():
    """Yield the name of each case, and a function that creates a producer whose import must raise an InterfaceError."""
    for name, said in FALSE_STREAMS.items():
        for kind, functions in ((Streamed, STREAM_FUNCTIONS), (StreamedOnDevice, DEVICE_FUNCTIONS)):
            null = {field: functions[NAMES.index(field)]() for field in said}
            yield f"{kind.__name__}, {name}", lambda kind=kind, null=null: kind(numbers(), **null)
    for name, place in FALSE_PLACES.items():
        yield f"device, {name}", lambda place=place: OnDevice(numbers(), **place)
        both = {**place, "array_type": place["device_type"]}
        yield f"device stream, {name}", lambda both=both: StreamedOnDevice(numbers(), **both)
    yield "device stream, arrays on a different device", lambda: StreamedOnDevice(numbers(), array_type=2, device_id=0)


def outcome(make):
    """Return the type and the text of a case's error, and how often its schemas and its arrays were released."""
    producer = make()
    error = None
    try:
        arrayhub.asnested(producer).to_list()
    except Exception as caught:
        error = caught
    said = [type(error).__name__, str(error)]
    del error
    gc.collect()
    return [*said, *producer.released]


def main():
    found = {
        f"{form}: {name}": outcome(lambda make=make, wrap=wrap: wrap(make()))
        for name, make in CASES.items()
        for form, wrap in FORMS.items()
    }
    streams = {name: outcome(make) for name, make in false_streams()}
    sys.stdout.write(json.dumps(found | streams))
