"""Test pickling of CUDA memory: rejected, copied to the host, or restored on the device."""

import copy
import pickle

import numpy as np
import pytest
from pickled_arrays import check_readable

import arrayhub

cupy = pytest.importorskip("cupy", reason="cupy is not installed")
pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("policy")]


VIEWS = {
    "C": lambda a: a,
    "F": lambda a: a.T,
    "strided": lambda a: a[::2, ::-1],
    "broadcast": lambda a: cupy.broadcast_to(a[0], (3, a.shape[1])),
}


@pytest.mark.parametrize("name", VIEWS)
def test_pickling_policy_determines_the_device(name):
    source = VIEWS[name](cupy.arange(24.0).reshape(4, 6))
    x = arrayhub.asarray(source)
    with pytest.raises(pickle.PicklingError, match=r"cuda:0.*to_host"):
        pickle.dumps(x)
    with arrayhub.transport.pickling(device="host"):
        y = pickle.loads(pickle.dumps(x))
    assert y.device.type == "cpu" and np.array_equal(np.asarray(y), source.get())
    with arrayhub.transport.pickling(device="keep"):
        z = pickle.loads(pickle.dumps(x))
    assert z.device == x.device and np.array_equal(arrayhub.as_cupy(z).get(), source.get())


def test_pickling_waits_for_pending_work():
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        a = cupy.zeros(10_000_000)
        for _ in range(50):
            a += 1
        x = arrayhub.asarray(a)
    with arrayhub.transport.pickling(device="host"):
        assert float(np.asarray(pickle.loads(pickle.dumps(x))).min()) == 50


def test_deepcopy_stays_on_the_device():
    source = cupy.arange(24.0).reshape(4, 6)[:, ::-2]
    x = arrayhub.asarray(source)
    y = copy.deepcopy(x)
    assert y.device == x.device and y.ptr != x.ptr
    assert np.array_equal(arrayhub.as_cupy(y).get(), source.get())


@pytest.mark.parametrize("kind", ["cuda_host", "cuda_managed"])
def test_pinned_and_managed_memory_is_pickled(kind):
    check_readable(kind)
