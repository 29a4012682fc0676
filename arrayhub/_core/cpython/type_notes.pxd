"""Version tags of types, and a cache of facts about types.

An entry of the cache is a 64-bit word that contains a type's version tag and the facts. Entries are accessed
atomically, so any number of threads may read and write. Version tags are unique and never reused, so the tag identifies the
type, and an entry does not have to keep the type alive.
"""

from cpython.object cimport PyTypeObject
from libc.stdint cimport uint64_t, uintptr_t

cdef extern from *:
    """
    /* The interpreter resets the tag of a type whenever the type or one of its bases changes, and the next attribute
       lookup assigns a new tag. Tags are never reused. The tag is zero if no tag is assigned yet, or if the tags of the
       type (1000, since CPython 3.13) or of the process are exhausted. Facts about a type without a tag are not cached.
       Up to CPython 3.12, a flag indicates whether the tag is valid. CPython 3.13 does not set this flag, and sets
       invalid tags to zero. */
    static unsigned int arrayhub_version_tag(PyTypeObject *type) {
    #if defined(Py_GIL_DISABLED)
        return _Py_atomic_load_uint_relaxed(&type->tp_version_tag);
    #elif PY_VERSION_HEX >= 0x030D0000
        return type->tp_version_tag;
    #else
        return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
    #endif
    }
    """
    unsigned int version_tag "arrayhub_version_tag"(PyTypeObject* cls) nogil

ctypedef uint64_t TypeNote      # version tag in the high half, facts in the low half; 0 if empty

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    /* acquire and release: a record names an importer, which the writing thread has stored before */
    #define arrayhub_read_note(note) _Py_atomic_load_uint64_acquire(note)
    #define arrayhub_write_note(note, word) _Py_atomic_store_uint64_release(note, word)
    #else
    #define arrayhub_read_note(note) (*(note))
    #define arrayhub_write_note(note, word) ((void)(*(note) = (word)))
    #endif
    """
    uint64_t read_note "arrayhub_read_note"(TypeNote* note) noexcept nogil
    void write_note "arrayhub_write_note"(TypeNote* note, uint64_t word) noexcept nogil


cdef inline uintptr_t first_slot(PyTypeObject* cls, uintptr_t slots) noexcept nogil:
    """Return the index of the first of a type's two slots. The index of the second slot is the returned index ``^ 1``.

    `slots`, the number of slots in the cache, is a power of two and at least 2.
    """
    cdef uintptr_t address = <uintptr_t> cls
    return ((address >> 4) ^ (address >> 12)) & (slots - 1)


cdef inline unsigned int recall(TypeNote* notes, uintptr_t slots, PyTypeObject* cls) noexcept nogil:
    """Return the cached facts about the current version of a type, or 0 if none are cached."""
    cdef uintptr_t slot = first_slot(cls, slots)
    cdef uint64_t version = version_tag(cls)
    cdef uint64_t note = read_note(&notes[slot])
    if note >> 32 != version:
        note = read_note(&notes[slot ^ 1])
    return <unsigned int> note if note >> 32 == version and version != 0 else 0


cdef inline void write_down(TypeNote* notes, uintptr_t slots, PyTypeObject* cls, unsigned int version,
                            unsigned int known) noexcept nogil:
    """Cache the facts `known` (not 0) about a version of a type. The previous entry of the first slot moves to the second slot.

    `version` must be read before the facts are determined. If the type has changed since then, nothing is cached.
    """
    cdef uintptr_t slot = first_slot(cls, slots)
    cdef uint64_t displaced = read_note(&notes[slot])
    if version == 0 or version != version_tag(cls):
        return
    if displaced != 0:
        write_note(&notes[slot ^ 1], displaced)
    write_note(&notes[slot], <uint64_t> version << 32 | known)
