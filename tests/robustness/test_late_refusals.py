"""References are released exactly once if a consumer rejects an array after it has taken ownership.

For example, torch 2.13 calls the deleter but does not rename the capsule, so the capsule's destructor calls the deleter
again. Each library is tested in a separate process, because a double free would crash the process.
"""

import importlib.util

import pytest
from children import python

pytestmark = pytest.mark.slow

CONSUMERS = {
    "torch": [
        "ah.as_torch(x)",
        "ah.as_torch(x, allow_readonly=True)",
        "ah.as_torch(x, copy=True)",
        "torch.from_dlpack(x)",
        "torch.as_tensor(x)",
        "torch.tensor(x)",
        "torch.from_dlpack(x.__dlpack__(max_version=(1, 1))) if steps_forwards(x) else None",
        "torch.from_dlpack(x.__dlpack__()) if steps_forwards(x) else None",
    ],
    "numpy": ["np.from_dlpack(x)", "np.asarray(x)", "np.array(x)", "ah.as_numpy(x)", "memoryview(x)", "bytes(x)"],
    "jax": ["ah.as_jax(x)", "ah.as_jax(x, copy=True)", "jax.dlpack.from_dlpack(x)", "jax.numpy.asarray(x)"],
    "dpnp": ["dpnp.from_dlpack(x)", "dpnp.asarray(x)"],
    "tvm_ffi": ["tvm_ffi.from_dlpack(x)", "tvm_ffi.convert(x)"],
    "pyarrow": ["pyarrow.array(x)", "ah.as_arrow(x)", "pyarrow.Tensor.from_numpy(x)", "pyarrow.py_buffer(x)"],
    "polars": ["ah.as_polars(x)"],
    "pandas": ["ah.as_pandas(x)", "pandas.Series(x)", "pandas.DataFrame(x)"],
    "awkward": ["ah.as_awkward(x)", "awkward.from_dlpack(x)"],
    "nanoarrow": ["nanoarrow.c_array(x)", "nanoarrow.Array(x)"],
    "numba": ["ah.as_numba(x)"],
    "onnxruntime": ["onnxruntime.OrtValue.from_dlpack(x)"],
    "array_api_strict": ["array_api_strict.from_dlpack(x)"],
    "scipy": ["scipy.ndimage.sum(x)"],
}

PROGRAM = """
import gc, importlib, sys, warnings
import numpy as np
import arrayhub as ah
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

warnings.simplefilter("ignore")
globals()[NAME] = importlib.import_module(NAME)
if NAME in ("jax", "scipy"):
    importlib.import_module({"jax": "jax.dlpack", "scipy": "scipy.ndimage"}[NAME])

def steps_forwards(x):      # torch ends the process on capsules with negative strides
    return all(step >= 0 or n < 2 for step, n in zip(x.byte_strides, x.shape))

NAMES = ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "M8[s]", "S3", "U2", "V5"]
NAMES.append([("a", "i4"), ("b", "f8")])
DTYPES = [np.dtype(name) for name in NAMES]
if ml_dtypes is not None:
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3b11fnuz", "int4", "uint4",
                 "float4_e2m1fn"):
        DTYPES += [np.dtype(getattr(ml_dtypes, name))] if hasattr(ml_dtypes, name) else []
HUGE = 2**62
LAYOUTS = [     # shape, strides; the buffer has 64 bytes
    ((3, 2, 0), (-8, HUGE, 8)), ((3, 2, 0), (8, HUGE, 8)), ((0, 3), (HUGE, HUGE)), ((0, 3), (-HUGE, -HUGE)),
    ((0,), (-1,)),
    ((0,), (3,)), ((5, 0), (HUGE, 1)), ((2, 0, 2**40), (-HUGE, 7, HUGE)), ((0, 0), (0, 0)), ((1, 0), (-HUGE, -HUGE)),
    ((2, 2), (0, 0)), ((4,), (0,)),
]

def arrays():
    for dtype in DTYPES:
        size = dtype.itemsize
        memory = np.zeros(64 + size, "u1")
        for shape, strides in LAYOUTS:
            for writeable in (True, False):
                source = np.ndarray(shape, dtype, memory, 0, strides)
                source.flags.writeable = writeable
                yield source
        base = np.zeros((4, 4), dtype)
        for source in (base, base[::-1], base[:, ::2], base.T, base[:0], base[0, 0], base[2:1:-1, ::-3]):
            yield source

def call(consumer, x):
    try:
        consumer(x)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        pass

calls = 0
for text in CALLS:
    consumer = eval("lambda x: " + text)
    for source in arrays():
        x = ah.asarray(source)
        spare = [x] * 50      # an excess release changes the count, but does not free the array
        call(consumer, x)      # fills the caches of the library
        for collect in (False, True):      # exceptions of some libraries hold the array until cycles are collected
            if collect:
                gc.collect()
            before = sys.getrefcount(x), sys.getrefcount(source)
            for _ in range(4):
                call(consumer, x)
            if collect:
                gc.collect()
            after = sys.getrefcount(x), sys.getrefcount(source)
            if after == before:
                break
        assert after == before, (text, source.dtype, source.shape, source.strides, before, after)
        calls += 5
print(calls)
"""


@pytest.mark.parametrize("library", CONSUMERS)
def test_late_rejection_keeps_reference_counts(library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    calls = [
        text for text in CONSUMERS[library] if not (library == "dpnp" and importlib.util.find_spec("dpctl") is None)
    ]
    assert int(python(f"NAME, CALLS = {library!r}, {calls!r}\n" + PROGRAM).split()[-1]) > 0


FLOATS = ("float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu")


@pytest.mark.parametrize("dtype", ["bool", "int8", *FLOATS])
def test_torch_accepts_empty_arrays_with_any_strides(dtype):
    pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    program = f"""
        import ml_dtypes, torch
        import numpy as np
        import arrayhub as ah

        element = np.dtype(getattr(ml_dtypes, {dtype!r}, {dtype!r}))
        x = ah.asarray(np.ndarray((3, 2, 0), element, np.zeros(8), 0, (-8, 2**62, 8)))
        assert 0 <= min(x.byte_strides) and max(x.byte_strides) < 2**40
        for _ in range(100):
            for tensor in (ah.as_torch(x), torch.from_dlpack(x), torch.from_dlpack(x.__dlpack__())):
                assert tuple(tensor.shape) == (3, 2, 0)
        assert ah.as_numpy(x).shape == (3, 2, 0)
    """
    python(program)
