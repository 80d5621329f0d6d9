"""Composite primitives on large arrays: softmax, norms, losses, attention, each as a program of fused kernels.

`with_programs` wraps NumPy's primitives, `add_programs` operators that have none. A wrapped one hands small arrays, and
what values cannot say, to NumPy; for others it writes its own lines over values (`namespace`) once for arrays of these
shapes and parameters, and runs the program from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import jit
from ..backends.compiled.sizes import LEAST as SIZES
from ..dtypes import NARROW
from .value import Graph, Unsupported, Value

#: primitives by name: from how many elements on their programs are quicker than NumPy
LEAST: dict[str, int] = dict.fromkeys((
    "softmax", "log_softmax", "safe_softmax", "_softmax_slope", "_log_softmax_slope", "layer_norm",
    "_layer_norm_backward", "batch_norm", "_batch_norm_backward", "group_norm", "_group_norm_backward", "attend",
    "_attention_backward", "pick_classes", "logsumexp", "var", "std", "var_mean", "std_mean", "linalg_vector_norm",
    "_mse_loss_backward", "mask_later"), 4096)
#: operators without a primitive, whose own lines NumPy runs in many passes
DECLARED = dict.fromkeys(("glu", "_glu_backward", "binary_cross_entropy_with_logits", "_logits_by_input",
                          "smooth_l1_loss", "huber_loss"), 1024)
#: programs that one primitive remembers
PROGRAMS = 256


class _Made:
    """A program, and how its results are put together.

    Attributes:
        result: places of arrays among the program's, None, or a tuple of such.
        kept: the places of what goes into each list among the arguments.
    """

    __slots__ = ("kept", "program", "result")

    def __init__(self, program: Any, result: Any, kept: list[tuple[int, list[int]]]) -> None:
        self.program, self.result, self.kept = program, result, kept


def with_programs(primitives: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The primitives, those of `LEAST` with programs for large arrays."""
    return primitives | {name: _wrapped(name, primitives[name], least) for name, least in LEAST.items()}


def add_programs(arrays: Any) -> None:
    """Give the namespace of arrays programs for the operators of `DECLARED`."""
    for name, least in DECLARED.items():
        setattr(arrays, name, _wrapped(name, getattr(arrays, name), least, dense=True))


def _wrapped(name: str, plain: Callable[..., Any], least: int, dense: bool = False) -> Callable[..., Any]:
    """A primitive with programs.

    Args:
        dense: only for arrays in row-major order; NumPy's results of others lie in memory as they do.
    """
    programs: dict[Any, _Made | None] = {}

    def run(*args: Any, **params: Any) -> Any:
        x = args[0]
        if (x.__class__ is np.ndarray and x.size >= least and x.size > SIZES[0] and x.dtype.kind == "f"
                and jit.available()):
            args = tuple([np.asarray(v) if isinstance(v, np.generic) else v for v in args])
            given = [*args, *params.values()]
            key, arrays = _key(given, params)
            if key is not None and not (dense and [a for a in arrays if not a.flags.c_contiguous]):
                made = programs.get(key)
                if made is None and key not in programs:
                    if len(programs) >= PROGRAMS:
                        programs.clear()
                    made = programs[key] = _program(name, args, params)
                if made is not None:
                    found = made.program.run([arrays[i] for i in made.program.leaves])
                    if found is not None:
                        for i, places in made.kept:
                            given[i][:] = [found[k] for k in places]
                        result = _put_together(made.result, found)
                        return laid_out_as(result, x) if name == "attend" else result
        return plain(*args, **params)

    run.__name__ = run.__qualname__ = name
    return run


def _key(given: Sequence[Any], params: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """What decides which program fits, and the arrays; no key where none can."""
    parts: list[Any] = [*params]
    arrays: list[np.ndarray] = []
    for value in given:
        if value.__class__ is np.ndarray:
            if value.dtype in NARROW:
                return None, arrays
            arrays.append(value)
            parts.append((value.shape, value.strides, value.dtype))
        elif value.__class__ is list:
            for x in value:
                if x.__class__ is not np.ndarray:
                    return None, arrays
                arrays.append(x)
                parts.append((x.shape, x.strides, x.dtype))
            parts.append(len(value))
        elif value is None or value.__class__ in (int, float, bool, str, tuple):
            parts.append((value.__class__, value))
        elif hasattr(value, "numpy"):  # a dtype
            parts.append(value)
        else:
            return None, arrays
    return tuple(parts), arrays


def _program(name: str, args: Sequence[Any], params: dict[str, Any]) -> _Made | None:
    from ..jit import compiled
    from .leaves import leaf_of, shown
    from .namespace import namespace_of
    from .planning import Target
    from .program import Program
    from .reporting import report

    graph = Graph()
    count = 0

    def value_of(x: Any) -> Any:
        nonlocal count
        if x.__class__ is np.ndarray:
            count += 1
            return shown(graph, leaf_of(graph, x, count - 1), x)
        return [value_of(each) for each in x] if x.__class__ is list else x

    try:
        given = [value_of(x) for x in (*args, *params.values())]
        lists = [(i, list(x)) for i, x in enumerate(given) if x.__class__ is list]
        run = given[:len(args)], dict(zip(params, given[len(args):], strict=True))
        found = getattr(namespace_of(graph), name)(*run[0], **run[1])
        targets: list[Value] = []

        def place(value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, (tuple, list)):
                return tuple(place(each) for each in value)
            if not isinstance(value, Value):
                raise Unsupported(f"{name} gives a {type(value).__name__}")
            targets.append(value if value.op != "view" else graph.copy(value))
            return len(targets) - 1

        result = place(found)
        kept = [(i, [place(v) for v in given[i]]) for i, before in lists if given[i] != before]
        since = compiled.count()
        program = Program(graph, [Target(v) for v in targets], graph.conditions)
        report(program, f"operator {name}", since)
        return _Made(program, result, kept)
    except Unsupported:
        return None


def laid_out_as(result: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The result in memory as another array lies, if that has its shape."""
    if like.flags.c_contiguous or like.shape != result.shape:
        return result
    out = np.empty_like(like)
    out[...] = result
    return out


def _put_together(result: Any, arrays: Sequence[np.ndarray]) -> Any:
    if result.__class__ is tuple:
        return tuple([_put_together(each, arrays) for each in result])
    return None if result is None else arrays[result]
