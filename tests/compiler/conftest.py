"""The persistent caches are empty here, so that tests can count traces."""

from __future__ import annotations

import pytest

from flambeau.compiler.cache import program_cache, trace_cache


@pytest.fixture(autouse=True)
def no_persistent_entries(monkeypatch):
    monkeypatch.setattr(trace_cache, "load", lambda key: [])
    monkeypatch.setattr(program_cache, "load", lambda *call: None)
