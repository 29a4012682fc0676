"""Objects that hold an array or resemble one: which are imported, and the call that returns an array for the others.

A wrapper is imported if the array that it returns is its own memory with its own element type. Each object is checked
for this. Importing other wrappers would lose a part of them (a mask, a unit, a time zone, implicit values) or lose
writes (into a copy made on each access), so the error names a call that returns an array. Types are identified by the
names of their library and class, including their bases, so recognizing an object does not import its library.
"""

import datetime
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from arrayhub._core.errors import PASSES_ON, name_of_type, root_of, show
from arrayhub.adapters import arrow


class Wrapper(NamedTuple):
    """Description of a wrapper type."""

    call: str  # expression that returns an array, for error messages; "" if the object is symbolic and no call does
    attribute: str | None = None  # path to the memory, such as "data", "a.b" or "get()"; None if there is none
    dtype: Callable[[Any], Any] = lambda obj: None  # the object's own element type; None if it is not NumPy's
    asked: bool = False  # try the type's own protocols, and name `call` only if they fail
    instead: Callable[[Any], str | None] = lambda obj: None  # expression for objects that `call` does not suit


# OpenVINO's names of element types that its `data` returns correctly. It returns others as bytes or as another type.
_OPENVINO = {
    "boolean": "bool",
    **{f"{code}{bits}": f"{name}{bits}" for code, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}

_OPENVINO_BITS = {
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
}


def _dtype_of_openvino(obj: Any) -> Any:
    name = _OPENVINO.get(obj.get_element_type().get_type_name())
    return obj.get_element_type() if name is None else np.dtype(name)


def _bits_of_openvino(obj: Any) -> str | None:
    """Return the expression for an element type of ml_dtypes, which `data` returns as another one of the same size."""
    name = _OPENVINO_BITS.get(obj.get_element_type().get_type_name())
    return None if name is None else f"x.data.view(ml_dtypes.{name})"


def _number_of_sympy(obj: Any) -> str | None:
    return "complex(x), or float(x) of a real number" if obj.is_number else None


def _constant_of_casadi(obj: Any) -> str | None:
    return "casadi.DM(x).full(), a copy" if obj.is_constant() else None


def _values_of_ndonnx(obj: Any) -> str | None:
    try:
        obj.unwrap_numpy()
    except ValueError:
        return None
    return "x.unwrap_numpy()"


def _dtype_of_frame(obj: Any) -> Any:
    dtypes = set(obj.dtypes)
    if len(dtypes) != 1:
        return "several types"
    return "Python objects" if np.dtype(object) in dtypes else dtypes.pop()


def _dtype_of_series(obj: Any) -> Any:
    if obj.dtype == object:
        return "Python objects"
    inner = None if isinstance(obj.dtype, np.dtype) else known(type(obj.array))
    return obj.dtype if inner is None or inner.attribute is None else inner.dtype(obj.array)


def _dtype_of_extension(obj: Any) -> Any:
    return getattr(obj.dtype, "numpy_dtype", obj.dtype)


def _dtype_of_masked(obj: Any) -> Any:
    return f"{obj.dtype}, some of them missing" if obj.isna().any() else obj.dtype.numpy_dtype


def _dtype_of_arrow(obj: Any) -> Any:
    if obj.isna().any():
        return f"{obj.dtype}, some of them missing"
    chunks = obj.__arrow_array__().num_chunks
    if chunks > 1:
        return f"{obj.dtype} in {chunks} chunks"
    dtype = getattr(obj.dtype, "numpy_dtype", None)  # of objects for strings and decimals; Arrow packs booleans
    return dtype if dtype is not None and dtype.kind in "iufmM" else obj.dtype


def _nested_of_pandas(obj: Any) -> str | None:
    """Return the lossless call, and ``to_numpy()`` unless it creates Python objects, which one or two rows show."""
    try:
        objects = _gives_objects(obj, [0][: len(obj)])
        missing = np.asarray(obj.isna()) if hasattr(obj, "isna") else np.zeros(len(obj), bool)
        rows = missing.any(axis=1) if missing.ndim > 1 else missing
        if not objects:  # some types become objects only if elements are missing
            objects = bool(rows.any()) and _gives_objects(obj, [int(rows.argmax())])
        has_form = len(obj) > 0 and _has_form(obj) if not objects else _has_form(obj)
    except PASSES_ON:
        raise
    except Exception:
        return None
    if not has_form:
        return "x.to_numpy(dtype), with a dtype that fits all elements, such as float or str" if objects else None
    speaks = any(hasattr(type(obj), name) for name in ("__arrow_c_stream__", "__arrow_array__"))
    nested = f"arrayhub.asnested({'x' if speaks else 'pandas.Series(x)'})"
    if objects:
        return nested
    return f"{nested}, or {'x.fillna(value) or ' if rows.any() else ''}x.to_numpy(), a copy that may change the type"


def _has_form(obj: Any) -> bool:
    """Return whether `asnested` supports the object, judged by its first rows."""
    first = obj.take(range(min(len(obj), _LOOKED_AT)))
    return bool(arrow.has_form(first if hasattr(first, "__arrow_c_stream__") else sys.modules["pandas"].Series(first)))


def _gives_objects(obj: Any, rows: list[int]) -> bool:
    return bool(obj.take(rows).to_numpy().dtype == object)


def _dtype_of_awkward(obj: Any) -> Any:
    layout = inner = getattr(obj, "layout", obj)
    while type(inner).__qualname__ == "RegularArray" and not inner.parameters:
        inner = inner.content
    flat = type(inner).__qualname__ == "NumpyArray" and not inner.parameters
    return np.dtype(inner.dtype) if flat else layout.form.type


def _union_of_awkward(obj: Any) -> str | None:
    layout = getattr(obj, "layout", obj)
    if type(layout).__qualname__ == "UnionArray":
        return f"x{'' if layout is obj else '.layout'}.content(i), its elements of one type"
    return "one of its parts without a union" if "union[" in str(layout.form.type) else None


def _masked_table(obj: Any) -> str | None:
    return "x.filled(value).as_array(), a copy" if getattr(obj, "has_masked_columns", False) else None


def _strings_of_h5py(obj: Any) -> str | None:
    dtype = getattr(obj, "dtype", None)
    if dtype is None or (not np.dtype(dtype).hasobject and np.dtype(dtype).kind not in "TU"):
        return None
    return f"arrayhub.asnested({_READ_CALL})" if getattr(obj, "shape", True) else "x[()], its only value"


def _binned(obj: Any) -> str | None:
    return None if obj.data is not None else "x.get_label(); the data is binned unless free_raw_data=False"


def _strings_of_tensorflow(obj: Any) -> str | None:
    if obj.dtype.name != "string":
        return None
    if hasattr(obj, "to_list"):
        return "arrayhub.asnested(x.to_list()), a copy"
    array = "x.numpy()" if hasattr(obj, "numpy") else "tensorflow.sparse.to_dense(x).numpy()"
    return f"arrayhub.asnested({array}.tolist()), a copy" if obj.shape.rank else "x.numpy(), which returns its bytes"


def _dtype_of_xarray(obj: Any) -> Any:
    return obj.dtype if isinstance(obj.dtype, np.dtype) else None  # otherwise the wrapped object determines the type


_ASNUMPY = "numpy.asarray(x), a copy"
_AWKWARD = "arrayhub.asnested(x), or awkward.to_numpy(x) if its lists have equal lengths"
_CONTENT = "arrayhub.asnested(awkward.Array(x)), or awkward.to_numpy(x) if its lists have equal lengths"
_DATA_AND_MASK = "x.data, and x.mask for the validity"
_DATATABLE = "x.to_numpy(), a copy, or arrayhub.asnested(x.to_arrow()) if values are missing"
_DECOMPRESS = "x[:], which decompresses or computes a copy"
_GET_BUFFER = "x.buffer_rgba()"
_MAPPED = "x.get(), a copy, or x.map_to_host(), a view until it is released, unless x lies in SVM"
_OPENCL = "the result of pyopencl.enqueue_map_buffer(queue, x, ...), a view until it is released"
_LIST = "list(x), a copy"
_OPENVINO_CALL = "x.data, which returns types that NumPy does not have as other types or as bytes"
_PANDAS = "x.to_numpy(), a copy that may change the type"
_QT_IMAGE = "x.bits(), or the read-only x.constBits(): its bytes, with x.bytesPerLine() per row; keep x alive"
_READ_CALL = "x[...]"
_READ = f"{_READ_CALL}, which reads a copy into memory"
_READ_ALL = "x[:], which reads a copy into memory"
_SHAPES = "shapely.get_coordinates(x), a copy of the coordinates of its points"
_SPARSE = "x.toarray(), a dense copy"
_SYMBOLS = "numpy.array(x, float), a copy, if its elements are numbers"
_SVM = "the result of x.map_rw(queue=queue) in a with statement, or x.buf if the memory is fine-grained"
_TAICHI = "x.to_numpy(), a copy"
_TINYGRAD = "x.numpy(), a copy"
_VTK = "vtk.util.numpy_support.vtk_to_numpy(y), with y one of its arrays, such as y = x.GetPointData().GetScalars()"
_WARP = "x.contiguous(), a copy"
_XARRAY = "x.load(), which reads it into memory, or x.to_numpy()"

# One row per type: the first part of its module's name, and the name of the class.
_TABLE = {
    ("MDAnalysis", "AtomGroup"): Wrapper("x.positions, a copy", asked=True),
    ("MDAnalysis", "Timestep"): Wrapper("x.positions", asked=True),
    ("PyQt6", "QImage"): Wrapper(_QT_IMAGE + "; PyQt's bits() get their size by setsize(x.sizeInBytes())"),
    ("PyQt6", "voidptr"): Wrapper("it after x.setsize(n), with n the number of bytes", asked=True),
    ("PySide6", "QImage"): Wrapper(_QT_IMAGE),
    ("SimpleITK", "Image"): Wrapper(
        "SimpleITK.GetArrayViewFromImage(x), read-only and valid only while x exists and is not written, or"
        " SimpleITK.GetArrayFromImage(x), a copy"
    ),
    ("_cffi_backend", "_CDataBase"): Wrapper(
        "cffi.FFI().buffer(x), the bytes of an array or of a pointer's target", asked=True
    ),
    ("_ctypes", "Array"): Wrapper(_LIST, asked=True),  # of Python objects or pointers
    ("_io", "BytesIO"): Wrapper("x.getbuffer()", "getbuffer()"),
    ("arro3", "Scalar"): Wrapper("x.as_py()"),  # an array of one element in Arrow's interface
    ("astropy", "FITS_rec"): Wrapper("arrayhub.asnested(x), or x['name'] for a column; stored values are not scaled"),
    ("astropy", "FITS_record"): Wrapper("x['name'], one of its fields"),
    ("astropy", "NDData"): Wrapper(_DATA_AND_MASK + "; x.unit and x.uncertainty are not included"),
    ("astropy", "Table"): Wrapper("x.as_array(), a copy, or x['name'] for a column", instead=_masked_table),
    ("autograd", "Box"): Wrapper("x._value, which is not traced"),
    ("av", "AudioFrame"): Wrapper("x.to_ndarray(), a copy, or x.planes[i], the bytes of a plane"),
    ("av", "VideoFrame"): Wrapper("x.to_ndarray(), a copy, or x.planes[i], a view of a plane"),
    ("awkward", "Array"): Wrapper(_AWKWARD, "layout.to_backend_array()", _dtype_of_awkward, instead=_union_of_awkward),
    ("awkward", "ArrayBuilder"): Wrapper("x.snapshot()"),
    ("awkward", "Content"): Wrapper(_CONTENT, instead=_union_of_awkward),
    ("awkward", "Index"): Wrapper("x.data", "data"),
    ("awkward", "NumpyArray"): Wrapper(_CONTENT, "data", _dtype_of_awkward),
    ("awkward", "Record"): Wrapper("x['name'], one of its fields"),
    ("awkward", "RegularArray"): Wrapper(_CONTENT, "to_backend_array()", _dtype_of_awkward, instead=_union_of_awkward),
    ("awkward", "TypeTracerArray"): Wrapper("the array that it represents: a type tracer has a type but no elements"),
    ("bitarray", "bitarray"): Wrapper("numpy.frombuffer(x.unpack(), bool), a copy with one byte per bit"),
    ("bitstring", "Array"): Wrapper("x.tolist(), a copy", asked=True),
    ("bitstring", "Bits"): Wrapper("x.tobytes(), a copy", asked=True),
    ("blosc2", "Operand"): Wrapper(_DECOMPRESS),
    ("blosc2", "SChunk"): Wrapper("x[:], its decompressed bytes"),
    ("blosc2", "SimpleProxy"): Wrapper(_DECOMPRESS, asked=True),
    ("boost_histogram", "Histogram"): Wrapper("x.view(), a view without the overflow bins", asked=True),
    ("builtins", "PySafeSlice"): Wrapper(_READ_ALL),  # safetensors
    ("builtins", "Tensor"): Wrapper("x.values(), a list, if it is a tensor of candle", asked=True),
    ("builtins", "ZBytes"): Wrapper("bytes(x), a copy", asked=True),  # zenoh
    ("casadi", "DM"): Wrapper("x.full(), a dense copy", asked=True),
    **{("casadi", name): Wrapper("", asked=True, instead=_constant_of_casadi) for name in ("MX", "SX")},
    ("collections", "deque"): Wrapper("list(x)"),
    ("cupyx", "spmatrix"): Wrapper(_SPARSE),
    ("cv2", "UMat"): Wrapper("x.get(), a copy"),
    ("cvxopt", "spmatrix"): Wrapper("cvxopt.matrix(x), a dense copy"),
    ("dask", "Array"): Wrapper("x.compute()"),
    ("dask", "Bag"): Wrapper("x.compute(), a list", asked=True),
    ("dask", "Delayed"): Wrapper("x.compute()", asked=True),
    ("datasets", "Column"): Wrapper("x[:], a copy", asked=True),
    ("datasets", "Dataset"): Wrapper("x['name'][:], a copy of one of its columns", asked=True),
    ("datatable", "Frame"): Wrapper(_DATATABLE),  # its buffer copies columns, with missing values as -128
    ("decord", "NDArray"): Wrapper("x.asnumpy(), a copy", asked=True),
    ("flax", "Variable"): Wrapper("x[...]", asked=True),
    ("flint", "flint_mat"): Wrapper("numpy.array(x.tolist(), float), a copy, if its elements are real", asked=True),
    ("gemmi", "GridMeta"): Wrapper("x.array", "array"),
    ("geopandas", "GeoDataFrame"): Wrapper(_SHAPES.replace("x", "x.geometry")),
    ("geopandas", "GeoSeries"): Wrapper(_SHAPES),
    ("geopandas", "GeometryArray"): Wrapper(_SHAPES),
    ("gguf", "ReaderTensor"): Wrapper("x.data; for a quantized type, its bytes"),
    ("graphblas", "Matrix"): Wrapper("x.to_dense(fill_value), a copy", asked=True),
    ("graphblas", "Vector"): Wrapper("x.to_dense(fill_value), a copy", asked=True),
    ("gt4py", "NdArrayField"): Wrapper("x.ndarray", "ndarray"),
    ("h5py", "AbstractView"): Wrapper(_READ, instead=_strings_of_h5py),
    ("h5py", "Dataset"): Wrapper(_READ, instead=_strings_of_h5py),
    ("h5py", "HLObject"): Wrapper("x['name'][...], which reads a copy of one of its datasets"),
    ("ibis", "Column"): Wrapper("arrayhub.asnested(x.to_pyarrow()), which computes it"),
    ("ibis", "Scalar"): Wrapper("x.execute(), which computes it"),
    ("igraph", "Matrix"): Wrapper(_LIST, asked=True),
    ("iminuit", "Minuit"): Wrapper("list(x.values), a copy", asked=True),
    **{("itk", f"itkImageBase{nd}"): Wrapper("itk.array_view_from_image(x)", asked=True) for nd in (2, 3, 4)},
    ("jax", "JAXSparse"): Wrapper("x.todense(), a dense copy"),
    ("jax", "PRNGKeyArray"): Wrapper("jax.random.key_data(x), its numbers", asked=True),
    ("jax", "Tracer"): Wrapper(
        "x outside of the transformed function: arrays that jax traces for jit, vmap and grad lack memory", asked=True
    ),
    ("jax", "Ref"): Wrapper("x[...], a copy", asked=True),
    ("jax", "Shard"): Wrapper("x.data", "data"),
    ("keras", "KerasTensor"): Wrapper("", asked=True),
    ("keras", "Variable"): Wrapper("keras.ops.convert_to_numpy(x)"),
    ("lightgbm", "Dataset"): Wrapper("x.data", instead=_binned),
    ("marray", "masked_namespace.<locals>.MArray"): Wrapper(_DATA_AND_MASK),
    ("matplotlib", "AxesImage"): Wrapper("x.get_array()"),
    ("matplotlib", "FigureCanvasAgg"): Wrapper(_GET_BUFFER),
    ("matplotlib", "Path"): Wrapper("x.vertices"),
    ("matplotlib", "RendererAgg"): Wrapper(_GET_BUFFER),
    ("matplotlib", "TransformNode"): Wrapper(_ASNUMPY),
    **{
        (root, name): wrapper
        for root in ("multiprocessing", "multiprocess")  # multiprocess is dill's
        for name, wrapper in {
            "BaseProxy": Wrapper("x[:], a copy of the data in its manager's process"),
            "ShareableList": Wrapper("list(x), a copy, or x.shm.buf, its bytes"),
            "SharedMemory": Wrapper("x.buf", "buf"),
            "SynchronizedBase": Wrapper("x.get_obj()", "get_obj()"),
        }.items()
    },
    ("mpmath", "_matrix"): Wrapper("numpy.array(x.tolist(), float), a copy", asked=True),
    ("ndonnx", "Array"): Wrapper("", asked=True, instead=_values_of_ndonnx),
    ("ndindex", "ArrayIndex"): Wrapper("x.array"),
    ("netCDF4", "Dataset"): Wrapper("x['name'][...], which reads a copy of one of its variables"),
    ("netCDF4", "Variable"): Wrapper(_READ),
    ("nibabel", "ArrayProxy"): Wrapper("numpy.asarray(x), which reads a copy"),
    ("nibabel", "DataobjImage"): Wrapper("numpy.asarray(x.dataobj), which reads a copy of the file's data"),
    ("numba", "List"): Wrapper("list(x)"),
    ("numpy", "ABCPolyBase"): Wrapper("x.coef; its domain and window are not included", asked=True),
    ("numpy", "NpzFile"): Wrapper("x['name'], one of its arrays", asked=True),
    ("onnx", "TensorProto"): Wrapper("onnx.numpy_helper.to_array(x)"),
    ("openmm", "Quantity"): Wrapper("x.value_in_unit(x.unit), a copy; the unit is not included"),
    ("openvino", "Constant"): Wrapper(_OPENVINO_CALL, "data", _dtype_of_openvino, instead=_bits_of_openvino),
    ("openvino", "Tensor"): Wrapper(_OPENVINO_CALL, "data", _dtype_of_openvino, instead=_bits_of_openvino),
    ("paddle", "DenseTensor"): Wrapper(_ASNUMPY, asked=True),
    ("pandas", "ArrowExtensionArray"): Wrapper(
        _PANDAS, "__arrow_array__()", _dtype_of_arrow, instead=_nested_of_pandas
    ),
    ("pandas", "BaseMaskedArray"): Wrapper(_PANDAS, "to_numpy()", _dtype_of_masked, instead=_nested_of_pandas),
    ("pandas", "DataFrame"): Wrapper(_PANDAS, "values", _dtype_of_frame, instead=_nested_of_pandas),
    ("pandas", "DatetimeArray"): Wrapper(_PANDAS, "to_numpy()", _dtype_of_extension, instead=_nested_of_pandas),
    ("pandas", "ExtensionArray"): Wrapper(_PANDAS, instead=_nested_of_pandas),
    ("pandas", "Index"): Wrapper(_PANDAS, "values", _dtype_of_series, instead=_nested_of_pandas),
    ("pandas", "MultiIndex"): Wrapper("x.get_level_values(i).to_numpy()"),
    ("pandas", "NumpyExtensionArray"): Wrapper(_PANDAS, "to_numpy()", _dtype_of_extension, instead=_nested_of_pandas),
    ("pandas", "Series"): Wrapper(_PANDAS, "values", _dtype_of_series, instead=_nested_of_pandas),
    ("pandas", "TimedeltaArray"): Wrapper(_PANDAS, "to_numpy()", _dtype_of_extension, instead=_nested_of_pandas),
    ("pint", "Quantity"): Wrapper("x.magnitude; the unit is not included"),
    ("polars", "DataFrame"): Wrapper("x['name'] for a column", asked=True),
    ("polars", "LazyFrame"): Wrapper("x.collect()"),
    ("polars", "Series"): Wrapper("x.cast(polars.Float64)", asked=True),
    **{
        ("pyarrow", name): Wrapper("x.to_tensor(), a dense copy", asked=True)
        for name in ("SparseCOOTensor", "SparseCSCMatrix", "SparseCSFTensor", "SparseCSRMatrix")
    },
    ("pygame", "Surface"): Wrapper("x.get_view('2') or pygame.surfarray.pixels2d(x), which lock x while they exist"),
    ("pymupdf", "Pixmap"): Wrapper("x.samples_mv, a view of its bytes, with x kept alive", asked=True),
    ("pyopencl", "Array"): Wrapper(_MAPPED),
    ("pyopencl", "Image"): Wrapper("the result of pyopencl.enqueue_map_image(queue, x, ...)"),
    ("pyopencl", "MemoryObjectHolder"): Wrapper(_OPENCL),
    ("pyopencl", "SVM"): Wrapper("x.mem, or the result of x.map_rw(queue) in a with statement"),
    ("pyopencl", "SVMPointer"): Wrapper(_SVM),
    ("pypdfium2", "PdfBitmap"): Wrapper("x.to_numpy()", asked=True),
    ("pytensor", "SharedVariable"): Wrapper("x.get_value(), a copy", asked=True),
    ("pytensor", "TensorConstant"): Wrapper("x.data", asked=True),
    ("pytensor", "Variable"): Wrapper("", asked=True),
    ("qiskit", "QuantumCircuit"): Wrapper("qiskit.quantum_info.Operator(x).data, its matrix", asked=True),
    ("quaternion", "quaternion"): Wrapper("quaternion.as_float_array(x)", asked=True),
    ("qutip", "Data"): Wrapper("x.to_array(), a dense copy", asked=True),
    ("qutip", "Qobj"): Wrapper("x.full(), a dense copy", asked=True),
    ("rasterio", "Band"): Wrapper("x.ds.read(x.bidx), a copy"),
    ("rasterio", "DatasetBase"): Wrapper("x.read(), a copy"),
    ("rasterio", "MemoryFile"): Wrapper("x.getbuffer(), its bytes"),
    ("scipy", "KDTree"): Wrapper("x.data for its points"),
    ("scipy", "cKDTree"): Wrapper("x.data for its points"),
    ("scipy", "sparray"): Wrapper(_SPARSE),
    ("scipy", "spmatrix"): Wrapper(_SPARSE),
    ("shapely", "Geometry"): Wrapper(_SHAPES, asked=True),
    ("skia", "Pixmap"): Wrapper("x.tobytes(), a copy, or the bitmap or array that holds its pixels"),
    ("skia", "Surface"): Wrapper("x.toarray(), a copy, or the array that it was created on"),
    ("skimage", "ArrayMap"): Wrapper(_ASNUMPY),
    ("skimage", "ImageCollection"): Wrapper("x.concatenate(), a copy"),
    ("skimage", "RegionProperties"): Wrapper("x.image, or another of its properties"),
    ("sklearn", "BallTree"): Wrapper("x.data for its points"),
    ("sklearn", "Bunch"): Wrapper("x['data'], or another of its keys"),
    ("sklearn", "KDTree"): Wrapper("x.data for its points"),
    ("sparse", "SparseArray"): Wrapper("x.todense(), a dense copy"),
    ("sqlite3", "Blob"): Wrapper("x.read(), a copy", asked=True),
    ("stim", "Tableau"): Wrapper("x.to_numpy(), a tuple of arrays", asked=True),
    ("stim", "PauliString"): Wrapper("x.to_numpy(), a tuple of arrays", asked=True),
    ("sympy", "Basic"): Wrapper("", asked=True, instead=_number_of_sympy),
    ("sympy", "MatrixBase"): Wrapper(_SYMBOLS),
    ("sympy", "NDimArray"): Wrapper(_SYMBOLS),
    ("tables", "Column"): Wrapper(_READ_ALL),
    ("tables", "Leaf"): Wrapper(_READ_ALL),
    ("tables", "VLArray"): Wrapper("arrayhub.asnested(x[:])"),
    ("taichi", "Field"): Wrapper(_TAICHI),
    ("taichi", "Matrix"): Wrapper(_TAICHI),
    ("taichi", "Ndarray"): Wrapper(_TAICHI),
    ("taichi", "StructField"): Wrapper("x.to_numpy()['name'], a copy of one of its members"),
    ("taichi", "Texture"): Wrapper("numpy.asarray(x.to_image()), a copy"),
    ("tensorflow", "EagerTensor"): Wrapper("x.numpy()", asked=True),
    ("tensorflow", "IndexedSlices"): Wrapper("tensorflow.convert_to_tensor(x), a dense copy"),
    ("tensorflow", "RaggedTensor"): Wrapper(
        "x.flat_values, and x.nested_row_splits for the starts of its rows", instead=_strings_of_tensorflow
    ),
    ("tensorflow", "SparseTensor"): Wrapper(
        "tensorflow.sparse.to_dense(x), a dense copy", instead=_strings_of_tensorflow
    ),
    ("tensorflow", "SymbolicTensor"): Wrapper("", asked=True),
    ("tensorflow", "Variable"): Wrapper("x.value(), which is read-only", instead=_strings_of_tensorflow),
    ("tensordict", "TensorDictBase"): Wrapper("x['name'], one of its tensors"),
    ("tifffile", "TiffPage"): Wrapper("x.asarray(), a copy", asked=True),
    ("tinygrad", "Tensor"): Wrapper(_TINYGRAD),
    ("torch", "PackedSequence"): Wrapper("x.data, and x.batch_sizes for the ends of its steps"),
    ("torch", "TypedStorage"): Wrapper("torch.empty(0, dtype=x.dtype).set_(x), a view"),
    ("torch", "UntypedStorage"): Wrapper("torch.empty(0, dtype=torch.uint8).set_(x), a view of its bytes"),
    ("uncertainties", "AffineScalarFunc"): Wrapper(
        "uncertainties.unumpy.nominal_values(x), and uncertainties.unumpy.std_devs(x)", asked=True
    ),
    ("uproot", "Histogram"): Wrapper("x.values(), or x.to_numpy() for its values and its edges", asked=True),
    ("vtkmodules", "vtkBitArray"): Wrapper("vtk.util.numpy_support.vtk_to_numpy(x), a copy with one byte per bit"),
    ("vtkmodules", "vtkCellArray"): Wrapper("x.GetConnectivityArray(), and x.GetOffsetsArray() for cell starts"),
    ("vtkmodules", "vtkDataArray"): Wrapper("vtk.util.numpy_support.vtk_to_numpy(x), a copy", asked=True),
    ("vtkmodules", "vtkDataSet"): Wrapper(_VTK),
    ("vtkmodules", "vtkPoints"): Wrapper("x.GetData()"),
    ("warp", "StructInstance"): Wrapper("x.numpy_value(), a copy"),
    ("warp", "fabricarray"): Wrapper(_WARP),
    ("warp", "indexedarray"): Wrapper(_WARP),
    ("warp", "indexedfabricarray"): Wrapper(_WARP),
    ("xarray", "CFTimeIndex"): Wrapper("x.to_datetimeindex(), if NumPy supports its calendar"),
    ("xarray", "DataArray"): Wrapper(_XARRAY, "data", _dtype_of_xarray),
    ("xarray", "DataTree"): Wrapper("x['name'] for one of its variables"),
    ("xarray", "Dataset"): Wrapper("x['name'] for one of its variables"),
    ("xarray", "NamedArray"): Wrapper(_XARRAY, "data", _dtype_of_xarray),
    ("zarr", "Array"): Wrapper(_READ, asked=True),
    ("zarr", "AsyncArray"): Wrapper("await x.getitem(...), which reads a copy into memory", asked=True),
    ("zarr", "Buffer"): Wrapper("x.as_array_like()", "as_array_like()"),
    ("zarr", "NDBuffer"): Wrapper("x.as_ndarray_like()", "as_ndarray_like()"),
    **{  # sequences without a buffer
        key: Wrapper(_LIST, asked=True)
        for key in (
            ("capnp", "_DynamicListBuilder"),
            ("capnp", "_DynamicListReader"),
            ("google", "ListValue"),  # protobuf
            ("google", "RepeatedScalarContainer"),
            ("igraph", "Layout"),
            ("iminuit", "BasicView"),
            ("openvino", "Shape"),
            ("openvino", "Strides"),
            ("pvectorc", "PVector"),  # pyrsistent
            ("pydicom", "MultiValue"),
            ("pygame", "Vector2"),
            ("pygame", "Vector3"),
            ("pyroaring", "AbstractBitMap"),
            ("pyroaring", "AbstractBitMap64"),
            ("pyrsistent", "PDeque"),
            ("pyrsistent", "PList"),
            ("pyrsistent", "PythonPVector"),
            ("rdkit", "ExplicitBitVect"),
            ("sortedcontainers", "SortedList"),
            ("tvm_ffi", "Array"),
        )
    },
}

# Python types that `asnested` combines into one column, by kind.
_KINDS = (
    (bool, int, float, complex, np.number, np.bool_),
    str,
    (bytes, bytearray),
    (list, tuple, np.ndarray),
    dict,
    datetime.datetime,
    datetime.date,
    datetime.timedelta,
)

_LOOKED_AT = 1000  # elements, to judge objects of possibly different types

# `x` in an error message: as the object of a call or access, or as an argument.
_X = re.compile(r"(?<![\w.'\"])x(?=[.,)\[])")

# The interpreter's own slots, which a metaclass cannot redefine.
_mro = type.__dict__["__mro__"].__get__
_qualname = type.__dict__["__qualname__"].__get__


def known(cls):
    """Return the row of a type, or of the first of its bases that has one, or None."""
    for base in _mro(cls):
        row = _TABLE.get((root_of(base), _qualname(base)))
        if row is not None:
            return row
    return None


def inside(obj):
    """Return the object that holds the memory of a wrapper.

    Raises
    ------
    TypeError
        Its type is not imported as an array, or the object has an element type that NumPy does not have.
    BufferError
        Its memory was released.
    """
    row = known(type(obj))
    if row.attribute is None:
        raise wrapper_error(obj, "is not imported as an array")
    said = row.dtype(obj)
    if said is not None and not isinstance(said, np.dtype):
        raise wrapper_error(obj, f"has elements of {said}, which a dense array cannot represent")
    inner = obj
    for name in row.attribute.split("."):
        inner = getattr(inner, name.removesuffix("()"))
        if name.endswith("()"):
            inner = inner()
    if inner is None:  # such as a closed SharedMemory
        raise BufferError(f"{name_of_type(type(obj))}: {row.attribute} is None, so the memory was released")
    return inner


def unwraps(cls):
    """Return whether a type is a known wrapper whose own protocols are not tried."""
    row = known(cls)
    return row is not None and not row.asked


def check(obj, array, again):
    """Compare a wrapper's own description with `array` and `again`, the results of accessing it twice.

    Raises
    ------
    TypeError
        Each access makes a copy, or the array differs from the wrapper in shape or element type.
    """
    if array.size and array.ptr != again.ptr:
        raise wrapper_error(obj, "makes a copy on each access, in which writes would be lost")
    said = known(type(obj)).dtype(obj)
    if said is not None and array.dtype != said:
        raise wrapper_error(obj, f"has elements of type {said}, but returns {array.dtype}")
    shape = tuple(getattr(obj, "shape", array.shape))
    if shape != array.shape:
        raise wrapper_error(obj, f"has shape {shape}, but returns {array.shape}")


def wrapper_error(obj, why):
    """Return the TypeError for a wrapper that is not imported."""
    cls = type(obj)
    name = f"{root_of(cls)}.{_qualname(cls).rpartition('.')[2]}"
    return TypeError(f"{name}: {show(obj)} {why}; {_advice(obj)}")


def _advice(obj):
    row = known(type(obj))
    call = row.instead(obj) or row.call
    return f"pass {call}" if call else "it is symbolic, with no values yet"


def elements_error(array):
    """Return the TypeError for an ndarray of Python objects, or of a dtype that no protocol can represent."""
    return TypeError(
        f"{name_of_type(type(array))}: dtype is {array.dtype!r}; accepted: every NumPy dtype without Python objects,"
        f" and those of ml_dtypes. {_advice_on_elements(array)}"
    )


def _advice_on_elements(array):
    dtype = array.dtype
    if dtype.kind == "T":
        return "Call arrayhub.asnested(x), which copies strings"
    if not dtype.hasobject:
        row = known(dtype.type)
        return f"Pass {row.call}" if row else "Convert it first with a function of the library that defines the dtype"
    if _is_nestable(array):
        return "Call arrayhub.asnested(x), which copies strings and lists, or x.astype(dtype) with float or str"
    if dtype.names is not None:
        return "Pass x['name'], one of its fields"
    row = known(type(array.ravel()[0]))
    return f"Pass {row.call}" if row and row.call else "Pass x.astype(str) for the text of its elements"


def _is_nestable(array):
    """Return whether `asnested` supports an array of Python objects, judged by its first elements."""
    if array.ndim == 0:
        return False
    if array.dtype.names is not None:
        return all(_is_nestable(field) for field in map(array.__getitem__, array.dtype.names) if field.dtype.hasobject)
    return _are_one_kind({type(value) for value in array.ravel()[:_LOOKED_AT]} - {type(None)})


def _are_one_kind(types):
    return not types or any(all(issubclass(cls, kind) for cls in types) for kind in _KINDS)


def named_as(path, words):
    """Return an error text with `x` replaced by the path to the object."""
    return _X.sub(path.replace("\\", r"\\"), words)


def said_of(path, error):
    """Return the error of a part of an object, with the path to the part."""
    return (BufferError if isinstance(error, BufferError) else TypeError)(named_as(path, str(error)))


def hint(obj, reasons=""):
    """Return the advice for an object that no protocol imports, as the end of a sentence; "" if none is known.

    `reasons` are the errors of its protocols. A call is named only for a known type, for which the tests make the call,
    because methods of the same name differ between libraries.
    """
    if "arrayhub.asnested(x)" in reasons or "Take x." in reasons:
        return ""
    cls = type(obj)
    if known(cls) is not None:
        return f"; {_advice(obj)}"
    if hasattr(cls, "__array__"):
        return "; numpy.asarray(x) calls its __array__, which may copy"
    return "" if reasons else "; if a method of its library returns a NumPy array, pass what it returns"
