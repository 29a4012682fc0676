"""Functions of the capsule's table, one for each C function of arrayhub.h.

`request.pxi` imports arrays that meet the conditions of C code, and has the class `Request`. The other functions are in this
file.
"""

from cpython.object cimport PyObject
from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset

from arrayhub._core cimport dtypes, layout
from arrayhub._core.cpython.exceptions cimport Aside, put_aside, put_back
from arrayhub._core.descriptor cimport (
    CONSTRUCTED,
    IMMUTABLE,
    PACKED,
    USM_DEVICE,
    WRITEABLE,
    Descriptor,
    DLDevice,
    c_api,
    describe_release,
    extent,
    hold_resource,
    kDLCPU,
    kDLOneAPI,
    new_array,
    seal,
    set_type,
)
from arrayhub._core.runtime cimport device_of, host_ready
from arrayhub.capi.structs cimport *
from arrayhub.runtimes cimport cuda, sycl

from arrayhub._core.descriptor import TYPE_NAMES
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import InterfaceError, interface_error, show
from arrayhub.convert import functions

cdef extern from *:
    """
    #define PyUSMArrayObject arrayhub_public_struct     /* Cython declares the struct of arrays itself */
    #include "../include/arrayhub.h"
    #undef PyUSMArrayObject
    """
    ctypedef struct PyUSMArrayAPI:
        object (*from_object)(object obj)
        object (*request)(object obj, const PyUSMArrayRequest* request)
        int (*match)(object array, const PyUSMArrayRequest* request) noexcept
        object (*explain)(object obj, const PyUSMArrayRequest* request)
        object (*make)(const PyUSMArraySpec* spec)
        object (*to_host)(object obj)
        int (*host_ready)(object array) except -1
        int (*device)(object array, PyUSMArrayDevice* out) except -1
        int (*queue_ref)(object array, void** out) except -1
        int (*type_of_number)(int typenum, PyUSMArrayElement* out) except -1
        int (*type_of_dlpack)(PyUSMArrayDataType dtype, PyUSMArrayElement* out) except -1
        int (*type_of_object)(object dtype, PyUSMArrayElement* out) except -1
        object (*convert)(object obj, const char* library)
        object (*like)(object obj, object model, int may_copy)


cdef enum:
    MOST_STRUCT = 4096      # bytes; every later version of a struct must be smaller


cdef bint resized(const void* theirs, Py_ssize_t size, void* ours, Py_ssize_t wanted) noexcept nogil:
    """Copy a caller's struct to a struct of the size that this version defines. Members that the caller lacks become zero.

    Return False if the caller's size is invalid, or if members that this version does not define are not zero.
    """
    cdef Py_ssize_t k
    if size < <Py_ssize_t> sizeof(Py_ssize_t) or size > MOST_STRUCT:
        return False
    for k in range(wanted, size):
        if (<const char*> theirs)[k] != 0:
            return False
    memset(ours, 0, wanted)
    memcpy(ours, theirs, min(size, wanted))
    return True


include "request.pxi"

# ------------------------------------------------------------------------------------ arrays over the memory of C code

cdef str NAME = "PyUSMArray_New"

cdef extern from *:
    """
    #include "freelist.h"
    /* The function that releases the memory, and its argument. */
    typedef struct { void (*release)(void *); void *context; } arrayhub_resource;
    ARRAYHUB_ALLOCATED_SPARES(arrayhub_spare_resource, arrayhub_resource, 32)
    """
    ctypedef struct Resource "arrayhub_resource":
        void (*release)(void*) noexcept
        void* context
    Resource* new_resource "arrayhub_spare_resource_new"(size_t size) noexcept
    void free_resource "arrayhub_spare_resource_free"(Resource* resource) noexcept


cdef void _release(void* held) noexcept:
    cdef Resource resource = (<Resource*> held)[0]
    free_resource(<Resource*> held)
    cdef Aside aside = put_aside()      # the release function may call Python
    resource.release(resource.context)
    put_back(aside)


describe_release(_release, b"PyUSMArraySpec.release", NULL)


cdef object make(const PyUSMArraySpec* raw):
    """Wrap the memory that a spec describes as an array, or allocate a new array if the spec has a model (PyUSMArray_New).

    The array takes ownership of the memory in the last step, so after an error, the memory still belongs to the caller.
    """
    cdef PyUSMArraySpec storage
    if raw == NULL:
        raise ValueError(f"{NAME}: spec is NULL; accepted: a PyUSMArraySpec")
    if raw.struct_size != sizeof(PyUSMArraySpec):
        if not resized(raw, raw.struct_size, &storage, sizeof(PyUSMArraySpec)):
            raise size_error("PyUSMArraySpec", raw.struct_size, sizeof(PyUSMArraySpec))
        raw = &storage
    if raw.nd < 0 or raw.nd > layout.MAX_NDIM:
        raise interface_error(NAME, "nd", raw.nd, f"0 to {layout.MAX_NDIM}")
    if raw.nd > 0 and raw.shape == NULL:
        raise interface_error(NAME, "shape", None, f"{raw.nd} lengths")
    if raw.model != NULL:
        return new_like(raw)
    if (raw.owner == NULL) == (raw.release == NULL):
        raise ValueError(
            f"{NAME}: owner is {'NULL' if raw.owner == NULL else 'given'}, and so is release; accepted: exactly one of them."
            " For memory that lives as long as the process, use None as the owner"
        )
    cdef Descriptor a = new_described(raw)
    if raw.device.device_type not in (0, kDLCPU) or raw.device.device_id != 0 \
            or raw.queue != NULL or raw.queue_ref != NULL or raw.stream != NULL:
        set_device(a, raw)
    if raw.owner != NULL:
        a.base_ = <object> raw.owner
        return a
    cdef Resource* resource = new_resource(sizeof(Resource))
    if resource == NULL:
        raise MemoryError
    resource.release = raw.release
    resource.context = raw.context
    hold_resource(a, a.resource_kind, resource, _release)
    return a


cdef object new_like(const PyUSMArraySpec* spec):
    """Return a new array in memory of the same library and device as the spec's model."""
    cdef int k
    for name, is_given in (
        ("data", spec.data != NULL), ("byte_strides", spec.byte_strides != NULL), ("owner", spec.owner != NULL),
        ("release", spec.release != NULL), ("queue", spec.queue != NULL), ("queue_ref", spec.queue_ref != NULL),
        ("stream", spec.stream != NULL), ("device", spec.device.device_type != 0 or spec.device.device_id != 0),
    ):
        if is_given:
            raise interface_error(NAME, name, "given", "zero with a model, which determines the memory")
    if spec.access != 0 and spec.access != WRITEABLE:
        raise interface_error(NAME, "access", spec.access, "USM_ARRAY_WRITEABLE or 0 with a model: new memory is writable")
    from arrayhub.storage.allocation import empty

    return empty(tuple([spec.shape[k] for k in range(spec.nd)]), dtypes.dtype_of(type_of(spec)), like=<object> spec.model)


cdef Descriptor new_described(const PyUSMArraySpec* spec):
    """Return a validated host array with the layout, type and access of a spec."""
    cdef int k, nd = spec.nd
    cdef Descriptor a = new_array(nd)
    a.protocol_ = CONSTRUCTED
    a.device_ = DLDevice(kDLCPU, 0)
    a.data_ = <char*> spec.data
    set_type(a, type_of(spec))
    if spec.access & ~<int> PACKED not in (WRITEABLE, IMMUTABLE, 0):
        raise interface_error(NAME, "access", spec.access & ~<int> PACKED, "USM_ARRAY_WRITEABLE, USM_ARRAY_READONLY or"
                              " USM_ARRAY_IMMUTABLE, with or without USM_ARRAY_PACKED")
    a.flags_ |= spec.access & ~<int> PACKED
    for k in range(nd):       # not memcpy, which compilers turn into a string instruction with a high startup cost
        a.shape_[k] = spec.shape[k]
    if spec.access & PACKED:
        pack(a, spec)
    elif nd > 0:
        if spec.byte_strides != NULL:
            for k in range(nd):
                a.byte_strides_[k] = spec.byte_strides[k]
        elif layout.fill_strides(nd, a.shape_, a.itemsize_, False, a.byte_strides_):
            raise shape_error(a)
    seal(a)
    return a


cdef int pack(Descriptor a, const PyUSMArraySpec* spec) except -1:
    """Mark elements of less than a byte as packed, as in DLPack tensors without the padding flag."""
    if a.dl_dtype_.code == dtypes.NO_DLPACK or dtypes.bits_of(a.dl_dtype_) >= 8:
        raise interface_error(NAME, "access", spec.access, "USM_ARRAY_PACKED only if elements are smaller than a byte")
    if spec.byte_strides != NULL:
        raise interface_error(NAME, "byte_strides", "given", "NULL for packed elements, which are in C order")
    a.flags_ |= PACKED
    if layout.fill_strides(a.nd_, a.shape_, 1, False, a.strides_):
        raise shape_error(a)
    return 0


cdef object shape_error(Descriptor a):
    return interface_error(NAME, "shape", [a.shape_[k] for k in range(a.nd_)], "lengths with less than 2**63 bytes in total")


cdef const dtypes.ElementType* type_of(const PyUSMArraySpec* spec) except NULL:
    """Return the row of a spec's element type, which `dtype` or, if it is not set, `typenum` determines."""
    cdef const dtypes.ElementType* row
    if spec.dtype.bits == 0 and spec.dtype.code == 0 and spec.dtype.lanes == 0:
        if spec.typenum == 0:      # NumPy's number of bool, but also the value of an unset member
            raise interface_error(NAME, "dtype", "not set", "a DLPack data type such as USM_ARRAY_FLOAT64 or"
                                  " USM_ARRAY_BOOL, or a typenum other than 0")
        row = dtypes.by_typenum(spec.typenum)
        if row == NULL or row.itemsize == 0 or row.kind in (c"M", c"m"):
            raise interface_error(NAME, "typenum", spec.typenum, "the number of a numeric type of fixed size")
        return row
    row = row_of(&spec.dtype)
    if row == NULL:
        raise interface_error(NAME, "dtype", (spec.dtype.code, spec.dtype.bits, spec.dtype.lanes),
                              "DLPack's (code, bits, lanes) of an element type, such as USM_ARRAY_FLOAT64")
    return row


cdef int set_device(Descriptor a, const PyUSMArraySpec* spec) except -1:
    """Set the device of an array. Validate the device if a driver or runtime can identify the pointer."""
    cdef int kind = spec.device.device_type, ordinal = spec.device.device_id
    cdef bint has_queue = spec.queue != NULL or spec.queue_ref != NULL
    if kind == 0:
        kind = kDLOneAPI if has_queue else kDLCPU
    if spec.stream != NULL and not cuda.is_cuda(kind):
        raise interface_error(NAME, "stream", <size_t> spec.stream, "NULL unless the memory is CUDA memory")
    if kind == kDLOneAPI:
        return put_on_sycl(a, spec)
    if has_queue or kind not in TYPE_NAMES or ordinal < 0 or kind == kDLCPU and ordinal != 0:
        raise interface_error(NAME, "device", (spec.device.device_type, ordinal), "(1, 0) or (0, 0) for host memory,"
                              f" {<int> kDLOneAPI} with a queue, or a type of {sorted(TYPE_NAMES)} and an ordinal")
    a.device_ = DLDevice(kind, ordinal)
    if cuda.is_cuda(kind):
        cuda.locate(a)      # without a driver or elements, the device of the spec is not checked
        cuda.check_handle(<intptr_t> spec.stream)
        a.stream_ = spec.stream
    return 0


cdef int put_on_sycl(Descriptor a, const PyUSMArraySpec* spec) except -1:
    """Mark the array as SYCL memory, after checking that it lies entirely within one allocation of the queue's context."""
    cdef Py_ssize_t low, high
    cdef int usm_type
    cdef bint one_allocation
    if a.dl_dtype_.code == dtypes.NO_DLPACK:
        raise interface_error(NAME, "typenum", a.typenum_, "an element type that SYCL supports")
    extent(a, &low, &high)
    queue = queue_of(spec, a.data_ + low if high > low else NULL)
    usm_type = sycl.usm_type_of(a.data_ + low, queue, high - low, &one_allocation)
    if high == low:
        usm_type = usm_type or USM_DEVICE
    elif not one_allocation:
        raise interface_error(NAME, "data", f"{<size_t> (a.data_ + low):#x}",
                              f"USM of the queue's context, with all {high - low} bytes in one allocation")
    sycl.set_usm(a, None, usm_type)
    a.producer_ = queue
    return 0


cdef object queue_of(const PyUSMArraySpec* spec, char* pointer):
    """Return the ``dpctl.SyclQueue`` that `queue`, `queue_ref` or the device ordinal of a spec determines."""
    if spec.queue != NULL:
        try:
            return sycl.queue_from(<object> spec.queue, pointer)
        except InterfaceError as error:
            raise interface_error(NAME, "queue", <object> spec.queue, "a dpctl.SyclQueue or SyclContext, the capsule of one, or"
                                  " a filter string that selects a device here") from error
    if spec.queue_ref != NULL:
        return sycl.queue_of_ref(spec.queue_ref)
    if spec.device.device_id < 0:
        raise interface_error(NAME, "device", (<int> kDLOneAPI, spec.device.device_id), "a queue, or an ordinal of 0 or more")
    return sycl.queue_of_ordinal(spec.device.device_id)


# ------------------------------------------------------------------------------------------------------ short functions


cdef PyUSMArrayRequest _WITHOUT_CONDITIONS      # all members are zero


cdef object from_object(object obj):
    check_given(<PyObject*> obj, "PyUSMArray_FromObject")
    return import_for(obj, &_WITHOUT_CONDITIONS)


cdef object to_host(object obj):
    check_given(<PyObject*> obj, "PyUSMArray_ToHost")
    return functions.to_host(obj)


cdef Descriptor check_array(object array, str call):
    """Return `array` if it is a USMArray, else raise TypeError."""
    check_given(<PyObject*> array, call)
    if not isinstance(array, Descriptor):
        raise TypeError(f"{call}: {show(array)} is not a USMArray; accepted: a result of PyUSMArray_FromObject")
    return array


cdef int wait_for_host(object array) except -1:
    return host_ready(check_array(array, "PyUSMArray_HostReady"))


cdef int device(object array, PyUSMArrayDevice* out) except -1:
    cdef DLDevice place = device_of(check_array(array, "PyUSMArray_Device"))
    out[0] = (<PyUSMArrayDevice*> &place)[0]
    return 0


cdef int queue_ref(object array, void** out) except -1:
    cdef Descriptor a = check_array(array, "PyUSMArray_QueueRef")
    if not a.usm_type_:
        raise BufferError("PyUSMArray_QueueRef: the memory is not SYCL USM and does not have a queue; accepted: SYCL USM."
                          " Copy with arrayhub.to_device(x, 'oneapi:0')")
    queue = sycl.queue_of(a)
    # The queue outlives the array: the array, its memory or the table of the devices' queues refers to it.
    out[0] = sycl.queue_ref_of(a)
    if out[0] == NULL:
        out[0] = sycl.checked_ref(queue)
    return 0


# -------------------------------------------------------------------------------------------------------- element types


cdef int describe_type(const dtypes.ElementType* row, PyUSMArrayElement* out, object dtype=None) except -1:
    """Fill a caller's PyUSMArrayElement from a row of the table of element types.

    Members that only a newer header defines become zero. For types with a length, a unit or fields, the name and the size
    come from `dtype`, a NumPy dtype.
    """
    cdef PyUSMArrayElement info
    cdef Py_ssize_t size = out.struct_size
    if size < <Py_ssize_t> sizeof(Py_ssize_t) or size > MOST_STRUCT:
        raise size_error("PyUSMArrayElement", size, sizeof(PyUSMArrayElement))
    memset(out, 0, size)
    info.struct_size = size
    info.name = name_of(row, None)
    info.dtype = (<const PyUSMArrayDataType*> &row.dlpack)[0]
    info.typenum = row.typenum
    info.itemsize = row.itemsize
    info.alignment = row.alignment
    if dtype is not None and row.typestr == NULL and row.kind != c"E":
        info.name = name_of(row, dtype)
        info.itemsize = dtype.itemsize
        info.alignment = dtype.alignment
    memcpy(out, &info, min(size, <Py_ssize_t> sizeof(info)))
    return 0


cdef dict _names = {}      # C code has pointers to these bytes objects, so entries are never removed


cdef const char* name_of(const dtypes.ElementType* row, object dtype) except NULL:
    """Return the name of a type in NumPy, ml_dtypes or arrayhub. The pointer is valid until the process ends.

    `dtype` is None, or a NumPy dtype with a length, a unit or fields.
    """
    if dtype is None and (row.kind == c"E" or row.itemsize == 0):
        return row.name
    name = (dtypes.dtype_of(row) if dtype is None else dtype).name
    return _names.get(name) or _names.setdefault(name, name.encode())


cdef int type_of_number(int typenum, PyUSMArrayElement* out) except -1:
    cdef const dtypes.ElementType* row = dtypes.by_typenum(typenum)
    if row == NULL:
        raise interface_error("PyUSMArray_TypeOfNumber", "typenum", typenum, "a type number of NumPy or arrayhub")
    return describe_type(row, out)


cdef int type_of_dlpack(PyUSMArrayDataType dtype, PyUSMArrayElement* out) except -1:
    cdef const dtypes.ElementType* row = row_of(&dtype)
    if row == NULL:
        raise interface_error("PyUSMArray_TypeOfDLPack", "dtype", (dtype.code, dtype.bits, dtype.lanes),
                              "DLPack's (code, bits, lanes) of an element type")
    return describe_type(row, out)


cdef int type_of_object(object dtype, PyUSMArrayElement* out) except -1:
    cdef const dtypes.ElementType* row = NULL
    check_given(<PyObject*> dtype, "PyUSMArray_TypeOfObject")
    name = str(dtype).partition(".")[2] if type(dtype).__module__ == "torch" else dtype
    wanted = cause = None
    if isinstance(name, str):
        row = dtypes.by_own_name(str(name))
    if row == NULL and dtype is not None:      # numpy.dtype(None) is float64, which the caller did not request
        try:
            wanted = requested_dtype(name)
            row = dtypes.by_dtype(wanted) if dtypes.is_native(wanted) else NULL
        except (TypeError, ValueError) as error:
            cause = error
    if row == NULL:
        raise TypeError(f"PyUSMArray_TypeOfObject: {show(dtype)} is not an element type in native byte order; accepted: a"
                        " string such as 'float32', a NumPy dtype or type, a torch.dtype") from cause
    return describe_type(row, out, wanted)


# -------------------------------------------------------------------------------------------------------------- export


cdef object convert(object obj, const char* library):
    check_given(<PyObject*> obj, "PyUSMArray_Convert")
    if library == NULL:
        raise ValueError("PyUSMArray_Convert: library is NULL; accepted: the name of a library, such as 'torch'")
    return functions.convert(obj, library.decode("utf-8", "replace"))


cdef object like(object obj, object model, int may_copy):
    check_given(<PyObject*> obj, "PyUSMArray_Like")
    check_given(<PyObject*> model, "PyUSMArray_Like")
    from arrayhub.convert.target import convert_to, target_of

    return convert_to(target_of(model, "PyUSMArray_Like"), obj, "PyUSMArray_Like", None if may_copy else False)


cdef PyUSMArrayAPI* _table = <PyUSMArrayAPI*> c_api()
_table.from_object = from_object
_table.request = request
_table.match = match
_table.explain = explain
_table.make = make
_table.to_host = to_host
_table.host_ready = wait_for_host
_table.device = device
_table.queue_ref = queue_ref
_table.type_of_number = type_of_number
_table.type_of_dlpack = type_of_dlpack
_table.type_of_object = type_of_object
_table.convert = convert
_table.like = like
