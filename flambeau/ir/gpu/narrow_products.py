"""A rewrite for GPUs: products of widened float16 and bfloat16 become products of the narrow arrays.

The IR widens narrow floats to float32 before a product, which is what the CPU computes with. The tensor cores read
narrow factors and add in float32: the same products, exactly, in another order of additions, and no widened array in
memory. A product that is only read after it was rounded to their dtype is a product of that dtype. A narrow bias is
widened where it is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...codegen.gpu.kernel_ir import substitute
from ...codegen.scalar import scalar_ir
from ...codegen.scalar.scalar_ir import Node
from ...dtypes import NARROW
from ...runtime.launch import Spec
from ..graph.rewrites import rebuild
from ..graph.value import FLOAT32, Graph, Value, reachable


def narrow_products(graph: Graph, outputs: Sequence[Value]) -> dict[Value, Value]:
    """The replacement of each output and of every value that it is computed from.

    >>> import numpy as np
    >>> from flambeau.ir.graph.value import Graph
    >>> g = Graph()
    >>> x = g.input(0, (8, 8), np.dtype(np.float16))
    >>> wide = g.cast(x, np.dtype(np.float32))
    >>> product = g.matmul(wide, g.permute(wide, (1, 0)))
    >>> [str(factor.dtype) for factor in narrow_products(g, [product])[product].args]
    ['float16', 'float16']
    """
    replacements: dict[Value, Value] = {}
    live = reachable(outputs)
    uses = Counter(arg.base for value in live for arg in value.args)
    uses.update(each.base for each in outputs)
    for value in live:
        factors = [narrow_source(graph, x, replacements) for x in value.args] if value.op == "matmul" else []
        a, b = factors or (None, None)
        if a is not None and b is not None and a.dtype == b.dtype:
            replacements[value] = graph.make("matmul", (a, b), None, value.shape, value.dtype)
        elif value.op == "cast" and (product := replacements[value.args[0]]).op == "matmul" and (
                product.args[0].dtype == value.dtype) and value.dtype in NARROW and uses[value.args[0]] == 1:
            replacements[value] = graph.make("matmul", product.args, None, value.shape, value.dtype)
        elif value.op == "add" and any(x.op == "matmul" for x in value.args):
            args = [_widened_where_added(graph, x, replacements) for x in value.args]
            replacements[value] = value if all(new is x for new, x in zip(args, value.args, strict=True)) else (
                rebuild(graph, value, args))
        elif any(replacements[x] is not x for x in value.args):
            replacements[value] = rebuild(graph, value, [replacements[x] for x in value.args])
        else:
            replacements[value] = value
    return replacements


def narrow_source(graph: Graph, factor: Value, replacements: dict[Value, Value]) -> Value | None:
    """A factor before it was widened; None if it was not, or if no view of the narrow array shows it."""
    base = factor.base
    if base.op != "cast" or base.dtype != FLOAT32 or base.args[0].dtype not in NARROW:
        return None
    source = replacements[base.args[0]]
    if factor is base:
        return source
    return None if source.op == "view" else graph.view(source, factor.shape, factor.strides, factor.offset)


def _widened_where_added(graph: Graph, x: Value, replacements: dict[Value, Value]) -> Value:
    """The replacement of an addend of a product: a broadcast bias is widened after it, not by a kernel of its own."""
    source = None if x is x.base or 0 not in x.strides else narrow_source(graph, x, replacements)
    return replacements[x] if source is None else graph.cast(source, FLOAT32)


def epilogue_of_sums(epilogue: Sequence[Node] | None, a: Spec, output: Spec) -> Sequence[Node] | None:
    """The epilogue as expressions of the product in float32, from those of the product as the graph has it.

    Args:
        epilogue: the expressions; None: the product itself.
        a: the first factor.
        output: the first output.
    """
    if a.dtype not in NARROW:
        return epilogue
    rounded = scalar_ir.cast(scalar_ir.variable(0, FLOAT32), a.dtype)
    if epilogue is None:
        return None if output.dtype == FLOAT32 else (rounded,)
    known = {scalar_ir.variable(0, a.dtype): rounded}
    return tuple(substitute(node, known) for node in epilogue)


__all__ = ["epilogue_of_sums", "narrow_products", "narrow_source"]
