"""Policies of a backward pass as context managers: multithreading, and the memory layout of leaf gradients."""

from __future__ import annotations

from contextvars import ContextVar

_threads: ContextVar[bool] = ContextVar("multithreaded_backward", default=True)
_layout: ContextVar[bool] = ContextVar("gradient_layout", default=True)

_view_replay: ContextVar[bool] = ContextVar("view_replay", default=False)

keeps_layout = _layout.get


def is_multithreading_enabled() -> bool:
    """Whether backward may use a thread per device; the CPU backend uses none."""
    return _threads.get()


class _Policy:
    """A flag that is set on construction and restored at the end of a `with` block."""

    variable: ContextVar[bool]

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev = self.variable.get()
        self.variable.set(bool(mode))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self.variable.set(self.prev)

    def clone(self) -> _Policy:
        """A new policy of the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(_Policy):
    """Allow or forbid a thread per device in backward, immediately or for a block; the CPU backend uses none.

    >>> import flambeau as torch
    >>> with torch.autograd.set_multithreading_enabled(False):
    ...     torch.autograd.is_multithreading_enabled()
    False
    """

    variable = _threads


def is_view_replay_enabled() -> bool:
    """Whether gradients of written views are found by repeating the views; here they always are."""
    return _view_replay.get()


class _force_original_view_tracking(_Policy):
    """Ask for views to be repeated where gradients of written ones are found; they always are.

    >>> import flambeau as torch
    >>> with torch.autograd._force_original_view_tracking(True):
    ...     torch.autograd.is_view_replay_enabled()
    True
    """

    variable = _view_replay


class enforce_grad_layout_policy(_Policy):
    """Whether a leaf's first gradient is copied into the strides of the leaf; set immediately or for a block.

    >>> import flambeau as torch
    >>> x = torch.ones(2, 3).t().requires_grad_()
    >>> with torch.autograd.enforce_grad_layout_policy(False):
    ...     (x * torch.ones(3, 2)).sum().backward()
    >>> x.grad.stride()
    (2, 1)
    """

    variable = _layout

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)


__all__ = ["_force_original_view_tracking", "enforce_grad_layout_policy", "is_multithreading_enabled",
           "is_view_replay_enabled", "set_multithreading_enabled"]
