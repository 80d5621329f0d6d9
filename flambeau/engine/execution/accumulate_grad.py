"""AccumulateGrad: the node of a leaf, and the accumulation into `.grad`, without a copy where possible."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import BitView
from ...backends.compiled import copy_with_layout, new_copy
from ...backends.compiled.thresholds import LARGE_SEEN, PERMUTED_COPIES
from ...backends.elementless_array import ElementlessArray
from ...backends.sparse_array import SparseAccess, SparseArray
from ...devices import contiguous_format
from ...kernels.memory_format import is_dense
from ...modes import active_tracer, device_memory, dispatch_in_use, grad_mode, lazy_storages, special
from ...shapes import broadcast_shapes
from ..nodes.hooks import NodeExtra
from ..nodes.leaf_hooks import LeafHooks
from ..nodes.node import Node, call_node, next_number
from ..policies import keeps_layout
from ..rules.deferred_accumulation import DeferredSum
from ..rules.large_arrays import add as add_large
from ..tensor_interface import layer

_lock = threading.Lock()
_add = np.add


def _references(box: list[Any]) -> int:
    g = box.pop()
    return sys.getrefcount(g)


def _references_to_base(view: np.ndarray) -> int:
    return sys.getrefcount(view.base)


# The reference count of an array to which only a box refers, in this Python. Without the global interpreter
# lock a count is not reliable: -1 means that the array is always copied.
_SOLE_REFERENCE = _references([np.empty(1)]) if getattr(sys, "_is_gil_enabled", lambda: True)() else -1
# The same of an array to which only a view refers.
_SOLE_VIEW = _references_to_base(np.empty(1).reshape(1, 1)) if _SOLE_REFERENCE > 0 else -1


def _is_all_of_its_base(g: np.ndarray) -> bool:
    """Whether an array is a view of all of an array that nothing else refers to."""
    return (g.base.__class__ is np.ndarray and sys.getrefcount(g.base) <= _SOLE_VIEW and g.base.flags.owndata
            and g.base.nbytes == g.nbytes)


def add_arrays(a: Any, b: Any) -> Any:
    """a + b in the dtype of `a`, also for bfloat16 and complex32, which NumPy cannot add."""
    try:
        return a + b if not LARGE_SEEN[0] else add_large(a, b)
    except SparseAccess:
        return SparseArray.operate("add", a, b)
    except TypeError:
        return dtypes.cast(dtypes.widen(a) + dtypes.widen(b), a.dtype)


def add_to_buffer(buffer: Any, g: Any) -> Any:
    """`add_arrays` of the buffer of a node that the caller's dict and one of its names refer to.

    A large array without other references takes the sum: the gradients of a weight that is used twice, as GPT-2's
    embedding is, are not held three times.
    """
    if LARGE_SEEN[0] and buffer.__class__ is np.ndarray and buffer.nbytes >= _REUSED_BYTES and (
            sys.getrefcount(buffer) <= _SOLE_BUFFER and buffer.flags.writeable
            and (buffer.flags.owndata if buffer.base is None else _is_all_of_its_base(buffer))
            and g.__class__ is np.ndarray and g.dtype is buffer.dtype and g.shape == buffer.shape
            and g.dtype.kind != "V"):
        return add_large(buffer, g, buffer)
    return add_arrays(buffer, g)


def _references_to_buffer(buffer: Any) -> int:
    return sys.getrefcount(buffer)


def _references_of_a_buffer() -> int:
    buffers = {0: np.empty(1)}
    buffer = buffers.get(0)
    return _references_to_buffer(buffer)


_SOLE_BUFFER = _references_of_a_buffer() if _SOLE_REFERENCE > 0 else -1
#: bytes from which an array is reused: a smaller one is added in less time than it takes to ask
_REUSED_BYTES = 1 << 20


def _has_gradient_layout(g: np.ndarray, a: np.ndarray) -> bool:
    """Whether a gradient has the strides of its leaf where that is dense, else is contiguous (the gradient layout)."""
    if a.__class__ is not np.ndarray or not is_dense(a):
        return bool(g.flags.c_contiguous)
    return a.ndim == g.ndim and (not a.size or all(
        n == 1 or s == t for n, s, t in zip(a.shape, g.strides, a.strides, strict=True)))


def _misshapen(target: np.ndarray, g: Any) -> RuntimeError:
    """The error of a gradient that does not broadcast to the array it goes to: the leaf's `data` was replaced."""
    try:
        shape = broadcast_shapes(target.shape, g.shape)
    except RuntimeError as error:
        return error
    return RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}")


def _add_sparse(variable: Any, existing: Any, g: Any) -> None:
    """Add to a gradient where it or the cotangent is sparse. It becomes dense if a dense one is added."""
    if isinstance(existing._array, SparseArray) and not isinstance(g, SparseArray):
        variable._grad = layer.wrap(SparseArray.operate("add", g, existing._array))
        return
    total = SparseArray.operate("add", existing._array, g)
    if isinstance(existing._array, SparseArray):
        existing._array = total
    else:
        existing._array[...] = total


def _copy_in_layout(g: Any, variable: Any) -> Any:
    """A recorded copy of a gradient, in the gradient layout of its leaf."""
    a = variable._array
    if isinstance(g._array, SparseArray):
        return g.clone()
    if isinstance(a, SparseArray):
        return g.clone(memory_format=contiguous_format)
    if not keeps_layout():
        return g.clone()
    if g._array.__class__ is not np.ndarray and (not isinstance(g._array, np.ndarray) or a.flags.c_contiguous):
        return g.clone(memory_format=contiguous_format)
    if not is_dense(a):
        return g.clone(memory_format=contiguous_format)
    return layer.functions.empty_like(variable, dtype=g.dtype).detach().copy_(g)


def _is_own(g: Any, variable: Any) -> bool:
    """Whether a gradient is in memory of its own on a device, in its leaf's layout, so that it need not be copied.

    A view of memory that nothing else refers to is that, too: the gradient of a transposed weight.
    """
    a = g._array
    if g.__class__ is not layer.tensor_class or getattr(a, "torch_device", None) is None:
        return False
    if g._node is not None or g._requires_grad or a.strides != variable._array.strides or (
            sys.getrefcount(a) > _SOLE_REFERENCE + 1):
        return False
    views = 1  # arrays that are views of the array of the whole block
    if g._base is not None:
        b = g._base._array
        if sys.getrefcount(g._base) > 2 or sys.getrefcount(b) > 3:
            return False
        views = 2 if b.base is a.base else 1
    whole = a.base
    if whole.__class__ is not a.__class__:
        return getattr(whole, "block", None) is not None
    if whole.base.__class__ is a.__class__ or a.nbytes != whole.nbytes:
        return False
    return sys.getrefcount(whole) <= 2 + views + (g._base is not None and g._base._array is whole)


def on_device_of(x: Any, g: Any) -> Any:
    """A gradient of a tensor, on its device: that of a number of the CPU beside tensors of another is moved.

    Raises:
        RuntimeError: it has dimensions, and is elsewhere (PyTorch's text).
    """
    if g._device is x._device:
        return g
    if g._array.ndim:
        raise RuntimeError(f"Function returned an invalid gradient at index 0 - expected device {x._device} but got "
                           f"{g._device}")
    return g.to(x._device)


def accumulate(variable: Any, box: list[Any], tensors: bool, shared: int = 0) -> None:
    """variable.grad += g, in place unless the gradient's graph is recorded.

    Args:
        variable: a leaf tensor.
        box: its cotangent, alone in a list so that the caller holds no reference: an array, or a tensor if
            `tensors`. An array without other references becomes the gradient; any other is copied.
        tensors: whether the cotangent is a tensor, under `create_graph`.
        shared: the number of other references that do not prevent taking the array over.

    Raises:
        RuntimeError: the variable is no leaf any more.
    """
    g = box.pop()
    if not variable._requires_grad:  # changed after the graph was recorded
        call_post_accumulate_hooks(variable)
        return
    if variable._node is not None:
        raise RuntimeError("leaf variable has been moved into the graph interior")
    with _lock:
        existing = variable._grad
        if tensors:
            if device_memory.count:
                g = on_device_of(variable, g)
            tracer = active_tracer.get() if special[0] else None
            if tracer is not None:
                tracer.note_entry_grad(variable)
            if existing is not None and tracer is not None and not grad_mode.get():
                existing.add_(g)  # the tracer records what an untraced pass does
            elif (dispatch_in_use[0] or isinstance(g._array, ElementlessArray)) and tracer is None and (
                    not grad_mode.get()):
                if existing is not None and isinstance(existing._array, SparseArray) and (
                        not isinstance(g._array, SparseArray)):
                    variable._grad = g + existing
                elif existing is not None:
                    existing.add_(g)
                elif device_memory.count and sys.getrefcount(g) <= _SOLE_REFERENCE + shared and _is_own(g, variable):
                    variable._grad = layer.wrap(g._array)
                else:
                    handled = layer.is_handled(g) and getattr(g._array, "torch_device", None) is None
                    variable._grad = g.detach() if handled else _copy_in_layout(g, variable)
            elif existing is None:
                variable._grad = _copy_in_layout(g, variable)
            elif isinstance(existing._array, SparseArray) and not isinstance(g._array, SparseArray):
                variable._grad = g + existing
            else:
                variable._grad = existing + g
        elif existing is None:
            try:
                if g.__class__ is not np.ndarray:
                    array = np.asarray(g) if isinstance(g, np.generic) or not isinstance(
                        g, (SparseArray, BitView)) else g.copy()
                elif (sys.getrefcount(g) <= _SOLE_REFERENCE + shared and (
                        g.flags.owndata if g.base is None else g.size > PERMUTED_COPIES[0] and _is_all_of_its_base(g))
                        and g.flags.writeable and (
                            g.strides == variable._array.strides or _has_gradient_layout(g, variable._array)
                            or not keeps_layout())):
                    array = g
                elif variable._array.__class__ is np.ndarray and variable._array.flags.c_contiguous and (
                        g.shape == variable._array.shape and g.size <= PERMUTED_COPIES[0]):
                    array = g.copy()
                elif is_dense(variable._array):
                    array = copy_with_layout(g, variable._array)
                else:
                    array = new_copy(g)
            except SparseAccess:  # the leaf is sparse
                array = new_copy(g)
            except ValueError:
                raise _misshapen(variable._array, g) from None
            variable._grad = layer.wrap(array)
        else:
            if special[0] and lazy_storages[0]:
                layer.make_writable(existing._array)
            target = existing._array
            try:
                if target.dtype.kind == "V":
                    target[...] = add_arrays(target, g)
                elif type(g) is np.ndarray:
                    if LARGE_SEEN[0]:
                        add_large(target, g, target)
                    else:
                        _add(target, g, target)
                elif isinstance(g, DeferredSum):
                    add_large(target, np.asarray(g), target)
                else:
                    target[()] = target[()] + g  # scalars: four times faster than an addition of arrays
            except SparseAccess:
                _add_sparse(variable, existing, g)
            except ValueError:
                raise _misshapen(target, g) from None
            counter = existing._counter
            if counter is None:
                existing._counter = [1]
            else:
                counter[0] += 1
    if variable._post_accumulate_hooks:
        call_post_accumulate_hooks(variable)


def cast_gradient(g: Any, to: Any, tensors: bool) -> Any:
    """A cotangent in the `grad_dtype` of its leaf."""
    if tensors:
        return g.to(to)
    if isinstance(g, SparseArray):
        return g.with_values(dtypes.cast(g.values, to.numpy))
    return dtypes.cast(np.asarray(g), to.numpy)


def call_post_accumulate_hooks(variable: Any) -> None:
    """Call a leaf's post-accumulate-grad hooks."""
    current = variable
    for hook in list((variable._post_accumulate_hooks or {}).values()):
        returned = hook(current)
        if returned is None:
            continue
        if not isinstance(returned, layer.tensor_class):
            raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
        current = returned
    if current is not variable:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


class AccumulateGrad(Node):
    """The node of a leaf: adds the cotangent that reaches it to `variable.grad`.

    >>> import flambeau as torch
    >>> x = torch.tensor(2., requires_grad=True)
    >>> node = (x * 3).grad_fn.next_functions[0][0]
    >>> node.variable is x
    True
    """

    __slots__ = ("variable", "visited")
    is_leaf = True
    visited: Any  # True after a pass's first matmul gradient: later ones may be deferred (`deferred_accumulation`)

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        # written out: a loop over one leaf creates one in every iteration
        self.edge0 = self.edge1 = self.edge_outputs = self.outputs = self.extra = self.run = self.visited = None
        self.more_edges = ()
        self.n_edges = 0
        self.seq = next_number()

    def vjp(self, cotangents: Any, tensors: bool) -> tuple[()]:
        accumulate(self.variable, cotangents if type(cotangents) is list else [cotangents], tensors)
        return ()

    def make_extra(self) -> NodeExtra:
        LeafHooks.register(self)
        return super().make_extra()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"

    def _sequence_nr(self) -> int:
        return 2**64 - 1

    def __call__(self, *cotangents: Any) -> Any:
        return tuple(call_node(self, cotangents))


__all__ = ["AccumulateGrad", "accumulate", "add_arrays", "add_to_buffer", "call_post_accumulate_hooks", "cast_gradient"]
