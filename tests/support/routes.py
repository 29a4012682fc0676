"""Statements that import, export and view arrays. Tests of growth, interrupts, threads and allocations repeat them.

There is one table per library, and the table "host", which requires only NumPy. `namespace(library)` returns the names
that the statements of a library use.
"""

import array
import ctypes
import importlib.util
import mmap
from typing import NamedTuple

import numpy as np
from dlpack_by_hand import OnlyDLPack, Tensor, VersionedTensor, delete, tensor_of
from exchange_table import SET_ERROR, function, pointer, prototype
from exporters import Shows, StructProducer, exporter
from numpy_release import HAS_DLPACK_1

import arrayhub

MILLION = 1_000_000
SOME = MILLION // 20  # repetitions of statements that take microseconds, such as those that return text
FEW = SOME // 10  # repetitions of statements that compile, wait or copy


class Route(NamedTuple):
    """A statement of a table.

    Attributes
    ----------
    statement : str
    times : int
        Number of times that `test_growth.py` runs the statement.
    error : str or None
        The exception that the statement must raise.
    """

    statement: str
    times: int = MILLION
    error: str | None = None


class Fails:
    """A producer whose protocols raise errors."""

    @property
    def __array_interface__(self):
        raise KeyError("no")

    def __dlpack__(self, **keywords):
        raise RuntimeError("no")

    def __dlpack_device__(self):
        raise RuntimeError("no")


class Deep(ctypes.Structure):
    _fields_ = (("x", ctypes.c_double), ("n", ctypes.c_int))


def dict_of(a, **changes):
    keys = {"shape": a.shape, "typestr": a.dtype.str, "data": (a.ctypes.data, False), "version": 3, "strides": None}
    return {**keys, **changes}


def bad_capsule(a):
    """Return a DLPack capsule whose number of dimensions is -1."""
    capsule = a.__dlpack__()
    tensor_of(capsule).dl_tensor.ndim = -1
    return capsule


class Lent:
    """A producer whose ``__dlpack__`` returns the given capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **keywords):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def used_capsule(a):
    """Return a DLPack capsule that NumPy has consumed."""
    capsule = a.__dlpack__()
    np.from_dlpack(Lent(capsule))
    return capsule


class Table:
    """arrayhub's DLPack exchange table. Its functions are called through ctypes, as C code would call them."""

    def __init__(self):
        self.out, self.back, self.tensor = pointer(), pointer(), Tensor()
        self.at, self.to, self.into = map(ctypes.addressof, (self.out, self.back, self.tensor))
        self.export = function("from_py_object", ctypes.py_object, pointer)
        self.give = function("to_py_object", pointer, pointer)
        self.lend = function("borrow", ctypes.py_object, pointer)
        self.make = function("allocator", pointer, pointer, pointer, pointer)
        self.set_error = SET_ERROR(lambda *_: None)
        self.right, self.wrong = prototype(shape=(3,)), prototype(shape=(-1,))
        self.at_right, self.at_wrong = ctypes.addressof(self.right), ctypes.addressof(self.wrong)

    def drop(self):
        delete(VersionedTensor.from_address(self.out.value))

    def take_back(self):
        self.give(self.out.value, self.to)
        ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(self.back.value))


def host():
    a = np.arange(12.0).reshape(3, 4)
    interface = dict_of(a)
    cuda = dict_of(a, data=(0x7F3A_0000_1000, False))
    fixed = np.arange(12.0)
    fixed.flags.writeable = False
    return {
        "np": np, "asarray": arrayhub.asarray, "as_numpy": arrayhub.as_numpy, "to_host": arrayhub.to_host,
        "arrayhub": arrayhub, "USMArray": arrayhub.USMArray, "ctypes": ctypes,
        "a": a, "part": a[::-1, ::2], "dates": np.zeros(3, "M8[ns]"),
        "record": np.zeros(3, [("a", "i1"), ("b", ">f8")]),
        "swapped": np.zeros(3, ">f8"), "empty": np.zeros((0, 3)), "scalar": np.float64(3), "fixed": fixed,
        "subclass": a.view(type("Subclass", (np.ndarray,), {})), "objects": np.array([None, None]),
        "out": np.zeros((3, 4)), "twos": np.zeros((3, 4), "f4"), "wide": np.arange(4096.0).reshape(64, 64),
        "b": bytes(range(64)), "ba": bytearray(64), "aa": array.array("d", [1, 2, 3]),
        "mv": memoryview(bytearray(64)).cast("d", (2, 4)), "mm": mmap.mmap(-1, 64), "ct": (Deep * 2)(),
        "d": Shows(__array_interface__=interface, owner=a),
        "buffered": Shows(__array_interface__={**interface, "data": a}),
        "dated": Shows(__array_interface__=np.zeros(3, "M8[ns]").__array_interface__),
        "s": StructProducer(), "dl": OnlyDLPack(a), "c": Shows(__cuda_array_interface__=cuda, owner=a),
        "queued": Shows(__cuda_array_interface__={**cuda, "stream": 0x5581_2345_6780}),
        "pointers": exporter(suboffsets=[0]),
        "bad_shape": Shows(__array_interface__={**interface, "shape": (-1, 2)}),
        "bad_type": Shows(__array_interface__={**interface, "typestr": "<q9"}),
        "bad_data": Shows(__array_interface__={**interface, "data": bytearray(8)}),
        "bad_descr": Shows(__array_interface__={**interface, "typestr": "|V16", "descr": [("a", "<f8"), ("b", "<q9")]}),
        "bad_struct": StructProducer(two=3), "bad_cuda": Shows(__cuda_array_interface__={**cuda, "version": "x"}),
        "bad_capsule": bad_capsule, "used_capsule": used_capsule, "fails": Fails(), "nothing": object(),
        "u": arrayhub.asarray(a), "u1": arrayhub.asarray(bytearray(64)), "ub": arrayhub.asarray(b"abc"),
        "uc": arrayhub.asarray(Shows(__cuda_array_interface__=cuda)),
        "uw": arrayhub.asarray(np.arange(4096.0).reshape(64, 64)),
        "us": arrayhub.asarray(a[::-1, ::2]), "table": Table(), "device": arrayhub.Device("cpu"),
    }  # fmt: skip


HOST = (
    # Imports.
    Route("asarray(a)"),
    Route("asarray(part)"),
    Route("asarray(dates)"),
    Route("asarray(record)"),
    Route("asarray(record)['b']"),
    Route("asarray(record)['z']", SOME, "KeyError"),
    Route("asarray(ctypes.c_void_p(1))", SOME, "TypeError"),
    Route("asarray(swapped)"),
    Route("asarray(empty)"),
    Route("asarray(subclass)"),
    Route("asarray(fixed)"),
    Route("asarray(a, via='buffer')"),
    Route("asarray(a, via='dlpack')"),
    Route("asarray(a, via='array_interface')", MILLION // 4),
    Route("asarray(a, via='array_struct')"),
    Route("asarray(b)"),
    Route("asarray(ba)"),
    Route("asarray(aa)"),
    Route("asarray(mv)"),
    Route("asarray(memoryview(record))", SOME),
    Route("asarray(mm)"),
    Route("asarray(ct)", FEW),  # slow, because ctypes creates and arrayhub parses a format in each call
    Route("asarray(d)"),
    Route("asarray(buffered)"),
    Route("asarray(dated)"),
    Route("asarray(s)", SOME),
    Route("asarray(dl)"),
    Route("asarray(c)"),
    Route("asarray(queued)"),
    Route("asarray(u)"),
    Route("asarray(u, via='dlpack')"),
    Route("asarray(a.__dlpack__())"),
    *([Route("asarray(a.__dlpack__(max_version=(1, 0)))")] if HAS_DLPACK_1 else []),
    Route("asarray([[1.0, 2.0], [3.0, 4.0]])", MILLION // 4),
    Route("asarray(3.5)"),
    Route("asarray(scalar)"),
    Route("arrayhub.from_dlpack(a)"),
    Route("USMArray((2, 4), 'f8', ba)", MILLION // 4),
    Route("arrayhub.empty((2, 4))"),
    Route("arrayhub.empty((2, 4), memory='shared_memory')", FEW),
    Route("arrayhub.zeros((2, 4), halo=(1, 1))"),
    # Exports.
    Route("as_numpy(u)"),
    Route("as_numpy(us)"),
    Route("as_numpy(a)"),
    Route("np.asarray(u)"),
    Route("np.from_dlpack(u)"),
    Route("memoryview(u1)"),
    Route("bytes(u1)"),
    Route("u.data"),
    Route("u.__dlpack__()"),
    Route("u.__dlpack__(max_version=(1, 3))"),
    Route("u.__dlpack__(max_version=(1, 3), copy=True)", SOME),
    Route("u.__dlpack_device__()"),
    Route("u.__array_interface__", MILLION // 4),
    Route("u.__array_struct__"),
    Route("uc.__cuda_array_interface__", MILLION // 4),
    Route("uc.__dlpack__(stream=-1, max_version=(1, 0))"),
    Route("table.export(u, table.at); table.drop()", SOME),
    Route("table.export(u, table.at); table.take_back()", SOME),
    Route("table.lend(u, table.into)", SOME),
    Route("table.make(table.at_right, table.at, None, table.set_error); table.take_back()", SOME),
    Route("table.make(table.at_wrong, table.at, None, table.set_error)", SOME),
    Route("arrayhub.as_numba(u)"),
    Route("arrayhub.convert(u, 'numpy')"),
    Route("arrayhub.convert(u, 'os')", SOME, "ValueError"),
    # Views, properties, copies.
    Route("u[1:]"),
    Route("u[..., None, ::-1]"),
    Route("u[1, 2]"),
    Route("u.T"),
    Route("u.reshape(4, 3)"),
    Route("u.transpose(1, 0)"),
    Route("u[1:][..., None].T"),
    Route("u.shape, u.strides, u.byte_strides, u.dtype, u.device, u.offset, u.access, u.protocol"),
    Route("u.base, u.memory.owner, u.memory.nbytes, u.flags.writeable, u.flags.aligned"),
    Route("asarray(a).memory"),
    Route("u.memory.refcount"),
    Route("arrayhub.Device('cuda:0')", MILLION // 4),
    Route("hash(device), device == 'cpu', str(device)"),
    Route("u.copy()", SOME),
    Route("us.copy()", SOME),
    Route("to_host(u)"),
    Route("to_host(u, copy=True)", SOME),
    Route("to_host(us, out=out[:, :2])", SOME),
    Route("uw.T.copy()", FEW),
    Route("asarray(a, copy=True)", SOME),
    Route("asarray(a, dtype='f4')", SOME),
    Route("as_numpy(u, copy=True)", SOME),
    Route("repr(u)", FEW),
    Route("arrayhub.explain(a)", FEW // 20),
    Route("arrayhub.picture((3, 4))", FEW // 10),
    # Errors.
    Route("asarray(nothing)", SOME, "TypeError"),
    Route("asarray(objects)", SOME, "TypeError"),
    Route("asarray(fails)", SOME, "Exception"),
    Route("asarray(bad_shape)", SOME, "ValueError"),
    Route("asarray(bad_type)", SOME, "ValueError"),
    Route("asarray(bad_data)", SOME, "ValueError"),
    Route("asarray(bad_descr)", SOME, "ValueError"),
    Route("asarray(pointers)", FEW, "BufferError"),
    Route("asarray(bad_struct)", SOME, "ValueError"),
    Route("asarray(bad_cuda)", SOME, "ValueError"),
    Route("asarray(bad_capsule(a))", SOME, "ValueError"),
    Route("asarray(used_capsule(a))", SOME, "ValueError"),
    Route("asarray(a, via='sycl')", SOME, "TypeError"),
    Route("asarray(a, via='nonsense')", SOME, "ValueError"),
    Route("asarray(a, dtype='nonsense')", SOME, "TypeError"),
    Route("asarray(a, device='nonsense')", FEW, "ValueError"),
    Route("asarray(a, dtype='f4', copy=False)", SOME),
    Route("asarray([1, 2], copy=False)", SOME),
    Route("ub.__dlpack__()", SOME, "BufferError"),
    Route("u.__dlpack__(dl_device=(17, 0))", SOME, "BufferError"),
    Route("uc.__array_interface__", SOME, "AttributeError"),
    Route("np.asarray(uc)", SOME, "TypeError"),
    Route("memoryview(uc)", SOME, "BufferError"),
    Route("u[7]", SOME, "IndexError"),
    Route("u['x']", SOME, "IndexError"),
    Route("u.reshape(5, 5)", SOME, "ValueError"),
    Route("us.reshape(6)", SOME, "BufferError"),
    Route("u.transpose(0, 0)", SOME, "ValueError"),
    Route("ub.flags.writeable = True", SOME, "ValueError"),
    Route("USMArray((20, 40), 'f8', ba)", SOME, "ValueError"),
    Route("arrayhub.Device('nonsense')", FEW, "ValueError"),
    Route("table.lend(ub, table.into)", SOME, "BufferError"),
)


def torch():
    import torch

    t = torch.arange(12.0).reshape(3, 4)
    return {
        "torch": torch, "as_torch": arrayhub.as_torch, "t": t, "t16": t.to(torch.bfloat16), "part": t[:, ::2],
        "graded": torch.zeros(3, requires_grad=True), "frozen": torch.nn.Parameter(torch.zeros(3), requires_grad=False),
        "sparse": torch.zeros(3).to_sparse(), "conjugated": torch.zeros(3, dtype=torch.complex64).conj(),
        "ut": arrayhub.asarray(t), "u16": arrayhub.asarray(t.to(torch.bfloat16)),
    }  # fmt: skip


TORCH = (
    Route("asarray(t)"),
    Route("asarray(part)"),
    Route("asarray(t16)"),
    Route("asarray(frozen)"),
    Route("asarray(t, via='dlpack')", SOME),
    Route("asarray(t.__dlpack__())", SOME),
    Route("as_numpy(t)"),
    Route("as_torch(t)"),
    Route("as_torch(a)"),
    Route("as_torch(u)"),
    Route("as_torch(u16)"),
    Route("as_torch(ba)"),
    Route("as_torch(ub, copy=True)", SOME),
    Route("as_torch(ub, allow_readonly=True)", SOME),
    Route("torch.from_dlpack(u)", SOME),
    Route("torch.asarray(u1)", SOME),
    Route("ut.copy()", SOME),
    Route("asarray(graded)", SOME, "Exception"),
    Route("asarray(sparse)", SOME, "Exception"),
    Route("asarray(conjugated)", SOME, "Exception"),
    Route("as_torch(ub)", SOME, "BufferError"),
    Route("as_torch(swapped)", FEW, "BufferError"),
    Route("as_torch(a[::-1])", SOME, "BufferError"),
)


def jax():
    import jax

    j = jax.numpy.arange(12.0).reshape(3, 4)
    singles = arrayhub.empty((3, 4), "f4")  # starts on a 64-byte boundary
    return {
        "as_jax": arrayhub.as_jax, "j": j, "j16": j.astype("bfloat16"), "singles": singles,
        "uj": arrayhub.asarray(j), "jax": jax,
    }  # fmt: skip


JAX = (
    Route("asarray(j)"),
    Route("asarray(j16)", SOME),
    Route("as_numpy(j)", SOME),
    Route("asarray(j, via='dlpack')", SOME),
    Route("np.asarray(uj)"),
    Route("as_jax(j)", FEW),
    Route("as_jax(singles)", FEW),
    Route("as_jax(singles, copy=True)", FEW),
    Route("uj.__dlpack__(max_version=(1, 0))"),
    Route("uj.__dlpack__()", SOME, "BufferError"),
    Route("as_jax(a)", FEW // 5, "Exception"),
)


def pyarrow():
    import pyarrow

    return {
        "p": pyarrow.array(np.arange(12.0)), "pb": pyarrow.py_buffer(bytearray(64)),
        "pt": pyarrow.Tensor.from_numpy(np.arange(12.0).reshape(3, 4)), "nulls": pyarrow.array([1, None, 3]),
        "strings": pyarrow.array(["a", "b"]), "truth": arrayhub.asarray(np.arange(37) % 3 == 0),
        "tensor": arrayhub.asarray(np.arange(12.0).reshape(3, 4)), "int8": pyarrow.int8(), "bool8": pyarrow.bool8(),
    }  # fmt: skip


PYARROW = (
    Route("asarray(p)"),
    Route("asarray(pb)"),
    Route("asarray(pt)", SOME),
    Route("as_numpy(p)"),
    Route("asarray(nulls)", SOME, "Exception"),
    Route("asarray(strings)", SOME, "Exception"),
    Route("arrayhub.as_arrow(truth)", SOME),
    Route("arrayhub.as_arrow(truth, extension=True)", SOME),
    Route("arrayhub.as_arrow(tensor, extension=True)", SOME),
    Route("arrayhub.as_arrow(truth, copy=False)", SOME),
    Route("truth.__arrow_c_array__()", SOME),
    Route("truth.__arrow_c_stream__()", SOME),
    Route("truth.__arrow_c_array__(int8.__arrow_c_schema__())", SOME),
    Route("truth.__arrow_c_array__(bool8.__arrow_c_schema__())", SOME),
)


def tvm_ffi():
    import tvm_ffi

    return {"tvm_ffi": tvm_ffi, "v": tvm_ffi.from_dlpack(np.arange(12.0).reshape(3, 4))}


TVM_FFI = (
    Route("asarray(v)"),
    Route("as_numpy(v)"),
    Route("tvm_ffi.from_dlpack(u)"),
    Route("tvm_ffi.from_dlpack(us)"),
)


def dpnp():
    import dpctl.memory
    import dpnp

    d = dpnp.arange(12.0).reshape(3, 4)
    x = d.get_array()
    name = "__sycl_usm_array_interface__"
    interface = getattr(x, name)
    queue = x.sycl_queue
    shared, host_memory = dpnp.arange(12.0, usm_type="shared"), np.zeros(12)

    def sycl(**changes):
        return Shows(**{name: {**interface, **changes}}, owner=x)

    return {
        "d": d, "x": x, "usm": x.usm_data, "part": d[::-1, ::2], "shared": shared, "queue": queue,
        "memory": dpctl.memory.MemoryUSMShared(64),
        "as_dpnp": arrayhub.as_dpnp, "to_device": arrayhub.to_device, "by_queue": sycl(),
        "by_context": sycl(syclobj=queue.sycl_context), "by_filter": sycl(syclobj=queue.sycl_device.filter_string),
        "by_capsule": sycl(syclobj=queue._get_capsule()), "bad_queue": sycl(syclobj="nonsense"),
        "bad_pointer": sycl(data=(host_memory.ctypes.data, False)), "host_memory": host_memory,
        "turned": np.zeros((4, 3)),
        "bad_reach": sycl(shape=(1 << 30,)),
        "ud": arrayhub.asarray(d), "ushared": arrayhub.asarray(shared), "upart": arrayhub.asarray(d[::-1, ::2]),
    }  # fmt: skip


DPNP = (
    Route("asarray(d)"),
    Route("asarray(x)"),
    Route("asarray(part)"),
    Route("asarray(shared)"),
    Route("asarray(memory)"),
    Route("asarray(by_queue)"),
    Route("asarray(by_context)", SOME),
    Route("asarray(by_filter)", FEW),
    Route("asarray(by_capsule)", SOME),
    Route("asarray(d, via='dlpack')", SOME),
    Route("asarray(d, stream=queue)", SOME),
    Route("as_numpy(shared)", SOME),
    Route("arrayhub.as_torch(shared)", SOME),
    Route("asarray(x, via='sycl').base", SOME),
    Route("ud.__usm_ndarray__", SOME),
    Route("as_dpnp(ud)", SOME),
    Route("as_dpnp(d)", SOME),
    Route("ud.__sycl_usm_array_interface__", SOME),
    Route("ud.__dlpack__(max_version=(1, 0))"),
    Route("ushared.__array_interface__", SOME),
    Route("USMArray((3, 4), 'f8', 'shared')", FEW),
    Route("ud[1:]"),
    Route("to_host(ud)", FEW // 2),
    Route("to_host(upart)", FEW // 2),
    Route("to_host(ud.T, out=turned)", FEW // 2),
    Route("USMArray((2, 3), 'f8', memory, strides=(-3, -1), offset=5)", SOME),
    Route("to_device(a, 'oneapi:0')", FEW // 2),
    Route("ud.copy()", FEW // 2),
    Route("to_host(ud, out=turned)", FEW // 2, "ValueError"),
    Route("asarray(bad_queue)", FEW, "Exception"),
    Route("asarray(bad_pointer)", FEW, "ValueError"),
    Route("asarray(bad_reach)", FEW, "Exception"),
    Route("np.asarray(ud)", SOME, "TypeError"),
    Route("as_numpy(ud)", SOME, "BufferError"),
    Route("as_dpnp(a)", SOME, "BufferError"),
)


def numba():
    import numba

    @numba.njit
    def identity(x):
        return x

    return {"identity": identity}


NUMBA = (
    Route("identity(u)", FEW * 2),
    Route("arrayhub.as_numba(a)"),
    Route("identity(uc)", FEW, "Exception"),
)


def xarray():
    import xarray

    return {"da": xarray.DataArray(np.arange(12.0).reshape(3, 4), dims=("i", "j")), "frame": xarray.Dataset()}


XARRAY = (
    Route("asarray(da)", FEW),
    Route("as_numpy(da)", FEW),
    Route("asarray(da).T", FEW),
    Route("asarray(frame)", FEW // 5, "TypeError"),
)


def scipy():
    import warnings

    import scipy.sparse
    import torch

    warnings.simplefilter("ignore")  # torch warns once that csr tensors are experimental
    csr = scipy.sparse.csr_array(np.eye(4))
    bad = scipy.sparse.csr_array(np.eye(4))
    bad.indices[2] = 9
    names = {"csr": csr, "coo": csr.tocoo(), "bsr": csr.tobsr(), "lil": csr.tolil(), "bad": bad}
    names |= {"s": arrayhub.assparse(csr), "tensor": torch.eye(4).to_sparse_csr(), "as_torch": arrayhub.as_torch}
    return {
        **names,
        "assparse": arrayhub.assparse,
        "as_scipy": arrayhub.as_scipy,
        "pickle": importlib.import_module("pickle"),
    }


SCIPY = (
    Route("assparse(csr)", SOME),
    Route("assparse(coo)", SOME),
    Route("assparse(bsr)", SOME),
    Route("assparse(tensor)", SOME),
    Route("assparse(lil)", FEW, "BufferError"),
    Route("assparse(csr, copy=True)", SOME),
    Route("as_torch(s)", SOME),
    Route("as_torch(csr)", FEW),
    Route("as_torch(coo)", FEW, "BufferError"),
    Route("as_torch(coo, copy=None)", FEW),
    Route("as_torch(bad)", FEW, "ValueError"),
    Route("as_scipy(s)", FEW),
    Route("as_scipy(tensor)", FEW),
    Route("as_numpy(csr)", FEW, "BufferError"),
    Route("asarray(csr)", FEW, "TypeError"),
    Route("s.T", SOME),
    Route("s.to_dense()", FEW),
    Route("assparse(csr).canonical", FEW),
    Route("pickle.loads(pickle.dumps(s, 5))", FEW),
)


class Library(NamedTuple):
    """The statements of a library, and a function that returns the names that they use in addition to the host's."""

    names: object
    routes: tuple
    module: str | None = None


LIBRARIES = {
    "host": Library(dict, HOST),
    "torch": Library(torch, TORCH, "torch"),
    "jax": Library(jax, JAX, "jax"),
    "pyarrow": Library(pyarrow, PYARROW, "pyarrow"),
    "tvm_ffi": Library(tvm_ffi, TVM_FFI, "tvm_ffi"),
    "dpnp": Library(dpnp, DPNP, "dpnp"),
    "numba": Library(numba, NUMBA, "numba"),
    "scipy": Library(scipy, SCIPY, "scipy"),
    "xarray": Library(xarray, XARRAY, "xarray"),
}


def namespace(library):
    """Return the names that a library's statements use."""
    return {**host(), **LIBRARIES[library].names()}


def installed(library):
    """Return whether the library of a table is installed."""
    module = LIBRARIES[library].module
    return module is None or importlib.util.find_spec(module) is not None


def runner(route, names):
    """Compile a route into a function that runs the statement once for each item of an iterable."""
    body = f"{route.statement}"
    if route.error:
        body = f"try: {body}\n    except {route.error}: pass\n    else: raise AssertionError('no {route.error}')"
    scope = dict(names)
    source = f"def run(times):\n  for _ in times:\n    {body}\n"
    exec(compile(source, route.statement, "exec"), scope)
    return scope["run"]
