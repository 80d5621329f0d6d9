"""`autograd.Function` inside `vmap`: the user's `vmap` rule, or one generated from forward and backward.

A generated rule is another Function, whose inputs and outputs are the values of the batched tensors; its forward and
backward call the user's on batched tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...modes import special
from ...trees import broadcast_to, tree_flatten
from ..dispatch.batched_tensor import (
    BatchedTensor,
    Level,
    active_levels,
    expand_levels,
    is_batched,
    make_batched,
    remove_level,
    set_levels,
    vmap_levels,
)
from ..tensor import Tensor
from .node import FunctionCtx, FunctionNode
from .recording import apply_function

_SEE = " For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """The first argument of a Function's `vmap`: the batch size and randomness mode of the level."""

    batch_size: int
    randomness: str


def apply_batched_function(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a user-defined Function with batched arguments.

    Raises:
        RuntimeError: it has no `vmap` rule, or two.
    """
    if any(isinstance(x, Tensor) for x in kwargs.values()):
        raise NotImplementedError(f"Run {cls.__name__}.apply under vmap with positional Tensor args: autograd.Function "
                                  "with kwarg-only Tensor args is not supported there")
    own_levels = cls.vmap is not FunctionNode._function_class.vmap
    if cls.generate_vmap_rule and own_levels:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an "
                           "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden "
                           "vmap staticmethod to avoid ambiguity." + _SEE)
    if own_levels:
        return _user_vmap(cls, args)
    if not cls.generate_vmap_rule:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override "
                           "and implement the vmap staticmethod or set generate_vmap_rule=True." + _SEE)
    return _generated_vmap(cls, args, kwargs)


# ----- the user's rule -----

def _user_vmap(cls: Any, args: tuple[Any, ...]) -> Any:
    leaves, spec = tree_flatten(args)
    level = vmap_levels(leaves)[-1]
    values = [remove_level(x, level) for x in leaves]
    dims = spec.unflatten(d for _, d in values)
    with set_levels(tuple(other for other in active_levels() if other is not level)):
        result = cls.vmap(VmapInfo(level.size, level.randomness), dims, *spec.unflatten(x for x, _ in values))
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
                           f"structure compatible with the output. Got a {type(result)} instead")
    output, out_dims = result
    outs, out_spec = tree_flatten(output)
    out_leaves = broadcast_to(out_dims, out_spec)
    if out_leaves is None:
        raise RuntimeError("The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
                           f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
                           f"out_dims has structure {tree_flatten(out_dims)[1]} but output has structure "
                           f"{out_spec}." + _SEE)
    return out_spec.unflatten(_hide_dim(x, d, level) for x, d in zip(outs, out_leaves, strict=True))


def _hide_dim(x: Any, dim: int | None, level: Level) -> Any:
    if dim is None or not isinstance(x, Tensor):
        return x
    x = x.movedim(dim, 0)
    if type(x) is BatchedTensor:
        return make_batched(x._value, (*x._levels, level))
    return make_batched(x, (level,))


# ----- a generated rule -----

class _Context(FunctionCtx):
    """The `ctx` of the user's forward and backward: its saved tensors are batched."""

    materialize_grads = True

    def __init__(self, node: Any) -> None:
        self._node = node
        self._saved_levels: list[tuple[Level, ...]] = []
        self.to_save: Sequence[Any] = ()
        self.saved_for_forward: Sequence[Any] = ()
        self.dirty_tensors: Sequence[Any] = ()
        self.non_differentiable: Sequence[Any] = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved values, as batched tensors."""
        return tuple(x if x is None else make_batched(x, levels)
                     for x, levels in zip(self._node.saved_tensors, self._saved_levels, strict=True))

    @property
    def needs_input_grad(self) -> Any:
        return self._node.needs_input_grad


@contextmanager
def _reenter_levels(levels: tuple[Level, ...]) -> Iterator[None]:
    """Make levels active again, in a backward pass outside their block."""
    special[0] += 1
    try:
        with set_levels(levels):
            yield
    finally:
        special[0] -= 1


def _generated_vmap(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, spec = tree_flatten(args)
    levels = vmap_levels(leaves)
    outer_levels = active_levels() or levels
    leaf_levels = [x._levels if type(x) is BatchedTensor else () for x in leaves]
    out_spec: Any = None

    def forward(ctx: Any, *values: Any) -> Any:
        nonlocal out_spec
        inner = _Context(ctx)
        given = spec.unflatten(make_batched(v, own_levels) for v, own_levels in zip(values, leaf_levels, strict=True))
        output = cls.forward(*given, **kwargs)
        cls.setup_context(inner, given, output)
        outs, out_spec = tree_flatten(output)
        value_of = {id(g): v for g, v in zip(tree_flatten(given)[0], values, strict=True) if isinstance(g, Tensor)}
        results = []
        for x in outs:
            value = value_of.get(id(x))
            if value is None:
                value = expand_levels(x, levels) if isinstance(x, Tensor) else x
            value_of[id(x)] = value
            results.append(value)

        def values_of(tensors: Sequence[Any]) -> list[Any]:
            return [None if x is None else value_of[id(x)] if id(x) in value_of else x._value if is_batched(x) else x
                    for x in tensors]

        def levels_of(tensors: Sequence[Any]) -> list[tuple[Level, ...]]:
            output_ids = {id(x) for x in outs}
            return [() if x is None else levels if id(x) in output_ids else x._levels if is_batched(x) else ()
                    for x in tensors]

        inner._saved_levels = levels_of(inner.to_save)
        ctx.save_for_backward(*values_of(inner.to_save))
        if inner.saved_for_forward:
            inner._saved_levels = levels_of(inner.saved_for_forward)
            ctx.save_for_forward(*values_of(inner.saved_for_forward))
            ctx.saved_levels_for_forward = inner._saved_levels
        ctx.saved_levels_for_backward = levels_of(inner.to_save)
        ctx.mark_dirty(*values_of(inner.dirty_tensors))
        ctx.mark_non_differentiable(*values_of(inner.non_differentiable))
        ctx.set_materialize_grads(inner.materialize_grads)
        ctx.inner = inner
        return tuple(results)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        ctx.inner._saved_levels = ctx.saved_levels_for_backward
        with _reenter_levels(outer_levels):
            result = cls.backward(ctx.inner, *(None if g is None else _batch_cotangent(g, levels) for g in cotangents))
            flat = tree_flatten(result if isinstance(result, tuple) else (result,))[0]
            flat += [None] * (len(leaves) - len(flat))
            return tuple(None if g is None or not isinstance(x, Tensor) else _sum_to_levels(g, levels, own_levels)
                         for g, x, own_levels in zip(flat, leaves, leaf_levels, strict=False))

    def jvp(ctx: Any, *tangents: Any) -> Any:
        ctx.inner._saved_levels = getattr(ctx, "saved_levels_for_forward", ctx.saved_levels_for_backward)
        with _reenter_levels(outer_levels):
            given = spec.unflatten(None if t is None else make_batched(t, own_levels)
                               for t, own_levels in zip(tangents, leaf_levels, strict=True))
            result = cls.jvp(ctx.inner, *given)
            result = result if isinstance(result, tuple) else (result,)
            return tuple(None if t is None else expand_levels(t, levels) for t in result)

    base = FunctionNode._function_class
    generated = type(base)(f"Vmapped{cls.__name__}", (base,), {
        "forward": staticmethod(forward), "backward": staticmethod(backward), "jvp": staticmethod(jvp),
        "__module__": cls.__module__})
    outs = apply_function(generated, tuple(x._value if type(x) is BatchedTensor else x for x in leaves), {})
    return out_spec.unflatten(make_batched(x, levels) if isinstance(x, Tensor) else x for x in outs)


def _batch_cotangent(g: Any, levels: tuple[Level, ...]) -> Any:
    """The cotangent of a value as a batched tensor; levels that it already has (batched gradients) are kept."""
    if type(g) is BatchedTensor:
        extra_levels, n = g._levels, len(g._levels)
        order = (*extra_levels, *levels)
        union = tuple(sorted(order, key=lambda level: level.number))
        value = g._value.permute(*(order.index(level) for level in union), *range(len(order), n + g._array.ndim))
        return make_batched(value, union)
    return make_batched(g, levels)


def _sum_to_levels(g: Any, levels: tuple[Level, ...], own_levels: tuple[Level, ...]) -> Any:
    """A gradient for a value that belongs to `own_levels`: summed over the other levels."""
    extra_levels = tuple(level for level in vmap_levels([g]) if level not in levels)
    order = (*extra_levels, *own_levels, *(level for level in levels if level not in own_levels))
    union = tuple(sorted(order, key=lambda level: level.number))
    value = expand_levels(g, union)
    k = len(union)
    value = value.permute(*(union.index(level) for level in order), *range(k, value._array.ndim))
    rest = range(len(extra_levels) + len(own_levels), k)
    if rest:
        value = value.sum(tuple(rest))
    return make_batched(value, extra_levels)


__all__ = ["VmapInfo", "apply_batched_function"]
