"""C struct of an array, which is the public C interface (docs/c_interface.md).

This file also declares devices, memory blocks and integer arguments, because they are part of the same compiled module.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int32_t, uint8_t

from arrayhub._core.dtypes cimport DLDataType, ElementType
from arrayhub._core.layout cimport checked_add, checked_mul

# ------------------------------------------------------------------------------------------------- devices (device.pxi)

cdef enum DLDeviceType:
    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10
    kDLROCMHost = 11
    kDLCUDAManaged = 13
    kDLOneAPI = 14

cdef struct DLDevice:
    int32_t device_type
    int32_t device_id

cdef enum:
    UNRESOLVED_ID = -1  # for a SYCL device whose ordinal is determined on first use


cdef inline bint type_is_host(int device_type) noexcept nogil:
    """Return whether the host can read all memory of a device type. Return False for SYCL, where the USM type decides."""
    return device_type == kDLCPU or device_type == kDLCUDAHost or device_type == kDLCUDAManaged \
        or device_type == kDLROCMHost


cdef class Device:
    cdef DLDevice dl


cdef Device make_device(DLDevice dl)


# ------------------------------------------------------------------------------------------- memory blocks (memory.pxi)

cpdef enum:
    BOUNDARY = 64       # bytes: alignment of new host memory, because jax copies host buffers with a smaller alignment
    PAGE = 4096         # bytes: smallest page size of the supported processors
    HUGE_PAGE = 2 << 20  # bytes: size of Linux's huge pages on these processors

cdef enum BlockKind:
    EXTERNAL = 0     # a Python object owns the bytes for its lifetime
    BUFFER = 1       # the block holds a Py_buffer
    DLPACK = 2       # the block holds a DLPack managed tensor
    USM = 3          # a dpctl.memory.MemoryUSM* owns the bytes
    OWNED = 4        # allocated by `allocate`, and freed by the block

ctypedef void (*Release)(void* resource) noexcept
ctypedef PyObject* (*Referent)(void* resource) noexcept    # object that a resource refers to, or NULL
ctypedef int (*Visit)(PyObject*, void*) noexcept           # the garbage collector's visitproc
ctypedef int (*Traverse)(PyObject*, Visit, void*) noexcept

cdef class MemoryBlock:
    cdef int kind_
    cdef object owner_
    cdef char* address_
    cdef Py_ssize_t nbytes_      # bytes; -1 if unknown
    cdef DLDevice device_
    # Layout of rows that start on aligned addresses, in bytes. Copies reproduce this layout. All 0 without aligned rows.
    cdef Py_ssize_t row_         # size of the elements of a row, without the padding
    cdef Py_ssize_t row_step_    # distance from one row to the next
    cdef Py_ssize_t boundary_    # alignment of the start of each row
    cdef void* resource          # passed to `release` exactly once, then NULL
    cdef Release release
    cdef object __weakref__


cdef MemoryBlock new_block(int kind, object owner, char* address, Py_ssize_t nbytes, DLDevice device)
cdef MemoryBlock allocate(Py_ssize_t nbytes, Py_ssize_t alignment, Py_ssize_t behind=*, bint zeroed=*)
cdef MemoryBlock successor_of(MemoryBlock block)
cdef object owner_of(MemoryBlock block)
cdef void set_owner(MemoryBlock block, object former, object owner, MemoryBlock successor) noexcept
cdef int describe_release(Release release, const char* name, Referent referent) except -1
cdef PyObject* referent_of(Release release, void* resource) noexcept


cdef extern from *:
    """
    /* Let the garbage collector traverse the instances of a type, but never clear them. */
    static CYTHON_UNUSED inline void arrayhub_collect(PyTypeObject *type, int (*traverse)(PyObject *, visitproc, void *)) {
        type->tp_traverse = traverse;
        type->tp_clear = NULL;
    }
    """
    void collect "arrayhub_collect"(PyTypeObject* cls, Traverse traverse) noexcept


cdef inline size_t to_boundary(size_t address, size_t alignment, size_t behind) noexcept nogil:
    """Return the number of bytes to add to `address` so that the sum is `behind` bytes after a multiple of `alignment`."""
    return (alignment + behind - address % alignment) % alignment


# ---------------------------------------------------------------------------------------------------------- integers

cdef extern from *:
    """
    /* Test for an int (not a subclass) with at most one internal digit, as most lengths and strides have, and its value.
       CPython 3.12 changed the struct of int. */
    #if PY_VERSION_HEX >= 0x030C0000
    #define arrayhub_is_digit(value) (PyLong_CheckExact(value) && PyUnstable_Long_IsCompact((PyLongObject *)(value)))
    #define arrayhub_digit(value) ((Py_ssize_t)PyUnstable_Long_CompactValue((PyLongObject *)(value)))
    #else
    #define arrayhub_is_digit(value) (PyLong_CheckExact(value) && (size_t)(Py_SIZE(value) + 1) <= 2)
    #define arrayhub_digit(value) (Py_SIZE(value) * (Py_ssize_t)((PyLongObject *)(value))->ob_digit[0])
    #endif
    """
    bint is_digit "arrayhub_is_digit"(object value) noexcept
    Py_ssize_t digit "arrayhub_digit"(object value) noexcept

cpdef bint is_bool(object value)
cpdef Py_ssize_t integer(object value, str what) except? -1


# --------------------------------------------------------------------------------------------------------------- arrays

cdef enum ArrayFlags:
    C_CONTIGUOUS = 0x0001     # USM_ARRAY_C_CONTIGUOUS
    F_CONTIGUOUS = 0x0002     # USM_ARRAY_F_CONTIGUOUS
    WRITEABLE = 0x0004        # USM_ARRAY_WRITEABLE
    ALIGNED = 0x0100          # NumPy's value
    NOTSWAPPED = 0x0200       # NumPy's value
    IMMUTABLE = 0x1000        # memory that cannot be written, even by its owner
    PACKED = 0x2000           # elements smaller than a byte share bytes, which only DLPack can represent
    COPIED = 0x4000           # USM_ARRAY_COPIED: the memory is a copy of the imported object's memory
    OTHER_CONTEXT = 0x8000    # SYCL: the memory is not in its device's default context, which DLPack assumes
    EXACT_TIMES = 0x10000     # from Arrow: the smallest integer is a time like any other, not NumPy's NaT

cdef enum UsmType:            # DPCTL's numbers
    NOT_USM = 0
    USM_DEVICE = 1
    USM_SHARED = 2
    USM_HOST = 3

cdef enum:
    CONSTRUCTED = 0           # `protocol` of an array that is not imported; adapters/table defines the other numbers
    INLINE_NDIM = 6           # maximum number of dimensions whose shape and strides are stored in the object


# The first seven fields have the order and the names of the USM array specification.
cdef api class Descriptor [object PyUSMArrayObject, type PyUSMArrayType]:
    cdef int nd_ "nd"
    cdef char* data_ "data"                       # element zero
    cdef Py_ssize_t* shape_ "shape"
    cdef Py_ssize_t* strides_ "strides"           # elements; NULL if a byte stride is not a multiple of the item size
    cdef int typenum_ "typenum"
    cdef int flags_ "flags"                       # ArrayFlags
    cdef object base_ "base"                      # the owner of the memory
    cdef Py_ssize_t* byte_strides_ "byte_strides"  # NULL if flags has PACKED
    cdef Py_ssize_t itemsize_ "itemsize"          # bytes
    cdef DLDevice device_ "device"
    cdef DLDataType dl_dtype_ "dl_dtype"          # code 255 if DLPack does not have the type
    cdef uint8_t usm_type_ "usm_type"             # UsmType
    cdef uint8_t protocol_ "protocol"             # a number from adapters/table, or CONSTRUCTED
    cdef uint8_t alignment_ "alignment"           # bytes, a power of two
    cdef uint8_t resource_kind                    # BlockKind of `resource`
    cdef void* stream_ "stream"                   # CUDA: the producer's stream, NULL if unknown
    # The following fields are private.
    cdef object dtype_                            # NumPy dtype, or None until first use
    cdef object producer_                         # SYCL: a queue; CUDA: the producer or its stream (runtimes/cuda); or None
    cdef MemoryBlock block_                       # None until the first view or query
    cdef void* resource                           # passed to `release`; NULL if the block owns the resource
    cdef Release release
    cdef Py_ssize_t* heap                         # shape and strides of more than INLINE_NDIM dimensions, or NULL
    cdef PyObject* labels                         # a Labels, or NULL
    cdef object __weakref__
    cdef Py_ssize_t inline_[3 * INLINE_NDIM]      # last field, because this space is not initialized


cdef void* c_api() noexcept
cdef Descriptor bare_array()
cdef int reserve_heap(Descriptor a, int nd) except -1
cdef int seal_any(Descriptor a) except -1
cdef int hold_object(Descriptor a, object held) noexcept
cdef int set_dtype(Descriptor a, object dtype) except -1
cdef MemoryBlock block_of(Descriptor a)
cdef MemoryBlock block_of_reach(Descriptor a)
cdef object get_dtype(Descriptor a)
cpdef str name_of_elements(Descriptor a)
cdef object labels_of(Descriptor a)
cdef int set_labels(Descriptor a, object labels) except -1
cpdef object make_dims(tuple dims)
cdef int copy_fields(Descriptor a, Descriptor other) except -1
cdef Descriptor view_of(Descriptor a, int nd)
cdef int refuse_packed(Descriptor a, str what) except -1
cdef Descriptor index(Descriptor a, object key)
cdef Descriptor row(Descriptor a, Py_ssize_t i)
cdef Descriptor transpose(Descriptor a, object axes)
cdef Descriptor reshape(Descriptor a, object shape)
cdef bint same_shape(Descriptor a, Descriptor b) noexcept
cdef Descriptor same_layout(Descriptor a)
cdef Descriptor array_for_copy(Descriptor model, MemoryBlock block, object order)
cdef Py_ssize_t size_of(Descriptor a) noexcept nogil
cdef tuple shape_tuple(Descriptor a)
cdef tuple stride_tuple(Descriptor a)
cdef int extent(Descriptor a, Py_ssize_t* low, Py_ssize_t* high) noexcept nogil
cdef void register_class(type array_class) noexcept


cdef inline void point_to_space(Descriptor a, int nd, Py_ssize_t* space) noexcept:
    a.nd_ = nd
    a.shape_ = space
    a.strides_ = space + nd
    a.byte_strides_ = space + 2 * nd


cdef inline int reserve(Descriptor a, int nd) except -1:
    """Point shape and strides to uninitialized space for `nd` dimensions."""
    if nd > INLINE_NDIM:
        return reserve_heap(a, nd)
    point_to_space(a, nd, a.inline_)
    return 0


cdef inline Descriptor new_array(int nd):
    """Create an array with space for `nd` dimensions. All other fields are zero or None."""
    cdef Descriptor a = bare_array()
    reserve(a, nd)
    return a


cdef inline int set_type(Descriptor a, const ElementType* row) noexcept:
    """Set an element type in native byte order, without a dtype object."""
    a.typenum_ = row.typenum
    a.itemsize_ = row.itemsize
    a.alignment_ = <uint8_t> row.alignment
    a.dl_dtype_ = row.dlpack
    a.flags_ |= NOTSWAPPED
    return 0


cdef inline void hold_resource(Descriptor a, int kind, void* resource, Release release) noexcept:
    """Make `a`, and later its block, release `resource` exactly once."""
    a.resource = resource
    a.release = release
    a.resource_kind = kind


cdef inline bint is_aligned(Descriptor a) noexcept nogil:
    """Return False for host memory that jax can only copy, because it does not start on a multiple of `BOUNDARY`."""
    return a.device_.device_type != kDLCPU or not size_of(a) or <size_t> a.data_ % BOUNDARY == 0


cdef inline bint host_readable(Descriptor a) noexcept nogil:
    """Return whether the host may dereference the pointer after the stream or queue of `a` is synchronized."""
    if a.device_.device_type == kDLOneAPI:    # depends on the USM type; memory of unknown type is unreadable
        return a.usm_type_ == USM_SHARED or a.usm_type_ == USM_HOST
    return type_is_host(a.device_.device_type)


cdef inline bint seal_compact(Descriptor a) noexcept:
    """Seal an array that is compact in C order, as most arrays are, in one pass without a division.

    Return False for any other array, and for empty, packed or invalid arrays. The caller then calls `seal_any`.
    """
    cdef Py_ssize_t elements = 1, step = a.itemsize_, address = <Py_ssize_t> a.data_, ignored
    cdef int k, long_dimensions = 0
    if step <= 0 or a.flags_ & PACKED:
        return False
    for k in range(a.nd_ - 1, -1, -1):
        a.strides_[k] = elements
        if a.shape_[k] == 1:       # the stride is not used: replace it by the stride of C order
            a.byte_strides_[k] = step
        elif a.shape_[k] <= 0 or a.byte_strides_[k] != step or checked_mul(step, a.shape_[k], &step):
            return False
        else:
            elements *= a.shape_[k]
            long_dimensions += 1
    if address <= 0 or checked_add(address, step, &ignored):
        return False
    a.flags_ |= C_CONTIGUOUS | F_CONTIGUOUS if long_dimensions <= 1 else C_CONTIGUOUS
    if address & (a.alignment_ - 1) == 0:       # strides are multiples of the item size, and therefore of the alignment
        a.flags_ |= ALIGNED
    return True


cdef inline int seal(Descriptor a) except -1:
    """Validate and complete an array whose shape, byte strides, type, pointer and access flags are set.

    Every import ends with `seal`, which computes the strides in elements and the contiguity and alignment flags, and rejects
    arrays that exceed the address space. The producer's contiguity flags are not used.

    Raises
    ------
    InterfaceError
        A length is negative, the pointer of a nonempty array is null, or the size in bytes, an extent or an address needs
        more than 63 bits.
    BufferError
        Packed elements are not in compact C order.
    """
    a.flags_ &= ~(C_CONTIGUOUS | F_CONTIGUOUS | ALIGNED)
    return 0 if seal_compact(a) else seal_any(a)


# -------------------------------------------------------------------------------------------- new arrays (memory.pxi)

cdef int compact(Descriptor fresh, Descriptor array, object order) except -1


# Functions of the runtime of a device type. See runtime.pxd.
cdef struct Runtime:
    # Wait until the host may read the results of the work that the producer has queued so far.
    int (*host_ready)(Descriptor) except -1
    # Make the consumer's stream wait for the producer's work. The consumer's protocol defines the Python type of `stream`.
    int (*consumer_ready)(Descriptor, object stream) except -1
    # Call `consumer_ready`, and set the consumer's stream as the stream of the array. Called only by runtimes/host.
    int (*adopt_stream)(Descriptor, object stream) except -1
    # Resolve the ordinal of the array's device if this was deferred.
    int (*resolve_device)(Descriptor) except -1
    # Set the fields, such as the USM type, that neither DLPack nor Arrow contains.
    int (*adopt)(Descriptor) except -1
    # Return the memory block of an array whose resource is USM.
    MemoryBlock (*block_of)(Descriptor)
    # Allocate `nbytes` bytes on `device`, and set pointer, base and block of `a`.
    int (*allocate)(Descriptor a, Py_ssize_t nbytes, DLDevice device) except -1

cdef enum:
    DEVICE_TYPES = 19    # one more than DLPack's largest device type

cdef Runtime* runtime_of(int device_type) noexcept nogil
