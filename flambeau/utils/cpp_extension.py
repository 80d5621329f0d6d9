"""`torch.utils.cpp_extension`: extensions in C++ for PyTorch, which cannot be built or loaded here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
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
for _name in ("build_extensions", "finalize_options", "get_export_symbols", "get_ext_filename", "with_options"):
    setattr(BuildExtension, _name, refusing_function(f"torch.utils.cpp_extension.BuildExtension.{_name}", _REASON))
get_compiler_abi_compatibility_and_version = refusing_function(
    "torch.utils.cpp_extension.get_compiler_abi_compatibility_and_version", _REASON)


def get_cxx_compiler() -> str:
    """The command of the C++ compiler: the environment variable CXX, or "c++".

    >>> from flambeau.utils.cpp_extension import get_cxx_compiler
    >>> compiler = get_cxx_compiler()
    """
    return os.environ.get("CXX", "c++")


def get_default_build_root() -> str:
    """The folder in which PyTorch builds extensions for this user.

    >>> from flambeau.utils.cpp_extension import get_default_build_root
    >>> get_default_build_root().endswith("torch_extensions")
    True
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.realpath(os.path.join(cache, "torch_extensions"))


def _version_text(compiler: str) -> str:
    for flag in ("-v", "--version"):
        try:
            done = subprocess.run([compiler, flag], capture_output=True, text=True, check=True,
                                  env={**os.environ, "LC_ALL": "C"})
        except (subprocess.CalledProcessError, OSError):
            continue
        return done.stdout + done.stderr
    return ""


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a command is GCC on Linux.

    >>> from flambeau.utils.cpp_extension import check_compiler_is_gcc
    >>> check_compiler_is_gcc("no such command")
    False
    """
    text = _version_text(compiler) if sys.platform.startswith("linux") else ""
    return re.search("^COLLECT_GCC=", text, re.MULTILINE) is not None and "gcc version" in text


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a command is a compiler that PyTorch's extensions are built with: GCC or Clang.

    >>> from flambeau.utils.cpp_extension import check_compiler_ok_for_platform
    >>> check_compiler_ok_for_platform("no such command")
    False
    """
    path = shutil.which(compiler)
    if path is None:
        return False
    accepted = ("clang",) if sys.platform == "darwin" else ("g++", "gcc", "gnu-c++", "gnu-cc", "clang")
    return any(name in os.path.realpath(path) for name in accepted) or check_compiler_is_gcc(compiler) or (
        "clang version" in _version_text(compiler))


def remove_extension_h_precompiler_headers() -> None:
    """Remove the compiled headers of earlier builds: there are none.

    >>> from flambeau.utils.cpp_extension import remove_extension_h_precompiler_headers
    >>> remove_extension_h_precompiler_headers()
    """

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "include_paths", "is_ninja_available",
           "library_paths", "load", "load_inline", "verify_ninja_availability"]
