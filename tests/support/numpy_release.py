"""Features of the installed NumPy that differ between releases."""

import numpy as np
import pytest

NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
HAS_DLPACK_1 = NUMPY >= (2, 1)  # NumPy 2.0 exports and requests only legacy capsules, which lack a read-only flag
FROM_DLPACK_WRITES = NUMPY >= (2, 2)  # before 2.2, all results of numpy.from_dlpack are read-only

needs_dlpack_1 = pytest.mark.skipif(not HAS_DLPACK_1, reason="NumPy 2.0 supports only legacy DLPack, without `device`")

# numba-cuda 0.30.4 uses np.row_stack, which NumPy 2.5 removed, while it imports its compiler.
WITH_ROW_STACK = """
import numpy as np
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
"""
