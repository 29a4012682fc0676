"""Functions of the capsule's table, one for each C function of arrayhub.h.

- request: arrays that meet the conditions of C code
- spec: arrays over the memory of C code
- python_request: the class `Request`, which represents a request in Python

The short functions are in this file.
"""

from cpython.object cimport PyObject

from arrayhub._core cimport dtypes
from arrayhub._core.cpython.atomics cimport found
from arrayhub._core.descriptor cimport Descriptor, DLDevice, c_api
from arrayhub._core.runtime cimport device_of
from arrayhub._core.runtime cimport host_ready
from arrayhub.convert.functions cimport import_array
from arrayhub.capi.header cimport MOST_STRUCT, PyUSMArrayAPI, PyUSMArrayDataType, PyUSMArrayDevice, PyUSMArrayElement
from arrayhub.runtimes cimport sycl

from arrayhub.convert import functions
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import interface_error, show

include "request.pxi"
include "spec.pxi"
include "python_request.pxi"


cdef object from_object(object obj):
    check_given(<PyObject*> obj, "PyUSMArray_FromObject")
    return import_array(obj, None)


cdef object to_host(object obj):
    check_given(<PyObject*> obj, "PyUSMArray_ToHost")
    return functions.to_host(obj)


cdef Descriptor check_array(object array, str call):
    """Return `array` if it is a USMArray, else raise TypeError."""
    check_given(<PyObject*> array, call)
    if not isinstance(array, Descriptor):
        raise TypeError(f"{call}: {show(array)} is not a USMArray; accepted: a result of PyUSMArray_FromObject")
    return array


cdef int wait_for_host(object array) except -1:
    return host_ready(check_array(array, "PyUSMArray_HostReady"))


cdef int device(object array, PyUSMArrayDevice* out) except -1:
    cdef DLDevice place = device_of(check_array(array, "PyUSMArray_Device"))
    out.device_type = place.device_type
    out.device_id = place.device_id
    return 0


cdef int queue_ref(object array, void** out) except -1:
    cdef Descriptor a = check_array(array, "PyUSMArray_QueueRef")
    if not a.usm_type_:
        raise BufferError("PyUSMArray_QueueRef: the memory is not SYCL USM and does not have a queue; accepted: SYCL USM."
                          " Copy with arrayhub.to_device(x, 'oneapi:0')")
    queue = sycl.queue_of(a)
    # The queue outlives the array: the array, its memory or the table of the devices' queues refers to it.
    out[0] = sycl.queue_ref_of(a)
    if out[0] == NULL:
        out[0] = sycl.ref_of(queue)
    return 0


# -------------------------------------------------------------------------------------------------------- element types


cdef int describe_type(const dtypes.ElementType* row, PyUSMArrayElement* out, object dtype=None) except -1:
    """Fill a caller's PyUSMArrayElement from a row of the table of element types.

    Members that only a newer header defines become zero. For types with a length, a unit or fields, the name and the size
    come from `dtype`, a NumPy dtype.
    """
    cdef PyUSMArrayElement info
    cdef Py_ssize_t size = out.struct_size
    if size < <Py_ssize_t> sizeof(Py_ssize_t) or size > MOST_STRUCT:
        raise size_error("PyUSMArrayElement", size, sizeof(PyUSMArrayElement))
    fill(out, 0, size)
    info.struct_size = size
    info.name = name_of(row)
    info.dtype = (<const PyUSMArrayDataType*> &row.dlpack)[0]
    info.typenum = row.typenum
    info.itemsize = row.itemsize
    info.alignment = row.alignment
    if dtype is not None and row.typestr == NULL and row.kind != c"E":
        info.name = interned_name(dtype.name)
        info.itemsize = dtype.itemsize
        info.alignment = dtype.alignment
    copy_first(out, &info, min(size, <Py_ssize_t> sizeof(info)))
    return 0


cdef extern from "string.h":
    void* fill "memset"(void* to, int byte, size_t nbytes)
    void* copy_first "memcpy"(void* to, const void* source, size_t nbytes)


cdef dict _names = {}           # names of types, keyed by type number
cdef dict _interned_names = {}      # C code has pointers to these bytes objects, so entries are never removed


cdef const char* name_of(const dtypes.ElementType* row) except NULL:
    """Return the name of a type in NumPy, ml_dtypes or arrayhub. The pointer is valid until the process ends."""
    name = found(_names, row.typenum)
    if name is None:
        name = row.name.decode() if row.kind == c"E" or row.itemsize == 0 else dtypes.dtype_of(row).name
        _names[row.typenum] = name
    return interned_name(name)


cdef const char* interned_name(str name) except NULL:
    return _interned_names.get(name) or _interned_names.setdefault(name, name.encode())


cdef int type_of_number(int typenum, PyUSMArrayElement* out) except -1:
    cdef const dtypes.ElementType* row = dtypes.by_typenum(typenum)
    if row == NULL:
        raise interface_error("PyUSMArray_TypeOfNumber", "typenum", typenum, "a type number of NumPy or arrayhub")
    return describe_type(row, out)


cdef int type_of_dlpack(PyUSMArrayDataType dtype, PyUSMArrayElement* out) except -1:
    cdef const dtypes.ElementType* row = dtypes.by_dlpack(dtypes.DLDataType(dtype.code, dtype.bits, dtype.lanes))
    if row == NULL:
        raise interface_error("PyUSMArray_TypeOfDLPack", "dtype", (dtype.code, dtype.bits, dtype.lanes),
                              "DLPack's (code, bits, lanes) of an element type")
    return describe_type(row, out)


cdef int type_of_object(object dtype, PyUSMArrayElement* out) except -1:
    cdef const dtypes.ElementType* row
    check_given(<PyObject*> dtype, "PyUSMArray_TypeOfObject")
    if dtype is None:      # numpy.dtype(None) is float64, which the caller did not request
        raise TypeError("PyUSMArray_TypeOfObject: dtype is None; accepted: a string, a NumPy dtype or type, a torch.dtype")
    name = str(dtype).partition(".")[2] if type(dtype).__module__ == "torch" else dtype
    row = dtypes.by_own_name(str(name)) if isinstance(name, str) else NULL
    if row != NULL:
        return describe_type(row, out)
    try:
        wanted = requested_dtype(name)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"PyUSMArray_TypeOfObject: {show(dtype)} is not an element type; accepted: a string such as 'float32', a NumPy"
            " dtype or type, a torch.dtype"
        ) from error
    row = dtypes.by_dtype(wanted)
    if row == NULL or not dtypes.is_native(wanted):
        raise TypeError(f"PyUSMArray_TypeOfObject: {wanted!r} is not an element type of arrayhub in native byte order")
    return describe_type(row, out, wanted)


# -------------------------------------------------------------------------------------------------------------- export


cdef object convert(object obj, const char* library):
    check_given(<PyObject*> obj, "PyUSMArray_Convert")
    if library == NULL:
        raise ValueError(f"PyUSMArray_Convert: library is NULL; accepted: {', '.join(functions.CONSUMERS)}")
    return functions.convert(obj, library.decode("utf-8", "replace"))


cdef object like(object obj, object model, int may_copy):
    check_given(<PyObject*> obj, "PyUSMArray_Like")
    check_given(<PyObject*> model, "PyUSMArray_Like")
    from arrayhub.convert.target import convert_like

    return convert_like(obj, model, "PyUSMArray_Like", None if may_copy else False)


cdef PyUSMArrayAPI* _table = <PyUSMArrayAPI*> c_api()
_table.from_object = from_object
_table.request = request
_table.match = match
_table.explain = explain
_table.make = make
_table.to_host = to_host
_table.host_ready = wait_for_host
_table.device = device
_table.queue_ref = queue_ref
_table.type_of_number = type_of_number
_table.type_of_dlpack = type_of_dlpack
_table.type_of_object = type_of_object
_table.convert = convert
_table.like = like
