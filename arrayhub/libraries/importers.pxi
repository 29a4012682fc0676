"""Importers that check an object or select a protocol, for libraries without a module of their own."""

import gc
import sys

import numpy as np

cimport numpy as cnp
from cpython.object cimport PyObject

from arrayhub._core.cpython.atomics cimport seen, set_once
from arrayhub._core.descriptor cimport IMMUTABLE, WRITEABLE, Descriptor, make_dims, set_labels
from arrayhub.adapters cimport arrow, buffer, dlpack
from arrayhub.adapters.dlpack_abi cimport DLPackExchangeAPI
from arrayhub.libraries cimport numpy

from arrayhub._core.descriptor import relabel
from arrayhub._core.errors import InterfaceError, Refusal

cdef extern from *:
    Py_ssize_t Py_REFCNT(object obj) noexcept
    object PyObject_Vectorcall(PyObject* function, PyObject** arguments, size_t positional, object keywords)


cdef Descriptor without_strings(object obj, object stream):
    """Reject TensorFlow tensors whose elements are not numbers. Return None for other tensors, so that protocols are tried.

    ``__dlpack__`` of the rejected tensors ends the process (``CHECK(DataTypeCanUseMemcpy)`` in tensorflow 2.21).
    """
    name = obj.dtype.name
    if name == "string":
        call = "arrayhub.asnested(x.numpy().tolist())" if obj.shape.rank else "x.numpy(), which returns its bytes"
        raise Refusal("tensorflow.Tensor", f"dtype is 'string'; accepted: numbers. Call {call}")
    if name == "variant" or name == "resource":
        raise Refusal("tensorflow.Tensor", f"dtype is {name!r}, whose elements are opaque handles; accepted: numbers")
    return None


cdef Descriptor dlpack_first(object obj, object stream):
    """Import an object through DLPack, which describes these objects better than their buffer does.

    Return None if the export through DLPack raises an error. An invalid export raises InterfaceError.
    """
    try:
        return dlpack.parse(obj, stream)
    except InterfaceError:
        raise
    except Exception:
        return None


cdef Descriptor parse_plane(object obj, object stream):
    """Import an ``av.VideoPlane`` through DLPack, whose shape excludes the padding of rows.

    PyAV 18.1 raises for planes that are big-endian, have 32-bit or packed components, a palette or negative line sizes, drops
    the last row and column of some chroma planes of odd size, and describes 16-bit floats as integers. A plane does not have
    a public attribute for its frame, which knows the format.

    Raises
    ------
    TypeError
        DLPack does not describe the picture. The buffer of the plane contains padding, and is not used.
    """
    cdef Descriptor a = None
    why = "PyAV's buffer of it includes padding"
    try:
        a = dlpack.parse(obj, stream)
    except InterfaceError:
        raise
    except Exception as error:
        why = f"PyAV refuses: {error}"
    if a is None or a.nd_ < 2 or a.shape_[0] != obj.height or a.shape_[1] != obj.width:
        from arrayhub.libraries.wrappers import wrapper_error

        raise wrapper_error(obj, f"is not imported as a picture ({why})")
    for frame in gc.get_referents(obj):
        if type(frame).__name__ == "VideoFrame" and "f16" in frame.format.name:
            return (<object> a).view("float16")
    return a


# Modes of Pillow's images whose memory contains the same values as the bytes of their interface dict.
cdef frozenset _SHARED_MODES = frozenset(
    ("L", "P", "LA", "PA", "La", "RGB", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr", "HSV", "I", "F", "I;16", "I;16L", "I;16B",
     "I;16N")
)


cdef Descriptor parse_image(object obj, object stream):
    """View the memory of a ``PIL.Image`` through Arrow, with the shape and type of the image.

    Pillow shares its memory since 11.2. A pixel with more than one band has four bytes. Images with two bands use the first
    and the last byte. Return None for images that only the interface dict describes, whose bytes Pillow copies: images with
    memory in several blocks, memory-mapped files, and other modes. In the memory of mode "1", true is not always 1, and mode
    "LAB" stores signed bands with an offset.
    """
    cdef Descriptor a = None
    try:
        a = arrow.parse(obj, stream)
    except InterfaceError:
        raise
    except Exception:
        return None
    from PIL.ImageMode import getmode

    mode = getmode(obj.mode)
    bands = len(mode.bands)
    if a is None or obj.mode not in _SHARED_MODES:
        return None
    view = (<object> a).reshape((obj.height, obj.width, *a.shape[1:]))
    if bands > 1:
        view = view[..., ::3] if bands == 2 else view[..., :bands]
    if view.dtype.str != mode.typestr:      # 16-bit modes, which Arrow describes as int16
        view = view.view(mode.typestr)
    a = view
    a.flags_ &= ~IMMUTABLE      # Pillow's methods write to this memory
    return a


cdef Descriptor unpacked_buffer(object obj, object stream):
    """Import an object through the buffer protocol.

    Reject packed booleans, because nanoarrow (0.9) exports them with the format of bytes.
    """
    cdef Descriptor a = buffer.parse(obj, stream)
    if a is not None and a.typenum_ == cnp.NPY_UBYTE and obj.data_type == "bool":
        raise TypeError(f"nanoarrow.{type(obj).__name__}: booleans are packed, eight per byte; accepted: one per byte. Use"
                        " numpy.fromiter(x.elements(), bool), which copies")
    return a


cdef Descriptor parse_paddle(object obj, object stream):
    """Import a ``paddle.Tensor`` or a parameter through the exchange table.

    The table is used because ``__dlpack_device__`` returns None as the host's device number (paddle 3.3). Unlike
    ``__dlpack__``, the table exports tensors that require gradients, so these tensors are rejected here. The table and
    ``__dlpack__`` do not support sparse tensors. Return None if paddle does not have a table.

    Raises
    ------
    BufferError
        The tensor requires gradients, or is sparse. The message names ``detach()`` or ``to_dense()``.
    """
    if not obj.is_dense():
        raise Refusal("paddle", "the tensor is sparse; pass x.to_dense(), a dense copy")
    if not obj.stop_gradient:
        raise Refusal("paddle", "the tensor requires gradients, which an array does not track; pass x.detach()")
    cdef DLPackExchangeAPI* api = dlpack.exchange_api(sys.modules["paddle"].Tensor)
    if api == NULL:
        return None
    return dlpack.parse_exchange(obj, api)


cdef Descriptor parse_warp(object obj, object stream):
    """Import a ``warp.array`` through DLPack, or a host array of structs through NumPy.

    DLPack does not have structs, and the ``descr`` in warp's ``__array_interface__`` is not a list (warp 1.19).

    Raises
    ------
    BufferError
        The elements are structs on a device. ``x.numpy()`` copies them.
    """
    if type(obj.dtype).__name__ != "Struct":
        return dlpack.parse(obj, stream)
    cdef Descriptor a = None
    if obj.device.is_cpu:
        a = numpy.parse(obj.numpy(), stream)
    if a is None or a.size and <size_t> a.data_ != <size_t> (obj.ptr or 0):
        raise Refusal(
            "warp", f"{obj.dtype.key} elements on {obj.device} cannot be exported by any protocol; pass x.numpy(), a"
            " copy"
        )
    return a


cdef PyObject* _polars_to_numpy = NULL
cdef tuple _ALLOW_COPY = ("allow_copy",)


cdef Descriptor parse_polars(object obj, object stream):
    """View the numbers of a ``polars.Series``.

    Return None for a Series that NumPy cannot view, such as one with missing values, strings, booleans or several chunks, and
    for times, whose time zone ``to_numpy`` drops. Arrow describes these Series.
    """
    cdef Descriptor a
    cdef object allow_copy = False
    cdef PyObject* arguments[2]
    cdef PyObject* to_numpy = seen(&_polars_to_numpy)
    if to_numpy == NULL:      # without the decorator that checks keywords, which takes as long as the method
        from polars import Series

        to_numpy = set_once(&_polars_to_numpy, NULL, getattr(Series.to_numpy, "__wrapped__", Series.to_numpy))
    arguments[0] = <PyObject*> obj
    arguments[1] = <PyObject*> allow_copy
    try:
        array = PyObject_Vectorcall(to_numpy, arguments, 1, _ALLOW_COPY)
    except Exception:      # polars raises RuntimeError instead of copying
        return None
    if not cnp.PyArray_CheckExact(array) or cnp.PyArray_NDIM(array) != 1 or \
            not (cnp.PyArray_ISINTEGER(array) or cnp.PyArray_ISFLOAT(array)):
        return None
    a = numpy.parse(array, stream)
    if a.flags_ & WRITEABLE:      # an empty Series, whose array polars allocates
        return None
    a.flags_ |= IMMUTABLE
    return a


cdef Descriptor parse_column(object obj, object stream):
    """View the numbers of a Series or an Index of pandas with one of NumPy's types. Import others as the row's `types` says."""
    dtype = obj.dtype
    if isinstance(dtype, np.dtype) and cnp.PyTypeNum_ISNUMBER((<cnp.dtype> dtype).type_num):
        values = obj.to_numpy()      # a view of numbers; faster than x.values (pandas 3)
        if cnp.PyArray_CheckExact(values) and values.dtype is dtype:
            return numpy.parse(values, stream)
    return importers[WRAPPER](obj, stream)


cdef Descriptor parse_xarray(object obj, object stream):
    """Import the array in a DataArray, a Variable or a NamedArray, with its dimension names.

    Each access to a lazily indexed array reads another array, which only this function refers to. The row's `types` refuses
    such an array.
    """
    cdef Descriptor a
    variable = getattr(obj, "variable", obj)      # of a DataArray, whose own attributes take longer
    data = variable.data
    cdef bint wrapped = not cnp.PyArray_CheckExact(data) or Py_REFCNT(data) == 1
    a = (importers[WRAPPER] if wrapped else numpy.parse)(obj if wrapped else data, stream)
    dims = variable.dims
    if type(dims) is not tuple or len(<tuple> dims) != a.nd_ or a.nd_ > 1 and len(set(dims)) != a.nd_:
        return a
    for name in <tuple> dims:
        if type(name) is not str:
            return a
    if wrapped:
        return relabel(a, dims)      # a wrapped USMArray is its own import
    set_labels(a, make_dims(dims))
    return a
