"""Pairwise distances between rows: `cdist` and `pdist`."""

from __future__ import annotations

from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY
from ..argument_errors.guards import raise_refusal, refused
from ..dispatch.apply import apply
from ..fastpath.repeated_calls import repeated
from ..shape.reshaping import reshaped
from ..tensor import Tensor

__all__ = ["cdist", "pdist"]

_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
MATMUL_MIN_ROWS = 25  # above this number a matmul is faster


@repeated
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0,
          compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distance of each row of `x1` to each row of `x2`.

    Args:
        x1: (..., P, M).
        x2: (..., R, M).
        compute_mode: whether to compute Euclidean distances by a matmul.

    Raises:
        RuntimeError: the rows differ in length, or p is negative.

    >>> import flambeau as torch
    >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    a, b = x1._array.shape, x2._array.shape
    for name, x in (("X1", x1), ("X2", x2)):
        if x._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._array.ndim}D")
    if a[-1] != b[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a[-1]} X2: {b[-1]}")
    for name, x in (("X1", x1), ("X2", x2)):
        if x._array.dtype.kind not in "fV":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}")
    try:
        negative = p < 0
    except TypeError:
        raise_refusal(refused("cdist", (x1, x2, p, compute_mode)))
        raise
    if negative:
        raise RuntimeError("cdist only supports non-negative p values")
    many_rows = a[-2] > MATMUL_MIN_ROWS or b[-2] > MATMUL_MIN_ROWS
    use_matmul = compute_mode == _MODES[1] or (compute_mode == _MODES[0] and many_rows)
    if p == 2 and use_matmul and a[-1] and x1._array.size and x2._array.size:
        result = apply(REGISTRY["_euclidean_dist"], [x1, x2])
        return reshaped(result, result._array.shape)
    return apply(REGISTRY["_cdist_forward"], [x1, x2], {"p": float(p)})


@repeated
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances of all pairs of rows, (N (N - 1) / 2).

    Args:
        input: (N, M).

    >>> import flambeau as torch
    >>> torch.pdist(torch.tensor([[0., 0.], [3., 4.], [0., 1.]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    if input._array.dtype.kind not in "fV":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return apply(REGISTRY["_pdist_forward"], [layer.functions.contiguous(input)], {"p": float(p)})
