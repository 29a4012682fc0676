"""torch: export as tensors through the C exchange table, after checks that the table omits."""

import sys

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport intptr_t

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    PACKED,
    WRITEABLE,
    Descriptor,
    kDLCPU,
    kDLCUDA,
    name_of_elements,
    shape_tuple,
    size_of,
)
from arrayhub._core.runtime cimport order_consumer
from arrayhub.adapters cimport dlpack
from arrayhub.adapters.dlpack_abi cimport (
    DL_READ_ONLY,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    kDLBfloat,
    kDLBool,
    kDLComplex,
    kDLFloat,
    kDLInt,
    kDLUInt,
)
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, refuse_without_device
from arrayhub.runtimes.host cimport for_host_library

from arrayhub._core.errors import Refusal


cdef object emit(Descriptor a, bint copied, bint allow_readonly):
    """Export `a` as a ``torch.Tensor`` that shares its memory.

    Raises
    ------
    BufferError
        - The memory is read-only, which torch does not support, and `allow_readonly` is False.
        - A stride is negative. torch would end the process.
        - torch does not support the device, the element type or the alignment.
    """
    cdef DLManagedTensorVersioned* managed
    cdef void* result = NULL
    cdef DLPackExchangeAPI* api = table()
    # In the usual case, compact writeable host memory, torch accepts all arrays except unaligned complex128.
    if (a.device_.device_type != kDLCPU or a.flags_ & (C_CONTIGUOUS | WRITEABLE) != C_CONTIGUOUS | WRITEABLE
            or dtypes.bits_of(a.dl_dtype_) == 128):
        a = acceptable(a, allow_readonly, api)
    if not surely_known(a):
        check_elements(a)
        check_empty(a)
    managed = dlpack.new_managed(a)
    managed.flags &= ~<unsigned long long> DL_READ_ONLY
    # If the table rejects a type, the managed tensor is neither consumed nor deleted. A type that the table may reject is
    # therefore exported through a capsule, which frees the managed tensor.
    if api == NULL or not surely_known(a):
        return by_capsule(a, dlpack.capsule_of(managed))
    if api.managed_tensor_to_py_object_no_sync(managed, &result) != 0:
        raise pending_as_torch_error(a)
    tensor = <object> <PyObject*> result
    Py_DECREF(tensor)
    return tensor


cdef Descriptor acceptable(Descriptor a, bint allow_readonly, DLPackExchangeAPI* api):
    """Return `a`, or a view of its memory on a device that torch supports.

    For CUDA memory, make torch's current stream wait for the producer's work. Raise BufferError if torch does not support the
    memory.
    """
    a = for_host_library(a, "torch", kDLCUDA)
    check_memory(a, allow_readonly)
    if a.device_.device_type == kDLCUDA:
        order_current_stream(a, api)
    return a


cdef int check_memory(Descriptor a, bint allow_readonly) except -1:
    """Raise Refusal for memory that torch cannot share: read-only memory, negative strides, and some addresses."""
    cdef int k
    refuse_without_device(a, "torch")
    if not allow_readonly and not a.flags_ & WRITEABLE:
        raise Refusal("torch", "the memory is read-only, and torch does not have read-only tensors",
                      "writable memory, or allow_readonly=True if nothing writes to the tensor")
    if not a.flags_ & PACKED:
        for k in range(a.nd_):
            if a.byte_strides_[k] < 0 and a.shape_[k] > 1:
                raise Refusal("torch", "negative strides are not supported")
    return check_start(a)


# Element types that torch's from_dlpack accepts.
cdef frozenset _ELEMENTS = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
))


cdef int check_elements(Descriptor a) except -1:
    dlpack.check_exportable(a)
    name = name_of_elements(a)
    if name not in _ELEMENTS:
        raise Refusal("torch", f"elements of type {name} are not supported")
    return 0


def check(Descriptor array not None, bint copied):
    """Raise the Refusal of `as_torch` for an array, or for its copy, without converting it."""
    if not copied:
        array = for_host_library(array, "torch", kDLCUDA)
        check_memory(array, False)
    check_elements(array)
    check_empty(array)


cdef int check_start(Descriptor a) except -1:
    """Reject an address for which torch would end the process.

    torch's vector instructions require 16-byte alignment for complex128, and its CUDA kernels require element-size
    alignment for every type.
    """
    cdef size_t needed = a.itemsize_ if a.device_.device_type == kDLCUDA else 16 if dtypes.bits_of(a.dl_dtype_) == 128 else 1
    if needed > 1 and <size_t> a.data_ % needed != 0 and size_of(a) != 0:
        raise Refusal("torch", f"the elements start at address {<size_t> a.data_:#x}", f"{needed}-byte boundaries")
    return 0


cdef int check_empty(Descriptor a) except -1:
    """Reject an empty array whose lengths overflow in torch.

    torch would call the deleter without consuming the capsule, which would then call the deleter again.
    """
    cdef Py_ssize_t total = a.itemsize_
    cdef int k
    if size_of(a) != 0 or a.flags_ & PACKED:
        return 0
    for k in range(a.nd_):
        if a.shape_[k] > 1 and layout.checked_mul(total, a.shape_[k], &total):
            raise Refusal("torch", f"the lengths {shape_tuple(a)} of an empty array overflow in torch",
                          "lengths whose product, without zeros, is less than 2**63 bytes")
    return 0


cdef int order_current_stream(Descriptor a, DLPackExchangeAPI* api) except -1:
    """Make torch's current stream wait for the producer's work, as ``torch.from_dlpack`` would."""
    cdef void* stream = NULL
    if api == NULL or api.current_work_stream == NULL:
        return order_consumer(a, sys.modules["torch"].cuda.current_stream(a.device_.device_id))
    if api.current_work_stream(kDLCUDA, a.device_.device_id, &stream) != 0:
        dlpack.raise_pending("torch's current_work_stream")
    return order_consumer(a, <intptr_t> stream if stream != NULL else <intptr_t> LEGACY_STREAM)


cdef bint surely_known(Descriptor a) noexcept:
    """Return whether every torch release with an exchange table supports the element type.

    These types are integers, floats, complex numbers, booleans and bfloat16 of at least one byte, without vector lanes.
    """
    return (a.dl_dtype_.code in (kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLComplex, kDLBool)
            and a.dl_dtype_.bits == 8 * a.itemsize_)


cdef object by_capsule(Descriptor a, object capsule):
    try:
        return sys.modules["torch"].from_dlpack(capsule)
    except Exception as error:       # RuntimeError, BufferError or AssertionError, depending on the version and the device
        raise torch_error(a, error) from None


cdef object pending_as_torch_error(Descriptor a):
    """Convert the error that torch's exchange table reported."""
    try:
        dlpack.raise_pending("torch's managed_tensor_to_py_object_no_sync")
    except (BufferError, RuntimeError) as error:
        result = torch_error(a, error)
    return result


cdef object torch_error(Descriptor a, object error):
    """Build a BufferError with the first line of torch's message, which continues with a C++ backtrace."""
    return Refusal(
        "torch",
        f"elements of type {dtypes.by_typenum(a.typenum_).name.decode()} are not supported ({first_line(error)})",
    )
