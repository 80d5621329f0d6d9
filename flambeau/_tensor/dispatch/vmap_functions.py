"""`autograd.Function` under `vmap`: by the user's own `vmap`, or by a rule generated from forward and backward.

A generated rule is another Function, whose inputs and outputs are the batched tensors' values:
its forward and backward run the user's on batched tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...modes import special
from ...trees import broadcast_to, tree_flatten
from ..tensor import Tensor
from .batched_tensor import BatchedTensor, Level, batched, full, is_batched, levels_among, only, peeled, running
from .custom_node import FunctionCtx, FunctionNode
from .custom_recording import recorded

_SEE = " For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told of the level it runs for."""

    batch_size: int
    randomness: str


def apply_batched_function(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a user's Function on arguments some of which are batched.

    Raises:
        RuntimeError: it has no rule for batches, or two.
    """
    if any(isinstance(x, Tensor) for x in kwargs.values()):
        raise NotImplementedError(f"Run {cls.__name__}.apply under vmap with positional Tensor args: autograd.Function "
                                  "with kwarg-only Tensor args is not supported there")
    own = cls.vmap is not FunctionNode._function_class.vmap
    if cls.generate_vmap_rule and own:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an "
                           "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden "
                           "vmap staticmethod to avoid ambiguity." + _SEE)
    if own:
        return _by_own_rule(cls, args)
    if not cls.generate_vmap_rule:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override "
                           "and implement the vmap staticmethod or set generate_vmap_rule=True." + _SEE)
    return _by_generated_rule(cls, args, kwargs)


# ----- the user's own rule -----

def _by_own_rule(cls: Any, args: tuple[Any, ...]) -> Any:
    leaves, spec = tree_flatten(args)
    level = levels_among(leaves)[-1]
    found = [peeled(x, level) for x in leaves]
    dims = spec.build(d for _, d in found)
    with only(tuple(other for other in running() if other is not level)):
        result = cls.vmap(VmapInfo(level.size, level.randomness), dims, *spec.build(x for x, _ in found))
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
    return out_spec.build(_hidden(x, d, level) for x, d in zip(outs, out_leaves, strict=True))


def _hidden(x: Any, dim: int | None, level: Level) -> Any:
    if dim is None or not isinstance(x, Tensor):
        return x
    x = x.movedim(dim, 0)
    if type(x) is BatchedTensor:
        return batched(x._value, (*x._levels, level))
    return batched(x, (level,))


# ----- a generated rule -----

class _Context(FunctionCtx):
    """The context that the user's forward and backward see: what it keeps are batched tensors."""

    materialize_grads = True

    def __init__(self, node: Any) -> None:
        self._node = node
        self._kept: list[tuple[Level, ...]] = []
        self.to_save: Sequence[Any] = ()
        self.saved_for_forward: Sequence[Any] = ()
        self.dirty_tensors: Sequence[Any] = ()
        self.non_differentiable: Sequence[Any] = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was kept, batched again."""
        return tuple(x if x is None else batched(x, levels)
                     for x, levels in zip(self._node.saved_tensors, self._kept, strict=True))

    @property
    def needs_input_grad(self) -> Any:
        return self._node.needs_input_grad


@contextmanager
def _resumed(levels: tuple[Level, ...]) -> Iterator[None]:
    """A block in which levels run again."""
    special[0] += 1
    try:
        with only(levels):
            yield
    finally:
        special[0] -= 1


def _by_generated_rule(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, spec = tree_flatten(args)
    levels = levels_among(leaves)
    around = running() or levels
    of_leaves = [x._levels if type(x) is BatchedTensor else () for x in leaves]
    out_spec: Any = None

    def forward(ctx: Any, *values: Any) -> Any:
        nonlocal out_spec
        inner = _Context(ctx)
        given = spec.build(batched(v, own) for v, own in zip(values, of_leaves, strict=True))
        output = cls.forward(*given, **kwargs)
        cls.setup_context(inner, given, output)
        outs, out_spec = tree_flatten(output)
        taken = {id(g): v for g, v in zip(tree_flatten(given)[0], values, strict=True) if isinstance(g, Tensor)}
        results = []
        for x in outs:
            value = taken.get(id(x))
            if value is None:
                value = full(x, levels) if isinstance(x, Tensor) else x
            taken[id(x)] = value
            results.append(value)

        def values_of(tensors: Sequence[Any]) -> list[Any]:
            return [None if x is None else taken[id(x)] if id(x) in taken else x._value if is_batched(x) else x
                    for x in tensors]

        def levels_of(tensors: Sequence[Any]) -> list[tuple[Level, ...]]:
            ends = {id(x) for x in outs}
            return [() if x is None else levels if id(x) in ends else x._levels if is_batched(x) else ()
                    for x in tensors]

        inner._kept = levels_of(inner.to_save)
        ctx.save_for_backward(*values_of(inner.to_save))
        if inner.saved_for_forward:
            inner._kept = levels_of(inner.saved_for_forward)
            ctx.save_for_forward(*values_of(inner.saved_for_forward))
            ctx.forward_kept = inner._kept
        ctx.backward_kept = levels_of(inner.to_save)
        ctx.mark_dirty(*values_of(inner.dirty_tensors))
        ctx.mark_non_differentiable(*values_of(inner.non_differentiable))
        ctx.set_materialize_grads(inner.materialize_grads)
        ctx.inner = inner
        return tuple(results)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        ctx.inner._kept = ctx.backward_kept
        with _resumed(around):
            found = cls.backward(ctx.inner, *(None if g is None else _rebatched(g, levels) for g in cotangents))
            flat = tree_flatten(found if isinstance(found, tuple) else (found,))[0]
            flat += [None] * (len(leaves) - len(flat))
            return tuple(None if g is None or not isinstance(x, Tensor) else _reduced(g, levels, own)
                         for g, x, own in zip(flat, leaves, of_leaves, strict=False))

    def jvp(ctx: Any, *tangents: Any) -> Any:
        ctx.inner._kept = getattr(ctx, "forward_kept", ctx.backward_kept)
        with _resumed(around):
            given = spec.build(None if t is None else batched(t, own)
                               for t, own in zip(tangents, of_leaves, strict=True))
            found = cls.jvp(ctx.inner, *given)
            found = found if isinstance(found, tuple) else (found,)
            return tuple(None if t is None else full(t, levels) for t in found)

    base = FunctionNode._function_class
    generated = type(base)(f"Vmapped{cls.__name__}", (base,), {
        "forward": staticmethod(forward), "backward": staticmethod(backward), "jvp": staticmethod(jvp),
        "__module__": cls.__module__})
    outs = recorded(generated, tuple(x._value if type(x) is BatchedTensor else x for x in leaves), {})
    return out_spec.build(batched(x, levels) if isinstance(x, Tensor) else x for x in outs)


def _rebatched(g: Any, levels: tuple[Level, ...]) -> Any:
    """A cotangent of a value as a batched tensor; where a batch of cotangents is under way it has levels of its own."""
    if type(g) is BatchedTensor:
        beyond, n = g._levels, len(g._levels)
        order = (*beyond, *levels)
        union = tuple(sorted(order, key=lambda level: level.number))
        value = g._value.permute(*(order.index(level) for level in union), *range(len(order), n + g._array.ndim))
        return batched(value, union)
    return batched(g, levels)


def _reduced(g: Any, levels: tuple[Level, ...], own: tuple[Level, ...]) -> Any:
    """A gradient as one of a value that belongs to levels `own`: summed over the others."""
    beyond = tuple(level for level in levels_among([g]) if level not in levels)
    order = (*beyond, *own, *(level for level in levels if level not in own))
    union = tuple(sorted(order, key=lambda level: level.number))
    value = full(g, union)
    k = len(union)
    value = value.permute(*(union.index(level) for level in order), *range(k, value._array.ndim))
    rest = range(len(beyond) + len(own), k)
    if rest:
        value = value.sum(tuple(rest))
    return batched(value, beyond)


__all__ = ["VmapInfo", "apply_batched_function"]
