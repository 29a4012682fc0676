"""pytest plugin of `tools/peers.py`: pass the arrays of another project's tests through arrayhub.

`tools/peers.py` passes the settings as a JSON object in the environment variable ``ARRAYHUB_PEERS``. The plugin changes
the functions of the named test modules, and their decorators, while the modules are imported. The library under test is
not changed.
"""

import ast
import functools
import importlib.machinery
import importlib.util
import json
import linecache
import os
import pathlib
import sys

import arrayhub  # before other libraries: arrayhub selects the SYCL runtime that dpctl loads

# isort: split
import pytest

SETTINGS = json.loads(os.environ["ARRAYHUB_PEERS"])
# Types of values that consumers convert without an array protocol.
NOT_ARRAYS = (type(None), type, str, bool, int, float, complex, list, tuple, dict, set, range)

counts = {"arrays": 0, "refused": 0}
outcomes = {}


def count(array):
    """Count an array that arrayhub imported."""
    counts["arrays"] += 1
    return array


def forward(obj):
    """Import `obj` with arrayhub, and return the imported array, which the consumer receives instead of `obj`."""
    if isinstance(obj, NOT_ARRAYS):
        return obj
    try:
        imported = getattr(arrayhub, SETTINGS["importer"])(obj, copy=None)  # the default of other from_dlpack functions
    except BaseException:
        counts["refused"] += 1
        raise
    return count(imported)


@functools.cache  # always returns the same function, because tests compare functions by `is`
def first_argument(consumer):
    """Return a function that calls `consumer` with the first argument imported by arrayhub."""

    @functools.wraps(consumer)
    def routed(obj, *arguments, **keywords):
        return consumer(forward(obj), *arguments, **keywords)

    return routed


@functools.cache
def round_trip(producer):
    """Return a function that calls `producer`, and passes the result through arrayhub."""

    @functools.wraps(producer)
    def routed(*arguments, **keywords):
        made = producer(*arguments, **keywords)
        if not routable(made):
            counts["refused"] += 1
            return made
        return exported(count(arrayhub.asnested(made)), made)

    return routed


def exported(nested, made):
    """Export a NestedArray to pyarrow as an object with the type of `made`, the original object."""
    import pyarrow

    if isinstance(made, pyarrow.Table):
        return pyarrow.table(nested)
    if isinstance(made, pyarrow.ChunkedArray):
        return pyarrow.chunked_array(nested)
    return (pyarrow.record_batch if isinstance(made, pyarrow.RecordBatch) else pyarrow.array)(nested)


def routable(made):
    """Return whether `made` is an array of pyarrow, or a table with at least one column."""
    import pyarrow

    if isinstance(made, (pyarrow.RecordBatch, pyarrow.Table)):
        return made.num_columns > 0
    return isinstance(made, (pyarrow.Array, pyarrow.ChunkedArray))


class Router(ast.NodeTransformer):
    """Transform the functions of a module so that arrays pass through arrayhub between producers and consumers."""

    depth = 0

    def visit_FunctionDef(self, node):
        """Transform the body and the decorators, because decorators contain parametrized values."""
        self.depth += 1
        node.body = [self.visit(statement) for statement in node.body]
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        self.depth -= 1
        return node

    def visit_Call(self, node):
        """Leave calls of `isinstance` and `super` unchanged, because their arguments include classes."""
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "super"):
            return node
        return self.generic_visit(node)

    def visit_Name(self, node):
        """Wrap a function that is referred to by a name without a module."""
        return self.replaced(node)

    def visit_Attribute(self, node):
        """Wrap a function of a module, or the object whose protocol attribute is read."""
        if self.depth and isinstance(node.ctx, ast.Load) and node.attr in SETTINGS["attributes"]:
            owner = node.value
            if not (isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"):
                node.value = self.call("forward", self.visit(owner))
            return node
        changed = self.replaced(node)
        return self.generic_visit(node) if changed is node else changed

    def replaced(self, node):
        """Wrap a reference to a function that is in one of the suite's lists. Return any other node unchanged."""
        if self.depth and isinstance(node.ctx, ast.Load):
            name = ast.unparse(node)
            if name in SETTINGS["consumers"]:
                return self.call("first_argument", node)
            if name in SETTINGS["producers"]:
                return self.call("round_trip", node)
        return node

    def call(self, function, argument):
        """Return a call of `function`, a function of this module, with the given argument."""
        return ast.Call(ast.Name(f"_peers_{function}", ast.Load()), [argument], [])


class Loader(importlib.machinery.SourceFileLoader):
    """Loader that transforms the code of a test module. It does not read or write bytecode files."""

    def get_code(self, fullname):
        """Return the code of the transformed module."""
        tree = Router().visit(ast.parse(self.get_data(self.path), self.path))
        return compile(ast.fix_missing_locations(tree), self.path, "exec")

    def exec_module(self, module):
        """Add the functions that the transformed code calls to the module, and execute the module."""
        vars(module).update(_peers_forward=forward, _peers_first_argument=first_argument, _peers_round_trip=round_trip)
        super().exec_module(module)


class Finder:
    """Import finder for the suite's test modules. It precedes pytest's own finder."""

    def find_spec(self, name, path=None, target=None):
        """Return a spec with `Loader` for the files of the suite, and None for other modules."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin not in SETTINGS["files"]:
            return None
        return importlib.util.spec_from_file_location(name, spec.origin, loader=Loader(name, spec.origin))


def pytest_configure():
    """Install the finder before pytest's finder if arrays are to be routed."""
    if SETTINGS["routed"]:
        sys.meta_path.insert(0, Finder())


def message_of(report):
    """Return the exception of a failed case and the source line that raised it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return f"{crash.message} <- {linecache.getline(crash.path, crash.lineno).strip()}" if crash else ""


def pytest_runtest_logreport(report):
    """Record the outcome of each case. A phase that does not pass overrides the outcome of earlier phases."""
    outcome = "failed" if report.failed else "skipped" if report.skipped else "passed"
    if hasattr(report, "wasxfail"):
        outcome = "xfailed"
    if report.when == "call" or outcome != "passed":
        outcomes[report.nodeid] = [outcome, message_of(report)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """Write the report that `tools/peers.py` compares."""
    report = {"outcomes": outcomes, **counts}
    pathlib.Path(SETTINGS["report"]).write_text(json.dumps(report))
