"""`torch._subclasses.functional_tensor`: names of PyTorch's functionalization, which flambeau does not have."""

from __future__ import annotations

from typing import Any

from ..utils._python_dispatch import TorchDispatchMode

_REASON = "flambeau does not functionalize: traces keep operators that write in place"


class FunctionalTensor:
    """A tensor whose writes in place are recorded as new values; there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"FunctionalTensor: {_REASON}")


class FunctionalTensorMode(TorchDispatchMode):
    """The mode that makes functional tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"FunctionalTensorMode: {_REASON}")


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """The tensor in a functional tensor; another one as it is."""
    return tensor


__all__ = ["FunctionalTensor", "FunctionalTensorMode", "mb_unwrap_functional_tensor"]
