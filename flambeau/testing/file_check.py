"""`torch.testing.FileCheck`: what a text must contain, in order."""

from __future__ import annotations

import re
from typing import Any, NamedTuple


class _Check(NamedTuple):
    kind: str  # of the directive: "CHECK", "CHECK-NOT", ...
    text: str
    times: int = 1

    @property
    def label(self) -> str:
        return f"{self.kind}-{self.times}" if self.kind == "CHECK-COUNT" else self.kind


_DIRECTIVE = re.compile(r"^\s*#\s*(CHECK(?:-NEXT|-SAME|-NOT|-DAG|-COUNT(?:-EXACTLY)?-(\d+))?):[ \t]*(.*)$",
                        re.MULTILINE)


class FileCheck:
    """Checks of a text: each looks behind what the one before found.

    >>> from flambeau.testing import FileCheck
    >>> FileCheck().check("mul").check_not("div").check_next("add").run("mul\\nadd")
    >>> FileCheck().check("div").run("mul")
    Traceback (most recent call last):
      ...
    RuntimeError: Expected to find "div" but did not find it
    Searched string:
    mul
    ~~~ <--- HERE
    From CHECK: div
    <BLANKLINE>
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def _add(self, kind: str, text: str, count: int = 1) -> FileCheck:
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, test_string: str) -> FileCheck:
        """The text comes next, with anything before it."""
        return self._add("CHECK", test_string)

    def check_next(self, test_string: str) -> FileCheck:
        """The text is in the next line."""
        return self._add("CHECK-NEXT", test_string)

    def check_same(self, test_string: str) -> FileCheck:
        """The text is in the same line."""
        return self._add("CHECK-SAME", test_string)

    def check_not(self, test_string: str) -> FileCheck:
        """The text is not between the neighbouring checks."""
        return self._add("CHECK-NOT", test_string)

    def check_dag(self, test_string: str) -> FileCheck:
        """The text comes next, in any order with the neighbouring checks of this kind."""
        return self._add("CHECK-DAG", test_string)

    def check_regex(self, test_string: str) -> FileCheck:
        """A match of the regular expression comes next."""
        return self._add("CHECK-REGEX", test_string)

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """The text comes next so many times; `exactly`: and not again before the next check."""
        self._add("CHECK-COUNT", test_string, count)
        return self._add("CHECK-NOT", test_string) if exactly else self

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """The text comes next, and is underlined with `~` in the line below."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", test_string)

    def run(self, *args: Any) -> None:
        """Check a text, after a text whose lines `# CHECK: ...` are the checks if two are given.

        Raises:
            RuntimeError: a check fails, or there are none.
        """
        if len(args) == 2:
            for kind, count, text in _DIRECTIVE.findall(str(args[0])):
                if count:
                    self.check_count(text.strip(), int(count), "EXACTLY" in kind)
                else:
                    self._add(kind, text.strip())
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance ofFilecheck! Check for bad input.")
        text, start, pending, index = str(args[-1]), 0, [], 0
        while index < len(self._checks):
            check = self._checks[index]
            index += 1
            if check.kind == "CHECK-NOT":
                pending.append(check)
                continue
            group = [check]
            while check.kind == "CHECK-DAG" and index < len(self._checks) and self._checks[index].kind == "CHECK-DAG":
                group.append(self._checks[index])
                index += 1
            spans = [_find(each, text, start) for each in group]
            for each in pending:
                _refuse(each, each.text, text, start, min(span[0] for span in spans))
            pending, start = [], max(span[1] for span in spans)
        for each in pending:
            _refuse(each, each.text, text, start, len(text))


def _find(check: _Check, text: str, start: int) -> tuple[int, int]:
    """Where a check begins and ends behind a position."""
    if check.kind == "CHECK-REGEX":
        match = re.compile(check.text).search(text, start)
        if match is None:
            raise RuntimeError(f'Expected to find regex "{check.text}" but did not find it\nSearched string:\n'
                               f"From {check.label}: {check.text}\n")
        return match.span()
    position, end = start, start
    for number in range(check.times):
        found = text.find(check.text, end)
        if found < 0:
            raise RuntimeError(_not_found(check, text, end))
        position, end = (found if number == 0 else position), found + len(check.text)
    if check.kind == "CHECK-SAME":
        _refuse(check, "\n", text, start, position)
    elif check.kind == "CHECK-NEXT":
        line = text.find("\n", start, position)
        if line < 0:
            raise RuntimeError(_not_found(check, text, start))
        _refuse(check, "\n", text, line + 1, position)
    elif check.kind == "CHECK-SOURCE-HIGHLIGHTED":
        _check_underlined(check, text, position)
    return position, end


def _check_underlined(check: _Check, text: str, position: int) -> None:
    column = position - (text.rfind("\n", 0, position) + 1)
    below = text.find("\n", position) + 1
    marks = text[below + column:below + column + len(check.text)] if below else ""
    if marks.strip("~") or len(marks) < len(check.text):
        raise RuntimeError(f'Expected to find "{check.text}"highlighted but it is not.\n'
                           f"{_highlighted(text, 0, len(check.text))}")


def _refuse(check: _Check, what: str, text: str, start: int, end: int) -> None:
    """Raise if a text is between two positions."""
    found = text.find(what, start, end)
    if found >= 0:
        shown = what.replace("\n", "\\n")
        raise RuntimeError(f'Expected to not find "{shown}" but found it\n{_highlighted(text, found, len(what))}'
                           f"From {check.label}: {check.text}\n")


def _not_found(check: _Check, text: str, start: int) -> str:
    return (f'Expected to find "{check.text}" but did not find it\nSearched string:\n'
            f"{_highlighted(text, start, len(check.text), len(text))}From {check.label}: {check.text}\n")


def _highlighted(text: str, start: int, length: int, lines_below: int = 2) -> str:
    """The line of a position with its neighbours, and the place underlined."""
    above = text[:start].split("\n")[:-1]
    begin = start - len(text[:start].rpartition("\n")[2])
    line, *below = text[begin:].split("\n")
    underlined = line[start - begin:start - begin + length].strip()
    marks = [f"{' ' * (start - begin)}{'~' * length} <--- HERE"] if underlined else []
    return "".join(f"{each}\n" for each in (*above[-2:], line, *marks, *below[:lines_below]))


__all__ = ["FileCheck"]
