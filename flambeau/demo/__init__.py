"""`flambeau demo`: traces a function, runs gradient descent, trains a classifier, and draws pictures.

    show(Path("flambeau-demo"))
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from . import descent, digits, traces


def show(out: Path) -> list[Path]:
    """Run the three parts, print their results and write their pictures.

    Args:
        out: the directory of the pictures; it is created if missing.

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
