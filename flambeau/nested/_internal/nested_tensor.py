"""The nested tensor of the jagged layout: the components' elements in one tensor, and the offsets of the components.

A component is a slice of `values` along the ragged dimension. The memory of the tensor itself is a placeholder, of the
shape in which the ragged dimension has the size of all components together: every operator goes to `ops`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.custom_functions.function import Function
from ..._tensor.custom_functions.node import FunctionNode
from ..._tensor.memory.pickling import _rebuild_from_type_v2
from ..._tensor.meta import reserved
from ..._tensor.tensor import wrap
from ...engine.grad_mode import grad_mode
from ...engine.nodes.node import NodeType
from ...shapes import Size
from .nested_int import NestedInt, copy_with_number, get_tensor_symint, number_first_view

#: PyTorch's map of offsets to ragged sizes; here each offsets tensor has its own
_tensor_symint_registry: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


class Structure:
    """Where the components of a nested tensor are.

    Attributes:
        offsets: (B + 1,), the beginnings of the components along the ragged dimension, and the end of the last.
        lengths: (B,), their sizes, where there are holes between them; else None.
        ragged_idx: the ragged dimension of the nested tensor.
        extremes: the smallest and the largest size as far as a program gave them or asked for them, by name.
    """

    __slots__ = ("_gather", "_sizes", "extremes", "lengths", "offsets", "ragged_idx")

    def __init__(self, offsets: Tensor, lengths: Tensor | None, ragged_idx: int) -> None:
        self.offsets, self.lengths, self.ragged_idx = offsets, lengths, ragged_idx
        self._sizes: list[int] | None = None
        self._gather: tuple[Tensor, Tensor] | None = None
        self.extremes: dict[str, int] = {}
        get_tensor_symint(offsets if lengths is None else lengths)  # numbers are given in the order of construction

    def at(self, ragged_idx: int) -> Structure:
        """The same components, along another dimension."""
        if ragged_idx == self.ragged_idx:
            return self
        other = Structure(self.offsets, self.lengths, ragged_idx)
        other._sizes, other._gather, other.extremes = self._sizes, self._gather, self.extremes
        return other

    @property
    def batch(self) -> int:
        """The number of components."""
        return int(self.offsets._array.shape[0]) - 1

    @property
    def begins(self) -> list[int]:
        """Where each component begins."""
        begins: list[int] = self.offsets._array[:-1].tolist()
        return begins

    @property
    def sizes(self) -> list[int]:
        """The sizes of the components."""
        if self._sizes is None:
            sizes = np.diff(self.offsets._array) if self.lengths is None else self.lengths._array
            self._sizes = sizes.tolist()
        return self._sizes

    @property
    def ragged_size(self) -> NestedInt:
        """The size of the ragged dimension."""
        return get_tensor_symint(self.offsets if self.lengths is None else self.lengths)

    @property
    def gather(self) -> tuple[Tensor, Tensor]:
        """For each row of the components together: the number of its component, and its place in `values`."""
        if self._gather is None:
            sizes = np.asarray(self.sizes, dtype=np.int64)
            component = np.repeat(np.arange(self.batch), sizes)
            first = np.repeat(np.cumsum(sizes) - sizes, sizes)
            place = np.arange(int(sizes.sum())) - first + np.repeat(self.offsets._array[:-1], sizes)
            self._gather = wrap(component), wrap(place.astype(np.int64))
        return self._gather

    def same(self, other: Structure) -> bool:
        """Whether the components are the same: by identity of the offsets."""
        return self.ragged_size == other.ragged_size and self.ragged_idx == other.ragged_idx


class NestedTensor(Tensor):
    """A batch of tensors that differ in one dimension, the ragged one: `torch.nested.nested_tensor` makes it.

    >>> import flambeau as torch
    >>> x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    >>> x.dim(), x.is_nested, x.size(2)
    (3, True, 3)
    """

    _values: Tensor
    _structure: Structure

    @staticmethod
    def __new__(cls, values: Tensor, offsets: Tensor, *, lengths: Tensor | None = None, requires_grad: bool = False,
                _ragged_idx: int = 1, _metadata_cache: dict[str, Any] | None = None) -> NestedTensor:
        if offsets is None:
            raise AssertionError("offsets must be provided")
        if offsets.ndim != 1:
            raise AssertionError("offsets must be 1D")
        structure = Structure(offsets, lengths, _ragged_idx)
        structure.extremes.update((name, value.shape[0]) for name, value in (_metadata_cache or {}).items())
        return make(values, structure, requires_grad)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    # ----- metadata ---------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The sizes; that of the ragged dimension is symbolic."""
        structure = self._structure
        sizes: list[Any] = [structure.batch, *self._values._array.shape]
        sizes[structure.ragged_idx] = structure.ragged_size
        return tuple.__new__(Size, sizes)

    _size = shape

    def size(self, dim: int | None = None) -> Any:
        shape = self.shape
        if dim is None:
            return shape
        n = len(shape)
        if not -n <= dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
        return shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        strides = self._values.stride()
        ragged = self._structure.ragged_idx
        every = (self._structure.ragged_size * strides[ragged - 1], *strides)
        return every if dim is None else every[dim]

    @property
    def layout(self) -> Any:
        """`torch.jagged`."""
        return devices.jagged

    @property
    def is_nested(self) -> bool:
        """Whether the tensor is nested: True."""
        return True

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.numel() * int(self._values.itemsize)

    def numel(self) -> int:
        values = self._values
        if self._structure.lengths is None:
            return int(values.numel())
        rows = values._array.shape[self._structure.ragged_idx - 1]
        return int(values.numel()) // max(rows, 1) * sum(self._structure.sizes)

    nelement = numel

    def is_contiguous(self, memory_format: Any = devices.contiguous_format) -> bool:
        if self._structure.lengths is not None:
            return False
        return bool(self._values.is_contiguous(memory_format=memory_format)) if (
            memory_format is not devices.preserve_format) else True

    def values(self) -> Tensor:
        """The elements of all components, along the ragged dimension; differentiable.

        >>> import flambeau as torch
        >>> torch.nested.nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged).values()
        tensor([1., 1., 1.])
        """
        return values_of(self)

    def offsets(self) -> Tensor:
        """The beginnings of the components, and the end of the last; of shape (B + 1,).

        >>> import flambeau as torch
        >>> torch.nested.nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged).offsets()
        tensor([0, 2, 3])
        """
        return self._structure.offsets

    def lengths(self) -> Tensor | None:
        """The sizes of the components where there are holes between them; else None.

        >>> import flambeau as torch
        >>> torch.nested.nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged).lengths() is None
        True
        """
        return self._structure.lengths

    @property
    def _offsets(self) -> Tensor:
        return self._structure.offsets

    @property
    def _lengths(self) -> Tensor | None:
        return self._structure.lengths

    @property
    def _ragged_idx(self) -> int:
        return self._structure.ragged_idx

    def _get_max_seqlen(self) -> int:
        extremes = self._structure.extremes
        if "max_seqlen" not in extremes:
            extremes["max_seqlen"] = max(self._structure.sizes, default=0)
        return extremes["max_seqlen"]

    def _get_min_seqlen(self) -> int:
        extremes = self._structure.extremes
        if "min_seqlen" not in extremes:
            extremes["min_seqlen"] = min(self._structure.sizes, default=0)
        return extremes["min_seqlen"]

    _max_seqlen, _min_seqlen = property(_get_max_seqlen), property(_get_min_seqlen)
    _maybe_max_seqlen = property(lambda self: self._structure.extremes.get("max_seqlen"))
    _maybe_min_seqlen = property(lambda self: self._structure.extremes.get("min_seqlen"))
    _max_seqlen_tensor = property(lambda self: _as_size(self._maybe_max_seqlen))
    _min_seqlen_tensor = property(lambda self: _as_size(self._maybe_min_seqlen))

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        """The names of the tensors that it is made of, and what else it is made of."""
        optional = ("_lengths", "_min_seqlen_tensor", "_max_seqlen_tensor")
        return (["_values", "_offsets", *(name for name in optional if getattr(self, name) is not None)],
                {"requires_grad": self.requires_grad, "ragged_idx": self._ragged_idx})

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Any], meta: dict[str, Any], outer_size: Any,
                             outer_stride: Any) -> NestedTensor:
        """The nested tensor made of such tensors."""
        if not 2 <= len(inner_tensors) <= 5:
            raise AssertionError(f"Expected 2-5 inner tensors, but got {len(inner_tensors)}")
        extremes = {name: inner_tensors[f"_{name}_tensor"] for name in ("min_seqlen", "max_seqlen")
                    if inner_tensors.get(f"_{name}_tensor") is not None}
        return NestedTensor(inner_tensors["_values"], inner_tensors["_offsets"], lengths=inner_tensors.get("_lengths"),
                            requires_grad=meta["requires_grad"], _ragged_idx=meta["ragged_idx"],
                            _metadata_cache=extremes)

    # ----- Python -----------------------------------------------------------------------------------

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        graph = ""
        if self._requires_grad and self.grad_fn is None:
            graph = ", requires_grad=True"
        elif self.grad_fn is not None:
            graph = f", grad_fn={self.grad_fn}"
        sizes = ", ".join(map(str, self.shape))
        return f"NestedTensor(size=({sizes}), offsets={self.offsets()}{graph}, contiguous={self.is_contiguous()})"

    def __len__(self) -> int:
        return self._structure.batch

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __deepcopy__(self, memo: dict[int, Any]) -> NestedTensor:
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                               "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
                               "because of a torch.nn.utils.weight_norm usage, see "
                               "https://github.com/pytorch/pytorch/pull/103001")
        found = memo.get(id(self))
        if found is None:
            structure = self._structure
            offsets = copy_with_number(structure.offsets)
            lengths = None if structure.lengths is None else copy_with_number(structure.lengths)
            found = memo[id(self)] = make(self._values.clone(), Structure(offsets, lengths, structure.ragged_idx),
                                          self._requires_grad)
        return found

    def __reduce_ex__(self, protocol: Any) -> Any:
        structure = self._structure
        return _rebuild_from_type_v2, (_rebuild_njt, NestedTensor, ({
            "values": self._values.detach(), "offsets": structure.offsets, "lengths": structure.lengths,
            "_ragged_idx": structure.ragged_idx,
            "_metadata_cache": {name: fn.empty(size, 0) for name, size in structure.extremes.items()},
            "requires_grad": self._requires_grad},), {})

    def __setstate__(self, state: Any) -> None:
        """Nothing is left to set when `_rebuild_njt` has made the tensor."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return functions_of_operators[0](cls, func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return functions_of_operators[1](func, args, kwargs or {})


def _no_operators(*args: Any) -> Any:
    raise RuntimeError("flambeau.nested._internal.ops is not imported")


#: what runs functions and operators; `ops` sets it
functions_of_operators: list[Callable[..., Any]] = [_no_operators, _no_operators]


def make(values: Tensor, structure: Structure, requires_grad: bool = False) -> NestedTensor:
    """A nested tensor without a history on the memory of values."""
    array = values._array
    sizes = (structure.batch, *array.shape)
    out: NestedTensor = wrap(reserved(sizes, array.dtype), NestedTensor)
    out._values, out._structure = (values if not values._requires_grad else values.detach()), structure
    out._requires_grad = requires_grad
    return out


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> NestedTensor:
    """A nested tensor that was pickled: sizes that were known are those of tensors without elements."""
    structure = Structure(constructor_kwargs["offsets"], constructor_kwargs["lengths"],
                          constructor_kwargs.get("_ragged_idx", 1))
    structure.extremes.update((name, int(size.shape[0])) for name, size in (
        constructor_kwargs.get("_metadata_cache") or {}).items())
    return make(constructor_kwargs["values"], structure, constructor_kwargs["requires_grad"])


# ----- between values and nested tensors, differentiably ------------------------------------------


def _named_function(base: Any, node: str) -> Any:
    """A Function whose nodes have a name of PyTorch's."""
    cls: Any = type(base)(node, (base,), {})
    cls._backward_cls = NodeType(node, (FunctionNode,), {"_forward_cls": cls, "__module__": __name__})
    return cls


class _Values(Function):
    """The values of a nested tensor."""

    @staticmethod
    def forward(ctx: Any, nested: NestedTensor) -> Tensor:
        ctx.structure, ctx.contiguous = nested._structure, nested._values.is_contiguous()
        ctx.set_materialize_grads(False)
        values: Tensor = wrap(nested._values._array)
        return values

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None if g is None else nested_of(g.contiguous() if ctx.contiguous else g, ctx.structure)


class _Nested(Function):
    """A nested tensor of values."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, structure: Structure) -> NestedTensor:
        ctx.set_materialize_grads(False)
        return make(wrap(values._array), structure)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None if g is None else values_of(g), None


class _Same(Function):
    """A tensor with another node."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return wrap(x._array)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


_GetValues = _named_function(_Values, "NestedGetValuesBackward0")
_named: dict[tuple[type, str], Any] = {}


def _function(base: type, node: str) -> Any:
    found = _named.get((base, node))
    if found is None:
        found = _named[base, node] = _named_function(base, node)
    return found


def values_of(nested: NestedTensor) -> Tensor:
    """The values of a nested tensor, with its history."""
    if not nested._requires_grad:
        return nested._values
    values: Tensor = _GetValues.apply(nested)
    return values


def _as_size(number: int | None) -> Tensor | None:
    """A number as the size of an empty tensor, as PyTorch stores it among the inner tensors."""
    return None if number is None else wrap(np.zeros((number, 0), dtype=np.float32))


def nested_of(values: Tensor, structure: Structure, node: str = "NestedViewFromJaggedBackward0") -> NestedTensor:
    """A nested tensor of values, with their history; its node has the name `node`."""
    if not values._requires_grad or not grad_mode.get():
        return make(values, structure)
    result: NestedTensor = _function(_Nested, node).apply(values, structure)
    return result


def named(x: Tensor, node: str) -> Tensor:
    """A tensor whose node has the name `node`."""
    if not x._requires_grad:
        return x
    result: Tensor = _function(_Same, node).apply(x)
    return result


def contiguous_structure(sizes: list[int], ragged_idx: int = 1) -> Structure:
    """Components one after the other."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return Structure(wrap(offsets), None, ragged_idx)


# ----- constructors -----------------------------------------------------------------------------


def _common(tensors: list[Tensor], what: Callable[[Tensor], Any], name: str) -> None:
    if len({what(x) for x in tensors}) != 1:
        raise RuntimeError(f"When constructing a nested tensor, all tensors in list must have the same {name}")


def jagged_from_list(tensors: list[Tensor], offsets: Tensor | None, dtype: Any = None,
                     device: Any = None) -> tuple[NestedTensor, Tensor]:
    """A nested tensor of components, differentiably, and its offsets.

    Args:
        offsets: those of another nested tensor of the same sizes, so that the ragged dimensions are the same.

    Raises:
        RuntimeError: the components differ in dtype, or in another dimension than the ragged one.
    """
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    _common(tensors, lambda t: t.dtype, "dtype")
    _common(tensors, lambda t: t.device, "device")
    _common(tensors, lambda t: t.dim(), "dim")
    if tensors[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    shapes = [tuple(t.shape) for t in tensors]
    ragged = next((d for d in range(len(shapes[0])) if len({s[d] for s in shapes}) > 1), 0)
    if any(len({s[d] for s in shapes}) > 1 for d in range(len(shapes[0])) if d != ragged) or ragged:
        raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged layout. Note that "
                           "the jagged layout only allows for a single ragged dimension. For example: (B, *, D_0, D_1, "
                           "..., D_N), with ragged * dim.")
    values = fn.cat(tensors, 0)
    if dtype is not None:
        values = values.to(dtype)
    sizes = [s[0] for s in shapes]
    number_first_view()
    structure = contiguous_structure(sizes) if offsets is None else Structure(offsets, None, 1)
    return nested_of(values, known(structure, min(sizes), max(sizes))), structure.offsets


def known(structure: Structure, min_seqlen: int | None, max_seqlen: int | None) -> Structure:
    given = (("min_seqlen", min_seqlen), ("max_seqlen", max_seqlen))
    structure.extremes.update((name, size) for name, size in given if size is not None)
    return structure


def nested_view_from_values_offsets(values: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: Any = None,
                                    max_seqlen: Any = None) -> NestedTensor:
    """A nested tensor on values, with components at offsets."""
    number_first_view()
    return nested_of(values, known(Structure(offsets, None, ragged_idx), min_seqlen, max_seqlen))


def nested_view_from_values_offsets_lengths(values: Tensor, offsets: Tensor, lengths: Tensor, ragged_idx: int = 1,
                                            min_seqlen: Any = None, max_seqlen: Any = None) -> NestedTensor:
    """A nested tensor on values, with components of given lengths at offsets."""
    number_first_view()
    return nested_of(values, known(Structure(offsets, lengths, ragged_idx), min_seqlen, max_seqlen))


def jagged_from_tensor_and_lengths(tensor: Tensor, starts: Tensor, lengths: Tensor) -> tuple[NestedTensor, Tensor,
                                                                                             Tensor | None]:
    """A nested tensor on the memory of a tensor of shape (B, S, ...): the part of each row from a start on.

    Raises:
        RuntimeError: `starts` or `lengths` do not have B elements.
    """
    batch, size = tensor.shape[:2]
    starts, lengths = starts.expand(batch), lengths.expand(batch)
    rows = fn.arange(0, batch) * size
    offsets = fn.cat([starts + rows, starts[-1:] + rows[-1:] + lengths[-1:]])
    values = tensor.reshape(-1, *tensor.shape[2:])
    whole = bool((offsets[:-1] + lengths == offsets[1:]).all())
    whole = whole and bool(offsets[0] == 0) and bool(offsets[-1] == values.shape[0])
    number_first_view()
    structure = Structure(offsets, None if whole else lengths.contiguous(), 1)
    return nested_of(values, structure), offsets, structure.lengths


__all__ = ["NestedTensor", "get_tensor_symint", "jagged_from_list", "jagged_from_tensor_and_lengths",
           "nested_view_from_values_offsets", "nested_view_from_values_offsets_lengths"]
