"""Test which tensors `asarray` rejects, which arrays `as_torch` rejects, and the calls that the errors suggest."""

import re

import numpy as np
import pytest
import torch
from children import python

import arrayhub as ah


class Sub(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, function, kinds, arguments=(), keywords=None):
        raise RuntimeError("no operations here")


class Refuses(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), keywords=None):
        raise RuntimeError("not today")


# Tensors that `asarray` rejects, and patterns of the error texts.
REFUSED = {
    "requires_grad": ("torch.ones(3, requires_grad=True)", r"x\.detach\(\)"),
    "computed with grad": ("torch.ones(3, requires_grad=True) * 2", r"x\.detach\(\)"),
    "Parameter": ("torch.nn.Parameter(torch.ones(3))", r"x\.detach\(\)"),
    "subclass with grad": ("torch.ones(3, requires_grad=True).as_subclass(Sub)", r"x\.detach\(\)"),
    "uninitialized": ("torch.nn.UninitializedParameter()", "torch: "),
    "conj": ("torch.ones(3, dtype=torch.complex64).conj()", r"x\.resolve_conj\(\)|x, copy=None"),
    "neg": ("torch.ones(3, dtype=torch.complex64).conj().imag", r"x\.resolve_neg\(\)|x, copy=None"),
    "sparse": (
        "torch.eye(3).to_sparse()",
        r"sparse_coo; accepted: torch.strided, as of x\.to_dense\(\)\. Call arrayhub\.as(array|sparse)\(",
    ),
    "csr": ("torch.eye(3).to_sparse_csr()", r"x\.to_dense\(\)"),
    "mkldnn": ("torch.eye(3).to_mkldnn()", r"x\.to_dense\(\)"),
    "meta": ("torch.empty(3, device='meta')", "'meta', without memory"),
    "nested": ("torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])", r"nested; accepted: x\.to_padded_tensor"),
    "jagged": ("torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)", r"x\.values\(\)"),
    "quantized": ("torch.quantize_per_tensor(torch.ones(3), 0.1, 10, torch.qint8)", r"x\.int_repr\(\)"),
    "zero": ("torch._efficientzerotensor((3,))", "torch: "),
    "resized": ("resized()", "storage was resized to 0 bytes"),
    "fake": ("fake()", "torch: "),
    "raising subclass": ("torch.ones(3).as_subclass(Refuses)", "not today"),
    "wrapper": ("torch.Tensor._make_wrapper_subclass(Wrapper, (3,), dtype=torch.float32)", "torch: "),
    "bits": ("torch.empty(3, dtype=torch.bits8)", r"dtype is torch\.bits8; .* Call x\.view\(torch\.uint8\)"),
    **{
        f"{name} {kind}": (
            f"torch.empty(3, dtype=torch.{name}){kind}",
            r"which torch exports as 8-bit integers.*x\.view\(torch.uint8\)",
        )
        for name in ("int4", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7")
        if hasattr(torch, name)  # torch added the signed types later than the unsigned types
        for kind in ("", ".as_subclass(Sub)")
    },
}


def resized():
    x = torch.ones(3)
    x.untyped_storage().resize_(0)
    return x


def fake():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(3)


@pytest.mark.slow
@pytest.mark.parametrize("via", [None, "dlpack"])
def test_tensors_with_a_state_that_memory_lacks_are_rejected(via):
    """asarray rejects tensors whose state their memory does not show. Runs in a subprocess, as torch may crash."""
    python(f"import sys, test_torch; sys.exit(test_torch.count_wrong_answers({via!r}))", beside=__file__)


def count_wrong_answers(via):
    import warnings

    warnings.simplefilter("ignore")  # torch's prototypes warn when they are created
    wrong = 0
    for name, (expression, words) in REFUSED.items():
        try:
            print(name, "was imported:", ah.asarray(eval(expression), via=via))
        except BufferError as error:
            if re.search(words, str(error)) and len(str(error)) < 400:
                continue
            print(name, "refused with:", error)
        wrong += 1
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("transform", ["vmap", "grad", "functionalize"])
def test_tensors_inside_a_transformed_function_are_rejected(transform):
    code = (
        "import torch, arrayhub as ah\nseen = []\n"
        "def look(x):\n"
        "    try: ah.asarray(x)\n"
        "    except BufferError as error: seen.append(str(error))\n"
        "    return x.sum()\n"
        f"torch.func.{transform}(look)(torch.arange(6.0).reshape(2, 3))\n"
        "assert len(seen) == 1 and len(seen[0]) < 400, seen\n"
    )
    python(code)


def test_tensors_without_a_gradient_are_viewed():
    with torch.inference_mode():
        inferred = torch.ones(3)
    grad = torch.ones(3, requires_grad=True)
    for x in (inferred, torch.ones(3).as_subclass(Sub), torch.nn.Parameter(torch.ones(3), requires_grad=False)):
        assert ah.asarray(x).ptr == x.data_ptr()
    assert ah.asarray(grad.detach()).ptr == grad.data_ptr()


@pytest.mark.parametrize("make", [lambda: torch.ones(3), lambda: torch.ones(2, 3)[1], lambda: torch.ones(3).detach()])
def test_requires_grad_is_checked_on_each_import(make):
    x = make()
    assert ah.asarray(x).ptr == x.data_ptr()
    x.requires_grad_()
    for asking in (x, x * 2, x[1:], (x * 2)[1:]):
        with pytest.raises(BufferError, match="requires_grad is True"):
            ah.asarray(asking)
    with torch.no_grad():
        result = x * 2
    assert ah.asarray(result).ptr == result.data_ptr()
    assert ah.asarray(x.requires_grad_(False)).ptr == x.data_ptr()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (1,)])
def test_negative_strides_that_are_not_used_are_exported(shape):
    x = np.zeros(shape)[..., ::-1]
    assert ah.as_torch(x).shape == shape


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">c16", "M8[s]", ">M8[s]", "m8[ns]", "g", ">g", "G"])
def test_call_suggested_for_a_type_without_a_dlpack_code_works(dtype):
    x = np.arange(3).astype(dtype)
    for copy in (False,) if dtype in (">i4", ">f8", ">c16") else (False, None, True):
        with pytest.raises(BufferError, match="does not have a code|native byte order") as raised:
            ah.as_torch(x, copy=copy)
        tensor = eval(raised.value.call, {"arrayhub": ah, "x": x})
        if x.dtype.kind in "mM":  # times can be missing
            tensor, mask = tensor
            assert mask.tolist() == [False, False, False]
        assert isinstance(tensor, torch.Tensor) and tensor.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["U3", ">U3", "S3", "i4,f4", ">i4,>f4"])
def test_error_for_a_type_that_torch_cannot_convert_suggests_a_working_call(dtype):
    x = np.zeros(3, dtype)
    with pytest.raises(BufferError, match="does not have a code") as raised:
        ah.as_torch(x)
    given = eval(raised.value.call, {"arrayhub": ah, "x": x})
    if x.dtype.names:
        assert {key: column.tolist() for key, column in given.items()} == {
            key: x[key].tolist() for key in x.dtype.names
        }
    else:
        assert given.to_list() == x.tolist()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "complex32", "float32"])
def test_lists_of_tensors_are_dense_whatever_their_type(name):
    tensor = torch.ones(2).to(getattr(torch, name))
    assert ah.asarray([tensor, tensor]).shape == ah.as_numpy([[tensor], [tensor]])[:, 0].shape == (2, 2)
    made = ah.as_torch([tensor, tensor])
    assert not made.is_nested and made.dtype == tensor.dtype and torch.equal(made.float(), torch.ones(2, 2))
    if name == "bfloat16":
        assert ah.asarray([tensor[0], tensor[1]]).shape == (2,) and ah.as_torch([tensor, torch.ones(2)]).shape == (2, 2)
        x = ah.zeros((2, 2), dtype="f4")
        x[...] = [tensor, tensor]
        assert x.tolist() == [[1, 1], [1, 1]]
    assert ah.as_torch([tensor, tensor[:1]]).is_nested
