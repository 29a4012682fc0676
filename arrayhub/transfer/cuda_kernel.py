"""CUDA kernel that copies words between any two layouts. cupy compiles the kernel on first use."""

from functools import cache
from importlib.util import find_spec

from arrayhub._core.descriptor import MAX_NDIM
from arrayhub._core.errors import needed
from arrayhub.transfer.cuda_copies import PER_THREAD

# `Walk` is the struct of transfer/cuda_copies.pyx. Source or target may be pinned host memory, which kernels can
# access.
_SOURCE = """
struct Walk {
    long long axes;
    long long shape[MAX_NDIM];
    long long source_steps[MAX_NDIM];
    long long target_steps[MAX_NDIM];
};

/* Integer divisions dominate the time, and 64-bit divisions take several times as long as 32-bit divisions. Each thread
   copies PER_THREAD words, blockDim.x apart, so that the threads of a block access adjacent words. */
#define VISIT(INDEX, WORD)                                                                                           \\
    _Pragma("unroll")                                                                                                \\
    for (int turn = 0; turn < PER_THREAD; ++turn) {                                                                  \\
        const unsigned long long n = begin + turn * blockDim.x;                                                      \\
        if (n >= count) break;                                                                                       \\
        INDEX rest = (INDEX) (first + n);                                                                            \\
        long long from = 0, to = 0;                                                                                  \\
        for (int axis = (int) walk.axes - 1; axis > 0; --axis) {                                                     \\
            const INDEX length = (INDEX) walk.shape[axis], quotient = rest / length;                                 \\
            const long long place = (long long) (rest - quotient * length);                                          \\
            from += place * walk.source_steps[axis];                                                                 \\
            to += place * walk.target_steps[axis];                                                                   \\
            rest = quotient;                                                                                         \\
        }                                                                                                            \\
        from += (long long) rest * walk.source_steps[0];                                                             \\
        to += (long long) rest * walk.target_steps[0];                                                               \\
        *(WORD*) (target + to) = *(const WORD*) (source + from);                                                     \\
    }

#define MOVE(BYTES, WORD)                                                                                            \\
    extern "C" __global__ void move##BYTES(const char* source, char* target, const Walk walk,                        \\
                                           unsigned long long first, unsigned long long count) {                     \\
        const unsigned long long begin = (unsigned long long) blockIdx.x * PER_THREAD * blockDim.x + threadIdx.x;    \\
        bool is_short = first + count <= 0xffffffffu;                                                                \\
        for (int axis = 0; axis < (int) walk.axes; ++axis) is_short = is_short && walk.shape[axis] <= 0xffffffffu;   \\
        if (is_short) {                                                                                              \\
            VISIT(unsigned int, WORD)                                                                                \\
        } else {                                                                                                     \\
            VISIT(unsigned long long, WORD)                                                                          \\
        }                                                                                                            \\
    }

MOVE(1, unsigned char)
MOVE(2, unsigned short)
MOVE(4, unsigned int)
MOVE(8, unsigned long long)
MOVE(16, ulonglong2)
"""


# Constants that the kernel shares with its callers.
_OPTIONS = (f"-DMAX_NDIM={MAX_NDIM}", f"-DPER_THREAD={PER_THREAD}")


@cache
def is_available():
    """Return whether cupy is installed."""
    return find_spec("cupy") is not None


@cache
def _kernel(word):
    cupy = needed("cupy", "to rearrange the elements of CUDA memory on the device")
    return cupy.RawKernel(_SOURCE, f"move{word}", options=_OPTIONS)


@cache
def handle(word, ordinal):
    """Return the driver's handle of the kernel for words of `word` bytes on a device, which cupy does not document."""
    cupy = needed("cupy", "to rearrange the elements of CUDA memory on the device")
    with cupy.cuda.Device(ordinal):
        return _kernel(word).kernel.ptr  # cupy keeps the loaded kernel of each device
