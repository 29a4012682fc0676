"""A replacement of scikit-learn's `move_to` in a few lines, with the installed scikit-learn as the judge."""

import numpy as np
import pytest

import arrayhub as ah

_array_api = pytest.importorskip("sklearn.utils._array_api", reason="scikit-learn is part of the extra test")
sparse = pytest.importorskip("scipy.sparse", reason="scipy is part of the extra test")

VALUES = np.arange(12.0, dtype="f4").reshape(3, 4)


def move_to(*arrays, xp):
    """Return arrays as those of the namespace `xp`; None and sparse matrices for NumPy are returned unchanged."""
    unchanged = (type(None), sparse.sparray, sparse.spmatrix) if xp is np else type(None)
    moved = tuple(x if isinstance(x, unchanged) else ah.like(x, xp, copy="if_needed") for x in arrays)
    return moved[0] if len(moved) == 1 else moved


def of(library, make):
    return lambda: make(pytest.importorskip(library, reason=f"{library} is part of the extra test"))


SOURCES = {
    "numpy": lambda: VALUES.copy(),
    "Fortran order": lambda: np.asfortranarray(VALUES),
    "negative strides": lambda: VALUES[::-1, ::-1],
    "sliced": lambda: VALUES[:, ::2],
    "read-only": lambda: np.frombuffer(VALUES.tobytes(), "f4").reshape(3, 4),
    "empty": lambda: np.zeros((0, 4), "f4"),
    "integers": lambda: np.arange(6, dtype="i4").reshape(2, 3),
    "booleans": lambda: np.array([True, False]),
    "one dimension": lambda: VALUES[0].copy(),
    "torch": of("torch", lambda torch: torch.arange(6, dtype=torch.float32)),
    "torch transposed": of("torch", lambda torch: torch.arange(6.0).reshape(2, 3).T),
    "jax": of("jax", lambda jax: jax.numpy.arange(6, dtype="f4")),
    "array_api_strict": of("array_api_strict", lambda strict: strict.asarray(VALUES)),
    "dpnp": of("dpnp", lambda dpnp: dpnp.asarray(VALUES)),
    "USMArray": lambda: ah.asarray(VALUES.copy()),
    "pandas": of("pandas", lambda pandas: pandas.Series([1.0, 2.0], dtype="f4")),
}
TARGETS = ("numpy", "torch", "jax.numpy", "array_api_strict", "dpnp")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_move_to_serves_what_scikit_learn_serves(source, target):
    xp = pytest.importorskip(target, reason=f"{target} is part of the extra test")
    x = SOURCES[source]()
    expected = np.array(ah.as_numpy(ah.asarray(x), copy="if_needed"))
    result = move_to(x, xp=xp)
    assert type(result) is type(xp.asarray([1.0]))
    assert np.array_equal(ah.as_numpy(result, copy="if_needed"), expected)
    if target in ("numpy", "torch", "array_api_strict"):
        with_dispatch = pytest.importorskip("sklearn").config_context(array_api_dispatch=True)
        device = {"numpy": "cpu", "torch": "cpu"}.get(target) or xp.asarray([1.0]).device
        try:
            with with_dispatch:
                theirs = _array_api.move_to(x, xp=xp, device=device)
        except Exception:
            return  # scikit-learn does not serve this cell
        assert np.array_equal(ah.as_numpy(theirs, copy="if_needed"), expected)


def test_none_and_sparse_matrices_are_unchanged():
    matrix = sparse.csr_array(np.eye(2))
    assert move_to(None, matrix, xp=np) == (None, matrix)
