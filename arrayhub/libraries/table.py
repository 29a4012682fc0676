"""The table of libraries: one row per library. A library that follows a protocol does not need a row.

`TABLE` is at the end. The row of a library whose arrays have a private attribute is
``"foo": dict(types={"Array": "_data"})``. `register_library` makes rows with the same columns for other projects. The
functions above the table compute entries that depend on the object.
"""

from typing import Any

import numpy as np

from arrayhub._core.errors import show
from arrayhub.libraries import devices, dtypes

# OpenVINO's names of the element types that `Tensor.data` returns correctly. For other types, ``data`` returns bytes or
# a different type.
_OPENVINO = {
    "boolean": "bool",
    **{f"{code}{bits}": f"{name}{bits}" for code, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}


def _dtype_of_openvino(obj: Any) -> Any:
    name = _OPENVINO.get(obj.get_element_type().get_type_name())
    return obj.get_element_type() if name is None else np.dtype(name)


def _dtype_of_frame(obj: Any) -> Any:
    dtypes = list(obj.dtypes)
    if not dtypes:
        return "several types"
    other = next((k for k, dtype in enumerate(dtypes) if dtype != dtypes[0]), None)
    if other is None:
        return "Python objects" if dtypes[0] == np.dtype(object) else dtypes[0]
    names = ", ".join(f"column {show(obj.columns[k])}: {dtypes[k]}" for k in (0, other))
    return f"several types ({names})"


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
    dtype = getattr(obj.dtype, "numpy_dtype", None)  # `object` for strings and decimals
    return dtype if dtype is not None and dtype.kind in "iufmM" else obj.dtype  # Arrow packs booleans


_DTYPE_OF_PANDAS = {
    "ArrowExtensionArray": _dtype_of_arrow,
    "BaseMaskedArray": _dtype_of_masked,
    "DatetimeArray": _dtype_of_extension,
    "NumpyExtensionArray": _dtype_of_extension,
    "TimedeltaArray": _dtype_of_extension,
}


def _dtype_of_series(obj: Any) -> Any:
    if obj.dtype == object:
        return "Python objects"
    names = () if isinstance(obj.dtype, np.dtype) else [base.__name__ for base in type(obj.array).__mro__]
    for name in names:
        if name in _DTYPE_OF_PANDAS:
            return _DTYPE_OF_PANDAS[name](obj.array)
    return obj.dtype


_ADVICE_FOR_PANDAS = ("arrayhub.asnested(x)", "x.to_numpy() copies and may change the type")


def coo_of_columns(obj: Any) -> str:
    """Return the expression for SciPy's matrix of a pandas object with sparse columns, or "" for other objects.

    pandas makes the matrix only if the values that the columns do not store are 0.
    """
    is_table = getattr(obj, "ndim", 1) == 2
    dtypes = list(obj.dtypes) if is_table else [obj.dtype]
    column = "x.to_frame()" if hasattr(obj, "to_frame") else "arrayhub.as_pandas(x).to_frame()"
    is_sparse = dtypes and all(getattr(dtype, "fill_value", None) == 0 for dtype in dtypes)
    return f"{'x' if is_table else column}.sparse.to_coo()" if is_sparse else ""


def _dtype_of_awkward(obj: Any) -> Any:
    layout = inner = getattr(obj, "layout", obj)
    while type(inner).__qualname__ == "RegularArray" and not inner.parameters:
        inner = inner.content
    flat = type(inner).__qualname__ == "NumpyArray" and not inner.parameters
    return np.dtype(inner.dtype) if flat else layout.form.type


def _call_on_awkward(obj: Any) -> Any:
    if getattr(obj, "layout", obj).backend.name == "typetracer":
        return "", "its buffers have types and lengths, but no values"
    return "arrayhub.asnested(x)" if hasattr(obj, "layout") else "arrayhub.asnested(awkward.Array(x))"


def _call_on_dict(obj: Any) -> str | tuple[str, str]:
    columns = [value for value in obj.values() if hasattr(type(value), "__len__") and getattr(value, "ndim", 1) != 0]
    if any(type(key) is not str for key in obj):
        return ""
    lengths = {None if isinstance(value, (str, bytes, dict)) else len(value) for value in columns}
    if len(columns) < len(obj) or None in lengths:
        return "arrayhub.asnested([x])"
    return "arrayhub.asnested(x)" if len(lengths) <= 1 else ("arrayhub.asnested([x])", "the lengths differ")


def _call_on_h5py(obj: Any) -> str:
    if not hasattr(type(obj), "dtype") or obj.shape is None:  # a group of netCDF4, and an empty dataset
        return ""
    text = np.dtype(obj.dtype).hasobject or np.dtype(obj.dtype).kind in "TU"
    return "arrayhub.asnested(x[...])" if text else "x[...]"


def _call_on_sparse(obj: Any) -> str:
    own = obj.format == "coo" or (obj.ndim == 2 and obj.format in ("csr", "csc", "bsr"))
    return f"arrayhub.assparse({'x' if own else 'x.tocoo()'})"


def _call_on_pydata_sparse(obj: Any) -> str:
    if not np.array_equal(obj.fill_value, np.zeros((), obj.dtype)):
        return "x.todense()"
    own = hasattr(obj, "coords") or (obj.ndim == 2 and len(getattr(obj, "compressed_axes", None) or ()) == 1)
    return "arrayhub.assparse(x)" if own else "arrayhub.assparse(x.asformat('coo'))"


def declared_dtype(obj: Any) -> Any:
    """Return the element type of an object if NumPy has it. Otherwise, the wrapped object determines the type."""
    dtype = getattr(obj, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) else None


_NO_UNIT = "the unit is not included"


def _call_on_quantity(obj: Any) -> Any:
    return ("", f"x.filled(value) does not have a mask; {_NO_UNIT}") if hasattr(obj, "mask") else ("x.value", _NO_UNIT)


def _call_on_value(obj: Any) -> str:
    return "x.magnitude" if hasattr(type(obj), "magnitude") else "x.value_in_unit(x.unit)"


def _call_on_table(obj: Any) -> Any:
    columns = obj.columns.values()
    has_units = any(getattr(column, "unit", None) is not None for column in columns)
    if any(hasattr(column, "mask") for column in columns):
        return "", "some columns are masked; arrayhub.asnested(dict(x.columns)) keeps the missing values"
    return "x.as_array()", "the units are not included" if has_units else ""


_CONVERT_FRAME = ("", "frame.to_ndarray() returns the frame of the plane")
_CONVERT_PICTURE = ("x.to_ndarray(format='rgb24')", "x.to_ndarray() keeps the format of the frame, if PyAV supports it")

# Modes of Pillow's images whose memory contains the same values as the bytes of their interface dict.
_MODES_OF_16_BITS = ("I;16", "I;16L", "I;16B", "I;16N")
SHARED_MODES = frozenset(
    (*_MODES_OF_16_BITS, "L", "P", "LA", "PA", "La", "RGB", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr", "HSV", "I", "F")
)


def _call_on_qimage(image: Any) -> tuple[str, str]:
    if image.isNull():
        return "", "the image is null"
    pixels = "x.constBits()"
    if not hasattr(image.constBits(), "nbytes"):  # of PyQt6, whose pointer lacks the size
        pixels += ".asarray(x.sizeInBytes())"
    rows = f"memoryview({pixels}).cast('B', (x.height(), x.bytesPerLine()))"
    return rows, "the rows are padded, and the memory is valid while x exists"


def _usm_memory(module: Any) -> Any:
    import dpctl.memory

    return dpctl.memory.MemoryUSMShared(8) if module.get_devices() else dpctl.memory.MemoryUSMShared


def _dpnp_array(module: Any) -> Any:
    import dpctl

    return module.arange(3.0) if dpctl.get_devices() else module.ndarray


# One row per library, by name, with the arguments of the class `Library` of libraries/known. Objects are recognized by
# the names of their module and class, without importing the library. Subclasses are included.
#
# The columns, which are all optional:
#
# - install, by_driver, sample, environment: the installation command, the commands for other CUDA drivers, and a
#   function that makes a sample array for reports, with environment variables to set before.
# - roots: the top-level modules that define the library's types. By default, this is the name.
# - types: the path from an object to its array, such as "data", "a.b" or "get()", or a pair of the path and a function
#   that returns the object's element type. If the function returns a NumPy dtype, the array must have this dtype. If it
#   returns None, the array may have any dtype. For any other result, the object is rejected.
# - refused: types that are not imported, not even through their protocols, with their advice. `adapt` does not pass
#   them to a function, except those of the standard library.
# - importers: types that compiled code imports, in the order in which `module` (a module of this folder) or `known`
#   sets the functions. "exactly" and "derived" have a module and names of its types, and "derived" includes subclasses.
#   "own" compares names, for types in private modules, and includes subclasses that the library defines.
# - memory: the device type of the dense arrays that `convert` makes for the library, and whether they may also be in
#   host memory.
# - export_by: the function that exports to a library without a compiled exporter.
# - own: the number of importers whose arrays the exporter returns unchanged, by default all.
# - nests, labels, immutable: whether the library's arrays can be nested, whether its functions align arrays by labels,
#   and whether none of its functions changes an array.
# - sparse: the module of sparse/ that imports the objects of a type.
# - sparse_by: the library of the sparse arrays in the same kind of memory.
# - traits: deviations from the specifications, see adapters/type_cache.
# - device, dtype: functions that read the library's device objects and element types.
# - like: the library that `like` and `convert` export to for this library. By default, this is the library itself.
# - spellings, instead: other names that `convert` accepts for the library. For a library that `convert` does not export
#   to, `instead` is the call that makes one of its arrays.
# - advice: the call that errors name, an expression in `x` that returns an array or nested data. A pair contains the
#   call, or "" without one, and a remark. A function returns one of these for an object. The default is "x." and the
#   path in `types`. For types that only `advice` lists, the protocols are tried first.
#
# The order of the rows is the order in which types are tested, and in which reports list the libraries.
TABLE: dict[str, dict[str, Any]] = {
    "numpy": dict(
        spellings=("np",),
        install="pip install 'numpy>=2.0'",
        sample=lambda numpy: numpy.arange(3.0),
        importers=(("derived", "numpy", "generic"), ("derived", "numpy", "ndarray")),
        memory=("cpu", True),
        sparse_by="scipy",
        own=0,  # an ndarray is returned unchanged if it does not contain Python objects
    ),
    "python": dict(
        roots=("builtins", "array", "ctypes", "_ctypes", "_io", "multiprocessing", "multiprocess"),  # and dill's
        like="numpy",
        importers=(
            ("exactly", "builtins", "bytes"),
            ("own", "array", "bytearray", "memoryview"),
        ),
        types={
            "BytesIO": "getbuffer()",
            "SharedMemory": "buf",
            "SynchronizedBase": "get_obj()",
        },
        refused={
            # The buffers of pointers contain the addresses.
            **dict.fromkeys(["_Pointer", "c_void_p"], ("", "numpy.ctypeslib.as_array(pointer, shape) views a target")),
            "c_char_p": "x.value",
            "ImagingCore": ("", "it belongs to Pillow, whose Image has the shape"),
            "BaseProxy": "x[:]",
            "ShareableList": "list(x)",
        },
        advice={
            **dict.fromkeys(["dict_items", "dict_keys", "dict_values", "filter", "frozenset"], "list(x)"),
            **dict.fromkeys(["generator", "map", "reversed", "set", "zip"], "list(x)"),
            "dict": _call_on_dict,
            "str": ("", "numpy.load(x) reads an .npy file, PIL.Image.open(x) an image, and [x] is text"),
            "Array": "list(x)",  # of Python objects or pointers
        },
    ),
    "torch": dict(
        spellings=("pytorch", "torch.sparse"),
        install="pip install torch",
        sample=lambda torch: torch.arange(3.0),
        traits=("LEGACY_IS_WRITABLE", "DLPACK_BY_IMPORTER"),
        device=devices.read_torch,
        dtype=dtypes.by_name,
        module="torch",
        importers=(("derived", "torch", "Tensor"),),
        memory=("cuda", True),
        sparse_by="torch",
        refused={
            "PackedSequence": ("x.data", "x.batch_sizes contains the ends of its steps"),
            "TypedStorage": "torch.empty(0, dtype=x.dtype).set_(x)",
            "UntypedStorage": "torch.empty(0, dtype=torch.uint8).set_(x)",
        },
    ),
    "jax": dict(
        spellings=("jnp", "jax.numpy", "jax.experimental.sparse", "jaxlib"),
        install="pip install jax",
        sample=lambda jax: jax.numpy.arange(3.0),
        environment={
            "JAX_PLATFORMS": "cpu",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        },  # or most of a GPU's memory is used
        roots=("jax", "jaxlib"),
        traits=("NO_STREAM_IS_NONE",),
        device=devices.read_jax,
        module="jax",
        importers=(("own", "ArrayImpl"),),
        memory=("cuda", True),
        immutable=True,
        sparse_by="jax",
        sparse={"JAXSparse": "jax"},
        types={"Shard": "data"},
        refused={"JAXSparse": "arrayhub.assparse(x)"},
        advice={
            "PRNGKeyArray": "jax.random.key_data(x)",
            "Tracer": ("", "call arrayhub outside of the transformed function, because traced arrays lack memory"),
            "Ref": "x[...]",
        },
    ),
    "cupy": dict(
        spellings=("cp", "cupyx", "cupyx.scipy.sparse"),
        install="pip install 'arrayhub[cuda13]'",
        by_driver={"12": "pip install 'arrayhub[cuda12]'"},
        sample=lambda cupy: cupy.arange(3.0) if cupy.is_available() else cupy.ndarray,
        roots=("cupy", "cupyx"),
        traits=("LEGACY_IS_WRITABLE",),
        device=devices.read_cupy,
        module="cupy",
        importers=(("exactly", "cupy", "ndarray"),),
        memory=("cuda", False),
        sparse_by="cupy",
        sparse={"spmatrix": "cupy"},
        refused={"spmatrix": _call_on_sparse},
    ),
    "dpctl": dict(
        spellings=("dpctl", "dpctl.tensor"),
        install="pip install 'arrayhub[sycl]'",
        sample=_usm_memory,
        like="dpnp",
        module="dpctl",
        importers=(
            ("exactly", "dpctl.tensor", "usm_ndarray"),
            ("own", "MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"),
        ),
    ),
    "dpnp": dict(
        install="pip install dpnp",
        sample=_dpnp_array,
        module="dpctl",
        importers=(("exactly", "dpnp", "ndarray"), ("exactly", "dpnp.tensor", "usm_ndarray")),
        memory=("oneapi", False),
        own=1,
    ),
    "numba": dict(
        spellings=("numba.cuda",),
        install="pip install numba",
        roots=("numba", "numba_cuda"),
        dtype=dtypes.read_numba,
        traits=("SILENT_ON_DEFAULT",),
        memory=("cuda", True),
        sparse_by="scipy",
    ),
    "pyarrow": dict(
        memory=("cuda", True),
        export_by="nested.export.arrow:as_arrow",
        own=0,  # pyarrow.Tensor becomes a column
        nests=True,
        immutable=True,
        spellings=("pa", "pyarrow"),
        install="pip install pyarrow",
        sample=lambda pyarrow: pyarrow.array([0.0, 1.0]),
        traits=("ARROW_ARRAY_FIRST",),
        like="arrow",
        dtype=dtypes.read_pyarrow,
        importers=(("derived", "pyarrow", "Array", "ChunkedArray", "RecordBatch", "Scalar", "Table"),),
        advice={
            **dict.fromkeys(["SparseCOOTensor", "SparseCSCMatrix"], "x.to_tensor()"),
            **dict.fromkeys(["SparseCSFTensor", "SparseCSRMatrix"], "x.to_tensor()"),
            "Scalar": "x.as_py()",
        },
    ),
    "nanoarrow": dict(importers=(("own", "CBuffer", "CBufferView"),)),
    "polars": dict(
        memory=("cpu", True),
        export_by="nested.export.polars:as_polars",
        nests=True,
        spellings=("pl",),
        install="pip install polars",
        sample=lambda polars: polars.Series([0.0, 1.0]),
        traits=("ARROW_BYTES_ARE_OBJECTS",),  # up to 2.1.0, columns that export fixed-size bytes have the dtype Object
        dtype=dtypes.read_polars,
        importers=(("exactly", "polars", "Series"),),
        refused={"LazyFrame": "x.collect()"},
        advice={"Series": "x.cast(float)"},
    ),
    "pandas": dict(
        memory=("cpu", True),
        export_by="nested.export.pandas:as_pandas",
        own=0,  # an Index becomes a Series
        nests=True,
        labels=True,
        spellings=("pd",),
        install="pip install pandas",
        sample=lambda pandas: pandas.Series([0.0, 1.0]),
        dtype=dtypes.read_pandas,
        importers=(("own", "Series", "Index"),),
        types={
            **{name: ("to_numpy()", dtype_of) for name, dtype_of in _DTYPE_OF_PANDAS.items()},
            "ArrowExtensionArray": ("__arrow_array__()", _dtype_of_arrow),
            "DataFrame": ("values", _dtype_of_frame),
            **dict.fromkeys(["Index", "Series"], ("values", _dtype_of_series)),
        },
        refused={"ExtensionArray": _ADVICE_FOR_PANDAS, "SparseArray": "x.to_numpy()", "MultiIndex": ""},
        advice=dict.fromkeys([*_DTYPE_OF_PANDAS, "DataFrame", "Index", "Series"], _ADVICE_FOR_PANDAS),
    ),
    "narwhals": dict(
        traits=("ARROW_STREAM_FIRST",),  # narwhals 2.29 concatenates even a single chunk for __arrow_c_array__
        refused={"LazyFrame": "x.collect()"},
    ),
    # Each call of __arrow_c_stream__ runs the query again (duckdb 2.0, ibis 12, datafusion 55; by design:
    # duckdb/duckdb#17084).
    "duckdb": dict(roots=("duckdb", "_duckdb", "ibis", "datafusion"), traits=("ARROW_IS_LAZY",)),
    "awkward": dict(
        memory=("cpu", True),
        export_by="nested.export.awkward:as_awkward",
        nests=True,
        spellings=("ak",),
        install="pip install awkward",
        sample=lambda awkward: awkward.Array([0.0, 1.0]),
        types={
            "Array": ("layout.to_backend_array()", _dtype_of_awkward),
            "Index": "data",
            "NumpyArray": ("data", _dtype_of_awkward),
            "RegularArray": ("to_backend_array()", _dtype_of_awkward),
        },
        refused={"ArrayBuilder": "x.snapshot()", "Content": _call_on_awkward, "Record": "", "TypeTracerArray": ""},
        advice=dict.fromkeys(["Array", "NumpyArray", "RegularArray"], _call_on_awkward),
    ),
    "xarray": dict(
        memory=("cuda", True),
        export_by="libraries.xarray:as_xarray",
        labels=True,
        spellings=("xr",),
        install="pip install xarray",
        sample=lambda xarray: xarray.DataArray([0.0, 1.0]),
        importers=(("own", "DataArray", "NamedArray"),),
        types=dict.fromkeys(["DataArray", "NamedArray"], ("data", declared_dtype)),
        refused={"CFTimeIndex": "", "DataTree": "", "Dataset": "x.to_array()"},
        advice=dict.fromkeys(["DataArray", "NamedArray"], "x.to_numpy()"),
    ),
    "warp": dict(
        traits=("LEGACY_IS_WRITABLE",),
        importers=(("exactly", "warp", "array"),),
        refused={
            "StructInstance": "x.numpy_value()",
            **dict.fromkeys(["fabricarray", "indexedarray", "indexedfabricarray"], "x.contiguous()"),
        },
    ),
    "array_api_strict": dict(dtype=dtypes.by_name),
    "mlx": dict(
        traits=("LEGACY_IS_WRITABLE",),
        dtype=dtypes.by_name,
        importers=(("exactly", "mlx.core", "array"),),  # bfloat16 buffers lack a PEP 3118 format
    ),
    "paddle": dict(
        dtype=dtypes.by_name,
        importers=(("own", "Tensor"),),
    ),
    "av": dict(
        traits=("LEGACY_IS_WRITABLE",),
        importers=(("own", "VideoPlane"),),
        refused={"AudioFrame": "x.to_ndarray()", "VideoFrame": _CONVERT_PICTURE, "AudioPlane": _CONVERT_FRAME},
        advice={"VideoPlane": _CONVERT_FRAME},
    ),
    "PIL": dict(
        spellings=("pil", "pillow"),
        instead="PIL.Image.fromarray(arrayhub.as_numpy(x))",
        importers=(("derived", "PIL.Image", "Image"),),
    ),
    "tensorflow": dict(
        spellings=("tf",),
        instead="tensorflow.convert_to_tensor(arrayhub.as_numpy(x))",
        traits=("DLPACK_BY_IMPORTER",),
        importers=(("own", "EagerTensor"),),
        advice={"EagerTensor": "x.numpy()"},
        refused={
            "IndexedSlices": "tensorflow.convert_to_tensor(x)",
            "RaggedTensor": ("x.flat_values", "x.nested_row_splits contains the starts of its rows"),
            "SparseTensor": "tensorflow.sparse.to_dense(x)",
            "Variable": "x.value()",
        },
    ),
    # If an OrtValue was created from a NumPy array, its capsule does not keep the NumPy array alive.
    "onnxruntime": dict(traits=("BORROWS",)),
    # oneDAL's tables (2026.2) are never mutable, but store `is_mutable` (False) in the read-only flag of the dict.
    # Inverting the flag would make the tables writable once oneDAL corrects it. Their DLPack capsules are read-only.
    "onedal": dict(traits=("SYCL_IS_READONLY",)),
    "tvm_ffi": dict(device=devices.read_tvm_ffi),
    "cuda.core": dict(roots=("cuda",), device=devices.read_cuda_core),
    # The rows below only have types, advice and sparse arrays.
    "arrayhub": dict(
        export_by="convert.functions:asarray",
        spellings=("USMArray",),
        sparse={"SparseArray": "arrayhub"},
        sparse_by="arrayhub.SparseArray",
        advice={"SparseArray": "x.to_dense()"},
    ),
    "astropy": dict(
        refused={
            "FITS_rec": "arrayhub.asnested(x)",  # stored values are not scaled
            "FITS_record": "",
            "NDData": ("x.data", "the mask, the unit and the uncertainty are not included"),
            "Quantity": _call_on_quantity,
            "Table": _call_on_table,
        },
    ),
    "bitarray": dict(refused={"bitarray": "numpy.frombuffer(x.unpack(), bool)"}),
    # ``__array_interface__`` decompresses or computes another array on each access.
    "blosc2": dict(refused={"Operand": "x[:]"}, advice={"SimpleProxy": "x[:]"}),
    # Images without a shape and an element type.
    "cv2": dict(
        spellings=("opencv",),
        instead="arrayhub.as_numpy(x)",
        refused={"UMat": "x.get()"},
    ),
    "PySide6": dict(
        roots=("PySide6", "PyQt6"),
        refused={"QImage": _call_on_qimage},
    ),
    "dask": dict(
        instead="dask.array.from_array(arrayhub.as_numpy(x))",
        refused=dict.fromkeys(["Array", "FrameBase"], "x.compute()"),  # FrameBase: a DataFrame, a Series or an Index
    ),
    "gt4py": dict(types={"NdArrayField": "ndarray"}),
    # Arrays in files, and the memory into which zarr reads them.
    "h5py": dict(
        roots=("h5py", "netCDF4", "zarr"),
        types={"Buffer": "as_array_like()", "NDBuffer": "as_ndarray_like()"},
        refused={**dict.fromkeys(["AbstractView", "Dataset"], _call_on_h5py), "Variable": "x[...]"},
        advice={"Array": _call_on_h5py},  # of zarr
    ),
    "marray": dict(
        refused={"masked_namespace.<locals>.MArray": ("x.data", "x.mask contains the validity")},
    ),
    "openvino": dict(
        types={"Constant": ("data", _dtype_of_openvino), "Tensor": ("data", _dtype_of_openvino)},
        advice={
            **dict.fromkeys(["Constant", "Tensor"], ("x.data", "it represents types that NumPy lacks as other types")),
            **dict.fromkeys(["Shape", "Strides"], "list(x)"),
        },
    ),
    # Values with a unit, which pass on every attribute to the values, also those of the protocols.
    "pint": dict(roots=("pint", "openmm"), refused={"Quantity": lambda x: (_call_on_value(x), _NO_UNIT)}),
    # The host can read this memory only while it is mapped.
    "pyopencl": dict(
        refused={"Array": "x.get()", **dict.fromkeys(["Image", "MemoryObjectHolder", "SVM", "SVMPointer"], "")}
    ),
    "scipy": dict(
        export_by="sparse.export:export_scipy",
        spellings=("scipy.sparse",),
        sparse={"_spbase": "scipy", "sparray": "scipy", "spmatrix": "scipy"},
        refused=dict.fromkeys(["_spbase", "sparray", "spmatrix"], _call_on_sparse),  # dok_array is also a dict
    ),
    # A view of an image does not keep the image alive, and a write to the image may move its memory.
    "SimpleITK": dict(refused={"Image": "SimpleITK.GetArrayFromImage(x)"}),
    # The pixels belong to a bitmap, a surface or an array, which these objects do not keep alive.
    "skia": dict(refused={"Pixmap": "x.tobytes()", "Surface": "x.toarray()"}),
    "sparse": dict(
        export_by="sparse.export:export_pydata_sparse",
        like="pydata_sparse",
        spellings=("sparse",),
        sparse={"SparseArray": "pydata_sparse"},
        refused={"SparseArray": _call_on_pydata_sparse},
    ),
    # A buffer of vtkBitArray contains packed bits.
    "vtkmodules": dict(
        refused={
            "vtkBitArray": "vtk.util.numpy_support.vtk_to_numpy(x)",
            **dict.fromkeys(["vtkCellArray", "vtkDataSet", "vtkPoints"], ""),
        },
    ),
}
