"""Compare the creation of arrays with GT4Py, which also pads and aligns them, and with NumPy, which does not."""

from .rows import Row, measured

ALIGNED = 'empty((10, 12, 20), "f8", backend="gt:cpu_ifirst", alignment=64, halo=(1, 1, 0))'
IN_GT4PY = 'gt4py.storage.{}((10, 12, 20), "f8", backend="gt:cpu_ifirst", aligned_index=(1, 1, 0))'

ROWS = (
    Row(ALIGNED, f"arrayhub.{ALIGNED}", IN_GT4PY.format("empty"), 1 / 15, ("gt4py",)),
    Row(
        "the same call with halo=[1, 1, 0]",
        f"arrayhub.{ALIGNED.replace('halo=(1, 1, 0)', 'halo=[1, 1, 0]')}",
        IN_GT4PY.format("empty"),
        None,
        ("gt4py",),
    ),
    Row(
        "zeros with the same arguments",
        f"arrayhub.{ALIGNED.replace('empty', 'zeros')}",
        IN_GT4PY.format("zeros"),
        None,
        ("gt4py",),
    ),
    Row("empty((10, 12, 20))", "arrayhub.empty((10, 12, 20))", "np.empty((10, 12, 20))", None),
    Row("zeros((10, 12, 20))", "arrayhub.zeros((10, 12, 20))", "np.zeros((10, 12, 20))", None),
    Row("ones((10, 12, 20))", "arrayhub.ones((10, 12, 20))", "np.ones((10, 12, 20))", None),
)


def storage(options):
    yield from measured("storage", ROWS, options)
