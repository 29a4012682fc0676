from arrayhub._core.descriptor cimport Descriptor

ctypedef Descriptor (*Way)(object obj, object stream)
ctypedef object (*Out)(Descriptor a, bint copied, bint allow_readonly)
ctypedef int (*See)() except -1

cdef enum:
    MOST_WAYS = 64


cdef class Library:
    """One row of the table."""
    cdef readonly str name              # as it is imported, and as `convert` says it where it takes arrays
    cdef readonly str install           # the command that installs it; None: nobody needs to be told
    cdef readonly dict by_driver        # the commands for other CUDA drivers, by major version
    cdef readonly dict environ          # what the environment says so that making the sample changes nothing on the machine
    cdef readonly object sample         # makes an array of it, from the module; its type where there is no device for one
    cdef readonly tuple roots           # first parts of the names of the modules that its types are defined in
    cdef readonly unsigned int traits   # what it does otherwise than the specifications have it (adapters/type_cache)
    cdef readonly str like              # the library whose arrays stand for its own where it takes none; its own name
    cdef readonly str call              # the name of the function that gives its arrays; None: it takes none by a call
    cdef readonly str device_type       # where its arrays lie
    cdef readonly bint reads_host       # whether they may lie on the host besides
    cdef Out out
    cdef See see                        # looks for it before memory is copied for it; NULL: nothing has to

    cdef Library takes(self, object recognise, Way way, Way plain)
    cdef Library gives(self, Out out, str device_type, bint reads_host, See see=*)


# The ways in of known types, by the number that a type's record has (0: not known).
cdef Way ways[MOST_WAYS]

cdef int way_of_type(type cls) except -1
cdef Library library_of_type(type cls, int way)
cdef Library library(str name)
