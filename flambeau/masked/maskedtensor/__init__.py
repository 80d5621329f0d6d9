"""`torch.masked.maskedtensor`: the masked tensor and its operators."""

from __future__ import annotations

from .core import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]
