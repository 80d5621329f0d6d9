"""Pipelines of datasets: streams (`iter`) and maps (`map`) that are composed by calls of methods."""

from __future__ import annotations

from . import iter, map

__all__ = ["iter", "map"]
