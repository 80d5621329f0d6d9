"""Lowering of fusion groups to kernels."""

from __future__ import annotations

import numpy as np

from ...codegen.scalar.scalar_ir import Node, variable
from ...runtime.launch import Spec
from ..fusion.groups import Fusion, FusionGroup
from ..fusion.intervals import reduced_intervals
from ..graph import view_algebra as algebra
from ..graph.extern_kernels import ExternKernel
from ..graph.value import Value
from .families import KernelFamilies
from .pointwise import (
    FALLBACK,
    GroupExpressions,
    Kernel,
    LaunchFactory,
    Operand,
    constant_node,
    dense_spec,
    elementwise_kernel,
    reduction_kernel,
    same_layout_inputs,
    spec_of,
)
from .row_kernels import row_kernels


def lower_group(fusion: Fusion, group: FusionGroup, stored: set[Value]) -> list[Kernel]:
    """The kernels that compute the stored members of a group."""
    first = group.members[0]
    outputs = [v for v in group.members if v in stored]
    if group.contraction is not None:
        return [_epilogue_kernel(fusion, group, outputs)]
    if first.op in ("matmul", "convolve"):
        return [_contraction_kernel(fusion.families, first, [dense_spec(first)], [first], [], None)]
    if first.op == "assemble":
        return _assemble_kernels(fusion.families, first)
    if first.op == "extern":
        return [_extern_kernel(fusion, first)]
    expressions = GroupExpressions(fusion, group)
    if group.rows is None:
        return [elementwise_kernel(expressions, outputs)]
    return _reduction_kernels(expressions, outputs)


def _contraction_kernel(families: KernelFamilies, contraction: Value, output_specs: list[Spec], outputs: list[Value],
                        extras: list[tuple[Spec, Operand]], epilogue: tuple[Node, ...] | None) -> Kernel:
    a, b = contraction.args
    families = families.for_operands(a, b)
    x, y = (spec_of(each, each.shape, each.strides) for each in (a, b))
    extra_specs = [spec for spec, _ in extras]
    factory: LaunchFactory | None = None
    if contraction.op == "matmul":
        factory = families.matmul, (output_specs, x, y, extra_specs, epilogue)
        launches = families.matmul(output_specs, x, y, extra_specs, epilogue)
    else:
        kind, stride, padding, dilation, groups = contraction.attrs
        geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        if kind == "weight":
            a, b, x, y = b, a, y, x
        launches = families.convolution(kind, output_specs, x, y, extra_specs, epilogue, geometry)
    operands = [(each.base, each.offset * each.dtype.itemsize) for each in (a, b)]
    return Kernel(contraction.op, launches, outputs, [*operands, *(operand for _, operand in extras)],
                  same_layout_inputs(Spec.dense(contraction.shape, contraction.dtype), extras, 2), factory=factory)


def _epilogue_kernel(fusion: Fusion, group: FusionGroup, outputs: list[Value]) -> Kernel:
    contraction = group.contraction
    assert contraction is not None
    expressions = _EpilogueExpressions(fusion, group)
    nodes = tuple(expressions.node(v) for v in outputs)
    output_specs = [Spec.dense(contraction.shape, v.dtype) for v in outputs]
    return _contraction_kernel(fusion.families, contraction, output_specs, outputs, expressions.inputs, nodes)


class _EpilogueExpressions(GroupExpressions):
    """Expressions over the shape of the matmul or convolution."""

    def strides(self, arg: Value, member: Value) -> tuple[int, ...]:
        assert self.group.contraction is not None
        if not arg.shape:
            return (0,) * self.group.contraction.ndim
        result = algebra.reshape_strides(arg.shape, arg.strides, self.group.contraction.shape)
        assert result is not None
        return result

    def variable(self, arg: Value, member: Value) -> int:
        assert self.group.contraction is not None
        self.space = self.group.contraction.shape
        return super().variable(arg, member)


def _extern_kernel(fusion: Fusion, node: Value) -> Kernel:
    outputs = node.graph.extern_outputs[node]
    inputs: list[Operand] = [(x.base, x.offset * x.dtype.itemsize) for x in node.args]
    if not isinstance(node.attrs, ExternKernel):
        return Kernel(FALLBACK, [], outputs, inputs)
    if node.attrs.optional and not any(v in fusion.of for v in outputs[-node.attrs.optional:]):
        outputs = outputs[:-node.attrs.optional]
    launches = fusion.families.extern(node.attrs, [dense_spec(v) for v in outputs],
                               [spec_of(x, x.shape, x.strides) for x in node.args])
    return Kernel(node.attrs.name, launches, outputs, inputs)


def as_real_pairs(spec: Spec) -> Spec:
    """The spec for copying an array: complex numbers as pairs of real numbers."""
    if spec.dtype.kind != "c":
        return spec
    half = np.dtype(f"f{spec.dtype.itemsize // 2}")
    return Spec((*spec.shape, 2), (*spec.strides, half.itemsize), half)


def _assemble_kernels(families: KernelFamilies, value: Value) -> list[Kernel]:
    """One copy kernel for each piece, after the background, if any."""
    has_background, *locations = value.attrs
    if has_background:
        locations.insert(0, (algebra.dense_strides(value.shape), 0))
    kernels = []
    itemsize = value.dtype.itemsize
    for arg, (strides, offset) in zip(value.args, locations, strict=True):
        if arg.size == 0:
            continue
        constant = constant_node(arg)
        input_specs = [] if constant is not None else [as_real_pairs(spec_of(arg, arg.shape, arg.strides))]
        output_spec = as_real_pairs(Spec(arg.shape, tuple(s * itemsize for s in strides), value.dtype))
        node = variable(0, output_spec.dtype) if constant is None else constant
        inputs = [] if constant is not None else [(arg.base, arg.offset * itemsize)]
        factory = families.elementwise, ([node], [output_spec], input_specs)
        kernels.append(Kernel("copy", factory[0](*factory[1]), [value], inputs, frozenset(), (offset * itemsize,),
                              factory))
    return kernels


# ----- reductions -------------------------------------------------------------------------


def _reduction_kernels(expressions: GroupExpressions, outputs: list[Value]) -> list[Kernel]:
    group = expressions.group
    reductions = [v for v in group.members if v.op == "reduce"]
    per_element = [v for v in outputs if expressions.is_full(v)]
    if not per_element and not group.rows_used and all(v in outputs for v in reductions) and len(
            {reduced_intervals(v) for v in reductions}) == 1 and all(v.op == "reduce" for v in outputs):
        reduced = reduced_intervals(reductions[0])
        over_dims = expressions if reduced == group.rows else GroupExpressions(expressions.fusion, group, reduced)
        return [reduction_kernel(over_dims, reductions)]
    return row_kernels(expressions, outputs)


__all__ = ["Kernel", "as_real_pairs", "lower_group"]
