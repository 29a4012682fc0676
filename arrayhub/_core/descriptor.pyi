from typing_extensions import disjoint_base

MAX_NDIM: int
PROTOCOL_NAMES: dict[int, str]
IN_MESSAGES: dict[int, str]
USM_NAMES: tuple[str | None, ...]

@disjoint_base
class Descriptor: ...

def name_of_elements(a: Descriptor) -> str: ...
