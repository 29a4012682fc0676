"""Compare replacements of scikit-learn's `move_to` and `_convert_to_numpy` with the installed scikit-learn."""

import numpy as np
import pytest

import arrayhub as ah

pytestmark = pytest.mark.slow

_array_api = pytest.importorskip("sklearn.utils._array_api")
sparse = pytest.importorskip("scipy.sparse")

VALUES = np.arange(12.0, dtype="f4").reshape(3, 4)


def move_to(*arrays, xp):
    """Convert arrays to the namespace `xp`. Return None unchanged, and also sparse matrices if `xp` is NumPy."""
    unchanged = (type(None), sparse.sparray, sparse.spmatrix) if xp is np else type(None)
    device = ah.asarray(xp.zeros(1)).device
    moved = tuple(x if isinstance(x, unchanged) else ah.convert(x, xp, copy=None, device=device) for x in arrays)
    return moved[0] if len(moved) == 1 else moved


def convert_to_numpy(array):
    """Convert an array of any library to a NumPy array."""
    return ah.as_numpy(array, copy=None, device="cpu")


def move_beside(reference, *arrays):
    """Convert arrays to the library and the device of `reference`."""
    place = ah.placement(reference)
    return tuple(place.convert(x, copy=None) for x in arrays)


def of(library, make):
    return lambda: make(pytest.importorskip(library))


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
def test_move_to_equals_scikit_learns_move_to(source, target):
    xp = pytest.importorskip(target)
    x = SOURCES[source]()
    expected = np.array(convert_to_numpy(x))
    result = move_to(x, xp=xp)
    assert type(result) is type(xp.asarray([1.0]))
    assert np.array_equal(ah.as_numpy(result, copy=None, device="cpu"), expected)
    theirs = moved_by_scikit_learn(x, xp)
    assert theirs is None or np.array_equal(convert_to_numpy(theirs), expected)


def test_scikit_learns_move_to_supports_fewer_combinations():
    served = 0
    for target in TARGETS:
        xp = pytest.importorskip(target)
        served += sum(moved_by_scikit_learn(make(), xp) is not None for make in SOURCES.values())
    assert 40 <= served < len(SOURCES) * len(TARGETS), served


def moved_by_scikit_learn(x, xp):
    """Return the result of scikit-learn's `move_to`, or None if it raises."""
    namespace, _, device = with_dispatch(_array_api.get_namespace_and_device, xp.asarray([1.0]))
    try:
        return with_dispatch(_array_api.move_to, x, xp=namespace, device=device)
    except Exception:
        return None


def test_move_to_returns_none_and_sparse_matrices_unchanged():
    matrix = sparse.csr_array(np.eye(2))
    assert move_to(None, matrix, xp=np) == (None, matrix)


@pytest.mark.parametrize("source", SOURCES)
def test_convert_to_numpy_equals_scikit_learns_function(source):
    x = SOURCES[source]()
    result = convert_to_numpy(x)
    assert type(result) is np.ndarray
    try:
        xp, _ = with_dispatch(_array_api.get_namespace, x)
    except TypeError:  # x does not follow the array API standard, for example a USMArray
        xp = np
    theirs = _array_api._convert_to_numpy(x, xp)
    assert result.dtype == theirs.dtype and np.array_equal(result, theirs)


@pytest.mark.parametrize("reference", ["numpy", "torch", "array_api_strict", "dpnp"])
@pytest.mark.parametrize("source", SOURCES)
def test_arrays_move_to_the_library_and_device_of_a_reference(source, reference):
    x, model = SOURCES[source](), SOURCES[reference]()
    (result,) = move_beside(model, x)
    assert type(result) is type(model)
    assert np.array_equal(convert_to_numpy(result), convert_to_numpy(x))
    xp, _, device = with_dispatch(_array_api.get_namespace_and_device, model)
    assert with_dispatch(_array_api.get_namespace_and_device, result)[::2] == (xp, device)


@pytest.fixture(autouse=True)
def _with_scipy(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # otherwise, scikit-learn rejects array_api_dispatch


def with_dispatch(function, *arguments, **keywords):
    """Call a function of scikit-learn with array API dispatch enabled."""
    with pytest.importorskip("sklearn").config_context(array_api_dispatch=True):
        return function(*arguments, **keywords)
