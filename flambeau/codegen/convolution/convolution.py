"""Convolution launches: forward, input gradient and weight gradient.

Images are (N, C, *spatial) with one to three spatial dimensions, weights (O, C / groups, *kernel), both of any memory
layout; channels last is fastest. Sums run over taps, then input channels, in an order that does not depend on the
number of threads. The input gradient is the transposed convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...runtime.launch import Launch, Spec
from ..matmul import matmul
from ..scalar.scalar_ir import Node, variable
from . import geometry
from .correlation import DirectCorrelation, Images
from .geometry import Correlation, triple
from .row_correlation import RowCorrelation
from .row_correlation import fits as fits_rows
from .weight_gradient import DirectWeightGradient
from .winograd.correlation import WinogradCorrelation, fits, pays
from .winograd.weight_gradient import WinogradWeightGradient, gradient_pays

#: maximum number of cached launch lists
CACHE_SIZE = 1024

Sizes = tuple[int, ...]


class Options(NamedTuple):
    """Stride, padding and dilation, one integer per spatial dimension each, and the number of channel groups."""

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int

    @property
    def without_last_dim(self) -> Options:
        """The options of all spatial dimensions but the last."""
        return Options(self.stride[:-1], self.padding[:-1], self.dilation[:-1], self.groups)


def forward(outputs: Sequence[Spec], x: Spec, w: Spec, extras: Sequence[Spec] = (), *, stride: Sequence[int],
            padding: Sequence[int], dilation: Sequence[int], groups: int = 1,
            epilogue: Sequence[Node] | None = None, constant: bool = False) -> list[Launch]:
    """The convolution, f(Σ x[n, c, p · stride + k · dilation − padding] · w[o, c, k], extras).

    Args:
        outputs: (N, O, *positions), one per expression of the epilogue.
        x: (N, C, *spatial), float32 or float64.
        w: (O, C / groups, *kernel), of x's dtype.
        extras: arrays that broadcast to the outputs: biases, residuals. They may alias outputs.
        stride, padding, dilation: one integer per spatial dimension.
        groups: number of channel groups.
        epilogue: the expressions to store, of the sum (variable 0) and the extras (variables 1, 2, ...).
        constant: whether the weights are constant, and are packed beforehand wherever that helps.

    Returns:
        Launches over the pointers of outputs, x, w, extras, scratch.

    Raises:
        TypeError: dtypes differ, or are neither float32 nor float64.
        ValueError: shapes do not match.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.runtime import launch
    >>> x, w, y = np.ones((1, 1, 4), "f4"), np.ones((1, 1, 2), "f4"), np.empty((1, 1, 3), "f4")
    >>> if codegen.available():
    ...     launch.run(forward([Spec.of(y)], Spec.of(x), Spec.of(w), stride=[1], padding=[0], dilation=[1]), [y, x, w])
    ... else:
    ...     y.fill(2)
    >>> y
    array([[[2., 2., 2.]]], dtype=float32)
    """
    options = Options(tuple(stride), tuple(padding), tuple(dilation), groups)
    return list(_forward(tuple(outputs), x, w, tuple(extras), options, _nodes(epilogue), constant))


def input_gradient(outputs: Sequence[Spec], gy: Spec, w: Spec, extras: Sequence[Spec] = (), *,
                   stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int = 1,
                   epilogue: Sequence[Node] | None = None, constant: bool = False) -> list[Launch]:
    """The input gradient, a transposed convolution from (N, O, *positions) to (N, C, *spatial).

    Arguments are those of `forward`; `outputs` have the shape of the convolution's input.
    """
    options = Options(tuple(stride), tuple(padding), tuple(dilation), groups)
    return list(_input_gradient(tuple(outputs), gy, w, tuple(extras), options, _nodes(epilogue), constant))


def weight_gradient(outputs: Sequence[Spec], x: Spec, gy: Spec, *, stride: Sequence[int], padding: Sequence[int],
                    dilation: Sequence[int], groups: int = 1) -> list[Launch]:
    """The weight gradient, (O, C / groups, *kernel), from x and the gradient gy of the output.

    Arguments are those of `forward`; `outputs` is one array.

    Returns:
        Launches over the pointers of the gradient, x, gy, scratch.
    """
    (w,) = outputs
    return list(_weight_gradient(w, x, gy, Options(tuple(stride), tuple(padding), tuple(dilation), groups)))


def clear_cache() -> None:
    """Drop all cached launches."""
    for each in (_forward, _input_gradient, _weight_gradient):
        each.cache_clear()


@lru_cache(CACHE_SIZE)
def _forward(outputs: tuple[Spec, ...], x: Spec, w: Spec, extras: tuple[Spec, ...], options: Options,
             nodes: tuple[Node, ...] | None, constant: bool) -> tuple[Launch, ...]:
    _check_shapes(x, w, outputs, options)
    nodes = _check_epilogue(nodes, outputs, x.dtype)
    if outputs[0].size == 0:
        return ()
    if _has_unit_last_dim(options, w, x, outputs[0]):
        squeezed = [_without_last_dim(each) for each in (*outputs, x, w, *extras)]
        count = len(outputs)
        return _forward(tuple(squeezed[:count]), squeezed[count], squeezed[count + 1], tuple(squeezed[count + 2:]),
                        options.without_last_dim, nodes, constant)
    if _is_pointwise(options, w, x, outputs[0]):
        return _matmul_launches(outputs, x, Spec(w.shape[1::-1], w.strides[1::-1], w.dtype), extras, nodes,
                                constant)
    return _correlation_launches(_problem(x, w, outputs[0], options), nodes, outputs, x, w, extras, w.strides[0],
                                 w.strides[1], constant)


@lru_cache(CACHE_SIZE)
def _input_gradient(outputs: tuple[Spec, ...], gy: Spec, w: Spec, extras: tuple[Spec, ...], options: Options,
                    nodes: tuple[Node, ...] | None, constant: bool) -> tuple[Launch, ...]:
    x = outputs[0]
    _check_shapes(x, w, [gy], options, gy.dtype)
    nodes = _check_epilogue(nodes, outputs, gy.dtype)
    if x.size == 0:
        return ()
    if _has_unit_last_dim(options, w, x, gy):
        squeezed = [_without_last_dim(each) for each in (*outputs, gy, w, *extras)]
        count = len(outputs)
        return _input_gradient(tuple(squeezed[:count]), squeezed[count], squeezed[count + 1],
                               tuple(squeezed[count + 2:]), options.without_last_dim, nodes, constant)
    if _is_pointwise(options, w, gy, x):
        return _matmul_launches(outputs, gy, Spec(w.shape[:2], w.strides[:2], w.dtype), extras, nodes, constant)
    stride, padding, dilation, groups = options
    problem = geometry.transposed(x.shape[0], groups, w.shape[0] // groups, w.shape[1], triple(gy.shape[2:], 1),
                                  triple(x.shape[2:], 1), triple(w.shape[2:], 1), triple(stride, 1),
                                  triple(padding, 0), triple(dilation, 1))
    return _correlation_launches(problem, nodes, outputs, gy, w, extras, w.strides[1], w.strides[0], constant)


@lru_cache(CACHE_SIZE)
def _weight_gradient(w: Spec, x: Spec, gy: Spec, options: Options) -> tuple[Launch, ...]:
    _check_shapes(x, w, [gy], options)
    if gy.dtype != x.dtype:
        raise TypeError(f"gradient of dtype {gy.dtype} for images of dtype {x.dtype}")
    if w.size == 0:
        return ()
    if _has_unit_last_dim(options, w, x, gy):
        return _weight_gradient(_without_last_dim(w), _without_last_dim(x), _without_last_dim(gy),
                                options.without_last_dim)
    if x.size and _is_pointwise(options, w, x, gy):
        rows, columns = _flat_positions(x), _flat_positions(gy)
        if rows is not None and columns is not None:
            (count, x_step), (_, gy_step) = rows, columns
            return tuple(matmul.launches([Spec(w.shape[1::-1], w.strides[1::-1], w.dtype)],
                                         Spec((x.shape[1], count), (x.strides[1], x_step), x.dtype),
                                         Spec((count, gy.shape[1]), (gy_step, gy.strides[1]), gy.dtype)))
    problem = _problem(x, w, gy, options)
    depthwise = problem.groups > 1 and problem.in_channels == problem.out_channels == 1
    group = w.strides[0] * problem.out_channels
    if depthwise:
        problem = problem._replace(groups=1, out_channels=problem.groups)
    images, factors = Images.of(x, x.shape), Images.of(gy, gy.shape)
    gradient = (WinogradWeightGradient(problem, images, factors)
                if fits(problem, x.dtype) and gradient_pays(problem)
                else DirectWeightGradient(problem, images, factors, depthwise))
    return tuple(gradient.launches(w, w.strides[0], group, w.strides[1]))


def _correlation_launches(problem: Correlation, nodes: tuple[Node, ...], outputs: Sequence[Spec], source: Spec, w: Spec,
                          extras: Sequence[Spec], out_channel_stride: int, in_channel_stride: int, constant: bool
                          ) -> tuple[Launch, ...]:
    """The launches of a correlation.

    Args:
        nodes: the expressions to store, one per output.
        out_channel_stride, in_channel_stride: the weights' strides by target channel and by source channel.
        constant: whether the weights are constant.
    """
    group = w.strides[0] * (w.shape[0] // problem.groups)
    depthwise = problem.groups > 1 and problem.in_channels == problem.out_channels == 1
    if depthwise:
        problem = problem._replace(groups=1, out_channels=problem.groups)
        out_channel_stride = w.strides[0]
    operands = [Images.of(each, outputs[0].shape) for each in (*outputs, *extras)]
    images = Images.of(source, source.shape)
    if not depthwise and fits_rows(problem, images, operands, len(outputs)):
        return tuple(RowCorrelation(problem, nodes, images, operands).launches(w, out_channel_stride, group,
                                                                              in_channel_stride))
    correlation = (WinogradCorrelation(problem, nodes, images, operands) if fits(problem,
                                                                                 source.dtype) and pays(problem)
                   else DirectCorrelation(problem, nodes, images, operands, depthwise))
    return tuple(correlation.launches(w, out_channel_stride, group, in_channel_stride, constant))


def _problem(x: Spec, w: Spec, y: Spec, options: Options) -> Correlation:
    stride, padding, dilation, groups = options
    return geometry.forward(x.shape[0], groups, w.shape[1], w.shape[0] // groups, triple(x.shape[2:], 1),
                            triple(y.shape[2:], 1), triple(w.shape[2:], 1), triple(stride, 1), triple(padding, 0),
                            triple(dilation, 1))


def _nodes(epilogue: Sequence[Node] | None) -> tuple[Node, ...] | None:
    return None if epilogue is None else tuple(epilogue)


def _check_epilogue(nodes: tuple[Node, ...] | None, outputs: Sequence[Spec], dtype: np.dtype) -> tuple[Node, ...]:
    """The epilogue's expressions, one per output; checked."""
    if nodes is None:
        nodes = (variable(0, dtype),)
    if len(nodes) != len(outputs):
        raise ValueError(f"{len(nodes)} expressions for {len(outputs)} outputs")
    for node, output in zip(nodes, outputs, strict=True):
        if node.dtype != output.dtype or output.shape != outputs[0].shape:
            raise TypeError(f"an expression of {node.dtype} for an output of {output.dtype} and shape {output.shape}")
    return nodes


def _check_shapes(x: Spec, w: Spec, outputs: Sequence[Spec], options: Options, dtype: np.dtype | None = None) -> None:
    """Raise unless the shapes of images, weights and outputs match; `dtype` is that of the convolved array."""
    first = x.dtype if dtype is None else dtype
    if first != w.dtype or first.kind != "f" or first.itemsize < 4:
        raise TypeError(f"convolution kernels are for float32 or float64, not for {first} with {w.dtype}")
    rank, groups = len(x.shape) - 2, options.groups
    if not 1 <= rank <= 3 or len(w.shape) != rank + 2 or any(len(each) != rank for each in options[:3]):
        raise ValueError(f"images of shape {x.shape} and weights of shape {w.shape}: one to three spatial dimensions, "
                         "the same in all arguments")
    if groups < 1 or x.shape[1] != groups * w.shape[1] or w.shape[0] % groups:
        raise ValueError(f"{x.shape[1]} channels and weights of shape {w.shape} in {groups} groups")
    for y in outputs:
        if y.shape[:2] != (x.shape[0], w.shape[0]) or len(y.shape) != rank + 2:
            raise ValueError(f"an output of shape {y.shape} for images of shape {x.shape} and weights of shape "
                             f"{w.shape}")


def _has_unit_last_dim(options: Options, w: Spec, x: Spec, y: Spec) -> bool:
    """Whether the last of several spatial dimensions has one element, one tap and one position, and can be dropped."""
    return len(x.shape) > 3 and w.shape[-1] == x.shape[-1] == y.shape[-1] == 1 and not options.padding[-1]


def _without_last_dim(spec: Spec) -> Spec:
    """The same array without its last dimension, of extent 1."""
    return Spec(spec.shape[:-1], spec.strides[:-1], spec.dtype)


def _is_pointwise(options: Options, w: Spec, x: Spec, y: Spec) -> bool:
    """Whether the convolution is a matmul: (positions, channels) times the weights."""
    return (options.groups == 1 and max(w.shape[2:]) == max(options.stride) == 1 and not any(options.padding)
            and x.shape[2:] == y.shape[2:])


def _matmul_launches(outputs: Sequence[Spec], x: Spec, w: Spec, extras: Sequence[Spec],
             nodes: tuple[Node, ...], constant: bool) -> tuple[Launch, ...]:
    """The matmul of images, channels last, with a matrix."""
    def channels_last(spec: Spec) -> Spec:
        missing = (0,) * (len(x.shape) - len(spec.shape))
        n, c, *spatial = (1,) * len(missing) + spec.shape
        over_n, over_c, *over = missing + spec.strides
        return Spec((n, *spatial, c), (over_n, *over, over_c), spec.dtype)

    return tuple(matmul.launches([channels_last(each) for each in outputs], channels_last(x), w,
                                 [channels_last(each) for each in extras], nodes, (False, constant)))


def _flat_positions(spec: Spec) -> tuple[int, int] | None:
    """The number of positions in all images and their stride, if that is uniform and channels are contiguous."""
    if spec.strides[1] != spec.dtype.itemsize:
        return None
    count, step = 1, 0
    for extent, stride in reversed([*zip(spec.shape[:1], spec.strides[:1], strict=True),
                                    *zip(spec.shape[2:], spec.strides[2:], strict=True)]):
        if extent == 1:
            continue
        if count == 1:
            step = stride
        elif stride != count * step:
            return None
        count *= extent
    return count, step
