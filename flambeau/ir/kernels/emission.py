"""From clusters to kernels."""

from __future__ import annotations

import numpy as np

from ...codegen.elementwise import elementwise
from ...codegen.scalar.scalar_ir import Node, variable
from ...runtime.launch import Spec
from ..fusion.groups import Cluster, Clustering, dims_of
from ..graph import view_algebra as algebra
from ..graph.extern_kernels import Native
from ..graph.value import Value
from .pointwise import (
    Asked,
    Kernel,
    Place,
    Writer,
    alike_inputs,
    constant_node,
    dense,
    elementwise_kernel,
    reduction_kernel,
    spec_of,
)
from .row_kernels import rows_kernels


def kernels(clustering: Clustering, cluster: Cluster, stored: set[Value]) -> list[Kernel]:
    """What computes a cluster's stored members."""
    first = cluster.members[0]
    outputs = [v for v in cluster.members if v in stored]
    if cluster.product is not None:
        return [_epilogue(clustering, cluster, outputs)]
    if first.op in ("matmul", "convolve"):
        return [_product(first, [dense(first)], [first], [], None)]
    if first.op == "assemble":
        return _assembled(first)
    if first.op == "whole":
        return [_whole(first)]
    writer = Writer(clustering, cluster)
    if cluster.rows is None:
        return [elementwise_kernel(writer, outputs)]
    return _rows(writer, outputs)


def _product(product: Value, outs: list[Spec], outputs: list[Value], extras: list[tuple[Spec, Place]],
             epilogue: tuple[Node, ...] | None) -> Kernel:
    a, b = product.args
    x, y = (spec_of(each, each.shape, each.strides) for each in (a, b))
    more = [spec for spec, _ in extras]
    asked: Asked | None = None
    if product.op == "matmul":
        from ...codegen.matmul import matmul

        asked = matmul.launches, (outs, x, y, more, epilogue)
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
                  alike_inputs(Spec.dense(product.shape, product.dtype), extras, 2), asked=asked)


def _epilogue(clustering: Clustering, cluster: Cluster, outputs: list[Value]) -> Kernel:
    product = cluster.product
    assert product is not None
    writer = _EpilogueWriter(clustering, cluster)
    nodes = tuple(writer.node(v) for v in outputs)
    outs = [Spec.dense(product.shape, v.dtype) for v in outputs]
    return _product(product, outs, outputs, writer.inputs, nodes)


class _EpilogueWriter(Writer):
    """A writer whose space is the product's shape."""

    def strides(self, arg: Value, member: Value) -> tuple[int, ...]:
        assert self.cluster.product is not None
        if not arg.shape:
            return (0,) * self.cluster.product.ndim
        found = algebra.reshaped(arg.shape, arg.strides, self.cluster.product.shape)
        assert found is not None
        return found

    def variable(self, arg: Value, member: Value) -> int:
        assert self.cluster.product is not None
        self.space = self.cluster.product.shape
        return super().variable(arg, member)


def _whole(node: Value) -> Kernel:
    parts = node.graph.parts[node]
    inputs: list[Place] = [(x.base, x.offset * x.dtype.itemsize) for x in node.args]
    if not isinstance(node.attrs, Native):
        return Kernel("foreign", [], parts, inputs)
    launches = node.attrs.launches([dense(v) for v in parts], [spec_of(x, x.shape, x.strides) for x in node.args])
    return Kernel(node.attrs.name, launches, parts, inputs)


def in_parts(spec: Spec) -> Spec:
    """An array that is only copied: of complex numbers, as pairs of real ones."""
    if spec.dtype.kind != "c":
        return spec
    half = np.dtype(f"f{spec.dtype.itemsize // 2}")
    return Spec((*spec.shape, 2), (*spec.strides, half.itemsize), half)


def _assembled(value: Value) -> list[Kernel]:
    """A copy for each piece; first the background, where there is one."""
    has_background, *places = value.attrs
    if has_background:
        places.insert(0, (algebra.dense(value.shape), 0))
    found = []
    size = value.dtype.itemsize
    for arg, (strides, offset) in zip(value.args, places, strict=True):
        if arg.size == 0:
            continue
        number = constant_node(arg)
        ins = [] if number is not None else [in_parts(spec_of(arg, arg.shape, arg.strides))]
        out = in_parts(Spec(arg.shape, tuple(s * size for s in strides), value.dtype))
        node = variable(0, out.dtype) if number is None else number
        inputs = [] if number is not None else [(arg.base, arg.offset * size)]
        found.append(Kernel("copy", elementwise.launches([node], [out], ins), [value], inputs, frozenset(),
                            (offset * size,), (elementwise.launches, ([node], [out], ins))))
    return found


# ----- rows -------------------------------------------------------------------------------


def _rows(writer: Writer, outputs: list[Value]) -> list[Kernel]:
    cluster = writer.cluster
    reductions = [v for v in cluster.members if v.op == "reduce"]
    full = [v for v in outputs if writer.is_full(v)]
    if not full and not cluster.rows_used and all(v in outputs for v in reductions) and len(
            {dims_of(v) for v in reductions}) == 1 and all(v.op == "reduce" for v in outputs):
        dims = dims_of(reductions[0])
        by_dims = writer if dims == cluster.rows else Writer(writer.clustering, cluster, dims)
        return [reduction_kernel(by_dims, reductions)]
    return rows_kernels(writer, outputs)


__all__ = ["Kernel", "in_parts", "kernels"]
