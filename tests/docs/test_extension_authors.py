"""Compile the example extensions of docs/howto, and call each extension with the same arguments.

The extensions are built once per session, outside of the source tree.
"""

import array
import ctypes
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
import threading
import weakref
from pathlib import Path

import native_build as build
import numpy as np
import pytest
from children import finished, resident

import arrayhub as ah

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOWTO = DOCS / "howto"


def programs(page):
    """Return {file name: program} for each code block that begins with a comment that contains a file name."""
    blocks = re.findall(r"^```\w+\n(?://|#|/\*) (\w[\w.]*\.\w+)(?: \*/)?\n(.*?)^```$", page.read_text(), re.M | re.S)
    return dict(blocks)


def written(folder, page, name):
    """Write the program `name` of `page` to `folder`, and return the path of the file."""
    path = folder / name
    with open(folder / "programs.lock", "w") as lock:
        build.fcntl.flock(lock, build.fcntl.LOCK_EX)
        if not path.exists():
            path.write_text(programs(HOWTO / page)[name])
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return build.shared_folder(tmp_path_factory, "native_authors")


# ---------------------------------------------------------------------------------- extensions of each kind of author


def c(folder):
    source = written(folder, "c_author.md", "c_author.c")
    return build.compiled(folder, "c_author", [source], "-std=c11", *build.STRICT)


def limited(folder):
    source = written(folder, "c_author.md", "c_author.c")
    (folder / "limited").mkdir(exist_ok=True)
    return build.compiled(folder / "limited", "c_author", [source], "-std=c11", *build.STRICT, build.LIMITED)


def cython(folder):
    pytest.importorskip("Cython")
    source = written(folder, "cython_author.md", "cython_author.pyx")

    def generate(path):
        build.run(sys.executable, "-m", "cython", "-3", "-I", build.PACKAGE_ROOT, source, "-o", path)

    return build.compiled(folder, "cython_author", [build.once(folder, "cython_author.c", generate)], "-w")


def pybind11(folder):
    return with_pybind11(folder, "pybind11_author", written(folder, "cpp_author.md", "pybind11_author.cpp"))


def with_pybind11(folder, name, source):
    pybind = pytest.importorskip("pybind11")
    includes = (build.INCLUDE, pybind.get_include())
    flags = ("-std=c++17", "-Wall", "-Wextra", "-Werror")
    # gcc's sanitizers cause false warnings about pybind11's small vectors, and move arguments from stack to heap.
    if build.SANITIZED:
        flags += ("-Wno-maybe-uninitialized", "--param=asan-use-after-return=0")
    return build.compiled(folder, name, [source], *flags, compiler=build.CXX, includes=includes)


def nanobind(folder):
    return with_nanobind(folder, "nanobind_author", written(folder, "cpp_author.md", "nanobind_author.cpp"))


def with_nanobind(folder, name, source, *options):
    nano = pytest.importorskip("nanobind")
    own, include = Path(nano.source_dir()), Path(nano.include_dir())
    robin = include.parent / "ext" / "robin_map" / "include"

    def library(path):  # compiles nanobind's runtime library
        folders = [f"-I{place}" for place in (include, robin, build.PYTHON_INCLUDE)]
        flags = ("-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-w", "-fno-strict-aliasing", *build.SANITIZED)
        build.run(*build.CXX, *flags, *folders, "-c", own / "nb_combined.cpp", "-o", path)

    part = build.once(folder, "nanobind.o", library)
    return build.compiled(
        folder, name, [source, part], *options, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing",
        compiler=build.CXX, includes=(build.INCLUDE, include),
    )  # fmt: skip


def rust(folder):
    rustc = shutil.which("rustc") or shutil.which("rustc", path=str(Path.home() / ".cargo" / "bin"))
    if rustc is None:
        pytest.skip("rustc is missing")
    source = written(folder, "rust_author.md", "rust_author.rs")

    def make(path):
        build.run(rustc, "--edition", "2021", "--crate-type", "cdylib", "-O", source, "-o", path)

    return build.once(folder, "rust_author" + build.SUFFIX, make)


def project(folder, name, page, source, *files):
    """Write an example of `page`, and build files of the page native_build.md, to a new folder. Return the folder.

    The example's module is renamed to `name`, because a process can import each module only once. In the names of the
    build files, the part between two dots is omitted, as in CMakeLists.nanobind.txt.
    """
    place = folder / name
    place.mkdir(exist_ok=True)
    stem, suffix = source.split(".")
    texts = {f"{name}.{suffix}": programs(HOWTO / page)[source]}
    for file in files:
        texts[re.sub(r"\.\w+(?=\.)", "", file)] = programs(HOWTO / "native_build.md")[file]
    for file, text in texts.items():
        (place / file).write_text(text.replace(stem, name))
    return place


def cmake_project(folder, name, *files):
    return project(folder, name, "cpp_author.md", "pybind11_author.cpp", "CMakeLists.txt", *files)


def cmake(folder):
    pybind = pytest.importorskip("pybind11")
    program = shutil.which("cmake")
    if program is None:
        pytest.skip("cmake is missing")

    def make(path):
        place = cmake_project(folder, "cmake_author")
        config = build.run(sys.executable, "-m", "arrayhub", "config", "--cmakedir", env=environment()).strip()
        settings = (
            f"-Darrayhub_DIR={config}",
            f"-Dpybind11_DIR={pybind.get_cmake_dir()}",
            f"-DPython_EXECUTABLE={sys.executable}",
        )
        build.run(
            program, "-S", place, "-B", place / "build", "-DCMAKE_BUILD_TYPE=", "-DCMAKE_CXX_FLAGS=-O1", *settings
        )
        build.run(program, "--build", place / "build")
        shutil.copy(place / "build" / f"cmake_author{build.SUFFIX}", path)

    return build.once(folder, "cmake_author" + build.SUFFIX, make)


def cmake_nanobind(folder):
    pytest.importorskip("nanobind")
    program = shutil.which("cmake")
    if program is None:
        pytest.skip("cmake is missing")

    def make(path):
        place = project(folder, "cmake_nanobind", "cpp_author.md", "nanobind_author.cpp", "CMakeLists.nanobind.txt")
        settings = (f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=", "-DCMAKE_CXX_FLAGS=-O1")
        build.run(program, "-S", place, "-B", place / "build", *settings, env=environment())
        build.run(program, "--build", place / "build")
        shutil.copy(place / "build" / f"cmake_nanobind{build.SUFFIX}", path)

    return build.once(folder, "cmake_nanobind" + build.SUFFIX, make)


def meson(folder):
    program = shutil.which("meson") or shutil.which("meson", path=os.path.dirname(sys.executable))
    if program is None:
        pytest.skip("meson is missing")

    def make(path):
        place = project(folder, "meson_author", "c_author.md", "c_author.c", "meson.build")
        environ = {**environment(), "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))}
        build.run(program, "setup", place / "build", place, env=environ)
        build.run(program, "compile", "-C", place / "build", env=environ)
        shutil.copy(place / "build" / f"meson_author{build.SUFFIX}", path)

    return build.once(folder, "meson_author" + build.SUFFIX, make)


def scikit_build(folder):
    pytest.importorskip("scikit_build_core")
    pytest.importorskip("pybind11")

    def make(path):
        place = cmake_project(folder / "skbuild", "cmake_author", "pyproject.toml")
        known = place / "known"
        entry_points_of_the_tree(known)
        program = "import scikit_build_core.build as b; b.build_wheel('out', {'cmake.args': ['-DCMAKE_CXX_FLAGS=-O1']})"
        environ = {**environment(known), "SKBUILD_CMAKE_BUILD_TYPE": "Debug"}
        build.run(sys.executable, "-c", program, cwd=place, env=environ)
        wheel = next((place / "out").glob("*.whl"))
        shutil.unpack_archive(wheel, place / "installed", "zip")
        shutil.copy(place / "installed" / f"cmake_author{build.SUFFIX}", path)

    (folder / "skbuild").mkdir(exist_ok=True)
    return build.once(folder / "skbuild", "cmake_author" + build.SUFFIX, make)


def setuptools(folder):
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")

    def make(path):
        files = ("setup.py", "pyproject.setuptools.toml")
        place = project(folder, "setuptools_author", "cython_author.md", "cython_author.pyx", *files)
        flags = {"CFLAGS": " ".join(("-O1", "-w", *build.SANITIZED))}
        build.run(sys.executable, "setup.py", "build_ext", "--inplace", cwd=place, env={**environment(), **flags})
        shutil.copy(place / f"setuptools_author{build.SUFFIX}", path)

    return build.once(folder, "setuptools_author" + build.SUFFIX, make)


def environment(*more):
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(build.PACKAGE_ROOT), *map(str, more), *filter(None, sys.path[1:]))),
    }


def entry_points_of_the_tree(known):
    """Write arrayhub's entry points to `known`, unless arrayhub is installed and already has entry points."""
    if any(entry.name == "arrayhub" for entry in importlib.metadata.entry_points(group="cmake.root")):
        return
    import tomllib

    stated = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    info = known / f"arrayhub-{ah.__version__}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: arrayhub\nVersion: {ah.__version__}\n")
    groups = ("cmake.root", "pkg_config")
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in stated["entry-points"][group].items()) for group in groups
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


AUTHORS = (c, limited, cython, pybind11, nanobind, rust, cmake, cmake_nanobind, meson, scikit_build, setuptools)


@pytest.fixture(scope="session", params=AUTHORS, ids=lambda author: author.__name__)
def author(request, folder):
    path = request.param(folder)
    return build.load(path)


@pytest.fixture(scope="session", params=(pybind11, nanobind), ids=lambda author: author.__name__)
def cpp(request, folder):
    return build.load(request.param(folder))


# ---------------------------------------------------------------------------------------------------------- the inputs


def sycl(kind):
    dpctl = pytest.importorskip("dpctl")
    if not dpctl.get_num_devices():
        pytest.skip("no SYCL device")
    a = ah.to_device(np.arange(4.0), "oneapi:0")
    if kind == "device":
        return a
    shared = ah.USMArray(4, "f8", buffer=kind)
    ah.as_numpy(shared)[:] = np.arange(4.0)
    return shared


def jax_array():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return jax.numpy.arange(4.0)


def of(library, make):
    return lambda: make(pytest.importorskip(library))


BASE = np.arange(24.0).reshape(2, 3, 4)
TAKEN = {
    "numpy": lambda: BASE,
    "sliced": lambda: BASE[:, ::2, 1:3],
    "reversed": lambda: BASE[::-1, :, ::-1],
    "transposed": lambda: BASE.T,
    "broadcast": lambda: np.broadcast_to(np.float64(2.0), (3, 4)),
    "no dimensions": lambda: np.array(3.5),
    "empty": lambda: np.zeros((3, 0)),
    "read-only": lambda: np.frombuffer(np.arange(3.0).tobytes()),
    "array.array": lambda: array.array("d", [1.0, 2.0]),
    "memoryview": lambda: memoryview(array.array("d", [1.0, 2.0])),
    "ctypes": lambda: (ctypes.c_double * 3)(1, 2, 3),
    "torch": of("torch", lambda torch: torch.arange(4, dtype=torch.float64)[::2]),
    "jax": jax_array,
    "pyarrow": of("pyarrow", lambda pyarrow: pyarrow.array([1.0, 2.0])),
    "pandas": of("pandas", lambda pandas: pandas.Series([1.0, 2.0])),
    "xarray": of("xarray", lambda xarray: xarray.DataArray(np.arange(3.0), dims="x")),
    "USMArray": lambda: ah.asarray(BASE),
    "shared USM": lambda: sycl("shared"),
    "host USM": lambda: sycl("host"),
}
REFUSED = {
    "None": lambda: (None, TypeError, "None"),
    "list": lambda: ([1.0, 2.0], TypeError, "this list is not an array"),
    "integers": lambda: ([1, 2], TypeError, r"accepted: an array. Call arrayhub\.asarray\(x, dtype='float64'\)"),
    "number": lambda: (1.5, TypeError, "this float is not an array"),
    "text": lambda: ("1.5", TypeError, "str"),
    "float32": lambda: (BASE.astype("f4"), TypeError, "elements of float32; accepted: float64"),
    "int64": lambda: (np.arange(3), TypeError, "elements of int64; accepted: float64"),
    "bool": lambda: (np.ones(3, bool), TypeError, "elements of bool"),
    "swapped": lambda: (BASE.astype(">f8"), TypeError, "other byte order"),
    "unaligned": lambda: (np.frombuffer(bytearray(25), "u1")[1:].view("f8"), BufferError, "unaligned"),
    "odd strides": lambda: (np.zeros(3, np.dtype([("a", "f8"), ("b", "i4")]))["a"], BufferError, "unaligned"),
    "objects": lambda: (np.array([None, 1.0]), TypeError, "objects"),
    "mask": lambda: (np.ma.masked_array([1.0], [True]), TypeError, "mask"),
    "gradient": of(
        "torch", lambda torch: (torch.ones(2, dtype=torch.float64, requires_grad=True), BufferError, "detach")
    ),
    "device USM": lambda: (sycl("device"), BufferError, r"asarray\(x, device='cpu'\)"),
    "bytes": lambda: (b"12345678", TypeError, "bytes without a type"),
}

OTHERS = {TypeError: ValueError, BufferError: (TypeError, ValueError)}  # a refusal may be a BufferError, too


@pytest.mark.parametrize("given", TAKEN)
def test_accepted_arguments_are_summed(author, given):
    x = TAKEN[given]()
    assert author.total(x) == pytest.approx(np.asarray(ah.as_numpy(x)).sum())


@pytest.mark.parametrize("given", REFUSED)
def test_rejected_arguments_raise(author, given):
    x, kind, words = REFUSED[given]()
    with pytest.raises(kind, match=words) as refusal:
        author.total(x)
    assert not isinstance(refusal.value, OTHERS[kind])


# ------------------------------------------------------------------------------------------------- writes and results


def writes(module):
    if not hasattr(module, "negate"):
        pytest.skip("the program of this page only reads")
    return module.negate


def test_extension_writes_to_writable_arrays_and_rejects_others(author):
    negate = writes(author)
    values = np.arange(6.0)
    negate(values[::-2])
    assert values.tolist() == [0, -1, 2, -3, 4, -5]
    negate(mine := ah.asarray([1.0, 2.0]))
    assert ah.as_numpy(mine).tolist() == [-1, -2]
    for x in ([1.0, 2.0], (1.0,), 1.0, np.arange(3), np.frombuffer(bytes(16)), BASE, jax_array()):
        with pytest.raises((TypeError, ValueError)):
            negate(x)


def test_result_has_the_array_type_of_the_model(author):
    writes(author)
    torch = pytest.importorskip("torch")
    assert author.ones(3, torch.zeros(1)).tolist() == [1, 1, 1]
    out = author.ones(3, np.zeros(1))
    assert type(out) is np.ndarray and out.flags.writeable and out.sum() == 3
    assert type(author.ones(0, ah.asarray(BASE))) is ah.USMArray
    with pytest.raises(TypeError, match="the model"):
        author.ones(3, object())
    with pytest.raises((MemoryError, ValueError)):
        author.ones(2**61, np.zeros(1))


def test_overloads_are_selected_by_element_type_and_dimensions(cpp):
    assert cpp.kind(np.zeros(3, "f4")) == "float32, 1"
    assert cpp.kind(np.zeros(3)) == "float64, 1"
    assert cpp.kind(np.zeros((3, 2))) == "float64, 2"
    for _ in range(20):
        with pytest.raises(TypeError, match="kind"):
            cpp.kind(np.zeros(3, "i4"))
    assert cpp.kind(np.zeros(3)) == "float64, 1"


def test_function_accepts_several_types_and_converts_others(cpp):
    for x in (np.array([1.0, 3.0, 2.0]), np.array([1, 3, 2], "f4"), np.array([1, 3, 2], "i2"), [1, 3, 2], (1.0, 3.0)):
        assert cpp.largest(x) == 3
    with pytest.raises(TypeError, match="complex128; accepted: float32 or float64"):
        cpp.largest(np.array([1j]))


def test_views_are_read_without_the_gil(cpp):
    x = np.arange(4.0).reshape(2, 2)
    found = []
    threads = [threading.Thread(target=lambda: found.extend(cpp.norm(x) for _ in range(200))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [14.0] * 800
    count = sys.getrefcount(x)
    cpp.norm(x)
    assert sys.getrefcount(x) == count


# -------------------------------------------------------------------------------------------- pybind11 and nanobind


FRAMEWORKS = {
    "pybind11": lambda folder, source: with_pybind11(folder, "frameworks_pybind11", source),
    "nanobind": lambda folder, source: with_nanobind(folder, "frameworks_nanobind", source, "-DWITH_NANOBIND"),
}


@pytest.fixture(scope="session", params=FRAMEWORKS)
def framework(request, folder):
    return build.load(FRAMEWORKS[request.param](folder, build.SOURCES / "frameworks.cpp"))


REFUSES = "elements of float64; accepted: float32"


def test_error_describes_the_current_call(framework):
    """The error of a function without overloads does not contain the error of an earlier call of an overload."""
    x = np.zeros(3)
    for _ in range(3):
        assert framework.kind(x) == "float64"
        assert framework.writer(x) == "anything"
        with pytest.raises(TypeError):
            framework.exact(x)
        for one in (framework.single, framework.writes):
            with pytest.raises(TypeError, match=REFUSES):
                one(x)
        with pytest.raises(TypeError, match="elements of float32; accepted: float64"):
            framework.pair(x.astype("f4"), x.astype("f4"))
    with pytest.raises(TypeError, match="^called: x: this numpy.ndarray has " + REFUSES):
        framework.named(x)


def test_next_overload_is_tried_if_a_view_is_rejected(framework):
    x = np.arange(3)  # int64, for which float64 requires a cast
    assert framework.cast(x.astype("i2")) == "cast"
    assert framework.many(x.astype("i2"), *range(7)) == "cast"
    with pytest.raises(TypeError, match="incompatible function arguments"):
        framework.kind(x)


def outcome(call, x):
    try:
        return call(x)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("given", [*TAKEN, *REFUSED])
def test_cpp_requests_have_the_results_and_errors_of_python_requests(framework, given):
    x = TAKEN[given]() if given in TAKEN else REFUSED[given]()[0]
    plain = ah.Request("float64")

    def viewed(x):
        a = plain.asarray(x)
        return a.ptr, a.size

    def copied(x):
        a = ah.Request("float64", order="C", may=("cast", "relayout", "build")).asarray(x)
        return float(ah.as_numpy(a).sum()), a.size

    assert outcome(framework.plain, x) == outcome(viewed, x)
    assert outcome(framework.copied, x) == pytest.approx(outcome(copied, x))


class Number:
    def __float__(self):
        return 2.0


def test_overload_with_a_conversion_before_a_view_is_selected(framework):
    """In pybind11's first pass, no view is requested if an earlier argument requires a conversion."""
    if framework.__name__ == "frameworks_nanobind":
        pytest.skip("nanobind's casters cannot access earlier arguments, see docs/howto/cpp_author.md")
    assert framework.scaled(Number(), np.zeros(3)) == "float64"


def test_variants_optionals_and_vectors_may_contain_views(framework):
    assert framework.either(np.zeros(3, "f4")) == 0
    assert framework.either(np.zeros(3, "i2")) == 1
    assert framework.maybe(None) == -1
    assert framework.maybe(np.zeros(3, "f4")) == 3
    assert framework.all([np.zeros(3, "f4")] * 2) == 2
    with pytest.raises(TypeError):
        framework.maybe(np.zeros(3))
    with pytest.raises(TypeError):
        framework.all([np.zeros(3)])


INSIDE = {"maybe_of": lambda x: x, "all_of": lambda x: [x], "two_of": lambda x: (x, x), "named_of": lambda x: {"a": x}}


@pytest.mark.parametrize("function", INSIDE)
def test_overloads_are_selected_by_the_views_in_containers(framework, function):
    call, inside = getattr(framework, function), INSIDE[function]
    for _ in range(3):
        assert call(inside([1.0, 2.0])) == "float32"  # Python numbers are untyped
        assert call(inside(np.zeros(3, "f4"))) == "float32"
        assert call(inside(np.zeros(3))) == "float64"
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(inside(np.zeros((2, 2))))
    if function in ("maybe_of", "all_of"):
        assert call(inside(np.zeros(3, "i2"))) == "float64"


class Right:
    def __radd__(self, other):
        return "right"

    def __eq__(self, other):
        return "right"


def test_operators_return_notimplemented_for_other_operands(framework):
    grid = framework.Grid()
    assert grid + np.zeros(3) == 3 and grid == np.zeros(3)
    assert grid + Right() == "right" and (grid == Right()) == "right"
    assert (grid == "abc") is False and grid not in [None]
    with pytest.raises(TypeError, match="unsupported operand"):
        grid + None


class Owner:
    """An owner of memory that is callable, but must not be called when it is released."""

    called = 0

    def __call__(self):
        Owner.called += 1


@pytest.mark.parametrize("way", ["kept_by", "kept_by_handle", "kept_by_pointer"])
def test_python_owner_is_kept_alive_and_not_called(framework, way):
    keeps_and_does_not_call(getattr(framework, way))


def keeps_and_does_not_call(hand_out):
    owner = Owner()
    alive = weakref.ref(owner)
    a = hand_out(owner)
    del owner
    assert alive() is not None and ah.as_numpy(a).sum() == 3
    del a
    assert alive() is None and Owner.called == 0


# ------------------------------------------------------------------------------------------------------ arrayhub.hpp


def plain_cpp(folder, *options):
    folder.mkdir(exist_ok=True)
    flags = ("-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-pthread", *options)
    flags += ("-Wpedantic", "-Wsign-conversion", "-isystem", build.PYTHON_INCLUDE)  # no warnings for Python's headers
    return build.compiled(folder, "plain", [build.SOURCES / "plain.cpp"], *flags, compiler=build.CXX)


APIS = {"whole": (), "limited": (build.LIMITED,)}


@pytest.fixture(scope="session", params=APIS)
def plain(request, folder):
    """Return the extension `plain`, compiled for the full or the limited Python API."""
    return build.load(plain_cpp(folder / f"plain_{request.param}", *APIS[request.param]))


def test_view_reads_arrays_and_lists(plain):
    assert plain.total(BASE[0][::-1, ::2]) == BASE[0][:, ::2].sum()
    assert plain.total([[1.0, 2.0]]) == 3  # a read-only view also accepts lists of numbers
    with pytest.raises(ValueError, match=r"^total: x: this numpy\.ndarray has 1 dimension,"):
        plain.total(BASE[0, 0])
    with pytest.raises(TypeError, match="^total: x: asarray: None"):
        plain.total(None)


def test_views_convert_to_spans_and_mdspans(plain):
    assert plain.span_sum(BASE) == BASE.sum()
    with pytest.raises(ValueError, match="not contiguous"):
        plain.span_sum(BASE[:, ::2])
    assert plain.mdspan_sum(BASE[0]) == BASE[0].sum()
    assert plain.mdspan_sum(BASE[0].T) == BASE[0].sum()
    for x in (BASE[0][::-1], np.broadcast_to(1.0, (2, 2))):
        with pytest.raises(ValueError, match="a stride is negative or zero"):
            plain.mdspan_sum(x)
    assert plain.mdspan_right_sum(BASE[0]) == BASE[0].sum()
    with pytest.raises(ValueError, match="cannot represent these strides"):
        plain.mdspan_right_sum(BASE[0].T)


def test_mdspan_with_a_narrow_index_type_rejects_large_arrays(plain):
    assert plain.narrow_1(np.zeros(255)) == 255
    assert plain.narrow_2(np.zeros((11, 11))) == 11
    assert plain.narrow_2(np.zeros((0, 100))) == 0
    for narrow, x in (
        (plain.narrow_1, np.zeros(300)),
        (plain.narrow_1, np.zeros(900)[::300]),
        (plain.narrow_2, np.zeros((12, 12))),
        (plain.narrow_2, np.zeros((0, 300))),
        (plain.narrow_2, np.zeros((4, 100))[:, :2]),
    ):
        with pytest.raises(OverflowError, match="index type is too narrow"):
            narrow(x)


def real_mdspan():
    """Return the command of a C++ compiler whose standard library has std::mdspan."""
    ours = [*build.CXX, "-std=c++23"]
    zig = [sys.executable, "-m", "ziglang", "c++", "-std=c++23"]
    for compiler in (ours, zig):
        macros = finished("sh", "-c", 'echo "#include <mdspan>" | exec "$@" -x c++ -E -dM -', "sh", *compiler)
        if "__cpp_lib_mdspan" in macros.stdout:
            return compiler
    pytest.skip("neither the default C++ compiler nor ziglang's has std::mdspan")


def test_views_convert_to_std_mdspan(folder):
    """Use std::mdspan instead of the tests' own mdspan class."""
    compiler = real_mdspan()
    (folder / "plain_mdspan").mkdir(exist_ok=True)
    flags = ("-DREAL_MDSPAN", "-pthread")
    path = build.compiled(folder / "plain_mdspan", "plain", [build.SOURCES / "plain.cpp"], *flags, compiler=compiler)
    module = build.load(path)
    test_views_convert_to_spans_and_mdspans(module)
    test_mdspan_with_a_narrow_index_type_rejects_large_arrays(module)


def compiler_errors(folder, program):
    source = folder / "program.cpp"
    source.write_text(f"#include <arrayhub.hpp>\n{program}\n")
    includes = [f"-I{place}" for place in (build.INCLUDE, build.PYTHON_INCLUDE)]
    return finished(*build.CXX, "-std=c++20", "-fsyntax-only", *includes, source).stderr


USES = ("a.span()", "a.begin()", "a.end()", "a.stride(0)", "a(0)", "a.reference()", "a.mdspan<mdspan_of_one>()")


@pytest.mark.parametrize("use", USES)
def test_views_with_as_is_do_not_provide_references(tmp_path, use):
    """A view with as_is may have unaligned or byte-swapped elements, to which T& and T* cannot refer."""
    mdspan = "struct mdspan_of_one { struct extents_type { static constexpr std::size_t rank() { return 1; } }; };\n"
    types = "using view_as_is = arrayhub::view<const double, 1, arrayhub::as_is>;\n"
    program = f"{mdspan}{types}void using_it(view_as_is a) {{ (void){use}; }}"
    assert "error: static assertion failed: as_is:" in compiler_errors(tmp_path, program)


@pytest.mark.parametrize("owner", ["std::free", "[](double *) {}", "3", "memory"])
def test_owner_that_cannot_release_memory_does_not_compile(tmp_path, owner):
    program = f"static double memory[3];\nvoid f() {{ arrayhub::hand_out(memory, {{3}}, {owner}); }}"
    assert "error: static assertion failed: hand_out: this owner" in compiler_errors(tmp_path, program)


def test_view_of_several_element_types_is_visited(plain):
    base = np.arange(12.0)
    for dtype, size in (("<f4", 4), (">f4", 4), ("<f8", 8), (">f8", 8)):
        x = base.astype(dtype)[::3]
        assert plain.visited(x) == (size, 3 * size, 4, x.ctypes.data)
    with pytest.raises(TypeError, match=r"^visited: x: .*accepted: float32 or float64"):
        plain.visited(base.astype("i4"))
    with pytest.raises(ValueError, match="not in the list of the view"):
        plain.visit_nothing()


def test_views_convert_to_the_library_of_the_argument(plain):
    x = BASE[0, 0]
    for out in plain.alike(x):
        assert type(out) is np.ndarray and np.shares_memory(out, x)


def test_error_contains_the_name_in_the_view_type(plain):
    with pytest.raises(TypeError, match=r"^named: x: this numpy\.ndarray has elements of int64"):
        plain.named(np.arange(3))


def test_views_with_as_is_accept_any_byte_order(plain):
    assert plain.as_is_bytes(np.arange(3, dtype=">f8")) == (8, 0, 0)
    assert plain.references(np.arange(5.0)[::-2]) == 6.0


OUT = {
    "vector": ("readwrite", (2, 3)),
    "shared": ("readwrite", (6,)),
    "const": ("readonly", (6,)),
    "malloc": ("readwrite", (2, 3)),
    "lambda": ("readwrite", (3,)),
    "strides": ("readwrite", (3,)),
    "aligned": ("readwrite", (6,)),
}


@pytest.mark.parametrize("way", OUT)
def test_returned_arrays_own_their_memory(plain, way):
    before = plain.alive()
    a = plain.out(way)
    assert (a.access, a.shape) == OUT[way]
    assert ah.as_numpy(a).sum() == a.size
    view = a[:1]
    del a
    assert plain.alive() == before + (way in ("lambda", "strides"))
    del view
    assert plain.alive() == before
    if way == "aligned":
        assert plain.out(way).ptr % 64 == 0


@pytest.mark.parametrize("way", ["called: 65", "called: strides", "malloc: 65"])
def test_owner_is_released_if_construction_fails(plain, way):
    before, memory = plain.alive(), resident()
    for _ in range(3):
        with pytest.raises(ValueError, match="hand_out"):
            plain.out(way)
    assert plain.alive() == before
    if not build.SANITIZED:  # sanitizers keep freed memory in a quarantine
        assert resident() < memory + (100 << 20)


@pytest.mark.parametrize("way", ["kept_by", "kept_by_pointer"])
def test_python_owner_of_a_cpp_array_is_kept_alive_and_not_called(plain, way):
    keeps_and_does_not_call(getattr(plain, way))


def test_a_view_may_be_the_owner_of_memory(plain):
    x = np.arange(9.0).reshape(3, 3)
    a = ah.as_numpy(plain.inner(x))
    assert np.shares_memory(a, x) and a.tolist() == [[4, 5], [7, 8]]


@pytest.mark.parametrize("way", ["too many", "negative", "null owner", "null pointer", "bad strides", "null shared"])
def test_invalid_return_values_raise(plain, way):
    before = plain.alive()
    with pytest.raises(ValueError, match=r"hand_out|data is 0"):
        plain.out(way)
    assert plain.alive() == before


@pytest.mark.parametrize("way", ["as", "like", "view as", "view like", "queue", "view queue"])
def test_empty_handle_raises(plain, way):
    with pytest.raises(ValueError, match="this array is empty; accepted: an array that holds an object"):
        plain.empty(way)


@pytest.mark.parametrize("way", ["null array", "null view"])
def test_null_object_raises_system_error(plain, way):
    with pytest.raises(SystemError, match="PyUSMArray_.*: the object is NULL"):
        plain.empty(way)


THROWN = {
    "throws": ["thrown by an owner"],
    "destructor throws": ["thrown by a destructor"],
    "both throw": ["thrown by an owner", "thrown by a destructor"],
}


@pytest.mark.parametrize("way", THROWN)
def test_exceptions_of_owners_are_reported_as_unraisable(plain, monkeypatch, way):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable))
    plain.out(way)
    assert [str(unraisable.exc_value) for unraisable in seen] == THROWN[way]
    assert all("owner of an array" in unraisable.object for unraisable in seen)


def test_owner_may_throw_if_construction_fails(plain, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(str(unraisable.exc_value)))
    with pytest.raises(ValueError, match="shape"):
        plain.out("failing destructor throws")
    assert seen == ["thrown by a destructor"]


def test_views_can_be_destroyed_in_threads_without_the_gil(plain):
    x = np.arange(4.0).reshape(2, 2)
    count = sys.getrefcount(x)
    plain.in_threads(x)
    assert sys.getrefcount(x) == count


# Programs that end while C++ code holds views:
# - kept: a static variable holds a view.
# - copying: threads copy a view continuously.
# - busy, destroyed: another thread destroys a view before or during finalization. In "busy", the main thread does not
#   release the GIL.
ENDINGS = {
    "kept": "plain.keep(numpy.ones((2, 2)))",
    "copying": "plain.copy_forever(numpy.ones(3)); time.sleep(0.2)",
    "busy": "sys.setswitchinterval(100); plain.drop_late(numpy.ones(3)); wait(0.6)",
    "busy, then pausing": "sys.setswitchinterval(100); s = Slow(); plain.drop_late(numpy.ones(3)); wait(0.6)",
    "destroyed during finalization": "s = Slow(); plain.drop_late(numpy.ones(3))",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("api", APIS)
def test_process_with_live_views_exits_normally(folder, api, ending):
    place = plain_cpp(folder / f"plain_{api}", *APIS[api]).parent
    program = f"""
import sys, time
sys.path.insert(0, sys.argv[1])
import plain, numpy
class Slow:
    def __del__(self, sleep=time.sleep): sleep(0.5)
def wait(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
{ENDINGS[ending]}
"""
    done = build.python(program, place)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------------------------------------------------- SYCL


def runtime():
    """Return the folders of SYCL's headers and of its library."""
    prefix = Path(sys.prefix)
    if not (prefix / "include" / "sycl" / "sycl.hpp").exists() or not (prefix / "lib" / "libsycl.so").exists():
        pytest.skip("intel-sycl-rt is not installed in this environment")
    return prefix / "include", prefix / "lib"


@pytest.fixture(scope="session")
def sycl_author(folder):
    pybind = pytest.importorskip("pybind11")
    sycl("shared")
    include, library = runtime()
    source = written(folder, "sycl_cpp_author.md", "sycl_author.cpp")
    path = build.compiled(
        folder, "sycl_author", [source, library / "libsycl.so"], "-std=c++17", "-w", f"-Wl,-rpath,{library}",
        compiler=build.CXX, includes=(build.INCLUDE, pybind.get_include(), include),
    )  # fmt: skip
    return build.load(path)


def test_sycl_kernels_run_after_the_producers_pending_work(sycl_author):
    """dpctl's queues are out of order, so the extension must order its kernels after the producer's kernels."""
    dpnp = pytest.importorskip("dpnp")
    for n in (8, 1 << 20) * 20:
        x = dpnp.zeros(n, dtype="f4")
        sycl_author.fill(x, 3.0)
        assert (ah.as_numpy(ah.to_host(x)) == 3).all()
        y = dpnp.full(n, 2, dtype="f4")
        assert (ah.as_numpy(sycl_author.twice(y)) == 2).all()


def test_sycl_example_and_dpnp_use_one_queue(sycl_author):
    """Host tasks of dpnp may need the GIL or release the last array. Its kernels do not wait for other libraries.

    Two threads that use dpnp deadlock or crash in the SYCL runtime also without arrayhub (docs/sycl_runtime.md).
    """
    pytest.importorskip("dpnp")
    program = """
import arrayhub, dpnp, sys
arrayhub.sycl_runtime.configure()
sys.path.insert(0, sys.argv[1])
import sycl_author
for k in range(200):
    x = dpnp.ones(4, dtype="f4") + k
    sycl_author.twice(x * 2)
    assert (arrayhub.as_dpnp(sycl_author.twice(x)) * 2).sum() == 16 * (k + 1)
    x = dpnp.zeros(1 << 16, dtype="f4")
    sycl_author.fill(x, 3.0)
    assert float(dpnp.sum(x)) == 3 << 16, k
"""
    done = build.python(program, Path(sycl_author.__file__).parent)
    assert done.returncode == 0 and not done.stderr


def test_sycl_example_fills_and_returns_memory(sycl_author):
    dpnp = pytest.importorskip("dpnp")
    x = dpnp.zeros(8, dtype="f4")
    sycl_author.fill(x, 3.0)
    assert ah.to_host(x).shape == (8,) and ah.as_numpy(ah.to_host(x)).tolist() == [3.0] * 8
    out = sycl_author.twice(x)
    assert out.usm_type == "shared" and out.shape == (2, 8)
    assert ah.as_numpy(out).sum() == 48
    assert dpnp.asarray(ah.as_dpnp(out)).sum() == 48
    assert ah.as_numpy(sycl_author.twice(np.ones(4, "f4"))).sum() == 8  # copied to the device
    part = sycl_author.inner(dpnp.reshape(dpnp.arange(6, dtype="f4"), (2, 3)).T)
    assert part.device.type == "oneapi" and ah.to_host(part).tolist() == [[4], [5]]
    with pytest.raises(BufferError, match="accepted: SYCL USM"):
        sycl_author.fill(np.ones(4, "f4"), 1.0)
    with pytest.raises(TypeError, match="float64; accepted: float32"):
        sycl_author.fill(dpnp.zeros(8), 1.0)


# ---------------------------------------------------------------------------------------------------- build files, ABI


def test_pkg_config_file_has_the_version():
    text = (Path(build.INCLUDE).parent / "pkgconfig" / "arrayhub.pc").read_text()
    assert re.search(r"^Version: (.*)$", text, re.M)[1] == ah.__version__


def test_config_prints_folders_and_flags():
    for option, file in {"cmakedir": "arrayhub-config.cmake", "pkgconfigdir": "arrayhub.pc"}.items():
        said = build.run(sys.executable, "-m", "arrayhub", "config", f"--{option}", env=environment()).strip()
        assert (Path(said) / file).exists()
    for option in ("cflags", "includes"):
        said = build.run(sys.executable, "-m", "arrayhub", "config", f"--{option}", env=environment()).strip()
        assert (Path(said.removeprefix("-I")) / "arrayhub.h").exists()
    assert finished(sys.executable, "-m", "arrayhub", "config", env=environment()).returncode == 2


def test_find_package_rejects_another_version(tmp_path):
    program = shutil.which("cmake")
    if program is None:
        pytest.skip("cmake is missing")
    lines = "cmake_minimum_required(VERSION 3.18)\nproject(x NONE)\nfind_package(arrayhub 99 CONFIG REQUIRED)\n"
    (tmp_path / "CMakeLists.txt").write_text(lines)
    place = Path(build.INCLUDE).parent / "cmake"
    done = finished(program, "-G", "Ninja", "-B", tmp_path / "b", f"-Darrayhub_DIR={place}", tmp_path)
    assert done.returncode != 0 and f"version: {ah.__version__}" in done.stderr


@pytest.fixture(scope="session")
def pkgconf(folder):
    """Return a folder that contains the package `pkgconf`, which finds .pc files through entry points."""
    if importlib.util.find_spec("pkgconf") is not None:
        return folder

    def install(path):
        done = finished(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", path, "pkgconf")
        if done.returncode != 0:
            pytest.skip("pkgconf is not installed, and pip cannot install it")

    return build.once(folder, "pkgconf", install)


def test_pkg_config_resolves_arrayhub(pkgconf, tmp_path):
    entry_points_of_the_tree(tmp_path)
    said = build.run(
        sys.executable, "-m", "pkgconf", "--cflags", "arrayhub", env=environment(tmp_path, pkgconf), cwd=tmp_path
    )
    assert (Path(said.strip().removeprefix("-I")) / "arrayhub.hpp").samefile(Path(build.INCLUDE) / "arrayhub.hpp")


def test_entry_points_name_folders_of_the_build_files():
    """The folders contain arrayhub.pc and arrayhub-config.cmake."""
    import tomllib

    stated = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]["entry-points"]
    from importlib.resources import files

    assert (files(stated["pkg_config"]["arrayhub"]) / "arrayhub.pc").is_file()
    assert (files(stated["cmake.root"]["arrayhub"]) / "cmake" / "arrayhub-config.cmake").is_file()


STRUCTS = ("PyUSMArrayFields", "PyUSMArrayRequest", "PyUSMArraySpec", "PyUSMArrayElement", "PyUSMArrayAPI")


def members(struct):
    """Return the members of a struct in the order of arrayhub.h."""
    header = (Path(build.INCLUDE) / "arrayhub.h").read_text()
    fields = re.search(r"#define ARRAYHUB_FIELDS(.*?)\n\n", header, re.S)[1].replace("\\\n", "\n")
    body = re.search(rf"typedef struct {struct} {{(.*?)^}} {struct};", header, re.S | re.M)[1]
    body = re.sub(r"/\*.*?\*/", "", body.replace("ARRAYHUB_FIELDS", fields), flags=re.S)
    return re.findall(r"(?:\(\*(\w+)\)\([^)]*\)|(\w+));", body)


def layout(folder):
    """Return the rows of the table in docs/abi.md (struct, member, offset), as a compiled C program prints them."""
    names = {struct: [a or b for a, b in members(struct)] for struct in STRUCTS}
    rows = [(s, f"`{m}`", f"offsetof({s}, {m})") for s in STRUCTS for m in names[s]]
    rows += [(s, "size", f"sizeof({s})") for s in STRUCTS]
    lines = "".join(f'    printf("| `{s}` | {m} | %zu |\\n", {value});\n' for s, m, value in rows)
    source = folder / "layout.c"
    source.write_text(f"#include <Python.h>\n#include <arrayhub.h>\n#include <stdio.h>\nint main(void) {{\n{lines}}}\n")
    program = folder / "layout"
    build.run(*build.CC, "-w", "-O1", f"-I{build.PYTHON_INCLUDE}", f"-I{build.INCLUDE}", source, "-o", program)
    return build.run(program).splitlines()


def test_page_documents_the_struct_layout(tmp_path):
    page = (DOCS / "abi.md").read_text()
    assert re.findall(r"^\| `PyUSM.*\|$", page, re.M) == layout(tmp_path)
