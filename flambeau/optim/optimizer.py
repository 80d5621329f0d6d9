"""Optimizer: parameters in groups with options, and what is remembered of each between steps."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import wraps
from itertools import chain
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor import Tensor, enable_grad, no_grad
from .._tensor import functions as fn
from .._tensor.parameter import clear_gradients
from .._tensor.tensor import wrap
from ..backends.errstate import IGNORE, reset_state, set_state
from ..engine.nodes.hooks import RemovableHandle
from ..engine.observers import notify_optimizer_step
from ..engine.profiler_events import USER, record_span
from ..modes import active_tracer, special
from ..nn.typename import typename


class _Required:
    """The default of an option that has none."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

_global_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable] = OrderedDict()


def _add_hook(hooks: OrderedDict, hook: Callable, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Run `hook(optimizer, args, kwargs)` before each step of every optimizer."""
    return _add_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Run `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return _add_hook(_global_post_hooks, hook)


def _with_hooks(step: Callable) -> Callable:
    """`step` between the hooks that are registered for it."""

    @wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if special[0]:
            with record_span(f"Optimizer.step#{type(self).__name__}.step", USER):
                result = run(self, args, kwargs)
            notify_optimizer_step(self)
            return result
        return run(self, args, kwargs)

    def run(self: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), "
                                   f"but got {changed}.")
            args, kwargs = changed
        result = step(self, *args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


class Optimizer:
    """Base class of all optimizers.

    Args:
        params: parameters, pairs of name and parameter, or dicts that are groups: "params" and options.
        defaults: the options of groups that do not say otherwise.

    Raises:
        TypeError: `params` is a tensor, or something in it is not.
        ValueError: there are no parameters, or one is computed or in two groups.
    """

    #: options that states of older versions lack, and what they stand for there
    later_options: tuple[tuple[str, Any], ...] = (("maximize", False), ("foreach", None), ("differentiable", False))

    state: defaultdict[Tensor, Any]
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: OrderedDict[int, Callable]
    _optimizer_step_post_hooks: OrderedDict[int, Callable]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        _prepare(self)
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, "
                            "but got " + typename(params))
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _prepare(self)
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self.later_options:
                group.setdefault(name, value)
        for kept in self.state.values():
            if isinstance(kept, dict) and isinstance(kept.get("step"), float | int):
                # older versions counted in plain numbers
                kept["step"] = new_step().fill_(kept["step"])

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {i}\n")
            lines.extend(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return "".join(lines) + ")"

    # -- groups --------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own.

        Args:
            param_group: "params", and options; the defaults fill in what is missing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but "
                            "the ordering of tensors in sets will change between runs. Please use a list instead.")
        else:
            param_group["params"] = list(params)
        _split_names(param_group)
        for param in param_group["params"]:
            if not isinstance(param, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(param))
            if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len(set(params)):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; "
                          "in future, this will cause an error; "
                          "see github.com/pytorch/pytorch/issues/40967 for more information", stacklevel=3)
        present = set(chain.from_iterable(group["params"] for group in self.param_groups))
        has_names = "param_names" in param_group
        if self.param_groups and ("param_names" in self.param_groups[0]) != has_names:
            which = "with names" if has_names else "without names"
            raise ValueError("all optimizer param groups should be with/without names. "
                             f"cannot add param group {which} to the optimizer")
        if not present.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    # -- state ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state by the parameters' numbers, and the groups with numbers instead of parameters.

        >>> import flambeau as torch
        >>> p = torch.nn.Parameter(torch.zeros(1))
        >>> torch.optim.SGD([p], lr=0.1).state_dict()["param_groups"][0]["params"]
        [0]
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        state_dict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state and options, as `state_dict` returned them.

        Raises:
            ValueError: the groups do not match in number or size.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(own["params"]) != len(saved["params"]) for own, saved in zip(groups, saved_groups, strict=True)):
            raise ValueError("loaded state dict contains a parameter group "
                             "that doesn't match the size of optimizer's group")
        group_of = {}
        param_of = {}
        for own, saved in zip(groups, saved_groups, strict=True):
            for key, param in zip(saved["params"], own["params"], strict=True):
                param_of[key], group_of[key] = param, saved
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                state[param_of[key]] = _adapted(value, param_of[key], group_of[key])
            else:
                state[key] = value
        for own, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = own["params"]
            if "param_names" in own and "param_names" not in saved:
                saved["param_names"] = own["param_names"]
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # -- stepping ------------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters or, unless `set_to_none`, fill them with zeros."""
        for group in self.param_groups:
            clear_gradients(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once.

        Args:
            closure: computes the loss anew, and its gradients; its result is returned.
        """
        raise NotImplementedError

    # -- hooks ---------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Run `hook(optimizer, args, kwargs)` before each step; it may return new (args, kwargs)."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Run `hook(optimizer, args, kwargs)` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer)` before `state_dict` is made."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` after `state_dict`; what it returns, if not None, replaces it."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` before a state is loaded; its result, if any, replaces it."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer)` after a state was loaded."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def has_hooks(optimizer: Optimizer) -> bool:
    """Whether anything runs before or after an optimizer's steps."""
    return bool(_global_pre_hooks or _global_post_hooks or optimizer._optimizer_step_pre_hooks
                or optimizer._optimizer_step_post_hooks)


def _prepare(optimizer: Optimizer) -> None:
    """What is not pickled: the hooks."""
    own = optimizer.__dict__
    for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks",
                 "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
                 "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks"):
        own.setdefault(name, OrderedDict())
    cls = type(optimizer)
    if not getattr(cls.step, "hooked", False):
        cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]


def _split_names(param_group: dict[str, Any]) -> None:
    """Take the names, if the parameters have any, into a list of their own."""
    named = [isinstance(param, tuple) for param in param_group["params"]]
    if any(named):
        if not all(named):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        pairs = param_group["params"]
        param_group["params"] = [param for _, param in pairs]
        param_group["param_names"] = [name for name, _ in pairs]


def _adapted(value: Any, param: Tensor, group: dict[str, Any], key: Any = None) -> Any:
    """A saved value as the parameter needs it: its dtype and device, but steps counted in float32."""
    if isinstance(value, Tensor):
        if key == "step":
            if group.get("capturable", False) or group.get("fused", False):
                return value.to(dtype=dtypes.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _adapted(v, param, group, key=k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_adapted(v, param, group) for v in value)  # type: ignore[call-arg]
    return value


class FirstOrder(Optimizer):
    """Optimizers that update each group once a step; a subclass says how in `_update`."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once, from their gradients.

        Args:
            closure: computes the loss anew, and its gradients; its result is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with enable_grad() if self.defaults.get("differentiable") else no_grad():
            token = set_state(IGNORE)
            try:
                for group in self.param_groups:
                    self._update(_captured(self, group) if special[0] else group)
            finally:
                reset_state(token)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError

    def _with_grad(self, group: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor, dict[str, Any]]]:
        """The parameters of a group that have a gradient, with it and with their state."""
        for param in group["params"]:
            grad = param._grad
            if grad is not None:
                yield param, grad, self.state[param]


def _captured(optimizer: Optimizer, group: dict[str, Any]) -> dict[str, Any]:
    """The group, its numbers known to a function's capture if there is one."""
    tracer = active_tracer.get()
    return group if tracer is None else tracer.wrap_param_group(optimizer, group)


def _found(make: Callable[[], np.ndarray]) -> Tensor | None:
    """Zeros as a tensor that a function which is being captured is to have found; None: there is no such function."""
    tracer = active_tracer.get() if special[0] else None
    if tracer is None or not tracer.adopts_initial_state():
        return None
    tensor = wrap(make())
    tracer.initial_state.append(tensor)
    return tensor


def zeros_like(param: Tensor) -> Tensor:
    """What an average of gradients starts from."""
    a = param._array
    found = _found(lambda: np.zeros_like(a)) if a.__class__ is np.ndarray and a.flags.c_contiguous else None
    return fn.zeros_like(param) if found is None else found


def new_step() -> Tensor:
    """A step counter, at zero."""
    double = dtypes.get_default_dtype() == dtypes.float64
    found = _found(lambda: np.zeros((), np.float64 if double else np.float32))
    return fn.tensor(0.0, dtype=dtypes.float64 if double else dtypes.float32) if found is None else found


def check_lr(lr: Any, foreach: bool | None = None, capturable: bool = True) -> None:
    """Raise ValueError unless `lr` is a learning rate."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(**options: Any) -> None:
    """Raise ValueError for the first option that is negative; names as in messages, _ for a blank."""
    for name, value in options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: Any) -> None:
    """Raise ValueError unless both are in [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def check_fused(params: Optimizer, fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raise RuntimeError where the choices of implementation exclude each other."""
    if not fused:
        return
    if differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def signed(xp: Any, grad: Any, maximize: bool) -> Any:
    """The gradient to descend."""
    return xp.neg(grad) if maximize else grad
