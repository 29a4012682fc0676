"""What is remembered of types, one word each: the version of the type and what is known of it, read and written whole.

Any number of threads may do so at once. No two live types share a version and none comes back, so that the word needs to
say nothing else of whom it is about, and keeps no type alive.
"""

from cpython.object cimport PyTypeObject
from libc.stdint cimport uint64_t, uintptr_t

from arrayhub._core.cpython.type_version cimport version_tag

ctypedef uint64_t TypeNote      # the version above, what is known below; 0 for nothing

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define arrayhub_read_note(note) _Py_atomic_load_uint64_relaxed(note)
    #define arrayhub_write_note(note, word) _Py_atomic_store_uint64_relaxed(note, word)
    #else
    #define arrayhub_read_note(note) (*(note))
    #define arrayhub_write_note(note, word) ((void)(*(note) = (word)))
    #endif
    """
    uint64_t read_note "arrayhub_read_note"(TypeNote* note) noexcept nogil
    void write_note "arrayhub_write_note"(TypeNote* note, uint64_t word) noexcept nogil


cdef inline uintptr_t first_place(PyTypeObject* cls, uintptr_t places) noexcept nogil:
    """Where a type is looked for first among so many places (a power of two, at least 2); then in the one beside it."""
    cdef uintptr_t address = <uintptr_t> cls
    return ((address >> 4) ^ (address >> 12)) & (places - 1)


cdef inline unsigned int recall(TypeNote* notes, uintptr_t places, PyTypeObject* cls) noexcept nogil:
    """What was noted of a type as it is now; 0 where nothing was."""
    cdef uintptr_t place = first_place(cls, places)
    cdef uint64_t version = version_tag(cls)
    cdef uint64_t note = read_note(&notes[place])
    if note >> 32 != version:
        note = read_note(&notes[place ^ 1])
    return <unsigned int> note if note >> 32 == version and version != 0 else 0


cdef inline void write_down(TypeNote* notes, uintptr_t places, PyTypeObject* cls, unsigned int version,
                            unsigned int known) noexcept nogil:
    """Note what is known of a version of a type, never 0. Whoever had the place moves to the one beside it.

    `version` is from before the type was asked: one that changed meanwhile is not known, and is asked again next time.
    """
    cdef uintptr_t place = first_place(cls, places)
    cdef uint64_t displaced = read_note(&notes[place])
    if version == 0 or version != version_tag(cls):
        return
    if displaced != 0:
        write_note(&notes[place ^ 1], displaced)
    write_note(&notes[place], <uint64_t> version << 32 | known)
