"""SYCL through dpctl: what a pointer is, which queue it belongs to, and how to wait for it.

dpctl is an extra. Nothing here is imported before a SYCL object is in hand or asked for. Its C functions are found at
run time: those of its Cython modules in ``__pyx_capi__``, where the signature is part of the entry and is compared,
those of its C library by name.
"""

import ctypes
import os
import sys

cimport cython
from cpython.object cimport PyObject, PyObject_TypeCheck, PyTypeObject, Py_TYPE
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer, PyCapsule_IsValid

from arrayhub._core.descriptor cimport (
    OTHER_CONTEXT,
    USM_DEVICE,
    USM_HOST,
    USM_SHARED,
    Descriptor,
    block_of,
    block_of_reach,
    extent,
    register_block_maker,
)
from arrayhub._core.device cimport UNRESOLVED_ID, DLDevice, kDLOneAPI
from arrayhub._core.memory cimport PAGE, USM, MemoryBlock, successor_of, new_block, owner_of, set_owner
from arrayhub._core.runtime cimport Runtime, device_of, runtime_of
from arrayhub._core.cpython.atomics cimport found, is_done, mark_done
from arrayhub.runtimes.usm_extent cimport OTHER, Native, allocation_of, enter, leave, look

from arrayhub import sycl_runtime
from arrayhub._core.descriptor import IN_MESSAGES, USM_NAMES
from arrayhub._core.device import READERS, Device
from arrayhub._core.errors import PASSES_ON, interface_error, needed, root_of, show

ctypedef void* (*MemoryPointer)(PyObject*)
ctypedef size_t (*MemorySize)(PyObject*)
ctypedef void* (*BorrowRef)(PyObject*)
ctypedef object (*MemoryMake)(void*, size_t, QueueRef, object)
ctypedef object (*MakeObject)(void*)
ctypedef int (*PointerType)(void*, ContextRef) noexcept nogil
ctypedef void* (*PointerDevice)(void*, ContextRef) noexcept nogil
ctypedef QueueRef (*QueueCreate)(ContextRef, void*, void*, int) noexcept nogil
ctypedef void* (*GetRef)(void*) noexcept nogil
ctypedef void (*UseRef)(void*) noexcept nogil
ctypedef EventRef (*Barrier)(QueueRef) noexcept nogil
ctypedef EventRef (*Copy)(QueueRef, void*, const void*, size_t, const EventRef*, size_t) noexcept nogil

cdef struct DpctlFunctions:
    # dpctl.memory._memory
    MemoryPointer memory_pointer
    MemorySize memory_nbytes
    BorrowRef memory_queue
    BorrowRef memory_context
    MemoryMake memory_make
    # dpctl._sycl_queue, dpctl._sycl_context
    BorrowRef queue_ref
    MakeObject queue_make
    BorrowRef context_ref
    MakeObject context_make
    # the C library
    PointerType pointer_type
    PointerDevice pointer_device
    UseRef delete_device
    QueueCreate queue_create
    GetRef queue_context
    UseRef delete_context
    UseRef delete_queue
    UseRef wait
    Barrier barrier
    Copy copy
    UseRef wait_for_event
    UseRef delete_event

cdef DpctlFunctions _dpctl


@cython.final
cdef class QueueContext:
    """A queue and its context, which takes time to get; held by whoever asks about pointers in it."""
    cdef object queue
    cdef ContextRef context
    cdef Native native      # the same context to the runtime below

    def __dealloc__(self):
        leave(&self.native)
        if self.context != NULL:
            _dpctl.delete_context(self.context)


cdef object _memory_type = None     # dpctl.memory._memory._Memory, the base of the three
cdef PyObject* _memory_classes[<int> USM_HOST + 1]     # of each kind of USM; dpctl keeps them
cdef object _queue_type = None
cdef object _context_type = None
cdef dict _ordinal_queues = {}
cdef int _found = 0     # whether dpctl's functions and types are set
cdef QueueContext _asked = None     # of the queue that pointers were last asked about
cdef int _unknown_dpctl = 0     # it lacks a function that is needed
cdef bint _forked = False     # this process was forked from one that used SYCL, whose threads did not come along

cdef enum:
    MOST_PAGES = 4096

NAME = "__sycl_usm_array_interface__"

_SYCLOBJ_FORMS = (
    "a filter string, a dpctl.SyclContext, a dpctl.SyclQueue, a capsule named 'SyclContextRef' or 'SyclQueueRef', or an"
    " object whose _get_capsule() gives one"
)
cdef object _lock = object()


cdef object import_dpctl():
    """dpctl, with its C functions found.

    Raises
    ------
    RuntimeError
        In a child that was forked after its parent had used SYCL: the runtime would wait for threads that are not there.
    """
    refuse_fork()
    dpctl = needed("dpctl.memory", "for SYCL memory")
    if not is_done(&_found):
        find_functions(dpctl)
    return dpctl


cdef int refuse_fork() except -1:
    if _forked:
        raise RuntimeError(
            "SYCL: this process was forked after its parent had used SYCL, and the runtime does not survive that; start"
            " processes with multiprocessing's 'spawn' or 'forkserver', or fork before SYCL is used"
        )
    return 0


def _after_fork():
    global _forked
    _forked = True


cdef bint available() except -1:
    """Whether dpctl's functions can be called, importing nothing that the producer has not imported already.

    False, too, with a dpctl of an unknown kind, whose memory nobody here can look at: what has to do with it raises what
    `import_dpctl` says, and all else goes on without it.
    """
    if not is_done(&_found) and not is_done(&_unknown_dpctl) and "dpctl.memory" in sys.modules:
        try:
            import_dpctl()
        except ImportError:
            mark_done(&_unknown_dpctl)
    return is_done(&_found)


cdef void* declared(object module, str name, str signature) except NULL:
    """A C function that a Cython module declares, if its signature is still the one known here."""
    capsule = module.__pyx_capi__.get(name)
    encoded = signature.encode()
    if capsule is None or not PyCapsule_IsValid(capsule, encoded):
        raise ImportError(
            f"dpctl: {module.__name__} has no C function {name} with the signature {signature!r}; accepted: dpctl 0.20 to"
            " 0.22, or a later one that kept it"
        )
    return PyCapsule_GetPointer(capsule, encoded)


cdef void* exported(object library, str name) except NULL:
    """A function of dpctl's C library."""
    try:
        return <void*> <size_t> ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError as error:
        raise ImportError(f"dpctl: its C library has no function {name}; accepted: dpctl 0.20 to 0.22, or a later one that"
                          " kept it") from error


cdef int find_functions(object dpctl) except -1:
    """Set what is needed of dpctl. To open a library may let another thread look meanwhile: the first to have found all
    sets it."""
    global _dpctl, _memory_type, _queue_type, _context_type
    cdef DpctlFunctions functions
    memory = sys.modules["dpctl.memory._memory"]
    queue = sys.modules["dpctl._sycl_queue"]
    context = sys.modules["dpctl._sycl_context"]
    Memory = "struct Py_MemoryObject *"
    Queue = "struct PySyclQueueObject *"
    Context = "struct PySyclContextObject *"
    functions.memory_pointer = <MemoryPointer> declared(memory, "Memory_GetUsmPointer", f"DPCTLSyclUSMRef ({Memory})")
    functions.memory_nbytes = <MemorySize> declared(memory, "Memory_GetNumBytes", f"size_t ({Memory})")
    functions.memory_queue = <BorrowRef> declared(
        memory, "Memory_GetQueueRef", f"DPCTLSyclQueueRef ({Memory})")
    functions.memory_context = <BorrowRef> declared(
        memory, "Memory_GetContextRef", f"DPCTLSyclContextRef ({Memory})")
    functions.memory_make = <MemoryMake> declared(
        memory, "Memory_Make", "PyObject *(DPCTLSyclUSMRef, size_t, DPCTLSyclQueueRef, PyObject *)")
    functions.queue_ref = <BorrowRef> declared(queue, "SyclQueue_GetQueueRef", f"DPCTLSyclQueueRef ({Queue})")
    functions.queue_make = <MakeObject> declared(queue, "SyclQueue_Make", f"{Queue}(DPCTLSyclQueueRef)")
    functions.context_ref = <BorrowRef> declared(
        context, "SyclContext_GetContextRef", f"DPCTLSyclContextRef ({Context})")
    functions.context_make = <MakeObject> declared(context, "SyclContext_Make", f"{Context}(DPCTLSyclContextRef)")
    # dpctl has loaded this very file already, so this finds that copy and starts no second runtime.
    library = ctypes.CDLL(os.path.join(os.path.dirname(dpctl.__file__), "libDPCTLSyclInterface.so"))
    functions.pointer_type = <PointerType> exported(library, "DPCTLUSM_GetPointerType")
    functions.pointer_device = <PointerDevice> exported(library, "DPCTLUSM_GetPointerDevice")
    functions.delete_device = <UseRef> exported(library, "DPCTLDevice_Delete")
    functions.queue_create = <QueueCreate> exported(library, "DPCTLQueue_Create")
    functions.queue_context = <GetRef> exported(library, "DPCTLQueue_GetContext")
    functions.delete_context = <UseRef> exported(library, "DPCTLContext_Delete")
    functions.delete_queue = <UseRef> exported(library, "DPCTLQueue_Delete")
    functions.wait = <UseRef> exported(library, "DPCTLQueue_Wait")
    functions.barrier = <Barrier> exported(library, "DPCTLQueue_SubmitBarrier")
    functions.copy = <Copy> exported(library, "DPCTLQueue_MemcpyWithEvents")
    functions.wait_for_event = <UseRef> exported(library, "DPCTLEvent_Wait")
    functions.delete_event = <UseRef> exported(library, "DPCTLEvent_Delete")
    look(library)
    with cython.critical_section(_lock):
        if is_done(&_found):
            return 0
        _dpctl = functions
        _memory_classes[<int> USM_DEVICE] = <PyObject*> dpctl.memory.MemoryUSMDevice
        _memory_classes[<int> USM_SHARED] = <PyObject*> dpctl.memory.MemoryUSMShared
        _memory_classes[<int> USM_HOST] = <PyObject*> dpctl.memory.MemoryUSMHost
        _queue_type = dpctl.SyclQueue
        _context_type = dpctl.SyclContext
        _memory_type = memory._Memory
        os.register_at_fork(after_in_child=_after_fork)
        mark_done(&_found)
    return 0


cdef inline bint is_a(object obj, object cls) noexcept:
    """Whether `obj` has the C struct of a class of dpctl's: by its real type, because ``__class__`` may say anything."""
    return PyObject_TypeCheck(obj, <PyTypeObject*> cls)


cdef bint is_memory(object obj) except -1:
    """Whether `obj` is one of dpctl's three Memory objects, and has memory: one that was never initialised has not."""
    return available() and is_a(obj, _memory_type) and _dpctl.memory_pointer(<PyObject*> obj) != NULL


cdef bint is_queue(object obj) except -1:
    """Whether `obj` is a ``dpctl.SyclQueue``; without dpctl there is none."""
    return available() and is_a(obj, _queue_type)


cdef bint speaks_as_memory(object obj) except -1:
    """Whether the interface dict of `obj` is the one that the Memory classes write, and no subclass has replaced."""
    return is_memory(obj) and getattr(type(obj), NAME) is getattr(_memory_type, NAME)


cdef char* memory_pointer(object memory) except? NULL:
    return <char*> _dpctl.memory_pointer(<PyObject*> memory)


cdef Py_ssize_t memory_nbytes(object memory) except -1:
    return <Py_ssize_t> _dpctl.memory_nbytes(<PyObject*> memory)


cdef int memory_usm_type(object memory) except -1:
    """The kind of USM that a Memory object is. dpctl chooses its class by the kind, so the class tells."""
    cdef int k
    cdef PyObject* cls = <PyObject*> Py_TYPE(memory)
    for k in range(<int> USM_DEVICE, <int> USM_HOST + 1):
        if cls == _memory_classes[k]:
            return k
    if not is_memory(memory):
        raise TypeError(f"USM: {show(memory)} is no dpctl.memory.MemoryUSM*, MemoryUSMDevice for one")
    return _dpctl.pointer_type(_dpctl.memory_pointer(<PyObject*> memory), _dpctl.memory_context(<PyObject*> memory))


cdef MemoryBlock block_of_memory(object memory):
    """The block of a whole dpctl Memory object."""
    if not is_done(&_found):
        import_dpctl()
    if not is_memory(memory):
        raise TypeError(f"USM: {show(memory)} is no dpctl.memory.MemoryUSM* with memory")
    return new_block(USM, memory, memory_pointer(memory), memory_nbytes(memory), DLDevice(kDLOneAPI, UNRESOLVED_ID))


cdef int place(Descriptor a, MemoryBlock block, int usm_type) except -1:
    """Say that `a` lies in a block of USM; its pointer and layout are set by the caller."""
    a.block_ = block
    a.base_ = block.owner_
    a.device_ = DLDevice(kDLOneAPI, UNRESOLVED_ID)
    a.usm_type_ = usm_type
    return 0


cdef int place_in(Descriptor a, object owner, int usm_type) noexcept:
    """Say that `a` lies in USM that `owner` keeps; its block is made when somebody asks for it (`_make_block`)."""
    a.base_ = owner
    a.resource_kind = USM
    a.device_ = DLDevice(kDLOneAPI, UNRESOLVED_ID)
    a.usm_type_ = usm_type
    return 0


cdef MemoryBlock _make_block(Descriptor a):
    """The whole of a Memory object; of another owner's USM as much as the first array reached."""
    return block_of_memory(a.base_) if is_memory(a.base_) else block_of_reach(a)


register_block_maker(USM, _make_block)


cdef int usm_type_of(void* pointer, object queue) except -1:
    """The kind of USM that a pointer is in a queue's context: 0 none of it, 1 device, 2 shared, 3 host.

    This must be asked before anything else is done with a foreign pointer: dpctl ends the process when it is handed one
    that is not USM of the context.
    """
    cdef QueueContext asked = context_of(queue)
    return _dpctl.pointer_type(pointer, asked.context)


cdef int usm_type_of_run(char* first, Py_ssize_t nbytes, object queue, bint* whole) except -1:
    """The same of the first of so many bytes, and whether all of them lie in its allocation."""
    cdef QueueContext asked = context_of(queue)
    cdef int kind = _dpctl.pointer_type(first, asked.context)
    whole[0] = kind != 0 and (nbytes <= 1 or lies_in_one(asked, first, nbytes, kind))
    return kind


cdef bint lies_in_one(QueueContext asked, char* first, Py_ssize_t nbytes, int kind) noexcept:
    """Whether an allocation holds a run of bytes, of which the first is of that kind.

    Where nobody can be asked for the allocation, each page is asked for its kind (of very long runs some thousand of them).
    """
    cdef char* last = first + nbytes - 1
    cdef char* base
    cdef char* page
    cdef Py_ssize_t step
    if asked.native.backend != OTHER:
        base = allocation_of(&asked.native, last)
        return base != NULL and base <= first
    step = max(<Py_ssize_t> PAGE, nbytes // MOST_PAGES)
    page = first + step
    while page < last:
        if _dpctl.pointer_type(page, asked.context) != kind:
            return False
        page += step
    return _dpctl.pointer_type(last, asked.context) == kind


cdef QueueContext context_of(object queue):
    """The context of a queue; that of the last one is kept."""
    global _asked
    cdef QueueContext last, asked
    with cython.critical_section(_lock):
        last = _asked
    if last is not None and last.queue is queue:
        return last
    asked = QueueContext.__new__(QueueContext)
    asked.queue = queue
    asked.context = _dpctl.queue_context(_dpctl.queue_ref(<PyObject*> queue))
    enter(&asked.native, asked.context)
    with cython.critical_section(_lock):
        last, _asked = _asked, asked      # the last one is let go later: what runs then may ask about another queue
    return asked


cdef object queue_from(object syclobj, void* pointer):
    """A ``dpctl.SyclQueue`` of the context that `syclobj` names, in any of its six forms.

    Parameters
    ----------
    syclobj : object
        What an interface dict has under that key. A capsule is read, not used up, so that a producer may hand out the
        same one again.
    pointer : void*
        Where the context has several devices, the one of this pointer is chosen, if it is USM of the context at all.

    Raises
    ------
    InterfaceError
        None of the six forms.
    """
    if not is_done(&_found):
        import_dpctl()
    if is_a(syclobj, _queue_type):
        return syclobj
    if isinstance(syclobj, str):
        return queue_from_filter(import_dpctl(), syclobj)
    if not is_a(syclobj, _context_type):
        syclobj = from_capsule(syclobj)
        if is_a(syclobj, _queue_type):
            return syclobj
    return queue_from_context(syclobj, pointer)


cdef object queue_of_ref(void* queue):
    """A ``dpctl.SyclQueue`` of a ``sycl::queue*``, which is copied."""
    if not is_done(&_found):
        import_dpctl()
    return _dpctl.queue_make(queue)


cdef QueueRef ref_of(object queue) noexcept:
    """The ``sycl::queue*`` of a ``dpctl.SyclQueue``, valid while that lives."""
    return _dpctl.queue_ref(<PyObject*> queue)


cdef object queue_from_filter(object dpctl, object selector):
    try:
        return dpctl.SyclQueue(selector)
    except PASSES_ON:
        raise
    except Exception as error:
        raise interface_error(
            NAME, "syclobj", selector, f"a filter string that selects a device here ({show(str(error))})") from error


cdef object from_capsule(object syclobj):
    """The queue or the context behind a capsule, or behind what ``_get_capsule()`` gives."""
    capsule = syclobj
    if not PyCapsule_CheckExact(capsule):
        give = getattr(syclobj, "_get_capsule", None)
        try:
            capsule = give() if callable(give) else None
        except PASSES_ON:
            raise
        except Exception as error:
            raise interface_error(NAME, "syclobj", syclobj, f"{_SYCLOBJ_FORMS} (this one's raised: {error})") from error
    if PyCapsule_CheckExact(capsule):
        if PyCapsule_IsValid(capsule, b"SyclQueueRef"):
            return _dpctl.queue_make(PyCapsule_GetPointer(capsule, b"SyclQueueRef"))
        if PyCapsule_IsValid(capsule, b"SyclContextRef"):
            return _dpctl.context_make(PyCapsule_GetPointer(capsule, b"SyclContextRef"))
    raise interface_error(NAME, "syclobj", syclobj, _SYCLOBJ_FORMS)


cdef object queue_from_context(object context, void* pointer):
    """A queue on the device of `pointer` in `context`; on any of its devices for an empty array or a foreign pointer."""
    cdef ContextRef ref = _dpctl.context_ref(<PyObject*> context)
    # Asked first: for a pointer that is not USM of the context the next function would end the process.
    if pointer == NULL or _dpctl.pointer_type(pointer, ref) == 0:
        return sys.modules["dpctl"].SyclQueue(context, context.get_devices()[0])
    # In these steps, and not by dpctl's own function for it, which never gives the device back.
    cdef void* device = _dpctl.pointer_device(pointer, ref)
    cdef QueueRef queue = NULL if device == NULL else _dpctl.queue_create(ref, device, NULL, 0)
    _dpctl.delete_device(device)
    if queue == NULL:
        raise RuntimeError("SYCL: dpctl makes no queue for the device of a pointer in its own context")
    try:
        return _dpctl.queue_make(queue)
    finally:
        _dpctl.delete_queue(queue)


cdef object queue_of_ordinal(int ordinal):
    """The queue that stands for a root device and its default context; one a device, kept."""
    queue = found(_ordinal_queues, ordinal)
    if queue is None:
        dpctl = import_dpctl()
        try:
            queue = dpctl.get_device_cached_queue(dpctl.SyclDevice(str(ordinal)))      # the one that dpnp works on
        except PASSES_ON:
            raise
        except Exception as error:
            raise no_device_error(f"oneapi:{ordinal} is no SYCL device here", error) from error
        _ordinal_queues[ordinal] = queue
    return queue


cdef QueueRef queue_ref_of(Descriptor a) except? NULL:
    """The queue that the memory of `a` belongs to, borrowed; NULL where it is unknown."""
    if not available():
        return NULL
    if a.producer_ is not None and is_a(a.producer_, _queue_type):
        return _dpctl.queue_ref(<PyObject*> a.producer_)
    if is_a(a.base_, _memory_type):
        return _dpctl.memory_queue(<PyObject*> a.base_)
    return NULL


cdef object queue_of(Descriptor a):
    """The ``dpctl.SyclQueue`` that the memory of `a` belongs to."""
    import_dpctl()
    if a.producer_ is not None and is_a(a.producer_, _queue_type):
        return a.producer_
    if is_a(a.base_, _memory_type):
        return a.base_.sycl_queue
    return queue_of_ordinal(max(a.device_.device_id, 0))


cdef object base_of(Descriptor a):
    """The ``dpctl.memory.MemoryUSM*`` that the specification of the USM array wants as the owner.

    Where an array came in by a dict it is made now, once a block: making it takes longer than all the rest.
    """
    cdef MemoryBlock block = block_of(a)
    cdef MemoryBlock successor = None
    cdef QueueRef queue = queue_ref_of(a)
    former = owner_of(block)
    if queue == NULL or is_memory(former):
        return former
    if block.nbytes_ == 0:      # nowhere for dpctl to point, and nobody who would look there
        memory = new_memory(USM_NAMES[a.usm_type_], 1, {"queue": queue_of(a)})
    else:
        if block.resource != NULL:
            successor = successor_of(block)
        # Without an owner dpctl would free the memory itself.
        memory = _dpctl.memory_make(block.address_, block.nbytes_, queue, former if successor is None else successor)
    set_owner(block, former, memory, successor)
    return owner_of(block)


cdef object memory_on_queue(Descriptor a):
    """The same on the queue of the array, which is another than that of its memory once a caller has named one, and with
    a whole number of its elements, as which dpnp reads all of it."""
    memory = base_of(a)
    if not is_memory(memory):
        return memory
    queue = a.producer_
    cdef bint elsewhere = queue is not None and is_a(queue, _queue_type) and memory.sycl_queue != queue
    cdef Py_ssize_t nbytes = memory_nbytes(memory)
    cdef Py_ssize_t whole = nbytes - nbytes % a.itemsize_ or nbytes     # too little for one: the array is empty
    if not elsewhere and whole == nbytes:
        return memory
    cdef PyObject* owner = <PyObject*> memory
    cdef QueueRef ref = _dpctl.queue_ref(<PyObject*> queue) if elsewhere else <QueueRef> _dpctl.memory_queue(owner)
    return _dpctl.memory_make(_dpctl.memory_pointer(owner), whole, ref, memory)


cdef object new_memory(object usm_type, Py_ssize_t nbytes, dict options):
    """Fresh USM of a kind, as the ``dpctl.memory.MemoryUSM*`` object that owns it."""
    memory = import_dpctl().memory
    kinds = {"device": memory.MemoryUSMDevice, "shared": memory.MemoryUSMShared, "host": memory.MemoryUSMHost}
    kind = kinds.get(usm_type)
    if kind is None:
        raise ValueError(f"USM: the kind is {show(usm_type)}; accepted: {', '.join(kinds)}")
    try:
        return kind(nbytes, **options)
    except memory.USMAllocationError as error:
        raise MemoryError(f"cannot allocate {nbytes} bytes of USM-{usm_type} memory ({error})") from error
    except sys.modules["dpctl"].SyclDeviceCreationError as error:
        raise no_device_error(f"there is no SYCL device for USM-{usm_type} memory", error) from error


cdef object no_device_error(str what, object error):
    """The BufferError for a device that dpctl does not find."""
    return BufferError(f"{what} ({error}){cause_of(error)}; see python -m arrayhub doctor")


# ------------------------------------------------------------------------------------------- the row of the runtime


cdef int _host_ready(Descriptor a) except -1:
    """Wait for the queue of the memory. dpctl's default queue is out of order, so nothing less will do."""
    cdef QueueRef queue
    queue = queue_ref_of(a)
    if queue != NULL:
        refuse_fork()
        with nogil:
            _dpctl.wait(queue)
    return 0


cdef int _consumer_ready(Descriptor a, object stream) except -1:
    """Order a consumer's queue behind the producer's; one that names no queue gets memory that is ready.

    So does one whose queue is out of order, the producer's own included: what is submitted there later starts as soon as
    it can, and a barrier does not hold it back on every device (it does not on the CPU).
    """
    if stream is None or not available():
        return _host_ready(a)
    if not is_a(stream, _queue_type):
        raise BufferError(f"DLPack: stream is {show(stream)} for SYCL memory; accepted: None or a dpctl.SyclQueue. A library"
                          " that reads host memory takes arrayhub.to_host(x)")
    if not stream.is_in_order:
        return _host_ready(a)
    queue = queue_of(a)
    if stream != queue:
        stream.submit_barrier([queue.submit_barrier()])
    return 0


cdef int _adopt_stream(Descriptor a, object stream) except -1:
    """Make a queue that of the array, once it waits for the producer's."""
    if not is_queue(stream):
        raise BufferError(f"stream is {show(stream)} for SYCL memory; accepted: None or a dpctl.SyclQueue")
    if stream.sycl_context != queue_of(a).sycl_context:
        raise BufferError(
            f"stream is {show(stream)}, of another context than the memory; accepted: a queue of its context"
        )
    _consumer_ready(a, stream)
    device_of(a)               # as its own queue says it, which may be of another device than this one
    a.producer_ = stream
    return 0


cdef int _resolve_device(Descriptor a) except -1:
    """The ordinal of the root device, and whether the memory is of its default context."""
    queue = queue_of(a)
    device = queue.sycl_device
    a.device_.device_id = device.get_device_id()
    if device.parent_device is not None or device.sycl_platform.default_context != queue.sycl_context:
        a.flags_ |= OTHER_CONTEXT
    return 0


cdef int _adopt(Descriptor a) except -1:
    """Complete an array that DLPack or Arrow brought: which kind of USM it is, in which memory.

    Both name only a root device; by convention the memory is of that device's default context. They do not name the
    queue on which work may still be under way: that is the producer's own, where it shows one as dpnp's arrays do.
    """
    cdef Py_ssize_t low, high
    cdef int usm_type
    cdef bint whole
    try:
        import_dpctl()
    except ImportError:
        return 0      # it can still be handed on by DLPack
    queue = getattr(a.producer_, "sycl_queue", None)
    if not is_a(queue, _queue_type):
        queue = queue_of_ordinal(a.device_.device_id)
    extent(a, &low, &high)
    usm_type = usm_type_of_run(a.data_ + low, high - low, queue, &whole)
    if high == low:      # nothing to check, and the pointer may be anything; where it is USM, its kind is the array's
        usm_type = usm_type or USM_DEVICE
    elif not whole:
        raise interface_error(
            IN_MESSAGES[a.protocol_], "data", f"{<size_t> a.data_:#x}",
            f"USM of the default context of oneapi:{a.device_.device_id}, all {high - low} bytes that the view reaches",
        )
    a.usm_type_ = usm_type
    a.producer_ = queue
    return 0


cdef int _allocate(Descriptor a, Py_ssize_t nbytes, DLDevice device) except -1:
    """Fresh device USM on the root device with that ordinal."""
    queue = queue_of_ordinal(device.device_id)
    cdef MemoryBlock block = block_of_memory(new_memory("device", max(nbytes, 1), {"queue": queue}))
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
_row.allocate = _allocate


# ----------------------------------------------------------------------------------- what the copies in transfer/ need


cdef enum:
    MOST_EVENTS = 4


cdef class SyclEvent:
    """Work that was given to a queue."""
    cdef EventRef ref

    def __dealloc__(self):
        if self.ref != NULL:
            _dpctl.delete_event(self.ref)

    def wait(self):
        """Wait for the completion of the work, without the GIL.

        `sycl::event::wait` reads the native event, and takes the command if there is none yet. Between these two reads a
        thread of the runtime may submit the command behind a host task, such as the one that dpnp queues behind its kernels.
        The first call then returns at once, and the second call finds the native event (DPC++ 2026.2; compare
        intel/llvm#14623).
        """
        if self.ref == NULL:
            raise TypeError("SyclEvent: it stands for no work; submit_copy and submit_barrier make events")
        with nogil:
            _dpctl.wait_for_event(self.ref)
            _dpctl.wait_for_event(self.ref)


cdef SyclEvent new_event(EventRef ref, str what):
    if ref == NULL:
        raise RuntimeError(f"SYCL: the queue refuses {what}; the runtime has written its reason to stderr")
    cdef SyclEvent event = SyclEvent.__new__(SyclEvent)
    event.ref = ref
    return event


def submit_barrier(queue):
    """Return an event that stands for all that a queue has been given so far."""
    checked_queue(queue)
    return new_event(_dpctl.barrier(_dpctl.queue_ref(<PyObject*> queue)), "a barrier")


def submit_copy(queue, size_t target, size_t source, size_t nbytes, list after):
    """Give a queue a copy between two addresses, and return its event.

    Parameters
    ----------
    queue : dpctl.SyclQueue
    target, source : int
        USM of the queue's context or host memory, which the caller keeps until the event is done.
    nbytes : int
    after : list of SyclEvent
        At most MOST_EVENTS, which come first.
    """
    cdef EventRef events[MOST_EVENTS]
    cdef int k, n = <int> min(len(after), MOST_EVENTS + 1)
    checked_queue(queue)
    cdef QueueRef ref = _dpctl.queue_ref(<PyObject*> queue)
    cdef EventRef done
    if n > MOST_EVENTS:
        raise ValueError(f"submit_copy: after has {len(after)} events; accepted: at most {MOST_EVENTS}")
    for k in range(n):
        events[k] = (<SyclEvent?> after[k]).ref
        if events[k] == NULL:
            raise TypeError(f"submit_copy: after[{k}] stands for no work")
    with nogil:     # a copy may be made at once
        done = _dpctl.copy(ref, <void*> target, <void*> source, nbytes, events, n)
    return new_event(done, f"a copy of {nbytes} bytes")


def reach(Descriptor array):
    """Return the lowest address that `array` reaches, and how many bytes from there."""
    cdef Py_ssize_t low, high
    extent(array, &low, &high)
    return <size_t> (array.data_ + low), high - low


def checked_queue(stream):
    """Return `stream` if it is a queue."""
    import_dpctl()
    if not is_a(stream, _queue_type):
        raise BufferError(f"stream is {show(stream)} for a copy of SYCL memory; accepted: None or a dpctl.SyclQueue")
    return stream


def memory_of(str usm_type, Py_ssize_t nbytes, queue):
    """Return fresh USM of a kind on a queue's device."""
    return new_memory(usm_type, max(nbytes, 1), {"queue": queue})


def queue_for_ordinal(int ordinal):
    """Return the default queue of a root device, by its ordinal."""
    return queue_of_ordinal(ordinal)


def queue_for(device):
    """Return the queue to allocate on for whatever names a device: a queue itself, or what ``Device`` takes."""
    import_dpctl()
    queue = named_queue(device)
    if queue is not None:
        return queue
    wanted = Device(device)
    if wanted.type != "oneapi":
        raise ValueError(f"{wanted} is no SYCL device")
    return queue_of_ordinal(wanted.id)


def named_queue(device):
    """Return the queue whose own context new memory is to be of, where a queue or dpnp's device, which has one, names the
    device; else None."""
    if is_tensor_device(device):
        device = device.sycl_queue
    return device if is_queue(device) else None


cdef bint is_tensor_device(object obj) except -1:
    """Whether an object is the ``x.device`` of dpnp's arrays, which have been dpctl's until its version 0.22."""
    cls = type(obj)
    return cls.__name__ == "Device" and root_of(cls) in ("dpnp", "dpctl")


def shares_context(Descriptor array, queue):
    """Return whether USM is of the context of a queue, which may then use it."""
    return queue_of(array).sycl_context == checked_queue(queue).sycl_context


def queue_of_array(Descriptor array):
    """Return the queue that the memory of `array` belongs to."""
    return queue_of(array)


def _read_device(obj):
    """The DLPack pair of dpctl's own objects."""
    if available() and is_a(obj, _memory_type) and not is_memory(obj):     # asked for its device, it ends the process
        raise TypeError(f"device: {show(obj)} has no memory; accepted: dpctl's devices, queues, and memory objects with memory")
    device = obj.sycl_device if hasattr(obj, "sycl_device") else obj
    return (kDLOneAPI, device.get_device_id())


def _read_tensor_device(obj):
    """The DLPack pair of dpnp's device."""
    if not is_tensor_device(obj):
        raise TypeError(f"device: {show(obj)} of dpnp is no device; accepted: its x.device")
    return _read_device(obj)


def _read_filter(selector):
    """The DLPack pair of a SYCL filter string."""
    refuse_fork()
    try:
        return _read_device(import_dpctl().SyclDevice(selector))
    except PASSES_ON:
        raise
    except Exception as error:      # also where there is no dpctl: most such strings are no filters but slips
        raise ValueError(
            f"device: {show(selector)} is no device; accepted: 'cpu', 'cuda:0', 'oneapi:0', a DLPack pair, or a SYCL filter"
            f" string that selects a device here ({error}){cause_of(error)}"
        ) from error


cdef str cause_of(object error):
    """Why no filter string selects anything, where that is so; asked only of dpctl's own errors."""
    dpctl = sys.modules.get("dpctl")
    if dpctl is None or not isinstance(error, dpctl.SyclDeviceCreationError) or dpctl.get_num_devices():
        return ""
    return f"; dpctl finds no device at all: {sycl_runtime.cause()}"


READERS["dpctl"] = _read_device
READERS["dpnp"] = _read_tensor_device
READERS["str"] = _read_filter
