"""The order in which a copy visits the words of a host array and a device array.

Words are visited in the order of the host's addresses, so that the host accesses its memory sequentially for every
layout. If the device array has another layout, a kernel reorders the words on the device, which has the higher memory
bandwidth. The words that cross the bus are therefore contiguous, unless the kernel itself accesses a host array with gaps.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from arrayhub._core.descriptor cimport PACKED, Descriptor, same_shape, size_of
from arrayhub._core.layout cimport MAX_NDIM
from arrayhub.transfer.loops cimport LARGEST_WORD, RowLoop, copy_rows, row_loop
from arrayhub.transfer.order cimport Dimension, insert, join


# Shape and strides of source and target for the kernel, the slowest axis first. transfer/cuda_kernel.py declares the
# same struct.
cdef struct Walk:
    int64_t axes
    int64_t shape[MAX_NDIM]
    int64_t source_steps[MAX_NDIM]     # bytes
    int64_t target_steps[MAX_NDIM]


# Parameters of a route, for threads that do not hold the GIL.
cdef struct VisitPlan:
    char* host                         # first word of the host array
    char* device                       # first word of the device array
    Py_ssize_t word                    # bytes: a power of two up to 16
    Py_ssize_t words
    bint host_runs                     # whether the host array is contiguous in the iteration order
    bint device_runs                   # whether the device array is contiguous in the iteration order
    int axes
    int64_t shape[MAX_NDIM]
    int64_t host_steps[MAX_NDIM]       # bytes, not negative
    int64_t device_steps[MAX_NDIM]
    int64_t run_steps[MAX_NDIM]        # bytes; strides of contiguous words in the iteration order


cdef class Route:
    """Iteration order of a copy between two arrays of the same shape and element type.

    Parameters
    ----------
    near, far : Descriptor
        Two arrays, both not empty. `near` determines the order. In a copy between host and device, `near` is the host array.
        Creating a route does not access the memory.

    Attributes
    ----------
    word : int
        Size of a word in bytes.
    words : int
        Number of words.
    host_runs, device_runs : bool
        Whether the host array, or the device array, is contiguous in the iteration order.
    straight : bool
        Whether both arrays are contiguous in the iteration order.
    """
    cdef Descriptor near, far          # keep the memory alive
    cdef VisitPlan plan

    def __cinit__(self, Descriptor near, Descriptor far):
        cdef VisitPlan* plan = &self.plan
        cdef Dimension axes[MAX_NDIM + 1]
        cdef Dimension axis
        cdef Py_ssize_t size = near.itemsize_
        cdef size_t bits = LARGEST_WORD
        cdef int k, count = 0
        check_alike(near, far)
        self.near, self.far = near, far
        plan.host, plan.device = near.data_, far.data_
        if near.flags_ & PACKED:
            size = near.nbytes         # packed arrays are always contiguous
        else:
            for k in range(near.nd_):
                axis = Dimension(near.shape_[k], near.byte_strides_[k], far.byte_strides_[k])
                count = insert(axes, count, axis, &plan.host, &plan.device)
        bits |= <size_t> size | <size_t> plan.host | <size_t> plan.device
        for k in range(count):
            bits |= <size_t> axes[k].step | <size_t> axes[k].other
        plan.word = bits & -bits       # largest power of two that divides the size, the addresses and all strides
        axis = Dimension(size // plan.word, plan.word, plan.word)
        if count == 0 or axis.length > 1:
            axes[count] = axis
            count += 1
        plan.axes = join(axes, count)
        if plan.axes > MAX_NDIM:
            raise BufferError(
                f"CUDA: the array has {plan.axes} dimensions that cannot be merged; accepted: at most {MAX_NDIM}. "
                "Call x.copy() first"
            )
        plan.words = 1
        for k in reversed(range(plan.axes)):
            plan.shape[k], plan.host_steps[k], plan.device_steps[k] = axes[k].length, axes[k].step, axes[k].other
            plan.run_steps[k] = plan.words * plan.word
            plan.words *= plan.shape[k]
        plan.host_runs = memcmp(plan.host_steps, plan.run_steps, plan.axes * sizeof(int64_t)) == 0
        plan.device_runs = memcmp(plan.device_steps, plan.run_steps, plan.axes * sizeof(int64_t)) == 0

    @property
    def word(self):
        return self.plan.word

    @property
    def words(self):
        return self.plan.words

    @property
    def host_runs(self):
        return self.plan.host_runs

    @property
    def device_runs(self):
        return self.plan.device_runs

    @property
    def straight(self):
        return bool(self.plan.host_runs and self.plan.device_runs)


cdef Walk walk(VisitPlan* plan, const int64_t* source_steps, const int64_t* target_steps) noexcept nogil:
    cdef Walk made
    made.axes = plan.axes
    memcpy(made.shape, plan.shape, sizeof(plan.shape))
    memcpy(made.source_steps, source_steps, sizeof(plan.shape))
    memcpy(made.target_steps, target_steps, sizeof(plan.shape))
    return made


cdef Walk gather(VisitPlan* plan) noexcept nogil:
    """Return the walk from the device array to contiguous words."""
    return walk(plan, plan.device_steps, plan.run_steps)


cdef Walk scatter(VisitPlan* plan) noexcept nogil:
    """Return the walk from contiguous words to the device array."""
    return walk(plan, plan.run_steps, plan.device_steps)


cdef Walk device_to_host(VisitPlan* plan) noexcept nogil:
    return walk(plan, plan.device_steps, plan.host_steps)


cdef Walk host_to_device(VisitPlan* plan) noexcept nogil:
    return walk(plan, plan.host_steps, plan.device_steps)


cdef void fill_run(VisitPlan* plan, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    """Copy `count` words of the host array, starting at word `first`, to contiguous memory at `run`."""
    if plan.host_runs:
        memcpy(run, plan.host + first * plan.word, count * plan.word)
    else:
        visit(plan, run, first, count, False)


cdef void empty_run(VisitPlan* plan, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    """Copy `count` contiguous words at `run` to the host array, starting at word `first`."""
    if plan.host_runs:
        memcpy(plan.host + first * plan.word, run, count * plan.word)
    else:
        visit(plan, run, first, count, True)


cdef int check_alike(Descriptor near, Descriptor far) except -1:
    """Raise ValueError if the arrays differ in shape, item size or packing, or are empty."""
    if not same_shape(near, far) or near.itemsize_ != far.itemsize_ or size_of(near) <= 0 \
            or near.flags_ & PACKED != far.flags_ & PACKED:
        raise ValueError("Route: the arrays do not match; accepted: the same shape and item size, not empty")
    return 0


cdef void visit(VisitPlan* plan, char* run, Py_ssize_t first, Py_ssize_t count, bint into_host) noexcept nogil:
    """Copy words between the host array and `run`, row by row along the last axis.

    Complete rows along the second-to-last axis are copied in a single call.
    """
    cdef int64_t place[MAX_NDIM]
    cdef const int64_t* shape = plan.shape
    cdef const int64_t* steps = plan.host_steps
    cdef char* memory = plan.host
    cdef RowLoop loop = row_loop(plan.word)
    cdef Py_ssize_t rest = first, here, rows, apart
    cdef int last = plan.axes - 1, k
    for k in range(last, -1, -1):
        place[k] = rest % shape[k]
        rest //= shape[k]
        memory += place[k] * steps[k]
    while count > 0:
        here = min(<Py_ssize_t> (shape[last] - place[last]), count)
        k = last - 1 if last > 0 and here == shape[last] else last
        rows = 1 if k == last else min(<Py_ssize_t> (shape[k] - place[k]), count // here)
        apart = 0 if k == last else steps[k]
        if into_host:
            copy_rows(loop, plan.word, memory, run, rows, here, apart, steps[last], here * plan.word, plan.word)
        else:
            copy_rows(loop, plan.word, run, memory, rows, here, here * plan.word, plan.word, apart, steps[last])
        run += rows * here * plan.word
        count -= rows * here
        rows = here if k == last else rows
        memory += rows * steps[k]
        place[k] += rows
        while k > 0 and place[k] == shape[k]:
            memory += steps[k - 1] - shape[k] * steps[k]
            place[k] = 0
            k -= 1
            place[k] += 1
