"""`torch.testing`: `assert_close` and `make_tensor`; and CUDA devices for tests, `fake_cuda`."""

from __future__ import annotations

from .close import assert_allclose, assert_close
from .creation import make_tensor
from .fake_device import fake_cuda
from .file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "fake_cuda", "make_tensor"]
