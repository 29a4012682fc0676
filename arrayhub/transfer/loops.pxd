"""Copy loops between two layouts of host memory: words of 1, 2, 4, 8 or 16 bytes, or items of up to 32 bytes.

Addresses may have any alignment. Steps are in bytes.
"""

cdef enum:
    LARGEST_WORD = 16       # bytes of a 128-bit vector register

cdef extern from "../transfer/loops.h" nogil:
    enum:
        CACHE_LINE "ARRAYHUB_LINE"      # bytes

    # Copy `outer` rows of `inner` words.
    ctypedef void (*RowLoop "arrayhub_row_loop")(
        char* target, const char* source, Py_ssize_t outer, Py_ssize_t inner, Py_ssize_t target_outer,
        Py_ssize_t target_inner, Py_ssize_t source_outer, Py_ssize_t source_inner) noexcept nogil
    RowLoop row_loop "arrayhub_row_loop_of"(Py_ssize_t word) noexcept nogil
    # Copy items of two dimensions: the source's cache lines run along `along`, and the target's along `across`.
    ctypedef void (*TileLoop "arrayhub_tile_loop")(
        char* target, const char* source, Py_ssize_t item, Py_ssize_t along, Py_ssize_t across, Py_ssize_t target_along,
        Py_ssize_t target_across, Py_ssize_t source_along, Py_ssize_t source_across) noexcept nogil
    TileLoop tile_loop "arrayhub_tile_loop_of"(Py_ssize_t item) noexcept nogil
    void copy_runs "arrayhub_runs"(
        char* target, const char* source, Py_ssize_t outer, Py_ssize_t nbytes, Py_ssize_t target_outer,
        Py_ssize_t source_outer) noexcept nogil


cdef inline void copy_rows(RowLoop loop, Py_ssize_t word, char* target, const char* source, Py_ssize_t outer,
                           Py_ssize_t inner, Py_ssize_t target_outer, Py_ssize_t target_inner, Py_ssize_t source_outer,
                           Py_ssize_t source_inner) noexcept nogil:
    """Copy rows word by word, or as runs of bytes if the words are contiguous on both sides."""
    if target_inner == word and source_inner == word:
        copy_runs(target, source, outer, inner * word, target_outer, source_outer)
    else:
        loop(target, source, outer, inner, target_outer, target_inner, source_outer, source_inner)
