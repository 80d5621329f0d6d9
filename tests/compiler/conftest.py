"""Tests count captures, of which what earlier processes learned would save some: here everything is new."""

from __future__ import annotations

import pytest

from flambeau.compiler import experience, recollection


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch):
    monkeypatch.setattr(experience, "read", lambda entry: [])
    monkeypatch.setattr(recollection, "read", lambda *call: None)
