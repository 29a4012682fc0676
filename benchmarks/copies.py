"""Compare explicit copies with copies by other libraries, by ``memmove`` or by the SYCL runtime."""

import ctypes

import numpy as np

import arrayhub

from .measure import Result, Timed, compare
from .rows import Row

SIDE = 2896  # length of both dimensions of a float64 array of 64 MiB

ROWS = (
    Row("to_host(64 MiB, out=)", "to_host(a, out=o)", "memmove(o_at, a_at, nbytes)", 1 / 0.9),
    Row("to_host(64 MiB, copy=True)", "to_host(a, copy=True)", "a.copy()", None),
    Row("to_host(4096 x 4096 transposed, out=)", "to_host(t.T, out=p)", "np.copyto(p, t.T)", 1.00),
    Row("to_host(3000 x 3000 transposed, out=)", "to_host(s.T, out=v)", "np.copyto(v, s.T)", None),
    Row("to_host(64 MiB of x, out=)", "to_host(x, out=o)", "queue.memcpy(o_raw, x_mem, nbytes)", 1.10, ("sycl",)),
    Row("to_host(64 MiB of x)", "to_host(x)", "dpt.asnumpy(d)", None, ("sycl",)),
    Row("to_host(one row of x)", "to_host(x_row)", "to_host(x)", 1 / 50, ("sycl",)),
    Row("to_host(x[::2, ::2])", "to_host(x[::2, ::2])", "dpt.asnumpy(dpt.copy(d[::2, ::2]))", 1.00, ("sycl",)),
    Row("to_host(x.T)", "to_host(x.T)", "dpt.asnumpy(dpt.copy(d.mT, order='C'))", None, ("sycl",)),
    Row("to_host(x[:, 5])", "to_host(x[:, 5])", "dpt.asnumpy(dpt.copy(d[:, 5]))", None, ("sycl",)),
    Row("to_device(64 MiB)", "to_device(a, 'oneapi:0')", "dpt.asarray(a)", None, ("sycl",)),
    Row("to_device(o[::2, ::2])", "to_device(o[::2, ::2], 'oneapi:0')", "dpt.asarray(o[::2, ::2])", None, ("sycl",)),
    Row("x.T.copy() on the device", "x.T.copy()", "waited(dpt.copy(d.mT, order='C'))", None, ("sycl",)),
)  # fmt: skip


def plain():
    """Return the namespace of host copies. The memory has been written, so that timings exclude page faults."""
    a, t, s = (np.random.default_rng(0).random((side, side)) for side in (SIDE, 4096, 3000))
    o = np.zeros_like(a)
    return {
        "np": np,
        "to_host": arrayhub.to_host,
        "to_device": arrayhub.to_device,
        "memmove": ctypes.memmove,
        "a": a,
        "a_at": a.ctypes.data,
        "nbytes": a.nbytes,
        "o": o,
        "o_at": o.ctypes.data,
        "o_raw": o.reshape(-1).view("u1"),
        "t": t,
        "p": np.zeros_like(t),
        "s": s,
        "v": np.zeros_like(s),
    }


def sycl():
    """Return the namespace of copies from and to device memory."""
    import dpnp.tensor

    d = dpnp.tensor.asarray(np.random.default_rng(0).random((SIDE, SIDE)), usm_type="device")
    x = arrayhub.asarray(d)
    d.sycl_queue.wait()
    return {
        "dpt": dpnp.tensor,
        "d": d,
        "x": x,
        "x_row": x[5],
        "x_mem": d.usm_data,
        "queue": d.sycl_queue,
        "waited": lambda made: made.sycl_queue.wait(),
    }


def copies(options):
    """Measure each row. Yield a `Result`, or the name of a row and the reason why it is skipped."""
    names, absent = plain(), None
    try:
        names.update(sycl())
    except Exception as error:  # dpnp is not installed, or does not find a device
        absent = f"{type(error).__name__}: {error}"
    for row in ROWS:
        if row.needs and absent:
            yield f"{row.way} beside {row.peer}", absent
            continue
        ours, peer = (Timed(statement, names, unrolled=1) for statement in (row.ours, row.peer))
        timing = compare(ours, peer, options.repeat, options.sample, least=1)
        yield Result("copies", row.way, row.peer, at_most=row.at_most, **timing)
