"""explain, check, debug_repr and the picture in notebooks describe nested arrays."""

import ctypes
import xml.etree.ElementTree as ElementTree

import numpy as np
import pyarrow as pa
import pytest
from arrow_by_hand import Producer, int32, lists

import arrayhub as ah

RAGGED = pa.array([[1.0], [2.0, 3.0, 4.0], None, [5.0, 6.0]])


def verdicts(obj, to=None):
    return {verdict.consumer: verdict.verdict for verdict in ah.explain(obj, to).verdicts}


@pytest.mark.parametrize("to", ["polars", "arrow", "pandas", "awkward"])
def test_explain_lists_libraries_with_nested_arrays(to):
    pytest.importorskip("pyarrow" if to == "arrow" else to)
    assert verdicts(RAGGED, to) == {to: "zero-copy"}
    assert verdicts(np.arange(3.0), to) == {to: "zero-copy"}


def test_explain_describes_nested_arrays():
    found = ah.explain(RAGGED)
    assert found.summary.startswith("4 * option[var * float64], immutable, on cpu")
    assert "asnested" in found.why
    assert verdicts(RAGGED)["torch"] == "cannot"
    assert verdicts(ah.asnested(pa.array(["a"])), "numpy") == {"numpy": "copy=True"}
    assert verdicts(ah.asnested(RAGGED), "arrow") == {"arrow": "zero-copy"}
    with pytest.raises(ValueError, match="numpy.*awkward"):
        ah.explain(RAGGED, "cuneiform")


@pytest.mark.parametrize("values", [[[1], [2, 3]], RAGGED], ids=["list", "pyarrow"])
def test_explain_names_the_protocol_of_the_import_of_a_nested_array(values):
    x = ah.asnested(values)
    found = ah.explain(x)
    through = "" if x.protocol == "constructed" else f", imported through {x.protocol}"
    assert found.why == f"it is a NestedArray{through}; asarray returns dense arrays only"
    assert found.protocols == ("arrow",) and found.taken is None


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_explain_reports_the_protocol_that_is_used(library):
    made = pytest.importorskip(library)
    strings = {"pyarrow": pa.array, "pandas": lambda x: made.DataFrame({"s": x}), "polars": lambda x: made.Series(x)}
    explained = ah.explain(strings[library](["a", "b"]))
    assert explained.taken == "arrow" and "arrow" in explained.protocols


def test_explain_reports_copies_of_strings_and_ranges():
    explained = ah.explain(np.array(["a", "b"], np.dtypes.StringDType()))
    assert explained.summary == "2 * string, which is copied"
    assert "NumPy stores strings in a different layout" in explained.why
    assert explained.taken is None
    said = {verdict.consumer: verdict for verdict in explained.verdicts}
    assert said["arrow"].verdict == "copy=True"
    assert said["numpy"].verdict == "copy=True" and "StringDType" in said["numpy"].reason
    assert said["torch"].call == "arrayhub.asnested(x)"
    for value in (range(3), range(0), [range(3)]):
        assert ah.explain(value).summary == f"a value, which NumPy converts to {np.asarray(value).dtype}"


def test_error_for_0d_arrays_suggests_reshape():
    for obj in (np.array(1), ah.asarray(np.array(1)), 1, np.float32(1)):
        for export in (ah.asnested, ah.as_arrow, ah.as_polars, ah.as_pandas, ah.as_awkward):
            with pytest.raises(TypeError, match=r"x\)?\.reshape\(-1\)"):
                export(obj, copy=True)
        with pytest.raises(ah.Refusal) as raised:
            ah.as_arrow(obj, missing=0)
        assert raised.value.call == ah.explain(obj, to="arrow").call
    assert ah.as_arrow(np.array(1).reshape(-1), copy=True).to_pylist() == [1]


@pytest.mark.parametrize("values", [[[1], [2, 3, None]], ["a", None], [{"a": 1, "b": None}]], ids=str)
def test_check_reads_awkward_lists_out_of_order(values):
    awkward = pytest.importorskip("awkward")
    assert ah.check(awkward.Array(values)) == []
    beyond = awkward.contents.ListOffsetArray(
        awkward.index.Index64(np.array([0, 9])), awkward.contents.NumpyArray(np.arange(3))
    )
    missing = awkward.contents.IndexedOptionArray(awkward.index.Index64(np.array([0, -1])), beyond)
    (fault,) = ah.check(awkward.Array(missing))
    assert "offsets[0]" in fault
    numbers = awkward.contents.NumpyArray(np.arange(3))
    outside = awkward.contents.IndexedOptionArray(awkward.index.Index64(np.array([0, 9])), numbers)
    (fault,) = ah.check(awkward.Array(outside))
    assert "out of range" in fault


def test_check_validates_offsets_and_strings_of_every_chunk():
    for valid in (RAGGED, pa.array([1.0, 2.0]), pa.RecordBatch.from_arrays([pa.array([[1]])], ["a"])):
        assert ah.check(valid) == []
    (fault,) = ah.check(ah.asnested(lists([0, 4])))
    assert "offsets[1]" in fault
    wrong = Producer(b"u", [None, int32(0, 1), ctypes.create_string_buffer(b"\xff", 1)], length=1)
    (fault,) = ah.check(pa.chunked_array([pa.array(["a"]), pa.array(wrong)]))
    assert "UTF-8" in fault and "x.chunks[1]" in fault
    for values in (["a"], [[1], [2, 3]], {"a": 1}, range(3), "text"):
        with pytest.raises(TypeError):
            ah.check(values)


def test_descriptions_show_the_strings_of_the_dynd_example():
    """DyND's documentation describes the same three strings in 14 bytes."""
    x = ah.asnested(["This", "is", "unicode."])
    said = ah.debug_repr(x)
    assert "  string arrmeta\n   size: 3\n" in said
    assert f"  offsets: 4 * int32\n   pointer: {x.offsets.ptr:016X}\n" in said
    assert f"   pointer: {x.content.ptr:016X}\n   size: 14\n" in said
    assert said.startswith("------ array\n address: ")
    assert "  type: 3 * string\n" in said
    assert said.endswith("\n------")


def test_debug_repr_lists_the_leaves():
    x = ah.asnested(pa.array([{"a": [1, None], "b": "c"}]))
    text = ah.debug_repr(x)
    assert "string arrmeta" in text and f"pointer: {x['a'].content.content.ptr:016X}" in text
    assert "list arrmeta" in ah.debug_repr(RAGGED)
    with pytest.raises(TypeError):
        ah.debug_repr(object())


def test_picture_shows_rows_elements_and_missing_values():
    text = ah.asnested(RAGGED).picture.text()
    assert "4 * option[var * float64]" in text and "missing" in text
    for value in ("1.0", "6.0"):
        assert value in text


def test_pages_of_notebooks_are_well_formed_xml():
    for values in ([], [None], [[[1], []], []], ["<a & b>", "c" * 99], [{"x": 1, "y": ["&"]}, None], [b"\xff"]):
        ElementTree.fromstring(ah.asnested(values)._repr_html_())
    assert "…" in ah.asnested([[k] for k in range(100)])._repr_html_()
    assert "offsets[1]" in ah.asnested(lists([0, 4]))._repr_html_()


@pytest.mark.parametrize("to", ["polars", "arrow", "pandas", "awkward"])
@pytest.mark.parametrize(
    "source",
    [np.zeros(3, [("a", "i4"), ("b", "f8")]), np.array(["a", "b"]), np.zeros(2, [("s", "S3")]), np.zeros(3, "c8")],
)
def test_explain_of_records_and_strings_equals_convert(source, to):
    pytest.importorskip("pyarrow" if to == "arrow" else to)
    (verdict,) = ah.explain(source, to).verdicts

    def takes(copy):
        try:
            return len(ah.convert(source, to, copy=copy)) == len(source)
        except BufferError:
            return False

    copied = source.dtype.kind == "U" or source.dtype.names == (
        "s",
    )  # these types cannot be shared, so even copy=False copies
    expected = "copy=True" if copied else "zero-copy" if takes(False) else "copy=True" if takes(True) else "cannot"
    assert verdict.verdict == expected


@pytest.mark.parametrize("to", ["numpy", "torch", "arrow", "polars", "pandas", "awkward"])
def test_verdicts_of_pyarrow_scalars_agree_with_convert(to):
    scalar = pa.scalar([1, 2])
    explained = ah.explain(scalar, to=to)
    assert explained.verdicts[0].verdict == "copy=True" and explained.summary.startswith("1 * var * int64")
    assert len(eval(explained.call, {"arrayhub": ah, "x": scalar})) == 1
    assert verdicts(pa.scalar(None, pa.int64()), "arrow") == {"arrow": "copy=True"}


def test_call_for_long_pandas_data_follows_from_its_first_rows_and_its_first_missing_row():
    pandas = pytest.importorskip("pandas")
    values = pandas.Series(range(10_000), dtype="Int64")
    values[9_000] = None
    for x in (values, pandas.DataFrame({"a": values, "b": 1.5})):
        explained = ah.explain(x, to="numpy")
        assert "missing=" in explained.call and "10000 * " in explained.summary and "index" not in explained.summary
        assert eval(explained.call, {"arrayhub": ah, "x": x}).shape == x.shape
        with pytest.raises(ah.Refusal) as raised:
            ah.as_numpy(x)
        assert raised.value.call == explained.call
