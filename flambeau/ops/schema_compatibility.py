"""Whether calls of an operator's old schema fit a new one, and the reverse: `is_backward_compatible_with`.

The arguments before the first `out=` are compared in order, then those from it on; between them a new schema may have
more arguments with defaults.
"""

from __future__ import annotations

from typing import Any

_NUMBERS = frozenset(("int", "float", "complex", "SymInt"))


def is_subtype(part: str, whole: str) -> bool:
    """Whether values of one type are values of another.

    >>> is_subtype("int", "int?"), is_subtype("int?", "int"), is_subtype("int", "Scalar")
    (True, False, True)
    """
    if part == whole or whole == "Any":
        return True
    if whole.endswith("?"):
        return is_subtype(part.removesuffix("?"), whole[:-1])
    return not part.endswith("?") and whole in ("Scalar", "number") and part in _NUMBERS


def _aliases_alike(a: Any, b: Any) -> bool:
    if a.alias_info is None or b.alias_info is None:
        return a.alias_info is b.alias_info
    return (a.alias_info.is_write, a.alias_info.before_set, a.alias_info.after_set) == (
        b.alias_info.is_write, b.alias_info.before_set, b.alias_info.after_set)


def _size(type_name: str) -> str:
    """The length of a list that a number stands for, `2` of `int[2]`."""
    return type_name.partition("[")[2].partition("]")[0]


def _type(argument: Any) -> str:
    name = argument.type_name
    size = _size(name)
    return name.replace(f"[{size}]", "[]") if size else name


def _alike(new: Any, old: Any) -> bool:
    """Whether name, list length, and aliases are the same, and what was given by position still may be."""
    return (new.name == old.name and _size(new.type_name) == _size(old.type_name) and _aliases_alike(new, old)
            and not (new.kwarg_only and not old.kwarg_only))


def _fits_old_calls(new: Any, old: Any) -> bool:
    if not _alike(new, old) or not is_subtype(_type(old), _type(new)):
        return False
    return not old.has_default or (new.has_default and new.default_value == old.default_value)


def _fits_new_calls(new: Any, old: Any) -> bool:
    return (_alike(new, old) and is_subtype(_type(new), _type(old)) and new.has_default == old.has_default
            and new.default_value == old.default_value)


def _arguments(schema: Any) -> tuple[list[Any], list[Any], bool]:
    """The arguments before the first `out=`, those from it on, and whether further ones may follow."""
    arguments = [a for a in schema.arguments if a.name != "..."]
    start = next((i for i, a in enumerate(arguments) if a.is_out), len(arguments))
    return arguments[:start], arguments[start:], len(arguments) < len(schema.arguments)


def is_backward_compatible(new: Any, old: Any) -> bool:
    """Whether every call of an old schema is one of the new."""
    plain, outs, more = _arguments(new)
    old_plain, old_outs, old_more = _arguments(old)
    if (new.name, new.overload_name, more, len(new.returns)) != (
            old.name, old.overload_name, old_more, len(old.returns)):
        return False
    if len(plain) < len(old_plain) or len(outs) < len(old_outs):
        return False
    return (all(_fits_old_calls(o, n) for n, o in zip(new.returns, old.returns, strict=True))
            and all(_fits_old_calls(n, o) for n, o in zip(plain, old_plain, strict=False))
            and all(a.has_default for a in plain[len(old_plain):])
            and all(_fits_old_calls(n, o) for n, o in zip(outs, old_outs, strict=False)))


def forward_compatibility(new: Any, old: Any) -> tuple[bool, str]:
    """Whether calls of a new schema that leave out its new arguments are calls of the old; where they are not, why."""
    plain, outs, more = _arguments(new)
    old_plain, old_outs, old_more = _arguments(old)
    if (new.name, new.overload_name, more, len(new.returns)) != (
            old.name, old.overload_name, old_more, len(old.returns)):
        return False, ""
    if len(outs) != len(old_outs):
        return False, "Function schema should have the same number of out arguments"
    for n, o in zip(plain, old_plain, strict=False):
        if not _fits_new_calls(n, o):
            return False, f"'{n.name}' is not forward compatible with the older version of the schema"
    for a in plain[len(old_plain):]:
        what = f"Function schema is not forward compatible since the new argument '{a.name}' of type {_type(a)} "
        if not a.has_default:
            return False, what + "did not provide a default value."
        if a.type_name.endswith("]") and a.default_value is not None:
            return False, what + "has a container type as its default value."
    for i, (n, o) in enumerate(zip(outs, old_outs, strict=True), len(old_plain)):
        if not _fits_new_calls(n, o):  # PyTorch names the argument at the old one's position
            named = (plain + outs)[min(i, len(plain) + len(outs) - 1)]
            return False, f"Out argument ''{named.name} is not FC with the older version of the schema"
    return True, ""


__all__ = ["forward_compatibility", "is_backward_compatible", "is_subtype"]
