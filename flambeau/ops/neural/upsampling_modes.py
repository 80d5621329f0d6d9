"""The operator of each mode of upsampling."""

from __future__ import annotations

#: (mode, rank, antialias) -> the key of the operator
UPSAMPLING = {("linear", 1, False): "_upsample_linear1d", ("bilinear", 2, False): "_upsample_bilinear2d",
              ("trilinear", 3, False): "_upsample_trilinear3d", ("bicubic", 2, False): "_upsample_bicubic2d",
              ("bilinear", 2, True): "_upsample_bilinear2d_aa", ("bicubic", 2, True): "_upsample_bicubic2d_aa",
              ("lanczos", 2, True): "_upsample_lanczos2d_aa"}
for _rank in (1, 2, 3):
    UPSAMPLING["nearest", _rank, False] = f"_upsample_nearest{_rank}d"
    UPSAMPLING["nearest-exact", _rank, False] = f"_upsample_nearest_exact{_rank}d"
