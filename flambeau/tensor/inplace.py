"""In-place writes: who may be written to, counting the write, and the history it leaves.

Everything that could be refused is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd.modes import grad_mode, inference
from ..autograd.node import operator_of
from ..backends.errstate import IGNORE, quietly, reset_state, set_state
from ..backends.numpy.memory import address
from ..modes import special
from ..ops.declare import ELEMENTWISE, Op
from ..shapes import broadcast_shapes
from .apply import _operands, gradient_edge, kernel_of, promoted_type, record, rounded_params
from .tensor import Tensor, wrap
from .views import CopySlices, Geometry

_LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
_VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation."


def check_writable(x: Tensor, recording: bool) -> None:
    """Refuse a write that autograd could not follow.

    Args:
        recording: grad mode is on.

    Raises:
        RuntimeError: a leaf that requires grad, or a view that may not be written to (PyTorch's texts).
    """
    if x._inference and not inference.get():
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
                           "clone to get a normal tensor before doing inplace update.See "
                           "https://github.com/pytorch/rfcs/pull/17 for more details.")
    if not recording:
        return
    base = x._base
    if base is not None:
        creation = x._creation
        if creation is not None and (base._requires_grad or x._requires_grad):
            _refuse_view(x, creation)
        if x.requires_grad or base._requires_grad:
            if base._requires_grad and base._node is None:
                raise RuntimeError(_VIEW_OF_LEAF)
            if x._requires_grad and x._node is None and not base._requires_grad:
                raise RuntimeError(_LEAF)
    elif x._requires_grad and x._node is None:
        raise RuntimeError(_LEAF)


def _refuse_view(x: Tensor, creation: str) -> None:
    node = x.grad_fn
    if creation == "multi":
        name = f"Output {x._output_nr} of {operator_of(node)}" if node is not None else "This view"
        raise RuntimeError(f"{name} is a view and is being modified inplace. This view is the output of a function "
                           "that returns multiple views. Such functions do not allow the output views to be modified "
                           "inplace. You should replace the inplace operation by an out-of-place one.")
    if creation == "custom":
        name = f"Output {x._output_nr} of {operator_of(node)}" if node is not None else "This view"
        raise RuntimeError(f"{name} is a view and is being modified inplace. This view was created inside a custom "
                           "Function (or because an input was returned as-is) and the autograd logic to handle "
                           "view+inplace would override the custom backward associated with the custom Function, "
                           "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning "
                           "the output of the custom Function.")
    mode = "inference mode" if creation == "inference" else "no_grad mode"
    raise RuntimeError(f"A view was created in {mode} and is being modified inplace with grad mode enabled. Given that "
                       "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
                       "moving both the view and the inplace either both inside the no_grad block (if you don't want "
                       "the inplace to be tracked) or both outside (if you want the inplace to be tracked).")


def rebase(x: Tensor, node: Any) -> None:
    """Make `node` the history of `x`, whose memory was just written; of its base, if it is a view."""
    base = x._base
    if base is None:
        x._node = node
        x._output_nr = 0
        x._requires_grad = True
        x._hooks = None
        x._accumulator = None
        if x._retains:
            x._retains = None
            x.retain_grad()
        return
    old = gradient_edge(base) if base._requires_grad else None
    slices = CopySlices(old, base._output_nr, Geometry(base._array, x._array), node)
    base._node = slices
    base._output_nr = 0
    base._requires_grad = True
    base._hooks = None
    base._accumulator = None
    if base._retains:
        base._retains = None
        base.retain_grad()
    x._requires_grad = True
    x._view_version = -1  # its history was the base's old one: made anew when asked for


def write(op: Op, inputs: list[Any], params: dict[str, Any]) -> Tensor:
    """Run an operator and write its result over its first input.

    Raises:
        RuntimeError: the result's shape or dtype does not fit, or autograd forbids the write.
    """
    target = inputs[0]
    recording = grad_mode.get()
    check_writable(target, recording)
    a = target._array
    if op.kind == ELEMENTWISE:
        shape = a.shape
        for x in inputs[1:]:
            if isinstance(x, Tensor):
                shape = broadcast_shapes(shape, x._array.shape)
        if shape != a.shape:
            raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(shape)}")
    if op.promote != "none":
        result = promoted_type(op, inputs, params)
        if op.promote == "float" and result.category < dtypes.FLOATING:
            result = dtypes.get_default_dtype()
        if op.differentiable and not dtypes.can_cast(result, target.dtype):
            raise RuntimeError(f"result type {result.scalar_name} can't be cast to the desired output type "
                               f"{target.dtype.scalar_name}")
    values, narrow = _operands(op, inputs, params)
    if narrow is not None and op.promoting:
        params = rounded_params(op, params, narrow)
    read = [x._array for x in inputs[1:] if isinstance(x, Tensor)]
    if op.kind == ELEMENTWISE:
        check_overlap(a, *read)
    elif op.apart or "index" in op.inputs:
        check_overlap(a, *(b for b in read if b.ndim), apart=True)
    else:
        check_overlap(a)

    def compute() -> None:
        found = kernel_of(op)(*values, **params)
        if found.__class__ is np.ndarray and np.may_share_memory(found, a):
            found = found.copy()
        if op.kind != ELEMENTWISE and np.shape(found) != a.shape:
            raise RuntimeError(f"Bad in-place call: input tensor size {list(a.shape)} and output tensor size "
                               f"{list(found.shape)} should match")
        a[...] = found if found.dtype == a.dtype else dtypes.cast(np.asarray(found), a.dtype)

    return _run_over(op, inputs, params, compute, recording)


def overwrite(op: Op, inputs: list[Any], params: dict[str, Any], compute: Callable[[], None]) -> Tensor:
    """Let `compute` write an operator's result into its first input, and record that it did.

    Raises:
        RuntimeError: autograd forbids the write.
    """
    recording = grad_mode.get()
    check_writable(inputs[0], recording)
    return _run_over(op, inputs, params, compute, recording)


_OVERLAP = ("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation.")


_PARTIAL_OVERLAP = ("unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                    "single memory location. Please clone() the tensor before performing the operation.")


def check_overlap(a: np.ndarray, *read: np.ndarray, apart: bool = False) -> None:
    """Refuse to write to an array some of whose elements are one in memory, or are others' of what is read meanwhile.

    Args:
        apart: refuse, too, where what is read is the very array that is written to.

    Raises:
        RuntimeError: it is expanded, or shares part of its memory (PyTorch's texts).
    """
    if 0 in a.strides and a.size > 1 and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True)):
        raise RuntimeError(_OVERLAP)
    for b in read:
        if b is a:
            if apart:
                raise RuntimeError(_PARTIAL_OVERLAP)
        elif np.may_share_memory(a, b) and _is_dense(a) and _is_dense(b):
            same = address(a) == address(b) and a.nbytes == b.nbytes and a.strides == b.strides
            if apart or not same:
                raise RuntimeError(_PARTIAL_OVERLAP)


def _is_dense(a: np.ndarray) -> bool:
    """Whether the elements fill a stretch of memory. Where they leave holes, PyTorch looks for no overlap."""
    if a.flags.forc:
        return True
    filled = a.itemsize
    for stride, n in sorted((s, n) for s, n in zip(a.strides, a.shape, strict=True) if n != 1):
        if stride != filled:
            return False
        filled *= n
    return True


def _run_over(op: Op, inputs: list[Any], params: dict[str, Any], compute: Callable[[], None],
              recording: bool) -> Tensor:
    target = inputs[0]
    a = target._array
    wants = recording and op.differentiable and any(isinstance(x, Tensor) and x._requires_grad for x in inputs)
    original = None
    if wants:
        mask = sum(1 << i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x._requires_grad)
        if 0 in op.plan(mask, len(inputs)).tensors:
            original = wrap(a.copy())
            original._requires_grad, original._node = target._requires_grad, target.grad_fn
            original._output_nr = target._output_nr
    tangents = None
    if special[0]:
        from .forward_mode import tangent_of_write

        tangents = tangent_of_write(op, inputs, params)
    token = set_state(IGNORE)
    try:
        compute()
    finally:
        reset_state(token)
    target._bump_version()
    if wants:
        out = wrap(a)
        out._counter = target._counter
        node = record(op, inputs, [out], params, original=original)
        rebase(target, node)
    if tangents is not None:
        from .forward_mode import set_written_tangent

        set_written_tangent(target, tangents)
    return target


def fast_binary(op: Op, general: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place form of an elementwise operator of two inputs, quick where nothing is recorded."""
    kernel = kernel_of(op)
    f32, f64 = np.dtype(np.float32), np.dtype(np.float64)
    enabled = grad_mode.get

    def call(input: Any, other: Any) -> Any:
        try:
            a = input._array
            b: Any = other if other.__class__ is float else other._array
            dt = a.dtype
        except AttributeError:
            return general(input, other)
        if ((b is not other and (dt is not b.dtype or b.shape != a.shape)) or not (dt is f32 or dt is f64)
                or special[0] or input._inference or 0 in a.strides):
            return general(input, other)
        if b is not other and b is not a and (
                a.base is b or (b.base is not None and (b.base is a or b.base is a.base))):
            return general(input, other)  # they may overlap
        if (input._requires_grad or input._base is not None or (b is not other and other._requires_grad)) and enabled():
            return general(input, other)
        try:
            quietly(kernel, a, b, a)
        except RuntimeError:  # another thread is in there
            return general(input, other)
        counter = input._counter
        if counter is None:
            input._counter = [1]
        else:
            counter[0] += 1
        return input

    call.__name__ = call.__qualname__ = op.name + "_"
    return call


__all__ = ["check_overlap", "check_writable", "fast_binary", "overwrite", "rebase", "write"]
