"""Forward mode through user-defined Functions: calls of `jvp` and checks of its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.tensor_interface import layer
from ..dispatch.forward_mode import set_tangent, strip_levels, tangent_of
from ..tensor import Tensor
from .node import FunctionNode

_NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
    "input inplace, then the jvp function must modify the corresponding gradient inplace."
)
_NO_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
_OTHER_VIEW = "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
_OTHER_BASE = ("A custom Function is returning a view but the jvp is not returning a view of the same base as the "
               "given grad input.")


def push_function_tangents(cls: Any, node: FunctionNode, level: int, args: Sequence[Any], forward_args: Sequence[Any],
                           outputs: Sequence[Any]) -> None:
    """Set the outputs' tangents in one level by the user's `jvp`.

    Args:
        args: the arguments of `apply`.
        forward_args: the arguments of `forward`: the same without tangents.
        outputs: the node's outputs.

    Raises:
        RuntimeError: the results of `jvp` are not tangents of the outputs (PyTorch's texts).
    """
    tangents = [_argument_tangent(node, x, level) for x in args]
    versions = [None if t is None else 0 if t._counter is None else t._counter[0] for t in tangents]
    result = _call_jvp(cls, node, level, args, forward_args, outputs, tangents)
    if len(result) != len(outputs):
        raise RuntimeError("Function's jvp returned an invalid number of forward gradients (expected "
                           f"{len(outputs)} but got {len(result)})")
    nondifferentiable = {id(x) for x in node.non_differentiable}
    for i, (out, t) in enumerate(zip(outputs, result, strict=True)):
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")
        if not isinstance(out, Tensor):
            continue
        if out._array.dtype.kind not in "fcV" or id(out) in nondifferentiable:
            if t is not None:
                raise RuntimeError(f"Function's jvp returned a gradient at position {i}, but  the corresponding "
                                   "forward output is not a differentiable Tensor.You should return None at that "
                                   "position instead.")
            continue
        written = next((k for k, x in enumerate(args) if x is out), None)
        if written is not None:
            _check_written(args[written], tangents[written], versions[written], t, level)
        elif out._base is not None:
            _check_view(out, t, args, tangents)
        if t is None:
            continue
        if t._array.shape != out._array.shape:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original "
                               f"Tensor, this is not supported. Tensor is of size {list(out._array.shape)} while the "
                               f"given forward gradient is of size {list(t._array.shape)}.")
        set_tangent(out, t, level)


def _argument_tangent(node: FunctionNode, x: Any, level: int) -> Any:
    """The tangent of an argument for `jvp`; where it has none, zeros or, without `materialize_grads`, None."""
    if not isinstance(x, Tensor):
        return None
    t = tangent_of(x, level)
    if t is None and node.materialize_grads and x._array.dtype.kind in "fcV":
        return layer.functions.zeros_like(x.detach())
    return t


def _call_jvp(cls: Any, node: FunctionNode, level: int, args: Sequence[Any], forward_args: Sequence[Any],
              outputs: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Call `jvp` with `saved_for_forward` as its `ctx.saved_tensors`."""
    originals = {id(p): x for p, x in zip(forward_args, args, strict=True) if isinstance(x, Tensor)}
    originals |= {id(x): x for x in outputs if isinstance(x, Tensor)}
    saved_for_jvp: list[Any] = []
    for x in node.saved_for_forward:
        if x is None:
            saved_for_jvp.append(("none", None, None, 0, 0))
        else:  # keeps its tangents of outer levels
            x = strip_levels(originals.get(id(x), x), level)
            saved_for_jvp.append(("tensor", x, None, 0 if x._counter is None else x._counter[0], 0))
    saved_for_backward, node._saved = node._saved, tuple(saved_for_jvp)
    try:
        result = cls.jvp(node, *tangents)
    finally:
        node._saved = saved_for_backward
    return result if isinstance(result, tuple) else (result,)


def _check_written(x: Tensor, tangent: Any, version: int | None, returned: Any, level: int) -> None:
    """Check that `jvp` modified a tangent in place where `forward` modified its primal in place."""
    if tangent_of(x, level) is None:
        return
    if returned is not tangent or tangent._counter is None or tangent._counter[0] == version:
        raise RuntimeError(_NOT_IN_PLACE)


def _check_view(out: Tensor, returned: Any, args: Sequence[Any], tangents: Sequence[Any]) -> None:
    """Check that `jvp` returned a view of a tangent where `forward` returned a view of its primal."""
    for x, t in zip(args, tangents, strict=True):
        if not isinstance(x, Tensor) or t is None or not x._tangents:
            continue
        if x is out._base or (x._base is not None and x._base is out._base):
            base = returned._base if isinstance(returned, Tensor) else None
            if base is None:
                raise RuntimeError(_NO_VIEW)
            if base is not t and base is not t._base:
                raise RuntimeError(_OTHER_VIEW if t._base is None else _OTHER_BASE)
            return


__all__ = ["push_function_tangents"]
