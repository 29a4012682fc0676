"""Functions of this folder that lower layers and the class USMArray call through `_core/hooks`."""

from arrayhub.transport.padding import padded_copy
from arrayhub.transport.pickles import reduce, register_reduction
from arrayhub.transport.tokens import token

__all__ = ["padded_copy", "reduce", "register_reduction", "token"]
