"""The pictures of the manual are reproduced by `docs/draw_pictures.py`; the gallery shows the current traces."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau.viz import adjoint_trace, evaluation_trace, tangent_trace

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = DOCS / "pictures"


@pytest.mark.slow
def test_every_picture_of_the_manual_is_drawn(tmp_path):
    for package in ("matplotlib", "sklearn", "rich"):
        pytest.importorskip(package)
    done = subprocess.run([sys.executable, "-W", "error", DOCS / "draw_pictures.py", tmp_path], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    shown = {name for page in DOCS.glob("*.md")
             for name in re.findall(r"\(pictures/([\w.-]+)\)", page.read_text(encoding="utf-8"))}
    by_browser = {name for name in shown if name.startswith("explorer")}
    measured = {name for name in shown if "measured" in name or name.startswith("scaling")}  # by processes that time
    assert shown - by_browser - measured <= set(drawn)
    starts = {".svg": b"<", ".png": b"\x89PNG", ".gif": b"GIF8"}
    for name, content in drawn.items():
        assert content.startswith(starts[Path(name).suffix]), name
        assert len(content) < 300_000, name
    if shutil.which("dot"):
        for name in drawn:
            if name.endswith(".svg") and "layered" not in name:
                assert labels(drawn[name].decode()) == labels((PICTURES / name).read_text(encoding="utf-8")), name


def labels(svg):
    """The text elements of a drawing, in order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_every_picture_of_a_page_exists():
    for page in DOCS.glob("*.md"):
        for name in re.findall(r"\(pictures/([\w.-]+)\)", page.read_text(encoding="utf-8")):
            assert (PICTURES / name).exists(), f"{page.name} shows {name}"


def test_the_gallery_shows_the_traces_as_they_are():
    from flambeau.demo.traces import function  # and scikit-learn, which takes seconds

    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for trace in (evaluation_trace(function, 2., 5.), tangent_trace(function, 2., 5.), adjoint_trace(function, 2., 5.)):
        assert f"$$\n{trace.to_latex()}\n$$" in page
