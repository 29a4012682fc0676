"""Test which arguments `adapt` passes unchanged, converts or refuses, and that no write to an argument is lost."""

import collections
import dataclasses
import enum
import functools
import sys
from multiprocessing import managers
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from children import python

import arrayhub as ah

REFUSALS = (BufferError, TypeError, ValueError)
ONES = np.ones(3)


def passed(to, value, *others, **options):
    """Return the object that a function for the library `to` receives for `value`."""
    seen = []
    ah.adapt(to, **options)(lambda x, *others: seen.append(x))(value, *others)
    return seen[0]


# ----------------------------------------------------------------------------------------- arrays of the target library


def test_gradients_pass_through_functions_for_torch():
    torch = pytest.importorskip("torch")
    loss = ah.adapt("torch")(lambda x: (x * x).sum())
    x = torch.ones(2, requires_grad=True)
    loss(x).backward()
    assert x.grad.tolist() == [2, 2]
    assert loss(x * 2).requires_grad and loss(np.ones(2)).item() == 2
    parameter = torch.nn.Parameter(torch.ones(2))
    assert passed("torch", parameter) is parameter and passed(torch, parameter) is parameter
    assert passed(torch.Tensor, parameter) is parameter
    assert ah.adapt("torch")(lambda x: x)(parameter) is parameter
    total = ah.adapt("torch")(lambda x: torch.cat(x).sum())([x, x])
    assert total.requires_grad


def test_functions_for_jax_can_be_transformed():
    jax = pytest.importorskip("jax")
    square = ah.adapt("jax")(lambda x: jax.numpy.sum(x**2))
    x = jax.numpy.arange(3.0)
    assert jax.grad(square)(x).tolist() == [0, 2, 4]
    assert jax.jit(square)(x) == 5 and jax.vmap(square)(x[None]).tolist() == [5]
    assert jax.jit(ah.adapt("jax")(lambda x, y: (x + y, [x])))(x, x)[0].tolist() == [0, 2, 4]
    with pytest.raises(REFUSALS, match="(?s)^<lambda>: x: .*trace"):
        jax.jit(ah.adapt("numpy")(lambda x: x))(x)


OWN = {
    "numpy": [
        ("masked", lambda np: np.ma.masked_array([1.0, 2.0], [False, True])), ("matrix", lambda np: np.matrix([[1.0]])),
        ("recarray", lambda np: np.rec.array([(1, 2.0)], [("a", "i4"), ("b", "f8")])),
        ("text", lambda np: np.array(["a"])),
        ("objects", lambda np: np.array([None, "a"], object)), ("big", lambda np: np.zeros(2, ">i4")),
        ("scalar", lambda np: np.array(1.0)), ("readonly", lambda np: np.broadcast_to(np.ones(1), 3)),
    ],
    "torch": [
        ("meta", lambda torch: torch.empty(2, device="meta")), ("sparse", lambda torch: torch.eye(2).to_sparse()),
        ("conj", lambda torch: torch.ones(2, dtype=torch.complex64).conj()),
        ("jagged", lambda torch: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)),
    ],
    "pandas": [
        ("series", lambda pd: pd.Series([1, None], dtype="Int64")),
        ("frame", lambda pd: pd.DataFrame({"a": ["x"], "b": [1]})),
        ("index", lambda pd: pd.Index([1, 2])), ("multi", lambda pd: pd.MultiIndex.from_tuples([(1, 2)])),
    ],
    "polars": [("frame", lambda pl: pl.DataFrame({"a": [[1], None]})), ("lazy", lambda pl: pl.LazyFrame({"a": [1]}))],
    "pyarrow": [
        ("chunked", lambda pa: pa.chunked_array([[1], [2]])), ("table", lambda pa: pa.table({"a": [1]})),
        ("strings", lambda pa: pa.array(["a", None])),
    ],
    "xarray": [
        ("array", lambda xr: xr.DataArray([1.0], dims="t", coords={"t": [5]})),
        ("dataset", lambda xr: xr.Dataset({"a": 1})),
    ],
    "awkward": [("ragged", lambda ak: ak.Array([[1], [2, 3]]))],
    "jax": [("key", lambda jax: jax.random.key(0)), ("array", lambda jax: jax.numpy.ones(2))],
    "scipy": [("csr", lambda scipy: pytest.importorskip("scipy.sparse").csr_array([[1.0]]))],
    "dpnp": [("array", lambda dpnp: dpnp.ones(2))],
    "arrayhub": [("array", lambda ah: ah.ones(2))],
}  # fmt: skip


@pytest.mark.parametrize(("library", "name", "make"), [(k, *row) for k, rows in OWN.items() for row in rows])
def test_arrays_of_the_library_are_passed_and_returned_unchanged(library, name, make):
    x = make(pytest.importorskip(library))
    assert passed(library, x) is x
    assert ah.adapt(library)(lambda x: x)(x) is x
    assert ah.adapt(library, labels=True)(lambda x, y: {"a": (x, 1)})(x, 3)["a"][0] is x
    assert passed(type(x), x) is x


def test_copy_true_copies_arrays_of_the_library():
    torch = pytest.importorskip("torch")
    for to, x in (("numpy", np.ones(2)), ("torch", torch.ones(2))):
        assert passed(to, x, copy=True) is not x

        @ah.adapt(to, copy=True)
        def double(x):
            x *= 2
            return x

        assert double(x).tolist() == [2, 2] and x.tolist() == [1, 1]


def test_copy_true_keeps_masks_and_subclasses():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    for x in (masked, np.ma.masked_array([1.0, 2.0]), np.matrix([[1.0, 2.0]]), np.rec.array([(1, 2)])):
        copied = passed("numpy", x, copy=True)
        assert type(copied) is type(x) and not np.shares_memory(copied, x) and copied.tolist() == x.tolist()
    assert ah.adapt("numpy", copy=True)(lambda x: x.mean())(masked) == 1
    assert type(passed(np.ndarray, np.matrix([[1.0]]), copy=True)) is np.ndarray


# ------------------------------------------------------------------------------------------------------ refused arrays


REFUSED = {
    "torch meta tensor": lambda path: pytest.importorskip("torch").empty(3, device="meta"),
    "deleted jax array": lambda path: _deleted(pytest.importorskip("jax.numpy").ones(3)),
    "zarr": lambda path: pytest.importorskip("zarr").create_array(str(path / "z"), data=np.arange(4.0)),
    "dask": lambda path: pytest.importorskip("dask.array").ones(3),
    "dask, 0-d": lambda path: pytest.importorskip("dask.array").ones(3).sum(),
    "h5py": lambda path: pytest.importorskip("h5py").File(path / "a", "w").create_dataset("x", data=ONES),
    "h5py, 0-d": lambda path: pytest.importorskip("h5py").File(path / "a", "w").create_dataset("x", data=1.0),
    "sparse of pyarrow": lambda path: pytest.importorskip("pyarrow").SparseCOOTensor.from_dense_numpy(np.eye(2)),
    "storage of torch": lambda path: pytest.importorskip("torch").ones(3).untyped_storage(),
    "jax key": lambda path: pytest.importorskip("jax").random.key(0),
    "SimpleITK": lambda path: pytest.importorskip("SimpleITK").Image([3, 2], 1),
    "LazyFrame": lambda path: pytest.importorskip("polars").LazyFrame({"a": [1]}),
    "Dataset": lambda path: pytest.importorskip("xarray").Dataset({"a": ("t", [1])}),
    "UMat": lambda path: pytest.importorskip("cv2").UMat(np.ones((2, 2), "u1")),
    "vtk": lambda path: pytest.importorskip("vtk").vtkImageData(),
    "QImage": lambda path: (gui := pytest.importorskip("PySide6.QtGui")).QImage(4, 4, gui.QImage.Format.Format_RGB32),
    "VideoFrame": lambda path: pytest.importorskip("av").VideoFrame(4, 4, "rgb24"),
    "sympy": lambda path: pytest.importorskip("sympy").Matrix([[1]]),
    "pint": lambda path: ONES * pytest.importorskip("pint").UnitRegistry().meter,
    "astropy": lambda path: ONES * pytest.importorskip("astropy.units").m,
    "astropy angle": lambda path: pytest.importorskip("astropy.coordinates").Angle(ONES, "deg"),
    "duck array": lambda path: Duck(),
    "numpy converter": lambda path: Converter(),
}


def _deleted(array):
    array.delete()
    return array


class Duck:
    """An array without a protocol, such as a stored or remote array."""

    shape, dtype = (3,), np.dtype("f8")

    def __getitem__(self, key):
        return ONES[key]


class Converter:
    def __array__(self, dtype=None, copy=None):
        return ONES


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("to", ["numpy", "torch", "polars"])
def test_refused_arrays_raise_the_error_of_asarray_with_the_name_of_the_argument(name, to, tmp_path):
    x = REFUSED[name](tmp_path)
    library = type(x).__module__.partition(".")[0]
    if library == to:
        return
    with pytest.raises(REFUSALS):
        ah.asarray(x, copy=None)
    for copy in (None, True, False):
        for call in (lambda f: f(x, None), lambda f: f(ONES, y=x), lambda f: f([x, x], None), lambda f: f({"a": x}, 1)):
            seen = []
            with pytest.raises(REFUSALS, match="^<lambda>: (x|y)"):
                call(ah.adapt(to, copy=copy)(lambda x, y, seen=seen: seen.append(x)))
            assert not seen


ON_TWO_DEVICES = """
import jax, numpy as np, arrayhub as ah
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
x = jax.device_put(np.arange(8, dtype="f4"), NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P("x")))
for to in ("numpy", "torch"):
    for copy in (None, True, False):
        for args in ((x,), (np.ones(1), x), ([x],)):
            try:
                ah.adapt(to, copy=copy)(lambda *args: print("passed", type(args[0])))(*args)
            except BufferError as error:
                assert str(error).startswith("<lambda>: argument "), error
assert ah.adapt("jax")(lambda x: x)(x) is x
print("refused")
"""


@pytest.mark.slow
def test_arrays_of_jax_on_several_devices_do_not_reach_the_function():
    pytest.importorskip("jax")
    pytest.importorskip("torch")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    assert python(ON_TWO_DEVICES, **flags).split() == ["refused"]


def test_units_are_not_dropped():
    u = pytest.importorskip("astropy.units")
    for call in (ah.asarray, ah.as_numpy, lambda x: ah.as_numpy(x, copy=True), lambda x: ah.like(x, np.ones(1))):
        with pytest.raises(TypeError, match=r"the unit is not included\. Call .*x\.value"):
            call(ONES * u.m)
    assert ah.as_numpy((ONES * u.m).value) is not None
    length = 3 * u.m
    assert passed("numpy", length, ONES) is length


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Options:
    width: int = 1
    weights: Any = None


OPTIONS = {
    "dtype": lambda: np.dtype("f4"),
    "record dtype": lambda: np.dtype([("a", "f4", (2,))]),
    "scalar type": lambda: np.float32,
    "generator": lambda: np.random.default_rng(0),
    "poly1d": lambda: np.poly1d([1, 2]),
    "Polynomial": lambda: np.polynomial.Polynomial([1, 2]),
    "ufunc": lambda: np.add,
    "slice": lambda: slice(1, 2),
    "proxy": lambda: object.__new__(managers.DictProxy),
    "enum": lambda: Color.RED,
    "dataclass": lambda: Options(weights=np.ones(2)),
    "function": lambda: len,
    "partial": lambda: functools.partial(int, base=2),
    "ellipsis": lambda: ...,
    "set": lambda: {1, 2},
    "deque": lambda: collections.deque([1, 2]),
    "iterator": lambda: iter([1, 2]),
    "path": lambda: __import__("pathlib").Path("a"),
    "torch.device": lambda: pytest.importorskip("torch").device("cpu"),
    "torch.dtype": lambda: pytest.importorskip("torch").float32,
    "torch.Size": lambda: pytest.importorskip("torch").Size([1]),
    "torch.Generator": lambda: pytest.importorskip("torch").Generator(),
    "torch module": lambda: pytest.importorskip("torch").nn.Linear(1, 1),
    "jax shape": lambda: pytest.importorskip("jax").ShapeDtypeStruct((2,), "float32"),
    "jax device": lambda: pytest.importorskip("jax").devices("cpu")[0],
    "jitted": lambda: pytest.importorskip("jax").jit(lambda x: x),
    "operator": lambda: pytest.importorskip("scipy.sparse.linalg").aslinearoperator(np.eye(2)),
    "interpolator": lambda: pytest.importorskip("scipy.interpolate").interp1d([0, 1], [0, 1]),
    "Timestamp": lambda: pytest.importorskip("pandas").Timestamp("2020"),
    "Interval": lambda: pytest.importorskip("pandas").Interval(0, 1),
    "CategoricalDtype": lambda: pytest.importorskip("pandas").CategoricalDtype(),
    "DataType": lambda: pytest.importorskip("pyarrow").int64(),
    "Schema": lambda: pytest.importorskip("pyarrow").schema([]),
    "Expr": lambda: pytest.importorskip("polars").col("a"),
    "file": lambda: pytest.importorskip("h5py").File.in_memory(),
    "unit": lambda: pytest.importorskip("astropy.units").m,
    "Device": lambda: ah.Device("cpu"),
    "Request": lambda: ah.Request("float64"),
    "module": lambda: np,
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_passed_unchanged(name):
    option = OPTIONS[name]()
    function = ah.adapt("numpy")(lambda x, option: option)
    for x in (np.ones(2), ah.ones(2), [1.0]):
        assert function(x, option) is option and function(x, option=option) is option
        inside = [option]
        assert name == "torch.Size" or function(x, inside) is inside


# --------------------------------------------------------------------------------------------------- lists of arrays


class Pair(NamedTuple):
    low: Any
    high: Any


class Sequence(list):
    name = "s"


def arrays():
    """Return a function for each library that creates an array of numbers."""
    made = {"numpy": np.array, "arrayhub": lambda x: ah.asarray(np.array(x))}
    for library, name in {
        "torch": "tensor", "pyarrow": "array", "polars": "Series", "pandas": "Series", "jax.numpy": "array",
        "awkward": "Array", "xarray": "DataArray",
    }.items():  # fmt: skip
        module = sys.modules.get(library) or pytest.importorskip(library)
        made[library] = getattr(module, name)
    made["chunked"] = lambda x: sys.modules["pyarrow"].chunked_array([x[:1], x[1:]])
    made["booleans"] = lambda x: sys.modules["polars"].Series([v > 0 for v in x])
    made["big-endian"] = lambda x: np.array(x, ">i4")
    made["frame"] = lambda x: sys.modules["polars"].DataFrame({"a": x, "b": [float(v) for v in x]})
    made["table"] = lambda x: sys.modules["pyarrow"].table({"a": x, "b": [float(v) for v in x]})
    return made


NAMES = ["numpy", "arrayhub", "torch", "pyarrow", "polars", "pandas", "jax.numpy", "awkward", "xarray"]
NAMES += ["chunked", "booleans", "big-endian", "frame", "table"]


@pytest.mark.parametrize("name", NAMES)
def test_arrays_in_containers_are_converted_like_arguments(name):
    make = arrays()[name]
    first, second = make([1, 2]), make([3, 4, 5])
    alone = passed("numpy", first)
    containers = [
        [first, second], (first, second), {"a": first, "b": 2}, Pair(first, 3), Sequence([first, "x"]),
        collections.OrderedDict(z=first, a=None), collections.defaultdict(int, k=first), [None, first, 1.5],
    ]  # fmt: skip
    for container in containers:
        made = passed("numpy", container)
        assert type(made) is type(container) and len(made) == len(container)
        items = list(made.values()) if isinstance(made, dict) else list(made)
        found = [item for item in items if type(item) is np.ndarray]
        assert found and found[0].tolist() == alone.tolist() and found[0].dtype == alone.dtype
    assert passed("numpy", Sequence([first])).name == "s"
    assert passed("numpy", collections.defaultdict(int, k=first)).default_factory is int
    joined = ah.adapt("numpy")(np.concatenate)([first, second])
    single = ah.adapt("numpy")(lambda x: x + 1)(first)
    if name != "frame":
        assert type(joined) is type(single)
    assert ah.as_numpy(joined, copy=None).tolist() == [*alone.tolist(), *passed("numpy", second).tolist()]


def test_lists_of_arrays_determine_the_library_of_the_result():
    torch = pytest.importorskip("torch")
    t = torch.ones(2)
    join = ah.adapt("numpy")(lambda arrays, axis=0: np.concatenate(arrays, axis))
    for images in ([t, t], (t, t), [np.ones(2), t]):
        assert isinstance(join(images), torch.Tensor) and join(images, axis=0).tolist() == [1] * 4
    assert isinstance(ah.adapt("numpy")(lambda d: d["a"] + 1)({"a": t}), torch.Tensor)
    assert type(join([np.ones(2)] * 2)) is np.ndarray
    both = ah.adapt("torch")(lambda arrays: torch.stack(arrays))
    assert type(both([np.ones(2), np.ones(2)])) is np.ndarray
    with pytest.raises(BufferError, match=r"^<lambda>: arrays\[1\]: "):
        ah.adapt("numpy")(lambda arrays: arrays)([t, torch.ones(2, requires_grad=True)])
    with pytest.raises(BufferError, match=r"^<lambda>: d\['k'\]: "):
        ah.adapt("numpy")(lambda d: d)({"k": torch.ones(2, requires_grad=True)})


def test_lists_inside_lists_are_passed_unchanged():
    torch = pytest.importorskip("torch")
    inner = [torch.ones(1)]
    assert passed("numpy", [torch.ones(2), inner])[1] is inner
    outer = [inner, 3]
    assert passed("numpy", outer) is outer


def test_containers_of_own_arrays_are_passed_and_returned_unchanged():
    for container in ([ONES], (ONES, 1), {"a": ONES}, Pair(ONES, 2)):
        assert passed("numpy", container) is container
    torch = pytest.importorskip("torch")
    tensors = [torch.ones(1)]
    assert ah.adapt("numpy")(lambda x: x)(tensors) is tensors


def test_results_that_are_own_arrays_of_the_caller_are_returned_unchanged():
    torch = pytest.importorskip("torch")
    tensor, out, pair = torch.ones(2), np.zeros(2), (np.zeros(2), np.zeros(2))
    assert ah.adapt("numpy")(np.cumsum)(tensor, out=out) is out and out.tolist() == [1, 2]
    made = ah.adapt("numpy")(lambda x, out: np.modf(x, out=out))(tensor, out=pair)
    assert made[0] is pair[0] and made[1] is pair[1] and pair[1].tolist() == [1, 1]
    assert isinstance(ah.adapt("numpy")(lambda x, y: y + 1)(tensor, out), torch.Tensor)


# --------------------------------------------------------------------------------------------------------------- writes


def clip01(image, out=None):
    return np.clip(image, 0, 1, out=out)


WRITABLE = {
    "numpy": lambda: np.zeros(2),
    "strided": lambda: np.zeros(4)[::-2],
    "torch": lambda: pytest.importorskip("torch").zeros(2, dtype=pytest.importorskip("torch").float64),
    "arrayhub": lambda: ah.zeros(2),
    "bytearray": lambda: memoryview(bytearray(16)).cast("d"),
    "xarray": lambda: pytest.importorskip("xarray").DataArray(np.zeros(2)),
    "shared USM": lambda: pytest.importorskip("dpnp").zeros(2, dtype="f8", usm_type="shared"),
}


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize("copy", [None, True, False])
def test_out_is_written_and_returned(name, copy):
    out = WRITABLE[name]()
    call = ah.adapt("numpy", copy=copy)(clip01)
    assert call(np.ones(2), out=out) is out
    assert ah.asarray(out).to_host().tolist() == [1, 1]
    assert call(np.array([0.5, 2]), out) is out
    assert ah.asarray(out).to_host().tolist() == [0.5, 1]
    pair = ah.adapt("numpy", copy=copy)(lambda x, out: (clip01(x, out), [out], {"a": out}, 1))(np.ones(2), out=out)
    assert pair[0] is out and pair[1][0] is out and pair[2]["a"] is out


NOT_WRITABLE = {
    "frame of two types": lambda: pytest.importorskip("pandas").DataFrame({"a": [0.0, 0], "b": [0, 0]}),
    "series": lambda: pytest.importorskip("pandas").Series([0.0, 0]),
    "list": lambda: [0.0, 0.0],
    "chunks": lambda: pytest.importorskip("pyarrow").chunked_array([[0.0], [0.0]]),
    "arrow": lambda: pytest.importorskip("pyarrow").array([0.0, 0]),
    "polars": lambda: pytest.importorskip("polars").Series([0.0, 0]),
    "jax": lambda: pytest.importorskip("jax.numpy").zeros(2),
    "bytes": lambda: memoryview(bytes(16)).cast("d"),
    "device": lambda: pytest.importorskip("dpnp").zeros(2, dtype="f8"),
    "own device": lambda: _on_device(np.zeros(2)),
    "conjugate": lambda: pytest.importorskip("torch").zeros(2, dtype=pytest.importorskip("torch").complex128).conj(),
}


def _on_device(array):
    pytest.importorskip("dpctl")
    return ah.to_device(array, "oneapi:0")


@pytest.mark.parametrize("name", NOT_WRITABLE)
@pytest.mark.parametrize("copy", [None, True, False])
def test_out_that_cannot_be_viewed_raises(name, copy):
    values = np.ones((2, 2)) if "frame" in name else np.ones(2)
    call = ah.adapt("numpy", copy=copy)(clip01)
    out = NOT_WRITABLE[name]()
    with pytest.raises(REFUSALS, match="^clip01: out: "):
        call(values, out=out)
    with pytest.raises(REFUSALS, match="^clip01: out: "):
        call(values, out)
    with pytest.raises(REFUSALS):
        call(values, out=[out, out])


VIEWS = {"torch": ["numpy"], "xarray": ["numpy", "strided"], "awkward": ["numpy", "strided"]}


@pytest.mark.parametrize("to", ["arrow", "awkward", "jax", "pandas", "polars", "torch", "xarray"])
@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("name", ["numpy", "strided", "read-only"])
def test_out_is_a_view_or_an_error_for_every_library(to, copy, name):
    """Functions of these libraries would write to a copy, or could not write at all."""
    pytest.importorskip({"arrow": "pyarrow"}.get(to, to))
    given = np.zeros(4)[::-2] if name == "strided" else np.zeros(2)
    given.flags.writeable = name != "read-only"

    @ah.adapt(to, copy=copy)
    def double(x, out):
        view = ah.asarray(out)
        assert view.flags.writeable and view.ptr == ah.asarray(given).ptr
        return 1

    if name in VIEWS.get(to, ()):
        assert double(ah.empty(2, "f4"), out=given) == 1
    else:
        with pytest.raises(REFUSALS, match="^double: out: "):
            double(ah.empty(2, "f4"), out=given)


COPIED = {
    **{name: NOT_WRITABLE[name] for name in ("frame of two types", "chunks", "list", "polars", "arrow", "jax")},
    "booleans": lambda: pytest.importorskip("polars").Series([True, False]),
    "frame": lambda: pytest.importorskip("polars").DataFrame({"a": [1.0], "b": [2.0]}),
    "awkward": lambda: pytest.importorskip("awkward").Array([[1, 2], [3, 4]]),
    "list of lists": lambda: [[1, 2], [3, 4]],
}


@pytest.mark.parametrize("name", COPIED)
@pytest.mark.parametrize("to", ["numpy", "arrayhub", "numba"])
def test_copies_that_were_made_for_the_function_are_read_only(name, to):
    if to == "numba":
        pytest.importorskip("numba")
    x = COPIED[name]()
    seen = passed(to, x)
    assert not seen.flags.writeable

    @ah.adapt(to)
    def write(x):
        x[...] = 7

    with pytest.raises((ValueError, TypeError, BufferError), match="read-only"):
        write(x)
    if not isinstance(x, list):
        with pytest.raises((ValueError, TypeError, BufferError), match="read-only"):
            ah.adapt("numpy")(lambda x, y: np.copyto(y[0], 7))(ONES, [x])
    assert passed("numpy", x, copy=True).flags.writeable


COPIED_FOR = {
    "chunks": ("numpy", NOT_WRITABLE["chunks"]),
    "types": ("numpy", NOT_WRITABLE["frame of two types"]),
    "read-only": ("torch", lambda: np.broadcast_to(0.0, 2)),
    "reversed": ("torch", lambda: np.zeros(2)[::-1]),
    "gradient": ("numpy", lambda: pytest.importorskip("torch").zeros(2, requires_grad=True)),
}


@pytest.mark.parametrize("name", COPIED_FOR)
def test_refusals_of_out_do_not_name_a_call_that_copies(name):
    """A write to the copy would be lost."""
    to, make = COPIED_FOR[name]
    pytest.importorskip(to)
    with pytest.raises(ah.Refusal, match="because write writes to this argument$") as raised:
        ah.adapt(to)(_write)(make())
    assert raised.value.call == "" and raised.value.accepted.startswith("writable memory")


def _write(out):
    out[...] = 1


_write.__name__ = "write"


@pytest.mark.parametrize("missing", [0, "nan"])
def test_missing_does_not_change_arrays_of_libraries_without_missing_values(missing):
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    parameter = torch.nn.Parameter(torch.ones(2))
    assert passed("torch", parameter, missing=missing) is parameter
    assert ah.as_torch(parameter, missing=missing) is parameter
    assert ah.as_torch(torch.tensor([1]), missing="nan").dtype == torch.float64
    total = ah.adapt("jax", missing=missing)(lambda x: (x * x).sum())
    assert jax.grad(total)(jax.numpy.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("name", ["numpy", "torch", "arrayhub", "bytearray", "xarray"])
def test_functions_write_into_arguments_that_are_views(name):
    x = WRITABLE[name]()

    @ah.adapt("numpy")
    def fill(x):
        x[...] = 7

    fill(x)
    assert ah.as_numpy(x).tolist() == [7, 7]


W = Annotated[Any, ah.Request("n * float64", writable=True, where="any")]


def test_out_must_have_memory_for_each_element():
    torch = pytest.importorskip("torch")

    @ah.adapt("numpy")
    def fill(values: W):
        values[...] = [1, 2]

    for write in (ah.adapt("numpy")(_write), fill):
        with pytest.raises(ValueError, match=r"torch\.Tensor, to which \w+ writes, .* elements overlap"):
            write(torch.zeros(1, dtype=torch.float64).expand(2))
    for shape, expanded in (((1, 2), (1, 2)), ((1, 0), (3, 0))):
        x = torch.zeros(shape).expand(expanded)
        ah.adapt("numpy")(_write)(x)
        assert x.sum() == x.numel()


@pytest.mark.parametrize("to", ["torch", "numpy", "jax", "polars"])
@pytest.mark.parametrize("copy", [None, True, False])
def test_requests_for_writable_memory_exclude_copies(to, copy):
    torch = pytest.importorskip("torch")
    pytest.importorskip(to)

    @ah.adapt(to, copy=copy)
    def fill(values: W, dtype=None):
        values[...] = 7
        return values

    for x in (np.zeros(3)[::-1], [0.0, 0.0], np.zeros(3, "f4"), NOT_WRITABLE["series"](), NOT_WRITABLE["own device"]()):
        if to == "numpy" and isinstance(x, np.ndarray) and x.dtype == "f8":
            continue
        with pytest.raises((*REFUSALS, AttributeError)):
            fill(x)
    if to in ("torch", "numpy"):
        for x in (np.zeros(3), torch.zeros(3, dtype=torch.float64), ah.zeros(3)):
            assert fill(x) is x and ah.as_numpy(x).tolist() == [7, 7, 7]


def test_requests_of_own_arrays_pass_them_unchanged():
    torch = pytest.importorskip("torch")
    R = Annotated[Any, ah.Request("n * float32", may="cast")]

    @ah.adapt("torch")
    def loss(x: R):
        return (x * x).sum()

    x = torch.ones(2, requires_grad=True)
    loss(x).backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(ValueError, match="loss: x"):
        loss(torch.ones((2, 2), requires_grad=True))

    @ah.adapt("numpy")
    def first(x: R, y: R):
        return x

    assert first(y := np.ones(2, "f4"), torch.ones(2)) is y


def test_converted_arguments_in_results_are_the_callers_objects():
    torch = pytest.importorskip("torch")
    pl = pytest.importorskip("polars")
    for x in (torch.ones(2), torch.ones(0), pl.Series("n", [1, 2]), ah.ones(2), memoryview(b"ab")):
        same = ah.adapt("numpy")(lambda x: x)
        assert same(x) is x
        both = ah.adapt("numpy")(lambda x, y: {"a": [x, (y, 1)]})(x, 2 * torch.ones(2))
        assert both["a"][0] is x
    assert type(ah.adapt("numpy")(lambda x: x)([1.0])) is np.ndarray
    assert ah.adapt("numpy", missing=0)(lambda x: x)(pl.Series([1, None])).to_list() == [1, 0]


def double_tensor(x):
    return x.mul_(2)


def flatten(x):
    x.shape = (x.size,)
    return x


def add_column(x):
    x["c"] = x["a"] + 1
    return x


def drop_column(x):
    del x["b"]
    return x


def insert_column(x):
    return x.insert_column(0, pytest.importorskip("polars").Series("c", [5]))


def set_first(x):
    x[0] = 9
    return x


def append(x):
    x.append(x[0] + 1)
    return x


# Functions that change an argument and return it: the library, the function, the argument and the result.
CHANGES = [
    ("torch", double_tensor, lambda: np.ones(2, ">f8"), [2, 2]),
    ("torch", double_tensor, lambda: np.arange(3.0)[::-1], [4, 2, 0]),
    ("torch", double_tensor, lambda: pytest.importorskip("pandas").Series([1.0, 2.0]), [2, 4]),
    ("torch", double_tensor, lambda: pytest.importorskip("polars").Series([1.0, np.nan]).fill_nan(3), [2, 6]),
    ("torch", double_tensor, lambda: pytest.importorskip("jax").numpy.ones(2), [2, 2]),
    ("numpy", flatten, lambda: pytest.importorskip("torch").zeros(1, 2), [0, 0]),
    ("numpy", flatten, lambda: pytest.importorskip("pyarrow").table({"a": [1, 2]}), [1, 2]),
    ("pandas", add_column, lambda: pytest.importorskip("polars").DataFrame({"a": [1]}), {"a": [1], "c": [2]}),
    ("pandas", add_column, lambda: pytest.importorskip("pyarrow").table({"a": [1]}), {"a": [1], "c": [2]}),
    ("pandas", drop_column, lambda: pytest.importorskip("polars").DataFrame({"a": [1], "b": [2]}), {"a": [1]}),
    ("polars", insert_column, lambda: pytest.importorskip("pandas").DataFrame({"a": [1]}), {"c": [5], "a": [1]}),
    ("polars", set_first, lambda: pytest.importorskip("pyarrow").array([1, 2]), [9, 2]),
    ("polars", set_first, lambda: pytest.importorskip("jax").numpy.arange(2), [9, 1]),
    ("polars", set_first, lambda: np.array([1, 2]), [9, 2]),
    ("numpy", append, lambda: [pytest.importorskip("torch").ones(1)], [1, 2]),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the test uses what NumPy 2.5 deprecates
@pytest.mark.parametrize(("library", "function", "make", "expected"), CHANGES)
def test_changes_of_a_returned_argument_are_in_the_result(library, function, make, expected):
    pytest.importorskip(library)
    result = ah.adapt(library)(function)(make())
    if isinstance(expected, dict):
        names = getattr(result, "column_names", None) or list(result.columns)
        assert {name: [int(value) for value in ah.as_numpy(result[name])] for name in names} == expected
    else:
        assert [float(value) for value in (result if isinstance(result, list) else ah.as_numpy(result))] == expected


def test_sparse_arguments_in_results_are_the_callers_objects_unless_their_structure_changes():
    torch, scipy_sparse = pytest.importorskip("torch"), pytest.importorskip("scipy.sparse")
    for to, x in (("numpy", torch.eye(2).to_sparse_csr()), ("torch", scipy_sparse.csr_array(np.eye(2)))):
        assert ah.adapt(to)(lambda x: x)(x) is x
    stored_zero = torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.tensor([0.0, 1.0]))
    assert ah.adapt("numpy")(lambda x: (x.eliminate_zeros(), x)[1])(stored_zero).values().tolist() == [1]


@pytest.mark.parametrize("library", ["numpy", "torch", "polars", "pandas", "arrow", "awkward", "xarray", "jax"])
def test_unchanged_arguments_in_results_are_the_callers_objects_in_every_library(library):
    pytest.importorskip(library if library != "arrow" else "pyarrow")
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    same = ah.adapt(library)(lambda x: x)
    for x in (np.array([1, 2], "i4"), pl.Series("n", [1, 2], dtype=pl.Int32), pa.array([1, 2], pa.int32())):
        if library != "torch" or ah.asarray(x).flags.writeable:
            assert same(x) is x
    both = [np.ones(2, "f4")]
    assert same(both) is both
    if library == "numpy":  # which copies these columns
        for x in (pl.Series(["a", None]), pa.array([True, False]), pa.chunked_array([[1], [2]]), pa.table({"a": [1]})):
            assert same(x) is x


# -------------------------------------------------------------------------------------------------------------- devices


def test_arrays_on_a_device_are_moved_only_on_request():
    dpnp = pytest.importorskip("dpnp")
    torch = pytest.importorskip("torch")
    x = dpnp.arange(3, dtype="f8")
    for to in ("numpy", "torch", "pandas", "polars", "pyarrow", "jax"):
        pytest.importorskip(to)
        with pytest.raises(BufferError, match="^<lambda>: x: .*Pass device='cpu' to arrayhub.adapt"):
            ah.adapt(to)(lambda x: x)(x)
    for to, copy in (("numpy", None), ("torch", None), ("numpy", False)):  # `device` may allocate whatever `copy` is
        double = ah.adapt(to, device="cpu", copy=copy)(lambda x: x * 2)
        result = double(x)
        assert isinstance(result, dpnp.ndarray) and result.tolist() == [0, 2, 4]
        assert str(result.sycl_device) == str(x.sycl_device)
        assert type(double(np.ones(2))) is np.ndarray and isinstance(double(torch.ones(2)), torch.Tensor)
        assert isinstance(double(ah.asarray(x)), ah.USMArray) and double(ah.asarray(x)).device.type == "oneapi"
    with pytest.raises(BufferError, match="^<lambda>: x: .*Pass device='oneapi' to arrayhub.adapt"):
        ah.adapt("dpnp")(lambda x: x)(np.ones(2))
    with pytest.raises(BufferError, match=r"Call arrayhub.asnested\(x\)$"):  # dpnp does not have strings on any device
        ah.adapt("dpnp")(lambda x: x)(np.array(["text"]))
    moved = ah.adapt("dpnp", device="oneapi:0")(lambda x: x * 2)
    assert type(moved(np.ones(2))) is np.ndarray and moved(np.ones(2)).tolist() == [2, 2]
    assert isinstance(moved(torch.ones(2)), torch.Tensor) and isinstance(moved(x), dpnp.ndarray)
    assert isinstance(ah.adapt("numpy", copy=True)(lambda x: x * 2)(x), dpnp.ndarray)
    with pytest.raises(ValueError, match="Device"):
        ah.adapt("numpy", device="gpu?")


# ------------------------------------------------------------------------------------------------------------ plug-ins


class Tiny:
    __module__ = "tinyarr"

    def __init__(self, values, unit=None):
        self.values, self.unit = np.asarray(values), unit


@pytest.fixture
def tinyarr():
    """Yield the name of a library, and take its function `emit` away afterwards."""
    yield "tinyarr"
    ah.register_library("tinyarr", types={"Tiny": "values"})


def test_emit_with_two_parameters_receives_the_model(tinyarr):
    models = []

    def emit(array, model):
        models.append(model)
        return Tiny(ah.as_numpy(array), getattr(model, "unit", None))

    ah.register_library(tinyarr, types={"Tiny": "values"}, emit=emit)
    x = Tiny([1.0, 2.0], "m")
    result = ah.adapt("numpy")(lambda x: x * 2)(x)
    assert type(result) is Tiny and result.unit == "m" and result.values.tolist() == [2, 4]
    assert ah.like(np.ones(2), x).unit == "m" and ah.placement(x).convert(np.ones(2)).unit == "m"
    assert ah.adapt("numpy")(lambda xs: xs[0] + 1)([x]).unit == "m"
    assert ah.convert(np.ones(2), "tinyarr").unit is None and ah.like(np.ones(2), Tiny).unit is None
    assert models == [x, x, x, x, None, None]
    other = Tiny([3.0], "s")
    for keywords in ({}, {"copy": None}, {"dtype": "f8"}, {"device": "cpu"}):
        assert ah.convert(x, "tinyarr", **keywords) is ah.convert(x, Tiny, **keywords) is ah.like(x, other) is x
    for made in (ah.convert(x, "tinyarr", copy=True), ah.convert(x, Tiny, dtype="f4"), ah.like(x, other, copy=True)):
        assert made is not x and made.unit == "m" and made.values.tolist() == [1, 2]
    filled = ah.like(np.ma.masked_array([1.0, 2.0], [False, True]), x, missing=5.0)
    assert filled.unit == "m" and filled.values.tolist() == [1, 5]
    ah.register_library(tinyarr, types={"Tiny": "values"}, emit=lambda array: Tiny(ah.as_numpy(array)))
    assert ah.like(np.ones(2), x).unit is None


# --------------------------------------------------------------------------------------------------------------- calls


def count_calls(function, *args):
    """Return the number of Python functions of arrayhub that a call executes."""
    function(*args)
    function(*args)
    root, count = ah.__file__.removesuffix("__init__.py"), 0

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(root)

    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(("name", "most"), [("numpy", 6), ("torch", 12), ("pandas", 25)])
def test_an_adapted_call_makes_few_python_calls(name, most):
    double = ah.adapt("numpy")(lambda x: x * 2)
    assert count_calls(double, arrays()[name]([1.0, 2.0])) <= most


def test_an_export_that_copies_does_not_compute_the_advice_of_a_refusal():
    """The refusal of the view, which copy=None replaces by a copy, is not raised."""
    unaligned = np.frombuffer(bytearray(24), "f4", 5, offset=4)
    assert count_calls(lambda: ah.as_torch(np.arange(3)[::-1], copy=None)) <= 15
    jax = pytest.importorskip("jax")
    assert count_calls(lambda: ah.as_jax(unaligned, copy=None)) <= 15
    assert count_calls(ah.adapt("jax")(lambda x: x), unaligned) <= 30
    assert isinstance(ah.as_jax(unaligned, copy=None), jax.Array)
