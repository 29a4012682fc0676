"""Test `Request`: type strings, results and errors, and use with pydantic."""

import copy
import inspect
import pickle
import sys
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pytest
from children import finished

import arrayhub as ah
from arrayhub import Request

BASE = np.arange(24.0).reshape(2, 3, 4)

# For each type string: a shape that it accepts, a shape that it rejects, and the accepted shape in the error.
SHAPES = {
    "3 * float64": ((3,), (4,), "(3)"),
    "n * 3 * float64": ((5, 3), (5, 2), "(any, 3)"),
    "n * n * float64": ((3, 3), (2, 3), "(n, n)"),
    "n * 2 * n * float64": ((3, 2, 3), (3, 2, 4), "(n, 2, n)"),
    "strided * 2 * float64": ((7, 2), (7, 3), "(any, 2)"),
    "... * 3 * float64": ((4, 5, 3), (3, 4), "(..., 3)"),
    "... * n * n * float64": ((4, 3, 3), (3, 4), "(..., n, n)"),
}


@pytest.mark.parametrize("text", SHAPES)
def test_shape_must_match_the_type_string(text):
    accepted, refused, words = SHAPES[text]
    request = Request(text)
    assert request.asarray(np.zeros(accepted)).shape == accepted
    assert request.matches(np.zeros(accepted)) is True and request.matches(np.zeros(refused)) is False
    assert request.matches("text") is False
    assert request.explain(np.zeros(accepted)) == ""
    with pytest.raises(ValueError) as error:
        request.asarray(np.zeros(refused), name="f: x")
    assert str(error.value) == f"f: x: this numpy.ndarray has shape {refused}; accepted: {words}"
    assert request.explain(np.zeros(refused)) == str(error.value).removeprefix("f: x: ")


def test_ndim_and_ellipsis_limit_the_number_of_dimensions():
    assert Request(ndim=2).matches(BASE[0]) and not Request(ndim=2).matches(BASE)
    assert Request(ndim=(1, 2)).matches(BASE[0]) and not Request(ndim=(1, 2)).matches(BASE)
    assert Request(ndim=0).matches(np.array(1.0)) and not Request(ndim=0).matches(BASE)
    assert Request("... * n * float64").explain(np.array(1.0)) == (
        "this numpy.ndarray has 0 dimensions, shape (); accepted: 1 or more"
    )


@pytest.mark.parametrize("order", [None, "C", "F"])
@pytest.mark.parametrize("text", ["... * float64", "n * m * float64", "n * m * {int32, float64}", "n * 2 * float32"])
def test_call_of_a_refusal_meets_the_request(text, order):
    whole, unaligned = np.arange(12).reshape(3, 4), np.frombuffer(bytearray(49), "u1")[1:].view("f8").reshape(3, 2)
    request = Request(text, order=order)
    called = 0
    for x in (whole, whole[::-1, ::2], whole.astype(">f8").T, whole.astype("f4"), unaligned, whole[0], [[1, 2]] * 2):
        if request.matches(x):
            continue
        with pytest.raises(ah.Refusal) as error:
            request.asarray(x)
        call = error.value.call
        assert not call or request.matches(eval(call, {"arrayhub": ah, "x": x}))
        called += bool(call)
    assert called >= 3


def test_refused_imports_name_the_call_that_asarray_names():
    pa = pytest.importorskip("pyarrow")
    for x in (pa.array([True, False]), pa.table({"a": [1.0], "b": [2.0]}), pa.array([1.0, None]), {"a": [1]}):
        errors = []
        for imports in (ah.asarray, Request("float64", name="f: x").asarray):
            with pytest.raises(ah.Refusal) as raised:
                imports(x)
            errors.append(raised.value.call)
        assert errors[0] == errors[1]


def test_call_is_named_only_for_numbers_in_the_range_of_a_type():
    for text, numbers, dtype in (
        ("n * int8", [300], ""),
        ("n * int8", [30], "int8"),
        ("n * {int8, int16}", [300], "int16"),
        ("n * float32", [1e300], ""),
        ("n * uint8", [-1], ""),
    ):
        for x in (numbers, np.array(numbers), np.array(numbers).astype(np.array(numbers).dtype.newbyteorder())):
            with pytest.raises(ah.Refusal) as raised:
                Request(text).asarray(x)
            call = raised.value.call
            assert call.startswith(f"arrayhub.asarray(x, dtype='{dtype}')") if dtype else call == ""
            if call:
                assert eval(call, {"arrayhub": ah, "x": x}).tolist() == numbers


def test_element_type_must_be_in_the_set():
    request = Request("{float32, complex[float64], bfloat16}")
    assert request.matches(np.zeros(2, "f4")) and request.matches(np.zeros(2, "c16"))
    assert request.explain(np.zeros(2, "i4")).startswith(
        "this numpy.ndarray has elements of int32; accepted: float32 or complex128 or bfloat16"
    )
    assert Request().matches(np.zeros(2, "i4"))


def test_writable_request_names_an_array_only_if_it_meets_the_request():
    request = Request("n * float64", writable=True)
    assert request.explain([1.0]).endswith("can be viewed, such as x = numpy.asarray(x)")
    for x in ([1], range(3), np.float32(2), [[1.0]]):
        assert request.explain(x).endswith("can be viewed")


def test_refused_cast_without_ml_dtypes_names_the_package():
    pytest.importorskip("torch")
    program = """import sys; sys.modules["ml_dtypes"] = None
import torch; from arrayhub import Request
print(Request("float64", may="cast").explain(torch.ones(2, dtype=torch.bfloat16)))"""
    done = finished(sys.executable, "-c", program)
    assert "; a cast of this type requires ml_dtypes" in done.stdout, done.stderr


def test_lists_of_tensors_are_built_as_asarray_builds_them():
    x = [pytest.importorskip("torch").tensor(1.5)]
    assert Request("bfloat16", may="build").asarray(x).tolist() == ah.asarray(x, dtype="bfloat16").tolist() == [1.5]


def test_lengths_returns_the_lengths_of_symbolic_dimensions():
    request = Request("n * 3 * m * float64")
    assert request.lengths(request.asarray(np.zeros((4, 3, 5)))) == {"n": 4, "m": 5}
    leading = Request("... * k * float64")
    assert leading.lengths(leading.asarray(BASE)) == {"k": 4}
    assert Request("float64").lengths(ah.asarray(BASE)) == {}


# For each case: arguments, the exception type, and the expected part of the message.
INVALID = {
    "type of type": (dict(type=3), TypeError, "type is 3; accepted: a str"),
    "ragged": (dict(type="var * float64"), ValueError, "at position 0: .*differ in length.*asnested"),
    "late ellipsis": (dict(type="n * ... * float64"), ValueError, r"at position 4: '\.\.\. .*; accepted: .*a leading"),
    "negative length": (dict(type="-1 * float64"), ValueError, "at position 0: '-1"),
    "length past 63 bits": (dict(type=f"{2**63} * float64"), ValueError, "at position 0: .*accepted: a length"),
    "no element type": (dict(type="n * "), ValueError, "at position 4: the end; accepted: .*a number"),
    "empty set": (dict(type="{}"), ValueError, "at position 1: '}'; accepted: a number"),
    "unknown element type": (dict(type="float65"), ValueError, "at position 0: 'float65'; accepted: .*bool, int8"),
    "element type without DLPack": (dict(type="longdouble"), ValueError, "DLPack does not define 'longdouble'"),
    "element type without a number": (dict(type="n * string"), ValueError, "4: 'string'; accepted: .*a number"),
    "option": (dict(type="n * ?float64"), ValueError, r"at position 4: '\?float64'; accepted: .*a number"),
    "text after the type": (dict(type="n * float64 m"), ValueError, "at position 12: 'm'; accepted: the end"),
    "too many types": (dict(type="{" + "int8," * 64 + "int8}"), ValueError, "at most 64 types"),
    "too many dimensions": (dict(type="n * " * 65 + "f8"), ValueError, "at most .* 64 dimensions"),
    "order": (dict(order="K"), ValueError, "order is 'K'; accepted: None, 'C', 'F'"),
    "where": (dict(where="gpu"), ValueError, "where is 'gpu'; accepted: 'host', 'usm', 'cuda', 'any'"),
    "nowhere": (dict(where=()), ValueError, r"where is \(\)"),
    "may": (dict(may="copy"), ValueError, "may is 'copy'; accepted: 'cast'"),
    "number for may": (dict(may=3), ValueError, "may is"),
    "ndim": (dict(ndim=-1), ValueError, "ndim is -1; accepted: 0 to 64"),
    "ndim beside lengths": (dict(type="n * float64", ndim=2), ValueError, "ndim is 2; accepted: 1, as the type"),
    "name": (dict(name=3), TypeError, "name is 3"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_arguments_of_request_raise(name):
    arguments, kind, words = INVALID[name]
    with pytest.raises(kind, match=f"^Request: .*{words}"):
        Request(**arguments)


def test_equal_arguments_make_equal_requests():
    request = Request("n * float64", order="C", may=("cast",), name="f: x")
    same = Request("n * float64", order="C", may=("cast",), name="f: x")
    assert request == same and hash(request) == hash(same) and request != Request("n * float64")
    assert eval(repr(request)) == request
    assert hash(Request(may=["cast"])) == hash(Request(may=["cast"]))
    for other in (pickle.loads(pickle.dumps(request)), copy.copy(request), copy.deepcopy(request)):
        assert other == request and other.matches(np.zeros(3))
    assert "type" in inspect.signature(Request).parameters


def test_where_accepts_memory_of_a_sycl_device():
    dpctl = pytest.importorskip("dpctl")
    if not dpctl.get_num_devices():
        pytest.skip("no SYCL device")
    device = ah.USMArray(4, "f8", buffer="device")
    assert Request(where="usm").matches(device) and not Request().matches(device)
    assert Request(where=("host", "usm")).matches(device)
    assert "Call arrayhub.asarray(x, device='cpu')" in Request().explain(device)
    assert Request(may="transfer").asarray(device).device.type == "cpu"


# ------------------------------------------------------------------------------------------------------------- pydantic


def test_pydantic_validates_and_converts_arrays():
    pydantic = pytest.importorskip("pydantic")

    class Points(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        x: Annotated[np.ndarray, Request("n * 3 * float64", may=("cast", "build"))]
        y: Annotated[Any, Request("float32")]

    points = Points(x=[[1, 2, 3]], y=np.zeros(2, "f4"))
    assert type(points.x) is np.ndarray and points.x.dtype == "f8" and points.x.tolist() == [[1, 2, 3]]
    assert type(points.y) is ah.USMArray
    assert points.model_dump_json() == '{"x":[[1.0,2.0,3.0]],"y":[0.0,0.0]}'
    assert Points.model_json_schema()["properties"]["x"]["type"] == "array"
    with pytest.raises(pydantic.ValidationError) as error:
        Points(x=np.zeros((2, 2)), y=np.zeros(2))
    reasons = {fault["loc"]: (fault["type"], fault["msg"]) for fault in error.value.errors()}
    assert reasons[("x",)] == ("array_request", "this numpy.ndarray has shape (2, 2); accepted: (any, 3)")
    assert reasons[("y",)][1].startswith("this numpy.ndarray has elements of float64; accepted: float32")


JSON_SCHEMAS = {
    "float64": {"type": "array", "items": {}},
    "... * 3 * float64": {"type": "array", "items": {}},
    "n * int32": {"type": "array", "items": {"type": "integer"}},
    "n * bool": {"type": "array", "items": {"type": "boolean"}},
    "n * complex64": {"type": "array", "items": {}},
    "n * {float32, bfloat16}": {"type": "array", "items": {"type": "number"}},
    "n * {int8, float32}": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "number"}]}},
    "n * 3 * float64": {
        "type": "array",
        "items": {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3},
    },
}


@pytest.mark.parametrize("mode", ["validation", "serialization"])
@pytest.mark.parametrize("text", JSON_SCHEMAS)
def test_pydantic_json_schema_describes_the_array(text, mode):
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(Annotated[np.ndarray, Request(text)])
    assert adapter.json_schema(mode=mode) == JSON_SCHEMAS[text]


def test_pydantic_reads_and_writes_json():
    """A model does not require arbitrary_types_allowed, and can parse the JSON that it emits."""
    pydantic = pytest.importorskip("pydantic")

    class Points(pydantic.BaseModel):
        x: Annotated[np.ndarray, Request("n * 2 * float32", may="build")]

    points = Points.model_validate_json('{"x": [[1, 2], [3, 4.5]]}')
    assert points.x.dtype == "f4" and points.x.tolist() == [[1, 2], [3, 4.5]]
    assert points.model_dump_json() == '{"x":[[1.0,2.0],[3.0,4.5]]}'
    assert points.model_dump()["x"] is points.x
    with pytest.raises(pydantic.ValidationError, match=r"has shape \(1, 3\); accepted: \(any, 2\)"):
        Points.model_validate_json('{"x": [[1, 2, 3]]}')


def annotated_types():
    """Return types for annotations, and the class of the array that pydantic returns.

    The annotated type may be a type alias, such as ``numpy.typing.NDArray`` since NumPy 2.5.
    """
    torch, extensions = pytest.importorskip("torch"), pytest.importorskip("typing_extensions")  # pydantic requires it
    element = extensions.TypeVar("element")
    plain = extensions.TypeAliasType("plain", npt.NDArray[np.float64])
    generic = extensions.TypeAliasType("generic", np.ndarray[tuple[int], element], type_params=(element,))
    of_numpy = [npt.NDArray[np.float64], plain, generic[np.dtype[np.float64]]]
    return [*((kind, np.ndarray) for kind in of_numpy), (ah.USMArray, ah.USMArray), (torch.Tensor, torch.Tensor)]


def test_pydantic_converts_to_the_annotated_array_type():
    pydantic = pytest.importorskip("pydantic")
    x = np.arange(3.0)
    for annotated, cls in annotated_types():
        adapter = pydantic.TypeAdapter(Annotated[annotated, Request("n * float64")])
        for given in (x, ah.asarray(x)):
            made = adapter.validate_python(given)
            assert type(made) is cls and ah.asarray(made).ptr == x.ctypes.data
    pd = pytest.importorskip("pandas")
    labelled = pd.Series(x, index=[5, 6, 7], name="a")
    assert pydantic.TypeAdapter(Annotated[pd.Series, Request("float64")]).validate_python(labelled) is labelled
