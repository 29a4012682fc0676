"""MPI sends and receives arrays of any layout, within one process and between two."""

import copy
import gc
import sys
import sysconfig
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from children import ROOT, group_of_processes
from pages import python_blocks

import arrayhub
from arrayhub import asarray
from arrayhub.transport import as_mpi

pytestmark = pytest.mark.slow

MPI = pytest.importorskip("mpi4py.MPI", reason="mpi4py finds no MPI library", exc_type=(ImportError, RuntimeError))
SELF = MPI.COMM_SELF


def sent(source, target):
    """Send one array, and receive its elements into another array, within this process."""
    request = SELF.Irecv(as_mpi(target), source=0)
    SELF.Send(as_mpi(source), dest=0)
    request.Wait()


GRID = np.arange(4 * 5 * 6.0).reshape(4, 5, 6)
LAYOUTS = {
    "C": lambda a: a,
    "transposed": lambda a: a.T,
    "permuted": lambda a: a.transpose(1, 2, 0),
    "column": lambda a: a[:, 2, 3],
    "inner": lambda a: a[1:-1, 1:-1, 1:-1],
    "reversed": lambda a: a[::-1, :, ::-2],
    "one element": lambda a: a[1:2, 2, 3],
    "nothing": lambda a: a[:0],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_array_of_any_layout_is_one_message(name):
    source, whole = LAYOUTS[name](GRID), np.full_like(GRID, -1)
    target = LAYOUTS[name](whole)
    compact = np.empty(source.shape)
    sent(source, compact)
    assert np.array_equal(compact, source)
    sent(np.ascontiguousarray(source), target)
    assert np.array_equal(target, source)
    assert (whole == -1).sum() == whole.size - source.size, "memory between the elements was written"


def test_random_layouts_are_sent():
    """Test views of one block of memory with strides of any size and sign, including 0."""
    rng = np.random.default_rng(0)
    memory = np.arange(2000.0)
    for _ in range(300):
        shape = rng.integers(1, 5, rng.integers(1, 5))
        steps = rng.integers(-12, 13, len(shape))
        start = -sum(min(step, 0) * (length - 1) for step, length in zip(steps, shape, strict=True))
        source = np.lib.stride_tricks.as_strided(memory[start:], shape, steps * 8, writeable=False)
        target = np.zeros(shape)
        sent(source, target)
        assert np.array_equal(target, source), (shape, steps)


TYPES = ["?", "i1", "u2", "i4", "u8", "f4", "g", "F", "D", "f2", ">i4", "M8[s]", "S3", "V5", ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_element_type_is_sent(dtype):
    source = np.array([1, 0, 1, 1, 0, 7]).astype(dtype)
    target = np.zeros(6, dtype)
    sent(source[::-1], target[::-1])
    assert np.array_equal(target, source)


def test_reductions_of_types_missing_in_mpi_are_rejected():
    for unknown in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3, "f2", ">f8", "M8[s]"):
        one, total = np.ones(4, "u1").astype(unknown), np.zeros(4, "u1").astype(unknown)
        with pytest.raises(TypeError, match="MPI's operations do not support the elements"):
            as_mpi(one, op=MPI.SUM)
        with pytest.raises(Exception, match=r"(?i)mismatch|op|datatype"):
            SELF.Allreduce(as_mpi(one), as_mpi(total), op=MPI.SUM)
    with pytest.raises(BufferError, match="contiguous in C order"):
        as_mpi(GRID.T, op=MPI.SUM)
    total = np.zeros(3)
    SELF.Allreduce(as_mpi(np.ones(3), op=MPI.SUM), as_mpi(total, op=MPI.SUM), op=MPI.SUM)
    assert total.tolist() == [1, 1, 1]


def test_sending_device_memory_raises():
    x = arrayhub.to_device(np.arange(4.0), "oneapi:0")
    with pytest.raises(BufferError, match=r"oneapi:0.*call arrayhub\.to_host"):
        as_mpi(x)
    with pytest.raises(BufferError, match=r"arrayhub\.to_host"):
        SELF.Send(x, dest=0)
    with pytest.raises(Exception, match="to_host"):
        SELF.send(x, dest=0)


def test_as_mpi_rejects_python_objects():
    with pytest.raises(TypeError, match=r"dtype\('O'\).*x\.astype\(str\)"):
        as_mpi(np.array([1, "a"], object))


def test_receiving_into_read_only_memory_raises():
    with pytest.raises(BufferError, match="not writable"):
        SELF.Irecv(as_mpi(bytes(8)), source=0)


@pytest.mark.parametrize(
    "make", [lambda: [0.0, 0.0], lambda: (0.0, 0.0), lambda: 3.0, lambda: np.float64(3), lambda: range(2)]
)
def test_receiving_into_copies_raises(make):
    """`as_mpi` copies sequences and scalars to read-only buffers, so receiving into them raises BufferError."""
    assert np.array_equal(np.frombuffer(as_mpi(make())[0], asarray(make()).dtype), np.ravel(make()))
    with pytest.raises(BufferError, match="not writable"):
        SELF.Irecv(as_mpi(make()), source=0)
    kept = asarray(make())
    request = SELF.Irecv(as_mpi(kept), source=0)
    SELF.Send(as_mpi(np.full(kept.shape, 7, kept.dtype)), dest=0)
    request.Wait()
    assert np.all(np.asarray(kept) == 7)


def test_message_holds_its_array_and_frees_its_datatype():
    message = as_mpi(np.arange(6.0).reshape(2, 3)[:, ::2].copy()[:, ::-1])
    again = copy.copy(message)
    del message
    gc.collect()
    assert np.frombuffer(again[0]).tolist() == [0, 2, 3, 5]
    assert again[2].Get_size() == 32
    del again
    handles = {MPI._handleof(as_mpi(GRID.T)[2]) for _ in range(100)}
    assert len(handles) < 10, "freed handles are not reused"
    freed_by_hand = as_mpi(GRID.T)
    freed_by_hand[2].Free()


def test_contiguous_arrays_do_not_require_a_datatype():
    target = arrayhub.zeros((3, 4), memory="usm_shared")
    request = SELF.Irecv(np.asarray(target), source=0)
    SELF.Send(asarray(np.ones((3, 4))), dest=0)
    request.Wait()
    assert np.asarray(target).sum() == 12


PROGRAM = """
    import numpy as np, arrayhub
    from mpi4py import MPI
    from mpi4py.util import pkl5
    from arrayhub.transport import as_mpi

    comm = MPI.COMM_WORLD
    rank, other = comm.rank, 1 - comm.rank
    x = arrayhub.asarray(np.asfortranarray(np.arange(200_000.0).reshape(400, 500))).with_dims("IJ")

    # methods with upper-case names send memory; every second element is received as a column
    grid = np.zeros((5, 5))
    halo = comm.Irecv(as_mpi(grid[:, 0]), source=other)
    comm.Send(as_mpi(np.arange(10.0)[::2] + rank), dest=other)
    halo.Wait()
    assert grid[:, 0].tolist() == [other, other + 2, other + 4, other + 6, other + 8]

    # a reduction
    total = arrayhub.zeros(3)
    comm.Allreduce(as_mpi(np.full(3, rank + 1.0), op=MPI.SUM), as_mpi(total, op=MPI.SUM))
    assert np.asarray(total).tolist() == [3, 3, 3]

    # methods with lower-case names send pickles, in band and out of band
    for communicator in (comm, pkl5.Intracomm(comm)):
        got = communicator.sendrecv(x, dest=other, source=other)
        assert (got.byte_strides, got.dims, float(np.asarray(got).sum())) == (x.byte_strides, ("I", "J"), 19999900000.0)
        assert got.flags.writeable

    # sending device memory raises, and the communication continues
    if rank == 0:
        try:
            comm.send(arrayhub.to_device(np.arange(4.0), "oneapi:0"), dest=1)
        except Exception as error:
            assert "to_host" in str(error)
            comm.send("nothing was sent", dest=1)
    else:
        assert comm.recv(source=0) == "nothing was sent"
    print("rank", rank, "all right", flush=True)
"""


COLLECTIVES = """
    import ml_dtypes, numpy as np
    from mpi4py import MPI
    from arrayhub.transport import as_mpi

    comm = MPI.COMM_WORLD
    rank, BLOCK = comm.rank, 6
    RECORD = np.dtype([("a", "i1"), ("b", "f8")])


    def counted(n, dtype, start=0):
        if dtype == RECORD:
            a = np.zeros(n, dtype)
            a["a"] = a["b"] = np.arange(start, start + n)
            return a
        return np.arange(start, start + n, dtype="i8").astype(dtype)


    def guarded(n, dtype):
        memory = np.zeros(2 * n, dtype)
        memory.view("u1")[:] = 85
        return memory, memory[:n]


    def has(memory, target, wanted, what):
        beyond = np.ascontiguousarray(memory[len(target):]).view("u1")
        assert target.tolist() == wanted.tolist(), (what, target, wanted)
        assert (beyond == 85).all(), (what, "was written beyond the buffer")


    for dtype in ["f8", "i4", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3, ">f8", "M8[s]", "U3", RECORD]:
        dtype = np.dtype(dtype)
        own, of_all = counted(BLOCK, dtype, rank * BLOCK), counted(2 * BLOCK, dtype)
        for name in ("Allgather", "Allgatherv", "Gather", "Gatherv"):
            memory, target = guarded(2 * BLOCK, dtype)
            is_root = rank == 0 or name.startswith("All")
            getattr(comm, name)(as_mpi(own), as_mpi(target) if is_root else None)
            if is_root:
                has(memory, target, of_all, (name, dtype))
        for name in ("Scatter", "Scatterv"):
            memory, target = guarded(BLOCK, dtype)
            getattr(comm, name)(as_mpi(of_all) if rank == 0 else None, as_mpi(target))
            has(memory, target, own, (name, dtype))
        for name in ("Alltoall", "Alltoallv"):
            memory, target = guarded(2 * BLOCK, dtype)
            getattr(comm, name)(as_mpi(counted(2 * BLOCK, dtype)), as_mpi(target))
            has(memory, target, np.concatenate([own, own]), (name, dtype))
        # a message whose counts the caller has set
        memory, target = guarded(BLOCK + 1, dtype)
        message = as_mpi(target)
        message[1] = [BLOCK, 1]
        comm.Allgatherv(as_mpi(own[: BLOCK if rank == 0 else 1]), message)
        has(memory, target, of_all[: BLOCK + 1], ("Allgatherv", dtype))

    memory, target = guarded(BLOCK, "f8")
    comm.Reduce_scatter_block(as_mpi(np.arange(2.0 * BLOCK), op=MPI.SUM), as_mpi(target, op=MPI.SUM))
    has(memory, target, 2 * (np.arange(float(BLOCK)) + rank * BLOCK), "Reduce_scatter_block")

    # A strided array is sent as one block, and cannot be divided into blocks.
    memory, target = guarded(2 * BLOCK, "f8")
    comm.Allgather(as_mpi((np.arange(2.0 * BLOCK) // 2 + rank * BLOCK)[::2]), as_mpi(target))
    has(memory, target, np.arange(2.0 * BLOCK), "strided")
    for whole in (np.zeros((2 * BLOCK, 2))[:, 0], np.zeros((2, BLOCK)).T):
        try:
            comm.Allgather(as_mpi(np.zeros(BLOCK)), as_mpi(whole))
        except ValueError as error:
            assert "number of blocks" in str(error), error
        else:
            raise AssertionError("a strided array was divided")
    print("rank", rank, "all right", flush=True)
"""


def test_collective_calls_do_not_write_beyond_their_buffers():
    """In collective calls, mpi4py interprets a count as that of one block, so `as_mpi` leaves the count to mpi4py."""
    assert run_two(COLLECTIVES).count("all right") == 2


def launcher():
    found = Path(sysconfig.get_path("scripts")) / "mpiexec"
    if not found.exists():
        pytest.skip("this Python environment does not have mpiexec")
    return str(found)


def run_two(program):
    """Run a program on two ranks, and return their output."""
    command = (launcher(), "-n", "2", sys.executable, "-c", textwrap.dedent(program))
    return group_of_processes(*command, seconds=100, PYTHONPATH=str(Path(arrayhub.__file__).parents[1]))


def test_two_processes_exchange_arrays():
    assert run_two(PROGRAM).count("all right") == 2


def test_stencil_of_the_how_to_runs():
    """The complete program of the page runs on two ranks."""
    blocks = python_blocks(ROOT / "docs" / "howto" / "cluster_user.md")
    (program,) = [block for block in blocks if block.startswith("# stencil.py")]
    run_two(program)
