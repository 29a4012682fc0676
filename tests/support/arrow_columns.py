"""Arrow producers of one column whose schema has a name, nullability and metadata, unlike ``pyarrow.Array``."""

import ctypes

import pyarrow as pa
from arrow_by_hand import Array, Schema, Streamed


class Column:
    """A producer that exports the values of a ``pyarrow.Array`` with the schema of a ``pyarrow.Field``."""

    def __init__(self, field, array):
        self.field, self.array = field, array

    def __arrow_c_schema__(self):
        return self.field.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema=None):
        return self.field.__arrow_c_schema__(), self.array.__arrow_c_array__()[1]


class DeviceColumn:
    """A producer that exports an array only through Arrow's device interface."""

    def __init__(self, field, array):
        self.field, self.array = field, array

    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        return self.field.__arrow_c_schema__(), self.array.__arrow_c_device_array__()[1]


class _Structs:
    """Arrow structs of a field and of an array, which the consumer releases."""

    def __init__(self, field, array):
        self.schema, self.array = Schema(), Array()
        field._export_to_c(ctypes.addressof(self.schema))
        if array is not None:
            array._export_to_c(ctypes.addressof(self.array))


def streamed(field, arrays):
    """Return a producer that exports zero or more arrays as a stream. The stream can be read only once."""
    stream = Streamed(*[_Structs(field, array) for array in arrays or [None]])
    if not arrays:
        stream.left.clear()
    return stream


def field_of(x):
    """Import the schema of an Arrow producer as a ``pyarrow.Field``."""
    return pa.Field._import_from_c_capsule(x.__arrow_c_schema__())
