"""The errors of calls whose arguments fit no signature, in the words of PyTorch's argument parser.

Nothing here runs before a call has failed: `explained` parses its arguments again, by PyTorch's signatures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from .call_sites import TENSORS, call_site
from .map_order import in_map_order
from .signatures import known, signatures
from .type_names import type_name

FUNCTION, METHOD = "torch", "Tensor"


def explained(space: str, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Exception | None:
    """The error of PyTorch's parser for a call; None if its arguments fit a signature, or none is known.

    Args:
        space: `FUNCTION` or `METHOD`; the arguments of a method are without the tensor.
        name: the function's.
        args: by position.
        kwargs: by name.

    >>> from flambeau._tensor.argument_errors.messages import explained
    >>> explained("Tensor", "tril", ("one",), {})
    TypeError("tril(): argument 'diagonal' (position 1) must be int, not str")
    """
    overloads = signatures(space, name)
    if not overloads:
        return _nothing_taken(name, args, kwargs) if space == METHOD and known(space, name) else None
    mismatches = []
    try:
        for overload in overloads:  # the first that fits is called: later ones are not looked at
            said = overload.mismatch(args, kwargs)
            if said is None:
                return overload.unconvertible(args, kwargs)
            mismatches.append(said)
    except TypeError as error:
        return error
    count = len(args) + len(kwargs)
    plausible = mismatches if len(overloads) == 1 else [
        said for overload, said in zip(overloads, mismatches, strict=True)
        if overload.least <= count <= len(overload.parameters) and not overload.hidden]
    if len(plausible) == 1:
        return TypeError(plausible[0])
    shown = [str(overload) for overload in overloads if not overload.hidden]
    if len(shown) == 1:
        return TypeError(_against_one(overloads[0].name, shown[0], args, kwargs))
    return invalid_combination(overloads[0].name, [text[1:-1] for text in shown], args, kwargs)


def _nothing_taken(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> TypeError | None:
    """The error of a method without parameters, which is Python's."""
    if kwargs:
        return TypeError(f"TensorBase.{name}() takes no keyword arguments")
    return TypeError(f"TensorBase.{name}() takes no arguments ({len(args)} given)") if args else None


def called(names: Sequence[str]) -> tuple[str, str]:
    """The namespace and the name under which a program has called a function, by the frames that are running.

    Args:
        names: the function's, and its aliases.
    """
    space, name = FUNCTION, names[0]
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(TENSORS):
        owner, _, function = frame.f_code.co_qualname.rpartition(".")
        if function in names and owner in ("", METHOD):  # the code of public functions has their names
            space, name = owner or FUNCTION, function
        frame = frame.f_back  # type: ignore[assignment]
    return space, name


def unfit(names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any],
          inside: tuple[str, ...] = TENSORS) -> Exception | None:
    """What a function raises instead of a TypeError: PyTorch's, if the arguments fit no signature, else None.

    Args:
        names: the function's, and its aliases.
        args: of the function; a method's have the tensor first.
        kwargs: by name.
        inside: with what the names of modules begin whose functions count as one with those that they call.
    """
    space, name = called(names)
    own: Sequence[Any] = args[1:] if space == METHOD else args
    site = call_site(inside)
    if site is None:
        return explained(space, name, own, kwargs)
    if site.is_of(space, name):
        for overload in signatures(space, name):
            own, kwargs = site.divided(overload.names_by_position, own, kwargs)
    elif (outer := site.arguments()) is not None:  # a function of others: PyTorch parses its own arguments first
        error = explained(site.space, site.name, *outer)
        if error is not None:
            return error
    return explained(space, name, own, kwargs)


def _given(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The types of a call's arguments, with PyTorch's order of keywords and its comma after the last of them."""
    parts = [*map(type_name, args), *(f"{key}={type_name(kwargs[key])}" for key in in_map_order(kwargs))]
    return ", ".join(parts) + (", " if kwargs and not args else "")


def _against_one(name: str, signature: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    said = f"{name}() received an invalid combination of arguments - "
    names, kinds = _option(signature[1:-1])
    unknown = _unknown(names, kwargs)
    if unknown:
        return said + f"got unrecognized keyword arguments: {', '.join(unknown)}"
    if len(args) + len(kwargs) == len(kinds):
        return said + f"got ({_marked(names, kinds, args, kwargs)}), but expected {signature}"
    return said + f"got ({_given(args, kwargs)}), but expected {signature}"


def invalid_combination(name: str, signatures: Iterable[str], args: Sequence[Any],
                        kwargs: dict[str, Any]) -> TypeError:
    """The error for arguments that fit no signature.

    Args:
        name: the function's.
        signatures: texts such as `int dim, Tensor index, Number value`.
        args: by position.
        kwargs: by name.
    """
    text = (f"{name}() received an invalid combination of arguments - got ({_given(args, kwargs)}), but expected one "
            "of:\n")
    for signature in signatures:
        text += f" * ({signature})\n"
        names, kinds = _option(signature)
        if len(args) + len(kwargs) != len(kinds):
            continue
        unknown = _unknown(names, kwargs)
        if unknown:
            text += f"      didn't match because some of the keywords were incorrect: {', '.join(unknown)}\n"
        else:
            text += ("      didn't match because some of the arguments have invalid types: "
                     f"({_marked(names, kinds, args, kwargs)})\n")
    return TypeError(text)


def _option(signature: str) -> tuple[list[str], list[str]]:
    """Names and types as the message compares them: of a parameter with a default, the default is the name."""
    parts = [part.rpartition(" ") for part in signature.split(", ")]  # "()" counts as one nameless argument
    return [name for _, _, name in parts], [kind or name for kind, _, name in parts]


def _unknown(names: list[str], kwargs: dict[str, Any]) -> list[str]:
    """The keywords that are none of the last names, of which there are as many as keywords."""
    last = names[-len(kwargs):] if kwargs else []
    return [key for key in in_map_order(kwargs) if key not in last]


def _marked(names: list[str], kinds: list[str], args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The types of arguments, each between exclamation marks unless it is the parameter's."""
    said = [_mark("", value, kind) for value, kind in zip(args, kinds, strict=False)]
    said += [_mark(f"{name}=", kwargs[name], kind) for name, kind in list(zip(names, kinds, strict=True))[len(args):]
             if name in kwargs]
    return ", ".join(said) + (", " if kwargs and not args else "")


def _mark(prefix: str, value: Any, kind: str) -> str:
    name = type_name(value)
    if isinstance(value, (list, tuple)):
        elements = ", ".join(map(type_name, value))
        comma = "," if len(value) == 1 else ""
        name += f" of [{elements}]" if isinstance(value, list) else f" of ({elements}{comma})"
    return prefix + name if name == kind else f"!{prefix}{name}!"


__all__ = ["FUNCTION", "METHOD", "called", "explained", "invalid_combination", "unfit"]
