"""Views without a history of their own follow their base: they require grad when it does.

Operators read whether a tensor requires grad from the tensor itself, so a base tells its views
when that changes: when it is written to with something that requires grad, or told to. The
views that must be told are listed, weakly, behind the version that they share with their base.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

_FEWEST = 32
_pruning = threading.Lock()


def follow(view: Any, counter: list[Any]) -> None:
    """Let a view be told of its base.

    Args:
        counter: what the two share: [version, how long the list may grow, weak references to views].
    """
    if len(counter) == 1:
        counter.append(_FEWEST)
    elif len(counter) > counter[1] and _pruning.acquire(blocking=False):
        try:
            end = len(counter)
            counter[2:end] = [view for view in counter[2:end] if view() is not None]
            counter[1] = 2 * len(counter) + _FEWEST
        finally:
            _pruning.release()
    counter.append(weakref.ref(view))


def tell(base: Any) -> None:
    """Let the views of a base require grad if it does, or if they have a history or were told to themselves."""
    counter = base._counter
    if counter is None or len(counter) == 1:
        return
    requires_grad = base._requires_grad
    for reference in counter[2:]:
        view = reference()
        if view is not None and view._base is base:
            view._requires_grad = requires_grad or view._node is not None or view._own
