"""Test `check`, which describes differences between the interfaces of an object."""

import ctypes
import warnings

import numpy as np
import pytest
from exporters import Shows
from optional import optional
from producers import lending, producer, raising

import arrayhub
from arrayhub import check


def described(a, **changes):
    return dict(shape=a.shape, typestr=a.dtype.str, data=(a.ctypes.data, False), strides=a.strides, version=3) | changes


torch, jnp, dpnp = map(optional, ("torch", "jax.numpy", "dpnp"))
PLAIN = np.arange(24.0).reshape(2, 3, 4)
FROZEN = PLAIN.copy()
FROZEN.flags.writeable = False
AGREEING = {
    "numpy": lambda: PLAIN,
    "numpy view": lambda: PLAIN[::-1, :, ::2],
    "numpy read-only": lambda: FROZEN,
    "numpy swapped": lambda: PLAIN.astype(">f4"),
    "numpy dates": lambda: PLAIN.astype("M8[s]"),
    "numpy empty": lambda: PLAIN[:0],
    "numpy record": lambda: np.zeros(3, [("a", "i1"), ("b", "f8")]),
    "bytes": lambda: b"abc",
    "torch": lambda: torch.ones(3, 2).T,
    "jax": lambda: jnp.ones(3),
    "dpnp": lambda: dpnp.ones((3, 4))[1:],
    "USMArray": lambda: arrayhub.ones((3, 4), layout="F", alignment=64),
    "USMArray on a device": lambda: arrayhub.ones((3, 4), memory="usm_device"),
    "USMArray on shared memory": lambda: arrayhub.ones((3, 4), memory="usm_shared"),
    "USMArray read-only": lambda: arrayhub.asarray(FROZEN),
}


@pytest.mark.parametrize("name", AGREEING)
def test_interfaces_of_real_arrays_agree(name):
    assert check(AGREEING[name]()) == []


DISAGREEMENTS = {
    "pointer": lambda a: (
        described(a[:2]),
        dict(data=(a[1:].ctypes.data, False), shape=(2, 4)),
        f"pointer: __array_interface__ says {a.ctypes.data:#x}, __cuda_array_interface__ says {a[1:].ctypes.data:#x}",
    ),
    "shape": lambda a: (
        described(a),
        dict(shape=(1, 4)),
        "shape: __array_interface__ says (3, 4), __cuda_array_interface__ says (1, 4)",
    ),
    "strides": lambda a: (described(a), dict(strides=(8, 24)), "strides in bytes: __array_interface__ says (32, 8)"),
    "element type": lambda a: (described(a), dict(typestr="<i8"), "element type: __array_interface__ says float64"),
    "access": lambda a: (described(a), dict(data=(a.ctypes.data, True)), "access: __array_interface__ says read-write"),
}


@pytest.mark.parametrize("key", DISAGREEMENTS)
def test_each_difference_is_reported_once(key):
    a = np.zeros((3, 4))
    first, second, words = DISAGREEMENTS[key](a)
    texts = check(Shows(__array_interface__=first, __cuda_array_interface__=described(a, **second), owner=a))
    assert len(texts) == 1 and words in texts[0], texts


def test_invalid_description_is_reported():
    a = np.zeros((3, 4))
    texts = check(
        Shows(__array_interface__=described(a), __cuda_array_interface__=described(a, typestr="nonsense"), owner=a)
    )
    assert len(texts) == 1
    assert texts[0].startswith("__cuda_array_interface__ violates its specification: ") and "typestr" in texts[0]
    (text,) = check(Shows(__array_interface__=5))
    assert text.startswith("__array_interface__ violates its specification: ")


def test_dlpack_tensor_of_other_memory_is_reported():
    texts = check(tensor(lending(np.zeros(4))))
    assert [text.partition(":")[0] for text in texts] == ["pointer", "shape"]


SOUND = np.zeros(3)


def tensor(dlpack, **attributes):
    """Return an object with a correct ``__array_interface__`` and with the method `dlpack` as its ``__dlpack__``."""
    return producer(__array_interface__=described(SOUND), __dlpack__=dlpack, **attributes)


def test_missing_read_only_flag_of_a_legacy_capsule_is_not_reported():
    assert check(tensor(lambda self, stream=None: SOUND.__dlpack__())) == []


def test_no_legacy_capsule_is_requested_after_the_producer_s_own_type_error():
    pa = pytest.importorskip("pyarrow")
    lists = pa.array([[1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # pyarrow warns of requests for a legacy capsule
        assert check(lists) == []
        arrayhub.explain(lists)


def test_interface_that_raises_buffer_error_is_not_reported():
    assert check(tensor(raising(BufferError("not today")))) == []


@pytest.mark.parametrize("answer", [5, None, "dltensor"])
def test_invalid_capsule_is_reported(answer):
    (text,) = check(tensor(lambda self, **options: answer))
    assert text.startswith(
        f"__dlpack__ violates its specification: DLPack: __dlpack__() is {answer!r}; accepted: a capsule"
    )


class Mute(Exception):
    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "words"),
    [(KeyError("shape"), "KeyError: 'shape'"), (OSError("gone"), "OSError: gone"), (Mute(), "Mute")],
    ids=["KeyError", "OSError", "Mute"],
)
def test_failing_interface_is_reported(error, words):
    """After a failing interface, the remaining interfaces are still compared."""
    by_call = check(tensor(raising(error)))
    by_getter = check(tensor(lending(np.zeros(4)), __cuda_array_interface__=property(raising(error))))
    assert len(by_call) == 1 and by_call[0].startswith("__dlpack__ fails with ") and words in by_call[0]
    assert len(by_getter) == 3 and words in by_getter[0]
    assert by_getter[0].startswith("__cuda_array_interface__ fails with ")
    assert [text.partition(":")[0] for text in by_getter[1:]] == ["pointer", "shape"]


def test_python_objects_are_rejected():
    """NumPy's interfaces for arrays of Python objects agree and are valid, so `check` would not find a difference."""
    x = np.array([None, 1])
    with pytest.raises(TypeError, match=r"check can view, only values.*arrayhub\.check\(arrayhub\.asnested\(x\)\)"):
        check(x)
    assert check(arrayhub.asnested(x)) == []


@pytest.mark.parametrize("x", ["t.tensor([1j]).conj()", "p.Series([0, 1], dtype='Sparse[int]')", "p.Series([1, 'a'])"])
def test_error_about_values_names_a_call_that_works(x):
    x = eval(x, {"t": pytest.importorskip("torch"), "p": pytest.importorskip("pandas")})
    with pytest.raises(arrayhub.Refusal) as raised:
        check(x)
    assert raised.value.call == "" or eval(raised.value.call, {"arrayhub": arrayhub, "x": x}) is not None


def test_object_whose_interfaces_all_fail_raises():
    import torch

    with pytest.raises(BufferError, match=r"x\.detach\(\)"):
        check(torch.ones(3, requires_grad=True))


def test_object_without_interfaces_raises():
    for obj in (3, object(), ctypes.py_object):
        with pytest.raises(TypeError):
            check(obj)


def test_recursion_error_propagates():
    class Recursing:
        memory = np.arange(3)
        __array_interface__ = memory.__array_interface__

        def __dlpack__(self, **kwargs):
            return self.__dlpack__(**kwargs)

    with pytest.raises(RecursionError):
        check(Recursing())
