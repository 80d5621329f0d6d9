"""`torch.utils.benchmark.utils`: the benchmark's modules, by PyTorch's names."""

from __future__ import annotations

from . import common, compare, timer

__all__ = ["common", "compare", "timer"]
