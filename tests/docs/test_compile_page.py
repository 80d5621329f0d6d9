"""What the page on compiled functions shows of them is what they print.

`python tests/docs/test_compile_page.py` writes it anew where it has changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compile.md"

_PROGRAM = re.compile(r"^```python\n(# step\.py\n.*?)^```$", re.M | re.S)
_SHOWN = re.compile(r"^```\{code-block\} console\n\$ (?P<view>FLAMBEAU_DEBUG=\S+ )?python step\.py\n(?P<text>.*?)^```$",
                    re.M | re.S)
#: what differs from machine to machine, or from run to run
_VARIES = re.compile(r"[\d,]+(?= bytes of memory)|\d+ chunks?(?=;)|(?<=; code ).*$", re.M)
#: of the views, what the page shows: the beginning and the end of each
_KEPT = 6


def printed(folder: Path, view: str | None) -> str:
    """What the page's program prints; of the views of FLAMBEAU_DEBUG, some lines each."""
    (folder / "step.py").write_text(_PROGRAM.search(PAGE.read_text(encoding="utf-8"))[1], encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if view is not None:
        name, _, value = view.strip().partition("=")
        environment[name] = value
    done = subprocess.run([sys.executable, "step.py"], capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    if view is None:
        return done.stdout
    views = []
    for text in done.stderr.strip().split("\n\n"):
        lines = text.splitlines()
        views.append("\n".join([*lines[:_KEPT], "  ...", *lines[-_KEPT:]] if len(lines) > 2 * _KEPT else lines))
    return "\n\n".join(views) + "\n"


def alike(text: str) -> str:
    """The text without what may differ."""
    return _VARIES.sub("N", text)


@pytest.mark.parametrize("number", [0, 1])
def test_what_the_page_shows_is_what_is_printed(number, tmp_path):
    from flambeau import codegen

    if not codegen.available():
        pytest.skip("llvmlite is not installed, or FLAMBEAU_JIT is 0")
    shown = [*_SHOWN.finditer(PAGE.read_text(encoding="utf-8"))][number]
    assert alike(shown["text"]) == alike(printed(tmp_path, shown["view"])), f"python {__file__} writes the page anew"


def rewrite(folder: Path) -> None:
    """Put what is printed into the page."""
    def anew(match: re.Match[str]) -> str:
        start = match.start("text") - match.start()
        return match[0][:start] + printed(folder, match["view"]) + "```"

    PAGE.write_text(_SHOWN.sub(anew, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        rewrite(Path(temporary))
