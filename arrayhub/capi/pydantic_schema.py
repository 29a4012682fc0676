"""The schema of pydantic for arguments that a `Request` describes."""

from typing import Any, get_origin

from arrayhub._core.errors import PASSES_ON
from arrayhub.convert import functions


def schema_of(request: Any, source: Any) -> Any:
    """Return the core schema for ``Annotated[source, request]``.

    Validation calls ``request.asarray`` and returns an array of the type `source`. Refusals are errors of the type
    ``array_request`` with the words of the request. In JSON, an array is nested lists.

    Parameters
    ----------
    request : Request
        Conditions on the array.
    source : type
        Annotated type: an array type such as ``numpy.ndarray``, `USMArray`, or ``typing.Any``.

    Notes
    -----
    https://docs.pydantic.dev/latest/concepts/types/#customizing-validation-with-__get_pydantic_core_schema__
    """
    from pydantic_core import PydanticCustomError, core_schema

    target = _array_type(source)

    def validate(value: Any) -> Any:
        try:
            array = request.asarray(value)
            return array if target in (Any, object) else functions.convert(array, target)
        except PASSES_ON:
            raise
        except (TypeError, ValueError, BufferError, OverflowError) as error:
            raise PydanticCustomError("array_request", "{reason}", {"reason": str(error)}) from error

    def to_lists(value: Any) -> Any:
        return functions.to_host(value).tolist()

    return core_schema.no_info_plain_validator_function(
        validate,
        json_schema_input_schema=core_schema.list_schema(),
        serialization=core_schema.plain_serializer_function_ser_schema(to_lists, when_used="json"),
    )


def _array_type(source: Any) -> Any:
    """Return the array type of an annotation: ``numpy.ndarray`` of ``NDArray[numpy.float64]``."""
    origin = get_origin(source) or source
    while hasattr(origin, "__value__"):  # an alias, as NDArray is since NumPy 2.5
        origin = get_origin(origin.__value__) or origin.__value__
    return origin
