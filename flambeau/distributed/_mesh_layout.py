"""Layouts of meshes as PyTorch's files have them: for each dimension its sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class _FlatLayout:
    """Sizes and strides of one dimension; none for a dimension of one process."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class _MeshLayout:
    """The layouts of all dimensions of a mesh."""

    axes: tuple[_FlatLayout, ...]

    @classmethod
    def from_sizes_strides(cls, sizes: Sequence[int], strides: Sequence[int]) -> _MeshLayout:
        """The layout of a mesh with these sizes and strides."""
        return cls(tuple(_FlatLayout(() if size == 1 else (size,), () if size == 1 else (stride,))
                         for size, stride in zip(sizes, strides, strict=True)))


__all__: list[str] = []
