"""Functions and properties that permute dimensions, with fast paths."""

from __future__ import annotations

from typing import Any

from ...backends.sparse_array import SparseAccess
from ...kernels.memory_format import layouts_seen, note_layout
from ...modes import special
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ...warning_location import warn_once
from ..argument_errors.guards import NOT_GIVEN, refused
from ..dispatch.apply import apply
from ..dispatch.public_functions import public_function
from ..fastpath.known_views import views_by_code
from ..fastpath.levels import beside_levels
from ..fastpath.views import view_function
from ..overriding.entry_points import another_function
from ..overriding.other_objects import with_other_object
from ..tensor import Tensor
from .reshaping import as_ints, int_args, list_by_name

__all__ = ["adjoint", "moveaxis", "movedim", "permute", "swapaxes", "swapdims", "t", "transpose"]

_transpose = view_function("transpose", "dim0", "dim1")
_t = view_function("t")
_permute = view_function("permute", "dims")
_INTS = frozenset((int,))
_transposed = public_function(REGISTRY["transpose"])
_permuted = public_function(REGISTRY["permute"])


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
        dims = list_by_name("permute", "dims", dims, named)
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
    order = int_args(dims, "permute", "dims")
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


METHODS = {
    "transpose": transpose, "swapaxes": transpose, "swapdims": transpose, "t": t, "permute": permute,
    "movedim": movedim, "moveaxis": movedim, "adjoint": adjoint, "T": property(_transposed_property),
    "mT": property(_matrix_transposed), "H": property(_hermitian), "mH": property(_matrix_hermitian),
}
