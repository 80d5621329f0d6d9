"""Functions that are quicker to compute beside another one.

erf(z) to which 1 is added, as in the normal distribution function, is 1 - e^(-z²) r p(r) with a short polynomial p. So
where e^(-z²), the density, is computed from the same x anyway (the gradient of gelu), that is what erf is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .scalar_ir import FLOAT32, Node, make, ordered

#: how nearly the factors must agree that x was multiplied by
CLOSE = 1e-6


def paired(outputs: Sequence[Node]) -> Sequence[Node]:
    """The same expressions, with erf computed from an exponential where there is a fitting one.

    >>> from flambeau.codegen.scalar import scalar_ir as e
    >>> x = e.variable(0, "float32")
    >>> paired([e.erf(x) + 1, e.exp(-(x * x))])[0]
    add(erf_beside(x0, exp(neg(mul(x0, x0)))), 1.0)
    >>> paired([e.erf(x) * 2, e.exp(-(x * x))])[0]
    mul(erf(x0), 2.0)
    """
    nodes = ordered(outputs)
    functions = [node for node in nodes if node.op == "erf" and node.dtype == FLOAT32]
    if not functions:
        return outputs
    bells = [(node, _square(node.args[0])) for node in nodes if node.op == "exp" and node.dtype == FLOAT32]
    chosen = {}
    for node in functions:
        base, factor = _scaled(node.args[0])
        for bell, found in bells:
            if found is not None and found[0] is base and abs(found[1] + factor ** 2) <= CLOSE * factor ** 2 and (
                    node not in outputs and all(map(_covers, [each for each in nodes if node in each.args]))):
                chosen[node] = bell
    return _replaced(outputs, nodes, chosen) if chosen else outputs


def _covers(node: Node) -> bool:
    """Whether a sum has a number of 1 or more in it, beside which the last digits of erf near 0 are lost."""
    return node.op in ("add", "sub") and any(each.op == "constant" and abs(each.value) >= 1 for each in node.args)


def _replaced(outputs: Sequence[Node], nodes: Sequence[Node], chosen: dict[Node, Node]) -> list[Node]:
    made: dict[Node, Node] = {}
    waiting = list(nodes)
    while waiting:  # an exponential may stand behind the erf that is made of it
        later = []
        for node in waiting:
            args: tuple[Any, ...] = node.args if node not in chosen else (*node.args, chosen[node])
            if any(each not in made for each in args):
                later.append(node)
            else:
                op = "erf_beside" if node in chosen else node.op
                made[node] = make(op, tuple([made[each] for each in args]), node.dtype, node.const)
        waiting = later
    return [made[node] for node in outputs]


def _scaled(node: Node) -> tuple[Node, float]:
    """A node as another one times a number."""
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


def _square(node: Node) -> tuple[Node, float] | None:
    """A node as the square of another one times a number."""
    node, factor = _scaled(node)
    if node.op != "mul":
        return None
    (first, a), (second, b) = map(_scaled, node.args)
    return (first, factor * a * b) if first is second else None
