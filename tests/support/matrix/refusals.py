"""Errors that docs/matrix.md documents: the cells in which an error must occur, its type and its reason.

Each row follows from a fact about a protocol or a library, not from arrayhub's implementation. A test fails unless the
first row that applies to a cell describes its error.
"""

from typing import NamedTuple

from .elements import EXTENDED, FLOAT8, NUMBERS, SWAPPED
from .layouts import Layout
from .memory import BOUNDARY


class Cell(NamedTuple):
    """A cell of the matrix for one element type and layout, with the properties on which its error may depend.

    Attributes
    ----------
    address : int or None
        Address of element zero. None if no array has been created, as for the table of the page.
    """

    producer: object
    element: object
    layout: Layout
    consumer: str
    address: int | None = None

    @property
    def readonly(self):
        broadcast = self.layout.name == "broadcast" and self.producer.name == "array_api_strict"
        return self.producer.readonly or self.layout.name == "read-only" or broadcast

    @property
    def usm(self):
        return self.producer.memory != "cpu"

    @property
    def empty(self):
        return 0 in self.layout.base

    @property
    def on_boundary(self):
        """Return whether element zero is on a 64-byte boundary, or None if the address is unknown."""
        if self.layout.name in ("unaligned", "1-d offset"):
            return False
        if self.producer.boundary:
            return True
        return None if self.address is None else self.address % BOUNDARY == 0

    def off(self, boundary):
        """Return whether the address of element zero is not a multiple of `boundary`."""
        return self.layout.name == "unaligned" if self.address is None else self.address % boundary != 0


class Refusal(NamedTuple):
    """A documented error of one or more consumers.

    Attributes
    ----------
    consumers : tuple of str
    when : callable
        Returns whether a `Cell` is rejected, or None if this depends on the allocator.
    error : type or tuple of type
    message : str
        A regular expression that matches a part of the error's message.
    reason : str
        Reason for the error, as text for docs/matrix.md.
    """

    consumers: tuple
    when: object
    error: type
    message: str
    reason: str


HOST_READERS = ("memoryview", "torch", "jax", "pyarrow", "numba")
DLPACK_READERS = ("numpy.from_dlpack", "torch", "jax", "tvm-ffi", "array_api_strict")
STANDARD = {*NUMBERS} - {"float16"}

# torch supports its own dtypes, if they have a DLPack code. numba supports NumPy's native dtypes, except half precision
# on the CPU and extended precision. jax supports NumPy's numbers, bfloat16 and the float8 types.
TORCH_HAS = {
    *NUMBERS, "bfloat16", "complex32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu",
}  # fmt: skip
NUMBA_HAS_NOT = {"bfloat16", "complex32", *FLOAT8, *EXTENDED, *SWAPPED}


def _off_boundary(cell):
    if cell.empty or cell.on_boundary:
        return False
    return None if cell.on_boundary is None else True


REFUSALS = [
    # Location of the memory.
    Refusal(
        ("numpy.asarray",), lambda c: c.producer.memory == "device", TypeError, "to_host",
        "the host cannot read device USM; `to_host(x)` copies",
    ),
    Refusal(
        HOST_READERS, lambda c: c.producer.memory == "device", BufferError, r"to_host|copy=True|device='cpu'",
        "the host cannot read device USM; `to_host(x)` copies",
    ),
    Refusal(
        ("numpy.from_dlpack", "array_api_strict"), lambda c: c.usm, (RuntimeError, BufferError),
        "nsupported device|DLPack: ",
        "`numpy.from_dlpack` rejects oneAPI devices; use `as_numpy(x)`, or `to_host(x)` for device USM",
    ),
    Refusal(
        ("dpnp",), lambda c: not c.usm, BufferError, "not SYCL USM",
        "dpnp supports only SYCL USM; `to_device(x, 'oneapi:0')` copies",
    ),
    Refusal(
        ("dpctl.memory",), lambda c: not c.usm, ValueError, "does not expose",
        "dpctl supports only SYCL USM; `to_device(x, 'oneapi:0')` copies",
    ),
    Refusal(
        ("numpy.from_dlpack", "array_api_strict"), lambda c: c.layout.name == "negative", BufferError,
        "byte strides .* are negative",
        "`__dlpack__` refuses negative strides, on which torch aborts; use `as_numpy(x)`, or `copy=True`",
    ),
    Refusal(
        ("tvm-ffi",), lambda c: c.layout.name == "negative" and (not c.element.dlpack or c.element.padded), BufferError,
        "byte strides .* are negative|legacy|are not supported",
        "tvm-ffi uses `__dlpack__` for types that its exchange table lacks, and `__dlpack__` refuses negative strides",
    ),
    # Read-only memory.
    Refusal(
        ("torch",), lambda c: c.readonly, BufferError, "read-only",
        "torch does not have read-only tensors; use `copy=True`, or `allow_readonly=True` and do not write",
    ),
    # Strides.
    Refusal(
        ("torch",), lambda c: c.layout.name == "negative", BufferError, "negative strides",
        "torch does not support negative strides; use `copy=True`",
    ),
    Refusal(
        ("pyarrow",), lambda c: not c.layout.contiguous, BufferError, "contiguous",
        "an Arrow buffer must be contiguous; use `x.copy()`",
    ),
    # Element types.
    Refusal(
        DLPACK_READERS, lambda c: not c.element.dlpack, BufferError, "does not have a code|native byte order",
        "DLPack does not have codes for extended precision, dates, strings, records or non-native byte order",
    ),
    Refusal(
        ("tvm-ffi", "jax"), lambda c: c.element.padded, BufferError, "legacy|are not supported",
        "elements of less than a byte are padded; the library requests legacy DLPack capsules, which lack a flag for"
        " padding",
    ),
    Refusal(
        ("numpy.from_dlpack", "array_api_strict"), lambda c: c.element.padded, (RuntimeError, BufferError),
        "lacks a flag for padding|Unsupported dtype",
        "elements of less than a byte are padded; NumPy requests DLPack 1.0, which lacks a flag for padding, and NumPy"
        " releases that request a later version of DLPack do not support these element types",
    ),
    Refusal(
        ("numpy.from_dlpack", "array_api_strict"), lambda c: c.element.name not in NUMBERS, (RuntimeError, BufferError),
        "Unsupported dtype",
        "`numpy.from_dlpack` supports only NumPy's own numbers; `numpy.asarray(x)` also supports types of ml_dtypes",
    ),
    Refusal(
        ("array_api_strict",), lambda c: c.element.name not in STANDARD, TypeError, "dtype",
        "the array API standard does not have the element type",
    ),
    Refusal(
        ("torch",), lambda c: c.element.name == "complex128" and not c.empty and c.off(16),
        BufferError, "16-byte boundaries", "torch requires complex128 to be aligned to 16 bytes; use `copy=True`",
    ),
    Refusal(
        ("torch",), lambda c: c.element.name not in TORCH_HAS, BufferError, "torch: elements of type",
        "torch does not have the element type",
    ),
    Refusal(
        ("memoryview",), lambda c: not c.element.pep3118, BufferError, "PEP 3118",
        "PEP 3118 does not have formats for dates and for the types of ml_dtypes",
    ),
    Refusal(
        ("numba",), lambda c: c.element.name == "float16", BufferError, "numba: compiled functions",
        "numba does not support half precision on the CPU",
    ),
    Refusal(
        ("numba",), lambda c: c.element.name in NUMBA_HAS_NOT or c.element.padded, BufferError,
        "numba: compiled functions",
        "numba does not support types of ml_dtypes, complex32, extended precision and non-native byte order",
    ),
    # jax's requirements.
    Refusal(
        ("jax",), lambda c: c.element.name not in {*NUMBERS, "bfloat16", *FLOAT8}, BufferError, "jax",
        "jax does not have the element type",
    ),
    Refusal(
        ("jax",), lambda c: not c.layout.contiguous, BufferError, "compact",
        "jax supports only compact arrays; use `copy=True`",
    ),
    Refusal(
        ("jax",), _off_boundary, BufferError, "64-byte boundary",
        "jax shares only host memory that is aligned to 64 bytes; use `copy=True`",
    ),
]  # fmt: skip


def refusal_of(cell):
    """Return the first row of REFUSALS that applies to a cell (None if the cell must pass), and whether it is certain.

    The error is not certain if it depends on the alignment of memory from an allocator.
    """
    for refusal in REFUSALS:
        if cell.consumer in refusal.consumers:
            answer = refusal.when(cell)
            if answer or answer is None:
                return refusal, answer is True
    return None, True
