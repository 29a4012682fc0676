"""Kill owners and borrowers of IPC handles at random moments, and check that no resources leak.

    python tests/support/ipc_kills.py [ROUNDS] [SEED]

Each round forks a process, and ends it with SIGKILL. The process is a borrower in even rounds, and an owner in odd
rounds.
"""

import os
import pickle
import random
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

import arrayhub
from arrayhub.transport import ipc_server

SHAPE = (64, 64)
LONGEST = 4e-3  # maximum seconds before a kill
LIMIT = 30  # seconds after which a process counts as hanging


def forked(function, *arguments):
    """Run a function in a forked process. Return the process id."""
    child = os.fork()
    if child == 0:
        try:
            function(*arguments)
        finally:
            os._exit(1)
    return child


def end(child):
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"process {child} ended before it was killed, with status {status}"


def borrow_again_and_again(handle, started):
    os.write(started, b"x")
    while True:
        with handle.open() as y:
            np.asarray(y)[0] += 1


def own(writer):
    x = arrayhub.full(SHAPE, 3.0, memory="shared_memory")
    stream = pickle.dumps(arrayhub.ipc_handle(x))
    os.write(writer, len(stream).to_bytes(4, "little") + stream)
    signal.pause()


def kill_a_borrower(moment):
    """Kill a borrower after `moment` seconds. Return whether the borrower had the handle open."""
    x = arrayhub.zeros(SHAPE, memory="shared_memory")
    handle = arrayhub.ipc_handle(x)
    reader, writer = os.pipe()
    child = forked(borrow_again_and_again, handle, writer)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    time.sleep(moment)
    seen = handle.borrowers
    end(child)
    assert handle.borrowers == 0
    handle.close(timeout=LIMIT)
    assert len(set(np.asarray(x)[0])) == 1 or np.asarray(x)[0].std() <= 0.5  # the kill interrupts at most one write
    return seen > 0


def kill_an_owner(moment):
    """Kill an owner after `moment` seconds. Return whether this process opened the owner's handle before the kill."""
    reader, writer = os.pipe()
    child = forked(own, writer)
    os.close(writer)
    with open(reader, "rb") as stream:
        handle = pickle.loads(stream.read(int.from_bytes(stream.read(4), "little")))
    killer = threading.Timer(moment, end, [child])
    killer.start()
    opened = 0
    try:
        while True:
            with handle.open() as y:
                if opened > 20:  # keep the handle open until the owner is killed
                    killer.join()
                assert (np.asarray(y) == 3).all()
                opened += 1
    except ConnectionRefusedError:
        pass
    killer.join()
    name = handle._description.server
    assert name not in Path("/proc/net/unix").read_text()
    return opened > 0


def left_over():
    """Wait until the server has released all handles and borrows. Return the counts of resources of this process."""
    server = ipc_server.server()
    deadline = time.monotonic() + LIMIT
    while (server.entries or threading.active_count() > 2) and time.monotonic() < deadline:
        time.sleep(0.01)
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "mappings": Path("/proc/self/maps").read_text().count("memfd:arrayhub"),
        "handles": len(server.entries),
        "threads": threading.active_count(),
        "names": sum("arrayhub" in name for name in os.listdir("/dev/shm")),
    }


def main(rounds=1000, seed=0):
    chance = random.Random(seed)
    kill_a_borrower(0), kill_an_owner(0)  # start the server, and import all modules, before resources are counted
    before, hits = left_over(), [0, 0]
    for number in range(rounds):
        function = (kill_a_borrower, kill_an_owner)[number % 2]
        hits[number % 2] += function(chance.uniform(0, LONGEST))
    after = left_over()
    assert after == before, f"{before} became {after}"
    killed = f"{hits[0]} borrowers with an open handle, {hits[1]} owners whose handle had been opened"
    print(f"{rounds} rounds; killed: {killed}; no leaks")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
