"""Exports that depend on the calling consumer: the `torch`, `awkward` and `polars` rows of consumer_quirks.

torch.from_dlpack, as_tensor and tensor call ``__dlpack__`` from Python code in torch.utils.dlpack. torch.asarray requests
the buffer from C code, so the caller can be identified only from the native stack. awkward.Array and awkward.from_dlpack
call ``__dlpack_device__`` and then ``numpy.from_dlpack``, from two awkward modules.
"""

import sys
import warnings

from cpython.exc cimport PyErr_SetInterrupt

from arrayhub._core.descriptor cimport C_CONTIGUOUS, WRITEABLE, Descriptor, host_readable, stride_tuple


cdef bytes _library = None           # part of the path of torch's C library

cdef extern from *:
    """
    #include <string.h>
    #include <dlfcn.h>
    #include <unwind.h>
    typedef struct {
        const char *name;
        int left;           /* number of frames outside of the package that remain to be examined */
        int found;
        const char *own;    /* path of this module */
        size_t folder;      /* length of the package's folder in `own` */
    } arrayhub_walk;

    /* The length of ".../arrayhub/" in ".../arrayhub/libraries/this file". */
    static size_t arrayhub_package_folder(const char *file) {
        size_t end = strlen(file);
        int slashes = 0;
        while (end > 0 && (slashes += file[end - 1] == '/') < 2) --end;
        return end;
    }

    /* The caller's frame is the first or the second outside of the package. The other frame, if any, is that of
       PyObject_GetBuffer, which has no frame if the compiler made its last call a jump (CPython 3.11, gcc). */
    static _Unwind_Reason_Code arrayhub_look(struct _Unwind_Context *context, void *argument) {
        arrayhub_walk *walk = argument;
        Dl_info place;
        if (dladdr((void *)_Unwind_GetIP(context), &place) == 0 || place.dli_fname == NULL) return _URC_END_OF_STACK;
        if (walk->left == 2 && strncmp(place.dli_fname, walk->own, walk->folder) == 0) return _URC_NO_REASON;
        if (strstr(place.dli_fname, walk->name) != NULL) walk->found = 1;
        return walk->found || --walk->left == 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
    }
    static int arrayhub_called_from(const char *name) {
        arrayhub_walk walk = {name, 2, 0, NULL, 0};
        Dl_info here;
        if (dladdr((void *)arrayhub_called_from, &here) == 0 || here.dli_fname == NULL) return 0;
        walk.own = here.dli_fname;
        walk.folder = arrayhub_package_folder(walk.own);
        _Unwind_Backtrace(arrayhub_look, &walk);
        return walk.found;
    }
    """
    # Return whether the C code that called this package belongs to a library with `name` in its path.
    bint called_from "arrayhub_called_from"(const char* name) noexcept


cdef bint steps_backwards(Descriptor a) noexcept:
    """Return whether a dimension of length 2 or more has a negative stride."""
    cdef int k
    if a.flags_ & C_CONTIGUOUS or a.byte_strides_ == NULL:
        return False
    for k in range(a.nd_):
        if a.byte_strides_[k] < 0 and a.shape_[k] > 1:
            return True
    return False


cdef bint is_calling(str consumer, str request) except -1:
    """Return whether a consumer calls, as a row of consumer_quirks describes. The consumer is the name of a module."""
    if consumer not in sys.modules:
        return False
    from arrayhub.libraries.consumer_quirks import is_called_by, quirk

    return is_called_by(quirk(consumer, request))


cdef int check_torch(Descriptor a) except -1:
    """If torch calls ``__dlpack__``, raise BufferError for negative strides, and warn about read-only memory."""
    if steps_backwards(a) and is_calling("torch", "__dlpack__ of negative strides"):
        raise BufferError(
            f"torch: byte strides {stride_tuple(a)} are negative, and torch ends the process for such arrays; call"
            " arrayhub.as_torch(x, copy=True), or x.copy() first"
        )
    if not a.flags_ & WRITEABLE and is_calling("torch", "__dlpack__ of read-only memory"):
        warnings.warn(
            "torch: the memory is read-only, but the tensor can be written; call arrayhub.as_torch(x, copy=True) to write,"
            " or arrayhub.as_torch(x, allow_readonly=True) to read",
            UserWarning,
            stacklevel=2,      # level 1 is torch's function, because compiled functions do not have a frame
        )
    return 0


cdef bint is_awkward_calling() except -1:
    """Return whether awkward requests an array through DLPack."""
    return is_calling("awkward", "__dlpack_device__ of host-readable USM")


cdef bint is_for_polars_frame(Descriptor a) except -1:
    """Return whether polars makes a DataFrame of an array of one or two dimensions in host-readable memory."""
    return 1 <= a.nd_ <= 2 and host_readable(a) and is_calling("polars", "__arrow_c_array__ for a DataFrame")


cdef int refuse_plain_bytes(Descriptor a) except -1:
    """If torch requests plain bytes, warn and raise BufferError. The warning is needed because torch replaces the error."""
    global _library
    if "torch" not in sys.modules:
        return 0
    if _library is None:
        from arrayhub.libraries.consumer_quirks import quirk

        _library = quirk("torch", "a buffer of plain bytes").callers[0].encode()
    if not called_from(_library):
        return 0
    message = (
        "torch.asarray and torch.frombuffer read the bytes of a USMArray as elements of another type; call"
        " arrayhub.as_torch(x), torch.from_dlpack(x), or torch.frombuffer(memoryview(x), dtype=...)"
    )
    try:
        warnings.warn(message, RuntimeWarning)
    except KeyboardInterrupt:      # torch discards every exception raised here, so raise the interrupt after torch returns
        PyErr_SetInterrupt()
    raise BufferError(message)
