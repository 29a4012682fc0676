"""Layer 6: the class `USMArray` with its views, scalars, assignment and casts."""

import sys
import types
from importlib import import_module


class _Package(types.ModuleType):
    """Module whose call raises an error that names `asarray`, because NumPy has a function ``array``."""

    def __call__(self, *args, **kwargs):
        raise TypeError(
            "arrayhub.array is a module; call arrayhub.asarray(x), or arrayhub.asarray(x, copy=True) to copy"
        )

    def __reduce__(self):
        # cloudpickle pickles a module by reference only if its type is exactly types.ModuleType.
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
