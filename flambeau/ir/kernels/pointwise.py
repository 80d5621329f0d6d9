"""A group's members as scalar expressions over its inputs, and the kernels of one pass that compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...codegen.elementwise import elementwise
from ...codegen.rows import reduction
from ...codegen.scalar import scalar_ir
from ...codegen.scalar.scalar_ir import Node
from ...dtypes import NARROW, widen
from ...runtime.launch import Launch, Spec
from ..fusion.groups import (
    Fusion,
    FusionGroup,
    Intervals,
    elementary_intervals,
    merge_intervals,
    refine_space,
    suffix_intervals,
)
from ..graph import view_algebra as algebra
from ..graph.value import Value

#: an operand: the value whose memory it is, and an offset into that in bytes
Operand = tuple[Value, int]
#: a function that gives launches, and its arguments
LaunchFactory = tuple[Callable[..., list[Launch]], tuple[Any, ...]]


class Kernel(NamedTuple):
    """Launches over operands, and what they compute.

    Attributes:
        name: of the family.
        launches: run one after the other with the same pointers.
        outputs, inputs: the operands.
        alike: the numbers of inputs that are read element by element where the outputs are written.
        shifts: offsets in bytes at which the outputs are written, if not at their beginning.
        factory: the function that gave the launches, and its arguments, where specs and what lasts are all there is.
    """

    name: str
    launches: list[Launch]
    outputs: list[Value]
    inputs: list[Operand]
    same_layout: frozenset[int] = frozenset()
    output_offsets: tuple[int, ...] = ()
    factory: LaunchFactory | None = None


def dense_spec(value: Value) -> Spec:
    """The value's array as it is stored."""
    return Spec.dense(value.shape, value.dtype)


def spec_of(arg: Value, shape: Sequence[int], strides: Sequence[int]) -> Spec:
    """An operand of this shape with strides in elements."""
    size = arg.dtype.itemsize
    return Spec(tuple(shape), tuple(s * size for s in strides), arg.dtype)


def constant_node(value: Value) -> Node | None:
    """The expression of a number; None for other values, and for what kernels are to read."""
    base = value.base
    if base.op != "constant" or base.size != 1 or base in base.graph.runtime_constants:
        return None
    array = value.graph.array(base)
    if value.dtype in NARROW:
        return scalar_ir.cast(scalar_ir.constant(float(widen(array).item()), np.float32), value.dtype)
    if value.dtype.kind not in "biuf":
        return None
    return scalar_ir.constant(array.item(), value.dtype)


class GroupExpressions:
    """The expressions of one group's members over its inputs.

    Args:
        reduced: the dimensions that the kernel reduces; those of the group's rows, if None.

    Attributes:
        space: the shape that the kernel goes over, reduced dimensions last.
        order: where those dimensions stand in the group's own order.
        inner: how many of them, the last, are reduced.
        inputs: specs and places, in the order of the variables.
    """

    def __init__(self, fusion: Fusion, group: FusionGroup, reduced: Intervals | None = None) -> None:
        self.fusion, self.group = fusion, group
        rows = group.rows or ()
        reduced = rows if reduced is None else reduced
        self.refined = refine_space(group.space, (*rows, *reduced)) if rows or reduced else tuple(group.space)
        cuts = suffix_intervals(self.refined)

        def among(dims: Intervals) -> list[int]:
            inside = set(elementary_intervals(self.refined, dims)) if dims else set()
            return [d for d, cut in enumerate(cuts) if cut in inside and self.refined[d] != 1]

        self.reduced, self._row_dims = among(reduced), set(among(rows))
        self.order = [*(d for d in range(len(self.refined)) if d not in self.reduced), *self.reduced]
        self.space = tuple(self.refined[d] for d in self.order)
        self.inner = len(self.reduced)
        self.whole_dims = merge_intervals(cuts)
        self.members = set(group.members)
        self.inputs: list[tuple[Spec, Operand]] = []
        self._index: dict[tuple, int] = {}
        self._nodes: dict[Value, Node] = {}
        self.reduction_variables: dict[Value, int] = {}  # the variables of reductions whose results are used again
        for member in group.members:
            if member is not group.contraction:
                for arg in member.args:
                    if arg.base not in self.members and constant_node(arg) is None:
                        self.variable(arg, member)

        if not self.inputs and group.has_reductions:  # a kernel learns from its inputs how much there is
            number = group.members[0].graph.constant(0.0, np.dtype(np.float32))
            self.inputs.append((spec_of(number, self.space, (0,) * len(self.space)), (number, 0)))

    def is_full(self, value: Value) -> bool:
        """Whether a member has an element for each of the space."""
        return value.op != "reduce" and value.size == self.group.size and not (
            self.group.size == 1 and self.group.has_reductions and self._is_after_reduction(value))

    def _is_after_reduction(self, value: Value) -> bool:
        stack, seen = list(value.args), set()
        while stack:
            each = stack.pop().base
            if each in self.members and each not in seen:
                seen.add(each)
                if each.op == "reduce":
                    return True
                stack.extend(each.args)
        return False

    def output(self, value: Value) -> Spec:
        """A member with an element for each of the space, as it is stored."""
        strides = algebra.dense_strides(self.refined)
        return spec_of(value, self.space, [strides[d] for d in self.order])

    def strides(self, arg: Value, member: Value) -> tuple[int, ...]:
        """Strides in elements of an argument over the space."""
        if not arg.shape:
            return (0,) * len(self.space)
        full = member.args[0].size if member.op == "reduce" else member.size
        if full == self.group.size:
            found = algebra.split_strides(arg.shape, arg.strides, self.refined)
            return tuple(found[d] for d in self.order)
        kept = [d for d in range(len(self.refined)) if d not in self._row_dims]
        steps = dict(zip(kept, algebra.split_strides(arg.shape, arg.strides, [self.refined[d] for d in kept]),
                         strict=True))
        return tuple(steps.get(d, 0) for d in self.order)

    def variable(self, arg: Value, member: Value) -> int:
        """The number of the input that an argument is."""
        strides = self.strides(arg, member)
        key = (arg.base, strides, arg.offset)
        number = self._index.get(key)
        if number is None:
            number = self._index[key] = len(self.inputs)
            self.inputs.append((spec_of(arg, self.space, strides), (arg.base, arg.offset * arg.dtype.itemsize)))
        return number

    def node(self, value: Value) -> Node:
        """A member's expression; a reduction's is that of its result, a variable."""
        found = self._nodes.get(value)
        if found is None:
            pending = [value]
            while pending:
                each = pending[-1]
                if each in self._nodes:
                    pending.pop()
                    continue
                missing = [a.base for a in each.args if a.base in self.members and a.base not in self._nodes
                           and each.op != "reduce" and each is not self.group.contraction]
                if missing:
                    pending.extend(missing)
                    continue
                self._nodes[each] = self._lower(each)
                pending.pop()
            found = self._nodes[value]
        return found

    def _lower(self, value: Value) -> Node:
        if value is self.group.contraction:
            return scalar_ir.variable(0, value.dtype)
        if value.op == "reduce":
            return scalar_ir.variable(self.reduction_variables[value], value.dtype)
        args = [self.argument_node(arg, value) for arg in value.args]
        if value.op == "copy":
            return args[0]
        if value.op == "cast":
            return scalar_ir.cast(args[0], value.dtype)
        if value.op == "select":
            return scalar_ir.select(*args)
        return scalar_ir.apply(value.op, *args)

    def argument_node(self, arg: Value, member: Value) -> Node:
        """What a member's argument is in its expression."""
        if arg.base in self.members:
            return self.node(arg.base)
        constant = constant_node(arg)
        if constant is not None:
            return constant
        shift = 1 if self.group.contraction is not None else 0
        return scalar_ir.variable(self.variable(arg, member) + shift, arg.dtype)


def elementwise_kernel(expressions: GroupExpressions, outputs: list[Value]) -> Kernel:
    """One pass that computes an element of each output for each of the space."""
    nodes = [expressions.node(v) for v in outputs]
    outs = [expressions.output(v) for v in outputs]
    factory = nodes, outs, [spec for spec, _ in expressions.inputs]
    return Kernel("elementwise", elementwise.launches(*factory), outputs, [place for _, place in expressions.inputs],
                  same_layout_inputs(outs[0], expressions.inputs), factory=(elementwise.launches, factory))


def same_layout_inputs(out: Spec, inputs: Sequence[tuple[Spec, Operand]], first: int = 0) -> frozenset[int]:
    """The inputs that lie as an output does."""
    return frozenset(i for i, (spec, (_, offset)) in enumerate(inputs, first)
                     if not offset and spec.dtype.itemsize == out.dtype.itemsize and all(
                         n == 1 or s == t for n, s, t in zip(out.shape, spec.strides, out.strides, strict=True)))


def reduction_kernel(expressions: GroupExpressions, reductions: list[Value]) -> Kernel:
    """One pass that reduces over the expressions's dimensions."""
    terms = [(v.attrs[0], expressions.argument_node(v.args[0], v)) for v in reductions]
    axes = tuple(range(len(expressions.space) - expressions.inner, len(expressions.space)))
    kept = expressions.space[:len(expressions.space) - expressions.inner]
    outs = [Spec.dense(kept, v.dtype) for v in reductions]
    factory = terms, outs, [spec for spec, _ in expressions.inputs], axes
    return Kernel("reduction", reduction.launches(*factory), reductions, [place for _, place in expressions.inputs],
                  factory=(reduction.launches, factory))


__all__ = ["GroupExpressions", "Kernel", "Operand", "dense_spec", "elementwise_kernel", "reduction_kernel",
           "same_layout_inputs", "spec_of"]
