"""Test that examples in docstrings print the shown output, and that "Return" and "Yield" match the code."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from children import python

import arrayhub
from arrayhub.transport.ipc import IpcHandle

MODULES = {
    "datashape": ("Type", "of", "parse"),
    "storage": ("Plan", "get_dims", "get_origin", "layout_for", "plan"),
    "transport": ("as_mpi", "pickling", "register_dask"),
}
PUBLIC = {name: getattr(arrayhub, name) for name in arrayhub.__all__}
PUBLIC |= {
    f"{module}.{name}": getattr(getattr(arrayhub, module), name) for module, names in MODULES.items() for name in names
}
PUBLIC["ipc_handle.IpcHandle"] = IpcHandle


def documented():
    """Yield the name and the docstring of each public object, and of the methods and properties of public classes."""
    for name, public in PUBLIC.items():
        yield name, public.__doc__
        for attribute, member in vars(public).items() if isinstance(public, type) else ():
            if not attribute.startswith("_"):
                yield f"{name}.{attribute}", member.__doc__


TEXTS = {name: text for name, text in documented() if isinstance(text, str) and ">>>" in text}
NEEDED = {
    *("USMArray", "as_arrow", "as_awkward", "as_jax", "as_numba", "as_numpy", "as_pandas", "as_polars", "as_torch"),
    *("ipc_handle.IpcHandle", "NestedArray", "asarray", "asnested", "to_host"),
}


def test_common_functions_have_examples():
    assert NEEDED - set(TEXTS) == set()


@pytest.mark.slow
def test_example_of_register_library_prints_its_output():
    """The example runs in another process, because a library cannot be unregistered."""
    python("""
        import doctest, arrayhub
        text = arrayhub.register_library.__doc__
        test = doctest.DocTestParser().get_doctest(text, {}, "register_library", None, 0)
        results = doctest.DocTestRunner().run(test)
        assert results.attempted and not results.failed, results
    """)


FUNCTIONS = {
    name: public for name, public in PUBLIC.items() if inspect.isroutine(public) or hasattr(public, "__code__")
}


NEVER_RAISE = {"get_include", "storage.get_origin"}
RETURN_NONE = {"register_library"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_document_parameters_result_and_errors(name):
    sections = re.split(r"^(\w+)\n-+$", inspect.getdoc(FUNCTIONS[name]), flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    listed = re.findall(r"^[*a-z][\w, *]*(?= : |$)", texts.get("Parameters", ""), re.MULTILINE)
    named = {word.strip(" *") for names in listed for word in names.split(",")}
    assert set(inspect.signature(FUNCTIONS[name]).parameters) == named
    assert ("Raises" in texts) == (name not in NEVER_RAISE)
    assert ("Returns" in texts or "Yields" in texts) == (name not in RETURN_NONE)


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "register_library"])
def test_examples_in_docstrings_print_their_output(name):
    for library in re.findall(r">>> import (\w+)", TEXTS[name]):
        pytest.importorskip(library)
    if name == "transport.as_mpi":
        pytest.importorskip("mpi4py.MPI", exc_type=(ImportError, RuntimeError))
    globals_ = {public: getattr(arrayhub, public) for public in arrayhub.__all__} | {
        "arrayhub": arrayhub,
        "np": np,
        "numpy": np,
    }
    test = doctest.DocTestParser().get_doctest(TEXTS[name], globals_, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    results = runner.run(test, out=said.append)
    assert results.attempted > 0 or "+SKIP" in TEXTS[name]  # examples that require a GPU are skipped
    assert results.failed == 0, "".join(said)


# ------------------------------------------------------------------------ summaries that begin with "Return" or "Yield"

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for folder in ("arrayhub", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]


def own_statements(function):
    """Yield the syntax nodes of a function, without the nodes of nested functions and classes."""
    nodes = [*ast.iter_child_nodes(function)]
    while nodes:
        node = nodes.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            nodes += ast.iter_child_nodes(node)


def fits_body(summary, function):
    """Return whether the first word of a summary, "Return" or "Yield", matches the statements of the function."""
    nodes = [*own_statements(function)]
    yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
    if summary.startswith("Yield "):
        return yields
    if yields:
        decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
        return summary.startswith("Return a context manager") and any("contextmanager" in name for name in decorators)
    return any(isinstance(node, ast.Return) and node.value is not None for node in nodes)


def contradictions(source):
    """Return (line, name, summary) for each summary whose "Return" or "Yield" does not match the code."""
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    summaries = [(node, (ast.get_docstring(node) or "").partition("\n")[0]) for node in found]
    return [
        (node.lineno, node.name, summary)
        for node, summary in summaries
        if summary.startswith(("Return ", "Yield "))
        and (isinstance(node, ast.ClassDef) or not fits_body(summary, node))
    ]


@pytest.mark.slow
def test_summaries_agree_with_return_and_yield():
    wrong = {path.relative_to(ROOT).as_posix(): contradictions(path.read_text()) for path in SOURCES}
    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    ("summary", "body", "is_wrong"),
    [
        ("Return one.", "return 1", False),
        ("Return one.", "assert 1", True),
        ("Return one.", "return", True),
        ("Return numbers.", "yield 1", True),
        ("Yield numbers.", "yield 1", False),
        ("Yield numbers.", "return [1]", True),
        ("Return one.", "def inner(): return 1", True),
        ("Return a context manager.", "yield", True),
        ("Check one.", "assert 1", False),
    ],
)
def test_contradicting_summaries_are_found(summary, body, is_wrong):
    assert bool(contradictions(f'def function():\n    """{summary}"""\n    {body}\n')) == is_wrong


def test_summary_of_a_class_must_not_begin_with_return():
    assert contradictions('class Number:\n    """Return one."""\n') == [(1, "Number", "Return one.")]
