"""Code blocks of the manual run: Python blocks without error, sessions with the output that they show.

The blocks of a page share a namespace. Each page runs in its own process and an empty directory:
`python test_code_blocks.py PAGE` is that process.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
         *(page for folder in (".", "internals", "decisions", "reference", "notebooks")
           for page in sorted((ROOT / "docs" / folder).glob("*.md")))]

_BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.M | re.S)


def run(page: Path) -> int:
    """Run a page's blocks and return the number of outputs that differ."""
    namespace: dict[str, object] = {"__name__": "page"}
    text = page.read_text(encoding="utf-8")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for block in _BLOCK.finditer(text):
        language, source = block.groups()
        line = text.count("\n", 0, block.start(2))
        if language == "python":
            exec(compile("\n" * line + source, str(page), "exec"), namespace)
        else:
            session = parser.get_doctest(source, namespace, page.stem, str(page), line)
            runner.run(session, clear_globs=False)
            namespace.update(session.globs)
    return runner.summarize(verbose=False).failed


@pytest.mark.parametrize("page", [page for page in PAGES if _BLOCK.search(page.read_text(encoding="utf-8"))],
                         ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path):
    done = subprocess.run([sys.executable, "-W", "error", __file__, page], capture_output=True, text=True,
                          cwd=tmp_path)
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


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    sys.exit(min(run(Path(sys.argv[1])), 1))
