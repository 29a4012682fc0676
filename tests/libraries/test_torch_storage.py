"""Test that a view of a torch tensor stays valid after the tensor gets new storage.

Each test runs in a subprocess, because a view of freed memory may crash the interpreter."""

import pytest
from children import python
from exporters import FAST_PATHS_OFF

import arrayhub as ah

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

N = 1 << 20  # number of elements; freeing an allocation of this size returns its pages to the system

# Statements that give a tensor new storage.
CHANGES = {
    "half of a frozen module": "m.half()",
    "data": "t.data = torch.zeros(3)",
    "set_": "t.set_()",
    "set_ to another": "t.set_(torch.zeros(5))",
    "swap": "torch.utils.swap_tensors(t, torch.nn.Parameter(torch.zeros(2), requires_grad=False))",
    "module and tensor deleted": "m.weight = None; del t",
}

ONE = f"""
def one(via, owned):
    m = torch.nn.Linear({N}, 1, bias=False).requires_grad_(False)
    t = m.weight
    t.fill_(7)
    storage = t.untyped_storage() if owned else None
    x = ah.asarray(t, via=via)
    y = x[:, 5:]
    n = ah.as_numpy(x)
    del storage
    CHANGE
    others = [torch.full((1, 1 << 20), 3.0) for _ in range(3)]
    assert (n == 7).all() and (ah.as_numpy(y) == 7).all() and (ah.as_numpy(x) == 7).all()
    ah.as_numpy(x)[:] = 1
    assert all((other == 3).all() for other in others)
import torch, arrayhub as ah
for via in (None, "dlpack"):
    for owned in (False, True):
        one(via, owned)
"""


@pytest.mark.parametrize("change", CHANGES)
def test_a_view_outlives_the_storage_of_its_tensor(change):
    """Test storage that has a Python object, and storage without one."""
    python(ONE.replace("CHANGE", CHANGES[change]))


@pytest.mark.skipif(FAST_PATHS_OFF, reason="without fast paths, arrays hold a detached tensor")
def test_import_does_not_detach_the_tensor(monkeypatch):
    """The array holds the storage itself, not a detached tensor, which would cost several times as much."""
    tensor, made = torch.zeros(3), []
    ah.asarray(tensor)
    monkeypatch.setattr(torch.Tensor, "detach", made.append)
    ah.asarray(tensor)
    assert made == []


def test_storage_is_released_with_the_last_view():
    python("""
import gc, torch, weakref, arrayhub as ah
gc.disable()
for change in (lambda t: None, lambda t: t.set_(), lambda t: setattr(t, "data", torch.zeros(1))):
    for via in (None, "dlpack"):
        t = torch.ones(64)
        dead = weakref.ref(t.untyped_storage())
        x = ah.asarray(t, via=via)
        y = ah.asarray(t, via=via)
        view = x[1:]
        change(t)
        del t, x, y
        assert dead() is not None
        assert ah.as_numpy(view).sum() == 63
        del view
        assert dead() is None
""")


@pytest.mark.parametrize("change", ["pass", "t.set_()"])
def test_released_arrays_free_their_storage(change):
    python(f"""
import resource, torch, arrayhub as ah
def once():
    t = torch.ones(1 << 20)
    x = ah.asarray(t)
    {change}
for _ in range(20): once()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(200): once()
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000       # KiB; 200 tensors have 800 000
""")


def test_views_are_released_inside_a_torch_mode():
    python("""
import torch, arrayhub as ah
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
class Refuses(TorchFunctionMode):
    def __torch_function__(self, function, kinds, arguments=(), keywords=None):
        raise RuntimeError("not now")
for mode in (FakeTensorMode, torch.inference_mode, Refuses):
    for _ in range(100):
        t = torch.ones(64)
        x = ah.asarray(t)
        t.set_()
        with mode():
            del x
torch.ones(3).sum()
""")


def test_garbage_collection_cannot_change_a_tensor_during_its_import():
    """An import reads a consistent state, although it may run the garbage collector and finalizers."""
    python("""
import gc, torch, arrayhub as ah
class Finalizer:
    def __init__(self, t): self.t, self.me = t, self
    def __del__(self): self.t.set_(torch.zeros(2, 2, 2, 2, 2, 2, 2))
gc.set_threshold(1)
keep = []
for _ in range(300):
    t = torch.full((1 << 18,), 7.0)
    Finalizer(t)
    x = ah.asarray(t)
    keep.append(x)
    assert x.shape in ((1 << 18,), (2,) * 7), x.shape
    n = ah.as_numpy(x)
    assert (n == (7 if x.ndim == 1 else 0)).all()
    if len(keep) == 100: keep.clear()
""")
