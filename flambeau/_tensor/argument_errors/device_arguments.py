"""The errors of arguments that are no device: those of `torch.device`, and those of a function's `device=`."""

from __future__ import annotations

from typing import Any

from ... import devices
from .call_sites import TENSORS, call_site
from .messages import explained, invalid_combination
from .type_names import type_name

_FORMS = ("torch.device device", "str type, int index = -1")


def of_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """The error of a call of `torch.device`.

    >>> import flambeau as torch
    >>> torch.device("cpu", 1.5)
    Traceback (most recent call last):
    TypeError: device(): argument 'index' (position 2) must be int, not float
    """
    given = dict(zip(("type", "index"), args, strict=False)) | kwargs
    if len(given) == 2 and given.keys() == {"type", "index"}:
        wrong = "index" if isinstance(given["type"], (str, bytes)) else "type"
        position = "" if wrong in kwargs else f" (position {1 + (wrong == 'index')})"
        return TypeError(f"device(): argument '{wrong}'{position} must be {'int' if wrong == 'index' else 'str'}, "
                         f"not {type_name(given[wrong])}")
    return invalid_combination("device", _FORMS, args, kwargs)


def of_argument(argument: Any) -> Exception:
    """The error of an argument `device=` of the function that is running."""
    site = call_site((*TENSORS, devices.__name__))
    name = "" if site is None else site.name or site.frame.f_code.co_name
    if site is not None and name == "__init__":
        name = site.space
    outer = None if site is None else site.arguments()
    if site is not None and outer is not None:
        error = explained(site.space, name, *outer)
        if error is not None:
            return error
    return TypeError(f"{name}(): argument 'device' must be torch.device, not {type_name(argument)}")


__all__ = ["of_argument", "of_call"]
