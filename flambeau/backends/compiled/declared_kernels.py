"""Declared operators over arrays with compiled kernels: the kernel where there is one, else the declaration."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ...errstate import run_quietly
from . import grid_sampling_kernels


def declarations_with_kernels(arrays: Any) -> dict[str, Callable[..., Any]]:
    """The declarations that have kernels, by name, over a namespace of arrays."""
    return {name: make(_declaration(arrays, name)) for name, make in _WITH_KERNELS.items()}


def _declaration(arrays: Any, name: str) -> Callable[..., Any]:
    """A declaration over a namespace of arrays, whose module is imported in the first call."""
    @cache
    def imported() -> Callable[..., Any]:
        return arrays.declaration(name)

    return lambda *inputs, **params: imported()(*inputs, **params)


def _grid_sampler(declaration: Callable[..., Any]) -> Callable[..., Any]:
    def run(input: Any, grid: Any, *, mode: int, padding: int, align_corners: bool, saved: Any) -> Any:
        kernels = None if saved is not None else grid_sampling_kernels(grid.size * input.shape[-grid.shape[-1] - 1])
        result = None if kernels is None else run_quietly(kernels.sample, input, grid, (mode, padding, align_corners))
        return result if result is not None else declaration(
            input, grid, mode=mode, padding=padding, align_corners=align_corners, saved=saved)

    return run


def _grid_sampler_gradient(kernel: str) -> Callable[..., Any]:
    def with_kernel(declaration: Callable[..., Any]) -> Callable[..., Any]:
        def run(g: Any, input: Any, grid: Any, *, mode: int, padding: int, align_corners: bool, saved: Any) -> Any:
            kernels = None if saved is not None else grid_sampling_kernels(g.size)
            result = None if kernels is None else run_quietly(
                getattr(kernels, kernel), g, input, grid, (mode, padding, align_corners))
            return result if result is not None else declaration(
                g, input, grid, mode=mode, padding=padding, align_corners=align_corners, saved=saved)

        return run

    return with_kernel


_WITH_KERNELS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "_grid_sampler_2d": _grid_sampler, "_grid_sampler_3d": _grid_sampler,
    "_grid_sampler_input_gradient": _grid_sampler_gradient("image_gradient"),
    "_grid_sampler_grid_gradient": _grid_sampler_gradient("grid_gradient"),
}

__all__ = ["declarations_with_kernels"]
