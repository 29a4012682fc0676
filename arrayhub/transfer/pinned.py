"""What CUDA copies keep between calls: pinned host memory and streams. Bounded, and given back on demand.

Pinned memory takes 0.4 s a GiB to allocate and is taken from everybody else, so there is one block of it, of at most
``settings.buffers() * settings.chunk()`` bytes, and one copy at a time has it. Others wait: the bus is one as well.
"""

import contextlib
import os
import threading

from arrayhub.transfer import settings
from arrayhub.transfer.cuda_lanes import Lane, Pinned


class Pool:
    """The block and the lanes, for one copy at a time (`in_use`)."""

    def __init__(self):
        self.lock = threading.Lock()
        self.user = None  # the thread that holds the lock
        self.unwanted = False  # to be given back by whoever has the lock next, or has it now
        self.block = None
        self.lanes = {}

    def is_mine(self):
        """Whether the calling thread is in the middle of a copy already: a report or a signal handler began another."""
        return self.lock.locked() and self.user == threading.get_ident()

    @contextlib.contextmanager
    def in_use(self):
        """Wait until nobody else copies, and keep others from it."""
        try:
            with self.lock:
                self.user = threading.get_ident()
                try:
                    yield
                finally:
                    self.user = None
        finally:
            if self.unwanted:  # looked at without the lock, so that no release falls between the look and the unlocking
                self.release()

    def memory(self, nbytes, device):
        """Return pinned memory of at least `nbytes`, which is within the bound; None where there is none to be had."""
        if self.block is None or not nbytes <= self.block.nbytes <= bound():
            self.block = None
            with contextlib.suppress(MemoryError, BufferError):
                self.block = Pinned(min(1 << (nbytes - 1).bit_length(), bound()), device)
        return self.block

    def lanes_on(self, device, count):
        """Return so many lanes on a device."""
        lanes = self.lanes.setdefault(device, [])
        while len(lanes) < count:
            lanes.append(Lane(device))
        return lanes[:count]

    def release(self):
        """Give everything back: at once, or when the copy that uses it is done."""
        self.unwanted = True
        if self.lock.acquire(blocking=False):
            try:
                self.block, self.lanes, self.unwanted = None, {}, False
            finally:
                self.lock.release()


def bound():
    """How many bytes of pinned memory the next copy may hold; a block of larger settings is given back then."""
    return settings.buffers() * settings.chunk()


def held():
    """Return the bytes of pinned memory that are held."""
    block = pool.block
    return 0 if block is None else block.nbytes


def release():
    """Give the pinned memory and the streams back: at once, or when the copy that uses them is done."""
    pool.release()


def _start_anew():
    """In the child of a fork: the memory is the parent's, and the lock may be held by a thread that is not there."""
    global pool
    pool = Pool()


pool = Pool()
os.register_at_fork(after_in_child=_start_anew)
