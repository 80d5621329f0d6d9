"""A rewrite of scalar IR: erf(z) is computed from e^(-z²) where an expression has both.

erf(z) = 1 - e^(-z²) r p(r) with r = 1 / (1 + 0.45 |z|) and a short polynomial p. The absolute error is small, the
relative error near 0 is not, so the rewrite applies only where erf is added to a constant of 1 or more. The gradient of
gelu has this form: the normal distribution function and its density.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .scalar_ir import FLOAT32, Node, make, topological_order

#: largest relative difference between the squared factor of z and the factor of z² in the exponent
TOLERANCE = 1e-6


def reuse_exponentials(outputs: Sequence[Node]) -> Sequence[Node]:
    """Return the expressions, with erf computed from an exponential where there is a matching one.

    >>> from flambeau.codegen.scalar import scalar_ir as e
    >>> x = e.variable(0, "float32")
    >>> reuse_exponentials([e.erf(x) + 1, e.exp(-(x * x))])[0]
    add(erf_from_exp(x0, exp(neg(mul(x0, x0)))), 1.0)
    >>> reuse_exponentials([e.erf(x) * 2, e.exp(-(x * x))])[0]
    mul(erf(x0), 2.0)
    """
    nodes = topological_order(outputs)
    erfs = [node for node in nodes if node.op == "erf" and node.dtype == FLOAT32]
    if not erfs:
        return outputs
    exponentials = [(node, _factor_square(node.args[0])) for node in nodes
                    if node.op == "exp" and node.dtype == FLOAT32]
    chosen = {}
    for node in erfs:
        base, factor = _factor_constant(node.args[0])
        for exponential, square in exponentials:
            if square is None or square[0] is not base or abs(square[1] + factor ** 2) > TOLERANCE * factor ** 2:
                continue
            users = [each for each in nodes if node in each.args]
            if node not in outputs and all(map(_adds_large_constant, users)):
                chosen[node] = exponential
    return _replace(outputs, nodes, chosen) if chosen else outputs


def _adds_large_constant(node: Node) -> bool:
    """Whether a node adds a constant of 1 or more, which absorbs the error of erf near 0."""
    return node.op in ("add", "sub") and any(each.op == "constant" and abs(each.value) >= 1 for each in node.args)


def _replace(outputs: Sequence[Node], nodes: Sequence[Node], chosen: dict[Node, Node]) -> list[Node]:
    rewritten: dict[Node, Node] = {}
    pending = list(nodes)
    while pending:  # an exponential may come after the erf that is computed from it
        later = []
        for node in pending:
            args: tuple[Any, ...] = node.args if node not in chosen else (*node.args, chosen[node])
            if any(each not in rewritten for each in args):
                later.append(node)
            else:
                op = "erf_from_exp" if node in chosen else node.op
                rewritten[node] = make(op, tuple([rewritten[each] for each in args]), node.dtype, node.const)
        pending = later
    return [rewritten[node] for node in outputs]


def _factor_constant(node: Node) -> tuple[Node, float]:
    """Write a node as another one times a constant."""
    factor = 1.0
    while True:
        if node.op == "neg":
            node, factor = node.args[0], -factor
        elif node.op == "mul" and node.args[0].op == "constant":
            node, factor = node.args[1], factor * node.args[0].value
        elif node.op == "mul" and node.args[1].op == "constant":
            node, factor = node.args[0], factor * node.args[1].value
        else:
            return node, factor


def _factor_square(node: Node) -> tuple[Node, float] | None:
    """Write a node as the square of another one times a constant; None if it is none."""
    node, factor = _factor_constant(node)
    if node.op != "mul":
        return None
    (first, a), (second, b) = map(_factor_constant, node.args)
    return (first, factor * a * b) if first is second else None
