"""Fusion groups as scalar expressions over their inputs, and single-pass kernels that compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...codegen.scalar import scalar_ir
from ...codegen.scalar.scalar_ir import Node
from ...dtypes import NARROW, widen
from ...runtime.launch import Launch, Spec
from ..fusion.groups import Fusion, FusionGroup
from ..fusion.intervals import Intervals, elementary_intervals, merge_intervals, refine_space, suffix_intervals
from ..graph import view_algebra as algebra
from ..graph.value import Value

#: an operand: the value that owns the memory, and an offset in bytes
Operand = tuple[Value, int]
#: a function that creates launches, and its arguments
LaunchFactory = tuple[Callable[..., list[Launch]], tuple[Any, ...]]
#: the name of kernels that the interpreter runs (`extern_kernels.FallbackKernel`)
FALLBACK = "fallback"


class Kernel(NamedTuple):
    """Launches, and their operands.

    Attributes:
        name: the kernel family.
        launches: run in order with the same pointers.
        outputs: the values written.
        inputs: the operands read.
        same_layout: indices of inputs that have the layout of the outputs, so that an output may overwrite them.
        output_offsets: offsets in bytes at which the outputs are written; empty: 0.
        factory: creates the launches for other extents (shape-polymorphic plans); None where that is not possible.
    """

    name: str
    launches: list[Launch]
    outputs: list[Value]
    inputs: list[Operand]
    same_layout: frozenset[int] = frozenset()
    output_offsets: tuple[int, ...] = ()
    factory: LaunchFactory | None = None


def dense_spec(value: Value) -> Spec:
    """The spec of a stored value."""
    return Spec.dense(value.shape, value.dtype)


def spec_of(arg: Value, shape: Sequence[int], strides: Sequence[int]) -> Spec:
    """The spec of an operand, with strides given in elements."""
    size = arg.dtype.itemsize
    return Spec(tuple(shape), tuple(s * size for s in strides), arg.dtype)


def constant_node(value: Value) -> Node | None:
    """The literal of a scalar constant; None for other values and for constants that kernels read."""
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
    """Scalar expressions of the members of one group over its inputs.

    Args:
        reduced: the dimensions that the kernel reduces; None: the group's rows.

    Attributes:
        space: the iteration space of the kernel, reduced dimensions last.
        order: the permutation from the group's space to `space`.
        inner: the number of reduced dimensions.
        inputs: specs and operands, in the order of the variables.
        reduction_variables: the variable of each reduction whose result other members use.
    """

    def __init__(self, fusion: Fusion, group: FusionGroup, reduced: Intervals | None = None) -> None:
        self.fusion, self.group = fusion, group
        rows = group.rows or ()
        reduced = rows if reduced is None else reduced
        self.refined = refine_space(group.space, (*rows, *reduced)) if rows or reduced else tuple(group.space)
        cuts = suffix_intervals(self.refined)

        def dims_in(dims: Intervals) -> list[int]:
            inside = set(elementary_intervals(self.refined, dims)) if dims else set()
            return [d for d, cut in enumerate(cuts) if cut in inside and self.refined[d] != 1]

        self.reduced, self._row_dims = dims_in(reduced), set(dims_in(rows))
        self.order = [*(d for d in range(len(self.refined)) if d not in self.reduced), *self.reduced]
        self.space = tuple(self.refined[d] for d in self.order)
        self.inner = len(self.reduced)
        self.all_dims = merge_intervals(cuts)
        self.members = set(group.members)
        self.inputs: list[tuple[Spec, Operand]] = []
        self._index: dict[tuple, int] = {}
        self._nodes: dict[Value, Node] = {}
        self.reduction_variables: dict[Value, int] = {}
        for member in group.members:
            if member is not group.contraction:
                for arg in member.args:
                    if arg.base not in self.members and constant_node(arg) is None:
                        self.variable(arg, member)
        if not self.inputs and group.has_reductions:  # a kernel needs an input to know its extents
            placeholder = group.members[0].graph.constant(0.0, np.dtype(np.float32))
            self.inputs.append((spec_of(placeholder, self.space, (0,) * len(self.space)), (placeholder, 0)))

    def is_full(self, value: Value) -> bool:
        """Whether a member has one element per element of the space."""
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
        """The spec of a stored member that has one element per element of the space."""
        strides = algebra.dense_strides(self.refined)
        return spec_of(value, self.space, [strides[d] for d in self.order])

    def strides(self, arg: Value, member: Value) -> tuple[int, ...]:
        """Strides of an argument over the space, in elements."""
        if not arg.shape:
            return (0,) * len(self.space)
        member_size = member.args[0].size if member.op == "reduce" else member.size
        if member_size == self.group.size:
            split = algebra.split_strides(arg.shape, arg.strides, self.refined)
            return tuple(split[d] for d in self.order)
        kept_dims = [d for d in range(len(self.refined)) if d not in self._row_dims]
        steps = dict(zip(kept_dims, algebra.split_strides(arg.shape, arg.strides, [self.refined[d] for d in kept_dims]),
                         strict=True))
        return tuple(steps.get(d, 0) for d in self.order)

    def variable(self, arg: Value, member: Value) -> int:
        """The variable of an argument, adding the input if it is new."""
        strides = self.strides(arg, member)
        narrow = self.fusion.widened.get(arg.base)
        base, like = (arg.base, arg) if narrow is None else (narrow, narrow)
        key = (base, strides, arg.offset)
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.inputs)
            self.inputs.append((spec_of(like, self.space, strides), (base, arg.offset * like.dtype.itemsize)))
        return index

    def node(self, value: Value) -> Node:
        """The expression of a member; of a reduction, the variable of its result."""
        expression = self._nodes.get(value)
        if expression is None:
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
            expression = self._nodes[value]
        return expression

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
        """The expression of a member's argument."""
        if arg.base in self.members:
            return self.node(arg.base)
        constant = constant_node(arg)
        if constant is not None:
            return constant
        shift = 1 if self.group.contraction is not None else 0
        base = self.fusion.widened.get(arg.base)
        if base is not None:
            return scalar_ir.cast(scalar_ir.variable(self.variable(arg, member) + shift, base.dtype), arg.dtype)
        return scalar_ir.variable(self.variable(arg, member) + shift, arg.dtype)


def elementwise_kernel(expressions: GroupExpressions, outputs: list[Value]) -> Kernel:
    """One elementwise pass over the space."""
    nodes = [expressions.node(v) for v in outputs]
    output_specs = [expressions.output(v) for v in outputs]
    factory = nodes, output_specs, [spec for spec, _ in expressions.inputs]
    operands = [operand for _, operand in expressions.inputs]
    family = expressions.fusion.families.elementwise
    return Kernel("elementwise", family(*factory), outputs, operands,
                  same_layout_inputs(output_specs[0], expressions.inputs), factory=(family, factory))


def same_layout_inputs(out: Spec, inputs: Sequence[tuple[Spec, Operand]], first: int = 0) -> frozenset[int]:
    """The inputs that have the layout of an output."""
    return frozenset(i for i, (spec, (_, offset)) in enumerate(inputs, first)
                     if not offset and spec.dtype.itemsize == out.dtype.itemsize and all(
                         n == 1 or s == t for n, s, t in zip(out.shape, spec.strides, out.strides, strict=True)))


def reduction_kernel(expressions: GroupExpressions, reductions: list[Value]) -> Kernel:
    """One pass that reduces over the reduced dimensions of the expressions."""
    reducers = [(v.attrs[0], expressions.argument_node(v.args[0], v)) for v in reductions]
    axes = tuple(range(len(expressions.space) - expressions.inner, len(expressions.space)))
    outer_shape = expressions.space[:len(expressions.space) - expressions.inner]
    output_specs = [Spec.dense(outer_shape, v.dtype) for v in reductions]
    factory = reducers, output_specs, [spec for spec, _ in expressions.inputs], axes
    family = expressions.fusion.families.reduction
    return Kernel("reduction", family(*factory), reductions, [operand for _, operand in expressions.inputs],
                  factory=(family, factory))


__all__ = ["GroupExpressions", "Kernel", "Operand", "dense_spec", "elementwise_kernel", "reduction_kernel",
           "same_layout_inputs", "spec_of"]
