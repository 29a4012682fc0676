"""Conversion of strings from and to NumPy's StringDType, and between offsets and views."""

import numpy as np

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Fast_ITEMS
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.tree cimport (
    CHARACTERS,
    ENDS,
    INLINE_VIEW,
    UTF8,
    VIEW_BYTES,
    VIEWS,
    Tree,
    check_again,
    has,
    integer_at,
    is_missing,
)

from arrayhub._core.errors import Refusal, show
from arrayhub.convert.functions import asarray

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef struct npy_static_string:
        size_t size
        const char* buf
    ctypedef struct npy_packed_static_string:
        pass
    ctypedef struct npy_string_allocator:
        pass
    ctypedef struct PyArray_StringDTypeObject:
        pass
    npy_string_allocator* NpyString_acquire_allocator(const PyArray_StringDTypeObject* descr) nogil
    void NpyString_release_allocator(npy_string_allocator* allocator) nogil
    int NpyString_load(npy_string_allocator* allocator, const npy_packed_static_string* packed,
                       npy_static_string* unpacked) nogil
    int NpyString_pack(npy_string_allocator* allocator, npy_packed_static_string* packed, const char* buf,
                       size_t size) nogil
    int NpyString_pack_null(npy_string_allocator* allocator, npy_packed_static_string* packed) nogil

cdef enum:
    LARGEST = 0x7fffffff      # largest int32 offset


def from_string_dtype(array):
    """Copy an ndarray of StringDType to a NestedArray. NumPy's string arena cannot be shared.

    Parameters
    ----------
    array : numpy.ndarray
        One-dimensional array of ``StringDType``. Elements equal to the dtype's ``na_object`` are missing.
    """
    if not isinstance(array, np.ndarray) or type(array.dtype) is not np.dtypes.StringDType or array.ndim != 1:
        raise TypeError(f"from_string_dtype: {show(array)} is not a one-dimensional ndarray of StringDType")
    cdef Py_ssize_t n = cnp.PyArray_DIM(<cnp.ndarray> array, 0)
    dtype = array.dtype      # keeps the allocator alive
    valid = np.ones(n, bool) if hasattr(dtype, "na_object") else None
    ends = np.zeros(n + 1, np.int64)
    characters = load_strings(array, ends, valid)
    return make("string", n, offsets=asarray(ends.astype(np.int32) if ends[n] <= LARGEST else ends),
                content=asarray(characters), mask=valid)


cdef cnp.ndarray load_strings(cnp.ndarray source, cnp.ndarray offsets, object valid):
    """Return the characters of all strings, and fill in `offsets` (int64) and `valid`.

    NumPy's string allocator is locked meanwhile, so other threads cannot write to the array. The lock is released before
    this function waits for the GIL, because the thread that holds the GIL may wait for the lock.
    """
    cdef Py_ssize_t k, n = cnp.PyArray_DIM(source, 0), step = cnp.PyArray_STRIDE(source, 0), total = 0, capacity = 16 * n
    cdef PyArray_StringDTypeObject* descr = <PyArray_StringDTypeObject*> <PyObject*> cnp.PyArray_DESCR(source)
    cdef const char* data = <const char*> cnp.PyArray_DATA(source)
    cdef int64_t* ends = <int64_t*> cnp.PyArray_DATA(offsets)
    cdef uint8_t* present = NULL if valid is None else <uint8_t*> cnp.PyArray_DATA(<cnp.ndarray> valid)
    cdef char* characters = <char*> malloc(capacity + 1)
    cdef char* larger = characters
    cdef npy_string_allocator* allocator
    cdef npy_static_string text
    cdef int status = 0
    with nogil:
        allocator = NpyString_acquire_allocator(descr)
        for k in range(n):
            status = NpyString_load(allocator, <npy_packed_static_string*> (data + k * step), &text)
            if status == 0 and total + <Py_ssize_t> text.size > capacity and larger != NULL:
                capacity = 2 * capacity + text.size
                larger = <char*> realloc(characters, capacity)
                characters = larger if larger != NULL else characters
            if status < 0 or larger == NULL:
                break
            if status == 0:
                memcpy(characters + total, text.buf, text.size)
                total += text.size
            elif present != NULL:
                present[k] = False
            ends[k + 1] = total
        NpyString_release_allocator(allocator)
    try:
        if status < 0 or larger == NULL:
            raise MemoryError("asnested: NumPy could not load a string, or there is not enough memory to copy it")
        copied = np.empty(total, np.uint8)
        memcpy(cnp.PyArray_DATA(<cnp.ndarray> copied), characters, total)
        return copied
    finally:
        free(characters)


def to_string_dtype(Tree t):
    """Return a copy of strings as an ndarray of ``StringDType``. A missing element becomes None.

    Raises
    ------
    InterfaceError
        A string is not valid UTF-8.
    """
    check_again(t)
    check_utf8(t)
    dtype = np.dtypes.StringDType(na_object=None) if t.validity is not None else np.dtypes.StringDType()
    cdef cnp.ndarray result = np.empty(t.length, dtype)
    cdef char* data = <char*> cnp.PyArray_DATA(result)
    cdef npy_string_allocator* allocator
    cdef Py_ssize_t k
    cdef int status = 0
    cdef Characters characters = characters_of(t)
    cdef Text text
    allocator = NpyString_acquire_allocator(<PyArray_StringDTypeObject*> <PyObject*> cnp.PyArray_DESCR(result))
    with nogil:
        for k in range(t.length):
            if is_missing(t, k):
                status = NpyString_pack_null(allocator, <npy_packed_static_string*> (data + k * VIEW_BYTES))
            else:
                find(&characters, k, &text)
                status = NpyString_pack(allocator, <npy_packed_static_string*> (data + k * VIEW_BYTES),
                                        text.buffer + text.start, text.length)
            if status < 0:
                break
    NpyString_release_allocator(allocator)
    if status < 0:
        raise MemoryError("as_numpy: NumPy could not store a string")
    return result


# -------------------------------------------------------------------------------------------------- characters of a node


# Addresses of the characters of a validated node, for loops without the GIL. The node owns the memory.
cdef struct Characters:
    const char* views           # NULL for strings with offsets
    PyObject** buffers          # of the views: Descriptors, which the node's tuple owns
    Py_ssize_t count            # number of `buffers`
    const char* offsets
    Py_ssize_t size             # size of an offset, in bytes
    const char* content
    Py_ssize_t end              # size of `content`, in bytes

cdef struct Text:
    const char* buffer          # NULL if it does not exist
    Py_ssize_t start, length    # of the characters in `buffer`


cdef Characters characters_of(Tree t) except *:
    cdef Characters characters
    memset(&characters, 0, sizeof(Characters))
    if not has(t, CHARACTERS):
        raise Refusal("NestedArray", "the array does not contain strings",
                      "kinds 'string', 'bytes', 'string_view' and 'bytes_view'")
    if has(t, VIEWS):
        characters.views = (<Descriptor> t.content).data_
        characters.buffers = PySequence_Fast_ITEMS(t.parts)
        characters.count = len(t.parts)
    else:
        characters.offsets = t.offsets.data_
        characters.size = t.offsets.itemsize_
        characters.content = (<Descriptor> t.content).data_
        characters.end = (<Descriptor> t.content).shape_[0]
    return characters


cdef inline bint find(const Characters* characters, Py_ssize_t i, Text* text) noexcept nogil:
    """Find an element that is not missing. Return whether its characters are within their buffer."""
    cdef int32_t view[4]
    cdef Py_ssize_t end
    if characters.views == NULL:
        text.buffer, end = characters.content, characters.end
        text.start = integer_at(characters.offsets, characters.size, i)
        text.length = integer_at(characters.offsets, characters.size, i + 1) - text.start
    else:
        memcpy(view, characters.views + VIEW_BYTES * i, VIEW_BYTES)
        text.length, text.start = view[0], view[3]
        if 0 <= view[0] <= INLINE_VIEW:
            text.buffer, text.start = characters.views, VIEW_BYTES * i + 4
            return True
        if not 0 <= view[2] < characters.count:
            text.buffer = NULL
            return False
        text.buffer = (<Descriptor> characters.buffers[view[2]]).data_
        end = (<Descriptor> characters.buffers[view[2]]).shape_[0]
    return text.start >= 0 and text.length >= 0 and text.start <= end - text.length


cdef int check_utf8(Tree t) except -1:
    """Raise InterfaceError if a string is not valid UTF-8. ASCII strings are recognized without decoding."""
    cdef Characters characters = characters_of(t)
    cdef Text text
    cdef Py_ssize_t k, j
    cdef uint8_t high
    for k in range(t.length):
        if is_missing(t, k):
            continue
        find(&characters, k, &text)
        high = 0
        for j in range(text.length):
            high |= <uint8_t> text.buffer[text.start + j]
        if high & 0x80:
            text_at(t, k)
    return 0


# ---------------------------------------------------------------------------------------------------- views and offsets


def with_offsets(Tree t):
    """Convert string views to strings with offsets. The characters are copied."""
    check_again(t)
    cdef Characters characters = characters_of(t)
    cdef Text text
    cdef Py_ssize_t k, total = 0
    cdef cnp.ndarray ends = np.empty(t.length + 1, np.int64)
    cdef long long* end = <long long*> cnp.PyArray_DATA(ends)
    end[0] = 0
    for k in range(t.length):
        if not is_missing(t, k):
            find(&characters, k, &text)
            total += text.length
        end[k + 1] = total
    cdef cnp.ndarray content = np.empty(total, np.uint8)
    cdef char* target = <char*> cnp.PyArray_DATA(content)
    for k in range(t.length):
        if end[k + 1] > end[k]:
            find(&characters, k, &text)
            memcpy(target + end[k], text.buffer + text.start, text.length)
    kind = "string" if has(t, UTF8) else "bytes"
    return make(kind, t.length, offsets=asarray(ends.astype(np.int32) if total <= LARGEST else ends),
                content=asarray(content), validity=t.validity, bit=t.bit, **field_facts(t))


def with_views(Tree t):
    """Convert strings with offsets to string views that share the characters. Return other nodes unchanged.

    A view has 16 bytes, which contain strings of up to 12 bytes.

    Raises
    ------
    BufferError
        The characters occupy 2 GiB or more, which the int32 offsets of views cannot address.
    """
    check_again(t)
    if not has(t, CHARACTERS) or not has(t, ENDS):
        return t
    cdef Py_ssize_t start = 0, stop = 0
    if t.length:      # the offsets of an empty array may be missing
        start = integer_at(t.offsets.data_, t.offsets.itemsize_, 0)
        stop = integer_at(t.offsets.data_, t.offsets.itemsize_, t.length)
    if stop - start > LARGEST:
        raise Refusal(
            "NestedArray", f"the strings occupy {stop - start} bytes", "less than 2 GiB for string views, such as slices"
        )
    cdef Characters characters = characters_of(t)
    cdef Text text
    cdef Py_ssize_t k
    cdef int32_t view[4]
    cdef cnp.ndarray views = np.zeros((t.length, VIEW_BYTES), np.uint8)
    cdef char* target = <char*> cnp.PyArray_DATA(views)
    for k in range(t.length):
        if is_missing(t, k):
            continue
        find(&characters, k, &text)
        memset(view, 0, VIEW_BYTES)
        view[0] = <int32_t> text.length
        if text.length <= INLINE_VIEW:
            memcpy(<char*> view + 4, text.buffer + text.start, text.length)
        else:
            memcpy(<char*> view + 4, text.buffer + text.start, 4)
            view[3] = <int32_t> (text.start - start)
        memcpy(target + VIEW_BYTES * k, view, VIEW_BYTES)
    kind = "string_view" if has(t, UTF8) else "bytes_view"
    return make(kind, t.length, content=asarray(views), parts=(part(t.content, start, stop),), validity=t.validity,
                bit=t.bit, **field_facts(t))
