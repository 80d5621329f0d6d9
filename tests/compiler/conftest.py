"""Tests count captures, of which what earlier processes learned would save some: here everything is new."""

from __future__ import annotations

import pytest

from flambeau.compiler.cache import program_cache, trace_cache


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch):
    monkeypatch.setattr(trace_cache, "load", lambda entry: [])
    monkeypatch.setattr(program_cache, "load", lambda *call: None)
