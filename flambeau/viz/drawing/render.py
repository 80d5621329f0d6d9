"""`render`: writes a picture to a file, by Graphviz: the program `dot`, or the library inside of pygraphviz.

Without either of them, an SVG file is drawn by the layered layout, which needs no package.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .picture import Picture


def render(picture: Picture, path: str | Path) -> Path:
    """Draw a picture into a file.

    Args:
        picture: from `backward_picture` or a recorded program.
        path: the file; its suffix selects the format (png, svg, pdf).

    Returns:
        The path of the file.

    Raises:
        ValueError: the path has no suffix.
        ModuleNotFoundError: the format is not SVG, and Graphviz is not installed.

    >>> import pathlib, tempfile
    >>> from flambeau.viz import Picture, render
    >>> from flambeau.viz.drawing.picture import Arrow, Box
    >>> picture = Picture(pieces=[Box("a", "x"), Box("b", "y"), Arrow("a", "b")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     render(picture, pathlib.Path(folder) / "picture.svg").name
    'picture.svg'
    """
    path = Path(path)
    if not path.suffix:
        raise ValueError(f"the ending of {str(path)!r} should say the format, as in {path.name}.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    if image := _by_graphviz(picture, path.suffix[1:]):
        path.write_bytes(image)
    elif path.suffix == ".svg":
        from .svg import svg_of_picture

        path.write_text(svg_of_picture(picture), encoding="utf-8")
    else:
        raise ModuleNotFoundError(f"drawing {path.name} needs Graphviz, which is not installed: "
                                  "pip install flambeau[viz]; SVG files need no package", name="pygraphviz")
    return path


def _by_graphviz(picture: Picture, suffix: str) -> bytes | None:
    """The image that Graphviz draws; None if it is not installed."""
    if shutil.which("dot") is None:
        try:
            import pygraphviz
        except ModuleNotFoundError:
            return None
    from .dot import to_digraph

    drawing = to_digraph(picture)
    if shutil.which("dot"):
        return bytes(drawing.pipe(format=suffix))
    return bytes(pygraphviz.AGraph(string=drawing.source).draw(format=suffix, prog="dot"))
