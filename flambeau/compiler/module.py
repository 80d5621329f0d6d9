"""`OptimizedModule`: the wrapper that `compile` returns for a module."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sized
from typing import Any

from ..nn import Module
from .execution.compiled_function import CompiledFunction


class OptimizedModule(Module):  # type: ignore[misc]
    """A module whose calls are compiled; its parameters, attributes and methods are those of the wrapped module.

    Attributes:
        _orig_mod: the wrapped module. Keys of the state dict begin with this name, as in PyTorch.
    """

    def __init__(self, module: Module, run: CompiledFunction) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_run"] = run
        call_through = getattr(type(module), "_call_through", None)  # of DistributedDataParallel
        self.__dict__["_call"] = run if call_through is None else functools.partial(call_through, module, run)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]:
            return super().__call__(*args, **kwargs)  # the wrapper's own hooks
        return own["_call"](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled module."""
        return self.__dict__["_call"](*args, **kwargs)

    def dynamo_ctx(self, function: Callable[..., Any]) -> CompiledFunction:
        """Compile another function with the options of this module; packages call it for steps besides `forward`.

        >>> import flambeau as torch
        >>> module = torch.compile(torch.nn.ReLU())
        >>> module.dynamo_ctx(lambda x: x + 1)(torch.ones(2))
        tensor([2., 2.])
        """
        run: CompiledFunction = self.__dict__["_run"]
        return run.like(function)

    def __len__(self) -> int:
        if not isinstance(self._orig_mod, Sized):
            raise TypeError(f"{type(self._orig_mod).__name__} does not support len()")
        return len(self._orig_mod)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod" or "_modules" not in self.__dict__ or "_orig_mod" not in self._modules:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    @property
    def training(self) -> bool:
        """The training mode of the wrapped module."""
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        return True if module is None else module.training

    @training.setter
    def training(self, mode: bool) -> None:
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is not None:
            module.training = mode

    def __reduce__(self) -> tuple[Any, ...]:
        return OptimizedModule, (self._orig_mod, self.__dict__["_run"])
