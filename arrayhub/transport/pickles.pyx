"""Pickling and unpickling of arrays, and copies that keep the padding of rows.

A pickle contains ``arrayhub._unpickle(state, data)``. `data` contains the bytes of the elements, out of band if the pickler
supports this, or the location of mapped memory (transport/shared_memory.py). Above SMALL bytes, `data` is a flat ndarray and
not a ``PickleBuffer``, because joblib maps ndarrays to files and hashes their content, and because pickle protocols below 5
support ndarrays.

``state`` is a tuple:

    format      int         FORMAT; a reader rejects any other value
    shape       tuple       elements
    strides     tuple, None bytes; None: C order
    offset      int         bytes from the start of `data` to element zero
    element                 see transport/codec.py
    access      int         0 immutable, 1 read-only, 2 read and write; + 4 for times of Arrow, which do not have NaT
    labels      tuple, None dims, origin, halo
    place       tuple, None device, for ``pickling(arrive="restore")``; see transport/device_placement.py

The state does not contain addresses. The reader validates the state against the received bytes.
"""

import pickle
import weakref

import numpy as np

cimport numpy as cnp

from arrayhub._core cimport dtypes, layout
from arrayhub._core.cpython.atomics cimport found, is_done, mark_done
from arrayhub._core.descriptor cimport (
    ALIGNED,
    C_CONTIGUOUS,
    CONSTRUCTED,
    COPIED,
    EXACT_TIMES,
    EXTERNAL,
    IMMUTABLE,
    PACKED,
    WRITEABLE,
    Descriptor,
    MemoryBlock,
    block_of,
    extent,
    get_dtype,
    integer,
    kDLCPU,
    labels_of,
    new_array,
    seal,
    set_dtype,
    set_type,
    shape_tuple,
    size_of,
)
from arrayhub._core.footprint cimport Footprint
from arrayhub.adapters cimport buffer as buffer_adapter
from arrayhub.libraries cimport numpy as numpy_library
from arrayhub.transfer.host_copies cimport footprint, measure_reach

from arrayhub import transfer
from arrayhub._core.errors import TOO_LARGE, show
from arrayhub._core.descriptor import label
from arrayhub.array.usm_array import USMArray
from arrayhub.transfer.host_copies import gather
from arrayhub.transfer.host import copy as host_copy
from arrayhub.transport import codec, device_placement, shared_memory
from arrayhub.transport.codec import state_error

cdef enum:
    FORMAT = 1
    STATE_LENGTH = 8
    SMALL = 1024            # bytes; up to this size, a memory-mapped file is not faster, and a pickled ndarray is larger
    KEPT = 1 << 16          # bytes; from this size on, the flat view of an array is cached for the array's lifetime

cdef enum Access:
    IS_IMMUTABLE = 0
    IS_READONLY = 1
    IS_READWRITE = 2
    IS_EXACT = 4            # added for EXACT_TIMES

cdef int _registered = False      # whether multiprocessing has the function that pickles a MappedArray

# Address of arrays without elements, because some consumers abort on a null pointer.
cdef char[16] _NOTHING


# ----------------------------------------------------------------------------------------------------------- pickling


def reduce(Descriptor array, int protocol):
    """Return the function and the arguments that restore an array, for ``USMArray.__reduce_ex__``.

    Raise PicklingError for device memory, if the setting of `arrayhub.transport.pickling` forbids a copy.
    """
    cdef Footprint span
    cdef Descriptor sent = array
    place = inode = None
    if array.device_.device_type != kDLCPU:
        sent, place = device_placement.copy_to_host(array)
    footprint(sent, &span)
    if span.levels:
        sent = gather(sent, lambda pieces: host_copy(pieces, "C"))
        footprint(sent, &span)
    if is_done(&_registered) and sent is array and span.nbytes:
        inode = shared_memory.inode_of(array.base_)
    if span.nbytes > SMALL or inode is not None:
        # Views of device memory are not cached, because each use must wait for pending work on the memory.
        data = kept_view(sent, &span) if sent is array and span.nbytes >= KEPT else new_flat_view(sent, &span)
    elif protocol >= 5:
        data = pickle.PickleBuffer(new_flat_view(sent, &span))
    else:
        data = (bytearray if array.flags_ & WRITEABLE else bytes)(new_flat_view(sent, &span))     # as protocol 5 does
    state = state_of(sent, &span, place, access_of(array))
    return _unpickle, (state, data) if inode is None else (state, data, inode)


def register_reduction():
    """Let multiprocessing pickle the location of mapped memory. Called for the first array in such memory.

    Later registrations would be too late for the first message, because ForkingPickler copies its table at the start.
    Every other pickler calls `reduce`, and its pickles contain the elements.
    """
    if not is_done(&_registered):
        from multiprocessing.reduction import ForkingPickler

        ForkingPickler.register(USMArray, reduce_location)
        mark_done(&_registered)


def reduce_location(Descriptor array):
    """Return the function and the arguments that map an array's memory, for a process that multiprocessing has started.

    If the process cannot map the memory, return those of `reduce`.
    """
    cdef Footprint span
    place = None
    if array.device_.device_type == kDLCPU:
        measure_reach(array, &span)
        place = shared_memory.locate(
            array.base_, <size_t> (array.data_ + span.low), span.nbytes, array.flags_ & WRITEABLE != 0)
    if place is None:
        return reduce(array, pickle.DEFAULT_PROTOCOL)
    location, offset = place
    span.low -= offset
    return _unpickle, (state_of(array, &span, None, access_of(array)), location)


cdef tuple state_of(Descriptor a, const Footprint* span, object place, int access):
    return (
        FORMAT,
        shape_tuple(a),
        strides_of(a, span),
        -span.low,
        element_of(a),
        access,
        labels_in_state(a),
        place,
    )


cdef int access_of(Descriptor a) noexcept:
    """Return an `Access`. IS_EXACT is added for times that were imported from Arrow, and for copies of them."""
    cdef int access = IS_READWRITE if a.flags_ & WRITEABLE else IS_IMMUTABLE if a.flags_ & IMMUTABLE else IS_READONLY
    return access | IS_EXACT if a.flags_ & EXACT_TIMES and a.typenum_ in (cnp.NPY_DATETIME, cnp.NPY_TIMEDELTA) else access


cdef object strides_of(Descriptor a, const Footprint* span):
    """Return the byte strides in `span`, or None for C order and for arrays without elements."""
    cdef int k
    if a.flags_ & PACKED or layout.is_contiguous(a.nd_, a.shape_, span.strides, a.itemsize_, False):
        return None
    return tuple([span.strides[k] for k in range(a.nd_)])


cdef object labels_in_state(Descriptor a):
    if a.labels == NULL:
        return None
    labels = labels_of(a)
    values = (labels.dims, labels.origin, labels.halo)
    return None if values == (None, None, None) else values


cdef object element_of(Descriptor a):
    cdef const dtypes.ElementType* row
    if a.typenum_ >= dtypes.FIRST_OWN_TYPENUM or a.flags_ & PACKED:
        row = dtypes.by_typenum(a.typenum_)
        return (row.name.decode(), row.dlpack.code, row.dlpack.bits, bool(a.flags_ & PACKED))
    return codec.encode(get_dtype(a))


# Flat views of large arrays, keyed by id(array). joblib recognizes a view by identity, and would otherwise write a file for
# each task. A view keeps the memory alive, but not the array, whose finalizer removes the entry.
cdef dict _kept = {}


cdef object kept_view(Descriptor a, const Footprint* span):
    """Return a flat view of `a`, the same object on each call."""
    key = id(a)
    kept = found(_kept, key)
    if kept is not None and kept[0]() is a:
        return kept[1]
    view = new_flat_view(a, span)
    _kept[key] = (weakref.ref(a, lambda _: _kept.pop(key, None)), view)
    return view


cdef object new_flat_view(Descriptor a, const Footprint* span):
    cdef MemoryBlock block = block_of(a)
    # Use the owner as base if the owner keeps the bytes alive, because joblib searches the bases for a memmap.
    cdef bint owned = block.kind_ == EXTERNAL and block.resource == NULL and block.owner_ is not None
    owned = owned and not (is_done(&_registered) and shared_memory.is_of_descriptor(block.owner_))
    return numpy_library.emit_run(a, a.data_ + span.low, span.nbytes, block.owner_ if owned else block)


# -------------------------------------------------------------------------------------------------------- unpickling


def _unpickle(state, data, inode=None):
    """Restore the array of a pickle. Validate all parts, because a pickle may contain any values.

    Raise UnpicklingError if the format is unknown, the parts are inconsistent, or the requested device is missing.
    """
    return codec.restore_state("USMArray", _restore, state, data, inode)


def _restore(state, data, inode):
    check_state(state)
    if inode is not None:
        shared_memory.check_inode(data, inode)
    cdef Descriptor memory = memory_of(data)
    cdef Descriptor a = place_inside(state, memory)
    # Named memory is shared with the sender, so it is not copied for alignment.
    if not a.flags_ & ALIGNED and type(data) is not tuple and (<size_t> memory.data_) % a.alignment_ != 0:
        a = place_inside(state, aligned_copy(memory))
    place = (<tuple> state)[7]
    return a if place is None else device_placement.restore(a, place)


_unpickle.__module__ = "arrayhub"     # pickles name this module, so the function can move


def state_in_place(Descriptor a):
    """Return the state of an array, and the address and size in bytes of its memory, including gaps between elements."""
    cdef Footprint span
    measure_reach(a, &span)
    return state_of(a, &span, None, access_of(a)), <size_t> (a.data_ + span.low), span.nbytes


def in_place(state, Descriptor memory):
    """Return the array that a state describes in `memory`, without a copy. `memory` may be on any device.

    Raise UnpicklingError if the parts of the state are inconsistent, or if the elements exceed `memory`.
    """
    check_state(state)
    return codec.restore_state("USMArray", place_inside, state, memory)


cdef int check_state(object state) except -1:
    if type(state) is not tuple or len(<tuple> state) == 0:
        raise state_error("state", state, "a tuple that starts with the version number")
    codec.check_version("the pickle", (<tuple> state)[0], FORMAT)
    if len(<tuple> state) != STATE_LENGTH:
        raise state_error("state", state, f"a tuple of {STATE_LENGTH} items")
    return 0


cpdef Descriptor place_inside(tuple state, Descriptor memory):
    """Return the array that a state describes in `memory`, without regard to the device of the state."""
    _, shape, strides, offset, element, access, labels, _ = state
    cdef Descriptor a = describe_layout(shape, strides, element)
    cdef Py_ssize_t low = 0, high = 0, nbytes = size_of(memory) * memory.itemsize_, start = integer(offset, "offset")
    cdef bint inside = 0 <= start <= nbytes
    if type(access) is not int or not IS_IMMUTABLE <= access & ~IS_EXACT <= IS_READWRITE:
        raise state_error("access", access, "0, 1 or 2, or one of these plus 4")
    if inside:
        a.data_ = (memory.data_ if memory.data_ != NULL else _NOTHING) + start
        seal(a)
        extent(a, &low, &high)
    if not inside or start + low < 0 or high > nbytes - start:
        raise ValueError(f"shape {show(shape)}, strides and offset {start} exceed {nbytes} bytes")
    a.device_ = memory.device_
    a.block_ = block_of(memory)
    a.base_ = memory.base_
    a.stream_ = memory.stream_
    a.producer_ = memory.producer_
    set_access(a, access, memory)
    if labels is not None:
        dims, origin, halo = labels
        label(a, dims=dims, origin=origin, halo=halo)
    return a


cdef Descriptor memory_of(object data):
    """Return the bytes of a pickle as a C-contiguous array, usually one-dimensional."""
    cdef Descriptor memory
    if type(data) is tuple:
        memory = numpy_library.parse(shared_memory.map_file(data), None)
    elif not isinstance(data, np.ndarray):
        memory = buffer_adapter.parse(data, None)
    elif data.dtype.num in (cnp.NPY_OBJECT, cnp.NPY_VOID):      # NumPy restores the fields of a dtype without validation
        memory = None
    else:
        memory = numpy_library.parse(data, None)
    if memory is None or not memory.flags_ & C_CONTIGUOUS or memory.flags_ & PACKED:
        raise state_error("data", data, "an object with a buffer of contiguous bytes")
    return memory


cdef Descriptor describe_layout(tuple shape, tuple strides, object element):
    """Return an array with a shape, byte strides and an element type, but without memory. `seal` validates them."""
    cdef int k
    if len(shape) > layout.MAX_NDIM:
        raise state_error("shape", shape, f"a tuple of at most {layout.MAX_NDIM} lengths")
    cdef Descriptor a = new_array(<int> len(shape))
    a.protocol_ = CONSTRUCTED
    set_element(a, element)
    for k in range(a.nd_):
        a.shape_[k] = integer(shape[k], "shape")
    if strides is not None:
        if len(strides) != a.nd_ or a.flags_ & PACKED:
            raise ValueError(f"strides are {show(strides)}")
        for k in range(a.nd_):
            a.byte_strides_[k] = integer(strides[k], "strides")
    elif layout.fill_strides(a.nd_, a.shape_, 1 if a.flags_ & PACKED else a.itemsize_, False,
                             a.strides_ if a.flags_ & PACKED else a.byte_strides_):
        raise ValueError(f"shape is {show(shape)}; accepted: {TOO_LARGE}")
    return a


cdef int set_element(Descriptor a, object element) except -1:
    cdef const dtypes.ElementType* row
    if type(element) is not tuple:
        return set_dtype(a, codec.decode(element))
    if len(<tuple> element) != 4 or [type(part) for part in <tuple> element] != [str, int, int, bool]:
        raise codec.element_error(element)
    name, code, bits, packed = <tuple> element
    row = dtypes.by_own_name(name)
    if row == NULL or row.dlpack.code != code or row.dlpack.bits != bits or packed and row.bits >= 8:
        raise pickle.UnpicklingError(
            f"arrayhub: the elements in the pickle are {show(element)}, a type that this release does not support; unpickle"
            " it with the release of arrayhub that wrote it, or a later one"
        )
    set_type(a, row)
    if packed:
        a.flags_ |= PACKED
    return 0


cdef Descriptor aligned_copy(Descriptor memory):
    """Copy bytes to new memory aligned for any element type."""
    cdef Descriptor fresh = host_copy(memory, "C")
    # Same access as the received bytes, so that the result does not depend on the alignment of receive buffers.
    fresh.flags_ = fresh.flags_ & ~WRITEABLE | memory.flags_ & (WRITEABLE | IMMUTABLE)
    return fresh


cdef int set_access(Descriptor a, int access, Descriptor memory) except -1:
    """Set the access of a received array to the access at the sender, limited by the access of the receive buffer."""
    a.flags_ |= memory.flags_ & COPIED
    if access & IS_EXACT:
        a.flags_ |= EXACT_TIMES
    access &= ~IS_EXACT
    if access == IS_IMMUTABLE:
        a.flags_ |= IMMUTABLE
    elif access == IS_READWRITE:
        a.flags_ |= memory.flags_ & (WRITEABLE | IMMUTABLE)
    return 0


# -------------------------------------------------------------------------------------------------------- deep copies


def padded_copy(Descriptor array, Py_ssize_t boundary):
    """Copy an array with padded rows, for ``copy.deepcopy``. The copy has the same strides and the same alignment.

    `boundary` is the result of `row_boundary`, in bytes.
    """
    from arrayhub.storage.allocation import empty, memory_of

    def copy_beside(run):
        before = run.ptr % boundary
        memory, device = memory_of(run)
        fresh = empty(before + run.size, run.dtype, alignment=boundary, memory=memory, device=device)[before:]
        transfer.write(fresh, run)
        return fresh

    return gather(array, copy_beside, True)
