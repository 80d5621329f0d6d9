"""A pytest plugin that writes one JSON line per test.

It runs in the environment of the package's tests, where this repository's `tests` cannot be imported: the file is
loaded as the top-level module `outcomes` (`-p outcomes`). The lines before a crash remain.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

_ORDER = {"passed": 0, "skipped": 1, "failed": 2}


class _Writer:
    """Writes the worst outcome of a test's phases when its teardown has been reported."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open for the whole session
        self.worst: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        outcome = report.outcome
        if outcome == "rerun":  # of pytest-rerunfailures, which runs the test again
            self.worst.pop(report.nodeid, None)
            return
        reason = ""
        if outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = str(report.longrepr if crash is None else crash.message)
        elif outcome == "skipped" and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2]
        if hasattr(report, "wasxfail"):
            outcome = "skipped"
        before = self.worst.get(report.nodeid)
        if before is None or _ORDER[outcome] > _ORDER[before[0]]:
            self.worst[report.nodeid] = (outcome, reason)
        if report.when == "teardown":
            outcome, reason = self.worst.pop(report.nodeid)
            self.write(report.nodeid, outcome, reason)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write(report.nodeid, "error", str(report.longrepr))

    def write(self, test: str, outcome: str, reason: str) -> None:
        self.file.write(json.dumps({"test": test, "outcome": outcome, "reason": reason[-2000:]}) + "\n")
        self.file.flush()

    def pytest_unconfigure(self) -> None:
        self.file.close()


def pytest_configure(config: Any) -> None:
    path = os.environ["OUTCOMES_FILE"]
    if not hasattr(config, "workerinput"):  # with xdist the controller sees all reports
        config.pluginmanager.register(_Writer(path))


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep a fraction of the tests: the same ones in both environments, whatever their order; a seed gives others."""
    limit = float(os.environ.get("OUTCOMES_FRACTION", "1")) * 2 ** 32
    seed = os.environ.get("OUTCOMES_SEED", "")
    kept = [item for item in items
            if int.from_bytes(hashlib.sha256((seed + item.nodeid).encode()).digest()[:4], "big") < limit]
    if len(kept) < len(items):
        chosen = {id(item) for item in kept}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
        items[:] = kept
