"""Allocation: new memory of any kind, and an array laid over it as a plan says.

What the arguments come to is worked out once and kept, so that the same call again only allocates.
"""

cimport cython
cimport numpy as cnp
from libc.string cimport memcpy

from arrayhub._core.descriptor cimport (
    CONSTRUCTED,
    USM_DEVICE,
    USM_HOST,
    USM_SHARED,
    WRITEABLE,
    Descriptor,
    labels_of,
    new_array,
    seal,
    set_dtype,
    set_labels,
)
from arrayhub._core.device cimport DLDevice, kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged
from arrayhub._core.integers cimport is_bool
from arrayhub._core.memory cimport BOUNDARY, PAGE, allocate, to_boundary
from arrayhub._core.runtime cimport runtime_of
from arrayhub._core.shared cimport found
from arrayhub.construction cimport take_usm

import operator

import numpy as np

from arrayhub import transfer
from arrayhub._core.device import Device
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import PASSES_ON, show
from arrayhub._core.labels import label
from arrayhub.conversion import asarray
from arrayhub.runtimes.sycl import queue_for
from arrayhub.storage import layouts, planning

cnp.import_array()

# ------------------------------------------------------------------------------------------------- kinds of memory


cdef struct MemoryKind:
    # Give `a` memory with space for a recipe: block, base and device.
    int (*take)(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1
    const char* name
    int number      # DLPack's device type, or the kind of USM
    bint zeroes     # whether `take` knows how to hand out zeros

cdef enum:
    KINDS = 7

# One row per name that `memory=` takes.
cdef MemoryKind _KINDS[KINDS]
_KINDS[0] = MemoryKind(take_host, b"cpu", kDLCPU, True)
_KINDS[1] = MemoryKind(take_sycl, b"usm_host", USM_HOST, False)
_KINDS[2] = MemoryKind(take_sycl, b"usm_shared", USM_SHARED, False)
_KINDS[3] = MemoryKind(take_sycl, b"usm_device", USM_DEVICE, False)
_KINDS[4] = MemoryKind(take_cuda, b"cuda", kDLCUDA, False)
_KINDS[5] = MemoryKind(take_cuda, b"cuda_host", kDLCUDAHost, False)
_KINDS[6] = MemoryKind(take_cuda, b"cuda_managed", kDLCUDAManaged, False)

cdef int _number
# How the names of a device's kinds of memory begin, by the type of the device.
_PREFIXES = {"oneapi": "usm_"}
_ROWS = {_KINDS[_number].name.decode(): _number for _number in range(KINDS)}


cdef const MemoryKind* kind_of(object memory) except NULL:
    row = _ROWS.get(memory) if isinstance(memory, str) else None
    if row is None:
        raise ValueError(f"memory: {show(memory)}; accepted: {', '.join(_ROWS)}")
    return &_KINDS[<int> row]


cdef int take_host(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    wanted = None if device is None else Device(device)
    if wanted is not None and wanted != "cpu":
        kinds = [name for name in _ROWS if name.startswith(_PREFIXES.get(wanted.type, "cuda"))]
        raise ValueError(
            f"device: {show(device)} has none of the host's memory, which memory='cpu', the default, asks for; add memory="
            f"{', '.join(map(repr, kinds))}"
        )
    a.block_ = allocate(recipe.nbytes, recipe.boundary, recipe.behind, zeroed)
    a.base_ = a.block_
    a.device_ = DLDevice(kDLCPU, 0)
    return 0


cdef int take_sycl(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    """USM of whole elements: dpnp reads all of an array's memory as elements of its type.

    SYCL has boundaries that are powers of two, and passes over large ones in silence; for others there is space to spare.
    """
    cdef Py_ssize_t boundary = recipe.boundary
    cdef bint alignable = boundary <= PAGE and boundary & (boundary - 1) == 0
    cdef Py_ssize_t spare = recipe.behind if alignable else boundary - a.itemsize_
    try:
        options = {"queue": None if device is None else queue_for(device), "alignment": boundary if alignable else None}
        return take_usm(a, kind.name[4:].decode(), options, recipe.nbytes + spare)
    except (ImportError, TypeError):
        raise
    except PASSES_ON:
        raise
    except Exception as error:      # dpctl has its own for each step of looking for a device
        accepted = f"a SYCL device of this machine ({error}); see python -m arrayhub doctor"
        raise misplaced_error(kind, device, accepted) from error


cdef int take_cuda(Descriptor a, Recipe recipe, const MemoryKind* kind, object device, bint zeroed) except -1:
    cdef DLDevice wanted = DLDevice(kind.number, 0)
    if device is not None:
        place = Device(device)
        if not place.type.startswith("cuda"):
            raise misplaced_error(kind, device, "a CUDA device such as 'cuda:0'")
        wanted.device_id = place.id
    try:
        runtime_of(kind.number).allocate(a, recipe.nbytes + recipe.boundary - 1, wanted)
    except ImportError:
        raise
    except PASSES_ON:
        raise
    except Exception as error:      # cupy's errors of the CUDA runtime
        raise misplaced_error(kind, device, f"a CUDA device of this machine ({error})") from error
    # As of the host's memory, the block is what was asked for, without what was to spare.
    a.block_.address_ += to_boundary(<size_t> a.block_.address_, recipe.boundary, recipe.behind)
    a.block_.nbytes_ = recipe.nbytes
    return 0


cdef object misplaced_error(const MemoryKind* kind, object device, str accepted):
    return ValueError(f"memory: {kind.name.decode()!r} with device {show(device)}; accepted: {accepted}")


# --------------------------------------------------------------------------------- what the arguments come to


@cython.final
cdef class Recipe:
    """Everything about a new array but its element type (of which only the size counts) and its memory."""
    cdef Descriptor template        # shape, byte strides and labels; never shown to anybody
    cdef Py_ssize_t nbytes          # from element zero on
    cdef Py_ssize_t boundary        # bytes
    cdef Py_ssize_t behind          # bytes from a boundary to element zero
    cdef Py_ssize_t row, row_step   # bytes of a row, and from one to the next; 0 where no alignment was asked for
    cdef object backend             # whose preset went into this, or None
    cdef object source              # where that came from, so that a later registration shows

cdef enum:
    RECIPES = 512                   # more than a program has different allocations; beyond it all are forgotten

cdef dict _recipes = {}

# The arguments that decide the layout, in the order of `write_recipe`, and what each may be.
_ARGUMENT_FORMS = {
    "shape": "an integer, or a sequence of integers",
    "aligned_index": "a sequence of integers",
    "halo": "a sequence of integers or of pairs of integers",
    "dimensions": "a sequence of names",
    "dims": "a sequence of names",
    "layout": "'C', 'F' or a sequence of integers",
    "backend": "a name",
    "alignment": "an integer, in bytes",
    "origin": "a sequence of integers",
}
cdef tuple _ARGUMENTS = tuple(_ARGUMENT_FORMS)


cdef object new(tuple arguments, cnp.dtype element, object memory, object device, bint zeroed):
    """A new array. `arguments` are the item size and those of _ARGUMENTS."""
    cdef const MemoryKind* kind = kind_of(memory)
    cdef Recipe recipe = recipe_for(arguments, element)
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


cdef inline cnp.dtype element_of(object dtype):
    """The NumPy dtype of single elements that `dtype` says."""
    cdef cnp.dtype element = dtype if isinstance(dtype, cnp.dtype) else requested_dtype(dtype)
    if element.type_num == cnp.NPY_VOID:        # NumPy's number for sub-arrays too, which this refuses
        planning.element_type(element)
    return element


cdef Recipe recipe_for(tuple arguments, cnp.dtype element):
    cdef tuple key = arguments
    cdef int k
    for k in range(1, len(arguments)):
        if not is_plain(arguments[k]):
            key = (arguments[0], *[frozen(arguments[n], _ARGUMENTS[n - 1], 0) for n in range(1, len(arguments))])
            break
    cdef Recipe recipe = found(_recipes, key)
    if recipe is None or (recipe.backend is not None and layouts.source(recipe.backend) is not recipe.source):
        recipe = write_recipe(element, key)
        if len(_recipes) >= RECIPES:
            _recipes.clear()
        _recipes[key] = recipe
    return recipe


cdef inline bint is_plain(object value) noexcept:
    """Whether an argument can be looked up as it is: an exact integer, a string, or a tuple of exact integers.

    True and 1.0 would find the recipe of 1, and a list cannot be looked up.
    """
    if value is None or type(value) is int or type(value) is str:
        return True
    if type(value) is not tuple:
        return False
    for part in <tuple> value:
        if type(part) is not int:
            return False
    return True


cdef object frozen(object value, str what, int depth):
    """An argument as something that can be looked up, with everything in it made plain."""
    return value if is_plain(value) else frozen_slowly(value, what, depth)


cdef object frozen_slowly(object value, str what, int depth):
    axis = getattr(value, "__gt_axis_name__", None)     # GTScript's I, J, K
    if axis is not None or isinstance(value, str):
        return str.__str__(value) if axis is None else str(axis)    # an enumeration's own says the class, too
    if not is_bool(value):
        try:
            return operator.index(value)
        except TypeError:
            pass
        if depth < 2 and planning.is_ordered(value):     # pairs of widths in a halo: no deeper
            return tuple([frozen(part, what, depth + 1) for part in value])
    raise TypeError(f"{what}: {show(value)} of type {type(value).__name__}; accepted: {_ARGUMENT_FORMS[what]}")


cdef Recipe write_recipe(cnp.dtype element, tuple arguments):
    """The recipe for arguments that are plain."""
    _, shape, aligned_index, halo, dimensions, dims, layout, backend, alignment, origin = arguments
    lengths = planning.checked_lengths(shape)
    names = names_of(dimensions, dims)
    cdef Recipe recipe = Recipe.__new__(Recipe)
    cdef Descriptor template = new_array(<int> len(lengths))
    cdef int k
    for k in range(template.nd_):
        template.shape_[k] = lengths[k]
    label(template, dims=names, halo=halo, origin=origin)
    index = aligned_index
    if index is None and halo is not None:
        # Where the halo leaves no domain there is no element of it to align.
        index = tuple([lower if lower < lengths[axis] else 0 for axis, (lower, _) in enumerate(template.halo)])
    if backend is not None:
        recipe.backend = backend
        preset = layouts.find(backend)
        recipe.source = layouts.source(backend)
        if layout is None:
            layout = layouts.layout_by(preset, layouts.checked_dimensions(names or layouts.default_dimensions(len(lengths))))
        if alignment is None and preset.alignment > 1:
            alignment = preset.alignment * element.itemsize
    plan = planning.plan(lengths, element, layout=layout, alignment=alignment, aligned_index=index)
    for k in range(template.nd_):
        template.byte_strides_[k] = plan.strides[k] * element.itemsize
    label(template, dims=names, halo=halo, origin=origin, aligned_index=index)
    recipe.template = template
    recipe.nbytes = plan.nbytes - (plan.alignment - 1)
    # A smaller boundary is kept by a larger one, which others like better.
    recipe.boundary = BOUNDARY if BOUNDARY % plan.alignment == 0 else plan.alignment
    recipe.behind = plan.offset * element.itemsize
    if alignment is not None and lengths:
        fastest = plan.layout.index(len(lengths) - 1)
        recipe.row = lengths[fastest] * element.itemsize
        recipe.row_step = plan.padded_shape[fastest] * element.itemsize
    return recipe


cdef object names_of(object dimensions, object dims):
    """The names of the dimensions, under either keyword; under the proposal's only those that a stencil has."""
    if dimensions is None:
        return dims
    names = layouts.checked_dimensions(dimensions)
    if dims is not None and layouts.checked_dimensions(dims) != names:
        raise ValueError(f"dims: {show(dims)} beside dimensions {show(names)}; accepted: one of the two, or the same names")
    return names


# ------------------------------------------------------------------------------------------------ public functions


def empty(shape, dtype=np.float64, *, aligned_index=None, halo=None, dimensions=None, dims=None, layout=None,
          backend=None, alignment=None, origin=None, memory="cpu", device=None):
    """Return a new array whose elements have any values.

    Without any of `layout`, `alignment`, `halo`, `aligned_index` and `backend` it is compact, in C order, and starts on
    a 64-byte boundary.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the dimensions, in elements.
    dtype : optional
        The element type, ``float64`` by default: anything that ``numpy.dtype`` takes.
    aligned_index : sequence of int, optional
        The index that the memory is aligned to: every element which has it in the fastest dimension lies on a boundary
        of `alignment` bytes. The lower widths of `halo` by default, or zeros.
    halo : sequence of int or of (int, int), optional
        Widths in elements, at both ends of each dimension or at the lower and the upper one.
    dims : sequence of str, optional
        The array's ``dims``: the name of each dimension. With `backend` a name says what the dimension means: "I", "J",
        "K", or a decimal number for a data dimension; in this order by default.
    dimensions : sequence of str, optional
        The storage proposal's name for `dims`, which takes only those names that a stencil knows.
    layout : sequence of int or {"C", "F"}, optional
        The order of the dimensions in memory: the rank of each when they are sorted from the largest stride to the
        smallest. `arrayhub.layout_for` gives a backend's.
    backend : str, optional
        A preset of `arrayhub.layouts`, or of GT4Py: the layout, and how rows are padded.
    alignment : int, optional
        Bytes. Rows are padded to multiples of it. By default they are padded only where the preset says so.
    origin : sequence of int, optional
        The index of the element where a stencil's domain starts; the array's ``origin``.
    memory : {"cpu", "usm_host", "usm_shared", "usm_device", "cuda", "cuda_host", "cuda_managed"}, optional
        The kind of memory: of the host, a SYCL device's, or CUDA's ("cuda_host" is pinned).
    device : Device, str, tuple or object, optional
        Which device; see `Device`. For USM also a ``dpctl.SyclQueue``. The library's default one where it is left out.

    Returns
    -------
    USMArray

    Raises
    ------
    ValueError
        A layout that is no permutation; a dimension that is unknown or there twice; an alignment that does not fit the
        item size; an index outside of the array; more bytes than an address space has; a backend that is not
        registered; a kind of memory or a device that there is none of.
    ImportError
        The kind of memory needs a library that is not installed; the message names the extra.
    MemoryError
        There is not enough.
    """
    cdef cnp.dtype element = element_of(dtype)
    return new((element.itemsize, shape, aligned_index, halo, dimensions, dims, layout, backend, alignment, origin), element,
               memory, device, False)


def zeros(shape, dtype=np.float64, *, aligned_index=None, halo=None, dimensions=None, dims=None, layout=None,
          backend=None, alignment=None, origin=None, memory="cpu", device=None):
    """Return a new array of zeros; see `empty` for everything else."""
    cdef cnp.dtype element = element_of(dtype)
    return new((element.itemsize, shape, aligned_index, halo, dimensions, dims, layout, backend, alignment, origin), element,
               memory, device, True)
