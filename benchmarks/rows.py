"""Table of comparisons: an arrayhub call, a peer call, and the maximum ratio of their times."""

import array
import importlib
from typing import NamedTuple

import numpy as np

import arrayhub
from arrayhub import as_numpy, as_torch, asarray

from . import nanobind_peer
from .measure import Result, Timed, compare


class Row(NamedTuple):
    way: str  # description of the call
    ours: str  # statement that calls arrayhub
    peer: str
    at_most: float | None
    needs: tuple[str, ...] = ()  # keys of SAMPLES that define the names in the statements
    slow: bool = False  # whether a call takes about a second; calls are then timed one at a time, in fewer rounds


MOST_ROUNDS = 7  # for slow rows


ROWS = (
    Row("asarray(numpy array)", "asarray(a)", "np.from_dlpack(a)", 0.40),
    Row("asarray(numpy array)", "asarray(a)", "tvm_ffi.from_dlpack(a)", 0.30, ("tvm_ffi",)),
    Row("asarray(bytes)", "asarray(b)", "memoryview(b)", 0.75),
    Row("asarray(bytearray)", "asarray(ba)", "memoryview(ba)", 0.75),
    Row("asarray(array.array)", "asarray(aa)", "memoryview(aa)", 0.75),
    Row("asarray(torch CPU tensor)", "asarray(t)", "tvm_ffi.from_dlpack(t)", 1.0, ("torch", "tvm_ffi")),
    Row("asarray(jax CPU array)", "asarray(j)", "np.from_dlpack(j)", 0.25, ("jax",)),
    Row("asarray(pyarrow array)", "asarray(p)", "np.from_dlpack(p)", 1.0, ("pyarrow",)),
    Row("asarray(usm_ndarray)", "asarray(x)", "x.__sycl_usm_array_interface__", 0.08, ("dpnp",)),
    Row("asarray(dpnp array)", "asarray(d)", "d.__sycl_usm_array_interface__", 0.08, ("dpnp",)),
    Row("asarray(object with a CUDA dict)", "asarray(cuda)", "np.asarray(host)", 0.6),
    Row("asarray(object with a SYCL dict)", "asarray(sycl)", "dpctl.memory.as_usm_memory(sycl)", 0.10, ("dpnp",)),
    Row("as_numpy(USMArray)", "as_numpy(u)", "np.from_dlpack(a)", 0.60),
    Row("np.asarray(USMArray)", "np.asarray(u1)", "np.asarray(aa)", 1.1),
    Row("memoryview(USMArray)", "memoryview(u1)", "memoryview(aa)", 1.1),
    Row(
        "USMArray.__dlpack__",
        "u.__dlpack__(max_version=(1, 3))",
        "a.__dlpack__(max_version=(1, 3))",
        1.0,
        ("DLPack 1",),
    ),
    Row("as_numpy(torch tensor)", "as_numpy(t)", "t.numpy()", 0.50, ("torch",)),
    Row("as_torch(numpy array)", "as_torch(a)", "torch.from_numpy(a)", 1.0, ("torch",)),
    Row("asarray(USMArray)", "asarray(u)", "asarray(a)", 0.45),
    Row("USMArray.shape", "u.shape", "a.shape", 1.5),
    Row("USMArray.strides", "u.strides", "a.strides", 1.5),
    Row("USMArray.dtype", "u.dtype", "a.dtype", 1.5),
    Row("USMArray.nbytes", "u.nbytes", "a.nbytes", 1.5),
    # Comparisons without a maximum ratio.
    Row("asarray(torch CPU tensor)", "asarray(t)", "np.from_dlpack(t)", None, ("torch",)),
    Row("asarray(torch CPU tensor)", "asarray(t)", "np.asarray(t)", None, ("torch",)),
    Row("asarray(jax CPU array)", "asarray(j)", "np.asarray(j)", None, ("jax",)),
    Row("asarray(dpnp array)", "asarray(d)", "tvm_ffi.from_dlpack(d)", None, ("dpnp", "tvm_ffi")),
    Row("asarray(numpy array)", "asarray(a)", "from_any_interface(a, stream_ptr=-1)", None, ("cuda.core",)),
    Row("asarray(numpy array)", "asarray(a)", "nanobind_peer.take(a)", None, ("nanobind",)),
    Row("asarray(bytearray)", "asarray(ba)", "nanobind_peer.take(ba)", None, ("nanobind",)),
    Row("asarray(torch CPU tensor)", "asarray(t)", "nanobind_peer.take(t)", None, ("nanobind", "torch")),
    Row("asarray(pyarrow array)", "asarray(p)", "nanobind_peer.take(p)", None, ("nanobind", "pyarrow")),
    Row("as_numpy(torch tensor)", "as_numpy(t)", "nanobind_peer.as_numpy(t)", None, ("nanobind", "torch")),
    Row("asarray(tvm-ffi tensor)", "asarray(v)", "np.from_dlpack(v)", None, ("tvm_ffi",)),
    Row("as_numpy(tvm-ffi tensor)", "as_numpy(v)", "np.from_dlpack(v)", None, ("tvm_ffi",)),
)

# Calls that read elements, compared with NumPy's calls on the same memory.
ELEMENTS = (
    Row("list(x), 1000 floats", "list(u1k)", "list(a1k)", 1.2),
    Row("list(x), 100 x 10", "list(u2)", "list(a2)", 1.2),
    Row("x[1], two dimensions", "u[1]", "a[1]", 1.2),
    Row("x[5], one dimension", "u1k[5]", "a1k[5]", 1.2),
)


# Nested arrays, and dense arrays through Arrow's interfaces.
_NESTED = ("pyarrow", "nanoarrow", "awkward")
_LARGE = ("nanoarrow", "large columns")
# Limits of the ratios for columns of 10,000 chunks, with 10 and with 1,000 elements per chunk. `asnested` creates three
# to six Python objects per chunk, and `combine_chunks` one.
_CHUNKS = {
    "numbers": (1.0, 1.0),
    "dates": (1.2, 1.0),
    "booleans": (1.2, 1.2),
    "strings": (1.2, 1.0),
    "lists": (1.2, 1.0),
    "records": (2.0, 1.0),
    "dictionaries": (3.0, 1.3),
}
NESTED = (
    Row("asarray(pyarrow array, via='arrow')", "asarray(p, via='arrow')", "pa.array(capsules)", 0.5, _NESTED),
    Row("asnested(pyarrow list array)", "asnested(lists)", "ak.from_arrow(lists)", 0.1, _NESTED),
    Row("asnested(100,000 lists of 10 floats)", "asnested(rows)", "pa.array(rows)", 1.2, _LARGE, True),
    Row("asnested(1,000,000 strings)", "asnested(many)", "pa.array(many)", 1.2, _LARGE, True),
    Row("to_list of 100,000 lists", "nested_rows.to_list()", "arrow_rows.to_pylist()", 1.0, _LARGE, True),
    Row("as_polars(1,000,000 lists)", "as_polars(wide)", "pl.from_arrow(wide)", 1.5, _LARGE, True),
    Row("as_polars(1,000,000 lists, imported)", "as_polars(nested_wide)", "pl.from_arrow(wide)", 1.1, _LARGE, True),
    *(
        Row(
            f"asnested(10,000 chunks of {length:,} {name})",
            f"asnested(chunks['{name}', {length}])",
            f"chunks['{name}', {length}].combine_chunks()",
            at_most,
            _LARGE,
            True,
        )
        for name, limits in _CHUNKS.items()
        for length, at_most in zip((10, 1_000), limits, strict=True)
    ),
    Row("asnested(10,000 columns)", "asnested(columns)", "nanoarrow.Array(columns)", 1.0, _LARGE, True),
    Row("asnested(10,000 columns)", "asnested(columns)", "nanoarrow.c_array(columns)", 1.6, _LARGE, True),
    Row("x[i] of lists", "nested_rows[7]", "arrow_rows[7]", 1.0, _LARGE),
    Row("pyarrow.array(nested)", "pa.array(nested)", "pa.array(nano)", 1.1, _NESTED),
    Row("awkward to pyarrow", "as_arrow(ragged)", "ak.to_arrow(ragged)", 0.25, _NESTED),
    Row("pyarrow to awkward", "as_awkward(lists)", "ak.from_arrow(lists)", 0.25, _NESTED),
    Row("asnested(StringDType)", "asnested(strings)", "pa.array(strings)", 0.5, ("nanoarrow", "strings"), True),
    Row(
        *("as_numpy(strings)", "as_numpy(words, copy=True)", "np.array(texts.to_pylist(), kind)", 0.5),
        *(("nanoarrow", "strings"), True),
    ),
)


# Sparse arrays: csr matrices with a thousand and a million values, compared with the constructors of SciPy and torch.
_UNCHECKED = "torch.sparse_csr_tensor(*parts, shape, check_invariants=False)"
_FROM_NUMPY = "torch.sparse_csr_tensor(*map(torch.from_numpy, {}), {}, check_invariants=False)"
SPARSE = (
    Row("assparse(SciPy csr)", "assparse(csr)", "scipy.sparse.csr_array(arrays, shape=shape)", 0.15, ("sparse",)),
    Row("as_torch(SparseArray)", "as_torch(s)", _UNCHECKED, 2.5, ("sparse",)),
    Row("as_torch(SparseArray), 1,000,000 values", "as_torch(s_large)", "as_torch(s)", 1.25, ("sparse",)),
    Row(
        *("SciPy csr to torch, not validated", "as_torch(assparse(csr, validate=False))"),
        *(_FROM_NUMPY.format("torch_order", "shape"), 3.0, ("sparse",)),
    ),
    Row(
        *("SciPy csr to torch, not validated, 1,000,000 values", "as_torch(assparse(large, validate=False))"),
        *(_FROM_NUMPY.format("large_torch_order", "large_shape"), 3.0, ("sparse",)),
    ),
    Row("as_scipy(SparseArray)", "as_scipy(s)", "scipy.sparse.csr_array(arrays, shape=shape)", 2.0, ("sparse",)),
    Row(
        *("as_torch(SciPy csr), 1,000,000 values", "as_torch(large)"),
        *("torch.sparse_csr_tensor(*large_parts, large_shape, check_invariants=True)", 1.0, ("sparse",), True),
    ),
)


class Producer:
    """A producer that supports only an interface dict, as many small libraries do."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


def dict_of(a):
    return {"shape": a.shape, "typestr": a.dtype.str, "data": (a.ctypes.data, False), "version": 3, "strides": None}


def plain():
    """Return the namespace of statements that require only NumPy. All arrays are small."""
    a = np.arange(12.0).reshape(3, 4)
    aa = array.array("d", [1.0, 2.0, 3.0])
    interface = dict_of(a)
    return {
        "a": a,
        "b": bytes(32),
        "ba": bytearray(32),
        "aa": aa,
        **elements(),
        "u": asarray(a),
        "u1": asarray(aa),
        "cuda": Producer(__cuda_array_interface__=interface, owner=a),
        "host": Producer(__array_interface__=interface, owner=a),
        "np": np,
        "asarray": asarray,
        "as_numpy": as_numpy,
        "as_torch": as_torch,
        "arrayhub": arrayhub,
    }


def elements():
    """Return ndarrays and USMArrays of zero, one and two dimensions."""
    line = np.arange(1000.0)
    arrays = {"0": np.array(1.5), "1k": line, "1kb": np.arange(1000).astype("u1"), "2": line.reshape(100, 10)}
    return {"a" + name: a for name, a in arrays.items()} | {"u" + name: asarray(a) for name, a in arrays.items()}


def torch():
    import torch

    return {"torch": torch, "t": torch.arange(12.0).reshape(3, 4)}


def jax():
    import jax

    return {"j": jax.numpy.arange(12.0).reshape(3, 4)}


def tvm_ffi():
    import tvm_ffi

    return {"tvm_ffi": tvm_ffi, "v": tvm_ffi.from_dlpack(np.arange(12.0).reshape(3, 4))}


def pyarrow():
    import pyarrow

    return {"p": pyarrow.array(np.arange(12.0))}


def nanoarrow():
    """Return nested arrays of pyarrow, arrayhub and nanoarrow, and an object that has only Arrow's capsule methods."""
    import nanoarrow
    import pyarrow as pa

    p, lists = pa.array(np.arange(12.0)), pa.array([[1.0], [2.0, 3.0], [], [4.0]])
    return {
        "pa": pa,
        "capsules": Capsules(p),
        "lists": lists,
        "nested": arrayhub.asnested(lists),
        "nano": nanoarrow.c_array(lists),
        "asnested": arrayhub.asnested,
    }


def large_columns():
    """Return lists and strings of a million elements, columns in 10,000 chunks, and a table of 10,000 columns."""
    import nanoarrow
    import polars
    import pyarrow as pa

    rows = [[float(k + j) for j in range(10)] for k in range(100_000)]
    wide, arrow_rows = pa.array([[1.0]] * 1_000_000), pa.array(rows)
    one_chunk = {
        "numbers": pa.array(np.arange(1_000.0)),
        "dates": pa.array(np.arange(1_000, dtype="i4")).cast(pa.date32()),
        "booleans": pa.array([True] * 1_000),
        "strings": pa.array(["word"] * 1_000),
        "lists": pa.array([[1.0, 2.0]] * 1_000),
        "records": pa.array([{"x": 1, "y": 2.0}] * 1_000),
        "dictionaries": pa.array(["a", "b"] * 500).dictionary_encode(),
    }
    return {
        "rows": rows,
        "arrow_rows": arrow_rows,
        "nested_rows": arrayhub.asnested(arrow_rows),
        "many": [f"word {k}" for k in range(1_000_000)],
        "wide": wide,
        "nested_wide": arrayhub.asnested(wide),
        "chunks": {
            (name, n): pa.chunked_array([array[:n]] * 10_000) for name, array in one_chunk.items() for n in (10, 1_000)
        },
        "columns": pa.record_batch([pa.array([1, 2, 3])] * 10_000, names=[f"c{k}" for k in range(10_000)]),
        "pl": polars,
        "nanoarrow": nanoarrow,
        "as_polars": arrayhub.as_polars,
    }


def strings():
    """Return five million strings of up to 39 characters, with 97 MB of characters in total."""
    import pyarrow as pa

    texts = [f"{k} and some more, not always in line"[: k % 40] for k in range(5_000_000)]
    arrow, kind = pa.array(texts), np.dtypes.StringDType()
    return {"texts": arrow, "words": arrayhub.asnested(arrow), "kind": kind, "strings": np.array(texts, kind)}


class Capsules:
    """An object that exports another object's array only through Arrow's interface."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


def awkward():
    import awkward as ak

    ragged = ak.Array([[1.0], [2.0, 3.0], [], [4.0]])
    return {"ak": ak, "ragged": ragged, "as_arrow": arrayhub.as_arrow, "as_awkward": arrayhub.as_awkward}


def dpnp():
    import dpctl.memory
    import dpnp

    d = dpnp.arange(12.0).reshape(3, 4)
    sycl = Producer(__sycl_usm_array_interface__=d.__sycl_usm_array_interface__, owner=d)
    return {"dpctl": dpctl, "d": d, "x": d.get_array(), "sycl": sycl}


def nanobind():
    return {"nanobind_peer": nanobind_peer.load()}


def cuda_core():
    utils = importlib.import_module("cuda.core.utils")
    return {"from_any_interface": utils.StridedMemoryView.from_any_interface}


def gt4py():
    import gt4py.storage

    return {"gt4py": gt4py}


def sparse():
    """Return csr matrices, SparseArrays whose indices have been validated, and torch tensors of their components."""
    import scipy.sparse
    import torch

    names = {"scipy": scipy, "torch": torch, "assparse": arrayhub.assparse, "as_scipy": arrayhub.as_scipy}
    for prefix, length in (("", 1_000), ("large_", 100_000)):
        csr = scipy.sparse.random_array((length, length), density=10 / length, format="csr", rng=7)
        if not prefix:
            csr = csr[:100].copy()
        names[f"{prefix}shape"] = csr.shape
        names[f"{prefix}torch_order"] = (csr.indptr, csr.indices, csr.data)
        names[f"{prefix}parts"] = [torch.from_numpy(part) for part in names[f"{prefix}torch_order"]]
        if prefix:
            names |= {"large": csr, "s_large": arrayhub.assparse(csr)}
        else:
            names |= {"csr": csr, "arrays": (csr.data, csr.indices, csr.indptr), "s": arrayhub.assparse(csr)}
    for x in (names["s"], names["s_large"]):
        as_torch(x)  # validates
    return names


def dlpack_1():
    """Return no names. Raise TypeError if NumPy's ``__dlpack__`` does not support `max_version` (before NumPy 2.1)."""
    np.empty(0).__dlpack__(max_version=(1, 0))
    return {}


# For each key of `Row.needs`, the function that imports the library and returns names for the statements.
SAMPLES = {
    "torch": torch,
    "jax": jax,
    "tvm_ffi": tvm_ffi,
    "pyarrow": pyarrow,
    "nanoarrow": nanoarrow,
    "strings": strings,
    "large columns": large_columns,
    "awkward": awkward,
    "dpnp": dpnp,
    "nanobind": nanobind,
    "cuda.core": cuda_core,
    "gt4py": gt4py,
    "sparse": sparse,
    "DLPack 1": dlpack_1,
}


def reach(options):
    """Measure imports and exports through all protocols, compared with other libraries' functions."""
    yield from measured("reach", ROWS, options)


def values(options):
    """Measure iteration and indexing, compared with NumPy."""
    yield from measured("elements", ELEMENTS, options)


def nested(options):
    """Measure nested arrays, compared with functions of pyarrow, nanoarrow, awkward, polars and NumPy."""
    yield from measured("nested", NESTED, options)


def sparse_arrays(options):
    """Measure sparse arrays, compared with the constructors of SciPy and torch."""
    yield from measured("sparse", SPARSE, options)


def measured(group, table, options, names=None, samples=SAMPLES):
    """Measure the rows. Yield a `Result`, or the name of a row and the reason for skipping the row."""
    names, absent = plain() if names is None else names, {}
    for library in dict.fromkeys(library for row in table for library in row.needs):
        try:
            names.update(samples[library]())
        except Exception as error:  # the library is not installed, or does not find a device
            absent[library] = f"{library}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    for row in table:
        missing = [absent[library] for library in row.needs if library in absent]
        if missing:
            yield f"{row.way} beside {row.peer}", "; ".join(missing)
            continue
        timing = timed(row, names, options)
        yield Result(group, row.way, row.peer, at_most=row.at_most, **timing)


def timed(row, names, options):
    if row.slow:
        ours, peer = (Timed(statement, names, unrolled=1) for statement in (row.ours, row.peer))
        return compare(ours, peer, min(options.repeat, MOST_ROUNDS), 1e-9, least=1)
    return compare(Timed(row.ours, names), Timed(row.peer, names), options.repeat, options.sample)


VERSIONS = ("numpy", "torch", "jax", "dpnp", "dpctl", "pyarrow", "apache-tvm-ffi", "nanobind", "cuda-core", "gt4py")
OURS = arrayhub.__version__
