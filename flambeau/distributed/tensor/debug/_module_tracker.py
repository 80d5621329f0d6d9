"""Which module an operator belongs to, and how the parameters of modules are placed."""

from __future__ import annotations

from typing import Any

from ....nn.modules.module import register_module_full_backward_pre_hook
from ....utils.hooks import RemovableHandle
from ....utils.module_tracker import ModuleTracker
from .._dtensor import DTensor


class CommModeModuleTracker(ModuleTracker):
    """A context manager that knows the module at a moment, in both passes.

    Attributes:
        name: of the module whose forward or backward pass runs, or ran last in a backward pass.
        activation_checkpointing: whether a checkpoint computes its forward pass again.
        module_helper_dict: type, depth and placements of parameters by module, in the order of calls.
        module_parameters_dict: parameters by module and name.
        module_parents_dict: the names of the modules around a module, and its own.
        parent_dict: the modules that each module calls.
        sharding_dict: placements of distributed parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        self._clear()

    def _clear(self) -> None:
        self.name, self.activation_checkpointing = "Global", False
        self.module_helper_dict: dict[str, dict[str, Any]] = {"Global": {"depth": 0}}
        self.module_parameters_dict: dict[str, dict[str, Any]] = {}
        self.module_parents_dict: dict[str, set[str]] = {"Global": set()}
        self.parent_dict: dict[str, list[str]] = {}
        self.sharding_dict: dict[str, Any] = {}
        self._callers = ["Global"]
        self._leaving: dict[int, Any] = {}

    def _before(self, module: Any, inputs: Any) -> None:
        self.name = self._name_of(module)
        self.activation_checkpointing = self.is_bw
        if self.is_bw:
            return
        super()._before(module, inputs)
        described = self.module_helper_dict.setdefault(self.name, {})
        described["module_type"] = str(type(module)).replace("<", "").replace(">", "")
        described["depth"] = len(self.parents) - 1
        for name, param in module.named_parameters(recurse=False):
            self.module_parameters_dict.setdefault(self.name, {})[name] = param.detach()
            if isinstance(param, DTensor):
                self.sharding_dict[f"{self.name}.{name}"] = param.placements
                described.setdefault("parameters", {})[name] = str(param.placements)
        self.module_parents_dict.setdefault(self.name, set(self.parents))
        self.parent_dict.setdefault(self._callers[-1], []).append(self.name)
        self._callers.append(self.name)
        # after the module's own hooks, which place outputs
        handle: RemovableHandle = module.register_forward_hook(lambda *_: self._leave(handle))
        self._leaving[handle.id] = handle

    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        if not self.is_bw:
            super()._after(module, inputs, output)

    def _leave(self, handle: Any) -> None:
        del self._leaving[handle.id]
        handle.remove()
        self._callers.pop()
        self.name = self._callers[-1]

    def _before_backward(self, module: Any, grad_output: Any) -> None:
        self.activation_checkpointing = False
        self.name = self._name_of(module)

    def __enter__(self) -> CommModeModuleTracker:
        self._clear()
        super().__enter__()
        self._backward_handle = register_module_full_backward_pre_hook(self._before_backward)
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        for handle in (self._backward_handle, *self._leaving.values()):
            handle.remove()
        self._leaving.clear()


__all__ = ["CommModeModuleTracker"]
