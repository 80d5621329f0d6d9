"""`torch.testing`: `assert_close` and `make_tensor`."""

from __future__ import annotations

from .close import assert_allclose, assert_close
from .creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
