"""Types of values, attached while tracing."""

from __future__ import annotations

from typing import Any

from ._compatibility import compatibility
from .proxy import Proxy

__all__ = ["annotate"]


@compatibility(is_backward_compatible=False)
def annotate(val: Any, type: Any) -> Any:
    """Give a traced value a type; any other value is returned as it is.

    Args:
        val: the value.
        type: the type.

    Raises:
        RuntimeError: the value has a type already.

    >>> import flambeau as torch
    >>> from flambeau.fx.annotate import annotate
    >>> annotate(1, int)
    1
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new "
                f"type is {type}. This could happen if you tried to annotate a function parameter value (in which "
                "case you should use the type slot on the function signature) or you called annotate on the same "
                "value twice")
        val.node.type = type
    return val
