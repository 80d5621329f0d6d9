"""The outputs shown in `docs/compile.md` equal what the program prints.

`python tests/docs/test_compile_page.py` updates the page.
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
#: parts of the output that depend on the machine or the run
_VARIES = re.compile(r"[\d,]+(?= bytes of memory)|\d+ chunks?(?=;)|(?<=; code ).*$", re.M)
#: the page shows so many lines of the beginning and of the end of each view
_EDGE = 6


def printed(folder: Path, view: str | None) -> str:
    """The output of the page's program; with a view of FLAMBEAU_DEBUG, the first and last lines of each part."""
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
        views.append("\n".join([*lines[:_EDGE], "  ...", *lines[-_EDGE:]] if len(lines) > 2 * _EDGE else lines))
    return "\n\n".join(views) + "\n"


def normalized(text: str) -> str:
    """The text with parts that may differ replaced."""
    return _VARIES.sub("N", text)


@pytest.mark.parametrize("number", [0, 1])
def test_shown_output_equals_printed_output(number, tmp_path):
    from flambeau import codegen

    if not codegen.available():
        pytest.skip("llvmlite is not installed, or FLAMBEAU_JIT is 0")
    shown = [*_SHOWN.finditer(PAGE.read_text(encoding="utf-8"))][number]
    assert normalized(shown["text"]) == normalized(printed(tmp_path, shown["view"])), f"run python {__file__}"


def rewrite(folder: Path) -> None:
    """Replace the outputs in the page."""
    def replacement(match: re.Match[str]) -> str:
        start = match.start("text") - match.start()
        return match[0][:start] + printed(folder, match["view"]) + "```"

    PAGE.write_text(_SHOWN.sub(replacement, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        rewrite(Path(temporary))
