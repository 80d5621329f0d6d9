"""`torch.testing`: `assert_close` and `make_tensor`."""

from __future__ import annotations

from .close import assert_allclose, assert_close
from .creation import make_tensor
from .file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
