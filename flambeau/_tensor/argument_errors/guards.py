"""Guards of hand-written functions: a call that Python or the function refuses raises PyTorch's error.

Declared operators bind their arguments themselves. A hand-written function has a Python signature, so Python refuses a
wrong call before the function runs; the guard runs the function, and after an error asks `messages` what
PyTorch says. It costs a Python frame, so it is for functions of several overloads, without the smallest ones: those
call `refused` after a TypeError.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from ..overriding.entry_points import another_function
from ..overriding.first_calls import called_again
from ..tensor import Tensor
from .seen_classes import SeenClasses

#: functions of several overloads, some whose errors name what is missing, and those that read attributes of what they
#: are given or convert it; none of the smallest, which a Python frame would slow down
GUARDED_FUNCTIONS = (
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "addcdiv", "addcmul", "affine_grid_generator", "allclose",
    "alpha_dropout", "alpha_dropout_", "aminmax", "arange", "argsort", "as_strided", "as_strided_",
    "as_strided_copy", "as_strided_scatter", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "bartlett_window", "bernoulli", "bilinear", "bincount", "binomial", "blackman_window",
    "broadcast_to", "bucketize", "cholesky", "cholesky_inverse", "cholesky_solve", "clamp", "clamp_", "clip",
    "clip_", "column_stack", "combinations", "concat", "concatenate", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conj_physical", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity",
    "count_nonzero", "cov",
    "cross", "ctc_loss", "cumulative_trapezoid", "det", "detach_copy", "diag", "diagflat", "divide", "dropout",
    "dropout_", "dsplit", "dstack", "embedding", "embedding_bag", "empty_permuted", "empty_strided", "expand_copy",
    "eye", "feature_alpha_dropout", "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "fft_fft",
    "fft_fft2", "fft_fftfreq", "fft_fftn", "fft_fftshift", "fft_hfft", "fft_hfft2", "fft_hfftn", "fft_ifft",
    "fft_ifft2", "fft_ifftn", "fft_ifftshift", "fft_ihfft", "fft_ihfft2", "fft_ihfftn", "fft_irfft", "fft_irfft2",
    "fft_irfftn", "fft_rfft", "fft_rfft2", "fft_rfftfreq", "fft_rfftn", "fill", "float_power", "frobenius_norm",
    "full", "full_like", "ger", "gradient", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "group_norm",
    "hamming_window", "hann_window", "hash_tensor", "histc", "histogram", "histogramdd", "hsplit", "hstack",
    "index_fill", "index_put", "index_put_", "inner", "inverse", "is_nonzero", "isclose", "isin", "isneginf",
    "isposinf", "istft", "kaiser_window", "kron", "kthvalue", "ldexp_", "linalg_cholesky", "linalg_cholesky_ex",
    "linalg_cond", "linalg_diagonal", "linalg_eigvals", "linalg_eigvalsh", "linalg_inv", "linalg_inv_ex",
    "linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve", "linalg_lstsq", "linalg_lu",
    "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_matmul", "linalg_matrix_norm",
    "linalg_matrix_power", "linalg_matrix_rank", "linalg_multi_dot", "linalg_norm", "linalg_pinv", "linalg_solve",
    "linalg_solve_ex", "linalg_solve_triangular", "linalg_svd", "linalg_svdvals", "linalg_tensorinv",
    "linalg_tensorsolve", "linalg_vander", "linalg_vecdot", "linalg_vector_norm", "linspace", "logdet", "logspace",
    "lu_solve", "lu_unpack", "matrix_exp", "matrix_power", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "median", "mode", "moveaxis", "movedim",
    "multinomial", "mvlgamma", "nanmean", "nanmedian", "nansum", "narrow", "narrow_copy", "native_batch_norm",
    "native_dropout", "native_group_norm", "native_layer_norm", "nonzero", "nonzero_static", "norm_except_dim",
    "normal", "nuclear_norm", "orgqr", "outer", "pairwise_distance", "pdist", "permute_copy", "pinverse", "poisson",
    "polygamma", "prelu", "qr", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "range", "repeat_interleave", "resize_as_", "resize_as_sparse_", "result_type", "rms_norm", "rot90", "round",
    "round_", "row_stack", "rrelu", "rrelu_", "rsub", "scalar_tensor", "scatter", "searchsorted", "segment_reduce",
    "select_copy", "signbit", "slice_copy", "slice_inverse", "slogdet", "sort", "special_polygamma", "special_round",
    "split_copy", "split_with_sizes_copy", "squeeze_copy", "std", "std_mean", "subtract", "svd", "take_along_dim",
    "tensor_split", "tile", "transpose_copy", "trapezoid", "trapz", "triangular_solve", "tril_indices", "triu_indices",
    "true_divide", "unbind_copy", "unflatten", "unique_consecutive", "unsafe_chunk", "vander", "var", "var_mean",
    "view_as_complex_copy", "view_as_real_copy", "view_copy", "vsplit", "vstack", "where",
)
GUARDED_METHODS = (
    "addcdiv", "addcdiv_", "addcmul", "addcmul_", "allclose", "aminmax", "argsort", "as_strided", "as_strided_",
    "as_strided_scatter", "bernoulli", "bernoulli_", "bincount", "broadcast_to", "cauchy_", "chalf", "cholesky",
    "cholesky_inverse", "cholesky_solve", "clamp", "clamp_", "clip", "clip_", "count_nonzero", "cov", "cross",
    "cuda", "cummax", "cummin", "cumprod_", "cumsum_", "det", "diag", "diag_embed", "diagflat", "diagonal", "diff",
    "divide", "divide_", "dsplit", "exponential_", "fill_diagonal_", "float_power", "float_power_", "geometric_",
    "ger", "hash_tensor", "histc", "histogram", "hsplit", "index_fill", "index_fill_", "index_put", "index_put_",
    "inner", "inverse", "ipu", "is_contiguous", "isclose", "isneginf", "isposinf", "kron", "kthvalue", "ldexp_",
    "log_normal_", "logcumsumexp", "logdet", "logit_", "lu_solve", "map2_", "map_", "masked_fill_",
    "masked_scatter_", "matrix_exp", "matrix_power", "median", "mode", "moveaxis", "movedim", "mtia", "multinomial",
    "mvlgamma", "mvlgamma_", "nanmean", "nanmedian", "nansum", "narrow", "narrow_copy", "new", "new_empty",
    "new_empty_strided", "new_full", "new_ones", "new_zeros", "nonzero", "nonzero_static", "normal_", "orgqr",
    "outer", "pinverse", "polygamma", "polygamma_", "pow_", "prelu", "qr", "random_", "repeat_interleave",
    "resize_", "resize_as_", "resize_as_sparse_", "rot90", "round", "round_", "scatter", "scatter_", "set_",
    "signbit", "slice_inverse", "slogdet", "smm", "sort", "sparse_mask", "split_with_sizes", "squeeze_", "sspaddmm",
    "std", "subtract", "subtract_", "sum_to_size", "svd", "swapaxes_", "swapdims_", "t_", "take_along_dim",
    "tensor_split", "tile", "to_dense", "to_padded_tensor", "to_sparse", "to_sparse_bsc", "to_sparse_bsr",
    "to_sparse_csc", "to_sparse_csr", "transpose_", "triangular_solve", "true_divide", "true_divide_", "type_as",
    "uniform_", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze_", "var", "vsplit", "where",
    "xpu",
)

#: guarded functions of which a look at classes would take more than 2 % of a call on small matrices
UNCHECKED = frozenset("""
    addcdiv addcmul arange argsort clamp clamp_ clip clip_ count_nonzero diagonal eye full linalg_vector_norm narrow
    new outer round sort tile where
""".split())  # noqa: SIM905


class _NotGiven:
    """The default of a required parameter of a function that calls `refused`."""

    def __repr__(self) -> str:
        return "<required>"


NOT_GIVEN: Any = _NotGiven()

_IMPLEMENTATION, _NAMES, _UNFIT = "the function", "its names", "what is asked after an error"
_SEEN, _ENTER = "the classes that fit", "where the function of known calls is"
_AGAIN = "what asks the handlers of other objects"


class _Entrance:
    """The cell of a function's function of known calls; unlike a cell, constants of code can be hashed."""

    __slots__ = ("cell",)

    def __init__(self, cell: CellType) -> None:
        self.cell = cell


@functools.cache
def _template(n_free: int, checks: bool, skips: bool, enters: bool) -> CodeType:
    """Code whose constants `_IMPLEMENTATION` and so on are to be replaced; it has `n_free` unused free variables.

    Args:
        enters: whether the function has known calls (`fastpath.known_calls`), which fitted when they became known.
        checks: whether the classes of arguments are looked up before the call (`seen_classes`).
        skips: whether the first argument is a tensor, which is not looked up.
    """
    names = [f"free{i}" for i in range(n_free)]
    scope: dict[str, Any] = {"__name__": __name__}  # so that it counts as code of this package
    look = [
        f"        seen = {_SEEN!r}",
        "        try:",
        "            known = seen.known",
        f"            for x in args{'[1:]' * skips}:",
        "                known = known[x.__class__]",
        "            if kwargs:",
        "                for name in kwargs:",
        "                    known = known[name, kwargs[name].__class__]",
        "            fits = known[None]",
        "        except KeyError:",
        "            fits = False",
        "        if fits is not True:",
        "            args, kwargs = seen.check(fits, args, kwargs)",
    ]
    enter = [
        f"        enter = {_ENTER!r}.cell.cell_contents",
        "        if enter is not None and args:",  # the first one has other names in functions and in methods
        "            result = enter(args, kwargs)",
        "            if result is not None and result is not False:",
        "                return result",
    ]
    exec("\n".join([
        "def outer():", *(f"    {name} = None" for name in names),
        "    def guarded(*args, **kwargs):",
        *(["        if False: " + ", ".join(names)] if names else []),
        *(enter if enters else []),
        f"        implementation = {_IMPLEMENTATION!r}",
        *(look if checks else []),
        "        try:",
        "            return implementation(*args, **kwargs) if kwargs else implementation(*args)",
        "        except Exception:",  # by arguments of wrong types a function may fail with any error
        f"            again = {_AGAIN!r}",
        "            result = again(None, args, kwargs)",
        "            if result is not NotImplemented:",
        "                return result",
        f"            unfit = {_UNFIT!r}",
        f"            error = unfit({_NAMES!r}, args, kwargs)",
        "            if error is None:",
        "                raise",
        "            try:",
        "                raise error from None",
        "            finally:",  # its traceback refers to this frame, and so to the arguments
        "                del error",
        "    return guarded"]), scope)
    code: CodeType = scope["outer"]().__code__
    return code


def _unfit_call(names: tuple[str, str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """PyTorch's error for a call that failed: its arguments fit no signature, or what it writes to may not be written.

    None if that is not why it failed.
    """
    from .messages import METHOD, explained

    space, name = names
    error = explained(space, name, args[1:] if space == METHOD else args, kwargs)
    if error is not None:
        return error
    if kwargs.get("out") is not None:
        from .out_arguments import refused_out

        return refused_out(name, args, kwargs)
    if name.endswith("_") and args and name not in _UNCHECKED:
        error = refused_write(args)
        if error is not None:
            return error
    return _refused_saving(name, args, kwargs)


def _refused_saving(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """`refused_saving` of the operator of a guarded function's name, where there is one of its arguments."""
    from ...ops.declare import REGISTRY
    from ..dispatch.binding import bind
    from .saved_inputs import refused_saving

    op = REGISTRY.get("linalg_cross" if name == "cross" else name.removesuffix("_"))
    if op is None:
        return None
    try:
        inputs, _ = bind(op, args, kwargs)
    except TypeError:
        return None
    return refused_saving(op, inputs)


#: in-place functions that do not look whether autograd permits a write, or look at something else before
_UNCHECKED = ("alpha_dropout_", "dropout_", "feature_alpha_dropout_", "feature_dropout_", "fill_diagonal_",
              "float_power_", "resize_", "resize_as_")


def refused_write(args: Sequence[Any]) -> RuntimeError | None:
    """The error of an in-place call whose first argument may not be written to, which is found before all others."""
    from ..dispatch.write_checks import check_writable, is_tracked

    if not isinstance(args[0], Tensor):
        return None
    try:
        check_writable(args[0], is_tracked(args))
    except RuntimeError as error:
        return error
    return None


def guard(function: FunctionType, space: str, name: str) -> None:
    """Replace a function's code by code that calls the original, and explains its TypeErrors.

    Args:
        function: a public function; it stays the same object.
        space: "torch" for a function, "Tensor" for a method.
        name: its public name.
    """
    guarded = _unfit_call in function.__code__.co_consts  # a method made of a guarded function needs one guard
    implementation = function.__wrapped__ if guarded else another_function(function)  # type: ignore[attr-defined]
    if guarded and space == "Tensor":
        implementation = without_out(implementation, name)
    seen = None if name in UNCHECKED else SeenClasses(
        space, name, skips=space == "Tensor" or implementation.__code__.co_varnames[:1] == ("input",))
    free = implementation.__code__.co_freevars
    enters = "enter" in free
    code = _template(len(function.__code__.co_freevars), seen is not None, seen is not None and seen.skips, enters)
    constants = {_IMPLEMENTATION: implementation, _NAMES: (space, name), _UNFIT: _unfit_call,
                 _AGAIN: called_again}
    if enters:
        constants[_ENTER] = _Entrance((implementation.__closure__ or ())[free.index("enter")])
    if seen is not None:
        constants[_SEEN] = seen
    function.__code__ = code.replace(
        co_consts=tuple(constants.get(c, c) if isinstance(c, str) else c for c in code.co_consts),
        co_name=function.__code__.co_name, co_qualname=function.__code__.co_qualname,
        co_filename=function.__code__.co_filename, co_firstlineno=function.__code__.co_firstlineno)
    function.__wrapped__ = implementation  # type: ignore[attr-defined]  # for `inspect.signature`


#: what the free variable is called in which a fast path has the function of all other calls
_GENERAL = ("general", "_general", "function")


def without_out(function: FunctionType, name: str) -> FunctionType:
    """A method's function, which refuses `out=`: functions take it, methods do not.

    The parameter gets another name, so that nothing is tested in a call; where a function without that parameter, or
    with a fast path, passes its keywords on, it passes them to a function that refuses.

    Args:
        function: the method's own, not that of `torch`.
        name: the method's.
    """
    code = function.__code__
    at = next((i for i, free in enumerate(code.co_freevars) if free in _GENERAL), None)
    if at is not None and code.co_name == "call":
        cells = list(function.__closure__ or ())
        inner = cells[at].cell_contents
        if isinstance(inner, FunctionType):  # a wrapper passes on what it is given, a fast path `out` in any case
            cells[at] = CellType(without_out(inner, name) if code.co_freevars[at] == "function" else
                                 _refusing_out(inner, name))
        result = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, tuple(cells))
    elif "out" in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
        names = {"varnames": code.co_varnames, "cellvars": code.co_cellvars}
        code = code.replace(**{f"co_{kind}": tuple("_no_out" if v == "out" else v for v in names)
                               for kind, names in names.items()})  # type: ignore[arg-type]
        result = FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                              function.__closure__)
    else:
        return function
    result.__kwdefaults__ = function.__kwdefaults__ and {
        "_no_out" if k == "out" and at is None else k: v for k, v in function.__kwdefaults__.items()}
    result.__doc__, result.__annotations__ = function.__doc__, function.__annotations__
    result.__qualname__, result.__module__ = function.__qualname__, function.__module__
    result.__dict__.update(function.__dict__)
    return result


def _refusing_out(general: Any, name: str) -> Any:
    """The function behind a method's fast path: it raises PyTorch's error for `out=`."""
    @functools.wraps(general)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is None:
            return general(*args, **kwargs)
        from .call_sites import call_site
        from .messages import METHOD, explained
        from .signatures import signatures

        own: Any = args[1:]
        site = call_site()
        if site is not None and site.is_of(METHOD, name):
            for overload in signatures(METHOD, name):
                own, kwargs = site.divided(overload.names_by_position, own, kwargs)
        raise explained(METHOD, name, own, kwargs) or TypeError(
            f"{name}() got an unexpected keyword argument 'out'")

    return refuse


def refused(name: str, args: Sequence[Any], defaulted: Sequence[tuple[str, Any, Any]] = (),
            kwargs: Mapping[str, Any] | None = None) -> Exception | None:
    """PyTorch's error for a call that a function without a guard refuses; None if the arguments fit a signature.

    Args:
        name: the function's.
        args: that were passed by position.
        defaulted: (name, value, default) of the parameters after them. They count as passed by position up to the
            first that has its default, by name after it.
        kwargs: that were passed by name; None counts as not passed.
    """
    from .call_sites import call_site
    from .messages import METHOD, called, explained, unfit

    space, _ = called((name,))
    site = call_site()
    if site is not None and site.is_of(space, name) and len(args) == 1:
        values = {**{key: value for key, value, _ in defaulted}, **(kwargs or {})}
        if values.keys() >= set(site.by_name):
            positional = [value for key, value in values.items() if key not in site.by_name]
            own = [*([] if space == METHOD else args), *positional][:site.by_position]
            if space == METHOD and own and len(own) <= len(defaulted) and own[-1] is defaulted[len(own) - 1][2]:
                own.pop()  # `Tensor.sum(x, 1)`, where the tensor was counted
            return explained(space, name, own, {key: values[key] for key in site.by_name})
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


def raise_refusal(error: Exception | None) -> None:
    """Raise an error in place of the one that is handled, unless it is None; no frame keeps a reference to it."""
    if error is not None:
        try:
            raise error from None
        finally:
            del error  # whose traceback refers to this frame


__all__ = ["NOT_GIVEN", "guard", "raise_refusal", "refused", "without_out"]
