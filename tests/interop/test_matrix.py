"""Each array of a producer is exported to each consumer, or rejected with the error that refusals.py documents.

A cell of the matrix is a producer, an element type, a layout and a consumer. Each test runs one producer, element type
and layout with all consumers, and creates a new array for each consumer.
"""

import gc
import importlib.util
import re
import time

import pytest
from matrix.consumers import CONSUMERS
from matrix.elements import ELEMENTS
from matrix.layouts import LAYOUTS
from matrix.memory import peek, span, watch
from matrix.producers import PRODUCERS, installed
from matrix.refusals import REFUSALS, Cell, refusal_of
from matrix.table import PAGE, cells, written
from numpy_release import needs_dlpack_1

import arrayhub as ah

pytestmark = pytest.mark.slow


def _can_import(library):
    return library is None or importlib.util.find_spec(library) is not None


ROWS = [
    pytest.param(producer, ELEMENTS[element], LAYOUTS[layout], id=f"{producer.name}-{element}-{layout}")
    for producer in PRODUCERS
    for element, layout in producer.pairs()
]


@pytest.mark.parametrize(("producer", "element", "layout"), ROWS)
def test_every_consumer_views_or_rejects_as_documented(producer, element, layout):
    if not installed(producer):
        pytest.skip(f"{producer.library} is not installed")
    failures = []
    for consumer in CONSUMERS:
        if not _can_import(consumer.library):
            continue
        cell = Cell(producer, element, layout, consumer.name)
        try:
            run_cell(cell, consumer)
        except Exception as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            failures.append(f"{producer.name} {element.name} {layout.name} -> {consumer.name}: {kind}{error}")
    assert not failures, "\n" + "\n".join(failures)


def run_cell(cell, consumer):
    """Test one producer, type and layout with one consumer."""
    made = cell.producer.make(cell.element, cell.layout)
    freed = watch(made.root)
    close = made.close
    made.root = None
    array = ah.asarray(made.obj)
    check_array(array, made, cell)
    refusal, _ = refusal_of(cell._replace(address=array.ptr))
    if refusal is None:
        taken = taken_by(consumer, array)
        check_taken(consumer, taken, array, made, cell)
        # The consumer's array alone must keep the memory alive.
        del array
        made.obj = None
        if not consumer.whole_reach:
            assert consumer.values(taken) == made.values, "the values change after producer and USMArray are released"
        if consumer.write is not None and made.access == "readwrite" and made.values:
            check_write(consumer, taken, made, cell.element.bits_as.itemsize)
        del taken
    else:
        check_refused(consumer, array, refusal)
        del array
        made.obj = None
    if not freed():
        gc.collect()  # libraries may keep reference cycles; arrayhub does not
    for _ in range(500):
        if freed():
            break
        time.sleep(0.01)  # jax's threads release the memory slightly later
    assert freed(), "the producer is not freed when the last view dies"
    close()


def check_array(array, made, cell):
    """Check that the imported array has the shape, access, type and memory of the producer's array."""
    assert array.shape == made.shape, f"shape {array.shape}, the producer has {made.shape}"
    assert array.access == made.access, f"access {array.access}, the producer's is {made.access}"
    assert array.itemsize == cell.element.bits_as.itemsize
    if cell.element.dtype is not None:
        assert array.dtype == cell.element.dtype, f"dtype {array.dtype}"
    if made.values:
        assert made.address is None or array.ptr == made.address, "the address differs from the producer's"
        assert array.byte_strides == made.byte_strides, f"byte strides {array.byte_strides}"


def taken_by(consumer, array):
    try:
        return consumer.take(array)
    except Exception as error:
        raise AssertionError(f"refused, and refusals.py lacks a row for {type(error).__name__}: {error}") from error


def check_taken(consumer, taken, array, made, cell):
    """Check that the consumer's array has the same memory, type and access as `array`."""
    low, high = span(made.shape, made.byte_strides, cell.element.bits_as.itemsize)
    if made.values:
        expected = array.ptr + (low if consumer.whole_reach else 0)
        assert consumer.address(taken) == expected, f"address {consumer.address(taken):#x}, not {expected:#x}"
    if consumer.whole_reach:
        assert consumer.values(taken)[: high - low] == peek(array.ptr + low, high - low), "other bytes"
    else:
        assert consumer.values(taken) == made.values, "other values"
    dtype = consumer.dtype(taken) if consumer.dtype is not None else None
    if dtype is not None:
        assert dtype == (cell.element.name if isinstance(dtype, str) else cell.element.dtype), f"dtype {dtype}"
    if consumer.readonly is not None and made.values:  # an array without elements may have either access
        expected = made.access != "readwrite"
        assert consumer.readonly(taken) is expected, f"read-only is {not expected} in the consumer"


def check_write(consumer, taken, made, itemsize):
    """Check that the consumer's writes reach the producer."""
    assert any(peek(made.address, itemsize)), "the first element is zero already, so the write cannot be detected"
    consumer.write(taken)
    assert not any(peek(made.address, itemsize)), "the consumer's write does not reach the producer's memory"


def check_refused(consumer, array, refusal):
    """Check that the consumer raises the documented error."""
    try:
        consumer.take(array)
    except refusal.error as error:
        message = str(error)
    except Exception as error:
        raise AssertionError(
            f"{type(error).__name__}: {error}; documented: {refusal.error}: {refusal.reason}"
        ) from error
    else:
        raise AssertionError(f"accepted, but documented as rejected: {refusal.reason}")
    assert re.search(refusal.message, message), f"message {message!r} lacks {refusal.message!r}"


@needs_dlpack_1  # without DLPack 1.0, two consumers and two producers are missing
def test_page_equals_the_tables():
    call = "PYTHONPATH=.:tests/support python -m tests.support.matrix"
    assert PAGE.read_text() == written(), f"docs/matrix.md differs from the tables; write it with: {call}"


@needs_dlpack_1
def test_every_documented_error_occurs():
    """Each row of refusals.py applies to one or more cells."""
    met = {id(refusal_of(cell)[0]) for cell in cells()}
    unmet = [refusal.reason for refusal in REFUSALS if id(refusal) not in met]
    assert not unmet
