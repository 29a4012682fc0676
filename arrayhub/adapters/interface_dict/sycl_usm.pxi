"""Import and export ``__sycl_usm_array_interface__`` version 1.

Sources: dpctl's documentation of the attribute, and dpctl's page on zero-copy data exchange with SYCL USM.
"""

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    IMMUTABLE,
    UNRESOLVED_ID,
    USM_DEVICE,
    WRITEABLE,
    Descriptor,
    DLDevice,
    MemoryBlock,
    block_of,
    extent,
    get_dtype,
    kDLOneAPI,
    seal,
)
from arrayhub._core.runtime cimport host_ready
from arrayhub.adapters cimport buffer
from arrayhub.adapters.table cimport SYCL_DICT
from arrayhub.adapters.type_cache cimport SYCL_IS_READONLY, record_of
from arrayhub.runtimes cimport sycl
from arrayhub.runtimes.sycl cimport NAME


cdef Descriptor parse_sycl_usm(object obj, object stream):
    """Import the USM that an object's interface dict describes. Return None if the object does not have the attribute.

    The pointer is validated before it is used: all bytes that the view reaches must be in one USM allocation of the context
    of ``syclobj``.

    Raises
    ------
    InterfaceError
        A key is missing, a value is invalid, has the wrong type or contradicts another value, or the pointer is not USM of
        this context.
    """
    cdef Entries entries
    interface = getattr(obj, NAME, None)
    if interface is None:
        return None
    begin(&entries)
    try:
        read(interface, SYCL_DICT, &entries)
        return described_sycl_usm(obj, &entries)
    finally:
        release_values(&entries)


cdef Descriptor described_sycl_usm(object obj, const Entries* entries):
    """Return the array that the entries of an interface dict describe."""
    cdef Py_ssize_t distance
    cdef Descriptor a = new_from_dict(entries, SYCL_DICT, None)
    data = entry(entries, DATA)
    offset = entry(entries, OFFSET)
    if layout.checked_mul(0 if offset is None else integer(offset, SYCL_DICT, "offset", -1), a.itemsize_, &distance):
        raise dict_error(SYCL_DICT, "offset", offset, "an offset in elements, of less than 2**63 bytes")
    if a.dl_dtype_.code == dtypes.NO_DLPACK:     # a type string can name types that SYCL lacks, such as f16
        raise dict_error(SYCL_DICT, "typestr", entry(entries, TYPESTR),
                         "a bool, integer, floating-point or complex type of SYCL in native byte order, such as '|f8'")
    if data is None:
        return on_buffer(a, obj, entries, distance)
    set_pointer(a, tuple(data) if type(data) is list else data)     # oneDAL's tables use a list
    if a.data_ != NULL:
        if layout.checked_add(<Py_ssize_t> a.data_, distance, &distance):
            raise dict_error(SYCL_DICT, "offset", offset, "an offset within the address space")
        a.data_ = <char*> distance
    seal(a)
    on_pointer(a, obj, entry(entries, SYCLOBJ))
    # In dpctl's Memory classes, the second item of "data" is True for writable memory. The specification defines True as
    # read-only.
    if not a.flags_ & WRITEABLE and sycl.speaks_as_memory(obj):
        a.flags_ |= WRITEABLE
    if record_of(obj) & SYCL_IS_READONLY:
        a.flags_ &= ~WRITEABLE
    return a


cdef int on_pointer(Descriptor a, object obj, object syclobj) except -1:
    """Set the queue, the USM type and the owner of an array on a foreign pointer."""
    cdef Py_ssize_t low, high
    cdef int usm_type
    cdef char* lowest
    extent(a, &low, &high)
    lowest = a.data_ + low
    queue = sycl.queue_from(syclobj, NULL if high == low else lowest)
    if high > low:
        usm_type = checked_usm_type(lowest, high - low, queue)
    else:      # the pointer of an array without elements may be invalid; if it is USM, use its USM type
        usm_type = sycl.usm_type_of(lowest, queue) or USM_DEVICE
    sycl.set_usm(a, obj, usm_type)
    a.producer_ = queue
    return 0


cdef int checked_usm_type(char* lowest, Py_ssize_t nbytes, object queue) except -1:
    """Return the USM type of a range of bytes. Raise InterfaceError unless the range is in one allocation."""
    cdef bint inside
    cdef int usm_type = sycl.usm_type_of_run(lowest, nbytes, queue, &inside)
    if usm_type == 0:
        raise dict_error(
            SYCL_DICT, "data", f"{<size_t> lowest:#x}",
            "a pointer to USM of the context of syclobj. For host memory use the buffer protocol",
        )
    if not inside:
        raise dict_error(
            SYCL_DICT, "(shape, strides, offset)", f"{nbytes} bytes from {<size_t> lowest:#x}",
            "a view within one USM allocation",
        )
    return usm_type


cdef Descriptor on_buffer(Descriptor a, object obj, const Entries* entries, Py_ssize_t distance):
    """Return an array backed by the buffer of `obj`, as the specification requires when ``data`` is missing.

    The memory is host-readable USM if the buffer is USM of the context of ``syclobj``, else ordinary host memory.
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
        raise dict_error(SYCL_DICT, "(shape, strides, offset)", (a.shape, a.byte_strides, distance),
                         f"a view within the {block.nbytes_} bytes of the buffer")
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


cdef object emit_sycl_usm(Descriptor a):
    """Return the interface dict of `a`, after waiting for the work submitted to its queue.

    As in dpctl, ``data`` is the start of the memory block, and ``offset`` is the distance to element zero. If this distance is
    not a multiple of the item size, ``data`` is the address of element zero, and ``offset`` is 0.

    Raises
    ------
    AttributeError
        The memory is not USM, or the interface cannot represent the type or the strides.
    """
    if not a.usm_type_:
        raise AttributeError(f"{NAME}: the memory is not SYCL USM; call arrayhub.to_device(x, 'oneapi:0'), which copies it")
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row.typestr == NULL or a.strides_ == NULL or a.dl_dtype_.code == dtypes.NO_DLPACK:
        raise AttributeError(
            f"{NAME}: the interface cannot represent elements of type {get_dtype(a)!r} with byte strides {a.byte_strides};"
            " use DLPack or x.copy()"
        )
    host_ready(a)
    cdef MemoryBlock block = block_of(a)
    cdef Py_ssize_t distance = a.data_ - block.address_
    cdef bint countable = distance % a.itemsize_ == 0     # the offset is in elements
    return {
        "data": (<size_t> (block.address_ if countable else a.data_), not a.flags_ & WRITEABLE),
        "shape": a.shape,
        "strides": None if a.flags_ & C_CONTIGUOUS else a.strides,
        "typestr": "|" + row.typestr.decode(),
        "version": 1,
        "syclobj": sycl.queue_of(a),
        "offset": distance // a.itemsize_ if countable else 0,
    }
