"""Constructor of the USM array specification: a layout on new USM, new host memory or existing memory."""

from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.string cimport memcpy

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    BOUNDARY,
    C_CONTIGUOUS,
    CONSTRUCTED,
    COPIED,
    F_CONTIGUOUS,
    IMMUTABLE,
    OTHER_CONTEXT,
    PACKED,
    WRITEABLE,
    Descriptor,
    DLDevice,
    MemoryBlock,
    allocate,
    block_of,
    copy_fields,
    integer,
    kDLCPU,
    new_array,
    reserve,
    seal,
    set_dtype,
)
from arrayhub.adapters cimport buffer as buffer_adapter
from arrayhub.runtimes cimport sycl

from arrayhub._core.copying import check_copy
from arrayhub._core.descriptor import USM_NAMES
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import PASSES_ON, show

cdef dict _USM_TYPES = {name: number for number, name in enumerate(USM_NAMES) if name is not None}
cdef tuple _OPTIONS = ("queue", "alignment", "copy")
cdef str _BUFFERS = (
    "'device', 'shared', 'host' (USM; also with the prefix 'usm_'), 'cpu', a dpctl.memory object, a USMArray, or an object"
    " with a writable buffer"
)


cdef int fill_new(Descriptor a, object shape, object dtype, object buffer, object strides, object offset,
                  object order, object buffer_ctor_kwargs) except -1:
    """Implement ``USMArray(...)`` for a new array."""
    # Fill a separate array first. Methods of the arguments may run Python code, which must not see an array without memory.
    cdef Descriptor layout_ = new_layout(shape, dtype, strides, order)
    cdef Py_ssize_t end
    cdef Py_ssize_t start = find_start(layout_, integer(offset, "USMArray: offset"), isinstance(buffer, str), &end)
    use_memory(layout_, buffer, read_options(buffer_ctor_kwargs), end)
    cdef Py_ssize_t nbytes = block_of(layout_).nbytes_
    if end > nbytes:      # the specification does not require this check
        raise ValueError(
            f"USMArray: shape {layout_.shape}, strides and offset need {end} bytes, but the memory has {nbytes} bytes;"
            " accepted: a layout inside the memory"
        )
    reserve(a, layout_.nd_)
    copy_fields(layout_, a)
    a.block_ = layout_.block_
    a.data_ = a.block_.address_ + start
    memcpy(a.shape_, layout_.shape_, a.nd_ * sizeof(Py_ssize_t))
    memcpy(a.byte_strides_, layout_.byte_strides_, a.nd_ * sizeof(Py_ssize_t))
    seal(a)
    return 0


cdef Descriptor new_layout(object shape, object dtype, object strides, object order):
    """Return an array with a shape, an element type and byte strides, but without memory."""
    cdef list lengths = lengths_of(shape)
    cdef list steps = None if strides is None else as_integers(strides, "strides")
    cdef Py_ssize_t total
    cdef int k
    if len(lengths) > layout.MAX_NDIM:
        raise ValueError(f"USMArray: shape has {len(lengths)} dimensions; accepted: at most {layout.MAX_NDIM}")
    if any(length < 0 for length in lengths):
        raise ValueError(f"USMArray: shape is {show(shape)}; accepted: lengths of zero or more")
    if steps is not None and len(steps) != len(lengths):
        raise ValueError(f"USMArray: strides has {len(steps)} entries, shape has {len(lengths)}; accepted: the same number")
    if not isinstance(order, str) or order not in ("C", "F"):
        raise ValueError(f"USMArray: order is {show(order)}; accepted: 'C' or 'F'")
    cdef Descriptor a = new_array(<int> len(lengths))
    a.protocol_ = CONSTRUCTED
    set_dtype(a, element_type(dtype))
    for k in range(a.nd_):
        a.shape_[k] = lengths[k]
    cdef Py_ssize_t size = layout.count(a.nd_, a.shape_)
    if size < 0 or layout.checked_mul(size, a.itemsize_, &total) or fill_strides(a, steps, order == "F"):
        raise ValueError(f"USMArray: shape {show(shape)} with strides {show(strides)} is larger than the address space")
    return a


def element_type(dtype):
    """Return `dtype` as a NumPy dtype. Raise TypeError if it is a sub-array type or its item size is zero."""
    made = requested_dtype(dtype)
    if made.subdtype is not None or made.itemsize == 0:
        raise TypeError(
            f"dtype: {made!r}; accepted: an element type of one byte or more. Add the dimensions of a sub-array type to shape"
        )
    return made


cdef list lengths_of(object shape):
    try:
        return as_integers(shape, "shape")
    except TypeError as error:      # for example, `shape` is an array to import, or is omitted
        raise TypeError(f"{error}. To import an array, call arrayhub.asarray(x)") from None


cdef list as_integers(object values, str name):
    """Return the integers of a shape or of strides, given as a sequence or as one integer."""
    return [integer(value, f"USMArray: {name}") for value in (values if isinstance(values, (tuple, list)) else (values,))]


cdef bint fill_strides(Descriptor a, list steps, bint fortran) except -1:
    """Set byte strides from strides in elements, or compact strides if `steps` is None. Return whether a stride overflows."""
    cdef bint overflow = False
    cdef int k
    if steps is None:
        return layout.fill_strides(a.nd_, a.shape_, a.itemsize_, fortran, a.byte_strides_)
    for k in range(a.nd_):
        overflow |= layout.checked_mul(steps[k], a.itemsize_, &a.byte_strides_[k])
    return overflow


cdef Py_ssize_t find_start(Descriptor a, Py_ssize_t offset, bint is_new, Py_ssize_t* end) except -1:
    """Return the distance in bytes from the start of the memory to element zero, and set `end` to the required size.

    For new memory, an offset of 0 is replaced by the smallest valid offset.
    """
    cdef Py_ssize_t low, high
    if layout.reach(a.nd_, a.shape_, a.byte_strides_, a.itemsize_, &low, &high) or low < -PY_SSIZE_T_MAX:
        raise ValueError(f"USMArray: shape {a.shape} with byte strides {a.byte_strides} is larger than the address space")
    cdef Py_ssize_t least = -low // a.itemsize_, most = (PY_SSIZE_T_MAX - high) // a.itemsize_
    if is_new and offset == 0:
        offset = least
    if not least <= offset <= most:
        raise ValueError(f"USMArray: offset is {offset} elements; accepted: {least} to {most}")
    end[0] = offset * a.itemsize_ + high
    return offset * a.itemsize_


cdef dict read_options(object buffer_ctor_kwargs):
    """Validate `buffer_ctor_kwargs`, the arguments of dpctl's constructors, and return a copy."""
    try:
        options = {} if buffer_ctor_kwargs is None else dict(buffer_ctor_kwargs)
    except PASSES_ON:
        raise
    except Exception:      # raised by `keys` or `__iter__` of the argument
        raise TypeError(f"USMArray: buffer_ctor_kwargs is {show(buffer_ctor_kwargs)}; accepted: a dict") from None
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"USMArray: buffer_ctor_kwargs has {show(name)}; accepted: {', '.join(_OPTIONS)}")
    options["copy"] = check_copy(options.get("copy"), "USMArray")
    alignment = options.get("alignment")
    if alignment is not None:
        options["alignment"] = exact = integer(alignment, "USMArray: alignment")
        if exact < 0 or exact & (exact - 1):      # 0: dpctl chooses the alignment
            raise ValueError(f"USMArray: alignment is {exact}; accepted: a power of two, in bytes")
    return options


cdef int use_memory(Descriptor a, object buffer, dict options, Py_ssize_t nbytes) except -1:
    """Set the memory of `a`. `buffer` names a kind of memory to allocate, or is an object that has memory."""
    if isinstance(buffer, str):
        if buffer == "cpu":
            return take_host(a, options, nbytes)
        kind = buffer.removeprefix("usm_")     # also accept the names of ``memory=`` in `empty`
        if kind in _USM_TYPES:
            return allocate_usm(a, kind, options, nbytes)
        raise ValueError(f"USMArray: buffer is {show(buffer)}; accepted: {_BUFFERS}")
    if sycl.is_memory(buffer):
        use_memory_object(a, buffer, options)
    else:
        share_block(a, buffer if isinstance(buffer, Descriptor) else import_buffer(buffer), options)
    if a.usm_type_:
        check_usm_type(a)
    return check_options(a, options)


cdef int take_host(Descriptor a, dict options, Py_ssize_t nbytes) except -1:
    if options.get("queue") is not None:
        raise ValueError("USMArray: queue is given for buffer='cpu'; accepted: buffer='host', 'shared' or 'device'")
    cdef MemoryBlock block = allocate(nbytes, max(<Py_ssize_t> (options.get("alignment") or 0), BOUNDARY))
    a.block_ = block
    a.base_ = block
    a.device_ = DLDevice(kDLCPU, 0)
    a.flags_ |= WRITEABLE
    return 0


cdef int allocate_usm(Descriptor a, str kind, dict options, Py_ssize_t nbytes) except -1:
    check_usm_type(a)
    options = {name: value for name, value in options.items() if value is not None and name != "copy"}
    sycl.check_element(a, options.get("queue"), "USMArray")
    cdef MemoryBlock block = sycl.block_of_memory(sycl.new_memory(kind, nbytes, options))
    alignment = options.get("alignment") or 1
    if <size_t> block.address_ % alignment != 0:      # the runtime ignores an alignment that it does not support
        raise MemoryError(f"cannot allocate {nbytes} bytes of USM-{kind} memory with an alignment of {alignment} bytes")
    block.nbytes_ = nbytes
    sycl.place(a, block, _USM_TYPES[kind])
    a.flags_ |= WRITEABLE
    return 0


cdef int use_memory_object(Descriptor a, object memory, dict options) except -1:
    """Set the memory of `a` to a dpctl.memory object, or to a copy of the object."""
    if options.pop("copy", None):
        # Two steps, because Memory(x, copy=True) keeps x alive forever.
        memory.sycl_queue.wait()
        options = {"queue": memory.sycl_queue, **{name: value for name, value in options.items() if value is not None}}
        fresh = sycl.new_memory(memory.get_usm_type(), memory.nbytes, options)
        fresh.copy_from_device(memory)
        memory = fresh
        a.flags_ |= COPIED
    sycl.place(a, sycl.block_of_memory(memory), sycl.memory_usm_type(memory))
    a.flags_ |= WRITEABLE
    return 0


cdef int share_block(Descriptor a, Descriptor other, dict options) except -1:
    """Set the memory of `a` to the memory block of another array, with the same access."""
    if options.get("copy"):
        raise ValueError("USMArray: copy=True is accepted only for dpctl.memory objects; copy the buffer first")
    if other.flags_ & PACKED:
        raise ValueError("USMArray: buffer is a packed array; accepted: an array of whole bytes")
    a.block_ = block_of(other)
    a.base_ = other.base_
    a.device_ = other.device_
    a.usm_type_ = other.usm_type_
    a.stream_ = other.stream_
    a.producer_ = other.producer_
    a.flags_ |= other.flags_ & (WRITEABLE | IMMUTABLE | OTHER_CONTEXT | COPIED)
    return 0


cdef Descriptor import_buffer(object obj):
    """Import the writable and contiguous buffer that an object exports."""
    cdef Descriptor exported = buffer_adapter.parse(obj, None)
    if exported is None:
        raise TypeError(f"USMArray: buffer is {show(obj)}; accepted: {_BUFFERS}")
    if not exported.flags_ & WRITEABLE:
        raise BufferError(f"USMArray: the buffer of {show(obj)} is read-only; accepted: a writable buffer, such as a bytearray")
    if not exported.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS):
        raise ValueError(f"USMArray: the buffer of {show(obj)} is not contiguous; accepted: a contiguous buffer")
    return exported


cdef int check_options(Descriptor a, dict options) except -1:
    """Raise ValueError if existing memory does not have the requested alignment or queue."""
    alignment, queue = options.get("alignment") or 1, options.get("queue")
    remedy = "pass copy=True, which is accepted for dpctl.memory objects"
    address = <size_t> a.block_.address_
    if address % alignment != 0:
        raise ValueError(
            f"USMArray: alignment is {alignment}, and the memory of buffer starts at {address:#x}; omit alignment, or {remedy}"
        )
    if queue is not None and (not a.usm_type_ or queue != sycl.queue_of(a)):
        raise ValueError(f"USMArray: queue is not the queue of buffer's memory; omit queue, or {remedy}")
    return 0


cdef int check_usm_type(Descriptor a) except -1:
    """Raise TypeError for an element type that USM arrays do not support. USM arrays support the types with a DLPack code."""
    if a.dl_dtype_.code == dtypes.NO_DLPACK:
        raise TypeError(
            f"USMArray: dtype is {a.dtype_!r}; accepted on USM: bool, integers, floating point and complex types in native"
            " byte order"
        )
    return 0
