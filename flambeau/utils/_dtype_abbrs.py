"""`torch.utils._dtype_abbrs`: short names of dtypes."""

from __future__ import annotations

from .. import dtypes

#: dtype -> its short name, `f32`
dtype_abbrs = {dtype: dtype.abbr for dtype in (*dtypes.ALL, *dtypes.WITHOUT_DATA)}

__all__ = ["dtype_abbrs"]
