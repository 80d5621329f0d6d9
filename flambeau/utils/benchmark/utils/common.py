"""Where PyTorch defines `Measurement`, by this name."""

from __future__ import annotations

from ..common import *  # noqa: F403
from ..common import __all__ as __all__
