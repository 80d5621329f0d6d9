"""Where PyTorch defines `FuzzedSparseTensor`, by this name."""

from __future__ import annotations

from ..fuzzer import FuzzedSparseTensor

__all__ = ["FuzzedSparseTensor"]
