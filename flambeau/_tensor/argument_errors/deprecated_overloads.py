"""Deprecated orders of arguments, factors before tensors: `addmm(beta, input, alpha, mat1, mat2)`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ...warning_location import always, user_stacklevel
from .messages import METHOD, called
from .signatures import Signature, signatures

_warned = [False]


def warn_deprecated(overload: Signature, others: Sequence[Signature]) -> None:
    """Warn of a deprecated overload, whichever it is, the first time in a process.

    Args:
        overload: the one that was called.
        others: the function's other ones, which the warning recommends.
    """
    if _warned[0] and not always[0]:
        return
    _warned[0] = True
    name = overload.name
    instead = "".join(f"\n\t{name}{other}" for other in others)
    warnings.warn(f"This overload of {name} is deprecated:\n\t{name}{overload}\nConsider using one of the following "
                  f"signatures instead:{instead}", UserWarning, stacklevel=user_stacklevel())


def reordered(names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by name of a call of a deprecated overload, with a warning; None for any other call.

    Args:
        names: the function's, and its aliases.
        args: of the function; a method's have the tensor first.
        kwargs: by name.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.addr(2, torch.ones(1, 1), torch.ones(1), torch.ones(1))
    tensor([[3.]])
    """
    space, name = called(names)
    given = {"input": args[0]} if space == METHOD else {}
    if space == METHOD:
        args = args[1:]
    overloads = signatures(space, name)
    for overload in overloads:
        if overload.mismatch(args, kwargs) is None:
            if not overload.hidden:
                return None
            warn_deprecated(overload, [each for each in overloads if not each.hidden])
            by_position = {p.name: value for p, value in zip(overload.parameters, args, strict=False)}
            return {**given, **by_position, **kwargs}
    return None


__all__ = ["reordered", "warn_deprecated"]
