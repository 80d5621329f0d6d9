"""Where PyTorch defines `Fuzzer`, by this name."""

from __future__ import annotations

from ..fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]
