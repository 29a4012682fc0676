"""Test the table of element types, and types whose elements have several lanes."""

import pathlib
import pickle
import re

import numpy as np
import pytest
import torch
from dlpack_by_hand import tensor_of

import arrayhub as ah
from arrayhub._core.dtypes import element_types

PACKAGE = pathlib.Path(ah.__file__).parent
# Matches code that compares a number of lanes with a constant, or that creates a DLDataType with a constant number of
# lanes. It does not match 0, which marks an unset field, or 65535, the maximum number of lanes in DLPack.
FIXED_LANES = re.compile(
    r"\blanes\s*(?:[!=<>]=?)\s*[1-9]\d{0,3}\b|\b[1-9]\d{0,3}\s*[!=<>]=?\s*[\w.]*lanes\b|DataType\([^)]*,\s*[1-9]\d*\)"
)
PAIR = next((row for row in element_types() if row["dlpack"] == (17, 4, 2)), None)


def pairs(shape=(3, 4)):
    """Return a torch tensor whose elements are pairs of float4_e2m1fn, one byte each."""
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch does not have float4_e2m1fn_x2")
    count = int(np.prod(shape))
    return torch.arange(count, dtype=torch.uint8).view(torch.float4_e2m1fn_x2).view(shape)


def bytes_of(tensor):
    return tensor.view(torch.uint8).tolist()


def test_only_the_dtype_table_contains_lane_counts():
    files = [path for end in ("pyx", "pxi", "pxd", "py", "h", "hpp") for path in PACKAGE.rglob(f"*.{end}")]
    found = {path.relative_to(PACKAGE).as_posix(): FIXED_LANES.findall(path.read_text()) for path in files}
    assert len(files) > 100
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text", ["if tensor.dtype.lanes != 1:", "1 == spec.dtype.lanes", "DLDataType(code, bits, 1)", "dtype.lanes == 2"]
)
def test_fixed_lanes_matches_constant_lane_counts(text):
    assert FIXED_LANES.search(text)


def test_float4_e2m1fn_x2_has_two_lanes_in_one_byte():
    assert PAIR is not None
    assert (PAIR["name"], PAIR["bits"], PAIR["itemsize"]) == ("float4_e2m1fn_x2", 8, 1)


def test_dlpack_type_codes_are_unique():
    canonical = [row for row in element_types() if row["dlpack"] is not None and row["kind"] == "E"]
    assert len({row["dlpack"] for row in canonical}) == len(canonical)


@pytest.mark.parametrize("via", [None, "dlpack"])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[1:, ::2], lambda x: x.T, lambda x: x[2, 1], lambda x: x[:0]])
def test_torch_float4_pairs_are_viewed_and_exported_without_a_copy(via, view):
    tensor = view(pairs())
    x = ah.asarray(tensor, via=via)
    assert (x.shape, x.strides) == (tuple(tensor.shape), tuple(tensor.stride())) or x.size == 0
    assert (x.typenum, x.itemsize, x.nbytes) == (PAIR["typenum"], 1, tensor.numel())
    for back in (ah.as_torch(x), torch.from_dlpack(x)):
        assert (back.dtype, back.shape) == (torch.float4_e2m1fn_x2, tensor.shape)
        assert bytes_of(back) == bytes_of(tensor)
        assert back.data_ptr() == tensor.data_ptr() or x.size == 0


def test_exported_capsule_has_the_lanes_of_the_dtype_table():
    capsule = ah.asarray(pairs()).__dlpack__(max_version=(1, 3))
    managed = tensor_of(capsule)
    kind = managed.dl_tensor.dtype
    assert (kind.code, kind.bits, kind.lanes) == PAIR["dlpack"]
    assert managed.flags == 0  # neither READ_ONLY nor IS_SUBBYTE_TYPE_PADDED
    assert ah.from_dlpack(capsule).typenum == PAIR["typenum"]


def test_float4_pairs_are_copied_and_pickled():
    tensor = pairs()
    x = ah.asarray(tensor)[:, 1:3]
    for made in (
        x.copy(),
        x.copy("F"),
        ah.asarray(x, copy=True),
        ah.to_host(x, copy=True),
        pickle.loads(pickle.dumps(x)),
    ):
        assert made.ptr != x.ptr
        assert bytes_of(ah.as_torch(made)) == bytes_of(tensor[:, 1:3])


def test_datashape_and_repr_contain_float4_e2m1fn_x2():
    x = ah.asarray(pairs())
    assert ah.datashape.of(x) == "3 * 4 * float4_e2m1fn_x2"
    assert "dtype='float4_e2m1fn_x2'" in repr(x)
    assert ah.check(x) == []
    with pytest.raises(TypeError, match=r"NumPy nor ml_dtypes \S+ has float4_e2m1fn_x2"):
        x.dtype  # noqa: B018


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[1:, ::2], lambda x: x.T])
def test_float4_pairs_can_be_viewed_as_bytes(view):
    tensor = view(pairs())
    x = ah.asarray(tensor).view("uint8")
    assert (x.ptr, x.shape, x.byte_strides) == (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()))
    assert x.tolist() == bytes_of(tensor)
    assert ah.asarray(pairs()).view([("low", "u1")]).dtype.names == ("low",)


CALLS_WITHOUT_PAIRS = ["as_numpy", "as_jax", "as_numba", "as_arrow", "as_pandas", "as_polars", "as_awkward"]


@pytest.mark.parametrize("name", CALLS_WITHOUT_PAIRS)
def test_conversion_error_for_float4_pairs_suggests_a_view_as_bytes(name):
    libraries = {"numpy": "numpy", "arrow": "pyarrow"}
    library = name.removeprefix("as_")
    pytest.importorskip(libraries.get(library, library))
    call = getattr(ah, name)
    tensor = pairs((64,))
    copies = {"copy": True} if name == "as_jax" else {}
    with pytest.raises((TypeError, BufferError), match=r"arrayhub\.asarray\(x\)\.view\('uint8'\)") as raised:
        call(tensor, **copies)
    assert "dtype=" not in str(raised.value)
    assert ah.as_numpy(call(ah.asarray(tensor).view("uint8"), **copies)).tolist() == bytes_of(tensor)


def test_array_interface_error_for_float4_pairs_suggests_a_view_as_bytes():
    x = ah.asarray(pairs())
    for attribute in ("__array_interface__", "__array_struct__"):
        with pytest.raises(AttributeError, match=r"arrayhub\.asarray\(x\)\.view\('uint8'\)"):
            getattr(x, attribute)
