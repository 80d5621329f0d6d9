"""`flambeau demo`: a graph traced, two functions descended, a classifier trained, all drawn.

    show(Path("flambeau-demo"))
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from . import descent, digits, traces


def show(out: Path) -> list[Path]:
    """Do the three parts, print what they find and write their pictures.

    Args:
        out: the folder for the pictures, made if it is not there.

    Returns:
        The pictures' paths.
    """
    console = Console(highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    pictures = []
    for number, part in enumerate((traces, descent, digits), 1):
        console.rule(f"[bold]{number}. {part.TITLE}", align="left")
        console.print()
        pictures += part.show(out, console)
        console.print()
    console.rule("[bold]Pictures", align="left")
    for picture in pictures:
        console.print(f"  {picture}", soft_wrap=True)
    return pictures
