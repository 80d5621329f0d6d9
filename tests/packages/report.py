"""Comparison of the outcomes of a package's tests on PyTorch and on flambeau."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

Outcomes = dict[str, tuple[str, str]]  # test -> its outcome and the reason of a failure


def read(path: Path) -> Outcomes:
    """The outcomes that the plugin has written; none if it did not run."""
    if not path.exists():
        return {}
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {entry["test"]: (entry["outcome"], entry["reason"]) for entry in entries}


@dataclass(frozen=True)
class Comparison:
    """Outcomes on both sides.

    >>> both = Comparison("p", {"a": ("passed", ""), "b": ("passed", "")}, {"a": ("passed", ""), "b": ("failed", "no")})
    >>> both.share, both.failures
    (0.5, [('b', 'no')])
    """

    name: str
    pytorch: Outcomes
    flambeau: Outcomes

    @property
    def passed(self) -> list[str]:
        """The tests that pass on PyTorch."""
        return [test for test, (outcome, _) in self.pytorch.items() if outcome == "passed"]

    @property
    def failures(self) -> list[tuple[str, str]]:
        """The tests that pass on PyTorch and not on flambeau, with the reason; those of unimportable files count."""
        found = []
        for test in self.passed:
            outcome, reason = self.flambeau.get(test) or self._collection_error(test)
            if outcome != "passed":
                found.append((test, reason or outcome))
        return found

    def _collection_error(self, test: str) -> tuple[str, str]:
        return self.flambeau.get(test.partition("::")[0], ("not run", "not run"))

    @property
    def share(self) -> float:
        """The share of the tests passed on PyTorch that pass on flambeau; 0 if none ran."""
        return 1 - len(self.failures) / len(self.passed) if self.passed else 0.0


def summary(reason: str) -> str:
    """The line of a failure's text that says what was raised.

    >>> summary("a.py:1: in <module>\\n    import b\\nE   ImportError: no b")
    'ImportError: no b'
    """
    lines = reason.strip().splitlines() or ["not run"]
    raised = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return (raised or lines)[-1 if raised else 0][:200]


def table(comparisons: list[Comparison]) -> str:
    """A Markdown table."""
    lines = ["| package | files not imported on PyTorch | passed on PyTorch | of those on flambeau | share |",
             "| --- | ---: | ---: | ---: | ---: |"]
    for each in comparisons:
        total = len(each.passed)
        lost = sum(outcome == "error" for outcome, _ in each.pytorch.values())
        lines.append(f"| {each.name} | {lost} | {total} | {total - len(each.failures)} | {100 * each.share:.1f} % |")
    return "\n".join(lines)
