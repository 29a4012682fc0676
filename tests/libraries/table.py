"""The libraries of docs/libraries.md: for each what its objects come to, and how it takes ours."""

import ctypes
import itertools
from typing import NamedTuple

import numpy as np

from .rows import Out, Refused, View


class Library(NamedTuple):
    """A row per library.

    Attributes
    ----------
    name : str
        As it is called.
    module : str
        What must be importable.
    distribution : str or None
        What pip installs; None: a part of Python.
    rows : tuple
    environment : dict
        Variables that must be set before it is imported.
    in_extra : bool
        It is part of the extra ``test``, so that it runs wherever the tests do.
    note : str
    """

    name: str
    module: str
    distribution: str | None
    rows: tuple
    environment: dict = {}  # noqa: RUF012
    in_extra: bool = True
    note: str = ""


def itself(x):
    return x


def of_buffer(x):
    return np.asarray(memoryview(x))


def importing(module):
    """A lambda's way to a module that is imported when the row is made."""
    import importlib

    return importlib.import_module(module)


# ---- the standard library


class _Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


def _shared_memory():
    shared = importing("multiprocessing.shared_memory").SharedMemory(create=True, size=32)
    shared.unlink()
    return shared


def _shareable_list():
    shared = importing("multiprocessing.shared_memory").ShareableList([1, 2.5])
    shared.shm.unlink()
    return shared


def _manager_array():
    global _manager
    _manager = importing("multiprocessing").Manager()
    return _manager.Array("d", [1.0, 2.0])


MULTIPROCESSING = Library(
    "multiprocessing",
    "multiprocessing",
    None,
    (
        View(
            "SharedMemory", _shared_memory, lambda x: np.asarray(x.buf), note="`close()` is refused while a view lives"
        ),
        View(
            "Array, Value, with a lock",
            lambda: importing("multiprocessing").Array("d", [1.0, 2.0, 3.0]),
            lambda x: of_buffer(x.get_obj()),
            note="the lock is not taken: `with x.get_lock():`",
        ),
        View(
            "Array of structures",
            lambda: importing("multiprocessing").Array(_Pair, 2),
            lambda x: np.ctypeslib.as_array(x.get_obj()),
        ),
        View("RawArray, RawValue", lambda: importing("multiprocessing").RawArray("i", 3), of_buffer),
        Refused(
            "ShareableList",
            _shareable_list,
            "list(x)",
            "its values are packed, each with its own type",
            lambda x: list(x),
        ),
        Refused("a manager's Array, list", _manager_array, "x[:]", "the memory is another process's", lambda x: x[:]),
    ),
)


# ---- numbers and data on the host


def _pandas(make):
    return lambda: make(importing("pandas"))


PANDAS = Library(
    "pandas",
    "pandas",
    "pandas",
    (
        View(
            "Int64, Float64, boolean arrays without NA",
            _pandas(lambda pd: pd.array([1, 2], dtype="Int64")),
            lambda x: x.to_numpy(),
        ),
        View(
            "Series, Index of these", _pandas(lambda pd: pd.Series([1.0, 2.0], dtype="Float64")), lambda x: x.to_numpy()
        ),
        View(
            "DatetimeArray, TimedeltaArray",
            _pandas(lambda pd: pd.array(pd.date_range("2020", periods=2))),
            lambda x: x.to_numpy(),
        ),
        View(
            "NumpyExtensionArray",
            _pandas(lambda pd: pd.array(np.arange(3.0), dtype=np.dtype("f8"))),
            lambda x: x.to_numpy(),
        ),
        Refused(
            "the same with NA",
            _pandas(lambda pd: pd.array([1, None], dtype="Int64")),
            "x.to_numpy()",
            "missing values have no place in an array",
            lambda x: x.to_numpy(dtype="f8", na_value=np.nan),
        ),
        Refused(
            "time zones",
            _pandas(lambda pd: pd.array(pd.date_range("2020", periods=2, tz="UTC"))),
            "x.to_numpy()",
            "the time zone would be lost",
            lambda x: x.to_numpy(dtype="M8[ns]"),
        ),
        Refused(
            "arrays on Arrow",
            _pandas(lambda pd: pd.array([1, 2], dtype="int64[pyarrow]")),
            "x.to_numpy()",
            "Arrow's memory has its own way in: the pyarrow array itself",
            lambda x: x.to_numpy(),
        ),
        Refused(
            "Categorical, Period, Interval",
            _pandas(lambda pd: pd.Categorical([1, 2])),
            "x.to_numpy()",
            "what its numbers stand for would be lost",
            lambda x: x.to_numpy(),
        ),
        Refused(
            "MultiIndex",
            _pandas(lambda pd: pd.MultiIndex.from_tuples([(1, 2)])),
            "x.get_level_values(i)",
            "it is made at each look",
            lambda x: x.get_level_values(0).to_numpy(),
        ),
    ),
)


def _awkward(make):
    return lambda: make(importing("awkward"))


def _built(ak):
    builder = ak.ArrayBuilder()
    builder.integer(1)
    return builder


AWKWARD = Library(
    "awkward",
    "awkward",
    "awkward",
    (
        View("Array of numbers", _awkward(lambda ak: ak.Array(np.arange(4.0))), lambda x: x.layout.data),
        View("contents.NumpyArray, index.Index", _awkward(lambda ak: ak.index.Index64(np.arange(3))), lambda x: x.data),
        Refused(
            "lists",
            _awkward(lambda ak: ak.Array([[1], [2, 3]])),
            "arrayhub.asnested(x)",
            "lists differ in length; `asnested` shares their parts",
            lambda x: importing("arrayhub").asnested(x).content,
        ),
        Refused(
            "missing values",
            _awkward(lambda ak: ak.Array([1, None])),
            "awkward.to_numpy(x)",
            "missing values have no place in an array",
            None,
        ),
        Refused(
            "ArrayBuilder", _awkward(_built), "x.snapshot()", "its memory moves as it grows", lambda x: x.snapshot()
        ),
    ),
)


def _h5():
    file = importing("h5py").File("x", driver="core", backing_store=False, mode="w")
    return file.create_dataset("a", data=np.arange(6.0))


H5PY = Library(
    "h5py",
    "h5py",
    "h5py",
    (
        Refused("Dataset", _h5, "x[...]", "it lies in a file", lambda x: x[...]),
        Refused(
            "astype(), fields(), asstr()",
            lambda: _h5().astype("f4"),
            "x[...]",
            "it is read and converted at each look",
            lambda x: x[...],
        ),
        Refused("File, Group", lambda: _h5().file, "x['name'][...]", "it has many", lambda x: x["a"][...]),
    ),
)


def _netcdf(numbers=itertools.count()):  # noqa: B008 - two files of one name are one
    file = importing("netCDF4").Dataset(f"{next(numbers)}", "w", diskless=True)
    file.createDimension("d", 3)
    file.createVariable("a", "f8", ("d",))[:] = [1, 2, 3]
    return file


NETCDF = Library(
    "netCDF4",
    "netCDF4",
    "netCDF4",
    (
        Refused(
            "Variable",
            lambda: _netcdf()["a"],
            "x[...]",
            "it lies in a file; what is read is a masked array, which is refused where something is masked",
            lambda x: x[...],
        ),
        Refused("Dataset", _netcdf, "x['name'][...]", "it has many", lambda x: x["a"][...]),
    ),
)


def _blosc(make=itself):
    def made():
        return make(importing("blosc2").asarray(np.arange(10)))

    return made


BLOSC2 = Library(
    "blosc2",
    "blosc2",
    "blosc2",
    (
        View("SimpleProxy", lambda: importing("blosc2").SimpleProxy(np.arange(3.0)), lambda x: x.src),
        Refused("NDArray", _blosc(), "x[:]", "it is compressed", lambda x: x[:]),
        Refused(
            "lazy expressions",
            _blosc(lambda x: x + 1),
            "x[:]",
            "its `__array_interface__` computes a new array at each look",
            lambda x: x[:],
        ),
        Refused(
            "Proxy",
            lambda: importing("blosc2").Proxy(_blosc()()),
            "x[:]",
            "it fetches a copy at each look",
            lambda x: x[:],
        ),
        Refused(
            "SChunk", lambda: importing("blosc2").SChunk(data=np.arange(10)), "x[:]", "it is compressed", lambda x: x[:]
        ),
    ),
)


def _raster():
    raster = importing("rasterio")
    memory = raster.io.MemoryFile()
    with memory.open(driver="GTiff", height=2, width=3, count=1, dtype="f4") as file:
        file.write(np.ones((1, 2, 3), "f4"))
    return memory


RASTERIO = Library(
    "rasterio",
    "rasterio",
    "rasterio",
    (
        Refused("datasets", lambda: _raster().open(), "x.read()", "it lies in a file", lambda x: x.read()),
        Refused(
            "band",
            lambda: importing("rasterio").band(_raster().open(), 1),
            "x.ds.read(x.bidx)",
            "it lies in a file",
            lambda x: x.ds.read(x.bidx),
        ),
        Refused("MemoryFile", _raster, "x.getbuffer()", "it is a file", lambda x: x.getbuffer()),
    ),
    in_extra=False,
)


# ---- learning, kernels


def _warp(make):
    def made():
        warp = importing("warp")
        warp.config.quiet = True
        return make(warp)

    return made


def _warp_structs(warp):
    Particle = warp._src.codegen.Struct(
        "Particle", type("Particle", (), {"__annotations__": {"x": warp.float32}}), None
    )
    return warp.zeros(4, dtype=Particle, device="cpu")


WARP = Library(
    "warp",
    "warp",
    "warp-lang",
    (
        View(
            "array, of vectors and matrices too",
            _warp(lambda wp: wp.zeros(4, dtype=wp.vec3, device="cpu")),
            lambda x: x.numpy(),
            note="its legacy DLPack capsules mean writable memory",
        ),
        View(
            "a slice, a transpose", _warp(lambda wp: wp.array(np.arange(6.0), device="cpu")[::2]), lambda x: x.numpy()
        ),
        View("array of structs", _warp(_warp_structs), lambda x: x.numpy(), note="on the CPU; on a GPU: `x.numpy()`"),
        View("a vector, a matrix", _warp(lambda wp: wp.vec3(1.0, 2.0, 3.0)), of_buffer),
        Refused(
            "indexedarray",
            _warp(lambda wp: wp.zeros(4, device="cpu")[wp.array([1, 3], dtype=wp.int32, device="cpu")]),
            "x.contiguous()",
            "its protocols describe all of the array that it picks from",
            lambda x: x.contiguous(),
        ),
        Out("warp.from_dlpack(x)", lambda x: importing("warp").from_dlpack(x)),
        Out("convert(x, 'warp')", lambda x: importing("arrayhub").convert(x, "warp")),
    ),
)


def _taichi(make):
    def made():
        taichi = importing("taichi")
        taichi.init(arch=taichi.cpu, log_level=taichi.ERROR)
        return make(taichi)

    return made


TAICHI = Library(
    "taichi",
    "taichi",
    "taichi",
    (
        Refused(
            "field",
            _taichi(lambda ti: ti.field(ti.f32, (2, 3))),
            "x.to_numpy()",
            "it lies in taichi's own layout",
            lambda x: x.to_numpy(),
        ),
        Refused(
            "ndarray",
            _taichi(lambda ti: ti.ndarray(ti.f32, (2, 3))),
            "x.to_numpy()",
            "its memory has no protocol",
            lambda x: x.to_numpy(),
        ),
        Refused(
            "Matrix, Vector",
            _taichi(lambda ti: ti.Matrix([[1, 2], [3, 4]])),
            "x.to_numpy()",
            "its elements are Python's",
            lambda x: x.to_numpy(),
        ),
        Refused(
            "Struct.field",
            _taichi(lambda ti: ti.Struct.field({"a": ti.f32}, shape=3)),
            "x.to_numpy()['name']",
            "its members lie in taichi's own layout",
            lambda x: x.to_numpy()["a"],
        ),
    ),
    in_extra=False,
    note="its memory is laid out by itself, and shared with nobody",
)


def _opencl(make):
    def made():
        cl = importing("pyopencl")
        context = cl.Context(cl.get_platforms()[0].get_devices())
        return make(cl, context, cl.CommandQueue(context))

    return made


def _cl_array(cl, context, queue):
    return importing("pyopencl.array").to_device(queue, np.arange(6.0))


def _cl_mapped(x):
    cl = importing("pyopencl")
    queue = cl.CommandQueue(x.context)
    return cl.enqueue_map_buffer(queue, x, cl.map_flags.READ, 0, (6,), np.float64)[0]


def _cl_svm(cl, context, queue):
    return cl.SVMAllocation(context, 64, 64, cl.svm_mem_flags.READ_WRITE, queue=queue)


PYOPENCL = Library(
    "pyopencl",
    "pyopencl",
    "pyopencl",
    (
        View("what is mapped", _opencl(lambda *cl: _cl_array(*cl).map_to_host()), itself),
        View(
            "csvm_empty, fsvm_empty",
            _opencl(lambda cl, context, queue: cl.fsvm_empty(context, (4,), np.float32)),
            itself,
            note="NumPy's arrays; coarse-grained ones are the caller's to map",
        ),
        Refused(
            "array.Array",
            _opencl(_cl_array),
            "x.map_to_host()",
            "a device's memory is the host's only while it is mapped",
            lambda x: (x.map_to_host(), x.get()),
        ),
        Refused(
            "Buffer", _opencl(lambda *cl: _cl_array(*cl).data), "pyopencl.enqueue_map_buffer", "the same", _cl_mapped
        ),
        Refused(
            "SVMAllocation", _opencl(_cl_svm), "x.map_rw", "coarse-grained memory has to be mapped", lambda x: x.buf
        ),
        Refused(
            "SVM",
            _opencl(lambda cl, context, queue: cl.SVM(np.zeros(4))),
            "x.mem",
            "the same; what it was made of is `x.mem`",
            lambda x: x.mem,
        ),
    ),
    in_extra=False,
)


def _openvino(make):
    return lambda: make(importing("openvino"))


OPENVINO = Library(
    "openvino",
    "openvino",
    "openvino",
    (
        View("Tensor", _openvino(lambda ov: ov.Tensor(np.arange(3.0), shared_memory=True)), lambda x: x.data),
        View("Constant", _openvino(lambda ov: ov.op.Constant(np.arange(3.0))), lambda x: x.data, "readonly"),
        Refused(
            "bfloat16, float8, 4 bits, strings",
            _openvino(lambda ov: ov.Tensor(ov.Type.bf16, [3])),
            "x.data",
            "`x.data` shows them as another type",
            lambda x: x.data,
        ),
    ),
    in_extra=False,
)


def _paddle(make):
    return lambda: make(importing("paddle"))


def _sparse(paddle):
    return paddle.sparse.sparse_coo_tensor([[0]], [1.0], [3])


PADDLE = Library(
    "paddle",
    "paddle",
    "paddlepaddle",
    (
        View(
            "Tensor",
            _paddle(lambda paddle: paddle.arange(6)[::2]),
            lambda x: (
                np.from_dlpack(x.get_tensor()) if hasattr(x.get_tensor(), "__dlpack_device__") else _at(x.data_ptr(), x)
            ),
        ),
        Refused(
            "a tensor or parameter that requires gradients",
            _paddle(lambda paddle: paddle.create_parameter([2], "float32")),
            "x.detach()",
            "gradients would be lost; its exchange table exports it silently",
            lambda x: x.detach(),
        ),
        Refused(
            "sparse tensors",
            _paddle(_sparse),
            "x.to_dense()",
            "what is not stored would be lost",
            lambda x: x.to_dense(),
        ),
        Out("paddle.from_dlpack(x)", lambda x: importing("paddle").from_dlpack(x), usm="x.to_host()"),
        Out("convert(x, 'paddle')", lambda x: importing("arrayhub").convert(x, "paddle")),
    ),
    in_extra=False,
)


def _at(address, tensor):
    """An ndarray at an address, with the shape, strides and type that a tensor says."""
    like = np.asarray(tensor.numpy())
    strides = tuple(step * like.itemsize for step in tensor.strides)
    size = sum(step * (length - 1) for step, length in zip(strides, like.shape, strict=True)) + like.itemsize
    raw = (ctypes.c_byte * size).from_address(address)
    return np.ndarray(like.shape, like.dtype, raw, strides=strides)


def _mlx(make):
    return lambda: make(importing("mlx.core"))


def _bfloat16(mx):
    return mx.array([1.0, 2.0]).astype(mx.bfloat16)


MLX = Library(
    "mlx",
    "mlx.core",
    "mlx",
    (
        View(
            "array",
            _mlx(lambda mx: mx.arange(6.0)[::2]),
            of_buffer,
            note="`x[i] = value` gives it other memory, the view keeps the old",
        ),
        View(
            "array of bfloat16",
            _mlx(_bfloat16),
            lambda x: importing("arrayhub").as_numpy(importing("arrayhub").from_dlpack(x)),
            note="by DLPack: its buffer has no PEP 3118 format",
        ),
        Out("mx.array(x), mx.from_dlpack(x)", lambda x: importing("mlx.core").from_dlpack(x), copies=True),
        Out(
            "convert(x, 'mlx.core', copy=True)",
            lambda x: importing("arrayhub").convert(x, "mlx.core", copy=True),
            copies=True,
            note="without `copy=True` refused, since mlx copies",
        ),
    ),
    in_extra=False,
)


def _tf(make):
    return lambda: make(importing("tensorflow"))


TENSORFLOW = Library(
    "tensorflow",
    "tensorflow",
    "tensorflow-cpu",
    (
        View("tensors", _tf(lambda tf: tf.constant([1.0, 2.0])), of_buffer, "readonly"),
        Refused(
            "Variable",
            _tf(lambda tf: tf.Variable([1.0, 2.0])),
            "x.value()",
            "`assign` may write to the memory of a view, or take other memory",
            lambda x: x.value(),
        ),
        Refused(
            "keras.Variable",
            _tf(lambda tf: tf.keras.Variable(np.zeros(3))),
            "x.value",
            "it holds a Variable",
            lambda x: x.value.value(),
        ),
        Refused(
            "RaggedTensor",
            _tf(lambda tf: tf.ragged.constant([[1], [2, 3]])),
            "x.flat_values",
            "rows differ in length",
            lambda x: (x.flat_values, *x.nested_row_splits),
        ),
        Refused(
            "SparseTensor",
            _tf(lambda tf: tf.sparse.from_dense([0, 1])),
            "tensorflow.sparse.to_dense(x)",
            "what is not stored would be lost",
            lambda x: importing("tensorflow").sparse.to_dense(x),
        ),
        Refused(
            "strings",
            _tf(lambda tf: tf.constant(["a"])),
            "Python objects",
            "strings of any length are no array; nothing gives one",
            None,
        ),
        Refused(
            "float8",
            _tf(lambda tf: tf.cast(tf.constant([1.0]), tf.dtypes.experimental.float8_e5m2)),
            "x.numpy()",
            "neither its buffer nor its DLPack says the type",
            lambda x: x.numpy(),
        ),
        Out(
            "convert(x, 'tensorflow.experimental.dlpack')",
            lambda x: importing("arrayhub").convert(x, "tensorflow.experimental.dlpack"),
        ),
    ),
    environment={"TF_CPP_MIN_LOG_LEVEL": "3"},
    in_extra=False,
)


TINYGRAD = Library(
    "tinygrad",
    "tinygrad",
    "tinygrad",
    (
        Refused(
            "Tensor",
            lambda: importing("tinygrad").Tensor([1.0, 2.0]),
            "x.numpy()",
            "it is not computed before it is asked for; `x.data()` is a copy on most devices",
            lambda x: x.numpy(),
        ),
    ),
    environment={"DEV": "PYTHON"},
)


# ---- pictures and volumes


def _sitk():
    image = importing("SimpleITK").Image([3, 2], importing("SimpleITK").sitkFloat32)
    image[0, 0] = 5.0
    return image


SIMPLEITK = Library(
    "SimpleITK",
    "SimpleITK",
    "SimpleITK",
    (
        Refused(
            "Image",
            _sitk,
            "SimpleITK.GetArrayViewFromImage(x)",
            "its views do not keep it alive, and a write to it may move its memory, so none is taken unasked",
            lambda x: (importing("SimpleITK").GetArrayViewFromImage(x), importing("SimpleITK").GetArrayFromImage(x)),
        ),
    ),
)

ITK = Library(
    "itk",
    "itk",
    "itk-core",
    (
        View(
            "Image",
            lambda: importing("itk").image_from_array(np.arange(6.0, dtype="f4").reshape(2, 3)),
            lambda x: importing("itk").array_view_from_image(x),
            note="the view keeps it alive",
        ),
    ),
    in_extra=False,
)


def _vtk(name, count):
    def made():
        array = getattr(importing("vtk"), name)()
        array.SetNumberOfTuples(count)
        return array

    return made


def _vtk_numpy(x):
    return importing("vtkmodules.util.numpy_support").vtk_to_numpy(x)


def _image_data():
    vtk = importing("vtk")
    image = vtk.vtkImageData()
    image.SetDimensions(2, 3, 4)
    image.AllocateScalars(vtk.VTK_FLOAT, 1)
    return image


VTK = Library(
    "vtk",
    "vtk",
    "vtk",
    (
        View(
            "data arrays",
            _vtk("vtkDoubleArray", 3),
            _vtk_numpy,
            note="a change of their size moves the memory from under any view",
        ),
        Refused(
            "vtkBitArray", _vtk("vtkBitArray", 10), "vtk_to_numpy(x)", "its buffer is bytes of eight bits", _vtk_numpy
        ),
        Refused(
            "vtkImageData and other data sets",
            _image_data,
            "x.GetPointData().GetScalars()",
            "it has several arrays",
            lambda x: _vtk_numpy(x.GetPointData().GetScalars()),
        ),
        Refused(
            "vtkPoints", lambda: importing("vtk").vtkPoints(), "x.GetData()", "it holds an array", lambda x: x.GetData()
        ),
    ),
    in_extra=False,
)


def _frame():
    return importing("av").VideoFrame(5, 4, "rgb24")


def _plane():
    global _frame_of_plane
    _frame_of_plane = _frame()
    return _frame_of_plane.planes[0]


def _rows_of_plane(x):
    pixels = np.asarray(memoryview(x)).reshape(x.height, x.line_size)[:, : x.width * 3]
    return np.lib.stride_tricks.as_strided(pixels, (x.height, x.width, 3), (x.line_size, 3, 1))


AV = Library(
    "av",
    "av",
    "av",
    (
        View("VideoPlane", _plane, _rows_of_plane, note="by DLPack, which leaves out the padding of rows"),
        View("AudioPlane, Packet", lambda: importing("av").Packet(10), of_buffer, note="bytes"),
        Refused(
            "VideoFrame", _frame, "x.planes[i]", "planes may differ in size", lambda x: (x.planes[0], x.to_ndarray())
        ),
        Refused(
            "AudioFrame",
            lambda: importing("av").AudioFrame("flt", "stereo", 16),
            "x.to_ndarray()",
            "channels may lie in planes",
            lambda x: (x.planes[0], x.to_ndarray()),
        ),
    ),
    in_extra=False,
)


def _surface():
    return importing("pygame").Surface((4, 3), 0, 32)


PYGAME = Library(
    "pygame-ce",
    "pygame",
    "pygame-ce",
    (
        View(
            "get_view(), PixelArray",
            lambda: _surface().get_view("2"),
            of_buffer,
            note="locks the Surface while it lives",
        ),
        View("Color", lambda: importing("pygame").Color(1, 2, 3), of_buffer, "readonly"),
        View("Mask", lambda: importing("pygame").Mask((3, 3), fill=True), of_buffer, note="its words of 64 bits"),
        Refused(
            "Surface",
            _surface,
            "x.get_view('2')",
            "a view locks it, which nobody asked for",
            lambda x: (x.get_view("2"), importing("pygame.surfarray").pixels2d(x)),
        ),
    ),
    environment={"PYGAME_HIDE_SUPPORT_PROMPT": "1", "SDL_VIDEODRIVER": "dummy"},
)


def _bitmap():
    skia = importing("skia")
    bitmap = skia.Bitmap()
    bitmap.allocPixels(skia.ImageInfo.MakeN32Premul(4, 3))
    return bitmap


SKIA = Library(
    "skia-python",
    "skia",
    "skia-python",
    (
        View("Bitmap, Pixmap", _bitmap, of_buffer),
        View("Image", lambda: importing("skia").Image.fromarray(np.full((3, 4, 4), 255, "u1")), of_buffer, "readonly"),
        Refused(
            "Surface",
            lambda: importing("skia").Surface(np.zeros((3, 4, 4), "u1")),
            "x.toarray()",
            "it may lie elsewhere than in memory",
            lambda x: x.toarray(),
        ),
    ),
    in_extra=False,
)


def _qimage(qt):
    return lambda: importing(f"{qt}.QtGui").QImage(4, 3, importing(f"{qt}.QtGui").QImage.Format.Format_RGB32)


def _sized(pointer, image):
    pointer.setsize(image.sizeInBytes())
    return pointer


PYSIDE = Library(
    "PySide6",
    "PySide6.QtGui",
    "PySide6-Essentials",
    (
        View("QByteArray", lambda: importing("PySide6.QtCore").QByteArray(b"abc"), of_buffer),
        Refused(
            "QImage",
            _qimage("PySide6"),
            "x.bits()",
            "its pixels are bytes in one of some 30 formats; the bytes do not keep it alive",
            lambda x: (x.bits(), x.constBits()),
        ),
    ),
    environment={"QT_QPA_PLATFORM": "offscreen"},
    in_extra=False,
)

PYQT = Library(
    "PyQt6",
    "PyQt6.QtGui",
    "PyQt6",
    (
        View("QByteArray", lambda: importing("PyQt6.QtCore").QByteArray(b"abc"), of_buffer),
        Refused(
            "QImage",
            _qimage("PyQt6"),
            "setsize(x.sizeInBytes())",
            "the same; PyQt does not say how many bytes",
            lambda x: _sized(x.bits(), x),
        ),
        Refused("bits() without a size", lambda: _qimage("PyQt6")().bits(), "x.setsize(n)", "it is an address", None),
    ),
    environment={"QT_QPA_PLATFORM": "offscreen"},
    in_extra=False,
)


def _figure():
    importing("matplotlib").use("agg")
    figure = importing("matplotlib.pyplot").figure()
    figure.canvas.draw()
    return figure.canvas


MATPLOTLIB = Library(
    "matplotlib",
    "matplotlib",
    "matplotlib",
    (
        View("canvas.buffer_rgba()", lambda: _figure().buffer_rgba(), of_buffer),
        Refused(
            "FigureCanvasAgg", _figure, "x.buffer_rgba()", "it is drawn when it is asked for", lambda x: x.buffer_rgba()
        ),
        Refused(
            "Bbox, transforms",
            lambda: importing("matplotlib.transforms").Affine2D(),
            "numpy.asarray(x)",
            "it is worked out at each look",
            lambda x: np.asarray(x),
        ),
        Refused(
            "Path",
            lambda: importing("matplotlib.path").Path([(0, 0), (1, 1)]),
            "x.vertices",
            "its codes would be lost",
            lambda x: x.vertices,
        ),
    ),
)

SKIMAGE = Library(
    "scikit-image",
    "skimage",
    "scikit-image",
    (
        Refused(
            "ImageCollection",
            lambda: importing("skimage.io").ImageCollection([np.zeros((2, 2))], load_func=lambda x, **_: x),
            "x.concatenate()",
            "its images are loaded one by one",
            lambda x: x.concatenate(),
        ),
        Refused(
            "regions",
            lambda: importing("skimage.measure").regionprops(np.ones((2, 2), int))[0],
            "x.image",
            "it has many",
            lambda x: x.image,
        ),
    ),
    in_extra=False,
)


# ----------------------------------------------------------------------------------- what reads the host's memory only

NUMPY = Library(
    "numpy",
    "numpy",
    "numpy",
    (
        Out("numpy.from_dlpack(x)", lambda x: np.from_dlpack(x)),
        Out("numpy.from_dlpack(x, device='cpu')", lambda x: np.from_dlpack(x, device="cpu")),
    ),
)

JAX = Library(
    "jax",
    "jax",
    "jax",
    (
        Out("jax.dlpack.from_dlpack(x)", lambda x: importing("jax").dlpack.from_dlpack(x)),
        Out("convert(x, 'jax.numpy')", lambda x: importing("arrayhub").convert(x, "jax.numpy")),
    ),
)

STRICT = Library(
    "array_api_strict",
    "array_api_strict",
    "array-api-strict",
    (
        Out("array_api_strict.from_dlpack(x)", lambda x: importing("array_api_strict").from_dlpack(x)),
        Out("convert(x, 'array_api_strict')", lambda x: importing("arrayhub").convert(x, "array_api_strict")),
    ),
)

TORCH = Library(
    "torch",
    "torch",
    "torch",
    (
        Out(
            "torch.from_dlpack(x)",
            lambda x: importing("torch").from_dlpack(x),
            note="torch for XPU gets oneAPI's device",
        ),
        Out("convert(x, 'torch.utils.dlpack')", lambda x: importing("arrayhub").convert(x, "torch.utils.dlpack")),
    ),
)

LIBRARIES = (
    MULTIPROCESSING,
    PANDAS,
    AWKWARD,
    H5PY,
    NETCDF,
    BLOSC2,
    RASTERIO,
    WARP,
    TAICHI,
    PYOPENCL,
    OPENVINO,
    PADDLE,
    MLX,
    TENSORFLOW,
    TINYGRAD,
    SIMPLEITK,
    ITK,
    VTK,
    AV,
    PYGAME,
    SKIA,
    PYSIDE,
    PYQT,
    MATPLOTLIB,
    SKIMAGE,
    NUMPY,
    JAX,
    STRICT,
    TORCH,
)
BY_NAME = {library.name: library for library in LIBRARIES}
