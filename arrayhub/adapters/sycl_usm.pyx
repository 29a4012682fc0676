"""``__sycl_usm_array_interface__`` version 1: parse and emit. Source of every rule: seeds 002 and 003."""

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    SYCL_DICT,
    WRITEABLE,
    Descriptor,
    block_of,
    extent,
    get_dtype,
    new_array,
    seal,
    set_dtype,
    set_type,
    size_of,
)
from arrayhub._core.device cimport UNRESOLVED_ID, DLDevice, kDLOneAPI
from arrayhub._core.memory cimport USM, MemoryBlock, new_block
from arrayhub._core.runtime cimport host_ready
from arrayhub.adapters cimport buffer
from arrayhub.runtimes cimport sycl

from arrayhub._core.errors import interface_error, show

cdef str NAME = "__sycl_usm_array_interface__"


cdef Descriptor parse(object obj, object stream):
    """An array on the USM that an object's interface dict describes, or None where it has none.

    The pointer is checked before anything else touches it: the first and the last byte that the view reaches must be USM
    of the context that ``syclobj`` names.

    Raises
    ------
    InterfaceError
        A key that is missing, of a wrong type, or contradicts another; a pointer that is not USM there.
    """
    interface = getattr(obj, NAME, None)
    if interface is None:
        return None
    if sycl.is_memory(obj):        # their data[1] means writable, not read-only
        from arrayhub.libraries.dpctl import parse_memory_object
        return parse_memory_object(obj)
    if type(interface) is not dict:
        raise interface_error(NAME, "the attribute", interface, "a dict")
    return None


cdef object emit(Descriptor a):
    """The interface dict of `a`, once its queue has done what was submitted.

    ``data`` is where the memory block starts and ``offset`` leads to element zero, as dpctl writes it.

    Raises
    ------
    AttributeError
        The memory is not USM, or the type or the strides are none that the interface can say.
    """
    if not a.usm_type_:
        raise AttributeError(f"{NAME}: the memory is not SYCL USM; arrayhub.to_device(x, 'oneapi:0') copies it there")
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row.typestr == NULL or a.strides_ == NULL or a.dl_dtype_.code == dtypes.NO_DLPACK:
        raise AttributeError(
            f"{NAME}: it cannot say elements of type {get_dtype(a)!r} with byte strides {a.byte_strides}; DLPack or copy()"
            " may"
        )
    host_ready(a)
    cdef MemoryBlock block = block_of(a)
    cdef Py_ssize_t distance = a.data_ - block.address_
    cdef bint whole = distance % a.itemsize_ == 0
    return {
        "data": (<size_t> (block.address_ if whole else a.data_), not a.flags_ & WRITEABLE),
        "shape": a.shape,
        "strides": None if a.flags_ & C_CONTIGUOUS else a.strides,
        "typestr": "|" + row.typestr.decode(),
        "version": 1,
        "syclobj": sycl.queue_of(a),
        "offset": distance // a.itemsize_ if whole else 0,
    }
