"""Loops over words of 1, 2, 4, 8 or 16 bytes on any boundary, between two layouts of host memory. Steps are in bytes."""

cdef extern from "../transfer/loops.h" nogil:
    # Copy `outer` rows of `inner` words; by tiles, both are at least a line's words.
    ctypedef void (*Kernel "arrayhub_kernel")(
        char* target, const char* source, Py_ssize_t outer, Py_ssize_t inner, Py_ssize_t target_outer,
        Py_ssize_t target_inner, Py_ssize_t source_outer, Py_ssize_t source_inner) noexcept nogil
    Kernel kernel_of "arrayhub_kernel_of"(Py_ssize_t size, bint tiled) noexcept nogil
    void copy_runs "arrayhub_runs"(
        char* target, const char* source, Py_ssize_t outer, Py_ssize_t nbytes, Py_ssize_t target_outer,
        Py_ssize_t source_outer) noexcept nogil


cdef inline void copy_rows(Kernel kernel, Py_ssize_t word, char* target, const char* source, Py_ssize_t outer,
                           Py_ssize_t inner, Py_ssize_t target_outer, Py_ssize_t target_inner, Py_ssize_t source_outer,
                           Py_ssize_t source_inner) noexcept nogil:
    """Copy rows by a kernel without tiles, or as runs of bytes where the words lie one after the other on both sides."""
    if target_inner == word and source_inner == word:
        copy_runs(target, source, outer, inner * word, target_outer, source_outer)
    else:
        kernel(target, source, outer, inner, target_outer, target_inner, source_outer, source_inner)
