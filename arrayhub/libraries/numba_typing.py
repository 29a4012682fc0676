"""numba: an ``@njit`` function takes a USMArray itself, typed as an array, on the same memory.

numba calls `register` through the entry point ``numba_extensions`` when it first compiles something. Without it a
USMArray would be typed as a plain buffer, which has no methods and no array expressions.
"""

from numba.core import cgutils, types
from numba.core.boxing import unbox_array
from numba.core.datamodel import models, register_default
from numba.core.errors import NumbaNotImplementedError
from numba.extending import NativeValue, typeof_impl, unbox
from numba.np import numpy_support

from arrayhub._core.descriptor import Descriptor
from arrayhub.libraries.numpy import ndarray
from arrayhub.runtimes.host import is_host_readable


class USMArrayType(types.Array):
    """numba's array type with another way in; views, slices and results of it are numba's plain arrays."""


register_default(USMArrayType)(models.ArrayModel)


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
    native = cgutils.alloca_once(builder, context.context.get_value_type(numba_type))
    failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
    function = api.unserialize(api.serialize_object(ndarray))
    array = api.call_function_objargs(function, (obj,))
    api.decref(function)
    with cgutils.if_likely(builder, cgutils.is_not_null(builder, array)):
        unboxed = unbox_array(numba_type, array, context)
        builder.store(unboxed.value, native)
        builder.store(unboxed.is_error, failed)
        api.decref(array)  # the native array holds it, and it holds the USMArray
    return NativeValue(builder.load(native), is_error=builder.load(failed))


def register():
    """Tell numba about USMArray; called by numba itself."""
    typeof_impl.register(Descriptor)(typeof_usm_array)
    unbox(USMArrayType)(unbox_usm_array)
