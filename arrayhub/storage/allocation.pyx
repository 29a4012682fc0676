"""Allocation of arrays in any kind of memory: `empty` and `zeros`.

The layout that follows from the arguments is cached, so that a repeated call only allocates memory.
"""

cimport cython
cimport numpy as cnp
from libc.string cimport memcpy

from arrayhub._core.descriptor cimport (
    BOUNDARY,
    CONSTRUCTED,
    EXTERNAL,
    PAGE,
    USM_DEVICE,
    USM_HOST,
    USM_SHARED,
    WRITEABLE,
    Descriptor,
    DLDevice,
    allocate,
    block_of,
    get_dtype,
    kDLCPU,
    kDLCUDA,
    kDLCUDAHost,
    kDLCUDAManaged,
    labels_of,
    new_array,
    new_block,
    seal,
    set_dtype,
    set_labels,
    to_boundary,
)
from arrayhub._core.runtime cimport runtime_of
from arrayhub.array.usm_array cimport allocate_usm

import functools

import numpy as np

from arrayhub import transfer
from arrayhub._core.descriptor import Device, integer, integers, label, name_of_elements, slowest_first
from arrayhub._core.errors import PASSES_ON, root_of, show
from arrayhub.adapters.dimensions import GRID
from arrayhub.array.usm_array import element_type
from arrayhub.convert.functions import asarray
from arrayhub.runtimes.sycl import queue_for, queue_of
from arrayhub.storage import layouts
from arrayhub.transfer.host_copies import is_packed

cnp.import_array()

cdef cnp.dtype _FLOAT64 = np.dtype(np.float64)
# Errors of allocations for which the choice of a device is not the cause.
cdef tuple _UNRELATED = (ImportError, TypeError, *PASSES_ON)

# ------------------------------------------------------------------------------------------------- kinds of memory


cdef struct MemoryKind:
    # Allocate memory as the recipe specifies, and set the block, base and device of `a`.
    int (*take)(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1
    const char* name
    int number      # DLPack's device type, or the USM type
    bint zeroes     # whether `take` can allocate zeros

cdef enum:
    KINDS = 8       # rows that `memory=` accepts; the others are for `like=`
    BY_NUMPY = 8
    BY_TORCH = 9

cdef MemoryKind _KINDS[10]
_KINDS[0] = MemoryKind(take_host, b"cpu", kDLCPU, True)
_KINDS[1] = MemoryKind(take_sycl, b"usm_host", USM_HOST, False)
_KINDS[2] = MemoryKind(take_sycl, b"usm_shared", USM_SHARED, False)
_KINDS[3] = MemoryKind(take_sycl, b"usm_device", USM_DEVICE, False)
_KINDS[4] = MemoryKind(take_cuda, b"cuda", kDLCUDA, False)
_KINDS[5] = MemoryKind(take_cuda, b"cuda_host", kDLCUDAHost, False)
_KINDS[6] = MemoryKind(take_cuda, b"cuda_managed", kDLCUDAManaged, False)
_KINDS[7] = MemoryKind(take_shared, b"shared_memory", kDLCPU, True)
_KINDS[BY_NUMPY] = MemoryKind(take_numpy, b"", kDLCPU, True)
_KINDS[BY_TORCH] = MemoryKind(take_torch, b"", kDLCUDA, False)

cdef int _number
_ROWS = {_KINDS[_number].name.decode(): _number for _number in range(KINDS)}


cdef const MemoryKind* kind_of(object memory) except NULL:
    if memory is None:
        return &_KINDS[0]
    row = _ROWS.get(memory) if isinstance(memory, str) else None
    if row is None:
        raise ValueError(f"memory: {show(memory)}; accepted: {', '.join(_ROWS)}")
    return &_KINDS[<int> row]


cdef int take_host(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    check_host(kind, device)
    a.block_ = allocate(recipe.nbytes, recipe.boundary, recipe.behind, zeroed)
    a.base_ = a.block_
    a.device_ = DLDevice(kDLCPU, 0)
    return 0


cdef int check_host(const MemoryKind* kind, object device) except -1:
    wanted = None if device is None else Device(device)
    if wanted is not None and wanted != "cpu":
        kinds = [name for name in _ROWS if name.startswith("usm_" if wanted.type == "oneapi" else "cuda")]
        default = " (the default)" if kind.take == take_host else ""
        raise ValueError(
            f"device: {show(device)} does not have memory {kind.name.decode()!r}{default}; accepted: 'cpu'. "
            f"For this device pass memory={' or '.join(map(repr, kinds))}"
        )
    return 0


cdef int take_shared(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    """Allocate zeroed host memory that other processes can map through `arrayhub.ipc_handle`."""
    from arrayhub.runtimes.shared_segment import new_segment

    check_host(kind, device)
    segment = new_segment(recipe.enough)
    return use_memory(a, recipe, segment, segment.address)


cdef int take_sycl(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    """Allocate USM. The size is a multiple of the item size, because dpnp interprets the complete allocation as elements.

    SYCL supports only alignments that are powers of two, and silently ignores large alignments. For unsupported alignments,
    the allocation is enlarged so that it contains an aligned address.
    """
    cdef Py_ssize_t boundary = recipe.boundary
    cdef bint alignable = boundary <= PAGE and boundary & (boundary - 1) == 0
    cdef Py_ssize_t spare = recipe.behind if alignable else boundary - a.itemsize_
    try:
        options = {"queue": None if device is None else queue_for(device), "alignment": boundary if alignable else None}
        return allocate_usm(a, kind.name[4:].decode(), options, recipe.nbytes + spare)
    except _UNRELATED:
        raise
    except Exception as error:      # each step of dpctl's device selection raises its own exception class
        accepted = f"a SYCL device of this machine ({error}); see python -m arrayhub doctor"
        raise misplaced_error(kind, device, accepted) from error


cdef int take_cuda(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    wanted = Device("cuda:0" if device is None else device)
    if not wanted.type.startswith("cuda"):
        raise misplaced_error(kind, device, "a CUDA device such as 'cuda:0'")
    try:
        runtime_of(kind.number).allocate(a, recipe.enough, DLDevice(kind.number, wanted.id))
    except _UNRELATED:
        raise
    except Exception as error:      # cupy's CUDA runtime errors
        raise misplaced_error(kind, device, f"a CUDA device of this machine ({error})") from error
    return place_inside(a, recipe)


cdef object misplaced_error(const MemoryKind* kind, object device, str accepted):
    return ValueError(f"memory: {kind.name.decode()!r} with device {show(device)}; accepted: {accepted}")


cdef int take_numpy(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    run = (np.zeros if zeroed else np.empty)(recipe.enough, np.uint8)
    return use_memory(a, recipe, run, <size_t> cnp.PyArray_DATA(run))


cdef int use_memory(Descriptor a, Recipe recipe, object owner, size_t address) except -1:
    """Set host memory that `owner` keeps alive as the memory of `a`."""
    a.base_, a.device_ = owner, DLDevice(kDLCPU, 0)
    a.block_ = new_block(EXTERNAL, owner, <char*> address, recipe.enough, a.device_)
    return place_inside(a, recipe)


cdef int take_torch(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    """Allocate with torch. `device` is an array on the device and the stream of the allocation."""
    from arrayhub.libraries import torch

    spare = recipe.behind if 512 % recipe.boundary == 0 else recipe.boundary - 1       # torch aligns to 512 bytes
    cdef Descriptor memory = torch.allocate(recipe.nbytes + spare, device)
    a.block_, a.base_, a.device_ = block_of(memory), memory.base_, memory.device_
    a.stream_, a.producer_ = memory.stream_, memory.producer_
    return place_inside(a, recipe)


cdef int place_inside(Descriptor a, Recipe recipe) except -1:
    """Restrict the block of `a` to the bytes from element zero, which is ``recipe.behind`` bytes after an aligned address."""
    a.block_.address_ += to_boundary(<size_t> a.block_.address_, recipe.boundary, recipe.behind)
    a.block_.nbytes_ = recipe.nbytes
    return 0


def memory_of(Descriptor model):
    """Return the arguments `memory` and `device` for an allocation of the same kind and on the same device as `model`."""
    if model.usm_type_:
        return f"usm_{model.usm_type}", queue_of(model)
    if model.device.type not in _ROWS:
        raise ValueError(f"like: the array is on {model.device}; accepted: arrays on the host, SYCL or CUDA devices. Omit"
                         " like=, and pass memory='cpu'")
    return model.device.type, None if model.device_.device_type == kDLCPU else model.device


# --------------------------------------------------------------------------------- recipes: cached layouts


@cython.final
cdef class Recipe:
    """Layout of a new array in any kind of memory."""
    cdef Descriptor template        # shape, byte strides and labels
    cdef Py_ssize_t nbytes          # size in bytes, from element zero to the end
    cdef Py_ssize_t enough          # size in bytes of memory that contains the array, whatever the address of the memory
    cdef Py_ssize_t boundary        # alignment in bytes
    cdef Py_ssize_t behind          # bytes from an aligned address to element zero
    cdef Py_ssize_t row, row_step   # bytes of a row without and with padding; 0 if no alignment was requested


cdef object new(tuple arguments, preset, cnp.dtype element, const MemoryKind* kind, object device, bint zeroed):
    """Return a new array. `arguments` are those of `write_recipe`."""
    cdef Recipe recipe = recipe_for(element.itemsize, preset, arguments)
    cdef Descriptor template = recipe.template
    cdef Descriptor a = new_array(template.nd_)
    a.protocol_ = CONSTRUCTED
    set_dtype(a, element)
    kind.take(a, recipe, kind, device, zeroed)
    if recipe.row:
        a.block_.row_, a.block_.row_step_, a.block_.boundary_ = recipe.row, recipe.row_step, recipe.boundary
    a.data_ = a.block_.address_ + to_boundary(<size_t> a.block_.address_, recipe.boundary, recipe.behind)
    a.flags_ |= WRITEABLE
    memcpy(a.shape_, template.shape_, a.nd_ * sizeof(Py_ssize_t))
    memcpy(a.byte_strides_, template.byte_strides_, a.nd_ * sizeof(Py_ssize_t))
    seal(a)
    if template.labels != NULL:
        set_labels(a, labels_of(template))
    if zeroed and not kind.zeroes:
        transfer.write(a, asarray(np.zeros((), element)))
    return a


cdef Recipe recipe_for(Py_ssize_t itemsize, preset, tuple arguments):
    cdef int k
    write = write_recipe
    for k in range(len(arguments)):
        if not is_plain(arguments[k]):
            try:
                arguments = tuple([make_hashable(value) for value in arguments])
            except (TypeError, ValueError):      # an invalid argument, or for example an ndarray or an axis of GTScript
                write = write_recipe.__wrapped__
            break
    return write(itemsize, preset, arguments)


cdef inline bint is_plain(object value) noexcept:
    """Return whether `value` can be a cache key: None, an exact int or str, or a tuple of exact integers.

    Other hashable values are excluded, because True and 1.0 equal 1 and would match the key of 1.
    """
    if value is None or type(value) is int or type(value) is str:
        return True
    if type(value) is not tuple:
        return False
    for part in <tuple> value:
        if type(part) is not int:
            return False
    return True


cdef object make_hashable(object value, int depth=0):
    """Convert an argument to a cache key of exact integers, strings and tuples. Raise TypeError for other values."""
    if is_plain(value):
        return value
    if isinstance(value, (list, tuple)) and depth < 2:      # the deepest argument is a halo of pairs
        return tuple([make_hashable(part, depth + 1) for part in value])
    return integer(value, "argument")


@functools.lru_cache(maxsize=512)
def write_recipe(Py_ssize_t itemsize, preset, tuple arguments):
    """Compute the recipe for the arguments of `empty` that determine the layout. `preset` is None without a backend."""
    shape, aligned_index, halo, dimensions, dims, layout, alignment, origin = arguments
    lengths = layouts.read_lengths(shape)
    names = dims if dimensions is None else layouts.read_dimensions(dimensions)
    if dims is not None and dimensions is not None and layouts.read_dimensions(dims) != names:
        raise ValueError(f"dims: {show(dims)} differs from dimensions {show(names)}; accepted: one of the two, or equal names. "
                         f"Pass only dims={show(dims)}")
    cdef Recipe recipe = Recipe.__new__(Recipe)
    cdef Descriptor template = new_array(<int> len(lengths))
    cdef int k
    for k in range(template.nd_):
        template.shape_[k] = lengths[k]
    label(template, dims=names, halo=halo, origin=origin)
    index = None if aligned_index is None else integers(aligned_index, template.nd_, "aligned_index")
    if index is None and halo is not None:
        # If the halo covers a complete dimension, the domain is empty, and index 0 is aligned instead.
        index = tuple([lower if lower < lengths[axis] else 0 for axis, (lower, _) in enumerate(template.halo)])
    if preset is not None:
        if layout is None:
            layout = preset.rank(template.dims or [*GRID[:template.nd_], *map(str, range(template.nd_ - 3))])
        if alignment is None and preset.alignment > 1:
            alignment = preset.alignment * itemsize
    plan = layouts.plan(lengths, f"V{itemsize}", layout=layout, alignment=alignment, aligned_index=index)
    for k in range(template.nd_):
        template.byte_strides_[k] = plan.strides[k] * itemsize
    if alignment is not None:
        label(template, dims=template.dims, halo=template.halo, origin=template.origin, aligned_index=index)
    recipe.template = template
    recipe.nbytes = plan.nbytes - (plan.alignment - 1)
    # Memory is aligned to at least 64 bytes, because jax shares only memory with this alignment.
    recipe.boundary = BOUNDARY if BOUNDARY % plan.alignment == 0 else plan.alignment
    recipe.enough = recipe.nbytes + recipe.boundary - 1
    recipe.behind = plan.offset * itemsize
    if alignment is not None and lengths:
        fastest = plan.layout.index(len(lengths) - 1)
        recipe.row = lengths[fastest] * itemsize
        recipe.row_step = plan.padded_shape[fastest] * itemsize
    return recipe


# ------------------------------------------------------------------------------------------------ public functions


def refuse_packed(Descriptor array, str argument, str advice):
    """Raise TypeError for packed elements, which `empty` cannot allocate. `advice` is a call that works."""
    if is_packed(array):
        raise TypeError(f"{argument}: elements of {name_of_elements(array)} are packed into shared bytes; accepted: elements of"
                        f" one byte or more. {advice}")


cdef object create(dtype, like, backend, tuple arguments, memory, device, bint zeroed):
    """Implement `empty` and `zeros`. `arguments` are those of `write_recipe`."""
    preset = None if backend is None else layouts.find_preset(backend)
    cdef cnp.dtype element = _FLOAT64 if dtype is None else element_type(dtype)
    if like is None:
        return new(arguments, preset, element, kind_of(memory), device, zeroed)
    if memory is not None or device is not None:
        given, value = ("device", device) if memory is None else ("memory", memory)
        raise TypeError(f"{given}: {show(value)} is given with like=, which determines the memory; accepted: one of the two")
    cdef Descriptor model = asarray(like)
    if dtype is None:
        refuse_packed(model, "like", "Pass dtype='int8', or call x.copy() for packed elements")
        element = get_dtype(model)
    if arguments[0] is None:
        arguments = arguments_like(model, preset, arguments)
    cdef const MemoryKind* kind = &_KINDS[BY_NUMPY]
    owner = model.base_ if like is model else like
    if model.device_.device_type == kDLCUDA and root_of(type(owner)) == "torch":
        kind = &_KINDS[BY_TORCH]
        device = model
    elif model.device_.device_type != kDLCPU:
        memory, device = memory_of(model)
        kind = kind_of(memory)
    return new(arguments, preset, element, kind, device, zeroed)


cdef tuple arguments_like(Descriptor model, preset, tuple arguments):
    """Return the arguments for an array with the shape of `model`. Its labels and layout replace omitted arguments."""
    _, aligned_index, halo, dimensions, dims, layout, alignment, origin = arguments
    if dims is None and dimensions is None:
        dims = model.dims
    if layout is None and preset is None and not is_packed(model):      # the new array for a packed model has C order
        order = slowest_first(model)
        layout = tuple(map(order.index, range(model.nd_)))
    halo, origin = model.halo if halo is None else halo, model.origin if origin is None else origin
    return model.shape, aligned_index, halo, dimensions, dims, layout, alignment, origin


def empty(shape=None, dtype=None, *, like=None, aligned_index=None, halo=None, dimensions=None, dims=None, layout=None,
          backend=None, alignment=None, origin=None, memory=None, device=None):
    """Return a new, uninitialized array.

    If `layout`, `alignment` and `backend` are omitted, the array is C-contiguous and aligned to 64 bytes.

    Parameters
    ----------
    shape : int or sequence of int, optional
        Lengths of the dimensions, in elements. May be omitted if `like` is given.
    dtype : optional
        Element type: any value that ``numpy.dtype`` accepts. The default is the element type of `like`, or ``float64``.
    like : object, optional
        Any array that `asarray` accepts. The memory is on the device of `like`. If `shape` is omitted, the new array has the
        shape, the order of the strides, `dims`, `origin` and `halo` of `like`, except those that are given. Padding is not
        copied. If `shape` is given, layout and labels of `like` are not used. The kind of `like` determines the allocator:

        - Host memory: NumPy.
        - CUDA tensors of torch: torch's caching allocator, on the stream of `like`.
        - Other CUDA memory: cupy's current allocator.
        - USM: dpctl, with the USM type and the queue of `like`.
    aligned_index : sequence of int, optional
        Index of an element to align. Every element with this index along the fastest-varying dimension is aligned to
        `alignment` bytes. The default is the lower widths of `halo`, or zeros. If neither `alignment` nor `backend`
        specifies an alignment, the index does not change the placement of the array, and the attribute `aligned_index` of the
        array is None.
    halo : sequence of int or of (int, int), optional
        Halo widths in elements. Each dimension has one width for both ends, or a pair (lower, upper).
    dims : sequence of (str or None), optional
        Name of each dimension. With `backend`, the names "I", "J", "K" and decimal numbers (data dimensions) are
        required, and the default is "I", "J", "K", "0", "1", ...
    dimensions : sequence of str, optional
        Alias of `dims` for GT4Py's storage proposal. Accepts only "I", "J", "K" and decimal numbers.
    layout : sequence of int or {"C", "F"}, optional
        Rank of each dimension by stride, with 0 for the largest stride. See `arrayhub.storage.layout_for`.
    backend : str, optional
        Preset of `arrayhub.storage.layouts` or of GT4Py, which defines the layout and the padding of rows.
    alignment : int, optional
        Alignment in bytes. Rows are padded to a multiple of `alignment`. By default, only the preset pads rows.
    origin : sequence of int, optional
        Index of the first element of a stencil's domain.
    memory : {"cpu", "usm_host", "usm_shared", "usm_device", "cuda", "cuda_host", "cuda_managed", "shared_memory"}, optional
        Kind of memory, "cpu" by default. "cuda_host" is pinned host memory. "shared_memory" is host memory that other
        processes can map through `arrayhub.ipc_handle`.
    device : Device, str, tuple or object, optional
        Device of the allocation, as in `Device`, or for USM a ``dpctl.SyclQueue``. The default is the default device of
        dpctl or cupy.

    Returns
    -------
    USMArray
        A writable array.

    Raises
    ------
    ValueError
        - A length is negative, or the widths of `halo` are negative or exceed a length.
        - `layout` is not a permutation, or a dimension is unknown or repeated.
        - `alignment` is neither a divisor nor a multiple of the item size, or `aligned_index` is out of bounds.
        - The array would have 2**63 bytes or more.
        - `backend` is not registered, `memory` is unknown, or `device` does not exist.
    TypeError
        `like` is not an array, has packed elements and `dtype` is omitted, or is given with `memory` or `device`. Both
        `shape` and `like` are omitted.
    BufferError
        `like` cannot be imported without a copy.
    ImportError
        `memory` requires a library that is not installed. The message contains the installation command.
    MemoryError
        The allocation failed.

    Examples
    --------
    >>> x = arrayhub.empty((4, 5), "f4", dims=("I", "K"), halo=(1, 0), alignment=32)
    >>> x.strides, x.aligned_index
    ((8, 1), (1, 0))
    >>> arrayhub.empty(like=numpy.zeros((2, 3), "f4", order="F")).strides
    (1, 2)
    """
    arguments = (shape, aligned_index, halo, dimensions, dims, layout, alignment, origin)
    return create(dtype, like, backend, arguments, memory, device, False)


def zeros(shape=None, dtype=None, *, like=None, aligned_index=None, halo=None, dimensions=None, dims=None, layout=None,
          backend=None, alignment=None, origin=None, memory=None, device=None):
    """Return a new array filled with zeros.

    Parameters
    ----------
    shape, dtype, like, aligned_index, halo, dimensions, dims, layout, backend, alignment, origin, memory, device : optional
        As in `empty`.

    Returns
    -------
    USMArray

    Raises
    ------
    TypeError, ValueError, BufferError, ImportError, MemoryError
        As in `empty`.

    Examples
    --------
    >>> arrayhub.zeros((2, 3), "i4").tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    arguments = (shape, aligned_index, halo, dimensions, dims, layout, alignment, origin)
    return create(dtype, like, backend, arguments, memory, device, True)
