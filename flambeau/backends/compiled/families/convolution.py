"""Convolution kernels for large arrays, and their gradients.

Channels-last images give channels-last results, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import codegen, dtypes
from ....errstate import run_quietly
from ....kernels.memory_format import channels_last_strides, is_channels_last, to_channels_last

ndarray = np.ndarray

#: the number of multiplications from which kernels are used: fewer are not worth a compilation
MIN_MULTIPLICATIONS = [1 << 15]


def channels_last(x: ndarray) -> bool:
    """Whether an image (N, C, *spatial) of two or three spatial dimensions has channels-last strides."""
    return is_channels_last(x.shape, x.strides)


def match_channels_last(x: ndarray, *others: ndarray) -> ndarray:
    """`x` (N, C, *spatial), channels-last if one of the others is."""
    return to_channels_last(x) if any(map(channels_last, others)) else x


def in_format_of_sequences(result: ndarray, x: ndarray) -> ndarray:
    """A convolution of sequences `x` (N, C, L) in PyTorch's layout.

    PyTorch copies sequences to row-major and convolves images (N, C, 1, L): they are channels-last only if the strides
    of dimensions of size 1 say so.
    """
    if 1 in x.shape[1:] and x.flags.c_contiguous:
        (n, c, length), (a, b, step) = x.shape, x.strides
        if is_channels_last((n, c, 1, length), (a, b, step * length, step)):
            return to_channels_last(result)
    return result


class ConvolutionKernels:
    """Convolution kernels with their launch plans."""

    def __init__(self) -> None:
        from ..launching import PlanCache

        self.plans = PlanCache()

    def run(self, launches: Callable[..., Any], shape: tuple[int, ...], last: bool, operands: tuple[ndarray, ...],
            geometry: Any) -> ndarray:
        """Run a kernel into a new array of this shape.

        Args:
            launches: creates the launches from the specs of result and operands, and the geometry.
            last: whether the result is channels-last.
        """
        operands = tuple([x if 0 not in x.strides else np.ascontiguousarray(x) for x in operands])
        key = (launches, last, shape, operands[0].dtype.char, geometry, *[(x.shape, x.strides) for x in operands])
        plan = self.plans.plans.get(key)
        if plan is None:
            plan = self.plans.insert(key, self._plan(launches, shape, last, operands, geometry))
        result = np.empty(shape, operands[0].dtype)
        if last:
            result = np.ndarray(shape, result.dtype, result, 0, channels_last_strides(shape, result.itemsize))
        plan.run((result, *operands))
        return result

    @staticmethod
    def _plan(launches: Callable[..., Any], shape: tuple[int, ...], last: bool, operands: tuple[ndarray, ...],
              geometry: Any) -> Any:
        from ....runtime.launch import Spec
        from ..launching import Plan

        dtype = operands[0].dtype
        out = Spec(shape, channels_last_strides(shape, dtype.itemsize), dtype) if last else Spec.dense(shape, dtype)
        return Plan([(shape, dtype, None)], launches(out, *map(Spec.of, operands), geometry))


def _options(geometry: Any) -> dict[str, Any]:
    _, _, _, stride, padding, dilation, groups = geometry
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _with_bias(out: Any, bias: Any) -> dict[str, Any]:
    """The epilogue that adds a bias (C) to an output (N, C, *spatial)."""
    from ....codegen.scalar.scalar_ir import variable
    from ....runtime.launch import Spec

    if bias is None:
        return {}
    shape = (bias.shape[0], *(1 for _ in out.shape[2:]))
    spec = Spec(shape, (bias.strides[0], *(0 for _ in out.shape[2:])), bias.dtype)
    return {"extras": [spec], "epilogue": [variable(0, out.dtype) + variable(1, out.dtype)]}


def _forward_launches(out: Any, x: Any, w: Any, *rest: Any) -> Any:
    from ....codegen.convolution import convolution

    return convolution.forward([out], x, w, **_with_bias(out, rest[0] if len(rest) > 1 else None),
                               **_options(rest[-1]))


def _input_gradient_launches(out: Any, gy: Any, w: Any, *rest: Any) -> Any:
    from ....codegen.convolution import convolution

    return convolution.input_gradient([out], gy, w, **_with_bias(out, rest[0] if len(rest) > 1 else None),
                                      **_options(rest[-1]))


def _weight_gradient_launches(out: Any, x: Any, gy: Any, geometry: Any) -> Any:
    from ....codegen.convolution import convolution

    return convolution.weight_gradient([out], x, gy, **_options(geometry))


_instance: list[ConvolutionKernels | None] = []


def _kernels() -> ConvolutionKernels | None:
    """The kernels, created on first use; None where kernels cannot be compiled."""
    if not _instance:
        if codegen.available():
            from ..allocator import allocator

            allocator()
            _instance.append(ConvolutionKernels())
        else:
            MIN_MULTIPLICATIONS[0] = 1 << 62
            _instance.append(None)
    return _instance[0]


def _run(launches: Callable[..., Any], shape: tuple[int, ...], last: bool, operands: tuple[ndarray, ...],
              geometry: Any) -> ndarray | None:
    """Run a kernel in the operands' dtype; None where there is no kernel for it."""
    first = operands[0]
    narrow = first.dtype if first.dtype in dtypes.NARROW else None
    if narrow is not None:
        operands = tuple([dtypes.widen(x) for x in operands])
    char = operands[0].dtype.char
    if char not in "fd" or any(x.dtype.char != char for x in operands):
        return None
    kernels = _kernels()
    if kernels is None:
        return None
    result: ndarray = run_quietly(kernels.run, launches, shape, last, operands, geometry)
    return result if narrow is None else dtypes.cast(result, narrow)


def forward(x: ndarray, w: ndarray, bias: ndarray | None, geometry: Any) -> ndarray | None:
    """The convolution of `x` (N, C, *spatial) with `w` (O, C / groups, *kernel), plus a bias (O).

    Args:
        geometry: sizes of the image, the kernel and the output, then stride, padding, dilation, groups.

    Returns:
        (N, O, *positions); None where NumPy is faster, or where there is no kernel.
    """
    positions = geometry[2]
    shape = (x.shape[0], w.shape[0], *positions)
    if _multiplications(w.size, x.shape[0], positions) < MIN_MULTIPLICATIONS[0]:
        return None
    operands = (x, w) if bias is None else (x, w, bias)
    return _run(_forward_launches, shape, _gives_channels_last(x, w), operands, geometry)


def input_gradient(gy: ndarray, w: ndarray, bias: ndarray | None, geometry: Any) -> ndarray | None:
    """The gradient of the input (transposed convolution), plus a bias (C): (N, C, *spatial); None as in `forward`."""
    shape = (gy.shape[0], w.shape[1] * geometry[6], *geometry[0])
    if _multiplications(w.size, gy.shape[0], gy.shape[2:]) < MIN_MULTIPLICATIONS[0]:
        return None
    operands = (gy, w) if bias is None else (gy, w, bias)
    return _run(_input_gradient_launches, shape, _gives_channels_last(gy, w), operands, geometry)


def weight_gradient(gy: ndarray, x: ndarray, geometry: Any) -> ndarray | None:
    """The gradient of the weight: (O, C / groups, *kernel); None as in `forward`."""
    groups = geometry[6]
    shape = (gy.shape[1], x.shape[1] // groups, *geometry[1])
    if _multiplications(gy.shape[1] * shape[1], gy.shape[0], geometry[1] + gy.shape[2:]) < MIN_MULTIPLICATIONS[0]:
        return None
    return _run(_weight_gradient_launches, shape, _gives_channels_last(x, gy), (x, gy), geometry)


def _gives_channels_last(x: ndarray, y: ndarray) -> bool:
    """Whether a result is channels-last: with two or more spatial dimensions, if one operand is."""
    return x.ndim > 3 and (channels_last(x) or channels_last(y))


def _multiplications(first: int, second: int, sizes: tuple[int, ...]) -> int:
    """The number of multiplications, the product of the arguments."""
    total = first * second
    for each in sizes:
        total *= each
    return total


__all__ = [
    "MIN_MULTIPLICATIONS",
    "ConvolutionKernels",
    "channels_last",
    "forward",
    "in_format_of_sequences",
    "input_gradient",
    "match_channels_last",
    "weight_gradient",
]
