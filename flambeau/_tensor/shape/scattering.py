"""Gather, scatter, `index_put`, `index_fill` and `nonzero`: functions whose arguments a declaration cannot express."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import resolve
from ...backends.numpy.indexing.gather_scatter import scatter_axis
from ...engine.grad_mode import grad_mode
from ...engine.tensor_interface import layer
from ...modes import special
from ...ops.declare import REGISTRY, Op
from ...shapes import broadcast_shapes, wrap_dim
from ...warning_location import user_stacklevel, warn_once
from ..argument_errors.guards import refused
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..creation.constants import full_like
from ..creation.factory_arguments import finished
from ..dispatch.apply import apply
from ..dispatch.array_kernels import kernel_of
from ..dispatch.binding import bind
from ..dispatch.handlers import host_elements
from ..dispatch.inplace import apply_inplace, overwrite
from ..dispatch.out_tensors import write_out
from ..dispatch.public_functions import inplace_function, public_function
from ..dispatch.write_checks import check_no_overlap, check_overlap, check_writable, is_tracked, prepare_write
from ..fastpath.repeated_calls import repeated
from ..meta import lacks_elements
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_overwritten, notify_read
from .indexing import (
    BATCHED_MASK_ERROR,
    EXPANDED_WARNING,
    INDEX_DTYPE_ERROR,
    is_expanded,
    raise_dtype_mismatch,
    write_at,
)
from .reshaping import expand, unsqueeze, view

__all__ = ["index_fill", "index_put", "nonzero", "nonzero_static", "scatter", "select", "take_along_dim",
           "unravel_index"]


def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """The slice with number `index` along dimension `dim`, a view without that dimension.

    >>> import flambeau as torch
    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """
    if dim.__class__ is bool or index.__class__ is bool:
        raise refused("select", (input, dim, index)) or TypeError("select(): bool is no dimension or index")
    try:
        dim, index = dim.__index__(), index.__index__()
    except AttributeError as error:
        raise refused("select", (input, dim, index)) or error from None
    return apply(REGISTRY["select"], [input], {"dim": dim, "index": index})


def _check_indices(name: str, target: Tensor, indices: Any) -> None:
    """Check the kind of indices, and that there are not more of them than dimensions.

    Raises:
        TypeError: they are no list, or one is None; a guard says more.
        IndexError: there are too many.
    """
    if not isinstance(indices, (tuple, list)) or any(i is None for i in indices):
        raise TypeError(f"{name}(): argument 'indices' must be tuple of Tensors")
    if len(indices) > target._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {target._array.ndim} (got {len(indices)})")


def _indices(indices: Any) -> list[Tensor | None]:
    """A tuple of index tensors, masks converted to index tensors."""
    result: list[Tensor | None] = []
    for index in indices:
        if index is not None and index._array.dtype in (np.dtype(np.bool_), np.dtype(np.uint8)):
            if not isinstance(index._array, np.ndarray):
                raise RuntimeError(BATCHED_MASK_ERROR)
            if lacks_elements(index):
                result.append(index)
                continue
            index = wrap(host_elements(index))
            if index._array.dtype == np.uint8:
                warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
                              "instead.", UserWarning, stacklevel=user_stacklevel())
            if special[0]:
                notify_read(index, "indexing with a mask")
            result += [wrap(places) for places in (np.nonzero(index._array) if index._array.ndim else
                                                   (np.zeros(int(bool(index._array)), np.int64),))]
        elif index is not None and index._array.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
            raise IndexError(INDEX_DTYPE_ERROR)
        else:
            result.append(index)
    return result


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """The input with `values` written, or added, at index tensors.

    >>> import flambeau as torch
    >>> torch.index_put(torch.zeros(3), (torch.tensor([0, 2]),), torch.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    _check_indices("index_put", input, indices)
    places = _indices(indices)
    if values._array.dtype != input._array.dtype:
        raise_dtype_mismatch(input, places, values)
    return apply(REGISTRY["_index_put"], [input, values, *places], {"accumulate": accumulate})


def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`index_put`, in place.

    >>> import flambeau as torch
    >>> torch.zeros(3).index_put_((torch.tensor([1]),), torch.tensor([5.]))
    tensor([0., 5., 0.])
    """
    _check_indices("index_put_", self, indices)
    return write_at(self, _indices(indices), values, accumulate)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex, np.number, np.bool_))


def _is_dim(x: Any) -> bool:
    """Whether the argument parser takes a value for a dimension."""
    return (isinstance(x, (int, np.integer)) and not isinstance(x, bool)) or (
        isinstance(x, Tensor) and not x._array.ndim and x._array.dtype.kind in "iu" and not x._requires_grad)


_DEPRECATED_REDUCE = (
    "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch "
    "release. Use torch.scatter_reduce instead for more reduction options.")

_SCATTER = tuple(f"int dim, Tensor index, {source}{reduce}" for source in ("Tensor src", "Number value")
                 for reduce in ("", ", *, str reduce"))
_INDEX_FILL = ("int dim, Tensor index, Tensor value", "int dim, Tensor index, Number value")
_MASKED_FILL = ("Tensor mask, Tensor value", "Tensor mask, Number value")


def _mismatch(name: str, signatures: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any],
              method: bool, out: bool = False) -> TypeError:
    """The error of arguments that fit none of a method's signatures, or of those of its function."""
    from ..argument_errors.messages import invalid_combination

    if method:
        return invalid_combination(name, signatures, args[1:], kwargs)
    return invalid_combination(name, [
        f"Tensor input, {text}" + (", Tensor out = None" if "*" in text else ", *, Tensor out = None") * out
        for text in signatures], args, kwargs)


def _filled(args: tuple[Any, ...], kwargs: dict[str, Any], names: tuple[str, ...],
            source: str) -> tuple[Any, ...] | None:
    """The arguments in the order of `names`, the last of which may be called `source`; None if they are not these."""
    values = list(args)
    given = dict(kwargs)
    for position, name in enumerate(names[len(args):], len(args)):
        if position == len(names) - 1 and name not in given:
            name = source
        if name not in given:
            return None
        values.append(given.pop(name))
    return tuple(values) if len(values) == len(names) and not given else None


def _scatter_call(args: tuple[Any, ...], kwargs: dict[str, Any], inplace: bool, method: bool) -> Tensor:
    rest = {key: value for key, value in kwargs.items() if key not in ("out", "reduce")}
    out, reduce = kwargs.get("out"), kwargs.get("reduce")
    found = _filled(args, rest, ("input", "dim", "index", "src"), "value")
    if found is None or not (isinstance(found[0], Tensor) and _is_dim(found[1]) and isinstance(found[2], Tensor) and (
            _is_number(found[3]) or (isinstance(found[3], Tensor) and not (
                "value" in kwargs and (found[3]._array.ndim or found[3]._requires_grad))))) or (
                "reduce" in kwargs and not isinstance(reduce, str)) or (
                    out is not None and not isinstance(out, Tensor)) or ("out" in kwargs and method):
        raise _mismatch("scatter_" if inplace else "scatter", _SCATTER, args, kwargs, method, out=True)
    input, dim, index, source = found
    dim = dim.__index__()
    if "value" in kwargs and isinstance(source, Tensor):
        source = source.item()
    if reduce is not None:
        return _scatter_reduce(input, dim, index, source, reduce, inplace, out)
    if isinstance(source, Tensor):
        key, inputs, params = "_scatter", [input, index, source], {"dim": dim}
    else:
        key, inputs, params = "_scatter_scalar", [input, index], {"dim": dim, "value": source}
    if inplace:
        return apply_inplace(REGISTRY[key], inputs, params)
    result = apply(REGISTRY[key], inputs, params)
    if out is not None:
        return write_out(REGISTRY[key], result, out)
    return result


def _scatter_reduce(input: Tensor, dim: int, index: Tensor, source: Any, reduce: str, inplace: bool,
                    out: Any) -> Tensor:
    if isinstance(source, Tensor) and not ((inplace or out is not None) and grad_mode.get() and (
            input._requires_grad or source._requires_grad)):  # which is refused
        warn_once(_DEPRECATED_REDUCE)
    if not special[0]:
        scatter_axis(input._array, index._array, source._array if isinstance(source, Tensor) else None, dim, "scatter")
    elif dim.__class__ is int:
        wrap_dim(dim, input._array.ndim)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    from ..dispatch.array_kernels import arrays

    if special[0] and any(isinstance(x, Tensor) and not isinstance(x._array, np.ndarray)
                          for x in (input, index, source)):
        return _scatter_reduce_batched(input, dim, index, source, reduce, inplace)
    value = source
    if isinstance(source, Tensor):
        if inplace:
            check_overlap(input._array, source._array, disjoint=True)
        value = resolve(source._array)
    result = arrays.scatter_reduce(resolve(input._array), index._array, value, dim,
                                   "sum" if reduce == "add" else "prod")
    return _without_derivative(input, wrap(result), inplace, out, source)


def _scatter_reduce_batched(input: Tensor, dim: int, index: Tensor, source: Any, reduce: str, inplace: bool) -> Tensor:
    """`_scatter_reduce` with batched inputs: by the operator `scatter_reduce`, which has a batching rule."""
    from ..dispatch.batching_rules import check_vmap_write

    if not isinstance(source, Tensor):
        source = full_like(index, source, dtype=input.dtype)
    inputs = [input.detach(), index, source.detach()]
    params = {"dim": dim, "reduce": "sum" if reduce == "add" else "prod"}
    if inplace:
        check_vmap_write(input, inputs[1:], "aten::scatter_")
        return apply_inplace(REGISTRY["scatter_reduce"], [input, *inputs[1:]], params)
    return apply(REGISTRY["scatter_reduce"], inputs, params)


def _without_derivative(input: Tensor, result: Tensor, inplace: bool, out: Any, source: Any) -> Tensor:
    """A result that PyTorch records with a node whose derivative is not implemented."""
    needs_grad = grad_mode.get() and any(isinstance(x, Tensor) and x._requires_grad for x in (input, source))
    if inplace or out is not None:
        if needs_grad:
            raise RuntimeError("the derivative for 'scatter' with 'reduce' is not implemented.")
        if not inplace:
            return write_out(REGISTRY["_scatter"], result, out)
        check_overlap(input._array, *([source._array] if isinstance(source, Tensor) else []), disjoint=True)
        prepare_write(input)
        input._array[...] = result._array
        input._bump_version()
        if special[0]:
            notify_overwritten(input, result._array)
        return input
    if needs_grad:
        return apply(REGISTRY["_not_differentiable"], [input, source] if isinstance(source, Tensor) else [input],
                     {"value": result._array, "of": "scatter"})
    return result


@repeated
def scatter(*args: Any, **kwargs: Any) -> Tensor:
    """The input with `src`, a tensor or scalar, written at the index along a dimension.

    >>> import flambeau as torch
    >>> torch.scatter(torch.zeros(3), 0, torch.tensor([1]), 5.)
    tensor([0., 5., 0.])
    """
    return _scatter_call(args, kwargs, False, False)


@repeated
def _scatter_method(*args: Any, **kwargs: Any) -> Tensor:
    return _scatter_call(args, kwargs, False, True)


_scatter_method.__name__ = _scatter_method.__qualname__ = "scatter"
_scatter_method.__doc__ = scatter.__doc__


def scatter_(*args: Any, **kwargs: Any) -> Tensor:
    """`scatter`, in place.

    >>> import flambeau as torch
    >>> torch.zeros(3).scatter_(0, torch.tensor([1]), 5.)
    tensor([0., 5., 0.])
    """
    return _scatter_call(args, kwargs, True, True)


def _index_fill_function(inplace: bool, method: bool) -> Any:
    def call(*args: Any, **kwargs: Any) -> Tensor:
        found = _filled(args, kwargs, ("input", "dim", "index", "value"), "value")
        if found is None or not (isinstance(found[0], Tensor) and _is_dim(found[1]) and isinstance(
                found[2], Tensor) and (isinstance(found[3], Tensor) or _is_number(found[3]))):
            raise _mismatch("index_fill_" if inplace else "index_fill", _INDEX_FILL, args, kwargs, method)
        input, dim, index, value = found
        dim = dim.__index__()
        is_tensor = isinstance(value, Tensor)
        if is_tensor and value._array.ndim:
            raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value._array.ndim} dimension(s).")
        if index._array.dtype != np.int64:
            raise IndexError("index_fill_(): Expected dtype int64 for index.")
        if not dtypes.is_complex(input._array.dtype) and (dtypes.is_complex(
                value._array.dtype) if is_tensor else isinstance(value, (complex, np.complexfloating))):
            raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
        if is_tensor:
            key, inputs, params = "_index_fill_tensor", [input, index, value], {"dim": dim}
        else:
            key, inputs, params = "_index_fill_scalar", [input, index], {"dim": dim, "value": value}
        if not inplace:
            return apply(REGISTRY[key], inputs, params)
        if is_expanded(input._array):
            warnings.warn(EXPANDED_WARNING.format("index_fill_", "tensor[mask] = scalar"),
                          UserWarning, stacklevel=user_stacklevel())
            return _overwrite_expanded(REGISTRY[key], inputs, params)
        return apply_inplace(REGISTRY[key], inputs, params)

    return call


index_fill = repeated(_index_fill_function(False, False))
index_fill.__name__ = index_fill.__qualname__ = "index_fill"
index_fill.__doc__ = """The input with `value` in the slices `index` of a dimension.

    Args:
        input: of any shape and dtype.
        dim: the dimension.
        index: 0-d or 1-d, int64.
        value: a scalar or a 0-d tensor.

    >>> import flambeau as torch
    >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), 1)
    tensor([1., 0., 1.])
    """
index_fill_ = _index_fill_function(True, True)
index_fill_.__name__ = index_fill_.__qualname__ = "index_fill_"
index_fill_.__doc__ = """`index_fill`, in place.

    >>> import flambeau as torch
    >>> torch.zeros(3).index_fill_(0, torch.tensor([0, 2]), 1)
    tensor([1., 0., 1.])
    """


_index_fill_method = repeated(_index_fill_function(False, True))
_index_fill_method.__name__ = _index_fill_method.__qualname__ = "index_fill"
_index_fill_method.__doc__ = index_fill.__doc__


def _masked_fill_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`masked_fill`, in place.

    >>> import flambeau as torch
    >>> torch.zeros(2).masked_fill_(torch.tensor([True, False]), 5.)
    tensor([5., 0.])
    """
    op = REGISTRY["masked_fill"]
    found = _filled(args, kwargs, ("mask", "value"), "value")
    if found is None or not isinstance(found[0], Tensor) or not (isinstance(found[1], Tensor) or _is_number(found[1])):
        raise _mismatch("masked_fill_", _MASKED_FILL, (self, *args), kwargs, True)
    mask, value = found
    if isinstance(value, Tensor) and value._array.ndim:
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{value._array.ndim} dimension(s).")
    if mask._array.dtype != np.bool_:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{dtypes.C_NAMES[mask.dtype.name]}")
    shape = broadcast_shapes(self._array.shape, mask._array.shape)
    if shape != self._array.shape:
        raise RuntimeError(f"output with shape {list(self._array.shape)} doesn't match the broadcast shape "
                           f"{list(shape)}")
    if not is_expanded(self._array):
        check_no_overlap(self._array, mask._array, disjoint=False)
        return inplace_function(op)(self, *args, **kwargs)
    check_writable(self, is_tracked((self, *args)))
    warnings.warn(EXPANDED_WARNING.format("masked_fill_", "tensor[mask] = scalar"),
                  UserWarning, stacklevel=user_stacklevel())
    inputs, params = bind(op, (self, *args), kwargs)
    if not isinstance(inputs[2], Tensor):
        op, params = REGISTRY["_masked_fill_scalar"], {"value": inputs.pop()}
    return _overwrite_expanded(op, inputs, params)


def _overwrite_expanded(op: Op, inputs: list[Any], params: dict[str, Any]) -> Tensor:
    """Write an operator's result into an expanded tensor; for elements that share memory the last one wins."""
    a = inputs[0]._array

    def compute() -> None:
        a[...] = kernel_of(op)(*[resolve(x._array) if isinstance(x, Tensor) else x for x in inputs], **params)

    return overwrite(op, inputs, params, compute)


@repeated
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Any = None) -> Tensor:
    """The elements at `indices` along `dim`, with broadcasting; without `dim`, of the flattened input.

    >>> import flambeau as torch
    >>> torch.take_along_dim(torch.tensor([[3, 1, 2]]), torch.tensor([[1]]), 1)
    tensor([[1]])
    """
    if not isinstance(indices, Tensor):
        raise TypeError("take_along_dim(): argument 'indices' (position 2) must be Tensor, not "
                        f"{type_name(indices)}")
    gather = public_function(REGISTRY["gather"])
    if dim is None:
        return gather(view(input.contiguous(), -1), 0, view(indices.contiguous(), -1), out=out)
    if isinstance(dim, (str, float)):
        raise TypeError(f"take_along_dim(): argument 'dim' (position 3) must be int, not {type_name(dim)}")
    a, b = input._array.shape, indices._array.shape
    if len(a) != len(b):
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but "
                           f"got {len(a)} dimensions for input, and {len(b)} dimensions for indices")
    if indices._array.dtype != np.int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{indices.dtype.scalar_name}")
    if indices._device is not input._device:
        raise RuntimeError(f"Expected tensor to have {input.device} Device, but got tensor with {indices.device} "
                           "Device (while checking arguments for torch.take_along_dim():)")
    axis = wrap_dim(dim, len(a))
    if not a:
        raise IndexError(f"Dimension specified as {axis} but tensor has no dimensions")
    shape = broadcast_shapes([*a[:axis], 1, *a[axis + 1:]], [*b[:axis], 1, *b[axis + 1:]])
    into = (*shape[:axis], a[axis], *shape[axis + 1:])
    index = (*shape[:axis], b[axis], *shape[axis + 1:])
    input, indices = expand(input, into), expand(indices, index)
    if indices._array.__class__ is not np.ndarray:
        indices = indices % a[axis]  # PyTorch wraps indices around, whatever they are
    elif indices._array.size:
        if not a[axis]:
            raise RuntimeError("ZeroDivisionError")
        if indices._array.min() < 0 or indices._array.max() >= a[axis]:
            indices = wrap(indices._array % a[axis])
    return gather(input, axis, indices, out=out)


@repeated
def nonzero(input: Tensor, *, out: Any = None, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements: one row each, or with `as_tuple` one tensor for each dimension.

    >>> import flambeau as torch
    >>> torch.nonzero(torch.tensor([0, 3]), as_tuple=True)
    (tensor([1]),)
    """
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type_name(out)}")
    if not isinstance(as_tuple, bool):
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type_name(as_tuple)}")
    if out is not None:
        if as_tuple:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        if out._array.dtype != np.int64:
            raise RuntimeError("nonzero: Expected out tensor to have scalar type Long but got scalar type"
                               f"{out.dtype.scalar_name}")
    if as_tuple:
        if special[0] and not isinstance(input._array, np.ndarray):
            raise RuntimeError("Batching rule not implemented for aten::nonzero_numpy. We could not generate a "
                               "fallback.")
        source = input if input._array.ndim else unsqueeze(input, 0)
        return public_function(REGISTRY["unbind"])(apply(REGISTRY["_nonzero"], [source]), dim=1)
    return public_function(REGISTRY["_nonzero"])(input, out=out)


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Any = None) -> Tensor:
    """The first `size` rows of `nonzero`, padded with rows of `fill_value`.

    >>> import flambeau as torch
    >>> torch.nonzero_static(torch.tensor([0, 3]), size=2)
    tensor([[ 1],
            [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if out is not None:
        check_records_nothing("aten::nonzero_static", (input,), (out,))
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError("nonzero_static: Expected out tensor to have scalar type Long but got scalar type"
                           f"{out.dtype.scalar_name}")
    if special[0] and not isinstance(input._array, np.ndarray):
        from ..dispatch.batched_tensor import vmap_levels
        from ..dispatch.batching_rules import fallback_loop, warn_fallback

        warn_fallback("nonzero_static")
        return fallback_loop(lambda x: nonzero_static(x, size=size, fill_value=fill_value), [input],
                             vmap_levels([input]))
    rows = apply(REGISTRY["_nonzero"], [input])._array[:size]
    full = np.full((size, rows.shape[1]), fill_value, np.int64)
    full[: len(rows)] = rows
    result = finished(wrap(full), False)
    return result if out is None else write_out(REGISTRY["_nonzero"], result, out)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of the given shape of indices into it flattened.

    >>> import flambeau as torch
    >>> torch.unravel_index(torch.tensor([5]), (2, 3))
    (tensor([1]), tensor([2]))
    """
    if not isinstance(indices, Tensor) or indices._array.dtype.kind not in "iu":
        if not isinstance(indices, Tensor):
            raise AttributeError(f"'{type(indices).__name__}' object has no attribute 'is_complex'")
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype!r}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for s in sizes:
        if not isinstance(s, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(s)}")
    if any(s < 0 for s in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [1]
    for s in reversed(sizes[1:]):
        steps.append(steps[-1] * s)
    fn = layer.functions
    coordinates: Any = indices.unsqueeze(-1).floor_divide(fn.tensor(steps[:len(sizes)][::-1], dtype=dtypes.int64))
    return tuple((coordinates % fn.tensor(sizes, dtype=dtypes.int64)).unbind(-1))


METHODS: dict[str, Any] = {
    "select": select, "index_put": index_put, "index_put_": index_put_, "scatter": _scatter_method,
    "scatter_": scatter_, "index_fill": _index_fill_method, "index_fill_": index_fill_,
    "masked_fill_": _masked_fill_,
    "take_along_dim": take_along_dim, "nonzero": nonzero, "nonzero_static": nonzero_static,
}
