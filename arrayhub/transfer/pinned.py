"""Pool of pinned host memory and streams that CUDA copies keep between calls.

Allocating pinned memory takes 0.4 s per GiB, and pinned memory is not available to other processes. The pool therefore
has a single block of at most ``settings.buffers() * settings.chunk()`` bytes, which is used by one copy at a time.
Waiting for the block costs other copies little, because all copies share the bus.
"""

import contextlib
import threading

from arrayhub.runtimes import call_after_fork
from arrayhub.transfer import settings
from arrayhub.transfer.cuda_copies import ONE_PIECE, Lane, Pinned


class Pool:
    """Block of pinned memory, and lanes. One copy at a time uses them (see `in_use`)."""

    def __init__(self):
        self.lock = threading.Lock()
        self.user = None  # identifier of the thread that holds the lock
        self.block = None
        self.lanes = {}

    def is_mine(self):
        """Return whether the calling thread holds the lock.

        This is the case if a progress function or a signal handler starts a copy during a copy.
        """
        return self.lock.locked() and self.user == threading.get_ident()

    @contextlib.contextmanager
    def in_use(self):
        """Return a context manager that holds the pool's lock. Other copies wait for the lock."""
        with self.lock:
            self.user = threading.get_ident()
            try:
                yield
            finally:
                self.user = None

    def memory(self, nbytes, device):
        """Return pinned memory of at least `nbytes` and at most `bound()` bytes.

        Return None if `nbytes` exceeds the bound, or if the allocation fails. A new block has at least ONE_PIECE bytes,
        unless the bound is smaller, so that small copies do not allocate a block for each size.
        """
        most = bound()
        block = self.block  # another thread may set the attribute to None
        if block is None or not nbytes <= block.nbytes <= most:
            block = self.block = None
            if nbytes <= most:
                with contextlib.suppress(MemoryError, BufferError):
                    block = self.block = Pinned(min(1 << (max(nbytes, ONE_PIECE) - 1).bit_length(), most), device)
        return block

    def lanes_on(self, device, count):
        """Return `count` lanes on a device."""
        lanes = self.lanes.setdefault(device, [])
        while len(lanes) < count:
            lanes.append(Lane(device))
        return lanes[:count]

    def held(self):
        """Return the size of the block in bytes."""
        block = self.block  # another thread may set the attribute to None
        return 0 if block is None else block.nbytes

    def release(self):
        """Release memory and lanes. A copy that uses them keeps them until its end."""
        self.block, self.lanes = None, {}


def bound():
    """Return the maximum size of the block in bytes. The next copy releases a block that exceeds a reduced maximum."""
    return settings.buffers() * settings.chunk()


def _start_anew():
    """Create an empty pool in a forked child.

    The pinned memory belongs to the parent, and the lock may be held by a thread that does not exist in the child.
    """
    global pool
    pool = Pool()


pool = Pool()
call_after_fork(_start_anew)
