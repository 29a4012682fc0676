"""Test imports from jax and pyarrow, exports by `as_jax`, and the calls that the errors suggest."""

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
from children import python
from producers import producer, raising

import arrayhub as ah


def test_deleted_arrays_int4_arrays_and_keys_are_rejected():
    x = jnp.arange(3.0)
    x.delete()
    with pytest.raises(BufferError, match="jax: the array was deleted or donated"):
        ah.asarray(x)
    with pytest.raises(BufferError, match=r"jax: .*int4.*numpy\.asarray\(x\).* x\.astype\('float32'\)"):
        ah.asarray(jnp.zeros(4, jnp.int4))
    key = jax.random.key(0)
    with pytest.raises(
        TypeError, match=r"does not support an array protocol; .*Call arrayhub\.asarray\(jax\.random\.key_data\(x\)\)"
    ):
        ah.asarray(key)
    assert ah.asarray(jax.random.key_data(key)).shape == (2,)


@pytest.mark.slow
def test_replicated_and_sharded_arrays_are_rejected():
    """An array on several devices does not have one memory. The error names its parts, and the call that gathers it."""
    program = """
        import os
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        import jax, numpy as np, arrayhub as ah
        mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")), "d")
        P = jax.sharding.PartitionSpec
        for dtype in ("float32", "bfloat16"):
            for spec, second in ((P(), [0, 1, 2, 3]), (P("d"), [2, 3])):
                x = jax.device_put(np.arange(4).astype(dtype), jax.sharding.NamedSharding(mesh, spec))
                try:
                    ah.asarray(x)
                except BufferError as error:
                    words = str(error)
                    assert "spread over 2 devices" in words and "x.addressable_shards[i].data" in words, error
                    assert "jax.device_put(x, jax.devices()[0])" in words, error
                else:
                    raise AssertionError
                assert ah.asarray(jax.device_put(x, jax.devices()[0])).tolist() == [0, 1, 2, 3]
                assert ah.asarray(x.addressable_shards[1].data).tolist() == second
    """
    python(program)


@pytest.mark.parametrize(
    "transform", [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum())], ids=["jit", "vmap", "grad"]
)
def test_tracers_are_rejected(transform):
    def look(x):
        with pytest.raises((BufferError, TypeError), match="Tracer") as raised:
            ah.asarray(x)
        assert "outside of the transformed function" in str(raised.value)
        assert "numpy.asarray(x)" not in str(raised.value)
        return x

    transform(look)(jnp.arange(3.0))


@pytest.mark.parametrize("name", ["float4_e2m1fn", "int4"])
@pytest.mark.parametrize("take", [ah.as_numpy, ah.as_arrow, lambda x: ah.asarray(x, dtype="complex64")])
def test_error_for_sub_byte_types_suggests_a_conversion(name, take):
    if not hasattr(jnp, name):
        pytest.skip("an older jax")
    x = jnp.asarray([1, 0], getattr(jnp, name))
    with pytest.raises(BufferError) as raised:
        take(x)
    said = str(raised.value)
    assert "numpy.asarray(x)" in said and "x.astype('float32')" in said and "complex64" not in said
    assert ah.as_numpy(np.asarray(x)).tolist() == ah.as_numpy(x.astype("float32")).tolist() == [1, 0]


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("int4", "int8"),
        ("uint2", "uint8"),
        ("float4_e2m1fn", "float32"),
        ("float6_e2m3fn", "float32"),
        ("complex32", "complex64"),
        ("bcomplex32", "complex64"),
    ],
)
def test_error_of_as_jax_suggests_an_accepted_element_type(name, accepted, copy):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"this ml_dtypes does not have {name}")
    x = np.array([1, 0], getattr(ml_dtypes, name))
    with pytest.raises(BufferError, match="jax: ") as raised:
        ah.as_jax(x, copy=copy)
    assert f"dtype='{accepted}'" in str(raised.value)
    assert ah.as_jax(ah.asarray(x, dtype=accepted), copy=True).tolist() == [1, 0]


def test_arrow_arrays_and_buffers_use_different_protocols():
    """pyarrow's arrays are imported through DLPack, and its buffers through the buffer protocol."""
    assert ah.asarray(pa.array([1, 2])).protocol == "dlpack" and ah.asarray(pa.py_buffer(b"")).protocol == "buffer"
    assert ah.asarray(pa.py_buffer(b"abc")).access != "readwrite"


def test_buffer_error_of_dlpack_is_raised_despite_a_data_attribute():
    guarded = producer(data=np.arange(3), __dlpack__=raising(BufferError("for a reason")))
    with pytest.raises(BufferError, match="for a reason"):
        ah.asarray(guarded)


@pytest.mark.parametrize("keywords", [{}, {"copy": True}, {"device": "cpu"}, {"missing": 0}, {"missing": "nan"}])
def test_values_are_narrowed_whatever_the_keywords_are(keywords):
    assert not jax.config.jax_enable_x64
    own = {"copy": None, **keywords}
    for values in ([1, 2], [1.5, 2], (1, 2), [[1], [2]], np.array([1, 2], object)):
        x = ah.as_jax(values, **own)
        floats = keywords.get("missing") == "nan" or any(isinstance(value, float) for value in values)
        assert x.dtype == ("float32" if floats else "int32") and x.tolist() == np.asarray(values).tolist()
    if "missing" in keywords:
        assert ah.as_jax([1, None], **keywords)[0] == ah.as_jax(np.array([1, None], object), **keywords)[0] == 1
    with pytest.raises(OverflowError, match="int32"):
        ah.as_jax([2**40, 1], device="cpu")
    masked, mask = ah.as_jax([1, None], missing="mask")
    assert masked.dtype == "int32" and mask.tolist() == [False, True]
