"""`torch.masked`: masked tensors, and reductions and normalizations of the elements that a mask selects."""

from __future__ import annotations

from . import _ops as _ops
from .identities import _reduction_identity
from .maskedtensor import _ops_refs as _operators
from .maskedtensor.core import MaskedTensor, is_masked_tensor
from .maskedtensor.creation import as_masked_tensor, masked_tensor
from .masking import _canonical_dim, _input_mask, _output_mask, _where
from .normalizations import cumprod, cumsum, log_softmax, logaddexp, normalize, softmax, softmin
from .reductions import amax, amin, argmax, argmin, logsumexp, mean, median, norm, prod, std, sum, var

__all__ = ["MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum",
           "is_masked_tensor", "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm",
           "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]

for _function in (_canonical_dim, _input_mask, _output_mask, _reduction_identity, _where):
    _function.__module__ = __name__
del _function, _operators  # imported for the tables that it fills
