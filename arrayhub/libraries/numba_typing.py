"""numba: typing of USMArray. An ``@njit`` function receives a USMArray as a Numba array that shares its memory.

numba calls `register` through the entry point ``numba_extensions`` when it first compiles a function. Without this
call, numba types a USMArray as a plain buffer, which does not support methods and array expressions. Most of the names
used here are internal to numba. If one is missing, numba warns that the extension failed to load, and uses the plain
buffer.
"""

from numba.core import types
from numba.core.boxing import unbox_array
from numba.core.cgutils import alloca_once, alloca_once_value, if_likely, is_not_null, true_bit
from numba.core.datamodel import register_default
from numba.core.datamodel.models import ArrayModel
from numba.core.errors import NumbaNotImplementedError
from numba.core.imputils import lower_constant
from numba.core.pythonapi import PythonAPI
from numba.extending import NativeValue, lower_cast, typeof_impl, unbox
from numba.np import numpy_support

from arrayhub._core.descriptor import Descriptor, is_host_readable
from arrayhub._core.errors import unreadable
from arrayhub.libraries.numpy import ndarray

# Names used only during compilation. If one is missing, this module fails to load, rather than the user's function.
_LATER = (
    PythonAPI.call_function_objargs,
    PythonAPI.decref,
    PythonAPI.serialize_object,
    PythonAPI.unserialize,
    numpy_support.from_dtype,
    typeof_impl.dispatch,
)


class USMArrayType(types.Array):
    """numba's array type with its own unboxing. Views, slices and results are plain Numba arrays."""


register_default(USMArrayType)(ArrayModel)


def typeof_usm_array(array, context):
    """Return the numba type of `array`. CUDA memory that the host cannot read gets numba's default type.

    Raises
    ------
    TypeError, ValueError
        The memory is neither CUDA memory nor readable by the host, numba does not have the element type, or the array
        is a constant of the compiled function.
    """
    if context.purpose.name == "constant":
        refuse_constant()
    if not is_host_readable(array):
        if array.device.type == "cuda":
            return typeof_impl.dispatch(object)(array, context)
        raise TypeError(unreadable("numba", array.device, "numba"))
    flags = array.flags
    return USMArrayType(
        dtype=element_type(array),
        ndim=array.ndim,
        layout="C" if flags.c_contiguous else "F" if flags.f_contiguous else "A",
        readonly=not flags.writeable,
        aligned=flags.aligned,
    )


@lower_constant(USMArrayType)
def refuse_constant(*_):
    """Reject a global USMArray, or a default of an argument. numba would read its strides, in elements, as bytes."""
    raise ValueError("numba: a global or default is a USMArray; pass it as an argument, or use arrayhub.as_numba(x)")


def element_type(array):
    """Return numba's type of the elements. Reject non-native byte order, which numba would read as native."""
    try:
        if not array.dtype.isnative:
            raise TypeError("numba: elements are byte-swapped; call arrayhub.asarray(x).native() first")
        return numpy_support.from_dtype(array.dtype)
    except NumbaNotImplementedError as error:
        raise TypeError(
            f"numba: {array.dtype!r} is not supported; convert the array to a supported dtype first"
        ) from error


def unbox_usm_array(numba_type, obj, context):
    """Generate code that unboxes a USMArray through `ndarray`, which also waits for a SYCL queue."""
    api, builder = context.pyapi, context.builder
    native = alloca_once(builder, context.context.get_value_type(numba_type))
    failed = alloca_once_value(builder, true_bit)
    function = api.unserialize(api.serialize_object(ndarray))
    array = api.call_function_objargs(function, (obj,))
    api.decref(function)
    with if_likely(builder, is_not_null(builder, array)):
        unboxed = unbox_array(numba_type, array, context)
        builder.store(unboxed.value, native)
        builder.store(unboxed.is_error, failed)
        api.decref(array)  # the native array keeps the ndarray alive, which keeps the USMArray alive
    return NativeValue(builder.load(native), is_error=builder.load(failed))


def as_plain_array(context, builder, numba_type, array_type, value):
    """Cast a USMArray to numba's plain array type. The structs are the same, so no code is generated."""
    return value


def register():
    """Register USMArray with numba, which calls this function."""
    typeof_impl.register(Descriptor)(typeof_usm_array)
    unbox(USMArrayType)(unbox_usm_array)
    lower_cast(USMArrayType, types.Array)(as_plain_array)
