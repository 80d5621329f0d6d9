"""The nested tensor of the strided layout, PyTorch's default: components that may differ in every dimension.

It has the operators that PyTorch's CPU build has for it. The memory of the tensor itself is a placeholder; `_parts` has
the components.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from ... import devices, dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.custom_functions.function import Function
from ..._tensor.memory.pickling import _rebuild_nested_tensor
from ..._tensor.meta import reserved
from ..._tensor.overriding.protocol import SUBCLASSES_DISABLED, disabled, skip_once
from ..._tensor.printing import tensor_str
from ..._tensor.tensor import wrap
from ...engine.grad_mode import grad_mode
from ...nn import functional
from ...warning_location import warn_once
from .nested_tensor import _function, named
from .strided_checks import check_bmm, check_matmul, check_memory_format, check_operands
from .structure_ops import wrapped

_PROTOTYPE = (
    "The PyTorch API of nested tensors is in prototype stage and will change in the near future. We recommend "
    "specifying layout=torch.jagged when constructing a nested tensor, as this layout receives active development, has "
    "better operator coverage, and works with torch.compile.")
_NO_SIZES = "Internal error: NestedTensorImpl doesn't support {}. Please file an issue."


class StridedNestedTensor(Tensor):
    """A batch of tensors of any sizes: `torch.nested.nested_tensor` without a layout makes it.

    >>> import flambeau as torch
    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> torch.nested.nested_tensor([torch.arange(2), torch.arange(3)])
    nested_tensor([
      tensor([0, 1]),
      tensor([0, 1, 2])
    ])
    """

    _parts: list[Tensor]

    @property
    def shape(self) -> Any:
        """Sizes, which nested tensors of this layout do not have.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(_NO_SIZES.format("sizes"))

    @property
    def is_nested(self) -> bool:
        """Whether the tensor is nested: True."""
        return True

    @property
    def layout(self) -> Any:
        """`torch.strided`."""
        return devices.strided

    def size(self, dim: int | None = None) -> int:
        """The size of a dimension in which all components agree.

        Raises:
            RuntimeError: they do not, or no dimension is given.
        """
        if dim is None:
            raise RuntimeError(_NO_SIZES.format("sizes"))
        d = wrapped(dim, self._array.ndim)
        if d == 0:
            return len(self._parts)
        sizes = {p._array.shape[d - 1] for p in self._parts}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return int(sizes.pop())

    def stride(self, dim: int | None = None) -> Any:
        """Strides, which nested tensors of this layout do not have.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(_NO_SIZES.format("strides"))

    def numel(self) -> int:
        """The number of elements of all components."""
        return sum(p._array.size for p in self._parts)

    nelement = numel

    def _nested_tensor_size(self) -> Tensor:
        """The sizes of the components, a row each."""
        return fn.tensor([list(p._array.shape) for p in self._parts], dtype=dtypes.int64)

    def _nested_tensor_strides(self) -> Tensor:
        """The strides of the components, a row each."""
        return fn.tensor([list(p.stride()) for p in self._parts], dtype=dtypes.int64)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        """Where the components begin in the memory of all of them."""
        return fn.tensor(list(itertools.accumulate(map(_span, self._parts[:-1]), initial=0))[:len(self._parts)],
                         dtype=dtypes.int64)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether all components are contiguous."""
        return all(p.is_contiguous() for p in self._parts)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        parts = []
        for part in self._parts:
            shown = part.detach()
            text = tensor_str(shown.requires_grad_() if self._requires_grad else shown)
            parts.append("\n".join(f"  {line}" for line in text.split("\n")))
        suffix = ""
        if self.grad_fn is not None:
            suffix = f", grad_fn=<{self.grad_fn.name().rpartition('::')[2]}>"
        elif self._requires_grad:
            suffix = ", requires_grad=True"
        return "nested_tensor([\n" + ",\n".join(parts) + f"\n]{suffix})"

    def __len__(self) -> int:
        raise RuntimeError(_NO_SIZES.format("sizes"))

    def __iter__(self) -> Any:
        raise RuntimeError(_NO_SIZES.format("sizes"))

    def __deepcopy__(self, memo: dict[int, Any]) -> StridedNestedTensor:
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = make([p.clone() for p in self._parts], self._requires_grad)
        return found

    def __reduce_ex__(self, protocol: Any) -> Any:
        parts = [p.detach() for p in self._parts]
        if not parts:
            return make, ([], self._requires_grad)
        buffer = fn.cat([p.as_strided((_span(p),), (1,)) for p in parts])
        if self._requires_grad:
            buffer.requires_grad_()
        return _rebuild_nested_tensor, (buffer, self._nested_tensor_size(), self._nested_tensor_strides(),
                                        self._nested_tensor_storage_offsets())

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        implementation = FUNCTIONS.get(func)
        if implementation is not None:
            return implementation(*args, **(kwargs or {}))
        if func.__name__[0] == "_" and func.__name__[1] != "_":  # made of public functions, which are asked again
            with skip_once():
                return func(*args, **(kwargs or {}))
        token = disabled.set(max(disabled.get(), SUBCLASSES_DISABLED))
        try:
            return func(*args, **(kwargs or {}))
        finally:
            disabled.reset(token)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run_operator(func, args, kwargs or {})


# PyTorch's are instances of Tensor itself: messages name that class.
StridedNestedTensor.__name__ = StridedNestedTensor.__qualname__ = "Tensor"


def is_strided(x: Any) -> bool:
    """Whether a value is a nested tensor of the strided layout."""
    return isinstance(x, StridedNestedTensor)


def _span(part: Tensor) -> int:
    """The number of elements from the first of a component to the last, gaps included."""
    return 0 if not part.numel() else 1 + sum((n - 1) * s for n, s in zip(part.shape, part.stride(), strict=True))


def make(parts: list[Tensor], requires_grad: bool = False) -> StridedNestedTensor:
    """A nested tensor of components, without a history."""
    n = parts[0]._array.ndim if parts else 0
    sizes = (len(parts), *(max(p._array.shape[d] for p in parts) for d in range(n)))
    dtype = parts[0]._array.dtype if parts else dtypes.get_default_dtype().numpy
    warn_once(_PROTOTYPE)
    out: StridedNestedTensor = wrap(reserved(sizes, dtype), StridedNestedTensor)
    out._parts, out._requires_grad = [p.detach() if p._requires_grad else p for p in parts], requires_grad
    return out


class _Components(Function):
    """The components of a nested tensor."""

    @staticmethod
    def forward(ctx: Any, nested: StridedNestedTensor) -> Any:
        ctx.parts = [p._array for p in nested._parts]
        return tuple(wrap(p._array) for p in nested._parts)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        return joined(list(gs))


class _Joined(Function):
    """A nested tensor of components."""

    @staticmethod
    def forward(ctx: Any, *parts: Tensor) -> StridedNestedTensor:
        return make([wrap(p._array) for p in parts])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return tuple(components(g)) if is_strided(g) else tuple(g.unbind(0))


def components(x: StridedNestedTensor, node: str = "UnbindBackwardAutogradNestedTensor0") -> list[Tensor]:
    """The components, with the history of the nested tensor."""
    return list(_function(_Components, node).apply(x)) if x._requires_grad and grad_mode.get() else list(x._parts)


def joined(parts: list[Tensor], node: str = "NestedTensorFromTensorListBackward0") -> StridedNestedTensor:
    """A nested tensor with the history of its components."""
    if not grad_mode.get() or not any(p._requires_grad for p in parts):
        return make(parts)
    result: StridedNestedTensor = _function(_Joined, node).apply(*parts)
    return result


def from_list(tensors: list[Tensor], dtype: Any = None) -> StridedNestedTensor:
    """A nested tensor of copies of tensors, with their history.

    Raises:
        RuntimeError: the numbers of dimensions differ.
    """
    for i, (first, second) in enumerate(itertools.pairwise(tensors)):
        if first.dim() != second.dim():
            raise RuntimeError("All Tensors given to nested_tensor must have the same dimension. Found dimension "
                               f"{second.dim()} for Tensor at index {i + 1} and dimension {first.dim()} for Tensor at "
                               f"index {i}.")
    return joined([t.clone(memory_format=devices.contiguous_format) if dtype is None else
                   t.to(dtype, copy=True, memory_format=devices.contiguous_format) for t in tensors])


# ----- functions --------------------------------------------------------------------------------


def not_implemented(name: str) -> NotImplementedError:
    """The error of an operator that the layout does not have."""
    return NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend. This "
                               "could be because the operator doesn't exist for this backend, or was omitted during "
                               "the selective/custom build process (if using custom build).")


def _no_sizes(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(_NO_SIZES.format("sizes"))


def _missing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise not_implemented(name)

    return refuse


def _unreadable(x: StridedNestedTensor, text: str) -> Any:
    raise RuntimeError(text.format(x.numel()))


def _whole_or_along(name: str) -> Callable[..., Any]:
    """A reduction that exists neither over all elements nor over dimensions, which is another operator."""
    def refuse(x: Any, dim: Any = None, *args: Any, **options: Any) -> Any:
        if dim is not None and name not in ("any", "prod") and x._requires_grad and grad_mode.get():
            return _no_sizes()  # its derivative reads them
        raise not_implemented(name if dim is None else f"{name}.dim{'_int' if name == 'prod' else ''}")

    return refuse


def _each(function: Callable[[Tensor], Tensor], x: StridedNestedTensor, node: str) -> StridedNestedTensor:
    return joined([function(p) for p in components(x)], node)


def unbind(x: StridedNestedTensor, dim: int = 0) -> Any:
    if dim != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    return tuple(components(x))


def select(x: StridedNestedTensor, dim: int, index: int) -> Any:
    d, node = wrapped(dim, x._array.ndim), "SelectBackwardAutogradNestedTensor0"
    if d:
        return _each(lambda p: p.select(d - 1, index), x, node)
    n = len(x._parts)
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
    return named(components(x, node)[index], node)


def getitem(x: StridedNestedTensor, index: Any) -> Any:
    items = index if isinstance(index, tuple) else (index,)
    if all(isinstance(i, int) for i in items):
        first = select(x, 0, items[0])
        return first[items[1:]] if len(items) > 1 else first
    if items[0] is Ellipsis and all(isinstance(i, int) for i in items[1:]):
        result: Any = x
        for i in reversed(items[1:]):
            result = select(result, -1, i)
        return result
    if items == (None,):
        return unsqueeze(x, 0)
    return _no_sizes()


def _inner(x: StridedNestedTensor, dim: int, text: str) -> int:
    d = wrapped(dim, x._array.ndim)
    if d == 0:
        raise RuntimeError(text)
    return d - 1


def transpose(x: StridedNestedTensor, dim0: int, dim1: int) -> StridedNestedTensor:
    a, b = (_inner(x, d, "Nested tensor dimension 0 cannot be transposed") for d in (dim0, dim1))
    return _each(lambda p: p.transpose(a, b), x, "TransposeBackward0")


def unsqueeze(x: StridedNestedTensor, dim: int) -> StridedNestedTensor:
    d = wrapped(dim, x._array.ndim + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the moment if "
                           "you need this feature, please open an issue on github describing your use case.")
    return _each(lambda p: p.unsqueeze(d - 1), x, "UnsqueezeBackward0")


def squeeze(x: StridedNestedTensor, dim: Any = None) -> StridedNestedTensor:
    if not isinstance(dim, int):
        if x._requires_grad and grad_mode.get():
            _no_sizes()
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported at the "
                           "moment, however you can use squeeze(Tensor self, int dim) instead if you need this "
                           "feature, please open an issue on github describing your use case.")
    d = _inner(x, dim, "squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment if you "
               "need this feature, please open an issue on github describing your use case.")
    whole = all(p.shape[d] == 1 for p in x._parts)
    if whole and x.dim() == 2:
        raise RuntimeError("squeeze(): For nested tensors, squeezing a nested tensor of singleton tensors is not "
                           "supported at the moment, if you need this feature, please open an issue on "
                           "githubdescribing your use case.")
    return _each(lambda p: p.squeeze(d) if whole else p, x, "SqueezeBackwardAutogradNestedTensor0")


def view(x: StridedNestedTensor, *size: Any, name: str = "view") -> StridedNestedTensor:
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    if not size:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if not x._parts:
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if size[0] != len(x._parts):
        raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit batch dimension")
    n = x._array.ndim
    for d, s in enumerate(size[1:]):
        if s == -1 and d >= n - 1:
            raise RuntimeError("nested tensor does not infer shape")
        if s == -1 and -1 in size[1:d + 1]:
            raise RuntimeError("only one dimension can be inferred")
        if s < -1:
            raise RuntimeError(f"invalid shape dimension {s}")

    def sizes(p: Tensor) -> list[int]:
        given = [p.shape[d] if s == -1 else s for d, s in enumerate(size[1:])]
        if prod(given) != p.numel():
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {p.numel()}")
        return given

    return _each(lambda p: p.reshape(sizes(p)), x, "ViewBackwardAutogradNestedTensor0")


def narrow(x: StridedNestedTensor, dim: int, start: int, length: int) -> StridedNestedTensor:
    if wrapped(dim, x._array.ndim):
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    return joined(components(x)[start:start + length])


def chunk(x: StridedNestedTensor, chunks: int, dim: int = 0) -> Any:
    n = x._array.ndim
    if wrapped(dim, n) != n - 1:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if x.size(-1) % chunks:
        raise RuntimeError("Chunk for nested tensors is only supported for nested tensors with trailing dimension "
                           f"divisible by chunks, got: {x.size(-1)} % {chunks} != 0")
    parts = [p.chunk(chunks, -1) for p in components(x)]
    return tuple(joined(list(each), "ChunkBackwardAutogradNestedTensor0") for each in zip(*parts, strict=True))


def split(x: StridedNestedTensor, sizes: Any, dim: int = 0) -> Any:
    if isinstance(sizes, int):
        return _no_sizes()
    n = x._array.ndim
    if wrapped(dim, n) != n - 1:
        raise RuntimeError("split_with_sizes for nested tensors is currently only supported for the last dimension.")
    parts = [p.split(sizes, -1) for p in components(x)]
    node = "SplitWithSizesBackwardAutogradNestedTensor0"
    return tuple(joined(list(each), node) for each in zip(*parts, strict=True))


def total(x: StridedNestedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> StridedNestedTensor:
    if dim is None:
        raise not_implemented("sum")
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    n = x._array.ndim
    d = wrapped(dims[0], n)
    if d != n - 1:
        raise RuntimeError(f"NestedTensor can only be reduced across the last dimension for now got dimension {d} "
                           "instead.")
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _each(lambda p: fn.sum(p, -1, True, dtype=dtype), x, "SumBackwardAutogradNestedTensor1")


def softmax(x: StridedNestedTensor, dim: int, *args: Any, dtype: Any = None, **options: Any) -> StridedNestedTensor:
    if not x._parts:
        return make([])
    d = _inner(x, dim, "Cannot apply softmax across nested dimension 0")
    return _each(lambda p: fn.softmax(p, d, dtype), x, "SoftmaxBackward0")


def linear(x: Any, weight: Any, bias: Any = None) -> StridedNestedTensor:
    if is_strided(bias) or is_strided(weight):
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    if x.dim() != 3 or weight.dim() != 2:
        raise RuntimeError("Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
                           f"{x.dim()}. Dense tensor dim: {weight.dim()}")
    if not x.is_contiguous():
        raise RuntimeError("for now linear only supports contiguous nested tensor")
    last = [p.shape[-1] for p in x._parts]
    if len(set(last)) > 1:
        column = "".join(f" {n}\n" for n in last)
        raise RuntimeError("Expected all tensors in nested tensor to have the same trailing dimension, instead last "
                           f"dimension equals: {column}[ torch.LongTensor{{{len(last)}}} ]")
    if last and last[0] != weight.shape[1]:
        raise RuntimeError("Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to "
                           f"equal 'weight.size(1), but got: last_dim = {last[0]}, and weight.size(1) = "
                           f"{weight.shape[1]}")
    return _each(lambda p: fn.linear(p, weight, bias), x, "LinearBackward0")


def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
               *unused: Any) -> StridedNestedTensor:
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    return _each(lambda p: functional.layer_norm(p, tuple(normalized_shape), weight, bias, eps), x,
                 "NativeLayerNormBackward0")


def matmul(a: Any, b: Any) -> StridedNestedTensor:
    if not (is_strided(a) and is_strided(b)):
        kinds = ["a nested" if is_strided(x) else "a non-nested" for x in (a, b)]
        raise RuntimeError(f"Expected both to be nested, but got {kinds[0]} self and {kinds[1][2:]} other")
    check_matmul(a, b)
    return joined(list(map(fn.matmul, components(a), components(b))), "MatmulBackward0")


def bmm(a: Any, b: Any) -> StridedNestedTensor:
    left, right = (components(x) if is_strided(x) else list(x.unbind(0)) for x in (a, b))
    check_bmm(a, b, (left, right))
    return joined(list(map(fn.matmul, left, right)), "BmmBackward0")


def attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
              scale: float | None = None, enable_gqa: bool = False) -> StridedNestedTensor:
    refused = "Nested tensors for query / key are not supported when"
    if attn_mask is not None:
        raise RuntimeError(f"Scaled_dot_product_attention: {refused} an explicit attn_mask is set")
    if is_causal:
        raise RuntimeError(f"_scaled_dot_product_attention: {refused} is_causal=True")
    parts = [components(x) for x in (query, key, value)]
    out = [fn.scaled_dot_product_attention(q, k, v, None, dropout_p, False, scale=scale)
           for q, k, v in zip(*parts, strict=True)]
    return joined(out, "MatmulBackward0")


def to_padded_tensor(x: StridedNestedTensor, padding: float, output_size: Any = None) -> Tensor:
    if not x.is_contiguous():
        raise RuntimeError("for now to_padded_tensor only supports contiguous nested tensor")
    parts = components(x)
    if not parts:
        return fn.empty(0, dtype=x.dtype)
    if not any(p.numel() for p in parts):
        raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
    sizes = [len(parts), *x._array.shape[1:]]
    if output_size is not None:
        if len(output_size) != len(sizes):
            raise RuntimeError("Length of output_size does not match NestedTensor dims. Broadcasting is not supported.")
        if any(given < size for given, size in zip(output_size, sizes, strict=True)):
            raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not "
                               "supported.")
        sizes = list(output_size)
    grown = []
    for p in parts:
        margins = [m for d in reversed(range(p.dim())) for m in (0, sizes[d + 1] - p.shape[d])]
        grown.append(functional.pad(p, margins, value=padding))
    return named(fn.stack(grown), "ToPaddedTensorBackward0")


def values(x: StridedNestedTensor) -> Tensor:
    return named(fn.cat([p.reshape(-1) for p in components(x)]), "ValuesBackwardAutogradNestedTensor0")


def cat(tensors: Any, dim: int = 0, *, out: Any = None) -> StridedNestedTensor:
    """The components of several tensors in one, or joined one by one along an inner dimension."""
    if out is not None:
        raise not_implemented("cat.out")
    if is_strided(tensors[0]) and not tensors[0]._parts:
        return _no_sizes()
    for i, x in enumerate(tensors):
        if not is_strided(x):
            raise RuntimeError("Expected each tensor in given list to be nested.")
        if not x._parts:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if not x.is_contiguous():
            raise RuntimeError("Expected each tensor in given list to be contiguous.")
    if any(x._requires_grad for x in tensors) and grad_mode.get():
        return _no_sizes()  # its derivative reads them
    first = tensors[0]
    d = wrapped(dim, first._array.ndim)
    for i, x in enumerate(tensors[1:], 1):
        if x._array.ndim != first._array.ndim:
            raise RuntimeError(f"Sizes of tensors must match except in dimension {d}. Expected size "
                               f"{first._array.ndim - 1} but got size {x._array.ndim - 1} for tensor number {i} in the "
                               "list.")
    if d == 0:
        return make([p.to(first.dtype, copy=True) for x in tensors for p in x._parts])
    return make([fn.cat(row, d - 1) for row in zip(*(x._parts for x in tensors), strict=True)])


def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> StridedNestedTensor:
    return _each(lambda part: functional.dropout(part, p, training), x, "NativeDropoutBackward0")


def contiguous(x: StridedNestedTensor, memory_format: Any = None) -> StridedNestedTensor:
    return x if x.is_contiguous() else _each(lambda p: p.contiguous(), x, "CloneBackward0")


def copy_(x: Any, src: Any, non_blocking: bool = False) -> StridedNestedTensor:
    if not (is_strided(x) and is_strided(src)):
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    if not is_same_size(x, src):
        raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
    token = disabled.set(max(disabled.get(), SUBCLASSES_DISABLED))
    try:
        return Tensor.copy_(x, src)  # type: ignore[attr-defined]
    finally:
        disabled.reset(token)


def clone(x: StridedNestedTensor, *, memory_format: Any = None) -> StridedNestedTensor:
    check_memory_format(memory_format, "Nested tensor clone supports Preserve and Contiguous memory formats, called "
                        "clone with memory format: {}")
    return _each(lambda p: p.clone(), x, "CloneBackward0")


def to(x: StridedNestedTensor, *args: Any, **options: Any) -> StridedNestedTensor:
    check_memory_format(options.get("memory_format"), "empty_like_nested only supports memory format Preserve or "
                        "Contiguous, but got {} instead.")
    first = x._parts[0].to(*args, **options) if x._parts else None
    if first is None or first is x._parts[0]:
        return x
    return _each(lambda p: p.to(*args, **options), x, "ToCopyBackward0")


def _to(dtype: Any) -> Callable[..., Any]:
    return lambda x, **options: to(x, dtype)


def _like(name: str) -> Callable[..., Any]:
    def make_like(x: Any, *args: Any, requires_grad: bool = False, **options: Any) -> StridedNestedTensor:
        return make([getattr(fn, name)(p, *args, **options) for p in x._parts], requires_grad)

    return make_like


def randn_like(x: Any, requires_grad: bool = False, **options: Any) -> StridedNestedTensor:
    """Random components: their elements are drawn one after the other."""
    flat = fn.randn(x.numel(), dtype=options.get("dtype") or x.dtype)
    parts = [part.reshape(p.shape) for part, p in zip(flat.split([p.numel() for p in x._parts]), x._parts, strict=True)]
    return make(parts, requires_grad)


def every(x: Any, dim: int | None = None, keepdim: bool = False) -> StridedNestedTensor:
    if dim is None:
        raise not_implemented("all")
    d = _inner(x, dim, "all: reduction over the batch of a nested tensor is not supported")
    return _each(lambda p: fn.all(p, d, keepdim), x, "")


def embedding(indices: Any, weight: Any, *args: Any, **options: Any) -> StridedNestedTensor:
    return joined([functional.embedding(p, weight, *args, **options) for p in indices._parts], "EmbeddingBackward0")


def where(condition: Any, *others: Any) -> Any:
    if others and is_strided(others[0]):
        raise RuntimeError("self must not be nested")
    if len(others) > 1 and is_strided(condition) and is_strided(others[1]):
        columns = condition._parts, components(others[1])
        return joined([fn.where(c, others[0], y) for c, y in zip(*columns, strict=True)], "WhereBackward0")
    raise RuntimeError("other must be nested")


def is_same_size(a: Any, b: Any) -> bool:
    nested = [hasattr(x, "_parts") for x in (a, b)]
    if not all(nested):
        kinds = ["is nested" if each else "is not nested" for each in nested]
        raise RuntimeError(f"Expected both self and other to be nested tensors. Self {kinds[0]}. While Other "
                           f"{kinds[1]}.")
    return [p._array.shape for p in a._parts] == [p._array.shape for p in b._parts]


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "unbind": unbind, "select": select, "__getitem__": getitem, "transpose": transpose, "unsqueeze": unsqueeze,
    "squeeze": squeeze, "view": view, "reshape": partial(view, name="reshape"),
    "narrow": narrow, "chunk": chunk, "split": split, "sum": total,
    "softmax": softmax, "linear": linear, "layer_norm": layer_norm, "matmul": matmul, "__matmul__": matmul, "bmm": bmm,
    "scaled_dot_product_attention": attention, "to_padded_tensor": to_padded_tensor, "values": values,
    "dropout": dropout, "contiguous": contiguous, "clone": clone, "copy_": copy_, "to": to,
    "is_same_size": is_same_size,
    **{f"{name}_like": _like(f"{name}_like") for name in ("zeros", "ones", "empty")},
    "randn_like": randn_like, "all": every, "embedding": embedding, "where": where,
    **{name: _to(dtype) for name, dtype in (
        ("double", dtypes.float64), ("float", dtypes.float32), ("half", dtypes.float16), ("long", dtypes.int64),
        ("bfloat16", dtypes.bfloat16), ("int", dtypes.int32), ("bool", dtypes.bool_))},
    "type": lambda x, dtype=None, **options: x._parts[0].type() if dtype is None else to(x, dtype),
    "numel": lambda x: x.numel(), "size": lambda x, *args: x.size(*args), "is_pinned": lambda x, *args: False,
    "cpu": lambda x, **options: x, "item": lambda x: _unreadable(x, "a Tensor with {} elements cannot be converted to "
                                                                 "Scalar"),
    "numpy": lambda x, **options: _unreadable(x, "Can't call numpy() on Tensor that requires grad. Use "
                                              "tensor.detach().numpy() instead." if x._requires_grad else
                                              _NO_SIZES.format("strides")),
    "tolist": lambda x: _unreadable(x, _NO_SIZES.format("strides")),
    **{name: _missing(operator or name) for name, operator in {
        "amax": "", "amin": "", "argmax": "", "argmin": "", "cumsum": "", "permute": "", "stack": "",
        "tril": "", "roll": "", "flip": "", "equal": "", "allclose": "", "logsumexp": "", "log_softmax": "_log_softmax",
        "full_like": "", "rand_like": "", "masked_select": "", "new_zeros": "", "new_ones": "", "t": "",
        "unique": "_unique2", "bernoulli": "", "gather": "", "conv1d": "convolution", "isfinite": "ne.Scalar"}.items()},
    **{name: _whole_or_along(name) for name in ("mean", "max", "min", "any", "prod")},
    "cat": cat, "concat": cat, "concatenate": cat,
    **dict.fromkeys(("flatten", "unflatten", "expand", "expand_as", "repeat", "sort", "rms_norm",
                     "index_select", "__len__"), _no_sizes),
}
methods: Any = Tensor
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
for _name, _implementation in IMPLEMENTATIONS.items():
    for _place in (fn, methods, functional):
        if hasattr(_place, _name):
            FUNCTIONS[getattr(_place, _name)] = _implementation
del _name, _implementation, _place

StridedNestedTensor.mT = property(lambda x: transpose(x, -2, -1))  # type: ignore[attr-defined]
StridedNestedTensor.T = property(_missing("permute"))  # type: ignore[attr-defined]


# ----- operators --------------------------------------------------------------------------------

#: elementwise operators, and those of their derivatives
_ELEMENTWISE = frozenset((
    "add", "sub", "mul", "div", "neg", "abs", "sgn", "relu", "gelu", "silu", "tanh", "sin", "cos", "sqrt",
    "logical_not", "isinf", "isnan", "isposinf", "isneginf", "gt", "ge", "eq", "fill", "masked_fill",
    "threshold_backward",
    "gelu_backward", "silu_backward", "tanh_backward", "_relu_backward"))
#: those that need contiguous components
_OF_BUFFERS = frozenset(("neg", "abs", "sgn", "relu", "gelu", "silu", "tanh", "sin", "cos", "sqrt", "logical_not",
                         "isinf", "isnan", "isposinf", "isneginf"))
#: those of two operands that must lie alike
_CHECKED = frozenset(("add", "add_", "sub", "mul", "mul_", "div"))
_COPIES = frozenset(("detach", "_to_copy", "clone", "alias", "_alias", "zeros_like", "ones_like", "empty_like",
                     "randn_like"))


def run_operator(func: Any, args: Any, kwargs: Any) -> Any:
    """An operator below autograd.

    Raises:
        NotImplementedError: the layout does not have it.
        RuntimeError: only one operand is nested.
    """
    from ...engine.engine import current_graph_task_id

    name = func.overloadpacket.__name__
    base = name.rstrip("_")
    kwargs = {key: value for key, value in kwargs.items() if key not in ("layout", "pin_memory")}
    if base == "eq" and len(args) > 1 and is_strided(args[1]):
        raise RuntimeError("eq does not support nested tensor as other value.")
    if base in _OF_BUFFERS and not args[0].is_contiguous() and current_graph_task_id() < 0:
        raise RuntimeError("NestedTensor must be contiguous to get buffer.")
    if name in ("copy_", "zero_", "fill_") or base in _ELEMENTWISE or name in _COPIES or current_graph_task_id() >= 0:
        return _on_parts(func, args, kwargs)
    raise not_implemented(str(func).partition(".")[2].removesuffix(".default"))


def _on_parts(func: Any, args: Any, kwargs: Any) -> Any:
    from ...engine.engine import current_graph_task_id

    name = func.overloadpacket.__name__
    if name in _CHECKED and is_strided(args[0]) and is_strided(args[1]) and (
            current_graph_task_id() < 0):
        check_operands(name, args[0], args[1])
    first = next(x for x in args if is_strided(x))
    n = len(first._parts)
    columns = []
    for x in args:
        if is_strided(x):
            if len(x._parts) != n:
                raise RuntimeError("NestedTensor must have the same batch size")
            columns.append(x._parts)
        elif isinstance(x, Tensor) and x.dim():
            kinds = ["nested" if is_strided(y) else "non-nested" for y in args[:2]]
            raise RuntimeError(f"Expected both self and other to be nested, but got a {kinds[0]} self and {kinds[1]} "
                               "other")
        else:
            columns.append([x] * n)
    out = [func(*row, **kwargs) for row in zip(*columns, strict=True)]
    return args[0] if func.overloadpacket.__name__.endswith("_") else make(out)


__all__ = ["StridedNestedTensor", "components", "from_list", "is_strided", "joined", "make"]
