"""Placeholders in containers of concrete arguments, and functions whose `*args` and `**kwargs` are one value each."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from .._compatibility import compatibility

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@compatibility(is_backward_compatible=False)
class PHBase:
    """A value in `concrete_args` that is not given: a parameter of the graph."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


@compatibility(is_backward_compatible=False)
class PHWithMeta(PHBase):
    """A placeholder whose attributes the node gets.

    Args:
        ph_key: what identifies it.
    """

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    """Give an object the data attributes of another that it does not have."""
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _patch_function(fn: Any, nargs: int) -> FunctionType:
    """A function all of whose parameters are positional; `*args` and `**kwargs` are passed as one value each."""
    code = fn.__code__.replace(co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0,
                               co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF)
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


__all__ = ["HAS_VARSTUFF", "PH", "PHBase", "PHWithMeta"]
