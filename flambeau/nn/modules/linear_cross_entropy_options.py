"""`LinearCrossEntropyOptions`: how `linear_cross_entropy` divides a batch into chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ... import dtypes

__all__ = ["LinearCrossEntropyOptions"]

_NARROW = (dtypes.float16, dtypes.bfloat16)
_ACC_DTYPES = (*_NARROW, dtypes.float32, dtypes.float64)


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """Options of `linear_cross_entropy` that computes loss and gradients chunk by chunk of the batch.

    The logits (N, C) are never stored as a whole.

    Args:
        allow_retain_graph: whether backward may run twice; the gradients are then copied.
        batch_chunk_size: number of samples in a chunk.
        chunking_method: "aspect_ratio", or "aspect_ratio:n" for chunks of an n-th: chunks whose logits are as large as
            the input. None uses `batch_chunk_size`. "auto" chooses by the dtype.
        acc_policy: "accurate", "balanced", "compact" or "auto". All accumulate in `acc_dtype` here.
        acc_dtype: dtype of the accumulation.

    Raises:
        ValueError: a value is invalid.

    >>> import flambeau as torch
    >>> options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    >>> x, w, y = torch.eye(3), torch.eye(3), torch.tensor([0, 1, 2])
    >>> torch.nn.functional.linear_cross_entropy(x, w, y, options=options)
    tensor(0.5514)
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method is not None and self.chunking_method != "auto":
            name, _, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or (self.chunking_method != name and not (factor.isdigit() and int(factor) > 0)):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype is not None and self.acc_dtype not in _ACC_DTYPES:
            raise ValueError("acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, "
                             f"torch.float64}}, got {self.acc_dtype!r}. Pass acc_dtype=None to let the op pick "
                             "automatically.")

    def _adjust(self, num_batches: int, in_features: int, num_classes: int, dtype: Any,
                device: Any = None) -> LinearCrossEntropyOptions:
        """The options with "auto" and None replaced, for given sizes."""
        is_narrow = device is not None and dtype in _NARROW
        policy, method, size = self.acc_policy, self.chunking_method, self.batch_chunk_size
        if method == "auto":
            method = None if size is not None else "aspect_ratio" if is_narrow else "aspect_ratio:2"
        if policy == "auto":
            policy = "accurate" if is_narrow else "compact"
        chosen = num_batches if size is None else min(size, num_batches)
        if method is not None:
            per_chunk = -(-num_batches // -(-num_classes // in_features))
            power = 1 << (per_chunk - 1).bit_length()
            chosen = min(power // int(method.partition(":")[2] or 1), num_batches)
            if size is not None and size != chosen:
                raise ValueError(f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk "
                                 f"sizes ({size} vs {chosen}); pass only one.")
        acc_dtype = self.acc_dtype
        if acc_dtype is None:
            acc_dtype = dtypes.float32 if is_narrow and self.acc_policy == "auto" else dtype
        return replace(self, acc_policy=policy, chunking_method=method, batch_chunk_size=max(1, chosen),
                       acc_dtype=acc_dtype)
