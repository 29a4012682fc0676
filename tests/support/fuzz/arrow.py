"""Random Arrow structs.

Lengths and last offsets are always within the actual buffers, because a consumer cannot check them: Arrow structs do
not contain the sizes of buffers. Formats, numbers of buffers and children, pointers, counts, offsets, views and indices
may be invalid.
"""

import ctypes
import gc
import sys
from pathlib import Path

import arrayhub as ah

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import arrow_by_hand as by_hand

BYTES = 1024  # size of each buffer, sufficient for all lengths
FLAT = [
    b"c",
    b"C",
    b"s",
    b"S",
    b"i",
    b"I",
    b"l",
    b"L",
    b"e",
    b"f",
    b"g",
    b"b",
    b"tdD",
    b"tsn:",
    b"tDm",
    b"ttu",
    b"d:9,2",
    b"d:9,-2,256",
    b"d:5,5,32",
    b"d:18,0,64",
    b"tiM",
    b"tiD",
    b"tin",
    b"n",
]
TEXT = {b"u": 4, b"z": 4, b"U": 8, b"Z": 8}
LISTS = {b"+l": 4, b"+m": 4, b"+L": 8}
VIEW_LISTS = {b"+vl": 4, b"+vL": 8}
UNKNOWN = [
    b"", b"x", b"+", b"+w", b"+w:", b"+w:-2", b"+w:99999999999999999999", b"+us:0,1", b"+r", b"d:9,x",
    b"d:9,2,65", b"d:,", b"tiQ", b"w:0", b"w:3",
    b"n", b"vx", b"tss:\xff", b"tdQ", b"+l:", b"ll", b"\xff\xfe",
]  # fmt: skip


def integers(r, width, most, beyond=True):
    """Draw a buffer of integers, which are mostly increasing and between 0 and `most`.

    Some integers are negative. If `beyond` is true, some are larger than `most`.
    """
    right = sorted(r.randint(0, most) for _ in range(BYTES // width))
    wild = [-1, -(2**31), 0] + ([most + 1, 2**31 - 1] + ([2**63 - 1, -(2**63)] if width == 8 else []) if beyond else [])
    rate = r.choice([0, 0, 0.05, 0.5])
    values = [r.choice(wild) if r.random() < rate else value for value in right]
    return (ctypes.c_char * BYTES).from_buffer_copy(b"".join(v.to_bytes(width, "little", signed=True) for v in values))


def noise(r):
    return (ctypes.c_char * BYTES).from_buffer_copy(bytes(r.choice([0, 1, 0x41, 0x80, 0xFF]) for _ in range(BYTES)))


def views(r, buffers):
    """Draw a buffer of string views. Most views are inline, or refer to bytes within a buffer."""
    out = b""
    for _ in range(BYTES // 16):
        length = r.choice([0, 3, 12, 13, 40, r.randint(-2, 60), 2**31 - 1])
        index, offset = r.choice([0, 0, buffers - 1, buffers, -1]), r.choice([0, 5, BYTES - 40, BYTES, -1])
        out += b"".join(v.to_bytes(4, "little", signed=True) for v in (length, 0x41414141, index, offset))
    return (ctypes.c_char * BYTES).from_buffer_copy(out)


def parts(r, depth, length):
    """Draw a format, the buffers other than the validity bitmap, the children and the dictionary."""
    kind = r.choice(
        ["flat", "flat", "text", "views", "list", "list views", "fixed", "struct", "categories", "union", "runs"][
            : 11 if depth < 2 else 4
        ]
    )
    if kind == "flat":
        format = r.choice(FLAT)
        return format, [] if format == b"n" else [noise(r)], [], None
    if kind == "text":
        format = r.choice(list(TEXT))
        return format, [integers(r, TEXT[format], 60, beyond=False), noise(r)], [], None
    if kind == "views":
        data = [noise(r) for _ in range(r.randint(0, 2))]
        sizes = by_hand.int64(*[r.choice([BYTES, BYTES, 10, 0, -1]) for _ in data], 0)
        return r.choice([b"vu", b"vz"]), [views(r, len(data)), *data, sizes], [], None
    if kind == "list":
        format = r.choice(list(LISTS))
        child = struct_of(r, depth + 1, 8)
        children = (
            [child] if format != b"+m" else [by_hand.Producer(b"+s", [None], [struct_of(r, 2, 8), child], length=8)]
        )
        return format, [integers(r, LISTS[format], 8)], children, None
    if kind == "list views":
        format = r.choice(list(VIEW_LISTS))
        width = VIEW_LISTS[format]
        return format, [integers(r, width, 4), integers(r, width, 4)], [struct_of(r, depth + 1, 8)], None
    if kind == "fixed":
        return b"+w:2", [], [struct_of(r, depth + 1, 2 * (length + 6) if length >= 0 else 8)], None
    if kind == "categories":
        return r.choice([b"c", b"i", b"L"]), [integers(r, 8, 3)], [], struct_of(r, depth + 1, 4)
    if kind == "runs":
        format = r.choice([b"s", b"i", b"l"])
        width = {b"s": 2, b"i": 4, b"l": 8}[format]
        ends = [r.randint(1, 3) for _ in range(8)]
        ends = [max(sum(ends[: k + 1]), 1) for k in range(8)]
        if r.random() < 0.2:
            ends[r.randrange(8)] = r.choice([0, -1, 1, 2**15 - 1])
        raw = b"".join(end.to_bytes(width, "little", signed=True) for end in ends)
        first = by_hand.Producer(format, [None, (ctypes.c_char * len(raw)).from_buffer_copy(raw)], length=8)
        return b"+r", [], [first if r.random() < 0.95 else struct_of(r, depth + 1, 8), struct_of(r, depth + 1, 8)], None
    if kind == "union":
        return union(r, depth, length)
    return b"+s", [], [struct_of(r, depth + 1, max(length, 0) + 6) for _ in range(r.randint(0, 3))], None


NO_BITMAP = (b"+u", b"+r", b"n")


def union(r, depth, length):
    """Draw a union of up to three arrays. Its type ids and offsets may be invalid."""
    count, dense = r.randint(0, 3), r.random() < 0.5
    codes = r.sample(range(6), count)
    format = (b"+ud:" if dense else b"+us:") + ",".join(map(str, codes)).encode()
    if r.random() < 0.1:
        format += r.choice([b",", b",0", b",200", b",-1", b"x", b",1" * 130])
    used = bytes(
        r.choice([*codes, *(r.choice([-1, 7, 99]) % 256 for _ in range(r.random() < 0.02)), 0]) for _ in range(BYTES)
    )
    buffers = [(ctypes.c_char * BYTES).from_buffer_copy(used), *([integers(r, 4, 5)] if dense else [])]
    return format, buffers, [struct_of(r, depth + 1, max(length, 0) + 6) for _ in range(count)], None


def struct_of(r, depth, length):
    """Draw a producer of an array of about the given length. Some fields may be invalid."""
    format, buffers, children, dictionary = parts(r, depth, length)
    bitmap = r.choice([None, None, noise(r)])
    said = {"length": length, "null_count": r.choice([0, -1]) if bitmap is None else r.choice([-1, -1, 0, 1])}
    if r.random() < 0.3:
        said["offset"] = r.randint(0, 5)
    if r.random() < 0.15:
        format = r.choice(UNKNOWN)
    buffers = buffers if format.startswith(NO_BITMAP) else [bitmap, *buffers]
    if buffers and r.random() < 0.1:
        buffers[r.randrange(len(buffers))] = None
    if r.random() < 0.15:
        name, value = r.choice(
            [("n_buffers", r.choice([-3, -2, -1, 0, 1, len(buffers) - 1])), ("length", r.choice([-1, -(2**63), 0])),
             ("offset", r.choice([-1, -(2**63)])), ("null_count", r.choice([-2, 99, 2**62])),
             ("n_children", r.choice([-1, 0])), ("schema_n_children", r.choice([-1, 0])),
             ("schema_flags", r.getrandbits(4))]
        )  # fmt: skip
        said[name] = value
    keep = by_hand.Producer(format, buffers, children, dictionary, **said)
    names = [f"f{r.randint(0, 2)}".encode() for _ in children]
    keep.keep.append(names)
    for child, name in zip(children, names, strict=True):
        child.schema.name = name
    return keep


def form_of(r, made):
    """Export an array through a random interface. Other fields of the interface's struct may be invalid, too."""
    form = r.choice([None, by_hand.OnDevice, by_hand.Streamed, by_hand.StreamedOnDevice])
    if form is None:
        return made
    said = {}
    if form is not by_hand.Streamed and r.random() < 0.2:
        said["device_type"] = r.choice([0, -1, 3, 7, 11, 13, 17, 99, 2**31 - 1, -(2**31)])
        said["device_id"] = r.choice([-1, 0, 2**40])
    if form is not by_hand.OnDevice and r.random() < 0.2:
        said[r.choice(["code", "schema_code"])] = r.choice([1, -1, 22])
    if form is by_hand.Streamed or form is by_hand.OnDevice or not said or r.random() < 0.5:
        return form(made, **said)
    return form(made, array_type=said.get("device_type", 1), **said)


def draw(r):
    """Draw an array. Return its description, and a call that imports it as dense or nested and reads all elements."""
    dense, length = r.random() < 0.3, r.randint(0, 6)
    array = struct_of(r, 0, length)
    made = form_of(r, array)
    said = (array.schema.format, array.array.length, array.array.offset, array.array.n_buffers)
    description = (type(made).__name__, *said, dense)

    def call():
        try:
            if dense:
                ah.asarray(made, via="arrow").tolist()
            else:
                x = ah.asnested(made)
                str(x.type), repr(x), x[1:].to_list(), x.to_list()
        finally:
            x = None
            gc.collect(0)
            assert max(made.released) <= 1, made.released

    return repr(description), call
