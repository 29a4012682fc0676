"""``__sycl_usm_array_interface__`` version 1: parse and emit. Source of every rule: dpctl's
documentation of the attribute, and its page on zero-copy data exchange by SYCL USM."""

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    IMMUTABLE,
    USM_DEVICE,
    WRITEABLE,
    Descriptor,
    block_of,
    extent,
    get_dtype,
    seal,
)
from arrayhub._core.device cimport UNRESOLVED_ID, DLDevice, kDLOneAPI
from arrayhub._core.memory cimport MemoryBlock
from arrayhub._core.runtime cimport host_ready
from arrayhub.adapters cimport buffer
from arrayhub.adapters.interface_dict cimport new_from_dict, set_pointer
from arrayhub.adapters.interface_keys cimport (
    DATA,
    OFFSET,
    SYCLOBJ,
    TYPESTR,
    Entries,
    begin,
    dict_error,
    entry,
    let_go,
    read,
    whole,
)
from arrayhub.adapters.table cimport SYCL_DICT
from arrayhub.adapters.type_cache cimport SYCL_IS_READONLY, record_of
from arrayhub.runtimes cimport sycl
from arrayhub.runtimes.sycl cimport NAME


cdef Descriptor parse(object obj, object stream):
    """An array on the USM that an object's interface dict describes, or None where it has none.

    The pointer is checked before anything else touches it: all bytes that the view reaches must lie in one allocation of
    USM of the context that ``syclobj`` names.

    Raises
    ------
    InterfaceError
        A key that is missing, of a wrong type, or contradicts another; a pointer that is not USM there.
    """
    cdef Entries entries
    interface = getattr(obj, NAME, None)
    if interface is None:
        return None
    begin(&entries)
    try:
        read(interface, SYCL_DICT, &entries)
        return described(obj, &entries)
    finally:
        let_go(&entries)


cdef Descriptor described(object obj, const Entries* entries):
    """The array that the entries of an interface dict describe."""
    cdef Py_ssize_t distance
    cdef Descriptor a = new_from_dict(entries, SYCL_DICT, None)
    data = entry(entries, DATA)
    offset = entry(entries, OFFSET)
    if layout.checked_mul(0 if offset is None else whole(offset, SYCL_DICT, "offset", -1), a.itemsize_, &distance):
        raise dict_error(SYCL_DICT, "offset", offset, "elements whose bytes stay below 2**63")
    if a.dl_dtype_.code == dtypes.NO_DLPACK:     # which has numbers for just the types that SYCL has
        raise dict_error(SYCL_DICT, "typestr", entry(entries, TYPESTR),
                         "a bool, integer, floating-point or complex type that SYCL has, in native byte order, such as '|f8'")
    if data is None:
        return on_buffer(a, obj, entries, distance)
    set_pointer(a, tuple(data) if type(data) is list else data)     # oneDAL's tables write a list
    if a.data_ != NULL:
        if layout.checked_add(<Py_ssize_t> a.data_, distance, &distance):
            raise dict_error(SYCL_DICT, "offset", offset, "an offset that stays in the address space")
        a.data_ = <char*> distance
    seal(a)
    on_pointer(a, obj, entry(entries, SYCLOBJ))
    # The Memory classes mean writable by the True that means read-only everywhere else.
    if not a.flags_ & WRITEABLE and sycl.speaks_as_memory(obj):
        a.flags_ |= WRITEABLE
    if record_of(obj) & SYCL_IS_READONLY:
        a.flags_ &= ~WRITEABLE
    return a


cdef int on_pointer(Descriptor a, object obj, object syclobj) except -1:
    """Complete an array on a foreign pointer: which queue it belongs to, which kind of USM it is, who keeps it alive."""
    cdef Py_ssize_t low, high
    cdef int usm_type
    cdef char* lowest
    extent(a, &low, &high)
    lowest = a.data_ + low
    queue = sycl.queue_from(syclobj, NULL if high == low else lowest)
    if high > low:
        usm_type = checked_usm_type(lowest, high - low, queue)
    else:      # nothing to check, and the pointer may be anything; where it is USM, its kind is the array's
        usm_type = sycl.usm_type_of(lowest, queue) or USM_DEVICE
    sycl.place_in(a, obj, usm_type)
    a.producer_ = queue
    return 0


cdef int checked_usm_type(char* lowest, Py_ssize_t nbytes, object queue) except -1:
    """The kind of USM that a run of bytes is, all of it."""
    cdef bint inside
    cdef int usm_type = sycl.usm_type_of_run(lowest, nbytes, queue, &inside)
    if usm_type == 0:
        raise dict_error(
            SYCL_DICT, "data", f"{<size_t> lowest:#x}",
            "a pointer to USM of the context that syclobj names; host memory comes in by the buffer protocol",
        )
    if not inside:
        raise dict_error(
            SYCL_DICT, "shape, strides and offset", f"{nbytes} bytes from {<size_t> lowest:#x}",
            "a view that stays inside its USM allocation",
        )
    return usm_type


cdef Descriptor on_buffer(Descriptor a, object obj, const Entries* entries, Py_ssize_t distance):
    """An array on the object's own buffer, which the specification puts in place of a missing ``data``.

    The buffer may be USM of the kinds the host can read, or ordinary host memory.
    """
    cdef Py_ssize_t low, high, start, end
    cdef Descriptor exported = buffer.parse(obj, None)
    if exported is None or not exported.flags_ & C_CONTIGUOUS:
        raise dict_error(SYCL_DICT, "data", None, "a pair (address, read-only), or an object with a contiguous buffer")
    cdef MemoryBlock block = block_of(exported)
    a.data_ = exported.data_
    seal(a)
    extent(a, &low, &high)
    if layout.checked_add(distance, low, &start) or start < 0 \
            or layout.checked_add(distance, high, &end) or end > block.nbytes_:
        raise dict_error(SYCL_DICT, "shape, strides and offset", (a.shape, a.byte_strides, distance),
                         f"a view that stays inside the buffer's {block.nbytes_} bytes")
    a.data_ += distance
    a.flags_ |= exported.flags_ & (WRITEABLE | IMMUTABLE)
    seal(a)
    cdef int usm_type = 0
    syclobj = entry(entries, SYCLOBJ)
    if syclobj is not None and block.nbytes_ > 0:
        queue = sycl.queue_from(syclobj, block.address_)
        usm_type = sycl.usm_type_of(block.address_, queue)
    if usm_type != 0:
        a.producer_ = queue
        block.device_ = DLDevice(kDLOneAPI, UNRESOLVED_ID)
    a.device_ = block.device_
    a.usm_type_ = usm_type
    a.block_ = block
    a.base_ = obj
    return a


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
    cdef bint countable = distance % a.itemsize_ == 0     # in elements, as the offset must be
    return {
        "data": (<size_t> (block.address_ if countable else a.data_), not a.flags_ & WRITEABLE),
        "shape": a.shape,
        "strides": None if a.flags_ & C_CONTIGUOUS else a.strides,
        "typestr": "|" + row.typestr.decode(),
        "version": 1,
        "syclobj": sycl.queue_of(a),
        "offset": distance // a.itemsize_ if countable else 0,
    }
