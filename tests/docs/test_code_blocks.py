"""Code blocks of the manual run: Python blocks without error, sessions with the output that they show.

The blocks of a page share a namespace. Each page runs in its own process, `python code_blocks.py PAGE`, and an empty
directory.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .code_blocks import BLOCK

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
         *(page for folder in (".", "internals", "decisions", "reference", "notebooks")
           for page in sorted((ROOT / "docs" / folder).glob("*.md")))]


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))],
                         ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path):
    program = Path(__file__).with_name("code_blocks.py")
    done = subprocess.run([sys.executable, "-W", "error", program, page], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_are_valid():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_pages_name_exist():
    missing = [f"{page.relative_to(ROOT)}: {path}" for page in PAGES if "decisions" not in page.parts
               for path in re.findall(r"`((?:flambeau|tests|benchmarks|docs|tools)/[\w/.-]*)`",
                                      page.read_text(encoding="utf-8")) if not (ROOT / path).exists()]
    assert not missing, "\n".join(missing)
