"""Backward plans: which inputs, outputs and constants a node saves, and how its derivative formulas read them.

A derivative formula names its arguments. `BackwardPlan` maps the names that the formulas of the inputs requiring
grad request to positions, once per operator and set of such inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from .saved_attributes import constants_of

# How a node stores its saved tensors.
NOTHING, ONE_INPUT, TWO_INPUTS, ONE_OUTPUT, SEVERAL = range(5)


class Rule:
    """A derivative formula: a function, and the names of its parameters."""

    __slots__ = ("function", "names")

    def __init__(self, function: Callable[..., Any], qualname: str) -> None:
        code = function.__code__
        self.function = function
        self.names = code.co_varnames[: code.co_argcount]
        function.__qualname__ = function.__name__ = qualname  # so that tracebacks read mul.vjp[other]


class BackwardPlan:
    """What a node of one operator saves where a given set of inputs requires grad, and how its formulas read it.

    A node holds `saved` (inputs and outputs) and `consts` (shapes, dtypes, parameters). In backward, all
    arguments are one tuple, `(*gs, xp, needs, *saved, *consts)`; each step picks its own from it by position.

    Attributes:
        needs: whether each input requires grad.
        saved_inputs, saved_outputs: positions of the inputs and outputs that are saved.
        consts: (kind, input's position or parameter's name) of the saved constants.
        steps: (input's position, formula, picker of its arguments), one per differentiated input.
        joint: (formula, picker) where one formula returns all gradients, else None.
        saved_list: the position among them of the list that a kernel fills for the backward pass, if there is one.
        layout: how the saved tensors are stored in the node: NOTHING, ONE_INPUT, ...
        run: the function that evaluates the formulas on arrays; the engine sets it when a node is first recorded.
        run_broadcast: the same for broadcast inputs: it sums each gradient to the input's shape.
    """

    __slots__ = ("consts", "joint", "layout", "needs", "op", "run", "run_broadcast", "saved_inputs", "saved_list",
                 "saved_outputs", "saves_tensors", "steps")

    def __init__(self, op: Any, mask: int, inputs: int) -> None:
        self.op = op
        names = op.input_names(inputs)
        self.needs = tuple(bool(mask >> i & 1) for i in range(inputs))
        self.run: Any = None
        self.run_broadcast: Any = None
        joint = op.joint_vjp_rule
        rules: dict[int, Rule | None] = {}
        if joint is not None:
            requested = set(joint.names)
        else:
            rules = {i: op.rule_for(names[i]) for i in range(inputs) if self.needs[i]}
            requested = {name for rule in rules.values() if rule for name in rule.names}
        self.saved_inputs = tuple(i for i, name in enumerate(names) if name in requested)
        if op.variadic and op.inputs[-1] in requested:
            self.saved_inputs += tuple(range(len(op.inputs) - 1, inputs))
        self.saved_outputs = tuple(i for i, name in enumerate(op.output_names()) if name in requested)
        self.consts = _constants(op, names, requested, self.saved_inputs)
        self.saves_tensors = bool(self.saved_inputs or self.saved_outputs)
        self.saved_list = self.consts.index(("param", "saved")) if ("param", "saved") in self.consts else None

        positions = self._positions(names)
        if op.variadic and op.inputs[-1] in requested:
            positions[op.inputs[-1]] = -1  # appended in backward as one list

        def picker(rule: Rule) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
            indexes = [positions[name] for name in rule.names]
            if len(indexes) == 1:
                only = indexes[0]
                return lambda values: (values[only],)
            return itemgetter(*indexes)

        self.joint = None if joint is None else (joint.function, picker(joint))
        self.steps = tuple((i, rule.function, picker(rule)) for i, rule in rules.items() if rule)
        self.layout = self._layout()

    def _positions(self, names: Sequence[str]) -> dict[str, int]:
        """Return the positions, by name, of what a formula may request in `(*gs, xp, needs, *saved, *consts)`."""
        op = self.op
        n = 1 if op.tensor_list else op.n_outputs
        positions = {"gs": 0} if op.tensor_list else {("g" if n == 1 else f"g{k}"): k for k in range(n)}
        if n > 1:
            positions["g"] = 0
        positions["xp"], positions["needs"] = n, n + 1
        outputs = op.output_names()
        keys = [*(names[i] for i in self.saved_inputs), *(outputs[k] for k in self.saved_outputs)]
        for kind, which in self.consts:
            if kind == "param":
                keys.append(which)
            else:
                keys.append(f"{op.inputs[-1] if kind in ('shapes', 'dtypes') else names[which]}_{kind}")
        positions.update((key, position) for position, key in enumerate(keys, n + 2))
        return positions

    def _layout(self) -> int:
        if not self.saves_tensors:
            return NOTHING
        if not self.saved_outputs and len(self.saved_inputs) <= 2:
            return ONE_INPUT if len(self.saved_inputs) == 1 else TWO_INPUTS
        if not self.saved_inputs and len(self.saved_outputs) == 1:
            return ONE_OUTPUT
        return SEVERAL


def _constants(op: Any, names: Sequence[str], requested: set[str], saved_inputs: Sequence[int]) -> tuple[
        tuple[str, Any], ...]:
    """Return (kind, input's position or parameter's name) of the constants of formulas and of `_saved_*` attributes."""
    shown = constants_of(op.saved_attributes or (), names, op.params, saved_inputs)
    constants: list[tuple[str, Any]] = []
    for i, name in enumerate(names):
        constants += [(kind, i) for kind in ("shape", "dtype", "strides") if f"{name}_{kind}" in requested or (
            (kind, i) in shown)]
    if op.variadic:
        first = len(op.inputs) - 1
        constants += [(kind, first) for kind in ("shapes", "dtypes") if f"{op.inputs[-1]}_{kind}" in requested]
    constants += [("param", name) for name in op.params if name in requested or ("param", name) in shown]
    return tuple(constants)
