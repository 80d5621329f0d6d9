"""`torch._subclasses`: fake tensors, which have shape, dtype and device but no elements."""

from __future__ import annotations

from . import fake_tensor, functional_tensor, meta_utils
from .fake_tensor import (
    CrossRefFakeMode,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

__all__ = ["CrossRefFakeMode", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode",
           "UnsupportedFakeTensorException", "fake_tensor", "functional_tensor", "meta_utils"]
