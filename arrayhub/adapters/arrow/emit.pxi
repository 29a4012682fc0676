"""Export arrays and nodes as ArrowArray structs, which keep the memory alive until the consumer releases the structs."""

import numpy as np

cimport numpy as cnp
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t

from arrayhub._core cimport layout
from arrayhub._core.descriptor cimport Descriptor, host_readable, size_of
from arrayhub._core.cpython.finalizing cimport is_finalizing
from arrayhub._core.cpython.exceptions cimport Aside, put_aside, put_back
from arrayhub._core.tree cimport (
    BIT_PACKED,
    CHARACTERS,
    ENDS,
    FIELDS,
    FOREIGN,
    INDICES,
    LISTS,
    NODE_KINDS,
    NUMBERS,
    UNCOUNTED,
    VIEW_BYTES,
    VIEWS,
    WIDTH,
    Tree,
    check_below,
    has,
    is_sliced_with,
    visit_arrays,
)
from arrayhub._core.runtime cimport host_ready, device_name
from arrayhub.runtimes cimport cuda

from arrayhub._core.errors import Refusal, unreadable

cdef extern from *:
    """
    /* The smallest int64 encodes NumPy's NaT ("not a time"). */
    static Py_ssize_t arrayhub_count_nat(const char *data, Py_ssize_t n) {
        Py_ssize_t count = 0;
        for (Py_ssize_t k = 0; k < n; k++) {
            long long value;
            memcpy(&value, data + 8 * k, 8);
            count += value == LLONG_MIN;
        }
        return count;
    }
    """
    Py_ssize_t arrayhub_count_nat(const char* data, Py_ssize_t n) noexcept nogil


cdef struct Body:              # private data of an exported array; its buffer pointers and child structs follow in memory
    PyObject* owner            # owner of the buffers of this node
    cuda.CudaEvent event       # set for the outermost array in a CUDA device array


cdef void _release_array(ArrowArray* array) noexcept nogil:
    """Release an array and its children. If a consumer has moved a child, its `release` is NULL, and the child is skipped."""
    cdef int64_t k
    if array == NULL or array.release == NULL:
        return
    if is_finalizing():      # Python code can no longer run, so the memory is kept until the process ends
        array.release = NULL
        return
    for k in range(array.n_children):
        if array.children[k].release != NULL:
            array.children[k].release(array.children[k])
    if array.dictionary != NULL and array.dictionary.release != NULL:
        array.dictionary.release(array.dictionary)
    free_body(<Body*> array.private_data)
    array.release = NULL


cdef void free_body(Body* body) noexcept with gil:
    cdef Aside aside = put_aside()
    if body.event != NULL:
        cuda.destroy_event(body.event)
    Py_DECREF(<object> body.owner)
    PyMem_RawFree(body)
    put_back(aside)


cdef Body* new_body(ArrowArray* out, object owner, int buffers, int64_t children, bint dictionary) except NULL:
    """Allocate the buffer pointers, children and dictionary of `out`, and set its release function."""
    cdef int64_t structs = children + dictionary, k
    cdef size_t size = sizeof(Body) + buffers * sizeof(void*) + children * sizeof(void*) + structs * sizeof(ArrowArray)
    cdef Body* body = <Body*> PyMem_RawCalloc(1, size)
    if body == NULL:
        raise MemoryError
    Py_INCREF(owner)
    body.owner = <PyObject*> owner
    out.buffers = <const void**> (<char*> body + sizeof(Body))
    out.n_buffers = buffers
    out.children = <ArrowArray**> (out.buffers + buffers)
    out.n_children = children
    cdef ArrowArray* below = <ArrowArray*> (out.children + children)
    for k in range(children):
        out.children[k] = below + k
    out.dictionary = below + children if dictionary else NULL
    out.offset = 0
    out.private_data = body
    out.release = _release_array
    return body


cdef int fill_array(ArrowArray* out, object node, Py_ssize_t lead, tuple field=None) except -1:
    """Fill `out` with a node, preceded by `lead` elements that the offset of the parent skips.

    Numbers are exported as a primitive array inside one fixed-size list for each dimension after the first. Booleans are
    exported as bits if `is_packed` returns True. `field` contains the name, flags and metadata that the parent stores for the
    node, as in `fill_schema`.
    """
    cdef Tree t = <Tree> node if isinstance(node, Tree) else None
    cdef bint as_bytes, innermost
    cdef int axis
    if t is not None and not has(t, NUMBERS):
        return fill_tree(out, t, lead)
    cdef Descriptor a = <Descriptor> (node if t is None else t.content)
    for axis in range(a.nd_):
        innermost = axis == a.nd_ - 1
        new_body(out, node, 2 if innermost else 1, 0 if innermost else 1, False)
        out.length = lead + layout.count(axis + 1, a.shape_)
        out.null_count = 0
        if axis == 0 and t is not None and t.validity is not None and out.length > 0:
            set_bitmap(out, t.validity, t.bit, lead, t.nulls)
        lead += out.offset
        if not innermost:
            lead *= a.shape_[axis + 1]
            out = out.children[0]
    as_bytes = a.dl_dtype_.code == BOOL_CODE and has_bytes(node, field)
    if as_bytes:
        refuse_strides(a)
    if is_packed(a, as_bytes):
        return pack_bits(out, a, lead)
    out.buffers[1] = back_by(a, lead)
    return mark_missing_times(out, a, lead)


cdef int pack_bits(ArrowArray* out, Descriptor a, Py_ssize_t lead) except -1:
    """Set the values buffer to a new bitmap that contains `lead` zeros followed by the booleans of `a` in C order."""
    values = np.asarray(a).ravel()
    if lead:
        values = np.concatenate([np.zeros(lead, bool), values])
    bits = np.packbits(values, bitorder="little")
    hold_also(<Body*> out.private_data, bits)
    out.buffers[1] = cnp.PyArray_DATA(<cnp.ndarray> bits)
    return 0


cdef int mark_missing_times(ArrowArray* out, Descriptor a, Py_ssize_t lead) except -1:
    """Mark NumPy's NaT as missing in the bitmap.

    NumPy encodes NaT as the smallest int64, which is a valid time in Arrow. Times imported from Arrow are therefore not
    scanned.
    """
    cdef Py_ssize_t count, n = size_of(a)
    if n == 0 or not may_be_nat(a):
        return 0
    if not host_readable(a):
        raise Refusal("Arrow", f"{nat_obstacle(a)}")
    count = arrayhub_count_nat(a.data_, n)
    if count == 0:
        return 0
    valid = np.ones(lead + n, bool)
    valid[lead:] = ~np.isnat(np.asarray(a).ravel())
    if out.buffers[0] != NULL:
        # including the bits before the offset
        old = np.asarray(<const unsigned char[: (out.offset + out.length + 7) >> 3]> out.buffers[0])
        valid &= np.unpackbits(old, bitorder="little")[: lead + n].astype(bool)
        count = UNCOUNTED
    bits = np.packbits(valid, bitorder="little")
    hold_also(<Body*> out.private_data, bits)
    out.buffers[0] = cnp.PyArray_DATA(<cnp.ndarray> bits)
    out.null_count = count
    return 0


cdef int hold_also(Body* body, object more) except -1:
    """Keep the object `more` alive until `body` is freed."""
    pair = (<object> body.owner, more)
    Py_INCREF(pair)
    Py_DECREF(<object> body.owner)
    body.owner = <PyObject*> pair
    return 0


cdef int set_bitmap(ArrowArray* out, Descriptor validity, Py_ssize_t bit, Py_ssize_t lead, Py_ssize_t nulls) except -1:
    """Set the bitmap of an array, and the array's offset, which depends on the position of the first bit in its byte.

    An ArrowArray has one offset for all its buffers, so every buffer must start `offset` elements before the first element.
    The memory before the first element is valid, because only slices of longer arrays have an offset.
    """
    cdef Py_ssize_t back = 0
    if bit < lead:
        back = (lead - bit + 7) >> 3
    out.offset = bit + 8 * back - lead
    out.null_count = nulls if lead == 0 else UNCOUNTED
    out.buffers[0] = validity.data_ - back
    return 0


cdef int fill_tree(ArrowArray* out, Tree t, Py_ssize_t lead) except -1:
    cdef Py_ssize_t k, start, count = 0 if t.parts is None else len(t.parts)
    new_body(out, t, buffers_in(t, count), count if has(t, FIELDS | FOREIGN) else NODE_KINDS[t.kind].children,
             has(t, INDICES))
    out.length = t.length + lead
    out.null_count = 0
    if out.length == 0:      # pyarrow rejects an offset into the buffers of an empty array
        pass
    elif t.validity is not None and t.bit and has_runs(t):
        set_aligned_bitmap(out, t)
    elif t.validity is not None:
        set_bitmap(out, t.validity, t.bit, lead, t.nulls)
    elif has(t, BIT_PACKED):
        set_bitmap(out, <Descriptor> t.content, t.bit, lead, 0)
        out.buffers[0] = NULL
        out.null_count = 0
    start = out.offset + lead        # elements in each buffer before the first element of the node
    if has(t, ENDS):
        out.buffers[1] = back_by(t.offsets, start)
    if has(t, LISTS):
        fill_array(out.children[0], t.content, start * t.width if has(t, WIDTH) else 0, child_field(t, 0))
    elif has(t, VIEWS):
        fill_view_buffers(out, t, start)
    elif has(t, CHARACTERS):
        out.buffers[2] = (<Descriptor> t.content).data_
    elif has(t, FIELDS | FOREIGN):
        if has(t, FOREIGN):
            fill_opaque(out, t, start)
        for k in range(count):
            fill_array(out.children[k], t.parts[k], start if is_sliced_with(t) else 0, child_field(t, k))
    elif has(t, INDICES):
        out.buffers[1] = back_by(t.indices, start)
        fill_array(out.dictionary, t.content, 0, child_field(t, 0))
    elif has(t, BIT_PACKED):
        out.buffers[1] = (<Descriptor> t.content).data_ - ((start - t.bit) >> 3 if out.length else 0)
    return 0


cdef int fill_opaque(ArrowArray* out, Tree t, Py_ssize_t start) except -1:
    """Set the buffers of an opaque node after its bitmap, the offset of runs, and the number of elements of type null."""
    cdef Py_ssize_t k, first = out.n_buffers - len(t.buffers)
    for k in range(len(t.buffers)):
        out.buffers[first + k] = back_by(<Descriptor> t.buffers[k], start)
    if t.meaning == "+r":
        out.offset = t.skip if t.length else 0
    elif t.meaning == "n":
        out.null_count = out.length
    return 0


cdef bint has_runs(object node):
    """Return whether a node contains a run-end encoded array, to which an offset cannot add leading elements."""
    cdef Tree t
    if not isinstance(node, Tree):
        return False
    t = <Tree> node
    if (has(t, FOREIGN) and t.meaning == "+r") or has_runs(t.content):
        return True
    for part in t.parts or ():
        if has_runs(part):
            return True
    return False


cdef int set_aligned_bitmap(ArrowArray* out, Tree t) except -1:
    """Set the bitmap to a copy that starts at a byte boundary, so that the array does not need an offset."""
    bits = np.unpackbits(np.asarray(t.validity), bitorder="little")[t.bit : t.bit + t.length]
    aligned = np.packbits(bits, bitorder="little")
    hold_also(<Body*> out.private_data, aligned)
    out.buffers[0] = cnp.PyArray_DATA(<cnp.ndarray> aligned)
    out.null_count = t.nulls
    return 0


cdef inline int buffers_in(Tree t, Py_ssize_t count) except -1:
    """Return the number of buffers of a node with `count` parts."""
    if has(t, VIEWS):
        return 3 + <int> count
    return buffers_of(find_format(t.meaning.encode())) if has(t, FOREIGN) else NODE_KINDS[t.kind].buffers


cdef inline const void* back_by(Descriptor a, Py_ssize_t elements) noexcept:
    return NULL if a.data_ == NULL else a.data_ - elements * a.itemsize_


cdef int fill_view_buffers(ArrowArray* out, Tree t, Py_ssize_t start) except -1:
    """Set the buffers of a view array: the views, the characters, and the sizes of the character buffers."""
    cdef Py_ssize_t k, count = len(t.parts)
    sizes = np.array([(<Descriptor> part).shape_[0] for part in t.parts], np.int64)
    out.buffers[1] = back_by(<Descriptor> t.content, start * VIEW_BYTES)
    for k in range(count):
        out.buffers[2 + k] = (<Descriptor> t.parts[k]).data_
    hold_also(<Body*> out.private_data, sizes)
    out.buffers[2 + count] = <const void*> <size_t> sizes.ctypes.data
    return 0


cdef int ready_for_host(object node) except -1:
    """Wait until the host can read every array of a node. Validate offsets and indices, because most consumers do not.

    Raises
    ------
    InterfaceError
        Offsets, sizes, views or indices are out of range.
    BufferError
        The host cannot read the memory.
    """
    visit_arrays(node, wait_for_host, NULL)
    return check_below(node)


cdef int wait_for_host(Descriptor a, void* argument) except -1:
    if not host_readable(a):
        raise BufferError(unreadable("Arrow", device_name(a), call="use __arrow_c_device_array__, or call x.to_host()"))
    return host_ready(a)
