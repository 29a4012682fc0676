"""Answers that depend on the consumer that asks: one table, `QUIRKS`, with a row per consumer and fault.

No protocol names its consumer. Where the same answer is right for one consumer and wrong for another, this module
identifies the caller, and only for the arrays and requests that a row is about. docs/private_names.md lists the names
that identify a caller.
"""

import sys
import warnings

from cpython.exc cimport PyErr_SetInterrupt

from arrayhub._core.cpython.frames cimport calling_module
from arrayhub._core.descriptor cimport C_CONTIGUOUS, WRITEABLE, Descriptor, stride_tuple


class Quirk:
    """Answer that depends on the consumer.

    `request` is what the consumer asks for. `caller` is the module or package of the Python code that calls, or part of the
    path of the C library that calls. `fault` is what the consumer does with the answer that other consumers get, `answer` what
    it gets instead, and `issue` the upstream issue.
    """

    def __init__(self, consumer, request, caller, fault, answer, issue):
        self.consumer, self.request, self.caller = consumer, request, caller
        self.fault, self.answer, self.issue = fault, answer, issue


QUIRKS = (
    Quirk("torch", "__dlpack__", "torch.utils.dlpack", "ends the process if a stride is negative", "BufferError",
          "https://github.com/pytorch/pytorch/issues/188023"),
    Quirk("torch", "__dlpack__", "torch.utils.dlpack", "makes a writable tensor of read-only memory", "a warning",
          "https://github.com/pytorch/pytorch/issues/44027"),
    Quirk("torch", "a buffer of plain bytes", "libtorch_python", "reads them as elements of another type",
          "BufferError and a warning", "https://github.com/pytorch/pytorch/issues/188128"),
)

cdef str _TORCH_MODULE = QUIRKS[0].caller
cdef bytes _TORCH_LIBRARY = QUIRKS[2].caller.encode()


# ---------------------------------------------------------------------------------------------------------------- torch

# All functions of torch that import by DLPack (from_dlpack, as_tensor, tensor) call __dlpack__ in torch.utils.dlpack.
# torch.asarray requests a buffer from C, where only the native stack shows the caller.

cdef extern from *:
    """
    #include <string.h>
    #include <dlfcn.h>
    #include <unwind.h>
    typedef struct {
        const char *name;
        int left;           /* number of frames outside of the package still to look at */
        int found;
        const char *own;    /* path of this module */
        size_t folder;      /* length of the package's folder in that path */
    } arrayhub_walk;

    /* The length of ".../arrayhub/" in ".../arrayhub/libraries/this file". */
    static size_t arrayhub_package_folder(const char *file) {
        size_t end = strlen(file);
        int slashes = 0;
        while (end > 0 && (slashes += file[end - 1] == '/') < 2) --end;
        return end;
    }

    /* The caller's frame is the first or second outside of the package: PyObject_GetBuffer may be inlined. */
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
    # Return whether C code of a library with `name` in its path called the package.
    bint called_from "arrayhub_called_from"(const char* name) noexcept


cdef bint steps_backwards(Descriptor a) noexcept:
    """Return whether the stride of a dimension with two or more elements is negative."""
    cdef int k
    if a.flags_ & C_CONTIGUOUS or a.byte_strides_ == NULL:
        return False
    for k in range(a.nd_):
        if a.byte_strides_[k] < 0 and a.shape_[k] > 1:
            return True
    return False


cdef int check_torch(Descriptor a) except -1:
    """If torch calls ``__dlpack__``, raise BufferError for negative strides, and warn of read-only memory."""
    cdef bint backwards = steps_backwards(a)
    if (a.flags_ & WRITEABLE and not backwards) or "torch" not in sys.modules or calling_module() != _TORCH_MODULE:
        return 0
    if backwards:
        raise BufferError(
            f"torch: byte strides {stride_tuple(a)} are negative, and torch ends the process on them; call"
            " arrayhub.as_torch(x, copy=True), or x.copy() first"
        )
    warnings.warn(
        "torch: the memory is read-only, but the tensor can be written; call arrayhub.as_torch(x, copy=True) to write, or"
        " arrayhub.as_torch(x, allow_readonly=True) to read",
        UserWarning,
        stacklevel=2,      # the first level is torch's function
    )
    return 0


cdef int refuse_plain_bytes(Descriptor a) except -1:
    """If torch requests plain bytes, raise BufferError. torch replaces the error by its own, so warn as well."""
    if "torch" not in sys.modules or not called_from(_TORCH_LIBRARY):
        return 0
    message = (
        "torch.asarray and torch.frombuffer read the bytes of a USMArray as elements of another type; call"
        " arrayhub.as_torch(x), torch.from_dlpack(x), or torch.frombuffer(memoryview(x), dtype=...)"
    )
    try:
        warnings.warn(message, RuntimeWarning)
    except KeyboardInterrupt:      # torch drops every exception raised here: interrupt again when torch has returned
        PyErr_SetInterrupt()
    raise BufferError(message)
