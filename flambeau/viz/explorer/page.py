"""The explorer's page: one HTML file with embedded style sheet, scripts and document."""

from __future__ import annotations

import html
import json
import os
import re
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

_PARTS = Path(__file__).parent / "page"
_PROGRAM = ("layout.js", "document.js", "scene.js", "dom.js", "drawing.js", "panel.js", "list.js", "player.js",
            "app.js", "input.js", "start.js")


def page_text(document: dict[str, Any]) -> str:
    """The HTML page of a document."""
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    filled = {
        "title": html.escape(str(document["title"])),
        "style": _part("look.css"),
        "program": "\n".join(map(_part, _PROGRAM)),
        # a script's text must not contain the end of a script or the start of a comment
        "document": data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: filled[place[1]], _part("page.html"))


def write_page(document: dict[str, Any], path: str | os.PathLike[str] | None = None) -> Path:
    """Write the page of a document, and return its absolute path.

    Args:
        document: from `document_of`.
        path: the file; None: a new temporary file.
    """
    if path is None:
        handle, name = tempfile.mkstemp(".html", "flambeau-graph-")
        os.close(handle)
        page = Path(name)
    else:
        page = Path(path).absolute()
        page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(page_text(document), encoding="utf-8")
    return page


def open_page(page: Path) -> bool:
    """Open a file in the user's browser; whether there is one."""
    return webbrowser.open(page.as_uri())


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


__all__ = ["open_page", "page_text", "write_page"]
