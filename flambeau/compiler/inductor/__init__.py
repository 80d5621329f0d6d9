"""`torch._inductor`: the settings of PyTorch's generator of code, kept as they are written and of no effect."""

from __future__ import annotations

from ...settings import Settings

#: any name may be written; groups are there by name
config = Settings("torch._inductor.config")
for _group in ("aot_inductor", "cpp", "cuda", "halide", "rocm", "trace", "triton"):
    setattr(config, _group, Settings(f"torch._inductor.config.{_group}"))

__all__ = ["config"]
