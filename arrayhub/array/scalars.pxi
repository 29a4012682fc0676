"""Conversion of elements to Python values: item, tolist, iteration, tobytes, int() and others."""

import operator

cimport cython
from cpython.list cimport PyList_New
from cpython.object cimport PyObject
from libc.string cimport memset

cimport numpy as cnp

from arrayhub._core.descriptor cimport (
    NOTSWAPPED,
    Descriptor,
    digit,
    host_readable,
    is_digit,
    name_of_elements,
    refuse_packed,
    row,
    size_of,
)
from arrayhub._core.layout cimport MAX_NDIM
from arrayhub._core.runtime cimport host_ready, device_name
from arrayhub.libraries cimport numpy as numpy_library

from arrayhub._core.errors import show, unreadable

# One row per element type: NumPy's type number, the C type, and the conversion to a Python object. Each row defines a function
# that reads a run of elements, which may be unaligned, into the slots of a list. NumPy reads the elements of all other types.
cdef extern from *:
    """
    #include <string.h>
    typedef int (*arrayhub_reader)(PyObject **values, Py_ssize_t count, const char *pointer, Py_ssize_t step);
    #define ARRAYHUB_READERS(ROW)                                                                                      \
        ROW(NPY_BOOL, npy_bool, PyBool_FromLong(x))                                                                    \
        ROW(NPY_BYTE, npy_byte, PyLong_FromLong(x))                                                                    \
        ROW(NPY_UBYTE, npy_ubyte, PyLong_FromLong(x))                                                                  \
        ROW(NPY_SHORT, npy_short, PyLong_FromLong(x))                                                                  \
        ROW(NPY_USHORT, npy_ushort, PyLong_FromLong(x))                                                                \
        ROW(NPY_INT, npy_int, PyLong_FromLong(x))                                                                      \
        ROW(NPY_UINT, npy_uint, PyLong_FromUnsignedLong(x))                                                            \
        ROW(NPY_LONG, npy_long, PyLong_FromLong(x))                                                                    \
        ROW(NPY_ULONG, npy_ulong, PyLong_FromUnsignedLong(x))                                                          \
        ROW(NPY_LONGLONG, npy_longlong, PyLong_FromLongLong(x))                                                        \
        ROW(NPY_ULONGLONG, npy_ulonglong, PyLong_FromUnsignedLongLong(x))                                              \
        ROW(NPY_HALF, npy_half, PyFloat_FromDouble(arrayhub_half(x)))                                                  \
        ROW(NPY_FLOAT, npy_float, PyFloat_FromDouble(x))                                                               \
        ROW(NPY_DOUBLE, npy_double, PyFloat_FromDouble(x))                                                             \
        ROW(NPY_CFLOAT, arrayhub_cfloat, PyComplex_FromDoubles(x.real, x.imag))                                        \
        ROW(NPY_CDOUBLE, arrayhub_cdouble, PyComplex_FromDoubles(x.real, x.imag))
    typedef struct { float real, imag; } arrayhub_cfloat;
    typedef struct { double real, imag; } arrayhub_cdouble;
    /* Shift the bits of a half into a float, then correct the exponent bias. */
    static inline float arrayhub_half(npy_half half) {
        npy_uint32 bits = (npy_uint32)(half & 0x7fff) << 13;
        float value;
        memcpy(&value, &bits, sizeof value);
        value *= 0x1p112f;
        if ((half & 0x7c00) == 0x7c00) {        /* infinity or NaN */
            bits |= 0x7f800000;
            memcpy(&value, &bits, sizeof value);
        }
        return half & 0x8000 ? -value : value;
    }
    #define ARRAYHUB_READER(NUMBER, TYPE, VALUE)                                                                       \
        static int arrayhub_read_##NUMBER(PyObject **values, Py_ssize_t count, const char *pointer, Py_ssize_t step) { \
            for (Py_ssize_t k = 0; k < count; k++, pointer += step) {                                                  \
                TYPE x;                                                                                                \
                memcpy(&x, pointer, sizeof x);                                                                         \
                if ((values[k] = VALUE) == NULL) return -1;                                                            \
            }                                                                                                          \
            return 0;                                                                                                  \
        }
    ARRAYHUB_READERS(ARRAYHUB_READER)
    #define ARRAYHUB_ENTRY(NUMBER, TYPE, VALUE) [NUMBER] = arrayhub_read_##NUMBER,
    static const arrayhub_reader arrayhub_readers[] = { ARRAYHUB_READERS(ARRAYHUB_ENTRY) };
    #define ARRAYHUB_LAST_READER ((int)(sizeof arrayhub_readers / sizeof *arrayhub_readers) - 1)
    #define arrayhub_items(list) (((PyListObject *)(list))->ob_item)
    """
    ctypedef int (*Reader "arrayhub_reader")(PyObject** values, Py_ssize_t count, const char* data, Py_ssize_t step) except -1
    const Reader* READERS "arrayhub_readers"
    int LAST_READER "ARRAYHUB_LAST_READER"
    PyObject** items_of "arrayhub_items"(list values) noexcept


cdef inline Reader reader_of(Descriptor a) noexcept nogil:
    """Return the reader of the element type, or NULL if NumPy must read the elements (long doubles, dates, strings, ...)."""
    return READERS[a.typenum_] if a.flags_ & NOTSWAPPED and 0 <= a.typenum_ <= LAST_READER else NULL


cdef inline object value_at(Descriptor a, const char* pointer):
    """Return the Python value of the element of `a` at an address."""
    cdef Reader read = reader_of(a)
    cdef PyObject* value
    if read == NULL:
        return cnp.PyArray_GETITEM(<cnp.ndarray> numpy_library.emit(a), <void*> pointer)
    read(&value, 1, pointer, 0)
    return owned(value)


cdef extern from *:
    """
    #define arrayhub_same(value) (value)
    """
    object owned "arrayhub_same"(PyObject* value)                 # steals the reference
    PyObject* given_away "Py_NewRef"(object value) noexcept


cdef int make_readable(Descriptor a, str call) except -1:
    """Wait until the host can read the elements. Raise TypeError for device memory, which is not copied implicitly."""
    if not host_readable(a):
        raise TypeError(unreadable(call, device_name(a)))
    host_ready(a)
    return 0


# ------------------------------------------------------------------------------------------------------ one element


cdef object only_element(Descriptor a, str call):
    """Return the value of the only element of an array.

    Raises
    ------
    TypeError
        The array does not have exactly one element, the host cannot read the memory, or neither NumPy nor ml_dtypes has the
        element type.
    BufferError
        The element is packed.
    """
    if size_of(a) != 1:
        raise TypeError(
            f"{call}: the array has {size_of(a)} elements; accepted: exactly one. Use"
            " arrayhub.as_numpy(x)"
        )
    make_readable(a, call)
    return value_at(a, a.data_)


cdef object as_index(Descriptor a):
    """Return the element of an integer array without dimensions.

    Like NumPy, reject an array with dimensions, which a caller could also interpret as a sequence of sizes.
    """
    if a.nd_ != 0 or not (a.typenum_ != cnp.NPY_BOOL and cnp.PyTypeNum_ISINTEGER(a.typenum_)):
        plural = "" if a.nd_ == 1 else "s"
        raise TypeError(
            f"index: the array has {a.nd_} dimension{plural} and elements of {name_of_elements(a)}; accepted: arrays of"
            " integers without dimensions. Use arrayhub.as_numpy(x)"
        )
    return only_element(a, "index")


cdef object format_element(Descriptor a, object spec):
    """Return ``str(x)`` if `spec` is empty, otherwise the formatted value of the only element."""
    return str(a) if not spec else format(only_element(a, f"format {spec!r}"), spec)


cdef object NOT_GIVEN = object()


cdef object item(Descriptor a, object first, object second, tuple more):
    """Return one element as a Python value, like ``numpy.ndarray.item``.

    The first two arguments are separate parameters, because Cython would have to create a tuple for ``*args``.
    """
    cdef Py_ssize_t index[MAX_NDIM]
    cdef const char* pointer = a.data_
    cdef int k
    make_readable(a, "item")
    refuse_packed(a, "item")
    if first is NOT_GIVEN:
        choose_only(a, index)
    elif second is NOT_GIVEN:
        if isinstance(first, tuple):
            choose_by_index(a, <tuple> first, index)
        else:
            choose_by_number(a, first, index)
    elif a.nd_ == 2 and not more:
        index[0] = bound_index(first, a.shape_[0], 0)
        index[1] = bound_index(second, a.shape_[1], 1)
    else:
        choose_by_index(a, (first, second, *more), index)
    for k in range(a.nd_):
        pointer += index[k] * a.byte_strides_[k]
    return value_at(a, pointer)


cdef int choose_only(Descriptor a, Py_ssize_t* index) except -1:
    if size_of(a) != 1:
        raise ValueError(
            f"item: the array has {size_of(a)} elements; pass an index, as in x.item(0), or use x.tolist()"
        )
    memset(index, 0, a.nd_ * sizeof(Py_ssize_t))
    return 0


cdef int choose_by_number(Descriptor a, object number, Py_ssize_t* index) except -1:
    """Compute the index in each dimension from a position in C order."""
    cdef Py_ssize_t left = bound_index(number, size_of(a), -1)
    cdef int k
    for k in range(a.nd_ - 1, 0, -1):
        index[k] = left % a.shape_[k]
        left //= a.shape_[k]
    if a.nd_ > 0:
        index[0] = left
    return 0


cdef int choose_by_index(Descriptor a, tuple where, Py_ssize_t* index) except -1:
    cdef int k
    cdef Py_ssize_t given = len(where)
    if given != a.nd_:
        raise ValueError(f"item: {given} indices; accepted: none, one (a position in C order), or {a.nd_}")
    for k in range(a.nd_):
        index[k] = bound_index(where[k], a.shape_[k], k)
    return 0


cdef Py_ssize_t bound_index(object index, Py_ssize_t length, int dimension) except -1:
    """Check an index, and convert it to a nonnegative index. Negative indices count from the end."""
    cdef Py_ssize_t i = digit(index) if is_digit(index) else of_any_size(index, length, dimension)
    if i < -length or i >= length:
        raise beyond_error(i, length, dimension)
    return i + length if i < 0 else i


cdef Py_ssize_t of_any_size(object index, Py_ssize_t length, int dimension) except? -1:
    """Convert an index to Py_ssize_t by ``__index__``. `bound_index` itself converts ints with one internal digit."""
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(
            f"{name_index(dimension)} is {show(index)} of type {type(index).__name__}; accepted: integers"
        ) from None
    except OverflowError:
        raise beyond_error(index, length, dimension) from None


cdef object beyond_error(object index, Py_ssize_t length, int dimension):
    return IndexError(f"{name_index(dimension)} is {show(index)}; accepted: {-length} to {length - 1}")


cdef str name_index(int dimension):
    """Return the subject of an error about ``item``. `dimension` is -1 for a position in C order."""
    return "item: the index" if dimension < 0 else f"item: index {dimension}"


# ----------------------------------------------------------------------------------------------------- all elements


cdef object tolist(Descriptor a):
    """Return the elements as nested lists of Python values, or the value of an array without dimensions."""
    cdef Reader read = reader_of(a)
    make_readable(a, "tolist")
    if read == NULL:
        return numpy_library.emit(a).tolist()
    return list_rows(a, read, 0, a.data_) if a.nd_ > 0 else value_at(a, a.data_)


cdef list list_rows(Descriptor a, Reader read, int dimension, const char* pointer):
    cdef Py_ssize_t k, length = a.shape_[dimension], step = a.byte_strides_[dimension]
    cdef list values = PyList_New(length)
    cdef PyObject** items = items_of(values)
    if dimension + 1 == a.nd_:
        read(items, length, pointer, step)
        return values
    for k in range(length):
        items[k] = given_away(list_rows(a, read, dimension + 1, pointer))
        pointer += step
    return values


cdef object tobytes(Descriptor a, object order):
    """Return the elements without gaps, in C or Fortran order, as bytes."""
    if order not in ("C", "F", "A"):
        raise ValueError(f"tobytes: order is {show(order)}; accepted: 'C', 'F' or 'A'")
    make_readable(a, "tobytes")
    return numpy_library.emit_raw(a).tobytes(order)


cdef object iterator(Descriptor a):
    """Return an iterator over the first dimension. The items are NumPy scalars for a 1-d array, and views otherwise."""
    if a.nd_ == 0:
        raise TypeError("iteration over an array without dimensions; use x.item() for its element")
    if a.nd_ > 1:
        return Rows(a)
    make_readable(a, "iteration")
    return iter(numpy_library.emit(a))


@cython.final
@cython.internal
cdef class Rows:
    """Iterator over the first dimension of an array of several dimensions. The items are views."""
    cdef Descriptor array
    cdef Py_ssize_t next_index

    def __cinit__(self, Descriptor array):
        self.array = array

    def __iter__(self):
        return self

    def __next__(self):
        if self.next_index >= self.array.shape_[0]:
            raise StopIteration
        self.next_index += 1
        return row(self.array, self.next_index - 1)

    def __length_hint__(self):
        return self.array.shape_[0] - self.next_index
