"""The table of libraries: one row per library. A library that follows a protocol does not need a row.

`TABLE` is at the end. The row of a library whose arrays have a private attribute is
``"foo": dict(types={"Array": "_data"})``. `register_library` makes rows with the same columns for other projects. The
functions above the table compute entries that depend on the object.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from arrayhub._core.errors import PASSES_ON, show
from arrayhub.adapters import arrow

LOOKED_AT = 1000  # number of elements examined to find the common type of Python objects
SAMPLED = 100  # number of rows that stand for a pandas object. pyarrow starts threads for longer frames


def otherwise(function: Callable[[Any], str | None], call: str) -> Callable[[Any], str]:
    """Return a function that returns the result of `function`, or `call` if the result is empty."""
    return lambda obj: function(obj) or call


# OpenVINO's names of the element types that `Tensor.data` returns correctly. For other types, ``data`` returns bytes or
# a different type.
_OPENVINO = {
    "boolean": "bool",
    **{f"{code}{bits}": f"{name}{bits}" for code, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}

_OPENVINO_BITS = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu"}


def _dtype_of_openvino(obj: Any) -> Any:
    name = _OPENVINO.get(obj.get_element_type().get_type_name())
    return obj.get_element_type() if name is None else np.dtype(name)


def _bits_of_openvino(obj: Any) -> str | None:
    """Return the call that views ``x.data`` as a type of ml_dtypes, or None.

    The view is needed because OpenVINO returns these elements as a different type of the same size.
    """
    name = _OPENVINO_BITS.get(obj.get_element_type().get_type_name())
    return None if name is None else f"x.data.view(ml_dtypes.{name})"


def _number_of_sympy(obj: Any) -> str | None:
    return "complex(x), or float(x) of a real number" if obj.is_number else None


def _dtype_of_frame(obj: Any) -> Any:
    dtypes = list(obj.dtypes)
    if len(set(dtypes)) == 1:
        return "Python objects" if np.dtype(object) in dtypes else dtypes[0]
    if not dtypes:
        return "several types"
    named = [f"column {show(obj.columns[k])}: {dtypes[k]}" for k in _columns_in_error(dtypes)]
    return f"several types ({', '.join(named)})"


def _columns_in_error(dtypes: list[Any]) -> list[int]:
    """Return the positions of the first column and of a column with another dtype, preferably not numeric.

    Return only [0] if all columns have the same dtype.
    """
    others = [k for k, dtype in enumerate(dtypes) if dtype != dtypes[0]]
    other = next((k for k in others if getattr(dtypes[k], "kind", "O") not in "biufc"), None)
    return [0] if not others else [0, others[0] if other is None else other]


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


def sample_rows(obj: Any) -> Any:
    """Return the first rows of a pandas object, and its first row with a missing value, which decide about the call."""
    columns = [obj.iloc[:, k] for k in range(min(obj.shape[1], LOOKED_AT))] if obj.ndim == 2 else [obj]
    rows = [*range(SAMPLED)]
    for column in columns:
        # NumPy's NaN and objects are values here.
        if not isinstance(column.dtype, np.dtype) or column.dtype.kind in "mM":
            missing = np.asarray(column.isna())
            rows += [int(missing.argmax())] if missing.any() and missing.argmax() >= SAMPLED else []
    if len(rows) == SAMPLED:
        return getattr(obj, "iloc", obj)[:SAMPLED]
    chosen = obj.iloc[rows] if hasattr(obj, "iloc") else obj[rows]
    has_range = type(getattr(obj, "index", None)).__name__ == "RangeIndex"  # which is not exported
    return chosen.reset_index(drop=True) if has_range else chosen


def _nested_of_pandas(obj: Any) -> str | None:
    """Return the calls that an error suggests for a pandas object, as text, or None if no call is known.

    ``to_numpy()`` is suggested only if its result does not contain Python objects. To find out, this function converts
    one or two rows.
    """
    try:
        obj = sample_rows(obj) if len(obj) > 2 * LOOKED_AT else obj
        objects = _gives_objects(obj, [0][: len(obj)])
        missing = np.asarray(obj.isna()) if hasattr(obj, "isna") else np.zeros(len(obj), bool)
        rows = missing.any(axis=1) if missing.ndim > 1 else missing
        if not objects:  # some types are converted to objects only if elements are missing
            objects = bool(rows.any()) and _gives_objects(obj, [int(rows.argmax())])
        nests = (objects or len(obj) > 0) and has_form(obj)
        dense = _calls_of_frame(obj) if obj.ndim == 2 else _calls_of_column(obj, "x")
    except PASSES_ON:
        raise
    except Exception:
        return None
    if not nests:
        return "x.to_numpy(dtype), with a dtype that fits all elements, such as float or str" if objects else None
    speaks = any(hasattr(type(obj), name) for name in ("__arrow_c_stream__", "__arrow_array__"))
    nested = f"arrayhub.asnested({'x' if speaks else 'pandas.Series(x)'})"
    calls = [nested, *dense]
    if not objects:
        calls += ["x.fillna(value)"] if rows.any() else []
        calls += ["x.to_numpy(), a copy that may change the type"]
        calls += ["copy=True, which makes a matrix"] if obj.ndim == 2 else []
    return f"{', '.join(calls[:-1])}, or {calls[-1]}" if len(calls) > 1 else nested


_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_WITH_VALUE = ("arrayhub.as_numpy({}, missing=value)", "arrayhub.as_torch({}, missing=value)")

# For classes of dtypes: an accessor and calls that export a column. A Series has the methods of the calls under the
# accessor (``x.cat.codes``), other objects of pandas have them directly (``x.codes``).
_CALLS_OF_DTYPE = {
    "CategoricalDtype": (
        ".cat",
        ("arrayhub.as_numpy({}.codes)", "arrayhub.as_torch({}.codes, copy=True) for the codes, -1 if missing"),
    ),
    "DatetimeTZDtype": (".dt", ("arrayhub.as_numpy({}.tz_convert(None)) for times in UTC",)),
    "PeriodDtype": (".dt", ("arrayhub.as_numpy({}.to_timestamp()) for the start of each period",)),
}


def _calls_of_column(column: Any, x: str) -> list[str]:
    """Return calls that export a column of pandas to NumPy or torch. `x` is the expression that returns the column."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and not dtype.hasobject:
        return [f"arrayhub.as_numpy({x})"]
    if type(dtype).__name__ in _CALLS_OF_DTYPE:
        accessor, calls = _CALLS_OF_DTYPE[type(dtype).__name__]
        return [call.format(f"{x}{accessor}" if hasattr(column, accessor[1:]) else x) for call in calls]
    missing = bool(column.isna().any())
    value = next(iter(column.dropna()), None)
    if isinstance(value, str) and not str(dtype).startswith("dictionary"):
        argument = "missing=''" if missing else "copy=True"
        return [f"arrayhub.as_numpy({x}, {argument})"]
    if isinstance(value, _NUMBERS):
        return [call.format(x) for call in _WITH_VALUE] if missing else [f"arrayhub.as_numpy({x}, copy=True)"]
    return []


def _calls_of_frame(frame: Any) -> list[str]:
    """Return calls that export a frame of numbers as a matrix, or else the columns that the frame's error names."""
    columns = [frame.iloc[:, k] for k in range(frame.shape[1])]
    if all(isinstance(next(iter(column.dropna()), None), _NUMBERS) for column in columns):
        return [call.format("x") for call in _WITH_VALUE] if frame.isna().any(axis=None) else []
    if not frame.columns.is_unique:
        return []
    named = _columns_in_error(list(frame.dtypes))
    return [call for k in named for call in _calls_of_column(columns[k], f"x[{show(frame.columns[k])}]")[:1]]


def has_form(obj: Any) -> bool:
    """Return whether `asnested` supports the object. Only its first rows are examined."""
    try:
        first = obj.take(range(min(len(obj), SAMPLED)))
        first = first if hasattr(first, "__arrow_c_stream__") else sys.modules["pandas"].Series(first)
    except PASSES_ON:
        raise
    except Exception:
        return False
    return bool(arrow.has_form(first))


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


def _masked_quantity(obj: Any) -> str | None:
    return "x.filled(value), or x.unmasked" if hasattr(type(obj), "unmasked") else None


def _strings_of_h5py(obj: Any) -> str | None:
    dtype = getattr(obj, "dtype", None)
    if dtype is None or (not np.dtype(dtype).hasobject and np.dtype(dtype).kind not in "TU"):
        return None
    return f"arrayhub.asnested({_READ_CALL})" if getattr(obj, "shape", True) else "x[()], its only value"


def _strings_of_tensorflow(obj: Any) -> str | None:
    if obj.dtype.name != "string":
        return None
    if hasattr(obj, "to_list"):
        return "arrayhub.asnested(x.to_list()), a copy"
    array = "x.numpy()" if hasattr(obj, "numpy") else "tensorflow.sparse.to_dense(x).numpy()"
    return f"arrayhub.asnested({array}.tolist()), a copy" if obj.shape.rank else "x.numpy(), which returns its bytes"


def _columns_of_dict(obj: Any) -> str:
    # pyarrow.table accepts sequences and arrays as columns.
    columns = all(
        hasattr(type(value), "__len__") and not isinstance(value, (str, bytes, dict)) for value in obj.values()
    )
    row = "arrayhub.asnested([x]), one row"
    return f"arrayhub.asnested(x), of columns, or {row}" if columns else row


def _sparse_call(obj: Any) -> str:
    array = "x" if getattr(obj, "format", "coo") in ("coo", "csr", "csc", "bsr") else "x.tocoo()"
    return f"arrayhub.assparse({array}), or x.toarray(), a dense copy"


def _dtype_of_xarray(obj: Any) -> Any:
    return obj.dtype if isinstance(obj.dtype, np.dtype) else None  # otherwise the wrapped object determines the type


def _values_of_xarray(obj: Any) -> str:
    if hasattr(obj, "load"):  # a Variable
        return _XARRAY
    return "x.data.filled(value)" if hasattr(obj.data, "filled") else "x.to_numpy()"


_FILLED = "arrayhub.as_numpy(x, missing=value) if elements are missing"
_AWKWARD = f"arrayhub.asnested(x), {_FILLED}, or awkward.to_numpy(x) if its lists have equal lengths"
_CONTENT = "arrayhub.asnested(awkward.Array(x)), or awkward.to_numpy(x) if its lists have equal lengths"
_DATA_AND_MASK = "x.data, and x.mask for the validity"
_DATATABLE = "x.to_numpy(), a copy, or arrayhub.asnested(x.to_arrow()) if values are missing"
_DECOMPRESS = "x[:], which decompresses or computes a copy"
_FRAME = "frame.to_ndarray(), a copy, with frame the frame of the plane"
_MAPPED = "x.get(), a copy, or x.map_to_host(), a view until it is released, unless x lies in SVM"
_OPENCL = "the result of pyopencl.enqueue_map_buffer(queue, x, ...), a view until it is released"
_LIST = "list(x), a copy"
_OPENVINO_CALL = "x.data, which represents types that NumPy lacks as other types or as bytes"
_QT_IMAGE = "x.bits(), or the read-only x.constBits(): its bytes, with x.bytesPerLine() per row; keep x alive"
_READ_CALL = "x[...]"
_FILE = "numpy.load(x) for an .npy file, PIL.Image.open(x) for an image"
_READ = f"{_READ_CALL}, which copies the data into memory"
_READ_ALL = "x[:], which copies the data into memory"
_TODENSE = "arrayhub.assparse(x), or x.todense(), a dense copy"
_SYMBOLS = "numpy.array(x, float), a copy, if its elements are numbers"
_SVM = "the result of x.map_rw(queue=queue) in a with statement, or x.buf if the memory is fine-grained"
_VTK = "vtk.util.numpy_support.vtk_to_numpy(y), with y one of its arrays, such as y = x.GetPointData().GetScalars()"
_XARRAY = "x.load(), which reads it into memory, or x.to_numpy()"

_MULTIPROCESSING: dict[str, dict[str, Any]] = dict(
    types={"SharedMemory": "buf", "SynchronizedBase": "get_obj()", **dict.fromkeys(["BaseProxy", "ShareableList"])},
    advice={
        "BaseProxy": "x[:], a copy of the data in its manager's process",
        "ShareableList": "list(x), a copy, or x.shm.buf, its bytes",
    },
)


def _usm_memory(module: Any) -> Any:
    import dpctl.memory

    return dpctl.memory.MemoryUSMShared(8) if module.get_devices() else dpctl.memory.MemoryUSMShared


def _dpnp_array(module: Any) -> Any:
    import dpctl

    return module.zeros(3) if dpctl.get_devices() else module.ndarray


# One row per library, by name, with the arguments of the class `Library` of libraries/known. Objects are recognized by
# the names of their module and class, without importing the library. Subclasses are included.
#
# The columns, which are all optional:
#
# - install, by_driver, sample, environ: the installation command, the commands for other CUDA drivers, and a function
#   that makes a sample array for reports, with environment variables to set before.
# - roots: the top-level modules that define the library's types. By default, this is the name.
# - types: the path from an object to its array, such as "data", "a.b" or "get()", or a pair of the path and a function
#   that returns the object's element type. If the function returns a NumPy dtype, the array must have this dtype. If it
#   returns None, the array may have any dtype. For any other result, the object is rejected. Types with the path None
#   are not imported, not even through their protocols.
# - importers: types that compiled code imports, in the order in which `module` (a module of this folder) or `known`
#   sets the functions. "exactly" excludes subclasses, "derived" includes them, "own" includes those of the library, and
#   "named" compares names, for types in private modules.
# - exports: the device type of the arrays that the library's exporter makes, and whether they may also be in host
#   memory. The exporter returns the arrays of the first `own` importers unchanged.
# - export_by, nests: the function that exports to a library without a compiled exporter, and whether its arrays can be
#   nested.
# - sparse: the module of sparse/ that imports the objects of a type.
# - traits: deviations from the specifications, see adapters/type_cache.
# - device, dtype: functions of `devices` and `dtypes` that read the library's device objects and element types.
# - like: the library that `like` and `convert` export to for this library. By default, this is the library itself.
# - spellings, instead: other names that `convert` accepts for the library. For a library that `convert` does not export
#   to, `instead` is the call that makes one of its arrays.
# - resembling: types that hold an array without a protocol, or without a shape and an element type. `adapt` does not
#   pass them to a function.
# - advice: text that follows "pass" in errors, or "use" if it starts with "arrayhub.": an expression that returns an
#   array, optionally with a remark, or a function that returns this text for an object. Symbolic objects, which do not
#   have values, have "". The default is "x." and the path in `types`. For types that only `advice` lists, the protocols
#   are tried first.
#
# The order of the rows is the order in which types are tested, and in which reports list the libraries.
TABLE: dict[str, dict[str, Any]] = {
    "numpy": dict(
        spellings=("np",),
        install="pip install 'numpy>=2.0'",
        sample=lambda numpy: numpy.zeros(3),
        importers=(("derived", "numpy", "generic"), ("derived", "numpy", "ndarray")),
        exports=("cpu", True),
        own=0,  # an ndarray is returned unchanged if it does not contain Python objects
        advice={
            "ABCPolyBase": "x.coef; its domain and window are not included",
            "NpzFile": "x['name'], one of its arrays",
        },
    ),
    "python": dict(
        roots=("builtins", "array"),
        like="numpy",
        importers=(
            ("exactly", "builtins", "bytes"),
            ("exactly", "builtins", "bytearray", "memoryview"),
            ("exactly", "array", "array"),
        ),
        types={"PySafeSlice": None},
        advice={
            **dict.fromkeys(["dict_items", "dict_keys", "dict_values", "filter", "frozenset"], _LIST),
            **dict.fromkeys(["generator", "map", "reversed", "set", "zip"], _LIST),
            "dict": _columns_of_dict,
            "PySafeSlice": _READ_ALL,  # safetensors
            "str": f"{_FILE}, or [x] for text",
        },
    ),
    "torch": dict(
        spellings=("pytorch", "torch.sparse"),
        install="pip install torch",
        sample=lambda torch: torch.zeros(3),
        traits=("LEGACY_IS_WRITABLE", "DLPACK_BY_IMPORTER"),
        device="read_torch",
        dtype="by_name",
        module="torch",
        importers=(("derived", "torch", "Tensor"),),
        exports=("cuda", True),
        resembling=("PackedSequence",),
        types=dict.fromkeys(["PackedSequence", "TypedStorage", "UntypedStorage"]),
        advice={
            "PackedSequence": "x.data, and x.batch_sizes for the ends of its steps",
            "TypedStorage": "torch.empty(0, dtype=x.dtype).set_(x), a view",
            "UntypedStorage": "torch.empty(0, dtype=torch.uint8).set_(x), a view of its bytes",
        },
    ),
    "jax": dict(
        spellings=("jnp", "jax.numpy", "jax.experimental.sparse", "jaxlib"),
        install="pip install jax",
        sample=lambda jax: jax.numpy.zeros(3),
        environ={"JAX_PLATFORMS": "cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},  # or most of a GPU's memory is used
        roots=("jax", "jaxlib"),
        traits=("NO_STREAM_IS_NONE",),
        device="read_jax",
        module="jax",
        importers=(("named", "jaxlib", "ArrayImpl"), ("named", "jax", "ArrayImpl")),
        exports=("cuda", True),
        sparse={"JAXSparse": "jax"},
        types={"JAXSparse": None, "Shard": "data"},
        advice={
            "JAXSparse": _TODENSE,
            "PRNGKeyArray": "jax.random.key_data(x), its numbers",
            "Tracer": "x outside of the transformed function: arrays that jax traces for jit, vmap and grad lack"
            " memory",
            "Ref": "x[...], a copy",
        },
    ),
    "cupy": dict(
        spellings=("cp", "cupyx", "cupyx.scipy.sparse"),
        install="pip install 'arrayhub[cuda13]'",
        by_driver={"12": "pip install 'arrayhub[cuda12]'"},
        sample=lambda cupy: cupy.zeros(3) if cupy.is_available() else cupy.ndarray,
        roots=("cupy", "cupyx"),
        traits=("LEGACY_IS_WRITABLE",),
        device="read_cupy",
        module="cupy",
        importers=(("exactly", "cupy", "ndarray"),),
        exports=("cuda", False),
        sparse={"spmatrix": "cupy"},
        types={"spmatrix": None},
        advice={"spmatrix": _sparse_call},
    ),
    "dpctl": dict(
        spellings=("dpctl", "dpctl.tensor"),
        install="pip install 'arrayhub[sycl]'",
        sample=_usm_memory,
        like="dpnp",
        module="dpctl",
        importers=(
            ("exactly", "dpctl.tensor", "usm_ndarray"),
            ("named", "dpctl", "MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"),
        ),
    ),
    "dpnp": dict(
        install="pip install dpnp",
        sample=_dpnp_array,
        module="dpctl",
        importers=(("exactly", "dpnp", "ndarray"), ("exactly", "dpnp.tensor", "usm_ndarray")),
        exports=("oneapi", False),
        own=1,
    ),
    "numba": dict(
        spellings=("numba.cuda",),
        install="pip install numba",
        roots=("numba", "numba_cuda"),
        traits=("SILENT_ON_DEFAULT",),
        exports=("cuda", True),
    ),
    "pyarrow": dict(
        export_by="nested.export.arrow:as_arrow",
        nests=True,
        spellings=("pa", "pyarrow"),
        install="pip install pyarrow",
        sample=lambda pyarrow: pyarrow.array([0.0, 1.0]),
        traits=("ARROW_ARRAY_FIRST",),
        like="arrow",
        dtype="read_pyarrow",
        module="pyarrow",
        importers=(("derived", "pyarrow", "Array", "ChunkedArray", "RecordBatch", "Scalar", "Table"),),
        advice={
            **dict.fromkeys(["SparseCOOTensor", "SparseCSCMatrix"], "x.to_tensor(), a dense copy"),
            **dict.fromkeys(["SparseCSFTensor", "SparseCSRMatrix"], "x.to_tensor(), a dense copy"),
        },
    ),
    "nanoarrow": dict(importers=(("named", "nanoarrow", "CBuffer", "CBufferView"),)),
    "polars": dict(
        export_by="nested.export.polars:as_polars",
        nests=True,
        spellings=("pl",),
        install="pip install polars",
        sample=lambda polars: polars.Series([0.0, 1.0]),
        traits=("ARROW_BYTES_ARE_OBJECTS",),  # up to 2.1.0, columns that export fixed-size bytes have the dtype Object
        dtype="read_polars",
        importers=(("exactly", "polars", "Series"),),
        resembling=("LazyFrame",),
        types={"LazyFrame": None},
        advice={"DataFrame": "x['name'] for a column", "LazyFrame": "x.collect()", "Series": "x.cast(polars.Float64)"},
    ),
    "pandas": dict(
        export_by="nested.export.pandas:as_pandas",
        nests=True,
        spellings=("pd",),
        install="pip install pandas",
        sample=lambda pandas: pandas.Series([0.0, 1.0]),
        dtype="read_pandas",
        importers=(("own", "pandas", "Series", "Index"),),
        types={
            **{name: ("to_numpy()", dtype_of) for name, dtype_of in _DTYPE_OF_PANDAS.items()},
            "ArrowExtensionArray": ("__arrow_array__()", _dtype_of_arrow),
            "DataFrame": ("values", _dtype_of_frame),
            **dict.fromkeys(["Index", "Series"], ("values", _dtype_of_series)),
            **dict.fromkeys(["ExtensionArray", "MultiIndex"]),
        },
        advice={
            **dict.fromkeys(
                [*_DTYPE_OF_PANDAS, "DataFrame", "ExtensionArray", "Index", "Series"],
                otherwise(_nested_of_pandas, "x.to_numpy(), a copy that may change the type"),
            ),
            "MultiIndex": "x.get_level_values(i).to_numpy()",
        },
    ),
    "narwhals": dict(
        traits=("ARROW_STREAM_FIRST",),  # narwhals 2.29 concatenates even a single chunk for __arrow_c_array__
    ),
    # Each call of __arrow_c_stream__ runs the query again (duckdb 2.0, ibis 12, datafusion 55; by design:
    # duckdb/duckdb#17084).
    "duckdb": dict(roots=("duckdb", "_duckdb"), traits=("ARROW_IS_LAZY",)),
    "ibis": dict(
        traits=("ARROW_IS_LAZY",),
    ),
    "datafusion": dict(traits=("ARROW_IS_LAZY",)),
    "awkward": dict(
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
            **dict.fromkeys(["ArrayBuilder", "Content", "Record", "TypeTracerArray"]),
        },
        advice={
            "Array": otherwise(_union_of_awkward, _AWKWARD),
            "ArrayBuilder": "x.snapshot()",
            "Content": otherwise(_union_of_awkward, _CONTENT),
            "NumpyArray": _CONTENT,
            "Record": "x['name'], one of its fields",
            "RegularArray": otherwise(_union_of_awkward, _CONTENT),
            "TypeTracerArray": "the array that it represents: a type tracer has a type but no elements",
        },
    ),
    "xarray": dict(
        export_by="libraries.xarray:as_xarray",
        spellings=("xr",),
        install="pip install xarray",
        sample=lambda xarray: xarray.DataArray([0.0, 1.0]),
        importers=(("own", "xarray", "DataArray", "NamedArray"),),
        types={
            "DataArray": ("data", _dtype_of_xarray),
            "NamedArray": ("data", _dtype_of_xarray),
            **dict.fromkeys(["CFTimeIndex", "DataTree", "Dataset"]),
        },
        advice={
            "CFTimeIndex": "x.to_datetimeindex(), if NumPy supports its calendar",
            "DataArray": _XARRAY,
            "DataTree": "x['name'] for one of its variables",
            "Dataset": "x.to_array(), a copy of its variables, or x['name'] for one of them",
            "NamedArray": _values_of_xarray,
        },
    ),
    "warp": dict(
        traits=("LEGACY_IS_WRITABLE",),
        importers=(("exactly", "warp", "array"),),
        types=dict.fromkeys(["StructInstance", "fabricarray", "indexedarray", "indexedfabricarray"]),
        advice={
            "StructInstance": "x.numpy_value(), a copy",
            **dict.fromkeys(["fabricarray", "indexedarray", "indexedfabricarray"], "x.contiguous(), a copy"),
        },
    ),
    "mlx": dict(
        traits=("LEGACY_IS_WRITABLE",),
        dtype="by_name",
        importers=(("exactly", "mlx.core", "array"),),  # bfloat16 buffers lack a PEP 3118 format
    ),
    "paddle": dict(
        dtype="by_name",
        importers=(("exactly", "paddle", "Tensor"), ("named", "paddle", "EagerParamBase")),
    ),
    "av": dict(
        traits=("LEGACY_IS_WRITABLE",),
        importers=(("named", "av", "VideoPlane"),),
        resembling=("AudioFrame", "VideoFrame"),
        types=dict.fromkeys(["AudioFrame", "AudioPlane", "VideoFrame"]),
        advice={
            "AudioFrame": "x.to_ndarray(), a copy",
            "AudioPlane": _FRAME,
            "VideoFrame": "x.to_ndarray(), a copy, or x.planes[i], a view of a plane",
            "VideoPlane": _FRAME,
        },
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
        importers=(("named", "tensorflow", "EagerTensor"),),
        types=dict.fromkeys(["IndexedSlices", "RaggedTensor", "SparseTensor", "Variable"]),
        advice={
            "EagerTensor": "x.numpy()",
            "IndexedSlices": "tensorflow.convert_to_tensor(x), a dense copy",
            "RaggedTensor": otherwise(
                _strings_of_tensorflow, "x.flat_values, and x.nested_row_splits for the starts of its rows"
            ),
            "SparseTensor": otherwise(_strings_of_tensorflow, "tensorflow.sparse.to_dense(x), a dense copy"),
            "SymbolicTensor": "",
            "Variable": otherwise(_strings_of_tensorflow, "x.value(), which is read-only"),
        },
    ),
    "ml_dtypes": dict(install="pip install ml_dtypes"),
    # If an OrtValue was created from a NumPy array, its capsule does not keep the NumPy array alive.
    "onnxruntime": dict(traits=("BORROWS",)),
    # oneDAL's tables (2026.2) are never mutable, but store `is_mutable` (False) in the read-only flag of the dict.
    # Inverting the flag would make the tables writable once oneDAL corrects it. Their DLPack capsules are read-only.
    "onedal": dict(traits=("SYCL_IS_READONLY",)),
    "tvm_ffi": dict(
        device="read_tvm_ffi",
    ),
    "cuda.core": dict(roots=("cuda",), device="read_cuda_core"),
    # The rows below only have types, advice and sparse arrays.
    "PyQt6": dict(
        resembling=("QImage",),
        types={"QImage": None},
        advice={
            "QImage": _QT_IMAGE + "; in PyQt, call setsize(x.sizeInBytes()) on the result",
            "voidptr": "it after x.setsize(n), with n the number of bytes",
        },
    ),
    "PySide6": dict(resembling=("QImage",), types={"QImage": None}, advice={"QImage": _QT_IMAGE}),
    "SimpleITK": dict(
        resembling=("Image",),
        types={"Image": None},
        advice={
            "Image": "SimpleITK.GetArrayViewFromImage(x), read-only and valid only while x exists and is not written,"
            " or SimpleITK.GetArrayFromImage(x), a copy"
        },
    ),
    "_cffi_backend": dict(
        resembling=("_CDataBase",),
        advice={"_CDataBase": "cffi.FFI().buffer(x), the bytes of an array or of a pointer's target"},
    ),
    "_ctypes": dict(
        types={"_Pointer": None},
        advice={
            "Array": _LIST,  # of Python objects or pointers
            "_Pointer": "numpy.ctypeslib.as_array(x, shape), a view of its target",
        },
    ),
    "_io": dict(types={"BytesIO": "getbuffer()"}),
    "arrayhub": dict(
        spellings=("USMArray",),
        sparse={"SparseArray": "arrayhub"},
        advice={"SparseArray": "x.to_dense(), a dense copy"},
    ),
    "arro3": dict(
        types={"Scalar": None},
        advice={
            "Scalar": "x.as_py()"  # Arrow's interface would export an array of one element
        },
    ),
    "astropy": dict(
        resembling=("NDData",),
        types=dict.fromkeys(["FITS_rec", "FITS_record", "NDData", "Quantity", "Table"]),
        advice={
            "FITS_rec": "arrayhub.asnested(x), or x['name'] for a column; stored values are not scaled",
            "FITS_record": "x['name'], one of its fields",
            "NDData": _DATA_AND_MASK + "; x.unit and x.uncertainty are not included",
            "Quantity": otherwise(_masked_quantity, "x.value, or x.to_value(unit); the unit is not included"),
            "Table": otherwise(_masked_table, "x.as_array(), a copy, or x['name'] for a column"),
        },
    ),
    "bitarray": dict(
        types={"bitarray": None},
        advice={"bitarray": "numpy.frombuffer(x.unpack(), bool), a copy with one byte per bit"},
    ),
    "blosc2": dict(
        types=dict.fromkeys(["Operand", "SChunk"]),
        advice={"Operand": _DECOMPRESS, "SChunk": "x[:], its decompressed bytes", "SimpleProxy": _DECOMPRESS},
    ),
    "ctypes": dict(
        types=dict.fromkeys(["c_char_p", "c_void_p"]),
        advice={
            "c_char_p": "x.value, a copy of its bytes up to the first NUL",
            "c_void_p": "numpy.ctypeslib.as_array(ctypes.cast(x, ctypes.POINTER(ctypes.c_double)), shape), a view of"
            " float64 at its address",
        },
    ),
    "cv2": dict(
        spellings=("opencv",),
        instead="arrayhub.as_numpy(x)",
        resembling=("UMat",),
        types={"UMat": None},
        advice={"UMat": "x.get(), a copy"},
    ),
    "dask": dict(
        instead="dask.array.from_array(arrayhub.as_numpy(x))",
        types={"Array": None},
        advice={"Array": "x.compute()", "Bag": "x.compute(), a list", "Delayed": "x.compute()"},
    ),
    "datatable": dict(
        types={"Frame": None},
        advice={
            "Frame": _DATATABLE  # its buffer copies columns, with missing values as -128
        },
    ),
    "gemmi": dict(types={"GridMeta": "array"}),
    "gt4py": dict(types={"NdArrayField": "ndarray"}),
    "h5py": dict(
        types=dict.fromkeys(["AbstractView", "Dataset", "HLObject"]),
        advice={
            "AbstractView": otherwise(_strings_of_h5py, _READ),
            "Dataset": otherwise(_strings_of_h5py, _READ),
            "HLObject": "x['name'][...], which copies one of its datasets into memory",
        },
    ),
    "keras": dict(types={"Variable": None}, advice={"KerasTensor": "", "Variable": "keras.ops.convert_to_numpy(x)"}),
    "marray": dict(
        types={"masked_namespace.<locals>.MArray": None}, advice={"masked_namespace.<locals>.MArray": _DATA_AND_MASK}
    ),
    "multiprocess": _MULTIPROCESSING,  # dill's
    "multiprocessing": _MULTIPROCESSING,
    "netCDF4": dict(
        types=dict.fromkeys(["Dataset", "Variable"]),
        advice={"Dataset": "x['name'][...], which copies one of its variables into memory", "Variable": _READ},
    ),
    "onnx": dict(
        resembling=("TensorProto",),
        types={"TensorProto": None},
        advice={"TensorProto": "onnx.numpy_helper.to_array(x)"},
    ),
    "openmm": dict(
        types={"Quantity": None}, advice={"Quantity": "x.value_in_unit(x.unit), a copy; the unit is not included"}
    ),
    "openvino": dict(
        types={"Constant": ("data", _dtype_of_openvino), "Tensor": ("data", _dtype_of_openvino)},
        advice={
            "Constant": otherwise(_bits_of_openvino, _OPENVINO_CALL),
            "Tensor": otherwise(_bits_of_openvino, _OPENVINO_CALL),
            "Shape": _LIST,
            "Strides": _LIST,
        },
    ),
    "pint": dict(types={"Quantity": None}, advice={"Quantity": "x.magnitude; the unit is not included"}),
    "pyopencl": dict(
        types=dict.fromkeys(["Array", "Image", "MemoryObjectHolder", "SVM", "SVMPointer"]),
        advice={
            "Array": _MAPPED,
            "Image": "the result of pyopencl.enqueue_map_image(queue, x, ...)",
            "MemoryObjectHolder": _OPENCL,
            "SVM": "x.mem, or the result of x.map_rw(queue) in a with statement",
            "SVMPointer": _SVM,
        },
    ),
    "scipy": dict(
        export_by="sparse.export:as_scipy",
        spellings=("scipy.sparse",),
        sparse={"_spbase": "scipy", "sparray": "scipy", "spmatrix": "scipy"},
        types=dict.fromkeys(["KDTree", "_spbase", "cKDTree", "sparray", "spmatrix"]),
        advice={
            "KDTree": "x.data for its points",
            "_spbase": _sparse_call,  # dok_array is also a dict, which has a row of its own
            "cKDTree": "x.data for its points",
            "sparray": _sparse_call,
            "spmatrix": _sparse_call,
        },
    ),
    "skia": dict(
        resembling=("Pixmap", "Surface"),
        types=dict.fromkeys(["Pixmap", "Surface"]),
        advice={
            "Pixmap": "x.tobytes(), a copy, or the bitmap or array that holds its pixels",
            "Surface": "x.toarray(), a copy, or the array that it was created on",
        },
    ),
    "sparse": dict(
        export_by="sparse.export:as_pydata_sparse",
        like="pydata_sparse",
        spellings=("sparse",),
        sparse={"SparseArray": "pydata_sparse"},
        types={"SparseArray": None},
        advice={"SparseArray": _TODENSE},
    ),
    "sympy": dict(
        types=dict.fromkeys(["MatrixBase", "NDimArray"]),
        advice={"Basic": otherwise(_number_of_sympy, ""), "MatrixBase": _SYMBOLS, "NDimArray": _SYMBOLS},
    ),
    "vtkmodules": dict(
        resembling=("vtkBitArray", "vtkCellArray", "vtkDataArray", "vtkDataSet", "vtkPoints"),
        types=dict.fromkeys(["vtkBitArray", "vtkCellArray", "vtkDataSet", "vtkPoints"]),
        advice={
            "vtkBitArray": "vtk.util.numpy_support.vtk_to_numpy(x), a copy with one byte per bit",
            "vtkCellArray": "x.GetConnectivityArray(), and x.GetOffsetsArray() for cell starts",
            "vtkDataArray": "vtk.util.numpy_support.vtk_to_numpy(x), a copy",
            "vtkDataSet": _VTK,
            "vtkPoints": "x.GetData()",
        },
    ),
    "zarr": dict(
        types={"Buffer": "as_array_like()", "NDBuffer": "as_ndarray_like()"},
        advice={"Array": _READ, "AsyncArray": "await x.getitem(...), which copies the data into memory"},
    ),
    "itk": dict(resembling=("itkImageBase2", "itkImageBase3", "itkImageBase4")),
}
