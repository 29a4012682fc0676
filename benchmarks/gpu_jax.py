"""Compare the cost, ordering and ownership of the protocols by which a jax array on a GPU can be imported.

    python -m benchmarks.gpu_jax [--repeats N]

The first table shows the time of each candidate in nanoseconds (median and middle half of the repeats). The candidates
and `asarray` are timed alternately in one process. Two tests follow:

- Order: Start a long computation, import its result at once, and read the result on another stream. The test counts
  the reads before the end of the computation.
- Ownership: Import an array, and delete it (`x.delete()`). The test shows whether jax reuses the memory while the
  import exists.

A call of `is_ready` neither orders streams nor holds the memory. But if `is_ready` returns True, no work is pending, so
any candidate can be used without a stream, because jax arrays are immutable. Only DLPack holds a reference that
`delete` and donation respect.
"""

import argparse
import os
import statistics
import timeit

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

CALLS = 2000


def candidates(jax, x):
    """Return {name: call} for the candidates of jax 0.10 to 0.12 that do not fail in the installed release."""
    import arrayhub

    direct = find_direct()
    shard = x.addressable_data(0)
    found = {
        "arrayhub.asarray(x)": lambda: arrayhub.asarray(x),
        "x.__cuda_array_interface__": lambda: x.__cuda_array_interface__,
        "asarray(x, via='cuda')": lambda: arrayhub.asarray(x, via="cuda"),
        "x.__dlpack__()": lambda: x.__dlpack__(),
        "x.__dlpack__(stream=1)": lambda: x.__dlpack__(stream=1),
        "direct(x, stream=None)": lambda: direct(x, stream=None),
        "direct(x, stream=1)": lambda: direct(x, stream=1),
        "direct(x.addressable_data(0), stream=1)": lambda: direct(x.addressable_data(0), stream=1),
        "direct(shard, stream=1)": lambda: direct(shard, stream=1),
        "x.unsafe_buffer_pointer()": lambda: x.unsafe_buffer_pointer(),
        "x.is_ready()": lambda: x.is_ready(),
        "x.block_until_ready() when ready": lambda: x.block_until_ready(),
        "x.devices()": lambda: x.devices(),
        "x.platform()": lambda: x.platform(),
        "x.is_deleted()": lambda: x.is_deleted(),
        "x.shape, x.dtype": lambda: (x.shape, x.dtype),
        "x.addressable_data(0)": lambda: x.addressable_data(0),
        "memoryview(x), refused": lambda: refused(lambda: memoryview(x)),
    }
    return {name: call for name, call in found.items() if works(name, call)}


def find_direct():
    """Return the C function that ``__dlpack__`` calls. Its module depends on the release."""
    for module in ("jaxlib._jax", "jaxlib.xla_extension"):
        try:
            found = getattr(__import__(module, fromlist=["_"]), "buffer_to_dlpack_managed_tensor", None)
        except ImportError:
            continue
        if found is not None:
            return found
    raise SystemExit("jaxlib lacks buffer_to_dlpack_managed_tensor, which the `direct` rows need")


def refused(call):
    try:
        call()
    except (BufferError, RuntimeError, TypeError, ValueError):
        return True
    return False


def works(name, call):
    try:
        call()
    except Exception as error:
        print(f"{name:42} left out: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:80]}")
        return False
    return True


def measure(calls, repeats):
    """Time the candidates in alternation. Return {name: (median, lower quartile, upper quartile)} in nanoseconds."""
    times = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(timeit.timeit(call, number=CALLS) / CALLS * 1e9)
    return {name: tuple(statistics.quantiles(series, n=4)[k] for k in (1, 0, 2)) for name, series in times.items()}


def slow_result(jax):
    """Return a new array of ones whose computation is still pending."""
    jnp = jax.numpy

    @jax.jit
    def work(a):
        for _ in range(30):
            a = jnp.tanh(a @ a) * 0 + 1
        return a

    return work(jnp.zeros((4096, 4096), "f4"))


def check_order(jax):
    """Print for each candidate how often another stream reads the imported array before its computation ends."""
    import cupy

    import arrayhub

    slow_result(jax).block_until_ready()  # compiled
    theirs = cupy.cuda.Stream(non_blocking=True)
    direct = find_direct()
    ways = {
        "nothing": lambda x: None,
        "x.__cuda_array_interface__": lambda x: x.__cuda_array_interface__,
        "x.__dlpack__()": lambda x: x.__dlpack__(),
        "x.__dlpack__(stream=theirs)": lambda x: x.__dlpack__(stream=theirs.ptr),
        "direct(x, stream=theirs)": lambda x: direct(x.addressable_data(0), stream=theirs.ptr),
        "is_ready, else __dlpack__(stream=theirs)": lambda x: x.is_ready() or x.__dlpack__(stream=theirs.ptr),
        "arrayhub.asarray(x, stream=theirs)": lambda x: arrayhub.asarray(x, stream=theirs),
        "arrayhub.asarray(x) to cupy on theirs": lambda x: to_cupy(arrayhub.asarray(x), theirs),
    }
    for name, way in ways.items():
        early = busy = 0
        for _ in range(10):
            x = slow_result(jax)
            busy += not x.is_ready()
            keep = way(x)
            pointer = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(x.unsafe_buffer_pointer(), x.nbytes, x), 0)
            with theirs:
                early += bool((cupy.ndarray(x.shape, "f4", pointer).copy().get(stream=theirs) != 1).any())
            x.block_until_ready()
            del keep
        print(f"{name:42} read too early in {early} of 10 rounds (computation pending at the import in {busy})")


def to_cupy(array, stream):
    import arrayhub

    with stream:
        return arrayhub.as_cupy(array, allow_readonly=True)


def check_held(jax):
    """Print for each candidate whether jax reuses a deleted array's memory while the imported array exists."""
    import arrayhub

    direct = find_direct()
    ways = {
        "x.__cuda_array_interface__": lambda x: x.__cuda_array_interface__,
        "x.__dlpack__()": lambda x: x.__dlpack__(),
        "direct(x)": lambda x: direct(x.addressable_data(0), stream=None),
        "arrayhub.asarray(x)": lambda x: arrayhub.asarray(x),
    }
    for name, way in ways.items():
        x = jax.numpy.ones(1 << 20).block_until_ready()
        address, keep = x.unsafe_buffer_pointer(), way(x)
        refusal = "" if not refused(x.delete) else ", and delete refuses"
        others = [jax.numpy.zeros(1 << 20).block_until_ready() for _ in range(8)]
        taken = any(other.unsafe_buffer_pointer() == address for other in others)
        print(f"{name:42} {'memory reused' if taken else 'memory held'}{refusal}")
        del keep


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    import jax

    print(f"jax {jax.__version__} on {jax.devices()[0]}")
    x = jax.numpy.arange(12, dtype="float32").reshape(3, 4).block_until_ready()
    for name, (middle, low, high) in sorted(
        measure(candidates(jax, x), options.repeats).items(), key=lambda row: row[1]
    ):
        print(f"{name:42} {middle:8.0f} ns   ({low:.0f} to {high:.0f})")
    if jax.default_backend() != "gpu":
        print("no GPU: order and ownership are not tested")
        return
    for look in (check_order, check_held):
        try:
            look(jax)
        except ImportError as error:
            print(f"{look.__name__}: left out, {error}")


if __name__ == "__main__":
    main()
