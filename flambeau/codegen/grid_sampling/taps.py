"""Taps: the pixels along one dimension that are interpolated between, with their weights and derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ..llvm.loop_nests import I32
from ..llvm.vectors import Mask, Real, VectorContext, where
from ..math.building_blocks import fma
from .positions import BICUBIC, NEAREST, ZEROS, Sampling, padded, positions

_CUBIC = -0.75


class Tap(NamedTuple):
    """A pixel of a dimension, for each lane.

    Attributes:
        offset: in elements, a vector of 32-bit integers; 0 outside of the image.
        inside: whether it is inside of the image; None: it always is.
        weight: None for the nearest pixel.
        derivative: of the weight by the position.
    """

    offset: Any
    inside: Mask | None
    weight: Real | None
    derivative: Real | None


class Axis(NamedTuple):
    """The taps of a dimension, and the slope of positions by the grid."""

    taps: list[Tap]
    slope: Real


def _near(x: Real) -> Real:
    """The cubic kernel at distances up to 1."""
    return fma(fma(x, _CUBIC + 2.0, -(_CUBIC + 3.0)) * x, x, 1.0)


def _far(x: Real) -> Real:
    """The cubic kernel at distances from 1 to 2."""
    return ((x * _CUBIC - 5.0 * _CUBIC) * x + 8.0 * _CUBIC) * x - 4.0 * _CUBIC


def _near_slope(x: Real) -> Real:
    return (x * (3.0 * (_CUBIC + 2.0)) - 2.0 * (_CUBIC + 3.0)) * x


def _far_slope(x: Real) -> Real:
    return (x * (3.0 * _CUBIC) - 10.0 * _CUBIC) * x + 8.0 * _CUBIC


def _cubic_weights(t: Real) -> list[tuple[Real, Real]]:
    """The weights of the pixels -1, 0, 1 and 2 at the fraction `t`, and their derivatives."""
    context = t.context
    one, two = context.real(1.0), context.real(2.0)
    return [(_far(t + 1.0), _far_slope(t + 1.0)), (_near(t), _near_slope(t)),
            (_near(one - t), -_near_slope(one - t)), (_far(two - t), -_far_slope(two - t))]


def _tap(context: VectorContext, index: Real, size: Real, stride: Any, checked: tuple[bool, bool],
         weight: Real | None = None, derivative: Real | None = None) -> Tap:
    """A tap at whole positions; `checked`: whether they may be below and above the image."""
    inside = None
    if checked[0]:
        inside = index > -1.0
    if checked[1]:
        inside = index < size if inside is None else inside & (index < size)
    if inside is not None:
        index = where(inside, index, 0.0)
    builder = context.builder
    whole = builder.fptosi(index.ir, ir.VectorType(I32, context.lanes))
    return Tap(builder.mul(whole, stride), inside, weight, derivative)


def axis(x: Real, size: Real, stride: Any, sampling: Sampling) -> Axis:
    """The taps at the coordinates `x` of a dimension.

    Args:
        size: its extent, in all lanes.
        stride: in elements, a vector of 32-bit integers.
    """
    context = x.context
    position, slope = positions(x, size, sampling)
    outside = sampling.padding == ZEROS
    if sampling.mode == NEAREST:
        return Axis([_tap(context, context.call("rint", position), size, stride, (outside, outside))], slope)
    base = context.call("floor", position)
    fraction = position - base
    if sampling.mode == BICUBIC:
        taps = []
        for offset, (weight, derivative) in zip((-1.0, 0.0, 1.0, 2.0), _cubic_weights(fraction), strict=True):
            index = padded(base + offset, slope, size, sampling)[0]
            taps.append(_tap(context, index, size, stride, (outside, outside), weight, derivative))
        return Axis(taps, slope)
    following = base + 1.0
    rest = context.real(1.0) - fraction if sampling.rank == 2 else following - position
    one = context.real(1.0)
    return Axis([_tap(context, base, size, stride, (outside, outside), rest, -one),
                 _tap(context, following, size, stride, (outside, True), fraction, one)], slope)
