"""Deviations of libraries on the page docs/conformance.md: a program of a few lines, and the report upstream."""

from typing import NamedTuple


class Deviation(NamedTuple):
    """A rule that a library breaks. The page shows the program, its output, and the issue or the text of a report."""

    distribution: str
    role: str  # "producer" or "consumer"
    rule: str
    program: str
    report: str


READ_ONLY = """
import numpy, torch

a = numpy.ones(3)
a.flags.writeable = False
"""
REQUEST = """
import {package}, numpy


class Producer(numpy.ndarray):
    def __dlpack__(self, **keywords):
        print("max_version" in keywords)
        return super().__dlpack__()


{call}(numpy.ones(3).view(Producer))
"""
CONSUMER = """
import arrayhub, {package}
from arrayhub.testing import check_consumer

arrayhub.sycl_runtime.configure()
report = check_consumer({call}, dtypes=["float64"], layouts=["C"])
print([cell.verdict == "passed" for cell in report.cells if cell.rule == "{rule}"])
"""

DEVIATIONS = (
    Deviation(
        *("torch", "producer", "read-only"),
        READ_ONLY + "print(numpy.from_dlpack(torch.from_numpy(a)).flags.writeable)\n",
        "[pytorch#44027](https://github.com/pytorch/pytorch/issues/44027)",
    ),
    Deviation(
        *("torch", "consumer", "values"),
        "import numpy, torch\n\nprint(torch.as_tensor(memoryview(numpy.ones((0, 4)))).shape)\n",
        "`as_tensor` of a memoryview of shape (0, 4) returns shape (0,).",
    ),
    Deviation(
        *("torch", "consumer", "read-only"),
        READ_ONLY + "torch.from_dlpack(a)[0] = 7\nprint(a)\n",
        "[pytorch#44027](https://github.com/pytorch/pytorch/issues/44027)",
    ),
    Deviation(
        *("jax", "consumer", "request"),
        REQUEST.format(package="jax", call="jax.numpy.from_dlpack"),
        "[jax#40789](https://github.com/jax-ml/jax/issues/40789)",
    ),
    Deviation(
        *("jax", "consumer", "null deleter"),
        CONSUMER.format(package="jax", call="jax.numpy.from_dlpack", rule="null deleter"),
        "`from_dlpack` calls the deleter of a `DLManagedTensor` without a test for null, which `dlpack.h` allows: "
        "`std::bad_function_call`, or a crash.",
    ),
    Deviation(
        *("dpnp", "producer", "agreement"),
        "import arrayhub\n\narrayhub.sycl_runtime.configure()\nimport dpnp\n\nx = dpnp.ones(())\n"
        "print(x.flags.writable, arrayhub.from_dlpack(x).access)\n",
        "`__dlpack__` of a writable array without dimensions sets `DLPACK_FLAG_BITMASK_READ_ONLY`.",
    ),
    Deviation(
        *("dpnp", "consumer", "byte_offset"),
        CONSUMER.format(package="dpnp", call="dpnp.from_dlpack", rule="byte_offset"),
        "`from_dlpack` of a host tensor reads element zero at `data`, and ignores `byte_offset`.",
    ),
    Deviation(
        *("dpnp", "consumer", "null deleter"),
        CONSUMER.format(package="dpnp", call="dpnp.from_dlpack", rule="null deleter"),
        "`from_dlpack` calls the deleter of a `DLManagedTensor` without a test for null, which `dlpack.h` allows, and "
        "crashes.",
    ),
    Deviation(
        *("pyarrow", "producer", "refusal"),
        "import pyarrow\n\ntry:\n    pyarrow.array([1, None]).__dlpack__()\nexcept Exception as error:\n"
        "    print(type(error).__name__, isinstance(error, BufferError))\n",
        "`__dlpack__` raises ArrowTypeError and ArrowNotImplementedError. The array API standard asks for BufferError "
        "([array-api#498](https://github.com/data-apis/array-api/pull/498)).",
    ),
    Deviation(
        *("pyarrow", "consumer", "values"),
        'import numpy, pyarrow\n\nprint(pyarrow.Tensor.from_numpy(numpy.ones(2, ">f8")).to_numpy())\n',
        "`Tensor.from_numpy` reads the bytes of a big-endian array in native order, without an error.",
    ),
    Deviation(
        *("apache-tvm-ffi", "consumer", "request"),
        REQUEST.format(package="tvm_ffi", call="tvm_ffi.from_dlpack"),
        "`from_dlpack` calls `__dlpack__` without `max_version`, so producers cannot mark read-only memory.",
    ),
    Deviation(
        *("apache-tvm-ffi", "consumer", "device"),
        CONSUMER.format(package="tvm_ffi", call="tvm_ffi.from_dlpack", rule="device"),
        "`from_dlpack` imports a capsule of device type 99, which `dlpack.h` does not define.",
    ),
)
