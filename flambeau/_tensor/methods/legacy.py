"""Methods that PyTorch deprecated or removed, or that concern absent devices and layouts."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

from ...backends.numpy.memory import address
from ...devices import strided
from ...engine.tensor_interface import layer
from ...warning_location import user_stacklevel
from ..shape.reshaping import reshaped
from ..tensor import Tensor

_MTIA = ("Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` "
         "in your python src file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!")
_REINFORCE = """reinforce() was removed.
Use torch.distributions instead.
See https://pytorch.org/docs/main/distributions.html

Instead of:

probs = policy_network(state)
action = probs.multinomial()
next_state, reward = env.step(action)
action.reinforce(reward)
action.backward()

Use:

probs = policy_network(state)
# NOTE: categorical is equivalent to what used to be called multinomial
m = torch.distributions.Categorical(probs)
action = m.sample()
next_state, reward = env.step(action)
loss = -m.log_prob(action) * reward
loss.backward()
"""


def reinforce(self: Tensor, reward: Any) -> None:
    """Removed: use `distributions`.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> torch.distributions.Categorical(torch.tensor([1., 0.])).sample()
    tensor(0)
    """
    raise RuntimeError(_REINFORCE)


def _resized(self: Tensor, size: tuple[int, ...]) -> Tensor:
    count, shape = prod(size), self._array.shape
    if count != self.numel():
        raise RuntimeError(f"requested resize to {'x'.join(map(str, size))} ({count} elements in total), but the "
                           f"given tensor has a size of {'x'.join(map(str, shape))} ({self.numel()} elements). "
                           "autograd's resize can only change the shape of a given tensor, while preserving the "
                           "number of elements. ")
    return reshaped(layer.functions.contiguous(self), size)


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The tensor in another shape of as many elements. Deprecated: use `reshape`.

    Raises:
        RuntimeError: the number of elements differs.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.ones(2, 2).resize(4)
    tensor([1., 1., 1., 1.])
    """
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=user_stacklevel())
    size = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    return _resized(self, size)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The tensor in the shape of another with as many elements. Deprecated: use `reshape_as`.

    Raises:
        RuntimeError: the number of elements differs.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.ones(2, 2).resize_as(torch.ones(4))
    tensor([1., 1., 1., 1.])
    """
    warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=user_stacklevel())
    return _resized(self, tuple(tensor._array.shape))


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` puts in place of a parameter or buffer where it swaps tensors.

    Args:
        other: the loaded tensor.
        assign: whether `other` itself takes the place, rather than this tensor with its values.

    >>> import flambeau as torch
    >>> torch.zeros(2).module_load(torch.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else self.copy_(other).detach()


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions in memory order, outermost first.

    Args:
        ambiguity_check: True to refuse tensors with more than one such order, or the memory formats of which exactly
            one must describe the tensor.

    Raises:
        RuntimeError: the order is ambiguous.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).t().dim_order()
    (1, 0)
    """
    if not isinstance(ambiguity_check, bool) and not (isinstance(ambiguity_check, list) and all(
            type(x).__name__ == "memory_format" for x in ambiguity_check)):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if self.layout is not strided:
        raise AttributeError(f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to convert to a "
                             "dense tensor first.")
    strides, shape = self.stride(), self._array.shape
    dims = list(range(len(shape)))
    # as PyTorch's: a stable insertion sort in which dimensions of size 1 keep their place
    order = sorted(dims, key=lambda d: -strides[d])
    if ambiguity_check is True or (isinstance(ambiguity_check, list) and sum(
            self.is_contiguous(memory_format=f) for f in ambiguity_check) != 1):
        ambiguous = len(set(strides)) != len(strides) or any(n == 1 for n in shape)
        if ambiguous:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given "
                               "memory formats.")
    return tuple(order)


def _fix_weakref(self: Tensor) -> None:
    """Let weak references that were made before the tensor was released see it again: nothing to do."""


def const_data_ptr(self: Tensor) -> int:
    """The address of the first element.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return address(self._array) if self._array.size else 0


def _other_device(name: str, error: Exception) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        raise error

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (f"Copy to {name.upper()} memory, which does not exist.\n\n    Raises:\n"
                      f"        {type(error).__name__}: always.\n\n    >>> import flambeau as torch\n"
                      f"    >>> torch.ones(2).{name}()\n    Traceback (most recent call last):\n"
                      f"    {type(error).__name__}: {error}")
    return method


def to_padded_tensor(self: Tensor, padding: float, output_size: Any = None) -> Tensor:
    """A dense tensor of the components of a nested one, padded to the longest.

    Args:
        padding: the value of the elements that are added.
        output_size: the shape of the result.

    Raises:
        NotImplementedError: the tensor is not nested.

    >>> import flambeau as torch
    >>> x = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)
    >>> x.to_padded_tensor(0.)
    tensor([[1., 0.],
            [1., 1.]])
    """
    raise NotImplementedError("Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend. This "
                              "could be because the operator doesn't exist for this backend, or was omitted during the "
                              "selective/custom build process (if using custom build).")


METHODS: dict[str, Any] = {
    "reinforce": reinforce, "resize": resize, "resize_as": resize_as, "module_load": module_load,
    "dim_order": dim_order, "const_data_ptr": const_data_ptr,
    "_fix_weakref": _fix_weakref, "to_padded_tensor": to_padded_tensor,
    "xpu": _other_device("xpu", AssertionError("Torch not compiled with XPU enabled")),
    "ipu": _other_device("ipu", RuntimeError("PyTorch is not linked with support for ipu devices")),
    "mtia": _other_device("mtia", AssertionError(_MTIA)),
}
