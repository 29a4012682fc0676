"""The elements of an array as Python's own values: read by their type, never as bytes or text. Reading copies."""

import operator

from cpython.bool cimport PyBool_FromLong
from cpython.complex cimport PyComplex_FromDoubles
from cpython.float cimport PyFloat_FromDouble
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.long cimport PyLong_FromLong, PyLong_FromLongLong, PyLong_FromUnsignedLong, PyLong_FromUnsignedLongLong
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy

cimport numpy as cnp

from arrayhub._core.descriptor cimport NOTSWAPPED, Descriptor, host_readable, size_of
from arrayhub._core.runtime cimport host_ready, place_of
from arrayhub.libraries cimport numpy as numpy_library

from arrayhub._core.errors import show

cdef union Element:            # of an unaligned address too, which is why it is copied out first
    signed char i1
    unsigned char u1
    short i2
    unsigned short u2
    int i4
    unsigned int u4
    long l
    unsigned long ul
    long long i8
    unsigned long long u8
    float f4
    double f8
    float[2] c8
    double[2] c16


cdef inline bint is_plain(Descriptor a) noexcept nogil:
    """Whether `value_at` reads the elements. NumPy reads the others: halves, long doubles, dates, strings, records, ..."""
    return a.flags_ & NOTSWAPPED and (
        cnp.NPY_BOOL <= a.typenum_ <= cnp.NPY_DOUBLE or a.typenum_ == cnp.NPY_CFLOAT or a.typenum_ == cnp.NPY_CDOUBLE
    )


cdef object value_at(int typenum, Py_ssize_t itemsize, const char* place):
    """The Python number at an address, which need not be aligned."""
    cdef Element x
    memcpy(&x, place, itemsize)
    if typenum == cnp.NPY_DOUBLE:
        return PyFloat_FromDouble(x.f8)
    if typenum == cnp.NPY_LONG:
        return PyLong_FromLong(x.l)
    if typenum == cnp.NPY_FLOAT:
        return PyFloat_FromDouble(x.f4)
    if typenum == cnp.NPY_BOOL:
        return PyBool_FromLong(x.u1)
    if typenum == cnp.NPY_BYTE:
        return PyLong_FromLong(x.i1)
    if typenum == cnp.NPY_UBYTE:
        return PyLong_FromLong(x.u1)
    if typenum == cnp.NPY_SHORT:
        return PyLong_FromLong(x.i2)
    if typenum == cnp.NPY_USHORT:
        return PyLong_FromLong(x.u2)
    if typenum == cnp.NPY_INT:
        return PyLong_FromLong(x.i4)
    if typenum == cnp.NPY_UINT:
        return PyLong_FromUnsignedLong(x.u4)
    if typenum == cnp.NPY_ULONG:
        return PyLong_FromUnsignedLong(x.ul)
    if typenum == cnp.NPY_LONGLONG:
        return PyLong_FromLongLong(x.i8)
    if typenum == cnp.NPY_ULONGLONG:
        return PyLong_FromUnsignedLongLong(x.u8)
    if typenum == cnp.NPY_CFLOAT:
        return PyComplex_FromDoubles(x.c8[0], x.c8[1])
    return PyComplex_FromDoubles(x.c16[0], x.c16[1])


cdef int make_readable(Descriptor a, str call) except -1:
    """Wait until the host may read the elements; TypeError where it never may: nothing is copied from a device silently."""
    if not host_readable(a):
        raise TypeError(
            f"{call}: the memory is on {place_of(a)}, which the host does not read; call arrayhub.to_host(x), which copies"
        )
    host_ready(a)
    return 0


# ------------------------------------------------------------------------------------------------------ one element


cdef object only_element(Descriptor a, str call):
    """The value of an array's one element.

    Raises
    ------
    TypeError
        There is no element or several, the host cannot read the memory, or NumPy has no type for the element.
    """
    if size_of(a) != 1:
        raise TypeError(
            f"{call}: the array has {size_of(a)} elements, and only the element of an array of one is a number; take"
            " arrayhub.as_numpy(x)"
        )
    make_readable(a, call)
    if is_plain(a):
        return value_at(a.typenum_, a.itemsize_, a.data_)
    return numpy_library.emit(a).item()


cdef object as_index(Descriptor a):
    """The element of an array of integers without dimensions.

    With dimensions it would be a sequence of sizes to one caller and a size to another, so there NumPy refuses too.
    """
    if a.nd_ != 0 or not (a.typenum_ != cnp.NPY_BOOL and cnp.PyTypeNum_ISINTEGER(a.typenum_)):
        raise TypeError(
            f"index: only an array of integers without dimensions is an index; this one has {a.nd_}, and typenum"
            f" {a.typenum_}. Take arrayhub.as_numpy(x)"
        )
    return only_element(a, "index")


cdef object formatted(Descriptor a, object spec):
    """What ``format(x, spec)`` is: without a format that of ``str``, else the one element in that format."""
    return str(a) if not spec else format(only_element(a, f"format {spec!r}"), spec)


cdef object item(Descriptor a, tuple where):
    """One element as a Python value, as ``numpy.ndarray.item`` gives it; see ``USMArray.item``."""
    cdef Py_ssize_t flat, step
    cdef const char* place = a.data_
    cdef int k
    make_readable(a, "item")
    if not where:
        if size_of(a) != 1:
            raise ValueError(
                f"item: the array has {size_of(a)} elements; say which, as in x.item(0), or take x.tolist()"
            )
    elif len(where) == 1 and not isinstance(where[0], tuple):
        flat = bounded(operator.index(where[0]), size_of(a), "item: the index")
        for k in range(a.nd_ - 1, -1, -1):
            step = flat % a.shape_[k]
            flat //= a.shape_[k]
            place += step * a.byte_strides_[k] if is_plain(a) else 0
    else:
        where = where[0] if len(where) == 1 else where
        if len(where) != a.nd_:
            raise ValueError(f"item: {len(where)} indices; accepted: none, one into the elements in C order, or {a.nd_}")
        for k in range(a.nd_):
            flat = bounded(operator.index(where[k]), a.shape_[k], f"item: index {k}")
            place += flat * a.byte_strides_[k] if is_plain(a) else 0
    if is_plain(a):
        return value_at(a.typenum_, a.itemsize_, place)
    return numpy_library.emit(a).item(*where)


cdef Py_ssize_t bounded(Py_ssize_t i, Py_ssize_t length, str what) except -1:
    if i < -length or i >= length:
        raise IndexError(f"{what} is {i}; accepted: {-length} to {length - 1}")
    return i + length if i < 0 else i


# ----------------------------------------------------------------------------------------------------- all elements


cdef object tolist(Descriptor a):
    """The elements as nested lists of Python values; without dimensions the value itself."""
    make_readable(a, "tolist")
    return nested(a, 0, a.data_) if is_plain(a) else numpy_library.emit(a).tolist()


cdef object nested(Descriptor a, int dimension, const char* place):
    if dimension == a.nd_:
        return value_at(a.typenum_, a.itemsize_, place)
    cdef Py_ssize_t k, length = a.shape_[dimension], step = a.byte_strides_[dimension]
    cdef bint innermost = dimension + 1 == a.nd_
    cdef list values = PyList_New(length)
    for k in range(length):
        value = value_at(a.typenum_, a.itemsize_, place) if innermost else nested(a, dimension + 1, place)
        Py_INCREF(value)      # PyList_SET_ITEM takes this reference over
        PyList_SET_ITEM(values, k, value)
        place += step
    return values


cdef object tobytes(Descriptor a, object order):
    """The elements, without what lies between them, as bytes in C or Fortran order."""
    if order not in ("C", "F", "A"):
        raise ValueError(f"tobytes: order is {show(order)}; accepted: 'C', 'F' or 'A'")
    make_readable(a, "tobytes")
    return numpy_library.emit_raw(a).tobytes(order)


cdef object iterator(Descriptor a):
    """What iterates over the first dimension: the elements where it is the only one, as NumPy's scalars, else views."""
    if a.nd_ == 0:
        raise TypeError("iteration over an array without dimensions; x.item() is its element")
    if a.nd_ > 1:
        return map(a.__getitem__, range(a.shape_[0]))
    make_readable(a, "iteration")
    return iter(numpy_library.emit(a))
