"""Producers whose memory could be freed or moved while views of it exist.

    python -m tests.support.libraries.borrowing [LIBRARY ...]

Each case views an object, and then drops, closes or resizes the object or the owner of its memory. The command runs
each case of the named libraries, or of all libraries, in a separate process. It prints whether the view kept its
values.
"""

import ctypes
import gc
import importlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# Numbers of elements. Freed memory of the first size is soon reused by the allocator, of the second size is unmapped.
SIZES = (256, 1 << 20)

HELD = "held"  # the view keeps its values
KEPT = "kept"  # the view keeps its values, because the library raises an error while a view exists
# The library frees or moves the memory although views of it exist, including views of NumPy. docs/libraries.md lists
# these cases.
MOVES = "moves"


class Case(NamedTuple):
    """An object and an operation that could free or move its memory.

    Attributes
    ----------
    library : str
        Module of the library.
    what : str
        The object and the operation, in words.
    make : callable
        Returns an object with a given number of elements, or the object and a function that performs the operation.
    outcome : str
        HELD, KEPT or MOVES.
    """

    library: str
    what: str
    make: Callable[[int], Any]
    outcome: str = HELD


CASES: list[Case] = []


def case(library, what, outcome=HELD):
    """Return a decorator that adds a case. The decorated function creates the case's object."""

    def entered(make):
        CASES.append(Case(library, what, make, outcome))
        return make

    return entered


def numbers(n, dtype="f4"):
    return (np.arange(n) % 100 + 1).astype(dtype)


def module(name):
    return importlib.import_module(name)


# ---------------------------------------------------------------------------------------------- Python's own, and NumPy


@case("builtins", "bytearray.extend", KEPT)
def _bytearray(n):
    x = bytearray(b"\7" * n)
    return x, lambda: x.extend(x)


@case("array", "array.extend", KEPT)
def _array(n):
    x = module("array").array("f", numbers(n))
    return x, lambda: x.extend(x)


@case("io", "BytesIO.getbuffer, close", KEPT)
def _bytes_io(n):
    x = io.BytesIO(b"\7" * n)
    return x.getbuffer(), x.close


@case("io", "BytesIO.getbuffer, truncate", KEPT)
def _bytes_io_truncate(n):
    x = io.BytesIO(b"\7" * n)
    return x.getbuffer(), lambda: x.truncate(0)


@case("mmap", "mmap.close", KEPT)
def _mmap(n):
    x = module("mmap").mmap(-1, n)
    x[:] = b"\7" * n
    return x, x.close


@case("mmap", "mmap.resize", KEPT)
def _mmap_resize(n):
    x = module("mmap").mmap(-1, n)
    x[:] = b"\7" * n
    return x, lambda: x.resize(64 * n)


@case("builtins", "memoryview.release")
def _memoryview(n):
    x = memoryview(bytearray(b"\7" * n))
    return x, x.release


@case("pickle", "PickleBuffer.release")
def _pickle_buffer(n):
    x = module("pickle").PickleBuffer(bytearray(b"\7" * n))
    return x, x.release


def _shared_memory(n):
    x = module("multiprocessing.shared_memory").SharedMemory(create=True, size=n)
    x.buf[:] = b"\7" * len(x.buf)
    x.unlink()
    return x


@case("multiprocessing", "SharedMemory.close", KEPT)
def _shared_close(n):
    x = _shared_memory(n)
    return x, x.close


@case("numpy", "ndarray(buffer=SharedMemory.buf), close", MOVES)
def _shared_ndarray(n):
    x = _shared_memory(n)
    return np.ndarray(n, "u1", x.buf), x.close


@case("numpy", "ndarray.resize", KEPT)
def _resize(n):
    x = numbers(n)
    return x, lambda: x.resize(64 * n)


@case("numpy", "ndarray.resize(refcheck=False)", MOVES)
def _resize_unchecked(n):
    x = numbers(n)
    return x, lambda: x.resize(64 * n, refcheck=False)


@case("ctypes", "contents of a pointer to an array")
def _contents(n):
    x = (ctypes.c_float * n)(*numbers(n))
    return ctypes.pointer(x).contents


@case("ctypes", "from_buffer")
def _from_buffer(n):
    return (ctypes.c_float * n).from_buffer(bytearray(numbers(n)))


@case("ctypes", "from_address", MOVES)
def _from_address(n):
    return (ctypes.c_float * n).from_address(numbers(n).ctypes.data)


@case("ctypes", "resize", MOVES)
def _ctypes_resize(n):
    x = (ctypes.c_float * n)(*numbers(n))
    return x, lambda: ctypes.resize(x, 256 * n)


# -------------------------------------------------------------------------------------- libraries of the extra test-all


@case("torch", "Tensor.resize_", MOVES)
def _torch_resize(n):
    x = module("torch").zeros(n)
    return x, lambda: x.resize_(64 * n)


@case("torch", "Tensor.share_memory_", MOVES)
def _torch_share(n):
    x = module("torch").from_numpy(numbers(n))
    return x, x.share_memory_


@case("jax", "Array.delete")
def _jax_delete(n):
    jax = module("jax")
    x = jax.device_put(numbers(n), jax.devices("cpu")[0]) + 0
    x.block_until_ready()
    return x, x.delete


@case("jax", "an array, donated to a jitted function")
def _jax_donated(n):
    jax = module("jax")
    x = jax.device_put(numbers(n), jax.devices("cpu")[0]) + 0
    return x, lambda: jax.jit(lambda v: v * 2, donate_argnums=0)(x).block_until_ready()


@case("pyarrow", "foreign_buffer with its owner")
def _foreign(n):
    x = numbers(n)
    return module("pyarrow").foreign_buffer(x.ctypes.data, x.nbytes, x)


@case("pyarrow", "foreign_buffer without its owner", MOVES)
def _foreign_alone(n):
    x = numbers(n)
    return module("pyarrow").foreign_buffer(x.ctypes.data, x.nbytes)


@case("pyarrow", "ResizableBuffer.resize", MOVES)
def _resizable(n):
    x = module("pyarrow").allocate_buffer(n, resizable=True)
    np.frombuffer(x, "u1")[:] = 7
    return x, lambda: x.resize(256 * n)


@case("pyarrow", "BufferReader.read_buffer, close")
def _buffer_reader(n):
    x = module("pyarrow").BufferReader(bytearray(b"\7" * n))
    return x.read_buffer(), x.close


@case("polars", "a slice of a Series of an ndarray")
def _polars(n):
    return module("polars").Series(numbers(n))[2:]


@case("polars", "Series.append")
def _polars_append(n):
    x = module("polars").Series(numbers(n))
    return x, lambda: x.append(x)


@case("arro3.core", "Array.from_numpy")
def _arro3(n):
    return module("arro3.core").Array.from_numpy(numbers(n))


@case("nanoarrow", "c_array of an ndarray")
def _nanoarrow(n):
    return module("nanoarrow").c_array(numbers(n))


@case("nanoarrow", "a buffer of a view of an array")
def _nanoarrow_buffer(n):
    return module("nanoarrow").c_array(numbers(n)).view().buffer(1)


@case("nanoarrow", "a child of an array")
def _nanoarrow_child(n):
    pyarrow = module("pyarrow")
    return module("nanoarrow").c_array(pyarrow.RecordBatch.from_arrays([pyarrow.array(numbers(n))], ["a"])).child(0)


@case("duckdb", "fetchnumpy, close")
def _duckdb(n):
    x = module("duckdb").connect()
    return x.execute(f"select range::FLOAT as x from range({n})").fetchnumpy()["x"], x.close


@case("xarray", "DataArray of an ndarray")
def _xarray(n):
    return module("xarray").DataArray(numbers(n))


@case("pygame", "Surface.get_view of image.frombuffer")
def _pygame(n):
    x = module("pygame").image.frombuffer(bytearray(b"\5" * (4 * n)), (64, n // 64), "RGBA")
    return x.get_view("2")


@case("pygame", "Surface.subsurface")
def _pygame_subsurface(n):
    x = module("pygame").Surface((64, n // 64), depth=32)
    x.fill((1, 2, 3))
    return x.subsurface((0, 0, 64, 1)).get_view("2")


@case("pygame", "the display's Surface, set_mode", MOVES)
def _pygame_display(n):
    display = module("pygame").display
    display.init()
    x = display.set_mode((64, n // 64), depth=32)
    x.fill((1, 2, 3))

    def end():
        display.set_mode((2048, 2048))
        display.quit()

    return x.get_view("2"), end


@case("PIL.Image", "Image of a file of several images, seek and load", MOVES)
def _pillow(n):
    pil, file = module("PIL.Image"), io.BytesIO()
    pil.new("L", (n, 1), 7).save(file, "TIFF", save_all=True, append_images=[pil.new("L", (n, 1), 8)])
    x = pil.open(file)
    return x, lambda: (x.seek(1), x.load())


@case("SimpleITK", "GetArrayViewFromImage", MOVES)
def _simpleitk(n):
    sitk = module("SimpleITK")
    return sitk.GetArrayViewFromImage(sitk.GetImageFromArray(numbers(n).reshape(4, -1)))


@case("matplotlib", "canvas.buffer_rgba(), drawing in another size")
def _matplotlib(n):
    module("matplotlib").use("agg")
    figure = module("matplotlib.pyplot").figure()
    figure.canvas.draw()

    def end():
        figure.set_size_inches(12, 12)
        figure.canvas.draw()

    return figure.canvas.buffer_rgba(), end


@case("netCDF4", "result of closing an in-memory Dataset")
def _netcdf4(n):
    x = module("netCDF4").Dataset("in memory", "w", memory=1024)
    x.createDimension("n", n)
    x.createVariable("a", "f4", ("n",))[:] = numbers(n)
    return x.close()


@case("sklearn", "KDTree.data")
def _sklearn(n):
    return module("sklearn.neighbors").KDTree(numbers(n, "f8").reshape(-1, 2)).data


# ------------------------------------------------------------------- more libraries, most of which are not in test-all


@case("mpi4py.MPI", "buffer.allocate, release", MOVES)
def _mpi(n):
    x = module("mpi4py.MPI").buffer.allocate(n)
    x[:] = b"\7" * n
    return x, x.release


@case("mpi4py.MPI", "Win.Allocate().tomemory(), Free", MOVES)
def _mpi_window(n):
    mpi = module("mpi4py.MPI")
    window = mpi.Win.Allocate(n, comm=mpi.COMM_SELF)
    return window.tomemory(), window.Free


@case("cffi", "buffer(new(...))")
def _cffi(n):
    ffi = module("cffi").FFI()
    return ffi.buffer(ffi.new("char[]", b"\7" * (n - 1)))


@case("cffi", "buffer of from_buffer()")
def _cffi_from_buffer(n):
    ffi = module("cffi").FFI()
    return ffi.buffer(ffi.from_buffer("char[]", bytearray(b"\7" * n)))


@case("cffi", "buffer of a cast pointer", MOVES)
def _cffi_cast(n):
    ffi = module("cffi").FFI()
    return ffi.buffer(ffi.cast("char *", ffi.new("char[]", b"\7" * (n - 1))), n)


@case("onnxruntime", "OrtValue on an ndarray")
def _onnxruntime(n):
    return module("onnxruntime").OrtValue.ortvalue_from_numpy(numbers(n))


@case("onnxruntime", "OrtValue.numpy() of an OrtValue on an ndarray", MOVES)
def _onnxruntime_numpy(n):
    return module("onnxruntime").OrtValue.ortvalue_from_numpy(numbers(n)).numpy()


@case("openvino", "a part of Tensor(shared_memory=True)", MOVES)
def _openvino_part(n):
    openvino = module("openvino")
    return openvino.Tensor(openvino.Tensor(numbers(n).reshape(2, -1), shared_memory=True), [0, 0], [1, n // 2])


@case("openvino", "Tensor.set_shape", MOVES)
def _openvino_shape(n):
    openvino = module("openvino")
    x = openvino.Tensor(openvino.Type.f32, [n])
    x.data[:] = numbers(n)
    return x, lambda: x.set_shape([64 * n])


@case("paddle", "Tensor.resize_")
def _paddle_resize(n):
    x = module("paddle").to_tensor(numbers(n))
    return x, lambda: x.resize_([4 * n], fill_zero=True)


@case("mlx.core", "array[i] = value")
def _mlx(n):
    mlx = module("mlx.core")
    x = mlx.array(numbers(n))
    mlx.eval(x)

    def end():
        x[2:5] = 0
        mlx.eval(x)

    return x, end


@case("vtkmodules.util.numpy_support", "numpy_to_vtk")
def _vtk(n):
    return module("vtkmodules.util.numpy_support").numpy_to_vtk(numbers(n))


@case("vtkmodules.vtkCommonCore", "vtkFloatArray.Resize", MOVES)
def _vtk_resize(n):
    x = module("vtkmodules.vtkCommonCore").vtkFloatArray()
    x.SetNumberOfValues(n)
    np.frombuffer(x, "f4")[:] = numbers(n)

    def end():
        x.Resize(64 * n)
        x.Initialize()

    return x, end


@case("skia", "Data(buffer, copy=False)", MOVES)
def _skia_data(n):
    return module("skia").Data(bytearray(b"\7" * n), False)


@case("PySide6.QtCore", "QByteArray.resize", MOVES)
def _qbytearray(n):
    x = module("PySide6.QtCore").QByteArray(b"\7" * n)
    return x, lambda: x.resize(256 * n)


@case("PySide6.QtGui", "QImage.bits()", MOVES)
def _qimage(n):
    gui = module("PySide6.QtGui")
    x = gui.QImage(64, n // 64, gui.QImage.Format.Format_Grayscale8)
    x.fill(7)
    return x.bits()


@case("rasterio.io", "MemoryFile.getbuffer, close", MOVES)
def _rasterio(n):
    x = module("rasterio.io").MemoryFile(b"\7" * n)
    return x.getbuffer(), x.close


@case("lmdb", "get(key, buffers=True), end of the transaction", MOVES)
def _lmdb(n):
    folder = tempfile.TemporaryDirectory()
    environment = module("lmdb").open(folder.name, map_size=64 * n + (1 << 20))
    with environment.begin(write=True) as transaction:
        transaction.put(b"key", b"\7" * n)
    transaction = environment.begin(buffers=True)
    x = transaction.get(b"key")

    def end():
        transaction.abort()
        environment.close()
        folder.cleanup()

    return x, end


@case("wasmtime", "Memory.get_buffer_ptr, end of the store", MOVES)
def _wasmtime(n):
    wasmtime = module("wasmtime")
    store = wasmtime.Store()
    pages = wasmtime.Limits(1 + n // 65536, None)
    return wasmtime.Memory(store, wasmtime.MemoryType(pages)).get_buffer_ptr(store)


# ------------------------------------------------------------------------------------------------------- running a case


def ballast(nbytes):
    """Allocate and write memory, which reuses and overwrites memory that has been freed."""
    count = 64 if nbytes < 1 << 17 else 8
    arrays = [np.full(nbytes, 255, "u1") for _ in range(count)]
    return arrays + [bytearray(b"\xdd" * (nbytes + more)) for more in (0, 8, 16, 64) for _ in range(count // 4)]


def run(one, n):
    """Run a case in this process. Return whether the view kept its values, and the name of the operation's error."""
    import arrayhub

    made = one.make(n)
    obj, end = made if isinstance(made, tuple) else (made, None)
    a = arrayhub.asarray(obj, copy=False)
    before, refusal = a.tobytes(), ""
    if end is not None:
        try:
            end()
        except (BufferError, ValueError) as error:
            refusal = type(error).__name__
    del made, obj, end
    gc.collect()
    others = ballast(a.nbytes)
    after = a.tobytes()
    assert others
    return after == before, refusal


def check(one):
    """Run a case, and assert that its outcome is as expected: HELD or KEPT."""
    for n in SIZES:
        same, refusal = run(one, n)
        assert same, f"{one.library}: {one.what}, {n} elements: the view's values have changed"
        assert bool(refusal) == (one.outcome == KEPT), f"{one.library}: {one.what}: the operation raised {refusal!r}"


def check_library(name):
    for one in CASES:
        if one.library == name and one.outcome != MOVES:
            check(one)


def main(libraries):
    for number, one in enumerate(CASES):
        if libraries and one.library.partition(".")[0] not in libraries:
            continue
        program = f"from tests.support.libraries.borrowing import *; print(*[run(CASES[{number}], n) for n in SIZES])"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        said = (done.stdout.splitlines() or done.stderr.splitlines() or ["nothing"])[-1]
        ended = f" (exit code {done.returncode})" if done.returncode else ""
        print(f"{one.library:30} {one.what:45} {one.outcome:6} {said[:100]}{ended}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    main(sys.argv[1:])
