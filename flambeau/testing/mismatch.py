"""What is said of two values that differ: where, in how many elements, and by how much at most."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn

Message = str | Callable[[str], str] | None


class Mismatch(Exception):
    """Two values differ, or cannot be compared.

    Args:
        text: how.
        where: the indices and keys on the way to them.
        kind: what to raise to the user.
    """

    def __init__(self, text: str, where: tuple[Any, ...] = (), kind: type[Exception] = AssertionError) -> None:
        super().__init__(text)
        self.text, self.where, self.kind = text, where, kind

    def error(self, message: Message = None) -> Exception:
        """The user's exception.

        Args:
            message: its text, or what makes it from this one.
        """
        if isinstance(message, str):
            return self.kind(message)
        text = self.text
        if self.where:
            text += f"\n\nThe failure occurred for item {place(self.where)}"
        return self.kind(message(text) if callable(message) else text)


def place(where: tuple[Any, ...]) -> str:
    """Indices and keys, as in `[0]['a']`."""
    return "".join(str([step]) for step in where)


def _said(what: str, facts: str, differences: list[tuple[str, float]], tolerances: tuple[float, float]) -> str:
    """The message; its last two lines are the absolute and the relative difference.

    Args:
        differences: how each is named, and its size.
        tolerances: atol and rtol.
    """
    exact = tolerances == (0, 0)
    lines = [f"{what} are not {'equal' if exact else 'close'}!", "", facts]
    for (name, size), allowed in zip(differences, tolerances, strict=True):
        lines.append(name.format(size) + ("" if exact else f" (up to {allowed} allowed)"))
    return "\n".join(lines)


def of_scalars(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    """What to say of two numbers."""
    apart = abs(actual - expected)
    relative = float("inf") if expected == 0 else apart / abs(expected)
    return _said("Scalars", f"Expected {expected} but got {actual}.",
                 [("Absolute difference: {}", apart), ("Relative difference: {}", relative)], (atol, rtol))


def of_tensors(actual: Tensor, expected: Tensor, matches: Tensor, rtol: float, atol: float) -> str:
    """What to say of two tensors of one shape and dtype.

    Args:
        matches: which elements are close.
    """
    count = prod(matches._array.shape)
    wrong = count - int(fn.sum(matches))
    one, other = fn.flatten(actual), fn.flatten(expected)
    if not (actual.is_floating_point() or actual.is_complex()):
        one, other = one.long(), other.long()  # a difference may not fit in a narrow dtype
    close = fn.flatten(matches)
    apart = fn.abs(one - other)
    apart[close] = 0
    relative = apart / fn.abs(other)
    relative[close] = 0  # 0 / 0 where both are 0
    differences = []
    for name, sizes in (("absolute", apart), ("relative", relative)):
        greatest, at = fn.max(sizes, 0)
        differences.append((f"Greatest {name} difference: {{}} at index {_index(int(at), matches._array.shape)}",
                            greatest.item()))
    return _said("Tensor-likes", f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})", differences,
                 (atol, rtol))


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    found: list[int] = []
    for size in reversed(shape):
        flat, remainder = divmod(flat, size)
        found.append(remainder)
    return tuple(reversed(found))


__all__ = ["Message", "Mismatch", "of_scalars", "of_tensors", "place"]
