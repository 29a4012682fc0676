"""Test that TensorFlow tensors whose elements are not numbers raise before their ``__dlpack__`` crashes the process."""

import importlib.util

import pytest
from children import python

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None,
        reason="tensorflow is not in the extra 'test-all': pip install tensorflow-cpu",
    ),
]

TENSORS = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import arrayhub as ah
import tensorflow as tf

TENSORS = {
    "strings": tf.constant(["a", "b"]),
    "one string": tf.constant("a"),
    "no strings": tf.zeros((0,), tf.string),
    "variant": tf.raw_ops.EmptyTensorList(element_shape=tf.constant([2]), max_num_elements=1, element_dtype=tf.float32),
    "resource": tf.Variable([1.0]).handle,
}
"""

CALLS = {
    "asarray": "ah.asarray(x)",
    "asarray of a list": "ah.asarray([x])",
    "asarray of nested lists": "ah.asarray([[1.0], [x]], dtype='f4')",
    "full": "ah.full((2,), x)",
    "an assignment": "ah.zeros((1, 2)).__setitem__(slice(None), [x])",
    "via": "ah.asarray(x, via='dlpack')",
    "from_dlpack": "ah.from_dlpack(x)",
    "as_numpy": "ah.as_numpy(x, copy=True)",
    "asnested": "ah.asnested(x)",
    "convert": "ah.convert(x, 'torch')",
    "explain": "str(ah.explain(x))",
    "check": "ah.check(x)",
    "debug_repr": "ah.debug_repr(x)",
}


@pytest.mark.parametrize("call", CALLS)
def test_tensors_without_numbers_are_rejected(call):
    """`explain` and `check` may return a result. All other calls raise an error that names the dtype."""
    describes = call in ("explain", "check")
    python(
        TENSORS
        + f"""
for name, x in TENSORS.items():
    try:
        {CALLS[call]}
    except (BufferError, TypeError, ValueError) as error:
        assert "dtype" in str(error), (name, error)
    else:
        assert {describes}, name
"""
    )


def test_the_call_suggested_for_a_tensor_works():
    python(
        TENSORS
        + """
import re
for name, values in {"strings": [b"a", b"b"], "one string": b"a", "no strings": []}.items():
    x = TENSORS[name]
    try:
        ah.asarray(x)
    except BufferError as error:
        call = re.search("Call ([^,]*)(, which returns its bytes)?$", str(error))[1]
    given = eval(call, {"arrayhub": ah, "x": x})
    assert (given.to_list() if isinstance(given, ah.NestedArray) else given) == values
for via in (None, "dlpack"):
    assert ah.asarray(tf.constant([1.0, 2.0]), via=via).tolist() == [1.0, 2.0]
assert ah.check(tf.constant([1.0, 2.0])) == []
"""
    )


# Objects, the call that the error for each object names, and its result.
NAMED = """
NAMED = [
    (tf.Variable(["a", "b"]), "arrayhub.asnested(x.numpy().tolist())", [b"a", b"b"]),
    (tf.Variable("a"), "x.numpy()", b"a"),
    (tf.ragged.constant([["a"], ["b", "c"]]), "arrayhub.asnested(x.to_list())", [[b"a"], [b"b", b"c"]]),
    (
        tf.sparse.from_dense([["a", ""], ["", "b"]]),
        "arrayhub.asnested(tensorflow.sparse.to_dense(x).numpy().tolist())",
        [[b"a", b""], [b"", b"b"]],
    ),
]
"""


def test_the_call_suggested_for_variables_ragged_and_sparse_tensors_works():
    python(
        TENSORS
        + NAMED
        + """
for x, call, values in NAMED:
    try:
        ah.asarray(x)
    except TypeError as error:
        assert f"pass {call}" in str(error), error
    else:
        raise AssertionError(x)
    given = eval(call, {"arrayhub": ah, "tensorflow": tf, "x": x})
    assert (given.to_list() if isinstance(given, ah.NestedArray) else given) == values
"""
    )


def test_symbolic_tensors_of_a_graph_are_rejected():
    python(
        TENSORS
        + """
traced = []
for dtype in (tf.float32, tf.string):
    tf.function(traced.append).get_concrete_function(tf.TensorSpec((2,), dtype))
for x in traced:
    try:
        ah.asarray(x)
    except TypeError as error:
        pass
    else:
        raise AssertionError(x)
"""
    )
