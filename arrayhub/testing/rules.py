"""Run the rules for producers or consumers."""

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from arrayhub._core.errors import first_line
from arrayhub.testing.report import FAILED, NOT_MADE, PASSED, REFUSED
from arrayhub.testing.samples import bytes_of, combine, sample

DLPACK_C = "https://dmlc.github.io/dlpack/latest/c_api.html"
DLPACK_PYTHON = "https://dmlc.github.io/dlpack/latest/python_spec.html"
STANDARD = "https://data-apis.org/array-api/latest/API_specification/generated/array_api.array"
ARRAY_INTERFACE = "https://numpy.org/doc/stable/reference/arrays.interface.html"
BUFFER = "https://docs.python.org/3/c-api/buffer.html"


class Broken(Exception):
    """The library breaks the rule. The message states how."""


class Refused(Exception):
    """The library rejects the array, which the rule allows."""


class NotMade(Exception):
    """The library does not have this element type or layout, or the rule does not apply to it."""


class Sample:
    """Expected values, shape and dtype of a sample array, addresses of its memory, and a reference to its owner."""

    def take(self, dtype: str, layout: str) -> Any:
        """Return a new sample array, and store its description."""
        found = sample(dtype, layout)
        if found is None:
            raise NotMade("ml_dtypes is not installed")
        given, owner = found
        self.values, self.shape, self.dtype = bytes_of(given), given.shape, given.dtype
        self.span = range(owner.ctypes.data, owner.ctypes.data + owner.nbytes)
        self.owner = weakref.ref(owner)
        return given


def judge_rule(rule: Callable[..., None], *arguments: Any) -> tuple[str, str]:
    """Return the verdict of one rule, and the reason."""
    try:
        rule(*arguments)
    except Broken as error:
        return FAILED, str(error)
    except Refused as error:
        return REFUSED, str(error)
    except NotMade as error:
        return NOT_MADE, str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return FAILED, words_of(error)
    return PASSED, ""


def is_released(owner: Callable[[], Any]) -> bool:
    """Wait up to two seconds for the release of a weakly referenced object, and return whether it was released.

    The wait is needed because jax releases objects later, in its own threads.
    """
    for _ in range(100):
        gc.collect()
        if owner() is None:
            return True
        time.sleep(0.02)
    return False


def words_of(error: BaseException) -> str:
    """Return the type and the first line of an error."""
    return f"{type(error).__name__}: {first_line(error)}"


def run_cells(
    rules: Any,
    function: Any,
    dtypes: tuple[str, ...],
    layouts: tuple[str, ...],
    first: int,
    fatal: list[list[str]],
) -> Iterator[tuple[str, str]]:
    """Test the cells from index `first` on. Yield the verdict and the reason for each cell."""
    cells = [(rule, check, dtype, layout) for dtype, layout in combine(dtypes, layouts) for rule, check in rules]
    for rule, check, dtype, layout in cells[first:]:
        if (rule.name, layout) in map(tuple, fatal):
            yield NOT_MADE, "not tried, because the process ended for another element type"
        else:
            yield judge_rule(check, function, dtype, layout)
