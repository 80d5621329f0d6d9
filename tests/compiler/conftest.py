"""What compiled functions do not do yet: `pending.txt` lists the tests that say so, one identifier a line."""

from __future__ import annotations

from pathlib import Path

import pytest

PENDING = frozenset((Path(__file__).parent / "pending.txt").read_text(encoding="utf-8").splitlines())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them as expected to fail."""
    for item in items:
        if item.nodeid in PENDING:
            item.add_marker(pytest.mark.xfail(reason="not yet: see tests/compiler/pending.txt", strict=False))
