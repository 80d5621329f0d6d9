"""How a node of the graph reads as a formula, and its partial derivatives with it.

Only the wording lives here, for the operators that a lesson meets; the numbers of a
trace come from the graph. An operator that is not listed reads as name(operands).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

# operator: (formula, partial derivative by each operand); {0} and {1} are the operands, {v} the result
_WORDING: dict[str, tuple[str, tuple[str, ...]]] = {
    "Add": ("{0} + {1}", ("1", "1")),
    "Sub": ("{0} - {1}", ("1", "-1")),
    "Rsub": ("{1} - {0}", ("-1", "1")),
    "Mul": ("{0} × {1}", ("{1}", "{0}")),
    "Div": ("{0} / {1}", ("1/{1}", "(-{v}/{1})")),
    "Pow": ("{0}^{1}", ("{1} × {0}^({1} - 1)", "{v} × ln {0}")),
    "Neg": ("-{0}", ("-1",)),
    "Reciprocal": ("1/{0}", ("(-{v}²)",)),
    "Abs": ("|{0}|", ("sign {0}",)),
    "Sqrt": ("√{0}", ("1/(2{v})",)),
    "Exp": ("exp {0}", ("{v}",)),
    "Log": ("ln {0}", ("1/{0}",)),
    "Sin": ("sin {0}", ("cos {0}",)),
    "Cos": ("cos {0}", ("(-sin {0})",)),
    "Tan": ("tan {0}", ("(1 + {v}²)",)),
    "Tanh": ("tanh {0}", ("(1 - {v}²)",)),
    "Sigmoid": ("σ({0})", ("{v}(1 - {v})",)),
}


def number(value: float, inside: bool = False) -> str:
    """A number to three decimals, or in four digits where three decimals would not show it.

    >>> from flambeau.viz.formulas import number
    >>> number(2.0), number(11.65207), number(0.000012), number(-0.959, inside=True)
    ('2', '11.652', '1.2e-05', '(-0.959)')
    """
    if value and not 5e-4 <= abs(value) < 1e6:
        text = f"{value:.4g}"
    else:
        text = f"{value:.3f}".rstrip("0").rstrip(".")
    text = "0" if text == "-0" else text
    return f"({text})" if inside and text.startswith("-") else text


def operator_name(node: Any) -> str:
    """`MulBackward0` as `Mul`."""
    return re.sub(r"Backward\d*$", "", type(node).__name__)


def formula(step: Any, operands: Sequence[str | None], numbers: Sequence[float | None]) -> str:
    """A step as a formula of its operands; a constant (None) is filled in from the step's value."""
    name = operator_name(step.node)
    filled = _filled(step, operands, numbers)
    template = _template(step)
    if template is None or None in filled:
        return f"{name.lower()}({', '.join(text for text in filled if text is not None)})"
    return template[0].format(*filled)


def partials(step: Any, operands: Sequence[str | None], result: str) -> list[str | None]:
    """The partial derivatives of a step by its operands as formulas, None where there is no wording."""
    template = _template(step)
    filled = _filled(step, operands, [None] * len(operands))
    if template is None:
        return [None] * len(operands)
    texts: list[str | None] = []
    for place in range(len(operands)):
        wording = template[1][place]
        known = all(filled[int(other)] is not None for other in re.findall(r"\{(\d)\}", wording))
        texts.append(wording.format(*filled, v=result) if known else None)
    return texts


def _template(step: Any) -> tuple[str, tuple[str, ...]] | None:
    template = _WORDING.get(operator_name(step.node))
    if _is_scalar_to_the_tensor(step):
        return "{1}^{0}", ("{v} × ln {1}", "0")
    if getattr(step.node, "_saved_alpha", 1) != 1:  # add and sub scale their second operand by it
        return None
    return template


def _is_scalar_to_the_tensor(step: Any) -> bool:
    """Whether a step is 2^v: the number is no input of the node, so the exponent comes first."""
    return type(step.node).__name__ == "PowBackward2"


def _filled(step: Any, operands: Sequence[str | None], numbers: Sequence[float | None]) -> list[str | None]:
    """The operands' texts, with the constant of a binary operator where the step determines it."""
    template = _template(step)
    filled = list(operands)
    if template is not None:
        filled += [None] * (len(template[1]) - len(filled))
    if len(filled) != 2 or filled.count(None) != 1:
        return filled
    missing = filled.index(None)
    constant = _constant(step, missing, next((n for n in numbers if n is not None), None))
    filled[missing] = None if constant is None else number(constant, True)
    return filled


def _constant(step: Any, missing: int, other: float | None) -> float | None:
    name = operator_name(step.node)
    value: float = step.value
    slopes: tuple[float | None, ...] = step.slopes
    slope = next((slope for slope in slopes if slope is not None), None)
    if name == "Pow" and (missing == 0 or _is_scalar_to_the_tensor(step)):
        return math.exp(slope / value) if slope is not None else None  # the slope of c^v is c^v ln c
    if name == "Pow":
        exponent = step.node._saved_exponent
        return float(exponent.item() if hasattr(exponent, "item") else exponent)
    if name == "Mul":
        return slope
    if name == "Div" and missing == 1 and slope:
        return 1 / slope
    if other is None:
        return None
    if name == "Add":
        return value - other
    if name == "Sub":
        return other - value if missing == 1 else value + other
    if name == "Rsub":
        return value + other
    if name == "Div":
        return value * other
    return None
