"""as_polars raises for conversions that copy values if copy=False, and keeps maps."""

import numpy as np
import pytest

import arrayhub as ah

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("x", [np.array([1], "M8[ms]"), np.array([1], "M8[ns]"), np.arange(3)])
def test_other_times_and_numbers_are_shared(x):
    assert ah.asarray(ah.as_polars(x, copy=False).to_physical()).ptr == x.ctypes.data
    assert ah.explain(x, to="polars").verdicts[0].verdict == "zero-copy"


MAPS = pa.array([[("a", 1)], None, [], [("b" * 20, 2), ("c", None)]], pa.map_(pa.string(), pa.int64()))


@pytest.mark.parametrize(
    "source",
    [MAPS, MAPS[1:], MAPS[:0], pl.from_arrow(MAPS), pa.chunked_array([MAPS, MAPS])],
    ids=["map", "slice", "empty", "series", "chunks"],
)
def test_maps_become_maps_of_polars(source):
    for obj in (source, ah.asnested(source)):
        for copy in (False, True, None):
            made = ah.as_polars(obj, copy=copy)
            assert made.dtype == pl.from_arrow(MAPS).dtype
            assert ah.asnested(made).to_list() == ah.asnested(source).to_list()


def test_maps_in_tables_and_lists_become_maps_of_polars():
    kind = pl.from_arrow(MAPS).dtype
    assert ah.as_polars(pa.table({"m": MAPS})).schema == {"m": kind}
    assert ah.as_polars(pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), MAPS)).dtype == pl.List(kind)


def test_maps_share_their_values_with_polars():
    x = ah.asnested(ah.as_polars(MAPS))
    assert x.content["value"].content.ptr == MAPS.items.buffers()[1].address


def test_rows_that_polars_loses_are_an_error():
    """polars 2.1 loses the rows of a chunk of lists of categories if all of its lists are empty or missing."""
    kind = pl.List(pl.Categorical)
    source = pl.Series([["a"]], dtype=kind).append(pl.Series([[], None], dtype=kind))
    assert source.n_chunks() == 2
    assert ah.as_polars(source, copy=True).to_list() == [["a"], [], None]
    assert ah.as_polars(ah.asnested(source), copy=None).to_list() == [["a"], [], None]
    with pytest.raises(BufferError, match="2 of 3 rows were lost in the import of several chunks; accepted: copy=True"):
        ah.as_polars(ah.asnested(source))


def test_series_of_records_remains_a_series():
    series = pl.Series("s", [{"a": 1, "b": 2.5}, {"a": 3, "b": None}])
    assert ah.as_polars(series) is series
    copied = ah.convert(series, pl.Series, copy=True)
    for made in (copied, ah.as_polars(series, copy=True), ah.as_polars(series, dtype="f4")):
        assert isinstance(made, pl.Series) and made.name == "s"
        assert made.to_list() == series.to_list()


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"a": x}, ah.as_arrow], ids=["array", "dict", "pyarrow"])
def test_unaligned_numbers_are_copied_only_on_request(wrap):
    x = np.frombuffer(bytearray(33), "u1")[1:].view("f8")
    x[:] = range(4)
    with pytest.raises(ah.Refusal, match="polars: unaligned elements are not supported") as raised:
        ah.as_polars(wrap(x))
    assert raised.value.call == ah.explain(wrap(x), to="polars").call == "arrayhub.as_polars(x, copy=True)"
    for copy in (None, True):
        assert ah.asnested(ah.as_polars(wrap(x), copy=copy)).to_list() in ([0, 1, 2, 3], [{"a": k} for k in range(4)])


def test_seconds_that_polars_would_wrap_are_refused():
    most = (2**63 - 1) // 1000
    pa = pytest.importorskip("pyarrow")
    for x in (np.array([most + 1], "M8[s]"), pa.array([-most - 1, None], pa.duration("s"))):
        for given in (x, {"a": x}):
            with pytest.raises(OverflowError, match="polars: a time in seconds exceeds 64 bits") as raised:
                ah.as_polars(given)
            assert len(eval(raised.value.call, {"arrayhub": ah, "x": given})) == len(x)
    kept = ah.as_polars(np.array([most, "NaT"], "m8[s]"))
    assert kept.to_physical().to_list() == [most * 1000, None]
