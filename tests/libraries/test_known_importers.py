"""Test importers without a module of their own: planes of PyAV, images of Pillow, ctypes pointers, columns."""

import copy
import ctypes
import datetime
import fractions
import io

import numpy as np
import pytest

import arrayhub as ah

# ------------------------------------------------------------------------------------------------------- planes of PyAV


def frames(av, width, height):
    """Yield a frame of each pixel format that PyAV can allocate in host memory."""
    from av.video.format import names

    for name in sorted(names):
        try:
            frame = av.VideoFrame(width, height, name)
        except Exception:  # formats of hardware frames
            continue
        yield name, frame


@pytest.mark.parametrize("size", [(6, 4), (7, 5)], ids=["even", "odd"])
def test_video_plane_has_the_shape_of_the_picture_or_is_refused(size):
    av = pytest.importorskip("av")
    imported, refusals = 0, set()
    for name, frame in frames(av, *size):
        for plane in frame.planes:
            try:
                x = ah.asarray(plane)
            except TypeError as error:
                refusals.add("to_ndarray()" in str(error))
                continue
            imported += 1
            assert x.shape[:2] == (plane.height, plane.width), name
            bits = max(component.bits for component in frame.format.components)
            kind = "float16" if "f16" in name else "uint8" if bits <= 8 else "uint16"
            assert x.dtype == kind, name
            assert plane.height == 1 or x.byte_strides[0] == plane.line_size, name
            assert x.ptr == plane.buffer_ptr, name
    assert imported > 100 and refusals == {True}


def test_planes_in_a_list_are_imported_as_pictures():
    frame = pytest.importorskip("av").VideoFrame(6, 4, "yuv420p10le")
    plane, target = frame.planes[0], ah.zeros((1, 4, 6))
    ah.as_numpy(plane)[...] = np.arange(24).reshape(4, 6)
    target[...] = [plane]
    pictures = [
        ah.asarray([plane]),
        ah.as_numpy((plane,)),
        ah.asarray([plane], dtype="f4"),
        ah.like([plane], np.ones(1)),
    ]
    for x in (*pictures, target):
        assert x.tolist() == [ah.asarray(plane).tolist()]
    assert ah.as_numpy(frame.planes[1:]).shape == (2, 2, 3)
    assert ah.asarray([[io.BytesIO(b"ab")]]).tolist() == [[[97, 98]]]  # NumPy does not convert it


@pytest.mark.parametrize("name", ["gray", "rgb24", "rgba", "gray16le", "rgb48le", "grayf16le", "yuv444p", "gbrp"])
def test_video_plane_has_the_values_of_the_picture(name):
    av = pytest.importorskip("av")
    frame = av.VideoFrame(6, 4, name)
    for k, plane in enumerate(frame.planes):
        values = ah.as_numpy(plane)
        values[...] = np.arange(values.size).reshape(values.shape) + k
    try:
        expected = frame.to_ndarray()
    except ValueError:  # PyAV does not convert this format
        expected = np.arange(24).reshape(4, 6)
    planes = np.stack([ah.as_numpy(plane) for plane in frame.planes])
    if name == "gbrp":  # to_ndarray returns the order red, green, blue
        planes = np.moveaxis(planes[[2, 0, 1]], 0, -1)
    assert planes.reshape(expected.shape).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "name",
    ["gray16be", "rgb48be", "grayf32le", "gbrpf32le", "bgr0", "yuyv422", "pal8", "monow", "rgb565le", "bayer_rggb8"],
)
def test_video_plane_that_pyav_does_not_describe_is_refused(name):
    av = pytest.importorskip("av")
    frame = av.VideoFrame(6, 4, name)
    for plane in frame.planes:
        for call in (ah.asarray, ah.as_numpy):
            with pytest.raises(TypeError, match=r"^asarray: av\.VideoPlane .*; frame\.to_ndarray\(\)"):
                call(plane)


def test_video_plane_with_a_negative_line_size_is_refused():
    av = pytest.importorskip("av")
    graph = av.filter.Graph()
    source = graph.add_buffer(width=6, height=4, format="gray", time_base=fractions.Fraction(1, 30))
    flip, sink = graph.add("vflip"), graph.add("buffersink")
    source.link_to(flip)
    flip.link_to(sink)
    graph.configure()
    graph.push(av.VideoFrame.from_ndarray(np.arange(24, dtype="u1").reshape(4, 6), format="gray"))
    frame = graph.pull()
    assert frame.planes[0].line_size < 0
    with pytest.raises(TypeError, match=r"negative linesize.*to_ndarray\(\)"):
        ah.asarray(frame.planes[0])


@pytest.mark.parametrize("layout", ["flt", "fltp", "s16", "dblp"])
def test_audio_is_refused_because_its_planes_are_padded(layout):
    av = pytest.importorskip("av")
    frame = av.AudioFrame(layout, "stereo", 33)
    for x in (frame, frame.planes[0]):
        with pytest.raises(TypeError, match=r"to_ndarray\(\)") as raised:
            ah.asarray(x)
        assert "planes[i]" not in str(raised.value)


# ----------------------------------------------------------------------------------------------------- images of Pillow

MODES = ["L", "P", "LA", "PA", "La", "RGB", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr", "HSV", "I", "F",
         "I;16", "I;16L", "I;16B", "I;16N"]  # fmt: skip


def image_of(mode, size=(5, 4)):
    Image = pytest.importorskip("PIL.Image")
    image = Image.new(mode, size)
    if not hasattr(image, "__arrow_c_array__"):
        pytest.skip("Pillow 11.2 or newer")
    pixels = image.load()
    bands = len(image.getbands())
    for k in range(size[0] * size[1]):
        pixels[k % size[0], k // size[0]] = tuple(7 * k + j for j in range(bands)) if bands > 1 else 5 * k
    return image


@pytest.mark.parametrize("mode", MODES)
def test_image_is_a_view_with_the_values_of_numpy(mode):
    image = image_of(mode)
    expected = np.asarray(image)
    x = ah.asarray(image, copy=False)
    assert (x.shape, x.dtype, x.is_copy, x.access) == (expected.shape, expected.dtype, False, "readonly")
    assert ah.as_numpy(x).tolist() == expected.tolist()
    assert ah.asarray(image, copy=False).ptr == x.ptr
    for values in (None, True):
        assert ah.asarray(image, copy=values).tolist() == expected.tolist()
    image.putpixel((1, 2), image.getpixel((4, 3)))
    assert x[2, 1].tolist() == x[3, 4].tolist() == np.asarray(image)[2, 1].tolist()


@pytest.mark.parametrize("mode", ["L", "RGB", "LA", "I;16B"])
@pytest.mark.parametrize("size", [(0, 4), (4, 0), (0, 0), (1, 1), (1, 5), (5, 1)])
def test_image_of_any_size_has_the_shape_of_numpy(mode, size):
    image = image_of(mode, size)
    x = ah.asarray(image, copy=None if 0 in size else False)
    assert x.shape == np.asarray(image).shape
    assert x.tolist() == np.asarray(image).tolist()


def test_image_outlives_its_object():
    image = image_of("RGB")
    expected = np.asarray(image).tolist()
    x = ah.asarray(image)
    image.close()
    del image
    assert x.tolist() == expected == copy.deepcopy(x).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["mode 1", "LAB", "several blocks", "memory-mapped file"])
def test_image_that_pillow_does_not_share_is_copied(case, tmp_path, monkeypatch):
    image = image_of("RGB")
    from PIL import Image

    made = []
    pixels = Image.Image.__array_interface__
    monkeypatch.setattr(
        Image.Image, "__array_interface__", property(lambda image: made.append(1) or pixels.fget(image))
    )
    if case == "mode 1":
        image = Image.fromarray(np.array([[0, 255, 0], [255, 255, 0]], "u1")).convert("1")
    elif case == "LAB":
        image = image_of("LAB")
    elif case == "several blocks":
        image = Image.new("RGB", (5000, 5000), (1, 2, 3))
    else:
        Image.new("L", (5, 4), 7).save(tmp_path / "x.bmp")
        image = Image.open(tmp_path / "x.bmp")
    for call in (ah.asarray, ah.as_numpy):
        with pytest.raises(BufferError, match=r"can only be copied; Pillow s.*; accepted: copy=None") as raised:
            call(image)
        assert not made and raised.value.call.endswith("(x, copy=None)" if call is ah.asarray else "(x, copy=True)")
    assert ah.explain(image, "torch").verdicts[0].verdict == "copy=True"
    assert ah.explain(image).call == "arrayhub.asarray(x, copy=None)"
    expected = np.asarray(image)
    for copied in (None, True):
        x = ah.asarray(image, copy=copied)
        assert x.is_copy and x.dtype == expected.dtype and np.array_equal(ah.as_numpy(x), expected)


@pytest.mark.parametrize("empty", [True, False])
def test_image_that_crashes_pillow_before_13_is_not_exported(empty, monkeypatch):
    image = image_of("L", (0, 4)) if empty else pytest.importorskip("PIL.Image").frombuffer("L", (4, 2), bytes(8))
    monkeypatch.setattr("PIL.__version__", "12.3.0")
    monkeypatch.setattr(type(image), "__arrow_c_array__", lambda *_: pytest.fail("exported"))
    for keywords in ({}, {"via": "arrow"}, {"via": "arrow", "copy": None}):
        with pytest.raises(BufferError, match=r"Pillow 12\.3\.0 crashes when it shares an image of a file"):
            ah.asarray(image, **keywords)
    assert ah.as_numpy([image, image]).tolist() == 2 * [np.asarray(image).tolist()]
    assert ah.asnested(image, copy=None).to_list() == ah.asarray(image, copy=None).tolist()


# ------------------------------------------------------------------------------------------------------ ctypes pointers


def test_pointers_are_refused_with_a_call_that_views_their_target():
    numbers = (ctypes.c_double * 3)(1, 2, 3)
    pointer = ctypes.cast(numbers, ctypes.POINTER(ctypes.c_double))
    for x in (pointer, ctypes.c_void_p(ctypes.addressof(numbers)), ctypes.c_void_p()):
        for call in (ah.asarray, ah.as_numpy, ah.as_torch, ah.asnested):
            with pytest.raises(TypeError, match=r"; numpy\.ctypeslib\.as_array\(.*, shape\)"):
                call(x)
    assert ah.asarray(np.ctypeslib.as_array(pointer, (3,))).ptr == ctypes.addressof(numbers)
    with pytest.raises(TypeError, match=r"Call arrayhub\.asarray\(x\.value\)"):
        ah.asarray(ctypes.c_char_p(b"abc"))


# ------------------------------------------------------------------------------------ pandas, polars and xarray by rows


@pytest.mark.parametrize("name", ["pandas.Series", "polars.Series", "xarray.DataArray"])
@pytest.mark.parametrize("function", [ah.asarray, ah.as_numpy], ids=lambda function: function.__name__)
def test_import_does_not_look_up_unknown_attributes(name, function, monkeypatch):
    library, _, cls = name.partition(".")
    column = getattr(pytest.importorskip(library), cls)([1.0, 2.0])
    looked_up = []

    def record(obj, name):
        looked_up.append(name)
        raise AttributeError(name)

    owner = next(cls for cls in type(column).__mro__ if "__getattr__" in vars(cls))
    monkeypatch.setattr(owner, "__getattr__", record)
    assert function(column).tolist() == [1.0, 2.0]
    assert looked_up == []


def test_polars_numbers_are_immutable_views():
    polars = pytest.importorskip("polars")
    for dtype in (polars.Int8, polars.UInt64, polars.Float32, polars.Float64):
        column = polars.Series([1, 2, 3], dtype=dtype)
        a = ah.asarray(column, copy=False)
        assert a.tolist() == [1, 2, 3] and a.ptr == column.to_numpy().ctypes.data and a.access == "immutable"
        assert a.ptr == ah.asarray(column, via="arrow").ptr
        assert ah.asarray(column[1:]).tolist() == [2, 3]
    assert ah.asarray(polars.Series([], dtype=polars.Int8)).shape == (0,)


def test_polars_columns_that_numpy_cannot_view_are_imported_through_arrow():
    polars = pytest.importorskip("polars")
    time = datetime.datetime(2020, 1, 1)
    assert ah.asarray(polars.Series([time])).dtype == "M8[us]"
    with pytest.raises(BufferError):
        ah.asarray(polars.Series([time.replace(tzinfo=datetime.UTC)]))
    chunks = polars.concat([polars.Series([1, 2]), polars.Series([3])], rechunk=False)
    missing = (polars.Series([1, None]), chunks.shift(1))
    for column in (*missing, polars.Series(["a"]), polars.Series([True])):
        with pytest.raises(BufferError) as raised:
            ah.asarray(column)
        assert raised.value.call and ("missing value" in raised.value.reason) == any(column is x for x in missing)
    assert ah.asarray(chunks, copy=None).tolist() == [1, 2, 3]


def test_subclass_of_a_pandas_series_is_imported_by_the_path_of_the_row():
    pandas = pytest.importorskip("pandas")

    class Copying(pandas.Series):
        @property
        def values(self):
            return super().values.copy()

    assert ah.asarray(pandas.Series([1.0])).tolist() == [1.0]
    with pytest.raises(TypeError, match="copy"):
        ah.asarray(Copying([1.0, 2.0]))


@pytest.mark.parametrize("dtype", ["float64", "Int64", "boolean", "Float32", "datetime64[us]", "int64[pyarrow]"])
def test_memory_of_a_pandas_series_is_read_only(dtype):
    pd = pytest.importorskip("pandas", minversion="3")  # which shares the memory of copies until one is written
    series = pd.Series([1, 0], dtype=dtype)
    assert ah.asarray(series).access != "readwrite" and not np.asarray(series).flags.writeable
    assert (ah.asarray(series.array).access == "readwrite") == np.asarray(series.array).flags.writeable
