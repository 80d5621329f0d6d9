"""Forward mode: tangents pushed along as operators run.

The same declarations serve: an elementwise operator's partial derivatives, a linear
operator applied to the tangent, a stated `jvp`, or, where nothing else is said, the vjp
differentiated once more (the vjp is linear in the cotangent; its transpose is the jvp).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..autograd.modes import enable_grad, grad_mode
from ..autograd.node import OpNode, layer
from ..modes import special
from ..ops.declare import ELEMENTWISE, LINEAR, VIEW, Op
from .apply import apply
from .tensor import Tensor, wrap


class UnpackedDualTensor(NamedTuple):
    """A dual tensor's two parts: the value, and the tangent (None where it has none)."""

    primal: Any
    tangent: Any


_levels: list[weakref.WeakSet[Tensor]] = []


def primal_of(x: Tensor) -> Tensor:
    """`x` without its tangent: the same memory and history."""
    out: Tensor = wrap(x._array)
    out._requires_grad, out._node, out._output_nr = x._requires_grad, x._node, x._output_nr
    out._counter, out._base, out._accumulator = x._counter, x._base, x._accumulator
    out.__dict__.update(x.__dict__)
    out.__dict__.pop("_tangent", None)
    return out


def set_tangent(x: Tensor, tangent: Tensor) -> None:
    """Give `x` a tangent until the level ends."""
    x._tangent = tangent
    if _levels:
        _levels[-1].add(x)


def push_forward(op: Op, inputs: Sequence[Any], outs: Sequence[Tensor], params: dict[str, Any]) -> None:
    """Set the outputs' tangents from the inputs'."""
    tangents = [x._tangent if isinstance(x, Tensor) else None for x in inputs]
    if not op.differentiable or all(t is None for t in tangents):
        return
    values = [primal_of(x) if t is not None else x for x, t in zip(inputs, tangents, strict=True)]
    clean = [primal_of(o) for o in outs]
    found = tangents_of(op, values, tangents, clean, params)
    for k, (out, t) in enumerate(zip(outs, found, strict=True)):
        if t is not None and out._array.dtype.kind in "fcV":
            set_tangent(out, _fitted(t, out))
            node = out._node
            if isinstance(node, OpNode) and k in node.plan.outs:
                # the node keeps its output's memory only; forward over reverse needs the tangent too
                more = node._more()
                more.tangents = {**(more.tangents or {}), k: out._tangent}


def ungraphed(x: Tensor) -> Tensor:
    """`x` without its history, but with its tangent (`detach` drops both)."""
    out: Tensor = x.detach()
    if x._tangent is not None:
        set_tangent(out, x._tangent.detach())
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
    if op.tangent_rule is not None:
        return _stated(op, inputs, tangents, outs, params)
    if op.kind in (LINEAR, VIEW):
        return _linear(op, inputs, tangents, params)
    if op.kind == ELEMENTWISE and op.rules and op.holomorphic:
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
        values[star + "_shapes"] = tuple(x._array.shape for x in inputs[first:])
        values[star + "_dtypes"] = tuple(x.dtype for x in inputs[first:])
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
    rule = op.tangent_rule
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
                fresh.append(x.detach().requires_grad_())
        found = apply(op, fresh, params)
        outs = list(found) if op.n_outputs > 1 else [found]
        live = [o for o in outs if o._requires_grad]
        if not live:
            return [None] * op.n_outputs
        dummies = [functions.zeros_like(o).requires_grad_() for o in live]
        wanted = [x for x, t in zip(fresh, tangents, strict=True) if t is not None]
        given = [t for t in tangents if t is not None]
        from ..autograd.interface import grad

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


def tangent_of_write(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Tensor | None:
    """The tangent that an in-place application will leave in its target, worked out before the write."""
    if not op.differentiable or all(not isinstance(x, Tensor) or x._tangent is None for x in inputs):
        return None
    tangents = [x._tangent if isinstance(x, Tensor) else None for x in inputs]
    values = [primal_of(x) if isinstance(x, Tensor) else x for x in inputs]
    out = apply(op, values, params)
    return tangents_of(op, values, tangents, [out], params)[0]


def set_written_tangent(target: Tensor, tangent: Tensor) -> None:
    """Write a tangent in place where the target shares its tangent's memory with others."""
    tangent = _fitted(tangent, target)
    base = target._base
    if target._tangent is not None:
        target._tangent.copy_(tangent)
    elif base is not None:
        if base._tangent is None:
            set_tangent(base, layer.functions.zeros_like(base))
        from .views import Geometry

        geometry = Geometry(base._array, target._array)
        whole = layer.functions._replace_strided(base._tangent, tangent, geometry=geometry)
        set_tangent(base, whole)
        set_tangent(target, layer.functions._strided_part(whole, geometry=geometry))
    else:
        set_tangent(target, tangent)


# ----- the user's interface -----

def enter_dual_level() -> int:
    """Begin a level of forward mode and return its number.

    Raises:
        RuntimeError: one is open already.
    """
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.append(weakref.WeakSet())
    special[0] += 1
    return len(_levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """End the current level: its tangents are forgotten.

    Raises:
        RuntimeError: no level is open, or another one than `level` is the innermost.
    """
    if not _levels:
        raise RuntimeError("Trying to exit a forward AD level but no level is currently active.")
    if level is not None and level != len(_levels) - 1:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    for x in _levels.pop():
        x._tangent = None
    special[0] -= 1


class dual_level:
    """The block inside which dual tensors live.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.), torch.tensor(1.))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()

    def __call__(self, function: Any) -> Any:
        import functools

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with dual_level():
                return function(*args, **kwargs)
        return wrapped


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with the same values that carries `tangent`.

    Raises:
        RuntimeError: no level is open.
        ValueError: the tensor or the tangent is not floating point or complex.
    """
    if not _levels:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")
    for x, what in ((tensor, "primal"), (tangent, "tangent")):
        if x._array.dtype.kind not in "fcV":
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {x.dtype}")
    if tensor._array.shape != tangent._array.shape:
        raise RuntimeError(f"Expected tangent to have the same shape as the primal, got {tuple(tangent.shape)} and "
                           f"{tuple(tensor.shape)}")
    if tensor._tangent is not None:
        raise RuntimeError("Cannot make_dual a tensor that already has a tangent: unpack_dual it first.")
    out = layer.functions.view_as(tensor, tensor)
    set_tangent(out, tangent)
    return out


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A dual tensor's value and tangent; the tangent of a plain tensor is None."""
    if not _levels:
        return UnpackedDualTensor(tensor, None)
    if tensor._tangent is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(primal_of(tensor), tensor._tangent)
