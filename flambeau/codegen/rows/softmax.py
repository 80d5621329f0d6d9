"""Common subexpressions of softmax: exp(x - max x - log s) is exp(x - max x) / s, where s is the sum of those.

The gradient of log-softmax uses the exponential of its result; the sum has computed it already, up to a factor. No
exponential of x - max x is above 1, and s is at least 1: nothing overflows, and there are fewer roundings.
"""

from __future__ import annotations

from ..scalar.scalar_ir import Node, log, recip, to_opmath, unary, variable
from .schedule import Rows, below, rebuilt, term_dtype


def share_exponentials(rows: Rows, inputs: int) -> Rows:
    """The row operation with softmax's exponentials computed from the summands of its sum.

    Args:
        rows: the row operation.
        inputs: the number of inputs.

    >>> from flambeau.codegen.scalar.scalar_ir import exp, variable
    >>> x, most, total = (variable(i, "float32") for i in range(3))
    >>> stages = (("max", x),), (("sum", exp(x - most)),)
    >>> share_exponentials(Rows(stages, (exp(x - most - log(total)),)), 1).elementwise
    (mul(exp(sub(x0, x1)), recip(x2)),)
    """
    terms = [pair for stage in rows.stages for pair in stage]
    results = [variable(inputs + i, term_dtype(op, x)) for i, (op, x) in enumerate(terms)]
    most = {(to_opmath(x), result) for (op, x), result in zip(terms, results, strict=True) if op == "max"}
    known: dict[Node, Node] = {}
    for (op, power), total in zip(terms, results, strict=True):
        if op != "sum" or power.op != "exp" or power.args[0].op != "sub" or power.args[0].args not in most:
            continue
        x, largest = power.args[0].args
        for same in (power.args[0] - log(total), x - (largest + log(total)), x - (log(total) + largest)):
            known[unary("exp", same)] = power * recip(total)

    if not known:
        return rows

    def substituted(root: Node) -> Node:
        for node in below(root, known.__contains__):
            if node not in known:
                known[node] = rebuilt(node, known)
        return known[root]

    stages = tuple(tuple((op, substituted(x)) for op, x in stage) for stage in rows.stages)
    def all_substituted(each: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(map(substituted, each))

    return Rows(stages, all_substituted(rows.elementwise), all_substituted(rows.per_row),
                all_substituted(rows.column_sums), all_substituted(rows.totals), all_substituted(rows.row_totals),
                rows.column_ops)
