"""`torch.utils.benchmark.utils`: the benchmark's modules, by PyTorch's names."""

from __future__ import annotations

from . import common, compare, fuzzer, sparse_fuzzer, timer

__all__ = ["common", "compare", "fuzzer", "sparse_fuzzer", "timer"]
