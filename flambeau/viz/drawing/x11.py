"""Colours by the names that Graphviz knows them by, as the web knows them."""

from __future__ import annotations

_ELSEWHERE = {"darkolivegreen1": "#caff70", "darkolivegreen3": "#a2cd5a"}  # X11's, not CSS's


def colour_of(name: str) -> str:
    """What a browser, or matplotlib, calls a colour of Graphviz's.

    >>> from flambeau.viz.drawing.x11 import colour_of
    >>> colour_of("darkolivegreen1"), colour_of("lightblue")
    ('#caff70', 'lightblue')
    """
    return _ELSEWHERE.get(name, name)


__all__ = ["colour_of"]
