"""Test `placement`, which selects the library and device for a function of several arrays."""

import numpy as np
import pytest
from dlpack_by_hand import Handmade

import arrayhub as ah


def test_other_libraries_take_precedence_over_numpy_and_lists():
    torch = pytest.importorskip("torch")
    t, x = torch.ones(2), np.ones(2)
    assert ah.placement(x, x, x) == ah.placement(x)
    assert ah.placement(x, t).library == "torch"
    assert ah.placement([1, 2], 3.0).library == "numpy"
    assert ah.placement([1, 2], x, t, None).library == "torch"
    assert ah.placement().library == "numpy"


def test_first_of_two_libraries_takes_precedence():
    t, j = pytest.importorskip("torch").ones(2), pytest.importorskip("jax.numpy").ones(2)
    assert (ah.placement(t, j).library, ah.placement(j, t).library) == ("torch", "jax")


def test_device_memory_takes_precedence():
    dpnp = pytest.importorskip("dpnp")
    torch = pytest.importorskip("torch")
    d = dpnp.ones(2)
    p = ah.placement(torch.ones(2), d)
    assert (p.library, str(p.device)) == ("dpnp", "oneapi:0")
    assert p.stream == d.sycl_queue
    assert isinstance(p.convert([1.0, 2.0], copy=None), dpnp.ndarray)
    assert p.asarray([1.0], copy=None).device.type == "oneapi"
    with pytest.raises(BufferError, match="placement: the memory is on cpu"):
        p.convert(np.ones(2), copy=False)


def test_stream_is_the_queue_of_the_selected_array():
    dpnp = pytest.importorskip("dpnp")
    pytest.importorskip("torch")
    d = dpnp.ones(2)
    assert ah.placement(np.ones(2), ah.asarray(d)).stream == d.sycl_queue
    assert ah.placement(np.ones(2)).stream is None
    assert ah.placement(d, prefer="torch").stream == d.sycl_queue
    assert ah.placement(d, prefer="oneapi:0").stream is None


def test_prefer_takes_precedence():
    torch = pytest.importorskip("torch")
    x = np.ones(2)
    assert ah.placement(x, prefer="pytorch").library == "torch"
    assert ah.placement(x, prefer=torch.ones(1)).library == "torch"
    p = ah.placement(x, prefer="cuda:1")
    assert (p.library, str(p.device)) == ("arrayhub", "cuda:1")
    assert ah.placement(x, prefer="torch").convert(x).data_ptr() == x.ctypes.data
    with pytest.raises(ValueError, match=r"placement: prefer is 'pytroch' \(did you mean 'torch'\?\)"):
        ah.placement(x, prefer="pytroch")
    with pytest.raises(ValueError, match=r"placement: prefer is '.*convert: to is'"):
        ah.placement(x, prefer="convert: to is")


def test_error_for_conflicting_devices_names_both_arguments():
    first, second = [ah.from_dlpack(Handmade(device=(2, k), announced=(2, k))) for k in (0, 1)]
    with pytest.raises(ValueError, match="argument 1 is on cuda:0, and argument 3 on cuda:1; accepted: one device"):
        ah.placement(first, np.ones(1), second)
    assert str(ah.placement(first, second, prefer=second).device) == "cuda:1"


def test_placements_are_hashable():
    a, b = ah.placement(np.ones(1)), ah.placement([1])
    assert a == b
    assert len({a, b}) == 1
    assert a != 3
    assert repr(a) == "Placement(library='numpy', device='cpu')"


def test_objects_that_are_not_arrays_raise():
    with pytest.raises(TypeError, match="placement: the argument .* is of type object"):
        ah.placement(object())


@pytest.mark.parametrize("dtype", [None, "f4", "f8", "model"])
@pytest.mark.parametrize("copy", [None, True])
def test_capsule_is_read_once(copy, dtype):
    x = ah.placement(np.ones(2, "f4")).asarray(np.arange(3.0).__dlpack__(), copy=copy, dtype=dtype)
    assert x.tolist() == [0, 1, 2] and x.dtype == {None: "f8", "model": "f4"}.get(dtype, dtype)


@pytest.mark.parametrize(
    ("library", "make", "keywords"),
    [
        ("torch", lambda torch: torch.ones(3).untyped_storage(), {}),
        ("torch", lambda torch: pytest.importorskip("scipy.sparse").csr_array(np.eye(3)), {"missing": 0}),
        ("torch", lambda torch: ah.ones(3, memory="usm_device"), {}),
        ("dpnp", lambda dpnp: np.ones(3), {}),
        ("pyarrow", lambda pyarrow: pytest.importorskip("scipy.sparse").csr_array(np.eye(3)), {}),
    ],
)
def test_like_and_placement_refuse_what_convert_refuses(library, make, keywords):
    library = pytest.importorskip(library)
    ah.sycl_runtime.configure()
    x, model, calls = make(library), ah.convert([1.5], library), set()
    for function in (ah.convert, ah.like, lambda x, model, **keywords: ah.placement(model).convert(x, **keywords)):
        with pytest.raises(ah.Refusal) as raised:
            function(x, library if function is ah.convert else model, copy=False, **keywords)
        calls.add(raised.value.call)
    (call,) = calls
    made = eval(call, {"arrayhub": ah, "x": x, library.__name__: library}) if call else [0] * 3
    assert len(made) in (3, 12)  # a storage has bytes


def test_missing_values_are_replaced_before_a_series_is_moved():
    dpnp, pandas = pytest.importorskip("dpnp"), pytest.importorskip("pandas")
    ah.sycl_runtime.configure()
    for copy in (None, True):
        made = ah.like(pandas.Series([1.0, np.nan]), dpnp.zeros(1), missing=0, copy=copy)
        assert type(made) is dpnp.ndarray and made.tolist() == [1, 0]
