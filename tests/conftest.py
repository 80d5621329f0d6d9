"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def products_by_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Matrix products are of kernels, however small they are, if there are kernels at all."""
    from flambeau.backends.compiled.families import matmul as products

    found = products.kernels()
    if found is None:
        yield
        return
    monkeypatch.setattr(found, "ways", {})
    monkeypatch.setattr(found.limits, "found", dict.fromkeys(found.limits.found, 0))
    yield
    found.ways.clear()
