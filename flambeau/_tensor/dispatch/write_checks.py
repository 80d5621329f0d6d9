"""Checks before in-place writes: which tensors may be written to, and which memory may overlap."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...backends.numpy.memory import address
from ...dtypes import is_complex
from ...engine.saved.modified_in_place import operator_of
from ...engine.saved.saved_tensor_mutation import before_write
from ...engine.tensor_interface import layer
from ...kernels.memory_format import is_dense
from ...modes import active_tracer, grad_mode, inference, lazy_storages, special, transform_stack
from ...ops.declare import ELEMENTWISE, Op
from ...warning_location import user_stacklevel
from ..tensor import Tensor, transform_depth

_LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
_VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation."


def check_writable(x: Tensor, tracked: bool) -> None:
    """Check that autograd permits a write to a tensor.

    Args:
        tracked: the result of `is_tracked` for the operator's inputs.

    Raises:
        RuntimeError: a leaf that requires grad, or a view that may not be written to (PyTorch's texts).
    """
    if tracked:
        base = x._base
        if base is not None:
            if x._creation is not None:
                raise_view_error(x)
            if x._requires_grad and base._node is None:
                raise RuntimeError(_VIEW_OF_LEAF)
        if x._requires_grad and not x._has_node():
            raise RuntimeError(_LEAF)
    if special[0]:
        before_write(x)
        tracer = active_tracer.get()
        if tracer is not None and x._inference and not inference.get():
            tracer.graph_break("a write to an inference tensor outside of inference mode")  # raises after the write


def prepare_write(x: Tensor) -> None:
    """Prepare a write to memory that no operator's kernel holds yet, such as that of `out=`.

    Saved tensors of that memory are cloned where that is asked for, and a lazy clone gets memory of its own: the tensor
    may have another array afterwards.
    """
    before_write(x)
    if lazy_storages[0]:
        layer.make_writable(x._array)


def is_tracked(inputs: Sequence[Any]) -> bool:
    """Whether grad mode is on and one of an operator's inputs requires grad."""
    return grad_mode.get() and any(isinstance(x, Tensor) and x._requires_grad for x in inputs)


def check_history(x: Tensor) -> None:
    """Raise the error of a view whose history is no longer known, which PyTorch finds before errors of its kernels."""
    if x._base is not None and grad_mode.get() and (x._requires_grad or x._base._requires_grad):
        x.grad_fn  # noqa: B018


_CREATED = {
    "multi": " This view is the output of a function that returns multiple views. Such functions do not allow the "
             "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    "custom": " This view was created inside a custom Function (or because an input was returned as-is) and the "
              "autograd logic to handle view+inplace would override the custom backward associated with the custom "
              "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
              "output of the custom Function.",
} | {
    mode: " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
          f"moving both the view and the inplace either both inside the {mode} block (if you don't want the inplace to "
          "be tracked) or both outside (if you want the inplace to be tracked)."
    for mode in ("no_grad", "inference_mode")
}


def raise_view_error(x: Tensor, indirect: bool = False) -> None:
    """Raise PyTorch's error for a write to a view whose creation forbids it (PyTorch's `CreationMeta`).

    Args:
        indirect: the base, or another view of it, was written to.
    """
    creation = x._creation
    node = x._node
    assert creation is not None
    subject = "its base or another view of its base has been" if indirect else "is being"
    if creation in ("inference", "no_grad") or node is None:
        message = "A view was created in" if node is None else (
            f"Output {x._output_nr} of {operator_of(node)} is a view of a view which was created in")
        message += (f" inference mode and {subject} modified inplace in normal mode." if creation == "inference"
                    else f" no_grad mode and {subject} modified inplace with grad mode enabled.")
    else:
        message = f"Output {x._output_nr} of {operator_of(node)} is a view and {subject} modified inplace."
    raise RuntimeError(message + _CREATED["inference_mode" if creation == "inference" else creation])


def check_captured_write(op: Op, target: Tensor) -> None:
    """Check that the target of a write is not captured by the function that is being transformed.

    Raises:
        RuntimeError: it was made outside the function and is not an input of it.
    """
    written = (target,) if target._base is None else (target, target._base)
    for depth, frame in enumerate(transform_stack.get(), 1):
        if frame.kind in ("grad", "jvp") and any(
                transform_depth(x) < depth and id(x) not in frame.inputs for x in written):
            name = op.name.strip("_").replace("fill_scalar", "fill") + "_"
            is_binary = op.kind == ELEMENTWISE and len(op.inputs) == 2
            overload = ".Scalar" if name == "fill_" else ".Tensor" if is_binary else ""
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                f"operation (aten::{name}{overload}) that would mutate a captured Tensor. This is not supported; "
                "please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs.")


_OVERLAP = ("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation.")


_PARTIAL_OVERLAP = ("unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                    "single memory location. Please clone() the tensor before performing the operation.")


def check_overlap(a: np.ndarray, *sources: np.ndarray, disjoint: bool = False) -> None:
    """Check the target of a write for internal overlap, and for partial overlap with the arrays that are read.

    Args:
        a: the array that is written.
        sources: the arrays that are read.
        disjoint: full overlap, of identical elements, is an error too.

    Raises:
        RuntimeError: they overlap (PyTorch's texts).
    """
    if 0 in a.strides and a.size > 1 and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True)):
        raise RuntimeError(_OVERLAP)
    check_no_overlap(a, *sources, disjoint=disjoint)


def check_no_overlap(a: np.ndarray, *sources: np.ndarray, disjoint: bool = True) -> None:
    """`check_overlap` without the check for internal overlap."""
    if not isinstance(a, np.ndarray):
        return  # batched: checked when the value is written
    for b in sources:
        if not isinstance(b, np.ndarray):
            continue
        if b is a:
            if disjoint:
                raise RuntimeError(_PARTIAL_OVERLAP)
        elif np.may_share_memory(a, b) and is_dense(a) and is_dense(b):  # PyTorch checks no others
            same = address(a) == address(b) and a.nbytes == b.nbytes and a.strides == b.strides
            if disjoint or not same:
                raise RuntimeError(_PARTIAL_OVERLAP)


COMPLEX_TO_REAL = "Casting complex values to real discards the imaginary part"


def warn_of_real_parts(target: Tensor) -> None:
    """Warn, as PyTorch does, of complex numbers that become real ones where they are written to a tensor."""
    dtype = target._array.dtype
    if not is_complex(dtype) and dtype.kind != "b" and target._array.size:
        warnings.warn(COMPLEX_TO_REAL, UserWarning, stacklevel=user_stacklevel())


def warn_of_resize(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """Warn of an `out=` tensor with elements that gets another shape."""
    if prod(before):
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(before)}, which does not match "
            f"the required output shape {list(after)}. This behavior is deprecated, and in a future PyTorch release "
            "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by "
            "resizing it, inplace, to zero elements with t.resize_(0).", UserWarning, stacklevel=user_stacklevel())
