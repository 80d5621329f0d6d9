"""`torch.testing`: `assert_close` and `make_tensor`; and CUDA devices for tests, `fake_cuda`."""

from __future__ import annotations

import importlib
from typing import Any

from .close import assert_allclose, assert_close
from .creation import make_tensor
from .fake_device import fake_cuda
from .file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "fake_cuda", "make_tensor"]

#: modules that are imported when they are first looked up
_MODULES = ("_comparison", "_internal")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
