"""Operators on distributed tensors: placements are chosen, inputs redistributed, parts computed, results placed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.dispatch.apply import apply
from ..._tensor.dispatch.array_kernels import kernel_of
from ..._tensor.dispatch.inplace import apply_inplace
from ..._tensor.meta import reserved
from ..._tensor.overriding.aten_arguments import asked, call_arguments, writing
from ..._tensor.overriding.dispatch import declared_handlers, without_handlers
from ..._tensor.tensor import wrap
from ...c10d.world import world
from ...engine.engine import current_graph_task_id
from ...ops.declare import VIEW, Op
from ..placement_types import Replicate
from ._dtensor import DTensor
from ._dtensor_spec import DTensorSpec, spec_of
from ._factory_operators import CALLS
from ._ops import OpCall, choose, rule_of
from ._outs import into_outs, names_of_outs
from ._redistribute import redistribute_local_tensor
from ._registered import registered, run_registered
from ._sharding import row_major_strides

#: parameters that do not change placements and shapes
_OUTSIDE_KEY = frozenset(("saved", "values"))
_MIXED = ("{0} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
          "distributed operators!")


class _Overload:
    """The overload of a call, found when a message needs it."""

    __slots__ = ("call",)

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __str__(self) -> str:
        return str(call_arguments(*self.call)[0])


class OpDispatcher:
    """Runs operators on distributed tensors, and keeps the placements that it chose for each kind of call.

    Attributes:
        implicit_replication: plain tensors count as replicated ones.
        replicating: names of operators of which they do.
    """

    def __init__(self) -> None:
        self._allow_implicit_replication = False
        self.replicating: frozenset[str] = frozenset()
        self._chosen: dict[Any, Any] = {}
        self._default_group: Any = None

    def dispatch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an overload.

        Raises:
            NotImplementedError: there is no rule for the operator (PyTorch's text).
            RuntimeError: plain tensors of several elements are among the arguments (PyTorch's text).
        """
        pending = asked.get()
        if pending is None or pending[0] is not func:
            call = CALLS.get(str(func).removesuffix(".default"))
            rule = registered.get(func)
            if rule is not None:
                return run_registered(func, rule, args, kwargs)
            if call is None:
                if any(name in kwargs for name in names_of_outs(func)):
                    return into_outs(func, args, kwargs)
                raise NotImplementedError(f"Operator {func} does not have a sharding strategy registered.")
            return call(*args, **kwargs)
        in_place = writing.get()
        rule = registered.get(func)
        if rule is not None and not in_place:
            token = asked.set(None)
            try:
                return run_registered(func, rule, args, kwargs, metadata(pending[1], pending[2], pending[3]))
            finally:
                asked.reset(token)
        token, write_token = asked.set(None), writing.set(False)
        try:
            return self.run(func, pending[1], pending[2], pending[3], in_place)
        finally:
            writing.reset(write_token)
            asked.reset(token)

    def run_declared(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        """The result of a declared operator; NotImplemented where a program's rules may be for its overload."""
        if registered:
            return NotImplemented
        return self.run(_Overload(op, inputs, params, in_place), op, inputs, params, in_place)

    def run(self, func: Any, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        """The result of a declared operator.

        Args:
            func: its overload, for messages.
            in_place: whether the first input is written to.
        """
        found = rule_of(op)
        if found is None:
            raise NotImplementedError(f"Operator {func} does not have a sharding strategy registered.")
        operands: Sequence[Any] = inputs
        for x in inputs:
            if x.__class__ is not DTensor and isinstance(x, Tensor):
                mesh = _mesh_of(func, inputs)
                operands = [self._operand(func, op, each, mesh) for each in inputs]
                break
        specs = [x._spec if isinstance(x, DTensor) else x for x in operands]
        call, targets, outputs, takes_part = self._chosen_for(func, op, found, specs, operands, params, in_place)
        if params is not call.params:
            call = OpCall(op, specs, params, call.outputs, in_place)
        pending = op.kind == VIEW  # a view of what a collective still fills does not wait
        locals_: list[Any] = [x if target is None else _placed(x, target, pending)
                              for x, target in zip(operands, targets, strict=True)]
        run_params = params if found.localize is None else found.localize(call, targets, outputs)
        if not takes_part:
            return self._outside(operands, outputs, in_place, op)
        if in_place:
            target = operands[0]
            if target._spec.placements != targets[0].placements:  # what is pending is completed before
                target._local_tensor, target._spec = locals_[0], targets[0]
            _check_shared(func, target)
            apply_inplace(op, locals_, run_params)
            return target
        result = (apply(op, locals_, run_params) if found.run is None
                  else found.run(call, locals_, run_params, targets, outputs))
        if op.n_outputs == 1 and not isinstance(result, (tuple, list)):
            return DTensor(result, outputs[0])
        return [DTensor(each, spec) for each, spec in zip(result, outputs, strict=True)]

    @staticmethod
    def _outside(operands: Sequence[Any], outputs: list[DTensorSpec], in_place: bool, op: Op) -> Any:
        """The result in a process that is not in the mesh: no elements, or 0."""
        if in_place:
            return operands[0]
        empty = [DTensor(wrap(np.zeros(() if spec.shape == () else (0,), spec.dtype.numpy)), spec) for spec in outputs]
        return empty[0] if op.n_outputs == 1 and len(empty) == 1 else empty

    def _operand(self, func: Any, op: Op, x: Any, mesh: Any) -> Any:
        """An input, plain tensors of one element as replicated ones."""
        if isinstance(x, DTensor) or not isinstance(x, Tensor):
            return x
        if self._allow_implicit_replication or x._array.size == 1 or op.name in self.replicating or (
                current_graph_task_id() >= 0):  # derivatives make tensors of zeros
            return DTensor(x, spec_of(mesh, [Replicate()] * mesh.ndim, x.shape, x.stride(), x.dtype))
        raise RuntimeError(_MIXED.format(func))

    def _chosen_for(self, func: Any, op: Op, rule: Any, specs: list[Any], operands: Sequence[Any],
                    params: dict[str, Any], in_place: bool) -> tuple[OpCall, list[Any], list[DTensorSpec], bool]:
        """The call, the specs that its inputs get and its results have, and whether this process is in the mesh."""
        if world.default is not self._default_group:  # meshes of a destroyed group equal those of the next one
            self._chosen.clear()
            self._default_group = world.default
        try:
            key = (id(op), in_place, *[x if x.__class__ is DTensorSpec else type(x) for x in specs],
                   *[(name, _frozen(value)) for name, value in params.items() if name not in _OUTSIDE_KEY])
            found = self._chosen.get(key)
        except TypeError:
            key, found = None, None
        if found is None:
            mesh = _mesh_of(func, operands)
            outputs = [(tuple(specs[0].shape), specs[0].stride, specs[0].dtype)] if in_place else (
                rule.outputs(specs, params) if rule.outputs is not None else metadata(op, operands, params))
            call = OpCall(op, specs, params, outputs, in_place)
            placements, out_placements = choose(call, rule, mesh)
            targets = [None if p is None else spec if p == spec.placements else spec.with_placements(p)
                       for spec, p in zip(specs, placements, strict=True)]
            placed = [spec_of(mesh, p, *meta) for p, meta in zip(out_placements, outputs, strict=True)]
            found = call, targets, placed, mesh.get_coordinate() is not None
            if key is not None:
                self._chosen[key] = found
        return found


def _check_shared(func: Any, x: Any) -> None:
    """Check that a write to a view is one to its base, too.

    Raises:
        RuntimeError: it is not: the view was made of parts that were redistributed.
    """
    base = x._base
    if isinstance(base, DTensor) and x._local_tensor.numel() and not np.may_share_memory(
            x._local_tensor._array, base._local_tensor._array):
        raise RuntimeError(f"{func}: in-place operators on a view whose elements were sent to other processes would "
                           f"not change its base, which is placed as {base.placements}. Redistribute the base before "
                           "the view is made, or use torch.where or an out-of-place operator instead")


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _mesh_of(func: Any, inputs: Sequence[Any]) -> Any:
    """The mesh of all inputs.

    Raises:
        RuntimeError: there are several.
    """
    mesh = None
    for x in inputs:
        if isinstance(x, DTensor):
            if mesh is None:
                mesh = x._spec.mesh
            elif x._spec.mesh is not mesh and x._spec.mesh != mesh:
                raise RuntimeError(f"{func}: all DTensors of an operator must be on the same device mesh, got {mesh} "
                                   f"and {x._spec.mesh}")
    return mesh


def _placed(x: DTensor, target: DTensorSpec, pending: bool = False) -> Tensor:
    """This process's part of an input under other placements; it may be pending, if it is not changed."""
    if x._spec is target or x._spec.placements == target.placements:
        return x._part_or_pending if pending else x._local_tensor
    return redistribute_local_tensor(x._local_tensor, x._spec, target)


def metadata(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """(shape, strides, dtype) of the results of an operator, none of which is computed."""
    if op.kind == VIEW:
        result = kernel_of(op)(*[x._array if isinstance(x, Tensor) else x for x in inputs], **params)
        views = result if isinstance(result, (list, tuple)) else [result]
        return [(a.shape, tuple(s // a.itemsize for s in a.strides), dtypes.of(a.dtype)) for a in views]
    from ..._tensor.shape.inference import infer, result_dtype  # needs the compiler's graph

    params = {name: [] if name == "saved" and value is not None else value for name, value in params.items()}
    with without_handlers():
        found = infer(op, inputs, params)
        if found is not None:
            return [(each.shape, row_major_strides(each.shape) if each.strides is None else each.strides,
                     result_dtype(each)) for each in found]
        plain = [wrap(reserved(x._array.shape, x._array.dtype)) if isinstance(x, Tensor) else x for x in inputs]
        result = apply(op, plain, params)
    outs = result if isinstance(result, (list, tuple)) else [result]
    return [(tuple(out.shape), tuple(out.stride()), out.dtype) for out in outs]


@contextmanager
def implicit_replication() -> Any:
    """Let plain tensors among the arguments of operators count as replicated ones in the block."""
    dispatcher = DTensor._op_dispatcher
    before, dispatcher._allow_implicit_replication = dispatcher._allow_implicit_replication, True
    try:
        yield
    finally:
        dispatcher._allow_implicit_replication = before


DTensor._op_dispatcher = OpDispatcher()
declared_handlers[DTensor] = DTensor._op_dispatcher.run_declared

__all__ = ["OpDispatcher", "implicit_replication", "metadata"]
