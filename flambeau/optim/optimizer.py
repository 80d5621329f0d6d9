"""Optimizer: the base class of optimizers, with parameter groups, per-parameter state, state dicts and step hooks."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import wraps
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from .. import dtypes
from .._tensor import Tensor, enable_grad, no_grad
from .._tensor import functions as fn
from .._tensor.parameter import clear_gradients
from .._tensor.tensor import wrap
from ..engine.nodes.hooks import RemovableHandle
from ..engine.observers import notify_optimizer_step
from ..engine.profiler_events import USER, record_span
from ..errstate import IGNORE, reset_state, set_state
from ..modes import active_tracer, special
from ..nn.typename import typename
from .step_implementations import (
    _default_to_fused_or_foreach as _default_to_fused_or_foreach,
)
from .step_implementations import (
    _get_capturable_supported_devices as _get_capturable_supported_devices,
)
from .step_implementations import (
    _use_grad_for_differentiable as _use_grad_for_differentiable,
)
from .tensor_groups import _group_tensors_by_device_and_dtype

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]] | dict[str, Any]
StateDict: TypeAlias = dict[str, Any]


class _Required:
    """The type of `required`, the default of options that every group must set."""

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
    """`step` with the step hooks called before and after it."""

    @wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if special[0]:
            with record_span(f"Optimizer.step#{type(self).__name__}.step", USER):
                result = run(self, args, kwargs)
            notify_optimizer_step(self)
            return result
        return run(self, args, kwargs)

    def run(self: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args = (self, *args)  # what hooks are shown, and return
        for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), "
                                   f"but got {changed}.")
            args, kwargs = changed
        result = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


class Optimizer:
    """Base class of all optimizers.

    Args:
        params: parameters, (name, parameter) pairs, or dicts, one per group, with "params" and options.
        defaults: option values for groups that do not set them.

    Raises:
        TypeError: `params` is a tensor, or an item in it is not one.
        ValueError: there are no parameters, or one is not a leaf or is in two groups.

    >>> import flambeau as torch
    >>> class SignSGD(torch.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @torch.no_grad()
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad.sign()
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = SignSGD([p], lr=0.5)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p.detach()
    tensor([0.5000])
    """

    #: types of step hooks
    OptimizerPreHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    OptimizerPostHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]

    #: options that state dicts of older versions lack, and their values there
    added_options: tuple[tuple[str, Any], ...] = ()

    #: whether `_update` calls a function of `update_rules`, which takes symbolic hyperparameters
    has_update_rule = True

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
        _init_hooks(self)
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
        _init_hooks(self)
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self.added_options:
                group.setdefault(name, value)
        for param_state in self.state.values():
            if isinstance(param_state, dict) and isinstance(param_state.get("step"), float | int):
                # older versions saved the step as a Python number
                param_state["step"] = new_step().fill_(param_state["step"])

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {i}\n")
            lines.extend(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return "".join(lines) + ")"

    # -- groups --------------------------------------------------------------------------------------

    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group.

        Args:
            param_group: "params" and options; options that are absent get their defaults.
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
        """The state and the groups, with parameters replaced by their indices.

        >>> import flambeau as torch
        >>> p = torch.nn.Parameter(torch.zeros(1))
        >>> torch.optim.SGD([p], lr=0.1).state_dict()["param_groups"][0]["params"]
        [0]
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        indices: dict[int, int] = {}
        groups: list[dict[str, Any]] = []
        start = 0
        for group in self.param_groups:
            indices.update({id(param): i for i, param in enumerate(group["params"], start) if id(param) not in indices})
            start += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [indices[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {indices[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        state_dict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state and the options of a `state_dict`.

        Raises:
            ValueError: the number of groups or their sizes differ.
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
                state[param_of[key]] = _cast_like(value, param_of[key], group_of[key])
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
        """Set the gradients of all parameters to None or, if not `set_to_none`, fill them with zeros."""
        for group in self.param_groups:
            clear_gradients(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once.

        Args:
            closure: recomputes the loss and its gradients, and returns the loss.

        Returns:
            The loss that `closure` returned, or None.
        """
        raise NotImplementedError

    # -- hooks ---------------------------------------------------------------------------------------

    @staticmethod
    def profile_hook_step(func: Callable) -> Callable:
        """`func`, a `step`, with the step hooks called before and after it, and recorded by the profiler."""
        return _with_hooks(func)

    def _patch_step_function(self) -> None:
        """Wrap the class's `step` once; optimizers that do not call `__init__` call this."""
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Run `hook(optimizer, args, kwargs)` before each step; it may return new (args, kwargs)."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Run `hook(optimizer, args, kwargs)` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer)` before `state_dict`."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` after `state_dict`; a result that is not None replaces the state dict."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` before loading; a result that is not None replaces the state dict."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(optimizer)` after loading a state dict."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def has_hooks(optimizer: Optimizer) -> bool:
    """Whether the optimizer has step hooks, its own or global ones."""
    return bool(_global_pre_hooks or _global_post_hooks or optimizer._optimizer_step_pre_hooks
                or optimizer._optimizer_step_post_hooks)


def _init_hooks(optimizer: Optimizer) -> None:
    """Create the hook dicts, which are not pickled, and wrap the class's `step` once."""
    own = optimizer.__dict__
    for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks",
                 "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
                 "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks"):
        own.setdefault(name, OrderedDict())
    optimizer._patch_step_function()


def _split_names(param_group: dict[str, Any]) -> None:
    """Split (name, parameter) pairs into the lists "param_names" and "params"."""
    named = [isinstance(param, tuple) for param in param_group["params"]]
    if any(named):
        if not all(named):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        pairs = param_group["params"]
        param_group["params"] = [param for _, param in pairs]
        param_group["param_names"] = [name for name, _ in pairs]


def _cast_like(value: Any, param: Tensor, group: dict[str, Any], key: Any = None) -> Any:
    """A saved state value in the parameter's dtype and on its device; step counters keep theirs (float32 if fused)."""
    if isinstance(value, Tensor):
        if key == "step":
            if group.get("capturable", False) or group.get("fused", False):
                return value.to(dtype=dtypes.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _cast_like(v, param, group, key=k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_cast_like(v, param, group) for v in value)  # type: ignore[call-arg]
    return value


class FirstOrder(Optimizer):
    """Base class of optimizers that update each group once per step; a subclass implements `_update(group)`."""

    added_options: tuple[tuple[str, Any], ...] = (("maximize", False), ("foreach", None), ("differentiable", False))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once, from their gradients.

        Args:
            closure: recomputes the loss and its gradients, and returns the loss.

        Returns:
            The loss that `closure` returned, or None.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with enable_grad() if self.defaults.get("differentiable") else no_grad():
            token = set_state(IGNORE)
            try:
                for group in self.param_groups:
                    if group.get("capturable") or group.get("fused") or (
                            group.get("foreach") and group.get("differentiable")):
                        self._check_unsupported(group)
                    if group.get("differentiable"):  # whose updates may fail: before, all have their state
                        self._initialize_all(group)
                    self._update(_traced_group(self, group) if special[0] else group)
            finally:
                reset_state(token)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError

    def _initialize(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Make the state of a parameter that has none."""

    def _check_unsupported(self, group: dict[str, Any]) -> None:
        """`check_unsupported`; what a step finds out late leaves the parameters' state behind."""
        try:
            check_unsupported(type(self).__name__, group)
        except AssertionError as error:
            if str(error).startswith("If capturable") or type(self).__name__ not in _REFUSE_FIRST:
                self._initialize_all(group)
            raise

    def _initialize_all(self, group: dict[str, Any]) -> None:
        """Make the state of the parameters with gradients that have none."""
        if type(self)._initialize is FirstOrder._initialize:  # there is none
            return
        for param, _, state in self._params_with_grad(group):
            if not state:
                self._initialize(param, state, group)

    def _params_with_grad(self, group: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor, dict[str, Any]]]:
        """(parameter, gradient, state) of each parameter that has a gradient."""
        for param in group["params"]:
            grad = param._grad
            if grad is not None:
                yield param, grad, self.state[param]


def _traced_group(optimizer: Optimizer, group: dict[str, Any]) -> dict[str, Any]:
    """The group; while a function is traced, with its hyperparameters wrapped as symbolic scalars."""
    tracer = active_tracer.get()
    if tracer is None:
        return group
    if optimizer.has_update_rule:
        return tracer.wrap_param_group(optimizer, group)
    return tracer.guard_param_group(optimizer, group)


def _traced_state(make: Callable[[], np.ndarray]) -> Tensor | None:
    """Initial state that becomes an input of the traced program; None if no tracer adopts initial state."""
    tracer = active_tracer.get() if special[0] else None
    if tracer is None or not tracer.adopts_initial_state():
        return None
    tensor = wrap(make())
    tracer.initial_state.append(tensor)
    return tensor


def zeros_like(param: Tensor) -> Tensor:
    """Zeros of the parameter's shape: the initial value of a state tensor."""
    a = param._array
    state = _traced_state(lambda: np.zeros_like(a)) if a.__class__ is np.ndarray and a.flags.c_contiguous else None
    return fn.zeros_like(param) if state is None else state


def new_step() -> Tensor:
    """A step counter: a scalar tensor of value 0."""
    double = dtypes.get_default_dtype() == dtypes.float64
    state = _traced_state(lambda: np.zeros((), np.float64 if double else np.float32))
    return fn.tensor(0.0, dtype=dtypes.float64 if double else dtypes.float32) if state is None else state


def check_lr(lr: Any, foreach: bool | None = None, capturable: bool = True) -> None:
    """Raise ValueError unless `lr` is a non-negative number or one-element tensor."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(**options: Any) -> None:
    """Raise ValueError for the first option that is negative."""
    for name, value in options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: Any) -> None:
    """Raise ValueError unless both are in [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def check_fused(params: Optimizer, fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raise RuntimeError if `fused` is combined with an option that excludes it."""
    if not fused:
        return
    if differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


#: optimizers whose foreach step refuses `differentiable` before it looks for gradients, and those that take it
_REFUSE_FIRST, _TAKE_DIFFERENTIABLE = ("Adadelta", "Adagrad", "Adamax"), ("SGD", "Adafactor")
_CAPTURED = {"ASGD": "params, mus, etas, and state_steps", "NAdam": "params, mu_products and state_steps"}
_FUSED_DEVICES = "['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone']"


def check_unsupported(kind: str, group: dict[str, Any]) -> None:
    """Check options that PyTorch looks at in a step: those of graphs of devices, of fused and of foreach kernels.

    Args:
        kind: the optimizer's name.

    Raises:
        RuntimeError: `fused` with parameters that are not real floating-point numbers.
        AssertionError: `foreach` with `differentiable`, or `capturable` on the CPU, outside of `torch.compile`.
    """
    live = [param for param in group["params"] if param._grad is not None]
    if group.get("fused"):
        for param in live:
            if not param.is_floating_point():
                raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of supported "
                                   f"devices: {_FUSED_DEVICES} but {param.dtype} and {param.device.type}")
    foreach = group.get("foreach") and group.get("differentiable") and kind not in _TAKE_DIFFERENTIABLE
    if foreach and kind in _REFUSE_FIRST:
        raise AssertionError("_foreach ops don't support autograd")
    captured = group.get("capturable") and not group.get("fused") and active_tracer.get() is None and any(
        p.device.type == "cpu" for p in live)
    if foreach and live and not (captured and kind in ("Adam", "AdamW")):
        raise AssertionError("_foreach ops don't support autograd")
    if captured:
        named = _CAPTURED.get(kind, "params and state_steps")
        if kind == "NAdam" and group.get("foreach"):
            named = "params, mu_products, and state_steps"
        lasts = kind in ("RMSprop", "Rprop") or (not group.get("foreach") and kind != "Adadelta")
        last = ", 'xla'" if lasts else ""
        raise AssertionError(f"If capturable=True, {named} must be on supported devices: ['cuda', 'xpu', 'hpu', "
                             f"'privateuseone'{last}].")


def descent_gradient(xp: Any, grad: Any, maximize: bool) -> Any:
    """The gradient, negated if `maximize`."""
    return xp.neg(grad) if maximize else grad
