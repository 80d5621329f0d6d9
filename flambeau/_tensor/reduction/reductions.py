"""Reductions as users call them: overloads told apart, arguments checked."""

from __future__ import annotations

import warnings
from typing import Any

from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.array_kernels import arrays
from ..dispatch.binding import functions_of, write_out
from ..fastpath.by_arity import unary
from ..fastpath.unary_with_parameters import along, pairs_along
from ..return_types import named_result
from ..tensor import Tensor
from .dims import (
    as_index,
    checked_keepdim,
    converted,
    dims,
    numpy_names_of,
    one_dim,
    refuse_graph,
    refuse_integers,
    refused,
)

__all__ = ["all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "logsumexp", "max", "mean", "min", "nanmean",
           "nansum", "prod", "std", "std_mean", "sum", "var", "var_mean"]

# ----- sums, means, products -------------------------------------------------------------------


def _whole_or_part(name: str, several: bool = True) -> Any:
    """A reduction of all elements (one node) or over some dimensions (another), as PyTorch names them."""
    op_all, op_part = REGISTRY[f"_{name}_all"], REGISTRY[name]
    kernel = op_all.kernel = getattr(arrays, name)  # type: ignore[attr-defined]
    whole = unary(op_all, functions_of(op_all))
    whole_as = along(op_all, lambda a, dtype: kernel(a, None, False, dtype))
    part = along(op_part)
    signatures = ("(*, torch.dtype dtype = None)", "(int dim, bool keepdim = False, *, torch.dtype dtype = None)")

    def call(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None,
             **numpy_names: Any) -> Any:
        if numpy_names:
            dim, keepdim = numpy_names_of(name, numpy_names, dim, keepdim)
        if dim.__class__ is not int and dim is not None:
            dim = dims(name, dim)
            if not several and dim.__class__ is tuple:
                raise refused(name, dim, *signatures)
        if dtype is None and out is None:
            return whole(input) if dim is None and not keepdim else part(input, dim, keepdim, None)
        if dtype is not None and dtype.numpy.kind in "biu":
            refuse_integers(name, input, dtype)
        input, dtype = converted(input, dtype)
        if out is not None:
            refuse_graph(name, input, out)
            return write_out(op_part, part(input, dim, keepdim, dtype), out)
        if dim is None and not keepdim:
            return whole(input) if dtype is None else whole_as(input, dtype)
        return part(input, dim, keepdim, dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op_part.doc
    return call


sum = _whole_or_part("sum")
mean = _whole_or_part("mean")
prod = _whole_or_part("prod", several=False)

_nansum = along(REGISTRY["nansum"])


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """The sum of what is not NaN."""  # the declaration's words below
    input, dtype = converted(input, dtype)
    if out is not None:
        _refuse_nansum_out(input, out)
    found = _nansum(input, dims("nansum", dim), keepdim, dtype)
    return found if out is None else write_out(REGISTRY["nansum"], found, out)


def _refuse_nansum_out(input: Any, out: Any) -> None:
    """PyTorch computes in the dtype of `out`, and has no kernel for these."""
    if input._array.dtype.kind in "fV" and out._array.dtype.kind in "biuc":
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.dtype.scalar_name}'")


def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """The mean of what is not NaN."""  # the declaration's words below
    found_type = input.dtype
    if not (found_type.is_floating_point or found_type.is_complex):
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but got "
                           f"{found_type.scalar_name}")
    if dtype is not None and dtype.numpy.kind in "biu":
        refuse_integers("nanmean", input, dtype)
    if out is not None:
        _refuse_nansum_out(input, out)
    found = functions_of(REGISTRY["nanmean"])(input, dims("nanmean", dim), keepdim, dtype=dtype)
    return found if out is None else write_out(REGISTRY["nansum"], found, out)


# ----- extrema -----------------------------------------------------------------------------------


def _extremum(name: str, elementwise: str) -> Any:
    op_all, op_dim = REGISTRY[f"_{name}_all"], REGISTRY[f"_{name}_dim"]
    op_all.kernel = getattr(arrays, f"_{name}_all")  # type: ignore[attr-defined]
    op_dim.kernel = getattr(arrays, f"_{name}_dim")  # type: ignore[attr-defined]
    whole = unary(op_all, functions_of(op_all))
    pairs = pairs_along(op_dim)
    missing = object()
    signatures = ("()", "(Tensor other)", "(int dim, bool keepdim = False)")

    def call(input: Any, dim: Any = missing, keepdim: bool = False, *, out: Any = None, other: Any = missing,
             **numpy_names: Any) -> Any:
        if numpy_names:
            dim, keepdim = numpy_names_of(name, numpy_names, dim, keepdim)
        if dim is missing:
            if other is missing:
                return whole(input, out=out) if out is not None else whole(input)
            dim = other
        if isinstance(dim, Tensor) and (other is dim or as_index(dim) is None or dim._array.ndim == 0):
            return functions_of(REGISTRY[elementwise])(input, dim, out=out)
        found = as_index(dim)
        if found is None or dim.__class__ is bool:
            raise refused(name, dim, *signatures)
        checked_keepdim(name, keepdim)
        if out is not None:
            refuse_graph(name, input, out)
            found = write_out(op_dim, pairs(input, found, keepdim), out)
            return named_result(op_dim)(found)
        return pairs(input, found, keepdim)

    call.__name__ = call.__qualname__ = name
    which, found = ("greatest", 3) if name == "max" else ("least", 1)
    call.__doc__ = (f"The {which} element; or, along `dim`, those elements and where they are; or, with another\n"
                    f"    tensor, the elementwise {elementwise}.\n\n    >>> import flambeau as torch\n"
                    f"    >>> torch.{name}(torch.tensor([1., 3., 2.]))\n    tensor({found}.)\n    ")
    return call


max = _extremum("max", "maximum")
min = _extremum("min", "minimum")


_aminmax = functions_of(REGISTRY["aminmax"])


def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """The least and the greatest elements."""
    for x in out or ():
        if x._array.dtype != input._array.dtype:
            c = {"float32": "float", "float64": "double", "int64": "long int"}
            raise RuntimeError(f"Expected out tensor to have dtype {c.get(input.dtype.name, input.dtype.name)}, but "
                               f"got {c.get(x.dtype.name, x.dtype.name)} instead")
    return _aminmax(input, dim=dim, keepdim=keepdim, out=out)


def _over_dims(name: str, default: Any) -> Any:
    """A reduction over any dimensions: `name(input, dim, keepdim)`."""
    op = REGISTRY[name]
    short = along(op)

    def call(input: Any, dim: Any = default, keepdim: bool = False, *, out: Any = None, **numpy_names: Any) -> Any:
        if numpy_names:
            dim, keepdim = numpy_names_of(name, numpy_names, dim, keepdim)
        if dim.__class__ is not int:
            dim = dims(name, dim, "(tuple of ints dim, bool keepdim = False)")
        if out is None:
            return short(input, dim, keepdim)
        refuse_graph(name, input, out)
        return write_out(op, short(input, dim, keepdim), out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.doc
    return call


amax = _over_dims("amax", ())
amin = _over_dims("amin", ())
_all, _any = _over_dims("all", None), _over_dims("any", None)
_MISSING = object()
_logsumexp = _over_dims("logsumexp", None)


def _truth(name: str, reduce: Any) -> Any:
    def call(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **numpy_names: Any) -> Any:
        if out is not None and out.dtype.name not in ("bool", "uint8"):
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {out.dtype.scalar_name}")
        if out is not None and out.dtype.name == "uint8":
            found = reduce(input, dim, keepdim, **numpy_names)
            return write_out(REGISTRY[name], found.to(out.dtype), out)
        return reduce(input, dim, keepdim, out=out, **numpy_names)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = REGISTRY[name].doc
    return call


all, any = _truth("all", _all), _truth("any", _any)


def logsumexp(input: Any, dim: Any = _MISSING, keepdim: bool = False, *, out: Any = None, **numpy_names: Any) -> Any:
    """The logarithm of a sum of exponentials."""
    if dim is _MISSING:
        if "axis" not in numpy_names:
            raise TypeError('logsumexp() missing 1 required positional arguments: "dim"')
        dim = None
    return _logsumexp(input, dim, keepdim, out=out, **numpy_names)


def _place(name: str) -> Any:
    op = REGISTRY[name]
    short = along(op)

    def call(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **numpy_names: Any) -> Any:
        if numpy_names:
            dim, keepdim = numpy_names_of(name, numpy_names, dim, keepdim)
        if dim is not None and dim.__class__ is not int:
            dim = one_dim(name, dim)
        found = short(input, dim, keepdim)
        return found if out is None else write_out(op, found, out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.doc
    return call


argmax = _place("argmax")
argmin = _place("argmin")


# ----- moments -------------------------------------------------------------------------------------


def _moment(name: str, pair: bool) -> Any:
    op = REGISTRY[name]
    short = None if pair else along(op)
    missing = object()

    def call(input: Any, dim: Any = None, unbiased: Any = missing, keepdim: Any = missing, *, correction: Any = missing,
             out: Any = None, **numpy_names: Any) -> Any:
        if numpy_names:
            dim = numpy_names.pop("axis", dim)
            keepdim = numpy_names.pop("keepdims", keepdim)
            if numpy_names:
                raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(numpy_names))}'")
        if dim.__class__ is bool:  # var(unbiased)
            if unbiased is not missing:
                raise refused(name, dim, "(tuple of ints dim, bool unbiased = True, bool keepdim = False)")
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
        kept = False if keepdim is missing else keepdim
        a = input._array
        freedom = (_count(a.shape, dim) if a.size else 0) - (1 if correction is None else correction)
        if short is not None:
            found = short(input, dim, correction, kept)
        else:
            found = apply(op, [input], {"dim": dim, "correction": correction, "keepdim": kept})
        if freedom <= 0:
            warnings.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
                          "reduction factor (input numel divided by output numel).", UserWarning, stacklevel=2)
        if out is not None:
            refuse_graph(name, input, out)
            return write_out(op, found, out)
        return tuple(found) if pair else found

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.doc
    return call


def _count(shape: tuple[int, ...], dim: Any) -> int:
    n = 1
    if dim is None or dim == () or not shape:
        for s in shape:
            n *= s
        return n
    ndim = len(shape)
    for d in (dim,) if dim.__class__ is int else dim:
        if not -ndim <= d < ndim:
            return 2**62  # the kernel says what is wrong
        n *= shape[d]
    return n


var = _moment("var", False)
std = _moment("std", False)
var_mean = _moment("var_mean", True)
std_mean = _moment("std_mean", True)


METHODS: dict[str, Any] = {name: globals()[name] for name in __all__ if name not in ("var_mean", "std_mean")}
for _name in ("nanmean", "nansum", "logsumexp", "aminmax"):
    globals()[_name].__doc__ = REGISTRY[_name].doc
