"""Convolutions as a library is asked for them: what one is, and how it may be computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .runtime import Place


class Convolution(NamedTuple):
    """A convolution, or one of its gradients, of dense arrays.

    Attributes:
        kind: "forward": the result of the image and the weight; "image": the image's gradient, of the weight and the
            result's; "weight": the weight's gradient, of the image and the result's.
        dtype: of all three arrays.
        image, weight, result: the shapes (N, C, *spatial), (O, C / groups, *kernel), (N, O, *positions).
        last: whether channels are last in memory; else all three are row-major.
        stride, padding, dilation: one number for each spatial dimension.
        groups: the number of groups of channels.
        tf32: whether float32 factors may be rounded to TF32.
        deterministic: whether results must not differ from run to run.
        benchmark: whether algorithms are tried and timed, rather than chosen by heuristics.
    """

    kind: str
    dtype: np.dtype
    image: tuple[int, ...]
    weight: tuple[int, ...]
    result: tuple[int, ...]
    last: bool
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    tf32: bool = False
    deterministic: bool = False
    benchmark: bool = False


class ConvolutionOperands(NamedTuple):
    """Where the arrays of a convolution are; `workspace` is the library's memory."""

    image: Place
    weight: Place
    result: Place
    workspace: Place


class ConvolutionLibrary(NamedTuple):
    """A library of convolutions as programs use it.

    Attributes:
        workspace: the bytes of memory that a convolution needs; None: the library does not compute it.
        tf32, deterministic, benchmark: as for `Convolution`.
    """

    workspace: Callable[[Convolution], int | None]
    tf32: bool = False
    deterministic: bool = False
    benchmark: bool = False


__all__ = ["Convolution", "ConvolutionLibrary", "ConvolutionOperands"]
