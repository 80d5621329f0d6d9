"""Saved-tensor hooks: a tensor is packed when a node saves it, and unpacked whenever it is read.

While hooks are active, operators take the general path, which calls the pack hook for each saved tensor; the node then
stores what the hook returned, and no array. Python scalars are not packed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ...modes import grad_mode, special
from ..tensor_interface import layer

Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]
Hooks = tuple[Pack, Unpack]

_stack: ContextVar[tuple[Hooks, ...]] = ContextVar("saved_tensor_hooks", default=())
_disabled_message: ContextVar[str | None] = ContextVar("saved_tensor_hooks_disabled", default=None)

_MODIFIED_BY_HOOK = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
    "perform in-place operations on the input to a pack hook."
)


def push_hooks(pack: Pack, unpack: Unpack) -> None:
    """Activate a pair of hooks in this thread; only the innermost pair is called.

    Raises:
        RuntimeError: hooks are disabled.
        TypeError: one is not callable.
    """
    if not (callable(pack) and callable(unpack)):
        raise TypeError("_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument "
                        "types are supported:\n    1. (arg0: collections.abc.Callable, arg1: collections.abc.Callable) "
                        f"-> None\n\nInvoked with: {pack!r}, {unpack!r}")
    message = _disabled_message.get()
    if message is not None:
        raise RuntimeError(message)
    _stack.set((*_stack.get(), (pack, unpack)))
    special[0] += 1


def pop_hooks() -> None:
    """Deactivate the innermost pair.

    Raises:
        RuntimeError: no hooks are active.
    """
    stack = _stack.get()
    if not stack:
        raise RuntimeError("no saved tensor hooks are active in this thread")
    _stack.set(stack[:-1])
    special[0] -= 1


def innermost_hooks() -> Hooks | None:
    """The active pair of this thread that is called, or None."""
    stack = _stack.get()
    return stack[-1] if stack else None


def disabled_message() -> str | None:
    """The error message of an attempt to activate hooks while they are disabled, or None."""
    return _disabled_message.get()


def disable_hooks(message: str | None, *, fail_if_on: bool = True) -> None:
    """Disable hooks in this thread; an attempt to use them raises the message. None enables them.

    Raises:
        RuntimeError: hooks are active.
    """
    _disabled_message.set(message)
    if message is not None and fail_if_on and _stack.get():
        raise RuntimeError(message)


class Packed:
    """A packed saved tensor: what the pack hook returned, and the tensor's history."""

    __slots__ = ("accumulator", "as_scalar", "data", "is_output", "node", "number", "requires_grad", "tangents",
                 "unpack_hook")

    def __init__(self, x: Any, hooks: Hooks, *, is_output: bool = False, hook_input: Any = None,
                 as_scalar: bool = False) -> None:
        """Pack a tensor.

        Args:
            x: the tensor that is saved.
            is_output: whether the saving node computed it; then no reference to the node is stored, to avoid a cycle.
            hook_input: the tensor that the pack hook receives instead of `x`.
            as_scalar: whether it represents a Python scalar, and is read as one.
        """
        node = x._node if x._base is None else x.grad_fn
        self.is_output = is_output and node is not None
        self.node = None if is_output else node
        self.number = x._output_nr
        self.requires_grad = x._requires_grad and node is None
        self.accumulator = layer.gradient_edge(x) if self.requires_grad else None
        self.tangents = x._tangents
        self.as_scalar = as_scalar
        self.unpack_hook = hooks[1]
        argument = x if hook_input is None else hook_input
        version = 0 if argument._counter is None else argument._counter[0]
        grad = grad_mode.set(False)
        try:
            self.data = hooks[0](argument)
        finally:
            grad_mode.reset(grad)
        if (0 if argument._counter is None else argument._counter[0]) != version:
            raise RuntimeError(_MODIFIED_BY_HOOK)

    def unpack(self, owner: Any = None) -> Any:
        """The tensor that the unpack hook returns, with the saved history.

        Args:
            owner: the node that saved it.

        Raises:
            TypeError: the hook returned no tensor.
        """
        stack = _stack.get()
        try:
            data = self.unpack_hook(self.data)
        finally:
            if _stack.get() is not stack:  # the hook activated or deactivated hooks
                special[0] += len(stack) - len(_stack.get())
                _stack.set(stack)
        if not isinstance(data, layer.tensor_class):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                            f"{type(data).__name__}")
        if self.as_scalar:
            return data.item()
        node = owner if self.is_output else self.node
        if node is None and not self.requires_grad and not data._requires_grad and not self.tangents:
            return data
        if type(data) is not layer.tensor_class and layer.is_handled(data):
            tensor = data.detach()  # the array of such a tensor may be a placeholder
        else:
            tensor = layer.wrap(data._array)
        if data._counter is None:
            data._counter = [0]
        tensor._counter = data._counter
        if node is not None:
            tensor._node, tensor._output_nr, tensor._requires_grad = node, self.number, True
        elif self.requires_grad:
            tensor._requires_grad = True
            if self.accumulator is not None:  # an inference tensor has none
                tensor._accumulator = weakref.ref(self.accumulator)
        if self.tangents:
            tensor._tangents = self.tangents
        return tensor


class SavedTensor:
    """One saved tensor of a node: `grad_fn._raw_saved_<name>`.

    >>> import flambeau as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> y = x * x
    >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.item(), torch.tensor)
    >>> y.grad_fn._raw_saved_self.data
    3.0
    >>> y.backward()
    >>> x.grad
    tensor(6.)
    """

    _node: Any
    _position: int

    def __init__(self, *args: Any) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, *hooks: Any) -> None:
        """`register_hooks(pack_hook, unpack_hook)`: pack the saved tensor now, and unpack it whenever it is read.

        Raises:
            RuntimeError: it has hooks already, was freed, or is None; or the pack hook writes to its input.
        """
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError("register_hooks(): incompatible function arguments. The following argument types are "
                            "supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, "
                            "arg1: collections.abc.Callable) -> None\n\n"
                            f"Invoked with: {', '.join(map(repr, (self, *hooks)))}")
        self._node._pack_saved(self._position, hooks)

    @property
    def data(self) -> Any:
        """What the pack hook returned, or the tensor itself."""
        return self._node._raw_data(self._position)

    @property
    def unpack_hook(self) -> Unpack | None:
        """The unpack hook, if the tensor is packed."""
        return self._node._unpack_hook_of(self._position)

    def unpack(self) -> Any:
        """The tensor that was saved."""
        return self._node.tensor_at(self._position)

    def __repr__(self) -> str:
        return f"<torch._C._autograd.SavedTensor object at {id(self):#x}>"


def saved_tensor_of(node: Any, position: int) -> SavedTensor:
    """The saved tensor of a node at a position."""
    saved = object.__new__(SavedTensor)
    saved._node, saved._position = node, position
    return saved


HAS_HOOKS = ("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
             "is allowed at a time.")
IS_FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
    "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved variables after calling backward."
)
IS_NONE = "Calling register_hooks on a saved tensor with value None is forbidden"

__all__ = [
    "HAS_HOOKS",
    "IS_FREED",
    "IS_NONE",
    "Hooks",
    "Packed",
    "SavedTensor",
    "disable_hooks",
    "disabled_message",
    "innermost_hooks",
    "pop_hooks",
    "push_hooks",
    "saved_tensor_of",
]
