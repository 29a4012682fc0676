"""The keys that the three interface dicts (host, CUDA, SYCL) share: shape, type, strides, version and data.

This file also handles the key ``mask``, which the SYCL dict does not have. `_DIALECTS` contains the differences between the
three protocols. The file of each protocol handles its other keys.
"""

import numpy

from arrayhub._core cimport layout
from arrayhub._core.descriptor cimport WRITEABLE, Descriptor, new_array, set_dtype, shape_tuple
from arrayhub.adapters.table cimport ARRAY_INTERFACE, CUDA_DICT, PROTOCOL_NUMBERS, SYCL_DICT

from arrayhub._core.errors import TOO_LARGE

cdef struct Dialect:
    bint in_elements          # whether strides count elements, not bytes
    bint has_mask             # whether the protocol has the key `mask`
    bint descr_must_agree     # whether `descr` is validated for every type; if not, it is read only for type V
    bint needs_version        # whether a dict without a version is rejected
    Py_ssize_t oldest, newest  # accepted versions

cdef enum:
    ANY_LATER = 1 << 30       # "be careful not to use this to invalidate objects exposing future versions" (NumPy)

cdef Dialect _DIALECTS[<int> PROTOCOL_NUMBERS]
# in_elements, has_mask, descr_must_agree, needs_version, oldest, newest
_DIALECTS[<int> ARRAY_INTERFACE] = Dialect(False, True, False, False, 1, ANY_LATER)
_DIALECTS[<int> CUDA_DICT] = Dialect(False, True, False, True, 0, ANY_LATER)
_DIALECTS[<int> SYCL_DICT] = Dialect(True, False, True, True, 1, 1)


cdef Descriptor new_from_dict(const Entries* entries, int protocol, object dtype):
    """Create an array with the shape, byte strides and type of an interface dict.

    The caller must then set pointer, owner, device and access, and call `seal`, which validates all fields together.

    Parameters
    ----------
    entries : const Entries*
        The values that `read` stored.
    protocol : int
        ARRAY_INTERFACE, CUDA_DICT or SYCL_DICT. Strides are in elements for SYCL_DICT, otherwise in bytes.
    dtype : numpy.dtype or None
        The element type, if the caller knows it. If it is None, ``typestr`` determines the type, and ``descr`` determines
        the fields of the type V.

    Raises
    ------
    InterfaceError
        A key is missing, or its value is invalid or has the wrong type.
    """
    cdef const Dialect* dialect = &_DIALECTS[protocol]
    check_version(entry(entries, VERSION), protocol, dialect)
    if dialect.has_mask:
        mask = entry(entries, MASK)
        if mask is not None:
            raise dict_error(protocol, "mask", mask, "None, because arrays do not have masks. Fill the masked elements first")
    lengths = entry(entries, SHAPE)
    if not isinstance(lengths, tuple):
        raise dict_error(protocol, "shape", lengths, "a tuple of integers, lengths in elements")
    if len(<tuple> lengths) > layout.MAX_NDIM:
        raise dict_error(protocol, "shape", lengths, f"at most {layout.MAX_NDIM} dimensions, as in NumPy")
    cdef Descriptor a = new_array(<int> len(<tuple> lengths))
    a.protocol_ = protocol
    cdef int k
    for k in range(a.nd_):
        a.shape_[k] = integer((<tuple> lengths)[k], protocol, "shape", k)
    if dtype is None:
        set_typestr(a, entries, protocol)
    else:
        set_dtype(a, dtype)
    if dialect.descr_must_agree:
        check_descr(a, entry(entries, DESCR), protocol)
    set_strides(a, entry(entries, STRIDES), protocol, dialect)
    return a


cdef int set_pointer(Descriptor a, object data) except -1:
    """Read ``data`` as the pair (address, read-only)."""
    if not isinstance(data, tuple) or len(<tuple> data) != 2:
        raise dict_error(a.protocol_, "data", data, "a pair (address as an integer, read-only as a bool)")
    cdef Py_ssize_t address = integer((<tuple> data)[0], a.protocol_, "data[0]", -1)
    if address < 0:
        raise dict_error(a.protocol_, "data[0]", address, "an address from 0 to 2**63 - 1")
    a.data_ = <char*> address
    read_only = (<tuple> data)[1]
    if read_only is False:
        a.flags_ |= WRITEABLE
    elif read_only is not True:
        set_access(a, read_only)
    return 0


cdef int set_access(Descriptor a, object read_only) except -1:
    """Read a read-only flag that is not a Python bool: NumPy's bool, or the integer of a C extension."""
    if not isinstance(read_only, numpy.bool_) and (type(read_only) is not int or read_only not in (0, 1)):
        raise dict_error(a.protocol_, "data[1]", read_only, "True (read-only) or False")
    if not read_only:
        a.flags_ |= WRITEABLE
    return 0


cdef int check_version(object version, int protocol, const Dialect* dialect) except -1:
    cdef Py_ssize_t number
    cdef str accepted
    if version is None and not dialect.needs_version:
        return 0
    if version is not None:
        number = integer(version, protocol, "version", -1)
        if dialect.oldest <= number <= dialect.newest:
            return 0
    accepted = f"{dialect.oldest}" + (" or later" if dialect.newest == ANY_LATER else "")
    raise dict_error(protocol, "version", version, accepted)


cdef int set_strides(Descriptor a, object strides, int protocol, const Dialect* dialect) except -1:
    """Set the byte strides from strides in the protocol's unit. None means C order."""
    cdef Py_ssize_t unit = a.itemsize_ if dialect.in_elements else 1
    cdef bint overflow = False
    cdef int k
    if strides is None:
        if layout.fill_strides(a.nd_, a.shape_, a.itemsize_, False, a.byte_strides_):
            raise dict_error(protocol, "shape", shape_tuple(a), TOO_LARGE)
        return 0
    if not isinstance(strides, tuple) or len(<tuple> strides) != a.nd_:
        raise dict_error(protocol, "strides", strides, f"None, or a tuple of {a.nd_} integers in units of"
                         f" {'elements' if dialect.in_elements else 'bytes'}")
    for k in range(a.nd_):
        overflow |= layout.checked_mul(integer((<tuple> strides)[k], protocol, "strides", k), unit, &a.byte_strides_[k])
    if overflow:
        raise dict_error(protocol, "strides", strides, "strides of less than 2**63 bytes")
    return 0
