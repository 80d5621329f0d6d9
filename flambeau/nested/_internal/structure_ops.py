"""Functions of nested tensors that act on their structure: views, indices, padding, joins."""

from __future__ import annotations

from math import prod
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...engine.engine import current_graph_task_id
from .nested_int import NestedInt
from .nested_tensor import NestedTensor, Structure, contiguous_structure, named, nested_of, values_of


def is_nested(x: Any) -> bool:
    """Whether a value is a nested tensor."""
    return isinstance(x, NestedTensor)


def checked(x: Any, signature: str, argument: str, contiguous: bool = True) -> None:
    """Check that an argument is a nested tensor, with its ragged dimension after the batch and without holes.

    Raises:
        ValueError: it is not.
    """
    kind = "contiguous jagged layout" if contiguous else "jagged layout"
    if not is_nested(x) or (contiguous and not is_plain(x)):
        raise ValueError(f"NestedTensor {signature}: expected {argument} to be a {kind} NestedTensor")


def is_plain(x: NestedTensor) -> bool:
    """Whether the ragged dimension is the first after the batch, and there are no holes."""
    return x._structure.lengths is None and x._structure.ragged_idx == 1


def wrapped(dim: int, n: int) -> int:
    """A dimension, counted from the front.

    Raises:
        IndexError: there is no such dimension.
    """
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def inner_dim(x: NestedTensor, dim: int, name: str, allow_ragged: bool = False) -> int:
    """A dimension of a nested tensor as one of its values.

    Raises:
        RuntimeError: it is the batch, or ragged where that is not allowed.
    """
    d = wrapped(dim, len(x.shape))
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if d == x._structure.ragged_idx and not allow_ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return d - 1


# ----- rows and padding -------------------------------------------------------------------------


def rows(x: NestedTensor) -> Tensor:
    """The values with the ragged dimension first, and without holes: (sum of sizes, ...)."""
    structure = x._structure
    values = values_of(x)
    if structure.ragged_idx != 1:
        values = values.movedim(structure.ragged_idx - 1, 0)
    return values if structure.lengths is None else values.index_select(0, structure.gather[1])


def of_rows(values: Tensor, structure: Structure, node: str) -> NestedTensor:
    """A nested tensor of values with the ragged dimension first."""
    ragged = structure.ragged_idx
    return nested_of(values if ragged == 1 else values.movedim(0, ragged - 1), structure, node)


def positions(structure: Structure, size: int) -> Tensor:
    """The place of each row in a batch that is padded to `size`, flattened: (sum of sizes,)."""
    component, place = structure.gather
    begins = structure.offsets[:-1].index_select(0, component)
    result: Tensor = component * size + (place - begins)
    return result


def padded(x: NestedTensor, value: float, size: int | None = None) -> Tensor:
    """The components, padded to the longest, or padded or cut to `size`; the ragged dimension after the batch."""
    structure = x._structure
    values = rows(x)
    longest = max(x._structure.sizes, default=0)
    size = longest if size is None else size
    place = positions(structure, size)
    if size < longest:
        component, at = structure.gather
        kept = ((at - structure.offsets[:-1].index_select(0, component)) < size).nonzero().flatten()
        values, place = values.index_select(0, kept), place.index_select(0, kept)
    shape = (structure.batch * size, *values.shape[1:])
    out = fn.full(shape, value, dtype=values.dtype)
    result: Tensor = out.index_copy(0, place, values).reshape(structure.batch, size, *values.shape[1:])
    return result


def unpadded(x: Tensor, structure: Structure) -> Tensor:
    """The rows of the components of a padded batch."""
    result: Tensor = x.flatten(0, 1).index_select(0, positions(structure, x.shape[1]))
    return result


def to_padded_tensor(x: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """The components, padded to the longest, or in the ragged dimension to that of `output_size`."""
    if x._structure.lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    ragged = x._structure.ragged_idx
    out = padded(x, padding, None if output_size is None else output_size[ragged])
    return named(out if ragged == 1 else out.movedim(1, ragged), "ToPaddedTensorBackward0")


# ----- views ------------------------------------------------------------------------------------


def unsqueeze(x: NestedTensor, dim: int) -> NestedTensor:
    structure = x._structure
    d = wrapped(dim, len(x.shape) + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    ragged = structure.ragged_idx + (d <= structure.ragged_idx)
    return nested_of(values_of(x).unsqueeze(d - 1), structure.at(ragged), "UnsqueezeBackward0")


def squeeze(x: NestedTensor, dim: Any = None) -> Any:
    if dim is None or isinstance(dim, (tuple, list)):
        raise NotImplementedError(f"aten.squeeze.{'default' if dim is None else 'dims'}")
    d = inner_dim(x, dim, "squeeze")
    structure = x._structure
    removed = x._values.shape[d] == 1
    ragged = structure.ragged_idx - (removed and d + 1 < structure.ragged_idx)
    return nested_of(values_of(x).squeeze(d), structure.at(ragged), "SqueezeBackwardAutogradNestedTensor0")


def transpose(x: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    a, b = (wrapped(d, len(x.shape)) for d in (dim0, dim1))
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = x._structure.ragged_idx
    ragged = b if ragged == a else a if ragged == b else ragged
    return nested_of(values_of(x).transpose(a - 1, b - 1), x._structure.at(ragged), "TransposeBackward0")


def permute(x: NestedTensor, *dims: Any) -> NestedTensor:
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = tuple(dims[0])
    if len(dims) != len(x.shape):
        raise ValueError(f"permute(): number of dimensions in the tensor input ({len(x.shape)}) does not match the "
                         f"length of the desired ordering of dimensions ({len(dims)}).")
    order = [wrapped(d, len(x.shape)) for d in dims]
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    ragged = order.index(x._structure.ragged_idx)
    return nested_of(values_of(x).permute([d - 1 for d in order[1:]]), x._structure.at(ragged), "PermuteBackward0")


_VIEW = "ViewBackwardAutogradNestedTensor0"


def view(x: NestedTensor, *size: Any) -> NestedTensor:
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    structure = x._structure
    shown = f"view(): cannot view shape {_shown(x)} as {list(size)}"
    ragged = structure.ragged_idx
    if ragged != 1 and size != tuple(x.shape):
        raise RuntimeError(f"view(): does not support ragged_idx != 1 except when inp._size == size. inp._size is "
                           f"({_shown(x)}) and size is ({list(size)}).")
    if len(size) < 2 or (len(size) < 3 and len(x.shape) >= 3) or size[0] not in (structure.batch, -1) or not (
            size[ragged] == structure.ragged_size or (isinstance(size[ragged], int) and size[ragged] == -1)):
        raise RuntimeError(shown)
    sizes = list(size[1:])
    sizes[ragged - 1] = x._values.shape[ragged - 1]
    rest = [s for s in sizes if s != -1]
    if -1 not in sizes and prod(rest) != x._values.numel():
        raise RuntimeError(shown)
    return nested_of(values_of(x).reshape(sizes), structure, _VIEW)


def _shown(x: NestedTensor) -> str:
    return f"({', '.join(map(str, x.shape))}{',' if len(x.shape) == 1 else ''})"


def flatten(x: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    start, end = (wrapped(d, len(x.shape)) for d in (start_dim, end_dim))
    structure = x._structure
    if start == end:
        return x
    if start == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if start <= structure.ragged_idx <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    ragged = structure.ragged_idx - (end - start if end < structure.ragged_idx else 0)
    return nested_of(values_of(x).flatten(start - 1, end - 1), structure.at(ragged), _VIEW)


def unflatten(x: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    d = inner_dim(x, dim, "unflatten")
    structure = x._structure
    ragged = structure.ragged_idx + (len(sizes) - 1 if d + 1 < structure.ragged_idx else 0)
    return nested_of(values_of(x).unflatten(d, sizes), structure.at(ragged), _VIEW)


def expand(x: NestedTensor, *size: Any, implicit: bool = False) -> NestedTensor:
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    structure = x._structure
    ragged = structure.ragged_idx
    n = len(x.shape)
    fits = len(size) == n and size[0] in (structure.batch, -1) and (
        size[ragged] == structure.ragged_size if isinstance(size[ragged], NestedInt) else size[ragged] == -1
        or (size[ragged] == x._array.shape[ragged] and current_graph_task_id() >= 0))  # a derivative has that size
    if not fits:
        raise RuntimeError(f"expand(): cannot expand shape {_shown(x)} -> {list(size)}")
    sizes = [-1 if d == ragged else s for d, s in enumerate(size)][1:]
    return nested_of(values_of(x).expand(sizes), structure, "ExpandBackward0")


def expand_as(x: Any, other: Any) -> Any:
    if not is_nested(x):
        raise RuntimeError("SymIntArrayRef expected to contain only concrete integers")
    return expand(x, *other.shape)


def contiguous(x: NestedTensor, memory_format: Any = None) -> NestedTensor:
    return x if x.is_contiguous() else clone(x, contiguous_memory=True)


def clone(x: NestedTensor, *, memory_format: Any = None, contiguous_memory: bool = False) -> NestedTensor:
    from ...devices import contiguous_format

    structure = x._structure
    if contiguous_memory or memory_format is contiguous_format:
        if structure.lengths is not None:
            packed = contiguous_structure(structure.sizes, structure.ragged_idx)
            return of_rows(rows(x).contiguous(), packed, "CloneBackward0")
        return nested_of(values_of(x).clone(memory_format=contiguous_format), structure, "CloneBackward0")
    return nested_of(values_of(x).clone(), structure, "CloneBackward0")


# ----- indices ----------------------------------------------------------------------------------


def _component(x: NestedTensor, i: int) -> Tensor:
    """A component, a view of the values."""
    structure = x._structure
    part: Tensor = values_of(x).narrow(structure.ragged_idx - 1, structure.begins[i], structure.sizes[i])
    return part


def unbind(x: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    if dim != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(named(_component(x, i), "UnbindBackwardAutogradNestedTensor0") for i in range(x._structure.batch))


_SELECT = "SelectBackwardAutogradNestedTensor0"


def select(x: NestedTensor, dim: int, index: int) -> Any:
    d = wrapped(dim, len(x.shape))
    structure = x._structure
    if d == 0:
        if not -structure.batch <= index < structure.batch:
            raise IndexError("tuple index out of range")
        return named(_component(x, index % structure.batch), _SELECT)
    inner = inner_dim(x, dim, "select")
    ragged = structure.ragged_idx - (d < structure.ragged_idx)
    return nested_of(values_of(x).select(inner, index), structure.at(ragged), _SELECT)


def slice_(x: NestedTensor, dim: int, at: slice, node: str = "SliceBackward0") -> NestedTensor:
    d = inner_dim(x, dim, "slice")
    values = values_of(x)[(slice(None),) * d + (at,)]
    return nested_of(values, x._structure, node)


def narrow(x: NestedTensor, dim: int, start: int, length: int) -> NestedTensor:
    d = inner_dim(x, dim, "narrow")
    return nested_of(values_of(x).narrow(d, start, length), x._structure, "NarrowBackwardAutogradNestedTensor0")


def getitem(x: NestedTensor, index: Any) -> Any:
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(i, (Tensor, list)) for i in items):
        raise NotImplementedError("aten.index.Tensor")
    taken = sum(i is not None and i is not Ellipsis for i in items)
    result: Any = x
    dim = 0
    for position, item in enumerate(items):
        if item is Ellipsis:
            dim += len(x.shape) - taken
        elif not is_nested(result):  # the rest of the index is of a component
            return result[tuple(items[position:])]
        elif item is None:
            result, dim = unsqueeze(result, dim), dim + 1
        elif isinstance(item, slice):
            result, dim = slice_(result, dim, item), dim + 1
        else:
            result = select(result, dim, int(item))
    return result


def split(x: NestedTensor, split_size_or_sections: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    sizes = split_size_or_sections
    if isinstance(sizes, int):
        d, node = inner_dim(x, dim, "split"), "SplitBackward0"
    else:
        d, node = inner_dim(x, dim, "split_with_sizes"), "SplitWithSizesBackwardAutogradNestedTensor0"
    return tuple(nested_of(part, x._structure, node) for part in values_of(x).split(sizes, d))


_CHUNK = "ChunkBackwardAutogradNestedTensor0"


def chunk(x: NestedTensor, chunks: int, dim: int = 0) -> tuple[NestedTensor, ...]:
    checked(x, "chunk_default(self: jt, chunks: any, dim: any?)", "self")
    if wrapped(dim, len(x.shape)) != 0:
        d = inner_dim(x, dim, "chunk")
        return tuple(nested_of(part, x._structure, _CHUNK) for part in values_of(x).chunk(chunks, d))
    structure = x._structure
    step = -(-structure.batch // chunks)
    parts = []
    ends = [*structure.begins, int(structure.offsets._array[-1])]
    for first in range(0, structure.batch, step):
        last = min(first + step, structure.batch)
        part = values_of(x)[ends[first]:ends[last]]
        parts.append(nested_of(part, contiguous_structure(structure.sizes[first:last]), _CHUNK))
    return tuple(parts)


def _joined(tensors: Any, what: str) -> tuple[list[Any], NestedTensor]:
    first = next(x for x in tensors if is_nested(x))
    for x in tensors:
        if is_nested(x) and not x._structure.same(first._structure):
            raise RuntimeError(f"{what}(): expected all tensors to have the same structure")
    return [x if is_nested(x) else nested_like(x, first) for x in tensors], first


def nested_like(x: Tensor, like: NestedTensor) -> NestedTensor:
    """A dense tensor that broadcasts against a nested one, as a nested tensor of the same components."""
    structure = like._structure
    return nested_of(dense_values(x, like), structure, "ExpandBackward0")


def dense_values(x: Tensor, like: NestedTensor) -> Tensor:
    """The values of `nested_like`: for each row of `like`, what a dense tensor has there.

    Raises:
        RuntimeError: the tensor does not broadcast.
    """
    structure = like._structure
    n, ragged = len(like.shape), structure.ragged_idx
    if x.dim() > n:
        raise NotImplementedError("NYI: broadcasting NT with T with larger dim")
    smaller = x.dim() < n
    if smaller:
        x = x[(None,) * (n - x.dim())]
    if x.shape[0] not in (1, structure.batch) or (smaller and x.shape[ragged] != 1):
        raise ValueError
    moved = x.movedim(ragged, 1)
    component, place = structure.gather
    if moved.shape[1] == 1:
        values = moved.squeeze(1).expand(structure.batch, *moved.shape[2:]).index_select(0, component)
    else:
        longest = max(like._structure.sizes, default=0)
        moved = moved.expand(structure.batch, longest, *moved.shape[2:])
        values = unpadded(moved, structure)
    if structure.lengths is not None:  # holes have the values of the first component
        total = like._values.shape[ragged - 1]
        values = fn.zeros((total, *values.shape[1:]), dtype=values.dtype).index_copy(0, place, values)
    return values if ragged == 1 else values.movedim(0, ragged - 1)


def cat(tensors: Any, dim: int = 0) -> NestedTensor:
    parts, first = _joined(tensors, "cat")
    d = inner_dim(first, dim, "cat")
    return nested_of(fn.cat([values_of(x) for x in parts], d), first._structure, "CatBackward0")


def stack(tensors: Any, dim: int = 0) -> NestedTensor:
    parts, first = _joined(tensors, "stack")
    d = wrapped(dim, len(first.shape) + 1)
    structure = first._structure
    if d == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    if d <= structure.ragged_idx:
        structure = structure.at(structure.ragged_idx + 1)
    return nested_of(fn.stack([values_of(x) for x in parts], d - 1), structure, "StackBackward0")


def index_put(x: NestedTensor, indices: Any, values: Tensor, accumulate: bool = False) -> NestedTensor:
    return nested_of(values_of(x).index_put(_value_indices(x, indices), values, accumulate), x._structure,
                     "IndexPutBackward0")


def index_put_(x: NestedTensor, indices: Any, values: Tensor, accumulate: bool = False) -> NestedTensor:
    x._values.index_put_(_value_indices(x, indices), values, accumulate)
    x._bump_version()
    return x


def _value_indices(x: NestedTensor, indices: Any) -> tuple[Any, ...]:
    """Indices of components and of places in them as indices of values."""
    structure = x._structure
    ragged = structure.ragged_idx
    if len(indices) <= ragged:
        raise RuntimeError("index_put(): If ragged_idx is not the last indexed dimension, indices must be given for "
                           "the batch and the ragged dimension")
    begins = structure.offsets[:-1].index_select(0, indices[0].flatten()).reshape(indices[0].shape)
    return (*indices[1:ragged], begins + indices[ragged], *indices[ragged + 1:])


def masked_select(x: NestedTensor, mask: Any) -> NestedTensor:
    if len(x.shape) != 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    chosen = mask._values
    sizes = [int(part.sum()) for part in chosen.split(x._structure.sizes)]
    return nested_of(values_of(x).masked_select(chosen), contiguous_structure(sizes), "MaskedSelectBackward0")
