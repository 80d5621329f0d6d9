"""`torch._refs`: in PyTorch, operators written in Python by means of simpler ones; here the operators themselves.

Names are those of `torch`, methods of tensors as functions, and a few that exist here alone.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor, functions
from ..shapes import wrap_dims

_PACKAGE = __name__.rpartition(".")[0]
_NAMES = """
    T abs abs_ acos acos_ acosh acosh_ add add_ addcdiv addcdiv_ addcmul addcmul_ addr alias alias_copy all allclose
    amax amin any arange as_strided as_strided_copy as_strided_scatter asin asin_ asinh asinh_ atan atan2 atan2_
    atan_ atanh atanh_ atleast_1d atleast_2d atleast_3d bitwise_and bitwise_and_ bitwise_left_shift
    bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_
    bitwise_xor bitwise_xor_ block_diag broadcast_shapes broadcast_tensors broadcast_to bucketize cat cauchy cauchy_
    ceil ceil_ chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clone column_stack conj conj_physical
    conj_physical_ constant_pad_nd contiguous copy_to copysign copysign_ cos cos_ cosh cosh_ count_nonzero cumprod
    cumprod_ cumsum cumsum_ deg2rad deg2rad_ diag diag_embed diagonal diagonal_copy diagonal_scatter digamma
    digamma_ div div_ dot dsplit dstack empty empty_like empty_permuted empty_strided eq eq_ equal erf erf_ erfc
    erfc_ erfinv erfinv_ exp exp2 exp2_ exp_ expand expand_as expand_copy expm1 expm1_ exponential exponential_ eye
    fill fill_ flatten flip fliplr flipud float_power float_power_ floor floor_ floor_divide floor_divide_ fmax fmin
    fmod fmod_ frac frac_ full full_like gcd gcd_ ge ge_ geometric geometric_ gt gt_ heaviside heaviside_ hsplit
    hstack hypot hypot_ i0 i0_ igamma igamma_ igammac igammac_ imag index_add index_copy index_copy_ index_fill
    index_fill_ index_select is_complex isclose isfinite isinf isnan isneginf isposinf isreal istft item lcm lcm_ le
    le_ lerp lerp_ lgamma lgamma_ linspace log log10 log10_ log1p log1p_ log2 log2_ log_ log_normal log_normal_
    log_softmax logaddexp logaddexp2 logical_and logical_and_ logical_not logical_not_ logical_or logical_or_
    logical_xor logical_xor_ logspace logsumexp lt lt_ masked_fill masked_fill_ maximum mean meshgrid minimum
    movedim mul mul_ mvlgamma mvlgamma_ nan_to_num nan_to_num_ narrow narrow_copy native_group_norm
    native_layer_norm ne ne_ neg neg_ new_empty new_empty_strided new_full new_ones new_zeros nextafter nextafter_
    norm normal ones ones_like permute permute_copy positive pow pow_ prod rad2deg rad2deg_ randn ravel real
    reciprocal reciprocal_ remainder remainder_ renorm repeat reshape reshape_as rfloordiv roll rot90 round rpow
    rsqrt rsqrt_ rsub rtruediv scalar_tensor sgn sgn_ sigmoid sigmoid_ sign sign_ signbit sin sin_ sinc sinc_ sinh
    sinh_ softmax split_with_sizes sqrt sqrt_ square square_ squeeze squeeze_copy stack std std_mean stft sub sub_
    sum sum_to_size swap_axes t t_copy take_along_dim tan tan_ tanh tanh_ tensor_split to trace transpose
    transpose_copy tril tril_ tril_indices triu triu_ triu_indices true_divide true_divide_ trunc trunc_
    trunc_divide unbind unbind_copy unflatten unfold unfold_copy unsqueeze unsqueeze_copy var var_mean vdot view
    view_as view_as_complex view_copy vsplit vstack where xlogy xlogy_ zero zero_ zeros zeros_like
""".split()  # noqa: SIM905
__all__ = [*_NAMES]  # noqa: PLE0604
_MODULES = ("_conversions", "fft", "linalg", "nn", "special")


def T(a: Tensor) -> Tensor:
    """The transpose of a matrix.

    >>> import flambeau as torch
    >>> torch._refs.T(torch.ones(2, 3)).shape
    flambeau.Size([3, 2])
    """
    return a.T


def alias(a: Tensor) -> Tensor:
    """A view of the whole tensor.

    >>> import flambeau as torch
    >>> torch._refs.alias(torch.ones(2))
    tensor([1., 1.])
    """
    return a.view(a.shape)


def sum(a: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The sum, over all dimensions or those in `dim`.

    >>> import flambeau as torch
    >>> torch._refs.sum(torch.ones(2, 3), (0, 1))
    tensor(6.)
    """
    return functions.sum(a, dim, keepdim, dtype=dtype, out=out)


def prod(a: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The product, over all dimensions or those in `dim`, which may be several.

    >>> import flambeau as torch
    >>> torch._refs.prod(torch.full((2, 3), 2.), (0, 1))
    tensor(64.)
    """
    axes = sorted(wrap_dims(dim, a.ndim), reverse=True)
    for axis in axes[:-1]:
        a = functions.prod(a, axis, keepdim, dtype=dtype)
    return functions.prod(a, axes[-1] if axes else None, keepdim, dtype=dtype, out=out)


def copy_to(a: Tensor, b: Tensor, *, allow_cross_device: bool = True) -> Tensor:
    """Write `b` into `a`.

    >>> import flambeau as torch
    >>> torch._refs.copy_to(torch.zeros(2), torch.ones(2))
    tensor([1., 1.])
    """
    return a.copy_(b)


def rpow(a: Any, b: Any) -> Tensor:
    """`b` to the power of `a`.

    >>> import flambeau as torch
    >>> torch._refs.rpow(torch.ones(1), 2)
    tensor([2.])
    """
    return b ** a


def rtruediv(a: Any, b: Any) -> Tensor:
    """`b` divided by `a`.

    >>> import flambeau as torch
    >>> torch._refs.rtruediv(torch.ones(1), 2)
    tensor([2.])
    """
    return b / a


def rfloordiv(a: Any, b: Any) -> Tensor:
    """`b` divided by `a`, rounded down.

    >>> import flambeau as torch
    >>> torch._refs.rfloordiv(torch.tensor(2), 5)
    tensor(2)
    """
    return b // a


def trunc_divide(a: Any, b: Any) -> Tensor:
    """`a` divided by `b`, rounded toward zero.

    >>> import flambeau as torch
    >>> torch._refs.trunc_divide(torch.tensor(-5), 2)
    tensor(-2)
    """
    return a.div(b, rounding_mode="trunc")


def _out_of_place(name: str) -> Callable[..., Tensor]:
    """A function of an in-place method: the method on a copy."""
    method = getattr(Tensor, f"{name}_")

    @functools.wraps(method)
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(input.clone(), f"{name}_")(*args, **kwargs)

    call.__name__ = name
    return call


#: names that PyTorch spells otherwise, or has as in-place methods only
_OTHERS: dict[str, Callable[[], Any]] = {
    "swap_axes": functools.partial(getattr, Tensor, "swapaxes"),
    **{name: functools.partial(getattr, Tensor, name) for name in ("permute", "reshape", "view")},
    **{name: functools.partial(_out_of_place, name) for name in (
        "cauchy", "exponential", "geometric", "log_normal", "zero")},
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if not name.startswith("_"):
        if name in _OTHERS:
            return _OTHERS[name]()
        for owner in (functions, Tensor, importlib.import_module(_PACKAGE)):
            value = getattr(owner, name, None)
            if callable(value) and not isinstance(value, type):
                return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
