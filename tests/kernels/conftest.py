"""What tests of kernels share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def silent() -> Iterator[None]:
    """NumPy says nothing of infinities and NaN: operators run their kernels so."""
    with np.errstate(all="ignore"):
        yield
