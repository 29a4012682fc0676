"""Whose memory it is, at every moment: the collector, finalizers, other threads and failing allocations in between."""

import gc
import subprocess
import sys
import textwrap
import threading
import weakref

import dlpack_by_hand as dl
import numpy as np
import pytest

import arrayhub


def survives(code, *modules):
    """Run `code` in a process of its own, which could end in the middle, and return what it printed."""
    for module in modules:
        pytest.importorskip(module)
    code = textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-3000:]}"
    return done.stdout


def is_held(source):
    """Whether somebody holds a buffer of a bytearray."""
    try:
        source.append(0)
    except BufferError:
        return True
    source.pop()
    return False


# --------------------------------------------------------------------------- somebody asks while the block is made

# Blocks and arrays that are kept use up the free lists, so that what comes next is an allocation, in which the collector
# of CPython 3.11 may run. How many objects it waits for is counted up until it meets the making of the block.
WHILE_A_BLOCK_IS_MADE = """
    import gc, threading
    import numpy, arrayhub

    def meet(ask, view):
        kept = [arrayhub.asarray(bytearray(8))[1:] for _ in range(200)]
        sources = []
        met = 0
        for threshold in range(1, 60):
            source = bytearray(b"arrayhub")
            x = arrayhub.asarray(source)
            inside = []

            def during(phase, info):
                if phase == "start" and not inside:
                    inside.append(None)
                    inside[0] = ask(lambda: view(x))

            gc.collect()
            gc.callbacks.append(during)
            gc.set_threshold(threshold)
            outside = view(x)
            gc.set_threshold(0)
            gc.callbacks.remove(during)
            if inside:
                met += 1
                assert (inside[0].memory if isinstance(inside[0], arrayhub.USMArray) else inside[0]) is x.memory
            assert (outside.memory if isinstance(outside, arrayhub.USMArray) else outside) is x.memory
            del outside, inside, during
            assert bytes(memoryview(x)) == b"arrayhub"
            try:
                source.append(0)
                raise SystemExit(f"threshold {threshold}: the live array has given its buffer back")
            except BufferError:
                pass
            kept.append((x, x.memory))      # else the next round would find what this one freed
            sources.append(source)
        del kept, x
        gc.collect()
        for source in sources:
            source.append(0)
        return met

    print(meet(ask, view))
"""

HERE = """
    def ask(question):
        return question()
"""
IN_ANOTHER_THREAD = """
    def ask(question):
        answers = []
        asker = threading.Thread(target=lambda: answers.append(question()))
        asker.start()
        asker.join()
        return answers[0]
"""


@pytest.mark.parametrize("ask", [HERE, IN_ANOTHER_THREAD], ids=["here", "in another thread"])
@pytest.mark.parametrize("view", ["x.memory", "x[2:]", "x.reshape((2, 4))"])
def test_who_views_the_array_while_its_block_is_made_gets_the_same_block(ask, view):
    tools = textwrap.dedent(ask) + f"view = lambda x: {view}"
    met = int(survives(tools + textwrap.dedent(WHILE_A_BLOCK_IS_MADE)))
    assert met > 0 or sys.version_info >= (3, 12)      # from there on the collector waits until no allocation is under way


# -------------------------------------------------------------------------------------------- allocations that fail

FAILING = """
    import gc, sys
    import _testcapi
    import numpy, arrayhub

    def failures(ask, length):
        count = 0
        for start in range(80):
            source, x = fresh()
            before = sys.getrefcount(source)
            gc.disable()
            _testcapi.set_nomemory(start, start + length)
            try:
                ask(x)
            except MemoryError:
                count += 1
            except SystemError:     # Cython's own, where a MemoryError could not be made
                count += 1
            finally:
                _testcapi.remove_mem_hooks()
            check(source, x, before)
            ask(x)
            check(source, x, before)
            del x
            gc.enable(); gc.collect()
            after(source)
        return count

    """

A_BUFFER = """
    def fresh():
        source = bytearray(b"arrayhub" * 100)
        return source, arrayhub.asarray(source)

    def check(source, x, before):
        try:
            source.append(0)
            raise SystemExit("the live array has given its buffer back")
        except BufferError:
            assert numpy.asarray(x).tobytes() == bytes(source)

    def after(source):
        source.append(0)
"""

A_TENSOR_IN_USM = """
    import dpnp

    def fresh():
        source = dpnp.arange(100, dtype="i4").get_array()
        return source, arrayhub.asarray(source.__dlpack__())

    def check(source, x, before):
        if sys.getrefcount(source) < before:
            raise SystemExit("the live array has given its tensor back")
        assert x.copy().size == 100

    def after(source):
        pass
"""


@pytest.mark.parametrize("length", [1, 1000], ids=["one fails", "all fail from there"])
@pytest.mark.parametrize("question", ["x.memory", "x[3:]", "x.T", "x.base"])
def test_a_failing_allocation_leaves_a_buffer_where_it_was(question, length):
    ask = f"print(failures(lambda x: {question}, {length}))"
    survives(textwrap.dedent(FAILING) + textwrap.dedent(A_BUFFER) + ask, "_testcapi")


@pytest.mark.parametrize("length", [1, 1000], ids=["one fails", "all fail from there"])
def test_a_base_that_fails_for_lack_of_memory_leaves_the_memory_where_it_was(length):
    ask = f"print(failures(lambda x: x.base, {length}))"
    assert int(survives(textwrap.dedent(FAILING) + textwrap.dedent(A_TENSOR_IN_USM) + ask, "_testcapi", "dpnp")) > 0


def test_new_host_memory_is_not_lost_where_its_block_cannot_be_made():
    survives(
        """
        import _testcapi, resource
        import arrayhub

        kept = [arrayhub.zeros((8,), dtype="u1") for _ in range(200)]      # the free lists are empty
        def attempt(start):
            _testcapi.set_nomemory(start, start + 1)
            try:
                arrayhub.empty((50_000_000,), dtype="u1")
            except MemoryError:
                pass
            finally:
                _testcapi.remove_mem_hooks()

        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        for k in range(60):
            for start in range(12):
                attempt(start)
        arrayhub.zeros((1 << 30,), dtype="u1")
        """,
        "_testcapi",
        "resource",
    )
