"""The consumers of the matrix: for each, functions that import a USMArray and inspect the result."""

import functools
from typing import NamedTuple

import numpy as np
from numpy_release import FROM_DLPACK_WRITES, HAS_DLPACK_1

import arrayhub as ah

from .memory import FULL, buffer_address, called, elements_at


class Consumer(NamedTuple):
    """A consumer, which is one column of docs/matrix.md.

    Attributes
    ----------
    name : str
    library : str or None
        Library to import.
    take : callable
        Converts a USMArray to the consumer's array.
    address : callable
        Returns the address of element zero of the consumer's array, or of its lowest byte if `whole_reach` is true.
    values : callable
        Returns the elements of the consumer's array in C order as bytes. If `whole_reach` is true, the result also
        contains the bytes between the elements.
    dtype : callable or None
        Returns the element type of the consumer's array as `Element.dtype` or `Element.name`. The function returns
        None if the consumer does not report the type.
    readonly : callable or None
        Returns whether the consumer's array rejects writes. None if the consumer does not report this.
    write : callable or None
        Sets the first element of the consumer's array to zero, or all of its bytes if `whole_reach` is true.
    whole_reach : bool
        Whether the consumer's array consists of bytes, without shape and element type.
    """

    name: str
    library: str | None
    take: object
    address: object
    values: object
    dtype: object = None
    readonly: object = None
    write: object = None
    whole_reach: bool = False


# ------------------------------------------------------------------------------------------------------------- numpy


def _ndarray_write(a):
    first = (0,) * a.ndim
    a[first] = np.zeros((), a.dtype)


def _numpy_row(name, take, writes=True):
    return Consumer(
        name, None, take,
        address=lambda a: a.ctypes.data,
        values=lambda a: a.tobytes(),
        dtype=lambda a: a.dtype,
        readonly=(lambda a: not a.flags.writeable) if writes else None,
        write=_ndarray_write if writes else None,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- others


def _torch_values(t):
    size = t.element_size()
    return elements_at(t.data_ptr(), tuple(t.shape), tuple(s * size for s in t.stride()), size)


def _take_jax(u):
    import jax

    with jax.enable_x64(True):
        return ah.as_jax(u)


def _dpnp_address(x):
    interface = x.__sycl_usm_array_interface__
    return interface["data"][0] + interface["offset"] * x.itemsize


def _dpnp_values(x):
    import dpnp

    return dpnp.asnumpy(x).tobytes()


def _dpnp_write(x):
    x[(0,) * x.ndim] = 0
    x.sycl_queue.wait()


def _arrow_write(buffer):
    memoryview(buffer).cast("B")[:] = bytes(buffer.size)


def _tvm_values(t):
    x = ah.to_host(ah.asarray(t, via="dlpack"))
    return elements_at(x.ptr, x.shape, x.byte_strides, x.itemsize)


def _tvm_dtype(t):
    try:
        return str(t.dtype)
    except ValueError:  # tvm-ffi imports complex numbers, but does not have a name for their type
        return None


@functools.cache
def _compiled_address():
    import numba

    @numba.njit
    def address(a):
        return a.ctypes.data

    return address


def _take_numba(u):
    import numba

    view = ah.as_numba(u)
    # Reject types that numba lacks. A compiled function would also reject them, but would leak the array. If it was
    # compiled for the native type before, it would read elements in non-native byte order as native elements.
    numba.typeof(view)
    _compiled_address()(view)
    return view


CONSUMERS = [
    _numpy_row("numpy.asarray", np.asarray),
    _numpy_row("numpy.from_dlpack", np.from_dlpack, writes=FROM_DLPACK_WRITES),
    Consumer(
        "memoryview", None, memoryview,
        address=buffer_address,
        values=lambda m: m.tobytes(),
        readonly=lambda m: m.readonly,
        write=lambda m: buffer_address(m, FULL, bytes(m.itemsize)),
    ),
    Consumer(
        "torch", "torch", ah.as_torch,
        address=lambda t: t.data_ptr(),
        values=_torch_values,
        dtype=lambda t: str(t.dtype).removeprefix("torch."),
        write=lambda t: t[(0,) * t.ndim].zero_(),
    ),
    Consumer(
        "jax", "jax", _take_jax,
        address=lambda a: a.unsafe_buffer_pointer(),
        values=lambda a: np.asarray(a).tobytes(),
        dtype=lambda a: a.dtype,
    ),
    Consumer(
        "dpnp", "dpnp", ah.as_dpnp,
        address=_dpnp_address,
        values=_dpnp_values,
        dtype=lambda x: x.dtype,
        readonly=lambda x: not x.flags.writable,
        write=_dpnp_write,
    ),
    Consumer(
        "dpctl.memory", "dpctl", called("dpctl.memory", "as_usm_memory"),
        address=lambda m: m._pointer,
        values=lambda m: m.copy_to_host().tobytes(),
        write=lambda m: m.copy_from_host(bytes(m.nbytes)),
        whole_reach=True,
    ),
    Consumer(
        "pyarrow", "pyarrow", called("pyarrow", "py_buffer"),
        address=lambda b: b.address,
        values=lambda b: b.to_pybytes(),
        readonly=lambda b: not b.is_mutable,
        write=_arrow_write,
        whole_reach=True,
    ),
    Consumer(
        "tvm-ffi", "tvm_ffi", called("tvm_ffi", "from_dlpack"),
        address=lambda t: t.data_ptr(),
        values=_tvm_values,
        dtype=_tvm_dtype,
    ),
    Consumer(
        "array_api_strict", "array_api_strict", called("array_api_strict", "from_dlpack"),
        address=lambda x: np.asarray(x, copy=False).ctypes.data,
        values=lambda x: np.asarray(x, copy=False).tobytes(),
        dtype=lambda x: np.asarray(x, copy=False).dtype,
        readonly=(lambda x: not np.asarray(x, copy=False).flags.writeable) if FROM_DLPACK_WRITES else None,
        write=(lambda x: _ndarray_write(np.asarray(x, copy=False))) if FROM_DLPACK_WRITES else None,
    ),
    Consumer(
        "numba", "numba", _take_numba,
        address=lambda a: _compiled_address()(a),
        values=lambda a: a.tobytes(),
        dtype=lambda a: a.dtype,
        readonly=lambda a: not a.flags.writeable,
        write=_ndarray_write,
    ),
]  # fmt: skip

# With NumPy 2.0, these consumers request legacy capsules, which cannot represent read-only memory.
if not HAS_DLPACK_1:
    CONSUMERS = [row for row in CONSUMERS if row.name not in ("numpy.from_dlpack", "array_api_strict")]
