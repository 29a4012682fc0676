"""Test estimators of scikit-learn-intelex with arrays in SYCL USM.

scikit-learn-intelex (2026.2) calls ``__array_namespace__().asnumpy`` of each array that has
``__sycl_usm_array_interface__``. `USMArray` does not implement ``__array_namespace__``, so the estimators reject it.
They accept the dpnp array that `as_dpnp` creates over the same memory.
"""

import numpy as np
import pytest

import arrayhub as ah

pytestmark = pytest.mark.slow

cluster = pytest.importorskip("sklearnex.cluster")
linear_model = pytest.importorskip("sklearnex.linear_model")
pytest.importorskip("dpnp")


@pytest.fixture(params=["usm_device", "usm_shared"])
def in_usm(request):
    """Return a function that copies values into new USM memory of the requested type."""
    dpctl = pytest.importorskip("dpctl")
    if not dpctl.get_num_devices():
        pytest.skip("no SYCL device")

    def copied(values):
        x = ah.empty(values.shape, values.dtype, memory=request.param)
        if request.param == "usm_device":
            return ah.to_device(values, str(x.device))
        ah.as_numpy(x)[...] = values
        return x

    return copied


VALUES = np.random.default_rng(0).random((200, 4))


def test_linear_regression_accepts_dpnp_views(in_usm):
    x, y = in_usm(VALUES), in_usm(VALUES @ np.arange(1.0, 5.0))
    view = ah.as_dpnp(x)
    assert ah.asarray(view).ptr == x.ptr
    model = linear_model.LinearRegression().fit(view, ah.as_dpnp(y))
    assert np.allclose(ah.as_numpy(model.coef_), [1, 2, 3, 4])
    assert np.allclose(ah.as_numpy(model.predict(view)), VALUES @ np.arange(1.0, 5.0))


def test_k_means_accepts_dpnp_views(in_usm):
    x = ah.as_dpnp(in_usm(VALUES))
    expected = cluster.KMeans(3, random_state=0, n_init=1).fit(VALUES)
    model = cluster.KMeans(3, random_state=0, n_init=1).fit(x)
    assert np.allclose(ah.as_numpy(model.cluster_centers_), expected.cluster_centers_)
    assert np.array_equal(ah.as_numpy(model.labels_), expected.labels_)


def test_estimators_reject_usm_arrays(in_usm):
    """Estimators call ``__array_namespace__``, which `USMArray` does not have."""
    x = in_usm(VALUES)
    assert not hasattr(x, "__array_namespace__")
    with pytest.raises(AttributeError, match="__array_namespace__"):
        cluster.KMeans(3).fit(x)
