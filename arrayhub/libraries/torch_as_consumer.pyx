"""What torch reads of a USMArray without arrayhub: where it would end the process or take bytes for numbers, it is refused.

Neither can be said by a protocol. torch asks ``__dlpack__`` as everybody does, and aborts on negative strides; and
``torch.asarray`` asks for a buffer of plain bytes, as a file does, and reads them as its default type. So it is the caller
that is looked at, and only for such arrays and such requests.
"""

import sys
import warnings

from cpython.exc cimport PyErr_SetInterrupt

from arrayhub._core.cpython.frames cimport calling_module
from arrayhub._core.descriptor cimport C_CONTIGUOUS, WRITEABLE, Descriptor, stride_tuple

cdef extern from *:
    """
    #include <string.h>
    #include <dlfcn.h>
    #include <unwind.h>
    typedef struct {
        const char *name;
        int left;           /* how many frames beyond our own are still looked at */
        int found;
        const char *own;    /* a file of the package, */
        size_t folder;      /* and how much of its name is the package's folder */
    } arrayhub_walk;

    /* How much of ".../arrayhub/libraries/this file" is ".../arrayhub/". */
    static size_t arrayhub_package_folder(const char *file) {
        size_t end = strlen(file);
        int slashes = 0;
        while (end > 0 && (slashes += file[end - 1] == '/') < 2) --end;
        return end;
    }

    /* The caller's frame is the first or the second beyond the module's own: PyObject_GetBuffer may have one, or none. */
    static _Unwind_Reason_Code arrayhub_look(struct _Unwind_Context *context, void *argument) {
        arrayhub_walk *walk = argument;
        Dl_info place;
        if (dladdr((void *)_Unwind_GetIP(context), &place) == 0 || place.dli_fname == NULL) return _URC_END_OF_STACK;
        if (walk->left == 2 && strncmp(place.dli_fname, walk->own, walk->folder) == 0) return _URC_NO_REASON;
        if (strstr(place.dli_fname, walk->name) != NULL) walk->found = 1;
        return walk->found || --walk->left == 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
    }
    static int arrayhub_asked_by(const char *name) {
        arrayhub_walk walk = {name, 2, 0, NULL, 0};
        Dl_info here;
        if (dladdr((void *)arrayhub_asked_by, &here) == 0 || here.dli_fname == NULL) return 0;
        walk.own = here.dli_fname;
        walk.folder = arrayhub_package_folder(walk.own);
        _Unwind_Backtrace(arrayhub_look, &walk);
        return walk.found;
    }
    """
    bint arrayhub_asked_by(const char* name) noexcept


cdef bint asked_by(const char* name) noexcept:
    """Whether arrayhub was called from a library file in whose path `name` is, by C code itself."""
    return arrayhub_asked_by(name)


cdef bint steps_backwards(Descriptor a) noexcept:
    """Whether a stride between two elements is negative."""
    cdef int k
    if a.flags_ & C_CONTIGUOUS or a.byte_strides_ == NULL:
        return False
    for k in range(a.nd_):
        if a.byte_strides_[k] < 0 and a.shape_[k] > 1:
            return True
    return False


cdef int hand_to_torch(Descriptor a) except -1:
    """BufferError where torch is about to take a view that steps backwards, on which it aborts; and a warning, as of arrays
    of NumPy's, where it takes read-only memory, which a tensor cannot be.

    All of its functions (``from_dlpack``, ``as_tensor``, ``tensor``) ask through one of Python's.
    """
    cdef bint backwards = steps_backwards(a)
    if (a.flags_ & WRITEABLE and not backwards) or "torch" not in sys.modules or calling_module() != "torch.utils.dlpack":
        return 0
    if backwards:
        raise BufferError(
            f"torch: byte strides {stride_tuple(a)} are negative, and torch ends the process on them; call"
            " arrayhub.as_torch(x, copy=True), or x.copy() first"
        )
    warnings.warn(
        "torch: the memory is read-only, and a tensor that shares it lets itself be written, which must not be done; call"
        " arrayhub.as_torch(x, copy=True) to write, or arrayhub.as_torch(x, allow_readonly=True) to read",
        UserWarning,
        stacklevel=2,      # torch's function, in Python, is the first
    )
    return 0


cdef int refuse_plain_bytes(Descriptor a) except -1:
    """BufferError where torch itself asks for plain bytes. It reports that in its own words, so a warning says ours."""
    if "torch" not in sys.modules or not arrayhub_asked_by(b"libtorch_python"):
        return 0
    words = (
        "torch.asarray and torch.frombuffer read the bytes of a USMArray as elements of another type; call"
        " arrayhub.as_torch(x), torch.from_dlpack(x), or torch.frombuffer(memoryview(x), dtype=...)"
    )
    try:
        warnings.warn(words, RuntimeWarning)
    except KeyboardInterrupt:      # torch drops what is raised here, whatever it is: it comes again once torch has returned
        PyErr_SetInterrupt()
    raise BufferError(words)
