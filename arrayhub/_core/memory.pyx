"""MemoryBlock: who owns bytes, how they are released, who may write them."""

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject, PyTypeObject

from arrayhub._core.device cimport kDLCPU, make_device

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)
    void Py_DecRef(void*)
    const Py_ssize_t PY_SSIZE_T_MAX

# One row per kind: BlockKind's number and the name that `USMArray.memory.kind` gives.
KIND_NAMES = {EXTERNAL: "external", BUFFER: "buffer", DLPACK: "dlpack", USM: "usm", OWNED: "owned"}


@cython.freelist(32)
@cython.final
cdef class MemoryBlock:
    """The bytes that one or more arrays view, and what keeps them alive.

    Views of one array share their block. It is released exactly once, when the last of them dies.

    Attributes
    ----------
    kind : str
        ``"external"`` (a Python object owns the bytes), ``"buffer"`` (a PEP 3118 buffer is held), ``"dlpack"`` (a
        DLPack managed tensor is held), ``"usm"`` (a ``dpctl.memory`` object owns them), ``"owned"`` (allocated here).
    address : int
        Lowest address of the block. For memory that came from elsewhere: the lowest address the first view reached.
    nbytes : int or None
        Size in bytes; None where it is unknown.
    device : Device
        Where the bytes live.
    owner : object
        The Python object that owns the bytes; None where this block itself does.
    refcount : int
        How many references to this block exist: the arrays that share it, and whoever else holds it, the asking
        included, as ``sys.getrefcount`` counts.
    release_function : str
        What is called once, when the last of them dies: ``"Py_DECREF"`` (of `owner`, which then frees the bytes as it
        likes), ``"PyBuffer_Release"``, ``"DLManagedTensor.deleter"``, ``"DLManagedTensorVersioned.deleter"``,
        ``"PyMem_RawFree"``.
    release_address : int
        Where that function lies in this process.
    """

    def __init__(self):
        raise TypeError("MemoryBlock: blocks are made by arrayhub.asarray and USMArray, not by hand")

    def __dealloc__(self):
        self.drop()

    cdef void drop(self) noexcept:
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
    """A block that holds `owner`, and gives nothing back by itself."""
    cdef MemoryBlock block = MemoryBlock.__new__(MemoryBlock)
    block.kind_ = kind
    block.owner_ = owner
    block.address_ = address
    block.nbytes_ = nbytes
    block.device_ = device
    return block


# What is known of the functions that release, each entered by the module that has it.
cdef enum:
    KNOWN_RELEASES = 16

cdef struct KnownRelease:
    Release release
    const char* name
    Referent referent

cdef KnownRelease _releases[KNOWN_RELEASES]
cdef int _known_releases = 0


cdef int describe_release(Release release, const char* name, Referent referent) except -1:
    """Say what `MemoryBlock.release_function` calls a function (`name` is a literal), and which object its resources
    have a reference to, which the collector must know of to find a cycle through it; NULL where nobody can tell."""
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
    raise SystemError("MemoryBlock: a release function without a name")


cdef PyObject* referent_of(Release release, void* resource) noexcept:
    """The object that a resource has a reference to, borrowed; NULL where there is none or nobody can tell."""
    cdef int k
    if resource == NULL:
        return NULL
    for k in range(_known_releases):
        if _releases[k].release == release:
            return NULL if _releases[k].referent == NULL else _releases[k].referent(resource)
    return NULL


cdef int _traverse(PyObject* self, Visit visit, void* context) noexcept:
    """What a block refers to. It counts no reference: the collector is at work.

    Nothing is ever cleared, as in a tuple: a block gets its references when it is made, so every cycle through it goes
    through something that was changed later, and that can be cleared. Until then who views the memory may read it.
    """
    cdef PyObject* owner = <PyObject*> (<MemoryBlock> self).owner_
    cdef PyObject* referent = referent_of((<MemoryBlock> self).release, (<MemoryBlock> self).resource)
    cdef int answer = 0
    if owner != NULL:
        answer = visit(owner, context)
    if answer == 0 and referent != NULL:
        answer = visit(referent, context)
    return answer


collect(<PyTypeObject*> MemoryBlock, _traverse)


cdef void _free(void* allocation) noexcept:
    PyMem_RawFree(allocation)


describe_release(_free, b"PyMem_RawFree", NULL)


cdef extern from *:
    """
    #include <stdint.h>
    #include <sys/mman.h>
    #define ARRAYHUB_LARGE (1 << 22)    /* bytes: two huge pages at least fit wherever it starts */

    /* First touch costs most of a copy into fresh memory, and less by the huge page; NumPy asks for them too. Only a
       hint, so what it returns does not matter. */
    static void arrayhub_prefer_huge_pages(void *memory, size_t nbytes, uintptr_t page) {
    #if defined(MADV_HUGEPAGE)
        uintptr_t start = ((uintptr_t)memory + page - 1) & ~(page - 1);
        if (nbytes >= ARRAYHUB_LARGE) (void)madvise((void *)start, nbytes - (start - (uintptr_t)memory), MADV_HUGEPAGE);
    #else
        (void)memory; (void)nbytes; (void)page;
    #endif
    }
    """
    void arrayhub_prefer_huge_pages(void* memory, size_t nbytes, size_t page) nogil


cdef MemoryBlock allocate(Py_ssize_t nbytes, Py_ssize_t alignment, Py_ssize_t behind=0, bint zeroed=False):
    """Fresh host memory of `nbytes` bytes that starts `behind` bytes (fewer than `alignment`) after an `alignment`-byte
    boundary. Zeros come from the system where it has pages of them, so that large ones cost nothing until touched."""
    cdef MemoryBlock block = new_block(OWNED, None, NULL, nbytes, DLDevice(kDLCPU, 0))
    cdef void* allocation = NULL
    if nbytes <= PY_SSIZE_T_MAX - alignment:
        allocation = PyMem_RawCalloc(nbytes + alignment, 1) if zeroed else PyMem_RawMalloc(nbytes + alignment)
    if allocation == NULL:
        raise MemoryError(f"cannot allocate {nbytes} bytes of host memory")
    arrayhub_prefer_huge_pages(allocation, nbytes, PAGE)
    cdef size_t start = <size_t> allocation + to_boundary(<size_t> allocation, alignment, behind)
    block.address_ = <char*> start
    block.resource = allocation
    block.release = _free
    return block


cdef MemoryBlock successor_of(MemoryBlock block):
    """A block of the same bytes that holds the same owner, and is to release what `block` holds once it has an owner
    that keeps the successor alive; see `set_owner`."""
    return new_block(block.kind_, block.owner_, block.address_, block.nbytes_, block.device_)


cdef void set_owner(MemoryBlock block, object former, object owner, MemoryBlock successor) noexcept:
    """Replace the owner of a block by one that holds `successor`, which takes over what `block` held.

    Making the owner may have run other code, which may have replaced it already: where the owner is not `former` any
    more the block keeps everything. Like `publish`, it allocates nothing and runs no other code in between.
    """
    with cython.critical_section(block):
        if block.owner_ is former:
            if successor is not None:
                successor.resource = block.resource
                successor.release = block.release
                block.resource = NULL
            block.owner_ = owner


cdef object owner_of(MemoryBlock block):
    """Who owns the bytes of a block now; `set_owner` may be replacing it."""
    with cython.critical_section(block):
        return block.owner_
