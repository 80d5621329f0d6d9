"""A picture in a file: by Graphviz's `dot` where it is installed, else by the layered layout.

The two draw the same boxes and arrows with the same labels and colours; Graphviz
routes its lines better, the other needs nothing for SVG, and nothing but matplotlib for the rest.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .picture import Picture

_MOST_PIXELS = 60000  # along one side; a picture that is longer is drawn smaller


def render(picture: Picture, path: str | Path) -> Path:
    """Draw a picture into a file.

    Args:
        picture: what to draw, from `backward_picture` or a recorded program.
        path: the file to write; its ending picks the format (png, svg, pdf).

    Returns:
        The path of the file.

    Raises:
        ValueError: the path has no ending.
        ModuleNotFoundError: no SVG is asked for, and neither Graphviz's `dot` with the graphviz package
            nor matplotlib is installed.
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
