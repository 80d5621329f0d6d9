"""Autograd methods of the tensor: `backward`, hooks, `retain_grad`, `requires_grad_` and `detach_`."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy import ndarray

from ...engine.api import backward as run_engine
from ...engine.engine import run_backward
from ...engine.nodes.hooks import HookDict, RemovableHandle
from ...engine.nodes.leaf_hooks import LeafHooks
from ...engine.saved.version_counters import DETACHED, DetachedCounter
from ...modes import active_transforms, dispatch_in_use, inference, transform_stack
from ..argument_errors.type_names import type_name
from ..overriding.other_objects import with_other_object
from ..tensor import Tensor, wrap
from ..views.untracked import update_requires_grad

_INSIDE_TRANSFORM = (
    "You are attempting to call Tensor.{} inside of a function being transformed by a functorch transform. This is "
    "unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call {} "
    "outside of a function being transformed instead."
)

#: the initial cotangents of 0-d tensors, read-only
_ONES = {}
for _type in (np.dtype(np.float32), np.dtype(np.float64)):
    _one = np.ones((), _type)
    _one.setflags(write=False)
    _ONES[_type] = wrap(_one)


def backward(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:
    """Accumulate the gradient of this tensor, weighted by `gradient`, into the `.grad` of the leaves of its graph.

    Args:
        gradient: the cotangent, of this tensor's shape; may be omitted for a tensor with one element.
        retain_graph: keep the saved tensors, for another backward. Default: `create_graph`.
        create_graph: record the computation of the gradients.
        inputs: accumulate only into these tensors.

    Raises:
        RuntimeError: several elements and no gradient; no graph; the graph was freed.

    >>> import flambeau as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> (x ** 2).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if (inputs is None and not create_graph and self._requires_grad and not active_transforms[0]
            and not dispatch_in_use[0]):
        a = self._array
        node = self._node if self._base is None else self.grad_fn
        if node is None:
            pass
        elif gradient is None:
            seed = _ONES.get(a.dtype) if not a.ndim and a.__class__ is ndarray else None
            if seed is None and a.size == 1 and a.__class__ is ndarray and a.dtype.kind == "f":
                seed = wrap(np.ones_like(a))
            if seed is not None:
                run_backward(((node, self._output_nr),), (seed,), create=False,
                             retain=retain_graph is not None and bool(retain_graph))
                return
        elif gradient.__class__ is Tensor and gradient._array.shape == a.shape and gradient._array.dtype is a.dtype:
            run_backward(((node, self._output_nr),), (gradient,), retain=bool(retain_graph), create=False)
            return
    run_engine(self, gradient, retain_graph, create_graph, inputs=inputs)


def retain_grad(self: Tensor) -> None:
    """Store this non-leaf's gradient in `.grad` during backward.

    Raises:
        RuntimeError: it does not require grad.

    >>> import flambeau as torch
    >>> y = torch.ones(1, requires_grad=True) * 2
    >>> y.retain_grad()
    >>> (y * 3).sum().backward()
    >>> y.grad
    tensor([3.])
    """
    if active_transforms[0] and transform_stack.get():
        raise RuntimeError(_INSIDE_TRANSFORM.format("retain_grad()", "retain_grad()"))
    if not self._requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._retains_grad or not self._has_node():
        return
    node = self.grad_fn
    assert node is not None
    self._retains_grad = True
    extra = node.make_extra()
    if extra.retained is None:
        extra.retained = {}
    extra.retained[self._output_nr] = weakref.ref(self)


def register_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Call `hook(grad)` when this tensor's gradient is computed; a result other than None replaces the gradient.

    Returns:
        A handle whose `remove()` removes the hook.

    Raises:
        RuntimeError: the tensor does not require grad.

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10.])
    """
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = self.grad_fn
    hooks = self._hooks
    new = hooks is None
    if hooks is None:
        hooks = self._hooks = HookDict()
    if node is not None:
        if new:
            node.register_tensor_hook(self._output_nr, hooks)
    else:
        LeafHooks.register(self)
        reference = self._accumulator
        node = None if reference is None else reference()
        if node is not None:
            node.register_tensor_hook(0, hooks)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_post_accumulate_grad_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Call `hook(tensor)` after this leaf's gradient was accumulated.

    Raises:
        RuntimeError: the tensor is not a leaf, or does not require grad.

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
    >>> x.sum().backward()
    tensor([1.])
    """
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self._post_accumulate_hooks is None:
        self._post_accumulate_hooks = HookDict()
    LeafHooks.register(self)
    handle = RemovableHandle(self._post_accumulate_hooks)
    self._post_accumulate_hooks[handle.id] = hook
    return handle


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` in place and return this tensor.

    >>> import flambeau as torch
    >>> torch.ones(1).requires_grad_()
    tensor([1.], requires_grad=True)
    """
    if active_transforms[0] and transform_stack.get():
        raise RuntimeError(_INSIDE_TRANSFORM.format(
            "requires_grad_() (or perhaps using torch.autograd.functional.* APIs)", "requires_grad_()"))
    if requires_grad is not True and requires_grad is not False:
        raise TypeError("requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                        f"{type_name(requires_grad)}")
    self.requires_grad = requires_grad
    return self


def detach_(self: Tensor) -> Tensor:
    """Remove this tensor from its graph, in place: it becomes a leaf.

    Raises:
        RuntimeError: it is a view.

    >>> import flambeau as torch
    >>> y = torch.ones(1, requires_grad=True) * 2
    >>> y.detach_()
    tensor([2.])
    """
    if inference.get():
        return self  # as in PyTorch, where autograd does not see the call
    try:
        base = self._base
    except AttributeError as error:
        return with_other_object(error, detach_, (self,))
    if base is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using "
                           "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
                           "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
                           "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
                           "function in torch/optim/optimizer.py as the solution.")
    if self._node is not None:
        _mark_detached(self)
    if self._tangents is not None:
        self._tangents = None
    self._node = None
    self._output_nr = 0
    self._requires_grad = False
    update_requires_grad(self)
    return self


def _mark_detached(self: Tensor) -> None:
    """Invalidate this tensor in nodes that saved it, since it no longer has the graph that they need.

    Its version is raised by DETACHED, which is more than any number of writes; that of its views, and of the node that
    saved it as its own result, is not.
    """
    counter = self._counter
    self._counter = [DETACHED] if counter is None else DetachedCounter(counter)


METHODS: dict[str, Any] = {
    "backward": backward, "retain_grad": retain_grad, "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook, "requires_grad_": requires_grad_,
    "detach_": detach_,
}
