"""Check that modules import only from their own layer and from lower layers, and that imports are not circular.

docs/architecture.md defines the layers. LAYERS repeats the list, and a test compares LAYERS with the page.
"""

import ast
import re
import textwrap
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from children import python

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "arrayhub"

# Layers, the lowest first. Each name is a folder or a module of arrayhub.
LAYERS = (
    ("_core",),
    ("runtimes", "sycl_runtime"),
    ("adapters",),
    ("libraries",),
    ("transfer",),
    ("array",),
    ("convert",),
    ("storage", "inspection", "datashape", "transport", "capi"),
    ("nested", "sparse"),
    ("testing",),
    ("_clone", "demo", "__init__", "__main__"),
)
LAYER_OF = {name: layer for layer, names in enumerate(LAYERS, start=1) for name in names}

CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n#]+)"
    r"|c?import[ \t]+(?P<plain>[^\n#]+))",
    re.MULTILINE,
)
IMPORTED = re.compile(r"^from (?P<module>[\w.]+) c?import (?P<names>\([^)]*\)|[^\n#]+)", re.MULTILINE)
INCLUDE = re.compile(r'^include "([\w/]+\.pxi)"', re.MULTILINE)
CODE = ("py", "pyx", "pxd", "pxi")


def parts_of(file):
    """Return the .pxi files that a .pyx includes."""
    return [file.parent / name for name in INCLUDE.findall(file.read_text())] if file.suffix == ".pyx" else []


def module_name(file, package):
    """Return the dotted name of the module of a source file, which is the same for a .pyx, its .pxd and its .pyi."""
    return ".".join((package.name, *file.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")


def names_in(clause):
    """Return the imported names of ``a, b as c`` or ``(a,\n b)``."""
    clause = re.sub(r"#.*", "", clause).strip("() \n")
    return [part.split()[0] for part in clause.replace("\n", " ").split(",") if part.strip()]


def imports_of(file):
    """Yield (module, names) for each import and cimport of a file and its parts, including imports inside functions."""
    text = "\n".join(source.read_text() for source in (file, *parts_of(file)))
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: relative import; accepted: absolute imports"
                yield node.module, [alias.name for alias in node.names]
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, []
        return
    for found in CYTHON_IMPORT.finditer(text):
        if found["module"]:
            yield found["module"], names_in(found["names"])
        else:
            for name in names_in(found["plain"]):
                yield name, []


def import_graph(package):
    """Map every module of a package to the modules of the same package that it imports."""
    files = [file for suffix in ("py", "pyx", "pxd") for file in package.rglob(f"*.{suffix}")]
    modules = {module_name(file, package) for file in files}
    graph = {module: set() for module in modules}
    for file in files:
        importer = module_name(file, package)
        for module, names in imports_of(file):
            if module.partition(".")[0] != package.name:
                continue
            submodules = {f"{module}.{name}" for name in names} & modules
            graph[importer] |= (submodules or {module}) - {importer}
    return graph


def layer_of(module):
    parts = module.split(".")
    return LAYER_OF[parts[1] if len(parts) > 1 else "__init__"]


def upward_imports(graph):
    return sorted(
        f"{importer} (layer {layer_of(importer)}) imports {imported} (layer {layer_of(imported)})"
        for importer, imports in graph.items()
        for imported in imports
        if layer_of(imported) > layer_of(importer)
    )


GRAPH = import_graph(PACKAGE)
MOST_EXTENSION_MODULES = 31
INSTALLED_AS_IT_IS = {".py", ".pyi", ".pxd", ".h", ".hpp", ".typed", ".cmake", ".pc"}


def test_every_module_has_a_layer():
    unknown = {module for module in GRAPH if "." in module and module.split(".")[1] not in LAYER_OF}
    assert not unknown, f"add to LAYERS and to docs/architecture.md: {sorted(unknown)}"


def test_all_imported_modules_exist():
    """Imports inside functions are included, because other tests may not execute them."""
    imported = {module for imports in GRAPH.values() for module in imports}
    assert imported <= set(GRAPH), sorted(imported - set(GRAPH))


def test_modules_import_only_from_lower_layers():
    assert upward_imports(GRAPH) == []


def test_imports_are_not_circular():
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail("circular imports: " + " -> ".join(error.args[1]))


def test_import_graph_has_known_imports():
    """The tests above would also pass on an empty graph, so this test checks that the graph has known imports."""
    assert "arrayhub._core.descriptor" in GRAPH["arrayhub.array.usm_array"]
    assert "arrayhub.adapters.dlpack" in GRAPH["arrayhub.array.usm_array"]
    assert "arrayhub._core.errors" in GRAPH["arrayhub._core.descriptor"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("layout.pxd", "from arrayhub.adapters.dlpack cimport parse\n"),
        ("layout.pyx", "from arrayhub.adapters cimport (\n    dlpack,  # why\n)\n"),
        ("layout.pyx", "def f():\n    import arrayhub.adapters.dlpack as d\n"),
        ("layout.pyx", "cimport arrayhub.adapters.dlpack\n"),
        ("layout.py", "def f():\n    from arrayhub.adapters import dlpack\n"),
        ("layout.py", "import arrayhub.adapters.dlpack\n"),
    ],
)
def test_check_reports_an_upward_import(tmp_path, name, text):
    package = tmp_path / "arrayhub"
    (package / "_core").mkdir(parents=True)
    (package / "adapters").mkdir()
    (package / "adapters" / "dlpack.pyx").write_text("")
    (package / "_core" / name).write_text(text)
    assert upward_imports(import_graph(package)) == [
        "arrayhub._core.layout (layer 1) imports arrayhub.adapters.dlpack (layer 3)"
    ]


def test_every_file_is_installed():
    """meson.build lists files by name. A file that is not listed is missing from the installed package."""
    build = (PACKAGE / "meson.build").read_text()
    compiled = set(re.findall(r"'([\w/]+)'", re.search(r"compiled = \[(.*?)\]", build, re.S)[1]))
    sources = {
        f"{folder}/{file}".removeprefix("./")
        for folder, files in re.findall(r"'([\w./]+)': \[(.*?)\]", build, re.S)
        for file in re.findall(r"'([\w.-]+)'", files)
    }
    assert len(compiled) <= 26, "each module makes the import and the build longer"
    tree = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*") if file.suffix in INSTALLED_AS_IT_IS}
    # An in-place build writes headers beside the compiled modules.
    beside_compiled = {f"{module}{suffix}" for module in compiled for suffix in (".pxd", ".pyi", ".h", "_api.h")}
    assert {file.relative_to(PACKAGE).with_suffix("").as_posix() for file in PACKAGE.rglob("*.pyx")} == compiled
    assert tree - beside_compiled == sources - beside_compiled


def test_docs_list_the_same_layers():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", text, re.MULTILINE)
    documented = {int(number): set(re.findall(r"`(\w+)/?`", names)) for number, names in rows}
    built = {name for module in GRAPH for name in module.split(".")[1:2]} | {"__init__"}
    assert documented == {
        layer: set(names) & built for layer, names in enumerate(LAYERS, start=1) if set(names) & built
    }


def test_every_part_is_included_once():
    """A .pxi file that no module includes would not be compiled."""
    included = [part for file in PACKAGE.rglob("*.pyx") for part in parts_of(file)]
    assert sorted(included) == sorted(PACKAGE.rglob("*.pxi"))


# Matches the names that a part defines at its top level: functions, classes, structs, enumerations with their
# members, and variables.
DEFINED = re.compile(
    r"^(?:(?:cdef|cpdef|ctypedef)\s+(?:api |inline |packed |readonly )*"
    r"(?:(?:class|struct|enum|union)\s+(?P<type>\w+)|(?!extern|enum:)[^(\n=]*?[ *)](?P<name>\w+)\s*(?:\(|=|\[|$))"
    r"|def (?P<function>\w+)|class (?P<plain>\w+)|(?P<constant>_?[A-Z][A-Z_]+) = )",
    re.MULTILINE,
)
CYTHON_TEXT = re.compile(r'"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*')


IN_PARTS = sorted(file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.pyx") if parts_of(file))
# Modules whose parts call each other: a node contains nodes, so the functions of all parts are recursive.
RECURSIVE = ["nested/array.pyx"]


def defined_in(text):
    return {name for match in DEFINED.finditer(text) for name in match.groups() if name}


def called_in(text):
    """Return the names that a text calls. Attributes, strings and comments are ignored."""
    return set(re.findall(r"(?<![\w.])([A-Za-z_]\w*)(?=\()", CYTHON_TEXT.sub("", text)))


def uses_of_later_parts(parts):
    """Yield (part, name, later part) for each function that a part calls and that a later part defines."""
    texts = [part.read_text() for part in parts]
    for k, text in enumerate(texts):
        for later in range(k + 1, len(parts)):
            for name in sorted((called_in(text) & defined_in(texts[later])) - defined_in(text)):
                yield parts[k].name, name, parts[later].name


@pytest.mark.parametrize("module", [module for module in IN_PARTS if module not in RECURSIVE])
def test_part_calls_only_functions_of_earlier_parts(module):
    """A part depends only on earlier parts, as a module depends only on lower layers."""
    assert list(uses_of_later_parts(parts_of(PACKAGE / module))) == []


@pytest.mark.parametrize("module", IN_PARTS)
def test_name_has_one_meaning_in_all_parts_of_a_module(module):
    """The parts are one namespace, so a second definition of a name would silently replace the first."""
    meanings = defaultdict(set)
    for part in [PACKAGE / module, *parts_of(PACKAGE / module)]:
        text = part.read_text()
        for match in IMPORTED.finditer(text):
            for name in re.sub(r"#.*", "", match["names"]).strip("()\n ").replace("\n", " ").split(","):
                if name.strip():
                    own, _, other = name.strip().partition(" as ")
                    meanings[other.strip() or own.strip()].add(f"{match['module']}.{own.strip()}")
        for name in defined_in(text):
            meanings[name].add(part.name)
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_check_reports_use_of_a_later_part(tmp_path):
    (tmp_path / "a.pxi").write_text('"""about g()"""\n\ncdef int f(int x) except -1:\n    return g(x)  # h(x)\n')
    (tmp_path / "b.pxi").write_text(
        "cdef inline int g(int x) noexcept:\n    return h(x)\n\n\ncdef object h(int x):\n    pass\n"
    )
    assert list(uses_of_later_parts([tmp_path / "a.pxi", tmp_path / "b.pxi"])) == [("a.pxi", "g", "b.pxi")]
    assert list(uses_of_later_parts([tmp_path / "b.pxi", tmp_path / "a.pxi"])) == []


def test_import_graph_includes_the_imports_of_parts(tmp_path):
    package = tmp_path / "arrayhub"
    (package / "_core").mkdir(parents=True)
    (package / "adapters").mkdir()
    (package / "adapters" / "dlpack.pyx").write_text("")
    (package / "_core" / "layout.pyx").write_text('"""Layouts."""\n\ninclude "strides.pxi"  # a part\n')
    (package / "_core" / "strides.pxi").write_text("from arrayhub.adapters.dlpack cimport parse\n")
    assert import_graph(package)["arrayhub._core.layout"] == {"arrayhub.adapters.dlpack"}


def test_names_of_compiled_modules_are_unique():
    """Meson builds all modules in one folder, independent of their installation folder."""
    names = [file.stem for file in PACKAGE.rglob("*.pyx")]
    assert len(names) == len(set(names)), sorted(name for name in set(names) if names.count(name) > 1)


def test_number_of_extension_modules_is_limited():
    """Each extension module takes time to build and to import, even if the module is small."""
    assert len(list(PACKAGE.rglob("*.pyx"))) <= MOST_EXTENSION_MODULES


MODULES_OF_A_PATH = 4  # the maximum, so that a reader can remember the modules


# Paths that may pass more modules, and their maximum.
LIMITS = {
    "How does a string column of Arrow become a pandas Series?": 8,
    "What does a dask worker do with an array?": 6,
}


def code_paths(section="Five paths through the code"):
    """Return the question of each path in docs/architecture.md, and the (module, function) pairs of its steps."""
    text = (ROOT / "docs" / "architecture.md").read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.split(r"^\*\*(.+?)\*\*", text, flags=re.MULTILINE)
    return {
        question: [re.findall(r"`([\w/]+):(\w+)`", step) for step in re.findall(r"^\| .+", text, re.MULTILINE)]
        for question, text in zip(found[1::2], found[2::2], strict=True)
    }


def named_functions():
    """Return the (module, function) pairs that docs/architecture.md names."""
    return sorted(
        set(re.findall(r"`([\w/]+):(\w+)`", (ROOT / "docs" / "architecture.md").read_text())) - {("module", "function")}
    )


@pytest.mark.parametrize(("module", "function"), named_functions())
def test_functions_that_the_docs_name_exist(module, function):
    texts = [(PACKAGE / module).with_suffix(suffix) for suffix in (".py", ".pyx", ".pxd", ".pxi")]
    source = "\n".join(text.read_text() for text in texts if text.exists())
    assert re.search(rf"^\s*(?:def|cp?def\b[^\n(]*?) ?\*?{function}\(", source, re.MULTILINE), (
        f"{module} lacks {function}"
    )


@pytest.mark.parametrize("question", code_paths())
def test_paths_pass_at_most_four_modules(question):
    steps = [step for step in code_paths()[question] if step]
    modules = {module for step in steps for module, _ in step}
    assert len(steps) >= 3 and len(modules) <= MODULES_OF_A_PATH, f"{question} {sorted(modules)}"


def test_all_paths_are_found_in_the_docs():
    assert len(code_paths()) == 5
    assert len(named_functions()) >= 15
    assert code_paths("Two longer paths").keys() == LIMITS.keys()


# The call of each longer path. The second call is traced, because the first call imports modules.
CALLS = {
    "How does a string column of Arrow become a pandas Series?": """
        import pandas, pyarrow
        column = pyarrow.array(["a", None, "bcd"])
        call = lambda: arrayhub.as_pandas(arrayhub.asnested(column))
    """,
    "What does a dask worker do with an array?": """
        import distributed.protocol as protocol, numpy
        arrayhub.transport.register_dask()
        header, frames = protocol.serialize(arrayhub.asarray(numpy.arange(1000.0)))
        frames = [bytes(frame) for frame in frames]
        call = lambda: protocol.deserialize(header, frames)
    """,
}
TRACED = """
call()
seen = set()

def record(frame, event, argument):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("arrayhub."):
        seen.add((name.removeprefix("arrayhub.").replace(".", "/"), frame.f_code.co_name))

sys.setprofile(record)
call()
sys.setprofile(None)
print(sorted(seen))
"""


@pytest.mark.slow
@pytest.mark.parametrize("question", LIMITS)
def test_longer_paths_name_the_modules_that_run(question):
    """Each path names all modules whose Python functions its call runs, except those of `_core`."""
    if "dask" in question:
        pytest.importorskip("distributed")
    steps = {step for row in code_paths("Two longer paths")[question] for step in row}
    modules = {module for module, _ in steps}
    assert len(modules) <= LIMITS[question], sorted(modules)
    program = "import sys, arrayhub\n" + textwrap.dedent(CALLS[question]) + TRACED
    ran = {step for step in ast.literal_eval(python(program)) if not step[0].startswith("_core/")}
    assert ran, "the trace is empty"
    assert {module for module, _ in ran} <= modules
    assert steps & ran


# Cython's code for these blocks requires the traceback of an exception.
HANDLER = re.compile(r"except\b[^#]*:(?:\s*#.*)?$")
WITH = re.compile(r"with (?!nogil\b|gil\b|cython\.critical_section\b).*:(?:\s*#.*)?$")
JUMP = re.compile(r"(?:return|continue|break)\b")
PLAIN_RETURN = re.compile(r"return\b\s*\w*\s*(?:#.*)?$")


def takes_traceback(text):
    """Return the lines of a Cython source that need a traceback: jumps out of an ``except`` clause, and `with`.

    A return of a constant or a variable does not need a traceback if the clause does not name the exception.
    """
    found, clauses = [], []  # clauses: (indentation, whether it names the exception) of each enclosing ``except``
    for number, line in enumerate(text.splitlines(), start=1):
        code, indent = line.strip(), len(line) - len(line.lstrip())
        if not code or code.startswith("#"):
            continue
        clauses = [clause for clause in clauses if clause[0] < indent]
        if handler := HANDLER.match(code):
            clauses.append((indent, " as " in handler[0].partition("#")[0]))
        kept = any(named for _, named in clauses) or not PLAIN_RETURN.match(code)
        if WITH.match(code) or (clauses and kept and JUMP.match(code)):
            found.append((number, code))
    return found


COMPILED = sorted(
    path.relative_to(PACKAGE).as_posix() for suffix in ("pyx", "pxi") for path in PACKAGE.rglob(f"*.{suffix}")
)


@pytest.mark.parametrize("module", COMPILED)
def test_statements_that_need_a_traceback_are_rejected(module):
    """Cython 3.1 and 3.2 read a traceback in `with` and in jumps out of `except`. A MemoryError may lack it."""
    assert takes_traceback((PACKAGE / module).read_text()) == []


def test_check_reports_a_return_inside_except():
    text = (
        "try:\n    f()\nexcept E:\n    return 1\nexcept F as e:\n    x = 1\n    return e\nexcept G:\n    return g()\n"
    )
    assert takes_traceback(text) == [(7, "return e"), (9, "return g()")]


@pytest.mark.parametrize("jump", ["continue", "break"])
def test_check_reports_other_jumps_and_with(jump):
    assert takes_traceback(f"for x in y:\n    try:\n        f()\n    except E:\n        {jump}\n") == [(5, jump)]
    assert takes_traceback("with f() as x:\n    g()\n") == [(1, "with f() as x:")]
    assert takes_traceback("with nogil:\n    g()\n") == []


# Matches a comparison of a node's kind with one or more kinds: `t.kind == LIST`, `node.kind in ("list", "regular")`.
COMPARED_KIND = re.compile(r"\bkind\b\s*(?:==|!=|in\b|not in\b)\s*\(?\s*(?:\"(\w+)\"|(?!NULL\b)([A-Z_]+)\b)")


def compared_kinds(text):
    from arrayhub._core.tree import KIND_NAMES

    found = [names[0] or names[1].lower() for names in COMPARED_KIND.findall(text)]
    return [name for name in found if name in KIND_NAMES]


def test_node_kinds_are_not_compared_outside_their_table():
    folders = [PACKAGE / folder for folder in ("_core", "adapters", "nested", "capi", "inspection", "transport")]
    files = [file for folder in folders for suffix in CODE for file in folder.rglob(f"*.{suffix}")]
    assert {file.name: compared_kinds(file.read_text()) for file in files if compared_kinds(file.read_text())} == {}


@pytest.mark.parametrize("text", ["if t.kind == LIST:", 'if node.kind in ("string", "bytes"):', 'node.kind != "flat"'])
def test_check_reports_a_comparison_of_kinds(text):
    assert compared_kinds(text)


def test_tables_of_node_kinds_are_complete():
    from arrayhub._core.tree import KIND_NAMES, per_kind

    rows = dict.fromkeys(KIND_NAMES, 0)
    assert per_kind(**rows) == rows
    with pytest.raises(ImportError, match="record"):
        per_kind(**{name: 0 for name in rows if name != "record"})
    with pytest.raises(ImportError, match="tensor"):
        per_kind(**rows, tensor=0)


MOST_HOOKS = 8


def test_hooks_name_modules_of_upper_layers():
    """Hooks let lower layers call upper layers. Each leads upwards, is used, and names a module with the functions."""
    import importlib

    from arrayhub._core.hooks import UPWARD

    assert len(UPWARD) <= MOST_HOOKS
    used = {
        (name, function, file.relative_to(PACKAGE).parts[0])
        for suffix in CODE
        for file in PACKAGE.rglob(f"*.{suffix}")
        for name, function in re.findall(r"(?<![\w.])hooks\.(\w+)\.(\w+)", file.read_text())
    }
    used.discard(("NAME", "function", "_core"))  # in the docstring of `hooks`
    assert {name for name, _, _ in used} == set(UPWARD)
    absent = [
        (name, function) for name, function, _ in used if not hasattr(importlib.import_module(UPWARD[name]), function)
    ]
    assert absent == []
    downwards = [(name, folder) for name, _, folder in used if LAYER_OF[folder] > LAYER_OF[UPWARD[name].split(".")[1]]]
    assert downwards == []


def test_unknown_hook_raises_attribute_error():
    from arrayhub._core.hooks import hooks

    with pytest.raises(AttributeError, match="hooks\\.draw"):
        hooks.draw  # noqa: B018


def test_test_files_are_named_after_modules():
    """tests/<folder>/test_<module>.py and test_<module>_<topic>.py test a module or a part in arrayhub/<folder>."""
    unnamed = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = PACKAGE / file.parent.relative_to(ROOT / "tests")
        if not folder.is_dir() or file.name == "test_errors.py":
            continue
        modules = {source.stem for suffix in CODE for source in folder.glob(f"*.{suffix}")}
        modules |= {part.stem for source in folder.glob("*.pyx") for part in parts_of(source)}
        name = file.stem.removeprefix("test_")
        if not any(name == module or name.startswith(f"{module}_") for module in modules):
            unnamed.append(file.relative_to(ROOT).as_posix())
    assert unnamed == []


def test_each_folder_of_the_package_has_tests_that_are_not_slow():
    for folder in (file.parent for file in PACKAGE.rglob("__init__.py") if file.parent != PACKAGE):
        texts = [file.read_text() for file in (ROOT / "tests" / folder.relative_to(PACKAGE)).glob("test_*.py")]
        fast = [text for text in texts if not re.search(r"^pytestmark = .*\n?.*mark\.slow", text, re.MULTILINE)]
        tests = sum(len(re.findall(r"^def test_", text, re.MULTILINE)) for text in fast)
        slow = sum(len(re.findall(r"^@pytest\.mark\.slow$", text, re.MULTILINE)) for text in fast)
        assert tests > slow or folder.name == "cpython", folder
