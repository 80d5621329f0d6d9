"""`torch.masked._ops`: the name under which PyTorch defines the masked reductions and normalizations."""

from __future__ import annotations

from .identities import _reduction_identity
from .maskedtensor.core import MaskedTensor, is_masked_tensor
from .maskedtensor.creation import as_masked_tensor
from .masking import _canonical_dim, _input_mask, _output_mask, _where
from .normalizations import cumprod, cumsum, log_softmax, logaddexp, normalize, softmax, softmin
from .reductions import amax, amin, argmax, argmin, logsumexp, mean, median, norm, prod, std, sum, var

__all__ = ["MaskedTensor", "_canonical_dim", "_input_mask", "_output_mask", "_reduction_identity", "_where", "amax",
           "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor", "log_softmax",
           "logaddexp", "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
           "var"]
