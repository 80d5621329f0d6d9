"""`_NamedOptimizer`: an optimizer whose state dicts have the parameters' names in place of numbers."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as _functions
from ...engine.grad_mode import no_grad
from ...nn.modules.module import Module
from ...optim.optimizer import Optimizer
from ..fsdp.fully_sharded_data_parallel import FullyShardedDataParallel

__all__: list[str] = []

functions: Any = _functions


def _checked(group: Any) -> None:
    """Make a group's parameters a list, if they are tensors."""
    if not isinstance(group, dict):
        raise AssertionError("param group must be a dict")
    if "params" not in group:
        raise AssertionError("param group must contain key params")
    params = [group["params"]] if isinstance(group["params"], Tensor) else list(group["params"])
    for param in params:
        if not isinstance(param, Tensor):
            raise TypeError("optimizer can only optimize Tensors, but one of the params is "
                            f"{type(param).__module__}.{type(param).__qualname__}".replace("builtins.", ""))
    group["params"] = params


class _NamedOptimizer(Optimizer):
    """An optimizer of another class, whose state dicts name parameters.

    Args:
        named_parameters: names and parameters.
        optimizer_class: the class.
        param_groups: groups of the parameters; all in one if None.
        module: the module of the parameters.
        args, kwargs: the class's options.

    Raises:
        ValueError: a parameter of a group has no name.
    """

    def __init__(self, named_parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]],
                 optimizer_class: type[Optimizer], param_groups: Any = None, module: Module | None = None,
                 *args: Any, **kwargs: Any) -> None:
        self.named_parameters = dict(named_parameters)
        self.module = module
        self._names = {id(parameter): name for name, parameter in self.named_parameters.items()}
        self.ordered_param_keys = list(self.named_parameters)
        if param_groups is not None:
            for group in param_groups:
                _checked(group)
            warnings.warn("Since we pass in param_groups, we will use param_groups to initialize the optimizer, not "
                          "all parameters of the module.", stacklevel=2)
            self.ordered_param_keys = []
            for group in param_groups:
                self._note(group["params"], "Expect param name {} found in param group but is missing.")
        self._optimizer = optimizer_class(
            list(self.named_parameters.values()) if param_groups is None else param_groups, *args, **kwargs)
        self.param_groups = self._optimizer.param_groups

    def _note(self, params: Iterable[Tensor], error: str) -> None:
        names = []
        for param in params:
            if id(param) not in self._names:
                raise ValueError(error.format(param))
            names.append(self._names[id(param)])
        self.ordered_param_keys += names

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The optimizer's state by parameter."""
        return self._optimizer.state

    def state_dict(self) -> dict[str, Any]:
        """Return the state by name, and the groups with names."""
        own, names = self._optimizer.state_dict(), self.ordered_param_keys
        result = {
            "state": {names[number]: state for number, state in own["state"].items()},
            "param_groups": [{"params": sorted(names[number] for number in group["params"])} | {
                key: copy.deepcopy(value) for key, value in group.items() if key != "params"}
                for group in own["param_groups"]]}
        if isinstance(self.module, FullyShardedDataParallel):
            FullyShardedDataParallel.optim_state_dict(self.module, self._optimizer, result)
        return result

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters.

        Args:
            closure: computes the loss again.
        """
        return self._optimizer.step(closure=closure)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, into the state that is there.

        Args:
            state_dict: the state; of parameters that it does not name, the state stays.

        Raises:
            ValueError: there is no state yet (`init_state`), or names or states differ (PyTorch's texts).
        """
        if isinstance(self.module, FullyShardedDataParallel):
            state_dict = FullyShardedDataParallel.optim_state_dict_to_load(
                self.module, self._optimizer, state_dict, is_named_optimizer=True)
        own = self._optimizer.state_dict()
        if not own["state"]:
            raise ValueError("Expects the optim to be initialized before load but found not initialized.")
        for number, name in enumerate(self.ordered_param_keys):
            if name in state_dict["state"]:
                _load_state(own["state"][number], state_dict["state"][name], name)
        loaded = {_key(group["params"]): group for group in state_dict["param_groups"]}
        for group in own["param_groups"]:
            key = _key(self.ordered_param_keys[number] for number in group["params"])
            if key in loaded:
                _load_group(group, loaded[key], key)
        self._optimizer.load_state_dict(own)
        self.param_groups = self._optimizer.param_groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, which must be among the named ones.

        Args:
            param_group: the parameters and their options.
        """
        _checked(param_group)
        self._note(param_group["params"], "some parameters are not in the module")
        self._optimizer.add_param_group(param_group)
        self.param_groups = self._optimizer.param_groups

    def init_state(self) -> None:
        """Make the optimizer's state by a step with gradients of zero."""
        for parameter in self.named_parameters.values():
            if parameter.requires_grad:
                parameter.grad = functions.zeros_like(parameter)
        self.step(closure=None)


def _key(names: Iterable[str]) -> str:
    return "/".join(sorted(names))


def _load_state(own: dict[str, Any], loaded: dict[str, Any], name: str) -> None:
    """Copy the state of a parameter."""
    if len(own) != len(loaded):
        raise ValueError(f"Expects equal length as {len(own)} for parameter {name} but found: {len(loaded)}")
    for key, value in own.items():
        if key not in loaded:
            raise ValueError(f"Expects state {key} for parameter {name} but not found.")
        if isinstance(value, Tensor):
            with no_grad():
                value.copy_(loaded[key])
        else:
            own[key] = copy.deepcopy(loaded[key])


def _load_group(own: dict[str, Any], loaded: dict[str, Any], name: str) -> None:
    """Copy the options of a group."""
    if len(own) != len(loaded):
        raise ValueError(f"Expects equal param_group size as {len(own)} for group {name} but found {len(loaded)}.")
    for key, value in loaded.items():
        if key not in own:
            raise ValueError(f"Expects group key {key} to be in group {name} in `state_dict` but is missing.")
        if key != "params":
            own[key] = copy.deepcopy(value)
