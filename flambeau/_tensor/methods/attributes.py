"""Attributes of the tensor that only raise or warn: deleters, `volatile`, `_backward_hooks`; `grad_dtype`, `is_ipu`."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from ... import dtypes
from ...engine.nodes.leaf_hooks import LeafHooks
from ...warning_location import user_stacklevel
from ..tensor import Tensor


def _undeletable(message: str) -> Any:
    def refuse(self: Tensor) -> NoReturn:
        raise RuntimeError(message)

    return refuse


def _volatile(self: Tensor) -> bool:
    """Deprecated: always False.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.ones(2).volatile
    False
    """
    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=user_stacklevel())
    return False


def _set_volatile(self: Tensor, *value: Any) -> None:
    warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", UserWarning,
                  stacklevel=user_stacklevel())


def _hooks_of(self: Tensor) -> Any:
    return self._hooks


def _set_hooks(self: Tensor, hooks: Any) -> None:
    """Set the hook dictionary of this leaf, or remove all hooks with None. Other tensors only store it."""
    self._hooks = hooks
    if self.grad_fn is not None:
        return
    node = None if self._accumulator is None else self._accumulator()
    if hooks is None:
        if node is not None and node.extra is not None and node.extra.tensor_hooks is not None:
            node.extra.tensor_hooks.pop(0, None)
    elif node is not None:
        node.register_tensor_hook(0, hooks)
    else:
        LeafHooks.register(self)


def _set_history(self: Tensor, value: None) -> None:
    if value is not None:
        raise RuntimeError("_grad_fn can be only set to None")
    self.detach_()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was created in inference mode.

    >>> import flambeau as torch
    >>> with torch.inference_mode():
    ...     x = torch.ones(1)
    >>> torch.is_inference(x)
    True
    """
    return input._inference


def _grad_dtype(self: Tensor) -> Any:
    """The dtype of this leaf's gradient: the tensor's by default; None permits any.

    If it is set to another dtype, gradients are converted to it before they are accumulated.
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.grad_dtype.html

    Raises:
        RuntimeError: not a leaf; not a dtype; the tensor already has a gradient of another dtype.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> x.grad_dtype = torch.float64
    >>> x.sum().backward()
    >>> x.grad
    tensor([1., 1.], dtype=flambeau.float64)
    """
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype if self._grad_type == () else self._grad_type


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    if value is not None and not isinstance(value, dtypes.dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    existing = self._grad
    if value is not None and existing is not None and existing.dtype is not value:
        raise RuntimeError(f"Cannot set grad_dtype to '{value.scalar_name}' because there is already a gradient with "
                           f"dtype '{dtypes.C_NAMES[existing.dtype.name]}'. Please clear the gradient (.grad = None) "
                           "before changing grad_dtype, or ensure the new grad_dtype matches the existing gradient's "
                           "dtype.")
    self._grad_type = value
    LeafHooks.register(self)  # so that the engine takes the general path, which converts


def _cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """The tensor's memory on a GPU, as CuPy and Numba take it (version 2 of the protocol).

    Raises:
        AttributeError: the tensor is on another device, or sparse.
        RuntimeError: it requires grad.

    >>> import flambeau as torch
    >>> hasattr(torch.ones(1), "__cuda_array_interface__")
    False
    """
    if self._device.type != "cuda":
        raise AttributeError(f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} "
                             "If CUDA data is required use tensor.cuda() to copy tensor to device memory.")
    if self._requires_grad:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't "
                           "required, use var.detach() to get Variable that doesn't require grad.")
    strides = None if self.is_contiguous() else tuple(s * self.element_size() for s in self.stride())
    return {"typestr": "<V2" if self.dtype is dtypes.bfloat16 else self.dtype.numpy.str, "shape": tuple(self.shape),
            "strides": strides, "data": (self.data_ptr() if self.numel() else 0, False), "version": 2}


def _on_other_device(name: str) -> property:
    return property(lambda self: False, doc=f"""Whether the tensor is on a device of the kind {name}: never.

    >>> import flambeau as torch
    >>> torch.ones(2).is_{name}
    False
    """)


METHODS: dict[str, Any] = {
    "__cuda_array_interface__": property(_cuda_array_interface),
    "data": Tensor.data.deleter(  # type: ignore[attr-defined]
        _undeletable("Deleting tensor data is not allowed. Delete tensor instead!")),
    "requires_grad": Tensor.requires_grad.deleter(  # type: ignore[attr-defined]
        _undeletable("requires_grad must be a bool")),
    "grad_dtype": property(_grad_dtype, _set_grad_dtype),
    "_grad_fn": property(lambda self: self.grad_fn, _set_history,
                         _undeletable("Deletion of _grad_fn not allowed. Detach tensor instead!")),
    "_backward_hooks": property(_hooks_of, _set_hooks, _undeletable("Deletion of _backwards_hooks not allowed!")),
    **{f"is_{name}": _on_other_device(name) for name in ("ipu", "maia", "mtia", "vulkan", "xla")},
    "volatile": property(_volatile, _set_volatile, _set_volatile),
}

__all__ = ["is_inference"]
