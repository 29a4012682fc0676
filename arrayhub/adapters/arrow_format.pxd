"""Arrow's formats, as C sees them. See arrow_format.pyx for the rows."""

from arrayhub._core.dtypes cimport ElementType

cdef struct Format:
    const char* text         # the format, or what it starts with
    bint whole               # the text is all of it
    int kind                 # Kind of _core/kinds, which has the number of buffers and children; REFUSED
    int width                # bytes of an offset, or of an element where the type has a fixed one
    const char* number       # FLAT: the element type, as dtypes.by_arrow knows it; "M", "m": NumPy's times
    const char* words        # what it is, for messages

cdef enum:
    REFUSED = -1

cdef const Format* find_format(const char* text) noexcept nogil
cdef str unit_of(const char* text)
cdef const Format* format_of_kind(int kind, Py_ssize_t width) noexcept nogil
cdef str text_of(const char* text)
