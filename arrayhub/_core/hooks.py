"""Table of the modules of upper layers that lower layers call.

Modules import only from their own layer and from lower layers. For the modules in this table, a lower layer calls
``hooks.NAME.function(...)``, which imports the module on first use. `nested/array` and `sparse/array` call modules of
their own folder in this way, because those modules import the class.
"""

from importlib import import_module
from typing import Any

# The name that lower layers use, and the module.
UPWARD = {
    "functions": "arrayhub.convert.functions",  # for array/: the import of values
    "containers": "arrayhub.convert.containers",  # for convert/functions, which this module imports
    "inspection": "arrayhub.inspection.methods",  # for array/: pictures and descriptions
    "transport": "arrayhub.transport.pickles",  # for array/, adapters/ and runtimes/: pickles and copies
    "nested_array": "arrayhub.nested.array",  # for _core/: the class of a node
    "nested": "arrayhub.nested.methods",
    "sparse": "arrayhub.sparse.methods",
    "advice": "arrayhub.nested.advice",  # the call that works instead of a refused one
}


class Hooks:
    """Module-like object whose attributes are the modules in `UPWARD`, each imported on first use."""

    def __getattr__(self, name: str) -> Any:
        if name not in UPWARD:
            raise AttributeError(f"hooks.{name} does not exist; accepted: the names in arrayhub._core.hooks.UPWARD")
        module = import_module(UPWARD[name])
        setattr(self, name, module)
        return module


hooks = Hooks()
