"""Tables of formulas, as aligned text, rich tables, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..drawing.escaping import escaped

_STYLES = ("bold cyan", "", "", "dim", "bold green")  # of the first, middle, next-to-last and last columns
_CSS = ("border-collapse:collapse;font-variant-numeric:tabular-nums",
        "text-align:left;font-weight:bold;padding:0 0 .4em", "padding:.15em .9em;text-align:")


class Cell(str):
    """A cell's text with its LaTeX form.

    >>> from flambeau.viz.traces.tables import Cell
    >>> cell = Cell("v₁²", "v_{1}^{2}")
    >>> cell, cell.latex
    ('v₁²', 'v_{1}^{2}')
    """

    __slots__ = ("latex",)
    latex: str

    def __new__(cls, text: str, latex: str | None = None) -> Cell:
        cell = super().__new__(cls, text)
        cell.latex = (rf"\mathrm{{{escaped(text)}}}" if text else "") if latex is None else latex
        return cell


@dataclass
class Table:
    """Rows of text under column heads; the last column is right-aligned.

    >>> from flambeau.viz.traces.tables import Table
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
        widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join([*(cell + " " * (room - width(cell))
                             for cell, room in zip(line[:-1], widths, strict=False)),
                           " " * (widths[-1] - width(line[-1])) + line[-1]]) for line in lines]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([self.title, text[0], rule, *text[1:]])

    def __rich__(self) -> Any:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(title=self.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        last = len(self.heads) - 1
        for position, head in enumerate(self.heads):
            style = _STYLES[0] if not position else _STYLES[-1] if position == last else (
                _STYLES[3] if position == last - 1 else _STYLES[1])
            table.add_column(head, justify="right" if position == last else "left", style=style)
        for row in self.rows:
            table.add_row(*map(Text, row))  # without markup: a cell may contain [x > 0]
        return table

    def to_markdown(self) -> str:
        """The table in Markdown (GitHub, MyST).

        >>> from flambeau.viz.traces.tables import Table
        >>> print(Table("sizes", ("x", "size"), [("-2", "|-2|")]).to_markdown())
        | x | size |
        | :-- | --: |
        | -2 | \\|-2\\| |
        """
        rules = [":--"] * (len(self.heads) - 1) + ["--:"]
        lines = [self.heads, rules, *self.rows]
        return "\n".join("| " + " | ".join(map(_markdown, line)) + " |" for line in lines)

    def to_latex(self) -> str:
        r"""The table as a LaTeX `array`, for math mode.

        >>> from flambeau.viz.traces.tables import Cell, Table
        >>> print(Table("one", ("", "is"), [(Cell("v₁", "v_{1}"), Cell("2", "2"))]).to_latex())
        \begin{array}{lr}
        v_{1} = & 2
        \end{array}
        """
        lines = []
        for row in self.rows:
            cells = [getattr(cell, "latex", None) or (Cell(cell).latex if cell else "") for cell in row]
            filled = [place for place, cell in enumerate(cells) if cell]
            lines.append(" & ".join(cell + " =" if place in filled[:-1] else cell for place, cell in enumerate(cells)))
        columns = "l" * (len(self.heads) - 1) + "r"
        return "\n".join([rf"\begin{{array}}{{{columns}}}", " \\\\\n".join(lines), r"\end{array}"])

    def to_html(self) -> str:
        """The table as an HTML element with the page's font and colours.

        >>> from flambeau.viz.traces.tables import Table
        >>> "<td" in Table("one", ("a", "b"), [("x < 1", "2")]).to_html()
        True
        """
        table, caption, cell = _CSS
        last = len(self.heads) - 1

        def row(tag: str, cells: Sequence[str]) -> str:
            sides = ["left"] * last + ["right"]
            return "<tr>" + "".join(f'<{tag} style="{cell}{side}">{html.escape(text)}</{tag}>'
                                    for side, text in zip(sides, cells, strict=True)) + "</tr>"

        body = "\n".join(row("td", cells) for cells in self.rows)
        return (f'<table style="{table}">\n<caption style="{caption}">{html.escape(self.title)}</caption>\n'
                f'<thead>{row("th", self.heads)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>')

    def _repr_html_(self) -> str:
        return self.to_html()

    def _repr_latex_(self) -> str:
        return f"$$\n{self.to_latex()}\n$$"

    def _repr_markdown_(self) -> str:
        return f"**{_markdown(self.title)}**\n\n{self.to_markdown()}"


def _markdown(text: str) -> str:
    for special in ("\\", "|", "*", "_", "<", "`"):
        text = text.replace(special, "\\" + special)
    return text


def width(text: str) -> int:
    """The width of a text on a terminal; combining marks such as the dot of v̇ have width 0."""
    return sum(not unicodedata.combining(character) for character in text)
