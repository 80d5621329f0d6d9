"""Products of groups of matrices, and of matrices that are scaled numbers of eight bits."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ..._tensor import Tensor, functions

_GROUPED_DTYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


class ScalingType(enum.Enum):
    """What one scale of a matrix applies to.

    >>> import flambeau as torch
    >>> torch.nn.functional.ScalingType.RowWise.value
    1
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """The layout of scales in memory.

    >>> import flambeau as torch
    >>> torch.nn.functional.SwizzleType.NO_SWIZZLE.value
    0
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


# files name them by the module in which programs find them
ScalingType.__module__ = SwizzleType.__module__ = __name__.replace("functionals.grouped_mm", "functional")


def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None,
               out_dtype: Any = None) -> Tensor:
    """Matrix products of groups, where a matrix of two dimensions holds all groups beside each other.

    Args:
        mat_a: (total, K) with groups of rows, (M, total) with groups of the contraction, or (G, M, K).
        mat_b: (G, K, N), (K, total) with groups of columns, or (total, N) with groups of the contraction.
        offs: (G,) int32, where each group ends; None if both have three dimensions.
        out_dtype: the dtype of the inputs.

    Raises:
        RuntimeError: dtypes, shapes or offsets do not fit (PyTorch's texts).

    >>> import flambeau as torch
    >>> a, b = torch.ones(3, 2), torch.ones(2, 2, 1)
    >>> torch.nn.functional.grouped_mm(a, b, offs=torch.tensor([1, 3], dtype=torch.int32))
    tensor([[2.],
            [2.],
            [2.]])
    """
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.dtype not in _GROUPED_DTYPES:
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got "
                               f"{matrix.dtype.scalar_name}")
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    flat_a, flat_b = mat_a.dim() == 2, mat_b.dim() == 2
    if not (flat_a and flat_b) and mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is not None) != (flat_a or flat_b):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        if mat_a.shape[0] != mat_b.shape[0]:
            raise RuntimeError("matrix batch sizes have to match")
        return functions.bmm(mat_a, mat_b)
    if offs.dim() != 1:
        raise RuntimeError("offs has to be 1D")
    if offs.dtype is not dtypes.int32:
        raise RuntimeError("Offsets have to be int32")
    if flat_a and flat_b and mat_a.shape[1] != mat_b.shape[0]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if not flat_a and mat_a.shape[0] != len(offs):
        raise RuntimeError("matrix batch sizes have to match")
    if not flat_b and mat_b.shape[0] != len(offs):
        raise RuntimeError("matrix batch sizes have to match")
    ends = offs.tolist()
    groups = list(zip([0, *ends], ends, strict=False))
    if flat_a and flat_b:
        return functions.stack([mat_a[:, low:high] @ mat_b[low:high] for low, high in groups])
    if flat_a:
        parts = [mat_a[low:high] @ mat_b[group] for group, (low, high) in enumerate(groups)]
        rest = mat_a.shape[0] - ends[-1]
        return functions.cat([*parts, mat_a.new_zeros(rest, mat_b.shape[-1])] if rest else parts)
    parts = [mat_a[group] @ mat_b[:, low:high] for group, (low, high) in enumerate(groups)]
    rest = mat_b.shape[1] - ends[-1]
    return functions.cat([*parts, mat_a.new_zeros(mat_a.shape[1], rest)] if rest else parts, 1)


def _only(value: Any) -> Any:
    """The element of a list of one, or the value."""
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def scaled_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any,
              swizzle_a: Any = None, swizzle_b: Any = None, bias: Tensor | None = None,
              output_dtype: Any = dtypes.bfloat16, contraction_dim: Sequence[int] = (),
              use_fast_accum: bool = False) -> Tensor:
    """The product of two scaled matrices of float8, (scale_a · mat_a) (scale_b · mat_b) + bias, summed in float32.

    Args:
        mat_a: (M, K).
        mat_b: (K, N), the transpose of a contiguous matrix.
        scale_a: float32, a scalar (`ScalingType.TensorWise`) or (M, 1) (`RowWise`).
        scale_b: float32, a scalar or (1, N).
        bias: (N,).
        output_dtype: the dtype of the result.

    Raises:
        ValueError: the scaling is one of blocks, which CPUs do not support, or scales do not fit it.

    >>> import flambeau as torch
    >>> F = torch.nn.functional
    >>> a, b = torch.ones(2, 16).to(torch.float8_e4m3fn), torch.ones(2, 16).to(torch.float8_e4m3fn).t()
    >>> F.scaled_mm(a, b, torch.tensor(0.5), F.ScalingType.TensorWise, torch.tensor(2.), F.ScalingType.TensorWise)
    tensor([[16., 16.],
            [16., 16.]], dtype=flambeau.bfloat16)
    """
    scale_a, scale_b = _only(scale_a), _only(scale_b)
    recipes = _only(scale_recipe_a), _only(scale_recipe_b)
    if mat_a.dim() != 2 or mat_b.dim() != 2:
        raise RuntimeError(f"{'mat_a' if mat_a.dim() != 2 else 'mat_b'} must be a matrix")
    if mat_a.shape[1] != mat_b.shape[0]:
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({mat_a.shape[0]}x{mat_a.shape[1]} and "
                           f"{mat_b.shape[0]}x{mat_b.shape[1]})")
    rows, columns = mat_a.shape[0], mat_b.shape[1]
    tensorwise = recipes == (ScalingType.TensorWise,) * 2 and scale_a.numel() == scale_b.numel() == 1
    rowwise = recipes == (ScalingType.RowWise,) * 2 and (
        tuple(scale_a.shape) == (rows, 1) and tuple(scale_b.shape) == (1, columns))
    narrow = all(matrix.dtype.is_floating_point and matrix.dtype.itemsize == 1 for matrix in (mat_a, mat_b))
    if not (narrow and (tensorwise or rowwise) and scale_a.dtype is scale_b.dtype is dtypes.float32):
        raise ValueError(
            "Invalid scaling configuration.\n"
            "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
            f"- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ({rows}, 1) "
            f"and scale_b should be (1, {columns}), and both should be contiguous.\n"
            f"Got a.dtype()={mat_a.dtype.scalar_name}, scale_a.dtype()={scale_a.dtype.scalar_name}, "
            f"scale_a.size()={list(scale_a.shape)}, b.dtype()={mat_b.dtype.scalar_name}, "
            f"scale_b.dtype()={scale_b.dtype.scalar_name}, scale_b.size()={list(scale_b.shape)}")
    out = (mat_a.to(dtypes.float32) @ mat_b.to(dtypes.float32)) * scale_a.reshape(
        (rows, 1) if rowwise else ()) * scale_b.reshape((1, columns) if rowwise else ())
    if bias is not None:
        out = out + bias
    return out.to(mat_a.dtype if output_dtype is None else output_dtype)


def _grouped_mm(self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None,
                out_dtype: Any = None) -> Tensor:
    """`torch._grouped_mm`: `grouped_mm` with positional arguments."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _scaled_mm(self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
               scale_result: Tensor | None = None, out_dtype: Any = None, use_fast_accum: bool = False) -> Tensor:
    """`torch._scaled_mm`: `scaled_mm` whose scaling follows from the scales' sizes; a scale for the result is unused.

    Raises:
        ValueError: the scales are neither one number each nor a column and a row.
    """
    one = scale_a.numel() == scale_b.numel() == 1
    recipe = ScalingType.TensorWise if one else ScalingType.RowWise
    for name, matrix in (("mat1", self), ("mat2", mat2)):
        if matrix.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix")
    return scaled_mm(self, mat2, scale_a, recipe, scale_b, recipe, bias=bias, output_dtype=out_dtype)


def scaled_grouped_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any,
                      scale_recipe_b: Any, swizzle_a: Any = None, swizzle_b: Any = None, bias: Tensor | None = None,
                      offs: Tensor | None = None, output_dtype: Any = dtypes.bfloat16,
                      contraction_dim: Sequence[int] = (), use_fast_accum: bool = False) -> Tensor:
    """`grouped_mm` of scaled matrices of float8, which CPUs do not have.

    Raises:
        NotImplementedError: always, as in PyTorch's CPU build.

    >>> import flambeau as torch
    >>> F = torch.nn.functional
    >>> F.scaled_grouped_mm(*[torch.ones(2)] * 6)
    Traceback (most recent call last):
        ...
    NotImplementedError: Could not run 'aten::_scaled_grouped_mm_v2' with arguments from the 'CPU' backend. ...
    """
    raise NotImplementedError("Could not run 'aten::_scaled_grouped_mm_v2' with arguments from the 'CPU' backend. This "
                              "could be because the operator doesn't exist for this backend.")
