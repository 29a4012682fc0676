"""Each consumer shares the memory of each producer's sparse array, unless the table lists an obstacle."""

import pytest
from matrix.sparse import OBSTACLES, SPARSE_CONSUMERS, SPARSE_PRODUCERS, dense, export, obstacle_of
from sparse_arrays import addresses

import arrayhub as ah

pytestmark = pytest.mark.slow

pytest.importorskip("sparse")
CELLS = [
    pytest.param(producer, format, consumer, id=f"{producer.name}-{format}-{consumer}")
    for producer in SPARSE_PRODUCERS
    for format in producer.formats
    for consumer in SPARSE_CONSUMERS
]


@pytest.mark.parametrize(("producer", "format", "consumer"), CELLS)
def test_export_shares_the_memory_or_raises_as_listed(producer, format, consumer):
    x = ah.assparse(producer.make(format))
    obstacle = obstacle_of(producer, format, consumer)
    assert x.format == format and (x.access == "readwrite") is producer.writeable
    if obstacle is None:
        y = export(x, consumer)
        assert (y.format, addresses(y)) == (format, addresses(x))
        assert producer.writeable or y.access != "readwrite"
    else:
        with pytest.raises(BufferError, match=obstacle.words):
            export(x, consumer)
        if not obstacle.copy:
            with pytest.raises(BufferError, match=obstacle.words):
                export(x, consumer, None)
            return
        y = export(x, consumer, None)
        assert (y.data.ptr == x.data.ptr) is (producer.writeable or consumer != "torch")
    assert dense(y) == dense(x)


def test_every_listed_obstacle_occurs():
    met = {id(obstacle_of(*cell.values)) for cell in CELLS}
    assert {id(row) for row in OBSTACLES} <= met
