"""`torch.amp.GradScaler`: scaled losses; the step unscales gradients, and is skipped where they overflow."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy as np

from .. import devices, dtypes
from .._tensor import Tensor, functions, no_grad
from .._tensor.dispatch.handlers import host_elements

_FIX = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."


class OptState(Enum):
    """How far the iteration of an optimizer is."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _amp_foreach_non_finite_check_and_unscale_(self: Any, found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply tensors by `inv_scale`, in place; set `found_inf` to 1 if an element is not finite."""
    if inv_scale.numel() != 1:
        raise RuntimeError("inv_scale must be a 1-element tensor.")
    if found_inf.numel() != 1:
        raise RuntimeError("found_inf must be a 1-element tensor.")
    if found_inf.dtype is not dtypes.float32:
        raise RuntimeError("found_inf must be a float tensor.")
    if found_inf.is_cuda:
        _unscale_on_device([x for x in self if x.numel()], found_inf, inv_scale)
        return
    scale = float(inv_scale.item())
    with no_grad():
        for x in self:
            if not bool(np.isfinite(dtypes.widen(host_elements(x))).all()):
                found_inf.fill_(1.0)
            if scale != 1.0:
                x.mul_(scale)


@no_grad()
def _unscale_on_device(grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """`_amp_foreach_non_finite_check_and_unscale_` of tensors on a device, for which the host does not wait."""
    if not grads:
        return
    inv_scale = inv_scale.to(found_inf.device)
    # the largest magnitude is infinite, or NaN, where an element is
    largest = [functions.linalg_vector_norm(x.detach(), float("inf"), dtype=_real(x)) for x in grads]
    finite = functions.isfinite(functions.stack([each.to(dtypes.float64) for each in largest])).all()
    found_inf.copy_(functions.where(finite, found_inf, 1.0))
    for x in grads:
        if x.dtype.itemsize < 4:  # the scale has no exact value in such dtypes
            x.copy_(x.float() * inv_scale)
        else:
            x.mul_(inv_scale)


def _real(x: Tensor) -> Any:
    """The dtype of a tensor's magnitudes, float32 or wider."""
    return dtypes.float64 if x.dtype in (dtypes.float64, dtypes.complex128) else (
        dtypes.complex64 if x.dtype is dtypes.complex64 else dtypes.float32)


def _amp_update_scale_(self: Tensor, growth_tracker: Tensor, found_inf: Tensor, scale_growth_factor: float,
                       scale_backoff_factor: float, growth_interval: int) -> Tensor:
    """Shrink the scale if an infinite gradient was found; grow it after `growth_interval` steps without one."""
    if growth_tracker.numel() != 1:
        raise RuntimeError("growth_tracker must be a 1-element tensor.")
    if found_inf.item():
        self.mul_(scale_backoff_factor)
        growth_tracker.fill_(0)
        return self
    successful = int(growth_tracker.item()) + 1
    if successful == growth_interval:
        grown = np.float32(self.item()) * np.float32(scale_growth_factor)
        if np.isfinite(grown):
            self.fill_(float(grown))
        successful = 0
    growth_tracker.fill_(successful)
    return self


class GradScaler:
    """Scales losses so that gradients in float16 do not vanish.

    Each iteration: `scaler.scale(loss).backward()`, `scaler.step(optimizer)`, `scaler.update()`. A step whose
    gradients are not finite is skipped, and the scale is reduced.

    Args:
        device: "cpu" or "cuda"; without a CUDA device it warns and does nothing.
        init_scale: the first scale.
        growth_factor: factor of the scale after `growth_interval` steps without overflow.
        backoff_factor: factor of the scale after an overflow.
        growth_interval: see `growth_factor`.
        enabled: False: losses and steps are passed through.

    >>> import flambeau as torch
    >>> weight = torch.nn.Parameter(torch.ones(1))
    >>> optimizer, scaler = torch.optim.SGD([weight], 0.5), torch.amp.GradScaler("cpu")
    >>> scaler.scale(weight.sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.item()
    0.5
    """

    __module__ = "torch.amp.grad_scaler"

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True) -> None:
        self._device, self._enabled = device, enabled
        if device == "cuda" and enabled and devices.current_cuda() is None:
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        assert growth_factor > 1.0, "The growth factor must be > 1.0."
        assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
        self._init_scale, self._growth_factor = init_scale, growth_factor
        self._backoff_factor, self._growth_interval = backoff_factor, growth_interval
        self._init_growth_tracker = 0
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        assert self._scale is not None, f"Attempted {funcname} but _scale is None.  {_FIX}"
        assert self._growth_tracker is not None, f"Attempted {funcname} but _growth_tracker is None.  {_FIX}"
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        assert self._growth_tracker is None, "_growth_tracker initialized before _scale"
        self._scale = functions.full((), self._init_scale, dtype=dtypes.float32, device=dev)
        self._growth_tracker = functions.full((), self._init_growth_tracker, dtype=dtypes.int32, device=dev)

    def scale(self, outputs: Any) -> Any:
        """A loss, or nested losses, times the scale.

        Raises:
            ValueError: neither a tensor nor an iterable.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            scale: Any = self._scale
            return outputs * (scale if scale.device == outputs.device else scale.to(outputs.device))
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor,
                        allow_fp16: bool) -> dict[Any, Tensor]:
        grads = []
        for group in optimizer.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if grad.is_sparse and grad.dtype is dtypes.float16:  # the sum of duplicates may overflow
                    grad = param.grad = grad.coalesce()
                grads.append(grad._values() if grad.is_sparse else grad)
        by_device: dict[Any, list[Tensor]] = {}
        for grad in grads:
            by_device.setdefault(grad.device, []).append(grad)
        found = {}
        for device, group in by_device.items():
            found[device] = found_inf if found_inf.device == device else found_inf.to(device)
            _amp_foreach_non_finite_check_and_unscale_(group, found[device], inv_scale)
        return found

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once for each step.

        Raises:
            RuntimeError: they are unscaled already, or the step is done.
            ValueError: a gradient in float16.
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        of_optimizer = self._per_optimizer_states[id(optimizer)]
        if of_optimizer["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if of_optimizer["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inv_scale = scale.double().reciprocal().float()
        found_inf = functions.full((), 0.0, dtype=dtypes.float32, device=scale.device)
        of_optimizer["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        of_optimizer["stage"] = OptState.UNSCALED

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if not sum(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return optimizer.step(*args, **kwargs)
        return None

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients if that is not done, and call `optimizer.step(...)` if all of them are finite.

        Raises:
            RuntimeError: a closure, or the second step since `update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        of_optimizer = self._per_optimizer_states[id(optimizer)]
        if of_optimizer["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_scaling_optimizer(optimizer, of_optimizer, args, kwargs)
        if of_optimizer["stage"] is OptState.READY:
            self.unscale_(optimizer)
        assert of_optimizer["found_inf_per_device"], "No inf checks were recorded for this optimizer."
        result = self._maybe_opt_step(optimizer, of_optimizer, *args, **kwargs)
        of_optimizer["stage"] = OptState.STEPPED
        return result

    def _step_of_scaling_optimizer(self, optimizer: Any, of_optimizer: dict[str, Any], args: tuple[Any, ...],
                                   kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer that unscales by itself: it reads `grad_scale` and `found_inf`."""
        takes_scaler = "grad_scaler" in inspect.signature(optimizer.step).parameters
        if takes_scaler:
            warnings.warn("GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. "
                          "In the near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the "
                          "passed optimizer and let the optimizer use them directly.", FutureWarning, stacklevel=3)
            kwargs["grad_scaler"] = self
        else:
            if of_optimizer["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
            scale, _ = self._check_scale_growth_tracker("step")
            optimizer.grad_scale = (getattr(optimizer, "grad_scale", None)
                                    if of_optimizer["stage"] is OptState.UNSCALED
                                    else scale * getattr(optimizer, "grad_scale", 1))
            optimizer.found_inf = sum(of_optimizer["found_inf_per_device"].values())
        result = optimizer.step(*args, **kwargs)
        of_optimizer["stage"] = OptState.STEPPED
        if not takes_scaler:
            del optimizer.grad_scale
            del optimizer.found_inf
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to whether gradients overflowed, or set it; begins the next iteration."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            reason = ("new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                      "requires_grad=False.")
            assert new_scale.device.type == self._device, reason
            assert new_scale.numel() == 1, reason
            assert new_scale.requires_grad is False, reason
            scale.copy_(new_scale)
        else:
            found = [each for of_optimizer in self._per_optimizer_states.values()
                     for each in of_optimizer["found_inf_per_device"].values()]
            assert found, "No inf checks were recorded prior to update."
            combined = found[0]
            for each in found[1:]:
                combined += each.to(combined.device)
            _amp_update_scale_(scale, tracker, combined, self._growth_factor, self._backoff_factor,
                               self._growth_interval)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale; 1 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """The growth factor."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The backoff factor."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The growth interval."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the growth interval."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, its factors and interval, and the number of steps since an overflow; empty if disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned.

        Raises:
            RuntimeError: it is empty.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance "
                               "of GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        copied = self.__dict__.copy()
        if self._enabled:
            assert not self._per_optimizer_states, ("A GradScaler instance may only be pickled at the beginning of an "
                                                    "iteration, or at the end after scaler.update().")
            copied["_init_scale"], copied["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            copied["_scale"] = copied["_growth_tracker"] = None
        return copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        self._check_scale_growth_tracker("_check_inf_per_device")
        device = None if self._scale is None else self._scale.device
        one = functions.full((), 1.0, dtype=dtypes.float32, device=device)
        found_inf = functions.full((), 0.0, dtype=dtypes.float32, device=device)
        result = self._unscale_grads_(optimizer, one, found_inf, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = result
        return result

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
