"""Reference evaluation of graphs by NumPy, floats in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flambeau import dtypes
from flambeau.ir.graph.extern_kernels import FallbackKernel
from flambeau.ir.graph.value import Graph, Value

_FUNCTIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "rsqrt": lambda x: 1 / np.sqrt(x), "recip": lambda x: 1 / x, "minimum": np.minimum, "maximum": np.maximum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "select": np.where, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "not": np.invert, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "pow": np.power,
}
_REDUCTIONS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any,
               "all": np.all}


def widen(array: np.ndarray) -> np.ndarray:
    """Floats as float64, everything else as it is."""
    return dtypes.widen(array).astype(np.float64) if array.dtype.kind in "fV" else array


def evaluate(graph: Graph, inputs: Sequence[np.ndarray]) -> dict[Value, np.ndarray]:
    """What every value of a graph is; inputs by their numbers."""
    found: dict[Value, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for value in graph.values:
            made = _one(graph, value, [found[a] for a in value.args], inputs)
            if value.op == "extern":
                for part, array in zip(graph.extern_outputs[value], value.attrs.run(*(found[a] for a in value.args)),
                                       strict=True):
                    found[part] = widen(np.asarray(array))
            elif value.op != "getitem":
                found[value] = made
            if value.op == "extern":
                found[value] = np.zeros(())
    return found


def _one(graph: Graph, value: Value, args: list[np.ndarray], inputs: Sequence[np.ndarray]) -> np.ndarray:
    op = value.op
    if op == "input":
        return widen(inputs[value.attrs])
    if op == "constant":
        return widen(graph.array(value))
    if op == "view":
        return elements(args[0], value.shape, *value.attrs)
    if op == "copy":
        return args[0].copy()
    if op == "cast":
        return args[0].astype(value.dtype) if value.dtype.kind in "biu" else args[0].astype(np.float64)
    if op == "reduce":
        return _reduced(value, args[0])
    if op == "matmul":
        return args[0] @ args[1]
    if op == "assemble":
        return _assembled(value, args)
    if op == "extern" and not isinstance(value.attrs, FallbackKernel):
        raise ValueError(f"{value.text} is not for NumPy")
    if op in ("extern", "getitem"):
        return np.zeros(())
    return np.asarray(np.broadcast_to(_FUNCTIONS[op](*args), value.shape))


def elements(base: np.ndarray, shape: Sequence[int], strides: Sequence[int], offset: int) -> np.ndarray:
    """Elements of an array by strides and an offset: one by one, for NumPy's strides are not to be relied on here."""
    places = np.full(tuple(shape), offset)
    for d, (n, s) in enumerate(zip(shape, strides, strict=True)):
        places = places + np.arange(n).reshape([-1 if k == d else 1 for k in range(len(shape))]) * s
    return base.reshape(-1)[places]


def _reduced(value: Value, array: np.ndarray) -> np.ndarray:
    name, axes, shape = value.attrs
    if name.startswith("arg"):
        kept = [d for d in range(array.ndim) if d not in axes]
        rows = array.transpose(*kept, *axes).reshape(*shape, -1)
        return np.asarray(getattr(np, name)(rows, -1))
    return np.asarray(_REDUCTIONS[name](array, tuple(axes))).reshape(shape)


def _assembled(value: Value, args: list[np.ndarray]) -> np.ndarray:
    has_background, *places = value.attrs
    made = np.array(args[0]) if has_background else np.zeros(value.shape, args[0].dtype)
    flat = made.reshape(-1)
    for piece, (strides, offset) in zip(args[has_background:], places, strict=True):
        at = elements(np.arange(value.size), piece.shape, strides, offset)
        flat[at] = piece
    return flat.reshape(value.shape)
