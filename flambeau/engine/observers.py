"""Observers: objects that are notified of each node of this thread's backward passes, and of optimizer steps.

Without observers there is no cost: attached ones count in `modes.special`, and the engine looks for them only if that
is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from ..modes import special


class Observer:
    """Base class: every notification does nothing; subclasses override those of interest."""

    def on_backward_begin(self, roots: Sequence[tuple[Any, int]], cotangents: Sequence[Any]) -> None:
        """A pass begins at the roots (node, output number) with these tensors."""

    def on_node(self, node: Any, cotangents: Any, grads: Sequence[Any]) -> None:
        """A node was evaluated: the cotangents of its outputs (a list where there are several) and of its inputs."""

    def on_release(self, node: Any) -> None:
        """A node is about to free its saved values."""

    def on_leaf(self, leaf: Any, cotangent: Any, captured: bool) -> None:
        """A leaf's gradient is complete, about to be accumulated, or captured by `autograd.grad`."""

    def on_accumulate(self, leaf: Any) -> None:
        """A leaf's gradient was added to its `.grad`."""

    def on_backward_end(self) -> None:
        """The pass ended, or was aborted by an error."""

    def on_optimizer_step(self, optimizer: Any) -> None:
        """An optimizer updated its parameters."""

    def attach(self) -> None:
        """Start to receive notifications in this thread."""
        _observers.set((*_observers.get(), self))
        special[0] += 1

    def detach(self) -> None:
        """Stop receiving notifications."""
        _observers.set(tuple([other for other in _observers.get() if other is not self]))
        special[0] -= 1


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())


def observers() -> tuple[Observer, ...]:
    """The observers that are attached in this thread."""
    return _observers.get()


def without_observers(work: Callable[[], Any]) -> Any:
    """The result of `work()`, run without observers."""
    token = _observers.set(())
    try:
        return work()
    finally:
        _observers.reset(token)


def notify_optimizer_step(optimizer: Any) -> None:
    """Notify observers that an optimizer updated its parameters."""
    for observer in _observers.get():
        observer.on_optimizer_step(optimizer)


__all__ = ["Observer", "notify_optimizer_step", "observers", "without_observers"]
