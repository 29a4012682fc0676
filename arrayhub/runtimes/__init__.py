"""Layer 2: the SYCL and CUDA runtimes, used to identify pointers and to synchronize queues and streams.

This file has what differs between operating systems in Python code. For C code, `_core/platform.h` has it.
"""

import os
import sys
from collections.abc import Callable

# File names of the libraries that are loaded on first use.
if sys.platform == "win32":
    CUDA_FILE, OPENCL_FILE, LEVEL_ZERO_FILE = "nvcuda.dll", "OpenCL.dll", "ze_loader.dll"
    DPCTL_FILE = "DPCTLSyclInterface.dll"
else:
    CUDA_FILE, OPENCL_FILE, LEVEL_ZERO_FILE = "libcuda.so.1", "libOpenCL.so.1", "libze_loader.so.1"
    DPCTL_FILE = "libDPCTLSyclInterface.so"


def call_after_fork(function: Callable[[], object]) -> None:
    """Call a function in each forked child. Windows does not have fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
