"""numba: an ``@njit`` function takes a USMArray itself, typed as an array, on the same memory.

numba calls `register` through the entry point ``numba_extensions`` when it first compiles something. Without it a
USMArray would be typed as a plain buffer, which has no methods and no array expressions. That is what happens where a
name of numba's is gone: most of those used here are internal, and numba warns of an extension that fails to load.
"""

from numba.core import types
from numba.core.boxing import unbox_array
from numba.core.cgutils import alloca_once, alloca_once_value, if_likely, is_not_null, true_bit
from numba.core.datamodel import register_default
from numba.core.datamodel.models import ArrayModel
from numba.core.errors import NumbaNotImplementedError
from numba.core.pythonapi import PythonAPI
from numba.extending import NativeValue, lower_cast, typeof_impl, unbox
from numba.np import numpy_support

from arrayhub._core.descriptor import Descriptor
from arrayhub.libraries.numpy import ndarray
from arrayhub.runtimes.host import is_host_readable

# What is only looked up while numba compiles, when an error would be the user's.
_LATER = (
    (PythonAPI, "call_function_objargs", "decref", "serialize_object", "unserialize"),
    (numpy_support, "from_dtype"),
    (typeof_impl, "dispatch", "register"),
)


class USMArrayType(types.Array):
    """numba's array type with another way in; views, slices and results of it are numba's plain arrays."""


register_default(USMArrayType)(ArrayModel)


def typeof_usm_array(array, context):
    """Return the numba type of `array`.

    Raises
    ------
    TypeError
        The host cannot read the memory, or numba has no element type for it.
    """
    if not is_host_readable(array):
        if array.device.type == "cuda":
            return typeof_impl.dispatch(object)(array, context)
        raise TypeError(f"numba: the memory is on {array.device}; call arrayhub.to_host(x), which copies")
    flags = array.flags
    return USMArrayType(
        dtype=element_type(array),
        ndim=array.ndim,
        layout="C" if flags.c_contiguous else "F" if flags.f_contiguous else "A",
        readonly=not flags.writeable,
        aligned=flags.aligned,
    )


def element_type(array):
    """Return numba's type of the elements. Foreign byte order is refused, because numba would read it as native."""
    try:
        if not array.dtype.isnative:
            raise TypeError("numba: foreign byte order; convert it with numpy's astype first")
        return numpy_support.from_dtype(array.dtype)
    except NumbaNotImplementedError as error:
        raise TypeError(f"numba: it has no element type for {array.dtype!r}; convert the array first") from error


def unbox_usm_array(numba_type, obj, context):
    """Emit the code that turns a USMArray into numba's native array: by `ndarray`, which waits for a SYCL queue too."""
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
        api.decref(array)  # the native array holds it, and it holds the USMArray
    return NativeValue(builder.load(native), is_error=builder.load(failed))


def as_plain_array(context, builder, numba_type, array_type, value):
    """Emit nothing: where a USMArray meets numba's plain arrays, it is one of them; their structs are the same."""
    return value


def register():
    """Tell numba about USMArray; called by numba itself.

    Raises
    ------
    ImportError
        A name of numba's is gone; numba shows it as a warning.
    """
    for owner, *names in _LATER:
        for name in names:
            if not hasattr(owner, name):
                raise ImportError(
                    f"numba: {getattr(owner, '__name__', owner)} has no {name}, by which arrays are taken"
                )
    typeof_impl.register(Descriptor)(typeof_usm_array)
    unbox(USMArrayType)(unbox_usm_array)
    lower_cast(USMArrayType, types.Array)(as_plain_array)
