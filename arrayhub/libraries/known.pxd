from arrayhub._core.descriptor cimport Descriptor

ctypedef Descriptor (*Importer)(object obj, object stream)
ctypedef object (*Exporter)(Descriptor a, bint copied, bint allow_readonly)
ctypedef object (*Copier)(Descriptor a)
ctypedef int (*CheckMemory)(Descriptor a, bint allow_readonly) except -1
ctypedef int (*CheckElements)(Descriptor a) except -1
ctypedef int (*Require)() except -1

cdef enum:
    MAX_IMPORTERS = 64

cdef enum:                 # numbers of the importers that `convert/dispatch` defines
    OWN_ARRAY = MAX_IMPORTERS - 1
    WRAPPER = MAX_IMPORTERS - 2    # a type whose row has a path or a function for it
    SPARSE = MAX_IMPORTERS - 3     # a sparse array, which the modules of sparse/ import


cdef class Library:
    """Row of the table."""
    cdef readonly str name              # name of the module; for a library with an exporter, also its name in `convert`
    cdef readonly str install           # command that installs the library; None if error messages do not name one
    cdef readonly dict by_driver        # installation commands for other CUDA drivers, keyed by major version
    cdef readonly dict environment        # environment variables to set before creating the sample
    cdef readonly object sample         # called with the module; returns a sample array, or the array type without a device
    cdef readonly tuple roots           # top-level modules that define the library's types
    cdef readonly unsigned int traits   # deviations from the specifications (adapters/type_cache)
    cdef readonly bint handled          # whether arrayhub has code for the library, not only types and advice
    cdef readonly str like              # library to which `like` exports if the model is of this library; by default this one
    cdef readonly str call              # function of a library with a compiled exporter, such as "as_torch", or None
    cdef readonly str device_type       # device type of its arrays; None if `convert` does not know it
    cdef readonly bint reads_host       # whether its arrays may also be in host memory
    cdef readonly tuple spellings
    cdef readonly str instead
    cdef readonly str export_by         # function of an upper layer that exports to the library, or None
    cdef readonly bint nests            # whether its arrays can be nested
    cdef readonly bint labels           # whether its functions align arrays by labels
    cdef readonly bint immutable        # whether none of its functions changes an array
    cdef readonly str sparse_by         # library of the sparse arrays in the same kind of memory, or None
    cdef readonly object emit           # a plug-in's function that creates arrays of the library, or None
    cdef readonly bint takes_model      # whether `emit` has a parameter for the model
    cdef readonly tuple recognizers     # kind and arguments of a predicate on types, for each importer
    cdef str module                     # module in this folder that sets the functions, or None
    cdef int loaded                     # whether the module is imported
    cdef int first_importer             # number of the library's first import function
    cdef readonly bint returns_own      # whether the export returns the library's own arrays unchanged
    cdef int own                        # number of importers for the arrays that the exporter creates
    cdef int first_own, last_own        # numbers of the import functions for the arrays that the exporter creates
    cdef Exporter exporter              # NULL before `load`, like the checks, which raise the errors of the exporter
    cdef CheckMemory check_memory
    cdef CheckElements check_elements
    cdef Require require                # checks that the library is installed, before memory is copied for it; may be NULL
    cdef Copier copier                  # copies by the library itself, or returns None; may be NULL

    cdef int add(self) except -1
    cdef int load(self) except -1
    cdef int set_importer(self, int k, Importer importer, Importer plain=*) except -1
    cdef int set_exporter(
        self, Exporter exporter, CheckMemory memory, CheckElements elements, Require require=*, Copier copier=*) except -1


# Import functions by number. The type cache stores the number of each type's import function (0: unknown type).
cdef Importer importers[MAX_IMPORTERS]

cdef int importer_of_type(type cls) except -1
cdef Library library_of_type(type cls, int importer)
cdef Library library(str name)
cdef int check_arrow_export(object obj) except -1
