"""MemoryBlock: owner of memory that arrays view. New host arrays with the type and shape of existing arrays."""

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

from arrayhub._core cimport layout
from arrayhub._core.cpython.exceptions cimport drop_reference


cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)
    void Py_DecRef(void*)
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t address, size_t nbytes)
    int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t address)
    const Py_ssize_t PY_SSIZE_T_MAX

# Names in `USMArray.memory.kind`, by BlockKind.
KIND_NAMES = {EXTERNAL: "external", BUFFER: "buffer", DLPACK: "dlpack", USM: "usm", OWNED: "owned"}


@cython.freelist(32)
@cython.final
cdef class MemoryBlock:
    """Memory that one or more arrays view, and the object that keeps the memory alive.

    An array and its views share a block. The memory is released exactly once, when the last of these arrays is freed.

    Attributes
    ----------
    kind : str
        ``"external"`` (a Python object owns the memory), ``"buffer"`` (the block holds a PEP 3118 buffer), ``"dlpack"``
        (the block holds a DLPack managed tensor), ``"usm"`` (a ``dpctl.memory`` object owns the memory) or ``"owned"``
        (arrayhub allocated the memory).
    address : int
        Lowest address of the block. For imported memory, the lowest address of the imported array's elements, or of the
        complete ``dpctl.memory`` object.
    nbytes : int or None
        Size in bytes, or None if unknown.
    device : Device
        Device that holds the memory.
    owner : object
        The Python object that owns the memory, or None if this block owns the memory.
    refcount : int
        Number of references to this block, as ``sys.getrefcount`` counts them: one for each array that shares the block,
        and the caller's.
    release_function : str
        Name of the function that is called once, when the last array is freed: ``"Py_DECREF"`` (of `owner`, or of an object
        that the block holds), ``"PyBuffer_Release"``, ``"DLManagedTensor.deleter"``, ``"DLManagedTensorVersioned.deleter"``,
        ``"PyUSMArraySpec.release"`` (memory of C code), ``"PyMem_RawFree"``, or ``"free"`` (large zeros).
    release_address : int
        Address of the release function in this process.
    """

    def __cinit__(self):
        self.device_ = DLDevice(kDLCPU, 0)     # so that a block from MemoryBlock.__new__ has a valid device

    def __init__(self):
        raise TypeError("MemoryBlock: cannot be instantiated directly; use the attribute memory of arrayhub.asarray(x)")

    def __dealloc__(self):
        cdef void* resource = self.resource
        self.resource = NULL
        if resource != NULL and self.release != NULL:
            self.release(resource)

    @property
    def kind(self):
        return KIND_NAMES[self.kind_]

    @property
    def address(self):
        return <size_t> self.address_

    @property
    def nbytes(self):
        return None if self.nbytes_ < 0 else self.nbytes_

    @property
    def device(self):
        return make_device(self.device_)

    @property
    def owner(self):
        return owner_of(self)

    @property
    def refcount(self):
        return Py_REFCNT(self)

    @property
    def release_function(self):
        return "Py_DECREF" if self.resource == NULL else release_name(self.release)

    @property
    def release_address(self):
        return <size_t> <void*> Py_DecRef if self.resource == NULL else <size_t> <void*> self.release

    def __repr__(self):
        size = "unknown size" if self.nbytes_ < 0 else f"{self.nbytes_} bytes"
        return f"<MemoryBlock {self.kind}, {size} at {self.address:#x} on {self.device}>"


cdef MemoryBlock new_block(int kind, object owner, char* address, Py_ssize_t nbytes, DLDevice device):
    """Create a block that keeps `owner` alive and does not hold a resource."""
    cdef MemoryBlock block = MemoryBlock.__new__(MemoryBlock)
    block.kind_ = kind
    block.owner_ = owner
    block.address_ = address
    block.nbytes_ = nbytes
    block.device_ = device
    return block


# Functions that release memory, registered by the modules that define them.
cdef enum:
    KNOWN_RELEASES = 16

cdef struct KnownRelease:
    Release release
    const char* name
    Referent referent

cdef KnownRelease _releases[KNOWN_RELEASES]
cdef int _known_releases = 0


cdef int describe_release(Release release, const char* name, Referent referent) except -1:
    """Register a release function and the name that `MemoryBlock.release_function` returns.

    `name` must be a literal. `referent` returns the object that a resource refers to, so that the garbage collector finds
    cycles through the resource. `referent` is NULL if this object cannot be determined.
    """
    global _known_releases
    if _known_releases == KNOWN_RELEASES:
        raise SystemError("memory: more release functions than KNOWN_RELEASES")
    _releases[_known_releases] = KnownRelease(release, name, referent)
    _known_releases += 1
    return 0


cdef str release_name(Release release):
    for k in range(_known_releases):
        if _releases[k].release == release:
            return _releases[k].name.decode()
    raise SystemError("MemoryBlock: the release function is not registered")


cdef PyObject* referent_of(Release release, void* resource) noexcept:
    """Return a borrowed reference to the object that a resource refers to, or NULL if the object is unknown."""
    cdef int k
    if resource == NULL:
        return NULL
    for k in range(_known_releases):
        if _releases[k].release == release:
            return NULL if _releases[k].referent == NULL else _releases[k].referent(resource)
    return NULL


cdef int _traverse_block(PyObject* self, Visit visit, void* context) noexcept:
    """Visit the objects that a block refers to. Do not change reference counts, because the garbage collector is running.

    Like a tuple, a block is never cleared: views may still read its memory. A block refers only to older objects, or to an
    owner that `set_owner` has set and that does not refer to the block. Every cycle through a block therefore contains another
    object that was changed later and that the collector can clear.
    """
    cdef PyObject* owner = <PyObject*> (<MemoryBlock> self).owner_
    cdef PyObject* referent = referent_of((<MemoryBlock> self).release, (<MemoryBlock> self).resource)
    cdef int answer = 0
    if owner != NULL:
        answer = visit(owner, context)
    if answer == 0 and referent != NULL:
        answer = visit(referent, context)
    return answer


collect(<PyTypeObject*> MemoryBlock, _traverse_block)


cdef void _drop_object(void* held) noexcept:
    drop_reference(<PyObject*> held)


cdef PyObject* _object_itself(void* held) noexcept:
    return <PyObject*> held


describe_release(_drop_object, b"Py_DECREF", _object_itself)


cdef int hold_object(Descriptor a, object held) noexcept:
    """Let a bare array keep `held` alive, in addition to its base. A pending exception survives the release of `held`."""
    Py_INCREF(held)
    hold_resource(a, EXTERNAL, <void*> <PyObject*> held, _drop_object)
    return 0


cdef void _free(void* allocation) noexcept:
    PyMem_RawFree(allocation)


describe_release(_free, b"PyMem_RawFree", NULL)


cdef void* _allocate_zeros(size_t nbytes) noexcept:
    cdef void* allocation = calloc(nbytes, 1)
    if allocation != NULL:
        PyTraceMalloc_Track(0, <uintptr_t> allocation, nbytes)
    return allocation


cdef void _free_zeros(void* allocation) noexcept:
    PyTraceMalloc_Untrack(0, <uintptr_t> allocation)
    free(allocation)


describe_release(_free_zeros, b"free", NULL)


cdef extern from "platform.h":
    void arrayhub_prefer_huge_pages(void* memory, size_t nbytes, size_t page) nogil

cdef enum:
    LARGE = 1 << 22     # bytes: a block of this size contains an aligned huge page at any start address


cdef MemoryBlock allocate(Py_ssize_t nbytes, Py_ssize_t alignment, Py_ssize_t behind=0, bint zeroed=False):
    """Allocate host memory that starts `behind` bytes (fewer than `alignment`) after an `alignment`-byte boundary.

    Large zeroed memory comes from libc's calloc, so that its pages are cleared only when they are accessed. The calloc of
    CPython 3.15 without the GIL writes to all pages (python/cpython#144914).
    """
    cdef MemoryBlock block = new_block(OWNED, None, NULL, nbytes, DLDevice(kDLCPU, 0))
    cdef bint by_libc = zeroed and nbytes >= LARGE
    cdef void* allocation = NULL
    if nbytes <= PY_SSIZE_T_MAX - alignment:
        if by_libc:
            allocation = _allocate_zeros(nbytes + alignment)
        else:
            allocation = PyMem_RawCalloc(nbytes + alignment, 1) if zeroed else PyMem_RawMalloc(nbytes + alignment)
    if allocation == NULL:
        raise MemoryError(f"cannot allocate {nbytes} bytes of host memory")
    if nbytes >= LARGE:
        arrayhub_prefer_huge_pages(allocation, nbytes, PAGE)
    cdef size_t start = <size_t> allocation + to_boundary(<size_t> allocation, alignment, behind)
    block.address_ = <char*> start
    block.resource = allocation
    block.release = _free_zeros if by_libc else _free
    return block


cdef MemoryBlock successor_of(MemoryBlock block):
    """Create a block for the same memory and owner. `set_owner` then moves the resource to the new block."""
    return new_block(block.kind_, block.owner_, block.address_, block.nbytes_, block.device_)


cdef void set_owner(MemoryBlock block, object former, object owner, MemoryBlock successor) noexcept:
    """Replace the owner of a block by `owner`. Move the block's resource to `successor`, unless it is None.

    `owner` must keep `successor` alive. Do nothing if the present owner is not `former`: creating `owner` may have run code
    that replaced the former owner. Like `publish`, this function neither allocates nor runs other code.
    """
    with cython.critical_section(block):
        if block.owner_ is former:
            if successor is not None:
                successor.resource = block.resource
                successor.release = block.release
                block.resource = NULL
            block.owner_ = owner


cdef object owner_of(MemoryBlock block):
    """Return the owner of a block. The lock is needed because `set_owner` may replace the owner in another thread."""
    with cython.critical_section(block):
        return block.owner_


# ------------------------------------------------------------------------------------------------------ new host arrays


def empty_like(Descriptor array, object order="C"):
    """Return a new writable host array with the element type, shape and labels of `array`, contiguous in `order` (C, F or K).

    The label `aligned_index` is not kept. The memory is aligned to 64 bytes and not initialized. For packed elements, `order`
    is ignored, and the result is in C order.
    """
    return array_for_copy(array, allocate(array.nbytes, BOUNDARY), order)


cdef Descriptor array_for_copy(Descriptor model, MemoryBlock block, object order):
    """Return a writable array on new memory, as `empty_like` describes it. The memory of `model` is not accessed."""
    cdef Descriptor fresh = same_layout(model)
    if model.labels != NULL:
        set_labels(fresh, labels_of(model).forget_alignment())
    fresh.block_ = block
    fresh.base_ = block if block.owner_ is None else block.owner_
    fresh.data_ = block.address_
    fresh.device_ = block.device_
    fresh.usm_type_ = NOT_USM
    fresh.stream_ = NULL
    fresh.producer_ = None
    fresh.flags_ &= ~(IMMUTABLE | OTHER_CONTEXT)
    fresh.flags_ |= WRITEABLE | COPIED
    fresh.protocol_ = CONSTRUCTED
    if not model.flags_ & PACKED:
        compact(fresh, model, order)
        seal(fresh)
    return fresh


def as_copy(Descriptor array):
    """Set the flag COPIED of a new array, and return the array. The caller copies the elements."""
    array.flags_ |= COPIED
    return array


def typed_like(Descriptor array, dtype):
    """Return a new C-contiguous host array with the shape and labels of `array` and the element type `dtype`."""
    cdef Descriptor model = new_array(array.nd_)
    cdef int k
    model.device_ = DLDevice(kDLCPU, 0)
    set_dtype(model, dtype)
    for k in range(array.nd_):
        model.shape_[k] = array.shape_[k]
        model.strides_[k] = model.byte_strides_[k] = 0     # initialized because `empty_like` copies all fields
    set_labels(model, labels_of(array))
    return empty_like(model, "C")


cdef int compact(Descriptor fresh, Descriptor array, object order) except -1:
    """Set the byte strides of `fresh` for contiguous memory in `order`. "K" keeps the order of the strides of `array`."""
    cdef Py_ssize_t step = array.itemsize_
    cdef int k
    fresh.strides_ = fresh.shape_ + fresh.nd_     # NULL so far if array.strides_ is NULL; `seal` sets the strides
    if order != "K":
        layout.fill_strides(fresh.nd_, fresh.shape_, fresh.itemsize_, order == "F", fresh.byte_strides_)
        return 0
    # Dimensions with equal strides, such as broadcast dimensions (stride 0), keep C order.
    for k in reversed(slowest_first(array)):
        fresh.byte_strides_[k] = step
        step *= max(fresh.shape_[k], 1)
    return 0


cpdef list slowest_first(Descriptor array):
    """Return the dimensions in the order of decreasing absolute stride. Broadcast dimensions (stride 0) are last.

    Return None for packed elements.
    """
    cdef int k
    if array.flags_ & PACKED:
        return None
    return [axis for _, axis in sorted([(-abs(array.byte_strides_[k]), k) for k in range(array.nd_)])]
