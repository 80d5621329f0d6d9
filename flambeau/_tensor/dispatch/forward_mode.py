"""Forward mode: tangents of operators' outputs, computed as the operators run.

An operator's jvp comes from its declaration: an elementwise operator's partial derivatives, a linear operator applied
to the tangent, a declared `jvp`, or else two reverse passes (the vjp is linear in the cotangent; its transpose is the
jvp).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from ...engine.grad_mode import enable_grad, grad_mode
from ...engine.nodes.op_node import OpNode
from ...engine.tensor_interface import layer
from ...modes import dispatch_in_use, forward_levels, inference, level_count, special, transform_stack
from ...modes import forward_mode as forward_enabled
from ...ops.declare import ELEMENTWISE, LINEAR, VIEW, Op
from ..tensor import Tensor, set_requires_grad, slots_of, wrap
from ..views.geometry import Geometry
from .apply import apply
from .handlers import handlers

open_levels = forward_levels
_next_level = count(1).__next__


def open_level() -> int:
    """Open a level of forward mode and return its number; inner levels have higher numbers."""
    level = _next_level()
    open_levels.add(level)
    special[0] += 1
    level_count[0] += 1
    return level


def close_level(level: int) -> None:
    """Close a level: its tangents are ignored from now on."""
    open_levels.discard(level)
    special[0] -= 1
    level_count[0] -= 1


def any_level_open() -> bool:
    """Whether a level of forward mode is open."""
    return bool(open_levels)


def tangent_of(x: Tensor, level: int) -> Tensor | None:
    """The tangent of `x` in a level: its own, or for a view the same view of its base's."""
    tangents = x._tangents
    if tangents is not None and level in tangents:
        return tangents[level]
    base = x._base
    if base is not None and base._tangents and level in base._tangents:
        geometry = Geometry(base._array, x._array)
        return _with_bits(layer.functions._take_strided(base._tangents[level], geometry=geometry), geometry)
    return None


def _with_bits(tangent: Tensor, geometry: Geometry) -> Tensor:
    """A tangent at the elements of a view in its base as one of the view, or the reverse."""
    if geometry.conjugated:
        tangent = layer.functions.conj_physical(tangent)
    return layer.functions.neg(tangent) if geometry.negated else tangent


def tangent_levels(inputs: Sequence[Any]) -> list[int]:
    """The open levels in which one of the inputs has a tangent, outermost first."""
    if len(open_levels) == 1:  # the common case
        level, = open_levels
        for x in inputs:
            if isinstance(x, Tensor):
                base = x._base
                if (x._tangents and level in x._tangents) or (base is not None and base._tangents
                                                              and level in base._tangents):
                    return [level] if forward_enabled.get() and not inference.get() else []
        return []
    result: set[int] = set()
    for x in inputs:
        if isinstance(x, Tensor):
            if x._tangents:
                result.update(x._tangents)
            if x._base is not None and x._base._tangents:
                result.update(x._base._tangents)
    return sorted(result & open_levels) if result and forward_enabled.get() and not inference.get() else []


def strip_levels(x: Tensor, level: int) -> Tensor:
    """An alias of `x`, same memory and graph, without the tangents of `level` and of the levels inside it."""
    out: Tensor = alias_of(x)
    pairs = {k: t for k, t in (x._tangents or {}).items() if k < level}
    if pairs:
        out._tangents = pairs
    else:
        out.__dict__.pop("_tangents", None)
    base = out._base
    if base is not None and base._tangents and any(k >= level for k in base._tangents):
        out._base = strip_levels(base, level)  # `tangent_of` reads the tangent of the base
    return out


def alias_of(x: Tensor) -> Tensor:
    """Another tensor object with the same memory and graph."""
    out: Tensor = wrap(x._array, type(x)) if dispatch_in_use[0] else wrap(x._array)
    out._requires_grad, out._node, out._output_nr = x._requires_grad, x._node, x._output_nr
    out._counter, out._base, out._accumulator = x._counter, x._base, x._accumulator
    out.__dict__.update(x.__dict__)
    if dispatch_in_use[0]:
        for name, value in slots_of(x).items():
            setattr(out, name, value)
    return out


def set_tangent(x: Tensor, tangent: Tensor, level: int) -> None:
    """Set the tangent of `x` in a level."""
    x._tangents = {**(x._tangents or {}), level: tangent}


def push_forward(op: Op, inputs: Sequence[Any], outs: Sequence[Tensor], params: dict[str, Any]) -> None:
    """Set the outputs' tangents from the inputs', level by level.

    The tangent of an inner level is computed from tensors that have tangents of the outer levels, and so has such
    tangents itself: the mixed derivatives.
    """
    if not op.differentiable:
        return
    for level in tangent_levels(inputs):
        tangents = [tangent_of(x, level) if isinstance(x, Tensor) else None for x in inputs]
        values = [strip_levels(x, level) if isinstance(x, Tensor) and _has_level(x, level) else x for x in inputs]
        clean: Sequence[Tensor] = outs
        if outs[0]._base is not None or outs[0]._tangents or _some_require_grad(outs, tangents):
            # a node that saves an output must not refer to the output's tangent, which refers to the node
            clean = [strip_levels(o, level) for o in outs]
        result = tangents_of(op, values, tangents, clean, params)
        for k, (out, t) in enumerate(zip(outs, result, strict=True)):
            if t is not None and out._array.dtype.kind in "fcV":
                set_tangent(out, _match_output(t, out), level)
                node = out._node
                if isinstance(node, OpNode) and k in node.plan.saved_outputs:
                    # the node saves only the output's array; forward over reverse needs the tangents too
                    extra = node.make_extra()
                    extra.tangents = {**(extra.tangents or {}), k: out._tangents}


def _has_level(x: Tensor, level: int) -> bool:
    """Whether a tensor or its base has a tangent of a level or of one inside it."""
    base = x._base
    return (bool(x._tangents) and max(x._tangents) >= level) or (  # type: ignore[arg-type]
        base is not None and bool(base._tangents) and max(base._tangents) >= level)  # type: ignore[arg-type]


def _some_require_grad(outs: Sequence[Tensor], tangents: Sequence[Any]) -> bool:
    """Whether the computation of tangents may be recorded."""
    for x in outs:
        if x._requires_grad:
            return True
    for t in tangents:  # noqa: SIM110 - a generator takes twice as long
        if t is not None and t._requires_grad:
            return True
    return False


def detach_keeping_tangents(x: Tensor) -> Tensor:
    """`x` without its graph, but with its tangents (`detach` drops both)."""
    out: Tensor = x.detach()
    if x._tangents is not None:
        out._tangents = {level: detach_keeping_tangents(t) for level, t in x._tangents.items() if level in open_levels}
    return out


def _match_output(t: Tensor, out: Tensor) -> Tensor:
    if t._array.dtype != out._array.dtype:
        if t._array.dtype.kind == "c" and out._array.dtype.kind != "c":
            t = layer.functions.real(t)
        t = t.to(out.dtype)
    if t._array.shape != out._array.shape:
        t = layer.functions.broadcast_to(t, out._array.shape).clone()
    return t


def tangents_of(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Tensor],
                params: dict[str, Any]) -> list[Tensor | None]:
    """The outputs' tangents; `inputs` and `outs` are the primals, without tangents at this level."""
    if op.jvp_rule is not None:
        return _apply_jvp_rule(op, inputs, tangents, outs, params)
    if op.kind in (LINEAR, VIEW):
        return _linear(op, inputs, tangents, params)
    if op.kind == ELEMENTWISE and op.vjp_rules and op.holomorphic:
        return [_elementwise(op, inputs, tangents, outs, params)]
    return _double_backward(op, inputs, tangents, params)


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


def _apply_jvp_rule(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Tensor],
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
    result = rule.function(*[values[name] for name in rule.names])
    return list(result) if op.n_outputs > 1 else [result]


def _linear(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> list[Tensor | None]:
    names = op.input_names(len(inputs))
    linear_in = op.linear_in or (names[:1] if not op.variadic else ())
    if op.variadic and not op.linear_in:  # linear in all of them together (cat, stack)
        full = [t if t is not None else layer.functions.zeros_like(x)
                for x, t in zip(inputs, tangents, strict=True)]
        result = apply(op, full, params)
        return list(result) if op.n_outputs > 1 else [result]
    total: list[Any] | None = None
    for i, t in enumerate(tangents):
        if t is None or names[i] not in linear_in:
            continue
        replaced = [t if k == i else x for k, x in enumerate(inputs)]
        part = apply(op, replaced, params)
        parts = list(part) if op.n_outputs > 1 else [part]
        total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
    return total or [None] * op.n_outputs


#: what a formula's argument is: the tangent, the namespace, an input or its shape, dtype or strides, the result, ...
_TANGENT, _XP, _INPUT, _SHAPE, _DTYPE, _STRIDES, _OUT, _PARAMETER, _NEEDS = range(9)


def _argument(op: Op, name: str) -> tuple[int, Any]:
    """What an elementwise operator's formula requests by a name, and of which input or parameter."""
    if name == "g":
        return _TANGENT, None
    if name == "xp":
        return _XP, None
    if name == "needs":
        return _NEEDS, None
    if name in op.inputs:
        return _INPUT, op.inputs.index(name)
    if name == op.output_names()[0]:
        return _OUT, None
    stem, _, kind = name.rpartition("_")
    of_input = {"shape": _SHAPE, "dtype": _DTYPE, "strides": _STRIDES}
    if kind in of_input and stem in op.inputs:
        return of_input[kind], op.inputs.index(stem)
    return _PARAMETER, name


#: (operator, number of inputs) -> (position, formula, its arguments) of each input that has a formula
_partials: dict[tuple[int, int], list[tuple[int, Any, list[tuple[int, Any]]]]] = {}


def _partials_of(op: Op, count: int) -> list[tuple[int, Any, list[tuple[int, Any]]]]:
    """The partial derivatives of an elementwise operator, cached."""
    key = id(op), count  # operators are never deleted
    found = _partials.get(key)
    if found is None:
        rules = [(i, op.rule_for(name)) for i, name in enumerate(op.input_names(count))]
        found = _partials[key] = [(i, rule.function, [_argument(op, name) for name in rule.names])
                                  for i, rule in rules if rule is not None]
    return found


def _elementwise(op: Op, inputs: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Tensor],
                 params: dict[str, Any]) -> Tensor | None:
    functions, out = layer.functions, outs[0]
    total: Any = None

    def value_of(kind: int, which: Any) -> Any:
        if kind == _INPUT:
            return inputs[which]
        if kind == _TANGENT:
            return t
        if kind == _XP:
            return functions
        if kind == _OUT:
            return out
        if kind == _PARAMETER:
            return params[which] if which in params else op.defaults[which]
        if kind == _NEEDS:
            return None
        x = inputs[which]
        return x._array.shape if kind == _SHAPE else x.dtype if kind == _DTYPE else x._array.strides

    for i, function, arguments in _partials_of(op, len(inputs)):
        t = tangents[i]
        if t is None:
            continue
        array, result = t._array, out._array
        if array.dtype is not result.dtype and array.dtype != result.dtype and result.dtype.kind in "fcV":
            t = t.to(out.dtype)
        if array.shape != result.shape:
            t = functions.broadcast_to(t, result.shape)
        part = function(*[value_of(kind, which) for kind, which in arguments])
        total = part if total is None else total + part
    return total


def _double_backward(op: Op, inputs: Sequence[Any], tangents: Sequence[Any],
                     params: dict[str, Any]) -> list[Tensor | None]:
    """J t as the derivative of u -> Jᵀ u with respect to u: two reverse passes."""
    functions = layer.functions
    recording = grad_mode.get() and any(
        isinstance(x, Tensor) and x._requires_grad for x in (*inputs, *tangents))
    with enable_grad():
        fresh = []
        for x, t in zip(inputs, tangents, strict=True):
            if t is None:
                fresh.append(x)
            elif x._requires_grad:
                fresh.append(x * 1)  # keeps the graph, and is a node of its own
            else:
                fresh.append(set_requires_grad(detach_keeping_tangents(x)))
        result = apply(op, fresh, params)
        outs = list(result) if op.n_outputs > 1 else [result]
        live = [o for o in outs if o._requires_grad]
        if not live:
            return [None] * op.n_outputs
        cotangents = [set_requires_grad(functions.zeros_like(o)) for o in live]
        diff_inputs = [x for x, t in zip(fresh, tangents, strict=True) if t is not None]
        input_tangents = [t for t in tangents if t is not None]
        from ...engine.api import grad

        input_gradients = grad(live, diff_inputs, cotangents, create_graph=True, allow_unused=True)
        pairs = [(g, t) for g, t in zip(input_gradients, input_tangents, strict=True)
                 if g is not None and g._requires_grad]
        if not pairs:
            return [None if not o._requires_grad else functions.zeros_like(o) for o in outs]
        pushed = grad([g for g, _ in pairs], cotangents, [t for _, t in pairs], create_graph=recording,
                      allow_unused=True)
    results: list[Tensor | None] = []
    k = 0
    for o in outs:
        if o._requires_grad:
            results.append(functions.zeros_like(o) if pushed[k] is None else pushed[k])
            k += 1
        else:
            results.append(None)
    return results


def tangents_of_write(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> dict[int, Tensor] | None:
    """The tangents of an in-place operator's result, by level, computed before the write."""
    if not op.differentiable:
        return None
    levels = tangent_levels(inputs)
    if not levels:
        return None
    out: Tensor = wrap(inputs[0]._array)
    written: dict[int, Tensor] = {}
    for level in levels:
        tangents = [tangent_of(x, level) if isinstance(x, Tensor) else None for x in inputs]
        values = [strip_levels(x, level) if isinstance(x, Tensor) else x for x in inputs]
        if grad_mode.get() and any(isinstance(x, Tensor) and x._requires_grad for x in (*values, *tangents)):
            # what is saved must not be what is written to: the value, and the tangent that it has now
            values[0] = layer.functions.clone(values[0])
            tangents[0] = None if tangents[0] is None else layer.functions.clone(tangents[0])
        out = apply(op, values, params)
        t = tangents_of(op, values, tangents, [out], params)[0]
        if t is not None:
            written[level] = t
    return written or None


def copy_tangents(x: Tensor, other: Tensor) -> None:
    """Give `other`, which holds a copy of the values of `x`, copies of its tangents."""
    for level in tangent_levels((x,)):
        tangent = tangent_of(x, level)
        if tangent is not None:
            set_tangent(other, layer.functions.clone(tangent), level)


def save_output_tangents(node: OpNode, target: Tensor) -> None:
    """Keep copies of the tangents that an in-place operator has written, where its node saves the result."""
    if 0 in node.plan.saved_outputs:
        result = wrap(target._array)
        copy_tangents(target, result)
        node.make_extra().tangents = {0: result._tangents}


def write_tangents(target: Tensor, written: dict[int, Tensor]) -> None:
    """Set the target's tangents after a write, in place where they share memory with other tangents."""
    for level, new in written.items():
        tangent = _match_output(new, target)
        base = target._base
        existing = (target._tangents or {}).get(level)
        if existing is not None and existing._array.__class__ is tangent._array.__class__:
            for frame in transform_stack.get():
                frame.inputs.update((id(existing), id(existing._base)))
            existing.copy_(tangent)
        elif base is not None:
            base_tangent = tangent_of(base, level)
            if base_tangent is None:
                base_tangent = layer.functions.zeros_like(base.detach())
            geometry = Geometry(base._array, target._array)
            set_tangent(base, layer.functions._replace_strided(base_tangent, _with_bits(tangent, geometry),
                                                               geometry=geometry), level)
        else:
            # a copy: later writes to it must not change the tangent that it came from
            set_tangent(target, layer.functions.clone(tangent), level)


handlers.push_forward = push_forward
