"""as_scipy returns SciPy's arrays and matrices."""

import numpy as np
import pytest

import arrayhub as ah

scipy = pytest.importorskip("scipy.sparse")

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("format", FORMATS)
def test_scipy_objects_are_returned_unchanged(format, kind):
    given = getattr(scipy, f"{format}_{kind}")(np.array([[1.0, 2.0], [0.0, 3.0]]))
    for copy in (False, None):
        assert ah.as_scipy(given, copy=copy) is ah.convert(given, "scipy", copy=copy) is given
    copied = ah.as_scipy(given, copy=True)
    assert type(copied) is type(given) and copied is not given
    assert (copied * copied).toarray().tolist() == (given * given).toarray().tolist()
    if format in ("csr", "csc"):
        assert not np.shares_memory(copied.data, given.data) and not np.shares_memory(copied.indices, given.indices)
    with pytest.raises(TypeError, match="as_scipy: copy is 'perhaps'"):
        ah.as_scipy(given, copy="perhaps")


def test_adapted_functions_receive_matrices_as_matrices():
    given = scipy.csc_matrix([[1.0, 2.0], [0.0, 3.0]])
    squared = ah.adapt("numpy")(lambda x: x * x)(given)
    assert type(squared) is scipy.csc_matrix and squared.toarray().tolist() == [[1, 8], [0, 9]]
