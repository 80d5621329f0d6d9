"""Operators whose result a handler of `__torch_dispatch__` supplies: the question, and the record of the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backends.elementless_array import addresses_of
from ...backends.numpy.memory import element_strides
from ...dtypes import can_cast
from ...engine.grad_mode import grad_mode, inference
from ...engine.tensor_interface import layer
from ...modes import active_tracer, device_memory, forward_levels, special
from ...ops.declare import ELEMENTWISE, VIEW, Op
from ..dispatch.apply import apply
from ..dispatch.graph_recording import as_view, record
from ..dispatch.handlers import handlers
from ..dispatch.interception import without_interceptors
from ..meta import NO_DATA, is_meta, meta_array, no_meta_kernel
from ..tensor import INFERENCE, Tensor, slots_of, wrap
from .aten_arguments import asked, aten_overload, call_arguments, output_positions, writing
from .dispatch import (
    Draw,
    ask,
    ask_declared,
    dispatch_modes,
    handles,
    handling_inputs,
    is_on_accelerator,
    no_dispatch,
    replaced_count,
)
from .entry_points import note_instance


def dispatch(op: Op, inputs: Sequence[Any], params: dict[str, Any], packed: Any) -> Any:
    """An operator's outputs by a handler, recorded; NotImplemented where there is none."""
    if no_dispatch.get():
        return NotImplemented
    found = handling_inputs(inputs)
    result, seen = NotImplemented, False
    if replaced_count[0] and not found and not dispatch_modes.get():
        from .replaced_kernels import run_replaced

        result, seen = run_replaced(op, inputs, params)
        if seen:
            return list(result) if isinstance(result, tuple) else result
    if result is NotImplemented and not found and not dispatch_modes.get():
        if device_memory.count and any(is_on_accelerator(x) for x in inputs):
            return handlers.run_on_device(op, inputs, params, packed)
        if not any(is_meta(x) for x in inputs):
            return NotImplemented
        if op.kind != VIEW:
            return _on_meta(op, inputs, params, packed)
        if special[0] and active_tracer.get() is not None:  # whose program has no such values
            with without_interceptors():
                return _apply_plainly(op, inputs, params)
        return NotImplemented  # the kernel computes addresses only
    if result is NotImplemented:
        result = ask_declared(op, inputs, params, found)
    if result is NotImplemented:
        result = _ask_overload(op, inputs, params, found)
    outs = list(result) if isinstance(result, (tuple, list)) else [result]
    if op.n_outputs == 1 and len(outs) == 1 and outs[0] is not None and not isinstance(outs[0], Tensor):
        raise RuntimeError(f"Unable to cast {outs[0]} to Tensor")
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    outs = [_fresh(out, tensors) if isinstance(out, Tensor) else out for out in outs]
    if op.kind == VIEW:
        for out in outs:
            if isinstance(out, Tensor) and (type(out) is not Tensor or np.may_share_memory(
                    out._array, inputs[0]._array) or not out._array.size):
                as_view(out, inputs[0], multi=op.multi_output_view)
    if grad_mode.get() and op.differentiable and any(x._requires_grad for x in tensors):
        plan_outputs = [out for out in outs if isinstance(out, Tensor)]
        if len(plan_outputs) == len(outs):
            node = record(op, inputs, outs, params, packed=packed)
            if node.plan.saved_outputs and packed is None:
                _save_subclasses(node, outs)
    if forward_levels and all(isinstance(out, Tensor) for out in outs):
        handlers.push_forward(op, inputs, outs, params)
    return outs[0] if op.n_outputs == 1 and not isinstance(result, (tuple, list)) else outs


def _ask_overload(op: Op, inputs: Sequence[Any], params: dict[str, Any], found: list[Any]) -> Any:
    """What handlers make of an operator's overload: the results of the declared operator."""
    func, args, kwargs = call_arguments(op, inputs, params)
    token = asked.set((func, op, inputs, params))
    try:
        result = ask(func, found, args, kwargs)
    finally:
        asked.reset(token)
    positions = output_positions(op, func)
    # a distributed tensor's handler runs the declared operator, which may have fewer results than the overload
    if positions is not None and isinstance(result, (tuple, list)) and len(result) > max(positions):
        if "max_pool" in op.name:  # what the handler made of the indices, behind those that the rule reads
            params["saved"][1:] = result[1:]
        elif op.name in ("_layer_norm", "_group_norm") and params["saved"]:  # what the handler made of the statistics
            params["saved"][2:] = result[1:]
        result = [result[i] for i in positions]
        result = result[0] if op.n_outputs == 1 else result
    return result


#: operators the shape of whose result depends on elements
DATA_DEPENDENT = frozenset(("nonzero", "masked_select", "unique", "_unique2", "unique_dim", "unique_consecutive",
                            "argwhere", "bincount"))
_NO_NONZERO = (
    "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct data-independent "
    "implementation does not exist. This implementation returns a fake value, assuming all elements of the tensor are "
    "non-zero. To enable this registration, please set "
    "'torch.fx.experimental._config.meta_nonzero_assume_all_nonzero' to True.")
#: PyTorch's names of them in errors
_NAMES = {"argwhere": "nonzero", "unique": "_unique2"}
#: operators that are not elementwise and refuse meta tensors beside tensors of other devices
_ON_ONE_DEVICE = frozenset(("cat", "stack", "mv", "dot", "dist", "mse_loss", "huber_loss", "smooth_l1_loss",
                            "masked_fill", "binary_cross_entropy", "_batch_norm", "_layer_norm"))
#: those whose second input says which device is expected
_SECOND_FIRST = frozenset(("masked_fill", "binary_cross_entropy"))
#: elements of inputs and results up to which a kernel without a rule for shapes runs on zeros
_MOST_ZEROS = 1 << 24


def _on_meta(op: Op, inputs: Sequence[Any], params: dict[str, Any], packed: Any) -> Any:
    """An operator on meta tensors: the metadata of its results is inferred.

    An operator without a rule runs on zeros, if they are few.

    Raises:
        NotImplementedError: the shape of the result depends on elements, or there is no rule and the tensors are large.
    """
    if op.name in DATA_DEPENDENT or op.forward.__name__ in DATA_DEPENDENT:
        name = _NAMES.get(op.name, op.name)
        raise NotImplementedError(_NO_NONZERO) if name == "nonzero" else no_meta_kernel(name)
    if op.kind == ELEMENTWISE or op.name in _ON_ONE_DEVICE:
        _check_devices(inputs[1::-1] if op.name in _SECOND_FIRST else inputs)
    from ..shape.inference import infer  # needs the compiler's graph, which small programs do not

    token = no_dispatch.set(True)
    try:
        found = infer(op, inputs, params)
        if found is None:
            found = _metadata_by_kernel(op, inputs, params)
    finally:
        no_dispatch.reset(token)
    outs = [wrap(meta_array(each.shape, each.dtype, each.strides)) for each in found]
    if grad_mode.get() and op.differentiable and outs and any(
            isinstance(x, Tensor) and x._requires_grad for x in inputs):
        record(op, inputs, outs, params, packed=packed)
    if inference.get():
        for out in outs:
            out._inference, out._counter = True, INFERENCE
    if forward_levels:
        handlers.push_forward(op, inputs, outs, params)
    return outs[0] if op.n_outputs == 1 else outs


def _apply_plainly(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """`apply` that asks no handler."""
    token = no_dispatch.set(True)
    try:
        return apply(op, inputs, params)
    finally:
        no_dispatch.reset(token)


def _metadata_by_kernel(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The metadata of an operator's results on zeros.

    Raises:
        NotImplementedError: there are too many.
    """
    from ..shape.inference import Metadata

    if sum(x._array.size for x in inputs if isinstance(x, Tensor)) > _MOST_ZEROS:
        raise NotImplementedError(f"aten::{op.name}: flambeau has no rule for the shape of its result, and its kernel "
                                  "does not run on meta tensors of this size")
    token = grad_mode.set(False)
    try:
        result = apply(op, [wrap(addresses_of(x._array)) if isinstance(x, Tensor) else x for x in inputs],
                       {name: _on_addresses(value) for name, value in params.items()})
    finally:
        grad_mode.reset(token)
    arrays = [x._array for x in (result if isinstance(result, (tuple, list)) else (result,))]
    return [Metadata(a.shape, a.dtype, element_strides(a)) for a in arrays]


def _on_addresses(value: Any) -> Any:
    """A parameter, with plain arrays for those without elements."""
    if value.__class__ is tuple:
        return tuple([addresses_of(x) for x in value])
    return addresses_of(value)


def _check_devices(inputs: Sequence[Any]) -> None:
    """Refuse inputs of two devices; a tensor without dimensions on the CPU counts as a number.

    Raises:
        RuntimeError: there are two devices.
    """
    expected = None
    for x in inputs:
        if not isinstance(x, Tensor) or (not x._array.ndim and not is_meta(x)):
            continue
        if expected is None:
            expected = x.device
        elif x.device != expected:
            raise RuntimeError(f"Tensor on device {x.device} is not on the expected device {expected}!")


def _check_fits(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> None:
    """Check that an elementwise result has the shape and the category of its first input, a meta tensor.

    Raises:
        RuntimeError: it has not.
    """
    if op.kind != ELEMENTWISE:
        return
    from ..shape.inference import infer, result_dtype

    found = infer(op, inputs, params)
    if not found:
        return
    shape, to = inputs[0]._array.shape, inputs[0].dtype
    if found[0].shape != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(found[0].shape)}")
    result = result_dtype(found[0])
    if not can_cast(result, to):
        raise RuntimeError(f"result type {result.scalar_name} can't be cast to the desired output type "
                           f"{to.scalar_name}")


class SavedSubclass:
    """What a node saves of an output that is of a subclass: its memory, its class and its attributes."""

    __slots__ = ("array", "attributes", "cls", "slots")

    def __init__(self, x: Tensor) -> None:
        self.array, self.cls = x._array, type(x)
        self.slots = slots_of(x)
        self.attributes = {k: v for k, v in x.__dict__.items() if k not in _GRAPH}

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.array.dtype

    def tensor(self) -> Any:
        """A tensor of the class with the same memory and attributes, without a graph."""
        out = wrap(self.array, self.cls)
        out.__dict__.update(self.attributes)
        for name, value in self.slots.items():
            setattr(out, name, value)
        return out


def _save_subclasses(node: Any, outs: list[Any]) -> None:
    """Replace the saved outputs of a node that are of subclasses."""
    saved = list(node.saved)
    first = len(saved) - len(node.plan.saved_outputs)
    for i, number in enumerate(node.plan.saved_outputs):
        if type(outs[number]) is not Tensor:
            saved[first + i] = SavedSubclass(outs[number]), saved[first + i][1]
    node.saved = tuple(saved)
    node.run = None


def _fresh(out: Tensor, inputs: list[Tensor]) -> Tensor:
    """A handler's result without graph: the tensor itself, or another object where it is an input or has a history."""
    if any(out is x for x in inputs) or out._requires_grad or out._node is not None:
        cls = type(out)
        alias: Any = object.__new__(cls)
        for name in ("_array", "_counter", "_base"):
            setattr(alias, name, getattr(out, name))
        alias._requires_grad, alias._node, alias._output_nr = False, None, 0
        alias._grad = alias._accumulator = None
        alias.__dict__.update({k: v for k, v in out.__dict__.items() if k not in _GRAPH})
        for name, value in slots_of(out).items():
            setattr(alias, name, value)
        note_instance(alias)
        out = alias
    out._creation = None
    return out


def _copy_before_write(x: Tensor) -> Any:
    """A copy of a tensor whose elements a handler has; a plain one of its memory where there is none."""
    if not handles(type(x)):
        return handlers.copy_on_device(x) if is_on_accelerator(x) else wrap(x._array.copy())
    token = grad_mode.set(False)
    try:
        return layer.functions.clone(x)
    finally:
        grad_mode.reset(token)


def _save_written(node: Any, x: Tensor) -> None:
    """Let a node save a tensor of a subclass as its output."""
    if type(x) is not Tensor and handles(type(x)) and node.plan.saved_outputs:
        _save_subclasses(node, [x])


_GRAPH = frozenset(("_view_version", "_creation", "_hooks", "_post_accumulate_hooks", "_tangents", "_inference",
                    "_retains_grad", "_own_requires_grad", "_view_steps", "_transform_depth"))


def dispatched_write(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Callable[[], None] | None:
    """A function that lets a handler write an in-place operator's result; None where there is no handler."""
    if no_dispatch.get():
        return None
    found = handling_inputs(inputs)
    if not found and not dispatch_modes.get():
        if device_memory.count and any(is_on_accelerator(x) for x in inputs):
            return handlers.write_on_device(op, inputs, params)
        if is_meta(inputs[0]):
            _check_fits(op, inputs, params)
            return lambda: None
        if any(is_meta(x) for x in inputs):
            raise NotImplementedError(NO_DATA)
        return None

    def write() -> None:
        counter = inputs[0]._counter
        before = counter[0] if counter is not None else 0
        drawn = params.get("values")
        if isinstance(drawn, Draw):  # the overload draws, wherever the handler calls it
            ask(aten_overload(drawn.name, drawn.overload), found, (inputs[0], *drawn.args),
                {} if drawn.generator is None else {"generator": drawn.generator})
        elif ask_declared(op, inputs, params, found, in_place=True) is NotImplemented:
            func, args, kwargs = call_arguments(op, inputs, params, in_place=True)
            token, write_token = asked.set((func, op, inputs, params)), writing.set(True)
            try:
                ask(func, found, args, kwargs)
            finally:
                writing.reset(write_token)
                asked.reset(token)
        counter = inputs[0]._counter
        if counter is not None and counter[0] > before and isinstance(counter[0], int):
            counter[0] -= 1  # the caller counts the write

    return write


def _is_handled(x: Any) -> bool:
    """Whether handlers see operators on a tensor: it is of a subclass with one, a meta tensor, or a mode is active."""
    return not no_dispatch.get() and (
        bool(dispatch_modes.get()) or handles(type(x)) or is_meta(x) or is_on_accelerator(x))


layer.is_handled = _is_handled
handlers.dispatch = dispatch
handlers.dispatched_write = dispatched_write
handlers.copy_before_write, handlers.save_written = _copy_before_write, _save_written

__all__ = ["DATA_DEPENDENT", "dispatch", "dispatched_write"]
