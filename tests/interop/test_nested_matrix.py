"""Each consumer receives the values, type and memory of each producer's nested array, or the documented error."""

import gc
import importlib.util
import re

import pytest
from matrix.nested import CONSUMERS, COPIES, KINDS, PRODUCERS, REFUSALS, is_run, refusal_of

import arrayhub as ah

pytestmark = pytest.mark.slow

CELLS = [
    pytest.param(producer, kind, id=f"{producer.name}-{kind}") for producer in PRODUCERS for kind in producer.kinds
]
LIBRARIES = {row.library for row in (*PRODUCERS, *CONSUMERS)}


@pytest.fixture(autouse=True, scope="module")
def all_libraries():
    missing = [library for library in LIBRARIES if importlib.util.find_spec(library) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    if not pytest.importorskip("dpctl").get_devices():
        pytest.skip("dpctl finds no device")


@pytest.mark.parametrize(("producer", "kind"), CELLS)
def test_every_consumer_accepts_or_rejects_as_documented(producer, kind):
    failures = []
    for consumer in CONSUMERS:
        if kind not in consumer.kinds or not is_run(producer.make(KINDS[kind]).obj, consumer.name):
            continue
        try:
            run_cell(producer, kind, consumer)
        except Exception as error:
            failures.append(f"{producer.name} {kind} -> {consumer.name}: {type(error).__name__}: {error}")
    assert not failures, "\n" + "\n".join(failures)


def run_cell(producer, kind, consumer):
    made = producer.make(KINDS[kind])
    x = ah.asnested(made.obj)
    assert str(x.type) == KINDS[kind].datashape or producer.name == "USM, device"
    made = made._replace(obj=None)
    refusal = refusal_of(producer.name, kind, consumer.name)
    if refusal is not None:
        check_refused(consumer, x, refusal)
    else:
        taken = consumer.take(x)
        del x
        assert consumer.values(taken) == KINDS[kind].values, "the values change after producer and array are released"
        if made.address is not None and consumer.address is not None:
            shares = consumer.address(taken) == made.address
            assert shares == ((consumer.name, kind) not in COPIES), "shares" if shares else "another address"
        del taken
    x = None
    if not made.freed():
        gc.collect()  # libraries may keep reference cycles
    assert made.freed(), "the producer's memory is not freed when the last view dies"


def check_refused(consumer, x, refusal):
    with pytest.raises(refusal.error) as raised:
        consumer.values(consumer.take(x))
    assert re.search(refusal.message, str(raised.value)), str(raised.value)


def test_every_documented_error_occurs():
    met = {
        id(refusal_of(producer.name, kind, consumer.name))
        for producer in PRODUCERS
        for kind in producer.kinds
        for consumer in CONSUMERS
        if kind in consumer.kinds
    }
    assert [row.reason for row in REFUSALS if id(row) not in met] == []
