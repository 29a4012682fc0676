"""Device: the device that holds memory, such as "cuda:0"."""

from arrayhub._core.errors import root_of, show

# Device type names as used in "name:id" strings, by DLPack device type.
TYPE_NAMES = {
    1: "cpu",
    2: "cuda",
    3: "cuda_host",
    4: "opencl_buffer",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    11: "rocm_host",
    12: "ext_dev",
    13: "cuda_managed",
    14: "oneapi",
    15: "webgpu",
    16: "hexagon",
    17: "maia",
    18: "trn",
}
_TYPE_NUMBERS = {name: number for number, name in TYPE_NAMES.items()}

# Functions that convert other libraries' device objects to DLPack pairs, keyed by the top-level module of the object's type.
# Higher layers register the functions. The function at the key "str" converts strings that do not name one of these types.
READERS = {}

_ACCEPTED = (
    "a Device, 'cpu', 'cuda:0', 'oneapi:0', a DLPack pair such as (2, 0), a SYCL filter string or queue, "
    "or a library's own device object"
)


cdef class Device:
    """Device(spec="cpu")
--

    Device that holds memory. Devices are immutable and hashable.

    Parameters
    ----------
    spec : Device, str, tuple of int or object
        ``"cpu"``, ``"cuda:0"``, ``"oneapi:0"``, a DLPack pair ``(device_type, device_id)``, a SYCL filter string
        (``"opencl:cpu"``), a ``SyclQueue`` or ``SyclDevice``, or the device object of torch, jax, cupy, cuda.core, dpnp or
        tvm_ffi.

    Attributes
    ----------
    type : str
        Name of the DLPack device type, such as ``"cpu"``, ``"cuda"`` or ``"oneapi"``.
    id : int
        Ordinal among the devices of that type.
    dlpack : tuple of int
        The pair that ``__dlpack_device__`` returns. Source: the DLPack specification, ``DLDevice``.

    Raises
    ------
    ValueError
        A string or a pair does not name a device.
    TypeError
        `spec` has an unsupported type, or a pair contains a value that is not an integer.

    Notes
    -----
    A device equals the string ``str(device)`` but no other spelling, because equal objects must have equal hashes:
    ``Device("cuda:0") == "cuda:0"`` is true, and ``Device("cuda:0") == "cuda"`` is false. To compare with a
    different spelling, construct a device from it: ``device == arrayhub.Device("cuda")``.

    Examples
    --------
    >>> device = arrayhub.Device("cuda")
    >>> str(device), device.type, device.id, device.dlpack
    ('cuda:0', 'cuda', 0, (2, 0))
    >>> arrayhub.asarray(numpy.zeros(3)).device == arrayhub.Device("cpu")
    True
    """

    # Set in `__cinit__` and never changed, because all host arrays share one Device.
    def __cinit__(self, spec="cpu"):
        self.dl = DLDevice(kDLCPU, 0) if type(spec) is str and spec == "cpu" else _parse(spec)

    def __init__(self, spec="cpu"):
        pass

    @property
    def type(self):
        return TYPE_NAMES[self.dl.device_type]

    @property
    def id(self):
        return self.dl.device_id

    @property
    def dlpack(self):
        return (self.dl.device_type, self.dl.device_id)

    def __dlpack_device__(self):
        """Return `dlpack`. Other libraries accept objects with this method as devices (data-apis/array-api#972)."""
        return self.dlpack

    def __eq__(self, other):
        if isinstance(other, str):      # only str(self) has the same hash: hash("cuda") differs from hash("cuda:0")
            return str(self) == other
        if not isinstance(other, Device):
            return NotImplemented
        cdef Device that = other
        return self.dl.device_type == that.dl.device_type and self.dl.device_id == that.dl.device_id

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        return "cpu" if self.dl.device_type == kDLCPU and self.dl.device_id == 0 else f"{self.type}:{self.id}"

    def __repr__(self):
        return f"Device({str(self)!r})"

    def __reduce__(self):
        return (Device, ((self.dl.device_type, self.dl.device_id),))


cdef DLDevice _parse(object spec) except *:
    if isinstance(spec, Device):
        return (<Device>spec).dl
    if isinstance(spec, str):
        return _parse_string(spec)
    if isinstance(spec, tuple):
        return _parse_pair(spec)
    root = root_of(type(spec))
    reader = READERS.get(root)
    if reader is None:
        raise TypeError(f"device: {show(spec)} is of type {type(spec).__name__}; accepted: {_ACCEPTED}")
    return _parse_pair(reader(spec))


cdef DLDevice _parse_string(object spec) except *:
    name, colon, ordinal = str.partition(spec, ":")
    if name in _TYPE_NUMBERS and (not colon or ordinal.isascii() and ordinal.isdecimal() and len(ordinal) < 10):
        return _parse_pair((_TYPE_NUMBERS[name], int(ordinal or 0)))
    reader = READERS.get("str")
    if reader is None:
        raise ValueError(f"device: {spec!r} is not a device; accepted: {_ACCEPTED}")
    return _parse_pair(reader(spec))


cdef DLDevice _parse_pair(object pair) except *:
    cdef DLDevice dl
    if len(pair) != 2:
        raise ValueError(f"device: {show(pair)} is not a DLPack pair; accepted: two integers, (device_type, device_id)")
    try:
        device_type, device_id = [integer(part, "device") for part in pair]
    except TypeError:
        raise TypeError(
            f"device: {show(pair)} is not a DLPack pair; accepted: two integers, (device_type, device_id), or {_ACCEPTED}"
        ) from None
    if device_type not in TYPE_NAMES:
        raise ValueError(f"device: DLPack's device type {device_type} is unknown; accepted: {sorted(TYPE_NAMES)}")
    if not 0 <= device_id < 2**31:
        raise ValueError(f"device: the id {device_id} is out of range; accepted: 0 to 2**31 - 1")
    dl.device_type = device_type
    dl.device_id = device_id
    return dl


cdef Device _CPU = Device("cpu")
CPU = _CPU      # for comparisons in other modules


cdef Device make_device(DLDevice dl):
    """Return the Device of a DLPack pair that is known to be valid."""
    if dl.device_type == kDLCPU and dl.device_id == 0:
        return _CPU
    cdef Device device = Device.__new__(Device)
    device.dl = dl
    return device


# ------------------------------------------------------------------------------------------------ functions of the runtimes

cdef Runtime _runtimes[DEVICE_TYPES]


cdef Runtime* runtime_of(int device_type) noexcept nogil:
    """Return the row of a device type. For an unknown type, return row 0, which no runtime fills in."""
    return &_runtimes[device_type if 0 <= device_type < DEVICE_TYPES else 0]
