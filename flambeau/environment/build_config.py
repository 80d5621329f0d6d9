"""`torch.__config__`: how the package was built."""

from __future__ import annotations

import sys

import numpy as np

from ..kernels import threads
from ..version import __version__


def show() -> str:
    """The configuration: versions of Python, NumPy and flambeau.

    >>> import flambeau as torch
    >>> print(torch.__config__.show().splitlines()[0])
    flambeau built with:
    """
    version = ".".join(map(str, sys.version_info[:3]))
    return f"flambeau built with:\n  - flambeau {__version__}\n  - Python {version}\n  - NumPy {np.__version__}\n"


def parallel_info() -> str:
    """The number of threads that operators use."""
    return f"Threads of an operator: {threads.count()}\n"


def _cxx_flags() -> str:
    return ""


__all__ = ["parallel_info", "show"]
