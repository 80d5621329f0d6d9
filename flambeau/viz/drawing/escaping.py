"""What is special in LaTeX, escaped."""

from __future__ import annotations

_ESCAPES = {"\\": r"\backslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$",
            "^": r"\wedge{}", "~": r"\sim{}"}


def escaped(text: str) -> str:
    """Text as LaTeX's mathematics takes it.

    >>> from flambeau.viz.drawing.escaping import escaped
    >>> print(escaped("log_softmax"))
    log\\_softmax
    """
    return "".join(_ESCAPES.get(character, character) for character in text)
