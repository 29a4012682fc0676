"""Functions that traverse lists reject lists that are too deep, contain themselves or repeat too many elements."""

import textwrap

import numpy as np
import pytest
from children import python

import arrayhub as ah

pytestmark = pytest.mark.slow

WALKS = """
import ctypes, resource, sys, threading
import numpy as np
import arrayhub as ah

array = ah.asarray(np.zeros(1))
x = ah.asarray(np.zeros(3))
record = ah.asarray(np.zeros(3, [("a", "f8"), ("b", "f8")]))

def assign(target, value):
    target[:] = value

CALLS = {
    "asarray": ah.asarray,
    "asarray with a type": lambda value: ah.asarray(value, dtype="f4"),
    "asarray of times": lambda value: ah.asarray(value, dtype="M8[s]"),
    "asarray of records": lambda value: ah.asarray(value, dtype=[("a", "f8"), ("b", "f8")]),
    "as_numpy": ah.as_numpy,
    "asnested": ah.asnested,
    "assignment": lambda value: assign(x, value),
    "assignment to records": lambda value: assign(record, value),
    "full": lambda value: ah.full((3,), value, "f8"),
    "full of records": lambda value: ah.full((3,), value, [("a", "f8"), ("b", "f8")]),
    "check": ah.check,
    "explain": lambda value: str(ah.explain(value)),
    "debug_repr": ah.debug_repr,
    "convert": lambda value: ah.convert(value, "numpy"),
}

def deep(levels, leaf):
    made = leaf
    for _ in range(levels):
        made = [made]
    return made

def shared(levels, leaf, before=()):
    made = leaf
    for _ in range(levels):
        made = [*before, made, made]
    return made

def itself(before=()):
    made = [*before]
    made += [made, made]
    return made

def dicts():
    made = {}
    made["a"] = [made, made]
    return [made]

KINDS = {
    "deep": lambda leaf: deep(LEVELS, leaf),
    "deep after other lists": lambda leaf: [[leaf], deep(LEVELS, leaf)],
    "deep tuples": lambda leaf: (deep(LEVELS, leaf),),
    "shared": lambda leaf: shared(60, [leaf]),
    "shared after other lists": lambda leaf: shared(60, [leaf], [[]]),
    "shared after values": lambda leaf: shared(60, [leaf], [leaf]),
    "contains itself": lambda leaf: itself(),
    "contains itself after other lists": lambda leaf: itself([[]]),
    "contains itself after values": lambda leaf: itself([leaf]),
    "contains itself after records": lambda leaf: itself([(1.0, 2.0)]),
    "dicts that contain themselves": lambda leaf: dicts(),
}

def go():
    for name, make in KINDS.items():
        for leaf in (1.0, array, (1.0, 2.0), "a", np.datetime64("2020-01-01"), 2**70, object()):
            for call, function in CALLS.items():
                value = make(leaf)
                try:
                    function(value)
                except (TypeError, ValueError, BufferError, OverflowError) as error:
                    assert str(error) and not isinstance(error, UnicodeError), (name, call)
                    error.__traceback__ = None
                except BaseException as error:
                    raise AssertionError((name, leaf, call, repr(error)[:300])) from None
                else:
                    accepted = call in ("check", "explain", "debug_repr")
                    assert accepted, (name, leaf, call)
                del value
"""


@pytest.mark.parametrize("levels", [66, 300])
def test_endless_and_too_deep_lists_are_rejected(levels):
    program = """
        for function in CALLS.values():      # import the modules first, so that they do not count as growth
            try:
                function([(1.0, 2.0)] * 3)
            except (TypeError, ValueError, BufferError, OverflowError):
                pass
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        go()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 200_000, grown      # KiB
    """
    python(WALKS.replace("LEVELS", str(levels)) + textwrap.dedent(program))


def test_deep_list_does_not_exhaust_memory():
    program = """
        for function in CALLS.values():      # import the modules first, so that they do not count as growth
            try:
                function([[1.0], [2.0, 3.0]])
            except (TypeError, ValueError, BufferError):
                pass
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        value = deep(20_000, 1.0)
        for call, function in CALLS.items():
            try:
                function(value)
            except (TypeError, ValueError, BufferError):
                pass
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 20_000, grown
        sys.stdout.flush()
        os._exit(0)      # before 3.12, CPython frees such a list recursively, which may overflow the stack
    """
    python("import os" + WALKS.replace("LEVELS", "9") + textwrap.dedent(program))


@pytest.mark.parametrize("levels", [300, 900, 10_000])
def test_deep_list_in_a_thread_with_a_small_stack_raises(levels):
    program = """
        import os
        failed = []
        def guarded():
            try:
                go()
            except BaseException as error:
                failed.append(error)
        threading.stack_size(256 * 1024)
        KINDS = {name: KINDS[name] for name in ("deep", "deep after other lists", "deep tuples")}
        CALLS = {name: CALLS[name] for name in ("asarray", "as_numpy", "asnested", "assignment", "full", "check")}
        thread = threading.Thread(target=guarded)
        thread.start()
        thread.join()
        assert not failed, failed
        os._exit(0)
    """
    python(WALKS.replace("LEVELS", str(levels)) + textwrap.dedent(program))


def test_lists_of_up_to_numpy_maxdims_are_accepted():
    value = 1.5
    for _ in range(64):
        value = [value]
    assert ah.asarray(value).shape == (1,) * 64
    assert ah.asarray(value).tolist() == value
    with pytest.raises(TypeError, match="more than 64 levels"):
        ah.asarray([value])
    with pytest.raises(TypeError, match="more than 64 levels"):
        ah.zeros(3)[:] = [value]


def test_lists_that_share_their_elements_are_accepted():
    row = [1.0, 2.0]
    assert ah.asarray([row, row]).tolist() == [row, row]
    assert ah.asnested([[row, row], [row]]).to_list() == [[row, row], [row]]
    cell = ah.asarray(np.array([1.0]))
    both = [cell, cell]
    assert ah.asarray([both, both]).tolist() == np.array([[[1.0], [1.0]]] * 2).tolist()
    shared = [0.0]
    for _ in range(18):
        shared = [shared, shared]
    assert ah.asarray(shared).shape == (2,) * 18 + (1,)
    for _ in range(30):
        shared = [shared, shared]
    with pytest.raises(TypeError, match=r"accepted: at most 2\*\*40.*numpy\.broadcast_to"):
        ah.asarray(shared)


@pytest.mark.parametrize("levels", [32, 33, 64])
@pytest.mark.parametrize("call", ["ah.zeros(1)[...] = x", "ah.asarray(x, dtype='f8')", "ah.full((1,), x)"])
def test_lists_with_more_levels_than_numpy_iterates_over_are_rejected(levels, call):
    """Lists of 32 levels and more are rejected, because NumPy's flat iterator supports only 32 dimensions."""
    x = None
    for _ in range(levels):
        x = [x]
    with pytest.raises((TypeError, ValueError)):
        exec(call, {"ah": ah, "x": x})
