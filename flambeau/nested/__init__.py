"""`torch.nested`: batches of tensors that differ in one dimension, without padding."""

from __future__ import annotations

from typing import Any

from .. import devices, dtypes
from .._tensor import Tensor
from .._tensor import functions as fn
from ..engine.grad_mode import no_grad
from ..nn.functionals.native_attention import warn_of_nested_tensors
from ._internal import ops as _ops
from ._internal.nested_int import number_first_view
from ._internal.nested_tensor import (
    NestedTensor,
    Structure,
    jagged_from_list,
    jagged_from_tensor_and_lengths,
    known,
    nested_of,
)
from ._internal.strided import StridedNestedTensor
from ._internal.strided import from_list as strided_from_list

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
           "to_padded_tensor"]

del _ops  # imported for the functions that it registers


def _is_jagged(layout: Any) -> bool:
    """Whether a layout is the jagged one; strided is the default.

    Raises:
        RuntimeError: it is neither.
    """
    if layout is None or layout == devices.strided:
        warn_of_nested_tensors()
        return False
    if layout != devices.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return True


def nested_tensor(tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A nested tensor with copies of tensors as components; a leaf.

    Args:
        tensor_list: tensors, or nested lists of numbers; for the jagged layout they differ in the first dimension only.
        layout: `torch.jagged`, or `torch.strided`, the default, which has fewer operators.
        dtype: of the elements; default: that of the tensors.

    Raises:
        RuntimeError: the tensors differ in dtype, or in another dimension.
        TypeError: something else than a list, for the strided layout.

    >>> import flambeau as torch
    >>> x = torch.nested.nested_tensor([torch.arange(2), torch.arange(3)], layout=torch.jagged)
    >>> x.values(), x.offsets()
    (tensor([0, 1, 0, 1, 2]), tensor([0, 2, 5]))
    """
    jagged = _is_jagged(layout)
    if not jagged and not isinstance(tensor_list, list):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    tensors = [t.detach() if isinstance(t, Tensor) else fn.as_tensor(t, dtype=dtype) for t in tensor_list]
    with no_grad():
        result: Tensor = jagged_from_list(tensors, None, dtype=dtype, device=device)[0] if jagged else (
            strided_from_list(tensors, dtype))
    if requires_grad:
        result.requires_grad_()
    return result


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """A nested tensor with the history of its components.

    Args:
        ts: a nested tensor, which is returned; tensors that differ in the first dimension only; or a tensor of at least
            two dimensions, whose rows become the components.

    Raises:
        RuntimeError: as `nested_tensor`.
        TypeError: `ts` is none of these.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.nested.as_nested_tensor([x, torch.ones(1)], layout=torch.jagged).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    is_list = isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)
    if not isinstance(ts, Tensor) and not is_list:
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, tuple):
        ts = list(ts)
    if isinstance(ts, Tensor) and ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, (NestedTensor, StridedNestedTensor)) and layout in (None, ts.layout):
        return ts.to(device=device, dtype=dtype) if dtype is not None else ts
    if isinstance(ts, (NestedTensor, StridedNestedTensor)):
        raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
    if not _is_jagged(layout):
        return strided_from_list(list(ts.unbind(0)) if isinstance(ts, Tensor) else ts, dtype)
    if isinstance(ts, Tensor):
        batch, size = ts.shape[:2]
        values = ts.reshape(batch * size, *ts.shape[2:])
        if dtype is not None:
            values = values.to(dtype)
        number_first_view()
        return nested_of(values, Structure(fn.arange(0, batch + 1) * size, None, 1))
    return jagged_from_list(ts, None, dtype=dtype, device=device)[0]


def nested_tensor_from_jagged(values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None,
                              jagged_dim: int | None = None, min_seqlen: int | None = None,
                              max_seqlen: int | None = None) -> Tensor:
    """A nested tensor on the memory of `values`.

    Args:
        values: (sum of sizes, ...), the components along dimension `jagged_dim` - 1.
        offsets: (B + 1,), the beginnings of the components, and the end of the last.
        lengths: (B,), their sizes; with `offsets`, there may be holes between the components.
        jagged_dim: the ragged dimension of the result; default 1.

    Raises:
        RuntimeError: neither `offsets` nor `lengths` is given.
        ValueError: `jagged_dim` is less than 1.

    >>> import flambeau as torch
    >>> x = torch.nested.nested_tensor_from_jagged(torch.arange(5), torch.tensor([0, 2, 5]))
    >>> x.unbind()
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets = fn.cat([fn.zeros(1, dtype=lengths.dtype), lengths.cumsum(0)])
        lengths = None
    for name, x in (("values", values), ("offsets", offsets)):
        if not isinstance(x, Tensor):
            place = 1 if name == "values" else 2
            raise TypeError(f"_nested_view_from_jagged(): argument '{name}' (position {place}) must be Tensor, not "
                            f"{type(x).__name__}")
    if jagged_dim is None:
        jagged_dim = 1
    elif jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    number_first_view()
    return nested_of(values, known(Structure(offsets, lengths, jagged_dim), min_seqlen, max_seqlen))


def narrow(tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor,
           layout: Any = devices.strided) -> Tensor:
    """A nested tensor of a part of each row, on the tensor's memory.

    Args:
        tensor: (B, S, ...).
        dim: 1.
        start, length: (B,) or a number, of each row's part.
        layout: `torch.jagged`.

    Raises:
        RuntimeError: `dim` is not 1, or the layout is strided.

    >>> import flambeau as torch
    >>> x = torch.arange(8).reshape(2, 4)
    >>> torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged).unbind()
    (tensor([0, 1]), tensor([5, 6, 7]))
    """
    if layout == devices.strided and (isinstance(start, Tensor) or isinstance(length, Tensor)):
        raise RuntimeError("start and length must be integers for the strided layout NT impl")
    if not _is_jagged(layout):
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    starts, lengths = (x if isinstance(x, Tensor) else fn.tensor([x], dtype=dtypes.int64)
                       for x in (start, length))
    return jagged_from_tensor_and_lengths(tensor, starts, lengths)[0]


def to_padded_tensor(input: Tensor, padding: float, output_size: Any = None, out: Any = None) -> Tensor:
    """A dense tensor of the components, padded to the longest.

    Args:
        padding: the value of the elements that are added.
        output_size: the shape of the result.

    Raises:
        RuntimeError: there are holes between the components.

    >>> import flambeau as torch
    >>> x = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)
    >>> torch.nested.to_padded_tensor(x, 0.)
    tensor([[1., 0.],
            [1., 1.]])
    """
    result: Tensor = input.to_padded_tensor(padding, output_size)
    return result


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """A nested tensor of the elements of each row that a mask selects.

    Args:
        tensor: (B, S).
        mask: bool, broadcast to the tensor.

    Raises:
        RuntimeError: the tensor is not strided.

    >>> import flambeau as torch
    >>> x = torch.arange(4).reshape(2, 2)
    >>> torch.nested.masked_select(x, torch.tensor([[True, True], [False, True]])).unbind()
    (tensor([0, 1]), tensor([3]))
    """
    if tensor.layout != devices.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout != devices.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    values = tensor.masked_select(mask)
    counts = mask.expand(tensor.shape).flatten(1).sum(1) if mask.dim() > 1 else mask.expand(tensor.shape).sum(-1)
    number_first_view()
    return nested_of(values, Structure(fn.cat([fn.zeros(1, dtype=counts.dtype), counts.cumsum(0)]), None, 1))
