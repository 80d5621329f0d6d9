"""`torch._inductor`: the settings of PyTorch's code generator, stored without effect."""

from __future__ import annotations

from ...settings import Settings

#: any name may be set; these groups exist
config = Settings("torch._inductor.config")
for _group in ("aot_inductor", "cpp", "cuda", "halide", "rocm", "trace", "triton"):
    setattr(config, _group, Settings(f"torch._inductor.config.{_group}"))

__all__ = ["config"]
