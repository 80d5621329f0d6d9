"""Functions of `torch` that its own modules call: deprecated norms, dropout with its mask, copies of views, queries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..dtypes import bool_, int8, int32, uint8
from ..dtypes import dtype as dtype_class
from ..engine.tensor_interface import layer
from ..modes import special
from ..ops.declare import REGISTRY
from ..warning_location import always, user_stacklevel
from .argument_errors.out_arguments import check_records_nothing
from .dispatch.apply import apply
from .dispatch.out_tensors import write_out
from .dispatch.public_functions import public_function
from .linalg.norms import check_norm_dtype
from .sparse.recording import record
from .tensor import Tensor, wrap

__all__ = ["_has_compatible_shallow_copy_type", "_int_mm", "_log_softmax_backward_data", "_shape_as_tensor",
           "_softmax_backward_data",
           "frobenius_norm", "get_device", "init_num_threads", "is_distributed", "is_vulkan_available",
           "native_dropout", "nuclear_norm", "slice_inverse", "view_as_complex_copy", "view_as_real_copy",
           "view_copy"]

_warned: set[str] = set()


def _warn_deprecated(name: str, instead: str) -> None:
    if name not in _warned or always[0]:
        _warned.add(name)
        warnings.warn(f"at::{name} is deprecated and it is just left for JIT compatibility. It will be removed in a "
                      f"future PyTorch release. Please use `{instead}` instead", UserWarning,
                      stacklevel=user_stacklevel())


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`linalg.vector_norm` of order 2. Deprecated.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.frobenius_norm(torch.tensor([3., 4.]), 0)
    tensor(5.)
    """
    if (not isinstance(dim, int) and any(not isinstance(d, int) for d in dim)) or keepdim.__class__ is not bool:
        raise TypeError("frobenius_norm(): an argument has a wrong type")  # a guard says which
    _warn_deprecated("frobenius_norm", "linalg.vector_norm(A, 2., dim, keepdim)")
    if not isinstance(dim, int) and len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    if out is not None:
        check_records_nothing("norm", (input,), (out,))
    check_norm_dtype(input)
    if out is None:
        dims = (dim,) if isinstance(dim, int) else tuple(dim) or None
        return apply(REGISTRY["_norm_in_dims"], [input], {"ord": 2, "dim": dims, "keepdim": keepdim})
    return layer.functions.norm(input, 2, dim, keepdim, out=out)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`linalg.matrix_norm` of order "nuc". Deprecated.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.nuclear_norm(torch.eye(2))
    tensor(2.)
    """
    if isinstance(dim, (tuple, list)) and any(isinstance(d, bool) for d in dim):
        raise TypeError("nuclear_norm(): argument 'dim' must be tuple of ints")  # a guard says more
    _warn_deprecated("nuclear_norm", "linalg.matrix_norm(A, 'nuc', dim, keepdim)")
    dim = (-2, -1) if dim is None else (dim, dim) if isinstance(dim, int) and not isinstance(dim, bool) else dim
    if isinstance(dim, bool):  # of the overload without dimensions
        dim, keepdim = (-2, -1), dim
    return layer.functions.linalg_matrix_norm(input, "nuc", dim, keepdim, out=out)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout`, and the mask of the elements that are kept.

    >>> import flambeau as torch
    >>> torch.native_dropout(torch.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    fn = layer.functions
    if train is False or not input.numel():
        return input, fn.ones(input._array.shape, dtype=bool_)
    mask = fn.empty_like(input).bernoulli_(1 - p).bool()
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return fn.mul(fn.mul(input, mask), scale), mask


def slice_inverse(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:
    """The view of the size, strides and offset of `src` of the memory that `input` is a slice of.

    Args:
        input: a slice.
        src: a tensor as the one that was sliced.
        dim, start, end, step: the slice, which `src` makes unnecessary.

    >>> import flambeau as torch
    >>> x = torch.arange(4)
    >>> torch.slice_inverse(x[1:3], x, 0, 1, 3)
    tensor([0, 1, 2, 3])
    """
    fn = layer.functions
    out: Tensor = fn.as_strided(input, src._array.shape, src.stride(), src.storage_offset())
    if special[0] and layer.is_handled(input):
        return out

    def rule(g: Tensor) -> tuple[Tensor, Tensor]:
        return (layer.functions.slice_copy(g, dim, start, end, step),
                layer.functions.slice_scatter(g, g.new_zeros(input._array.shape), dim, start, end, step))

    return record(out, "SliceInverseBackward0", (input, src), rule)


def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `view_as_real` returns.

    >>> import flambeau as torch
    >>> torch.view_as_real_copy(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    result = layer.functions.view_as_real(input).clone()
    return result if out is None else write_out(REGISTRY["slice_copy"], result, out)  # checked as other copies of views


def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `view_as_complex` returns.

    >>> import flambeau as torch
    >>> torch.view_as_complex_copy(torch.tensor([[1., 2.]]))
    tensor([1.+2.j])
    """
    if out is not None:
        check_records_nothing("view_as_complex_copy", (input,), (out,))
    result = layer.functions.view_as_complex(input).clone()
    return result if out is None else write_out(REGISTRY["slice_copy"], result, out)  # checked as other copies of views


def view_copy(input: Tensor, size: Any = None, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `Tensor.view` returns.

    Args:
        size: the sizes, or a dtype.

    >>> import flambeau as torch
    >>> torch.view_copy(torch.ones(2), (2, 1)).shape
    flambeau.Size([2, 1])
    """
    if size.__class__ is dtype_class:
        size, dtype = None, size
    if dtype is None:
        return public_function(REGISTRY["view_copy"])(input, size, out=out)
    result = input.view(dtype).clone()
    return result if out is None else write_out(REGISTRY["slice_copy"], result, out)


def get_device(input: Tensor) -> int:
    """The index of the tensor's device: -1, the CPU's.

    >>> import flambeau as torch
    >>> torch.get_device(torch.ones(1))
    -1
    """
    return -1


def is_distributed(input: Tensor) -> bool:
    """Whether the tensor is distributed: never.

    >>> import flambeau as torch
    >>> torch.is_distributed(torch.ones(1))
    False
    """
    return False


def is_vulkan_available() -> bool:
    """Whether there are Vulkan devices: never.

    >>> import flambeau as torch
    >>> torch.is_vulkan_available()
    False
    """
    return False


def init_num_threads() -> None:
    """Does nothing: the number of threads is set on first use.

    >>> import flambeau as torch
    >>> torch.init_num_threads()
    """


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether the data of a tensor may be replaced by another one's: both have memory, or both are sparse."""
    return input.layout is from_.layout


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any, *,
                           grad_input: Tensor | None = None) -> Tensor:
    """The gradient of `softmax` along a dimension by its result, in the dtype of its input."""
    op = REGISTRY["_softmax_backward"]
    found = apply(op, [grad_output, output], {"dim": dim}).to(input_dtype)
    return found if grad_input is None else write_out(op, found, grad_input)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any, *,
                               out: Tensor | None = None) -> Tensor:
    """The gradient of `log_softmax` along a dimension by its result, in the dtype of its input."""
    op = REGISTRY["_log_softmax_backward"]
    found = apply(op, [grad_output, output], {"dim": dim}).to(input_dtype)
    return found if out is None else write_out(op, found, out)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The shape of a tensor as int64 numbers.

    >>> import flambeau as torch
    >>> torch._shape_as_tensor(torch.zeros(2, 3))
    tensor([2, 3])
    """
    return wrap(np.array(self.shape, np.int64))


def _int_mm(self: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of matrices of 8-bit integers, in int32.

    Raises:
        RuntimeError: an operand has another dtype or number of dimensions, or the sizes do not fit.
    """
    for name, x in (("self", self), ("mat2", mat2)):
        if x.ndim != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {x.ndim}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {self.shape[1]} and "
                           f"{mat2.shape[0]}")
    for name, x in (("self", self), ("mat2", mat2)):
        if x.dtype not in (int8, uint8):
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} dtype to be int8 or uint8 but got "
                               f"{x.dtype.scalar_name.lower()}")
    found = layer.functions.mm(self.to(int32), mat2.to(int32))
    return found if out is None else write_out(REGISTRY["mm"], found, out)


METHODS: dict[str, Any] = {"slice_inverse": slice_inverse}
