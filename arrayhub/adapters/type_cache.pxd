"""What is known of the types that producers have: one record per type, worked out once and remembered.

A record says which protocols a type may speak, which way of its own it comes in by, and what its library does otherwise
than the specifications have it. Adapters read it and know no library by name; `dispatch` fills it in from the protocols
and from the table of libraries.
"""

from cpython.object cimport PyTypeObject, Py_TYPE

from arrayhub._core.cpython.type_notes cimport TypeNote, recall

cdef enum:
    # A record, from the lowest bit on: one bit for each row of `table`, set if the type may support the protocol; the number of
    # the importer of a known library; then single bits, and two bits for how its objects name dimensions.
    PROTOCOL_BITS = 8
    KNOWN_AT = 10
    LABELS_AT = 18

    ARROW_STREAM_FIRST = 1 << 8          # its __arrow_c_array__ copies what its __arrow_c_stream__ shares
    ARROW_IS_LAZY = 1 << 9               # its __arrow_c_stream__ runs a query, whose result always has columns
    SYCL_IS_READONLY = 1 << 17           # its SYCL dicts say writable of memory that is read-only

    ARROW_BYTES_ARE_OBJECTS = 1 << 16    # its fixed-size bytes in Arrow are the addresses of Python objects
    EXPORTS = 1 << 20                # has __dlpack__
    SAYS_DEVICE = 1 << 21            # has __dlpack_device__
    LEGACY_IS_WRITABLE = 1 << 22     # its legacy DLPack capsules mean memory that may be written, as all its arrays may
    NO_STREAM_IS_NONE = 1 << 23      # its __dlpack__ fails on the stream -1, and means by None what the standard means by -1
    BORROWS = 1 << 24                # its DLPack tensors do not hold all that their memory lies in
    SILENT_ON_DEFAULT = 1 << 25      # its CUDA dicts say "no stream" of the default one, where a kernel may be at work
    DLPACK_BY_OWN_WAY = 1 << 26      # its __dlpack__ is not called: its library's module knows what that gets wrong

    ARROW_DEVICE = 1 << 27           # has __arrow_c_device_array__
    ARROW_ARRAY = 1 << 28            # has __arrow_c_array__
    ARROW_ARRAY_FIRST = 1 << 29      # its __arrow_c_array__ refuses what is on a device, and takes less time where it is not

    WORKED_OUT = 1 << 30             # so that a record is never 0

    REMEMBERED_TYPES = 4096          # a type that finds both its places taken takes one of them

ctypedef unsigned int (*WorkOut)(type cls) except 0

cdef TypeNote records[REMEMBERED_TYPES]

cdef void register_work_out(WorkOut work_out)
cdef unsigned int learn(object cls) except 0


cdef inline unsigned int record_of(object obj) except 0:
    """The record of the type of `obj`; worked out where the type is new or has changed."""
    cdef unsigned int record = recall(records, REMEMBERED_TYPES, Py_TYPE(obj))
    return record if record != 0 else learn(type(obj))


cdef inline unsigned int record_of_type(object cls) except 0:
    """The same of a type in hand."""
    cdef unsigned int record = recall(records, REMEMBERED_TYPES, <PyTypeObject*> cls)
    return record if record != 0 else learn(cls)
