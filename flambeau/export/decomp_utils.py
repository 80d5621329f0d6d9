"""`torch.export.decomp_utils`: the table of decompositions."""

from __future__ import annotations

from .decomposition import CustomDecompTable

__all__ = ["CustomDecompTable"]
