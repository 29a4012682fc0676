"""USMArray: the descriptor plus every protocol's attribute, each a line or two that calls its adapter."""

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE
from cpython.long cimport PyLong_FromSsize_t
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from arrayhub._core cimport tracing
from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    COPIED,
    IMMUTABLE,
    WRITEABLE,
    Descriptor,
    block_of,
    get_dtype,
    index,
    labels_of,
    name_of_elements,
    register_class,
    same_layout,
    size_of,
    transpose,
)
from arrayhub._core.device cimport UNRESOLVED_ID, kDLOneAPI, make_device
from arrayhub._core.memory cimport MemoryBlock
from arrayhub._core.runtime cimport device_of
from arrayhub.adapters cimport array_interface, arrow, cuda_array, dlpack, sycl_usm
from arrayhub.adapters cimport buffer as buffer_adapter
from arrayhub.array.flags cimport flags_of
from arrayhub.libraries cimport consumer_quirks, dpctl
from arrayhub.libraries cimport numpy as numpy_library
from arrayhub.array.unsupported_ops cimport refuse_arithmetic
from arrayhub.array.construction cimport fill_new
from arrayhub.array.scalars cimport as_index, formatted, give_item, iterator, only_element, tobytes, tolist
from arrayhub.array.ndarray_methods cimport astype, ctypes_of, flatten, ravel, reshape_in, view_as
from arrayhub.runtimes cimport sycl


from arrayhub import transfer
from arrayhub._core.copying import wanted
from arrayhub._core.descriptor import PROTOCOL_NAMES, USM_NAMES
from arrayhub._core.errors import show
from arrayhub._core.labels import relabelled
from arrayhub._core.strides import Strides
from arrayhub._core.tracing import copied as tell_copy
from arrayhub._core.tracing import started
from arrayhub.adapters import dimensions
from arrayhub.array.unsupported_ops import names
from arrayhub.array.assignment import assign
from arrayhub.libraries import xarray
from arrayhub.transfer.gather import footprint_bytes, gathered, row_boundary

cdef extern from *:
    """
    /* A Strides is a tuple that says another class: made and freed as tuples are, which keep some for the next, it takes
       two thirds of the time of an instance of a class. The empty tuple there is once, and stays what it is; and instances
       of subclasses may have something before them in memory, so that they are none of what is kept. `nd` is not 0. */
    static PyTypeObject *arrayhub_strides_class = NULL;
    static PyObject *arrayhub_new_strides(PyObject *cls, Py_ssize_t nd) {
        PyObject *steps = PyTuple_New(nd);
        if (steps != NULL) {
            Py_INCREF(cls);
            Py_SET_TYPE(steps, (PyTypeObject *)cls);
        }
        return steps;
    }
    static void arrayhub_free_strides(PyObject *steps) {
        PyTypeObject *cls = Py_TYPE(steps);
        if (Py_SIZE(steps) == 0) {
            PyObject_GC_UnTrack(steps);
            cls->tp_free(steps);
        } else {
            if (cls == arrayhub_strides_class) Py_SET_TYPE(steps, &PyTuple_Type);
            PyTuple_Type.tp_dealloc(steps);
        }
        Py_DECREF(cls);
    }
    static void arrayhub_free_as_tuples(PyObject *cls) {
        arrayhub_strides_class = (PyTypeObject *)cls;
        arrayhub_strides_class->tp_dealloc = arrayhub_free_strides;
    }
    """
    object new_strides "arrayhub_new_strides"(object cls, Py_ssize_t nd)
    void free_as_tuples "arrayhub_free_as_tuples"(object cls)

cdef tuple HOST_PAIR = (1, 0)      # DLPack's kDLCPU

cdef object _way_in = None         # asarray, of a layer above
cdef object _check_values = None   # whether a sequence's elements come in by themselves, too


cdef void register_way_in(object asarray, object check_values):
    """Say what makes an array of the foreign ones that methods take, and what refuses a sequence that holds another."""
    global _way_in, _check_values
    _way_in, _check_values = asarray, check_values


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
        ``"device"``, ``"shared"``, ``"host"``: new USM memory of that kind; the words of `empty`, ``"usm_device"`` and
        so on, mean the same. ``"cpu"``: new host memory without SYCL.
        Or memory that exists: a ``dpctl.memory.MemoryUSM*``, a USMArray (its whole memory block; read-only stays
        read-only), or any object with a writable buffer.
    strides : tuple of int, optional
        Steps in elements; by default compact in `order`.
    offset : int, optional
        Elements from the start of the memory to element zero. For new memory and negative strides it is computed
        where it is left at 0.
    order : {"C", "F"}, optional
        What ``strides=None`` means.
    buffer_ctor_kwargs : dict, optional
        Further arguments for ``dpctl.memory.MemoryUSM*``: ``queue``, ``alignment`` (bytes), ``copy``.

    Raises
    ------
    ValueError
        An element would lie outside the memory; strides of another length than the shape; an unknown kind.
    ImportError
        USM memory is asked for and dpctl is not installed; the message names the extra.
    MemoryError
        There is not enough, or none on a boundary of ``alignment`` bytes.
    """

    # `inspect.getmodule` asks the array itself, and goes through the files of all modules where it does not say: half a
    # second in which a worker of dask answers nobody.
    __module__ = "arrayhub.array.usm_array"

    __dlpack_c_exchange_api__ = dlpack.exchange_capsule()

    def __init__(self, shape, dtype="|f8", buffer="device", strides=None, offset=0, order="C",
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

        NumPy makes no array of this tuple, since it would take the steps for bytes.
        Raises ValueError where a byte stride is no multiple of the item size (a field of a packed record).
        """
        if self.strides_ == NULL and self.nd_ > 0:
            raise ValueError(
                f"strides: byte strides {self.byte_strides} are no multiple of the item size {self.itemsize_}; use"
                " byte_strides"
            )
        return step_tuple(self.nd_, self.strides_)

    @property
    def byte_strides(self):
        """tuple of int : step of each dimension, in bytes.

        Raises ValueError where elements of less than a byte are packed.
        """
        if self.byte_strides_ == NULL and self.nd_ > 0:
            raise ValueError("byte_strides: elements of less than a byte are packed; use strides")
        return integers(self.nd_, self.byte_strides_)

    @property
    def offset(self):
        """int : elements from the start of the memory block to element zero.

        Raises ValueError where that is no whole number of elements.
        """
        cdef Py_ssize_t distance = self.data_ - block_of(self).address_
        if self.itemsize_ == 0 or distance == 0:
            return 0
        if distance % self.itemsize_ != 0:
            raise ValueError(
                f"offset: element zero lies {distance} bytes into its memory block, no multiple of the item size"
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
        """int : size times itemsize, in bytes; packed elements of less than a byte count by their bits."""
        if self.byte_strides_ == NULL and self.shape_ != NULL and self.dl_dtype_.bits < 8:
            return (size_of(self) * self.dl_dtype_.bits + 7) // 8
        return size_of(self) * self.itemsize_

    @property
    def dtype(self):
        """numpy.dtype : the element type; ml_dtypes' where NumPy has none.

        Raises TypeError where neither has one. Everything else of the array works all the same.
        """
        return get_dtype(self)

    @property
    def typenum(self):
        """int : NumPy's type number, or arrayhub's (4096 and up) for types NumPy does not have."""
        return self.typenum_

    @property
    def ptr(self):
        """int : address of element zero."""
        return <size_t> self.data_

    @property
    def device(self):
        """Device : where the memory lives."""
        return make_device(device_of(self))

    @property
    def usm_type(self):
        """str or None : 'host', 'shared' or 'device' for SYCL USM, None for all other memory."""
        return USM_NAMES[self.usm_type_]

    @property
    def base(self):
        """object : the owner of the memory; for USM a ``dpctl.memory.MemoryUSM*``; the memory block itself where it is."""
        if self.usm_type_:
            return sycl.base_of(self)
        return block_of(self) if self.base_ is None else self.base_

    @property
    def memory(self):
        """MemoryBlock : who owns the bytes, where they are and how many; shared by all views."""
        cdef MemoryBlock block = block_of(self)
        if block.device_.device_id == UNRESOLVED_ID:      # it was put off until now
            settle_device(self, block)
        return block

    @property
    def flags(self):
        """Flags : c_contiguous, f_contiguous, aligned, writeable, and the others of NumPy's, by key too."""
        return flags_of(self)

    @property
    def access(self):
        """str : 'readwrite', 'readonly' (somebody else may still write) or 'immutable' (nobody can)."""
        if self.flags_ & WRITEABLE:
            return "readwrite"
        return "immutable" if self.flags_ & IMMUTABLE else "readonly"

    @property
    def is_copy(self):
        """bool : whether the memory is a copy, so that writes do not reach the object which it was made from.

        Lists, numbers and scalars come in as copies; ``copy=True``, ``copy()``, a conversion of the type and copies from
        or to a device make one. DLPack says where a producer did, and so does a new ``__array_interface__`` whose bytes
        nobody else has, as an image of PIL's gives it. Views of a copy are copies, and so is a copy that is passed to
        ``asarray`` again.
        """
        return bool(self.flags_ & COPIED)

    @property
    def protocol(self):
        """str : the protocol by which the memory came in, as ``asarray(via=)`` names it, or 'constructed'."""
        return PROTOCOL_NAMES[self.protocol_]

    @property
    def picture(self):
        """Picture : how the elements lie in the memory block; ``text()`` and ``svg()`` draw it, without reading them."""
        return _picture_of(self)

    def _repr_html_(self):
        return _page_of(self)

    # ------------------------------------------------------------------------------------------------ labels

    @property
    def dims(self):
        """tuple of str or None : the names of the dimensions. Views keep them; reshape and a new axis drop them."""
        dims = getattr(labels_of(self), "dims", None)
        if dims is None:
            xarray.refuse_no_names()
        return dims

    @property
    def origin(self):
        """tuple of int or None : the index where a stencil's domain starts; it may lie outside of a view.

        Views keep it on the same element of their dimensions; reshape and steps other than 1 drop it.
        """
        return getattr(labels_of(self), "origin", None)

    @property
    def halo(self):
        """tuple of (int, int) or None : lower and upper width of what surrounds the domain, in elements.

        A slice keeps what it leaves of it; reshape and steps other than 1 drop it.
        """
        return getattr(labels_of(self), "halo", None)

    @property
    def aligned_index(self):
        """tuple of int or None : the index to which the memory was aligned; it may lie outside of a view.

        Every element that has it in the dimension that was allocated as the fastest lies on the boundary that was asked
        for. Reshape, copies and steps other than 1 drop it, and so does another index in that dimension.
        """
        return getattr(labels_of(self), "aligned_index", None)

    def __repr__(self):
        try:
            dtype = get_dtype(self).__repr__().removeprefix("dtype(").removesuffix(")")
        except TypeError:
            dtype = repr(name_of_elements(self))     # for which NumPy has no type here
        dims = getattr(labels_of(self), "dims", None)
        named = "" if dims is None else f"dims={dims}, "
        steps = "" if self.flags_ & C_CONTIGUOUS or self.byte_strides_ == NULL else f", byte_strides={self.byte_strides}"
        halo = "" if self.halo is None else f", halo={self.halo}"
        return (
            f"USMArray(shape={self.shape}, {named}dtype={dtype}, device='{self.device}', access='{self.access}'{steps}{halo})"
        )

    def __dir__(self):
        return names(self)

    # ---------------------------------------------------------------------------------- copies for modules and engines

    def __reduce_ex__(self, protocol):
        """For pickle: the bytes that the elements need, out of band from protocol 5 on. See ``arrayhub.pickling``."""
        return _reduce_of(self, protocol)

    def __reduce__(self):
        return _reduce_of(self, 0)

    def __copy__(self):
        """For ``copy.copy``: a view."""
        return same_layout(self)

    def __deepcopy__(self, memo):
        """For ``copy.deepcopy``: an array in memory of its own, of the same kind, with the same layout and access."""
        boundary = row_boundary(self)
        return _padded_copy_of(self, boundary) if boundary else gathered(self, transfer.copy)

    def __sizeof__(self):
        """What the array takes in bytes, the elements included: engines decide by it what to move and what to spill."""
        return object.__sizeof__(self) + footprint_bytes(self)

    def __dask_tokenize__(self):
        """For dask: what is the same for the same elements of the same array, in every process."""
        return _token_of(self)

    # ----------------------------------------------------------------------------------------------- elements

    def __len__(self):
        if self.nd_ == 0:
            raise TypeError(
                "len() of an array without dimensions; x.item() is its value. Whoever takes an array apart by x[i] comes to it:"
                " give arrayhub.as_numpy(x) there"
            )
        return self.shape_[0]

    def __iter__(self):
        """The elements of one dimension, as NumPy's scalars; of several dimensions the views of the first."""
        return iterator(self)

    def __reversed__(self):
        """The same from the last to the first."""
        return iterator(self[::-1] if self.nd_ else self)

    def __contains__(self, value):
        raise TypeError("in: a USMArray compares no elements; ask NumPy, as in value in arrayhub.as_numpy(x)")

    def __bool__(self):
        """The truth of the only element, as in NumPy; of no or of several there is none."""
        if size_of(self) != 1:
            raise ValueError(
                f"bool: an array of {size_of(self)} elements is neither true nor false; ask for x.size, or call"
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

    def tolist(self):
        """Return the elements as nested lists of Python values; of an array without dimensions the value itself.

        Raises
        ------
        TypeError
            The host cannot read the memory; the message names ``to_host``.
        """
        return tolist(self)

    def tobytes(self, order="C"):
        """Return the elements as bytes, without what lies between them.

        Parameters
        ----------
        order : {"C", "F", "A"}, optional
            In which order; "A" is Fortran's where the array is compact in that order only.

        Raises
        ------
        TypeError
            The host cannot read the memory; the message names ``to_host``.
        """
        return tobytes(self, order)

    # -------------------------------------------------------------------------------------------------- views

    def __getitem__(self, key):
        """Basic indexing (integers, slices, Ellipsis, newaxis): always a view, which shares the memory block."""
        return index(self, key)

    @property
    def T(self):
        """USMArray : the dimensions in reverse order, as a view."""
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
            All of ``dims``, in any order. One string is the sequence of its letters, as in ``"KJI"``.

        Returns
        -------
        USMArray
            A view that shares the memory block.

        Raises
        ------
        ValueError
            The array has no names, or `names` are not all of them once.
        """
        present = self.dims
        if present is None:
            raise ValueError("align: the dimensions have no names; call with_dims(...) first")
        one = len(names) == 1 and (isinstance(names[0], (tuple, list)) or isinstance(names[0], str) and names[0] not in present)
        order = tuple(names[0]) if one else names
        if len(order) != len(present) or not all([name in order for name in present]):
            raise ValueError(f"align: names are {show(order)}; accepted: all of {present}, each once")
        return transpose(self, [present.index(name) for name in order])

    def with_dims(self, dims, origin=None):
        """Return a view whose dimensions have names.

        Parameters
        ----------
        dims : sequence of str or mapping
            A name a dimension, all different; or a mapping from present names to new ones. GT4Py's stencils know
            ``"I"``, ``"J"``, ``"K"`` and the numbers of data dimensions, ``"0"``, ``"1"``, ...
        origin : sequence of int, optional
            The index where a stencil's domain starts, in the order of the dimensions; left as it is by default.

        Returns
        -------
        USMArray
            A view that shares the memory block.

        Raises
        ------
        ValueError
            Another number of names than dimensions, a name twice, or one to be renamed that is not there.
        TypeError
            A name that is no string, an index that is no integer.
        """
        return relabelled(self, dims, origin)

    def reshape(self, *shape, order="C"):
        """Return a view with the same elements under another shape.

        Parameters
        ----------
        *shape : int or tuple of int
            The new lengths in elements; one may be -1.
        order : {"C", "F", "A"}, optional
            The order in which the elements fill both shapes, as in ``numpy.reshape``; "A" means Fortran's where the array
            is compact in that order only.

        Returns
        -------
        USMArray
            A view that shares the memory block.

        Raises
        ------
        ValueError
            The number of elements differs.
        BufferError
            Strides cannot express the shape; the message names ``copy()``.
        """
        return reshape_in(self, sequence(shape), order)

    def view(self, dtype=None):
        """Return a view of the same memory, whose bytes are elements of another type, as ``numpy.ndarray.view`` does.

        Parameters
        ----------
        dtype : optional
            The new element type. One of another size changes the last dimension, along which the elements must lie
            compactly. None: the same type.

        Returns
        -------
        USMArray
            A view that shares the memory block.

        Raises
        ------
        ValueError
            The sizes do not go into each other, or the last dimension is not compact.
        """
        return view_as(self, dtype)

    def ravel(self, order="C"):
        """Return a view with one dimension.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}, optional
            The order of the elements; "A" and "K" mean Fortran's where the array is compact in that order only.

        Raises
        ------
        BufferError
            One stride cannot express it. NumPy copies there, and writes to the copy are lost; call ``flatten()``.
        """
        return ravel(self, order)

    # ------------------------------------------------------------------------------------------------- copies

    def __setitem__(self, key, value):
        """Copy `value`, any array or what NumPy would make one of, into the elements of ``x[key]``.

        Raises
        ------
        ValueError
            The array is read-only, the shapes do not go together, text would be cut, or a time has no place in the unit.
        TypeError
            The elements would lose what they are, such as the fractions of floats among integers, or `value` is another
            place of the same memory.
        OverflowError
            Numbers are out of the range of the elements.
        BufferError
            The memory is on a device, which is written by its own library.
        """
        assign(self, key, value, _way_in, _check_values)

    def __delitem__(self, key):
        raise TypeError("del x[...]: an array has the elements that it has; take a slice of it")

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """Return a copy with another element type, in host memory, as ``numpy.ndarray.astype`` does.

        Parameters
        ----------
        dtype : optional
            The element type.
        order : {"C", "F", "A", "K"}, optional
            Layout of the copy; "A" and "K" mean Fortran's where the array is compact in that order only.
        casting : str, optional
            What conversions are allowed, as in ``numpy.can_cast``.
        subok : bool, optional
            Without a meaning here; NumPy's callers pass it.
        copy : bool, optional
            False: the array itself where its elements are of that type already.

        Raises
        ------
        TypeError
            `casting` forbids the conversion.
        BufferError
            The memory is on a device, where its own library converts.
        """
        return astype(self, dtype, order, casting, copy)

    def flatten(self, order="C"):
        """Return a copy with one dimension, on the same device; see `ravel`, which gives a view."""
        return flatten(self, order)

    def copy(self, order="C"):
        """Return a writable copy on the same device.

        Parameters
        ----------
        order : {"C", "F", "K"}, optional
            Layout of the copy; "K" keeps that of the array as nearly as a compact one can.
        """
        return transfer.copy(self, order=order)

    def aligned(self, *, copy=None):
        """Return the array with each element on a boundary of its type's alignment: itself, or an explicit copy.

        Parameters
        ----------
        copy : bool, optional
            None: only where the elements lie unaligned. True: always copy. False: never, BufferError instead.

        Returns
        -------
        USMArray
            On the same device; a copy is writable and in C order.
        """
        return transfer.aligned(self, copy=copy)

    def native(self, *, copy=None):
        """Return the array with its elements in the machine's byte order: itself, or an explicit copy.

        Parameters
        ----------
        copy : bool, optional
            None: only where the bytes are swapped, those of a record's fields included. True: always copy. False: never,
            BufferError instead.

        Returns
        -------
        USMArray
            A copy is writable and in C order; one that swaps bytes is in host memory.

        Raises
        ------
        BufferError
            Swapped elements on a device that the host cannot read; the message names ``to_host()``.
        """
        return transfer.native(self, copy=copy)

    def to_host(self, *, out=None, copy=None, stream=None, progress=None):
        """Return the array in host memory: a view where the host can read it already. See ``arrayhub.to_host``."""
        target = None if out is None else _way_in(out)
        host = transfer.to_host(self, out=target, copy=copy, stream=stream, progress=progress)
        return host if out is None else out

    def to_device(self, device, /, *, copy=None, stream=None, progress=None):
        """Return the array on `device`: itself where it is there already. See ``arrayhub.to_device``."""
        return transfer.to_device(self, device, copy=copy, stream=stream, progress=progress)

    def to_numpy(self, dtype=None, copy=False):
        """Return a ``numpy.ndarray`` on the same memory, as matplotlib and others ask for it; see ``arrayhub.as_numpy``.

        Parameters
        ----------
        dtype : optional
            An element type to convert to, which takes a copy.
        copy : bool, optional
            True: always copy, from a device too.

        Raises
        ------
        BufferError
            The host cannot read the memory; the message names ``to_host()``.
        """
        host = transfer.to_host(self, copy=True) if wanted(copy, "to_numpy") else self
        values = numpy_library.emit(host)
        since = started() if tracing.active else None
        converted = values if dtype is None else values.astype(dtype, copy=False)
        if converted is not values:
            tell_copy("to_numpy", "cpu", "numpy.ndarray", converted.nbytes, since)
        return converted

    def to_xarray(self):
        """Return an ``xarray.DataArray`` on the same memory, with the same names of the dimensions.

        Raises
        ------
        BufferError
            Memory that neither the host nor CUDA can read; the message names ``to_host()``.
        ImportError
            xarray is not installed.
        """
        return xarray.emit(self)

    # ---------------------------------------------------------------------------------------------- protocols

    @property
    def data(self):
        """memoryview : the memory as the buffer protocol describes it, as ``numpy.ndarray.data`` is.

        GT4Py's frozen NumPy stencils ask for it. AttributeError where there is no buffer: memory that the host cannot
        read, element types that PEP 3118 has no name for.
        """
        try:
            return memoryview(self)
        except BufferError as error:
            raise AttributeError(f"data: {error}") from error

    @property
    def ctypes(self):
        """numpy's ctypes object : ``data``, ``data_as``, ``shape`` and ``strides`` (in bytes) for foreign functions.

        AttributeError where the host cannot read the memory.
        """
        return ctypes_of(self)

    def __getbuffer__(self, Py_buffer* view, int request):
        if not request & ~PyBUF_WRITABLE:      # plain bytes
            consumer_quirks.refuse_plain_bytes(self)
        buffer_adapter.emit(self, view, request)
        if tracing.active:
            tracing.gave(self, self, "buffer")

    def __releasebuffer__(self, Py_buffer* view):
        buffer_adapter.release(view)

    @property
    def __array_interface__(self):
        return handed(self, "__array_interface__", array_interface.emit(self))

    @property
    def __array_struct__(self):
        return handed(self, "__array_struct__", array_interface.emit_struct(self))

    def __array__(self, dtype=None, copy=None):
        """For what the array interface cannot say (ml_dtypes' types), and to refuse in words."""
        since = started() if tracing.active else None
        array = numpy_library.emit_array(self, dtype, copy)
        if since is not None and array.base is not self:
            tell_copy("__array__", "cpu", "numpy.ndarray", array.nbytes, since)
        return handed(self, "__array__", array)

    @property
    def __cuda_array_interface__(self):
        return handed(self, "__cuda_array_interface__", cuda_array.emit(self))

    @property
    def __sycl_usm_array_interface__(self):
        return handed(self, "__sycl_usm_array_interface__", sycl_usm.emit(self))

    @property
    def __usm_ndarray__(self):
        """What dpnp asks first: the memory as a ``usm_ndarray``."""
        return handed(self, "__usm_ndarray__", dpctl.emit_attribute(self))

    @property
    def __gt_dims__(self):
        """GT4Py: the names of the dimensions, where it knows all of them."""
        return dimensions.emit_dims(self)

    @property
    def __gt_origin__(self):
        """GT4Py: the origin, in the order that its stencils bring the dimensions in (I, J, K, data dimensions)."""
        return dimensions.emit_origin(self)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Export by DLPack, as the array API standard has it.

        Parameters
        ----------
        stream : optional
            The consumer's stream; None or -1 for host memory.
        max_version : tuple of int, optional
            The newest DLPack version that the consumer knows; without it a legacy capsule is made.
        dl_device : tuple of int, optional
            Where the consumer wants the data; ``(1, 0)`` is host memory.
        copy : bool, optional
            True: always copy. False: never. None: only where `dl_device` needs it.

        Raises
        ------
        BufferError
            The memory, the type or the layout cannot be said, or a copy is needed and forbidden.
        """
        if self.device_.device_type == kDLOneAPI and dl_device is None and consumer_quirks.wants_host(self, max_version):
            dl_device = HOST_PAIR
        if dl_device is None and (copy is None or copy is False):
            consumer_quirks.check_torch(self)
            return handed(self, "__dlpack__", dlpack.emit(self, stream, max_version, False))
        cdef Descriptor export = transfer.for_dlpack(self, dl_device, copy, stream)
        consumer_quirks.check_torch(export)
        cdef bint own = block_of(export) is not block_of(self)
        # A copy for the host is done when it is there; on a device the consumer's stream must still be told to wait.
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
        """The pair (device_type, device_id) of DLPack's DLDevice; of shared and host USM the host's for who knows no other."""
        if self.device_.device_type == kDLOneAPI and consumer_quirks.wants_host_device(self):
            return HOST_PAIR
        device = device_of(self)
        return (device.device_type, device.device_id)


cdef int settle_device(Descriptor a, MemoryBlock block) except -1:
    """Find out the ordinal of a block's device, which is not always that of `a`: the host may view USM."""
    cdef Descriptor whole = same_layout(a)
    whole.device_ = block.device_
    block.device_ = device_of(whole)
    return 0


cdef object _picture_of = None
cdef object _page_of = None


def register_picture(picture_of, page_of):
    """Say what makes ``USMArray.picture`` and a notebook's page: the layers above draw, and this one must not know them."""
    global _page_of, _picture_of
    _picture_of = picture_of
    _page_of = page_of


cdef object _reduce_of = None
cdef object _token_of = None
cdef object _padded_copy_of = None


def register_engines(reduce_of, token_of, padded_copy_of):
    """Say what pickles an array, what makes dask's token of one, and what copies one with its padding: the layers above do."""
    global _reduce_of, _token_of, _padded_copy_of
    _reduce_of = reduce_of
    _token_of = token_of
    _padded_copy_of = padded_copy_of


cdef inline object handed(Descriptor a, str way, object answer):
    """What a consumer asked for; those who listen are told of it."""
    if tracing.active:
        tracing.gave(a, a, way)
    return answer


cdef inline object filled(object fresh, int nd, Py_ssize_t* values):
    """A tuple that has just been made, or an instance of a subclass, with its values."""
    cdef int k
    for k in range(nd):
        value = PyLong_FromSsize_t(values[k])
        Py_INCREF(value)        # PyTuple_SET_ITEM takes the reference over
        PyTuple_SET_ITEM(<tuple> fresh, k, value)
    return fresh


cdef tuple integers(int nd, Py_ssize_t* values):
    return <tuple> filled(PyTuple_New(nd), nd, values)


cdef object _Strides = Strides
cdef object _NO_STEPS = Strides()       # there is one, as there is one empty tuple
free_as_tuples(_Strides)


cdef object step_tuple(int nd, Py_ssize_t* values):
    """A Strides, filled as a tuple is: its class adds no fields."""
    return filled(new_strides(_Strides, nd), nd, values) if nd else _NO_STEPS


cdef object sequence(tuple arguments):
    """Several integers, or one sequence of them: both are usual."""
    if len(arguments) != 1:
        return arguments
    try:
        return tuple(arguments[0])
    except TypeError:      # no sequence: an integer, or an array without dimensions, which is one
        return arguments


register_class(USMArray)
give_item(USMArray)
refuse_arithmetic(USMArray)
