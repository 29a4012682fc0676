"""Random sparse arrays of SciPy, torch and jax, whose indices, pointers and shapes may be inconsistent.

arrayhub must either reject the import, or export only indices within the shape.
"""

import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import scipy.sparse

import arrayhub as ah

TYPES = ["int32", "int64", "int32", "int16", "uint8", "float64", ">i4"]
WILD = [-1, 2**31 - 1, -(2**31), 10**6, 7, 8]
USES = {
    "to_dense": lambda x: x.to_dense(),
    **{f"to_{name}": lambda x, name=name: x.to_format(name).to_dense() for name in ("coo", "csr", "csc", "bsr", "bsc")},
    "canonical": lambda x: x.canonical,
    "as_scipy": lambda x: ah.as_scipy(x, copy=None).toarray(),
    "as_torch": lambda x: ah.as_torch(x, copy=None).to_dense(),
    "transposed": lambda x: x.T.to_dense(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)).to_dense(),
    "picture": lambda x: x._repr_html_(),
    "check": ah.check,
}


def _indices(r, count, most):
    """Draw indices. Most of them are less than `most`."""
    rate = r.choice([0, 0, 0, 0.1])
    values = [r.choice(WILD) if r.random() < rate else r.randint(0, max(most - 1, 0)) for _ in range(count)]
    dtype = r.choice(TYPES)
    return np.array(values, "int64").astype(dtype)


def _pointers(r, count, stored):
    rising = sorted(r.randint(0, stored) for _ in range(count + 1))
    rising[0], rising[-1] = 0, stored
    if r.random() < 0.3:
        rising[r.randint(0, count)] = r.choice([*WILD, stored + 1, 0])
    return np.array(rising, "int64").astype(r.choice(TYPES))


def _replaced(r, made, **parts):
    """Replace attributes of a SciPy array, which SciPy does not check, and truncate some. Return the array."""
    for name, value in parts.items():
        setattr(made, name, value if r.random() > 0.05 else value[: r.randint(0, len(value))])
    return made


def _scipy(r):
    shape = (r.randint(0, 9), r.randint(0, 9))
    format = r.choice(["coo", "csr", "csc", "bsr"])
    stored = r.randint(0, 20)
    data = np.ones(stored, r.choice(["float64", "int8", "bool", "complex64", "float16"]))
    made = getattr(scipy.sparse, f"{format}_array")(shape)
    if format == "coo":
        return _replaced(r, made, data=data, coords=tuple(_indices(r, stored, length) for length in shape))
    major, minor = shape if format != "csc" else shape[::-1]
    if format == "bsr":
        data = data.reshape(-1, 1, 1)
    return _replaced(
        r, made, data=data, indices=_indices(r, stored, minor), indptr=_pointers(r, r.choice([major, major, 3]), stored)
    )


def _torch(r):
    import torch

    shape = (r.randint(1, 9), r.randint(1, 9))
    stored = r.randint(0, 20)
    values = torch.ones(stored)
    dtype = r.choice([torch.int32, torch.int64])
    if r.random() < 0.4:
        rows, columns = (torch.from_numpy(_indices(r, stored, n).astype("int64")) for n in shape)
        return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, shape, check_invariants=False)
    by_columns, blocks = r.random() < 0.3, r.random() < 0.3
    major, minor = shape[::-1] if by_columns else shape
    batches = r.choice([1, 1, 2])
    indices = _batches(batches, lambda: _indices(r, stored, minor), dtype)
    pointers = _batches(batches, lambda: _pointers(r, major, stored), dtype)
    values = torch.ones(batches, stored, *[1, 1] * blocks)
    if batches == 1 and r.random() < 0.9:
        indices, pointers, values = indices[0], pointers[0], values[0]
    else:
        shape = (batches, *shape)
    name = {(0, 0): "csr", (0, 1): "csc", (1, 0): "bsr", (1, 1): "bsc"}[blocks, by_columns]
    return getattr(torch, f"sparse_{name}_tensor")(pointers, indices, values, shape, check_invariants=False)


def _batches(count, make, dtype):
    import torch

    return torch.stack([torch.from_numpy(make().astype("int64")).to(dtype) for _ in range(count)])


def _jax(r):
    """Return a BCSR or BCOO matrix. Some of its stored elements may be padding."""
    import jax.numpy as jnp
    from jax.experimental import sparse

    shape, stored = (r.randint(1, 9), r.randint(1, 9)), r.randint(0, 20)
    indices = _indices(r, stored, shape[1]).astype("int32")
    if r.random() < 0.5:
        pointers = _pointers(r, shape[0], stored).astype("int32")
        return sparse.BCSR((jnp.ones(stored), jnp.asarray(indices), jnp.asarray(pointers)), shape=shape)
    rows = _indices(r, stored, shape[0]).astype("int32")
    return sparse.BCOO((jnp.ones(stored), jnp.asarray(np.stack([rows, indices], 1))), shape=shape)


PRODUCERS = [_scipy, _scipy, _torch, _torch]
if find_spec("jax"):
    PRODUCERS.append(_jax)
if find_spec("sparse"):
    # pydata/sparse is used only for a round trip: Numba compiles the methods of pydata/sparse, and does not support
    # float16.
    USES["pydata_sparse"] = lambda x: ah.assparse(ah.convert(x, "pydata_sparse", copy=None)).to_dense()


def draw(r):
    """Draw a sparse array, and a call that imports and uses the array."""
    warnings.simplefilter("ignore")
    obj = r.choice(PRODUCERS)(r)
    use = r.choice(list(USES))
    seed = r.random()

    def call():
        x = ah.assparse(obj)
        found = USES[use](x)
        if use in ("to_dense", "as_scipy"):
            assert found.shape == x.shape

    return f"{use} of {type(obj).__name__} {tuple(obj.shape)}, {seed}", call
