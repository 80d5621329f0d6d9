"""The check that a call with `out=` needs no recording: one rule for all operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...modes import grad_mode
from ..tensor import Tensor

#: operators whose `out=` overload PyTorch has no derivative for: their inputs may require grad, `out` may not
NO_DERIVATIVE = frozenset((
    "alias_copy", "arange", "as_strided_copy", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "conj_physical", "detach_copy", "diag_embed", "diagonal_copy",
    "expand_copy", "eye", "fft_fftfreq", "fft_rfftfreq", "floor_divide", "full", "gcd", "heaviside", "indices_copy",
    "lcm", "linalg_eigvals", "linspace", "log_softmax", "logspace", "normal.size", "ones", "permute_copy", "rand",
    "randint", "randperm", "range", "select_copy", "slice_copy", "softmax", "squeeze_copy", "t_copy",
    "transpose_copy", "unfold_copy", "unsqueeze_copy", "values_copy", "view_as_complex_copy", "view_as_real_copy",
    "view_copy", "zeros"))
#: operators that PyTorch composes of others: the one whose `out=` overload is called
_CALLED = {
    "hstack": "cat", "vstack": "cat", "dstack": "cat", "column_stack": "cat", "msort": "sort", "diff": "sub",
    "det": "_linalg_det", "linalg_det": "_linalg_det", "linalg_inv": "linalg_inv_ex", "inverse": "linalg_inv_ex",
    "linalg_solve": "_linalg_solve_ex", "linalg_solve_ex": "_linalg_solve_ex", "linalg_cholesky": "linalg_cholesky_ex",
    "_as_strided_copy": "as_strided_copy", "_squeeze_all_copy": "squeeze_copy", "_squeeze_dim_copy": "squeeze_copy",
    "_squeeze_dims_copy": "squeeze_copy", "clip": "clamp", "concat": "cat",
    "concatenate": "cat", "frobenius_norm": "norm", "special_round": "round",
}


def check_records_nothing(name: str, inputs: Iterable[Any], outs: Iterable[Any], differentiable: bool = True) -> None:
    """Check that a call of an operator with `out=` needs no recording.

    Args:
        inputs, outs: tensors, and other values.
        differentiable: whether the operator's result may require grad.

    Raises:
        RuntimeError: a tensor requires grad, and grad mode is on (PyTorch's text).
    """
    if not grad_mode.get():
        return
    name = _CALLED.get(name, name)
    if name in NO_DERIVATIVE:
        recorded = any(isinstance(x, Tensor) and x._requires_grad and not _may_be_written(x) for x in outs)
        name = f"aten::{name.removesuffix('.size')}"
    else:
        recorded = differentiable and (_any_requires_grad(inputs) or _any_requires_grad(outs))
    if recorded:
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the arguments requires grad.")


def _may_be_written(x: Tensor) -> bool:
    """Whether a tensor that requires grad has a history that an in-place write may replace."""
    base = x._base
    return x._has_node() and (base is None or (x._creation is None and base._node is not None))


#: guarded functions that PyTorch composes of others, and that look at their arguments before those are called
_COMPOSED = frozenset("""
    argsort bernoulli bucketize column_stack count_nonzero cross diag divide dstack fft_fft fft_fft2 fft_fftn
    fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2
    fft_irfftn fft_rfft fft_rfft2 fft_rfftn float_power ger histc hstack inner isin isneginf isposinf kron
    linalg_cond linalg_eigvalsh linalg_ldl_factor linalg_lu_factor linalg_matmul linalg_matrix_norm
    linalg_matrix_power linalg_matrix_rank linalg_multi_dot linalg_norm linalg_pinv linalg_svdvals linalg_tensorinv
    linalg_tensorsolve linalg_vecdot lu_solve matrix_power multinomial nanmean nanquantile nonzero nonzero_static
    nuclear_norm orgqr outer qr quantile rand randint randn row_stack searchsorted signbit slogdet special_polygamma
    split_copy split_with_sizes_copy std subtract svd take_along_dim true_divide unbind_copy var vstack
""".split())  # noqa: SIM905


def refused_out(name: str, args: Iterable[Any], kwargs: dict[str, Any]) -> RuntimeError | None:
    """The error of a call with `out=` that failed, and would record: PyTorch looks at this before the operator does."""
    if name in _COMPOSED:
        return None
    out = kwargs.get("out")
    try:
        check_records_nothing(name, (*args, *(value for key, value in kwargs.items() if key != "out")),
                              out if isinstance(out, (tuple, list)) else (out,))
    except RuntimeError as error:
        return error
    return None


def _any_requires_grad(values: Iterable[Any]) -> bool:
    for x in values:
        if isinstance(x, Tensor):
            if x._requires_grad:
                return True
        elif isinstance(x, (tuple, list)) and _any_requires_grad(x):
            return True
    return False


__all__ = ["NO_DERIVATIVE", "check_records_nothing", "refused_out"]
