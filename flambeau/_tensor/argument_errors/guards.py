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

#: functions of several overloads, and some whose errors name what is missing
GUARDED_FUNCTIONS = (
    "addcdiv", "addcmul", "arange", "bartlett_window", "bernoulli", "blackman_window", "bucketize", "clamp", "clip",
    "conv1d", "conv2d", "conv3d", "dsplit", "embedding_bag", "eye", "fill", "float_power", "full",
    "gradient", "hamming_window", "hann_window", "histogram", "histogramdd", "hsplit", "index_fill", "isin",
    "kaiser_window", "linspace", "logspace", "median", "moveaxis", "movedim", "nanmedian", "narrow",
    "normal", "nuclear_norm", "prod", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "randperm", "repeat_interleave", "result_type", "round", "rsub", "scatter", "searchsorted", "sort",
    "squeeze_copy", "std", "std_mean", "tensor_split", "var", "var_mean", "vsplit", "where",
)
GUARDED_METHODS = (
    "addcdiv", "addcdiv_", "addcmul", "addcmul_", "bernoulli", "bernoulli_", "clamp", "clamp_", "clip", "clip_",
    "cuda", "divide_", "dsplit", "float_power", "float_power_", "histogram", "hsplit", "index_fill", "index_fill_",
    "ipu", "masked_fill_", "median", "moveaxis", "movedim", "mtia", "nanmedian", "narrow", "new", "nonzero", "pow_",
    "prod", "random_", "repeat_interleave", "round", "round_", "scatter", "scatter_", "set_", "sort", "sspaddmm",
    "std", "tensor_split", "to_sparse", "true_divide_", "var", "vsplit", "where", "xpu",
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
    scope: dict[str, Any] = {}
    exec("\n".join([
        "def outer():", *(f"    {name} = None" for name in names),
        "    def guarded(*args, **kwargs):",
        *(["        if False: " + ", ".join(names)] if names else []),
        f"        implementation = {_IMPLEMENTATION!r}",
        "        try:",
        "            return implementation(*args, **kwargs)",
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
    implementation = another_function(function)
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
