"""Calls with NumPy's arguments: arrays and lists become tensors, dtypes those of tensors, results arrays again.

The annotation of a parameter says what becomes of its argument.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
from collections.abc import Callable
from typing import Any

import flambeau as torch

from . import _dtypes, _dtypes_impl, _util

# what a parameter may be: names of its annotation
ArrayLike = Any
OptionalArray = Any
ArrayLikeOrScalar = Any
OptionalArrayOrScalar = Any
ArraySequence = Any
NDArray = Any
OutArray = Any
DTypeLike = Any
AxisLike = Any
KeepDims = bool
CastingModes = Any
Unsupported = Any

_CASTING = ("no", "equiv", "safe", "same_kind", "unsafe")


def _arrays() -> Any:
    return importlib.import_module(f"{__package__}._ndarray")


def normalize_array_like(x: Any, parameter: inspect.Parameter | None = None) -> Any:
    """A tensor of what `asarray` accepts."""
    return _arrays().asarray(x).tensor


def normalize_seq_array_like(x: Any, parameter: inspect.Parameter | None = None) -> Any:
    """The tensors of a sequence."""
    return tuple(map(normalize_array_like, x))


def normalize_dtype(dtype: Any, parameter: inspect.Parameter | None = None) -> Any:
    """The tensors' dtype; None stays."""
    return None if dtype is None else _dtypes.dtype(dtype).torch_dtype


def normalize_casting(arg: Any, parameter: inspect.Parameter | None = None) -> Any:
    """A rule of casts.

    Raises:
        ValueError: NumPy has no such rule.
    """
    if arg not in _CASTING:
        raise ValueError("casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe' "
                         f"(got '{arg}')")
    return arg


def _array_or_scalar(x: Any, parameter: Any) -> Any:
    return x if _dtypes_impl.is_scalar_or_symbolic(x) else normalize_array_like(x)


def _unless_none(convert: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, parameter: None if x is None else convert(x, parameter)


def _unsupported(x: Any, parameter: Any) -> Any:
    if x != parameter.default:
        raise NotImplementedError(f"'{parameter.name}' parameter is not supported.")
    return x


def _axis(x: Any, parameter: Any) -> Any:
    return operator.index(x) if isinstance(x, _arrays().ndarray) else x


def _own_array(x: Any, parameter: Any) -> Any:
    if x is not None and not isinstance(x, _arrays().ndarray):
        raise TypeError(f"'{parameter.name}' must be an array")
    return x


def _output(x: Any, parameter: Any) -> Any:
    return _own_array(_arrays().ndarray(x) if isinstance(x, torch.Tensor) else x, parameter)


_CONVERSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "ArrayLike": normalize_array_like, "OptionalArray": _unless_none(normalize_array_like),
    "ArrayLikeOrScalar": _array_or_scalar, "OptionalArrayOrScalar": _unless_none(_array_or_scalar),
    "ArraySequence": normalize_seq_array_like, "DTypeLike": normalize_dtype, "AxisLike": _axis,
    "NDArray": lambda x, parameter: None if x is None else _own_array(x, parameter).tensor, "OutArray": _output,
    "Unsupported": _unsupported, "CastingModes": normalize_casting,
}


def maybe_copy_to(out: Any, result: Any, promote_scalar_result: bool = False) -> Any:
    """The result, or the array `out` with its elements.

    Raises:
        ValueError: the array has another shape.
    """
    if out is None:
        return result
    if not isinstance(result, torch.Tensor):
        return type(result)(maybe_copy_to(o, r, promote_scalar_result) for o, r in zip(out, result, strict=False))
    if tuple(result.shape) != out.shape:
        if not (promote_scalar_result and result.numel() == 1 and out.ndim == 0):
            raise ValueError(f"Bad size of the out array: out.shape = {out.shape} while result.shape = {result.shape}.")
        result = result.squeeze()
    out.tensor.copy_(result)
    return out


def wrap_tensors(result: Any) -> Any:
    """The arrays of tensors, also in tuples and lists; other things as they are."""
    if isinstance(result, torch.Tensor):
        return _arrays().ndarray(result)
    if isinstance(result, (tuple, list)):
        wrapped = [wrap_tensors(x) for x in result]
        # named results of tensors become plain ones of arrays
        return wrapped if isinstance(result, list) else _rebuilt(type(result), wrapped)
    return result


def _rebuilt(kind: type, values: list[Any]) -> Any:
    return kind(values)


def array_or_scalar(values: Any, py_type: Callable[[Any], Any] = float, return_scalar: bool = False) -> Any:
    """An array of a tensor, or its number."""
    return py_type(values.item()) if return_scalar else _arrays().ndarray(values)


def normalizer(function: Any = None, *, promote_scalar_result: bool = False) -> Any:
    """A decorator of functions of tensors that makes them functions of arrays.

    Args:
        function: its parameters' annotations (`ArrayLike` and so on) say what becomes of the arguments.
        promote_scalar_result: a result of one element fits in an `out` without dimensions.

    >>> import flambeau._numpy as np
    >>> def twice(a):
    ...     return 2 * a
    >>> twice.__annotations__ = {"a": "ArrayLike"}
    >>> normalizer(twice)([1, 2])
    torch.ndarray([2, 4])
    """
    if function is None:
        return functools.partial(normalizer, promote_scalar_result=promote_scalar_result)
    signature = inspect.signature(function)
    parameters = signature.parameters
    conversions = {name: _CONVERSIONS[each.annotation] for name, each in parameters.items()
                   if each.annotation in _CONVERSIONS}
    keeps = "keepdims" in parameters and parameters["keepdims"].annotation == "KeepDims"
    first, variadic = next(iter(parameters.values())), inspect.Parameter.VAR_POSITIONAL

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        values = bound.arguments
        for name, convert in conversions.items():
            if name not in values:
                continue
            if parameters[name].kind == variadic:
                values[name] = tuple(convert(x, parameters[name]) for x in values[name])
            else:
                values[name] = convert(values[name], parameters[name])
        result = function(*bound.args, **bound.kwargs)
        if keeps and values.get("keepdims"):
            result = _util.apply_keepdims(result, values.get("axis"), values[first.name].ndim)
        return wrap_tensors(maybe_copy_to(values.get("out"), result, promote_scalar_result))

    return wrapped


__all__ = ["ArrayLike", "ArrayLikeOrScalar", "ArraySequence", "AxisLike", "CastingModes", "DTypeLike", "KeepDims",
           "NDArray", "OptionalArray", "OptionalArrayOrScalar", "OutArray", "Unsupported", "array_or_scalar",
           "maybe_copy_to", "normalize_array_like", "normalize_casting", "normalize_dtype", "normalize_seq_array_like",
           "normalizer", "wrap_tensors"]
