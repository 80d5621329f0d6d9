"""Mismatches: the exception of a failed comparison, and its message with the number and the size of differences."""

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
        text: the message.
        path: indices and keys of the values in their containers.
        kind: class of the exception that the user gets.
    """

    def __init__(self, text: str, path: tuple[Any, ...] = (), kind: type[Exception] = AssertionError) -> None:
        super().__init__(text)
        self.text, self.path, self.kind = text, path, kind

    def to_error(self, message: Message = None) -> Exception:
        """The exception that the user gets.

        Args:
            message: its message, or a function that maps the default message to it.
        """
        if isinstance(message, str):
            return self.kind(message)
        text = self.text
        if self.path:
            text += f"\n\nThe failure occurred for item {item_path(self.path)}"
        return self.kind(message(text) if callable(message) else text)


def item_path(path: tuple[Any, ...]) -> str:
    """The path in the form `[0]['a']`."""
    return "".join(str([step]) for step in path)


def _format_message(subject: str, summary: str, differences: list[tuple[str, float]],
                    tolerances: tuple[float, float]) -> str:
    """The message; its last two lines are the absolute and the relative difference.

    Args:
        subject: what was compared.
        summary: line after the first one.
        differences: (format string, size) of each.
        tolerances: (atol, rtol).
    """
    exact = tolerances == (0, 0)
    lines = [f"{subject} are not {'equal' if exact else 'close'}!", "", summary]
    for (name, size), allowed in zip(differences, tolerances, strict=True):
        lines.append(name.format(size) + ("" if exact else f" (up to {allowed} allowed)"))
    return "\n".join(lines)


def scalar_message(actual: Any, expected: Any, rtol: float, atol: float, subject: str = "Scalars") -> str:
    """The message for two scalars; `subject` says what they are."""
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return _format_message(subject, f"Expected {expected} but got {actual}.",
                           [("Absolute difference: {}", difference), ("Relative difference: {}", relative)],
                           (atol, rtol))


def tensor_message(actual: Tensor, expected: Tensor, matches: Tensor, rtol: float, atol: float,
                   subject: str = "Tensor-likes") -> str:
    """The message for two tensors of one shape and dtype.

    Args:
        matches: bool tensor: the elements that are close.
        subject: what the tensors are.
    """
    count = prod(matches._array.shape)
    wrong = count - int(fn.sum(matches))
    flat_actual, flat_expected = fn.flatten(actual), fn.flatten(expected)
    if not (actual.is_floating_point() or actual.is_complex()):
        # a difference may not fit in a narrow dtype
        flat_actual, flat_expected = flat_actual.long(), flat_expected.long()
    close = fn.flatten(matches)
    difference = fn.abs(flat_actual - flat_expected)
    difference[close] = 0
    relative = difference / fn.abs(flat_expected)
    relative[close] = 0  # 0 / 0 where both are 0
    differences = []
    for name, sizes in (("absolute", difference), ("relative", relative)):
        greatest, at = fn.max(sizes, 0)
        differences.append((f"Greatest {name} difference: {{}} at index {_index(int(at), matches._array.shape)}",
                            greatest.item()))
    return _format_message(subject, f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})", differences,
                           (atol, rtol))


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        flat, remainder = divmod(flat, size)
        index.append(remainder)
    return tuple(reversed(index))


__all__ = ["Message", "Mismatch", "item_path", "scalar_message", "tensor_message"]
