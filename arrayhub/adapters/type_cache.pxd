"""Cache of one record for each producer type.

A record contains the protocols that the type may support, the importer of the type, and the deviations of the type's library
from the specifications. Adapters read the record and do not refer to libraries. `convert/dispatch` computes the record from
`table` and the tables in libraries/.
"""

from cpython.object cimport PyTypeObject, Py_TYPE
from libc.stdint cimport uintptr_t

from arrayhub._core.cpython.type_notes cimport TypeNote, recall

cdef enum:
    # Bits of a record:
    # - 0 to 7: one bit for each row of `table`, set if the type may support the protocol
    # - 10 to 15: the number of the importer that is called before any protocol, or 0
    # - 18 and 19: which instances may have labels (`Labelled` in convert/dispatch)
    # - all others: the flags below, and those of `Trait`
    PROTOCOL_BITS = 8
    KNOWN_AT = 10
    LABELS_AT = 18
    IMPORTED = 0xFCFF                # the bits of the protocols and of the importer

    EXPORTS = 1 << 20                # has __dlpack__
    HAS_DLPACK_DEVICE = 1 << 21      # has __dlpack_device__
    ARROW_DEVICE = 1 << 27           # has __arrow_c_device_array__
    ARROW_ARRAY = 1 << 28            # has __arrow_c_array__
    COMPUTED = 1 << 30               # set in every record, so that a record is never 0

    REMEMBERED_TYPES = 4096          # slots of the cache; each type can use two slots, and evicts an entry if both are used

    REMEMBERED_WRAPPERS = 256
    REMEMBERED_ARRAY_TYPES = 1024

# The deviations of a library. The table of libraries contains their names.
cpdef enum Trait:
    ARROW_STREAM_FIRST = 1 << 8      # __arrow_c_array__ copies; __arrow_c_stream__ shares memory
    ARROW_IS_LAZY = 1 << 9           # __arrow_c_stream__ runs a query, whose result always has columns
    ARROW_BYTES_ARE_OBJECTS = 1 << 16    # fixed-size binary in Arrow contains addresses of Python objects
    SYCL_IS_READONLY = 1 << 17       # the SYCL dict reports read-only memory as writable
    LEGACY_IS_WRITABLE = 1 << 22     # legacy DLPack capsules are writable, as are all arrays of the library
    NO_STREAM_IS_NONE = 1 << 23      # __dlpack__ fails for stream=-1, and treats None as the standard's -1
    BORROWS = 1 << 24                # DLPack tensors do not keep the owner of their memory alive
    SILENT_ON_DEFAULT = 1 << 25      # the CUDA dict omits the default stream, on which a kernel may run
    DLPACK_BY_IMPORTER = 1 << 26     # the library's importer calls __dlpack__, and works around defects of this method
    ARROW_ARRAY_FIRST = 1 << 29      # __arrow_c_array__ rejects device memory, and is faster for host memory

ctypedef unsigned int (*ComputeRecord)(type cls) except 0

cdef TypeNote records[REMEMBERED_TYPES]
cdef TypeNote wrappers[REMEMBERED_WRAPPERS]      # the row of a wrapper type, as a number that `convert/dispatch` assigns
cdef TypeNote array_types[REMEMBERED_ARRAY_TYPES]      # what `convert/target` knows of a type, as a number that it assigns

cdef void register_compute_record(ComputeRecord compute_record)
cdef unsigned int learn(object cls) except 0
cdef void write_since(int computed_in, TypeNote* notes, uintptr_t slots, PyTypeObject* cls, unsigned int version,
                      unsigned int facts) noexcept
cdef unsigned int number_of(list values, dict numbers, object key, object value) except 0
cpdef int types_generation() noexcept


cdef inline unsigned int record_of(object obj) except 0:
    """Return the record of the type of `obj`. Compute the record if the type is new or has changed."""
    cdef unsigned int record = recall(records, REMEMBERED_TYPES, Py_TYPE(obj))
    return record if record != 0 else learn(type(obj))


cdef inline unsigned int record_of_type(object cls) except 0:
    """Return the record of a type. Compute the record if the type is new or has changed."""
    cdef unsigned int record = recall(records, REMEMBERED_TYPES, <PyTypeObject*> cls)
    return record if record != 0 else learn(cls)
