"""Functions that reshape and expand, and that add and remove dimensions of size 1, with fast paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import bits_of
from ...backends.numpy.views import is_row_major, reshaped_view, with_axis
from ...backends.sparse_array import SparseAccess
from ...devices import contiguous_format
from ...engine.tensor_interface import layer
from ...modes import active_tracers, dispatch_in_use, inference, special
from ...ops.declare import REGISTRY
from ...shapes import infer_size, wrap_dim
from ..argument_errors.guards import NOT_GIVEN, raise_refusal, refused
from ..argument_errors.type_names import type_name
from ..dispatch.apply import apply
from ..dispatch.array_kernels import arrays, kernel_of
from ..dispatch.interception import notify_operator
from ..dispatch.public_functions import public_function
from ..fastpath.known_views import known_views, views_by_code
from ..fastpath.levels import beside_levels
from ..fastpath.views import view_function
from ..overriding.dispatch import is_on_accelerator
from ..overriding.other_objects import with_other_object
from ..tensor import INFERENCE, Tensor, wrap

__all__ = ["expand", "flatten", "ravel", "reshape", "reshaped", "squeeze", "unflatten", "unsqueeze"]

_view = view_function("view", "input_shape")
_strided_view = view_function("_reshape_alias", "input_shape")
_expand = view_function("expand", "input_shape")
_unsqueeze = view_function("unsqueeze", "input_shape", "dim")
_squeeze_all = view_function("_squeeze_all", "input_shape")
_squeeze_dim = view_function("_squeeze_dim", "input_shape", "dim")
_squeeze_dims = view_function("_squeeze_dims", "input_shape", "dim")
_viewed = public_function(REGISTRY["view"])
_expanded = public_function(REGISTRY["expand"])


def as_ints(values: Any, name: str, argument: str) -> tuple[int, ...]:
    """A sequence of sizes or dimensions as ints; elements may be any objects with `__index__`.

    Raises:
        TypeError: they are no list or tuple, or an element is not an integer.
    """
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be tuple of ints, not "
                        f"{type_name(values)}")
    result = []
    for i, v in enumerate(values):
        if v.__class__ is int:
            result.append(v)
            continue
        try:
            if isinstance(v, bool) and i == 0:  # PyTorch looks at the first element only
                raise TypeError
            result.append(v.__index__())
        except (AttributeError, TypeError):
            raise TypeError(f"{name}(): argument '{argument}' (position 1) must be tuple of ints, but found element of "
                            f"type {type_name(v)} at pos {i}") from None
    return tuple(result)


def list_by_name(function: str, argument: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The list of ints that a method takes by name, as its only argument by position would be.

    Raises:
        TypeError: it is missing, no list, or not the only argument.
    """
    if len(named) == 1 and not args and isinstance(named.get(argument), (tuple, list)):
        return (named[argument],)
    from ..argument_errors.messages import METHOD, explained

    raise explained(METHOD, function, args, named) or TypeError(
        f"{function}(): argument '{argument}' must be tuple of ints")


def int_args(args: tuple[Any, ...], name: str, argument: str) -> tuple[int, ...]:
    """Ints passed separately or as one sequence."""
    values = args
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        values = tuple(args[0])
    try:
        return as_ints(values, name, argument)
    except TypeError as error:
        from ..argument_errors.messages import METHOD, explained

        raise explained(METHOD, name, args, {}) or error from None


# ----- shape -----------------------------------------------------------------------------


def _view_of_memory(self: Tensor, dtype: Any) -> Tensor:
    """The memory as elements of a dtype: it shares the version, but is no view, and never requires grad."""
    kernel = kernel_of(REGISTRY["_view_dtype"])
    out: Tensor = wrap(self._array[...] if dtype is self.dtype else kernel(self._array, dtype=dtype))
    if inference.get():
        out._counter, out._inference = INFERENCE, True
        return out
    if self._counter is None:
        self._counter = [0]
    out._counter = self._counter
    if self._inference:
        out._inference = True
    return out


@views_by_code
def view(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """A view with another shape, or with the memory interpreted as another dtype.

    Raises:
        RuntimeError: the strides do not permit it, or the number of elements differs.

    >>> import flambeau as torch
    >>> torch.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    a = self._array
    if named:
        size = (named["dtype"],) if "dtype" in named else list_by_name("view", "size", size, named)
    elif size and a.flags.c_contiguous and (1 not in a.shape or is_row_major(a)) and (
            not special[0] or beside_levels(self)):
        try:
            return _view(self, a.reshape(*size), a.shape)
        except (ValueError, TypeError):
            pass  # a dtype, or an error that the general path raises
    elif size and a.__class__ is np.ndarray and a.size and 1 not in a.shape and (
            not special[0] or beside_levels(self)):
        try:
            array = a.reshape(*size)
        except (ValueError, TypeError):
            pass
        else:  # without dimensions of size 1 there is but one view
            if array.base is not None and (array.base is a or array.base is a.base) and 1 not in array.shape:
                return _view(self, array, a.shape)
    if len(size) == 1 and isinstance(size[0], type) and size[0] in dtypes.OF_PYTHON:
        size = (dtypes.OF_PYTHON[size[0]],)
    if len(size) == 1 and hasattr(size[0], "numpy") and hasattr(size[0], "category"):
        for bit, name in zip(bits_of(a), ("conjugate view tensors", "tensors with negative bit set"), strict=True):
            if bit:
                raise RuntimeError(f"torch.Tensor.view is not supported for {name} when converting to a different "
                                   "dtype.")
        if not isinstance(a, np.ndarray) or active_tracers[0] or (
                dispatch_in_use[0] and not is_on_accelerator(self) and layer.is_handled(self)):
            if size[0] is self.dtype:
                return apply(REGISTRY["_alias"], [self])
            return apply(REGISTRY["_view_dtype"], [self], {"dtype": size[0]})
        out = _view_of_memory(self, size[0])
        if special[0]:
            notify_operator(REGISTRY["_view_dtype"], [self], {"dtype": size[0]}, [out])
        return out
    if not size:
        raise TypeError('view() received an invalid combination of arguments - got (), but expected one of:\n * '
                        "(torch.dtype dtype)\n * (tuple of ints size)\n")
    try:
        shape = int_args(size, "view", "size")
    except TypeError:
        raise_refusal(refused("view", (self, *size)))
        raise
    return _viewed(self, shape)


def reshaped(input: Tensor, shape: Any) -> Tensor:
    """`reshape` with the shape as one argument."""
    return reshape(input, shape)


@views_by_code
def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The elements in another shape: a view where the strides permit it, else a copy.

    >>> import flambeau as torch
    >>> torch.reshape(torch.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    try:
        a = input._array
    except AttributeError as error:
        return with_other_object(error, reshape, (input, *shape), named)
    if named:
        shape = list_by_name("reshape", "shape", shape, named)
    elif shape and a.flags.c_contiguous and (1 not in a.shape or is_row_major(a)) and (
            not special[0] or beside_levels(input)):
        try:
            return _view(input, a.reshape(*shape), a.shape)
        except (ValueError, TypeError):
            pass  # the general path raises PyTorch's error
    if not shape:
        raise TypeError('reshape() missing 1 required positional arguments: "shape"')
    size = int_args(shape, "reshape", "shape")
    if a.__class__ is np.ndarray and not special[0]:
        view = reshaped_view(a, size)
        if view is not None:
            return (_view if a.flags.c_contiguous else _strided_view)(input, view, a.shape)
    else:
        try:
            key = "view" if a.flags.c_contiguous else "_reshape_alias"
            return apply(REGISTRY[key], [input], {"size": size})
        except RuntimeError as error:
            if "not compatible" not in str(error):
                raise
    copied = apply(REGISTRY["clone"], [input], {"memory_format": contiguous_format})
    return apply(REGISTRY["_unsafe_view"], [copied], {"size": infer_size(size, a.size)})


def reshape_to(input: Tensor, shape: Any = NOT_GIVEN) -> Tensor:
    """`torch.reshape`: the method takes sizes one by one, too.

    >>> import flambeau as torch
    >>> torch.reshape(torch.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    try:
        a = input._array
        if a.flags.c_contiguous and (1 not in a.shape or is_row_major(a)) and (
                not special[0] or beside_levels(input)):
            return _view(input, a.reshape(*shape), a.shape)
    except AttributeError as error:
        return with_other_object(error, reshape_to, (input, shape))
    except (ValueError, TypeError):
        pass  # the general path raises PyTorch's error
    if not isinstance(shape, (tuple, list)):
        raise_refusal(refused("reshape", (input,), (("shape", shape, NOT_GIVEN),)))
    try:
        return reshape(input, shape)
    except TypeError:
        raise_refusal(refused("reshape", (input,), (("shape", shape, NOT_GIVEN),)))
        raise


@views_by_code
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` merged into one.

    >>> import flambeau as torch
    >>> torch.flatten(torch.ones(2, 3, 5), 1).shape
    flambeau.Size([2, 15])
    """
    try:
        a = input._array
        shape = a.shape
    except AttributeError as error:
        return with_other_object(error, flatten, (input, start_dim, end_dim))
    n = len(shape)
    if start_dim.__class__ is int and 0 <= start_dim < n - 1 and end_dim == -1 and a.flags.c_contiguous and (
            1 not in shape) and a.size and not special[0] and end_dim.__class__ is int:
        return _view(input, a.reshape(*shape[:start_dim], -1), shape)
    return _flattened(input, start_dim, end_dim)


@known_views
def _flattened(input: Tensor, start_dim: int, end_dim: int) -> Tensor:
    shape = input._array.shape
    n = len(shape)
    try:
        first, last = wrap_dim(start_dim, n), wrap_dim(end_dim, n)
    except (TypeError, RuntimeError) as error:  # what is compared with the number of dimensions is no number
        raise refused("flatten", (input, start_dim, end_dim)) or error from None
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not n:
        return reshape(input, (1,))
    if first == last:
        return input
    merged = 1
    for s in shape[first: last + 1]:
        merged *= s
    return reshape(input, (*shape[:first], merged, *shape[last + 1:]))


@known_views
def _unflatten_method(self: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension split into several of the given sizes, one of which may be -1.

    >>> import flambeau as torch
    >>> torch.ones(6).unflatten(0, (2, -1)).shape
    flambeau.Size([2, 3])
    """
    if isinstance(sizes, int):
        raise TypeError("unflatten(): argument 'sizes' (position 2) must be tuple of ints, not int")
    try:
        return unflatten(self, dim, sizes)
    except TypeError:
        from ..argument_errors.messages import METHOD, explained

        raise_refusal(explained(METHOD, "unflatten", (dim, sizes), {}))
        raise


@known_views
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension split into several of the given sizes, one of which may be -1.

    >>> import flambeau as torch
    >>> torch.unflatten(torch.ones(6), 0, (2, -1)).shape
    flambeau.Size([2, 3])
    """
    shape = input._array.shape
    if isinstance(sizes, int):
        raise TypeError("unflatten(): argument 'sizes' (position 3) must be tuple of ints, not int")
    try:
        axis = wrap_dim(dim, len(shape))
    except TypeError:
        raise_refusal(refused("unflatten", (input, dim, sizes)))
        raise
    if not isinstance(sizes, Tensor) and not sizes and shape:
        raise RuntimeError("unflatten: sizes must be non-empty")
    sizes = as_ints(sizes, "unflatten", "sizes")
    if not shape:
        raise RuntimeError(f"unflatten got an unexpected error:\nDimension specified as {axis} but tensor has no "
                           "dimensions")
    try:
        full = infer_size(sizes, shape[axis])
    except RuntimeError as error:
        if "only one" in str(error) or "ambiguous" in str(error):
            raise
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {axis} "
                           f"({shape[axis]}) in the input tensor") from None
    return view(input, (*shape[:axis], *full, *shape[axis + 1:]))


def ravel(input: Tensor) -> Tensor:
    """The elements as a vector: a view where possible.

    >>> import flambeau as torch
    >>> torch.ravel(torch.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    return view(input.contiguous(), -1)


# ----- dimensions of size 1 --------------------------------------------------------------


def _unfit_dim(name: str, input: Tensor, dim: Any) -> Exception:
    """PyTorch's error for what is no dimension."""
    return refused(name, (input, dim)) or TypeError(
        f"{name}(): argument 'dim' must be int, not {type_name(dim)}")


def _squeezing(of_method: bool) -> Any:
    """`squeeze`: the method takes dimensions one by one, too."""
    def squeeze(input: Tensor, dim: Any = None, *others: Any, axis: Any = None) -> Tensor:
        try:
            a = input._array
        except AttributeError as error:
            return with_other_object(error, squeeze, (input, dim))
        if others:
            dim = _one_by_one(input, (dim, *others), axis, of_method)
        if special[0] and not beside_levels(input):
            dim = dim if axis is None else axis
            key = ("_squeeze_all" if dim is None else
                   "_squeeze_dims" if isinstance(dim, (tuple, list)) else "_squeeze_dim")
            return apply(REGISTRY[key], [input], {} if dim is None else {"dim": dim})
        if dim is None:
            if axis is not None:
                return squeeze(input, axis)
            return _squeeze_all(input, a.squeeze(), a.shape)
        if isinstance(dim, (tuple, list)):
            if dim and dim[0].__class__ is bool:
                raise _unfit_dim("squeeze", input, dim)
            axes = tuple(wrap_dim(d.__index__(), a.ndim) for d in dim)
            if len(set(axes)) != len(axes):
                twice = next(d for d in axes if axes.count(d) > 1)
                raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
            drop = tuple(d for d in axes if d < a.ndim and a.shape[d] == 1)
            return _squeeze_dims(input, a.squeeze(drop) if drop else a[...], a.shape, dim)
        if dim.__class__ is bool or not hasattr(dim, "__index__"):
            raise _unfit_dim("squeeze", input, dim)
        dim = dim.__index__()
        axis = wrap_dim(dim, a.ndim)
        return _squeeze_dim(input, a.squeeze(axis) if axis < a.ndim and a.shape[axis] == 1 else a[...], a.shape, dim)

    squeeze.__qualname__ = "squeeze"
    squeeze.__doc__ = """The tensor without its dimensions of size 1, or without those in `dim`.

    >>> import flambeau as torch
    >>> torch.squeeze(torch.ones(1, 2, 1), 0).shape
    flambeau.Size([2, 1])
    >>> torch.ones(1, 2, 1).squeeze(0, 2).shape
    flambeau.Size([2])
    """
    return squeeze


def _one_by_one(input: Tensor, dims: tuple[Any, ...], axis: Any, of_method: bool) -> tuple[Any, ...]:
    """Dimensions that were passed one by one, as a method may; PyTorch's error for others."""
    from ..argument_errors.messages import METHOD, explained

    named = {} if axis is None else {"axis": axis}
    error = explained(METHOD, "squeeze", dims, named) if of_method else explained(
        "torch", "squeeze", (input, *dims), named)
    if error is not None:
        raise error
    return dims


squeeze = _squeezing(of_method=False)


@views_by_code
def unsqueeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """The tensor with a new dimension of size 1 at `dim`.

    >>> import flambeau as torch
    >>> torch.unsqueeze(torch.ones(2), 1).shape
    flambeau.Size([2, 1])
    """
    try:
        a = input._array
    except AttributeError as error:
        return with_other_object(error, unsqueeze, (input, dim))
    n = a.ndim
    if dim.__class__ is not int or not -n - 1 <= dim <= n or (special[0] and not beside_levels(input)):
        dim = dim if axis is None else axis
        if dim is None:
            raise TypeError('unsqueeze() missing 1 required positional arguments: "dim"')
        if dim.__class__ is not int:
            raise_refusal(refused("unsqueeze", (input, dim)))
        return apply(REGISTRY["unsqueeze"], [input], {"dim": dim.__index__()})
    try:
        shape = a.shape
        at = dim + n + 1 if dim < 0 else dim
        if 1 not in shape and a.flags.c_contiguous:
            return _unsqueeze(input, a.reshape(*shape[:at], 1, *shape[at:]), shape, dim)
        return _unsqueeze(input, with_axis(a, at), shape, dim)
    except SparseAccess:
        return apply(REGISTRY["unsqueeze"], [input], {"dim": dim})


# ----- expansion -------------------------------------------------------------------------


@known_views
def expand(self: Tensor, *size: Any, implicit: bool = False, **named: Any) -> Tensor:
    """A view with dimensions of size 1 expanded to the given sizes; -1 keeps a size.

    >>> import flambeau as torch
    >>> torch.ones(2, 1).expand(-1, 3).shape
    flambeau.Size([2, 3])
    """
    if named:
        size = list_by_name("expand", "size", size, named)
    shape = int_args(size, "expand", "size")
    if special[0] and not beside_levels(self):
        return _expanded(self, size=shape)
    a = self._array
    try:
        return _expand(self, arrays.expand(a, shape), a.shape)
    except SparseAccess:
        return apply(REGISTRY["expand"], [self], {"size": shape})


METHODS = {
    "view": view, "reshape": reshape, "flatten": flatten, "unflatten": _unflatten_method, "ravel": ravel,
    "squeeze": _squeezing(of_method=True), "unsqueeze": unsqueeze, "expand": expand,
}
