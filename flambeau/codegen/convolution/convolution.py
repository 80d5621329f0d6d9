"""Convolutions as lists of launches: forward, and the gradients of input and weight.

Images are (N, C, *spatial) with one to three spatial dimensions, weights (O, C / groups, *kernel), both laid out in
memory at will; quickest where channels lie together. Sums are over taps and then input channels, in one order however
the work is shared out. The gradient by the input is the transposed convolution.
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
from .correlation import Correlating, Images
from .geometry import Correlation, triple
from .weight_gradient import Gradient
from .winograd.correlation import Winograd, fits, pays
from .winograd.weight_gradient import WinogradGradient, pays_back

#: convolutions whose launches are remembered
KEPT = 1024

Sizes = tuple[int, ...]


class Options(NamedTuple):
    """How windows lie: one number for each spatial dimension; and into how many parts channels fall."""

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int

    @property
    def shortened(self) -> Options:
        """Those of all dimensions but the last."""
        return Options(self.stride[:-1], self.padding[:-1], self.dilation[:-1], self.groups)


def forward(outputs: Sequence[Spec], x: Spec, w: Spec, extras: Sequence[Spec] = (), *, stride: Sequence[int],
            padding: Sequence[int], dilation: Sequence[int], groups: int = 1,
            epilogue: Sequence[Node] | None = None) -> list[Launch]:
    """The convolution, f(Σ x[n, c, p · stride + k · dilation − padding] · w[o, c, k], extras).

    Args:
        outputs: (N, O, *positions), one for each of the epilogue's expressions.
        x: (N, C, *spatial), float32 or float64.
        w: (O, C / groups, *kernel), of x's dtype.
        extras: arrays that broadcast to the outputs: biases, residuals. They may be outputs themselves.
        stride, padding, dilation: one number for each spatial dimension.
        groups: into how many parts channels fall; output channels of one see input channels of the same.
        epilogue: what is stored: expressions of the sum, variable 0, and of the extras, variables 1, 2, ...

    Returns:
        Launches whose pointers are outputs, x, w, extras, scratch.

    Raises:
        TypeError: dtypes that differ, or are neither float32 nor float64.
        ValueError: shapes that do not belong together.

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
    return list(_forward(tuple(outputs), x, w, tuple(extras), options, _nodes(epilogue)))


def input_gradient(outputs: Sequence[Spec], gy: Spec, w: Spec, extras: Sequence[Spec] = (), *,
                   stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int = 1,
                   epilogue: Sequence[Node] | None = None) -> list[Launch]:
    """The transpose of `forward` in its input, from (N, O, *positions) to (N, C, *spatial); a transposed convolution.

    Arguments are those of `forward`; `outputs` have the shape of the convolution's input.
    """
    options = Options(tuple(stride), tuple(padding), tuple(dilation), groups)
    return list(_input_gradient(tuple(outputs), gy, w, tuple(extras), options, _nodes(epilogue)))


def weight_gradient(outputs: Sequence[Spec], x: Spec, gy: Spec, *, stride: Sequence[int], padding: Sequence[int],
                    dilation: Sequence[int], groups: int = 1) -> list[Launch]:
    """The transpose of `forward` in its weight: (O, C / groups, *kernel), from x and the output's gradient.

    Arguments are those of `forward`; `outputs` is one array.

    Returns:
        Launches whose pointers are the gradient, x, gy, scratch.
    """
    (w,) = outputs
    return list(_weight_gradient(w, x, gy, Options(tuple(stride), tuple(padding), tuple(dilation), groups)))


def forget() -> None:
    """Make launches anew from now on."""
    for each in (_forward, _input_gradient, _weight_gradient):
        each.cache_clear()


@lru_cache(KEPT)
def _forward(outputs: tuple[Spec, ...], x: Spec, w: Spec, extras: tuple[Spec, ...], options: Options,
             nodes: tuple[Node, ...] | None) -> tuple[Launch, ...]:
    _check(x, w, outputs, options)
    nodes = _checked(nodes, outputs, x.dtype)
    if outputs[0].size == 0:
        return ()
    if _trivial(options, w, x, outputs[0]):
        less = [_shortened(each) for each in (*outputs, x, w, *extras)]
        count = len(outputs)
        return _forward(tuple(less[:count]), less[count], less[count + 1], tuple(less[count + 2:]),
                        options.shortened, nodes)
    if _pointwise(options, w, x, outputs[0]):
        return _product(outputs, x, Spec(w.shape[1::-1], w.strides[1::-1], w.dtype), extras, nodes)
    return _sums(_problem(x, w, outputs[0], options), nodes, outputs, x, w, extras, w.strides[0], w.strides[1])


@lru_cache(KEPT)
def _input_gradient(outputs: tuple[Spec, ...], gy: Spec, w: Spec, extras: tuple[Spec, ...], options: Options,
                    nodes: tuple[Node, ...] | None) -> tuple[Launch, ...]:
    x = outputs[0]
    _check(x, w, [gy], options, gy.dtype)
    nodes = _checked(nodes, outputs, gy.dtype)
    if x.size == 0:
        return ()
    if _trivial(options, w, x, gy):
        less = [_shortened(each) for each in (*outputs, gy, w, *extras)]
        count = len(outputs)
        return _input_gradient(tuple(less[:count]), less[count], less[count + 1], tuple(less[count + 2:]),
                               options.shortened, nodes)
    if _pointwise(options, w, gy, x):
        return _product(outputs, gy, Spec(w.shape[:2], w.strides[:2], w.dtype), extras, nodes)
    stride, padding, dilation, groups = options
    problem = geometry.transposed(x.shape[0], groups, w.shape[0] // groups, w.shape[1], triple(gy.shape[2:], 1),
                                  triple(x.shape[2:], 1), triple(w.shape[2:], 1), triple(stride, 1),
                                  triple(padding, 0), triple(dilation, 1))
    return _sums(problem, nodes, outputs, gy, w, extras, w.strides[1], w.strides[0])


@lru_cache(KEPT)
def _weight_gradient(w: Spec, x: Spec, gy: Spec, options: Options) -> tuple[Launch, ...]:
    _check(x, w, [gy], options)
    if gy.dtype != x.dtype:
        raise TypeError(f"a gradient of {gy.dtype} for images of {x.dtype}")
    if w.size == 0:
        return ()
    if _trivial(options, w, x, gy):
        return _weight_gradient(_shortened(w), _shortened(x), _shortened(gy), options.shortened)
    if x.size and _pointwise(options, w, x, gy):
        rows, columns = _positions(x), _positions(gy)
        if rows is not None and columns is not None:
            (count, step), (_, its_step) = rows, columns
            return tuple(matmul.launches([Spec(w.shape[1::-1], w.strides[1::-1], w.dtype)],
                                         Spec((x.shape[1], count), (x.strides[1], step), x.dtype),
                                         Spec((count, gy.shape[1]), (its_step, gy.strides[1]), gy.dtype)))
    problem = _problem(x, w, gy, options)
    apart = problem.groups > 1 and problem.depth == problem.width == 1
    group = w.strides[0] * problem.width
    if apart:
        problem = problem._replace(groups=1, width=problem.groups)
    images, factors = Images.of(x, x.shape), Images.of(gy, gy.shape)
    found = (WinogradGradient(problem, images, factors) if fits(problem, x.dtype) and pays_back(problem)
             else Gradient(problem, images, factors, apart))
    return tuple(found.launches(w, w.strides[0], group, w.strides[1]))


def _sums(problem: Correlation, nodes: tuple[Node, ...], outputs: Sequence[Spec], source: Spec, w: Spec,
          extras: Sequence[Spec], lane: int, channel: int) -> tuple[Launch, ...]:
    """The launches of a correlation.

    Args:
        nodes: what is stored, one expression for each output.
        lane, channel: the weights' strides by the target's channel and by the source's.
    """
    group = w.strides[0] * (w.shape[0] // problem.groups)
    apart = problem.groups > 1 and problem.depth == problem.width == 1
    if apart:
        problem, lane = problem._replace(groups=1, width=problem.groups), w.strides[0]
    operands = [Images.of(each, outputs[0].shape) for each in (*outputs, *extras)]
    images = Images.of(source, source.shape)
    found = (Winograd(problem, nodes, images, operands) if fits(problem, source.dtype) and pays(problem)
             else Correlating(problem, nodes, images, operands, apart))
    return tuple(found.launches(w, lane, group, channel))


def _problem(x: Spec, w: Spec, y: Spec, options: Options) -> Correlation:
    stride, padding, dilation, groups = options
    return geometry.forward(x.shape[0], groups, w.shape[1], w.shape[0] // groups, triple(x.shape[2:], 1),
                            triple(y.shape[2:], 1), triple(w.shape[2:], 1), triple(stride, 1), triple(padding, 0),
                            triple(dilation, 1))


def _nodes(epilogue: Sequence[Node] | None) -> tuple[Node, ...] | None:
    return None if epilogue is None else tuple(epilogue)


def _checked(nodes: tuple[Node, ...] | None, outputs: Sequence[Spec], dtype: np.dtype) -> tuple[Node, ...]:
    """The expressions, one for each output."""
    if nodes is None:
        nodes = (variable(0, dtype),)
    if len(nodes) != len(outputs):
        raise ValueError(f"{len(nodes)} expressions for {len(outputs)} outputs")
    for node, output in zip(nodes, outputs, strict=True):
        if node.dtype != output.dtype or output.shape != outputs[0].shape:
            raise TypeError(f"an expression of {node.dtype} for an output of {output.dtype} and shape {output.shape}")
    return nodes


def _check(x: Spec, w: Spec, outputs: Sequence[Spec], options: Options, dtype: np.dtype | None = None) -> None:
    """Whether images, weights and outputs belong together; `dtype` is that of what is convolved."""
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


def _trivial(options: Options, w: Spec, x: Spec, y: Spec) -> bool:
    """Whether the last of several spatial dimensions has one element, one tap and one position, and is in the way."""
    return len(x.shape) > 3 and w.shape[-1] == x.shape[-1] == y.shape[-1] == 1 and not options.padding[-1]


def _shortened(spec: Spec) -> Spec:
    """The same array without its last dimension, of extent 1."""
    return Spec(spec.shape[:-1], spec.strides[:-1], spec.dtype)


def _pointwise(options: Options, w: Spec, x: Spec, y: Spec) -> bool:
    """Whether a convolution is the product of a matrix of positions by channels with the weights."""
    return (options.groups == 1 and max(w.shape[2:]) == max(options.stride) == 1 and not any(options.padding)
            and x.shape[2:] == y.shape[2:])


def _product(outputs: Sequence[Spec], x: Spec, w: Spec, extras: Sequence[Spec],
             nodes: tuple[Node, ...]) -> tuple[Launch, ...]:
    """The product of images, channels last, with a matrix."""
    def last(spec: Spec) -> Spec:
        missing = (0,) * (len(x.shape) - len(spec.shape))
        n, c, *spatial = (1,) * len(missing) + spec.shape
        over_n, over_c, *over = missing + spec.strides
        return Spec((n, *spatial, c), (over_n, *over, over_c), spec.dtype)

    return tuple(matmul.launches([last(each) for each in outputs], last(x), w, [last(each) for each in extras],
                                 nodes))


def _positions(spec: Spec) -> tuple[int, int] | None:
    """How many positions all images have, and the distance of neighbours, if they lie evenly and channels together."""
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
