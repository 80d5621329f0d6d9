"""`torch.fft`: the names of functions `fft_*`, without the prefix."""

from __future__ import annotations

from typing import Any

from ._tensor import Tensor as Tensor  # PyTorch lists it in `__all__`
from ._tensor import functions


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        function = getattr(functions, "fft_" + name, None)
        if function is not None:
            globals()[name] = function
            return function
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(name.removeprefix("fft_") for name in dir(functions) if name.startswith("fft_"))
