"""Fixtures of the kernel tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def silent() -> Iterator[None]:
    """Silence NumPy's floating-point warnings, as operators do."""
    with np.errstate(all="ignore"):
        yield
