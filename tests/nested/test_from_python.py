"""Compiled code imports lists of strings and of rows of numbers, with the results of the general code.

The general code imports tuples, so the tests compare a list with the equal tuple.
"""

import math
import re

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import arrayhub as ah
from arrayhub.libraries.numpy import count_elements
from arrayhub.nested.array import ascii_texts, rows_of_numbers
from arrayhub.nested.from_python import from_python

FLOATS = st.floats(allow_nan=False)
ROWS = st.one_of(
    st.lists(st.one_of(st.none(), st.lists(FLOATS))),
    st.lists(st.one_of(st.none(), st.lists(st.integers(-(2**63), 2**63 - 1)))),
    st.lists(st.one_of(st.none(), st.lists(st.one_of(FLOATS, st.integers(-9, 9), st.booleans())))),
)


def outcome(values):
    """Import a sequence. Return the type, elements, kind and content type of the array, or the exception's class."""
    try:
        x = from_python(values)
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)
    return str(x.type), x.to_list(), x.kind, str(x.content.type if hasattr(x.content, "type") else x.content.dtype)


@given(ROWS)
def test_rows_equal_those_of_the_general_code(values):
    assert outcome(list(values)) == outcome(tuple(values))


@given(st.lists(st.one_of(st.none(), st.text(), st.text(st.characters(codec="ascii")))))
def test_strings_equal_those_of_the_general_code(values):
    assert outcome(list(values)) == outcome(tuple(values))


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None],
        [[]],
        [[], None],
        [[1], (2,)],
        [[1], [2.0]],
        [[True]],
        [[2**63]],
        [[1], [None]],
        [[np.int64(1)]],
        [[[1]]],
    ],
    ids=repr,
)
def test_other_rows_are_left_to_the_general_code(values):
    assert rows_of_numbers(values) is None
    assert outcome(values) == outcome(tuple(values))


@pytest.mark.parametrize("values", [["ä"], ["a", 1], ["a", b"b"], [Text("a")], ["\ud800"]], ids=ascii)
def test_other_strings_are_left_to_the_general_code(values):
    assert ascii_texts(values) is None
    assert outcome(values) == outcome(tuple(values))


def test_compiled_copies_return_offsets_content_and_mask():
    ends, content, mask = rows_of_numbers([[1.0, math.inf], None, [2.0]])
    assert (ends.tolist(), content.tolist(), mask.tolist()) == ([0, 2, 2, 3], [1, math.inf, 2], [True, False, True])
    ends, content, mask = ascii_texts(["ab", "", "c"])
    assert (ends.tolist(), content.tobytes(), mask) == ([0, 2, 2, 3], b"abc", None)
    x = ah.asnested([[1, 2], None])
    assert x.offsets.dtype == np.int32 and x.content.access == "readwrite" and x.validity is not None


def test_repeated_rows_do_not_exhaust_the_memory():
    assert rows_of_numbers([[0.0] * 2**20] * 2**14) is None


@pytest.mark.parametrize("library", ["torch", "jax", "arrayhub"])
def test_lists_of_arrays_are_imported_like_lists_of_ndarrays(library):
    make = {"torch": ah.as_torch, "jax": ah.as_jax, "arrayhub": ah.asarray}[library]
    pytest.importorskip(library)
    parts = [np.arange(2, dtype=np.int32), np.arange(0, dtype=np.int32), np.arange(3, dtype=np.int32)]
    arrays = [make(part, copy=True) for part in parts]
    for wrap in (
        lambda rows: rows,
        lambda rows: [rows, []],
        lambda rows: [rows[0], None, [1]],
        lambda rows: [{"a": row} for row in rows],
        lambda rows: [row.reshape(-1, 1) for row in rows],
    ):
        for values in (wrap(arrays), tuple(wrap(arrays))):
            x, expected = ah.asnested(values), ah.asnested(wrap(parts))
            assert x.type == expected.type and x.to_list() == expected.to_list()


def test_error_for_lists_of_0d_tensors_suggests_item():
    torch = pytest.importorskip("torch")
    rows = [torch.tensor(1), torch.tensor(2)]
    with pytest.raises(TypeError, match=r"from array\.item\(\)"):
        ah.asnested(rows)
    assert ah.asnested([row.item() for row in rows]).to_list() == [1, 2]


def test_images_of_different_sizes_are_rows():
    image = pytest.importorskip("PIL.Image")
    assert ah.asnested([image.new("L", (2, 1)), image.new("L", (1, 2), 5)]).to_list() == [[[0, 0]], [[5], [5]]]


def test_error_for_lists_with_an_unreadable_tensor_names_the_element():
    torch = pytest.importorskip("torch")
    row = torch.tensor([1.0], requires_grad=True)
    x = [torch.tensor([1.0]), row]
    for take in (ah.asnested, ah.as_arrow, ah.as_awkward):
        with pytest.raises(ah.Refusal, match="asnested: element 1 of the list: ") as raised:
            take(x)
        assert len(eval(raised.value.call, {"arrayhub": ah, "x": x})) == 2
    assert ah.asnested([torch.tensor([1.0]), row.detach()]).to_list() == [[1.0], [1.0]]
    with pytest.raises(TypeError, match=r"'a' among elements such as"):
        ah.asnested([torch.tensor([1]), "a"])


WIDE = [0.5] * 100_000
SHARED = {
    "rows": ([WIDE] * 100_000, "1e+10"),
    "rows in a tuple": ((WIDE,) * 100_000, "1e+10"),
    "fields": ([{"a": WIDE}] * 100_000, "1e+10"),
    "many fields": ([dict.fromkeys(map(str, range(1000)), WIDE)] * 1000, "1e+11"),
    "rows of rows": ([[WIDE] * 1000] * 1000, "1e+11"),
    "rows of other rows": ([[WIDE] * 1000 for _ in range(1000)], "1e+11"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_repeated_rows_are_counted_each_time(name):
    """A repeated row is visited once, but counted each time. Visiting each occurrence would take minutes."""
    values, count = SHARED[name]
    with pytest.raises(TypeError, match=re.escape(f"the nested lists have {count} elements; accepted: at most 2**32")):
        ah.asnested(values)


WORDS = pa.array([f"word {k % 3000}" for k in range(9000)])
# Elements of 3000 rows.
ITEMS = {
    "strings": WORDS,
    "bits": pa.array([k % 3 == 0 for k in range(9000)]),
    "dictionary": WORDS.dictionary_encode(),
    "lists": pa.array([[k, None][: k % 3] * (k % 4) for k in range(9000)]),
    "large lists": pa.array([[k] * (k % 4) for k in range(9000)], pa.large_list(pa.int64())),
    "list views": pa.array([[k] * (k % 3) for k in range(9000)], pa.list_view(pa.int64())),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array(range(3, 9001, 3)), pa.array(range(3000))),
    "records": pa.StructArray.from_arrays([WORDS, WORDS.dictionary_encode()], ["a", "b"]),
}


@pytest.mark.parametrize("cls", [pa.ListArray, pa.LargeListArray])
@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS)
def test_to_list_of_many_rows_equals_pyarrow(items, cls):
    """Rows are converted in batches of 1024, which do not end where the batches of the inner lists end.

    Some items are converted in one batch, because each part of a dictionary has all categories.
    """
    missing = pa.array([k % 7 == 0 for k in range(3000)])
    offsets = pa.array(range(0, 9001, 3), pa.int32() if cls is pa.ListArray else pa.int64())
    rows = cls.from_arrays(offsets, items, mask=missing)
    for part in (rows, rows[1500:], rows[1000:2500], rows[1023:1025], rows[:0], rows[2999:]):
        assert ah.asnested(part).to_list() == part.to_pylist()


@pytest.mark.parametrize(
    "make",
    [
        lambda row: pa.DictionaryArray.from_arrays(pa.array([0] * 100_000), pa.array([row])),
        lambda row: pa.RunEndEncodedArray.from_arrays(pa.array([100_000]), pa.array([row])),
    ],
)
def test_to_list_returns_one_object_for_a_repeated_row(make):
    rows = ah.asnested(make(WIDE)).to_list()
    assert len(rows) == 100_000 and len(set(map(id, rows))) == 1
    with pytest.raises(TypeError, match=re.escape("1e+10 elements")):
        ah.asnested(rows)


def test_count_elements_counts_repeated_rows_each_time():
    assert [count_elements(values, "") for values in ([WIDE] * 3, [[1] * 3] * 2, [{"a": [1, 2]}] * 2, [[], []])] == [
        300_003, 8, 8, 2
    ]  # fmt: skip
    assert count_elements([[*WIDE, WIDE]] * 2, "") == 2 + 2 * (100_001 + 100_000)
    wide = [None] * 100
    wide[0] = wide
    with pytest.raises(TypeError, match="contains itself"):
        ah.asnested([wide])
