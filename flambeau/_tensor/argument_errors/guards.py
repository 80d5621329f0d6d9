"""Guards of hand-written functions: a call that Python or the function refuses raises PyTorch's error.

Declared operators bind their arguments themselves. A hand-written function has a Python signature, so Python refuses a
wrong call before the function runs; the guard runs the function, and after an error asks `messages` what
PyTorch says. It costs a Python frame, so it is for functions of several overloads, without the smallest ones: those
call `refused` after a TypeError.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from ..overriding.entry_points import another_function

#: functions of several overloads, some whose errors name what is missing, and those that read attributes of what they
#: are given or convert it; none of the smallest, which a Python frame would slow down
GUARDED_FUNCTIONS = (
    "adaptive_max_pool1d", "addcdiv", "addcmul", "alpha_dropout", "alpha_dropout_", "arange", "argsort",
    "bartlett_window", "bernoulli", "bincount", "binomial", "blackman_window", "broadcast_to", "bucketize",
    "cholesky", "cholesky_inverse", "cholesky_solve", "clamp", "clip", "combinations",
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_similarity", "count_nonzero", "cov", "cross", "cumulative_trapezoid", "dsplit", "embedding_bag",
    "empty_permuted", "empty_strided", "expand_copy", "eye", "feature_alpha_dropout", "feature_alpha_dropout_",
    "feature_dropout", "feature_dropout_", "fill", "float_power", "frobenius_norm", "full", "full_like", "ger",
    "gradient", "hamming_window", "hann_window", "hash_tensor", "histc", "histogram", "histogramdd", "hsplit",
    "index_fill", "isin", "istft", "kaiser_window", "linspace", "logspace", "lu_unpack", "median", "mode",
    "moveaxis", "movedim", "multinomial", "mvlgamma", "nanmedian", "narrow", "native_dropout",
    "norm_except_dim", "normal", "nuclear_norm", "outer", "permute_copy", "pinverse", "poisson", "prod", "qr",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "range",
    "repeat_interleave", "result_type", "rot90", "round", "rrelu", "rrelu_", "rsub", "scatter", "searchsorted",
    "segment_reduce", "select_copy", "slice_copy", "sort", "split_copy", "squeeze_copy", "std", "std_mean",
    "svd", "tensor_split", "transpose_copy", "trapezoid", "trapz", "triangular_solve", "tril_indices",
    "triu_indices", "unflatten", "unsafe_chunk", "vander", "var", "var_mean", "view_copy", "vsplit", "where",
)
GUARDED_METHODS = (
    "addcdiv", "addcdiv_", "addcmul", "addcmul_", "argsort", "bernoulli", "bernoulli_", "bincount",
    "broadcast_to", "cauchy_", "cholesky", "cholesky_inverse", "cholesky_solve", "clamp", "clamp_", "clip",
    "clip_", "count_nonzero", "cov", "cross", "cuda", "cummax", "cummin", "cumprod_", "cumsum_", "diag",
    "diag_embed", "diagonal", "diff", "divide_", "dsplit", "exponential_", "fill_diagonal_", "float_power",
    "float_power_", "geometric_", "ger", "hash_tensor", "histc", "histogram", "hsplit", "index_fill",
    "index_fill_", "ipu", "kthvalue", "log_normal_", "logcumsumexp", "logit_", "masked_fill_", "median", "mode",
    "moveaxis", "movedim", "mtia", "multinomial", "mvlgamma", "nanmedian", "narrow", "new", "new_empty_strided",
    "nonzero", "outer", "pinverse", "polygamma", "polygamma_", "pow_", "prod", "qr", "random_",
    "repeat_interleave", "resize_as_sparse_", "rot90", "round", "round_", "scatter", "scatter_", "set_", "smm",
    "sort", "sparse_mask", "split_with_sizes", "sspaddmm", "std", "sum_to_size", "svd", "swapaxes_",
    "swapdims_", "take_along_dim", "tensor_split", "to_dense", "to_padded_tensor", "to_sparse", "to_sparse_bsc",
    "to_sparse_bsr", "to_sparse_csc", "to_sparse_csr", "triangular_solve", "true_divide_", "unsafe_chunk",
    "unsafe_split", "unsafe_split_with_sizes", "var", "vsplit", "where", "xpu",
)


class _NotGiven:
    """The default of a required parameter of a function that calls `refused`."""

    def __repr__(self) -> str:
        return "<required>"


NOT_GIVEN: Any = _NotGiven()

_IMPLEMENTATION, _NAMES, _UNFIT = "the function", "its names", "what is asked after an error"


@functools.cache
def _template(n_free: int) -> CodeType:
    """Code whose constants `_IMPLEMENTATION` and so on are to be replaced; it has `n_free` unused free variables."""
    names = [f"free{i}" for i in range(n_free)]
    scope: dict[str, Any] = {"__name__": __name__}  # so that it counts as code of this package
    exec("\n".join([
        "def outer():", *(f"    {name} = None" for name in names),
        "    def guarded(*args, **kwargs):",
        *(["        if False: " + ", ".join(names)] if names else []),
        f"        implementation = {_IMPLEMENTATION!r}",
        "        try:",
        "            return implementation(*args, **kwargs) if kwargs else implementation(*args)",
        "        except Exception:",  # by arguments of wrong types a function may fail with any error
        f"            unfit = {_UNFIT!r}",
        f"            error = unfit({_NAMES!r}, args, kwargs)",
        "            if error is None:",
        "                raise",
        "            raise error from None",
        "    return guarded"]), scope)
    code: CodeType = scope["outer"]().__code__
    return code


def _unfit_call(names: tuple[str, str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """PyTorch's error for a call whose arguments fit no signature; None if they fit one."""
    from .messages import METHOD, explained

    return explained(*names, args[1:] if names[0] == METHOD else args, kwargs)


def guard(function: FunctionType, space: str, name: str) -> None:
    """Replace a function's code by code that calls the original, and explains its TypeErrors.

    Args:
        function: a public function; it stays the same object.
        space: "torch" for a function, "Tensor" for a method.
        name: its public name.
    """
    guarded = _unfit_call in function.__code__.co_consts  # a method made of a guarded function needs one guard
    implementation = function.__wrapped__ if guarded else another_function(function)  # type: ignore[attr-defined]
    code = _template(len(function.__code__.co_freevars))
    constants = {_IMPLEMENTATION: implementation, _NAMES: (space, name), _UNFIT: _unfit_call}
    function.__code__ = code.replace(
        co_consts=tuple(constants.get(c, c) if isinstance(c, str) else c for c in code.co_consts),
        co_name=function.__code__.co_name, co_qualname=function.__code__.co_qualname,
        co_filename=function.__code__.co_filename, co_firstlineno=function.__code__.co_firstlineno)
    function.__wrapped__ = implementation  # type: ignore[attr-defined]  # for `inspect.signature`


def refused(name: str, args: Sequence[Any], defaulted: Sequence[tuple[str, Any, Any]] = (),
            kwargs: Mapping[str, Any] | None = None) -> TypeError | None:
    """PyTorch's error for a call that a function without a guard refuses; None if the arguments fit a signature.

    Args:
        name: the function's.
        args: that were passed by position.
        defaulted: (name, value, default) of the parameters after them. They count as passed by position up to the
            first that has its default, by name after it.
        kwargs: that were passed by name; None counts as not passed.
    """
    from .messages import unfit

    given, named = [value for value in args if value is not NOT_GIVEN], {}
    by_position = len(given) == len(args)
    for key, value, default in defaulted:
        if value is default:
            by_position = False
        elif by_position:
            given.append(value)
        else:
            named[key] = value
    named.update((key, value) for key, value in (kwargs or {}).items() if value is not None)
    return unfit((name,), given, named)


__all__ = ["NOT_GIVEN", "guard", "refused"]
