"""Hooks of graph nodes: removable handles, ordered hook dictionaries, and the rarely used state of a node."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from ...modes import module_changes


class RemovableHandle:
    """Removes a hook: by `handle.remove()`, or at the end of a `with` block.

    See https://docs.pytorch.org/docs/stable/generated/torch.utils.hooks.RemovableHandle.html

    >>> import flambeau as torch
    >>> x = torch.tensor(2., requires_grad=True)
    >>> with x.register_hook(print):
    ...     (x * 3).backward()
    tensor(3.)
    >>> (x * 3).backward()
    """

    next_id = 0  #: the id of the next hook

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        others = extra_dict if isinstance(extra_dict, list) else [extra_dict] if extra_dict is not None else []
        self.extra_dict_ref = tuple(weakref.ref(d) for d in others)

    def remove(self) -> None:
        """Remove the hook; a second call has no effect."""
        module_changes[0] += 1
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, *others = state
        self.hooks_dict_ref = weakref.ref(HookDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(HookDict() if d is None else d) for d in (others[0] if others else ()))
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class HookDict(OrderedDict):
    """Hooks in the order of their registration; a plain dict takes no weak reference."""


class NodeExtra:
    """State that few nodes have: hooks, metadata, and what links a node to tensors."""

    __slots__ = ("copy_slices", "metadata", "output_info", "post_hooks", "pre_hooks", "retained", "tangents",
                 "tensor_hooks", "written_view")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, HookDict] | None = None  # output number -> hooks on that cotangent
        self.retained: dict[int, Any] | None = None  # output number -> weak reference to the tensor of `retain_grad`
        self.output_info: dict[int, Any] | None = None  # output number -> shape and dtype, for gradient edges
        self.pre_hooks: HookDict | None = None
        self.post_hooks: HookDict | None = None
        self.metadata: dict[Any, Any] | None = None
        self.tangents: dict[int, Any] | None = None  # of saved outputs, by output number
        self.copy_slices: Any = None  # weak reference to the CopySlices node that runs this one on a slice
        self.written_view: Any = None  # weak reference to the view that the operator wrote to


__all__ = ["HookDict", "NodeExtra", "RemovableHandle"]
