"""The masked tensor: a tensor of data with a mask of the elements that are there, as a subclass that sees operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ... import devices, dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.custom_functions.function import Function
from ..._tensor.overriding.default_handler import run_and_convert
from ...engine.engine import current_graph_task_id
from ...warning_location import user_stacklevel

_PROTOTYPE = ("The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open "
              "a Github issue for features requests and see our documentation on the torch.masked module for further "
              "information about the project.")
_DATA_REQUIRES_GRAD = ("It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid "
                       "this, you can use data.detach().clone()")
#: the end of a message about an operator without an implementation
REQUEST = ("If you would like this operator to be supported, please file an issue for a feature request at "
           "https://github.com/pytorch/maskedtensor/issues with a minimal reproducible code snippet.\nIn the case that "
           "the semantics for the operator are not trivial, it would be appreciated to also include a proposal for the "
           "semantics.")
_DTYPES = frozenset((dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bool_, dtypes.int8, dtypes.int16,
                     dtypes.int32, dtypes.int64))
_LAYOUTS = (devices.strided, devices.sparse_coo, devices.sparse_csr)

#: function -> what replaces it where an argument is a masked tensor; `_ops_refs` fills it
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
#: name of an operator of `torch.ops.aten` -> its implementation on masked tensors, called with the packet
OPERATORS: dict[str, Callable[..., Any]] = {}
#: name of an operator that derivatives use where PyTorch's use one of `OPERATORS` -> its implementation, called with
#: the overload
DERIVATIVES: dict[str, Callable[..., Any]] = {}


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a masked tensor.

    >>> import flambeau as torch
    >>> torch.masked.is_masked_tensor(torch.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)


def _tensors_match(a: Tensor, b: Tensor, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether two tensors of one layout have the same elements.

    Raises:
        ValueError: one is a masked tensor, or the layouts differ.
    """
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.dtype != b.dtype:
        b = b.type(a.dtype)
    if a.layout == devices.strided:
        if a.dim() != b.dim():
            return False
        return bool(fn.eq(a, b).all()) if exact else bool(fn.allclose(a, b, rtol=rtol, atol=atol))
    return all(_tensors_match(x, y, exact) for x, y in zip((*_positions(a), a.values()), (*_positions(b), b.values()),
                                                           strict=True))


def _positions(x: Tensor) -> tuple[Tensor, ...]:
    """The index tensors of a sparse tensor."""
    return (x.indices(),) if x.layout == devices.sparse_coo else (x.crow_indices(), x.col_indices())


def _masks_match(a: Any, b: Any) -> bool:
    """Whether the masks of two masked tensors agree; a tensor without a mask agrees with any."""
    return _tensors_match(a.get_mask(), b.get_mask()) if is_masked_tensor(a) and is_masked_tensor(b) else True


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """A value with its masked tensors, in lists and tuples too, replaced."""
    if is_masked_tensor(value):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(each, function) for each in value)
    return value


def _get_data(a: Any) -> Any:
    return a._masked_data if is_masked_tensor(a) else a


def _maybe_get_mask(a: Any) -> Any:
    return a.get_mask() if is_masked_tensor(a) else None


def wrap_result(data: Any, mask: Any) -> Any:
    """Data and masks as masked tensors; NotImplemented where there are no tensors."""
    if isinstance(data, (list, tuple)):
        return type(data)(wrap_result(d, m) for d, m in zip(data, mask, strict=False))
    return MaskedTensor(data, mask) if isinstance(data, Tensor) else NotImplemented


_FORMAT = "{0:8.4f}"


def _text(value: Any) -> str:
    return _FORMAT.format(value) if isinstance(value, float) else str(value)


def _rows(data: Any, mask: Any) -> str:
    """Nested lists, at least one-dimensional, as text."""
    if not data or not isinstance(data[0], list):
        texts = [_text(value) for value in data]
        width = max((len(text) if there else 8 for text, there in zip(texts, mask, strict=True)), default=0)
        return "[" + ", ".join(text if there else "--".rjust(width)
                               for text, there in zip(texts, mask, strict=True)) + "]"
    return "[\n" + ",\n".join(_indented(_rows(d, m)) for d, m in zip(data, mask, strict=True)) + "\n]"


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


class Constructor(Function):
    """The differentiable construction from data and mask."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Any:
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output, None


class GetData(Function):
    """The data of a masked tensor; its gradient has the tensor's mask."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Tensor:
        ctx.mask = x._masked_mask
        data: Tensor = x._masked_data.detach()
        return data

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output if is_masked_tensor(grad_output) else MaskedTensor(grad_output, ctx.mask)


class MaskedTensor(Tensor):
    """A tensor of which a mask tells the elements that are there.

    Operators compute the data and leave the mask; reductions leave out what is masked out. It is a leaf: use
    `as_masked_tensor` to keep the history of `data`.

    Args:
        data: a tensor, strided, COO or CSR.
        mask: of the same shape and layout, bool; True: the element is there.
        requires_grad: whether to compute gradients, which are masked tensors.

    Raises:
        TypeError: data and mask are no tensors, or differ in layout, or a dtype is not supported.
        ValueError: the shapes or the positions of sparse elements differ.

    >>> import flambeau as torch
    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> torch.masked.MaskedTensor(torch.arange(4), torch.tensor([True, False, True, True]))
    MaskedTensor(
      [0,       --, 2, 3]
    )
    """

    @staticmethod
    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        if is_masked_tensor(data) or not isinstance(data, Tensor):
            raise TypeError("data must be a Tensor")
        if is_masked_tensor(mask) or not isinstance(mask, Tensor):
            raise TypeError("mask must be a Tensor")
        warnings.warn(_PROTOTYPE, UserWarning, stacklevel=user_stacklevel())
        if data.requires_grad:
            warnings.warn(_DATA_REQUIRES_GRAD, UserWarning, stacklevel=user_stacklevel())
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, data.size(), dtype=data.dtype, requires_grad=requires_grad)

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        if data.layout != mask.layout:
            raise TypeError("data and mask must have the same layout.")
        if data.layout == devices.sparse_coo:
            data, mask = data.coalesce(), mask.coalesce()
        if data.layout in _LAYOUTS[1:] and data._nnz() != mask._nnz():
            data = restricted(data, mask)
        self._masked_data, self._masked_mask = data.clone(), mask.clone()
        self._validate_members()

    def _validate_members(self) -> None:
        """Check that data and mask fit."""
        data, mask = self._masked_data, self._masked_mask
        if type(data) is not type(mask):
            raise TypeError(f"data and mask must have the same type. Got {type(data)} and {type(mask)}")
        if data.layout not in _LAYOUTS:
            raise TypeError(f"data layout of {data.layout} is not supported.")
        if data.layout == devices.sparse_coo and not _same(data.indices(), mask.indices()):
            raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
        if data.layout == devices.sparse_csr and not (_same(data.crow_indices(), mask.crow_indices())
                                                      and _same(data.col_indices(), mask.col_indices())):
            raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")
        if mask.dtype is not dtypes.bool_:
            raise TypeError("mask must have dtype bool.")
        if data.dtype not in _DTYPES:
            raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
        if data.dim() != mask.dim():
            raise ValueError("data.dim() must equal mask.dim()")
        if data.size() != mask.size():
            raise ValueError("data.size() must equal mask.size()")

    @staticmethod
    def _from_values(data: Any, mask: Any) -> Any:
        """A masked tensor with the history of the data."""
        return Constructor.apply(data, mask)

    def _set_data_mask(self, data: Tensor, mask: Tensor) -> None:
        """Replace data and mask."""
        self._masked_data, self._masked_mask = data, mask
        self._validate_members()

    def __repr__(self) -> str:  # type: ignore[override]
        data, mask = self._masked_data.detach().to_dense(), self._masked_mask.to_dense()
        if data.dim():
            return "MaskedTensor(\n" + _indented(_rows(data.tolist(), mask.tolist())) + "\n)"
        there = mask.item()
        return f"MaskedTensor({_text(data.item()) if there else '--'}, {there})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        replacement = FUNCTIONS.get(func)
        if replacement is not None:
            return replacement(*args, **(kwargs or {}))
        return run_and_convert(cls, func, types, args, kwargs, Tensor, unconverted())

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        packet = func.overloadpacket
        implementation = OPERATORS.get(packet.__name__)
        if implementation is not None:
            return implementation(packet, *args, **(kwargs or {}))
        internal = DERIVATIVES.get(packet.__name__)
        if internal is not None and current_graph_task_id() >= 0:
            return internal(func, *args, **(kwargs or {}))
        warnings.warn(f"{packet.__name__} is not implemented in __torch_dispatch__ for MaskedTensor.\n{REQUEST}",
                      stacklevel=user_stacklevel())
        return NotImplemented

    @classmethod
    def unary(cls, fn: Callable[[Any], Any], data: Tensor, mask: Tensor) -> MaskedTensor:
        """A function of the data, with the mask.

        >>> import flambeau as torch
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.masked.MaskedTensor.unary(torch.exp, torch.zeros(2), torch.tensor([True, False]))
        MaskedTensor(
          [  1.0000,       --]
        )
        """
        return MaskedTensor(fn(data), mask)

    def __lt__(self, other: Any) -> Any:
        return MaskedTensor(self.get_data() < _get_data(other), self.get_mask())

    def to_tensor(self, value: Any) -> Tensor:
        """The data as a tensor, with a value in place of what is masked out.

        >>> import flambeau as torch
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])).to_tensor(7)
        tensor([1., 7.])
        """
        filled: Tensor = self.get_data().masked_fill(~self.get_mask(), value)
        return filled

    def get_data(self) -> Tensor:
        """The data, differentiably.

        >>> import flambeau as torch
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])).get_data()
        tensor([1., 1.])
        """
        data: Tensor = GetData.apply(self)
        return data

    def get_mask(self) -> Tensor:
        """The mask.

        >>> import flambeau as torch
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])).get_mask()
        tensor([ True, False])
        """
        mask: Tensor = self._masked_mask
        return mask

    @property
    def layout(self) -> Any:
        """The layout of data and mask."""
        return self._masked_data.layout

    def is_sparse_coo(self) -> bool:
        """Whether data and mask have the COO layout.

        >>> import flambeau as torch
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.masked.masked_tensor(torch.ones(1), torch.tensor([True])).to_sparse().is_sparse_coo()
        True
        """
        return bool(self.layout == devices.sparse_coo)

    def is_sparse_csr(self) -> bool:
        """Whether data and mask have the CSR layout.

        >>> import flambeau as torch
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.masked.masked_tensor(torch.ones(1), torch.tensor([True])).is_sparse_csr()
        False
        """
        return bool(self.layout == devices.sparse_csr)

    @property
    def is_sparse(self) -> bool:
        """Whether data and mask are sparse."""
        return self.is_sparse_coo() or self.is_sparse_csr()


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(fn.equal(a, b))


def restricted(data: Tensor, mask: Tensor) -> Tensor:
    """Sparse data at the positions at which a sparse mask is True; zero where the data has no element."""
    here = mask.to_dense()
    selected = fn.where(here, data.to_dense(), fn.zeros((), dtype=data.dtype))
    result: Tensor = selected.sparse_mask(here.to_sparse() if data.layout == devices.sparse_coo
                                          else here.to_sparse_csr())
    return result


_unconverted: list[Any] = []


def unconverted() -> Any:
    """Functions whose results stay tensors."""
    if not _unconverted:
        from ..._tensor.overriding.entry_points import named_entries

        names = frozenset(("torch.Tensor._base.__get__", "torch.Tensor.grad.__get__", "torch.Tensor._grad.__get__"))
        _unconverted.extend(public for name, _, public in named_entries() if name in names)
    return _unconverted


__all__ = ["MaskedTensor", "is_masked_tensor"]
