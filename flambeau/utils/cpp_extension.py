"""`torch.utils.cpp_extension`: extensions in C++ for PyTorch, which cannot be built or loaded here."""

from __future__ import annotations

from typing import Any

from ..environment.left_out import refusing_class, refusing_function

_REASON = "flambeau has no C++ interface; write kernels with torch.compile or as autograd Functions"
CUDA_HOME = ROCM_HOME = SYCL_HOME = CUDNN_HOME = None
IS_HIP_EXTENSION = IS_WINDOWS = False

load, load_inline, include_paths, library_paths, is_ninja_available, verify_ninja_availability, CppExtension = (
    refusing_function(f"torch.utils.cpp_extension.{name}", _REASON)
    for name in ("load", "load_inline", "include_paths", "library_paths", "is_ninja_available",
                 "verify_ninja_availability", "CppExtension"))
CUDAExtension, SyclExtension = (refusing_function(f"torch.utils.cpp_extension.{name}", _REASON)
                                for name in ("CUDAExtension", "SyclExtension"))
BuildExtension: Any = refusing_class("torch.utils.cpp_extension.BuildExtension", _REASON)

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "include_paths", "is_ninja_available",
           "library_paths", "load", "load_inline", "verify_ninja_availability"]
