"""`torch.backends`: PyTorch's settings of its libraries. None of the libraries is used, so settings have no effect.

Each library is a module of settings and functions: `cudnn.deterministic = True`, `cudnn.flags(...)`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ..settings import Settings


def _no() -> bool:
    return False


def _none() -> None:
    return None


def _library(name: str, values: dict[str, Any] | None = None, /, **functions: Any) -> Settings:
    """The module of a library, with settings and functions."""
    module = Settings(f"torch.backends.{name}")
    module.load_config(values or {})
    vars(module).update(functions)
    return module


def _flags(module: Settings) -> tuple[Callable[..., tuple[Any, ...]], Callable[..., Any]]:
    """`set_flags`, which returns the previous values, and `flags`, a context manager."""
    names = list(module.to_dict())

    def set_flags(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Write settings by position or by name, with or without a leading `_`; None leaves a setting unchanged."""
        before = tuple(getattr(module, name) for name in names)
        for name, value in (dict(zip(names, args, strict=False)) | kwargs).items():
            if value is not None:
                setattr(module, name.lstrip("_"), value)
        return before

    @contextmanager
    def flags(*args: Any, **kwargs: Any) -> Iterator[None]:
        """Settings for a block."""
        before = set_flags(*args, **kwargs)
        try:
            yield
        finally:
            module.load_config(dict(zip(names, before, strict=True)))

    return set_flags, flags


def _with_flags(module: Settings) -> Settings:
    """The module with `set_flags` and `flags`."""
    vars(module)["set_flags"], vars(module)["flags"] = _flags(module)
    return module


cudnn = _with_flags(_library(
    "cudnn", {"enabled": True, "benchmark": False, "benchmark_limit": None, "deterministic": False, "allow_tf32": True,
              "fp32_precision": "none"}, is_available=_no, version=_none, is_acceptable=lambda tensor: False))
vars(cudnn).update({part: _library(f"cudnn.{part}", {"fp32_precision": "tf32"}) for part in ("conv", "rnn")})
mkldnn = _with_flags(_library(
    "mkldnn", {"enabled": True, "deterministic": False, "allow_tf32": None, "fp32_precision": "none"},
    is_available=_no))
vars(mkldnn).update({part: _library(f"mkldnn.{part}", {"fp32_precision": "none"})
                     for part in ("conv", "matmul", "rnn")})
nnpack = _with_flags(_library("nnpack", {"enabled": True}, is_available=_no))
opt_einsum = _library("opt_einsum", {"enabled": False, "strategy": None}, is_available=_no, get_opt_einsum=_none)
openmp = _library("openmp", is_available=_no)
mps = _library("mps", is_available=_no, is_built=_no)
kleidiai = _library("kleidiai", is_available=_no)
cusparselt = _library("cusparselt", is_available=_no, version=_none, get_max_alg_id=_none)
quantized = _library("quantized", {"engine": "none", "supported_engines": ["none"]})


class verbose:
    """Context manager of MKL's verbose mode; it has no effect."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *_: object) -> None:
        pass


mkl = _library("mkl", is_available=_no, verbose=verbose, VERBOSE_OFF=0, VERBOSE_ON=1)


def _capability() -> str:
    """The vector instruction set that kernels use, by PyTorch's name."""
    from .. import codegen

    if not codegen.available():
        return "DEFAULT"
    from ..runtime import target

    return {512: "AVX512", 256: "AVX2"}.get(target.host().vector_bits, "DEFAULT")


cpu = _library("cpu", get_cpu_capability=_capability)


def _switch(name: str, value: bool) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """Functions that read and write a bool."""
    state = [value]

    def read() -> bool:
        return state[0]

    def write(enabled: bool) -> None:
        state[0] = bool(enabled)

    read.__name__, write.__name__ = name, f"set_{name}"
    return read, write


_sdp = {name: _switch(f"{name}_sdp_enabled", True) for name in ("flash", "math", "mem_efficient", "cudnn")}


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Iterator[None]:
    """Deprecated selection of attention kernels for a block; it has no effect."""
    warnings.warn("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be "
                  "removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated "
                  "signature.", FutureWarning, stacklevel=3)
    requested = {"flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient,
                 "cudnn": enable_cudnn}
    before = {name: read() for name, (read, _) in _sdp.items()}
    try:
        for name, value in requested.items():
            _sdp[name][1](value)
        yield
    finally:
        for name, value in before.items():
            _sdp[name][1](value)


cuda = _library("cuda", is_built=_no, is_flash_attention_available=_no, sdp_kernel=sdp_kernel,
             **{f"{name}_sdp_enabled": read for name, (read, _) in _sdp.items()},
             **{f"enable_{name}_sdp": write for name, (_, write) in _sdp.items()})
vars(cuda)["matmul"] = Settings("torch.backends.cuda.matmul", {
    "allow_tf32": False, "allow_fp16_reduced_precision_reduction": True, "allow_bf16_reduced_precision_reduction": True,
    "allow_fp16_accumulation": False, "fp32_precision": "none"})
mha_enabled, set_mha = _switch("fastpath_enabled", True)
mha = _library("mha", get_fastpath_enabled=mha_enabled, set_fastpath_enabled=set_mha)

#: the modules by name
MODULES: dict[str, ModuleType] = {each.__name__.rpartition(".")[2]: each for each in (
    cpu, cuda, cudnn, cusparselt, kleidiai, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized)}

__all__ = ["MODULES"]
