"""Import an object to describe it: without a copy, and without reading queries and streams.

Reading would consume the stream, which can be read only once, or run the query.
"""

from functools import partial
from typing import Any

from arrayhub._core.copying import VIEW
from arrayhub._core.errors import PASSES_ON, Refusal, TypeRefusal, show
from arrayhub._core.hooks import hooks
from arrayhub.adapters.arrow import unread
from arrayhub.adapters.table import BY_VIA
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import import_unadvised, protocols_of_type
from arrayhub.inspection.texts import attempt


def import_view(obj: Any, function: str) -> Any:
    """Return `obj` as a USMArray, or as a NestedArray or a SparseArray if it is not dense.

    Errors about streams and copies name the public `function`.
    """
    besides = array_besides(obj, function)
    if besides is not None:
        return besides
    try:
        return import_unadvised(obj)
    except (BufferError, TypeError) as error:
        for view in (hooks.sparse.import_or_none, partial(hooks.nested.import_nested, copy=VIEW)):
            array = attempt(view, obj)[0]
            if array is not None:
                return array
        source = hooks.advice.import_source(obj)
        if source.copied:
            why = f"{show(obj)} does not have memory that {function} can view, only values to copy"
            call = hooks.advice.advise(obj, "arrayhub", source).call
            raise TypeRefusal(function, why, call=call and f"arrayhub.{function}({call})") from error
        raise hooks.advice.complete_refusal(error, obj, "arrayhub") from error.__cause__


def array_besides(obj: Any, function: str) -> USMArray | None:
    """Import a stream or a query through a protocol other than Arrow. Return None for all other objects.

    Raise Refusal, in the name of the public `function`, if no other protocol of `obj` returns an array.
    """
    kind = unread(obj)
    if kind is None:
        return None
    array = import_unread(obj)
    if array is None:
        call = f"arrayhub.{function}(arrayhub.asnested(x, copy=True))"
        raise Refusal(function, f"{type(obj).__name__} is {kind}", "objects that can be read repeatedly", call)
    return array


def import_unread(obj: Any) -> USMArray | None:
    """Import a stream or a query through the first protocol other than Arrow that succeeds, or return None."""
    protocol: Any
    for protocol in protocols_of_type(type(obj))[1]:
        if protocol in BY_VIA and protocol != "arrow":
            try:
                return import_unadvised(obj, via=protocol)
            except PASSES_ON:
                raise
            except Exception:
                continue
    return None
