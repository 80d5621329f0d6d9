"""Child processes that do not inherit this process's modules (`spawn`, `forkserver`) get the `torch` alias too.

`multiprocessing` sends a child a dict before the child imports the program's main module. An entry of the dict installs
the alias while it is unpickled.
"""

from __future__ import annotations

from multiprocessing import spawn
from typing import Any

from .. import config

_original = spawn.get_preparation_data


class _Call:
    """Pickles as a call of a function without arguments."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        return self.function, ()


def _preparation_data(name: str) -> dict[str, Any]:
    data = _original(name)
    if config.prepare_child is not None:
        # the path comes first: the function's module may be found there only
        data["flambeau"] = _Call(config.prepare_child)
    return data


def install() -> None:
    """Add the entry to what children get."""
    spawn.get_preparation_data = _preparation_data
