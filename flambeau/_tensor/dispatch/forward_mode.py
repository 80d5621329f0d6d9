"""Forward mode: tangents pushed along as operators run.

The same declarations serve: an elementwise operator's partial derivatives, a linear
operator applied to the tangent, a stated `jvp`, or, where nothing else is said, the vjp
differentiated once more (the vjp is linear in the cotangent; its transpose is the jvp).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from ...engine.grad_mode import enable_grad, grad_mode
from ...engine.nodes.op_node import OpNode
from ...engine.tensor_interface import layer
from ...modes import forward_levels, inference, leveled, special, transforming
from ...modes import forward_mode as forward_enabled
from ...ops.declare import ELEMENTWISE, LINEAR, VIEW, Op
from ..tensor import Tensor, as_leaf, wrap
from ..view_geometry import Geometry
from .apply import apply
from .handlers import handlers

open_levels = forward_levels
_next_level = count(1).__next__


def open_level() -> int:
    """Begin a level of forward mode and return its number; levels inside have higher numbers."""
    level = _next_level()
    open_levels.add(level)
    special[0] += 1
    leveled[0] += 1
    return level


def close_level(level: int) -> None:
    """End a level: its tangents count no longer."""
    open_levels.discard(level)
    special[0] -= 1
    leveled[0] -= 1


def any_level() -> bool:
    """Whether a level of forward mode is open."""
    return bool(open_levels)


def tangent_of(x: Tensor, level: int) -> Tensor | None:
    """The tangent that `x` carries in a level: its own, or its part of its base's."""
    tangents = x._tangents
    if tangents is not None and level in tangents:
        return tangents[level]
    base = x._base
    if base is not None and base._tangents and level in base._tangents:
        return layer.functions._take_strided(base._tangents[level], geometry=Geometry(base._array, x._array))
    return None


def levels_of(inputs: Sequence[Any]) -> list[int]:
    """The open levels in which one of the inputs has a tangent, outermost first."""
    found: set[int] = set()
    for x in inputs:
        if isinstance(x, Tensor):
            if x._tangents:
                found.update(x._tangents)
            if x._base is not None and x._base._tangents:
                found.update(x._base._tangents)
    return sorted(found & open_levels) if found and forward_enabled.get() and not inference.get() else []


def below(x: Tensor, level: int) -> Tensor:
    """`x` as the levels outside `level` see it: the same memory and history, without its tangents from there on."""
    out: Tensor = alias_of(x)
    kept = {k: t for k, t in (x._tangents or {}).items() if k < level}
    if kept:
        out._tangents = kept
    else:
        out.__dict__.pop("_tangents", None)
    base = out._base
    if base is not None and base._tangents and any(k >= level for k in base._tangents):
        out._base = below(base, level)  # a view has its part of its base's tangent
    return out


def alias_of(x: Tensor) -> Tensor:
    """Another tensor object for the same memory and history."""
    out: Tensor = wrap(x._array)
    out._requires_grad, out._node, out._output_nr = x._requires_grad, x._node, x._output_nr
    out._counter, out._base, out._accumulator = x._counter, x._base, x._accumulator
    out.__dict__.update(x.__dict__)
    return out


def set_tangent(x: Tensor, tangent: Tensor, level: int) -> None:
    """Give `x` a tangent until the level ends."""
    x._tangents = {**(x._tangents or {}), level: tangent}


def push_forward(op: Op, inputs: Sequence[Any], outs: Sequence[Tensor], params: dict[str, Any]) -> None:
    """Set the outputs' tangents from the inputs', level by level.

    An inner level's tangent is computed with what carries the outer levels' tangents, and so gets
    tangents of its own: the mixed derivatives.
    """
    if not op.differentiable:
        return
    for level in levels_of(inputs):
        tangents = [tangent_of(x, level) if isinstance(x, Tensor) else None for x in inputs]
        values = [below(x, level) if isinstance(x, Tensor) else x for x in inputs]
        clean = [below(o, level) for o in outs]
        found = tangents_of(op, values, tangents, clean, params)
        for k, (out, t) in enumerate(zip(outs, found, strict=True)):
            if t is not None and out._array.dtype.kind in "fcV":
                set_tangent(out, _fitted(t, out), level)
                node = out._node
                if isinstance(node, OpNode) and k in node.plan.saved_outputs:
                    # the node keeps its output's memory only; forward over reverse needs the tangents too
                    extra = node.make_extra()
                    extra.tangents = {**(extra.tangents or {}), k: out._tangents}


def ungraphed(x: Tensor) -> Tensor:
    """`x` without its history, but with its tangents (`detach` drops both)."""
    out: Tensor = x.detach()
    if x._tangents is not None:
        out._tangents = {level: ungraphed(t) for level, t in x._tangents.items() if level in open_levels}
    return out


def _fitted(t: Tensor, out: Tensor) -> Tensor:
    if t._array.dtype != out._array.dtype:
        if t._array.dtype.kind == "c" and out._array.dtype.kind != "c":
            t = layer.functions.real(t)
        t = t.to(out.dtype)
    if t._array.shape != out._array.shape:
        t = layer.functions.broadcast_to(t, out._array.shape).clone()
    return t


def tangents_of(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Tensor],
                params: dict[str, Any]) -> list[Tensor | None]:
    """The outputs' tangents; inputs and outs carry none themselves."""
    if op.jvp_rule is not None:
        return _stated(op, inputs, tangents, outs, params)
    if op.kind in (LINEAR, VIEW):
        return _linear(op, inputs, tangents, params)
    if op.kind == ELEMENTWISE and op.vjp_rules and op.holomorphic:
        return [_elementwise(op, inputs, tangents, outs, params)]
    return _transposed(op, inputs, tangents, params)


def _values(op: Op, inputs: Sequence[Any], outs: Sequence[Tensor], params: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"xp": layer.functions, **op.defaults, **params}
    names = op.input_names(len(inputs))
    for name, x in zip(names, inputs, strict=True):
        values[name] = x
        if isinstance(x, Tensor):
            values[name + "_shape"], values[name + "_dtype"] = x._array.shape, x.dtype
            values[name + "_strides"] = x._array.strides
    if op.variadic:
        star, first = op.inputs[-1], len(op.inputs) - 1
        values[star] = list(inputs[first:])
        values[star + "_shapes"] = tuple(None if x is None else x._array.shape for x in inputs[first:])
        values[star + "_dtypes"] = tuple(None if x is None else x.dtype for x in inputs[first:])
    for name, out in zip(op.output_names(), outs, strict=True):
        values[name] = out
    return values


def _stated(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Tensor],
            params: dict[str, Any]) -> list[Tensor | None]:
    values = _values(op, inputs, outs, params)
    names = op.input_names(len(inputs))
    for name, t in zip(names, tangents, strict=True):
        values["t_" + name] = t
    if op.variadic:
        values["t_" + op.inputs[-1]] = list(tangents[len(op.inputs) - 1:])
    rule = op.jvp_rule
    assert rule is not None
    values["needs"] = tuple(t is not None for t in tangents)
    found = rule.function(*[values[name] for name in rule.names])
    return list(found) if op.n_outputs > 1 else [found]


def _linear(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> list[Tensor | None]:
    names = op.input_names(len(inputs))
    linear_in = op.linear_in or (names[:1] if not op.variadic else ())
    if op.variadic and not op.linear_in:  # linear in all of them together (cat, stack)
        full = [t if t is not None else layer.functions.zeros_like(x)
                for x, t in zip(inputs, tangents, strict=True)]
        found = apply(op, full, params)
        return list(found) if op.n_outputs > 1 else [found]
    total: list[Any] | None = None
    for i, t in enumerate(tangents):
        if t is None or names[i] not in linear_in:
            continue
        replaced = [t if k == i else x for k, x in enumerate(inputs)]
        part = apply(op, replaced, params)
        parts = list(part) if op.n_outputs > 1 else [part]
        total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
    return total or [None] * op.n_outputs


def _elementwise(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Tensor],
                 params: dict[str, Any]) -> Tensor | None:
    values = _values(op, inputs, outs, params)
    names = op.input_names(len(inputs))
    values["needs"] = None
    total: Any = None
    for name, t in zip(names, tangents, strict=True):
        rule = op.rule_for(name)
        if t is None or rule is None:
            continue
        if t._array.dtype != outs[0]._array.dtype and outs[0]._array.dtype.kind in "fcV":
            t = t.to(outs[0].dtype)
        if t._array.shape != outs[0]._array.shape:
            t = layer.functions.broadcast_to(t, outs[0]._array.shape)
        values["g"] = t
        part = rule.function(*[values[n] for n in rule.names])
        total = part if total is None else total + part
    return total


def _transposed(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> list[Tensor | None]:
    """J t as the derivative, by u, of u -> J^T u: two reverse passes."""
    functions = layer.functions
    recording = grad_mode.get()
    with enable_grad():
        fresh = []
        for x, t in zip(inputs, tangents, strict=True):
            if t is None:
                fresh.append(x)
            elif x._requires_grad:
                fresh.append(x * 1)  # keeps the history, and is a node of its own
            else:
                fresh.append(as_leaf(ungraphed(x)))
        found = apply(op, fresh, params)
        outs = list(found) if op.n_outputs > 1 else [found]
        live = [o for o in outs if o._requires_grad]
        if not live:
            return [None] * op.n_outputs
        dummies = [as_leaf(functions.zeros_like(o)) for o in live]
        wanted = [x for x, t in zip(fresh, tangents, strict=True) if t is not None]
        given = [t for t in tangents if t is not None]
        from ...engine.api import grad

        back = grad(live, wanted, dummies, create_graph=True, allow_unused=True)
        kept = [(b, t) for b, t in zip(back, given, strict=True) if b is not None and b._requires_grad]
        if not kept:
            return [None if not o._requires_grad else functions.zeros_like(o) for o in outs]
        pushed = grad([b for b, _ in kept], dummies, [t for _, t in kept], create_graph=recording, allow_unused=True)
    results: list[Tensor | None] = []
    k = 0
    for o in outs:
        if o._requires_grad:
            results.append(functions.zeros_like(o) if pushed[k] is None else pushed[k])
            k += 1
        else:
            results.append(None)
    return results


def tangent_of_write(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> dict[int, Tensor] | None:
    """The tangents that an in-place application will leave in its target, by level, worked out before the write."""
    if not op.differentiable:
        return None
    levels = levels_of(inputs)
    if not levels:
        return None
    out: Tensor = wrap(inputs[0]._array)
    written: dict[int, Tensor] = {}
    for level in levels:
        tangents = [tangent_of(x, level) if isinstance(x, Tensor) else None for x in inputs]
        values = [below(x, level) if isinstance(x, Tensor) else x for x in inputs]
        out = apply(op, values, params)
        t = tangents_of(op, values, tangents, [out], params)[0]
        if t is not None:
            written[level] = t
    return written or None


def set_written_tangent(target: Tensor, written: dict[int, Tensor]) -> None:
    """Write tangents in place where the target shares its tangents' memory with others."""
    for level, new in written.items():
        tangent = _fitted(new, target)
        base = target._base
        held = (target._tangents or {}).get(level)
        if held is not None and held._array.__class__ is tangent._array.__class__:
            for frame in transforming.get():
                frame.inputs.update((id(held), id(held._base)))
            held.copy_(tangent)
        elif base is not None:
            of_base = tangent_of(base, level)
            if of_base is None:
                of_base = layer.functions.zeros_like(base.detach())
            geometry = Geometry(base._array, target._array)
            set_tangent(base, layer.functions._replace_strided(of_base, tangent, geometry=geometry), level)
        else:
            # A tangent of its own: what is written to it later must not reach the one it came from.
            set_tangent(target, layer.functions.clone(tangent), level)


handlers.push_forward = push_forward
