from typing import Any

def __getattr__(name: str) -> Any: ...  # only the package itself imports this module
