"""Features of the installed NumPy that differ between releases."""

import numpy as np
import pytest

NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
HAS_DLPACK_1 = NUMPY >= (2, 1)  # 2.0 exports and requests only legacy capsules, which cannot represent read-only memory
FROM_DLPACK_WRITES = NUMPY >= (2, 2)  # before 2.2, all results of numpy.from_dlpack are read-only

needs_dlpack_1 = pytest.mark.skipif(not HAS_DLPACK_1, reason="NumPy 2.0 supports only legacy DLPack, without device=")

# numba-cuda 0.30.4 uses np.row_stack, which NumPy 2.5 removed, when its modules for the compilation of kernels are
# imported.
WITH_ROW_STACK = """
import numpy as np
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
"""
