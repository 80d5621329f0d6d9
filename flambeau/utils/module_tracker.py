"""`torch.utils.module_tracker`: which modules run their forward or backward at a moment."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from .._tensor import Tensor
from ..autograd import Variable
from ..autograd.graph import register_multi_grad_hook
from ..engine.execution.graph_task import current_task
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ..trees import tree_leaves

_logger = logging.getLogger(__name__)


class ModuleTracker:
    """A context manager whose `parents` are the names of the modules that run at the moment, and "Global".

    A name is the class of the outermost module, followed by the path: `Net.features.0`.

    >>> import flambeau as torch
    >>> from flambeau.utils.module_tracker import ModuleTracker
    >>> class Net(torch.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> with ModuleTracker() as tracker:
    ...     y = Net()(torch.ones(1))
    ['Global', 'Net']
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._named_children: weakref.WeakSet[Any] = weakref.WeakSet()
        self._hooks: list[Any] = []
        self._resets = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs."""
        return current_task.get() is not None

    def _name_of(self, module: Any) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._named_children:
            for child_name, child in module.named_children():
                self._names[child] = f"{name}.{child_name}"
                self._name_of(child)
            self._named_children.add(module)
        return name

    def _enter_module(self, name: str, backward: bool) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            if backward and not self._resets:
                self._resets = True
                Variable._execution_engine.queue_callback(self._reset)
            if name in self.parents:
                _logger.info("The module hierarchy tracking seems to be broken as this Module was already entered. "
                             "%s during %s", name, "backward" if backward else "forward")
            self.parents.add(name)

        return enter

    def _leave_module(self, name: str, backward: bool) -> Callable[..., None]:
        def leave(*_: Any) -> None:
            if name not in self.parents:
                _logger.info("The Module hierarchy tracking is confused as we're exiting a Module that was never "
                             "entered. %s during %s", name, "backward" if backward else "forward")
            self.parents.discard(name)

        return leave

    def _reset(self) -> None:
        self.parents = {"Global"}
        self._resets = False

    def _before(self, module: Any, inputs: Any) -> None:
        name = self._name_of(module)
        self._enter_module(name, False)()
        self._hook(tree_leaves(inputs), self._leave_module(name, True))

    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._name_of(module)
        self._leave_module(name, False)()
        self._hook(tree_leaves(output), self._enter_module(name, True))

    def _hook(self, leaves: Iterable[Any], function: Callable[..., None]) -> None:
        tensors = [x for x in leaves if isinstance(x, Tensor) and x.requires_grad]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, function))

    def __enter__(self) -> ModuleTracker:
        self._handles = register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._hooks.clear()


__all__ = ["ModuleTracker"]
