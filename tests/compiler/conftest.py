"""Fixtures of the compiler's tests: empty persistent caches, and a reason for exactly the guards that fail."""

from __future__ import annotations

import pytest

from flambeau.compiler.cache import program_cache, trace_cache
from flambeau.compiler.execution.cache_entry import CacheEntry
from flambeau.compiler.execution.compiled_function import CompiledFunction
from flambeau.compiler.execution.recompile_reasons import failed_guard


@pytest.fixture(autouse=True)
def no_persistent_entries(monkeypatch):
    """The persistent caches are empty, so that tests can count traces."""
    monkeypatch.setattr(trace_cache, "load", lambda key: [])
    monkeypatch.setattr(program_cache, "load", lambda *call: None)


@pytest.fixture
def nothing_is_stored(monkeypatch):
    """No program and no trace is stored in the persistent caches: that takes a third of the time."""
    monkeypatch.setattr(program_cache, "program_key", lambda *call: None)
    monkeypatch.setattr(CompiledFunction, "_trace_key", lambda *trace: "")
    monkeypatch.setattr(trace_cache, "store", lambda key, record: None)


@pytest.fixture(autouse=True)
def reasons_match_guards(monkeypatch):
    """`failed_guard` repeats the order of `check_guards`: the two agree at each call of every test of this folder."""
    check_guards = CacheEntry.check_guards

    def compared(self, arguments):
        reason = failed_guard(self, arguments)
        holds = check_guards(self, arguments)
        assert (reason is None) is holds, f"check_guards returns {holds}, failed_guard {reason!r}"
        return holds

    monkeypatch.setattr(CacheEntry, "check_guards", compared)
