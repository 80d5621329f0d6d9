"""Reductions: overload resolution, argument checks and the choice of operator."""

from __future__ import annotations

import warnings
from typing import Any

from ... import dtypes
from ...backends.sparse_array import SparseArray
from ...ops.declare import REGISTRY
from ...warning_location import user_stacklevel
from ..argument_errors.guards import NOT_GIVEN, raise_refusal, refused
from ..argument_errors.out_arguments import check_records_nothing
from ..dispatch.apply import apply
from ..dispatch.array_kernels import arrays
from ..dispatch.out_tensors import resize_out, write_out
from ..dispatch.public_functions import public_function
from ..fastpath.by_arity import unary
from ..fastpath.repeated_calls import launched
from ..fastpath.unary_with_parameters import positional_parameters, values_and_indices
from ..return_types import named_result
from ..tensor import Tensor
from .dims import (
    as_index,
    check_dtype_of_out,
    check_not_integer,
    checked_keepdim,
    checked_names,
    converted,
    dims,
    more_than,
    one_dim,
    overload_error,
    past_conversion,
    reduced_shape,
    take_numpy_names,
)

__all__ = ["all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "logsumexp", "max", "mean", "min", "nanmean",
           "nansum", "prod", "std", "std_mean", "sum", "var", "var_mean"]

# ----- sum, mean, prod -------------------------------------------------------------------------


def _all_or_dim(name: str, multiple_dims: bool = True) -> Any:
    """A reduction over all elements (node `SumBackward0`) or over some dimensions (node `SumBackward1`)."""
    op_all, op_part = REGISTRY[f"_{name}_all"], REGISTRY[name]
    kernel = getattr(arrays, name)
    reduce_all = unary(op_all, public_function(op_all))
    reduce_all_as = positional_parameters(op_all, lambda a, dtype: kernel(a, None, False, dtype))
    reduce_dims = positional_parameters(op_part)
    signatures = ("(*, torch.dtype dtype = None)", "(int dim, bool keepdim = False, *, torch.dtype dtype = None)")

    def call(input: Any, dim: Any = NOT_GIVEN, keepdim: bool = False, *more: Any, dtype: Any = None,
             out: Any = None, **numpy_names: Any) -> Any:
        whole = False  # None is a list of dimensions, all of them
        try:
            if dim is NOT_GIVEN:
                if dtype is None and out is None and keepdim is False and not more and not numpy_names:
                    return reduce_all(input)
                whole, dim = True, None
            if numpy_names or more:
                dim, keepdim = checked_names(name, numpy_names, more, dim, keepdim)
                whole = whole and "axis" not in numpy_names
            if dim.__class__ is not int and dim is not None:
                dim = dims(name, dim)
                if not multiple_dims and dim.__class__ is tuple:
                    raise overload_error(name, dim, *signatures)
            if dim is None and not multiple_dims and not whole:
                raise TypeError(f"{name}(): argument 'dim' (position 2) must be int, not NoneType")
            if keepdim is not False and keepdim is not True:
                checked_keepdim(name, keepdim)
            if dtype is None and out is None:
                return reduce_all(input) if whole and not keepdim else reduce_dims(input, dim, keepdim, None)
            if dtype is not None:
                dtype = dtypes.of_argument(dtype, name)
                if dtype.numpy.kind in "biu":
                    check_not_integer(name, input, dtype)
            if out is not None:
                if whole and not keepdim and name in ("sum", "prod"):
                    raise_refusal(refused(name, (input,), (("dim", dim, NOT_GIVEN), ("keepdim", keepdim, False)), {
                        "dtype": dtype, "out": out}))
                check_records_nothing(name, (input,), (out,))
                reduced_shape(input._array.shape, dim, keepdim)  # whose errors come first
                check_dtype_of_out(dtype, out)
                if dtype is None and (out.dtype is not input.dtype or out.dtype is dtypes.bool_) and not isinstance(
                        input._array, SparseArray):
                    dtype = _dtype_of_out(name, input, dim, keepdim, out)
            if out is not None and dtype is not None and input.dtype.is_complex and not dtype.is_complex:
                resize_out(out, reduced_shape(input._array.shape, dim, keepdim))  # before the warning of the cast
            given = input
            input, dtype = converted(input, dtype)
            if out is not None:
                return write_out(op_part, reduce_dims(input, dim, keepdim, dtype), out)
            if whole and not keepdim:
                if dtype is not None:
                    return reduce_all_as(input, dtype)
                return past_conversion(reduce_all(input), given, input)
            return past_conversion(reduce_dims(input, dim, keepdim, dtype), given, input)
        except TypeError:
            raise_refusal(refused(
                name, (input,), (("dim", None if dim is NOT_GIVEN else dim, None), ("keepdim", keepdim, False),
                                 *more_than(more)),
                {"dtype": dtype, "out": out, **numpy_names}))
            raise

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op_part.doc
    return launched(call)


def _dtype_of_out(name: str, input: Tensor, dim: Any, keepdim: bool, out: Tensor) -> Any:
    """The dtype that a reduction computes in: that of `out`; None: that of the input.

    Raises:
        RuntimeError: a mean of all elements cannot be cast to it.
    """
    if name == "mean" and dim is None and not dtypes.can_cast(input.dtype, out.dtype):
        raise RuntimeError("mean.dtype_out(): input types can't be cast to the desired output type "
                           f"{out.dtype.scalar_name}")
    if name == "mean" and out.dtype.numpy.kind in "biu" and input.dtype.is_floating_point and dim is not None:
        resize_out(out, reduced_shape(input._array.shape, dim, keepdim))
        out._array[...] = sum(input.detach().to(out.dtype), dim, keepdim)._array
        raise RuntimeError(f"result type {dtypes.get_default_dtype().scalar_name} can't be cast to the desired output "
                           f"type {out.dtype.scalar_name}")  # of the division of the sum
    if name == "mean" and not (input.dtype.is_floating_point and out.dtype.is_floating_point):
        return None
    return out.dtype


sum = _all_or_dim("sum")
mean = _all_or_dim("mean")
prod = _all_or_dim("prod", multiple_dims=False)

_nansum = positional_parameters(REGISTRY["nansum"])


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None,
           **numpy_names: Any) -> Any:
    """The sum of the elements that are not NaN."""  # replaced by the declaration's docstring below
    if numpy_names:
        dim, keepdim = take_numpy_names("nansum", numpy_names, dim, keepdim)
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "nansum")
        if dtype.is_complex:
            raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{dtype.scalar_name}'")
    if input._array.dtype.kind == "c":
        if out is not None:
            check_records_nothing("nansum", (input,), (out,))
        reduced_shape(input._array.shape, dim, keepdim)  # whose errors come first
        raise RuntimeError("nansum on CPU does not support complex inputs")
    given = input
    input, dtype = converted(input, dtype)
    if out is not None:
        check_records_nothing("nansum", (input,), (out,))
        resize_out(out, reduced_shape(input._array.shape, dim, keepdim))
        _check_nansum_out(input, out)
        if out.dtype is dtypes.bool_:
            return sum(input, () if dim is None else dim, keepdim, out=out)
    result = past_conversion(_nansum(input, dims("nansum", dim), keepdim, dtype), given, input)
    return result if out is None else write_out(REGISTRY["nansum"], result, out)


def _check_nansum_out(input: Any, out: Any) -> None:
    """Raise for the dtypes of `out` for which PyTorch, which computes in that dtype, has no kernel."""
    if input._array.dtype.kind in "fV" and out._array.dtype.kind in "biuc":
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.dtype.scalar_name}'")


def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None,
            **numpy_names: Any) -> Any:
    """The mean of the elements that are not NaN."""  # replaced by the declaration's docstring below
    if numpy_names:
        dim, keepdim = take_numpy_names("nanmean", numpy_names, dim, keepdim)
    found_type = input.dtype
    if not (found_type.is_floating_point or found_type.is_complex):
        if out is not None:
            raise RuntimeError("nanmean(): integral types and 'Bool' are not supported for nanmean, even for empty "
                               "tensors.")
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but got "
                           f"{found_type.scalar_name}")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "nanmean")
        if dtype.is_complex:
            raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{dtype.scalar_name}'")
    if dtype is not None and dtype.numpy.kind in "biu":
        check_not_integer("nanmean", input, dtype)
    if out is not None:
        resize_out(out, reduced_shape(input._array.shape, dim, keepdim))
        _check_nansum_out(input, out)
    result = public_function(REGISTRY["nanmean"])(input, dims("nanmean", dim), keepdim, dtype=dtype)
    return result if out is None else write_out(REGISTRY["nansum"], result, out)


# ----- extrema -----------------------------------------------------------------------------------


def _extremum(name: str, elementwise: str) -> Any:
    op_all, op_dim = REGISTRY[f"_{name}_all"], REGISTRY[f"_{name}_dim"]
    reduce_all = unary(op_all, public_function(op_all))
    with_indices = values_and_indices(op_dim)
    missing = object()
    signatures = ("()", "(Tensor other)", "(int dim, bool keepdim = False)")

    def call(input: Any, dim: Any = missing, keepdim: bool = False, *more: Any, out: Any = None,
             other: Any = missing, **numpy_names: Any) -> Any:
        try:
            if numpy_names or more:
                dim, keepdim = checked_names(name, numpy_names, more, dim, keepdim)
            if dim is missing:
                if other is missing:
                    return reduce_all(input, out=out) if out is not None else reduce_all(input)
                dim = other
            if isinstance(dim, Tensor) and keepdim is False and (
                    other is dim or as_index(dim) is None or dim._array.ndim == 0):
                return public_function(REGISTRY[elementwise])(input, dim, out=out)
            result = as_index(dim)
            if result is None or dim.__class__ is bool:
                raise overload_error(name, dim, *signatures)
            checked_keepdim(name, keepdim)
            if out is not None:
                check_records_nothing(name, (input,), (out,))
                result = write_out(op_dim, with_indices(input, result, keepdim), out)
                return named_result(op_dim, with_out=True)(result)
            return with_indices(input, result, keepdim)
        except TypeError:
            raise_refusal(refused(
                name, (input,), (("dim", dim, missing), ("keepdim", keepdim, False), *more_than(more)),
                {"out": out, **({} if other is missing else {"other": other}), **numpy_names}))
            raise

    call.__name__ = call.__qualname__ = name
    which, example = ("largest", 3) if name == "max" else ("smallest", 1)
    call.__doc__ = (f"The {which} element; along `dim`, (values, indices); with another tensor, the elementwise\n"
                    f"    `{elementwise}`.\n\n    >>> import flambeau as torch\n"
                    f"    >>> torch.{name}(torch.tensor([1., 3., 2.]))\n    tensor({example}.)\n    ")
    return launched(call)


max = _extremum("max", "maximum")
min = _extremum("min", "minimum")


_aminmax = public_function(REGISTRY["aminmax"])


def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False, out: Any = None, **numpy_names: Any) -> Any:
    """The smallest and the largest element."""
    if numpy_names:
        dim, keepdim = take_numpy_names("aminmax", numpy_names, dim, keepdim)
    for x in out or ():
        if x._array.dtype != input._array.dtype:
            c = {"float32": "float", "float64": "double", "int64": "long int"}
            raise RuntimeError(f"Expected out tensor to have dtype {c.get(input.dtype.name, input.dtype.name)}, but "
                               f"got {c.get(x.dtype.name, x.dtype.name)} instead")
    return _aminmax(input, dim=dim, keepdim=keepdim, out=out)


def _over_dims(name: str, default: Any) -> Any:
    """A reduction over any dimensions: `name(input, dim, keepdim)`."""
    op = REGISTRY[name]
    fast = positional_parameters(op)

    def call(input: Any, dim: Any = default, keepdim: bool = False, *, out: Any = None, **numpy_names: Any) -> Any:
        try:
            if numpy_names:
                dim, keepdim = take_numpy_names(name, numpy_names, dim, keepdim)
            where = dim if dim.__class__ is int else dims(name, dim, "(tuple of ints dim, bool keepdim = False)")
            if keepdim is not False:
                checked_keepdim(name, keepdim)
            if out is None:
                return fast(input, where, keepdim)
            if op.differentiable:
                check_records_nothing(name, (input,), (out,))
            return write_out(op, fast(input, where, keepdim), out)
        except TypeError:
            raise_refusal(refused(name, (input,), (("dim", dim, default), ("keepdim", keepdim, False)), {
                "out": out, **numpy_names}))
            raise

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.doc
    return call


amax = launched(_over_dims("amax", ()))
amin = launched(_over_dims("amin", ()))
_all, _any = _over_dims("all", None), _over_dims("any", None)
_MISSING = object()
_logsumexp = _over_dims("logsumexp", None)
_logsumexp_of_dim = positional_parameters(REGISTRY["logsumexp"])


def _bool_reduction(name: str, reduce: Any) -> Any:
    def call(input: Any, dim: Any = None, keepdim: bool = False, *more: Any, out: Any = None,
             **numpy_names: Any) -> Any:
        try:
            if more:
                raise TypeError(f"{name}() takes from 1 to 3 positional arguments")
            if out is not None and out.dtype.name not in ("bool", "uint8"):
                raise RuntimeError(f"{name} only supports bool tensor for result, got: {out.dtype.scalar_name}")
            if out is not None and out.dtype.name == "uint8":
                result = reduce(input, dim, keepdim, **numpy_names)
                return write_out(REGISTRY[name], result.to(out.dtype), out)
            return reduce(input, dim, keepdim, out=out, **numpy_names)
        except TypeError:
            raise_refusal(refused(
                name, (input,), (("dim", dim, None), ("keepdim", keepdim, False), *more_than(more)),
                {"out": out, **numpy_names}))
            raise

    call.__name__ = call.__qualname__ = name
    call.__doc__ = REGISTRY[name].doc
    return call


all, any = launched(_bool_reduction("all", _all), False), launched(_bool_reduction("any", _any), False)


@launched
def logsumexp(input: Any, dim: Any = _MISSING, keepdim: bool = False, *more: Any, out: Any = None,
              **numpy_names: Any) -> Any:
    """The logarithm of the sum of exponentials."""
    try:
        if dim.__class__ is int and keepdim is False and out is None and not numpy_names and not more:
            return _logsumexp_of_dim(input, dim, False)
        if more or "out" in numpy_names:
            raise TypeError("logsumexp() takes a tensor, dimensions and keepdim")
        if dim is _MISSING and "axis" in numpy_names:
            dim = None
        elif dim is None or dim is _MISSING:
            raise TypeError("logsumexp() needs dimensions")
        elif dim.__class__ in (tuple, list) and not dim and not keepdim and out is None and input._array.ndim and (
                input._array.size):
            raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {[1] * input._array.ndim}")
        if out is not None and not (out.dtype.is_floating_point or out.dtype.is_complex):
            raise RuntimeError("logsumexp(): Expected floating point type for result tensor, but got: "
                               f"{out.dtype.scalar_name}")
        return _logsumexp(input, dim, keepdim, out=out, **numpy_names)
    except (TypeError, AttributeError):
        raise_refusal(refused("logsumexp", (input,), (("dim", dim, _MISSING), ("keepdim", keepdim, False),
                                                      *more_than(more)), {"out": out, **numpy_names}))
        raise


def _arg_extremum(name: str) -> Any:
    op = REGISTRY[name]
    fast = positional_parameters(op)

    def call(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **numpy_names: Any) -> Any:
        try:
            if numpy_names:
                dim, keepdim = take_numpy_names(name, numpy_names, dim, keepdim)
            if dim is not None and dim.__class__ is not int:
                dim = one_dim(name, dim)
            if keepdim is not False:
                checked_keepdim(name, keepdim)
            result = fast(input, dim, keepdim)
            return result if out is None else write_out(op, result, out)
        except TypeError:
            raise_refusal(refused(name, (input,), (("dim", dim, None), ("keepdim", keepdim, False)), {
                "out": out, **numpy_names}))
            raise

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.doc
    return call


argmax, argmin = launched(_arg_extremum("argmax"), False), launched(_arg_extremum("argmin"), False)


# ----- var, std -----------------------------------------------------------------------------------


def _moment(name: str, with_mean: bool) -> Any:
    op = REGISTRY[name]
    fast = None if with_mean else positional_parameters(op)
    missing = object()

    def call(input: Any, dim: Any = None, unbiased: Any = missing, keepdim: Any = missing, *, correction: Any = missing,
             out: Any = None, axis: Any = missing, keepdims: Any = missing) -> Any:
        if axis is not missing:
            dim = axis
        if keepdims is not missing:
            keepdim = keepdims
        if dim.__class__ is bool:  # var(unbiased)
            if unbiased is not missing:
                raise overload_error(name, dim, "(tuple of ints dim, bool unbiased = True, bool keepdim = False)")
            dim, unbiased = None, dim
        if unbiased is not missing and correction is not missing:
            raise TypeError(f"{name}() received an invalid combination of arguments - got both unbiased and correction")
        if dim.__class__ is not int:
            dim = dims(name, dim, "(bool unbiased = True)",
                       "(tuple of ints dim, bool unbiased = True, bool keepdim = False)")
        if correction is missing:
            if unbiased is missing:
                correction = None if dim is None else 1
            else:
                correction = 1 if unbiased else 0
        elif isinstance(correction, Tensor):
            correction = correction.item()
        if correction.__class__ is complex and (input.dtype.is_floating_point or input.dtype.is_complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
        keep = False if keepdim is missing else keepdim
        a = input._array
        degrees_of_freedom = (_count(a.shape, dim) if a.size else 0) - (1 if correction is None else correction)
        if fast is not None:
            result = fast(input, dim, correction, keep)
        else:
            result = apply(op, [input], {"dim": dim, "correction": correction, "keepdim": keep})
        if out is not None:
            check_records_nothing(name, (input,), (out,))
            result = write_out(op, result, out)
        if degrees_of_freedom <= 0:
            for _ in range(2 if a.dtype.kind == "c" else 1):  # PyTorch computes real and imaginary parts apart
                warnings.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
                              "reduction factor (input numel divided by output numel).",
                              UserWarning, stacklevel=user_stacklevel())
        return result if out is not None or not with_mean else tuple(result)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.doc
    return launched(call)


def _count(shape: tuple[int, ...], dim: Any) -> int:
    n = 1
    if dim is None or dim == () or not shape:
        for s in shape:
            n *= s
        return n
    ndim = len(shape)
    for d in (dim,) if dim.__class__ is int else dim:
        if not -ndim <= d < ndim:
            return 2**62  # the kernel raises
        n *= shape[d]
    return n


var = _moment("var", False)
std = _moment("std", False)
var_mean = _moment("var_mean", True)
std_mean = _moment("std_mean", True)


METHODS: dict[str, Any] = {name: globals()[name] for name in __all__ if name not in ("var_mean", "std_mean")}
for _name in ("nanmean", "nansum", "logsumexp", "aminmax"):
    globals()[_name].__doc__ = REGISTRY[_name].doc
