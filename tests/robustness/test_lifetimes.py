"""Arrays keep their memory alive, and release it, despite garbage collection, finalizers and failing allocations."""

import gc
import sys
import textwrap
import tracemalloc
import weakref

import pytest
from children import python

import arrayhub

pytestmark = pytest.mark.slow


def survives(code, *modules):
    """Run `code` in a separate process, because it may crash, and return its output."""
    for module in modules:
        pytest.importorskip(module)
    return python(code)


def is_held(source):
    """Return whether a view holds the buffer of a bytearray, which prevents resizing."""
    try:
        source.append(0)
    except BufferError:
        return True
    source.pop()
    return False


# --------------------------------------------------------------------------- requests while the block is made

# CPython 3.11 may collect garbage during an allocation. The program increases the number of allocations before a
# collection until the collection occurs during the creation of a memory block. It keeps many blocks and arrays, so that
# the free lists are empty and each new block is allocated.
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
            kept.append((x, x.memory))      # the next round must not reuse the objects of this round
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
def test_views_created_during_the_creation_of_a_block_share_it(ask, view):
    tools = textwrap.dedent(ask) + f"view = lambda x: {view}"
    met = int(survives(tools + textwrap.dedent(WHILE_A_BLOCK_IS_MADE)))
    assert met > 0 or sys.version_info >= (3, 12)  # since 3.12, CPython does not collect during an allocation


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
            except SystemError:     # Cython raises this if it cannot create a MemoryError
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


@pytest.mark.parametrize("length", [1, 1000], ids=["one fails", "all later ones fail"])
@pytest.mark.parametrize("question", ["x.memory", "x[3:]", "x.T", "x.base"])
def test_failing_allocation_keeps_the_buffer(question, length):
    ask = f"print(failures(lambda x: {question}, {length}))"
    survives(textwrap.dedent(FAILING) + textwrap.dedent(A_BUFFER) + ask, "_testcapi")


@pytest.mark.parametrize("length", [1, 1000], ids=["one fails", "all later ones fail"])
def test_failing_base_keeps_the_memory(length):
    ask = f"print(failures(lambda x: x.base, {length}))"
    assert int(survives(textwrap.dedent(FAILING) + textwrap.dedent(A_TENSOR_IN_USM) + ask, "_testcapi", "dpnp")) > 0


@pytest.mark.skipif(
    (3, 12) <= sys.version_info < (3, 14),
    reason="CPython 3.12 and 3.13 crash by themselves: tuple(len(v) for v in ((),)) without memory to shrink the tuple",
)
def test_host_memory_is_freed_if_its_block_cannot_be_allocated():
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


# ------------------------------------------------------------------------------------------------ cycles of references


class Exporter(bytearray):
    """Memory with attributes, so that it can refer to its own views in a reference cycle."""

    __hash__ = object.__hash__


class ByDict:
    """A producer whose interface dict refers to the buffer of an `Exporter`."""

    def __init__(self, nbytes):
        self.memory = Exporter(nbytes)
        self.__array_interface__ = {"version": 3, "shape": (nbytes,), "typestr": "|u1", "data": self.memory}


class ByCapsule(Exporter):
    """An `Exporter` whose `__dlpack__` exports a USMArray of its buffer."""

    def __dlpack__(self, **keywords):
        return arrayhub.asarray(self, via="buffer").__dlpack__(**keywords)

    def __dlpack_device__(self):
        return (1, 0)


def shorter(x):
    """Return a view of a view."""
    return x[1:].reshape(-1)[1:]


# Cycles through an ndarray or a capsule are not tested, because the garbage collector does not traverse them.
CYCLES = {
    "a buffer": (Exporter, arrayhub.asarray),
    "the block of a buffer": (Exporter, lambda source: arrayhub.asarray(source).memory),
    "views of a buffer": (Exporter, lambda source: shorter(arrayhub.asarray(source))),
    "a memoryview's buffer": (Exporter, lambda source: arrayhub.asarray(memoryview(source))),
    "a buffer, constructed": (
        Exporter, lambda source: arrayhub.USMArray(len(source), "u1", source),
    ),
    "the buffer in a dict": (ByDict, arrayhub.asarray),
    "a versioned capsule": (ByCapsule, lambda source: arrayhub.asarray(source, via="dlpack")),
    "a legacy capsule": (ByCapsule, lambda source: arrayhub.asarray(source.__dlpack__())),
    "a capsule and views": (ByCapsule, lambda source: shorter(arrayhub.asarray(source, via="dlpack"))),
    "an export of a view": (Exporter, lambda source: memoryview(arrayhub.asarray(source)[2:])),
    "a label": (Exporter, lambda source: arrayhub.asarray(source).with_dims("I")),
    "flags": (Exporter, lambda source: arrayhub.asarray(source).flags),
}  # fmt: skip


@pytest.mark.parametrize("name", CYCLES)
def test_cycle_through_the_owner_is_collected(name):
    make, view = CYCLES[name]
    nbytes = 1_000_000
    alive = weakref.WeakSet()

    def cycle():
        source = make(nbytes)
        source.views = [view(source), view(source)]  # two views, which both refer to the exporter
        alive.add(source)

    cycle()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(20):
            cycle()
            gc.collect()
        assert len(alive) == 0
        assert tracemalloc.get_traced_memory()[0] < nbytes  # 20 cycles were created
    finally:
        tracemalloc.stop()


def test_owner_referenced_elsewhere_is_not_collected():
    source = Exporter(8)
    x = arrayhub.asarray(source)
    source.views = [x, x[1:], x.memory]
    x = arrayhub.asarray(source)
    for _ in range(3):
        gc.collect()
    assert is_held(source)
    assert x.size == 8
    assert all(view is not None for view in source.views)


def test_memory_is_valid_until_collection_ends():
    """Weakref callbacks that run while the collector clears a cycle still read valid memory."""
    out = survives(
        """
        import gc, weakref
        import numpy, arrayhub

        seen = []
        for turn in range(20):
            source = numpy.full(100_000, 7.0)
            x = arrayhub.asarray(source)
            witness = numpy.zeros(1)             # not tracked by the collector, so its weakref calls back
            cycle = [x, witness] if turn % 2 else [witness, x]
            y = x[::2]
            cycle.append(weakref.ref(witness, lambda _, x=x, y=y: seen.append(
                (float(numpy.asarray(x).sum()), float(numpy.asarray(y).sum())))))
            cycle.append(cycle)
            del source, x, y, witness, cycle
            gc.collect()
        print(sorted(set(seen)))
        """
    )
    assert out.strip() in ("[]", "[(700000.0, 350000.0)]")


def test_block_is_not_resurrected_by_its_release():
    survives(
        """
        import weakref
        import dlpack_by_hand as dl
        import arrayhub

        class Asking(dl.Handmade):
            def _delete(self, address):
                super()._delete(address)
                found.append(block())

        found = []
        producer = Asking()
        x = arrayhub.asarray(producer.capsule())
        block = weakref.ref(x.memory)
        del x
        assert found == [None] and producer.deleted == 1
        """
    )


def test_cycle_that_contains_the_memoryview_is_collected():
    """The process does not abort if the collector clears the memoryview before the array that holds its buffer."""
    python(
        textwrap.dedent(
            """
            import gc, io, mmap, pickle, sys, weakref
            import numpy as np
            import arrayhub

            class Node: pass

            class Dict: pass

            complaints, gone = [], []
            sys.unraisablehook = complaints.append

            def by_dict(view):
                d = Dict()
                d.__array_interface__ = {"shape": (64,), "typestr": "|u1", "data": view, "version": 3}
                return arrayhub.asarray(d)

            views = [
                lambda: memoryview(bytearray(64)),
                lambda: memoryview(bytearray(80))[16:],
                lambda: memoryview(bytearray(64)).cast("i").cast("B"),
                lambda: io.BytesIO(bytes(64)).getbuffer(),
                lambda: memoryview(mmap.mmap(-1, 64)),
                lambda: np.zeros(64, "u1").data,
            ]
            takes = [
                arrayhub.asarray,
                by_dict,
                lambda view: arrayhub.USMArray(64, "u1", view),
                lambda view: arrayhub.asarray(arrayhub.asarray(view).data),
                lambda view: memoryview(arrayhub.asarray(view)),
                lambda view: arrayhub.asarray(view)[2:],
                lambda view: arrayhub.asnested(view),
            ]
            made = 0
            for view in views:
                for take in takes:
                    for older in (0, 1):
                        n = Node()
                        if older:
                            n.me = n
                        n.view = p = view()
                        n.array = take(p)
                        n.me = n
                        weakref.finalize(n, gone.append, 1)
                        made += 1
                        del n, p
            gc.collect()
            assert len(gone) == made, (len(gone), made)
            n = Node()
            n.me, n.view = n, memoryview(bytearray(64))
            n.array = arrayhub.asarray(pickle.PickleBuffer(n.view))  # the PickleBuffer holds the memoryview's buffer
            del n
            gc.collect()
            complaints = [c for c in complaints if "memoryview" in str(c.exc_value)]  # BytesIO also complains on 3.13
            assert not complaints, complaints
            """
        )
    )


def test_memoryview_can_be_released_before_its_array():
    """The array holds the buffer itself, not an export of the memoryview, so the memoryview can be released."""
    memory = bytearray(b"abc")
    view = memoryview(memory)
    x = arrayhub.asarray(view)
    assert x.base is view
    view.release()
    assert bytes(x) == b"abc"
    with pytest.raises(BufferError):
        memory.append(1)
    del x
    memory.append(1)
