"""The namespace `xp` over IR values: tracing a declaration over it lowers the operator into a graph.

`Namespace(graph)` has flambeau's primitives as operations on values; every other operator is traced through its own
declared forward. Whatever the graph cannot express raises `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ops.declare import REGISTRY
from ..graph.value import Graph, Unsupported, Value
from .grid_sampling import GridSamplingOps
from .indexing_ops import IndexingOps
from .layout_ops import LayoutOps
from .pooling import PoolingOps
from .scans import Scans

#: elementwise primitives, and their operations in `codegen.scalar.scalar_ir`
_NAMES = {name: name for name in (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh",
    "digamma", "div", "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "fmax", "fmin", "lgamma", "log",
    "log10", "log1p", "log2", "maximum", "minimum", "mul", "ne", "round", "rsqrt",
    "sigmoid", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc")} | {
    "reciprocal": "recip", "clamp_below": "maximum"}
_ROUNDING = ("ceil", "floor", "round", "trunc")


class Namespace(IndexingOps, PoolingOps, LayoutOps, Scans, GridSamplingOps):
    """`xp` over the values of one graph.

    Methods are the primitives with a definition of their own; any other name is an elementwise operation of the graph,
    or an operator traced through its declaration.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.active: set[str] = set()  # the operators whose declarations are being traced

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = _NAMES.get(name)
        if operation is not None:
            call = self._elementwise(operation)
        else:
            op = REGISTRY.get(name)
            if op is None:
                raise Unsupported(f"the primitive {name}")
            call = self.declared(op)
        setattr(self, name, call)
        return call

    def declared(self, op: Any) -> Callable[..., Any]:
        """The function that traces an operator's declaration; Unsupported if that calls a primitive of its own name."""
        whole = self.lowered_whole(op)
        if whole is not None:
            return whole
        forward, name = op.forward, op.name

        def call(*args: Any, **params: Any) -> Any:
            if name in self.active:
                raise Unsupported(f"the primitive {name}")
            self.active.add(name)
            try:
                return forward(self, *args, **params) if op.takes_xp else forward(*args, **params)
            finally:
                self.active.discard(name)

        return call

    def _elementwise(self, operation: str) -> Callable[..., Value]:
        apply = self.graph.apply
        if operation in _ROUNDING:
            return lambda x: x if x.dtype.kind in "biu" else apply(operation, x)
        return lambda *values: apply(operation, *values)


def lower_operator(graph: Graph, op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> list[Value]:
    """Lower an operator: the values of its results.

    Args:
        inputs: values, scalars or None.

    Raises:
        Unsupported: the graph cannot express it.
    """
    if op.name in ("eq", "ne"):  # values are compared by identity
        return [graph.apply(op.name, *inputs)]
    try:
        outputs = namespace_of(graph).declared(op)(*inputs, **params)
    except (AttributeError, TypeError, ValueError, IndexError, RuntimeError) as error:
        # the declaration uses an attribute of arrays that values lack
        raise Unsupported(f"{op.name}: {error}") from error
    results = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    for value in results:
        if not isinstance(value, Value):
            raise Unsupported(f"{op.name} gives a {type(value).__name__}")
    return results


def namespace_of(graph: Graph) -> Namespace:
    """The graph's namespace, created once."""
    namespace = graph.__dict__.get("namespace")
    if namespace is None:
        namespace = graph.__dict__["namespace"] = Namespace(graph)
    return namespace


__all__ = ["Namespace", "lower_operator", "namespace_of"]
