from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters.arrow_abi cimport ArrowSchema

cdef enum:
    BOOL_CODE = 6          # DLPack's

cdef dict pairs_of(ArrowSchema* schema)
cdef object extended(object node, ArrowSchema* schema)
cdef bytes bool8_metadata()
cdef list memory_order(Descriptor a)
cdef bytes tensor_metadata(Descriptor a, list order)
