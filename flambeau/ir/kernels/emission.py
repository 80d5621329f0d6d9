"""From groups to kernels."""

from __future__ import annotations

import numpy as np

from ...codegen.elementwise import elementwise
from ...codegen.scalar.scalar_ir import Node, variable
from ...runtime.launch import Spec
from ..fusion.groups import Fusion, FusionGroup, reduced_intervals
from ..graph import view_algebra as algebra
from ..graph.extern_kernels import ExternKernel
from ..graph.value import Value
from .pointwise import (
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
    """What computes a group's stored members."""
    first = group.members[0]
    outputs = [v for v in group.members if v in stored]
    if group.contraction is not None:
        return [_epilogue_kernel(fusion, group, outputs)]
    if first.op in ("matmul", "convolve"):
        return [_contraction_kernel(first, [dense_spec(first)], [first], [], None)]
    if first.op == "assemble":
        return _assemble_kernels(first)
    if first.op == "extern":
        return [_extern_kernel(first)]
    expressions = GroupExpressions(fusion, group)
    if group.rows is None:
        return [elementwise_kernel(expressions, outputs)]
    return _reduction_kernels(expressions, outputs)


def _contraction_kernel(product: Value, outs: list[Spec], outputs: list[Value], extras: list[tuple[Spec, Operand]],
             epilogue: tuple[Node, ...] | None) -> Kernel:
    a, b = product.args
    x, y = (spec_of(each, each.shape, each.strides) for each in (a, b))
    more = [spec for spec, _ in extras]
    factory: LaunchFactory | None = None
    if product.op == "matmul":
        from ...codegen.matmul import matmul

        factory = matmul.launches, (outs, x, y, more, epilogue)
        launches = matmul.launches(outs, x, y, more, epilogue)
    else:
        from ...codegen.convolution import convolution

        kind, stride, padding, dilation, groups = product.attrs
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        if kind == "weight":
            a, b = b, a
            launches = convolution.weight_gradient(outs, y, x, **how)
        else:
            run = convolution.forward if kind == "forward" else convolution.input_gradient
            launches = run(outs, x, y, more, epilogue=epilogue, **how)
    places = [(each.base, each.offset * each.dtype.itemsize) for each in (a, b)]
    return Kernel(product.op, launches, outputs, [*places, *(place for _, place in extras)],
                  same_layout_inputs(Spec.dense(product.shape, product.dtype), extras, 2), factory=factory)


def _epilogue_kernel(fusion: Fusion, group: FusionGroup, outputs: list[Value]) -> Kernel:
    product = group.contraction
    assert product is not None
    expressions = _EpilogueExpressions(fusion, group)
    nodes = tuple(expressions.node(v) for v in outputs)
    outs = [Spec.dense(product.shape, v.dtype) for v in outputs]
    return _contraction_kernel(product, outs, outputs, expressions.inputs, nodes)


class _EpilogueExpressions(GroupExpressions):
    """A expressions whose space is the product's shape."""

    def strides(self, arg: Value, member: Value) -> tuple[int, ...]:
        assert self.group.contraction is not None
        if not arg.shape:
            return (0,) * self.group.contraction.ndim
        found = algebra.reshape_strides(arg.shape, arg.strides, self.group.contraction.shape)
        assert found is not None
        return found

    def variable(self, arg: Value, member: Value) -> int:
        assert self.group.contraction is not None
        self.space = self.group.contraction.shape
        return super().variable(arg, member)


def _extern_kernel(node: Value) -> Kernel:
    parts = node.graph.extern_outputs[node]
    inputs: list[Operand] = [(x.base, x.offset * x.dtype.itemsize) for x in node.args]
    if not isinstance(node.attrs, ExternKernel):
        return Kernel("foreign", [], parts, inputs)
    launches = node.attrs.launches([dense_spec(v) for v in parts], [spec_of(x, x.shape, x.strides) for x in node.args])
    return Kernel(node.attrs.name, launches, parts, inputs)


def as_real_pairs(spec: Spec) -> Spec:
    """An array that is only copied: of complex numbers, as pairs of real ones."""
    if spec.dtype.kind != "c":
        return spec
    half = np.dtype(f"f{spec.dtype.itemsize // 2}")
    return Spec((*spec.shape, 2), (*spec.strides, half.itemsize), half)


def _assemble_kernels(value: Value) -> list[Kernel]:
    """A copy for each piece; first the background, where there is one."""
    has_background, *places = value.attrs
    if has_background:
        places.insert(0, (algebra.dense_strides(value.shape), 0))
    found = []
    size = value.dtype.itemsize
    for arg, (strides, offset) in zip(value.args, places, strict=True):
        if arg.size == 0:
            continue
        number = constant_node(arg)
        ins = [] if number is not None else [as_real_pairs(spec_of(arg, arg.shape, arg.strides))]
        out = as_real_pairs(Spec(arg.shape, tuple(s * size for s in strides), value.dtype))
        node = variable(0, out.dtype) if number is None else number
        inputs = [] if number is not None else [(arg.base, arg.offset * size)]
        found.append(Kernel("copy", elementwise.launches([node], [out], ins), [value], inputs, frozenset(),
                            (offset * size,), (elementwise.launches, ([node], [out], ins))))
    return found


# ----- rows -------------------------------------------------------------------------------


def _reduction_kernels(expressions: GroupExpressions, outputs: list[Value]) -> list[Kernel]:
    group = expressions.group
    reductions = [v for v in group.members if v.op == "reduce"]
    full = [v for v in outputs if expressions.is_full(v)]
    if not full and not group.rows_used and all(v in outputs for v in reductions) and len(
            {reduced_intervals(v) for v in reductions}) == 1 and all(v.op == "reduce" for v in outputs):
        dims = reduced_intervals(reductions[0])
        by_dims = expressions if dims == group.rows else GroupExpressions(expressions.fusion, group, dims)
        return [reduction_kernel(by_dims, reductions)]
    return row_kernels(expressions, outputs)


__all__ = ["Kernel", "as_real_pairs", "lower_group"]
