"""Conformance tests of the array protocols for other libraries: `check_producer` and `check_consumer`."""

from arrayhub.testing.consumer import check_consumer
from arrayhub.testing.producer import check_producer
from arrayhub.testing.report import Cell, Report, Rule

__all__ = ["Cell", "Report", "Rule", "check_consumer", "check_producer"]


def __dir__() -> list[str]:
    return __all__
