"""Kill owners and borrowers of IPC handles of CUDA memory at random times. A GPU is required.

    python tests/gpu/ipc_kills.py [ROUNDS] [SEED] [DEVICE]

The memory is on DEVICE (0 by default), while device 0 is the current device of each process outside of `DEVICE`.
In even rounds, a borrower is killed, and the owner survives. In odd rounds, an owner is killed, and the borrower
survives. One owner and one borrower survive all rounds, and must read correct elements. In the last two rounds,
their processes must not have more open files than at the end of the warm-up rounds. Free device memory must not have
decreased by more than `TOLERANCE` bytes since then.

The main process does not initialize CUDA, because a process forked after the initialization cannot use CUDA.
"""

import multiprocessing
import os
import pickle
import random
import signal
import sys
import time

import cupy

import arrayhub

DEVICE = int(sys.argv[3]) if len(sys.argv) > 3 else 0
SIZE = 1 << 18  # elements
LONGEST = 30e-3  # seconds, maximum delay before a kill
LIMIT = 60  # seconds, timeout for messages
FIRST = 10  # number of warm-up rounds; the last two are the baseline for resource usage
TOLERANCE = 64 << 20  # bytes of free device memory


def forked(function):
    """Run `function(connection)` in a forked process. Return the process id and the other end of the pipe."""
    ours, theirs = multiprocessing.Pipe()
    child = os.fork()
    if child == 0:
        ours.close()
        try:
            function(theirs)
        except EOFError:
            os._exit(0)
        except BaseException as error:
            theirs.send(f"{type(error).__name__}: {error}")
        finally:
            os._exit(1)
    theirs.close()
    return child, ours


def received(connection):
    assert connection.poll(LIMIT), f"no message from the process within {LIMIT} s"
    return connection.recv()


def end(child):
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"process {child} ended before it was killed, with status {status}"


def resources():
    with cupy.cuda.Device(DEVICE):
        return cupy.cuda.runtime.memGetInfo()[0], len(os.listdir("/proc/self/fd"))


def lasting_owner(connection):
    while True:
        with cupy.cuda.Device(DEVICE):
            x = arrayhub.asarray(cupy.zeros(SIZE))
        handle = arrayhub.ipc_handle(x)
        connection.send(pickle.dumps(handle))
        connection.recv()  # wait until the borrower has been killed
        assert handle.borrowers == 0, f"{handle.borrowers} borrowers"
        handle.close(timeout=LIMIT)
        with cupy.cuda.Device(DEVICE):
            a = arrayhub.as_cupy(x)
            a += 1
            assert float(a.min()) >= 1
        del a, x, handle
        connection.send(resources())
        connection.recv()


def short_borrower(connection):
    cupy.zeros(1).sum()
    handle = pickle.loads(connection.recv())

    def use():
        with handle.open() as y, cupy.cuda.Device(DEVICE):
            a = arrayhub.as_cupy(y)
            a += 1
            connection.send(float(a[0]))

    while True:
        use()


def short_owner(connection):
    with cupy.cuda.Device(DEVICE):
        a = cupy.full(SIZE, 3.0)
    handle = arrayhub.ipc_handle(a)
    connection.send(pickle.dumps(handle))
    signal.pause()


def read(handle):
    with handle.open() as y, cupy.cuda.Device(DEVICE):
        a = arrayhub.as_cupy(y)
        for _ in range(20):
            assert float(a.sum()) == 3.0 * SIZE


def lasting_borrower(connection):
    while True:
        handle = pickle.loads(connection.recv())
        read(handle)
        connection.send("open")
        opened = 1
        try:
            while True:
                read(handle)
                opened += 1
        except ConnectionRefusedError:
            connection.send((opened, *resources()))


def check(answer):
    assert not isinstance(answer, str) or answer == "open", answer
    return answer


def main(rounds=1000, seed=0):
    chance = random.Random(seed)
    _, owner = forked(lasting_owner)
    _, borrower = forked(lasting_borrower)
    started, first, opens = time.monotonic(), {}, 0
    for number in range(rounds):
        if number % 2 == 0:
            handle = check(received(owner))
            child, connection = forked(short_borrower)
            connection.send(handle)
            check(received(connection))
            time.sleep(chance.uniform(0, LONGEST))
            end(child)
            owner.send("killed")
            free, files = check(received(owner))
            owner.send("again")
        else:
            child, connection = forked(short_owner)
            borrower.send(check(received(connection)))
            check(received(borrower))
            time.sleep(chance.uniform(0, LONGEST))
            end(child)
            opened, free, files = check(received(borrower))
            opens += opened
        connection.close()
        if number < FIRST:
            first[number % 2] = free, files
        elif number >= rounds - 2:
            before = first[number % 2]
            assert files <= before[1], f"the number of open files rose from {before[1]} to {files}"
            assert free >= before[0] - TOLERANCE, f"free device memory fell from {before[0]} to {free} bytes"
    seconds = time.monotonic() - started
    print(f"{rounds} rounds in {seconds:.0f} s, {opens} borrows from killed owners; no leaks")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
