"""Objects whose ``__class__`` is false or raises are treated like other objects of their real type."""

import sys

import numpy as np
import pytest

import arrayhub as ah

pytestmark = pytest.mark.slow

VALUES = np.arange(3)


class ClassError(Exception):
    pass


def producer(kind, false_class=None):
    """Return an object of a new type, with the protocol `kind` and a false ``__class__``."""

    def dlpack(self, **options):
        return VALUES.__dlpack__(max_version=(1, 0), copy=True)

    members = {
        "nothing": {},
        "array interface": {"__array_interface__": property(lambda self: VALUES.__array_interface__)},
        "DLPack copy": {"__dlpack__": dlpack, "__dlpack_device__": lambda self: (1, 0)},
        "conversion method": {"__array__": lambda self, dtype=None, copy=None: VALUES},
    }[kind]

    def raising(self):
        raise ClassError

    if false_class is ClassError:
        members["__class__"] = property(raising)
    elif false_class is not None:
        members["__class__"] = property(lambda self: false_class)
    return type("Producer", (), members)()


def assigned(dtype, value):
    x = ah.zeros(3, dtype)
    x[:] = value
    return x


CALLS = {
    "asarray": ah.asarray,
    "asarray with dtype": lambda x: ah.asarray(x, dtype="f4"),
    "asarray with a unit": lambda x: ah.asarray(x, dtype="M8[s]"),
    "asarray with copy=True": lambda x: ah.asarray(x, copy=True),
    "asarray with copy=False": lambda x: ah.asarray(x, copy=False),
    "asarray with dtype and copy=True": lambda x: ah.asarray(x, dtype="f4", copy=True),
    "asarray of a list": lambda x: ah.asarray([x, x]),
    "as_numpy": ah.as_numpy,
    "as_numpy with missing": lambda x: ah.as_numpy(x, missing=0),
    "convert": lambda x: ah.convert(x, "numpy", copy=True),
    "like": lambda x: ah.like(x, np.zeros(1)),
    "like with a dtype": lambda x: ah.like(x, np.zeros(1, "f4"), dtype="model"),
    "asnested": ah.asnested,
    "asnested with copy=True": lambda x: ah.asnested(x, copy=True),
    "from_array": ah.from_array,
    "from_array with dtype": lambda x: ah.from_array(x, dtype="f4"),
    "assignment": lambda x: assigned("f8", x),
    "assignment to bytes": lambda x: assigned("S3", x),
    "assignment of a list": lambda x: assigned("f8", [x]),
    "placement": ah.placement,
    "check": ah.check,
    "debug_repr": lambda x: type(ah.debug_repr(x)),
    "datashape": ah.datashape.of,
}


def outcome(call, obj):
    try:
        result = call(obj)
    except (TypeError, ValueError, BufferError) as error:
        return type(error)
    if isinstance(result, (ah.USMArray, ah.NestedArray, np.ndarray)):
        return type(result), str(getattr(result, "dtype", "")), ah.as_numpy(result).tolist()
    return str(result)


def false_classes():
    """Return types that the package treats specially, including types of the loaded libraries."""
    own = [list, tuple, int, float, str, bytes, range, dict, np.ndarray, np.float64, np.ma.MaskedArray]
    names = ["torch.Tensor", "pandas.Index", "pandas.DataFrame", "awkward.Array", "pyarrow.Scalar", "xarray.DataArray"]
    pairs = [name.split(".") for name in names]
    others = [getattr(sys.modules[root], name) for root, name in pairs if root in sys.modules]
    return [*own, ah.USMArray, ah.NestedArray, *others]


@pytest.mark.parametrize("kind", ["nothing", "array interface", "DLPack copy", "conversion method"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_use_the_real_type(kind, name):
    expected = outcome(CALLS[name], producer(kind))
    for cls in false_classes():
        assert outcome(CALLS[name], producer(kind, cls)) == expected, cls


@pytest.mark.parametrize("name", [name for name in CALLS if not name.endswith("a list")])
def test_calls_do_not_read_the_class_attribute(name):
    expected = outcome(CALLS[name], producer("array interface"))
    assert outcome(CALLS[name], producer("array interface", ClassError)) == expected
