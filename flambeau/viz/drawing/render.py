"""`render`: writes a picture to a file, by Graphviz's `dot` if it is installed, else by the layered layout.

Both draw the same boxes and arrows with the same labels and colours. The layered layout needs no package for SVG, and
matplotlib for other formats.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .picture import Picture

_MOST_PIXELS = 60000  # along one side; larger pictures are scaled down


def render(picture: Picture, path: str | Path) -> Path:
    """Draw a picture into a file.

    Args:
        picture: from `backward_picture` or a recorded program.
        path: the file; its suffix selects the format (png, svg, pdf).

    Returns:
        The path of the file.

    Raises:
        ValueError: the path has no suffix.
        ModuleNotFoundError: the format is not SVG, and neither Graphviz's `dot` with the graphviz package nor
            matplotlib is installed.

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
    if shutil.which("dot"):
        from .dot import to_digraph

        drawing = to_digraph(picture)
        path.write_bytes(drawing.pipe(format=path.suffix[1:]))
        return path
    if path.suffix == ".svg":
        from .svg import svg_of_picture

        path.write_text(svg_of_picture(picture), encoding="utf-8")
        return path
    from .layered import draw

    figure = draw(picture)
    figure.savefig(path, dpi=min(100, _MOST_PIXELS / max(figure.get_size_inches())))
    return path
