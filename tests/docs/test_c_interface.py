"""Test that the programs in docs/c_interface.md compile with the headers in arrayhub.get_include() and run."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from children import finished, run
from native_build import load

import arrayhub

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "c_interface.md"
PACKAGE_ROOT = Path(arrayhub.get_include()).parent.parent
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()


def example(language):
    """Return the page's only code block in `language`."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 1
    return blocks[0]


def build(folder, name, source, *options, compiler=COMPILER, include=None):
    """Compile a source file to an extension module, and return the path of the module."""
    path = folder / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    includes = [sysconfig.get_path("include"), include or arrayhub.get_include()]
    run(*compiler, "-shared", "-fPIC", "-O1", *options, *(f"-I{i}" for i in includes), source, "-o", path)
    return path


@pytest.fixture(scope="module")
def c_consumer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    source = folder / "c_consumer.c"
    source.write_text(example("c"))
    return load(build(folder, "c_consumer", source, "-std=c11", "-Wall", "-Wextra", "-Werror"))


@pytest.fixture(scope="module")
def cython_consumer(tmp_path_factory):
    pytest.importorskip("Cython")
    folder = tmp_path_factory.mktemp("cython")
    source = folder / "cython_consumer.pyx"
    source.write_text(example("cython"))
    run(sys.executable, "-m", "cython", "-3", "-I", PACKAGE_ROOT, source)
    return load(build(folder, "cython_consumer", source.with_suffix(".c")))


BASE = np.arange(24.0).reshape(2, 3, 4)
RECORDS = np.zeros(5, [("a", "i1"), ("b", "<f8")])
ARRAYS = {
    "c": BASE, "f": np.asfortranarray(BASE), "sliced": BASE[:, ::2, 1:3], "negative": BASE[::-1, :, ::-1],
    "broadcast": np.broadcast_to(np.float64(2.0), (3, 4)), "zero_d": np.array(3.5), "empty": np.zeros((3, 0)),
    "length_one": BASE[:, :1], "many_dimensions": BASE.reshape((1,) * 20 + BASE.shape),
    "read_only": np.frombuffer(bytes(32)), "unaligned": np.frombuffer(bytearray(25), "u1")[1:].view("f8"),
    "odd_strides": RECORDS["b"],
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_struct_fields_equal_numpy(cython_consumer, name):
    source = ARRAYS[name]
    a = arrayhub.asarray(source)
    got = cython_consumer.fields(a)
    assert got["nd"] == source.ndim
    assert got["shape"] == source.shape
    if source.size:
        assert got["data"] == source.__array_interface__["data"][0]
        steps = [(a, b) for a, b, n in zip(got["byte_strides"], source.strides, source.shape, strict=True) if n > 1]
        assert all(ours == numpys for ours, numpys in steps)
    if name == "odd_strides":
        assert got["strides"] is None
    else:
        assert got["strides"] == tuple(step // source.itemsize for step in got["byte_strides"])
    assert got["typenum"] == source.dtype.num
    assert got["itemsize"] == source.itemsize
    assert bool(got["flags"] & 1) == source.flags.c_contiguous
    assert bool(got["flags"] & 2) == source.flags.f_contiguous
    assert bool(got["flags"] & 4) == source.flags.writeable
    assert bool(got["flags"] & 0x100) == (source.flags.aligned or source.size == 0)
    assert got["base"] is a.base
    assert got["device"] == (1, 0)
    assert got["dl_dtype"] == (2, 64, 1)
    assert got["usm_type"] == 0


def test_struct_fields_describe_a_constructed_array(cython_consumer):
    a = arrayhub.USMArray((2, 2), dtype="u1", buffer="cpu", strides=(2, -1))
    got = cython_consumer.fields(a)
    assert (got["nd"], got["shape"], got["strides"], got["typenum"]) == (2, (2, 2), (2, -1), 2)
    assert got["data"] == a.memory.address + 1


@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "unaligned" and name != "odd_strides"])
def test_c_code_sums_each_layout(c_consumer, name):
    assert c_consumer.total(arrayhub.asarray(ARRAYS[name])) == ARRAYS[name].sum()


@pytest.mark.parametrize("source", [ARRAYS["unaligned"], BASE.astype(">f8"), BASE.astype("f4")])
def test_c_code_rejects_other_element_types_and_unaligned_memory(c_consumer, source):
    with pytest.raises(TypeError, match="aligned native float64"):
        c_consumer.total(arrayhub.asarray(source))


@pytest.mark.parametrize("stranger", [None, BASE, object()])
def test_c_check_rejects_other_objects(c_consumer, stranger):
    with pytest.raises(TypeError, match=r"arrayhub\.asarray"):
        c_consumer.total(stranger)


def test_cython_writes_writable_memory(cython_consumer):
    values = np.arange(6.0)
    cython_consumer.negate(arrayhub.asarray(values[::-2]))
    assert values.tolist() == [0, -1, 2, -3, 4, -5]
    with pytest.raises(ValueError, match="read-only"):
        cython_consumer.negate(arrayhub.asarray(np.frombuffer(bytes(16))))


@pytest.mark.parametrize("stranger", [None, BASE, object()])
def test_cython_rejects_other_objects(cython_consumer, stranger):
    with pytest.raises(TypeError, match="USMArray"):
        cython_consumer.fields(stranger)


def test_cython_code_cannot_subclass_usm_array(tmp_path):
    """The declaration omits fields of the C struct. The fields of a subclass would overlap them."""
    pytest.importorskip("Cython")
    source = tmp_path / "subclass.pyx"
    source.write_text("from arrayhub cimport USMArray\ncdef class Sub(USMArray):\n    cdef int extra\n")
    command = [sys.executable, "-m", "cython", "-3", "-I", str(PACKAGE_ROOT), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "final" in done.stderr


def test_header_compiles_as_cplusplus(tmp_path):
    compiler = (sysconfig.get_config_var("CXX") or "c++").split()
    source = tmp_path / "cpp_consumer.cpp"
    source.write_text(example("c").replace("c_consumer", "cpp_consumer"))
    module = load(build(tmp_path, "cpp_consumer", source, "-std=c++17", "-Wall", "-Werror", compiler=compiler))
    assert module.total(arrayhub.asarray(BASE)) == BASE.sum()


def test_header_newer_than_the_package_raises_import_error(tmp_path):
    header = (Path(arrayhub.get_include()) / "arrayhub.h").read_text()
    newer = re.sub(r"(#define ARRAYHUB_(?:C|TARGET)_VERSION) \d+", r"\1 1000", header)
    assert newer != header
    (tmp_path / "arrayhub.h").write_text(newer)
    source = tmp_path / "c_consumer.c"
    source.write_text(example("c"))
    path = build(tmp_path, "c_consumer", source, include=tmp_path)
    with pytest.raises(ImportError, match=r"version 1000 .* upgrade arrayhub"):
        load(path)


def test_extension_raises_the_error_of_the_packages_import(c_consumer, tmp_path):
    (tmp_path / "arrayhub.py").write_text("import missing_by_arrayhub")
    paths = os.pathsep.join((str(tmp_path), str(Path(c_consumer.__file__).parent)))
    done = finished(sys.executable, "-P", "-S", "-c", "import c_consumer as c; c.total(1)", PYTHONPATH=paths)
    assert "No module named 'missing_by_arrayhub'" in done.stderr


def test_page_lists_the_fields_in_the_order_of_the_header():
    header = (Path(arrayhub.get_include()) / "arrayhub.h").read_text()
    body = re.sub(r"/\*.*?\*/", "", re.search(r"#define ARRAYHUB_FIELDS(.*?)\n\n", header, re.S)[1])
    declared = re.findall(r"\*?(\w+);", body)
    assert declared[:7] == ["nd", "data", "shape", "strides", "typenum", "flags", "base"]
    assert re.findall(r"^\| `(\w+)` \| ", PAGE.read_text(), re.M) == declared
