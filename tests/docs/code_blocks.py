"""Run the code blocks of a page of the manual: `python code_blocks.py PAGE`, a process that imports little."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.M | re.S)


def run(page: Path) -> int:
    """Run a page's blocks and return the number of outputs that differ."""
    namespace: dict[str, object] = {"__name__": "page"}
    text = page.read_text(encoding="utf-8")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for block in BLOCK.finditer(text):
        language, source = block.groups()
        line = text.count("\n", 0, block.start(2))
        if language == "python":
            exec(compile("\n" * line + source, str(page), "exec"), namespace)
        else:
            session = parser.get_doctest(source, namespace, page.stem, str(page), line)
            runner.run(session, clear_globs=False)
            namespace.update(session.globs)
    return runner.summarize(verbose=False).failed


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    sys.exit(min(run(Path(sys.argv[1])), 1))
