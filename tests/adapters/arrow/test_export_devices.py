"""Exchange device streams with Arrow's C++ library. Python libraries do not support device streams yet."""

import ctypes
import re
from pathlib import Path

import native_build as build
import pytest
from arrow_by_hand import DeviceStream, given, struct_in
from dlpack_by_hand import new_capsule

import arrayhub as ah

pa = pytest.importorskip("pyarrow")
LIBRARIES = sorted(Path(pa.get_library_dirs()[0]).glob("libarrow.so.*"))


@pytest.fixture(scope="session")
def arrow(tmp_path_factory):
    if not LIBRARIES:
        pytest.skip("this pyarrow does not contain libarrow")
    folder = build.shared_folder(tmp_path_factory, "arrow_cpp")
    where = LIBRARIES[0].parent
    link = (f"-L{where}", f"-l:{LIBRARIES[0].name}", f"-Wl,-rpath,{where}", "-std=c++20")

    def make(path):
        source = build.SOURCES / "arrow_streams.cpp"
        flags = ("-shared", "-fPIC", "-O1", f"-I{pa.get_include()}")
        build.run(*build.CXX, *flags, source, *link, "-o", path)

    library = ctypes.CDLL(str(build.once(folder, "arrow_streams.so", make)))
    library.read_stream.restype = ctypes.c_char_p
    library.read_stream.argtypes = library.write_stream.argtypes = [ctypes.c_void_p]
    return library


def read(arrow, x):
    """Return the text that Arrow C++ prints for the stream of `x`, without white space."""
    capsule = x.__arrow_c_device_stream__()
    stream = struct_in(capsule, DeviceStream)
    said = arrow.read_stream(ctypes.addressof(stream)).decode()
    assert not stream.release
    return re.sub(r"\s", "", said)


@pytest.mark.slow
def test_arrow_cpp_reads_exported_streams(arrow):
    assert read(arrow, ah.asnested([[1, 2], None, [3]])) == "[[[1,2],null,[3]]]"
    assert read(arrow, ah.asnested(["a", None])) == '[["a",null]]'
    assert read(arrow, ah.asarray([1.5, 2.5])) == "[[1.5,2.5]]"
    assert read(arrow, ah.asarray([[1, 2], [3, 4]])) == "[[[1,2],[3,4]]]"


@pytest.mark.slow
def test_arrow_cpp_rejects_oneapi_memory(arrow):
    if not pytest.importorskip("dpctl").get_devices():
        pytest.skip("dpctl finds no device")
    assert "Devicetype14" in read(arrow, ah.asnested([[1], []]).to_device("oneapi:0"))


@pytest.mark.slow
def test_arrow_stream_is_imported_and_released(arrow):
    before = pa.total_allocated_bytes()
    stream = DeviceStream()
    assert arrow.write_stream(ctypes.addressof(stream)) == 0
    capsule = new_capsule(ctypes.addressof(stream), b"arrow_device_array_stream", None)
    chunks = ah.asnested(given("__arrow_c_device_stream__", capsule))
    assert [chunk.to_list() for chunk in chunks.chunks] == [[1, 2, 3], [4, None]]
    assert not stream.release
    assert pa.total_allocated_bytes() > before
    del chunks
    assert pa.total_allocated_bytes() == before
