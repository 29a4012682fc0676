"""Tables of docs/libraries.md: imports of libraries' objects by `asarray`, and of a USMArray by the libraries."""

import ctypes
import importlib
import itertools
from typing import NamedTuple

import numpy as np

from .rows import Out, Refused, View


class Library(NamedTuple):
    """Rows of one library.

    Attributes
    ----------
    name : str
        Name in docs/libraries.md.
    rows : tuple
    module : str
        Module to import.
    distribution : str or None
        Name of the package that pip installs. None for modules of the standard library.
    environment : dict
        Environment variables to set before the import.
    in_extra : bool
        Whether the extra ``test-all`` contains the library.
    """

    name: str
    rows: tuple
    module: str
    distribution: str | None
    environment: dict
    in_extra: bool


BY_NAME = {}


def library(name, *rows, module="", distribution="", environment=(), in_extra=True):
    """Add a library to the table. `module` and `distribution` default to `name`."""
    BY_NAME[name] = Library(
        name, rows, module or name, name if distribution == "" else distribution, dict(environment), in_extra
    )


def importing(module):
    """Import a module. Unlike an import statement, this call can be part of a lambda."""
    return importlib.import_module(module)


def assparse_data(x):
    return importing("arrayhub").assparse(x).data


_SEQUENCE = "sequence without a buffer"


# ---- the standard library


class _Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


def _shared_memory(multiprocessing):
    shared = importing("multiprocessing.shared_memory").SharedMemory(create=True, size=32)
    shared.unlink()
    return shared


def _shareable_list(multiprocessing):
    shared = importing("multiprocessing.shared_memory").ShareableList([1, 2.5])
    shared.shm.unlink()
    return shared


def _manager_array(multiprocessing):
    global _manager
    _manager = multiprocessing.Manager()
    return _manager.Array("d", [1.0, 2.0])


library(
    "multiprocessing",
    View("SharedMemory", _shared_memory, lambda x: x.buf, note="`close()` raises an error while a view exists"),
    View(
        "Array, Value, with a lock",
        lambda multiprocessing: multiprocessing.Array("d", [1.0, 2.0, 3.0]),
        lambda x: memoryview(x.get_obj()),
        note="`asarray` does not acquire the lock; use `with x.get_lock():`",
    ),
    View(
        "Array of structures",
        lambda multiprocessing: multiprocessing.Array(_Pair, 2),
        lambda x: np.ctypeslib.as_array(x.get_obj()),
    ),
    View("RawArray, RawValue", lambda multiprocessing: multiprocessing.RawArray("i", 3), memoryview),
    Refused("ShareableList", _shareable_list, "list(x)", "each value is packed with its own type"),
    Refused("a manager's Array, list", _manager_array, "x[:]", "the memory belongs to another process"),
    distribution=None,
)


# ---- numbers and data on the host


def to_numpy(x):
    return x.to_numpy()


library(
    "pandas",
    View("Int64, Float64, boolean arrays without NA", lambda pd: pd.array([1, 2], dtype="Int64"), to_numpy),
    View("Series, Index of these types", lambda pd: pd.Series([1.0, 2.0], dtype="Float64"), np.asarray, "readonly"),
    View("DatetimeArray, TimedeltaArray", lambda pd: pd.array(pd.date_range("2020", periods=2)), to_numpy),
    View("NumpyExtensionArray", lambda pd: pd.array(np.arange(3.0), dtype=np.dtype("f8")), to_numpy),
    View(
        "Arrow-backed arrays of one chunk without NA",
        lambda pd: pd.array([1, 2], dtype="int64[pyarrow]"),
        lambda x: x.__arrow_array__().chunk(0).to_numpy(),
        "immutable",
        "Arrow's memory",
    ),
    Refused(
        "Arrow-backed arrays with NA",
        lambda pd: pd.array([1, None], dtype="Int64"),
        "arrayhub.asnested(x)",
        "a dense array cannot represent missing values",
        lambda x: x.to_numpy(dtype="f8", na_value=np.nan),
    ),
    Refused(
        "arrays with a time zone",
        lambda pd: pd.array(pd.date_range("2020", periods=2, tz="UTC")),
        "arrayhub.asnested(x)",
        "the time zone would be lost",
        lambda x: x.to_numpy(dtype="M8[ns]"),
    ),
    Refused(
        "Categorical, Period, Interval",
        lambda pd: pd.Categorical([1, 2]),
        "x.to_numpy()",
        "the codes alone do not represent the values",
    ),
)


def _built(ak):
    builder = ak.ArrayBuilder()
    builder.integer(1)
    return builder


library(
    "awkward",
    View("Array of numbers", lambda ak: ak.Array(np.arange(4.0)), lambda x: x.layout.data),
    View(
        "Array of regular lists",
        lambda ak: ak.to_regular(ak.Array([[1, 2], [3, 4]])),
        lambda x: x.layout.to_backend_array(),
    ),
    View("contents.NumpyArray, index.Index", lambda ak: ak.index.Index64(np.arange(3)), lambda x: x.data),
    Refused(
        "lists",
        lambda ak: ak.Array([[1], [2, 3]]),
        "arrayhub.asnested(x)",
        "lists differ in length; `asnested` shares their memory",
        lambda x: importing("arrayhub").asnested(x).content,
    ),
    Refused(
        "missing values",
        lambda ak: ak.Array([1, None]),
        "arrayhub.asnested(x)",
        "a dense array cannot represent missing values",
        lambda x: importing("arrayhub").asnested(x).content,
    ),
    Refused("ArrayBuilder", _built, "x.snapshot()", "its memory moves when it grows"),
)


def _blosc(blosc2):
    return blosc2.asarray(np.arange(10))


library(
    "blosc2",
    View("SimpleProxy", lambda blosc2: blosc2.SimpleProxy(np.arange(3.0)), lambda x: x.src),
    Refused("NDArray", _blosc, "x[:]", "compressed"),
    Refused(
        "lazy expressions",
        lambda blosc2: _blosc(blosc2) + 1,
        "x[:]",
        "its `__array_interface__` computes a new array on each access",
    ),
    Refused("Proxy", lambda blosc2: blosc2.Proxy(_blosc(blosc2)), "x[:]", "fetches a copy on each access"),
)


# ---- learning, kernels


def _warp(make):
    def made(warp):
        warp.config.quiet = True
        return make(warp)

    return made


def _warp_structs(warp):
    Particle = warp._src.codegen.Struct(
        "Particle", type("Particle", (), {"__annotations__": {"x": warp.float32}}), None
    )
    return warp.zeros(4, dtype=Particle, device="cpu")


def numpys(x):
    return x.numpy()


library(
    "warp",
    View(
        "array of scalars, vectors or matrices",
        _warp(lambda wp: wp.zeros(4, dtype=wp.vec3, device="cpu")),
        numpys,
        note="its legacy DLPack capsules are writable",
    ),
    View("a slice, a transpose", _warp(lambda wp: wp.array(np.arange(6.0), device="cpu")[::2]), numpys),
    View("array of structs", _warp(_warp_structs), numpys, note="on the CPU; for a GPU, use `x.numpy()`"),
    View("a vector, a matrix", _warp(lambda wp: wp.vec3(1.0, 2.0, 3.0)), memoryview),
    Refused(
        "indexedarray",
        _warp(lambda wp: wp.zeros(4, device="cpu")[wp.array([1, 3], dtype=wp.int32, device="cpu")]),
        "x.contiguous()",
        "its protocols ignore the index",
    ),
    Out("warp.from_dlpack(x)", usm="x.to_host()"),
    Out("convert(x, warp)"),
    distribution="warp-lang",
)


def _opencl(make):
    def made(cl):
        context = cl.Context(cl.get_platforms()[0].get_devices())
        return make(cl, context, cl.CommandQueue(context))

    return made


def _cl_array(cl, context, queue):
    return importing("pyopencl.array").to_device(queue, np.arange(6.0))


def _cl_svm_array(cl, context, queue):
    allocator = importing("pyopencl.tools").SVMAllocator(context, queue=queue)
    return importing("pyopencl.array").zeros(queue, 3, "f4", allocator=allocator)


library(
    "pyopencl",
    View("mapped memory", _opencl(lambda *cl: _cl_array(*cl).map_to_host()), np.asarray),
    View(
        "csvm_empty, fsvm_empty",
        _opencl(lambda cl, context, queue: cl.fsvm_empty(context, (4,), np.float32)),
        np.asarray,
        note="they are NumPy arrays; the caller must map coarse-grained memory",
    ),
    Refused("array.Array", _opencl(_cl_array), "x.get()", "the host can access device memory only while it is mapped"),
    Refused(
        "array.Array in SVM",
        _opencl(_cl_svm_array),
        "x.get()",
        "the host can access coarse-grained memory only while it is mapped",
    ),
    in_extra=False,
)


library(
    "openvino",
    View("Tensor", lambda ov: ov.Tensor(np.arange(3.0), shared_memory=True), lambda x: x.data),
    View("Constant", lambda ov: ov.op.Constant(np.arange(3.0)), lambda x: x.data, "readonly"),
    Refused("4 bits, bfloat16, strings", lambda ov: ov.Tensor(ov.Type.u4, [4]), "x.data", "`x.data` has another type"),
    Refused("Shape, Strides", lambda ov: ov.Shape([1, 2]), "list(x)", _SEQUENCE),
)


def _paddle_shown(x):
    """Return an ndarray that shares a tensor's memory, through DLPack, or from its address and strides."""
    if hasattr(x.get_tensor(), "__dlpack_device__"):
        return np.from_dlpack(x.get_tensor())
    like = np.asarray(x.numpy())
    strides = tuple(step * like.itemsize for step in x.strides)
    size = sum(step * (length - 1) for step, length in zip(strides, like.shape, strict=True)) + like.itemsize
    raw = (ctypes.c_byte * size).from_address(x.data_ptr())
    return np.ndarray(like.shape, like.dtype, raw, strides=strides)


library(
    "paddle",
    View("Tensor", lambda paddle: paddle.arange(6)[::2], _paddle_shown),
    Out("paddle.from_dlpack(x)", usm="x.to_host()"),
    Out("convert(x, paddle)"),
    distribution="paddlepaddle",
    in_extra=False,
)


library(
    "mlx",
    View(
        "array",
        lambda mx: mx.arange(6.0)[::2],
        memoryview,
        note="`x[i] = value` replaces its memory, and the view keeps the old memory",
    ),
    View(
        "array of bfloat16",
        lambda mx: mx.array([1.0, 2.0]).astype(mx.bfloat16),
        lambda x: importing("arrayhub").as_numpy(importing("arrayhub").from_dlpack(x)),
        note="through DLPack, because its buffer does not have a PEP 3118 format",
    ),
    Out("mx.array(x), mx.from_dlpack(x)", lambda x: importing("mlx.core").from_dlpack(x), copies=True),
    Out("convert(x, mlx.core, copy=True)", copies=True, note="rejected without `copy=True`, because mlx copies"),
    module="mlx.core",
    in_extra=False,
)


library(
    "tensorflow",
    View("tensors", lambda tf: tf.constant([1.0, 2.0]), memoryview, "readonly"),
    Refused(
        "Variable",
        lambda tf: tf.Variable([1.0, 2.0]),
        "x.value()",
        "`assign` may overwrite or replace the memory of a view",
    ),
    Refused("RaggedTensor", lambda tf: tf.ragged.constant([[1], [2, 3]]), "x.flat_values", "rows differ in length"),
    Refused("SparseTensor", lambda tf: tf.sparse.from_dense([0, 1]), "tensorflow.sparse.to_dense(x)", "sparse"),
    Refused(
        "strings",
        lambda tf: tf.constant(["a"]),
        "arrayhub.asnested(x.numpy().tolist())",
        "strings have different lengths",
        lambda x: importing("arrayhub").asnested(x.numpy().tolist())[0],
    ),
    Refused(
        "float8",
        lambda tf: tf.cast(tf.constant([1.0]), tf.dtypes.experimental.float8_e5m2),
        "x.numpy()",
        "neither its buffer nor its DLPack export specifies the type",
    ),
    Out("convert(x, tensorflow.experimental.dlpack)"),
    distribution="tensorflow-cpu",
    environment={"TF_CPP_MIN_LOG_LEVEL": "3"},
    in_extra=False,
)


# ---- pictures and volumes


library(
    "itk",
    View(
        "Image",
        lambda itk: itk.image_from_array(np.arange(6.0, dtype="f4").reshape(2, 3)),
        lambda x: importing("itk").array_view_from_image(x),
        note="the view keeps the Image alive",
    ),
    distribution="itk-core",
    in_extra=False,
)


def _vtk(name, count):
    def made(vtk):
        array = getattr(vtk, name)()
        array.SetNumberOfTuples(count)
        return array

    return made


def _vtk_numpy(x):
    return importing("vtkmodules.util.numpy_support").vtk_to_numpy(x)


library(
    "vtk",
    View("data arrays", _vtk("vtkDoubleArray", 3), _vtk_numpy, note="resizing moves the memory and invalidates views"),
    Refused("vtkBitArray", _vtk("vtkBitArray", 10), "vtk_to_numpy(x)", "its buffer contains packed bits", _vtk_numpy),
    in_extra=False,
)


def _frame(av):
    return av.VideoFrame(5, 4, "rgb24")


def _plane(av):
    global _frame_of_plane
    _frame_of_plane = _frame(av)
    return _frame_of_plane.planes[0]


def _audio_plane(av):
    global _frame_of_plane
    _frame_of_plane = av.AudioFrame("flt", "stereo", 16)
    return _frame_of_plane.planes[0]


def _rows_of_plane(x):
    pixels = np.asarray(memoryview(x)).reshape(x.height, x.line_size)[:, : x.width * 3]
    return np.lib.stride_tricks.as_strided(pixels, (x.height, x.width, 3), (x.line_size, 3, 1))


library(
    "av",
    View("VideoPlane", _plane, _rows_of_plane, note="through DLPack, which excludes the padding of rows"),
    View("Packet", lambda av: av.Packet(10), memoryview, note="its elements are bytes"),
    Refused("VideoFrame", _frame, "x.to_ndarray(format='rgb24')", "planes may differ in size"),
    Refused(
        "AudioFrame",
        lambda av: av.AudioFrame("flt", "stereo", 16),
        "x.to_ndarray()",
        "channels may be in separate planes",
    ),
    Refused(
        "AudioPlane", _audio_plane, "frame.to_ndarray()", "it includes padding", lambda x: _frame_of_plane.to_ndarray()
    ),
    in_extra=False,
)


def _surface(pygame):
    return pygame.Surface((4, 3), 0, 32)


library(
    "pygame-ce",
    View(
        "get_view(), PixelArray",
        lambda pygame: _surface(pygame).get_view("2"),
        memoryview,
        note="the view locks the Surface while it exists",
    ),
    View("Color", lambda pygame: pygame.Color(1, 2, 3), memoryview, "readonly"),
    View(
        "Mask",
        lambda pygame: pygame.Mask((3, 3), fill=True),
        memoryview,
        note="its elements are the mask's 64-bit words",
    ),
    module="pygame",
    environment={"PYGAME_HIDE_SUPPORT_PROMPT": "1", "SDL_VIDEODRIVER": "dummy"},
)


def _bitmap(skia):
    bitmap = skia.Bitmap()
    bitmap.allocPixels(skia.ImageInfo.MakeN32Premul(4, 3))
    return bitmap


library(
    "skia-python",
    View("Bitmap", _bitmap, memoryview),
    Refused(
        "Pixmap",
        lambda skia: skia.Pixmap(np.zeros((3, 4, 4), "u1")),
        "x.tobytes()",
        "its pixels belong to a bitmap, a surface or an array, which it does not keep alive",
    ),
    View("Image", lambda skia: skia.Image.fromarray(np.full((3, 4, 4), 255, "u1")), memoryview, "readonly"),
    Refused(
        "Surface",
        lambda skia: skia.Surface(np.zeros((3, 4, 4), "u1")),
        "x.toarray()",
        "its pixels may not be in host memory",
    ),
    module="skia",
    in_extra=False,
)


def _qimage(qt):
    return qt.QImage(5, 4, qt.QImage.Format.Format_RGB888)


library(
    "PySide6",
    Refused(
        "QImage",
        _qimage,
        "memoryview(x.constBits()).cast('B', (x.height(), x.bytesPerLine()))",
        "its rows are padded; a view is valid while the QImage exists",
    ),
    View("QByteArray", lambda qt: importing("PySide6.QtCore").QByteArray(b"abc"), memoryview),
    module="PySide6.QtGui",
    distribution="PySide6-Essentials",
    environment={"QT_QPA_PLATFORM": "offscreen"},
    in_extra=False,
)
library(
    "PyQt6",
    Refused(
        "QImage",
        _qimage,
        "memoryview(x.constBits().asarray(x.sizeInBytes())).cast('B', (x.height(), x.bytesPerLine()))",
        "its rows are padded; a view is valid while the QImage exists",
    ),
    View("QByteArray", lambda qt: importing("PyQt6.QtCore").QByteArray(b"abc"), memoryview),
    module="PyQt6.QtGui",
    environment={"QT_QPA_PLATFORM": "offscreen"},
    in_extra=False,
)


def _figure(matplotlib):
    matplotlib.use("agg")
    figure = importing("matplotlib.pyplot").figure()
    figure.canvas.draw()
    return figure.canvas


library("matplotlib", View("canvas.buffer_rgba()", lambda matplotlib: _figure(matplotlib).buffer_rgba(), memoryview))


# ---- objects that do not contain an array


def _packed(bitarray):
    return bitarray.bitarray("1011001110")


library(
    "bitarray",
    Refused(
        "bitarray, frozenbitarray", _packed, "numpy.frombuffer(x.unpack(), bool)", "its buffer contains packed bits"
    ),
    in_extra=False,
)


def _fits(astropy):
    fits = importing("astropy.io.fits")
    return fits.BinTableHDU.from_columns([fits.Column("name", "I", bzero=32768, array=np.array([1, 40000], "u2"))]).data


library(
    "astropy",
    Refused(
        "FITS_rec",
        _fits,
        "arrayhub.asnested(x)",
        "stored numbers are not scaled, and bools are stored as letters",
        lambda x: importing("arrayhub").asnested(x)["name"],
    ),
    Refused("Table", lambda astropy: importing("astropy.table").Table({"a": [1]}), "x.as_array()", "several arrays"),
)


library(
    "multiprocess",
    View(
        "Array, Value, with a lock",
        lambda multiprocess: multiprocess.Array("d", [1.0, 2.0, 3.0]),
        lambda x: memoryview(x.get_obj()),
    ),
    in_extra=False,
)
library(
    "sparse",
    Refused("COO, GCXS", lambda sparse: sparse.COO(np.eye(3)), "arrayhub.assparse(x)", "sparse", assparse_data),
    Refused(
        "COO in a DataArray",
        lambda sparse: importing("xarray").DataArray(sparse.COO(np.eye(3))),
        "arrayhub.assparse(x.data)",
        "sparse",
        lambda x: assparse_data(x.data),
    ),
)


# ---------------------------------------------------------------------------------- objects with a method or a view


library(
    "io",
    View(
        "BytesIO",
        lambda io: io.BytesIO(b"abc"),
        lambda x: x.getbuffer(),
        note="`close()` and writes raise errors while a view exists",
    ),
    distribution=None,
)
library(
    "ctypes",
    Refused("py_object arrays", lambda ctypes: (ctypes.py_object * 2)(1, 2), "list(x)", "its elements are objects"),
    distribution=None,
)
library("dask", Refused("Array", lambda dask: importing("dask.array").ones(3), "x.compute()", "not computed yet"))


def _h5(h5py):
    file = h5py.File("x", driver="core", backing_store=False, mode="w")
    return file.create_dataset("a", data=np.arange(6.0))


library(
    "h5py",
    Refused("Dataset", _h5, "x[...]", "its data is in a file"),
    Refused(
        "astype(), fields()", lambda h5py: _h5(h5py).astype("f4"), "x[...]", "each access reads and converts the data"
    ),
)


def _netcdf(netcdf, numbers=itertools.count()):  # noqa: B008 - files of equal names would be one file
    file = netcdf.Dataset(f"{next(numbers)}", "w", diskless=True)
    file.createDimension("d", 3)
    file.createVariable("a", "f8", ("d",))[:] = [1, 2, 3]
    return file["a"]


library(
    "netCDF4",
    Refused(
        "Variable",
        _netcdf,
        "x[...]",
        "its data is in a file; reading returns a masked array, which is rejected if elements are masked",
    ),
)


def _sitk(sitk):
    image = sitk.Image([3, 2], sitk.sitkFloat32)
    image[0, 0] = 5.0
    return image


library(
    "SimpleITK",
    Refused(
        "Image",
        _sitk,
        "SimpleITK.GetArrayFromImage(x)",
        "its views do not keep it alive, and a write to it may move its memory",
    ),
)


def _zarr_array(zarr):
    return zarr.create_array({}, shape=(3,), dtype="f8")


library(
    "zarr",
    View(
        "cpu.Buffer",
        lambda zarr: importing("zarr.core.buffer").cpu.Buffer.from_array_like(np.arange(4, dtype="u1")),
        lambda x: x.as_numpy_array(),
    ),
    View(
        "cpu.NDBuffer",
        lambda zarr: importing("zarr.core.buffer").cpu.NDBuffer.from_numpy_array(np.arange(3.0)),
        lambda x: x.as_numpy_array(),
    ),
    Refused("Array", _zarr_array, "x[...]", "read and decompressed on each access"),
)
library(
    "daft",
    View(
        "Series",
        lambda daft: daft.Series.from_pylist([1.0, 2.0]),
        lambda x: x.to_arrow().to_numpy(),
        "immutable",
        note="through Arrow's interface",
    ),
    in_extra=False,
)


# ----------------------------------------------------------------------------------- libraries for host memory only


def _dtensor(torch):
    distributed = importing("torch.distributed")
    if not distributed.is_initialized():
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    tensors = importing("torch.distributed.tensor")
    mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
    return tensors.distribute_tensor(torch.arange(4.0), mesh, [tensors.Shard(0)])


def _storage(torch):
    return torch.arange(3.0).untyped_storage()


library("numpy", Out("numpy.from_dlpack(x)", usm="x.to_host()"), Out("numpy.from_dlpack(x, device='cpu')"))
library(
    "jax",
    View("Shard", lambda jax: jax.numpy.arange(3.0).addressable_shards[0], lambda x: x.data, "immutable"),
    Refused("Ref", lambda jax: jax.new_ref(jax.numpy.ones(3)), "x[...]", "a write replaces the array"),
    Out("jax.dlpack.from_dlpack(x)", usm="x.to_host()"),
    Out("convert(x, jax.numpy)"),
)
library(
    "array_api_strict",
    Out("array_api_strict.from_dlpack(x)", usm="x.to_host()"),
    Out("convert(x, array_api_strict)"),
    distribution="array-api-strict",
)
library(
    "torch",
    Refused("DTensor", _dtensor, "x.to_local()", "its parts may belong to several processes"),
    Refused("UntypedStorage", _storage, "torch.empty(0, dtype=torch.uint8).set_(x)", "has neither a shape nor a dtype"),
    Out("torch.from_dlpack(x)", usm="x.to_host()", note="torch for XPU accepts oneAPI's device"),
    Out("convert(x, torch.utils.dlpack)"),
)

LIBRARIES = tuple(BY_NAME.values())
