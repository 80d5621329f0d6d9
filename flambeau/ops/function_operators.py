"""Operators of functions, as `torch.ops.higher_order.cond`: graphs contain them, with the functions as subgraphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .overloads import namespace_of, runner

__all__ = ["HigherOrderOperator", "recorder", "recorders"]

#: what makes nodes of these operators: (operator, arguments) -> result; None: nothing does. The last one counts
recorders: list[Callable[[HigherOrderOperator, tuple[Any, ...]], Any] | None] = []


def recorder() -> Callable[[HigherOrderOperator, tuple[Any, ...]], Any] | None:
    """What makes nodes of the operators that are called now."""
    return recorders[-1] if recorders else None


class HigherOrderOperator:
    """An operator some of whose arguments are functions. A class of operators is derived from this one.

    Args:
        name: its name in `torch.ops.higher_order`.
        cacheable: kept for callers; not used.

    Raises:
        RuntimeError: an instance of this class itself.

    >>> import flambeau as torch
    >>> torch.ops.higher_order.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(1),))
    tensor([0.])
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        if type(self) is HigherOrderOperator:
            raise RuntimeError("Direct instantiation of HigherOrderOperator is not allowed. Please subclass it.")
        self._name = self.__name__ = self.__qualname__ = name
        self._ns = self.namespace = "higher_order"
        self.__module__ = "torch._ops.higher_order"
        self._cacheable = cacheable
        self.py_kernels: dict[str, Callable[..., Any]] = {}
        vars(namespace_of("higher_order"))[name] = self

    def py_impl(self, k: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator that registers the kernel of a dispatch key; `CompositeExplicitAutograd` computes."""
        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.py_kernels[str(k).rpartition(".")[2]] = fn
            return fn

        return register

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        result = runner.overridden(self, args, kwargs)
        if result is not NotImplemented:
            return result
        record = recorder()
        if record is not None:
            return record(self, args)
        for key in ("CompositeExplicitAutograd", "CPU"):
            if key in self.py_kernels:
                return self.py_kernels[key](*args, **kwargs)
        raise NotImplementedError(f"could not find kernel for HigherOrderOperator {self._name} at dispatch key CPU")

    def name(self) -> str:
        """The name."""
        return self._name

    def __str__(self) -> str:
        return self._name

    def __copy__(self) -> HigherOrderOperator:
        return self

    def __deepcopy__(self, memo: Any = None) -> HigherOrderOperator:
        return self

    def __reduce__(self) -> Any:
        return _operator_at, (self._name,)


def _operator_at(name: str) -> Any:
    """The operator of a pickle."""
    return getattr(namespace_of("higher_order"), name)
