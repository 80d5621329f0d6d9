"""Conversion of Graphviz's colour names to CSS colours."""

from __future__ import annotations

_X11_ONLY = {"darkolivegreen1": "#caff70", "darkolivegreen3": "#a2cd5a"}  # names that CSS lacks


def colour_of(name: str) -> str:
    """The CSS (and matplotlib) colour for one of Graphviz's names.

    >>> from flambeau.viz.drawing.x11 import colour_of
    >>> colour_of("darkolivegreen1"), colour_of("lightblue")
    ('#caff70', 'lightblue')
    """
    return _X11_ONLY.get(name, name)


__all__ = ["colour_of"]
