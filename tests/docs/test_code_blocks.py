"""Every block of code on a page runs: Python as it stands, sessions with the answers they show.

The blocks of one page share a namespace, as in a notebook, and run in an empty folder.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    text = page.read_text(encoding="utf-8")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for block in _BLOCK.finditer(text):
        language, source = block.groups()
        line = text.count("\n", 0, block.start(2))
        if language == "python":
            exec(compile("\n" * line + source, str(page), "exec"), namespace)
            continue
        session = parser.get_doctest(source, namespace, page.stem, str(page), line)
        said: list[str] = []
        runner.run(session, out=said.append, clear_globs=False)
        namespace.update(session.globs)
        assert not said, "".join(said)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
