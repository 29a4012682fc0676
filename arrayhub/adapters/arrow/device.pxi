"""Import and export through Arrow's C device data interface, with an event for the producer's pending work."""

from libc.stdint cimport int32_t, int64_t, intptr_t
from libc.string cimport memset

from arrayhub._core.descriptor cimport (
    OTHER_CONTEXT,
    Descriptor,
    DLDevice,
    kDLCPU,
    kDLCUDA,
    kDLCUDAManaged,
)
from arrayhub._core.runtime cimport device_of, host_ready
from arrayhub._core.tree cimport check_below, first_array, visit_arrays
from arrayhub.runtimes cimport cuda

from arrayhub._core.descriptor import TYPE_NAMES
from arrayhub._core.errors import Refusal, interface_error


cdef int move_device_struct(Import owner, ArrowDeviceArray* array) except -1:
    move_struct(&owner.array, &array.array, "ArrowDeviceArray.array")
    return set_device(owner, array.device_type, array.device_id, array.sync_event)


cdef int set_device(Import owner, int device_type, int64_t device_id, void* sync_event) except -1:
    """Set the device of the buffers, and make an internal stream wait for the producer's event."""
    if device_type not in TYPE_NAMES:
        raise interface_error("Arrow", "device_type", device_type, f"one of {sorted(TYPE_NAMES)}")
    if device_type == kDLCPU:
        return 0
    if device_id < 0 or device_id >= 1 << 30:
        raise interface_error("Arrow", "device_id", device_id, "an ordinal of zero or more")
    owner.device = DLDevice(device_type, <int32_t> device_id)
    if sync_event == NULL:
        return 0
    if device_type != kDLCUDA and device_type != kDLCUDAManaged:
        raise Refusal(
            "Arrow", f"sync_event is set for {TYPE_NAMES[device_type]}; accepted: NULL, after the producer's work is done,"
            " and a cudaEvent_t* for CUDA"
        )
    owner.stream = cuda.stream_after(<cuda.CudaEvent*> sync_event, owner.device.device_id)
    return 0


cdef inline bint has_events(DLDevice device) noexcept:
    return device.device_type == kDLCUDA or device.device_type == kDLCUDAManaged


cdef DLDevice exported_device(Descriptor a) except *:
    """Return the device to export, or the host if `a` is None.

    Pinned memory, shared USM and host USM are exported as host memory. If such USM were exported as oneAPI memory, pyarrow
    could not import it: pyarrow tries ``__arrow_c_device_array__`` first, and rejects oneAPI devices ("Device type 14is not
    registered").
    """
    return DLDevice(kDLCPU, 0) if a is None or is_for_host(a) else device_of(a)


cdef DLDevice device_of_node(object node) except *:
    """Return the device of the arrays of a node, or the host if the node does not have arrays."""
    cdef Descriptor a = first_array(node)
    return DLDevice(kDLCPU, 0) if a is None else device_of(a)


cdef int ready_on_device(object node) except -1:
    """Check that all arrays of a node are on one device, and validate host-readable offsets.

    Wait for pending work, except on CUDA.

    Raises
    ------
    BufferError
        The arrays are on several devices, or in a SYCL context that the interface cannot represent.
    InterfaceError
        Offsets, sizes, views or indices are out of range.
    """
    cdef DLDevice device = exported_device(first_array(node))
    visit_arrays(node, check_device, &device)
    if not has_events(device):
        visit_arrays(node, wait_on_device, NULL)
    return check_below(node)


cdef int fill_device_array(ArrowDeviceArray* out, object node) except -1:
    """Fill `out` with the arrays of a node, for which the caller must have called `ready_on_device`.

    After an error, the caller must release ``out.array`` unless ``out.array.release`` is NULL.
    """
    cdef DLDevice device = exported_device(first_array(node))
    memset(out, 0, sizeof(ArrowDeviceArray))
    fill_array(&out.array, node, 0)
    out.device_type = device.device_type
    out.device_id = -1 if device.device_type == kDLCPU else device.device_id
    return note_event(out, node, device.device_id) if has_events(device) else 0


cdef int check_device(Descriptor a, void* argument) except -1:
    cdef DLDevice device = (<DLDevice*> argument)[0], other = exported_device(a)
    if other.device_type != device.device_type or other.device_id != device.device_id:
        raise Refusal(
            "Arrow", f"the arrays of the node are on several devices, {TYPE_NAMES[device.device_type]}:{device.device_id} and"
            f" {TYPE_NAMES[other.device_type]}:{other.device_id}; accepted: one. Call x.to_device(device) first"
        )
    if a.flags_ & OTHER_CONTEXT and other.device_type != kDLCPU:
        raise Refusal("Arrow", "the memory belongs to a SYCL context other than the default context of its device, which the"
                      " device interface cannot represent; call arrayhub.to_host(x)")
    return 0


cdef int wait_on_device(Descriptor a, void* argument) except -1:
    return host_ready(a)


cdef int note_event(ArrowDeviceArray* array, object node, int device) except -1:
    """Record an event after the pending work on the arrays of a node. Do nothing if no work is pending."""
    cdef Body* body = <Body*> array.array.private_data
    cdef intptr_t stream
    cdef bint pending = False
    visit_arrays(node, has_pending_work, &pending)
    if not pending or not cuda.has_device():
        return 0
    stream = cuda.waiting_stream(device)
    visit_arrays(node, wait_in_order, &stream)
    body.event = cuda.event_on(stream, device)
    array.sync_event = &body.event
    return 0


cdef int has_pending_work(Descriptor a, void* pending) except -1:
    if a.stream_ != NULL or a.producer_ is not None:
        (<bint*> pending)[0] = True
    return 0


cdef int wait_in_order(Descriptor a, void* stream) except -1:
    return cuda.consumer_ready(a, (<intptr_t*> stream)[0])
