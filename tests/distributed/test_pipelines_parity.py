"""Pipelines of two and four stages, compared with PyTorch's on gloo."""

from __future__ import annotations

import pytest

from .ranks import differences

pytestmark = pytest.mark.parity


def test_pipelines():
    pytest.importorskip("torch")
    assert not differences("pipelines", 4)
