"""Propagation of `requires_grad` from a base to views that have no history of their own.

Operators read `requires_grad` from the tensor itself, so it is updated on the views when that of the base changes: by
`requires_grad_`, or by a recorded write. Weak references to these views follow the version in the shared counter.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

_MIN_CAPACITY = 32
_pruning = threading.Lock()


def register_view(view: Any, counter: list[Any]) -> None:
    """Register a view for updates from its base.

    Args:
        counter: the shared version counter: [version, length at which to prune, weak references to views...].
    """
    if len(counter) == 1:
        counter.append(_MIN_CAPACITY)
    elif len(counter) > counter[1] and _pruning.acquire(blocking=False):
        try:
            end = len(counter)
            counter[2:end] = [view for view in counter[2:end] if view() is not None]
            counter[1] = 2 * len(counter) + _MIN_CAPACITY
        finally:
            _pruning.release()
    counter.append(weakref.ref(view))


def update_requires_grad(base: Any) -> None:
    """Update `requires_grad` of a base's views: True if the base requires grad, the view has a graph or it was set."""
    counter = base._counter
    if counter is None or len(counter) == 1:
        return
    requires_grad = base._requires_grad
    for reference in counter[2:]:
        view = reference()
        if view is not None and view._base is base:
            view._requires_grad = requires_grad or view._node is not None or view._own_requires_grad
