"""How a running call passed its arguments, by position or by name, as its caller's instruction says.

Fast paths and Python's own parameters forget it, PyTorch's messages tell it. Nothing here runs before a call has
failed.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any

#: with what the names of modules begin whose functions are the tensors' (autocast runs them once it was on), and the
#: same with those of `nn.functional`
TENSORS: tuple[str, ...] = tuple(f"{__name__.partition('.')[0]}.{name}." for name in ("_tensor", "amp"))
FUNCTIONALS = (*TENSORS, __name__.partition(".")[0] + ".nn.functionals.")
_METHOD = "Tensor"
_VARIABLE = 0x04 | 0x08  # code with *args or **kwargs


class CallSite:
    """A call of a function of this package from outside of its tensors' modules.

    Args:
        space: "Tensor" if the function is a method, else "torch".
        name: the function's; "" if it was made by another one.
        by_position: the number of arguments that were passed by position; a method's tensor is not counted.
        by_name: the names of the others.
        frame: the function's.
    """

    __slots__ = ("by_name", "by_position", "frame", "name", "space")

    def __init__(self, space: str, name: str, by_position: int, by_name: tuple[str, ...], frame: FrameType) -> None:
        self.space, self.name, self.frame = space, name, frame
        self.by_position, self.by_name = by_position, by_name

    def is_of(self, space: str, name: str) -> bool:
        """Whether the function is, or may be, the one with a name."""
        return self.space == space and self.name in ("", name)

    def divided(self, order: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> (
            tuple[list[Any], dict[str, Any]]):
        """Arguments of which some that were passed by name are among those by position, as the call has them.

        Args:
            order: names of parameters by position.
            args: by position; a method's are without the tensor.
            kwargs: by name.
        """
        moved = sorted([name for name in self.by_name if name not in kwargs and name in order], key=order.index)
        kept = len(args) - len(moved)
        named = {**kwargs, **dict(zip(moved, args[max(kept, 0):], strict=False))}
        possible = (kept, kept + 1) if self.space == _METHOD else (kept,)  # `Tensor.sum(x)` has the tensor, too
        if kept < 0 or named.keys() != set(self.by_name) or self.by_position not in possible:
            return list(args), kwargs
        if self.by_position != kept:  # `x.add_(y, alpha=1)`, looks like `Tensor.add_(x, alpha=y)`
            values = {**(self.frame.f_locals.get("kwargs") or {}), **self.frame.f_locals}
            if any(name in values and values[name] is not named[name] for name in moved):
                return list(args), kwargs
        return list(args[:kept]), {name: named[name] for name in self.by_name}

    def arguments(self) -> tuple[list[Any], dict[str, Any]] | None:
        """What was passed by position and by name, as far as the function has not replaced it.

        A method's tensor is left out. None if the function takes any number of arguments.
        """
        code = self.frame.f_code
        if code.co_flags & _VARIABLE:
            return None
        values = dict(self.frame.f_locals)  # since Python 3.13 a proxy
        first = int(self.space == _METHOD)
        names = [name for name in code.co_varnames[first:code.co_argcount] if name not in self.by_name]
        count = self.by_position
        if count > len(names):  # `Tensor.sum(x)` has the tensor, too
            count -= first
        if count > len(names):
            return None
        positional = names[:count]
        if not {*positional, *self.by_name} <= values.keys():
            return None
        return [values[name] for name in positional], {name: values[name] for name in self.by_name}


def call_site(inside: tuple[str, ...] = TENSORS) -> CallSite | None:
    """The call that is running, of the outermost of the tensors' functions; None if its instruction does not say.

    Args:
        inside: with what the names of modules begin whose functions count as one with those that they call.

    >>> from flambeau._tensor.argument_errors.call_sites import call_site
    >>> call_site() is None  # no function of a tensor is running
    True
    """
    frames: list[FrameType] = []
    outer: FrameType | None = sys._getframe(1)
    while outer is not None and outer.f_globals.get("__name__", "").startswith(inside):
        frames.append(outer)
        outer = outer.f_back
    if not frames or outer is None:
        return None
    passed = _passed(outer.f_code, outer.f_lasti)
    if passed is None:
        return None
    code = frames[-1].f_code
    owner, _, name = code.co_qualname.rpartition(".")
    made = owner.endswith("<locals>")
    # code of any arguments asks for overrides (`overriding.entry_points`), or is a guard, and then runs the function
    own = next((frame for frame in reversed(frames) if frame.f_code.co_name == code.co_name and not (
        frame.f_code.co_flags & _VARIABLE)), frames[-1])
    return CallSite("torch" if made or not owner else owner, "" if made else name, *passed, own)


def _passed(code: CodeType, at: int) -> tuple[int, tuple[str, ...]] | None:
    """How many arguments the call at an offset has by position, and the names of the others."""
    names: tuple[str, ...] = ()
    call = before = None
    for instruction in dis.get_instructions(code):
        if instruction.offset > at:  # the offset may be that of a cache behind the instruction
            break
        before, call = call, instruction
        if instruction.opname == "KW_NAMES":
            names = code.co_consts[instruction.arg or 0]
        elif instruction.opname not in ("PRECALL", "CALL"):
            names = ()
    if call is None or call.arg is None:
        return None
    if call.opname == "CALL_KW" and before is not None:  # Python 3.13 loads the names as a constant
        names = before.argval
    elif call.opname != "CALL":
        return None
    return call.arg - len(names), names


__all__ = ["FUNCTIONALS", "TENSORS", "CallSite", "call_site"]
