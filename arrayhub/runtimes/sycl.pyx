"""SYCL runtime through dpctl: the USM type of a pointer, its queue, and synchronization.

dpctl is an optional dependency, which is imported only for a SYCL object or on request. Its C functions are looked up at run
time: those of its Cython modules in ``__pyx_capi__``, with a check of their signatures, and those of its C library by name.
"""

import ctypes
import os
import sys

cimport cython
from cpython.object cimport Py_TYPE, PyObject, PyObject_TypeCheck, PyTypeObject
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer, PyCapsule_IsValid

from arrayhub._core.cpython.atomics cimport found, is_done, mark_done
from arrayhub._core.descriptor cimport (
    OTHER_CONTEXT,
    PACKED,
    PAGE,
    UNRESOLVED_ID,
    USM,
    USM_DEVICE,
    USM_HOST,
    USM_SHARED,
    Descriptor,
    DLDevice,
    MemoryBlock,
    block_of,
    block_of_reach,
    extent,
    kDLOneAPI,
    name_of_elements,
    new_block,
    owner_of,
    same_layout,
    same_shape,
    set_owner,
    size_of,
    successor_of,
)
from arrayhub._core.runtime cimport Runtime, device_of, runtime_of

from arrayhub import sycl_runtime
from arrayhub._core.descriptor import IN_MESSAGES, READERS, USM_NAMES, Device
from arrayhub._core.errors import PASSES_ON, interface_error, needed, root_of, show
from arrayhub.runtimes import DPCTL_FILE, LEVEL_ZERO_FILE, OPENCL_FILE, call_after_fork

# ------------------------------------------------------------------------------------------------------------- C functions

cdef enum:
    # dpctl's DPCTLSyclBackendType
    DPCTL_OPENCL = 1 << 18
    DPCTL_LEVEL_ZERO = 1 << 17
    # OpenCL's headers
    CONTEXT_DEVICES = 0x1081
    DEVICE_PLATFORM = 0x1031
    ALLOC_BASE = 0x419B

ctypedef int (*GetInfo)(void* object, unsigned int what, size_t size, void* value, size_t* written) noexcept nogil

# clGetMemAllocInfoINTEL of OpenCL's extension cl_intel_unified_shared_memory.
ctypedef int (*AllocInfo)(void* context, const void* pointer, unsigned int what, size_t size, void* value,
                          size_t* written) noexcept nogil

# Functions in the order of _FUNCTIONS: those of dpctl's Cython modules, then those of its C library. Those from `backend` on
# find the allocation of a pointer, which SYCL does not report. If the machine lacks one of these, it is NULL:
#
# - OpenCL: clGetMemAllocInfoINTEL (cl_intel_unified_shared_memory)
# - Level Zero: zeMemGetAddressRange (core specification). Level Zero places small allocations inside larger allocations, and
#   reports the larger allocations.
cdef struct Functions:
    void* (*memory_pointer)(PyObject* memory)
    size_t (*memory_nbytes)(PyObject* memory)
    void* (*memory_queue)(PyObject* memory)
    void* (*memory_context)(PyObject* memory)
    object (*memory_make)(void* pointer, size_t nbytes, QueueRef queue, object owner)
    void* (*queue_ref)(PyObject* queue)
    object (*queue_make)(void* queue)
    void* (*context_ref)(PyObject* context)
    object (*context_make)(void* context)
    object (*event_make)(void* event)
    object (*device_make)(void* device)
    int (*pointer_type)(void* pointer, ContextRef context) noexcept nogil
    void* (*pointer_device)(void* pointer, ContextRef context) noexcept nogil
    void (*delete_device)(void* device) noexcept nogil
    void* (*queue_context)(void* queue) noexcept nogil
    void (*delete_context)(void* context) noexcept nogil
    void (*wait)(void* queue) noexcept nogil
    EventRef (*barrier)(QueueRef queue) noexcept nogil
    EventRef (*barrier_for_events)(QueueRef queue, const EventRef* events, size_t count) noexcept nogil
    EventRef (*copy)(QueueRef queue, void* target, const void* source, size_t nbytes, const EventRef* events,
                     size_t count) noexcept nogil
    void (*wait_for_event)(void* event) noexcept nogil
    void (*delete_event)(void* event) noexcept nogil
    int (*backend)(void* context) noexcept nogil
    void* (*native)(const void* context) noexcept nogil
    GetInfo context_info
    GetInfo device_info
    void* (*find)(void* platform, const char* name) noexcept nogil
    int (*release)(void* context) noexcept nogil
    int (*address_range)(void* context, const void* pointer, void** base, size_t* size) noexcept nogil

_MEMORY, _QUEUE, _CONTEXT = "struct Py_MemoryObject *", "struct PySyclQueueObject *", "struct PySyclContextObject *"
_FUNCTIONS = (       # Cython module or library, function, and its signature if it belongs to a Cython module
    ("dpctl.memory._memory", "Memory_GetUsmPointer", f"DPCTLSyclUSMRef ({_MEMORY})"),
    ("dpctl.memory._memory", "Memory_GetNumBytes", f"size_t ({_MEMORY})"),
    ("dpctl.memory._memory", "Memory_GetQueueRef", f"DPCTLSyclQueueRef ({_MEMORY})"),
    ("dpctl.memory._memory", "Memory_GetContextRef", f"DPCTLSyclContextRef ({_MEMORY})"),
    ("dpctl.memory._memory", "Memory_Make", "PyObject *(DPCTLSyclUSMRef, size_t, DPCTLSyclQueueRef, PyObject *)"),
    ("dpctl._sycl_queue", "SyclQueue_GetQueueRef", f"DPCTLSyclQueueRef ({_QUEUE})"),
    ("dpctl._sycl_queue", "SyclQueue_Make", f"{_QUEUE}(DPCTLSyclQueueRef)"),
    ("dpctl._sycl_context", "SyclContext_GetContextRef", f"DPCTLSyclContextRef ({_CONTEXT})"),
    ("dpctl._sycl_context", "SyclContext_Make", f"{_CONTEXT}(DPCTLSyclContextRef)"),
    ("dpctl._sycl_event", "SyclEvent_Make", "struct PySyclEventObject *(DPCTLSyclEventRef)"),
    ("dpctl._sycl_device", "SyclDevice_Make", "struct PySyclDeviceObject *(DPCTLSyclDeviceRef)"),
    *[(DPCTL_FILE, name, None) for name in (
        "DPCTLUSM_GetPointerType", "DPCTLUSM_GetPointerDevice", "DPCTLDevice_Delete", "DPCTLQueue_GetContext",
        "DPCTLContext_Delete", "DPCTLQueue_Wait", "DPCTLQueue_SubmitBarrier", "DPCTLQueue_SubmitBarrierForEvents",
        "DPCTLQueue_MemcpyWithEvents", "DPCTLEvent_Wait", "DPCTLEvent_Delete", "DPCTLContext_GetBackend",
        "_ZNK4sycl3_V17context9getNativeEv",      # sycl::context::getNative() const
    )],
    (OPENCL_FILE, "clGetContextInfo", None),
    (OPENCL_FILE, "clGetDeviceInfo", None),
    (OPENCL_FILE, "clGetExtensionFunctionAddressForPlatform", None),
    (OPENCL_FILE, "clReleaseContext", None),
    (LEVEL_ZERO_FILE, "zeMemGetAddressRange", None),
)
_LAST_REQUIRED = "DPCTLEvent_Delete"

cdef Functions _call


@cython.final
cdef class QueueContext:
    """Cache of a queue's context and device, whose queries are slow."""
    cdef object queue
    cdef ContextRef context
    cdef void* native       # the same context in the runtime below SYCL, or NULL if that runtime does not report allocations
    cdef AllocInfo info     # OpenCL's function that reports them, or NULL for Level Zero
    cdef int ordinal        # of the root device, or UNRESOLVED_ID
    cdef bint elsewhere     # whether the context differs from the default context of the root device

    def __dealloc__(self):
        if self.info != NULL:
            _call.release(self.native)
        if self.context != NULL:
            _call.delete_context(self.context)


cdef object _memory_type = None     # dpctl.memory._memory._Memory, the base class of the three Memory classes
cdef PyObject* _memory_classes[<int> USM_HOST + 1]     # indexed by USM type; borrowed, because dpctl keeps the classes alive
cdef object _queue_type = None
cdef object _context_type = None
cdef dict _ordinal_queues = {}
cdef int _found = 0     # whether dpctl's functions and types are set
cdef QueueContext _asked = None     # for the last queue that `context_of` was called with
cdef int _unknown_dpctl = 0     # whether dpctl lacks a required function
cdef bint _forked = False     # whether the parent process used SYCL before the fork; SYCL's threads are missing then

cdef enum:
    MOST_PAGES = 4096   # approximate maximum number of pages that `is_one_allocation` compares

NAME = "__sycl_usm_array_interface__"

_SYCLOBJ_FORMS = (
    "a filter string, a dpctl.SyclContext, a dpctl.SyclQueue, a capsule named 'SyclContextRef' or 'SyclQueueRef', or an"
    " object whose _get_capsule() returns one"
)
cdef object _lock = object()


cdef object import_dpctl():
    """Import dpctl and look up its C functions.

    Raises
    ------
    RuntimeError
        This process was forked after its parent had used SYCL. The runtime would wait for missing threads.
    """
    refuse_fork()
    dpctl = needed("dpctl.memory", "for SYCL memory")
    sycl_runtime.configure()      # before SYCL searches for devices
    if not is_done(&_found):
        find_functions(dpctl)
    return dpctl


cdef inline int require_dpctl() except -1:
    """Call `import_dpctl` unless dpctl is already imported."""
    if is_done(&_found):
        return refuse_fork()
    import_dpctl()
    return 0


cdef int refuse_fork() except -1:
    if _forked:
        raise RuntimeError(
            "SYCL: this process was forked after its parent had used SYCL, and the runtime does not work after a fork; start"
            " processes with multiprocessing's 'spawn' or 'forkserver', or fork before SYCL is used"
        )
    return 0


def _after_fork():
    global _forked
    _forked = True


cdef bint available() except -1:
    """Return whether ``dpctl.memory`` is loaded and its C functions are supported.

    The result is False for an unsupported version of dpctl. Operations on its memory then raise the error of `import_dpctl`,
    and all other operations work without dpctl.
    """
    if not is_done(&_found) and not is_done(&_unknown_dpctl) and "dpctl.memory" in sys.modules:
        try:
            import_dpctl()
        except ImportError:
            mark_done(&_unknown_dpctl)
    return is_done(&_found)


cdef void* get_c_function(object module, str name, str signature) except NULL:
    """Return a C function of a Cython module. Raise ImportError if it is missing or has a different signature."""
    capsule = module.__pyx_capi__.get(name)
    encoded = signature.encode()
    if capsule is None or not PyCapsule_IsValid(capsule, encoded):
        raise ImportError(
            f"dpctl: {module.__name__} lacks a C function {name} with the signature {signature!r}; accepted: dpctl 0.20 to"
            " 0.22, or a later version that has it"
        )
    return PyCapsule_GetPointer(capsule, encoded)


cdef void* find_symbol(object library, str name) except? NULL:
    """Return the address of a function, or NULL if the library or the name does not exist."""
    try:
        opened = ctypes.CDLL(library) if isinstance(library, str) else library
        return <void*> <size_t> ctypes.cast(opened[name], ctypes.c_void_p).value
    except (AttributeError, OSError):
        return NULL


cdef int find_functions(object dpctl) except -1:
    """Look up all functions and types of dpctl, and the functions of the runtimes below SYCL.

    Opening a library may release the GIL, so several threads may run this function. The first thread to finish stores its
    result.
    """
    global _call, _memory_type, _queue_type, _context_type
    cdef Functions functions
    cdef void** slots = <void**> &functions
    cdef int k
    cdef bint is_required = True
    # dpctl has already loaded this file, so CDLL returns the loaded library and does not start a second runtime.
    library = ctypes.CDLL(os.path.join(os.path.dirname(dpctl.__file__), DPCTL_FILE))
    for k, (origin, name, signature) in enumerate(_FUNCTIONS):
        if signature is not None:
            slots[k] = get_c_function(sys.modules[origin], name, signature)
            continue
        slots[k] = find_symbol(library if origin == DPCTL_FILE else origin, name)
        if slots[k] == NULL and is_required:
            raise ImportError(
                f"dpctl: its C library lacks the function {name}; accepted: dpctl 0.20 to 0.22, or a later version that has it")
        is_required = is_required and name != _LAST_REQUIRED
    in_device, shared, in_host = dpctl.memory.MemoryUSMDevice, dpctl.memory.MemoryUSMShared, dpctl.memory.MemoryUSMHost
    memory_type, queue_type, context_type = sys.modules["dpctl.memory._memory"]._Memory, dpctl.SyclQueue, dpctl.SyclContext
    call_after_fork(_after_fork)      # has the same effect if several threads register it
    with cython.critical_section(_lock):
        if not is_done(&_found):
            _call = functions
            _memory_classes[<int> USM_DEVICE] = <PyObject*> in_device
            _memory_classes[<int> USM_SHARED] = <PyObject*> shared
            _memory_classes[<int> USM_HOST] = <PyObject*> in_host
            _memory_type, _queue_type, _context_type = memory_type, queue_type, context_type
            mark_done(&_found)
    return 0


cdef inline bint is_a(object obj, object cls) noexcept:
    """Return whether `obj` is an instance of a dpctl class. Do not use ``__class__``, which an object can forge."""
    return PyObject_TypeCheck(obj, <PyTypeObject*> cls)


cdef bint is_memory(object obj) except -1:
    """Return whether `obj` is an initialized object of one of dpctl's three Memory classes."""
    return available() and is_a(obj, _memory_type) and _call.memory_pointer(<PyObject*> obj) != NULL


cdef bint is_queue(object obj) except -1:
    """Return whether `obj` is a ``dpctl.SyclQueue``. Return False without dpctl."""
    return available() and is_a(obj, _queue_type)


cdef bint speaks_as_memory(object obj) except -1:
    """Return whether `obj` is a Memory object whose interface dict is dpctl's own, not that of a subclass."""
    return is_memory(obj) and getattr(type(obj), NAME) is getattr(_memory_type, NAME)


cdef char* memory_pointer(object memory) except? NULL:
    return <char*> _call.memory_pointer(<PyObject*> memory)


cdef Py_ssize_t memory_nbytes(object memory) except -1:
    return <Py_ssize_t> _call.memory_nbytes(<PyObject*> memory)


cdef int memory_usm_type(object memory) except -1:
    """Return the USM type of a Memory object. The class determines the type, except for subclasses: query their pointer."""
    cdef int k
    cdef PyObject* cls = <PyObject*> Py_TYPE(memory)
    for k in range(<int> USM_DEVICE, <int> USM_HOST + 1):
        if cls == _memory_classes[k]:
            return k
    if not is_memory(memory):
        raise TypeError(f"USM: {show(memory)} is not a dpctl.memory.MemoryUSM* object, for example MemoryUSMDevice")
    return _call.pointer_type(_call.memory_pointer(<PyObject*> memory), _call.memory_context(<PyObject*> memory))


cdef MemoryBlock block_of_memory(object memory):
    """Return a memory block for a complete dpctl Memory object."""
    require_dpctl()
    if not is_memory(memory):
        raise TypeError(f"USM: {show(memory)} is not an initialized dpctl.memory.MemoryUSM* object")
    return new_block(USM, memory, memory_pointer(memory), memory_nbytes(memory), DLDevice(kDLOneAPI, UNRESOLVED_ID))


cdef int place(Descriptor a, MemoryBlock block, int usm_type) except -1:
    """Set `block`, which contains USM, as the memory of `a`. The caller sets the pointer and the layout."""
    a.block_ = block
    return set_usm(a, block.owner_, usm_type)


cdef int set_usm(Descriptor a, object owner, int usm_type) noexcept:
    """Set USM that `owner` keeps alive as the memory of `a`. `_block_of` creates the block on demand."""
    a.base_ = owner
    a.resource_kind = USM
    a.device_ = DLDevice(kDLOneAPI, UNRESOLVED_ID)
    a.usm_type_ = usm_type
    return 0


cdef MemoryBlock _block_of(Descriptor a):
    """Create the memory block of `a`: the complete Memory object, or for another owner, the bytes that `a` covers."""
    return block_of_memory(a.base_) if is_memory(a.base_) else block_of_reach(a)


cdef int usm_type_of(char* first, object queue, Py_ssize_t nbytes=0, bint* whole=NULL) except -1:
    """Return the USM type of a pointer in a queue's context: 0 for other memory, 1 device, 2 shared, 3 host.

    Set `whole`, if given, to whether one allocation contains `nbytes` bytes. Call this function first for every foreign
    pointer, because dpctl ends the process if another function receives a pointer that is not USM of the context.
    """
    cdef QueueContext asked = context_of(queue)
    cdef int kind = _call.pointer_type(first, asked.context)
    if whole != NULL:
        whole[0] = kind != 0 and (nbytes <= 1 or is_one_allocation(asked, first, nbytes, kind))
    return kind


cdef bint is_one_allocation(QueueContext asked, char* first, Py_ssize_t nbytes, int kind) noexcept:
    """Return whether one allocation contains a range of bytes whose first byte has the USM type `kind`.

    If the allocation cannot be queried, the USM types of the pages are compared instead. In a large range, only about
    MOST_PAGES pages are compared.
    """
    cdef char* last = first + nbytes - 1
    cdef char* page
    cdef void* base = NULL      # start of the allocation that contains `last`
    cdef Py_ssize_t step
    cdef int error
    if asked.native != NULL:
        if asked.info != NULL:
            error = asked.info(asked.native, last, ALLOC_BASE, sizeof(base), &base, NULL)
        else:
            error = _call.address_range(asked.native, last, &base, NULL)
        return error == 0 and base != NULL and <char*> base <= first
    step = max(<Py_ssize_t> PAGE, nbytes // MOST_PAGES)
    page = first + step
    while page < last:
        if _call.pointer_type(page, asked.context) != kind:
            return False
        page += step
    return _call.pointer_type(last, asked.context) == kind


cdef QueueContext context_of(object queue):
    """Return the QueueContext of a queue. The result for the last queue is cached."""
    global _asked
    cdef QueueContext last, asked
    with cython.critical_section(_lock):
        last = _asked
    if last is not None and last.queue is queue:
        return last
    asked = QueueContext.__new__(QueueContext)
    asked.queue = queue
    asked.ordinal = UNRESOLVED_ID
    asked.context = _call.queue_context(_call.queue_ref(<PyObject*> queue))
    find_native(asked)
    with cython.critical_section(_lock):
        last, _asked = _asked, asked      # `last` is freed after the lock is released: a finalizer may call this function
    return asked


cdef int find_native(QueueContext asked) noexcept:
    """Set the context of the runtime below SYCL, if that runtime reports allocations."""
    cdef int backend
    if _call.backend == NULL or _call.native == NULL:
        return 0
    backend = _call.backend(asked.context)
    if backend == DPCTL_OPENCL and _call.find != NULL:
        asked.native = _call.native(asked.context)     # returns a new reference
        asked.info = find_alloc_info(asked.native)
        if asked.info == NULL:
            _call.release(asked.native)
            asked.native = NULL
    elif backend == DPCTL_LEVEL_ZERO and _call.address_range != NULL:
        asked.native = _call.native(asked.context)
    return 0


cdef AllocInfo find_alloc_info(void* context) noexcept:
    """Return clGetMemAllocInfoINTEL for the platform of the context's first device, or NULL."""
    cdef void* devices[64]
    cdef void* platform = NULL
    cdef size_t written = 0
    if _call.context_info(context, CONTEXT_DEVICES, sizeof(devices), devices, &written) != 0 or written < sizeof(void*):
        return NULL
    if _call.device_info(devices[0], DEVICE_PLATFORM, sizeof(platform), &platform, NULL) != 0:
        return NULL
    return <AllocInfo> _call.find(platform, b"clGetMemAllocInfoINTEL")


cdef object queue_from(object syclobj, void* pointer):
    """Return a ``dpctl.SyclQueue`` of the context that `syclobj` specifies. The specification permits six forms.

    Parameters
    ----------
    syclobj : object
        Value of the key ``syclobj`` in an interface dict. A capsule is read but not consumed, so a producer may return the
        same capsule again.
    pointer : void*
        If the context has several devices, select the device of this pointer, unless it is not USM of the context.

    Raises
    ------
    InterfaceError
        `syclobj` does not have one of these forms, or is a filter string that does not select a device.
    """
    require_dpctl()
    if isinstance(syclobj, str):
        try:
            return sys.modules["dpctl"].SyclQueue(syclobj)
        except PASSES_ON:
            raise
        except Exception as error:
            raise interface_error(
                NAME, "syclobj", syclobj, f"a filter string that selects a device here ({show(str(error))})") from error
    if not is_a(syclobj, _queue_type) and not is_a(syclobj, _context_type):
        syclobj = from_capsule(syclobj)
    return syclobj if is_a(syclobj, _queue_type) else queue_from_context(syclobj, pointer)


cdef object queue_of_ref(void* queue):
    """Return a ``dpctl.SyclQueue`` that contains a copy of the ``sycl::queue`` at `queue`."""
    require_dpctl()
    return _call.queue_make(queue)


cdef object from_capsule(object syclobj):
    """Return the queue or context in a capsule, or in the result of ``_get_capsule()``."""
    capsule = syclobj
    if not PyCapsule_CheckExact(capsule):
        give = getattr(syclobj, "_get_capsule", None)
        try:
            capsule = give() if callable(give) else None
        except PASSES_ON:
            raise
        except Exception as error:
            raise interface_error(NAME, "syclobj", syclobj, f"{_SYCLOBJ_FORMS} (it raised: {error})") from error
    if PyCapsule_CheckExact(capsule):
        if PyCapsule_IsValid(capsule, b"SyclQueueRef"):
            return _call.queue_make(PyCapsule_GetPointer(capsule, b"SyclQueueRef"))
        if PyCapsule_IsValid(capsule, b"SyclContextRef"):
            return _call.context_make(PyCapsule_GetPointer(capsule, b"SyclContextRef"))
    raise interface_error(NAME, "syclobj", syclobj, _SYCLOBJ_FORMS)


cdef object queue_from_context(object context, void* pointer):
    """Return a queue on the device of `pointer` in `context`, or on the first device if `pointer` is not USM of `context`."""
    cdef ContextRef ref = _call.context_ref(<PyObject*> context)
    cdef void* place = NULL
    # This check comes first, because `pointer_device` ends the process for a pointer that is not USM of the context.
    if pointer != NULL and _call.pointer_type(pointer, ref) != 0:
        place = _call.pointer_device(pointer, ref)
    if place == NULL:
        device = context.get_devices()[0]
    else:
        try:
            device = _call.device_make(place)
        finally:
            _call.delete_device(place)
    return sys.modules["dpctl"].SyclQueue(context, device)


cpdef object queue_of_ordinal(int ordinal):
    """Return a queue for a root device and its default context. One queue per device is cached until the process ends."""
    queue = found(_ordinal_queues, ordinal)
    if queue is None:
        dpctl = import_dpctl()
        try:
            queue = dpctl.get_device_cached_queue(dpctl.SyclDevice(str(ordinal)))      # the queue that dpnp uses
        except PASSES_ON:
            raise
        except Exception as error:
            raise no_device_error(f"oneapi:{ordinal} is not a SYCL device here", error) from error
        queue = _ordinal_queues.setdefault(ordinal, queue)
    return queue


cdef QueueRef queue_ref_of(Descriptor a) except? NULL:
    """Return a borrowed reference to the queue of the memory of `a`, or NULL if the queue is unknown."""
    if not available():
        return NULL
    if a.producer_ is not None and is_a(a.producer_, _queue_type):
        return _call.queue_ref(<PyObject*> a.producer_)
    if is_a(a.base_, _memory_type):
        return _call.memory_queue(<PyObject*> a.base_)
    return NULL


cpdef object queue_of(Descriptor a):
    """Return the ``dpctl.SyclQueue`` of the memory of `a`."""
    require_dpctl()
    if a.producer_ is not None and is_a(a.producer_, _queue_type):
        return a.producer_
    if is_a(a.base_, _memory_type):
        return a.base_.sycl_queue
    return queue_of_ordinal(max(a.device_.device_id, 0))


cdef object base_of(Descriptor a):
    """Return the ``dpctl.memory.MemoryUSM*`` that the USM array specification requires as the owner.

    For an array that was imported from an interface dict, the object is created on demand, once per block, because its
    creation takes longer than the import. If the queue is unknown, return the present owner.
    """
    cdef MemoryBlock block = block_of(a)
    cdef MemoryBlock successor = None
    cdef QueueRef queue = queue_ref_of(a)
    former = owner_of(block)
    if queue == NULL or is_memory(former):
        return former
    if block.nbytes_ == 0:      # dpctl cannot wrap 0 bytes
        memory = new_memory(USM_NAMES[a.usm_type_], 0, {"queue": queue_of(a)})
    else:
        if block.resource != NULL:
            successor = successor_of(block)
        # Without an owner, dpctl would take ownership and free the memory.
        memory = _call.memory_make(block.address_, block.nbytes_, queue, former if successor is None else successor)
    set_owner(block, former, memory, successor)
    return owner_of(block)


cdef object memory_on_queue(Descriptor a):
    """Return the Memory object of `base_of`, or a view of it on the array's queue and without an incomplete last element.

    The array's queue differs from the queue of its memory if the caller passed ``stream=``. dpnp views the complete memory as
    elements, so the size must be a multiple of the item size.
    """
    memory = base_of(a)
    if not is_memory(memory):
        return memory
    queue = a.producer_
    cdef bint elsewhere = queue is not None and is_a(queue, _queue_type) and memory.sycl_queue != queue
    cdef Py_ssize_t nbytes = memory_nbytes(memory)
    cdef Py_ssize_t whole = nbytes - nbytes % a.itemsize_ or nbytes     # memory of less than one element is not cut
    if not elsewhere and whole == nbytes:
        return memory
    return _call.memory_make(memory_pointer(memory), whole, queue_ref_of(a), memory)


cpdef object new_memory(object usm_type, Py_ssize_t nbytes, dict options):
    """Allocate USM of the given type, and return the ``dpctl.memory.MemoryUSM*`` object that owns the memory.

    `options` are further arguments of dpctl's constructor. dpctl cannot allocate 0 bytes, so one unused byte is allocated.
    """
    memory = import_dpctl().memory
    kinds = {"device": memory.MemoryUSMDevice, "shared": memory.MemoryUSMShared, "host": memory.MemoryUSMHost}
    kind = kinds.get(usm_type)
    if kind is None:
        raise ValueError(f"USM: usm_type is {show(usm_type)}; accepted: {', '.join(kinds)}")
    try:
        return kind(max(nbytes, 1), **options)
    except memory.USMAllocationError as error:      # its text does not state the limit of the device
        device = device_of_queue(options.get("queue"))
        limit = "" if device is None else (
            f"; accepted: at most {device.max_mem_alloc_size} bytes in one allocation of {device.name.strip()}"
            " (max_mem_alloc_size)"
        )
        raise MemoryError(f"cannot allocate {nbytes} bytes of USM-{usm_type} memory ({error}){limit}") from error
    except sys.modules["dpctl"].SyclDeviceCreationError as error:
        raise no_device_error(f"no SYCL device is available for USM-{usm_type} memory", error) from error


# The aspect of each element type that is optional in SYCL, and the type to suggest on devices without the aspect. dpnp uses
# the same types, except for complex32, which dpnp does not support. dpctl allocates memory of any type on a device without the
# aspect (GPUs of the Arc A series lack fp64), and the first kernel that reads the memory fails.
_OPTIONAL = {
    "float64": ("fp64", "float32"),
    "complex128": ("fp64", "complex64"),
    "float16": ("fp16", "float32"),
    "complex32": ("fp16", "complex64"),
}


cpdef bint has_type(str element, object queue) except -1:
    """Return whether the device of a queue, or the default device for None, supports an element type."""
    device = device_of_queue(queue) if element in _OPTIONAL else None
    return device is None or getattr(device, f"has_aspect_{_OPTIONAL[element][0]}")


cpdef int check_element(Descriptor a, object queue, str call) except -1:
    """Raise TypeError if the device of a queue, or the default device for None, does not support the element type of `a`."""
    require_dpctl()
    cdef str element = name_of_elements(a)
    if not has_type(element, queue):
        aspect, other = _OPTIONAL[element]
        raise TypeError(
            f"{call}: dtype is {element}, which {device_of_queue(queue).name.strip()} does not support (it lacks the aspect"
            f" {aspect}); accepted: types that do not need this aspect. Pass dtype={other!r}, for example"
            f" arrayhub.asarray(x, dtype={other!r}, device=...)"
        )
    return 0


def device_of_queue(queue):
    """Return the ``dpctl.SyclDevice`` of `queue`, or the default device if `queue` is None.

    Return None if dpctl does not find a default device, or if `queue` is not a queue. The allocation then raises an error.
    """
    if queue is not None:
        is_any_memory = available() and is_a(queue, _memory_type)      # its attribute crashes if the memory is empty
        return None if is_any_memory else getattr(queue, "sycl_device", None)
    dpctl = sys.modules["dpctl"]
    try:
        return dpctl.select_default_device()
    except dpctl.SyclDeviceCreationError:
        return None


cdef object no_device_error(str what, object error):
    """Return the BufferError for a device that dpctl cannot find."""
    return BufferError(f"{what} ({error}){cause_of(error)}; see python -m arrayhub doctor")


# ------------------------------------------------------------------------------------------- the row of the runtime


cdef int _host_ready(Descriptor a) except -1:
    """Wait for all work on the queue of the memory. The queue may be out of order, as dpctl's default queue is."""
    cdef QueueRef queue
    queue = queue_ref_of(a)
    if queue != NULL:
        refuse_fork()
        with nogil:
            _call.wait(queue)
    return 0


cdef int _consumer_ready(Descriptor a, object stream) except -1:
    """Make the consumer's queue wait for the producer's queue, or wait on the host if the consumer does not pass a queue.

    Also wait on the host if the consumer's queue is out of order, even if it is the producer's queue. Work that is submitted
    later to such a queue may start at any time, and on some devices, such as the CPU, a barrier does not delay this work.
    """
    if stream is None or not available():
        return _host_ready(a)
    if not is_a(stream, _queue_type):
        raise BufferError(f"DLPack: stream is {show(stream)} for SYCL memory; accepted: None or a dpctl.SyclQueue. For a"
                          " library that reads host memory, call arrayhub.to_host(x)")
    if not stream.is_in_order:
        return _host_ready(a)
    queue = queue_of(a)
    if stream != queue:
        submit_barrier(stream, [submit_barrier(queue)])
    return 0


cdef int _adopt_stream(Descriptor a, object stream) except -1:
    """Make `stream` wait for the producer's queue, and set it as the array's queue."""
    check_context(stream, a)
    _consumer_ready(a, stream)
    device_of(a)               # resolve the device now, because the queue that determines it is replaced
    a.producer_ = stream
    return 0


cdef int _resolve_device(Descriptor a) except -1:
    """Set the ordinal of the root device of `a`, and the flag OTHER_CONTEXT if the memory is outside its default context."""
    cdef QueueContext asked = context_of(queue_of(a))
    cdef int ordinal
    cdef bint elsewhere
    with cython.critical_section(asked):
        ordinal, elsewhere = asked.ordinal, asked.elsewhere
    if ordinal == UNRESOLVED_ID:
        device = asked.queue.sycl_device
        ordinal = device.get_device_id()
        elsewhere = device.parent_device is not None or device.sycl_platform.default_context != asked.queue.sycl_context
        with cython.critical_section(asked):
            asked.ordinal, asked.elsewhere = ordinal, elsewhere
    with cython.critical_section(a):
        if elsewhere:
            a.flags_ |= OTHER_CONTEXT
        a.device_.device_id = ordinal      # last, because it tells other threads that the flag is set
    return 0


cdef int _adopt(Descriptor a) except -1:
    """Set the USM type and the queue of an array that was imported through DLPack or Arrow.

    Both protocols specify only a root device. By convention, the memory belongs to the default context of this device.
    Neither protocol specifies the queue of pending work. The producer's ``sycl_queue`` is used if it exists, as in dpnp.
    """
    cdef Py_ssize_t low, high
    cdef int usm_type
    cdef bint whole
    try:
        import_dpctl()
    except ImportError:
        return 0      # without dpctl, the array can still be exported through DLPack
    queue = getattr(a.producer_, "sycl_queue", None)
    if not is_a(queue, _queue_type):
        queue = queue_of_ordinal(a.device_.device_id)
    extent(a, &low, &high)
    usm_type = usm_type_of(a.data_ + low, queue, high - low, &whole)
    if high == low:      # nothing to check, and the pointer may be invalid; if it is USM, use its type
        usm_type = usm_type or USM_DEVICE
    elif not whole:
        raise interface_error(
            IN_MESSAGES[a.protocol_], "data", f"{<size_t> a.data_:#x}",
            f"USM of the default context of oneapi:{a.device_.device_id}, all {high - low} bytes that the view uses",
        )
    a.usm_type_ = usm_type
    a.producer_ = queue
    return 0


cdef int _allocate(Descriptor a, Py_ssize_t nbytes, DLDevice device) except -1:
    """Allocate device USM on the root device with the ordinal of `device`."""
    queue = queue_of_ordinal(device.device_id)
    cdef MemoryBlock block = block_of_memory(new_memory("device", nbytes, {"queue": queue}))
    block.nbytes_ = nbytes
    place(a, block, USM_DEVICE)
    a.data_ = block.address_
    return 0


cdef Runtime* _row = runtime_of(kDLOneAPI)
_row.host_ready = _host_ready
_row.consumer_ready = _consumer_ready
_row.adopt_stream = _adopt_stream
_row.resolve_device = _resolve_device
_row.adopt = _adopt
_row.block_of = _block_of
_row.allocate = _allocate


# ------------------------------------------------------------------------------------------------ copies, for transfer/


cdef enum:
    MOST_EVENTS = 4


cdef class SyclEvent:
    """Work that was submitted to a queue."""
    cdef EventRef ref

    def __dealloc__(self):
        if self.ref != NULL:
            _call.delete_event(self.ref)

    def wait(self):
        """Wait for the completion of the work, without the GIL.

        The wait is called twice, because the first call may return too early (DPC++ 2026.2; compare intel/llvm#14623).
        `sycl::event::wait` reads the native event and, if it does not exist yet, the command. Between these reads, a thread of
        the runtime may submit a command that waited for a host task, such as the host tasks that dpnp submits after its
        kernels. The second call finds the native event.
        """
        if self.ref == NULL:
            raise TypeError("SyclEvent: the event is empty; accepted: events of submit_copy and submit_barrier")
        with nogil:
            _call.wait_for_event(self.ref)
            _call.wait_for_event(self.ref)


cdef SyclEvent new_event(EventRef ref, str what):
    if ref == NULL:
        raise RuntimeError(f"SYCL: the queue rejected {what}; the runtime has written the reason to stderr")
    cdef SyclEvent event = SyclEvent.__new__(SyclEvent)
    event.ref = ref
    return event


cpdef int wait(object queue) except -1:
    """Wait for all work that has been submitted to a queue, without the GIL."""
    cdef QueueRef ref = checked_ref(queue)
    with nogil:
        _call.wait(ref)
    return 0


cdef int read_events(list after, EventRef* events, str call) except -1:
    """Store the references of at most MOST_EVENTS events, and return their number."""
    cdef int k, n = <int> min(len(after), MOST_EVENTS + 1)
    if n > MOST_EVENTS:
        raise ValueError(f"{call}: after has {len(after)} events; accepted: at most {MOST_EVENTS}")
    for k in range(n):
        events[k] = (<SyclEvent?> after[k]).ref
        if events[k] == NULL:
            raise TypeError(f"{call}: after[{k}] is an empty event; accepted: events of submit_copy and submit_barrier")
    return n


def submit_barrier(queue, list after=None):
    """Return an event for events of other queues, or by default for all work that has been submitted to a queue so far.

    Later work of an in-order queue waits for the events. The submission may wait for a thread that waits for host tasks of
    dpnp, and these tasks need the GIL (intel/llvm#22943), so this function releases the GIL. dpctl's method does not.
    """
    cdef EventRef events[MOST_EVENTS]
    cdef EventRef done
    cdef int n = read_events(after or [], events, "submit_barrier")
    cdef QueueRef ref = checked_ref(queue)
    with nogil:
        done = _call.barrier_for_events(ref, events, n) if n > 0 else _call.barrier(ref)
    return new_event(done, "a barrier")


def submit_copy(queue, size_t target, size_t source, size_t nbytes, list after=None):
    """Submit a copy between two addresses to a queue, and return the copy's event.

    Parameters
    ----------
    queue : dpctl.SyclQueue
    target, source : int
        Addresses in USM of the queue's context or in host memory. The caller keeps the memory alive until the copy is complete.
    nbytes : int
    after : list of SyclEvent, optional
        At most MOST_EVENTS events that the copy waits for.
    """
    cdef EventRef events[MOST_EVENTS]
    cdef EventRef done
    cdef int n = read_events(after or [], events, "submit_copy")
    cdef QueueRef ref = checked_ref(queue)
    with nogil:     # the call may execute the copy before it returns
        done = _call.copy(ref, <void*> target, <void*> source, nbytes, events, n)
    return new_event(done, f"a copy of {nbytes} bytes")


def hand_over(queue, list after):
    """Make later work of a queue wait for events, without waiting on the host.

    After this call, a wait for `queue`, on the host or in another queue, also waits for the events. The events are also added
    to dpctl's order manager, because dpnp's kernels depend only on the events that the manager records for their queue.
    """
    if after:      # without events, `submit_barrier` would wait for all work of the queue
        tell_dpnp(queue, [submit_barrier(queue, after)])


cpdef int tell_dpnp(object queue, list after) except -1:
    """Let dpnp's later kernels on a queue depend on events."""
    managers = getattr(sys.modules.get("dpctl.utils"), "SequentialOrderManager", None)
    if managers is not None:
        for event in dpctl_events(after):
            managers[queue].add_event_pair(event, event)
    return 0


cpdef list dpctl_events(list after):
    """Return events as instances of dpctl.SyclEvent."""
    cdef EventRef events[MOST_EVENTS]
    cdef int k, n = read_events(after, events, "dpctl_events")
    return [_call.event_make(events[k]) for k in range(n)]      # each contains a copy of the sycl::event


def reach(Descriptor array):
    """Return the lowest address of the elements of `array`, and the size of their address range in bytes."""
    cdef Py_ssize_t low, high
    extent(array, &low, &high)
    return <size_t> (array.data_ + low), high - low


cpdef bint is_laid_out_as(Descriptor array, Descriptor other) except -1:
    """Return whether two arrays of the same shape have the same strides and no gaps, so that one memcpy copies the elements.

    Dimensions of length 1 are ignored. Packed arrays are always compact in C order.
    """
    cdef Py_ssize_t low, high
    cdef int k
    if array.flags_ & PACKED:
        return True
    extent(array, &low, &high)
    if high - low != size_of(array) * array.itemsize_ or not same_shape(array, other):
        return False
    for k in range(array.nd_):
        if array.shape_[k] > 1 and array.byte_strides_[k] != other.byte_strides_[k]:
            return False
    return True


def checked_queue(stream):
    """Return `stream` if it is a queue, else raise an error."""
    require_dpctl()
    if not is_a(stream, _queue_type):
        raise BufferError(f"stream is {show(stream)} for SYCL memory; accepted: None or a dpctl.SyclQueue")
    return stream


cdef QueueRef checked_ref(object queue) except NULL:
    """Return the ``sycl::queue*`` of a ``dpctl.SyclQueue``. The pointer is valid while the object lives."""
    checked_queue(queue)
    return _call.queue_ref(<PyObject*> queue)


def queue_for(device):
    """Return the queue for allocations on `device`, which is a queue, a dpnp device, or an argument of ``Device``."""
    import_dpctl()
    queue = named_queue(device)
    if queue is not None:
        return queue
    wanted = Device(device)
    if wanted.type != "oneapi":
        raise ValueError(f"device: {wanted} is not a SYCL device; accepted: a device such as 'oneapi:0', or a dpctl.SyclQueue")
    return queue_of_ordinal(wanted.id)


def named_queue(device):
    """Return `device` if it is a queue, the queue of `device` if it is a dpnp device, else None."""
    if is_tensor_device(device):
        device = device.sycl_queue
    return device if is_queue(device) else None


cdef bint is_tensor_device(object obj) except -1:
    """Return whether `obj` is a device object, as returned by ``x.device`` of a dpnp array.

    Up to dpctl 0.21, the class of these objects was part of dpctl.
    """
    cls = type(obj)
    return cls.__name__ == "Device" and root_of(cls) in ("dpnp", "dpctl")


def shares_context(Descriptor array, queue):
    """Return whether the USM of `array` is in the context of `queue`, so that the queue can use the memory."""
    return queue_of(array).sycl_context == checked_queue(queue).sycl_context


def check_context(stream, Descriptor array):
    """Raise BufferError if `stream` is not a queue of the context of the array's memory."""
    if not shares_context(array, stream):
        raise BufferError(
            f"stream is {show(stream)}, whose context differs from the memory's; accepted: a queue of the memory's context"
        )


def on_queue(Descriptor array, queue):
    """Return a view of `array` whose queue is `queue`, or `array` itself if it already has this queue.

    Both queues must have the same context. The function does not order them.
    """
    if queue_of(array) is queue:
        return array
    cdef Descriptor view = same_layout(array)
    device_of(view)            # resolve the device now, because the queue that determines it is replaced
    view.producer_ = checked_queue(queue)
    return view


def _read_device(obj):
    """Return DLPack's (device_type, device_id) of a dpctl object, or of the device of a dpnp array."""
    if root_of(type(obj)) == "dpnp" and not is_tensor_device(obj):
        raise TypeError(f"device: {show(obj)} of dpnp is not a device; accepted: the x.device of a dpnp array")
    if available() and is_a(obj, _memory_type) and not is_memory(obj):     # reading its sycl_device would end the process
        raise TypeError(f"device: {show(obj)} is uninitialized; accepted: dpctl's devices, queues and initialized memory")
    device = obj.sycl_device if hasattr(obj, "sycl_device") else obj
    return (kDLOneAPI, device.get_device_id())


def _read_filter(selector):
    """Return DLPack's (device_type, device_id) of the device that a SYCL filter string selects."""
    refuse_fork()
    try:
        return _read_device(import_dpctl().SyclDevice(selector))
    except PASSES_ON:
        raise
    except Exception as error:      # also if dpctl is missing, because most such strings are misspelled devices, not filters
        raise ValueError(
            f"device: {show(selector)} is not a device; accepted: 'cpu', 'cuda:0', 'oneapi:0', a DLPack pair, or a SYCL filter"
            f" string that selects a device here ({error}){cause_of(error)}"
        ) from error


cdef str cause_of(object error):
    """Return the reason why dpctl does not find any device, as the end of a message, or "" for other errors."""
    dpctl = sys.modules.get("dpctl")
    if dpctl is None or not isinstance(error, dpctl.SyclDeviceCreationError) or dpctl.get_num_devices():
        return ""
    return f"; dpctl does not find any device: {sycl_runtime.cause()}"


READERS["dpctl"] = READERS["dpnp"] = _read_device
READERS["str"] = _read_filter
