"""Pickles and copies of arrays restore all properties, contain only the elements, and are validated."""

import copy
import inspect
import multiprocessing
import pickle
import random
import sys
import zlib
from base64 import b64decode

import ml_dtypes
import numpy as np
import pytest
from children import python, send, without
from pickled_arrays import SOURCES, OwnRecord, check_readable, facts, grid, packed_int4
from producers import lives

import arrayhub
from arrayhub import asarray

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def out_of_band(x):
    """Return the pickle of an array and its out-of-band buffers."""
    buffers = []
    return pickle.dumps(x, 5, buffer_callback=buffers.append), buffers


def order_of_strides(x):
    try:
        strides = x.byte_strides
    except ValueError:
        return None
    steps = [(abs(s), k) for k, s in enumerate(strides) if x.shape[k] > 1 and s]
    signs = [np.sign(s) if x.shape[k] > 1 else 0 for k, s in enumerate(strides)]
    return ([k for _, k in sorted(steps)], signs) if x.size else None


@pytest.mark.parametrize("protocol", [*PROTOCOLS, "out of band"])
@pytest.mark.parametrize("name", SOURCES)
def test_pickle_round_trip_keeps_all_properties(name, protocol):
    x = asarray(SOURCES[name]())
    if protocol == "out of band":
        stream, buffers = out_of_band(x)
        assert len(buffers) == 1
        assert len(stream) < 500, "the elements are in the stream"
        y = pickle.loads(stream, buffers=buffers)
    else:
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.flags.aligned or not x.flags.aligned
    assert facts(y) == facts(x)
    assert order_of_strides(y) == order_of_strides(x)
    assert y.device.type == "cpu"


GAPLESS = [
    *("C", "F", "permuted", "reversed", "one reversed", "broadcast", "broadcast inside", "windows", "large", "large F"),
]


@pytest.mark.parametrize("name", GAPLESS)
def test_gapless_layouts_are_not_copied(name):
    x = asarray(SOURCES[name]())
    stream, buffers = out_of_band(x)
    y = pickle.loads(stream, buffers=buffers)
    assert y.ptr == x.ptr
    assert y.byte_strides == x.byte_strides


# The number of pickled bytes of views with gaps, broadcast elements or overlapping windows.
SIZES = {
    "broadcast": 4 * 8,
    "broadcast inside": 4 * 8,
    "windows": 10 * 8,
    "windows of a column": 10 * 8,
    "column": 6 * 8,
    "inner": 4 * 5 * 8,
    "steps": 3 * 3 * 4 * 8,
    "large strided": 14 * 50 * 2 * 8,
    "padded rows": 5 * 7 * 8,
    "field of a record": 5 * 8,
}


@pytest.mark.parametrize("name", SIZES)
def test_pickle_contains_only_the_elements(name):
    x = asarray(SOURCES[name]())
    _, buffers = out_of_band(x)
    assert buffers[0].raw().nbytes == SIZES[name]
    assert sys.getsizeof(x) - sys.getsizeof(x[..., :0]) == SIZES[name]


def test_random_views_survive_a_round_trip():
    """Pickles of random views of views restore the values, and contain at most as many bytes as the elements."""
    draw = random.Random(5)
    for _ in range(400):
        base = np.arange(3 * 4 * 5 * 6, dtype="i2").reshape(3, 4, 5, 6)
        view = base.transpose(draw.sample(range(4), 4))
        view = view[
            tuple(
                slice(draw.randrange(2), None, draw.choice([-2, -1, 1, 1, 2, 3])) if draw.random() < 0.8 else 0
                for _ in range(4)
            )
        ]
        if view.ndim and draw.random() < 0.3:
            view = np.lib.stride_tricks.sliding_window_view(view, min(2, view.shape[0]), axis=0)
        if draw.random() < 0.3:
            view = np.broadcast_to(view[..., None, :] if view.ndim else view, (*view.shape[:-1], 3, *view.shape[-1:]))
        x = asarray(view)
        stream, buffers = out_of_band(x)
        y = pickle.loads(stream, buffers=buffers)
        assert np.array_equal(np.asarray(y), view), (view.shape, view.strides)
        assert buffers[0].raw().nbytes <= view.nbytes
        assert np.array_equal(np.asarray(copy.deepcopy(x)), view)


# ------------------------------------------------------------------------------------------------------------ access


@pytest.mark.parametrize("size", [10, 5000])
@pytest.mark.parametrize("make", [bytes, bytearray], ids=["bytes", "bytearray"])
def test_read_only_buffers_make_read_only_arrays(make, size):
    x = asarray(np.arange(size))
    stream, buffers = out_of_band(x)
    y = pickle.loads(stream, buffers=[make(buffer.raw()) for buffer in buffers])
    assert y.flags.writeable == (make is bytearray)


@pytest.mark.parametrize("size", [10, 5000])
def test_immutable_access_is_preserved_in_writable_buffers(size):
    x = asarray(bytes(size))
    stream, buffers = out_of_band(x)
    assert pickle.loads(stream, buffers=[bytearray(b.raw()) for b in buffers]).access == "immutable"


@pytest.mark.parametrize("size", [10, 5000])
def test_unaligned_buffers_are_copied_to_alignment(size):
    x = asarray(np.arange(float(size)))
    stream, buffers = out_of_band(x)
    odd = np.zeros(8 * size + 1, "u1")[1:]
    odd[:] = np.frombuffer(buffers[0].raw(), "u1")
    y = pickle.loads(stream, buffers=[odd])
    assert facts(y) == facts(x)
    assert y.flags.aligned and y.is_copy


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_repeated_references_are_kept(copied):
    x = asarray(np.arange(4.0))
    a, b = copied([x, x])
    assert a is b and a is not x


def test_memory_lives_as_long_as_the_pickle_buffers():
    stream, buffers = out_of_band(asarray(np.arange(100_000)))
    y = pickle.loads(stream, buffers=buffers)
    del buffers
    assert int(np.asarray(y).sum()) == sum(range(100_000))


def test_cached_reduce_view_does_not_keep_the_array_alive():
    import weakref

    owner = np.zeros(100_000)
    before = sys.getrefcount(owner)
    x = asarray(owner)
    pickle.dumps(x, 5, buffer_callback=lambda buffer: None)
    first, second = (x.__reduce_ex__(5)[1][1] for _ in range(2))
    assert first is second
    gone = weakref.ref(x)
    del x, first, second
    assert not lives(gone)
    assert sys.getrefcount(owner) == before


# -------------------------------------------------------------------------------------------------------------- copy


@pytest.mark.parametrize("name", SOURCES)
def test_copy_is_a_view_and_deepcopy_a_copy(name):
    x = asarray(SOURCES[name]())
    view, own = copy.copy(x), copy.deepcopy(x)
    assert facts(view) == facts(own) == facts(x)
    assert order_of_strides(own) == order_of_strides(x)
    assert view.ptr == x.ptr and view is not x
    if x.nbytes:
        assert own.ptr != x.ptr
    assert own.is_copy


PADDED = {
    "rows": {"shape": (5, 7), "alignment": 64},
    "one element per row": {"shape": (5, 1), "alignment": 128, "dtype": "u1"},
    "halo": {"shape": (6, 7, 8), "dims": "IJK", "halo": ((1, 1), (2, 2), (0, 0)), "alignment": 128},
    "aligned index": {"shape": (4, 5), "alignment": 64, "aligned_index": (1, 1)},
    "columns": {"shape": (5, 7), "alignment": 64, "layout": "F"},
    "no byte on a boundary": {"shape": (5,), "dtype": "u1", "alignment": 8, "aligned_index": (3,)},
    "pages": {"shape": (512,), "alignment": 4096},
    "shared USM": {"shape": (5, 7), "alignment": 256, "memory": "usm_shared"},
    "device USM": {"shape": (5, 7), "alignment": 256, "memory": "usm_device"},
}


@pytest.mark.parametrize("name", PADDED)
def test_deepcopy_preserves_row_padding(name):
    said = PADDED[name]
    x = arrayhub.zeros(**said)
    numbers = np.arange(x.size).reshape(x.shape).astype(x.dtype)
    arrayhub.transfer.write(x, asarray(numbers))
    views = [x, x.T, x[1:] if x.ndim > 1 and said.get("layout") is None else x]
    for view in [*views, copy.deepcopy(x)]:
        own = copy.deepcopy(view)
        assert (own.byte_strides, own.dims, own.halo, own.access) == (
            *(view.byte_strides, view.dims, view.halo, view.access),
        )
        assert own.aligned_index == view.aligned_index
        assert (own.ptr - view.ptr) % said["alignment"] == 0 and own.ptr != view.ptr
        assert (own.device, own.usm_type, own.is_copy) == (view.device, view.usm_type, True)
        assert own.to_host().tolist() == view.to_host().tolist()


def test_deepcopy_of_partial_rows_has_no_gaps():
    x = arrayhub.zeros((50, 70), alignment=64)
    for view in (x[:, :5], x[::2], x[:, ::2], arrayhub.zeros((50, 8), alignment=64)[:, :1]):
        assert copy.deepcopy(view).flags.c_contiguous
    y = x[::-1]
    assert copy.deepcopy(y).byte_strides == y.byte_strides


def test_pickles_ignore_row_padding():
    padded, plain = arrayhub.zeros((4, 5), alignment=64, aligned_index=(1, 1)), arrayhub.zeros((4, 5))
    assert pickle.dumps(padded) == pickle.dumps(plain)
    assert padded.aligned_index is not None and pickle.loads(pickle.dumps(padded)).aligned_index is None


# ----------------------------------------------------------------------------------------------------- forged pickles


def state_and_data():
    function, (state, data) = asarray(grid(3, 4)).__reduce_ex__(4)
    assert function is arrayhub._unpickle
    return list(state), data


# Changes that make a pickle invalid: index in the state, invalid value, and a part of the error text.
FORGED = [
    (0, 2, "version 2; this release reads version 1"),
    (0, "1", "version '1'"),
    (1, (4, 4), "exceed 96 bytes"),
    (1, (-1, 4), "a length of zero or more"),
    (1, [3, 4], "tuple"),
    (1, (3.0, 4), "accepted: integers"),
    (1, (True, 4), "accepted: integers"),
    (1, (1 << 61, 1 << 61), "fewer than 2"),
    (1, (1,) * 65, "at most 64"),
    (2, (32, 9), "exceed"),
    (2, (-32, 8), "exceed"),
    (2, (1 << 61, 8), "exceed"),
    (2, (8,), "strides are"),
    (3, 1, "exceed"),
    (3, -1, "exceed"),
    (3, 1 << 70, "accepted: integers"),
    (4, "O", "element type"),
    (4, "m8[ns/0]", "element type"),
    (4, "<f9", "element type"),
    (4, "V99999999999", "element type"),
    (4, np.dtype(object), "element type"),
    (4, np.dtype([("a", object)]), "element type"),
    (4, np.dtype(("f8", (2,))), "element type"),
    (4, ("bfloat16", 3, 16, False), "does not support"),
    (4, ("float5", 99, 5, False), "does not support"),
    (4, ("bfloat16", 4, 16, True), "does not support"),
    (4, ("int4", 0, 4), "element type"),
    (5, 3, "0, 1 or 2"),
    (5, "readwrite", "0, 1 or 2"),
    (6, (("I", "I"), None, None), "repeats a name"),
    (6, (None, None, ((9, 9), (0, 0))), "halo"),
    (6, "IJ", "inconsistent"),
    (7, ("usm_device", -1), "accepted: a kind of memory"),
    (7, ("disk", 0), "accepted: a kind of memory"),
    (7, 12345678, "accepted: a kind of memory"),
]


@pytest.mark.parametrize(("place", "value", "words"), FORGED, ids=lambda value: repr(value)[:40])
def test_forged_state_is_rejected(place, value, words):
    state, data = state_and_data()
    state[place] = value
    with pytest.raises(pickle.UnpicklingError, match=words.replace("(", r"\(")):
        arrayhub._unpickle(tuple(state), data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"abc", (), (b"",), 7, None, "text", [1], np.zeros((4, 24), "u1")[:, ::2], memoryview(b"x" * 95),
        np.array([None] * 12), np.zeros(12, [("a", "O")]), np.zeros(12, "f8,f8"), np.array(["a"] * 90, "T"),
        memoryview(np.zeros((4, 24), "u1"))[::2],
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_forged_data_is_rejected(data):
    state, _ = state_and_data()
    with pytest.raises(pickle.UnpicklingError):
        arrayhub._unpickle(tuple(state), data)


@pytest.mark.parametrize(
    "element", [("int4", 0, 4, True), ("uint2", 1, 2, True), ("float6_e3m2fn", 16, 6, True)], ids=lambda value: value[0]
)
@pytest.mark.parametrize("size", [9, 1 << 60, 1 << 61, (1 << 62) - 1])
def test_forged_size_of_packed_elements_is_rejected(element, size):
    with pytest.raises(pickle.UnpicklingError, match="exceed 2 bytes|fewer than 2"):
        arrayhub._unpickle((1, (size,), None, 0, element, 2, None, None), b"ab")


# The pickled state of an 8-byte dtype with an invalid sub-array. NumPy does not validate such states.
SUB_ARRAY = ("V8", (3, "|", (np.dtype("f8"), (4,)), None, None, 8, 1, 0))
FORGED_DTYPES = {
    "hidden objects": ("V8", (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)),
    "objects within": ("V8", (3, "|", None, ("a",), {"a": (np.dtype([("b", "O")]), 0)}, 8, 1, 0)),
    "sub-array of objects": ("V8", (3, "|", None, ("a",), {"a": (np.dtype(("O", (1,))), 0)}, 8, 1, 0)),
    "far beyond": ("V8", (3, "|", None, ("a",), {"a": (np.dtype("f8"), 1 << 27)}, 8, 1, 0)),
    "beyond": ("V8", (3, "|", None, ("a",), {"a": (np.dtype("f8"), 1)}, 8, 1, 0)),
    "before": ("V8", (3, "|", None, ("a",), {"a": (np.dtype("f8"), -8)}, 8, 1, 0)),
    "large sub-array": SUB_ARRAY,
    "large sub-array within": ("V8", (3, "|", None, ("a",), {"a": (SUB_ARRAY, 0)}, 8, 1, 0)),
    "no offset": ("V8", (3, "|", None, ("a",), {"a": (np.dtype("f8"), "0")}, 8, 1, 0)),
    "negative size": ("V8", (3, "|", None, None, None, -8, 1, 0)),
    "odd letters": ("U2", (3, "<", None, None, None, 7, 4, 0)),
}  # fmt: skip


class ForgedDtype:
    def __init__(self, said, state):
        fields = {
            key: (ForgedDtype(*field[0]) if type(field[0]) is tuple else field[0], *field[1:])
            for key, field in (state[4] or {}).items()
        }
        self.said, self.state = said, (*state[:4], fields or state[4], *state[5:])

    def __reduce__(self):
        return np.dtype, (self.said, False, True), self.state


class ForgedArray:
    def __init__(self, said, state):
        self.element = ForgedDtype(said, state)

    def __reduce__(self):
        return arrayhub._unpickle, ((1, (4,), None, 0, self.element, 2, None, None), bytearray(b"A" * 32))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED_DTYPES)
def test_forged_dtype_is_rejected(name):
    """Runs in a subprocess, because the invalid state may crash the interpreter."""
    program = """
        import pickle, sys, arrayhub
        try:
            y = pickle.loads(bytes.fromhex(sys.argv[1]))
        except (pickle.UnpicklingError, ValueError) as error:
            print("refused", error)
        else:
            print(arrayhub.as_numpy(y).tolist())
    """
    assert python(program, pickle.dumps(ForgedArray(*FORGED_DTYPES[name])).hex()).startswith("refused")


@pytest.mark.slow
@pytest.mark.parametrize("alignment", [0, -8, 3])
def test_forged_alignment_is_ignored(alignment):
    forged = ForgedArray("V8", (3, "|", None, None, None, 8, alignment, 0))
    program = """
        import pickle, sys, arrayhub
        y = pickle.loads(bytes.fromhex(sys.argv[1]))
        print(y.dtype.alignment, y.tobytes())
    """
    assert python(program, pickle.dumps(forged).hex()) == f"1 {b'A' * 32}\n"


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype([("a", "i1"), ("b", "f8")], align=True),
        np.dtype([(("title", "a"), "i1"), ("b", ">q", (2, 3)), ("c", ml_dtypes.bfloat16)]),
        np.dtype("f8", metadata={"unit": "m"}),
        np.dtype((np.record, [("x", "f4")])),
        np.dtype((OwnRecord, [("x", "f4")])),
        np.dtype([("x", np.dtype((OwnRecord, np.dtype([("y", "i1"), ("z", "f8")], align=True))))]),
        np.dtype(("i4", {"lo": ("i2", 0), "hi": ("i2", 2)})),
        np.dtype((">i4", {"lo": (">i2", 2), "hi": (">i2", 0)})),
        np.dtype(("f8", [("a", "S8")])),
        np.dtype(("S4", {"a": ("u1", 1), "b": ("u1", 3)})),
        np.dtype(("M8[3s]", {"a": ("i4", 0), "b": ("i4", 4)})),
        np.dtype([("x", np.dtype(("u4", {"lo": ("u2", 0), "hi": ("u2", 2)})), (2,))]),
        np.dtype({"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2], "itemsize": 16}),
        np.dtype([("a", [("b", "M8[3s]"), ("c", "S3", (0,))])], metadata={"of": "all"}),
        np.dtype(">q"),
        np.dtype("q"),
    ],
    ids=str,
)
def test_dtype_survives_a_round_trip(dtype):
    y = pickle.loads(pickle.dumps(asarray(np.zeros(3, dtype)))).dtype
    assert y == dtype
    for fact in ("num", "alignment", "metadata", "type", "isalignedstruct", "fields", "str"):
        assert getattr(y, fact) == getattr(dtype, fact), fact


def test_invalid_states_raise_unpickling_error():
    for state in (None, (), [1], (1,), (1, 2, 3), 7):
        with pytest.raises(pickle.UnpicklingError):
            arrayhub._unpickle(state, b"")


# -------------------------------------------------------------------------------------------------- other processes


@pytest.mark.slow
def test_process_without_arrayhub_imported_unpickles():
    stream = pickle.dumps(asarray(grid(3, 4)).T)
    assert python(f"import pickle; y = pickle.loads({stream!r}); print(y.shape, y.byte_strides)") == "(4, 3) (8, 32)\n"


@pytest.mark.slow
def test_receiver_without_ml_dtypes_restores_the_array():
    stream = pickle.dumps(asarray(np.ones(3, ml_dtypes.bfloat16)))
    program = f"""{without("ml_dtypes")}
import pickle
y = pickle.loads({stream!r})
print(y.shape, y.typenum, y.nbytes, y.access)
try:
    y.dtype
except TypeError as error:
    print("install ml_dtypes" in str(error))
"""
    assert python(program).splitlines() == ["(3,) 4096 6 readwrite", "True"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_arrays_are_sent_to_a_child_process(method):
    context = multiprocessing.get_context(method)
    x = asarray(np.asfortranarray(grid(3, 4)))
    ours, theirs = context.Pipe()
    process = context.Process(target=send, args=(theirs, x), daemon=True)
    process.start()
    theirs.close()
    try:
        assert ours.poll(60)
        assert ours.recv() == ((3, 4), (8, 24), 66.0, "readwrite")
        assert ours.poll(60)
        assert facts(ours.recv()) == facts(x)
    finally:
        process.join(20)
        process.kill()


# -------------------------------------------------------------------------------------- pickles of earlier releases

# Compressed pickles in format 1, written by the first release with this format. Later releases must read them, or raise
# an error that names the format.
GOLDEN = {
    "C": (
        "eNprYJm6jQECejgSi4oSKzNKk6b0cMaX5hVkJmfnpE6ZPEXDm9Gb2ZulbYqfN0MPs02axRRvJj+/kik9HEmlmTklmXnFQA1JlSWpYP1ADc4JDC"
        "jggz2U4QChOKC0AJQWgdISUFoGSitAaSUorQKl1RymtE4JmtIGxHoAiEUnxg=="
    ),
    "F": (
        "eNprYJm6mwECejgSi4oSKzNKk6b0cMaX5hVkJmfnpE6ZPEXDm9Gb2ZulbYo3h7cEkGToYbZJs5jizeTnVzKlhyOpNDOnJDOvGKgrqbIkFWwIUJ"
        "dzAgMKEHCA0ApQ+oM9hBaB8pWgNAOUloDSKlCaA0rLQGk1hymtU4KmtAGxHgCyAClN"
    ),
    "steps": (
        "eNotzDsOgkAQBmBQCuwsLC22tDKWGjVsrNRNjLHWKPiIRIIvKOho1IbOsecoHmWP4A1ww/472Xwz+TOTWp+HaZQvs93bzU2OsUdZbR2HF397Cv"
        "b0ppYwRVWV9SKxmcqiKIStWp5VB4cuicpsFlFme7EfRH54V8teEu3LW2p5xHDeMH6O1ubaBmzCHuzDIXS06RhO4BQKLV9qv5CvMEPmajcwhxKy"
        "HXKYQwlZgBzmUEJ2Rg5zKGH9qu3AObxcOT1oQU/12389V0wv"
    ),
    "broadcast": (
        "eNprYJkaxwABPRyJRUWJlRmlSVN6OONL8woyk7NzUqdMnqLhzejN7M3SNsWbwZsDRPYw26RZTPFm9PMrmeKswIACPthDGQ4QisNhStuUoCl6AN"
        "/UGP8="
    ),
    "windows": (
        "eNprYJnaxwABPRyJRUWJlRmlSVN6OONL8woyk7NzUqdMnqLhzejN4c3cNgVIcgBJhh5mmzSLKd6Mfn4lU5wDGFDAB3sowwFCcUBpASgtAqUloL"
        "QMlFaA0koOU9qmBE3RAwB0bRuF"
    ),
    "swapped": (
        "eNprYJnaxgABPRyJRUWJlRmlSVN6OONL8woyk7NzUqdMnqLhzejN7M3SNsXPm6GH2S7TZIo3k59fyZQejqTSzJySzLxioIakypJUsH6gBmcDqJ"
        "GMQMwExMxAzALErEDMBsTsQMwBxJxAzAXE3FNapwRNaQNiPQCxASMO"
    ),
    "dates": (
        "eNprYJmazgABPRyJRUWJlRmlSVN6OONL8woyk7NzUqdMnqLhzejN1DrFz5uhh83G1yLaJXaKN5OfX8mUHo6k0sycksy8YqCOpMqSVLABQB3OAt"
        "y+EEOr/CD0lNYpQVPagFgPACVzJEE="
    ),
    "record": (
        "eNp1j0FLw0AQhXeTRmJV8OhP6MlD9eCh9OLNgT0oeJWkVjZYQ2h3wYBCoTRtYQ6Cz99bJ7nYg/tgBubNxzBv2ftZadWJ02w+z2rrc/Dxky+rYv"
        "I6m+IbA9KUrGFIcVL6t6oGJ8+urtodx4/Da+y2G9wLF7P+gGGdgbVc0RNs8ImBPbFHHBXDQ24EY8zdXtQ1Ug45qQb2tGVfbg7Z8X9sKuxZyz5c"
        "/bG2LyTF8nDHnDfwdEEpfbVTZIwDp7kvZq4oF5Iyr920Cy1Jbt9VQDrgRwE/Dvi9gI+1PN9IXf4CJxFtpg=="
    ),
    "bfloat16": (
        "eNprYJlazQABPRyJRUWJlRmlSVN6OONL8woyk7NzUqdMnqLhzejN7M3SNsXPm0GjhyMpLSc/scTQbIo3i7dAZ8kUbyY/v5IpQPHSzJySzLxioO"
        "6kypJUsGFA3c4SDAwN9gwODg4NDgscDjg8cGBwFHBUcDRwnNI6JWhKGxDrAQCGrS24"
    ),
    "packed int4": (
        "eNprYJmawAABPRyJRUWJlRmlSVN6OONL8woyk7NzUqdMnqLhzejN2jrFz5tBo4clM6/EZIo3gzdLR8kUbyY/v5IpPRxJpZk5JZl5xUB9SZUlqW"
        "BjgPqcmRWdWae0Tgma0gbEegBVCCWL"
    ),
    "immutable": (
        "eNprYJnqzAABPRyJRUWJlRmlSVN6OONL8woyk7NzUqdMnqLhzejN0zrFz5uhh7mm1HCKN4OfX8kUZx4GRiZmFlY2dg5OLu4pbVOCpugBAIUdFf"
        "E="
    ),
    "read-only": (
        "eNprYJnqzwABPRyJRUWJlRmlSVN6OONL8woyk7NzUqdMnqLhzejN3DrFz5uhh9kmzWKKN6OfX8kUZwkGFPDBHspwmNI2JWiKHgByKxbm"
    ),
    "slice with labels": (
        "eNprYJnaw8wABj0ciUVFiZUZpUlTejjjS/MKMpOzc1KnTJ6i4c3ozQqELO1T/LwZepht0iymeDP1MHpO6WH0AmLvKUAJPyAumdLDkVSamVOSmV"
        "cMNCOpsiQVbCTQDCcFqC2jYBSMAuxgSuuUoCltQKwHACCfKd4="
    ),
}


def golden(name):
    return pickle.loads(zlib.decompress(b64decode(GOLDEN[name])))


@pytest.mark.parametrize("name", GOLDEN)
def test_pickles_in_format_1_are_read(name):
    assert facts(golden(name)) == facts(asarray(SOURCES[name]()))


@pytest.mark.parametrize("name", GOLDEN)
def test_pickles_are_written_in_format_1(name):
    """If the pickle format changes, increment FORMAT, and keep the old pickles in a second table beside GOLDEN."""
    function, (state, data) = golden(name).__reduce_ex__(4)
    again, (state_now, data_now) = asarray(SOURCES[name]()).__reduce_ex__(4)
    assert (function, state) == (again, state_now)
    assert bytes(data) == bytes(data_now)


# ----------------------------------------------------------------------------------------------- memory of devices


@pytest.mark.usefixtures("policy")
class TestDevices:
    """Tests with USM device memory, which the host cannot read through arrayhub, even on SYCL's CPU device."""

    def device(self, source):
        return arrayhub.to_device(source, "oneapi:0")

    def test_device_memory_is_rejected_by_default(self):
        x = self.device(np.arange(4.0))
        for protocol in PROTOCOLS:
            with pytest.raises(pickle.PicklingError, match=r"oneapi:0.*arrayhub\.to_host\(x\).*device='host'"):
                pickle.dumps(x, protocol)

    def test_device_host_restores_a_host_array(self):
        x = self.device(np.arange(24.0).reshape(2, 3, 4))
        with arrayhub.transport.pickling(device="host"):
            for view in (x, x.T, x[:, ::2, ::-1]):
                y = pickle.loads(pickle.dumps(view))
                assert y.device.type == "cpu" and np.array_equal(np.asarray(y), np.asarray(view.to_host()))

    def test_device_keep_restores_the_device(self):
        x = self.device(np.arange(24.0).reshape(2, 3, 4)).with_dims("IJK")
        with arrayhub.transport.pickling(device="keep"):
            streams = [pickle.dumps(view) for view in (x, x.T, x[:, ::2, ::-1])]
        for view, stream in zip((x, x.T, x[:, ::2, ::-1]), streams, strict=True):
            y = pickle.loads(stream)
            assert (y.device, y.usm_type, y.dims) == (x.device, "device", view.dims)
            assert order_of_strides(y) == order_of_strides(view)
            assert np.array_equal(np.asarray(y.to_host()), np.asarray(view.to_host()))
            with arrayhub.transport.pickling(arrive="host"):
                assert pickle.loads(stream).device.type == "cpu"

    @pytest.mark.parametrize(
        "source",
        [
            np.arange(3).astype(ml_dtypes.bfloat16),
            np.arange(3).astype("M8[s]"),
            np.zeros(3, [("a", "M8[s]"), ("b", ml_dtypes.bfloat16)]),
            np.ones(3, {"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2], "itemsize": 12}),
        ],
        ids=["bfloat16", "dates", "record", "overlapping"],
    )
    def test_device_keep_restores_types_without_a_buffer_format(self, source):
        with arrayhub.transport.pickling(device="keep"):
            y = pickle.loads(pickle.dumps(self.device(source)))
        assert (y.usm_type, y.dtype) == ("device", source.dtype)
        assert arrayhub.to_host(y).tobytes() == asarray(source).tobytes()

    def test_device_keep_restores_packed_elements(self):
        x = self.device(packed_int4())
        with arrayhub.transport.pickling(device="keep"):
            y = pickle.loads(pickle.dumps(x))
        assert (y.usm_type, y.shape) == ("device", x.shape)

    @pytest.mark.parametrize("kind", ["usm_shared", "usm_host"])
    def test_host_readable_memory_is_restored(self, kind):
        check_readable(kind)

    def test_deepcopy_stays_on_the_device(self):
        x = self.device(np.arange(24.0).reshape(4, 6))
        for view in (x, x.T, x[::2, ::-1]):
            y = copy.deepcopy(view)
            assert (y.device, y.usm_type) == (x.device, "device") and y.ptr != view.ptr
            assert np.array_equal(np.asarray(y.to_host()), np.asarray(view.to_host()))

    def test_missing_device_raises(self):
        x = self.device(np.arange(4.0))
        with arrayhub.transport.pickling(device="keep"):
            function, (state, data) = x.__reduce_ex__(4)
        for place in (("usm_device", 99), ("cuda", 63)):
            with pytest.raises(pickle.UnpicklingError, match=r"(?s)which is not available here.*arrive='host'"):
                function((*state[:-1], place), data)

    def test_failing_device_raises(self, monkeypatch):
        """A BufferError for an error of the driver becomes an UnpicklingError, which quotes the error."""
        x = self.device(np.arange(4.0))
        with arrayhub.transport.pickling(device="keep"):
            stream = pickle.dumps(x)

        def write(*_):
            raise BufferError("CUDA: cuMemcpyHtoDAsync_v2 failed with CUDA_ERROR_ILLEGAL_ADDRESS (700)")

        monkeypatch.setattr(arrayhub.transfer, "write", write)
        with pytest.raises(pickle.UnpicklingError, match=r"(?s)which is not available here.*ADDRESS.*arrive='host'"):
            pickle.loads(stream)

    def test_receiver_without_sycl_raises(self):
        with arrayhub.transport.pickling(device="keep"):
            stream = pickle.dumps(self.device(np.arange(4.0)))
        program = f"""{without("dpctl", "dpnp")}
import pickle
try:
    print(pickle.loads({stream!r}))
except pickle.UnpicklingError as error:
    print(error)
"""
        assert "which is not available here" in python(program) and "arrive='host'" in python(program)
        assert "device='cpu'" in python(program, ARRAYHUB_UNPICKLING="host")


def test_previous_policy_is_restored_after_a_block():
    before = repr(arrayhub.transport.pickling())
    with arrayhub.transport.pickling(device="keep"):
        with arrayhub.transport.pickling(device="host", arrive="host"):
            assert repr(arrayhub.transport.pickling()) == "<arrayhub.transport.pickling: device='host', arrive='host'>"
        assert "device='keep'" in repr(arrayhub.transport.pickling())
    assert repr(arrayhub.transport.pickling()) == before
    for wrong in ({"device": "away"}, {"arrive": "keep"}, {"device": 3}):
        with pytest.raises(ValueError, match="accepted: 're"):
            arrayhub.transport.pickling(**wrong)


def test_blocks_end_in_any_order():
    """Threads and tasks may enter and leave `pickling` blocks in any order. Blocks that have ended do not apply."""
    before = repr(arrayhub.transport.pickling())
    first, second = arrayhub.transport.pickling(device="host"), arrayhub.transport.pickling(device="keep")
    first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    assert "device='keep'" in repr(arrayhub.transport.pickling())
    second.__exit__(None, None, None)
    assert repr(arrayhub.transport.pickling()) == before
    for _ in range(2):
        with first:
            assert "device='host'" in repr(arrayhub.transport.pickling())
        assert repr(arrayhub.transport.pickling()) == before


@pytest.mark.slow
def test_concurrent_pickling_blocks_restore_their_settings():
    """Threads are switched as often as Python permits, so that their blocks overlap."""
    program = """
        import sys, threading
        import arrayhub

        def work():
            for _ in range(3000):
                with arrayhub.transport.pickling(device="host"):
                    assert "device='host'" in repr(arrayhub.transport.pickling(arrive="restore"))

        sys.setswitchinterval(1e-6)
        failed = []
        threading.excepthook = lambda args: failed.append(args.exc_value)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(failed, arrayhub.transport.pickling())
    """
    assert python(program) == "[] <arrayhub.transport.pickling: device='refuse', arrive='restore'>\n"


@pytest.mark.slow
def test_environment_variable_sets_the_policy():
    program = "import arrayhub; print(arrayhub.transport.pickling())"
    assert "device='refuse', arrive='restore'" in python(program)
    assert "device='keep', arrive='host'" in python(program, ARRAYHUB_PICKLING="keep", ARRAYHUB_UNPICKLING="host")
    wrong = "import arrayhub\ntry: print(arrayhub.transport.pickling())\nexcept Exception as error: print(error)"
    assert "ARRAYHUB_PICKLING is 'away'; accepted: 'refuse'" in python(wrong, ARRAYHUB_PICKLING="away")


@pytest.mark.parametrize("make", [lambda: asarray(np.zeros(2)), lambda: arrayhub.asnested([[1], []])])
def test_arrays_have_the_attribute_module(make):
    """dask calls `inspect.getmodule` for each object. Without ``__module__``, it would search all modules."""
    array = make()
    assert array.__module__ == type(array).__module__
    assert inspect.getmodule(array) is sys.modules[array.__module__]
