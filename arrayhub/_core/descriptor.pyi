from typing_extensions import disjoint_base

PROTOCOL_NAMES: dict[int, str]

@disjoint_base
class Descriptor: ...
