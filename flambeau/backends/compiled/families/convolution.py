"""Convolutions of large arrays and their gradients, by compiled kernels; small ones are quicker by NumPy's.

Images that lie in memory with their channels last give images that do, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import codegen, dtypes
from ...errstate import run_quietly

ndarray = np.ndarray

#: multiplications from which on kernels are asked: fewer are not worth their being compiled
LEAST = [1 << 15]


def channels_last(x: ndarray) -> bool:
    """Whether an array (N, C, *spatial) lies in memory with its channels last, and not row by row as well."""
    if x.flags.c_contiguous or x.ndim < 3:
        return False
    return x.transpose(0, *range(2, x.ndim), 1).flags.c_contiguous


def like(x: ndarray, *others: ndarray) -> ndarray:
    """`x` (N, C, *spatial), with its channels last if one of the others has."""
    return as_last(x) if x.ndim > 3 and any(map(channels_last, others)) else x


def as_last(x: ndarray) -> ndarray:
    """A copy of `x` (N, C, *spatial) that has its channels last."""
    result = np.ndarray(x.shape, x.dtype, np.empty(x.shape, x.dtype), 0, last_strides(x.shape, x.itemsize))
    result[...] = x
    return result


def last_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides of an array of this shape with its channels last.

    >>> last_strides((2, 3, 5), 4)
    (60, 4, 12)
    """
    _, c, *spatial = shape
    strides, stride = [], c * itemsize
    for extent in reversed(spatial):
        strides.append(stride)
        stride *= extent
    return stride, itemsize, *reversed(strides)


class Convolutions:
    """Kernels for convolutions, with their plans."""

    def __init__(self) -> None:
        from ..launching import Plans

        self.plans = Plans()

    def run(self, plan_of: Callable[..., Any], shape: tuple[int, ...], last: bool, operands: tuple[ndarray, ...],
            geometry: Any) -> ndarray:
        """A new array of this shape, computed from the operands as a plan says.

        Args:
            plan_of: makes the launches, from the result's and the operands' specs and the geometry.
            last: whether the result has its channels last.
        """
        operands = tuple([x if 0 not in x.strides else np.ascontiguousarray(x) for x in operands])
        key = (plan_of, last, shape, operands[0].dtype.char, geometry, *[(x.shape, x.strides) for x in operands])
        plan = self.plans.found.get(key)
        if plan is None:
            plan = self.plans.keep(key, self._plan(plan_of, shape, last, operands, geometry))
        result = np.empty(shape, operands[0].dtype)
        if last:
            result = np.ndarray(shape, result.dtype, result, 0, last_strides(shape, result.itemsize))
        plan.run((result, *operands))
        return result

    @staticmethod
    def _plan(plan_of: Callable[..., Any], shape: tuple[int, ...], last: bool, operands: tuple[ndarray, ...],
              geometry: Any) -> Any:
        from ....runtime.launch import Spec
        from ..launching import Plan

        dtype = operands[0].dtype
        out = Spec(shape, last_strides(shape, dtype.itemsize), dtype) if last else Spec.dense(shape, dtype)
        return Plan([(shape, dtype, None)], plan_of(out, *map(Spec.of, operands), geometry))


def _options(geometry: Any) -> dict[str, Any]:
    _, _, _, stride, padding, dilation, groups = geometry
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _with_bias(out: Any, bias: Any) -> dict[str, Any]:
    """What adds a bias (C) to an output (N, C, *spatial)."""
    from ....codegen.scalar.scalar_ir import variable
    from ....runtime.launch import Spec

    if bias is None:
        return {}
    shape = (bias.shape[0], *(1 for _ in out.shape[2:]))
    spec = Spec(shape, (bias.strides[0], *(0 for _ in out.shape[2:])), bias.dtype)
    return {"extras": [spec], "epilogue": [variable(0, out.dtype) + variable(1, out.dtype)]}


def _output(out: Any, x: Any, w: Any, *rest: Any) -> Any:
    from ....codegen.convolution import convolution

    return convolution.forward([out], x, w, **_with_bias(out, rest[0] if len(rest) > 1 else None),
                               **_options(rest[-1]))


def _image(out: Any, gy: Any, w: Any, *rest: Any) -> Any:
    from ....codegen.convolution import convolution

    return convolution.input_gradient([out], gy, w, **_with_bias(out, rest[0] if len(rest) > 1 else None),
                                      **_options(rest[-1]))


def _weight(out: Any, x: Any, gy: Any, geometry: Any) -> Any:
    from ....codegen.convolution import convolution

    return convolution.weight_gradient([out], x, gy, **_options(geometry))


_found: list[Convolutions | None] = []


def _kernels() -> Convolutions | None:
    """The kernels, made ready when first asked for; None where there are none."""
    if not _found:
        if codegen.available():
            from ..allocator import allocator

            allocator()
            _found.append(Convolutions())
        else:
            LEAST[0] = 1 << 62
            _found.append(None)
    return _found[0]


def _computed(plan_of: Callable[..., Any], shape: tuple[int, ...], last: bool, operands: tuple[ndarray, ...],
              geometry: Any) -> ndarray | None:
    """What the kernels compute, in the operands' dtype; None where there are no kernels for it."""
    first = operands[0]
    narrow = first.dtype if first.dtype in dtypes.NARROW else None
    if narrow is not None:
        operands = tuple([dtypes.widen(x) for x in operands])
    char = operands[0].dtype.char
    if char not in "fd" or any(x.dtype.char != char for x in operands):
        return None
    found = _kernels()
    if found is None:
        return None
    result: ndarray = run_quietly(found.run, plan_of, shape, last, operands, geometry)
    return result if narrow is None else dtypes.cast(result, narrow)


def output(x: ndarray, w: ndarray, bias: ndarray | None, geometry: Any) -> ndarray | None:
    """The convolution of `x` (N, C, *spatial) with `w` (O, C / groups, *kernel), and a bias (O) added.

    Args:
        geometry: sizes of the image, the kernel and the output, then stride, padding, dilation, groups.

    Returns:
        (N, O, *positions); None where NumPy is the quicker way, or the only one.
    """
    positions = geometry[2]
    shape = (x.shape[0], w.shape[0], *positions)
    if _work(w.size, x.shape[0], positions) < LEAST[0]:
        return None
    return _computed(_output, shape, _last(x, w), (x, w) if bias is None else (x, w, bias), geometry)


def image(gy: ndarray, w: ndarray, bias: ndarray | None, geometry: Any) -> ndarray | None:
    """The convolution's transpose in its input, and a bias (C) added: (N, C, *spatial), or None as for `output`."""
    shape = (gy.shape[0], w.shape[1] * geometry[6], *geometry[0])
    if _work(w.size, gy.shape[0], gy.shape[2:]) < LEAST[0]:
        return None
    return _computed(_image, shape, _last(gy, w), (gy, w) if bias is None else (gy, w, bias), geometry)


def weight(gy: ndarray, x: ndarray, geometry: Any) -> ndarray | None:
    """The convolution's transpose in its weight: (O, C / groups, *kernel), or None as for `output`."""
    groups = geometry[6]
    shape = (gy.shape[1], x.shape[1] // groups, *geometry[1])
    if _work(gy.shape[1] * shape[1], gy.shape[0], geometry[1] + gy.shape[2:]) < LEAST[0]:
        return None
    return _computed(_weight, shape, _last(x, gy), (x, gy), geometry)


def _last(x: ndarray, y: ndarray) -> bool:
    """Whether what is computed from these has its channels last: of two dimensions and more, if one has."""
    return x.ndim > 3 and (channels_last(x) or channels_last(y))


def _work(first: int, second: int, sizes: tuple[int, ...]) -> int:
    """Multiplications: the product of all these."""
    total = first * second
    for each in sizes:
        total *= each
    return total


__all__ = ["LEAST", "Convolutions", "as_last", "channels_last", "image", "last_strides", "like", "output", "weight"]
