from arrayhub.adapters.arrow_abi cimport ArrowSchema
from arrayhub.adapters.arrow_owner cimport Import

cdef object build_root(Import owner, ArrowSchema* schema)
