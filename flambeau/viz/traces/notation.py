"""Formatting of expressions as text and as LaTeX.

This module contains typography only (`log` is written ln, `abs` with bars); formulas come from declarations.
"""

from __future__ import annotations

import math
from typing import Any

from ...ops.declare import REGISTRY
from ..drawing.escaping import escaped
from .expressions import (
    ADDED,
    ATOM,
    COMPARED,
    MULTIPLIED,
    NEGATED,
    RAISED,
    Call,
    Expression,
    Item,
    Number,
    Operation,
    Symbol,
    as_expression,
    is_number,
)

SUBSCRIPTS = str.maketrans("-0123456789", "₋₀₁₂₃₄₅₆₇₈₉")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
DOT, BAR = "\u0307", "\u0304"

#: functions written without brackets: (text, LaTeX)
_NAMED = {name: (name, rf"\{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp")} | {
    "log": ("ln", r"\ln"), "log2": ("log₂", r"\log_{2}"), "log10": ("log₁₀", r"\log_{10}"),
    "asin": ("arcsin", r"\arcsin"), "acos": ("arccos", r"\arccos"), "atan": ("arctan", r"\arctan"),
    "sign": ("sign", r"\operatorname{sign}"), "sgn": ("sign", r"\operatorname{sign}")}
#: functions whose name differs from their operator's
_RENAMED = {"sigmoid": ("σ", r"\sigma"), "digamma": ("ψ", r"\psi"), "maximum": ("max", r"\max"),
            "minimum": ("min", r"\min")}
_COMPARISONS = {"<": ("<", "<"), "<=": ("≤", r"\leq"), ">": (">", ">"), ">=": ("≥", r"\geq"), "==": ("=", "="),
                "!=": ("≠", r"\neq")}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_CONSTANTS = ((math.pi, "π", r"\pi"), (math.sqrt(math.pi), "√π", r"\sqrt{\pi}"), (math.sqrt(2), "√2", r"\sqrt{2}"),
              (math.sqrt(2 * math.pi), "√(2π)", r"\sqrt{2\pi}"), (math.sqrt(2 / math.pi), "√(2/π)", r"\sqrt{2/\pi}"),
              (math.log(2), "ln 2", r"\ln 2"), (math.log(10), "ln 10", r"\ln 10"))
_PREFIXES = ("special_", "linalg_", "fft_")


def number(value: Any, inside: bool = False) -> str:
    """A number with three decimals, or with four significant digits if it is very small or large.

    >>> from flambeau.viz.traces.notation import number
    >>> number(2.0), number(11.65207), number(0.000012), number(-0.959, inside=True)
    ('2', '11.652', '1.2e-05', '(-0.959)')
    """
    if isinstance(value, complex):
        text = f"{number(value.real)}{'+' if value.imag >= 0 else '-'}{number(abs(value.imag))}i"
        return f"({text})" if inside else text
    value = float(value)
    if not math.isfinite(value):
        text = "nan" if math.isnan(value) else "∞" if value > 0 else "-∞"
    elif value and not 5e-4 <= abs(value) < 1e6:
        text = f"{value:.4g}"
    else:
        text = f"{value:.3f}".rstrip("0").rstrip(".")
    text = "0" if text == "-0" else text
    return f"({text})" if inside and text.startswith("-") else text


def number_latex(value: Any, inside: bool = False) -> str:
    """`number` in LaTeX: powers of ten written out."""
    text = number(value)
    mantissa, e, exponent = text.partition("e")
    if e:
        text = rf"{mantissa} \times 10^{{{int(exponent)}}}"
    text = text.replace("∞", r"\infty").replace("nan", r"\mathrm{nan}")
    return rf"\left({text}\right)" if inside and (text.startswith("-") or isinstance(value, complex)) else text


def written(x: Any, most: int = 6) -> tuple[str, str]:
    r"""An array's elements as text and as LaTeX; its sizes if there are more than `most`.

    >>> import numpy as np
    >>> from flambeau.viz.traces.notation import written
    >>> written(np.array([1., -0.5])), written(np.zeros((3, 4)))
    (('[1, -0.5]', '\\left[1,\\, -0.5\\right]'), ('[3×4]', '\\left[3 \\times 4\\right]'))
    """
    if not hasattr(x, "shape") or not x.shape:
        value = x.item() if hasattr(x, "item") else x
        return number(value), number_latex(value)
    if x.size > most or not x.size:
        sizes = list(map(str, x.shape))
        return _list("×", sizes, False), _list(r" \times ", sizes, True)
    rows = [written(row, most) for row in x]
    return _list(", ", [row[0] for row in rows], False), _list(r",\, ", [row[1] for row in rows], True)


def _list(separator: str, items: list[str], tex: bool) -> str:
    inner = separator.join(items)
    return rf"\left[{inner}\right]" if tex else f"[{inner}]"


def text(x: Any) -> str:
    """An expression on one line of text."""
    return _written(x, False)[0]


def latex(x: Any) -> str:
    r"""An expression in LaTeX, without dollars.

    >>> from flambeau.viz.traces.expressions import Call, Symbol
    >>> from flambeau.viz.traces.notation import latex
    >>> print(latex(Call("sin", (Symbol("x"),)) / Symbol("y")))
    \frac{\sin x}{y}
    """
    return _written(x, True)[0]


def name_of(operator: str) -> str:
    """An operator's name without its namespace."""
    name = operator.lstrip("_")
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def bracketed(inner: str, tex: bool) -> str:
    """The text in round brackets."""
    return rf"\left({inner}\right)" if tex else f"({inner})"


def _written(x: Any, tex: bool) -> tuple[str, int]:
    """The formatted expression and the precedence of its outermost operation."""
    if isinstance(x, Number):
        return _number(x.value, tex)
    if isinstance(x, Symbol):
        shown = x.latex if tex else x.text
        return shown, NEGATED if shown.startswith("-") else ATOM
    if isinstance(x, Operation):
        return _operation(x, tex)
    if isinstance(x, Call):
        return _call(x, tex)
    if isinstance(x, Item):
        return f"{_at_least(x.operand, ATOM, tex)}[{_plain(x.index, tex)}]", ATOM
    return _plain(x, tex), ATOM


def _number(value: Any, tex: bool) -> tuple[str, int]:
    if isinstance(value, (bool, str)) or not (hasattr(value, "__float__") or isinstance(value, complex)):
        return _plain(value, tex), ATOM
    if isinstance(value, float) and not value.is_integer() and math.isfinite(value):
        for factor in (1.0, 2.0, 0.5):
            for constant, plain, macro in _CONSTANTS:
                for ratio, multiplies in ((value / constant, True), (value * constant, False)):
                    if abs(round(ratio, 12)) == factor:
                        return _constant(math.copysign(factor, value), macro if tex else plain, multiplies, tex)
    shown = number_latex(value) if tex else number(value)
    return shown, NEGATED if shown.startswith("-") else ADDED if isinstance(value, complex) else ATOM


def _constant(factor: float, name: str, multiplies: bool, tex: bool) -> tuple[str, int]:
    """A number that is a known constant or its reciprocal times 1/2, 1 or 2."""
    sign = "-" if factor < 0 else ""
    over, under = ("1", "2") if abs(factor) == 0.5 else (f"{abs(factor):g}", "1")
    loose = " " in name and not tex  # ln 2 in a product needs brackets
    factor_text = f"({name})" if loose else name
    if multiplies:
        top = name if over == "1" else f"{over} {factor_text}" if tex else f"{over}{factor_text}"
        bottom = "" if under == "1" else under
    else:
        top, bottom = over, name if under == "1" else f"{under} {factor_text}" if tex else f"{under}{factor_text}"
    if not bottom:
        return sign + top, NEGATED if sign else MULTIPLIED if loose or over != "1" else ATOM
    if tex:
        return rf"{sign}\frac{{{top}}}{{{bottom}}}", NEGATED if sign else MULTIPLIED
    if " " in bottom or (len(bottom) > 1 and bottom[0] == "2"):
        bottom = f"({bottom})"
    return f"{sign}{top}/{bottom}", NEGATED if sign else MULTIPLIED


def _at_least(x: Any, binding: int, tex: bool) -> str:
    """An expression, bracketed if its precedence is lower than required."""
    shown, own = _written(x, tex)
    return shown if own >= binding else bracketed(shown, tex)


def _operation(x: Operation, tex: bool) -> tuple[str, int]:
    left, right = x.left, x.right
    if x.operator == "neg":
        return "-" + _at_least(left, MULTIPLIED, tex), NEGATED if _written(left, tex)[1] > MULTIPLIED else ADDED
    assert right is not None
    if x.operator in ("+", "-"):
        # a signed term is bracketed unless it is the first
        first = _written(left, tex)[0] if _written(left, tex)[1] >= ADDED else _at_least(left, ADDED, tex)
        shown, own = _written(right, tex)
        if shown.startswith("-") or own < ADDED or (own == ADDED and x.operator == "-"):
            shown = bracketed(shown, tex)
        return f"{first} {x.operator} {shown}", ADDED
    if x.operator == "*":
        sign = r"\times" if tex else "×"
        shown = f"{_factor(left, tex, first=True)} {sign} {_factor(right, tex)}"
        # a product that ends in sin x is bracketed if another factor follows
        return shown, NEGATED if _written(right, tex)[1] == NEGATED else MULTIPLIED
    if x.operator == "/":
        if tex:
            return rf"\frac{{{_written(left, tex)[0]}}}{{{_written(right, tex)[0]}}}", RAISED
        return f"{_factor(left, tex, first=True)} / {_at_least(right, NEGATED + 1, tex)}", MULTIPLIED
    if x.operator == "**":
        base = _at_least(left, ATOM, tex)
        if tex:
            return f"{base}^{{{_written(right, tex)[0]}}}", RAISED
        if is_number(right) and isinstance(right.value, int):
            return base + str(right.value).translate(SUPERSCRIPTS), RAISED
        return f"{base}^{_at_least(right, ATOM, tex)}", RAISED
    sign = _COMPARISONS[x.operator][tex]
    return f"{_at_least(left, ADDED, tex)} {sign} {_at_least(right, ADDED, tex)}", COMPARED


def _factor(x: Expression, tex: bool, first: bool = False) -> str:
    shown, own = _written(x, tex)
    loose = own < MULTIPLIED or shown.startswith("-") or (own == NEGATED and first)
    return bracketed(shown, tex) if loose or (own == MULTIPLIED and not first and "/" in shown) else shown


def _call(x: Call, tex: bool) -> tuple[str, int]:
    name, arguments = x.name, x.arguments
    if name == "where":
        return _cases(as_expression(arguments[0]), arguments[1], arguments[2], tex)
    if name in ("logical_and", "logical_or") and len(arguments) == 2:
        word = {"logical_and": r"\wedge" if tex else "and", "logical_or": r"\vee" if tex else "or"}[name]
        return f"{_joined(arguments[0], name, tex)} {word} {_joined(arguments[1], name, tex)}", COMPARED
    if name == "logical_not":
        word = r"\neg " if tex else "not "
        return word + bracketed(_written(arguments[0], tex)[0], tex), COMPARED
    if name == "abs":
        inner = _written(arguments[0], tex)[0]
        return (rf"\left|{inner}\right|" if tex else f"|{inner}|"), ATOM
    if name in ("sqrt", "rsqrt"):
        root = (rf"\sqrt{{{_written(arguments[0], tex)[0]}}}" if tex else f"√{_at_least(arguments[0], ATOM, tex)}")
        if name == "sqrt":
            return root, RAISED
        return (rf"\frac{{1}}{{{root}}}" if tex else f"1 / {root}"), RAISED if tex else MULTIPLIED
    if name in ("matmul", "mm", "mv", "bmm") and len(arguments) == 2:
        sign = r"\," if tex else "@"
        return f"{_factor(arguments[0], tex, True)} {sign} {_factor(arguments[1], tex)}", MULTIPLIED
    if (name in ("t", "mT", "adjoint") and len(arguments) == 1) or (name == "transpose" and _swaps_last(x)):
        raised = _at_least(arguments[0], ATOM, tex)
        return raised + (r"^{\top}" if tex else "ᵀ"), RAISED
    if name in _NAMED and len(arguments) == 1 and not x.parameters:
        shown, own = _written(arguments[0], tex)
        close = own == ATOM and isinstance(arguments[0], (Number, Symbol)) and not shown.startswith(("(", r"\left("))
        word = _NAMED[name][tex]
        return (f"{word} {shown}", NEGATED) if close else (word + bracketed(shown, tex), ATOM)
    return _function(x, tex), ATOM


def _swaps_last(x: Call) -> bool:
    given = [*x.arguments[1:], *x.parameters.values()]
    plain = sorted(value.value if isinstance(value, Number) else value for value in given)
    return plain == [-2, -1]


def _function(x: Call, tex: bool) -> str:
    plain, macro = _RENAMED.get(x.name, (name_of(x.name), ""))
    arguments, parameters = _declared(x)
    inside = [_written(argument, tex)[0] for argument in arguments if argument is not None]
    for name, value in parameters.items():
        label = rf"\mathrm{{{escaped(name)}}}" if tex else name
        inside.append(f"{label}={_written(value, tex)[0]}")
    separator = r",\, " if tex else ", "
    word = (macro or rf"\operatorname{{{escaped(plain)}}}") if tex else plain
    return word + bracketed(separator.join(inside), tex)


def _declared(x: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments and parameters: positional parameters by their declared names, without defaults."""
    op = REGISTRY.get(x.name)
    if op is None or op.variadic or len(x.arguments) - len(op.inputs) > len(op.params):
        return x.arguments, x.parameters
    given = dict(zip(op.params, x.arguments[len(op.inputs):], strict=False)) | x.parameters
    stated = {name: value for name, value in given.items() if name not in op.defaults or isinstance(value, Expression)
            or not (value is op.defaults[name] or value == op.defaults[name])}
    return x.arguments[:len(op.inputs)], stated


def _joined(x: Any, name: str, tex: bool) -> str:
    shown, own = _written(x, tex)
    return bracketed(shown, tex) if isinstance(x, Call) and x.name != name and own == COMPARED else shown


def _cases(condition: Expression, a: Any, b: Any, tex: bool) -> tuple[str, int]:
    """A case distinction; as Iverson's bracket [c] if one case is 0."""
    a, b = as_expression(a), as_expression(b)
    if is_number(a, 0):
        condition, a, b = _opposite(condition), b, a
    condition_text = _written(condition, tex)[0]
    if is_number(b, 0):
        bracket = f"[{condition_text}]"
        if is_number(a, 1):
            return bracket, ATOM
        sign = r"\times" if tex else "×"
        return f"{_factor(a, tex, True)} {sign} {bracket}", MULTIPLIED
    first, second = _written(a, tex)[0], _written(b, tex)[0]
    if tex:
        return (rf"\begin{{cases}} {first} & {condition_text} \\ {second} & \text{{otherwise}} \end{{cases}}", COMPARED)
    return f"{first} if {condition_text} else {second}", COMPARED


def _opposite(condition: Expression) -> Expression:
    """The negated condition, by De Morgan's laws."""
    if isinstance(condition, Operation) and condition.operator in _OPPOSITE:
        return Operation(_OPPOSITE[condition.operator], condition.left, condition.right)
    if isinstance(condition, Call):
        if condition.name == "logical_not":
            return as_expression(condition.arguments[0])
        other = {"logical_and": "logical_or", "logical_or": "logical_and"}.get(condition.name)
        if other is not None:
            return Call(other, tuple(_opposite(as_expression(part)) for part in condition.arguments))
    return Call("logical_not", (condition,))


def _plain(value: Any, tex: bool) -> str:
    """A value that is not an expression, such as a shape or an index."""
    if isinstance(value, (tuple, list)):
        separator = r",\, " if tex else ", "
        inner = separator.join(_written(item, tex)[0] for item in value)
        if isinstance(value, list):
            return rf"\left[{inner}\right]" if tex else f"[{inner}]"
        return bracketed(inner + ("," if len(value) == 1 else ""), tex)
    if isinstance(value, slice):
        ends = ["" if end is None else str(end) for end in (value.start, value.stop)]
        shown = ":".join([*ends, *([] if value.step in (None, 1) else [str(value.step)])])
        return rf"\mathrm{{{shown}}}" if tex else shown
    if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        return number_latex(value) if tex else number(value)
    if isinstance(value, Expression):
        return _written(value, tex)[0]
    shown = "..." if value is Ellipsis else str(value)
    if len(shown) > 24:
        shown = type(value).__name__
    return rf"\mathrm{{{escaped(shown)}}}" if tex else shown


# an expression prints as it is written here
Expression.__str__ = Expression.__repr__ = text  # type: ignore[method-assign]

__all__ = ["BAR", "DOT", "SUBSCRIPTS", "escaped", "latex", "name_of", "number", "number_latex", "text", "written"]
