"""`torch.utils.collect_env`: versions of Python and packages, and the machine; `python -m torch.utils.collect_env`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import NamedTuple

import numpy as np

from ..version import __version__


class SystemEnv(NamedTuple):
    """What a report of an error should contain."""

    torch_version: str
    is_debug_build: str
    os: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    numpy_version: str
    pip_packages: str
    cpu_info: str


def get_env_info() -> SystemEnv:
    """The versions and the machine."""
    packages = sorted(f"[pip3] {name}=={each.version}" for each in importlib.metadata.distributions()
                      if any(part in (name := str(each.metadata["Name"])).lower()
                             for part in ("torch", "flambeau", "numpy", "llvmlite", "mypy", "optree")))
    return SystemEnv(f"flambeau {__version__}", "False", platform.platform(), sys.version.replace("\n", " "),
                     platform.platform(), "False", np.__version__, "\n".join(dict.fromkeys(packages)),
                     f"{platform.machine()}, {os.cpu_count()} processors")


def pretty_str(envinfo: SystemEnv) -> str:
    """The versions and the machine as lines of text."""
    return (f"PyTorch version: {envinfo.torch_version}\nIs debug build: {envinfo.is_debug_build}\n"
            f"CUDA used to build PyTorch: None\n\nOS: {envinfo.os}\n\nPython version: {envinfo.python_version}\n"
            f"Python platform: {envinfo.python_platform}\nIs CUDA available: {envinfo.is_cuda_available}\n"
            f"CPU: {envinfo.cpu_info}\n\nVersions of relevant libraries:\n{envinfo.pip_packages}\n")


def get_pretty_env_info() -> str:
    """The versions and the machine of this process as lines of text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the versions and the machine."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
