"""Reshaping, transposing and expanding functions, with fast paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import bits_of
from ...backends.numpy.views import is_row_major, reshaped_view, with_axis
from ...backends.sparse_array import SparseAccess
from ...devices import contiguous_format
from ...engine.tensor_interface import layer
from ...kernels.memory_format import layouts_seen, note_layout
from ...modes import active_tracers, dispatch_in_use, inference, special
from ...ops.declare import REGISTRY
from ...shapes import Size, infer_size, wrap_dim
from ...warning_location import warn_once
from ..argument_errors.guards import NOT_GIVEN, raise_refusal, refused
from ..argument_errors.type_names import check_tensors, type_name
from ..dispatch.apply import apply
from ..dispatch.array_kernels import arrays, kernel_of
from ..dispatch.interception import notify_operator
from ..dispatch.public_functions import public_function
from ..fastpath.known_views import known_views, views_by_code
from ..fastpath.levels import beside_levels
from ..fastpath.views import view_function
from ..overriding.dispatch import is_on_accelerator
from ..overriding.entry_points import another_function
from ..overriding.other_objects import with_other_object
from ..tensor import INFERENCE, Tensor, wrap

__all__ = ["adjoint", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors",
           "broadcast_to", "flatten", "moveaxis", "movedim", "permute", "ravel", "reshape", "reshaped",
           "squeeze", "sum_to_size", "swapaxes", "swapdims", "t", "transpose", "unflatten", "unsqueeze"]

_view = view_function("view", "input_shape")
_strided_view = view_function("_reshape_alias", "input_shape")
_transpose = view_function("transpose", "dim0", "dim1")
_t = view_function("t")
_permute = view_function("permute", "dims")
_expand = view_function("expand", "input_shape")
_unsqueeze = view_function("unsqueeze", "input_shape", "dim")
_squeeze_all = view_function("_squeeze_all", "input_shape")
_squeeze_dim = view_function("_squeeze_dim", "input_shape", "dim")
_squeeze_dims = view_function("_squeeze_dims", "input_shape", "dim")
_INTS = frozenset((int,))
_viewed = public_function(REGISTRY["view"])
_transposed = public_function(REGISTRY["transpose"])
_permuted = public_function(REGISTRY["permute"])
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


def _list_by_name(function: str, argument: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The list of ints that a method takes by name, as its only argument by position would be.

    Raises:
        TypeError: it is missing, no list, or not the only argument.
    """
    if len(named) == 1 and not args and isinstance(named.get(argument), (tuple, list)):
        return (named[argument],)
    from ..argument_errors.messages import METHOD, explained

    raise explained(METHOD, function, args, named) or TypeError(
        f"{function}(): argument '{argument}' must be tuple of ints")


def _int_args(args: tuple[Any, ...], name: str, argument: str) -> tuple[int, ...]:
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
        size = (named["dtype"],) if "dtype" in named else _list_by_name("view", "size", size, named)
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
        shape = _int_args(size, "view", "size")
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
        shape = _list_by_name("reshape", "shape", shape, named)
    elif shape and a.flags.c_contiguous and (1 not in a.shape or is_row_major(a)) and (
            not special[0] or beside_levels(input)):
        try:
            return _view(input, a.reshape(*shape), a.shape)
        except (ValueError, TypeError):
            pass  # the general path raises PyTorch's error
    if not shape:
        raise TypeError('reshape() missing 1 required positional arguments: "shape"')
    size = _int_args(shape, "reshape", "shape")
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
    if not isinstance(sizes, Tensor) and not sizes and shape:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        axis = wrap_dim(dim, len(shape))
    except TypeError:
        raise_refusal(refused("unflatten", (input, dim, sizes)))
        raise
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


# ----- order of dimensions ---------------------------------------------------------------


@views_by_code
def transpose(input: Tensor, dim0: Any = None, dim1: Any = None, **named: Any) -> Tensor:
    """The tensor with two dimensions swapped, a view.

    >>> import flambeau as torch
    >>> torch.transpose(torch.ones(2, 3), 0, 1).shape
    flambeau.Size([3, 2])
    """
    if named:
        dim0 = named.pop("axis0", dim0)
        dim1 = named.pop("axis1", dim1)
    if dim0.__class__ is int and dim1.__class__ is int and not named and (not special[0] or beside_levels(input)):
        try:
            a = input._array
        except AttributeError as error:
            return with_other_object(error, transpose, (input, dim0, dim1))
        n = a.ndim
        if -n <= dim0 < n and -n <= dim1 < n:
            try:
                view = a.swapaxes(dim0, dim1)
                if layouts_seen[0] < 2 and (view.flags.c_contiguous or not layouts_seen[0]):
                    note_layout(view)
                return _transpose(input, view, dim0, dim1)
            except SparseAccess:
                pass  # the general path dispatches to the sparse implementation
    return _transposed(input, *[d for d in (dim0, dim1) if d is not None], **named)


swapaxes = another_function(transpose, "swapaxes", "swapaxes")
swapdims = another_function(transpose, "swapdims", "swapdims")


@views_by_code
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix, a view; a vector unchanged.

    >>> import flambeau as torch
    >>> torch.t(torch.ones(2, 3)).shape
    flambeau.Size([3, 2])
    """
    try:
        a = input._array
    except AttributeError as error:
        return with_other_object(error, t, (input,))
    if a.ndim > 2 or (special[0] and not beside_levels(input)):
        return apply(REGISTRY["t"], [input])
    try:
        view = a.T
        if layouts_seen[0] < 2 and (view.flags.c_contiguous or not layouts_seen[0]):
            note_layout(view)
        return _t(input, view)
    except SparseAccess:
        return apply(REGISTRY["t"], [input])


@views_by_code
def permute(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """The tensor with its dimensions in another order, a view.

    >>> import flambeau as torch
    >>> torch.permute(torch.ones(2, 3, 5), (2, 0, 1)).shape
    flambeau.Size([5, 2, 3])
    """
    if named:
        dims = _list_by_name("permute", "dims", dims, named)
    elif not dims:
        raise TypeError('permute() missing 1 required positional arguments: "dims"')
    elif len(dims) > 1 and not special[0] and _INTS.issuperset(map(type, dims)):
        try:
            view = input._array.transpose(dims)
            if layouts_seen[0] < 2 and (view.flags.c_contiguous or not layouts_seen[0]):
                note_layout(view)
            return _permute(input, view, dims)
        except (ValueError, SparseAccess, AttributeError):
            pass  # the general path raises PyTorch's error
    order = _int_args(dims, "permute", "dims")
    if not special[0] or beside_levels(input):
        try:
            view = input._array.transpose(order)
            if layouts_seen[0] < 2 and (view.flags.c_contiguous or not layouts_seen[0]):
                note_layout(view)
            return _permute(input, view, order)
        except (ValueError, SparseAccess):
            pass  # the general path raises PyTorch's error, or dispatches to the sparse implementation
        except AttributeError as error:
            return with_other_object(error, permute, (input, *dims))
    return _permuted(input, order)


def permute_to(input: Tensor, dims: Any = NOT_GIVEN) -> Tensor:
    """`torch.permute`: the method takes dimensions one by one, too.

    >>> import flambeau as torch
    >>> torch.permute(torch.ones(2, 3, 5), (2, 0, 1)).shape
    flambeau.Size([5, 2, 3])
    """
    try:
        order = as_ints(dims, "permute", "dims")
    except TypeError as error:
        raise refused("permute", (input, dims)) or error from None
    if not special[0] or beside_levels(input):
        try:
            view = input._array.transpose(order)
            if layouts_seen[0] < 2 and (view.flags.c_contiguous or not layouts_seen[0]):
                note_layout(view)
            return _permute(input, view, order)
        except (ValueError, SparseAccess):
            pass  # the general path raises PyTorch's error, or dispatches to the sparse implementation
        except AttributeError as error:
            return with_other_object(error, permute_to, (input, dims))
    return _permuted(input, order)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """The tensor with dimensions moved to other positions; the others keep their order.

    >>> import flambeau as torch
    >>> torch.movedim(torch.ones(2, 3, 5), 0, 2).shape
    flambeau.Size([3, 5, 2])
    """
    if isinstance(source, int) != isinstance(destination, int):
        raise TypeError("movedim(): source and destination must both be int, or both tuples")  # a guard says more
    sources = (source,) if isinstance(source, int) else tuple(source)
    targets = (destination,) if isinstance(destination, int) else tuple(destination)
    n = input._array.ndim
    if len(sources) != len(targets):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should "
                           f"contain the same number of dims as destination ({list(targets)} dims)")
    sources, targets = tuple(wrap_dim(d, n) for d in sources), tuple(wrap_dim(d, n) for d in targets)
    for name, dims, argument in (("source", sources, source), ("destination", targets, destination)):
        if len(set(dims)) != len(dims):
            shown = [argument] if isinstance(argument, int) else list(argument)
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({shown})")
    if not n:
        return apply(REGISTRY["_alias"], [input])
    order = [d for d in range(n) if d not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return permute(input, order)


moveaxis = movedim


_IDENTITY = "This function is the identity in these cases."
_CONJUGATE = "Consider using x.conj()."


def _warn_of_no_dimensions(what: str, advice: str) -> None:
    """Warn, once in a process, of a transposition of a tensor without dimensions."""
    warn_once(f"{what} is deprecated on 0-D tensors. {advice}")


def _adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose; of a tensor without dimensions, its conjugate."""
    from ..pointwise.complex import conj

    transposed = transpose(input, -2, -1) if input._array.ndim else input
    return conj(transposed)


def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions.

    >>> import flambeau as torch
    >>> torch.adjoint(torch.ones(2, 3)).shape
    flambeau.Size([3, 2])
    """
    if not input._array.ndim:
        _warn_of_no_dimensions("adjoint()", _CONJUGATE)
    elif input._array.ndim < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got "
                           f"{input._array.ndim}-D tensor.")
    return _adjoint(input)


def _transposed_property(self: Tensor) -> Tensor:
    """The tensor with its dimensions reversed.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).T.shape
    flambeau.Size([3, 2])
    """
    n = self._array.ndim
    if not n:
        _warn_of_no_dimensions("Tensor.T", _IDENTITY)
    elif n != 2:
        warn_once("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and "
                  "it will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
                  "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.")
    order = (1, 0) if n == 2 else tuple(range(n - 1, -1, -1))
    try:
        if special[0]:
            return permute(self, order)
        view = self._array.T
        if layouts_seen[0] < 2 and (view.flags.c_contiguous or not layouts_seen[0]):
            note_layout(view)
        return _permute(self, view, order)
    except SparseAccess:
        return permute(self, order)


def _matrix_transposed(self: Tensor) -> Tensor:
    """The tensor with its last two dimensions swapped.

    >>> import flambeau as torch
    >>> torch.ones(2, 3, 5).mT.shape
    flambeau.Size([2, 5, 3])
    """
    if not self._array.ndim:
        _warn_of_no_dimensions("Tensor.mT", _IDENTITY)
        return self
    if self._array.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self._array.ndim}-D "
                           "tensor.")
    return transpose(self, -2, -1)


def _hermitian(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix.

    >>> import flambeau as torch
    >>> torch.tensor([[1j, 2]]).H
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    if self._array.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self._array.ndim}-D tensor."
                           + (" For batches of matrices, consider using tensor.mH" if self._array.ndim > 2 else ""))
    if not self._array.ndim:
        _warn_of_no_dimensions("Tensor.H", _CONJUGATE)
    return _adjoint(self)


def _matrix_hermitian(self: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions.

    >>> import flambeau as torch
    >>> torch.ones(2, 3, 5).mH.shape
    flambeau.Size([2, 5, 3])
    """
    if self._array.ndim == 1:
        raise RuntimeError(f"tensor.mH is only supported on matrices or batches of matrices. Got {self._array.ndim}-D "
                           "tensor.")
    if not self._array.ndim:
        _warn_of_no_dimensions("Tensor.mH", _CONJUGATE)
    return _adjoint(self)


# ----- expansion -------------------------------------------------------------------------


@known_views
def expand(self: Tensor, *size: Any, implicit: bool = False, **named: Any) -> Tensor:
    """A view with dimensions of size 1 expanded to the given sizes; -1 keeps a size.

    >>> import flambeau as torch
    >>> torch.ones(2, 1).expand(-1, 3).shape
    flambeau.Size([2, 3])
    """
    if named:
        size = _list_by_name("expand", "size", size, named)
    shape = _int_args(size, "expand", "size")
    if special[0] and not beside_levels(self):
        return _expanded(self, size=shape)
    a = self._array
    try:
        return _expand(self, arrays.expand(a, shape), a.shape)
    except SparseAccess:
        return apply(REGISTRY["expand"], [self], {"size": shape})


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`expand` to a shape.

    >>> import flambeau as torch
    >>> torch.broadcast_to(torch.ones(1), (2, 3)).shape
    flambeau.Size([2, 3])
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError("broadcast_to(): argument 'size' must be tuple of ints")  # a guard says more
    return expand(input, size)


def _broadcast_to(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """`torch.broadcast_to`: the method takes sizes one by one, too.

    >>> import flambeau as torch
    >>> torch.ones(1).broadcast_to(2, 3).shape
    flambeau.Size([2, 3])
    """
    return expand(self, *(_list_by_name("broadcast_to", "size", size, named) if named else size))


_broadcast_to.__name__ = _broadcast_to.__qualname__ = "broadcast_to"


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to.

    >>> import flambeau as torch
    >>> torch.broadcast_shapes((2, 1), (3,))
    flambeau.Size([2, 3])

    Raises:
        RuntimeError: two sizes differ and neither is 1.
    """
    sizes = [(s,) if isinstance(s, int) else s for s in shapes]
    n = max((len(s) for s in sizes), default=0)
    result = [1] * n
    for number, shape in enumerate(sizes):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] in (1, result[i]):
                continue
            if result[i] != 1:
                raise RuntimeError(f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching "
                                   f"argument at index {number} had {shape}; but expected shape should be "
                                   f"broadcastable to {result}")
            if shape[i] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            result[i] = shape[i]
    return Size(result)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, expanded to their common shape.

    >>> import flambeau as torch
    >>> [x.shape for x in torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))]
    [flambeau.Size([2, 3]), flambeau.Size([2, 3])]
    """
    check_tensors(tensors)
    from ...shapes import broadcast_shapes as broadcast_two

    shape: tuple[int, ...] = ()
    for x in tensors:
        shape = broadcast_two(shape, x._array.shape)
    return tuple(x if x._array.shape == shape else expand(x, shape) for x in tensors)


def sum_to_size(input: Tensor, *size: Any, **named: Any) -> Tensor:
    """`input` summed over dimensions to the shape `size`, which must broadcast to that of `input`.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    if named:
        size = _list_by_name("sum_to_size", "size", size, named)
    shape = _int_args(size, "sum_to_size", "size")
    have = input._array.shape
    if not shape:
        return apply(REGISTRY["_sum_all"], [input])
    if have == shape:
        return input
    lead = len(have) - len(shape)
    if lead < 0 or any(s not in (1, have[i + lead]) for i, s in enumerate(shape)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(have)}}}.")
    axes = tuple(range(lead)) + tuple(i + lead for i, s in enumerate(shape) if s == 1 and have[i + lead] != 1)
    summed = apply(REGISTRY["sum"], [input], {"dim": axes, "keepdim": True}) if axes else input
    return view(summed, shape) if lead else summed


# ----- added dimensions -------------------------------------------------------------------


def _at_least(n: int) -> Any:
    def add_dims(x: Tensor) -> Tensor:
        have = x._array.ndim
        if have >= n:
            return x
        if n == 3 and have:
            return unsqueeze(unsqueeze(x, 0), -1) if have == 1 else unsqueeze(x, -1)
        return reshape(x, (1,) * n) if not have else unsqueeze(x, 0)

    def call(*tensors: Any) -> Any:
        given = tensors[0] if len(tensors) == 1 else tensors
        if isinstance(given, Tensor):
            return add_dims(given)
        if not isinstance(given, (tuple, list)):
            raise_refusal(refused(f"atleast_{n}d", tensors))
        for i, x in enumerate(given):
            if not isinstance(x, Tensor):
                raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type_name(x)}")
        return tuple(map(add_dims, given))

    call.__name__ = call.__qualname__ = f"atleast_{n}d"
    call.__doc__ = f"""The tensors, with at least {n} dimension{'s' if n > 1 else ''} each, as a tensor or a tuple.

    >>> import flambeau as torch
    >>> torch.atleast_{n}d(torch.tensor(2)).shape
    flambeau.Size({[1] * n})
    """
    return call


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


METHODS = {
    "sum_to_size": sum_to_size, "view": view, "reshape": reshape, "flatten": flatten, "unflatten": _unflatten_method,
    "ravel": ravel, "squeeze": _squeezing(of_method=True), "unsqueeze": unsqueeze, "transpose": transpose,
    "swapaxes": transpose,
    "swapdims": transpose, "t": t, "permute": permute, "movedim": movedim, "moveaxis": movedim,
    "adjoint": adjoint, "expand": expand, "broadcast_to": _broadcast_to, "T": property(_transposed_property),
    "mT": property(_matrix_transposed), "H": property(_hermitian), "mH": property(_matrix_hermitian),
}
