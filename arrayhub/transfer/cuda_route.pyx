"""The order in which a copy visits the words of an array in host memory and of one on a device.

It is the order of the host's addresses, so that host memory is walked through once, from its lowest byte to its highest,
whatever the layouts are. Where the device's layout is another one, a kernel sorts the words there, which has the bandwidth
for it. So the words that cross the bus always lie one after the other.
"""

import math

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from arrayhub._core.descriptor cimport PACKED, Descriptor

cdef enum:
    LARGEST_WORD = 16      # bytes: what a device loads at once

ctypedef struct Pair:      # a word of 16 bytes, on any boundary of 8
    uint64_t low
    uint64_t high


cdef class Route:
    """One visit to each word of two arrays of the same shape and element type.

    Parameters
    ----------
    near, far : Descriptor
        The array in host memory and the one that a device reaches, neither of them empty. Nothing is read or written here.
    """

    def __init__(self, Descriptor near not None, Descriptor far not None):
        cdef Py_ssize_t step, other
        cdef int axis, k
        self.near, self.far = near, far
        self.host, self.device = near.data_, far.data_
        axes = []      # (length, step on the host, step on the device), the slowest first
        size = near.itemsize_
        if near.flags_ & PACKED:
            size = near.nbytes         # such arrays are compact
        else:
            for axis in slowest_first(near):
                step, other = near.byte_strides_[axis], far.byte_strides_[axis]
                if step < 0:           # begin at the other end
                    self.host += step * (near.shape_[axis] - 1)
                    self.device += other * (near.shape_[axis] - 1)
                    step, other = -step, -other
                axes.append((near.shape_[axis], step, other))
        self.word = math.gcd(
            LARGEST_WORD, size, <size_t> self.host, <size_t> self.device,
            *[step for _, step, _ in axes], *[other for _, _, other in axes],
        )
        axes = merged([*axes, (size // self.word, self.word, self.word)])
        if len(axes) > MAX_AXES:
            raise BufferError(f"CUDA: the array has {len(axes)} dimensions that no other continues; accepted: {MAX_AXES}")
        self.axes = <int> len(axes)
        self.words = 1
        for k in reversed(range(self.axes)):
            self.shape[k], self.host_steps[k], self.device_steps[k] = axes[k]
            self.run_steps[k] = self.words * self.word
            self.words *= self.shape[k]
        self.host_runs = self.same_steps(self.host_steps)
        self.device_runs = self.same_steps(self.device_steps)

    cdef bint same_steps(self, const int64_t* steps) noexcept:
        cdef int k
        for k in range(self.axes):
            if steps[k] != self.run_steps[k]:
                return False
        return True

    cdef Walk walk(self, const int64_t* source_steps, const int64_t* target_steps) noexcept nogil:
        cdef Walk made
        made.axes = self.axes
        memcpy(made.shape, self.shape, sizeof(self.shape))
        memcpy(made.source_steps, source_steps, sizeof(self.shape))
        memcpy(made.target_steps, target_steps, sizeof(self.shape))
        return made

    cdef Walk gather(self) noexcept nogil:
        """From the array on the device to words one after the other."""
        return self.walk(self.device_steps, self.run_steps)

    cdef Walk scatter(self) noexcept nogil:
        """From words one after the other to the array on the device."""
        return self.walk(self.run_steps, self.device_steps)

    cdef Walk across(self) noexcept nogil:
        """From the array on the device to the one in host memory."""
        return self.walk(self.device_steps, self.host_steps)

    cdef Walk back(self) noexcept nogil:
        """From the array in host memory to the one on the device."""
        return self.walk(self.host_steps, self.device_steps)

    cdef void from_host(self, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
        """Put `count` words of the host's array, from the `first`, one after the other at `run`."""
        if self.host_runs:
            memcpy(run, self.host + first * self.word, count * self.word)
        else:
            visit(self, run, first, count, False)

    cdef void into_host(self, const char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
        """The reverse: words that lie one after the other go to their places in the host's array."""
        if self.host_runs:
            memcpy(self.host + first * self.word, run, count * self.word)
        else:
            visit(self, <char*> run, first, count, True)


cdef list slowest_first(Descriptor a):
    """The dimensions longer than 1, from the largest step to the smallest; repetitions (step 0) before all others."""
    cdef int axis
    return sorted(
        [axis for axis in range(a.nd_) if a.shape_[axis] > 1],
        key=lambda axis: (a.byte_strides_[axis] != 0, -abs(a.byte_strides_[axis]), axis),
    )


cdef list merged(list axes):
    """The same visit with as few axes as possible: one that continues the next on both sides is made one with it."""
    cdef list fewer = []
    length, step, other = axes[0]
    for next_length, next_step, next_other in axes[1:]:
        if step == next_length * next_step and other == next_length * next_other:
            length, step, other = length * next_length, next_step, next_other
        elif next_length > 1:
            fewer.append((length, step, other))
            length, step, other = next_length, next_step, next_other
    fewer.append((length, step, other))
    return fewer


cdef void visit(Route route, char* run, Py_ssize_t first, Py_ssize_t count, bint into_host) noexcept nogil:
    """Go through the host's array along its last axis, and step to the next row at its end."""
    cdef int64_t place[MAX_AXES]
    cdef const int64_t* shape = route.shape
    cdef const int64_t* steps = route.host_steps
    cdef char* memory = route.host
    cdef Py_ssize_t rest = first, here
    cdef int last = route.axes - 1, k
    for k in range(last, -1, -1):
        place[k] = rest % shape[k]
        rest //= shape[k]
        memory += place[k] * steps[k]
    while count > 0:
        here = min(<Py_ssize_t> (shape[last] - place[last]), count)
        if into_host:
            row(memory, steps[last], run, route.word, here, route.word)
        else:
            row(run, route.word, memory, steps[last], here, route.word)
        run += here * route.word
        count -= here
        memory += here * steps[last]
        place[last] += here
        k = last
        while k > 0 and place[k] == shape[k]:
            memory += steps[k - 1] - shape[k] * steps[k]
            place[k] = 0
            k -= 1
            place[k] += 1


cdef void row(char* to, Py_ssize_t to_step, const char* source, Py_ssize_t source_step, Py_ssize_t count,
              Py_ssize_t word) noexcept nogil:
    """Copy `count` words; both sides begin on a boundary of the word, and step by multiples of it."""
    cdef Py_ssize_t k
    if to_step == word and source_step == word:
        memcpy(to, source, count * word)
    elif word == 16:
        for k in range(count):
            (<Pair*> (to + k * to_step))[0] = (<const Pair*> (source + k * source_step))[0]
    elif word == 8:
        for k in range(count):
            (<uint64_t*> (to + k * to_step))[0] = (<const uint64_t*> (source + k * source_step))[0]
    elif word == 4:
        for k in range(count):
            (<uint32_t*> (to + k * to_step))[0] = (<const uint32_t*> (source + k * source_step))[0]
    elif word == 2:
        for k in range(count):
            (<uint16_t*> (to + k * to_step))[0] = (<const uint16_t*> (source + k * source_step))[0]
    else:
        for k in range(count):
            (<uint8_t*> (to + k * to_step))[0] = (<const uint8_t*> (source + k * source_step))[0]
