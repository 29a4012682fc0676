# cython: preliminary_late_includes_cy28=True
# The directive makes Cython emit the C code below after the definition of PyUSMArrayObject, which that code uses.
"""Descriptor: an array as a C struct, and its views (index, transpose, reshape), independent of protocols.

The included files define:

- device: `Device`
- memory: `MemoryBlock`, the owner of memory, and new host arrays
- labels: names and positions of dimensions
"""

import operator

import numpy as np

cimport cython
from cpython.mem cimport PyMem_RawMalloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.string cimport memcmp, memcpy, memset

from arrayhub._core cimport dtypes, layout
from arrayhub._core.cpython.atomics cimport seen, set_once

from arrayhub._core.errors import dimensions, interface_error, show

include "device.pxi"
include "memory.pxi"
include "labels.pxi"

globals()["MAX_NDIM"] = layout.MAX_NDIM      # a C constant, for Python code

# Names of the protocols by their number in the struct. adapters/table adds the other entries.
PROTOCOL_NAMES = {CONSTRUCTED: "constructed"}       # values of `USMArray.protocol`
IN_MESSAGES = {CONSTRUCTED: "USMArray"}             # first word of error messages
USM_NAMES = (None, "device", "shared", "host")      # indexed by UsmType

# The public header declares the struct again for extensions. This block includes the header with a different name for the
# struct, and the compilation fails if a field differs.
cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>
    #define PyUSMArrayObject arrayhub_public_struct
    #include "../include/arrayhub.h"
    #undef PyUSMArrayObject
    #define ARRAYHUB_SAME(field) _Static_assert( \
        offsetof(struct PyUSMArrayObject, field) == offsetof(struct arrayhub_public_struct, field) && \
        sizeof(((struct PyUSMArrayObject *)0)->field) == sizeof(((struct arrayhub_public_struct *)0)->field), \
        "arrayhub.h and descriptor.pxd differ in " #field)
    #define arrayhub_hold_to_header() do { \
        ARRAYHUB_SAME(nd); ARRAYHUB_SAME(data); ARRAYHUB_SAME(shape); ARRAYHUB_SAME(strides); ARRAYHUB_SAME(typenum); \
        ARRAYHUB_SAME(flags); ARRAYHUB_SAME(base); ARRAYHUB_SAME(byte_strides); ARRAYHUB_SAME(itemsize); \
        ARRAYHUB_SAME(device); ARRAYHUB_SAME(dl_dtype); ARRAYHUB_SAME(usm_type); ARRAYHUB_SAME(protocol); \
        ARRAYHUB_SAME(stream); \
        _Static_assert(offsetof(struct arrayhub_public_struct, stream) - offsetof(struct arrayhub_public_struct, nd) == \
                        offsetof(PyUSMArrayFields, stream), "PyUSMArrayFields differs from the fields of PyUSMArrayObject"); \
    } while (0)
    static PyUSMArrayAPI arrayhub_c_api = {
        ARRAYHUB_C_VERSION, sizeof(struct arrayhub_public_struct), NULL, sizeof(PyUSMArrayAPI),
        offsetof(struct arrayhub_public_struct, nd), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, NULL,
    };
    """
    ctypedef struct PyUSMArrayAPI:
        PyTypeObject* array_type
    PyUSMArrayAPI arrayhub_c_api
    const char* ARRAYHUB_CAPSULE
    void arrayhub_hold_to_header()
    enum:
        USM_ARRAY_C_CONTIGUOUS, USM_ARRAY_F_CONTIGUOUS, USM_ARRAY_WRITEABLE, USM_ARRAY_ALIGNED, USM_ARRAY_NOTSWAPPED
        USM_ARRAY_IMMUTABLE, USM_ARRAY_PACKED, USM_ARRAY_COPIED, USM_ARRAY_NOT_USM, USM_ARRAY_USM_DEVICE
        USM_ARRAY_USM_SHARED, USM_ARRAY_USM_HOST, USM_ARRAY_CONSTRUCTED, USM_ARRAY_NO_DLPACK

arrayhub_hold_to_header()
if (
    C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, ALIGNED, NOTSWAPPED, IMMUTABLE, PACKED, COPIED, NOT_USM, USM_DEVICE,
    USM_SHARED, USM_HOST, CONSTRUCTED, dtypes.NO_DLPACK,
) != (
    USM_ARRAY_C_CONTIGUOUS, USM_ARRAY_F_CONTIGUOUS, USM_ARRAY_WRITEABLE, USM_ARRAY_ALIGNED, USM_ARRAY_NOTSWAPPED,
    USM_ARRAY_IMMUTABLE, USM_ARRAY_PACKED, USM_ARRAY_COPIED, USM_ARRAY_NOT_USM, USM_ARRAY_USM_DEVICE,
    USM_ARRAY_USM_SHARED, USM_ARRAY_USM_HOST, USM_ARRAY_CONSTRUCTED, USM_ARRAY_NO_DLPACK,
):
    raise ImportError("arrayhub.h and descriptor.pxd define different values of a constant")
_C_API = PyCapsule_New(&arrayhub_c_api, ARRAYHUB_CAPSULE, NULL)


cdef void* c_api() noexcept:
    """Return the PyUSMArrayAPI struct that the capsule contains. capi/table sets its function pointers."""
    return &arrayhub_c_api

cdef extern from *:
    """
    #include "freelist.h"
    #define ARRAYHUB_HELD_BUFFER 1      /* BlockKind's BUFFER */
    ARRAYHUB_SPARES(arrayhub_spare_array, struct PyUSMArrayObject, 64)
    #define arrayhub_dtype_slot(a) (&(a)->dtype_)
    #define arrayhub_block_slot(a) ((PyObject **)&(a)->block_)

    /* Initial fields of a new array: objects are None, other fields are zero. The space for the dimensions is not
       initialized. Copying these fields takes a few vector instructions. To zero them, compilers would emit `rep stos`,
       which has a high startup cost. */
    static struct PyUSMArrayObject arrayhub_blank;
    #define ARRAYHUB_BLANK_BYTES (offsetof(struct PyUSMArrayObject, inline_) - sizeof(PyObject))

    static void arrayhub_free(struct PyUSMArrayObject *a) {
        if (a->__weakref__ != NULL) PyObject_ClearWeakRefs((PyObject *)a);
        if (a->resource != NULL) {
            void *resource = a->resource;
            a->resource = NULL;
            a->release(resource);
        }
        if (a->heap != NULL) PyMem_RawFree(a->heap);
        Py_XDECREF(a->base);
        Py_XDECREF(a->dtype_);
        Py_XDECREF(a->producer_);
        Py_XDECREF((PyObject *)a->block_);
        Py_XDECREF(a->labels);
        if (!arrayhub_spare_array_keep(a)) Py_TYPE(a)->tp_free((PyObject *)a);
    }

    /* Repeated export and import builds a chain of arrays. Freeing the chain must not recurse, so CPython's trashcan is
       used. The trashcan is not needed if the base outlives the array. This is certain if the base has more than two
       references: the array holds one, and its buffer may hold another. */
    static void arrayhub_dealloc(PyObject *self) {
        struct PyUSMArrayObject *a = (struct PyUSMArrayObject *)self;
        PyObject_GC_UnTrack(self);
        if ((a->resource == NULL || a->resource_kind == ARRAYHUB_HELD_BUFFER) && (PyObject *)a->block_ == Py_None &&
            a->base != NULL && Py_REFCNT(a->base) > 2) {
            arrayhub_free(a);
            return;
        }
        Py_TRASHCAN_BEGIN(self, arrayhub_dealloc)
        arrayhub_free(a);
        Py_TRASHCAN_END
    }

    /* USMArray adds no fields to Descriptor. Its instances can therefore be created and freed as Descriptors, without the
       functions that Cython generates for a subclass. */
    static struct PyUSMArrayObject *arrayhub_instantiate(PyTypeObject *type, PyTypeObject *base,
                                                         PyObject *no_arguments) {
        struct PyUSMArrayObject *a = arrayhub_spare_array_take();
        if (a != NULL) {
            memcpy((char *)a + sizeof(PyObject), (char *)&arrayhub_blank + sizeof(PyObject), ARRAYHUB_BLANK_BYTES);
            Py_INCREF(Py_None); Py_INCREF(Py_None); Py_INCREF(Py_None); Py_INCREF(Py_None);
            (void)PyObject_Init((PyObject *)a, type);
            PyObject_GC_Track((PyObject *)a);
            return a;
        }
        return (struct PyUSMArrayObject *)base->tp_new(type, no_arguments, NULL);
    }
    static void arrayhub_make_and_free(PyTypeObject *type) {
        arrayhub_blank.base = arrayhub_blank.dtype_ = arrayhub_blank.producer_ = Py_None;
        arrayhub_blank.block_ = (void *)Py_None;
        type->tp_dealloc = arrayhub_dealloc;
    }
    """
    Descriptor arrayhub_instantiate(PyTypeObject* cls, PyTypeObject* base, PyObject* no_arguments)
    void arrayhub_make_and_free(PyTypeObject* cls)
    PyObject** dtype_slot "arrayhub_dtype_slot"(Descriptor a)
    PyObject** block_slot "arrayhub_block_slot"(Descriptor a)

cdef tuple _NO_ARGUMENTS = ()
cdef PyTypeObject* _array_class = NULL
cdef PyTypeObject* _base_class = NULL
cdef type _array_class_reference = None


cdef void register_class(type array_class) noexcept:
    """Set the class of the objects that `new_array` creates: USMArray, a subclass of Descriptor in a higher layer."""
    global _array_class, _array_class_reference, _base_class
    _array_class_reference = array_class
    _array_class = <PyTypeObject*> array_class
    _base_class = <PyTypeObject*> Descriptor
    arrayhub_make_and_free(_array_class)
    collect(_base_class, _traverse)
    collect(_array_class, _traverse)
    arrayhub_c_api.array_type = _array_class


cdef api class Descriptor [object PyUSMArrayObject, type PyUSMArrayType]:
    """Struct of an array. arrayhub.USMArray adds all Python methods and attributes."""

    def __cinit__(self, *arguments, **named):
        if type(self) is Descriptor:
            raise TypeError("Descriptor: cannot be instantiated; use arrayhub.asarray or USMArray(...)")


cdef int _traverse(PyObject* self, Visit visit, void* context) noexcept:
    """Visit the objects that an array or its resource refers to.

    The garbage collector never clears an array, for the same reason as a MemoryBlock (see `_traverse_block`).
    """
    cdef PyObject* held[5]
    cdef int k, answer = 0
    held[0] = <PyObject*> (<Descriptor> self).base_
    held[1] = <PyObject*> (<Descriptor> self).block_
    held[2] = <PyObject*> (<Descriptor> self).producer_
    held[3] = <PyObject*> (<Descriptor> self).dtype_
    held[4] = referent_of((<Descriptor> self).release, (<Descriptor> self).resource)
    for k in range(5):      # labels refer to strings and integers only
        if answer == 0 and held[k] != NULL:
            answer = visit(held[k], context)
    return answer


cdef Descriptor bare_array():
    """Create an array of the registered class, whose fields are zero or None, without space for dimensions."""
    return arrayhub_instantiate(_array_class, _base_class, <PyObject*> _NO_ARGUMENTS)


cdef int reserve_heap(Descriptor a, int nd) except -1:
    """Point shape and strides to newly allocated space, for more than INLINE_NDIM dimensions."""
    if nd > layout.MAX_NDIM:
        raise ValueError(f"USMArray: {nd} dimensions; accepted: at most {layout.MAX_NDIM}, as in NumPy")
    a.heap = <Py_ssize_t*> PyMem_RawMalloc(3 * nd * sizeof(Py_ssize_t))
    if a.heap == NULL:
        raise MemoryError
    point_to_space(a, nd, a.heap)
    return 0


cpdef bint is_bool(object value):
    """Return whether a value is a bool of Python or NumPy. Both have ``__index__`` (NumPy's bool only before NumPy 2.3)."""
    return isinstance(value, (bool, np.bool_))


cpdef Py_ssize_t integer(object value, str what) except? -1:
    """Convert the argument named `what` to a signed 64-bit integer. Bools and integral floats are not integers."""
    try:
        if is_digit(value):
            return digit(value)
        if is_bool(value):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} has {show(value)} of type {type(value).__name__}; accepted: integers") from None
    except OverflowError:
        raise ValueError(f"{what} has {show(value)}; accepted: integers that fit in 64 bits with a sign") from None


cdef int set_dtype(Descriptor a, object dtype) except -1:
    """Set the element type from a NumPy dtype, and store the dtype. Raise TypeError if no protocol can represent it."""
    cdef const ElementType* row = dtypes.by_plain_dtype(dtype)
    if row != NULL:
        set_type(a, row)
        a.dtype_ = dtype
        return 0
    row = dtypes.by_dtype(dtype)
    if row == NULL or dtype.hasobject:
        raise TypeError(
            f"{IN_MESSAGES[a.protocol_]}: dtype is {dtype!r}; accepted: every NumPy dtype without Python objects, and"
            " those of ml_dtypes"
        )
    a.typenum_ = row.typenum
    a.itemsize_ = dtype.itemsize
    a.alignment_ = dtype.alignment
    a.dtype_ = dtype
    a.dl_dtype_ = row.dlpack
    if dtypes.is_native(dtype):
        a.flags_ |= NOTSWAPPED
    else:
        a.dl_dtype_.code = dtypes.NO_DLPACK
    return 0


cdef object get_dtype(Descriptor a):
    """Return the NumPy dtype of `a`. Raise TypeError if neither NumPy nor ml_dtypes has a dtype for the elements."""
    cdef PyObject** slot = dtype_slot(a)
    cdef PyObject* dtype = seen(slot)
    if dtype == <PyObject*> None:
        dtype = set_once(slot, dtype, dtypes.dtype_of(dtypes.by_typenum(a.typenum_)))
    return <object> dtype


cpdef str name_of_elements(Descriptor a):
    """Return the NumPy dtype as a string, or arrayhub's name if neither NumPy nor ml_dtypes has a dtype for the elements."""
    try:
        return str(get_dtype(a))
    except TypeError:
        pass
    return dtypes.by_typenum(a.typenum_).name.decode()


cdef Py_ssize_t size_of(Descriptor a) noexcept nogil:
    """Return the number of elements."""
    return layout.count(a.nd_, a.shape_)


cdef int extent(Descriptor a, Py_ssize_t* low, Py_ssize_t* high) noexcept nogil:
    """Compute the byte range of the elements, relative to element zero. `seal` has checked that the range does not overflow."""
    if a.flags_ & PACKED:
        low[0] = 0
        high[0] = (size_of(a) * dtypes.bits_of(a.dl_dtype_) + 7) // 8
        return 0
    if a.flags_ & C_CONTIGUOUS:
        low[0] = 0
        high[0] = size_of(a) * a.itemsize_
        return 0
    layout.reach(a.nd_, a.shape_, a.byte_strides_, a.itemsize_, low, high)
    return 0


cdef int seal_any(Descriptor a) except -1:
    """Implement `seal` for an array of any layout."""
    cdef Py_ssize_t low, high, total, size, last, step
    cdef int k
    cdef bint in_elements = True
    for k in range(a.nd_):
        if a.shape_[k] < 0:
            raise field_error(a, f"shape[{k}]", a.shape_[k], "a length of zero or more")
    size = layout.count(a.nd_, a.shape_)
    if a.flags_ & PACKED:
        return seal_packed(a, size)
    if size < 0 or layout.checked_mul(size, a.itemsize_, &total):
        raise field_error(a, "shape", shape_tuple(a), "a shape whose elements occupy fewer than 2**63 bytes")
    step = a.itemsize_
    for k in range(a.nd_ - 1, -1, -1):
        if a.shape_[k] == 1:       # the stride is unused: replace it by the stride of C order
            a.byte_strides_[k] = step
        last = a.byte_strides_[k]
        in_elements &= a.itemsize_ == 0 or last % a.itemsize_ == 0
        if a.shape_[k] == 0 or layout.checked_mul(last, a.shape_[k], &step):
            step = last
    if layout.reach(a.nd_, a.shape_, a.byte_strides_, a.itemsize_, &low, &high):
        raise field_error(a, "strides", stride_tuple(a), "strides with an extent below 2**63 bytes")
    if size != 0:
        check_address(a, low, high)
    if size == 0:
        # Consumers also use the strides of empty arrays. pyarrow 26 rejects strides that are not compact, such as NumPy's 0.
        # If they overflow, torch 2.13 calls the deleter and raises "Stride calculation overflowed", and the capsule's
        # destructor then calls the deleter a second time.
        if layout.fill_strides(a.nd_, a.shape_, a.itemsize_, False, a.byte_strides_):
            memset(a.byte_strides_, 0, a.nd_ * sizeof(Py_ssize_t))     # a stride in C order would exceed 63 bits
        in_elements = True
    if in_elements and a.itemsize_ != 0:
        for k in range(a.nd_):
            a.strides_[k] = a.byte_strides_[k] // a.itemsize_
    elif in_elements:
        if layout.fill_strides(a.nd_, a.shape_, 1, False, a.strides_):
            memset(a.strides_, 0, a.nd_ * sizeof(Py_ssize_t))
    else:
        a.strides_ = NULL
    set_layout_flags(a)
    return 0


cdef int seal_packed(Descriptor a, Py_ssize_t size) except -1:
    """Seal an array of packed elements. The strides are in elements, and only compact C order is valid."""
    cdef Py_ssize_t compact[layout.MAX_NDIM]
    cdef Py_ssize_t bits
    cdef int k
    if size < 0 or layout.checked_mul(size, dtypes.bits_of(a.dl_dtype_), &bits) or layout.checked_add(bits, 7, &bits):
        raise field_error(a, "shape", shape_tuple(a), "a shape whose elements occupy fewer than 2**63 bits")
    if layout.fill_strides(a.nd_, a.shape_, 1, False, compact):
        raise field_error(a, "shape", shape_tuple(a), "a shape with fewer than 2**63 elements")
    for k in range(a.nd_):
        if size != 0 and a.shape_[k] > 1 and a.strides_[k] != compact[k]:
            raise BufferError(
                f"{IN_MESSAGES[a.protocol_]}: strides[{k}] is {a.strides_[k]} for {dtypes.bits_of(a.dl_dtype_)}-bit elements"
                f" packed into shared bytes; accepted: {compact[k]}, compact C order. Copy the array, or pad its"
                " elements to bytes"
            )
        a.strides_[k] = compact[k]
    if size != 0:
        check_address(a, 0, bits // 8)
    a.byte_strides_ = NULL
    a.flags_ |= C_CONTIGUOUS | ALIGNED
    if layout.is_contiguous(a.nd_, a.shape_, a.strides_, 1, True):
        a.flags_ |= F_CONTIGUOUS
    return 0


cdef int check_address(Descriptor a, Py_ssize_t low, Py_ssize_t high) except -1:
    """Reject a null pointer, and a pointer for which elements would lie outside the address space."""
    cdef Py_ssize_t address = <Py_ssize_t> a.data_
    cdef Py_ssize_t ignored
    if a.data_ == NULL and high > low:
        raise field_error(a, "data", 0, "a nonzero address, because the array has elements")
    if address < 0 or address + low < 0 or layout.checked_add(address, high, &ignored):
        raise field_error(a, "data", <size_t> a.data_, "an address for which all elements lie below address 2**63")
    return 0


cdef int set_layout_flags(Descriptor a) except -1:
    """Compute the contiguity and alignment flags from pointer, shape and strides."""
    cdef Py_ssize_t mask = a.alignment_ - 1
    cdef Py_ssize_t misfit = <Py_ssize_t> a.data_ & mask
    cdef int k
    if layout.is_contiguous(a.nd_, a.shape_, a.byte_strides_, a.itemsize_, False):
        a.flags_ |= C_CONTIGUOUS
    if layout.is_contiguous(a.nd_, a.shape_, a.byte_strides_, a.itemsize_, True):
        a.flags_ |= F_CONTIGUOUS
    for k in range(a.nd_):
        if a.shape_[k] > 1:
            misfit |= a.byte_strides_[k] & mask
    if misfit == 0 or size_of(a) == 0:
        a.flags_ |= ALIGNED
    return 0


cdef object field_error(Descriptor a, str key, object value, str accepted):
    return interface_error(IN_MESSAGES[a.protocol_], key, value, accepted)


cdef tuple shape_tuple(Descriptor a):
    return tuple([a.shape_[k] for k in range(a.nd_)])


cdef tuple stride_tuple(Descriptor a):
    return tuple([a.byte_strides_[k] for k in range(a.nd_)])


cdef MemoryBlock block_of(Descriptor a):
    """Return the memory block of `a`. Create the block on first use, by a view or a query.

    A newly imported array does not have a block: it owns the producer and the resource itself, so an import needs only one
    allocation.
    """
    cdef PyObject* block = seen(block_slot(a))
    if block == <PyObject*> None:
        block = publish(a, runtime_of(kDLOneAPI).block_of(a) if a.resource_kind == USM else block_of_reach(a))
    return <MemoryBlock> block


cdef PyObject* publish(Descriptor a, MemoryBlock block) noexcept:
    """Set the block of an array, and move the array's resource to the block. Return a borrowed reference to the block.

    A finalizer or another thread may have set another block while this block was created. The other block is then kept, and
    this block is freed without a resource. For this reason, the function must neither allocate nor run other code between
    reading and setting `block_`, and no other function may move the resource.
    """
    cdef PyObject** slot = block_slot(a)
    with cython.critical_section(a):
        if seen(slot) == <PyObject*> None:
            block.resource = a.resource
            block.release = a.release
            a.resource = NULL
            set_once(slot, <PyObject*> None, block)
    return seen(slot)


cdef MemoryBlock block_of_reach(Descriptor a):
    """Create a block of exactly the bytes that `a` covers. `publish` then moves the resource to the block."""
    cdef Py_ssize_t low, high
    extent(a, &low, &high)
    return new_block(a.resource_kind, a.base_, a.data_ + low, high - low, a.device_)


cdef object labels_of(Descriptor a):
    """Return the Labels of `a`, or None."""
    return None if a.labels == NULL else <object> a.labels


cdef int set_labels(Descriptor a, object labels) except -1:
    """Replace the labels of `a`. `labels` is a Labels or None."""
    cdef PyObject* old = a.labels
    if labels is None:
        a.labels = NULL
    else:
        Py_INCREF(labels)
        a.labels = <PyObject*> labels
    Py_XDECREF(old)
    return 0


cdef int copy_fields(Descriptor a, Descriptor other) except -1:
    """Copy all fields of `a` to `other`, except the dimensions, the labels, the memory block and the resource."""
    other.data_ = a.data_
    other.typenum_ = a.typenum_
    other.flags_ = a.flags_
    other.base_ = a.base_
    other.itemsize_ = a.itemsize_
    other.alignment_ = a.alignment_
    other.device_ = a.device_
    other.dl_dtype_ = a.dl_dtype_
    other.usm_type_ = a.usm_type_
    other.protocol_ = a.protocol_
    other.stream_ = a.stream_
    other.dtype_ = <object> seen(dtype_slot(a))
    other.producer_ = a.producer_
    return 0


cdef Descriptor view_of(Descriptor a, int nd):
    """Create a view of the memory of `a` with space for `nd` dimensions. The caller sets the layout."""
    cdef Descriptor view = new_array(nd)
    copy_fields(a, view)
    view.block_ = block_of(a)
    return view


def is_host_readable(Descriptor array):
    """Return whether a host thread can read the memory directly."""
    return host_readable(array)


cdef bint same_shape(Descriptor a, Descriptor b) noexcept:
    return a.nd_ == b.nd_ and memcmp(a.shape_, b.shape_, a.nd_ * sizeof(Py_ssize_t)) == 0


cdef Descriptor same_layout(Descriptor a):
    """Create a view of `a` with the same layout and labels."""
    cdef Descriptor view = view_of(a, a.nd_)
    memcpy(view.shape_, a.shape_, a.nd_ * sizeof(Py_ssize_t))
    if a.strides_ == NULL:
        view.strides_ = NULL
    else:
        memcpy(view.strides_, a.strides_, a.nd_ * sizeof(Py_ssize_t))
    if a.byte_strides_ == NULL:
        view.byte_strides_ = NULL
    else:
        memcpy(view.byte_strides_, a.byte_strides_, a.nd_ * sizeof(Py_ssize_t))
    set_labels(view, labels_of(a))
    return view


cdef int refuse_packed(Descriptor a, str what) except -1:
    if a.flags_ & PACKED:
        raise BufferError(
            f"{what}: {dtypes.bits_of(a.dl_dtype_)}-bit elements packed into shared bytes cannot be indexed,"
            " transposed or reshaped"
        )
    return 0


cdef Descriptor index(Descriptor a, object key):
    """Return the view ``a[key]``. `key` contains integers, slices, Ellipsis and None (basic indexing), or is a field's name."""
    if is_digit(key) and a.nd_ > 0:
        return row(a, digit(key))
    if isinstance(key, str) and get_dtype(a).names is not None:
        return field_view(a, key)
    cdef tuple keys = key if type(key) is tuple else tuple(key) if isinstance(key, tuple) else (key,)
    cdef list parts = []
    cdef int consumed = 0, added = 0, ellipses = 0
    refuse_packed(a, "indexing")
    for part in keys:      # an index of an invalid type is reported before any other error, as in NumPy
        if part is None:
            added += 1
        elif part is Ellipsis:
            ellipses += 1
        elif isinstance(part, slice):
            consumed += 1
        else:
            part = as_index(part)
            consumed += 1
            added -= 1
        parts.append(part)
    if ellipses == 0:
        parts.append(Ellipsis)
    elif ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if consumed > a.nd_:
        raise IndexError(f"too many indices: the array has {dimensions(a.nd_)}, but {consumed} were indexed")
    if a.nd_ + added > layout.MAX_NDIM:
        raise IndexError(f"the result would have {a.nd_ + added} dimensions; accepted: at most {layout.MAX_NDIM}")
    cdef Descriptor view = view_of(a, a.nd_ + added)
    cdef int source = 0, target = 0, _k
    cdef Py_ssize_t offset = 0
    for part in parts:
        if part is None:
            view.shape_[target] = 1
            view.byte_strides_[target] = 0
            target += 1
        elif part is Ellipsis:
            for _k in range(a.nd_ - consumed):
                view.shape_[target] = a.shape_[source]
                view.byte_strides_[target] = a.byte_strides_[source]
                source += 1
                target += 1
        elif isinstance(part, slice):
            offset += apply_slice(a, view, source, target, part)
            source += 1
            target += 1
        else:
            offset += apply_integer(a, source, part)
            source += 1
    if size_of(a) != 0:     # the strides of an empty array are not validated, so they must not move the pointer
        view.data_ = a.data_ + offset
    seal(view)
    if a.labels != NULL:
        set_labels(view, labels_of(a).index(tuple(parts), a))
    return view


cdef Descriptor field_view(Descriptor a, str name):
    """Return a view of one field of structured elements. The dimensions of a field with a shape come last, as in NumPy."""
    cdef int k
    dtype = get_dtype(a)
    if name not in dtype.fields:
        raise KeyError(f"{show(name)} is not a field; accepted: {', '.join(map(show, dtype.names))}")
    element, offset = dtype.fields[name][:2]
    cdef tuple lengths = element.shape
    if a.nd_ + len(lengths) > layout.MAX_NDIM:
        raise IndexError(
            f"the field {show(name)} would have {a.nd_ + len(lengths)} dimensions; accepted: at most {layout.MAX_NDIM}"
        )
    cdef Descriptor view = view_of(a, a.nd_ + <int> len(lengths))
    set_dtype(view, element.base)
    for k in range(a.nd_):
        view.shape_[k] = a.shape_[k]
        view.byte_strides_[k] = a.byte_strides_[k]
    for k in range(a.nd_, view.nd_):
        view.shape_[k] = lengths[k - a.nd_]
    layout.fill_strides(<int> len(lengths), view.shape_ + a.nd_, view.itemsize_, False, view.byte_strides_ + a.nd_)
    if size_of(a) != 0:
        view.data_ += <Py_ssize_t> offset
    seal(view)
    if a.labels != NULL and not lengths:
        set_labels(view, labels_of(a))
    return view


cdef Descriptor row(Descriptor a, Py_ssize_t i):
    """Return ``a[i]``, like `index`, but optimized for loops."""
    cdef int k, nd = a.nd_ - 1
    if a.labels != NULL or a.flags_ & PACKED:
        return index(a, (i,))
    cdef Py_ssize_t offset = apply_integer(a, 0, i)
    cdef Descriptor view = view_of(a, nd)
    for k in range(nd):
        view.shape_[k] = a.shape_[k + 1]
        view.byte_strides_[k] = a.byte_strides_[k + 1]
    if size_of(a) != 0:
        view.data_ = a.data_ + offset
    seal(view)
    return view


cdef Py_ssize_t apply_slice(Descriptor a, Descriptor view, int source, int target, slice part) except? -1:
    cdef Py_ssize_t length, distance = 0, stride = a.byte_strides_[source]
    start, stop, step = part.indices(a.shape_[source])
    length = len(range(start, stop, step))
    # The products cannot overflow for a nonempty array, and are not used for an empty array. The step is not used if the result
    # has fewer than two elements, because a longer step could overflow.
    if length > 1:
        layout.checked_mul(stride, step, &view.byte_strides_[target])
    else:
        view.byte_strides_[target] = stride
    if length > 0:
        layout.checked_mul(stride, start, &distance)
    view.shape_[target] = length
    return distance


cdef object as_index(object part):
    """Convert an index to a Python integer. Call its ``__index__`` only once."""
    cdef Py_ssize_t i
    try:
        if is_bool(part):     # NumPy treats bools as masks, so they must not be read as 0 or 1
            raise TypeError
        i = operator.index(part)
    except TypeError:
        raise IndexError(
            f"index {show(part)} is not supported; accepted: integers, slices (':'), ellipsis ('...') and newaxis (None). For"
            " indexing that copies, use arrayhub.as_numpy(x) or another library's array"
        ) from None
    except OverflowError:
        raise IndexError(f"index {show(part)} is out of bounds for any axis: it does not fit in 64 bits") from None
    return i


cdef Py_ssize_t apply_integer(Descriptor a, int axis, Py_ssize_t i) except? -1:
    cdef Py_ssize_t distance, length = a.shape_[axis]
    if i < -length or i >= length:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {length}")
    layout.checked_mul(a.byte_strides_[axis], i + length if i < 0 else i, &distance)
    return distance


cdef Descriptor transpose(Descriptor a, object axes):
    """Return a view with permuted dimensions. `axes` is a sequence of integers, or None to reverse the dimensions."""
    cdef int k, axis, nd = a.nd_
    cdef list order
    refuse_packed(a, "transpose")
    if axes is None:
        order = list(range(nd - 1, -1, -1))
    else:
        order = [integer(axis_, "transpose: axes") for axis_ in axes]
        order = [axis_ + nd if axis_ < 0 else axis_ for axis_ in order]
        if sorted(order) != list(range(nd)):
            raise ValueError(f"transpose: axes {tuple(order)} are not a permutation of the {dimensions(nd)}")
    cdef Descriptor view = view_of(a, nd)
    for k in range(nd):
        axis = order[k]
        view.shape_[k] = a.shape_[axis]
        view.byte_strides_[k] = a.byte_strides_[axis]
    seal(view)
    if a.labels != NULL:
        set_labels(view, labels_of(a).transpose(order))
    return view


cdef Descriptor reshape(Descriptor a, object shape):
    """Return a view of the elements with a different shape, in C order. One length may be -1.

    Raise BufferError if the elements are packed, or if strides cannot represent the new shape.
    """
    cdef list lengths = [integer(length, "reshape: shape") for length in shape]
    cdef Py_ssize_t size = size_of(a)
    refuse_packed(a, "reshape")
    resolve_unknown_length(lengths, size, shape_tuple(a))
    if len(lengths) > layout.MAX_NDIM:
        raise ValueError(f"reshape: {len(lengths)} dimensions; accepted: at most {layout.MAX_NDIM}")
    cdef Descriptor view = view_of(a, <int> len(lengths))
    cdef int k
    for k in range(view.nd_):
        view.shape_[k] = lengths[k]
    if size == 0 or a.flags_ & C_CONTIGUOUS:
        if layout.fill_strides(view.nd_, view.shape_, a.itemsize_, False, view.byte_strides_):
            raise ValueError(f"reshape: {tuple(lengths)} is too large; accepted: strides below 2**63 bytes")
    elif not reshape_strides(a, view):
        raise BufferError(
            f"reshape: shape {shape_tuple(a)} with byte strides {stride_tuple(a)} cannot be viewed as {tuple(lengths)};"
            " call copy() first"
        )
    seal(view)
    return view


cdef int resolve_unknown_length(list lengths, Py_ssize_t size, tuple old) except -1:
    """Replace a single -1 by the length that follows from `size`, and check that the sizes agree."""
    unknown = [k for k, length in enumerate(lengths) if length < 0]
    known = 1
    for length in lengths:
        known *= length if length >= 0 else 1
    if len(unknown) == 1 and lengths[unknown[0]] == -1 and known > 0 and size % known == 0:
        lengths[unknown[0]] = size // known
        known = size
    elif unknown:
        raise ValueError(
            f"reshape: {tuple(lengths)} for an array of {size} elements; accepted: at most one -1, and other lengths whose"
            f" product divides {size}"
        )
    if known != size:
        raise ValueError(f"reshape: shape {old} has {size} elements, {tuple(lengths)} has {known}")
    return 0


cdef bint reshape_strides(Descriptor a, Descriptor view) noexcept nogil:
    """Compute the strides of a nonempty `view`, or return False if the new shape needs a copy.

    Both shapes are split into the shortest runs of dimensions whose lengths have the same product. A run can be reshaped
    without a copy if its old dimensions can be merged into one.
    """
    cdef Py_ssize_t lengths[layout.MAX_NDIM]
    cdef Py_ssize_t steps[layout.MAX_NDIM]
    cdef int nd = 0, old = 0, new = 0, old_end, new_end, k
    cdef Py_ssize_t old_product, new_product, step
    for k in range(a.nd_):         # skip dimensions of length 1, whose strides are never used
        if a.shape_[k] != 1:
            lengths[nd] = a.shape_[k]
            steps[nd] = a.byte_strides_[k]
            nd += 1
    while new < view.nd_:
        if view.shape_[new] == 1:
            view.byte_strides_[new] = a.itemsize_
            new += 1
            continue
        old_end = old + 1
        new_end = new + 1
        old_product = lengths[old]
        new_product = view.shape_[new]
        while old_product != new_product:
            if old_product < new_product:
                old_product *= lengths[old_end]
                old_end += 1
            else:
                new_product *= view.shape_[new_end]
                new_end += 1
        for k in range(old, old_end - 1):
            if layout.checked_mul(steps[k + 1], lengths[k + 1], &step) or steps[k] != step:
                return False
        step = steps[old_end - 1]
        for k in range(new_end - 1, new - 1, -1):
            view.byte_strides_[k] = step
            layout.checked_mul(step, view.shape_[k], &step)   # may overflow in the last iteration, whose result is not used
        old = old_end
        new = new_end
    return True
