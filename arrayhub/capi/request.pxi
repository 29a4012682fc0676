"""Requests, in Python of the class `Request`: check the conditions on an array, and meet them by copies that they allow."""

cimport cython
from cpython.exc cimport PyErr_Occurred
from libc.string cimport memcmp

from arrayhub._core.descriptor cimport (
    ALIGNED,
    C_CONTIGUOUS,
    COPIED,
    F_CONTIGUOUS,
    NOTSWAPPED,
    PACKED,
    WRITEABLE,
    Descriptor,
    get_dtype,
    host_readable,
    kDLCPU,
    name_of_elements,
    shape_tuple,
    stride_tuple,
)
from arrayhub._core.cpython.exceptions cimport raise_on, take
from arrayhub._core.runtime cimport host_ready, device_name
from arrayhub.convert.functions cimport import_array, import_copied
from arrayhub.libraries cimport numpy as numpy_library

import numpy

from arrayhub import transfer
from arrayhub._core.hooks import hooks
from arrayhub._core.descriptor import Device
from arrayhub._core.errors import (
    PASSES_ON, RangeRefusal, Refusal, TypeRefusal, ValueRefusal, dimensions, name_argument, name_of_type, show,
)

cdef enum:
    FLAGS = <int> WRITEABLE | <int> C_CONTIGUOUS | <int> F_CONTIGUOUS | <int> USM_ARRAY_WHOLE_STRIDES
    MAYS = <int> USM_ARRAY_MAY_CAST | <int> USM_ARRAY_MAY_RELAYOUT | <int> USM_ARRAY_MAY_TRANSFER | <int> USM_ARRAY_MAY_BUILD

# Unmet conditions, in the order in which they are checked and reported.
cdef enum Misfit:
    FITS
    BYTE_ORDER
    TYPE
    SHARED_BYTES
    RANK
    LENGTH
    READ_ONLY
    MEMORY
    MISALIGNED
    STRIDES
    LAYOUT

ctypedef Descriptor (*Requester)(object obj, const PyUSMArrayRequest* r)


cdef extern from *:
    """
    #define arrayhub_attempt_request(function, obj, r) ((PyObject *)function(obj, r))
    """
    PyObject* attempt "arrayhub_attempt_request"(Requester function, object obj, const PyUSMArrayRequest* r) noexcept


cdef int check_given(PyObject* obj, str call) except -1:
    """Raise an error if an object is NULL: the exception of the call that returned NULL, or else a SystemError."""
    if obj != NULL:
        return 0
    if PyErr_Occurred() != NULL:
        return raise_on()
    raise SystemError(f"{call}: the object is NULL; accepted: a Python object. Check the call that returned it")


# -------------------------------------------------------------------------------------------------- public functions


cdef object request(object obj, const PyUSMArrayRequest* raw):
    """Import `obj` as an array that meets a request (PyUSMArray_Request). Errors start with the name of the request."""
    check_given(<PyObject*> obj, "PyUSMArray_Request")
    cdef PyUSMArrayRequest storage
    cdef const PyUSMArrayRequest* r = checked_request(raw, &storage)
    cdef PyObject* answer = attempt(meet_request, obj, r)
    return take(answer) if answer != NULL or r.name == NULL else raise_named(r)


cdef Descriptor import_on_stream(object obj, const PyUSMArrayRequest* r):
    return import_array(obj, None if r.stream == NULL else <object> r.stream)


cdef Descriptor import_for(object obj, const PyUSMArrayRequest* r):
    """Import `obj` on the stream of a request, whatever its conditions are."""
    cdef PyObject* imported = attempt(import_on_stream, obj, r)
    return take(imported) if imported != NULL else raise_import(obj)


cdef Descriptor meet_request(object obj, const PyUSMArrayRequest* r):
    cdef Descriptor a = import_for(obj, r)
    if a.flags_ & COPIED:
        check_copy(a, obj, r)
    cdef Misfit wrong = misfit(a, r)
    if wrong != FITS:
        a = copy_to_fit(a, obj, r, wrong)
    # If the request accepts the memory as USM or CUDA memory, too, C code waits for the producer's work itself.
    if a.device_.device_type != kDLCPU and memory_kinds_of(a) & where_of(r) == <int> USM_ARRAY_ON_HOST:
        host_ready(a)
    return a


cdef int match(object array, const PyUSMArrayRequest* raw) noexcept:
    """Return whether an array meets a request without a copy (PyUSMArray_Match)."""
    cdef PyUSMArrayRequest storage
    cdef const PyUSMArrayRequest* r = known_request(raw, &storage)
    return r != NULL and <PyObject*> array != NULL and isinstance(array, Descriptor) and misfit(<Descriptor> array, r) == FITS


cdef object explain(object obj, const PyUSMArrayRequest* raw):
    """Return the error message of `request` for `obj`, or "" if it succeeds (PyUSMArray_Explain).

    The function executes the request, because only the execution shows whether a required copy succeeds.
    """
    check_given(<PyObject*> obj, "PyUSMArray_Explain")
    cdef PyUSMArrayRequest storage
    cdef Request wrapped = Request()
    wrapped.r = checked_request(raw, &storage)[0]
    return wrapped.explain(obj)


# ------------------------------------------------------------------------------------------------- the request itself


cdef inline const PyUSMArrayRequest* checked_request(const PyUSMArrayRequest* raw, PyUSMArrayRequest* storage) except NULL:
    """Return a valid request as a struct of the size that this version of arrayhub defines. Raise ValueError for others."""
    cdef const PyUSMArrayRequest* r = known_request(raw, storage)
    if r == NULL:
        raise request_error(raw, storage)
    return r


cdef inline const PyUSMArrayRequest* known_request(const PyUSMArrayRequest* raw, PyUSMArrayRequest* storage) noexcept nogil:
    """Return a request as in `checked_request`, or NULL if it is invalid."""
    if raw != NULL and raw.struct_size != sizeof(PyUSMArrayRequest):
        raw = storage if resized(raw, raw.struct_size, storage, sizeof(PyUSMArrayRequest)) else NULL
    return raw if raw != NULL and is_sound(raw) else NULL


cdef object request_error(const PyUSMArrayRequest* raw, PyUSMArrayRequest* storage):
    """Return the error for a request that `known_request` rejects."""
    if raw == NULL:
        return ValueError("PyUSMArray_Request: request is NULL; accepted: a PyUSMArrayRequest")
    if not resized(raw, raw.struct_size, storage, sizeof(PyUSMArrayRequest)):
        return size_error("PyUSMArrayRequest", raw.struct_size, sizeof(PyUSMArrayRequest))
    cdef const PyUSMArrayRequest* r = storage
    lengths = None if r.shape == NULL else [r.shape[k] for k in range(min(r.max_nd, <int> layout.MAX_NDIM))]
    return add_name(r, ValueError(
        f"PyUSMArrayRequest: ndtypes is {r.ndtypes}, dtypes {'NULL' if r.dtypes == NULL else 'given'},"
        f" min_nd {r.min_nd}, max_nd {r.max_nd}, shape {lengths}, flags {r.flags:#x}, where {r.where:#x}, may {r.may:#x};"
        " accepted: ndtypes entries in dtypes, 0 <= min_nd <= max_nd <= 64, max_nd lengths of -1 or more in shape, and the"
        " flags that arrayhub.h lists for a request, which are WRITEABLE, two orders and WHOLE_STRIDES"
    ))


def size_error(str struct, Py_ssize_t size, Py_ssize_t known):
    """Return the error for a struct with an invalid size, or with nonzero members that this version does not define."""
    return ValueError(
        f"{struct}: struct_size is {size}; accepted: {struct}_HEAD, which is {known} here, or the larger size of a newer header"
        " if the new members are zero. Set it with the macro, or upgrade arrayhub"
    )


cdef inline bint is_sound(const PyUSMArrayRequest* r) noexcept nogil:
    cdef int k
    if (r.ndtypes | r.min_nd | r.may | r.where | r.flags) < 0:
        return False
    if r.flags & ~FLAGS or r.where & ~<int> USM_ARRAY_ANYWHERE or r.may & ~MAYS:
        return False
    if r.ndtypes > 0 and r.dtypes == NULL or r.max_nd > 0 and r.min_nd > r.max_nd or r.max_nd > layout.MAX_NDIM:
        return False
    if r.min_nd > layout.MAX_NDIM or r.shape != NULL and (r.max_nd < 0 or r.min_nd > r.max_nd):
        return False
    for k in range(r.max_nd if r.shape != NULL else 0):
        if r.shape[k] < -1:
            return False
    return True


# -------------------------------------------------------------------------------------------------------- conditions


cdef inline bint accepts_type(Descriptor a, const PyUSMArrayRequest* r) noexcept nogil:
    """Return whether the element type is accepted, in either byte order."""
    cdef const dtypes.ElementType* row
    cdef const void* has = &a.dl_dtype_
    cdef int k
    if not a.flags_ & NOTSWAPPED:
        row = dtypes.by_typenum(a.typenum_)
        if row == NULL:
            return False
        has = &row.dlpack
    for k in range(r.ndtypes):
        if memcmp(&r.dtypes[k], has, sizeof(PyUSMArrayDataType)) == 0:
            return True
    return False


cdef inline int memory_kinds_of(Descriptor a) noexcept nogil:
    """Return the USM_ARRAY_ON_* bits of an array's memory."""
    cdef int kinds = <int> USM_ARRAY_ANYWHERE & ~7
    if host_readable(a):
        kinds |= <int> USM_ARRAY_ON_HOST
    if a.usm_type_:
        kinds |= <int> USM_ARRAY_ON_USM
    if cuda.is_cuda(a.device_.device_type):
        kinds |= <int> USM_ARRAY_ON_CUDA
    return kinds


cdef inline int where_of(const PyUSMArrayRequest* r) noexcept nogil:
    return r.where if r.where != 0 else <int> USM_ARRAY_ON_HOST


cdef inline Misfit shape_misfit(Descriptor a, const PyUSMArrayRequest* r) noexcept nogil:
    """Return RANK or LENGTH if the request does not accept the shape, else FITS."""
    cdef int k
    if a.nd_ < r.min_nd or r.max_nd > 0 and a.nd_ > r.max_nd or r.shape != NULL and a.nd_ != r.max_nd:
        return RANK
    if r.shape != NULL:
        for k in range(a.nd_):
            if r.shape[k] != -1 and r.shape[k] != a.shape_[k]:
                return LENGTH
    return FITS


cdef inline Misfit misfit(Descriptor a, const PyUSMArrayRequest* r) noexcept nogil:
    """Return the first condition that an array does not meet."""
    cdef int flags = a.flags_
    cdef Misfit shape = shape_misfit(a, r)
    if not flags & NOTSWAPPED and not r.as_is:
        return BYTE_ORDER
    if r.ndtypes and not accepts_type(a, r):
        return TYPE
    if flags & PACKED and not r.as_is:
        return SHARED_BYTES
    if shape != FITS:
        return shape
    if r.flags & WRITEABLE and not flags & WRITEABLE:
        return READ_ONLY
    if a.device_.device_type != kDLCPU or not where_of(r) & <int> USM_ARRAY_ON_HOST:
        if not memory_kinds_of(a) & where_of(r):
            return MEMORY
    if not flags & ALIGNED and not r.as_is:
        return MISALIGNED
    if r.flags & <int> USM_ARRAY_WHOLE_STRIDES and a.strides_ == NULL and a.nd_ > 0:
        return STRIDES
    if r.flags & (C_CONTIGUOUS | F_CONTIGUOUS) & ~flags:
        return LAYOUT
    return FITS


# ----------------------------------------------------------------------------------------------------- allowed copies


cdef int check_copy(Descriptor a, object obj, const PyUSMArrayRequest* r) except -1:
    """Reject a copy of `obj` if C code writes to the array, or if `obj` is a number or a list, unless the request allows it."""
    if not import_copied(a, obj):
        return 0
    if r.flags & WRITEABLE:
        reason = "can only be imported as a copy, so writes would be lost"
        example = ", such as x = numpy.asarray(x)" if misfit(a, r) == FITS else ""      # another call does not meet the request
        raise refuse(TypeRefusal, obj, reason, f"an array whose memory can be viewed{example}")
    if numpy_library.is_value(obj) and not r.may & <int> USM_ARRAY_MAY_BUILD:
        raise refuse(TypeRefusal, obj, "is not an array", "an array", call_to_fit(a, r))
    return 0


cdef Descriptor copy_to_fit(Descriptor a, object obj, const PyUSMArrayRequest* r, Misfit wrong):
    """Make `a` meet a request with the copies that the request allows. `wrong` is the first misfit."""
    # Bits of the resolved misfits. The bit of FITS is set if `a` was built here: the request determines the layout of copies.
    cdef int resolved = 1 << <int> FITS if is_built(a, obj, r) else 0
    cdef Descriptor given = a, made
    for wanted in accepted_dtypes(r)[:1] if wrong == TYPE else ():
        functions.refuse_bytes(obj, wanted)
    while wrong != FITS:
        made = None if r.flags & WRITEABLE or resolved >> <int> wrong & 1 else resolve_misfit(a, obj, r, wrong, resolved)
        if made is None:
            raise error_of(given, obj, r, wrong)
        resolved |= 1 << <int> wrong
        a, wrong = made, misfit(made, r)
    return a


cdef object target_type(Descriptor a, object obj, const PyUSMArrayRequest* r):
    """Return the NumPy dtype to which the elements are converted, or None if they cannot be converted.

    The result is the first accepted dtype to which NumPy casts the source type safely, or else the first of the same or a
    higher kind (`keeps_kind`). For numbers and lists, only the accepted dtypes that represent all values are considered. Raise
    OverflowError if a number is outside the range of every accepted type of its kind.
    """
    targets = cast_targets(a, r)
    if not is_built(a, obj, r):
        return targets[0] if targets and r.may & <int> USM_ARRAY_MAY_CAST and not a.flags_ & PACKED else None
    from arrayhub.array.casting import exact, is_of_kind, out_of_range

    numbers = exact(numpy_library.with_ndarrays(obj))
    alike = [wanted for wanted in accepted_dtypes(r) if not numbers.size or is_of_kind(numbers, wanted)]
    fitting = [wanted for wanted in alike if out_of_range(numbers, wanted) is None]
    if alike and not fitting:
        number = out_of_range(numbers, alike[0])
        number = number if type(number) is int else number.item()
        reason = f"holds {show(number)}, out of the range of {alike[0].name}"
        raise refuse(RangeRefusal, obj, reason, f"numbers in the range of {accepted_types(r)}")
    return next(iter([wanted for wanted in targets if wanted in fitting] + fitting), None)


cdef bint is_built(Descriptor a, object obj, const PyUSMArrayRequest* r) except -1:
    """Return whether the array was built here from Python numbers, which do not have an element type."""
    return bool(r.may & <int> USM_ARRAY_MAY_BUILD and numpy_library.is_value(obj) and import_copied(a, obj))


cdef list cast_targets(Descriptor a, const PyUSMArrayRequest* r):
    """Return the accepted dtypes of the same or a higher kind than that of the elements (`keeps_kind`), safe casts first."""
    from arrayhub.array.casting import keeps_kind

    try:
        dtype = get_dtype(a)
        found = [wanted for wanted in accepted_dtypes(r) if keeps_kind(dtype, wanted)]
        found.sort(key=lambda wanted: wanted.kind == "b")      # last, because booleans hold only the integers 0 and 1
        found = [wanted for wanted in found if numpy.can_cast(dtype, wanted, "safe")] + found
    except TypeError:      # a type that NumPy does not have
        found = []
    return found


cdef const dtypes.ElementType* row_of(const PyUSMArrayDataType* dtype) noexcept:
    """Return the row of a DLPack data type, or NULL if it is unknown."""
    return dtypes.by_dlpack(dtypes.DLDataType(dtype.code, dtype.bits, dtype.lanes))


cdef list accepted_dtypes(const PyUSMArrayRequest* r):
    """Return the NumPy dtypes of the accepted types. Types that neither NumPy nor ml_dtypes has are left out."""
    cdef const dtypes.ElementType* row
    cdef list found = []
    for k in range(r.ndtypes):
        row = row_of(&r.dtypes[k])
        try:
            if row != NULL:
                found.append(dtypes.dtype_of(row))
        except TypeError:
            pass
    return found


# ------------------------------------------------------------------------------------------------------- making copies


cdef Descriptor resolve_misfit(Descriptor a, object obj, const PyUSMArrayRequest* r, Misfit wrong, bint is_copy):
    """Make the copy that resolves a misfit, on the caller's stream. Return None if the request does not allow this copy."""
    stream = None if r.stream == NULL else <object> r.stream
    if wrong == TYPE:
        dtype = target_type(a, obj, r)
        if dtype is None:
            return None
        if not host_readable(a) and r.may & <int> USM_ARRAY_MAY_TRANSFER and where_of(r) & <int> USM_ARRAY_ON_HOST:
            a = transfer.to_host(a, stream=stream)
        if is_built(a, obj, r):
            return in_same_memory(numpy_library.copy_values_as(functions.import_elements(obj), dtype), a, r)
        from arrayhub.array.casting import cast_checked

        return cast_checked(a, dtype, f"this {name_of_type(type(obj))}")
    if wrong == MEMORY and r.may & <int> USM_ARRAY_MAY_TRANSFER and where_of(r) & 7:
        device = target_device(r)
        if device.startswith("oneapi") and not sycl.is_queue(stream):
            stream = None      # the import has already made the stream wait for the array
        return transfer.to_device(a, device, stream=stream)
    if wrong == BYTE_ORDER and r.may & (<int> USM_ARRAY_MAY_RELAYOUT | <int> USM_ARRAY_MAY_CAST) and host_readable(a):
        return in_same_memory(transfer.native(a), a, r)
    if wrong in (MISALIGNED, STRIDES, LAYOUT) and (is_copy or r.may & <int> USM_ARRAY_MAY_RELAYOUT):
        return transfer.copy(a, order=order_of(r), stream=stream)
    return None


cdef Descriptor in_same_memory(Descriptor made, Descriptor a, const PyUSMArrayRequest* r):
    """Return `made`, a host copy of `a`. If the request does not accept host memory, copy `made` to memory like that of `a`."""
    if memory_kinds_of(a) & where_of(r) and not memory_kinds_of(made) & where_of(r):
        return transfer.to_memory_of(a, made)
    return made


cdef str target_device(const PyUSMArrayRequest* r):
    """Return the name of the device to which an array in other memory is copied.

    This is the host, the device of the caller's queue or stream, the current CUDA device, or the first SYCL device.
    """
    cdef intptr_t handle
    if where_of(r) & <int> USM_ARRAY_ON_HOST:
        return "cpu"
    stream = None if r.stream == NULL else <object> r.stream
    is_queue = sycl.is_queue(stream)
    if where_of(r) & <int> USM_ARRAY_ON_USM:
        return str(Device(stream)) if is_queue else "oneapi:0"
    handle = cuda.NO_STREAM if stream is None or is_queue else cuda.checked_handle(stream)
    return f"cuda:{cuda.device_of(cuda.LEGACY_STREAM if handle == cuda.NO_STREAM else handle)}"


# ------------------------------------------------------------------------------------------------------------- messages


cdef object raise_import(object obj):
    """Raise the pending exception of an import. If a refusal names a call, name the one that `asarray` names.

    Other refusals are raised at once, because a function with overloads then tries the next overload.
    """
    try:
        raise_on()
    except Refusal as error:
        if not getattr(error, "call", ""):      # a MemoryError, if the refusal cannot be created
            raise
        refusal = error
    raise hooks.advice.complete_refusal(refusal, obj, "arrayhub")


cdef object raise_named(const PyUSMArrayRequest* r):
    """Raise the current exception again, with the argument's name as a prefix of its message."""
    try:
        raise_on()
    except PASSES_ON:
        raise
    except Exception as error:
        raise add_name(r, error) from error.__cause__


cdef object add_name(const PyUSMArrayRequest* r, object error):
    """Return the same error with the name of the request as a prefix. Errors of producers' own classes are unchanged."""
    return error if r.name == NULL else name_argument(error, (<bytes> r.name).decode("utf-8", "replace"))


cdef object refuse(type form, object obj, str reason, str accepted="", str call=""):
    """Return the refusal of an object. `form` is the subclass of Refusal."""
    return form("", f"this {name_of_type(type(obj))} {reason}", accepted, call)


cdef str accepted_types(const PyUSMArrayRequest* r):
    cdef const dtypes.ElementType* row
    cdef list names = []
    for k in range(r.ndtypes):
        row = row_of(&r.dtypes[k])
        code = r.dtypes[k].code, r.dtypes[k].bits, r.dtypes[k].lanes
        names.append(f"DLPack's {code}" if row == NULL else (<bytes> name_of(row, None)).decode())
    return " or ".join(names)


cdef str accepted_ranks(const PyUSMArrayRequest* r):
    if r.shape != NULL or r.min_nd == r.max_nd > 0:
        return f"{r.max_nd}"
    return f"{r.min_nd} or more" if r.max_nd <= 0 else f"{r.min_nd} to {r.max_nd}"


cdef str accepted_memory(const PyUSMArrayRequest* r):
    names = {
        <int> USM_ARRAY_ON_HOST: "memory that the host can read",
        <int> USM_ARRAY_ON_USM: "SYCL USM",
        <int> USM_ARRAY_ON_CUDA: "memory that a CUDA kernel can access",
    }
    return " or ".join([name for bit, name in names.items() if where_of(r) & bit])


cdef object error_of(Descriptor a, object obj, const PyUSMArrayRequest* r, Misfit wrong):
    """Return the error for a misfit, with the accepted values and a call that makes a suitable array."""
    call = call_to_fit(a, r)
    if wrong == BYTE_ORDER:
        reason = f"has elements of {name_of_elements(a)}, in the other byte order"
        return refuse(TypeRefusal, obj, reason, "native byte order", call)
    if wrong == TYPE:
        accepted = accepted_types(r)
        if r.may & <int> USM_ARRAY_MAY_CAST and not r.flags & WRITEABLE:
            accepted += ", or a type of the same or a lower kind (bool, integer, real, complex)"
            try:
                get_dtype(a)
            except TypeError:
                accepted += "; a cast of this type requires ml_dtypes"
        return refuse(TypeRefusal, obj, f"has elements of {name_of_elements(a)}", accepted, call)
    if wrong == SHARED_BYTES:
        reason = f"has {dtypes.bits_of(a.dl_dtype_)}-bit elements packed into shared bytes"
        return refuse(TypeRefusal, obj, reason, "elements of one or more bytes each")
    if wrong == RANK:
        return refuse(ValueRefusal, obj, f"has {dimensions(a.nd_)}, shape {shape_tuple(a)}", accepted_ranks(r))
    if wrong == LENGTH:
        lengths = ", ".join(["any" if r.shape[k] == -1 else str(r.shape[k]) for k in range(r.max_nd)])
        return refuse(ValueRefusal, obj, f"has shape {shape_tuple(a)}", f"({lengths})")
    if wrong == READ_ONLY:
        return refuse(ValueRefusal, obj, "is read-only", "writable memory, such as that of y = arrayhub.asarray(x).copy()")
    if wrong == MEMORY:
        return refuse(Refusal, obj, f"is on {device_name(a)}", accepted_memory(r), call)
    if wrong == MISALIGNED:
        return refuse(Refusal, obj, "has unaligned elements", "aligned elements", call)
    if wrong == STRIDES:
        reason = f"has byte strides {stride_tuple(a)}, which are not multiples of its itemsize {a.itemsize_}"
        return refuse(Refusal, obj, reason, "", call)
    strides = None if a.byte_strides_ == NULL else stride_tuple(a)
    wanted = "contiguous in both orders" if r.flags & C_CONTIGUOUS and r.flags & F_CONTIGUOUS else f"{order_of(r)}-contiguous"
    return refuse(Refusal, obj, f"is not {wanted}: shape {shape_tuple(a)} with byte strides {strides}", "", call)


cdef str order_of(const PyUSMArrayRequest* r):
    return "F" if r.flags & F_CONTIGUOUS and not r.flags & C_CONTIGUOUS else "C"


cdef str call_to_fit(Descriptor a, const PyUSMArrayRequest* r):
    """Return the call that makes an array of `x` that meets a request, or "" if no conversion of the elements does."""
    cdef bint is_cast = r.ndtypes and not accepts_type(a, r)
    if r.flags & WRITEABLE or a.flags_ & PACKED or shape_misfit(a, r) != FITS:      # writes to a copy would be lost
        return ""
    if not host_readable(a) and hooks.advice.find_obstacle(transfer.check_source, a):      # nothing can copy the memory
        return ""
    targets = cast_targets(a, r) if is_cast else []
    if is_cast and host_readable(a):
        from arrayhub.array.casting import out_of_range

        targets = [wanted for wanted in targets if out_of_range(functions.as_numpy(a), wanted) is None]
    if is_cast and not targets or r.flags & C_CONTIGUOUS and r.flags & F_CONTIGUOUS and a.nd_ > 1:
        return ""
    device = "" if memory_kinds_of(a) & where_of(r) else target_device(r)
    words = f", dtype={targets[0].name!r}" if is_cast else ""
    words += f", device={device!r}" if device else ""
    given = "x" if is_cast or a.flags_ & NOTSWAPPED else "arrayhub.asarray(x).native()"
    call = f"arrayhub.asarray({given}{words})" if words or given == "x" else given
    if order_of(r) == "F" and a.nd_ > 1:
        return f"{call}.copy(order='F')"
    # A cast makes an array in C order, and a copy on another device keeps the order.
    wanted = 0 if is_cast else r.flags & C_CONTIGUOUS | (0 if device else ALIGNED)
    return call if a.flags_ & wanted == wanted and (words or a.strides_ != NULL) else f"{call}.copy()"


# ---------------------------------------------------------------------------------------------------- requests in Python

cdef dict _DEFAULTS = dict(type=None, ndim=None, order=None, writable=False, where="host", may=(), name=None)
cdef dict _ORDERS = {None: 0, "C": <int> C_CONTIGUOUS, "F": <int> F_CONTIGUOUS}
cdef dict _PLACES = {
    "host": <int> USM_ARRAY_ON_HOST, "usm": <int> USM_ARRAY_ON_USM, "cuda": <int> USM_ARRAY_ON_CUDA,
    "any": <int> USM_ARRAY_ANYWHERE,
}
cdef dict _COPIES = {
    "cast": <int> USM_ARRAY_MAY_CAST, "relayout": <int> USM_ARRAY_MAY_RELAYOUT, "transfer": <int> USM_ARRAY_MAY_TRANSFER,
    "build": <int> USM_ARRAY_MAY_BUILD,
}


@cython.final
cdef class Request:
    """Request(type=None, *, ndim=None, order=None, writable=False, where="host", may=(), name=None)
--

    Conditions on an array argument, and the copies that are allowed in order to meet them.

    This is `PyUSMArrayRequest` of the C interface: a request and a C extension with the same conditions accept the same
    objects, make the same copies and raise the same errors.

    Parameters
    ----------
    type : str, optional
        Element type and lengths as a datashape: ``"float64"``, ``"n * 3 * float32"``, ``"... * {float32, float64}"``. A
        number is a length in elements. A letter, or another identifier, names a length: dimensions with the same letter must
        have the same length. ``...`` matches any number of leading dimensions. A type without dimensions does not restrict the
        shape.
    ndim : int or tuple of int, optional
        Number of dimensions, or a tuple of its minimum and maximum.
    order : {None, "C", "F"}, optional
        Required contiguity. None accepts any strides.
    writable : bool, optional
        Whether the function writes to the array. True excludes copies.
    where : str or tuple of str, optional
        Accepted memory: ``"host"`` (readable by the host), ``"usm"``, ``"cuda"`` or ``"any"``.
    may : str or tuple of str, optional
        Allowed copies: ``"cast"`` (to native byte order, or to a different element type of the same or a higher kind, in the
        order bool, integer, real, complex; a value out of the range of this type raises OverflowError), ``"relayout"`` (to a
        different order or alignment, or to native byte order), ``"transfer"`` (between host and device), ``"build"`` (from
        numbers and lists).
    name : str, optional
        Prefix of error messages, such as ``"blur: x"``.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid.

    Examples
    --------
    >>> points = Request("n * 3 * float32", may="cast")
    >>> points.asarray(np.zeros((4, 3))).dtype
    dtype('float32')
    >>> points.explain(np.zeros((4, 2), "f4"))
    'this numpy.ndarray has shape (4, 2); accepted: (any, 3)'
    >>> points.matches(np.zeros((4, 3), "f4"))
    True

    As an annotation, for `adapt` and for pydantic: ``Annotated[np.ndarray, Request("n * float64")]``.
    """

    cdef PyUSMArrayRequest r
    cdef PyUSMArrayDataType dtypes[layout.MAX_NDIM]      # as many as inspection/datashape accepts
    cdef Py_ssize_t lengths_[layout.MAX_NDIM]
    cdef bytes name_
    cdef object pattern         # a Pattern, or None
    cdef bint has_more          # whether the struct does not express the pattern completely
    cdef dict arguments

    def __cinit__(self, type=None, *, ndim=None, order=None, writable=False, where="host", may=(), name=None):
        self.r.struct_size = sizeof(PyUSMArrayRequest)
        self.r.flags = option("order", order, _ORDERS) | (<int> WRITEABLE if writable else 0)
        self.r.where = option("where", where, _PLACES)
        self.r.may = option("may", may, _COPIES)
        if self.r.where == 0:
            raise ValueError(f"Request: where is {show(where)}; accepted: {', '.join(_PLACES)}")
        if name is not None:
            self.name_ = checked_name(name)
            self.r.name = <const char*> self.name_
        if type is not None:
            self.set_type(type)
        if ndim is not None:
            self.set_ndim(ndim)
        self.arguments = dict(type=type, ndim=ndim, order=order, writable=bool(writable), where=where, may=may, name=name)

    cdef int set_type(self, object text) except -1:
        cdef const dtypes.ElementType* row
        cdef int k
        if not isinstance(text, str):
            raise TypeError(f"Request: type is {show(text)}; accepted: a str such as 'n * 3 * float32'")
        from arrayhub.inspection.datashape import TYPENUMS, parse_pattern      # `import arrayhub` does not need the parser

        self.pattern = pattern = parse_pattern(text)
        for k, number in enumerate(pattern.elements):
            row = dtypes.by_typenum(TYPENUMS[number])
            if row.dlpack.code == dtypes.NO_DLPACK:
                raise ValueError(f"Request: type is {show(text)}, and DLPack does not define {show(str(number))}; accepted:"
                                 " numbers, such as float32")
            self.dtypes[k] = (<const PyUSMArrayDataType*> &row.dlpack)[0]
        self.r.dtypes = self.dtypes
        self.r.ndtypes = len(pattern.elements)
        self.r.min_nd = len(pattern.lengths)
        if pattern.leading:
            self.has_more = self.r.min_nd > 0
        elif pattern.lengths:
            self.r.max_nd = self.r.min_nd
            for k, length in enumerate(pattern.lengths):
                self.lengths_[k] = length if isinstance(length, int) else -1
            self.r.shape = self.lengths_
            letters = [length for length in pattern.lengths if isinstance(length, str)]
            self.has_more = len(set(letters)) < len(letters)
        return 0

    cdef int set_ndim(self, object ndim) except -1:
        least, most = ndim if isinstance(ndim, tuple) and len(ndim) == 2 else (ndim, ndim)
        if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most <= layout.MAX_NDIM):
            raise ValueError(f"Request: ndim is {show(ndim)}; accepted: 0 to {layout.MAX_NDIM}, or a tuple of the minimum and"
                             " the maximum")
        if least < self.r.min_nd or self.r.shape != NULL and most > self.r.max_nd:
            raise ValueError(f"Request: ndim is {show(ndim)}; accepted: {accepted_ranks(&self.r)}, as the type requires")
        if self.r.shape != NULL:
            return 0
        self.r.min_nd, self.r.max_nd = least, most if most < layout.MAX_NDIM else 0
        if most == 0:      # 0 as the greatest number of dimensions means no limit, unless lengths are given
            self.r.shape = self.lengths_
        return 0

    @property
    def writable(self):
        """Whether the function writes to the array."""
        return bool(self.r.flags & <int> WRITEABLE)

    def asarray(self, obj, /, *, name=None):
        """Import an array that meets the request.

        Parameters
        ----------
        obj : object
            Any object that `arrayhub.asarray` accepts.
        name : str, optional
            Prefix of error messages. The default is `name` of the request.

        Returns
        -------
        USMArray
            A view of the memory of `obj`, or one of the copies that the request allows.

        Raises
        ------
        TypeError
            `obj` is not an array, or its element type is not accepted.
        ValueError
            The shape is not accepted, or the memory is read-only.
        BufferError
            The kind of memory or the layout is not accepted.
        OverflowError
            A number is out of the range of the accepted types.

        Examples
        --------
        >>> Request("float64", may="build").asarray([1, 2]).dtype
        dtype('float64')
        """
        cdef PyUSMArrayRequest r = self.r
        cdef bytes prefix
        if name is not None:
            prefix = checked_name(name)
            r.name = <const char*> prefix
        cdef Descriptor a = request(obj, &r)
        if not self.fits_pattern(a):
            raise add_name(&r, refuse(ValueRefusal, obj, f"has shape {shape_tuple(a)}", str(self.pattern)))
        return a

    cdef bint fits_pattern(self, Descriptor a) except -1:
        return not self.has_more or named_lengths(self.pattern, shape_tuple(a)) is not None

    def matches(self, obj, /):
        """Return whether an object meets the request without a copy. The result is False if it is not an array.

        Examples
        --------
        >>> Request("float64", order="C").matches(np.zeros((2, 3)).T)
        False
        """
        cdef Descriptor a = None
        try:
            a = import_array(obj, None)
        except Exception as error:
            if isinstance(error, PASSES_ON):      # also a MemoryError that replaces an error without memory for its traceback
                raise
        return a is not None and not import_copied(a, obj) and misfit(a, &self.r) == FITS and self.fits_pattern(a)

    def explain(self, obj, /):
        """Return the error message of `asarray` for an object, or ``""`` if it succeeds.

        The method makes the copies that the request allows, and discards the result.

        Examples
        --------
        >>> Request("float64").explain(np.zeros(3, "f4"))
        "this numpy.ndarray has elements of float32; accepted: float64. Call arrayhub.asarray(x, dtype='float64')"
        """
        words = ""
        try:
            self.asarray(obj)
        except Exception as error:
            if isinstance(error, PASSES_ON):      # also a MemoryError that replaces an error without memory for its traceback
                raise
            words = str(error)
        return words

    def lengths(self, array, /):
        """Return a dict of the length in elements that each letter of the type stands for in a result of `asarray`.

        Examples
        --------
        >>> points = Request("n * 3 * float64")
        >>> points.lengths(points.asarray(np.zeros((4, 3))))
        {'n': 4}
        """
        return {} if self.pattern is None else named_lengths(self.pattern, array.shape)

    def __repr__(self):
        given = {key: value for key, value in self.arguments.items() if value != _DEFAULTS[key]}
        return f"Request({', '.join([repr(value) if key == 'type' else f'{key}={value!r}' for key, value in given.items()])})"

    def __eq__(self, other):
        return self.arguments == (<Request> other).arguments if isinstance(other, Request) else NotImplemented

    def __hash__(self):
        return hash((self.r.flags, self.r.where, self.r.may, self.arguments["type"]))      # a list of names has no hash

    def __getnewargs_ex__(self):
        return (), dict(self.arguments)

    def __get_pydantic_core_schema__(self, source, handler):
        """Return the pydantic schema for ``Annotated[source, Request(...)]``."""
        from arrayhub.capi.pydantic_schema import schema_of

        return schema_of(self, source, self.pattern)


cdef dict named_lengths(object pattern, tuple shape):
    """Return the length that each name in a pattern denotes, or None if the last dimensions do not match the pattern.

    Dimensions with the same name in the pattern must have the same length.
    """
    cdef dict named = {}
    cdef Py_ssize_t first = len(shape) - len(pattern.lengths)
    for wanted, length in zip(pattern.lengths, shape[max(first, 0):]):
        if isinstance(wanted, str):
            wanted = named.setdefault(wanted, length)
        if wanted is not None and wanted != length:
            return None
    return named if first >= 0 else None


cdef int option(str argument, object given, dict accepted) except -1:
    """Return the combined bits of one or more names."""
    cdef int bits = 0
    try:
        for word in given if isinstance(given, (tuple, list, set, frozenset)) else (given,):
            bits |= <int> accepted[word]
    except (KeyError, TypeError):
        raise ValueError(f"Request: {argument} is {show(given)}; accepted: {', '.join(map(repr, accepted))}") from None
    return bits


cdef bytes checked_name(object name):
    if not isinstance(name, str) or "\0" in name:
        raise TypeError(f"Request: name is {show(name)}; accepted: a str such as 'blur: x'")
    return (<str> name).encode("utf-8", "replace")
