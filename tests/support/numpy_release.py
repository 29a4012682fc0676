"""Features of the installed NumPy that differ between releases."""

import numpy as np
import pytest

NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
HAS_DLPACK_1 = NUMPY >= (2, 1)  # 2.0 gives legacy capsules and asks for them; they cannot say who may write
FROM_DLPACK_WRITES = NUMPY >= (2, 2)  # before, what numpy.from_dlpack returns is read-only, whatever the capsule says

needs_dlpack_1 = pytest.mark.skipif(not HAS_DLPACK_1, reason="NumPy 2.0 knows legacy DLPack alone, and no device=")

# numba-cuda 0.30.4 refers to np.row_stack, which NumPy 2.5 removed, when it is imported to compile kernels.
WITH_ROW_STACK = """
import numpy as np
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
"""
