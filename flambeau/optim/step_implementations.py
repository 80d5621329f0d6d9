"""Which implementation of a step PyTorch's optimizers choose, as optimizers of other packages ask for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor.parameter import Parameter
from ..engine.grad_mode import grad_mode, set_grad_enabled

#: the classes of tensors that foreach and fused steps take
_CLASSES = frozenset((Tensor, Parameter))


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The devices for which optimizers choose `torch._foreach_*` by default; the CPU is not among them."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The devices with fused optimizer kernels."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step (self, ...) that runs in grad mode where the optimizer is `differentiable`, and else without."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = grad_mode.get()
        try:
            set_grad_enabled(self.defaults["differentiable"])
            return func(self, *args, **kwargs)
        finally:
            set_grad_enabled(before)

    return step


def _default_to_fused_or_foreach(params: list[Tensor], differentiable: bool, use_fused: bool = False
                                 ) -> tuple[bool, bool]:
    """Whether a step is to be fused, and whether it is to be foreach, where the user says neither.

    >>> import flambeau as torch
    >>> torch.optim.optimizer._default_to_fused_or_foreach([torch.ones(2)], False, use_fused=True)
    (True, False)
    """
    if differentiable:
        return False, False

    def fit(devices: list[str]) -> bool:
        return all(p is None or (type(p) in _CLASSES and p.device.type in devices) for p in params)

    fused = use_fused and fit(_get_fused_kernels_supported_devices()) and all(
        p is None or p.is_floating_point() for p in params)
    foreach = not fused and fit(_get_foreach_kernels_supported_devices())
    return fused, foreach


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The types of devices whose steps can be captured.

    >>> import flambeau as torch
    >>> torch.optim.optimizer._get_capturable_supported_devices(supports_xla=False)
    ['cuda', 'xpu', 'hpu', 'privateuseone']
    """
    return ["cuda", "xpu", "hpu", "privateuseone", *(("xla",) if supports_xla else ())]


__all__ = ["_default_to_fused_or_foreach", "_get_capturable_supported_devices",
           "_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices",
           "_use_grad_for_differentiable"]
