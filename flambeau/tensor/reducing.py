"""Reductions, scans and softmax as users call them: overloads told apart, arguments checked."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..ops.declare import REGISTRY
from .along import along, pairs_along
from .apply import apply, arrays
from .binding import functions_of, write_out
from .fast import unary
from .tensor import Tensor

__all__ = ["all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logsumexp", "max",
           "mean", "min", "nansum", "norm", "prod", "softmax", "std", "std_mean", "sum", "var", "var_mean"]

_INT = (int, np.integer)


# ----- arguments -----------------------------------------------------------------------------


def _kind(x: Any) -> str:
    if isinstance(x, Tensor):
        return "Tensor"
    if isinstance(x, (tuple, list)):
        return f"{type(x).__name__} of ({', '.join(map(_kind, x))})" if x else type(x).__name__
    return type(x).__name__


def _refuse(name: str, value: Any, *signatures: str) -> TypeError:
    lines = "".join(f" * {s}\n" for s in signatures)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({type(value).__name__}), but expected "
                     f"one of:\n{lines}")


def _index(value: Any) -> int | None:
    """An integer argument as int; None where it is none."""
    if value.__class__ is int:
        return value  # type: ignore[no-any-return]
    if isinstance(value, _INT):
        return int(value)
    if isinstance(value, Tensor) and value._array.ndim == 0 and value._array.dtype.kind in "iu":
        return int(value._array)
    return None


def dims(name: str, dim: Any, *signatures: str) -> Any:
    """Dimensions to reduce as an int, a tuple of ints or None.

    Raises:
        TypeError: they are something else.
    """
    if dim is None or dim.__class__ is int:
        return dim
    if isinstance(dim, (tuple, list)):
        found = tuple(map(_index, dim))
        if None in found:
            at = found.index(None)
            raise TypeError(f"{name}(): argument 'dim' failed to unpack the object at pos {at + 1} with error \"type must "
                            f"be tuple of ints,but got {type(dim[at]).__name__}\"")
        return found
    found = _index(dim)
    if found is None:
        if not signatures:
            signatures = ("(*, torch.dtype dtype = None)",
                          "(tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)")
        raise _refuse(name, dim, *signatures)
    return found


def one_dim(name: str, dim: Any, position: int = 1) -> int:
    """A dimension as an int.

    Raises:
        TypeError: it is something else.
    """
    found = _index(dim)
    if found is None:
        raise TypeError(f"{name}(): argument 'dim' (position {position}) must be int, not {type(dim).__name__}")
    return found


def _numpy_names(name: str, names: dict[str, Any], dim: Any, keepdim: Any) -> tuple[Any, Any]:
    dim = names.pop("axis", dim)
    keepdim = names.pop("keepdims", keepdim)
    if names:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(names))}'")
    return dim, keepdim


def _keepdim(name: str, keepdim: Any) -> bool:
    if keepdim.__class__ is not bool:
        raise TypeError(f"{name}(): argument 'keepdim' (position 2) must be bool, not {type(keepdim).__name__}")
    return keepdim


def _converted(input: Tensor, dtype: Any) -> tuple[Tensor, Any]:
    """`input`, and the dtype its kernel has to convert it to: float32 and float64 convert there, others before."""
    if dtype is None:
        return input, None
    if dtype.numpy.kind in "biu":
        return input, dtype  # the result has it, too
    if input.dtype is dtype:
        return input, None
    if input._array.dtype.kind == "f" and input._array.dtype.itemsize > 2 and dtype.numpy.kind == "f" and dtype.itemsize > 2:
        return input, dtype
    return input.to(dtype), None


# ----- sums, means, products -------------------------------------------------------------------


def _whole_or_part(name: str, several: bool = True) -> Any:
    """A reduction of all elements (one node) or over some dimensions (another), as PyTorch names them."""
    op_all, op_part = REGISTRY[f"_{name}_all"], REGISTRY[name]
    op_all.kernel = getattr(arrays, name)  # type: ignore[attr-defined]
    whole = unary(op_all, functions_of(op_all))
    part = along(op_part)
    signatures = ("(*, torch.dtype dtype = None)", "(int dim, bool keepdim = False, *, torch.dtype dtype = None)")

    def call(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None,
             **numpy_names: Any) -> Any:
        if numpy_names:
            dim, keepdim = _numpy_names(name, numpy_names, dim, keepdim)
        if dim.__class__ is not int and dim is not None:
            dim = dims(name, dim)
            if not several and dim.__class__ is tuple:
                raise _refuse(name, dim, *signatures)
        if dtype is None and out is None:
            return whole(input) if dim is None and not keepdim else part(input, dim, keepdim, None)
        input, dtype = _converted(input, dtype)
        if out is not None:
            _no_graph(name, input, out)
            return write_out(op_part, part(input, dim, keepdim, dtype), out)
        if dim is None and not keepdim:
            return whole(input) if dtype is None else along(op_all)(input, dtype)
        return part(input, dim, keepdim, dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op_part.doc
    return call


def _no_graph(name: str, *tensors: Any) -> None:
    from ..autograd.modes import grad_mode

    if grad_mode.get() and _any_wants(tensors):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of "
                           "the arguments requires grad.")


def _any_wants(tensors: Any) -> bool:
    for x in tensors:
        if isinstance(x, Tensor):
            if x._requires_grad:
                return True
        elif isinstance(x, (tuple, list)) and _any_wants(x):
            return True
    return False


sum = _whole_or_part("sum")
mean = _whole_or_part("mean")
prod = _whole_or_part("prod", several=False)

_nansum = along(REGISTRY["nansum"])


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    input, dtype = _converted(input, dtype)
    if out is not None and out._array.dtype.kind in "iu" and input._array.dtype.kind == "f":
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.dtype.scalar_name}'")
    found = _nansum(input, dims("nansum", dim), keepdim, dtype)
    return found if out is None else write_out(REGISTRY["nansum"], found, out)


# ----- extrema -----------------------------------------------------------------------------------


def _extremum(name: str, elementwise: str) -> Any:
    op_all, op_along = REGISTRY[f"_{name}_all"], REGISTRY[f"_{name}_along"]
    op_all.kernel = getattr(arrays, f"_{name}_all")  # type: ignore[attr-defined]
    op_along.kernel = getattr(arrays, f"_{name}_along")  # type: ignore[attr-defined]
    whole = unary(op_all, functions_of(op_all))
    pairs = pairs_along(op_along)
    missing = object()
    signatures = ("()", "(Tensor other)", "(int dim, bool keepdim = False)")

    def call(input: Any, dim: Any = missing, keepdim: bool = False, *, out: Any = None, other: Any = missing,
             **numpy_names: Any) -> Any:
        if numpy_names:
            dim, keepdim = _numpy_names(name, numpy_names, dim, keepdim)
        if dim is missing:
            if other is missing:
                return whole(input, out=out) if out is not None else whole(input)
            dim = other
        if isinstance(dim, Tensor) and (other is dim or _index(dim) is None or dim._array.ndim == 0):
            return functions_of(REGISTRY[elementwise])(input, dim, out=out)
        found = _index(dim)
        if found is None or dim.__class__ is bool:
            raise _refuse(name, dim, *signatures)
        _keepdim(name, keepdim)
        if out is not None:
            _no_graph(name, input, out)
            found = write_out(op_along, pairs(input, found, keepdim), out)
            from .returns import named_result

            return named_result(op_along)(found)
        return pairs(input, found, keepdim)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (f"The {'greatest' if name == 'max' else 'least'} element; or, along `dim`, those elements and where "
                    "they are;\n    or, with another tensor, the elementwise "
                    f"{elementwise}.\n\n    >>> import flambeau as torch\n"
                    f"    >>> torch.{name}(torch.tensor([1., 3., 2.]))\n    tensor({'3' if name == 'max' else '1'}.)\n    ")
    return call


max = _extremum("max", "maximum")
min = _extremum("min", "minimum")


_aminmax = functions_of(REGISTRY["aminmax"])


def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    for x in out or ():
        if x._array.dtype != input._array.dtype:
            c = {"float32": "float", "float64": "double", "int64": "long int"}
            raise RuntimeError(f"Expected out tensor to have dtype {c.get(input.dtype.name, input.dtype.name)}, but got "
                               f"{c.get(x.dtype.name, x.dtype.name)} instead")
    return _aminmax(input, dim=dim, keepdim=keepdim, out=out)


def _over_dims(name: str, default: Any) -> Any:
    """A reduction over any dimensions: `name(input, dim, keepdim)`."""
    op = REGISTRY[name]
    short = along(op)

    def call(input: Any, dim: Any = default, keepdim: bool = False, *, out: Any = None, **numpy_names: Any) -> Any:
        if numpy_names:
            dim, keepdim = _numpy_names(name, numpy_names, dim, keepdim)
        if dim.__class__ is not int:
            dim = dims(name, dim, "(tuple of ints dim, bool keepdim = False)")
        if out is None:
            return short(input, dim, keepdim)
        _no_graph(name, input, out)
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
            dim, keepdim = _numpy_names(name, numpy_names, dim, keepdim)
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
                raise _refuse(name, dim, "(tuple of ints dim, bool unbiased = True, bool keepdim = False)")
            dim, unbiased = None, dim
        if unbiased is not missing and correction is not missing:
            raise TypeError(f"{name}() received an invalid combination of arguments - got both unbiased and correction")
        if dim.__class__ is not int:
            dim = dims(name, dim, "(bool unbiased = True)", "(tuple of ints dim, bool unbiased = True, bool keepdim = False)")
        if correction is missing:
            if unbiased is missing:
                correction = None if dim is None else 1
            else:
                correction = 1 if unbiased else 0
        elif isinstance(correction, Tensor):
            correction = correction.item()
        kept = False if keepdim is missing else keepdim
        a = input._array
        freedom = _count(a.shape, dim) - (1 if correction is None else correction)
        if short is not None:
            found = short(input, dim, correction, kept)
        else:
            found = apply(op, [input], {"dim": dim, "correction": correction, "keepdim": kept})
        if freedom <= 0:
            warnings.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                          "factor (input numel divided by output numel).", UserWarning, stacklevel=2)
        if out is not None:
            _no_graph(name, input, out)
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


# ----- scans and softmax ------------------------------------------------------------------------------


def _scan(name: str, converts_before: bool) -> Any:
    op = REGISTRY[name]
    short = along(op)

    def call(input: Any, dim: Any = _MISSING, dtype: Any = None, *, out: Any = None, axis: Any = _MISSING) -> Any:
        if dim.__class__ is not int:
            if dim is _MISSING:
                dim = axis
            if dim is _MISSING:
                raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
            dim = one_dim(name, dim)
        if dtype is None and out is not None and not converts_before:
            dtype = out.dtype
        if dtype is not None:
            if converts_before:
                if input.dtype is not dtype:
                    input = input.to(dtype)
                dtype = None
            else:
                input, dtype = _converted(input, dtype)
        if out is None:
            return short(input, dim, dtype)
        _no_graph(name, input, out)
        return write_out(op, short(input, dim, dtype), out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.doc
    return call


cumsum = _scan("cumsum", False)
cumprod = _scan("cumprod", False)
softmax = _scan("softmax", True)
log_softmax = _scan("log_softmax", True)


# ----- norms ----------------------------------------------------------------------------------------------

_vector_norm = along(REGISTRY["linalg_vector_norm"])


def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:
    """The norm of all elements as one vector, or over `dim`; `p` may be a number, "fro" or "nuc".

    Kept for old programs, as PyTorch keeps it: `linalg.vector_norm` and `linalg.matrix_norm` say what they mean.

    >>> import flambeau as torch
    >>> torch.norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    if dim.__class__ is not int:
        dim = dims("norm", dim)
    if isinstance(p, str):
        if p == "fro" and (dim is None or dim.__class__ is int or len(dim) <= 2):
            p = 2
        else:
            from .norms import matrix_norm

            if dim is None:
                dim = tuple(range(input._array.ndim)) if p == "nuc" or p == "fro" else (-2, -1)
            return matrix_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    if p is None:
        p = 2.0
    from .norms import vector_norm

    if dtype is not None or out is not None:
        return vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    return _vector_norm(input, p, dim, keepdim, None)


def _norm_method(self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return norm(self, p, dim, keepdim, None, dtype)


METHODS: dict[str, Any] = {name: globals()[name] for name in __all__ if name not in ("var_mean", "std_mean")}
METHODS["norm"] = _norm_method
for _name in ("nansum", "logsumexp", "aminmax"):
    globals()[_name].__doc__ = REGISTRY[_name].doc
