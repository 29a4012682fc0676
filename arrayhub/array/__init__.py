"""Layer 6: the class `USMArray` with its views, scalars, assignment and casts."""

import sys
import types


class _Package(types.ModuleType):
    """Module whose call raises an error that recommends `asarray`, because NumPy has a function ``array``."""

    def __call__(self, *args, **kwargs):
        raise TypeError(
            "arrayhub.array is a module; call arrayhub.asarray(x), or arrayhub.asarray(x, copy=True) to copy"
        )


sys.modules[__name__].__class__ = _Package
