"""dpctl and dpnp: import of Memory objects, usm_ndarray and dpnp.ndarray, and export as usm_ndarray and dpnp.ndarray.

Creating the interface dict of a usm_ndarray takes microseconds, mostly to wait for the queue. The import therefore reads the C
struct, which takes nanoseconds. The struct is read only if the type is exact and has the size of the struct below, and if it
has described a test array correctly (`reads_truly`).
"""

import sys

from cpython.object cimport PyObject

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    USM_DEVICE,
    WRITEABLE,
    Descriptor,
    MemoryBlock,
    array_for_copy,
    extent,
    get_dtype,
    host_readable,
    new_array,
    same_shape,
    seal,
    set_type,
    size_of,
)
from arrayhub._core.cpython.atomics cimport found
from arrayhub._core.runtime cimport host_ready
from arrayhub.adapters cimport interface_dict
from arrayhub.adapters.table cimport SYCL_DICT
from arrayhub.libraries.known cimport library
from arrayhub.runtimes cimport sycl

from arrayhub._core.errors import Refusal, interface_error, missing_library_error, module_of, needed
from arrayhub.libraries.numpy import raw

cdef struct UsmNdarray:              # dpnp 0.20 and dpctl 0.17 to 0.21: tensor/_usmarray.pxd
    Py_ssize_t refcount
    void* type
    void* vtable
    char* data
    int nd
    Py_ssize_t* shape
    Py_ssize_t* strides              # elements; NULL if contiguous in C or Fortran order
    int typenum
    int flags                        # C 1, F 2, writeable 4, like ArrayFlags
    PyObject* base
    PyObject* array_namespace
    PyObject* weak_references

# For each usm_ndarray type (dpctl's and dpnp's): whether its struct is read. Set when the first array of the type is imported.
cdef dict _has_struct = {}
cdef tuple _MODULES = ("dpnp.tensor._usmarray", "dpctl.tensor._usmarray")


cdef Descriptor parse_memory(object obj, object stream):
    """Import a ``dpctl.memory.MemoryUSM*`` as a writable 1-d array of uint8.

    The interface dict is not used, because it marks the memory as read-only.
    """
    if not sycl.is_memory(obj):      # an unrelated class of the same name
        return None
    cdef MemoryBlock block = sycl.block_of_memory(obj)
    cdef Descriptor a = new_array(1)
    a.protocol_ = SYCL_DICT
    a.data_ = block.address_
    a.shape_[0] = block.nbytes_
    a.byte_strides_[0] = 1
    a.flags_ |= WRITEABLE
    set_type(a, dtypes.by_typestr(c"u", 1))
    sycl.place(a, block, sycl.memory_usm_type(obj))
    seal(a)
    return a


cdef Descriptor parse_dpnp(object obj, object stream):
    """Import a ``dpnp.ndarray``, which is a Python wrapper of a usm_ndarray."""
    inner = getattr(obj, "_array_obj", None)      # private, so a later release may not have it
    return parse_by_dict(obj, stream) if inner is None else parse_usm_ndarray(inner, stream)


cdef Descriptor parse_usm_ndarray(object obj, object stream):
    """Import a ``usm_ndarray`` through its struct if verified, else through its interface dict."""
    has_struct = found(_has_struct, type(obj))
    if has_struct is None:
        has_struct = verify_struct(type(obj))
    a = describe(<UsmNdarray*> <PyObject*> obj) if has_struct else None
    return parse_by_dict(obj, stream) if a is None else a


cdef Descriptor parse_by_dict(object obj, object stream):
    """Import an array or a Memory object through ``__sycl_usm_array_interface__``.

    The dict does not describe the allocation. If the object has a Memory object that contains all elements, the memory
    block of the result is the complete Memory object, otherwise only the bytes of the array.
    """
    cdef Descriptor a = interface_dict.parse_sycl_usm(obj, stream)
    array = getattr(obj, "_array_obj", obj)      # the usm_ndarray in a dpnp.ndarray
    memory = getattr(array, "usm_data", array)
    if a is not None and sycl.is_memory(memory) and is_inside(a, memory):
        sycl.place(a, sycl.block_of_memory(memory), a.usm_type_)
    return a


cdef bint is_inside(Descriptor a, object memory) except -1:
    """Return whether all bytes of an array lie within a Memory object."""
    cdef Py_ssize_t low, high
    cdef char* start = sycl.memory_pointer(memory)
    extent(a, &low, &high)
    return high == low or (a.data_ + low >= start and a.data_ + high <= start + sycl.memory_nbytes(memory))


cdef Descriptor describe(UsmNdarray* u):
    """Create a descriptor from the fields of a usm_ndarray.

    Return None if the base is not a Memory object, or if the type number is unknown.
    """
    cdef const dtypes.ElementType* row = dtypes.by_typenum(u.typenum)
    if row == NULL or row.typestr == NULL or u.base == NULL or not sycl.is_memory(<object> u.base):
        return None
    cdef object memory = <object> u.base
    cdef int usm_type = sycl.memory_usm_type(memory)     # also rejects objects that are not Memory objects
    cdef Descriptor a = new_array(u.nd)
    cdef int k
    a.protocol_ = SYCL_DICT
    a.data_ = u.data
    a.flags_ |= u.flags & WRITEABLE
    set_type(a, row)
    for k in range(u.nd):
        a.shape_[k] = u.shape[k]
    if u.strides == NULL:
        layout.fill_strides(u.nd, a.shape_, a.itemsize_, not u.flags & 1, a.byte_strides_)
    else:
        for k in range(u.nd):
            a.byte_strides_[k] = u.strides[k] * a.itemsize_
    sycl.set_usm(a, memory, usm_type)
    seal(a)
    if not is_inside(a, memory):
        raise interface_error("usm_ndarray", "shape and strides", (a.shape, a.byte_strides),
                              f"a view inside the {sycl.memory_nbytes(memory)} bytes of its memory")
    return a


cdef bint verify_struct(object cls) except -1:
    """Return whether the struct of a type can be read. Remember the result for dpctl's and dpnp's own usm_ndarray types."""
    name = module_of(cls)
    module = sys.modules.get(name) if name in _MODULES else None
    if cls is not getattr(module, "usm_ndarray", None) or not sycl.available():
        return False
    try:
        array = cls((3, 7), dtype="<i4", buffer="device")[1:, ::2]
        verified = cls.__basicsize__ == sizeof(UsmNdarray) and reads_truly(<UsmNdarray*> <PyObject*> array, array)
    except Exception:      # without a default device, the test array cannot be created
        verified = False
    _has_struct[cls] = verified
    return verified


cdef bint reads_truly(UsmNdarray* u, object array) except -1:
    """Return whether the fields of the test array are correct. Pointers are followed only after all earlier checks pass."""
    memory = array.usm_data
    return (
        u.nd == 2
        and u.typenum == <int> array.dtype.num
        and u.flags == WRITEABLE
        and u.base == <PyObject*> memory
        and u.data == sycl.memory_pointer(memory) + 7 * 4
        and u.shape != NULL and u.shape[0] == 2 and u.shape[1] == 4
        and u.strides != NULL and u.strides[0] == 7 and u.strides[1] == 2
    )


def bind_export(Descriptor a):
    """Implement ``__usm_ndarray__``, which dpnp tries first. The attribute exists only if dpnp supports the array."""
    try:
        return emit(a)
    except Refusal as error:
        raise AttributeError(f"__usm_ndarray__: {error.reason}") from error
    except (BufferError, ImportError, TypeError) as error:
        raise AttributeError(f"__usm_ndarray__: {error}") from error


cdef object emit(Descriptor a):
    """Export `a` as a ``dpnp.tensor.usm_ndarray`` that shares the memory and uses the queue of `a`.

    The queue may be out of order, and dpnp orders its kernels only after the work that dpctl's order manager records. This
    function therefore waits for the producer's work, as `interface_dict.emit_sycl_usm` does.
    """
    check_memory(a, True)
    check_elements(a)
    usm_ndarray = needed("dpnp.tensor", "for usm_ndarray").tensor.usm_ndarray
    host_ready(a)
    memory = sycl.memory_on_queue(a)
    try:
        if size_of(a) == 0:
            array = usm_ndarray(a.shape, dtype=get_dtype(a), buffer=memory)
        else:
            array = usm_ndarray(a.shape, dtype=get_dtype(a), buffer=memory, strides=a.strides, offset=a.offset)
    except (TypeError, ValueError) as error:
        raise Refusal("dpnp", f"usm_ndarray rejects the array ({error})") from error
    if not a.flags_ & WRITEABLE:
        array.flags.writable = False
    return array


cdef int check_memory(Descriptor a, bint allow_readonly) except -1:
    """Raise Refusal for memory that usm_ndarray cannot share, and ImportError without dpnp."""
    if a.usm_type_ == 0:
        find_dpnp()
        raise Refusal("dpnp", "the memory is not SYCL USM")
    if a.strides_ == NULL:
        raise Refusal("dpnp", f"usm_ndarray requires strides in whole elements; byte strides {a.byte_strides} are not"
                              f" multiples of {a.itemsize}")
    return 0


cdef int check_elements(Descriptor a) except -1:
    """Raise Refusal for an element type that usm_ndarray does not have."""
    dtype = get_dtype(a)
    if a.typenum_ >= dtypes.FIRST_OWN_TYPENUM or not dtype.isnative or dtype.char not in "?bBhHiIlLqQefdFD":
        raise Refusal("dpnp", f"usm_ndarray does not support {dtype!r}")
    return 0


cdef int check_device() except -1:
    """Raise ImportError without dpnp, and an error on a machine without a SYCL device."""
    find_dpnp()
    sycl.queue_of_ordinal(0)
    return 0


cdef int find_dpnp() except -1:
    """Raise ImportError if dpnp is not installed, because an error about the memory would hide this reason."""
    from importlib.util import find_spec

    if find_spec("dpnp") is None:
        raise missing_library_error("dpnp", "to create its arrays")
    return 0


cdef object emit_dpnp(Descriptor a, bint copied, bint allow_readonly):
    """Export `a` as a ``dpnp.ndarray`` that shares its memory, through `emit`. Raise ImportError without dpnp."""
    array = emit(a)
    import dpnp

    create = getattr(dpnp.ndarray, "_create_from_usm_ndarray", None)     # private, but faster than the public function
    return dpnp.asarray(array, copy=False) if create is None else create(array)


# ----------------------------------------------------------------------------------------- for the transfer engine


def on_memory(Descriptor model, memory, order):
    """Return a writable array with the type and shape of `model` on new USM, in `order` as in `empty_like`.

    `memory` is a ``dpctl.memory.MemoryUSM*`` of at least ``model.nbytes`` bytes.
    """
    cdef MemoryBlock block = sycl.block_of_memory(memory)
    block.nbytes_ = model.nbytes
    cdef Descriptor fresh = array_for_copy(model, block, order)
    sycl.place(fresh, block, sycl.memory_usm_type(memory))
    return fresh


# A dpnp type for each item size. A copy does not depend on the type, only on its size.
cdef dict _WORDS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}

cdef dict _functions = {}      # functions and types of dpnp by name, after their first use


cdef object function_of_dpnp(str module, str name):
    """Return a function or type of a module of dpnp, or None if the module is not imported or lacks the name."""
    function = found(_functions, name)
    if function is None:
        function = getattr(sys.modules.get(module), name, None)
        if function is not None:
            _functions[name] = function
    return function


def can_pack(Descriptor array, Descriptor target=None):
    """Return whether a dpnp kernel can copy the elements of `array` (to `target`, if given).

    dpnp must be loaded, the device must have a type with the item size, and the strides must be multiples of the item size.
    `target` must have the item size and the device of `array`.
    """
    if array.strides_ == NULL or (target is not None and target.strides_ == NULL) or array.itemsize_ not in _WORDS:
        return False
    if function_of_dpnp("dpnp.tensor", "usm_ndarray") is None:
        return False
    return array.itemsize_ != 16 or sycl.has_type("complex128", sycl.queue_of(array))


def pack(Descriptor array, Descriptor target, list after=None):
    """Start a dpnp kernel that copies `array` to `target` after the events `after` of `runtimes.sycl`.

    The arrays must have the same shape and queue, and must not share bytes. dpnp does not order the kernel after other work.
    """
    queue = sycl.queue_of(target)
    start("_copy_usm_ndarray_into_usm_ndarray", as_words(array), as_words(target), queue, after)


def assign_by_kernel(Descriptor array, Descriptor target, Py_ssize_t most):
    """Wait for the queue, and copy `array` to `target` with one dpnp kernel. Return whether the copy was made.

    The launch of a kernel takes less time than the general steps of the transfer engine. Copies that need these steps are not
    made: between different shapes, between equal layouts, from another queue, and from host-readable memory if it is USM, or if
    `target` is on a GPU, is contiguous, or has more than `most` bytes. `target` is device USM.
    """
    cdef Py_ssize_t low, high, nbytes
    cdef bint has_gaps
    if not same_shape(array, target) or not can_pack(target):
        return False
    queue = sycl.queue_of(target)
    extent(target, &low, &high)
    nbytes = size_of(target) * target.itemsize_
    has_gaps = high - low != nbytes
    if array.usm_type_ == USM_DEVICE:
        if sycl.queue_of(array) is not queue or array.strides_ == NULL:
            return False
        if not has_gaps and sycl.is_laid_out_as(array, target):
            return False
    else:
        if (not host_readable(array) or not has_gaps or nbytes > most or not queue.sycl_device.is_cpu
                or sycl.usm_type_of(array.data_, queue) != 0):
            return False
    sycl.wait(queue)
    try:
        if array.usm_type_ != USM_DEVICE:
            source = raw(array).view(word_type(target)).squeeze()
            start("_copy_numpy_ndarray_into_usm_ndarray", source, as_words(target), queue)      # returns after the kernel
            return True
        pack(array, target)
    except BaseException:
        sycl.wait(queue)      # the kernel must end before the error releases the memory
        raise
    sycl.wait(queue)
    return True


cdef int start(str name, object source, object target, object queue, list after=None) except -1:
    """Copy `source` to `target` with dpnp's private function `name`, after the events `after`.

    The function avoids the checks of ``target[...] = source``, which take 9 us, or 45 us if `source` is an ndarray (dpnp 0.20).
    If dpnp does not have the function with these parameters, the assignment is used.
    """
    after = after or []
    function = function_of_dpnp("dpnp.tensor._tensor_impl", name)
    if function is not None:
        try:
            function(src=source, dst=target, sycl_queue=queue, depends=sycl.dpctl_events(after))
            return 0
        except TypeError:      # other parameters
            pass
    sycl.tell_dpnp(queue, after)
    target[...] = source
    return 0


cdef str word_type(Descriptor array):
    """Return the name of dpnp's type with the item size of `array`. Raise BufferError if dpnp cannot copy the elements."""
    cdef str name = _WORDS.get(array.itemsize_)
    if function_of_dpnp("dpnp.tensor", "usm_ndarray") is None:
        raise Refusal("dpnp", "the copy requires dpnp.tensor, which is not imported. Run `import dpnp.tensor` first")
    if name is None or array.strides_ == NULL:
        raise Refusal(
            "dpnp", f"elements of {array.itemsize_} bytes, or strides that are not multiples of the item size, cannot be copied"
            " as words"
        )
    return name


cdef object as_words(Descriptor array):
    """Export `array` as a usm_ndarray of words of the item size, without dimensions of length 1.

    dpnp 0.20 raises "Unexpected result of simplifying iteration space" for some strides of such dimensions.
    """
    cdef str name = word_type(array)
    cdef list shape = [], strides = []
    cdef int k
    for k in range(array.nd_):
        if array.shape_[k] != 1:
            shape.append(array.shape_[k])
            strides.append(array.strides_[k])
    # Passing the name of the type is faster than passing a dtype (0.9 instead of 1.8 us, dpnp 0.20).
    return function_of_dpnp("dpnp.tensor", "usm_ndarray")(
        tuple(shape), dtype=name, buffer=sycl.memory_on_queue(array), strides=tuple(strides), offset=array.offset)


library("dpctl").set_importer(0, parse_usm_ndarray, parse_by_dict)
library("dpctl").set_importer(1, parse_memory, parse_by_dict)
library("dpnp").set_importer(0, parse_dpnp, parse_by_dict)
library("dpnp").set_importer(1, parse_usm_ndarray, parse_by_dict)
library("dpnp").set_exporter(emit_dpnp, check_memory, check_elements, check_device)
