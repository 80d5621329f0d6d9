"""Whether other objects than a call's result refer to tensors in it, so that others cannot take their place."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable, Sequence
from typing import Any

from ...config import module_of
from ...nn import Module

_PACKAGE = __name__.partition(".")[0]


def are_known_elsewhere(tensors: Sequence[Any], containers: Iterable[Any]) -> bool:
    """Whether an object outside of some containers refers to one of the tensors.

    References of frames, of tensors among them and of the autograd graph do not count.

    Args:
        tensors: the tensors.
        containers: the containers that may refer to them.

    >>> import flambeau as torch
    >>> x, held = torch.ones(1), []
    >>> are_known_elsewhere([x], [globals()])
    False
    >>> held.append(x)
    >>> are_known_elsewhere([x], [globals()])
    True
    """
    passed = tuple(tensors)  # since Python 3.13 the collector lists the tuple of its arguments, too
    known = {id(tensors), id(passed), *map(id, tensors), *map(id, containers)}
    for each in gc.get_referrers(*passed):
        if id(each) in known or isinstance(each, types.FrameType):
            continue
        if module_of(type(each)).partition(".")[0] != _PACKAGE or isinstance(each, Module):
            return True
    return False


__all__ = ["are_known_elsewhere"]
