"""Observers: told of what a backward pass of this thread does, node by node, and of optimizers' steps.

They cost nothing while there are none: who is on counts in `modes.special`, and only then is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from ..modes import special


class Observer:
    """Takes note of backward passes and of optimizers' steps; a subclass says of which."""

    def begins(self, roots: Sequence[tuple[Any, int]], cotangents: Sequence[Any]) -> None:
        """A pass begins at the roots (node, output number) with these tensors."""

    def runs(self, node: Any, cotangents: Any, found: Sequence[Any]) -> None:
        """A node's rules ran: the cotangents of its outputs (a list where there are several) and of its inputs."""

    def frees(self, node: Any) -> None:
        """A node is about to forget what it saved."""

    def arrives(self, leaf: Any, cotangent: Any, captured: bool) -> None:
        """All of a leaf's cotangent is there, about to be accumulated, or else handed out by `autograd.grad`."""

    def accumulated(self, leaf: Any) -> None:
        """It was added into the leaf's `.grad`."""

    def ends(self) -> None:
        """The pass is over, or was given up."""

    def steps(self, optimizer: Any) -> None:
        """An optimizer changed its parameters."""

    def observe(self) -> None:
        """Be told from now on."""
        _observers.set((*_observers.get(), self))
        special[0] += 1

    def rest(self) -> None:
        """Be told no longer."""
        _observers.set(tuple([other for other in _observers.get() if other is not self]))
        special[0] -= 1


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())


def observers() -> tuple[Observer, ...]:
    """Who is told of what happens in this thread."""
    return _observers.get()


def unobserved(work: Callable[[], Any]) -> Any:
    """What `work()` gives, with nobody told of what it does."""
    token = _observers.set(())
    try:
        return work()
    finally:
        _observers.reset(token)


def stepped(optimizer: Any) -> None:
    """Tell that an optimizer changed its parameters."""
    for observer in _observers.get():
        observer.steps(optimizer)


__all__ = ["Observer", "observers", "stepped", "unobserved"]
