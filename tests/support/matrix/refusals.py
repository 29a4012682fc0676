"""The documented errors of the matrix: cells, error types and reasons.

Each row follows from a fact about a protocol or a library, not from arrayhub's implementation. The error of the first
row that applies to a cell must occur. If it does not occur, the test fails.
"""

from typing import NamedTuple

from .elements import EXTENDED, FLOAT8, NUMBERS, SWAPPED
from .layouts import Layout
from .memory import BOUNDARY


class Cell(NamedTuple):
    """A cell of the matrix, with all that its refusal may depend on.

    Attributes
    ----------
    address : int or None
        Of element zero, where it is known; None in the written table.
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
        """Return whether element zero lies on a 64-byte boundary; None if the address is unknown."""
        if self.layout.name in ("unaligned", "1-d offset"):
            return False
        if self.producer.boundary:
            return True
        return None if self.address is None else self.address % BOUNDARY == 0

    def off(self, boundary):
        """Return whether element zero lies off a boundary."""
        return self.layout.name == "unaligned" if self.address is None else self.address % boundary != 0


class Refusal(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    consumers : tuple of str
    when : callable
        From a `Cell` to whether it is refused; None: the allocator decides.
    error : type
    message : str
        A regular expression that the message contains.
    reason : str
        For docs/matrix.md.
    """

    consumers: tuple
    when: object
    error: type
    message: str
    reason: str


HOST_READERS = ("memoryview", "torch", "jax", "pyarrow", "numba")
DLPACK_READERS = ("numpy.from_dlpack", "torch", "jax", "tvm-ffi", "array_api_strict")
STANDARD = {*NUMBERS} - {"float16"}

# Types of a library: torch's dtypes with a DLPack code; numba types native NumPy dtypes, without half arithmetic
# for the CPU; jax has what ml_dtypes makes of a byte or more.
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
    # Where the memory is.
    Refusal(
        ("numpy.asarray",), lambda c: c.producer.memory == "device", TypeError, "to_host",
        "the host cannot read device USM; `to_host(x)` copies",
    ),
    Refusal(
        HOST_READERS, lambda c: c.producer.memory == "device", BufferError, r"to_host|copy=True",
        "the host cannot read device USM; `to_host(x)` copies",
    ),
    Refusal(
        ("numpy.from_dlpack", "array_api_strict"), lambda c: c.usm, (RuntimeError, BufferError),
        "nsupported device|DLPack: ",
        "NumPy's DLPack reader refuses oneAPI devices; `as_numpy(x)`, or `to_host(x)` for device USM",
    ),
    Refusal(
        ("dpnp",), lambda c: not c.usm, BufferError, "not SYCL USM",
        "dpnp reads SYCL USM only; `to_device(x, 'oneapi:0')` copies",
    ),
    Refusal(
        ("dpctl.memory",), lambda c: not c.usm, ValueError, "does not expose",
        "dpctl reads SYCL USM only; `to_device(x, 'oneapi:0')` copies",
    ),
    # Who may write.
    Refusal(
        ("torch",), lambda c: c.readonly, BufferError, "read-only",
        "torch has no read-only tensors; `copy=True`, or `allow_readonly=True` and no writing",
    ),
    # How the elements lie.
    Refusal(
        ("torch",), lambda c: c.layout.name == "negative", BufferError, "negative strides",
        "torch has no negative strides; `copy=True`",
    ),
    Refusal(
        ("pyarrow",), lambda c: not c.layout.contiguous, BufferError, "contiguous",
        "an Arrow buffer is one run of bytes; `x.copy()`",
    ),
    # What the elements are.
    Refusal(
        DLPACK_READERS, lambda c: not c.element.dlpack, BufferError, "does not have a code",
        "DLPack does not have codes for extended precision, dates, strings, records and foreign byte order",
    ),
    Refusal(
        ("tvm-ffi", "jax"), lambda c: c.element.padded, BufferError, "legacy|jax imports only packed elements",
        "elements of less than a byte, padded to one: only DLPack 1.x has a flag for it, and the library reads legacy"
        " capsules then",
    ),
    Refusal(
        ("numpy.from_dlpack", "array_api_strict"), lambda c: c.element.padded, (RuntimeError, BufferError),
        "lacks a flag for padding|Unsupported dtype",
        "elements of less than a byte, padded to one: only DLPack 1.1 has a flag for it, and NumPy asks for 1.0; later"
        " ones that ask for more do not know the types",
    ),
    Refusal(
        ("numpy.from_dlpack", "array_api_strict"), lambda c: c.element.name not in NUMBERS, (RuntimeError, BufferError),
        "Unsupported dtype",
        "NumPy's DLPack reader knows NumPy's own numbers only; `numpy.asarray(x)` knows ml_dtypes' too",
    ),
    Refusal(
        ("array_api_strict",), lambda c: c.element.name not in STANDARD, TypeError, "dtype",
        "the array API standard has no such type",
    ),
    Refusal(
        ("torch",), lambda c: c.element.name == "complex128" and not c.empty and c.off(16),
        BufferError, "16-byte boundaries", "torch reads complex128 by instructions that need it aligned; `copy=True`",
    ),
    Refusal(
        ("torch",), lambda c: c.element.name not in TORCH_HAS, BufferError, "torch: elements of type",
        "torch has no such element type",
    ),
    Refusal(
        ("memoryview",), lambda c: not c.element.pep3118, BufferError, "PEP 3118",
        "PEP 3118 has no format for ml_dtypes' types and for dates",
    ),
    Refusal(
        ("numba",), lambda c: c.element.name == "float16", BufferError, "numba: compiled functions",
        "numba compiles no half precision for the CPU",
    ),
    Refusal(
        ("numba",), lambda c: c.element.name in NUMBA_HAS_NOT or c.element.padded, BufferError,
        "numba: compiled functions",
        "numba has no arrays of ml_dtypes' types, of complex32, of extended precision and of foreign byte order",
    ),
    # What jax asks besides.
    Refusal(
        ("jax",), lambda c: c.element.name not in {*NUMBERS, "bfloat16", *FLOAT8}, BufferError, "jax",
        "jax has no such element type",
    ),
    Refusal(
        ("jax",), lambda c: not c.layout.contiguous, BufferError, "compact",
        "jax has compact arrays only; `copy=True`",
    ),
    Refusal(
        ("jax",), _off_boundary, BufferError, "64-byte boundary",
        "jax requires host memory aligned to 64 bytes, unless it copies; `copy=True`",
    ),
]  # fmt: skip


def refusal_of(cell):
    """Return the row of the error that a cell must raise, and whether the error is certain; (None, True) for a cell
    that passes."""
    for refusal in REFUSALS:
        if cell.consumer in refusal.consumers:
            answer = refusal.when(cell)
            if answer or answer is None:
                return refusal, answer is True
    return None, True
