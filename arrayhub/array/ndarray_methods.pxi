"""Methods of `numpy.ndarray` that do not require arithmetic: astype, view, ravel, flatten, reshape."""

import numpy as np

from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    NOTSWAPPED,
    PACKED,
    Descriptor,
    get_dtype,
    labels_of,
    refuse_packed,
    reshape,
    same_layout,
    seal,
    set_dtype,
    set_labels,
    transpose,
    view_of,
)
from arrayhub.adapters cimport interface_dict
from arrayhub.libraries cimport numpy as numpy_library

from arrayhub import transfer
from arrayhub._core.copying import check_copy
from arrayhub._core.dtypes import requested_dtype, satisfies
from arrayhub._core.errors import PACKED_ELEMENTS, show


cdef object view_as(Descriptor a, object dtype):
    """Return a view of the bytes of `a` as elements of a different type.

    NumPy computes shape and strides from an ndarray of the same layout. NumPy does not access the memory, which may be on a
    device.
    """
    if dtype is None:
        return same_layout(a)
    if isinstance(dtype, type) and issubclass(dtype, np.ndarray):
        raise TypeError(f"view: {show(dtype)} is a class of arrays; call arrayhub.as_numpy(x).view({dtype.__name__})")
    refuse_packed(a, "view")
    shown = numpy_library.array_over(a, stored_dtype(a), a.nd_, a.shape_, a.byte_strides_).view(requested_dtype(dtype))
    cdef Descriptor view = view_of(a, shown.ndim)     # more dimensions than `a` if the dtype has a shape
    cdef int k
    for k in range(view.nd_):
        view.shape_[k] = shown.shape[k]
        view.byte_strides_[k] = shown.strides[k]
    view.flags_ &= ~NOTSWAPPED
    view.dtype_ = None
    set_dtype(view, shown.dtype)
    seal(view)
    if a.labels != NULL and a.itemsize_ == view.itemsize_ and a.nd_ == view.nd_:
        set_labels(view, labels_of(a))
    return view


cdef object stored_dtype(Descriptor a):
    """Return the dtype of `a`, or a void dtype of the same size if neither NumPy nor ml_dtypes has the type."""
    try:
        return get_dtype(a)
    except TypeError:
        pass
    return np.dtype((np.void, a.itemsize_))


cdef bint in_fortran_order(Descriptor a, object order, str call) except -1:
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"{call}: order is {show(order)}; accepted: 'C', 'F', 'A' or 'K'")
    return order == "F" or order != "C" and a.flags_ & F_CONTIGUOUS and not a.flags_ & C_CONTIGUOUS


cdef object reshape_in(Descriptor a, tuple shape, object order):
    if type(order) is str and order == "C":      # the usual case
        return reshape(a, shape)
    if order not in ("C", "F", "A"):      # NumPy's reshape does not accept "K", either
        raise ValueError(f"reshape: order is {show(order)}; accepted: 'C', 'F' or 'A'")
    if not in_fortran_order(a, order, "reshape"):
        return reshape(a, shape)
    refuse_packed(a, "reshape")
    try:
        return transpose(reshape(transpose(a, None), shape[::-1]), None)
    except BufferError:
        raise BufferError(
            f"reshape: strides cannot represent the shape {shape} in Fortran order; call copy(order='F') first"
        ) from None


cdef object ravel(Descriptor a, object order):
    refuse_packed(a, "ravel")
    cdef Descriptor ordered = transpose(a, None) if in_fortran_order(a, order, "ravel") else a
    try:
        return reshape(ordered, (-1,) if ordered.size else (0,))
    except BufferError:
        raise BufferError(
            f"ravel: shape {(<object> a).shape} with byte strides {(<object> a).byte_strides} cannot be viewed as one"
            " dimension; call flatten(), which copies"
        ) from None


cdef object flatten(Descriptor a, object order):
    refuse_packed(a, "flatten")
    cdef Descriptor ordered = transpose(a, None) if in_fortran_order(a, order, "flatten") else a
    return reshape(transfer.copy(ordered), (ordered.size,))


cdef object astype(Descriptor a, object dtype, object order, object casting, object copy):
    cdef bint fortran = in_fortran_order(a, order, "astype")
    copy = check_copy(copy, "astype")
    dtype = requested_dtype(dtype)
    if not np.can_cast(get_dtype(a), dtype, casting):
        raise TypeError(
            f"astype: casting={casting!r} forbids converting {get_dtype(a)!r} to {dtype!r}; accepted: conversions that"
            " numpy.can_cast allows"
        )
    if satisfies(get_dtype(a), dtype):
        return transfer.copy(a, order="F" if fortran else "C") if copy else a
    if a.flags_ & PACKED:
        raise BufferError(f"astype: {PACKED_ELEMENTS}")
    return transpose(transfer.astype(transpose(a, None), dtype), None) if fortran else transfer.astype(a, dtype)


cdef object ctypes_of(Descriptor a):
    interface_dict.check_host(a, "ctypes")
    return numpy_library.emit(a).ctypes
