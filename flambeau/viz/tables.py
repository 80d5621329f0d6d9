"""A small table of text: aligned columns when printed, a rich table on a rich console."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Table:
    """Rows of text under column heads, the last column to the right.

    >>> from flambeau.viz.tables import Table
    >>> print(Table("squares", ("x", "x²"), [("1", "1"), ("12", "144")]))
    squares
    x    x²
    ───────
    1     1
    12  144
    """

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]] = ()

    def __str__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join([*(cell + " " * (width - _width(cell))
                             for cell, width in zip(line[:-1], widths, strict=False)),
                           " " * (widths[-1] - _width(line[-1])) + line[-1]]) for line in lines]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([self.title, text[0], rule, *text[1:]])

    def __rich__(self) -> Any:
        from rich import box
        from rich.table import Table as RichTable

        table = RichTable(title=self.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for position, head in enumerate(self.heads):
            table.add_column(head, justify="right" if position == len(self.heads) - 1 else "left")
        for row in self.rows:
            table.add_row(*row)
        return table


def _width(text: str) -> int:
    """Columns that a text takes on a terminal: combining marks such as the dot of v̇ take none."""
    return sum(not unicodedata.combining(character) for character in text)
