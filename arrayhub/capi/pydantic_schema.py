"""pydantic schema for ``Annotated[source, Request(...)]``."""

from typing import Any, get_origin

from arrayhub._core.errors import PASSES_ON
from arrayhub.convert import functions
from arrayhub.inspection.datashape import Pattern

# pydantic-core schema types of elements, keyed by the name of the element type without digits.
_OF_ELEMENTS = {"bool": "bool", "int": "int", "uint": "int", "float": "float", "bfloat": "float"}


def schema_of(request: Any, source: Any, pattern: Pattern | None) -> Any:
    """Return the core schema for ``Annotated[source, request]``.

    Validation returns the value itself, with its labels, if it is of the annotated type `source` and meets the request.
    Otherwise it returns an array of this type, or a USMArray for ``typing.Any``. Errors have the type ``array_request``
    and the message of ``request.asarray``. In JSON, arrays are nested lists. If `pattern`, the type string of the
    request, fixes the number of dimensions, the JSON schema describes lists of this depth, lengths and element types.

    https://docs.pydantic.dev/latest/concepts/types/#customizing-validation-with-__get_pydantic_core_schema__
    """
    from pydantic_core import PydanticCustomError, core_schema

    target = _array_type(source)

    def validate(value: Any) -> Any:
        try:
            array = request.asarray(value)
            is_target = isinstance(target, type) and isinstance(value, target)
            return value if is_target and not array.is_copy else functions.convert(array, target)
        except PASSES_ON:
            raise
        except (TypeError, ValueError, BufferError, OverflowError) as error:
            raise PydanticCustomError("array_request", "{reason}", {"reason": str(error)}) from error

    lists = _schema_of_lists(pattern)
    return core_schema.no_info_plain_validator_function(
        validate,
        json_schema_input_schema=lists,
        serialization=core_schema.plain_serializer_function_ser_schema(
            lambda value: functions.to_host(value).tolist(), return_schema=lists, when_used="json"
        ),
    )


def _schema_of_lists(pattern: Pattern | None) -> Any:
    """Return the schema of nested lists, or of any list if the pattern does not determine the number of dimensions."""
    from pydantic_core import core_schema

    if pattern is None or pattern.leading or not pattern.lengths:
        return core_schema.list_schema()
    # JSON does not have complex numbers.
    leaves: list[Any] = [{"type": _OF_ELEMENTS.get(str(one).rstrip("0123456789"), "any")} for one in pattern.elements]
    schema = leaves[0] if all(leaf == leaves[0] for leaf in leaves) else core_schema.union_schema(leaves)
    for length in reversed(pattern.lengths):
        known = length if isinstance(length, int) else None
        schema = core_schema.list_schema(schema, min_length=known, max_length=known)
    return schema


def _array_type(source: Any) -> Any:
    """Return the target of an annotation for `convert`, such as ``numpy.ndarray`` for ``NDArray[numpy.float64]``."""
    origin = get_origin(source) or source
    while hasattr(origin, "__value__"):  # an alias, as NDArray is since NumPy 2.5
        origin = get_origin(origin.__value__) or origin.__value__
    return "arrayhub" if origin in (Any, object) else origin
