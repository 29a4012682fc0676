"""Test plug-ins, with which other projects add a library by an entry point or by `register_library`."""

import ctypes
import gc
import shutil
import sys
import types
import weakref
from pathlib import Path

import children
import native_build
import numpy as np
import pytest
import torch

import arrayhub as ah
from arrayhub.libraries import plugins

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


# ------------------------------------------------------------------------------------ an installed package


@pytest.fixture
def site(tmp_path):
    """Install the package slate, with its entry point, in a new folder. Return the folder."""
    shutil.copytree(HERE / "slate_package", tmp_path / "site")
    return tmp_path / "site"


def python(site, program, **options):
    return children.python(program, PYTHONPATH=f"{site}:{ROOT}", **options)


# Programs that use the package.
PROGRAMS = {
    "every function": """
import array, ctypes, sys
import numpy as np
import arrayhub as ah
import slate

cells = array.array("d", [1.0, 2.0, 3.0])
x = slate.Slate(cells)
assert "slate.hub" not in sys.modules
a = ah.asarray(x)
assert "slate.hub" in sys.modules
assert a.ptr == cells.buffer_info()[0] and a.tolist() == [1.0, 2.0, 3.0] and not a.is_copy
assert ah.asarray(x, copy=False).ptr == a.ptr and ah.asarray(x, copy=True).ptr != a.ptr
ah.as_numpy(x)[0] = 7.0
assert cells[0] == 7.0
assert ah.asarray(slate.Chalk(cells)).ptr == a.ptr

target = np.arange(4.0)
made = ah.convert(target, "slate")
assert type(made) is slate.Slate and ah.asarray(made).ptr == target.ctypes.data
assert type(ah.like(target, x)) is type(ah.like(target, slate)) is slate.Slate
assert ah.placement(x).library == "slate" and type(ah.placement(x).convert(target)) is slate.Slate
copied = ah.convert(target, "slate", copy=True)
assert ah.asarray(copied).ptr != target.ctypes.data and list(copied._cells) == [0.0, 1.0, 2.0, 3.0]

try:
    ah.asarray(slate.Draft(lambda: cells))
except TypeError as error:
    assert error.call == "arrayhub.asarray(x.compute())", error
else:
    raise AssertionError("a draft is imported")

found = ah.explain(x)
assert "slate.hub.parse, registered for 'slate', returns its array" in str(found), found
assert {v.consumer: v.verdict for v in found.verdicts}["slate"] == "zero-copy"
assert [v.consumer for v in ah.explain(target, to="slate").verdicts] == ["slate"]
""",
    "the entry point is loaded by name": """
import numpy as np
import arrayhub as ah

x = np.arange(3.0)
assert ah.asarray(ah.convert(x, "slate")).ptr == x.ctypes.data
""",
    "entry points are read once and only for unknown libraries": """
import sys
import arrayhub as ah
import numpy as np

assert "importlib.metadata" not in sys.modules and "slate" not in sys.modules
ah.asarray(np.arange(3.0)), ah.asarray(b"abc"), ah.asarray([1, 2])
assert "importlib.metadata" not in sys.modules
import importlib.metadata
reads = []
read = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **group: reads.append(group) or read(**group)
for k in range(5):
    interface = np.arange(3).__array_interface__
    cls = type("Unknown", (), {"__module__": f"unknown{k}", "__array_interface__": interface})
    ah.asarray(cls())
    ah.asarray(cls())
assert reads == [{"group": "arrayhub.libraries"}], reads
""",
    "two threads read the entry points at the same time": """
import array, importlib.metadata, threading
import arrayhub as ah
import slate

cells, barrier, failures = array.array("d", [1.0, 2.0]), threading.Barrier(2), []
read = importlib.metadata.entry_points

def read_together(**group):
    barrier.wait(60)
    return read(**group)

def work():
    try:
        assert ah.asarray(slate.Slate(cells)).tolist() == [1.0, 2.0]
    except Exception as error:
        failures.append(error)

importlib.metadata.entry_points = read_together
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
work()
assert not failures, failures
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_installed_plugin_is_used(site, program):
    python(site, program)


@pytest.mark.slow
def test_the_c_interface_imports_and_returns_objects_of_the_library(site, tmp_path_factory):
    folder = native_build.shared_folder(tmp_path_factory, "plugins")
    path = native_build.compiled(folder, "import_and_like", [native_build.SOURCES / "import_and_like.c"])
    python(
        site,
        f"""
        import array
        import sys
        import arrayhub
        import slate

        sys.path.insert(0, {str(path.parent)!r})
        from import_and_like import from_object, like

        cells = array.array("d", [1.0, 2.0, 3.0])
        assert from_object(slate.Slate(cells)).ptr == cells.buffer_info()[0]
        made = like(cells, slate.Slate(b"abc"))
        assert type(made) is slate.Slate and from_object(made).ptr == cells.buffer_info()[0]
        """,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        ("raise ImportError('no glue')", "'slate.hub:register' of slate 1.2 for 'slate' raised ImportError: no glue"),
        ("def register():\n    1 / 0", "'slate.hub:register' of slate 1.2 for 'slate' raised ZeroDivisionError"),
        ("register = 3", "'slate.hub:register' of slate 1.2 for 'slate' raised TypeError"),
        ("def register():\n    pass", "'slate.hub:register' of slate 1.2 does not call register_library('slate', ...)"),
    ],
    ids=["import", "call", "not a function", "does nothing"],
)
def test_error_names_the_broken_entry_point(site, plugin, words):
    (site / "slate" / "hub.py").write_text(plugin)
    python(
        site,
        f"""
        import arrayhub as ah
        import slate

        for _ in range(2):
            for call in (lambda: ah.asarray(slate.Slate(b"abc")), lambda: ah.convert(b"abc", "slate")):
                try:
                    call()
                except ah.InterfaceError as error:
                    assert {words!r} in str(error), error
                else:
                    raise AssertionError("no error")
        """,
    )


@pytest.mark.slow
def test_two_entry_points_for_one_library_raise(site):
    second = site / "other-3.0.dist-info"
    shutil.copytree(site / "slate-1.2.dist-info", second)
    (second / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 3.0\n")
    python(
        site,
        """
        import arrayhub as ah
        import slate

        try:
            ah.asarray(slate.Slate(b"abc"))
        except ah.InterfaceError as error:
            assert "of slate 1.2" in str(error) and "of other 3.0" in str(error)
        else:
            raise AssertionError("no error")
        """,
    )


@pytest.mark.slow
def test_doctor_lists_plug_ins(site):
    report = python(site, "import json; from arrayhub.inspection import doctor; print(json.dumps(doctor.plugins()))")
    assert '"types": ["Slate"], "emits": true, "error": null' in report
    (site / "slate" / "hub.py").write_text("raise ImportError('no glue')")
    report = python(site, "import json; from arrayhub.inspection import doctor; print(json.dumps(doctor.plugins()))")
    assert "raised ImportError: no glue" in report


# ---------------------------------------------------------------------------------- registered functions that are wrong


@pytest.fixture
def board(request):
    """Yield a new module with a class that holds an array, and undo the test's registrations for the class."""
    name = f"board_{abs(hash(request.node.nodeid))}"
    module = types.ModuleType(name)
    module.Board = type("Board", (), {"__module__": name, "__init__": _hold})
    sys.modules[name] = module
    yield module
    del sys.modules[name]
    if name in plugins.REGISTERED:
        ah.register_library(name, advice={"Board": "x.values"})


def _hold(self, values):
    self.values = values


def failing(obj):
    raise ZeroDivisionError("on purpose")


def refusing(obj):
    raise BufferError("the values are on a board that is out of reach")


@pytest.mark.parametrize(
    ("parse", "error", "words"),
    [
        (failing, ah.InterfaceError, "failing, registered for 'board', raised ZeroDivisionError: on purpose"),
        (refusing, BufferError, "refusing, registered for 'board', raised BufferError: the values are on a board"),
        (lambda x: ah.as_torch(x.values[::-1]), ah.Refusal, "raised Refusal: torch: negative strides"),
        (lambda x: torch.ones(2, requires_grad=True), ah.Refusal, "Tensor: Refusal: torch: requires_grad is True"),
        (lambda x: None, ah.InterfaceError, "returned NoneType: "),
        (lambda x: 5, ah.InterfaceError, "returned int with a copy"),
        (lambda x: [1.0, 2.0], ah.InterfaceError, "returned list with a copy"),
        (lambda x: "text", ah.InterfaceError, "returned str"),
        (lambda x: object(), ah.InterfaceError, "returned object: TypeRefusal: asarray: <"),
        (lambda x: x.values.copy(), ah.InterfaceError, "returned numpy.ndarray with a copy"),
        (lambda x: x.values[: x.next()], ah.InterfaceError, "shapes"),
        (lambda x: x, ah.InterfaceError, "returned an object of the same type"),
        (lambda x: type(x)(x.values), ah.InterfaceError, "returned an object of the same type"),
        (lambda x: ah.asarray(x), ah.InterfaceError, "raised RecursionError: it calls arrayhub with its own object"),
        (lambda x: np.ma.masked_array([1.0, 2.0], [0, 1]), ah.InterfaceError, "MaskedArray: TypeRefusal"),
    ],
    ids=[
        *("raises", "refuses", "refused export", "gradient", "None", "number", "list", "text"),
        *("object", "copy", "two shapes", "itself", "its type", "calls back", "mask"),
    ],
)
def test_error_names_the_parse_function_that_failed(board, parse, error, words):
    name = board.__name__
    ah.register_library(name, types=["Board"], parse=parse)
    x = board.Board(np.arange(4.0))
    lengths = iter([2, 3] * 10)
    board.Board.next = lambda self: next(lengths)
    with pytest.raises(error) as raised:
        ah.asarray(x)
    text = str(raised.value)
    assert words.replace("'board'", repr(name)) in text
    assert f"registered for {name!r}" in text and f"{name}.Board: " in text


@pytest.mark.parametrize(
    ("advice", "words"), [(failing, "raised ZeroDivisionError"), (lambda x: 3, "returned 3; accepted: an")]
)
def test_error_names_the_advice_function_that_failed(board, advice, words):
    ah.register_library(board.__name__, advice={"Board": advice})
    with pytest.raises(ah.InterfaceError, match=rf"registered for '{board.__name__}', {words}"):
        ah.asarray(board.Board(np.arange(4.0)))


@pytest.mark.parametrize("function", [ah.placement, lambda x: ah.like(np.ones(2), x)], ids=["placement", "like"])
@pytest.mark.parametrize("parse", [failing, lambda x: x], ids=["raises", "itself"])
def test_failing_parse_function_of_a_model_raises(board, parse, function):
    ah.register_library(board.__name__, types=["Board"], parse=parse)
    with pytest.raises(ah.InterfaceError, match=rf"registered for '{board.__name__}', r"):
        function(board.Board(np.arange(4.0)))


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("shape", (3,), "returned shape (4,) for an object of shape (3,)"),
        ("dtype", np.dtype("f4"), "returned elements of float64 for an object of dtype float32"),
    ],
)
def test_error_states_how_the_array_differs_from_its_object(board, attribute, value, words):
    ah.register_library(board.__name__, types={"Board": "values"})
    x = board.Board(np.arange(4.0))
    assert ah.asarray(x).ptr == x.values.ctypes.data
    setattr(x, attribute, value)
    with pytest.raises(ah.InterfaceError, match="the attribute 'values', registered for") as raised:
        ah.asarray(x)
    assert words in str(raised.value)


def test_emit_with_a_model_receives_values_without_missing_ones(board):
    ah.register_library(board.__name__, types={"Board": "values"}, emit=lambda x, model: board.Board(ah.as_numpy(x)))
    made = ah.placement(board.Board(np.zeros(3))).convert([1.0, None], missing=0)
    assert made.values.tolist() == [1, 0]


def test_error_names_the_missing_attribute(board):
    ah.register_library(board.__name__, types={"Board": "memory.view()"})
    with pytest.raises(ah.InterfaceError, match=r"the attribute 'memory\.view\(\)'.* raised AttributeError"):
        ah.asarray(board.Board(np.arange(4.0)))


def test_types_that_unwrap_to_each_other_raise(board):
    second = type("Second", (), {"__module__": board.__name__, "__init__": _hold})
    ah.register_library(board.__name__, types={"Board": second, "Second": board.Board})
    same = ah.adapt("numpy")(lambda x: x)
    for function in (ah.asarray, ah.placement, lambda x: ah.like([1], x), same, lambda x: same([x, np.ones(1)])):
        with pytest.raises(ah.InterfaceError, match="leads back to it") as raised:
            function(board.Board(None))
        assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    ("emit", "copy", "error", "words"),
    [
        (failing, None, ah.InterfaceError, "failing, registered for 'board', raised ZeroDivisionError: on purpose"),
        (refusing, None, ah.Refusal, "refusing, registered for 'board', raised BufferError: the values"),
        (lambda a: None, None, ah.InterfaceError, "returned NoneType"),
        (lambda a: None, True, ah.InterfaceError, "returned NoneType"),
        (lambda a: np.asarray(a), None, ah.InterfaceError, "returned numpy.ndarray"),
    ],
    ids=["raises", "refuses", "None", "None for a copy", "another library"],
)
def test_error_names_the_emit_function_that_failed(board, emit, copy, error, words):
    name = board.__name__
    ah.register_library(name, types={"Board": "values"}, emit=emit)
    with pytest.raises(error) as raised:
        ah.convert(np.arange(4.0), name, copy=copy)
    assert words.replace("'board'", repr(name)) in str(raised.value)
    assert type(raised.value) is error and name in str(raised.value)


@pytest.mark.parametrize(
    "change", [lambda v: v.copy(), lambda v: v[1:], lambda v: v.view("i8")], ids=["copy", "shape", "type"]
)
def test_emit_whose_result_is_not_a_view_is_rejected(board, change):
    name = board.__name__
    ah.register_library(name, types={"Board": "values"}, emit=lambda a: board.Board(change(np.asarray(a))))
    x = np.arange(4.0)
    with pytest.raises(BufferError, match=rf"{name}\.emit.*copies the memory|copies the memory.*{name}\.emit"):
        ah.convert(x, name)
    for copy in (None, True) if (change(x).shape, change(x).dtype) != (x.shape, x.dtype) else ():
        with pytest.raises(BufferError, match=rf"{name}\.emit (converts|returns shape)"):
            ah.convert(x, name, copy=copy)


def test_error_of_an_import_for_a_plugin_has_the_call_of_explain(board):
    ah.register_library(board.__name__, types={"Board": "values"}, emit=lambda a: board.Board(np.asarray(a)))
    for x in (torch.ones(2, dtype=torch.complex64).conj(), pytest.importorskip("pyarrow").chunked_array([[1], [2]])):
        with pytest.raises(BufferError) as raised:
            ah.convert(x, board.__name__)
        assert raised.value.call == ah.explain(x, to=board.__name__).call
        assert len(eval(raised.value.call, {"arrayhub": ah, "x": x}).values) == 2


def test_emit_returning_writable_memory_is_rejected(board):
    name = board.__name__
    emit = lambda a: board.Board((ctypes.c_double * a.size).from_address(a.ptr))  # noqa: E731
    ah.register_library(name, types={"Board": "values"}, emit=emit)

    values = np.arange(4.0)
    assert ah.asarray(ah.convert(values, name)).ptr == values.ctypes.data
    values.flags.writeable = False
    with pytest.raises(BufferError, match="is read-only, but the result .* is writable"):
        ah.convert(values, name)
    assert ah.asarray(ah.convert(values, name, allow_readonly=True)).ptr == values.ctypes.data


# ------------------------------------------------------------------------------------------------ the rules


def test_parse_without_types_may_leave_objects_to_their_protocols(board):
    class Other:
        __array_interface__ = np.arange(2.0).__array_interface__

    Other.__module__ = board.__name__
    ah.register_library(board.__name__, parse=lambda x: getattr(x, "values", None))
    assert ah.asarray(board.Board(np.arange(4.0))).shape == (4,)
    assert ah.asarray(Other()).shape == (2,)
    assert "uses array_interface" in str(ah.explain(Other()))


def test_type_registered_as_none_is_rejected_despite_its_protocol(board):
    board.Board.__array_interface__ = property(lambda self: self.values.__array_interface__)
    x = board.Board(np.arange(4.0))
    assert ah.asarray(x).shape == (4,)
    ah.register_library(
        board.__name__, types={"Board": None}, advice={"Board": lambda x: f"x.values[:{len(x.values)}]"}
    )
    for via in (None, "array_interface"):
        with pytest.raises(TypeError, match=r"Call (arrayhub\.asarray\()?x\.values\[:4\]"):
            ah.asarray(x, via=via)


def test_registration_applies_to_types_that_were_imported_before(board):
    x = board.Board(np.arange(4.0))
    with pytest.raises(TypeError, match="does not support an array protocol"):
        ah.asarray(x)
    ah.register_library(board.__name__, types={"Board": "values"})
    assert ah.asarray(x).ptr == x.values.ctypes.data
    assert ah.asarray([x, x]).shape == (2, 4)
    ah.register_library(board.__name__, types={"Board": "other"})
    x.other = np.arange(3.0)
    assert ah.asarray(x).ptr == x.other.ctypes.data
    ah.register_library(board.__name__, advice={"Board": "x.values"})
    with pytest.raises(TypeError, match=r"Call arrayhub\.asarray\(x\.values\)"):
        ah.asarray(x)


def test_dims_of_a_registered_type_are_kept(board):
    ah.register_library(board.__name__, types={"Board": "values"})
    x = board.Board(np.zeros((2, 3)))
    x.dims = ("row", "column")
    assert ah.asarray(x).dims == ("row", "column")


def test_usm_of_a_registered_type_is_imported(board):
    memory = pytest.importorskip("dpctl.memory")
    ah.register_library(board.__name__, types={"Board": "values"})
    x = board.Board(memory.MemoryUSMShared(16))
    assert ah.asarray(x).usm_type == "shared"


@pytest.mark.parametrize(
    ("root", "arguments", "error", "words"),
    [
        ("a.b", dict(parse=len), TypeError, "root is 'a.b'; accepted: the name of a top-level module"),
        (3, dict(parse=len), TypeError, "root is 3"),
        ("board", {}, TypeError, "are omitted"),
        ("board", dict(parse=3), TypeError, "parse is 3; accepted: a function"),
        ("board", dict(emit="x"), TypeError, "emit is 'x'; accepted: a function"),
        ("board", dict(types="Board", parse=len), TypeError, "types is 'Board'; accepted: names of types"),
        ("board", dict(types=["Board"]), TypeError, "types contains only names"),
        ("board", dict(types=[3], parse=len), TypeError, "a key of types is 3"),
        ("board", dict(types={np.ndarray: "values"}), TypeError, "accepted: the name of a type, such as 'ndarray'"),
        ("board", dict(advice={3: "x.values"}), TypeError, "a key of advice is 3; accepted: the name of a type"),
        ("board", dict(types={"board.Board": "values"}), ValueError, "without the module. Write 'Board'"),
        ("board", dict(types={"board.core.Board": "values"}), ValueError, "without the module. Write 'Board'"),
        ("board", dict(advice={"board.Board": "x.values"}), ValueError, "a key of advice is 'board.Board'"),
        (np.linalg, dict(parse=len), TypeError, "root is 'numpy.linalg'; accepted: the name of a top-level module"),
        ("board", dict(types={"Board": "a b"}), TypeError, "types['Board'] is 'a b'; accepted: a path"),
        ("board", dict(types={"Board": "values"}, parse=len), TypeError, "omit parse"),
        ("board", dict(advice="x.values"), TypeError, "advice is 'x.values'; accepted: a dict"),
        ("board", dict(advice={"Board": 3}), TypeError, "advice['Board'] is 3"),
        ("torch", dict(parse=len), ValueError, "arrayhub already handles 'torch'; parse= is accepted only with types="),
        ("scipy", dict(parse=len), ValueError, "arrayhub already handles 'scipy'; parse= is accepted only with types="),
        ("sparse", dict(emit=len), ValueError, "arrayhub already exports to 'sparse'; omit emit="),
        ("torch", dict(emit=len), ValueError, "arrayhub already exports to 'torch'; omit emit="),
        ("polars", dict(emit=len), ValueError, "arrayhub already exports to"),
        ("pyarrow", dict(emit=len), ValueError, "arrayhub already exports to"),
        ("xarray", dict(emit=len), ValueError, "arrayhub already exports to"),
        ("dpctl", dict(emit=len), ValueError, "arrayhub already exports to"),
        ("xarray", dict(types={"DataArray": "data"}), ValueError, "arrayhub already handles xarray.DataArray"),
        ("gt4py", dict(advice={"NdArrayField": "x"}), ValueError, "arrayhub already handles gt4py.NdArrayField"),
        ("torch", dict(types={"Tensor": "data"}), ValueError, "arrayhub already handles torch.Tensor"),
    ],
)
def test_invalid_registrations_raise(root, arguments, error, words):
    with pytest.raises(error) as raised:
        ah.register_library(root, **arguments)
    assert words in str(raised.value) and str(raised.value).startswith("register_library: ")


def test_modules_are_accepted_as_the_root(board):
    ah.register_library(board, types={"Board": "values"})
    assert ah.asarray(board.Board(np.ones(2))).tolist() == [1, 1]


def test_names_of_nested_classes_contain_dots_but_names_with_modules_raise(board):
    name = board.__name__
    nested = type("Inner", (), {"__module__": name, "__qualname__": "Outer.Inner", "__init__": _hold})
    ah.register_library(name, types={"Outer.Inner": "values"})
    assert ah.asarray(nested(np.ones(2))).tolist() == [1, 1]
    sys.modules[f"{name}.core"] = board
    try:
        with pytest.raises(
            ValueError,
            match="a key of types is 'core.Board'; accepted: names of types without the module. Write 'Board'",
        ):
            ah.register_library(name, types={"core.Board": "values"})
    finally:
        del sys.modules[f"{name}.core"]


def test_error_for_a_type_that_is_not_registered_lists_the_registered_types(board):
    name = board.__name__
    ah.register_library(name, types={"Bord": "values", "Other": "values"})
    with pytest.raises(
        TypeError,
        match=f"; registered types of '{name}': Bord, Other. Add the type to arrayhub.register_library; acc",
    ):
        ah.asarray(board.Board(np.ones(2)))


@pytest.mark.slow
def test_types_are_added_to_a_built_in_library():
    python(
        "",
        """
        import numpy as np
        import arrayhub as ah

        class Holder:
            def __init__(self, data):
                self.data = data

        Holder.__module__ = "torch.holders"
        ah.register_library("torch", types={"Holder": "data"}, advice={"Later": "x.get()"})
        values = np.arange(3.0)
        assert ah.asarray(Holder(values)).ptr == values.ctypes.data
        import torch
        assert ah.asarray(torch.zeros(3)).shape == (3,)      # arrayhub's own importer is still used
        for library, kind in (("numpy", np.ndarray), ("torch", torch.Tensor)):
            assert ah.adapt(library)(lambda x: type(x))(Holder(torch.zeros(3))) is kind
        """,
    )


def test_memory_is_released_with_the_imported_array(board):
    ah.register_library(board.__name__, types={"Board": "values"})
    values = np.arange(4.0)
    gone = weakref.ref(values)
    a = ah.asarray(board.Board(values))
    del values
    gc.collect()
    assert gone() is not None and a.tolist() == [0.0, 1.0, 2.0, 3.0]
    del a
    gc.collect()
    assert gone() is None
