"""complex32: the operators that compute with it, in complex64, and the warning that its tensors are experimental."""

from __future__ import annotations

from ... import dtypes
from ...ops.declare import VIEW, Op
from ...warning_location import warn_once

#: the operators that have a kernel in PyTorch, besides views and those with private names
_SUPPORTED = frozenset("""
    abs add addcmul alias_copy all any argwhere as_strided_scatter block_diag broadcast_to cat clone column_stack
    complex conj conj_physical constant_pad_nd contiguous convolution count_nonzero detach_copy diag_embed
    diagonal_copy diagonal_scatter dist dstack eq expand_copy fill fill_scalar fill_tensor hstack index index_add
    index_copy index_fill index_fill_tensor index_put index_select isfinite isinf isnan isreal linalg_vector_norm
    masked_fill masked_fill_scalar masked_select mul narrow_copy ne neg nonzero normal ones_like permute_copy positive
    repeat reshape_as roll rsub select_copy select_scatter sgn slice_copy slice_scatter split_copy
    split_with_sizes_copy stack std std_mean sub sum_to_size t_copy transpose_copy tril triu unbind_copy unfold_copy
    uniform unsafe_split unsafe_split_with_sizes unsqueeze_copy var var_mean view_copy vstack where zeros_like
""".split())  # noqa: SIM905

#: operator -> what its kernel is called in PyTorch's error, where that is not the name and "_cpu"
_KERNELS = {
    **{name: f"{name}_vml_cpu" for name in (
        "acos", "asin", "atan", "cos", "erf", "erfc", "erfinv", "exp", "expm1", "i0", "lgamma", "log", "log10", "log1p",
        "log2", "round", "sin", "sqrt", "tan", "tanh")},
    **dict.fromkeys(("dot", "exp2", "masked_scatter", "nan_to_num", "pow", "trace", "vdot", "digamma"), ""),
    "addcdiv": "addcdiv_cpu_out", "addmm": "addmm_impl_cpu_", "mm": "addmm_impl_cpu_", "cumprod": "cumprod_out_cpu",
    "cumsum": "cumsum_out_cpu", "gather": "scatter_gather_tensor_cpu", "scatter_add": "scatter_gather_tensor_cpu",
    "lerp": "lerp_kernel_tensor", "log_softmax": "log_softmax_kernel_impl", "softmax": "softmax_kernel_impl",
    "mean": "sum_cpu", "mse_loss": "mse_cpu", "prod": "prod_out_cpu", "put": "take_put_cpu", "gelu": "GeluKernelImpl",
    "amax": "max_values_cpu", "amin": "min_values_cpu", "clamp_max": "minimum_cpu", "clamp_min": "maximum_cpu",
}


def check_complex_half(op: Op) -> None:
    """Check that an operator computes with complex32.

    Raises:
        NotImplementedError: it does not (PyTorch's text).
    """
    if op.name in _SUPPORTED or op.kind == VIEW or op.name.startswith("_"):
        return
    kernel = _KERNELS.get(op.name, f"{op.name}_cpu") or op.name
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtypes.complex32.scalar_name}'")


def warn_of_complex_half() -> None:
    """Warn, once, that tensors of complex32 are experimental."""
    warn_once("ComplexHalf support is experimental and many operators don't support it yet.")


__all__ = ["check_complex_half", "warn_of_complex_half"]
