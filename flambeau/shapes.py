"""Shapes: `Size`, broadcasting, dimension indices and strides, as tuples of ints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

from . import config


class Size(tuple):
    """A tensor's shape: a tuple of ints that prints as `torch.Size([...])`.

    >>> import flambeau as torch
    >>> torch.zeros(2, 3).shape
    flambeau.Size([2, 3])
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[SupportsIndex] = (), /) -> Size:
        return tuple.__new__(cls, [_dimension(s, i) for i, s in enumerate(iterable)])

    def __repr__(self) -> str:
        return f"{config.module_name}.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        if isinstance(other, tuple):
            return Size(tuple.__add__(self, other))
        added = getattr(type(other), "__radd__", lambda *args: NotImplemented)(other, self)
        if added is NotImplemented:
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return added

    def __radd__(self, other: Any) -> Any:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        n = 1
        for s in self:
            n *= s
        return n


def _dimension(size: Any, position: int) -> int:
    try:
        return size.__index__()
    except (AttributeError, TypeError):
        if type(size).__name__ == "SymInt":  # the size of a ragged dimension
            return size
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is "
                        f"'{type(size).__name__}')") from None


def as_size(shape: Sequence[int]) -> Size:
    """A `Size` of a sequence of ints, without checks."""
    return tuple.__new__(Size, shape)


def broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The shape that `a` and `b` broadcast to.

    Raises:
        RuntimeError: two sizes differ and neither is 1 (PyTorch's text).
    """
    if len(a) < len(b):
        longer, shorter = list(b), a
    else:
        longer, shorter = list(a), b
    offset = len(longer) - len(shorter)
    for i in range(len(shorter) - 1, -1, -1):  # the error names the last mismatch
        s = shorter[i]
        axis = offset + i
        t = longer[axis]
        if s == t or s == 1:
            continue
        if t != 1:
            x = a[axis - len(longer) + len(a)]
            y = b[axis - len(longer) + len(b)]
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at "
                               f"non-singleton dimension {axis}")
        longer[axis] = s
    return tuple(longer)


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` as a non-negative index; a 0-d tensor counts as 1-d.

    Raises:
        IndexError: out of range (PyTorch's text).
        ValueError: an integer of more than 64 bits.
        TypeError: `dim` is a bool.
    """
    if dim.__class__ is bool:
        raise TypeError("a dimension must be int, not bool")
    if 0 <= dim < ndim:
        return dim
    n = ndim or 1
    if not -n <= dim < n:
        if not -(2**63) <= dim < 2**63:
            raise ValueError("Overflow when unpacking long long")
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


class AllDims(tuple[int, ...]):
    """The dimensions of a batched operand that `dim=None` stands for: its derivative may be another than theirs."""

    __slots__ = ()


def wrap_dims(dims: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Dimensions of a reduction, non-negative: all for None or an empty sequence.

    Raises:
        IndexError: out of range.
        RuntimeError: a repeated dimension.
        TypeError: the first is a bool.
    """
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        dims = (dims,)
    if dims and dims[0].__class__ is bool:  # PyTorch looks at the first element only
        raise TypeError("a dimension must be int, not bool")
    wrapped = tuple([wrap_dim(int(d), ndim) for d in dims])
    if len(set(wrapped)) != len(wrapped):
        repeated = next(d for d in wrapped if wrapped.count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    if not wrapped:
        return tuple(range(ndim))
    return wrapped if ndim else ()


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """`shape` with -1 replaced by the inferred size.

    Raises:
        RuntimeError: the shape does not have `numel` elements (PyTorch's text).
    """
    known, unknown = 1, None
    for i, s in enumerate(shape):
        if s == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = i
        elif s < 0:
            raise RuntimeError(f"invalid shape dimension {s} at index {i} of shape {list(shape)}")
        else:
            known *= s
    sizes = tuple(shape)
    if unknown is None:
        if known == numel:
            return sizes
    elif known > 0 and numel % known == 0:
        return (*sizes[:unknown], numel // known, *sizes[unknown + 1:])
    elif known == 0 and numel == 0:
        raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
                           "unspecified dimension size -1 can be any value and is ambiguous")
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def are_vectors(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether a right-hand side of shape `b` is a batch of vectors for matrices of shape `a` (`linalg.solve`)."""
    return len(b) == 1 or (len(a) - 1 == len(b) and tuple(b) == tuple(a[:-1]))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous tensor."""
    strides, step = [], 1
    for s in reversed(shape):
        strides.append(step)
        step *= max(s, 1)
    return tuple(reversed(strides))
