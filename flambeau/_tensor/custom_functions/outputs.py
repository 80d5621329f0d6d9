"""The outputs of a user's Function: connected to its node, as views or in-place results where they are such."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...engine.grad_mode import no_grad
from ...modes import active_tracer, special
from ...warning_location import user_stacklevel
from ..dispatch.graph_recording import as_view
from ..dispatch.inplace import rebase_history
from ..dispatch.write_checks import check_writable
from ..overriding.dispatch import handles
from ..tensor import Tensor, wrap
from .node import FunctionNode

_DIRTY_VIEW = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
_SAVED_UNCHANGED_INPUT = (
    "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
    "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup "
    "ctx inside the forward function itself."
)


def attach_outputs(node: FunctionNode, inputs: Mapping[int, Tensor], outputs: Sequence[Any], executable: bool,
                   has_setup_context: bool) -> list[Any]:
    """Make `node` the `grad_fn` of the outputs of a user's `forward`.

    Args:
        inputs: the tensor arguments of `apply`, by the `id` of the tensor passed to `forward` for each.
        outputs: the values that `forward` returned.
        executable: whether the call is recorded.
        has_setup_context: whether `ctx` was filled by `setup_context`.

    Raises:
        RuntimeError: the tensors marked or saved do not match those returned (PyTorch's texts).
    """
    dirty: Collection[int] = ()
    nondifferentiable: Collection[int] = ()
    if node.dirty_tensors or node.non_differentiable:
        dirty = _dirty_ids(node, inputs, outputs, executable)
        nondifferentiable = {id(x) for x in node.non_differentiable}
    if has_setup_context:
        _check_saved(node, inputs, outputs, dirty)
    node._metas = tuple([(x._array.shape, x._array.dtype) if isinstance(x, Tensor) else None for x in outputs])
    node.outputs = node._metas if len(outputs) > 1 else None  # type: ignore[assignment]
    node._live = []
    results: list[Any] = []
    for number, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            node._live.append(False)
            results.append(out)
            continue
        live = executable and id(out) not in nondifferentiable and out._array.dtype.kind in "fcV"
        node._live.append(live)
        if id(out) in dirty and id(out) in inputs:
            n_tensors = sum(isinstance(x, Tensor) for x in outputs)
            results.append(_dirty_output(node, inputs[id(out)], number, live, n_tensors))
        else:
            results.append(_other_output(node, out, inputs.get(id(out)), number, live))
    if len(results) > 1 and sum(node._live) > 1:
        for out in results:
            if isinstance(out, Tensor) and out._base is not None and id(out) not in dirty:
                out._creation = "multi"
    return results


def _dirty_ids(node: FunctionNode, inputs: Mapping[int, Tensor], outputs: Sequence[Any], executable: bool) -> set[int]:
    """The ids of the tensors marked dirty; their versions are bumped."""
    returned = {id(x) for x in outputs if isinstance(x, Tensor)}
    for x in node.dirty_tensors:
        if not isinstance(x, Tensor):
            raise RuntimeError("mark_dirty can only accept variables, but argument ")
        input_tensor = inputs.get(id(x), x)
        input_tensor._bump_version()
        if special[0] and (tracer := active_tracer.get()) is not None:
            tracer.on_version_bump(input_tensor)
        if id(x) not in returned:
            raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. "
                               "The inputs that are modified inplace must all be outputs of the Function.")
        if id(x) not in inputs and executable:
            warnings.warn("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
                          "mutated should be passed to ctx.mark_dirty().", UserWarning, stacklevel=user_stacklevel())
    for x in node.non_differentiable:
        if not isinstance(x, Tensor):
            raise RuntimeError("mark_non_differentiable only accepts variable arguments, but got ")
    return {id(x) for x in node.dirty_tensors}


def _check_saved(node: FunctionNode, inputs: Mapping[int, Tensor], outputs: Sequence[Any],
                 dirty: Collection[int]) -> None:
    saved = {id(x) for x in (*node.to_save, *node.saved_for_forward) if x is not None}
    if any(id(x) in saved and id(x) in inputs and id(x) not in dirty for x in outputs):
        raise RuntimeError(_SAVED_UNCHANGED_INPUT)


def _dirty_output(node: FunctionNode, x: Tensor, number: int, live: bool, count: int) -> Tensor:
    """An input that was modified in place: itself, with `node` as its history."""
    if not live:
        return x.detach() if x._requires_grad else x
    if x._requires_grad and not x._has_node():
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if x._base is not None and count > 1:
        raise RuntimeError(_DIRTY_VIEW)
    x._grad = None
    check_writable(x, True)
    rebase_history(x, node)
    x._output_nr = number
    return x


def _alias(x: Tensor) -> Tensor:
    """A tensor on the same memory; of the same class, with the same attributes, where the class handles operators."""
    handled = handles(type(x))
    alias: Tensor = wrap(x._array, type(x) if handled else Tensor)
    if handled:
        alias.__dict__.update({name: value for name, value in x.__dict__.items() if not hasattr(Tensor, name)})
    return alias


def _view_of_itself(x: Tensor) -> Tensor:
    """A view of all of a tensor; a class that overrides functions is asked for it."""
    if type(x) is Tensor or handles(type(x)):
        return as_view(_alias(x), x)
    with no_grad():
        view: Tensor = x.view_as(x)
    return view


def _other_output(node: FunctionNode, out: Tensor, input_tensor: Tensor | None, number: int, live: bool) -> Tensor:
    """Any other output; an input returned unchanged becomes a view of itself."""
    if input_tensor is not None and (live or not input_tensor._requires_grad):
        out = _view_of_itself(input_tensor)
    elif not live and out._requires_grad:
        if input_tensor is not None:
            out = input_tensor.detach()
        elif out._base is None:
            out._requires_grad, out._node, out._output_nr = False, None, 0
    if live:
        out._requires_grad, out._node, out._output_nr = True, node, number
    if out._base is not None:
        out._creation = "custom"
        if live and out._counter is not None:
            out._view_version = out._counter[0]
    return out


__all__ = ["attach_outputs"]
