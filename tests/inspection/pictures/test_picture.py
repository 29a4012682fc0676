"""Test pictures of a layout: the text, the structure of the SVG, and properties for random layouts."""

import importlib.util
import itertools
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from contrast import DARK_PAGES, LIGHT_PAGES, contrast
from dlpack_by_hand import Handmade
from hypothesis import assume, example, given
from hypothesis import strategies as st

import arrayhub
from arrayhub.inspection.pictures.drawing import Picture

SVG = "{http://www.w3.org/2000/svg}"
RED = "#d1343f"
BASELINE = 17  # distance from the top of a cell to the baseline of its text


# ------------------------------------------------------------------------------------------------- as text


def drawing(text):
    """Return the part of a picture's text that shows the buffer."""
    return text[text.index("\nbuf_") + 1 :]


EXAMPLES = {
    "C-contiguous": (
        ((2, 3), (3, 1)),
        "buf_flat = { a[0,0], a[0,1], a[0,2], a[1,0], a[1,1], a[1,2] }\n"
        "strides[0]*i[0] + strides[1]*i[1]:\n"
        "           {      0,      1,      2,      3,      4,      5 }",
    ),
    "F-contiguous": (
        ((2, 3), (1, 2)),
        "buf_flat = { a[0,0], a[1,0], a[0,1], a[1,1], a[0,2], a[1,2] }\n"
        "strides[0]*i[0] + strides[1]*i[1]:\n"
        "           {      0,      1,      2,      3,      4,      5 }",
    ),
    "a submatrix": (
        ((2, 2), (3, 1), 0, 6),
        "buf_flat = { a[0,0], a[0,1], *, a[1,0], a[1,1], * }\n"
        "strides[0]*i[0] + strides[1]*i[1]:\n"
        "           {      0,      1,         3,      4    }\n"
        "Not contiguous: dimension 0 steps by 3 elements; compact would be 2.",
    ),
    "backwards": (
        ((4,), (-2,), 7, 8),
        "buf_flat = { *,     a[3], *,     a[2], *,     a[1], *,   a[0] }\n"
        "addr:      {    offset-6,    offset-4,    offset-2,    offset }\n"
        "Not contiguous: dimension 0 steps by -2 elements; compact would be 1.",
    ),
    "padded rows": (
        ((2, 3), (6, 1)),
        "buf_flat = { a[0,0], a[0,1], a[0,2], *, *, *, a[1,0], a[1,1], a[1,2] }\n"
        "strides[0]*i[0] + strides[1]*i[1]:\n"
        "           {      0,      1,      2,               6,      7,      8 }\n"
        "Not contiguous: dimension 0 steps by 6 elements; compact would be 3.",
    ),
    "one dimension backwards": (
        ((2, 2), (2, -1), 1),
        "buf_flat = {   a[0,1], a[0,0],   a[1,1],   a[1,0] }\n"
        "addr:      { offset-1, offset, offset+1, offset+2 }\n"
        "Not contiguous: dimension 1 steps by -1 element; compact would be 1.",
    ),
    "both dimensions backwards": (
        ((4, 2), (-5, -2), 17),
        "buf_flat = {    a[3,1], *,    a[3,0], *, *,    a[2,1], *,    a[2,0], *, *,   a[1,1], *,   a[1,0], *, *,\n"
        "addr:      { offset-17,    offset-15,       offset-12,    offset-10,       offset-7,    offset-5,\n"
        "               a[0,1], *, a[0,0] }\n"
        "             offset-2,    offset }\n"
        "Not contiguous: dimension 1 steps by -2 elements; compact would be 1.",
    ),
    "a broadcast": (
        ((3, 2), (0, 1)),
        "buf_flat = { a[0,0] x3, a[0,1] x3 }\n"
        "strides[0]*i[0] + strides[1]*i[1]:\n"
        "           {         0,         1 }\n"
        "Not contiguous: dimension 0 steps by 0 elements; compact would be 2.\n"
        "Elements share memory: 6 elements occupy 2 positions.",
    ),
    "beyond the end": (
        ((2,), (3,), 1, 4),
        "buf_flat = { *,   a[0], *, *,    !a[1] }\n"
        "addr:      {    offset,       offset+3 }\n"
        "The view extends beyond its buffer. It spans elements 1 to 4, and the buffer has elements 0 to 3."
        " Reading it is an error.\n"
        "Not contiguous: dimension 0 steps by 3 elements; compact would be 1.",
    ),
    "before the start": (
        ((2,), (-1,)),
        "buf_flat = { !a[1], a[0] }\n"
        "strides[0]*i[0]:\n"
        "           {    -1,    0 }\n"
        "The view extends beyond its buffer. It spans elements -1 to 0, and the buffer begins at element 0."
        " Reading it is an error.\n"
        "Not contiguous: dimension 0 steps by -1 element; compact would be 1.",
    ),
    "no dimensions": (((), ()), "buf_flat = { a[()] }\naddr:      {     0 }"),
    "no elements": (
        ((0, 3), None, 0, 2),
        "buf_flat = { *, * }\nThe array is empty, so the strides are not used.",
    ),
    "no memory": (
        ((0,), None),
        "buf_flat = { }\nThe array is empty, so the strides are not used.",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_text_shows_the_buffer_and_notes(name):
    numbers, expected = EXAMPLES[name]
    assert drawing(arrayhub.picture(*numbers).text()) == expected


def test_text_begins_with_the_layout():
    assert (
        arrayhub.picture((2, 3), (3, 1), 4, 10, itemsize=8)
        .text()
        .startswith(
            "nd: 2\nshape: (2, 3)\nstrides: (3, 1)\nbyte strides: (24, 8)\ndata: points to &buf_flat[4]\nbuf_flat = {"
        )
    )


def test_text_of_an_array_begins_with_dtype_layout_and_memory():
    a = np.zeros((4, 4), "f4")[::2, 1:]
    text = arrayhub.asarray(a).picture.text()
    assert text.startswith(
        "dtype: float32\nnd: 2\nshape: (2, 3)\nstrides: (8, 1)\nbyte strides: (32, 4)\ndata: points to &buf_flat[0]\n"
        "memory: 44 bytes on cpu, readwrite\nbuf_flat = { a[0,0], a[0,1], a[0,2], *, *, *, *, *, a[1,0],"
    )


def test_text_of_a_large_array_is_abbreviated():
    text = arrayhub.picture((100, 100)).text()
    assert "a[0,1], ..., a[0,98], a[0,99], a[1,0]" in text
    assert "..., a[98,0]," in text
    assert len(text) < 1000


def test_text_abbreviates_long_gaps_and_many_dimensions():
    assert "a[0], * x999999,    a[1] }" in arrayhub.picture((2,), (10**6,)).text()
    assert arrayhub.picture((20,), (100,)).text().count("* x99") == 19
    text = arrayhub.picture((1,) * 64).text()
    assert "a[0,0,0,...,0,0,0,0]" in text
    assert "shape: (1, 1, 1, ..., 1, 1, 1, 1)" in text


# ------------------------------------------------------------------------------------------------- from arrays


def test_picture_of_a_view_has_its_layout_and_memory():
    x = arrayhub.asarray(np.arange(24, dtype="i4").reshape(4, 6))[2:, ::-1]
    seen = x.picture
    assert (seen.shape, seen.strides, seen.byte_strides) == ((2, 6), (6, -1), (24, -4))
    assert (seen.offset, seen.size, seen.itemsize, seen.unit) == (17, 24, 4, "element")
    assert (seen.dtype, seen.memory, seen.access) == ("int32", "96 bytes on cpu", "readwrite")


def test_fields_of_packed_records_are_drawn_in_bytes():
    records = arrayhub.asarray(np.zeros(3, [("a", "u1"), ("b", "<f4")])["b"])
    seen = records.picture
    assert (seen.unit, seen.strides, seen.byte_strides, seen.size) == ("byte", None, (5,), 14)
    assert "buf_bytes = { a[0], *, a[1], *, a[2] }\nbyte_strides[0]*i[0]:\n" in seen.text()
    assert "Positions are in bytes, because elements are not at multiples of their size (4 bytes)." in seen.text()


def test_partially_overlapping_elements_are_drawn_in_bytes():
    a = np.lib.stride_tricks.as_strided(np.zeros(8, "u1").view("i4"), (3,), (2,))
    text = arrayhub.asarray(a).picture.text()
    assert "buf_bytes = { a[0], a[0] x2, a[1] x2, a[2] }" in text
    assert "3 elements occupy 8 bytes" in text


def test_pictures_describe_device_memory_ml_dtypes_and_empty_elements():
    x = arrayhub.USMArray((2, 3), "f4", buffer="device")
    assert x.picture.memory == f"24 bytes of device USM on {x.device}"  # the host cannot read this memory
    assert "float32, shape (2, 3), C-contiguous" in x._repr_html_()
    assert arrayhub.asarray(b"abc").picture.access == "immutable"
    assert arrayhub.asarray(np.zeros(2, ml_dtypes.bfloat16)).picture.dtype == "bfloat16"
    nothing = arrayhub.asarray(np.zeros(3, "V0")).picture
    assert list(nothing.notes()) == ["Elements of zero bytes do not occupy the buffer."]


def test_sub_byte_elements_are_drawn_as_elements():
    seen = arrayhub.asarray(Handmade(memory=np.zeros(4, "u1"), shape=(5,), dtype=(0, 4, 1))).picture
    assert (seen.strides, seen.byte_strides, seen.size) == ((1,), None, 5)
    assert "buf_flat = { a[0], a[1], a[2], a[3], a[4] }" in seen.text()


def test_picture_of_64_dimensions_is_small():
    x = arrayhub.asarray(np.zeros((1,) * 64))
    assert x.picture.text().count("a[") == 1
    assert len(x.picture.svg()) < 20_000


# --------------------------------------------------------------------------------------------- invalid input


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (((2, 3), (1,)), ValueError, "strides has 1 entries; accepted: 2, one per dimension"),
        (((-1,),), ValueError, "shape is -1; accepted: 0 or more"),
        ((("a",),), TypeError, "shape has 'a' of type str; accepted: integers"),
        (((2.0,),), TypeError, "shape has 2.0 of type float"),
        (((True,),), TypeError, "shape has True of type bool"),
        (((2,), (1,), None), TypeError, "offset has None"),
        (((2,), (1,), 0, -1), ValueError, "size is -1"),
        (((1,) * 65,), ValueError, "65 dimensions; accepted: at most 64"),
        (((2**63,),), ValueError, "accepted: integers that fit in 64 bits"),
        (((2,), (-(2**63) - 1,)), ValueError, "accepted: integers that fit in 64 bits"),
        ((np.ones(3), 1), TypeError, "is given with numbers; accepted: an array alone"),
        ((arrayhub.asnested([[1]]), None, 2), TypeError, "is given with numbers; accepted: an array alone"),
    ],
)
def test_invalid_arguments_raise(arguments, error, words):
    with pytest.raises(error, match=f"^picture: .*{words}"):
        arrayhub.picture(*arguments)


@pytest.mark.parametrize(
    "array", [np.array([2, 3]), np.ones(3), np.zeros((2, 3)), arrayhub.asarray([2, 3]), memoryview(b"ab")]
)
def test_picture_of_an_array_is_the_attribute_of_the_imported_array(array):
    x = arrayhub.asarray(array)
    assert arrayhub.picture(array).text() == x.picture.text() == x.picture().text()
    assert arrayhub.picture(array).shape == array.shape and x.picture()._repr_html_() == x.picture._repr_html_()


def test_picture_of_a_0d_array_is_not_its_value_as_a_shape():
    for value in (3, 3.0):
        assert arrayhub.picture(np.array(value)).shape == ()


def test_object_that_is_not_an_array_raises_type_error():
    for obj in (None, object(), "(2, 3)"):
        with pytest.raises(TypeError):
            arrayhub.picture(obj)


def test_nested_and_sparse_arrays_are_described_as_text():
    rows = pa.array([[1.0, 2.0], [], None, [3.0]])
    expected = """\
4 * option[var * float64], immutable, on cpu
list: 4 elements, offsets int32
  0:2  2:2  missing  2:3
  content: 3 of float64
    1.0  2.0  3.0"""
    x = arrayhub.asnested(rows)
    for seen in (arrayhub.picture(rows), arrayhub.picture(x), x.picture, x.picture()):
        assert seen.text() == str(seen) == expected
    assert x._repr_html_() == f'<pre class="arrayhub-layout">{expected}</pre>'
    eye = scipy.sparse.eye_array(3).tocsr()
    coo = pytest.importorskip("sparse").COO.from_scipy_sparse(eye)  # whose class has __index__, and not shape
    for seen in map(arrayhub.picture, (eye, coo, arrayhub.assparse(eye), arrayhub.assparse(coo))):
        assert seen.text().splitlines()[1:] == ["# . .", ". # .", ". . #"]


def test_integers_are_accepted_as_shape_and_strides():
    assert arrayhub.picture(4, -1, 3).text() == arrayhub.picture((4,), (-1,), 3).text()
    assert arrayhub.picture(np.int64(4)).shape == (4,)


# ------------------------------------------------------------------------------------------------- the SVG


class Cell(NamedTuple):
    title: str
    text: str
    fill: str


class Drawing:
    """The parts of an SVG: `cells` with elements, `holes` without, and `words`, the text outside of cells."""

    def __init__(self, svg):
        self.root = ElementTree.fromstring(svg)
        self.words = [text.text for text in self.root.iter(f"{SVG}text")]
        self.cells, self.holes = [], []
        for cell in self.root.iterfind(f"{SVG}g/{SVG}g"):
            title, rect = cell.find(f"{SVG}title"), cell.find(f"{SVG}rect")
            (label,) = (text.text for text in cell.iter(f"{SVG}text") if text.get("y") == str(BASELINE))
            if rect is not None:
                found = self.holes if rect.get("fill") == "none" else self.cells
                found.append(Cell(title.text, label, rect.get("fill")))


def position_of(cell):
    return int(re.search(r" at (-?\d+)", cell.title)[1])


def index_of(cell):
    return tuple(int(i) for i in re.match(r"a\[([-\d,]*)", cell.title)[1].split(",") if i)


def test_svg_shows_the_buffer_of_a_submatrix():
    picture = Drawing(arrayhub.picture((2, 2), (3, 1), 1, 7, itemsize=8).svg())
    assert [(cell.title, cell.text) for cell in picture.cells] == [
        ("a[0,0] at 1", "0,0"), ("a[0,1] at 2", "0,1"), ("a[1,0] at 4", "1,0"), ("a[1,1] at 5", "1,1"),
    ]  # fmt: skip
    assert [(cell.title, cell.text) for cell in picture.holes] == [("1 unused", "*")] * 3
    assert picture.words.count("▼") == 1
    assert "nd 2 · strides (3, 1) · byte strides (24, 8) · data points to &buf_flat[1]" in picture.words


def test_svg_has_an_aria_label():
    root = Drawing(arrayhub.asarray(np.zeros((2, 3), "f4")).picture.svg()).root
    assert root.get("role") == "img"
    assert root.get("aria-label").startswith(
        "float32, shape (2, 3), C-contiguous; nd 2 · strides (3, 1) · byte strides (12, 4)"
    )


def test_cell_colors_follow_the_logical_order():
    def colors(*numbers):
        return [cell.fill for cell in Drawing(arrayhub.picture(*numbers).svg()).cells]

    c, f, backwards = colors((2, 3)), colors((2, 3), (1, 2)), colors((6,), (-1,), 5)
    assert len(set(c)) == 6
    assert f == [c[0], c[3], c[1], c[4], c[2], c[5]]
    assert backwards == c[::-1]


def test_broadcast_elements_share_cells():
    picture = Drawing(arrayhub.picture((1000, 3), (0, 1)).svg())
    assert [cell.title for cell in picture.cells] == [f"a[0,{j}] and 999 more at {j}" for j in range(3)]
    assert picture.words.count("×1000") == 3


def test_elements_outside_of_the_buffer_are_red():
    picture = Drawing(arrayhub.picture((2, 3), (3, 1), 2, 6).svg())
    red = [cell.title for cell in picture.cells if cell.fill == RED]
    assert red == ["a[1,1] at 6, outside of the buffer", "a[1,2] at 7, outside of the buffer"]
    assert any(words.startswith("The view extends beyond its buffer") for words in picture.words)
    assert not any(cell.fill == RED for cell in Drawing(arrayhub.picture((2, 3)).svg()).cells)


@pytest.mark.parametrize("shape", [(64,), (8, 8), (4, 4, 4), (2, 32), (1, 64)])
def test_all_cells_of_arrays_of_64_elements_are_drawn(shape):
    picture = Drawing(arrayhub.picture(shape, itemsize=8).svg())
    assert len(picture.cells) == 64


def test_dots_stand_for_omitted_elements():
    picture = Drawing(arrayhub.picture((1000, 100), (200, 1), 5, itemsize=4).svg())
    assert "..." in picture.words
    assert len(picture.holes) == 5  # before the first element; other gaps may contain omitted elements


def test_field_names_are_escaped():
    svg = arrayhub.asarray(np.zeros(2, [("<&\"'>\x01", "i4")])).picture.svg()
    assert "<&" in ElementTree.fromstring(svg).get("aria-label")


def test_notebook_pictures_use_the_text_color_of_the_page():
    x = arrayhub.asarray(np.zeros((2, 3)))
    html = x.picture._repr_html_()
    assert html in x._repr_html_()
    assert html.startswith('<div class="arrayhub-layout"><svg ') and html.endswith("</svg></div>")
    leaving = arrayhub.picture((2, 3), (3, 1), offset=2, size=6)._repr_html_()
    assert "light-dark" not in html + leaving and "<style" not in html + leaving and " color=" not in html + leaving
    assert 'fill="currentColor"' in html
    ElementTree.fromstring(html)


def test_text_has_sufficient_contrast_on_light_and_dark_pages():
    """Draw a view that extends beyond its buffer, because its picture also contains a warning."""
    svg = arrayhub.picture((2, 3), (5, 1), offset=2, size=6, itemsize=4).svg()
    colors = set(re.findall(r"light-dark\((#\w+),(#\w+)\)", svg))
    assert len(colors) == 1 and "svg:root{color-scheme:light dark}" in svg
    for light, dark in colors:
        assert min(contrast(light, page) for page in LIGHT_PAGES) >= 4.5
        assert min(contrast(dark, page) for page in DARK_PAGES) >= 4.5
    dark_words, cells = "#1f2328", {cell.fill for cell in Drawing(svg).cells} - {RED}
    assert cells and min(contrast(dark_words, cell) for cell in cells) >= 4.5
    assert contrast("#ffffff", RED) >= 4.5


@pytest.mark.parametrize("array", [np.zeros((4, 6), "f4")[::2, ::-1], np.zeros((3, 40)), np.zeros(1000)[::3]])
@pytest.mark.parametrize("width", [240, 358, 768])
def test_svg_fits_in_the_requested_width(array, width):
    picture = arrayhub.asarray(array).picture
    narrow, wide = (ElementTree.fromstring(picture.svg(width=asked)) for asked in (width, 3000))
    assert float(narrow.get("width")) <= width
    titles = [sorted(title.text for title in root.iter(f"{SVG}title")) for root in (narrow, wide)]
    assert titles[0] == titles[1]
    with pytest.raises(ValueError, match="width is 239; accepted: 240 or more"):
        picture.svg(width=239)


@pytest.mark.parametrize("width", [240, 358, 768])
def test_bold_text_of_svg_fits_in_its_width(width):
    """A letter of a bold sans-serif font is wider than 0.6 of its size, so longer lines were cut off."""
    root = ElementTree.fromstring(arrayhub.picture((2, 3), (3, 1), offset=2, size=6).svg(width=width))
    bold = [text for text in root.iter(f"{SVG}text") if text.get("font-weight") == "600"]
    assert len(bold) > 1
    for text in bold:
        used = float(text.get("x")) + len(text.text) * float(text.get("font-size")) * 0.6
        assert used <= float(root.get("width"))


def test_html_representation_contains_values_of_host_memory():
    page = ElementTree.fromstring(arrayhub.asarray(np.arange(1000.0))._repr_html_())
    assert page.find("pre").text == "[  0.   1.   2. ... 997. 998. 999.]"
    assert (
        ElementTree.fromstring(arrayhub.asarray(np.array(["<&\x00\x1b"]))._repr_html_()).find("pre").text
        == "['<&\\x00\\x1b']"
    )
    assert "<pre>" not in arrayhub.asarray(np.zeros((0, 3)))._repr_html_()
    assert "<pre>[1 2]</pre>" in arrayhub.asarray(np.array([1, 2], ml_dtypes.bfloat16))._repr_html_()


def test_html_representation_does_not_read_device_memory():
    """The address is invalid, so a read would crash."""
    keys = dict(data=(1 << 40, False), shape=(4,), typestr="<f4", version=3, strides=None, stream=None)
    x = arrayhub.asarray(type("Device", (), {"__cuda_array_interface__": keys})())
    ElementTree.fromstring(x._repr_html_())
    assert "<pre>" not in x._repr_html_()


def test_svg_colors_are_hexadecimal():
    for value in re.findall(r'(?:fill|stroke)="([^"]+)"', arrayhub.picture((30, 30), (40, 1), 0, 1100).svg()):
        assert value in ("none", "currentColor") or re.fullmatch("#[0-9a-f]{6}", value)


# ---------------------------------------------------------------------------------------------- random layouts

small = st.integers(0, 5).flatmap(
    lambda nd: st.tuples(
        st.lists(st.integers(0, 6), min_size=nd, max_size=nd),
        st.lists(st.integers(-9, 9), min_size=nd, max_size=nd),
        st.integers(-5, 40),
        st.none() | st.integers(0, 80),
    )
)
number = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
any_layout = st.integers(0, 64).flatmap(
    lambda nd: st.tuples(
        st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 9), min_size=nd, max_size=nd),
        st.lists(number, min_size=nd, max_size=nd),
        number,
        st.none() | st.integers(0, 2**63 - 1) | st.integers(0, 300),
        st.none() | st.integers(0, 64),
    )
)


@given(any_layout)
@example(([2**45, 1], [2**45, 0], 0, None, 19))  # spans more than 2**64 bytes
@example(([2**62, 0], [1, 1], 0, 2**60, 8))
def test_pictures_of_random_layouts_are_small_and_well_formed(numbers):
    shape, strides, offset, size, itemsize = numbers
    seen = arrayhub.picture(shape, strides, offset, size, itemsize=itemsize)
    svg = seen.svg()
    assert len(svg.encode()) < 20_000
    picture = Drawing(svg)
    assert len(picture.cells) + len(picture.holes) <= 64
    ElementTree.fromstring(seen._repr_html_())
    assert len(seen.text()) < 20_000


@given(small)
def test_cells_of_random_layouts_have_the_computed_positions(numbers):
    shape, strides, offset, size = numbers
    picture = Drawing(arrayhub.picture(shape, strides, offset, size).svg())
    for cell in picture.cells:
        index, position = index_of(cell), position_of(cell)
        assert all(0 <= i < length for i, length in zip(index, shape, strict=True))
        assert position == offset + sum(i * step for i, step in zip(index, strides, strict=True))
        assert (cell.fill == RED) == (position < 0 or (size is not None and position >= size))
    assert bool(picture.cells) == (math.prod(shape) > 0)


@given(small, st.integers(1, 4))
def test_range_and_number_of_used_positions_equal_an_enumeration(numbers, span):
    shape, strides, offset, _ = numbers
    assume(math.prod(shape) * span <= 1 << 14)  # more positions are not counted
    covered = {
        offset + sum(i * step for i, step in zip(index, strides, strict=True)) + byte
        for index in itertools.product(*map(range, shape))
        for byte in range(span)
    }
    seen = Picture(tuple(shape), None, tuple(strides), offset, None, span)
    assert seen.used == len(covered)
    if covered:
        assert (seen.low, seen.high) == (min(covered), max(covered) + 1)


def test_used_positions_of_large_interleaved_layouts_are_not_counted():
    seen = arrayhub.picture((10**6, 10**6, 3), (2 * 10**6, 7, 5))
    assert seen.used is None
    Drawing(seen.svg())


# ------------------------------------------------------------------------------------------------- documentation

ROOT = Path(__file__).resolve().parents[3]
STATIC = ROOT / "docs" / "_static"


@pytest.fixture(scope="module")
def tool():
    pytest.importorskip("PIL")
    spec = importlib.util.spec_from_file_location("draw_pictures", ROOT / "tools" / "draw_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_committed_svg_equals_the_drawn_svg(tool):
    """``python tools/draw_pictures.py`` writes the SVG. Run this command after each change of pictures."""
    assert (STATIC / "layout.svg").read_text() == tool.front_picture()
    assert float(ElementTree.fromstring(tool.front_picture()).get("width")) <= tool.PHONE


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_notebook_page_contains_pictures_and_has_a_screenshot(tool, theme):
    page = tool.notebook(theme)
    assert page.count("<svg ") == 3
    assert page.count("Out[") == len(tool.CELLS)
    assert "negative strides" in page
    screenshot = STATIC / f"notebook-{theme}.png"
    assert screenshot.read_bytes().startswith(b"\x89PNG") and screenshot.stat().st_size < 200_000


def test_0d_arrays_are_accepted_as_numbers():
    assert arrayhub.picture((2, 3), np.array([3, 1])).strides == (3, 1)
    assert arrayhub.picture(np.int64(3), np.array(2), np.array(0), np.array(5)).size == 5
    with pytest.raises(TypeError, match="picture: strides has array"):
        arrayhub.picture((2,), np.array(3.0))
