"""The explorer's page: one HTML file with its style, its program and the document inside, and nothing fetched."""

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
    """The whole page of a document."""
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    filled = {
        "title": html.escape(str(document["title"])),
        "style": _part("look.css"),
        "program": "\n".join(map(_part, _PROGRAM)),
        # neither the end of a script nor a comment may begin in a script's text
        "document": data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: filled[place[1]], _part("page.html"))


def write_page(document: dict[str, Any], path: str | os.PathLike[str] | None = None) -> Path:
    """Write the page of a document; its absolute path comes back.

    Args:
        document: as `document_of` makes it.
        path: the file; None: a new one in the folder for temporary files.
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
    """Open a file in the user's browser; whether there was one to ask."""
    return webbrowser.open(page.as_uri())


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


__all__ = ["open_page", "page_text", "write_page"]
