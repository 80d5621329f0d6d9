"""Inlined rules: derivative rules on arrays, specialised by the arguments that they use.

They handle nodes with one output and one or two inputs whose gradients need no post-processing; all others are handled
by `OpNode.vjp`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from numpy import empty, ndarray

from ...backends.compiled.thresholds import LARGE_SEEN, MIN_ELEMENTS
from ...dtypes import cast
from ...errstate import run_in_quiet
from ...ir.decompositions.gradient_rules import with_programs
from ...ops.backward_plan import BackwardPlan
from ...ops.declare import Op
from ..nodes.hook_calls import materialize
from ..nodes.op_node import FREED
from ..tensor_interface import layer

Run = Callable[[Any, Any], Any]
Rule = Callable[..., Any]


def plan_of(op: Op, mask: int, inputs: int) -> BackwardPlan:
    """An operator's backward plan for the inputs in `mask`, with its specialised rule."""
    plan = op.backward_plan(mask, inputs)
    if plan.run is None:
        with_programs(plan, layer.arrays)
        plan.run = _specialize(op, plan) or _of_rules(op, plan)
        plan.run_broadcast = full_rule if plan.run is full_rule else _unbroadcasting(plan.run)
    return plan


def _unbroadcasting(run: Run) -> Run:
    """`run`, with each gradient summed over its input's broadcast dimensions."""

    def unbroadcast(node: Any, g: Any) -> Any:
        sum_to_size = layer.arrays.sum_to_size
        grads = run(node, g)
        if len(grads) == 2:  # written out: half the time of the loop
            x, y = grads
            first, second = node.fix[0]
            if x is not None and x.shape != first:
                x = sum_to_size(x, first)
            if y is not None and y.shape != second:
                y = sum_to_size(y, second)
            return [x, y]
        return [x if x is None or x.shape == shape else sum_to_size(x, shape)
                for x, shape in zip(grads, node.fix[0], strict=True)]

    return unbroadcast


def full_rule(node: Any, g: Any) -> Any:
    """The rule of a node with one output whose gradients are processed afterwards."""
    return node.vjp(g, False)


def first_output_rule(node: Any, gs: Any) -> Any:
    """The rule of a node with several outputs of which only the first one can get a gradient, without post-processing.

    Args:
        gs: a cotangent of each output, None for those that have none.
    """
    if gs[0] is None:
        return node.vjp(materialize(node, gs, False), False)
    plan = node.plan
    values = (*gs, layer.arrays, plan.needs, *(node.unpack(False) if plan.saves_tensors else ()), *node.consts)
    grads: list[Any] = [None] * node.n_edges
    large = LARGE_SEEN[0] and gs[0].size > MIN_ELEMENTS[0]
    for i, rule, pick in plan.steps:
        grads[i] = run_in_quiet(rule, pick(values)) if large else rule(*pick(values))
    return grads


def several_outputs_rule(node: Any, gs: Any) -> Any:
    """The rule of any other node with several outputs.

    Args:
        gs: as those of `first_output_rule`.
    """
    return node.vjp(materialize(node, gs, False), False)


def _specialize(op: Op, plan: BackwardPlan) -> Run | None:
    """The specialised rule that fits the arguments of an operator's rules, or None."""
    if op.joint_vjp_rule is not None or op.variadic or op.n_outputs > 1 or len(op.inputs) > 2:
        return None
    inputs = op.inputs[: len(plan.needs)]
    saved = tuple(inputs[i] for i in plan.saved_inputs) + tuple("out" for _ in plan.saved_outputs)
    rules = [(i, op.vjp_rules[inputs[i]]) for i, _, _ in plan.steps]
    arguments = [rule.names if rule else () for _, rule in rules]
    functions = [function for _, function, _ in plan.steps]
    if plan.consts:
        if len(inputs) == 1 and not saved and arguments == [("xp", "g", inputs[0] + "_shape")]:
            return expand if _matches(functions[0], _expand_pattern) else _of_shape(functions[0])
        if len(inputs) == 1 and len(plan.steps) == 1:
            return _of_plan(plan, arguments[0])
        return None
    if len(inputs) == 1 and len(rules) == 1:
        if arguments[0] == ("g",):
            rule = functions[0]
            return pass_on if _matches(rule, _identity_pattern) else lambda node, g: (rule(g),)
        if len(saved) == 1 and arguments[0] == ("g", *saved):
            return _of_output(functions[0]) if plan.saved_outputs else _of_input(functions[0])
        if len(saved) == 1 and arguments[0] == ("xp", "g", *saved):
            rule = partial(functions[0], layer.arrays)
            return _of_output(rule) if plan.saved_outputs else _of_input(rule)
    if len(inputs) == 2 and not plan.saved_outputs and len(rules) == 2:
        first, second = functions
        if arguments == [("g",), ("g",)] and _matches(first, _identity_pattern) and _matches(second, _identity_pattern):
            return pass_to_both
        if arguments == [("g",), ("g",)]:
            return lambda node, g: (first(g), second(g))
        if saved == inputs and arguments == [("g", inputs[1]), ("g", inputs[0])] and (
                _matches(first, _product_pattern) and _matches(second, _product_pattern)):
            return multiply_rule
    if len(inputs) == 2 and not plan.saved_outputs and len(rules) == 1:
        rule, at = functions[0], rules[0][0]
        if arguments[0] == ("g",):
            if at == 0 and _matches(rule, _identity_pattern):
                return pass_to_first
            return (lambda node, g: (rule(g), None)) if at == 0 else (lambda node, g: (None, rule(g)))
        if len(saved) == 1 and arguments[0] == ("g", *saved):
            return _one_of_two(rule, at)
    return None


def pass_on(node: Any, g: Any) -> Any:
    """The rule of a copy: the cotangent."""
    return (g,)


def cast_rule(node: Any, g: Any) -> Any:
    """The rule of a real copy in another dtype: the cotangent in the input's dtype."""
    return (cast(g, node.fix[1][0]),) if g.__class__ is ndarray else node.vjp(g, False)


def pass_to_first(node: Any, g: Any) -> Any:
    """The rule of a sum or difference whose other operand needs no gradient."""
    return g, None


def pass_to_both(node: Any, g: Any) -> Any:
    """The rule of an addition: both gradients are the cotangent. `array_backward` inlines it."""
    return g, g


def multiply_rule(node: Any, g: Any) -> Any:
    """The rule of a product: the cotangent times the other input. `array_backward` inlines it."""
    x, y = node.saved0, node.saved1
    if x is not FREED:
        c, d, versions = x._counter, y._counter, node.versions
        if versions is None:
            unchanged = (c is None or not c[0]) and (d is None or not d[0])
        else:
            unchanged = (c is None or c[0] == versions[0]) and (d is None or d[0] == versions[1])
        if unchanged:
            a, b = x._array, y._array
            return (g * b, g * a) if type(g) is ndarray else (g * b[()], g * a[()])
    a, b = node.unpack(False)
    return g * b, g * a


def expand(node: Any, g: Any) -> Any:
    """The rule of a sum over all elements: the expanded cotangent, a view."""
    return (layer.arrays.broadcast_to(g, node.consts[0]),)


def expand_contiguous(node: Any, g: Any) -> Any:
    """`expand`, materialised if small: later rules are faster on it, and a leaf may take it over as its gradient."""
    shape = node.consts[0]
    if prod(shape) > 4096 or type(g) is ndarray:
        return expand(node, g)
    expanded = empty(shape, g.dtype)
    expanded.fill(g)
    return (expanded,)


def _expand_pattern(xp: Any, g: Any, input_shape: Any) -> Any:
    return xp.broadcast_to(g, input_shape)


def _identity_pattern(g: Any) -> Any:
    return g


def _product_pattern(g: Any, other: Any) -> Any:
    return g * other


def _matches(rule: Rule, pattern: Rule) -> bool:
    """Whether a rule has the bytecode of the pattern."""
    code, expected = rule.__code__, pattern.__code__
    return code.co_code == expected.co_code and code.co_names == expected.co_names


def _value(node: Any, g: Any) -> Any:
    """The array of the only saved input, or the Python scalar.

    Where the cotangent is a NumPy scalar, a 0-d array is converted to one: NumPy multiplies two scalars six times
    faster than a scalar and an array.
    """
    x = node.saved0
    try:
        counter, versions = x._counter, node.versions
        if counter is None or counter[0] == (versions[0] if versions is not None else 0):
            return x._array if type(g) is ndarray else x._array[()]
    except AttributeError:
        if x is not FREED:
            return x
    return node.unpack(False)[0]


def _of_input(rule: Rule, with_consts: bool = False) -> Run:
    """The rule of the cotangent and the saved input, and of the constants after them."""
    def run(node: Any, g: Any) -> Any:
        x = node.saved0
        try:  # `_value`, written out for a tensor that was not written to: a call is a fifth of a rule on scalars
            counter, versions = x._counter, node.versions
            if counter is None or counter[0] == (versions[0] if versions is not None else 0):
                x = x._array if type(g) is ndarray else x._array[()]
            else:
                x = _value(node, g)
        except AttributeError:
            x = _value(node, g)
        return (rule(g, x, *node.consts) if with_consts else rule(g, x),)

    return run


def _of_shape(rule: Rule) -> Run:
    xp = layer.arrays
    return lambda node, g: (rule(xp, g, node.consts[0]),)


def _of_plan(plan: BackwardPlan, names: tuple[str, ...]) -> Run:
    """The specialised rule of an operator with one input; its rule may use any arguments.

    Args:
        names: the rule's arguments.
    """
    xp, needs = layer.arrays, plan.needs
    _, rule, pick = plan.steps[0]
    if not plan.saves_tensors:
        return lambda node, g: (rule(*pick((g, xp, needs, *node.consts))),)
    if len(plan.saved_outputs) == 1 and not plan.saved_inputs:
        def run(node: Any, g: Any) -> Any:
            counter = node.saved1
            if counter is None or counter[0]:  # freed, or written to since
                return (rule(*pick((g, xp, needs, *node.unpack(False), *node.consts))),)
            return (rule(*pick((g, xp, needs, node.saved0, *node.consts))),)

        return run
    if len(plan.saved_inputs) == 1 and not plan.saved_outputs:
        if names == ("xp", "g", plan.op.inputs[0], *(name for _, name in plan.consts)):
            return _of_input(partial(rule, xp), with_consts=True)
        return lambda node, g: (rule(*pick((g, xp, needs, _value(node, g), *node.consts))),)
    return lambda node, g: (rule(*pick((g, xp, needs, *node.unpack(False), *node.consts))),)


def _of_rules(op: Op, plan: BackwardPlan) -> Run:
    """`OpNode.vjp` of a node with one output whose gradients need no post-processing."""
    if op.n_outputs > 1 or op.tensor_list:
        return full_rule
    xp, needs, steps, joint, variadic = layer.arrays, plan.needs, plan.steps, plan.joint, op.variadic
    count = len(needs)

    def run(node: Any, g: Any) -> Any:
        values = (g, xp, needs, *(node.unpack(False) if plan.saves_tensors else ()), *node.consts)
        grads: list[Any]
        if joint is None:
            grads = [None] * count
            for i, rule, pick in steps:
                grads[i] = rule(*pick(values))
            return grads
        if variadic:
            values = node._gather_variadic(values)
        rule, pick = joint
        grads = list(rule(*pick(values)))
        grads += [None] * (count - len(grads))
        return [x if need else None for x, need in zip(grads, needs, strict=True)]

    return run


def _of_output(rule: Rule) -> Run:
    def run(node: Any, g: Any) -> Any:
        counter = node.saved1
        if counter is None or counter[0]:  # freed, or written to since
            return (rule(g, *node.unpack(False)),)
        return (rule(g, node.saved0),)

    return run


def _one_of_two(rule: Rule, at: int) -> Run:
    if at == 0:
        return lambda node, g: (rule(g, _value(node, g)), None)
    return lambda node, g: (None, rule(g, _value(node, g)))
