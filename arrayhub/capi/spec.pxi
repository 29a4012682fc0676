"""Arrays over the memory of C code: host memory, SYCL memory with a queue, CUDA memory with a stream."""

from libc.stdint cimport intptr_t

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    CONSTRUCTED,
    IMMUTABLE,
    NOT_USM,
    PACKED,
    USM_DEVICE,
    WRITEABLE,
    Descriptor,
    DLDevice,
    describe_release,
    extent,
    hold_resource,
    kDLCPU,
    kDLCUDA,
    kDLCUDAHost,
    kDLCUDAManaged,
    kDLOneAPI,
    new_array,
    seal,
    set_type,
)
from arrayhub._core.cpython.exceptions cimport Aside, put_aside, put_back
from arrayhub.capi.header cimport PyUSMArraySpec, resized
from arrayhub.runtimes cimport cuda, sycl

from arrayhub._core.descriptor import TYPE_NAMES
from arrayhub._core.errors import InterfaceError, interface_error

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
    if raw.model != NULL:
        return new_like(raw)
    if (raw.owner == NULL) == (raw.release == NULL):
        raise ValueError(
            f"{NAME}: owner is {'NULL' if raw.owner == NULL else 'given'}, and so is release; accepted: exactly one of them."
            " For memory that lives as long as the process, use None as the owner"
        )
    cdef Descriptor a = new_described(raw)
    if raw.device.device_type != kDLCPU and (raw.device.device_type != 0 or raw.queue != NULL or raw.queue_ref != NULL):
        put_on_device(a, raw)
    elif raw.stream != NULL or raw.device.device_id != 0 or raw.queue != NULL or raw.queue_ref != NULL:
        refuse_as_host(raw)
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
    check_shape(spec)
    shape = tuple([spec.shape[k] for k in range(spec.nd)])
    from arrayhub.storage.allocation import empty

    return empty(shape, dtypes.dtype_of(type_of(spec)), like=<object> spec.model)


cdef int check_shape(const PyUSMArraySpec* spec) except -1:
    if spec.nd < 0 or spec.nd > layout.MAX_NDIM:
        raise interface_error(NAME, "nd", spec.nd, f"0 to {layout.MAX_NDIM}")
    if spec.nd > 0 and spec.shape == NULL:
        raise interface_error(NAME, "shape", None, f"{spec.nd} lengths")
    return 0


cdef Descriptor new_described(const PyUSMArraySpec* spec):
    """Return a validated host array with the layout, type and access of a spec."""
    cdef int k, nd = spec.nd
    check_shape(spec)
    cdef Descriptor a = new_array(nd)
    a.protocol_ = CONSTRUCTED
    a.device_ = DLDevice(kDLCPU, 0)
    a.data_ = <char*> spec.data
    set_type(a, type_of(spec))
    set_access(a, spec.access & ~<int> PACKED)
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


cdef int set_access(Descriptor a, int access) except -1:
    if access != WRITEABLE and access != IMMUTABLE and access != 0:
        raise interface_error(NAME, "access", access, "USM_ARRAY_WRITEABLE, USM_ARRAY_READONLY or USM_ARRAY_IMMUTABLE,"
                              " with or without USM_ARRAY_PACKED")
    a.flags_ |= access
    return 0


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
    row = dtypes.by_dlpack(dtypes.DLDataType(spec.dtype.code, spec.dtype.bits, spec.dtype.lanes))
    if row == NULL:
        raise interface_error(NAME, "dtype", (spec.dtype.code, spec.dtype.bits, spec.dtype.lanes),
                              "DLPack's (code, bits, lanes) of an element type, such as USM_ARRAY_FLOAT64")
    return row


cdef int refuse_as_host(const PyUSMArraySpec* spec) except -1:
    """Raise an error for a stream, a queue or a device number, which do not apply to host memory."""
    if spec.stream != NULL:
        raise interface_error(NAME, "stream", <size_t> spec.stream, "NULL for host memory")
    accepted = f"device (1, 0) or (0, 0) for host memory, device type {<int> kDLOneAPI} or 0 with a queue"
    raise interface_error(NAME, "device", (spec.device.device_type, spec.device.device_id), accepted)


cdef int put_on_device(Descriptor a, const PyUSMArraySpec* spec) except -1:
    """Set the device of an array. Validate the device if a driver or runtime can identify the pointer."""
    cdef int kind = spec.device.device_type
    if kind == kDLOneAPI or kind == 0:
        return put_on_sycl(a, spec)
    if kind not in TYPE_NAMES or spec.device.device_id < 0:
        raise interface_error(NAME, "device", (kind, spec.device.device_id),
                              f"a device type of {sorted(TYPE_NAMES)} and an ordinal of 0 or more")
    if spec.queue != NULL or spec.queue_ref != NULL:
        raise interface_error(NAME, "device", (kind, spec.device.device_id), f"{<int> kDLOneAPI} with a queue")
    if kind in (kDLCUDA, kDLCUDAHost, kDLCUDAManaged):
        a.device_ = DLDevice(kind, spec.device.device_id)
        cuda.locate(a)      # without a driver or elements, the device of the spec is not checked
        cuda.check_handle(<intptr_t> spec.stream)
        a.stream_ = spec.stream
        return 0
    if spec.stream != NULL:
        raise interface_error(NAME, "stream", <size_t> spec.stream, "NULL unless the memory is CUDA memory")
    a.device_ = DLDevice(kind, spec.device.device_id)
    return 0


cdef int put_on_sycl(Descriptor a, const PyUSMArraySpec* spec) except -1:
    """Mark the array as SYCL memory, after checking that it lies entirely within one allocation of the queue's context."""
    cdef Py_ssize_t low, high
    cdef int usm_type
    cdef bint one_allocation
    if spec.stream != NULL:
        raise interface_error(NAME, "stream", <size_t> spec.stream, "NULL for SYCL memory, which uses `queue`")
    if a.dl_dtype_.code == dtypes.NO_DLPACK:
        raise interface_error(NAME, "typenum", a.typenum_, "an element type that SYCL supports")
    extent(a, &low, &high)
    queue = queue_of(spec, a.data_ + low if high > low else NULL)
    if high == low:
        usm_type = (sycl.usm_type_of(a.data_, queue) if a.data_ != NULL else <int> NOT_USM) or <int> USM_DEVICE
    else:
        usm_type = sycl.usm_type_of_run(a.data_ + low, high - low, queue, &one_allocation)
        if usm_type == NOT_USM or not one_allocation:
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
