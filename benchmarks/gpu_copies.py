"""Compare large copies to, from and between CUDA devices with cupy's copies and with the speed of the bus.

`benchmarks.gpu` measures these rows. Each row compares an arrayhub call with peer calls, and may have a minimum
ratio of arrayhub's speed to the speed of the first peer. Rows with ``out=`` copy into memory that has been written
before. The times of the other rows include the allocation of the result, but not its release.
"""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import arrayhub

GIB = 1 << 30


def pinned_memory(cupy, nbytes):
    """Return a pinned float64 array that has been written, so that timings exclude page faults."""
    memory = cupy.cuda.alloc_pinned_memory(nbytes)
    array = np.frombuffer(memory, "f8", nbytes // 8)
    array[...] = 1
    return array


def rows(cupy, nbytes=GIB):
    """Yield (name, bytes copied, arrayhub's call, {peer: peer's call}, minimum ratio of speeds to the first peer)."""
    x = cupy.random.default_rng(0).random((1 << 13, nbytes >> 16))
    host = x.get()
    touched = np.ones_like(host)
    pinned, pinned_too = pinned_memory(cupy, nbytes), pinned_memory(cupy, nbytes)
    stream = cupy.cuda.get_current_stream()

    def from_device():
        cupy.cuda.runtime.memcpyAsync(pinned.ctypes.data, x.data.ptr, nbytes, 2, stream.ptr)
        stream.synchronize()

    def to_device():
        y = cupy.cuda.alloc(nbytes)
        cupy.cuda.runtime.memcpyAsync(y.ptr, pinned.ctypes.data, nbytes, 1, stream.ptr)
        stream.synchronize()
        return y

    def asarray():
        y = cupy.asarray(host)
        stream.synchronize()
        return y

    def asnumpy(view):
        return {"cupy.asnumpy": lambda: cupy.asnumpy(view)}

    bus = {"pinned-memory rate": from_device}
    into = {**bus, "x.get(out=)": lambda: x.get(out=touched)}
    out, out_pinned = pinned_too.reshape(x.shape), arrayhub.asarray(pinned_too.reshape(x.shape))
    every, turned = x[:, ::2], x.T
    yield "to_host(x), fresh", nbytes, lambda: arrayhub.to_host(x), {**asnumpy(x), **bus}, 8
    yield "to_host(x, out=touched)", nbytes, lambda: arrayhub.to_host(x, out=touched), into, 0.85
    yield "to_host(x[:, ::2])", nbytes // 2, lambda: arrayhub.to_host(every), asnumpy(every), 6
    yield "to_host(x.T)", nbytes, lambda: arrayhub.to_host(turned), asnumpy(turned), 6
    up = {"cupy.asarray": asarray, "pinned-memory rate": to_device}
    yield "to_device(pageable)", nbytes, lambda: arrayhub.to_device(host, "cuda:0"), up, 4
    yield "to_host(x, out=pinned)", nbytes, lambda: arrayhub.to_host(x, out=out_pinned), bus, 0.97
    up = {"pinned-memory rate": to_device}
    yield "to_device(pinned)", nbytes, lambda: arrayhub.to_device(out, "cuda:0"), up, 0.97


def device_rows(cupy, nbytes=GIB):
    """Yield rows of copies between two devices, and from the host to both at once, in the form of `rows`.

    Without a second device, yield nothing. A copy between devices may take 1.1 times as long as cupy's copy. For 8 MiB,
    there is no target: fixed costs are a large part of the time, and arrayhub orders the streams of both devices, which
    cupy leaves to its callers.
    """
    if cupy.cuda.runtime.getDeviceCount() < 2:
        return
    x = cupy.random.default_rng(0).random((1 << 13, nbytes >> 16))
    for name, view in {"x": x, "x[:, ::2]": x[:, ::2], "x.T": x.T, "x[:64]": x[:64]}.items():
        size, least = view.nbytes, 1 / 1.1 if view.size > x.size // 4 else None
        yield f"to_device({name}, 'cuda:1')", size, move(view), {"cupy's peer copy": peer_copy(cupy, view)}, least
        with cupy.cuda.Device(1):
            there = cupy.zeros(view.shape)
        target = arrayhub.asarray(there)
        peer = {"cupy.copyto": peer_assignment(cupy, there, view)}
        yield f"y[...] = {name} on 'cuda:1'", size, assignment(cupy, target, view), peer, least
    pageable, pinned = x.get(), pinned_memory(cupy, nbytes).reshape(x.shape)
    for name, host in {"pageable": pageable, "pinned": pinned}.items():
        yield f"to both devices, {name}", 2 * nbytes, *both_devices(cupy, host), None


def move(x):
    return lambda: arrayhub.to_device(x, "cuda:1")


def assignment(cupy, target, x):
    """Return a function that assigns an array to one on the second device, and waits for the copy."""

    def assign():
        target[...] = x
        cupy.cuda.Device(1).synchronize()

    return assign


def peer_copy(cupy, x):
    """Return a function that makes cupy's own copy on the second device, and waits for the copy."""

    def copy():
        source = packed(cupy, x)
        with cupy.cuda.Device(1) as device:
            y = cupy.array(source)
            device.synchronize()
            return y

    return copy


def peer_assignment(cupy, target, x):
    def assign():
        source = packed(cupy, x)
        with cupy.cuda.Device(1) as device:
            cupy.copyto(target, source)
            device.synchronize()

    return assign


def packed(cupy, x):
    """Return an array that cupy can copy to another device. It does not copy arrays with gaps between devices."""
    return x if x.flags.forc else cupy.ascontiguousarray(x)


def both_devices(cupy, host):
    """Return arrayhub's call and the peers for copies of a host array to both devices, each in its own thread."""
    pool = ThreadPoolExecutor(2)

    def asarray(ordinal):
        with cupy.cuda.Device(ordinal):
            y = cupy.asarray(host)
            cupy.cuda.get_current_stream().synchronize()
            return y

    def to_device(ordinal):
        return arrayhub.to_device(host, f"cuda:{ordinal}")

    return (
        lambda: list(pool.map(to_device, (0, 1))),
        {
            "cupy.asarray in two threads": lambda: list(pool.map(asarray, (0, 1))),
            "to_device, one after the other": lambda: [to_device(ordinal) for ordinal in (0, 1)],
        },
    )


def small_rows(cupy):
    """Yield rows of small copies, whose time is mostly latency, in the form of `rows`."""
    x = cupy.arange(10.0)
    yield "to_host of 80 bytes", 80, lambda: arrayhub.to_host(x), {"cupy.asnumpy": lambda: cupy.asnumpy(x)}, 1 / 1.2


def size_rows(cupy):
    """Yield rows of increasing size without a minimum ratio, in the form of `rows`."""
    for power in range(12, 31, 2):
        x = cupy.ones(1 << power, "u1")
        host = np.ones(1 << power, "u1")
        touched = np.ones(1 << power, "u1")
        size = f"{1 << power >> 10} KiB" if power < 20 else f"{1 << power >> 20} MiB"
        down = {"x.get(out=)": lambda x=x, out=touched: x.get(out=out)}
        yield f"to_host(out=), {size}", 1 << power, lambda x=x, out=touched: arrayhub.to_host(x, out=out), down, None
        down = {"cupy.asnumpy": lambda x=x: cupy.asnumpy(x)}
        yield f"to_host, {size}", 1 << power, lambda x=x: arrayhub.to_host(x), down, None

        def asarray(host=host):
            y = cupy.asarray(host)
            cupy.cuda.get_current_stream().synchronize()
            return y

        yield (
            f"to_device, {size}",
            1 << power,
            lambda host=host: arrayhub.to_device(host, "cuda:0"),
            {"cupy.asarray": asarray},
            None,
        )


def measure(calls, rounds, seconds=0.02):
    """Time calls in alternation. Return {name: median seconds per call}. Short calls are repeated within a round."""
    loops, times = {}, {name: [] for name in calls}
    for name, call in calls.items():
        call()
        begin = time.perf_counter()
        kept = call()
        once = time.perf_counter() - begin
        del kept
        loops[name] = max(1, min(1000, int(seconds / once)))
    for _ in range(rounds):
        for name, call in calls.items():
            spent = 0
            for _ in range(loops[name]):
                begin = time.perf_counter()
                kept = call()
                spent += time.perf_counter() - begin
                del kept
            times[name].append(spent / loops[name])
    return {name: statistics.median(found) for name, found in times.items()}


def run(cupy, rounds, groups):
    """Measure and print the rows of the groups. Return the report, and the number of missed minimum ratios."""
    report, missed = [], 0
    for name, nbytes, ours, peers, least in (row for group in groups for row in group(cupy)):
        found = measure({name: ours, **peers}, rounds)
        mine = found.pop(name)
        row = {"way": name, "bytes": nbytes, "seconds": mine, "least": least, "peers": {}}
        print(f"{name:<32} {mine * 1e6:10.1f} us {nbytes / mine / 1e9:8.2f} GB/s", flush=True)
        for k, (peer, seconds) in enumerate(found.items()):
            ratio = seconds / mine
            row["peers"][peer] = {"seconds": seconds, "ratio": ratio}
            asked = least if k == 0 else None
            missed += asked is not None and ratio < asked
            goal = "" if asked is None else f"  (at least {asked:.2f}{'' if ratio >= asked else ', MISSED'})"
            print(f"{'':<32} {seconds * 1e6:10.1f} us {nbytes / seconds / 1e9:8.2f} GB/s {ratio:6.2f}  {peer}{goal}")
        report.append(row)
    return report, missed
