"""Random Arrow structs of kinds that `arrow` rarely draws.

The kinds are schemas without arrays, buffers without bytes, views, and CUDA events on a machine without a driver. A
buffer without bytes starts at a page without read access, so that any read crashes the process.
"""

import ctypes
import gc

import arrow_by_hand as by_hand

import arrayhub as ah

from . import arrow

NOTHING = by_hand.unreadable()
NAMES = [b"key", b"value", b"f0", b"f1", b"f0"]


def is_without_driver():
    """Return whether a CUDA driver is missing. A driver would crash the process for an invalid event."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return True
    return False


def read(made):
    """Import the data of a producer. Read, copy and export all elements, and return the NestedArray."""
    x = ah.asnested(made)
    str(x.type), repr(x), x[1:].to_list()
    for chunk in x.chunks:
        str(chunk.type), repr(chunk), chunk[1:].to_list()
        values = chunk.to_list()
        assert ah.asnested(chunk, copy=True).to_list() == values
        again = ah.asnested(by_hand.given("__arrow_c_array__", chunk.__arrow_c_array__()))
        assert (str(again.type), again.to_list()) == (str(chunk.type), values)
    return x


def reading(made, check=lambda x: None):
    """Return a call that reads a producer, and asserts that each struct is released at most once."""

    def call():
        try:
            check(read(made))
        finally:
            gc.collect(0)
            assert max(made.released) <= 1, made.released

    return call


def named(children):
    for child, name in zip(children, NAMES, strict=False):
        child.keep.append(name)
        child.schema.name = name
    return children


# ------------------------------------------------------------------------------------------ schemas without arrays


def tower(r):
    """Draw a deep schema, in which a level may repeat its child. Return the schema, its depth and its size."""
    made, nodes = by_hand.numbers(0), 1
    depth = r.choice([0, 1, 2, 5, 22, 63, 64, 65, 200])
    # Probability that a level does not have exactly one child.
    shares = r.choice([0, 0, 0.02, 0.02, 0.05, 0.05, 0.5] if depth > 5 else [0, 0.5])
    for _ in range(depth):
        width = r.choice([2, 2, 3, 0, 50]) if r.random() < shares else 1
        format = r.choice([b"+s", b"+s", b"+s", b"+l", b"+L", b"+vl", b"+w:2", b"+m", b"c", b"i"])
        if r.random() < 0.01:
            format = r.choice([b"+r", b"+ud:0,1", *arrow.UNKNOWN])
        if format != b"+s" and r.random() < 0.9:
            width = 1
        dictionary = made if format in (b"c", b"i") else None
        children = [] if dictionary else [made] * width
        if format == b"+m" and r.random() < 2 * shares:
            children = [by_hand.Producer(b"+s", [None], [made, made], length=0)]
            nodes *= 2
        made = by_hand.Producer(format, [None], children, dictionary, length=0)
        nodes = nodes * max(len(children), 1) + 1
    if r.random() < 0.2:
        made.schema.n_children = r.choice([-1, 0, 1, len(children) if depth else 0])
    if depth and made.below[0][0] and r.random() < 0.1:
        made.below[0][0] = ctypes.pointer(made.schema)  # its own child
    return made, (depth, nodes)


def draw_schema(r):
    """Draw a stream that contains no arrays, so that only its schema is read."""
    made, (depth, nodes) = tower(r)
    stream = r.choice([by_hand.Streamed, by_hand.StreamedOnDevice])(made)
    stream.left = []
    return f"{type(stream).__name__} of {depth} levels, {nodes:.3g} nodes", reading(stream)


# ------------------------------------------------------------------------------------------ buffers without bytes


def nothing(r):
    return r.choice([NOTHING, NOTHING, None])


def empty(r, depth=0):
    """Draw an array of length 0 whose buffers are NULL or have 0 bytes."""
    kinds = ["flat", "text", "views", "list", "list views", "map", "struct", "fixed", "categories", "union", "runs"]
    kind = r.choice(kinds if depth < 3 else kinds[:3])
    format, buffers, children, dictionary = r.choice(arrow.FLAT), [nothing(r)], [], None
    buffers = [] if format == b"n" else buffers
    if kind == "text":
        format, buffers = r.choice(list(arrow.TEXT)), [nothing(r), nothing(r)]
    elif kind == "views":
        data = [nothing(r) for _ in range(r.randint(0, 2))]
        sizes = by_hand.int64(*[0 for _ in data]) if data else nothing(r)
        format, buffers = r.choice([b"vu", b"vz"]), [nothing(r), *data, sizes]
    elif kind == "list":
        format, children = r.choice([b"+l", b"+L"]), [empty(r, depth + 1)]
    elif kind == "list views":
        format, buffers, children = r.choice([b"+vl", b"+vL"]), [nothing(r), nothing(r)], [empty(r, depth + 1)]
    elif kind == "map":
        pairs = named([by_hand.Producer(b"u", [None, nothing(r), nothing(r)], length=0), empty(r, depth + 1)])
        format, children = b"+m", [by_hand.Producer(b"+s", [nothing(r)], pairs, length=0)]
    elif kind == "struct":
        format, buffers, children = b"+s", [], named([empty(r, depth + 1) for _ in range(r.randint(0, 3))])
    elif kind == "fixed":
        format, buffers, children = b"+w:2", [], [empty(r, depth + 1)]
    elif kind == "categories":
        format, dictionary = r.choice([b"c", b"i", b"L"]), empty(r, depth + 1)
    elif kind == "runs":
        first = by_hand.Producer(r.choice([b"s", b"i", b"l"]), [None, nothing(r)], length=0)
        format, buffers, children = b"+r", [], named([first, empty(r, depth + 1)])
    elif kind == "union":
        children = named([empty(r, depth + 1) for _ in range(2)])
        format, buffers = r.choice([(b"+ud:3,0", [nothing(r), nothing(r)]), (b"+us:3,0", [nothing(r)])])
    counted = r.choice([0, 0, -1])
    at = r.choice([0, 0, 1, 9])
    return by_hand.Producer(
        format,
        buffers if format.startswith(arrow.NO_BITMAP) else [nothing(r), *buffers],
        children,
        dictionary,
        length=0,
        offset=at,
        null_count=counted,
    )


def draw_empty(r):
    """Draw a valid array of length 0. Its buffer of offsets may be empty, as in Arrow C++ (ARROW-544)."""
    made = empty(r)
    form = by_hand.FORMS[r.choice(list(by_hand.FORMS))](made)

    def is_empty(x):
        assert x.to_list() == []

    shown = (type(form).__name__, made.schema.format, made.array.n_buffers)
    return repr(shown), reading(form, is_empty)


# ---------------------------------------------------------------------------------------------------------- views


def draw_views(r):
    """Draw arrays of string views whose buffers are NULL or have 0 bytes, with wrong sizes and numbers of buffers.

    Views may have any buffer index and offset, because arrayhub can check them: the array contains the buffers' sizes.
    """
    length = r.choice([0, 0, 1, 3, 6])
    data, sizes = [], []
    for _ in range(r.choice([0, 1, 1, 2, 3])):
        kind = r.choice(["memory", "memory", "nothing", "NULL"])
        data.append({"nothing": NOTHING, "NULL": None}.get(kind, arrow.noise(r)))
        said = {"memory": [arrow.BYTES, arrow.BYTES, 10, 0], "nothing": [0], "NULL": [0, 0, 1, arrow.BYTES]}[kind]
        sizes.append(r.choice(said) if r.random() < 0.9 else r.choice([-1, -(2**63)]))
    first = arrow.views(r, len(data))
    if length == 0 or r.random() < 0.1:
        first = nothing(r) if length == 0 else None
    last = by_hand.int64(*sizes) if data else nothing(r)
    if data and r.random() < 0.1:
        last = None
    count = 3 + len(data)
    said = {"length": length, "null_count": r.choice([0, 0, -1])}
    if r.random() < 0.2:
        # A larger number would make arrayhub read beyond the end of the table of pointers.
        said["n_buffers"] = r.choice([-(2**63), -2, -1, 0, 1, 2, *([count - 1] if count == 3 else [])])
    made = by_hand.Producer(r.choice([b"vu", b"vz"]), [None, first, *data, last], **said)
    if r.random() < 0.3:
        lists = by_hand.int32(*sorted(r.randint(0, max(length, 0)) for _ in range(3)))
        made = by_hand.Producer(b"+l", [None, lists], [made], length=2)
    form = by_hand.FORMS[r.choice(list(by_hand.FORMS))](made)
    return repr((type(form).__name__, length, sizes, said)), reading(form)


# --------------------------------------------------------------------------------------------------------- events


def draw_event(r):
    """Draw an array in CUDA memory whose event may be invalid, for machines without a CUDA driver."""
    device_type, device_id = r.choice([2, 2, 3, 13]), r.choice([0, 0, 1, -1, 7, 1_000_000, 2**31, 2**40])
    event = r.choice([None, 1, 8, ctypes.addressof(arrow.noise(r)), NOTHING.value, 2**48, 2**64 - 8])
    producer = r.choice([by_hand.numbers, lambda: by_hand.numbers(0), lambda: arrow.struct_of(r, 0, 3)])()
    place = {"device_id": device_id, "sync_event": event, "device_type": device_type}
    kind = r.choice([by_hand.OnDevice, by_hand.StreamedOnDevice])
    made = kind(producer, **place, **({} if kind is by_hand.OnDevice else {"array_type": device_type}))
    dense = r.random() < 0.5

    def call():
        try:
            ah.asarray(made, via="arrow") if dense else ah.asnested(made)
            assert event is None, "an event was accepted without a driver"
        finally:
            gc.collect(0)
            assert max(made.released) <= 1, made.released

    return repr((kind.__name__, place, dense)), call


TARGETS = {"arrow_schema": draw_schema, "arrow_empty": draw_empty, "arrow_views": draw_views}
if is_without_driver():
    TARGETS["arrow_event"] = draw_event
