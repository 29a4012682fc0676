"""The class `USMArray`: the descriptor plus the attributes of all protocols. Each attribute calls its adapter.

- construction: `USMArray(...)` over new or given memory
- flags: the attribute `flags`
- ndarray_methods: methods of `numpy.ndarray`: `astype`, `ravel`, `view`
- scalars: single elements: `item`, `tolist`, iteration, conversion to Python numbers
- unsupported_ops: `==`, and names of `numpy.ndarray` that arrays lack: errors that name the call to make instead
"""

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE
from cpython.long cimport PyLong_FromSsize_t
from cpython.object cimport Py_EQ, Py_NE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from arrayhub._core cimport tracing
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    COPIED,
    IMMUTABLE,
    UNRESOLVED_ID,
    WRITEABLE,
    Descriptor,
    MemoryBlock,
    block_of,
    get_dtype,
    host_readable,
    index,
    kDLOneAPI,
    labels_of,
    make_device,
    name_of_elements,
    register_class,
    same_layout,
    size_of,
    transpose,
)
from arrayhub._core.dtypes cimport bits_of
from arrayhub._core.runtime cimport device_of
from arrayhub.adapters cimport arrow, dlpack, interface_dict
from arrayhub.adapters cimport buffer as buffer_adapter
from arrayhub.libraries.known cimport check_torch, is_awkward_calling, refuse_plain_bytes
from arrayhub.libraries cimport numpy as numpy_library
from arrayhub.runtimes cimport sycl

from arrayhub import transfer
from arrayhub._core.copying import wanted
from arrayhub._core.descriptor import PROTOCOL_NAMES, USM_NAMES, relabelled
from arrayhub._core.errors import show
from arrayhub._core.hooks import hooks
from arrayhub._core.strides import Strides
from arrayhub._core.tracing import copied as tell_copy
from arrayhub._core.tracing import started
from arrayhub.transfer.host_copies import footprint_bytes, gathered, row_boundary

include "construction.pxi"
include "flags.pxi"
include "ndarray_methods.pxi"
include "scalars.pxi"
include "unsupported_ops.pxi"

cdef extern from *:
    """
    /* Allocate an instance of a subclass of tuple, as tuple.__new__ does after it has copied its argument to a tuple. */
    static PyObject *arrayhub_new_strides(PyTypeObject *cls, Py_ssize_t nd) {
        PyObject *steps = cls->tp_alloc(cls, nd);
    #if PY_VERSION_HEX >= 0x030E0000
        if (steps != NULL) ((PyTupleObject *)steps)->ob_hash = -1; /* not computed yet */
    #endif
        return steps;
    }
    """
    object new_strides "arrayhub_new_strides"(type cls, Py_ssize_t nd)

cdef tuple HOST_PAIR = (1, 0)      # DLPack's kDLCPU


# Methods of builtin classes check the class of `self`, which those with a binding do not.
@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.final
cdef class USMArray(Descriptor):
    """USMArray(shape, dtype="|f8", buffer="device", strides=None, offset=0, order="C", buffer_ctor_kwargs={})
--

    Array descriptor that every array protocol understands.

    ``arrayhub.asarray`` makes one from any foreign array. The constructor, whose arguments follow the USM array
    specification, makes one over new or given memory. Attributes cannot be set. `USMArray` does not implement
    arithmetic: convert it first, for example with ``arrayhub.as_numpy(x)``.

    Parameters
    ----------
    shape : int or tuple of int
        Lengths of the dimensions, in elements.
    dtype : str or numpy.dtype, optional
        Element type, ``"|f8"`` by default.
    buffer : str or object, optional
        ``"device"``, ``"shared"``, ``"host"``: new USM memory of this kind; the names used by `empty`, ``"usm_device"``
        and so on, are synonyms. ``"cpu"``: new host memory without SYCL.
        Or existing memory: a ``dpctl.memory.MemoryUSM*``, a USMArray (its whole memory block; read-only stays
        read-only), or any object with a writable buffer.
    strides : tuple of int, optional
        Steps in elements; by default compact in `order`.
    offset : int, optional
        Elements from the start of the memory to element zero. For new memory and negative strides, 0 is replaced by
        the smallest valid offset.
    order : {"C", "F"}, optional
        Order of compact strides if `strides` is None.
    buffer_ctor_kwargs : dict, optional
        Further arguments for ``dpctl.memory.MemoryUSM*``: ``queue``, ``alignment`` (bytes), ``copy``.

    Raises
    ------
    ValueError
        An element would be outside the memory, strides and shape differ in length, or the kind is unknown.
    ImportError
        USM memory is requested and dpctl is not installed; the message names the extra.
    MemoryError
        The memory cannot be allocated, or not with this ``alignment``.

    Examples
    --------
    >>> x = arrayhub.USMArray((2, 2), dtype="f4", buffer="cpu")
    >>> arrayhub.as_numpy(x)[:] = 1
    >>> x.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    # `inspect.getmodule` looks this up on the instance, and searches the files of all modules if it is missing. That takes
    # half a second, in which a dask worker does not respond.
    __module__ = "arrayhub.array.usm_array"

    __dlpack_c_exchange_api__ = dlpack.exchange_capsule()

    # Not `__init__`: an object without memory would be possible, and code would have to expect it.
    def __cinit__(self, shape, dtype="|f8", buffer="device", strides=None, offset=0, order="C",
                  buffer_ctor_kwargs=dict()):
        fill_new(self, shape, dtype, buffer, strides, offset, order, buffer_ctor_kwargs)

    # ---------------------------------------------------------------------------------------------- what it is

    @property
    def shape(self):
        """tuple of int : length of each dimension, in elements."""
        return integers(self.nd_, self.shape_)

    @property
    def strides(self):
        """tuple of int : step of each dimension, in elements; `byte_strides` are what NumPy calls strides.

        NumPy does not accept this tuple as strides, because it would take the steps for bytes. Raises ValueError if a byte
        stride is not a multiple of the item size (a field of a packed record).
        """
        if self.strides_ == NULL and self.nd_ > 0:
            raise ValueError(
                f"strides: byte strides {self.byte_strides} are not multiples of the item size {self.itemsize_}; use"
                " byte_strides"
            )
        return step_tuple(self.nd_, self.strides_)

    @property
    def byte_strides(self):
        """tuple of int : step of each dimension, in bytes.

        Raises ValueError if elements of less than a byte are packed.
        """
        if self.byte_strides_ == NULL and self.nd_ > 0:
            raise ValueError("byte_strides: elements of less than a byte are packed; use strides")
        return integers(self.nd_, self.byte_strides_)

    @property
    def offset(self):
        """int : elements from the start of the memory block to element zero.

        Raises ValueError if that is not a whole number of elements.
        """
        cdef Py_ssize_t distance = self.data_ - block_of(self).address_
        if self.itemsize_ == 0 or distance == 0:
            return 0
        if distance % self.itemsize_ != 0:
            raise ValueError(
                f"offset: element zero is {distance} bytes into its memory block, which is not a multiple of the item size"
                f" {self.itemsize_}; use ptr and memory.address"
            )
        return distance // self.itemsize_

    @property
    def ndim(self):
        """int : number of dimensions."""
        return self.nd_

    @property
    def size(self):
        """int : number of elements."""
        return size_of(self)

    @property
    def itemsize(self):
        """int : size of one element, in bytes."""
        return self.itemsize_

    @property
    def nbytes(self):
        """int : size times itemsize, in bytes; packed elements of less than a byte are counted in bits, rounded up."""
        if self.byte_strides_ == NULL and bits_of(self.dl_dtype_) < 8:
            return (size_of(self) * bits_of(self.dl_dtype_) + 7) // 8
        return size_of(self) * self.itemsize_

    @property
    def dtype(self):
        """numpy.dtype : the element type, from ml_dtypes if NumPy does not have it.

        Raises TypeError if neither has the type. All other attributes of the array still work.
        """
        return get_dtype(self)

    @property
    def typenum(self):
        """int : NumPy's type number, or arrayhub's (4096 and up) for types that NumPy does not have."""
        return self.typenum_

    @property
    def ptr(self):
        """int : address of element zero."""
        return <size_t> self.data_

    @property
    def device(self):
        """Device : device that holds the memory."""
        return make_device(device_of(self))

    @property
    def usm_type(self):
        """str or None : 'host', 'shared' or 'device' for SYCL USM, None for all other memory."""
        return USM_NAMES[self.usm_type_]

    @property
    def base(self):
        """object : owner of the memory: for USM a ``dpctl.memory.MemoryUSM*``, or the memory block if it owns the bytes."""
        if self.usm_type_:
            return sycl.base_of(self)
        return block_of(self) if self.base_ is None else self.base_

    @property
    def memory(self):
        """MemoryBlock : owner, address, device and size of the bytes; shared by all views."""
        cdef MemoryBlock block = block_of(self)
        if block.device_.device_id == UNRESOLVED_ID:      # looked up on demand
            settle_device(self, block)
        return block

    @property
    def flags(self):
        """Flags : c_contiguous, f_contiguous, aligned, writeable, and NumPy's other flags, also by key."""
        return flags_of(self)

    @property
    def access(self):
        """str : 'readwrite', 'readonly' (others may still write) or 'immutable' (the memory never changes)."""
        if self.flags_ & WRITEABLE:
            return "readwrite"
        return "immutable" if self.flags_ & IMMUTABLE else "readonly"

    @property
    def is_copy(self):
        """bool : whether the memory is a copy, so that writes do not reach the object that it was made from.

        True for lists, numbers and scalars, for the results of ``copy=True``, ``copy()``, type conversions and copies
        between devices. DLPack reports copies that a producer made. An ``__array_interface__`` whose bytes have no other
        owner, such as that of a PIL image, is a copy too. Views of a copy are copies, and so is the result of passing a
        copy to ``asarray``.
        """
        return bool(self.flags_ & COPIED)

    @property
    def protocol(self):
        """str : protocol through which the memory was imported, as in ``asarray(via=)``, or 'constructed'."""
        return PROTOCOL_NAMES[self.protocol_]

    @property
    def picture(self):
        """Picture : layout of the elements in the memory block; ``text()`` and ``svg()`` draw it without reading them."""
        return hooks.picture_of(self)

    def _repr_html_(self):
        return hooks.page_of(self)

    # ------------------------------------------------------------------------------------------------ labels

    @property
    def dims(self):
        """tuple of str or None : names of the dimensions. Views keep them; reshape and a new axis drop them."""
        return getattr(labels_of(self), "dims", None)

    @property
    def origin(self):
        """tuple of int or None : index where a stencil's domain starts; may be outside of a view.

        Views keep it on the same element of their dimensions; reshape and steps other than 1 drop it.
        """
        return getattr(labels_of(self), "origin", None)

    @property
    def halo(self):
        """tuple of (int, int) or None : lower and upper width of the margin around the domain, in elements.

        A slice keeps the part that it contains; reshape and steps other than 1 drop it.
        """
        return getattr(labels_of(self), "halo", None)

    @property
    def aligned_index(self):
        """tuple of int or None : index to which the memory is aligned; may be outside of a view.

        Every element with this index along the fastest-varying dimension is aligned to the requested boundary. Reshape,
        copies and steps other than 1 drop it, and so does any other integer index in this dimension.
        """
        return getattr(labels_of(self), "aligned_index", None)

    def __repr__(self):
        try:
            dtype = get_dtype(self).__repr__().removeprefix("dtype(").removesuffix(")")
        except TypeError:
            dtype = repr(name_of_elements(self))     # NumPy does not have the type
        dims = getattr(labels_of(self), "dims", None)
        named = "" if dims is None else f"dims={dims}, "
        steps = "" if self.flags_ & C_CONTIGUOUS or self.byte_strides_ == NULL else f", byte_strides={self.byte_strides}"
        halo = "" if self.halo is None else f", halo={self.halo}"
        return (
            f"USMArray(shape={self.shape}, {named}dtype={dtype}, device='{self.device}', access='{self.access}'{steps}{halo})"
        )

    def __dir__(self):
        return names(self)

    # ------------------------------------------------------------------------------------- pickle, copy and dask

    def __reduce_ex__(self, protocol):
        """Reduce for pickle: the bytes of the elements, out of band from protocol 5 on. See ``arrayhub.pickling``."""
        return hooks.reduce(self, protocol)

    def __reduce__(self):
        return hooks.reduce(self, 0)

    def __copy__(self):
        """Return a view, for ``copy.copy``."""
        return same_layout(self)

    def __deepcopy__(self, memo):
        """Return a copy in memory of the same kind, with the same layout and access, for ``copy.deepcopy``."""
        boundary = row_boundary(self)
        return hooks.padded_copy(self, boundary) if boundary else gathered(self, transfer.copy)

    def __sizeof__(self):
        """Return the size in bytes, elements included. dask and others use it to decide what to move and spill."""
        return object.__sizeof__(self) + footprint_bytes(self)

    def __dask_tokenize__(self):
        """Return a token for dask: equal for equal elements, in every process."""
        return hooks.token(self)

    # ----------------------------------------------------------------------------------------------- elements

    def __len__(self):
        if self.nd_ == 0:
            raise TypeError(
                "len() of an array without dimensions; x.item() is its value. Functions that index an array element by element"
                " should receive arrayhub.as_numpy(x)"
            )
        return self.shape_[0]

    def __iter__(self):
        """Iterate over the first dimension: NumPy scalars of a one-dimensional array, else views."""
        return iterator(self)

    def __reversed__(self):
        """Iterate over the first dimension in reverse."""
        return iterator(self[::-1] if self.nd_ else self)

    def __contains__(self, value):
        raise TypeError("in: a USMArray does not compare elements; use NumPy, as in value in arrayhub.as_numpy(x)")

    def __eq__(self, other):
        return compared(self, other, Py_EQ, NO_COMPARISON)

    def __ne__(self, other):
        return compared(self, other, Py_NE, NO_COMPARISON)

    __hash__ = None     # the elements can change

    def __bool__(self):
        """Return the truth value of the only element, as in NumPy."""
        if size_of(self) != 1:
            raise ValueError(
                f"bool: the truth value of an array of {size_of(self)} elements is ambiguous; use x.size, or"
                " arrayhub.as_numpy(x).any() or .all()"
            )
        return bool(only_element(self, "bool"))

    def __int__(self):
        return int(only_element(self, "int"))

    def __float__(self):
        return float(only_element(self, "float"))

    def __complex__(self):
        return complex(only_element(self, "complex"))

    def __index__(self):
        return as_index(self)

    def __format__(self, spec):
        return formatted(self, spec)

    @cython.embedsignature(False)
    def item(self, first=NOT_GIVEN, second=NOT_GIVEN, /, *more):
        """item($self, /, *args)
--

        Return one element as a Python value, as ``numpy.ndarray.item`` does.

        Parameters
        ----------
        *args : int or tuple of int, optional
            Nothing: the only element. One integer: the element with this number in C order. Several: an index.

        Raises
        ------
        ValueError
            No index is given, and the array does not have exactly one element.
        TypeError
            The host cannot read the memory; call ``to_host``.
        """
        return item(self, first, second, more)

    def tolist(self):
        """Return the elements as nested lists of Python values, or the value of an array without dimensions.

        Raises
        ------
        TypeError
            The host cannot read the memory; call ``to_host``.
        """
        return tolist(self)

    def tobytes(self, order="C"):
        """Return the elements as bytes, without gaps.

        Parameters
        ----------
        order : {"C", "F", "A"}, optional
            Order of the elements; "A" is Fortran order if the array is contiguous in that order only.

        Raises
        ------
        TypeError
            The host cannot read the memory; call ``to_host``.
        """
        return tobytes(self, order)

    # -------------------------------------------------------------------------------------------------- views

    def __getitem__(self, key):
        """Return a view for a basic index (integers, slices, Ellipsis, newaxis). It shares the memory block."""
        return index(self, key)

    @property
    def T(self):
        """USMArray : view with the dimensions in reverse order."""
        return transpose(self, None)

    def transpose(self, *axes):
        """Return a view with the dimensions in another order.

        Parameters
        ----------
        *axes : int or tuple of int, optional
            A permutation of the dimensions; reversed by default.

        Returns
        -------
        USMArray
            A view that shares the memory block.
        """
        return transpose(self, None if not axes or len(axes) == 1 and axes[0] is None else sequence(axes))

    def align(self, *names):
        """Return a view with the dimensions in the order of their names.

        Parameters
        ----------
        *names : str or tuple of str
            All of ``dims``, in any order. A single string is a sequence of one-letter names, as in ``"KJI"``.

        Returns
        -------
        USMArray
            A view that shares the memory block.

        Raises
        ------
        ValueError
            The dimensions are unnamed, or `names` is not a permutation of them.
        """
        present = self.dims
        if present is None:
            raise ValueError("align: the dimensions are unnamed; call with_dims(...) first")
        one = len(names) == 1 and (isinstance(names[0], (tuple, list)) or isinstance(names[0], str) and names[0] not in present)
        order = tuple(names[0]) if one else names
        if len(order) != len(present) or not all([name in order for name in present]):
            raise ValueError(f"align: names are {show(order)}; accepted: all of {present}, each once")
        return transpose(self, [present.index(name) for name in order])

    def with_dims(self, dims, origin=None):
        """Return a view with named dimensions.

        Parameters
        ----------
        dims : sequence of str or mapping
            One distinct name per dimension; or a mapping from present names to new ones. GT4Py's stencils use ``"I"``,
            ``"J"``, ``"K"`` and the numbers of data dimensions, ``"0"``, ``"1"``, ...
        origin : sequence of int, optional
            The index where a stencil's domain starts, in the order of the dimensions; unchanged by default.

        Returns
        -------
        USMArray
            A view that shares the memory block.

        Raises
        ------
        ValueError
            The number of names differs from the number of dimensions, a name is repeated, or a name to replace does not exist.
        TypeError
            A name is not a string, or an index is not an integer.
        """
        return relabelled(self, dims, origin)

    def reshape(self, *shape, order="C"):
        """Return a view of the same elements with another shape.

        Parameters
        ----------
        *shape : int or tuple of int
            The new lengths in elements; one may be -1.
        order : {"C", "F", "A"}, optional
            The order in which the elements fill both shapes, as in ``numpy.reshape``; "A" is Fortran order if the array is
            contiguous in that order only.

        Returns
        -------
        USMArray
            A view that shares the memory block.

        Raises
        ------
        ValueError
            The number of elements differs.
        BufferError
            Strides cannot express the shape; call ``copy()`` first.
        """
        return reshape_in(self, sequence(shape), order)

    def view(self, dtype=None):
        """Return a view of the same bytes as elements of another type, like ``numpy.ndarray.view``.

        Parameters
        ----------
        dtype : optional
            The new element type. A type of another size changes the last dimension, which must be contiguous. None: the
            same type.

        Returns
        -------
        USMArray
            A view that shares the memory block.

        Raises
        ------
        ValueError
            One item size is not a multiple of the other, or the last dimension is not contiguous.
        """
        return view_as(self, dtype)

    def ravel(self, order="C"):
        """Return a view with one dimension.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}, optional
            The order of the elements; "A" and "K" are Fortran order if the array is contiguous in that order only.

        Raises
        ------
        BufferError
            One stride cannot express the result. NumPy would copy, and writes to the copy would be lost; call ``flatten()``.
        """
        return ravel(self, order)

    # ------------------------------------------------------------------------------------------------- copies

    def __setitem__(self, key, value):
        """Copy `value`, any array or a value that NumPy converts to one, into the elements of ``x[key]``.

        Either memory may be on a device. Values of another element type are cast on the host. If `value` shares memory with
        ``x[key]``, the elements receive the values from before the copy.

        Raises
        ------
        ValueError
            The array is read-only, the shapes are incompatible, text is too long, or a time is not a multiple of the unit.
        TypeError
            The elements cannot represent the kind of the values (floats among integers), or `value` is another part of the
            same memory.
        OverflowError
            A number is out of the range of the elements.
        BufferError
            No copy engine supports the device of the memory.
        """
        assign(self, key, value)

    # A USMArray does not implement arithmetic, but the other operand may, such as a NumPy array. These methods write the result
    # back by `x[...] = x + y`. Without them, Python would rebind `x` to the result and leave the memory unchanged.

    def __iadd__(self, other):
        return stored(self, self + other)

    def __isub__(self, other):
        return stored(self, self - other)

    def __imul__(self, other):
        return stored(self, self * other)

    def __itruediv__(self, other):
        return stored(self, self / other)

    def __ifloordiv__(self, other):
        return stored(self, self // other)

    def __imod__(self, other):
        return stored(self, self % other)

    def __ipow__(self, other):
        return stored(self, self ** other)

    def __imatmul__(self, other):
        return stored(self, self @ other)

    def __ilshift__(self, other):
        return stored(self, self << other)

    def __irshift__(self, other):
        return stored(self, self >> other)

    def __iand__(self, other):
        return stored(self, self & other)

    def __ior__(self, other):
        return stored(self, self | other)

    def __ixor__(self, other):
        return stored(self, self ^ other)

    def __delitem__(self, key):
        raise TypeError("del x[...]: elements of an array cannot be deleted; use a slice")

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """Return a copy with another element type, in host memory, like ``numpy.ndarray.astype``.

        Parameters
        ----------
        dtype : optional
            The element type.
        order : {"C", "F", "A", "K"}, optional
            Layout of the copy; "A" and "K" are Fortran order if the array is contiguous in that order only.
        casting : str, optional
            Allowed conversions, as in ``numpy.can_cast``.
        subok : bool, optional
            Ignored; accepted because NumPy's callers pass it.
        copy : bool, optional
            False: return the array itself if its elements are of this type already.

        Raises
        ------
        TypeError
            `casting` forbids the conversion.
        BufferError
            The memory is on a device; convert it with its own library.
        """
        return astype(self, dtype, order, casting, copy)

    def flatten(self, order="C"):
        """Return a copy with one dimension, on the same device. `ravel` returns a view."""
        return flatten(self, order)

    def copy(self, order="C"):
        """Return a writable copy on the same device.

        Parameters
        ----------
        order : {"C", "F", "K"}, optional
            Layout of the copy; "K" keeps that of the array as closely as a compact layout can.
        """
        return transfer.copy(self, order=order)

    def aligned(self, *, copy=None):
        """Return the array with every element aligned for its type: itself, or an explicit copy.

        Parameters
        ----------
        copy : bool, optional
            None: copy only unaligned elements. True: always copy. False: never copy, raise BufferError instead.

        Returns
        -------
        USMArray
            On the same device; a copy is writable and in C order.
        """
        return transfer.aligned(self, copy=copy)

    def native(self, *, copy=None):
        """Return the array in native byte order: itself, or an explicit copy.

        Parameters
        ----------
        copy : bool, optional
            None: copy only if bytes are swapped, including those of record fields. True: always copy. False: never copy,
            raise BufferError instead.

        Returns
        -------
        USMArray
            A copy is writable and in C order; a copy that swaps bytes is in host memory.

        Raises
        ------
        BufferError
            Swapped elements on a device that the host cannot read; call ``to_host()`` first.
        """
        return transfer.native(self, copy=copy)

    def to_host(self, *, out=None, copy=None, stream=None, progress=None):
        """Return the array in host memory: a view if the host can read it already. See ``arrayhub.to_host``."""
        target = None if out is None else hooks.asarray(out)
        host = transfer.to_host(self, out=target, copy=copy, stream=stream, progress=progress)
        return host if out is None else out

    def to_device(self, device, /, *, out=None, copy=None, stream=None, progress=None):
        """Return the array on `device`: itself if it is there already. See ``arrayhub.to_device``."""
        if out is None:
            return transfer.to_device(self, device, copy=copy, stream=stream, progress=progress)
        from arrayhub.array.assignment import copy_into

        copy_into(self, hooks.asarray(out), device, copy=copy, stream=stream, progress=progress)
        return out

    def to_numpy(self, dtype=None, copy=False):
        """Return a ``numpy.ndarray`` of the same memory, for matplotlib and others. See ``arrayhub.as_numpy``.

        Parameters
        ----------
        dtype : optional
            Element type to convert to, which copies; any that `asarray` accepts.
        copy : {False, None, True, "if_needed"}, optional
            True: always copy, also from a device. "if_needed": a view, or a copy if a view is impossible.

        Raises
        ------
        BufferError
            The host cannot read the memory; call ``to_host()``.
        """
        host = transfer.to_host(self, copy=wanted(copy, "to_numpy")) if copy is not False and copy is not None else self
        values = numpy_library.emit(host)
        since = started() if tracing.active else None
        converted = values if dtype is None else values.astype(requested_dtype(dtype), copy=False)
        if converted is not values:
            tell_copy("to_numpy", "cpu", "numpy.ndarray", converted.nbytes, since)
        return converted

    def to_xarray(self):
        """Return an ``xarray.DataArray`` of the same memory, with the same dimension names.

        Raises
        ------
        BufferError
            Neither the host nor CUDA can read the memory; call ``to_host()``.
        ImportError
            xarray is not installed.
        """
        from arrayhub.libraries import xarray

        return xarray.emit(self)

    # ---------------------------------------------------------------------------------------------- protocols

    @property
    def data(self):
        """memoryview : the memory as the buffer protocol describes it, like ``numpy.ndarray.data``.

        GT4Py's frozen NumPy stencils use it. Raises AttributeError if a buffer cannot be exported: memory that the host
        cannot read, element types without a PEP 3118 format.
        """
        try:
            return memoryview(self)
        except BufferError as error:
            raise AttributeError(f"data: {error}") from error

    @property
    def ctypes(self):
        """numpy's ctypes object : ``data``, ``data_as``, ``shape`` and ``strides`` (in bytes) for foreign functions.

        Raises AttributeError if the host cannot read the memory.
        """
        return ctypes_of(self)

    def __getbuffer__(self, Py_buffer* view, int request):
        if not request & ~PyBUF_WRITABLE:      # plain bytes
            refuse_plain_bytes(self)
        buffer_adapter.emit(self, view, request)
        if tracing.active:
            tracing.gave(self, self, "buffer")

    def __releasebuffer__(self, Py_buffer* view):
        buffer_adapter.release(view)

    @property
    def __array_interface__(self):
        return handed(self, "__array_interface__", interface_dict.emit_array_interface(self))

    @property
    def __array_struct__(self):
        return handed(self, "__array_struct__", interface_dict.emit_struct(self))

    def __array__(self, dtype=None, copy=None):
        """Export types that the array interface lacks (ml_dtypes' types), and raise the error for unreadable memory."""
        since = started() if tracing.active else None
        array = numpy_library.emit_array(self, dtype, copy)
        if since is not None and array.base is not self:
            tell_copy("__array__", "cpu", "numpy.ndarray", array.nbytes, since)
        return handed(self, "__array__", array)

    @property
    def __cuda_array_interface__(self):
        return handed(self, "__cuda_array_interface__", interface_dict.emit_cuda_array(self))

    @property
    def __sycl_usm_array_interface__(self):
        return handed(self, "__sycl_usm_array_interface__", interface_dict.emit_sycl_usm(self))

    @property
    def __usm_ndarray__(self):
        """usm_ndarray : the memory for dpnp, which reads this attribute first."""
        if not self.usm_type_:
            raise AttributeError("__usm_ndarray__: the memory is not SYCL USM; call arrayhub.to_device(x, 'oneapi:0')")
        from arrayhub.libraries.dpctl import emit_attribute

        return handed(self, "__usm_ndarray__", emit_attribute(self))

    @property
    def __gt_dims__(self):
        """tuple of str : names of the dimensions for GT4Py; exists if GT4Py knows all of them."""
        from arrayhub.adapters.dimensions import emit_dims

        return emit_dims(self)

    @property
    def __gt_origin__(self):
        """tuple of int : origin for GT4Py, in the order of its stencils (I, J, K, data dimensions)."""
        from arrayhub.adapters.dimensions import emit_origin

        return emit_origin(self)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Export through DLPack, as in the array API standard.

        Parameters
        ----------
        stream : optional
            The consumer's stream; None or -1 for host memory.
        max_version : tuple of int, optional
            The newest DLPack version that the consumer supports; without it a legacy capsule is made.
        dl_device : tuple of int, optional
            The device that the consumer requests; ``(1, 0)`` is host memory.
        copy : bool, optional
            True: always copy. False: never. None: only if `dl_device` requires it.

        Raises
        ------
        BufferError
            DLPack cannot represent the memory, type or layout, or a required copy is forbidden.
        """
        # Consumers from before DLPack 1.0 support the host and CUDA, and refuse oneAPI devices (onnxruntime: "Unsupported
        # device type"). Host-readable USM is host memory too.
        if self.device_.device_type == kDLOneAPI and dl_device is None and host_readable(self):
            if max_version is None or is_awkward_calling():
                dl_device = HOST_PAIR
        if dl_device is None and (copy is None or copy is False):
            check_torch(self)
            return handed(self, "__dlpack__", dlpack.emit(self, stream, max_version, False))
        cdef Descriptor export = transfer.for_dlpack(self, dl_device, copy, stream)
        check_torch(export)
        cdef bint own = block_of(export) is not block_of(self)
        # A copy to the host is complete on return. For a copy on a device, the consumer's stream must still wait.
        return handed(self, "__dlpack__", dlpack.emit(export, None if dl_device == HOST_PAIR else stream, max_version, own))

    @property
    def __arrow_c_schema__(self):
        return arrow.emit_attribute(self, arrow.SCHEMA)

    @property
    def __arrow_c_array__(self):
        return arrow.emit_attribute(self, arrow.ARRAY)

    @property
    def __arrow_c_device_array__(self):
        return arrow.emit_attribute(self, arrow.DEVICE_ARRAY)

    @property
    def __arrow_c_stream__(self):
        return arrow.emit_attribute(self, arrow.STREAM)

    @property
    def __arrow_c_device_stream__(self):
        return arrow.emit_attribute(self, arrow.DEVICE_STREAM)

    def __dlpack_device__(self):
        """Return the pair (device_type, device_id) of DLPack's DLDevice."""
        device = device_of(self)
        if device.device_type == kDLOneAPI and host_readable(self) and is_awkward_calling():
            return HOST_PAIR
        return (device.device_type, device.device_id)


cdef int settle_device(Descriptor a, MemoryBlock block) except -1:
    """Look up the ordinal of a block's device, which may differ from that of `a`: a host array can be a view of USM."""
    cdef Descriptor whole = same_layout(a)
    whole.device_ = block.device_
    block.device_ = device_of(whole)
    return 0


cdef inline object handed(Descriptor a, str way, object answer):
    """Return an exported object, after reporting the export if tracing is active."""
    if tracing.active:
        tracing.gave(a, a, way)
    return answer


cdef inline object filled(object fresh, int nd, Py_ssize_t* values):
    """Fill a new tuple, or a new instance of a subclass, with its values."""
    cdef int k
    for k in range(nd):
        value = PyLong_FromSsize_t(values[k])
        Py_INCREF(value)        # PyTuple_SET_ITEM steals the reference
        PyTuple_SET_ITEM(<tuple> fresh, k, value)
    return fresh


cdef tuple integers(int nd, Py_ssize_t* values):
    return <tuple> filled(PyTuple_New(nd), nd, values)


cdef type _Strides = Strides


cdef object step_tuple(int nd, Py_ssize_t* values):
    return filled(new_strides(_Strides, nd), nd, values)


cdef object _assign = None


cdef int assign(object array, object key, object value) except -1:
    """Implement ``array[key] = value``. The module is imported on first use, to keep ``import arrayhub`` fast."""
    global _assign
    if _assign is None:
        from arrayhub.array import assignment

        _assign = assignment.assign
    _assign(array, key, value)
    return 0


cdef object stored(object array, object values):
    assign(array, Ellipsis, values)
    return array


cdef object sequence(tuple arguments):
    """Return integers that are given as several arguments or as one sequence."""
    if len(arguments) != 1:
        return arguments
    try:
        return tuple(arguments[0])
    except TypeError:      # not a sequence: an integer, or an array without dimensions
        return arguments


register_class(USMArray)
add_absent(USMArray)
