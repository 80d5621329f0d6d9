"""Escaping of LaTeX's special characters."""

from __future__ import annotations

_ESCAPES = {"\\": r"\backslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$",
            "^": r"\wedge{}", "~": r"\sim{}"}


def escaped(text: str) -> str:
    """Text with special characters escaped for LaTeX's math mode.

    >>> from flambeau.viz.drawing.escaping import escaped
    >>> print(escaped("log_softmax"))
    log\\_softmax
    """
    return "".join(_ESCAPES.get(character, character) for character in text)
