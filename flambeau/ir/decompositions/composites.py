"""Composite primitives on large arrays: softmax, norms, losses, attention, each as a program of fused kernels.

`with_programs` wraps NumPy's primitives, `lines_with_programs` operators that have none. A wrapped one hands small
arrays, and what values cannot say, to NumPy; for others it writes its own lines over values (`namespace`) once for
arrays of these shapes and parameters, and runs the program from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import codegen
from ...backends.compiled.thresholds import LEAST as SIZES
from ...backends.errstate import run_quietly
from ...runtime import debug_output
from ..graph.value import Unsupported

if TYPE_CHECKING:
    from ..lowering.tracing import Line
    from ..shapes.polymorphic_programs import PolymorphicProgram

#: primitives by name: from how many elements on their programs are quicker than NumPy
LEAST: dict[str, int] = dict.fromkeys((
    "softmax", "log_softmax", "safe_softmax", "_softmax_backward", "_log_softmax_backward", "layer_norm",
    "_layer_norm_backward", "batch_norm", "_batch_norm_backward", "group_norm", "_group_norm_backward", "attend",
    "_attention_backward", "pick_classes", "logsumexp", "var", "std", "var_mean", "std_mean", "linalg_vector_norm",
    "_mse_loss_backward", "mask_later", "tril", "triu"), 4096)
#: operators whose own lines, run over arrays, take many passes: the same, of them
LINES: dict[str, int] = dict.fromkeys(("mse_loss", "binary_cross_entropy", "soft_margin_loss"), 4096) | dict.fromkeys(
    ("glu", "_glu_backward", "_rms_norm", "binary_cross_entropy_with_logits", "_bce_with_logits_backward",
     "smooth_l1_loss", "huber_loss"), 1024)
#: programs that one primitive remembers
PROGRAMS = 256
#: bytes that a program keeps for what it computes on the way, at most: there may be one for each length of a text
KEPT = 1 << 15
#: programs that are planned, for arguments that are alike, before it is worth to look for their pattern
FEW = 2
_PLAIN = frozenset((int, float, bool, str, tuple))
#: stands for what no program gives
NOTHING: Any = object()
empty = np.empty


class _Made:
    """A program, and how its results are put together.

    Attributes:
        result: places of arrays among the program's, None, or a tuple of such.
        kept: the places of what goes into each list among the arguments.
        in_order: whether the program's leaves are the arrays as they are given.
        short: what runs a program of one piece and one result, which needs no other memory; as `Programs.run`.
    """

    __slots__ = ("in_order", "kept", "program", "result", "short")

    def __init__(self, program: Any, result: Any, kept: list[tuple[int, list[int]]], arrays: int) -> None:
        self.program, self.result, self.kept = program, result, kept
        program.keeps_arena = program.execution_plan.arena <= KEPT
        self.in_order = list(program.inputs) == list(range(arrays))
        self.short = None if kept or result != 0 or len(program.output_specs) != 1 else _short_way(program)


def _short_way(program: Any) -> Callable[[Sequence[Any]], Any] | None:
    start = program.start
    if start is None or program.execution_plan.arena:
        return None
    from ...runtime.thread_pool import pool

    (shape, dtype), = program.output_specs

    def run(arrays: Sequence[Any]) -> Any:
        result, threads = empty(shape, dtype), pool()
        return NOTHING if start(threads, 0, *arrays, result) is threads else result

    return run


def with_programs(primitives: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The primitives, those of `LEAST` with programs for large arrays."""
    return primitives | {name: _wrapped(name, primitives[name], least) for name, least in LEAST.items()}


def lines_with_programs(arrays: Any) -> dict[str, Callable[..., Any]]:
    """The lines of the operators of `LINES` over a namespace of arrays, with programs for large ones."""
    return {name: _wrapped(name, getattr(arrays, name), least, rows=True) for name, least in LINES.items()}


def _wrapped(name: str, plain: Callable[..., Any], least: int, rows: bool = False) -> Callable[..., Any]:
    """A primitive with programs for arrays of so many elements; only for those that lie row by row if `rows`."""
    programs = Programs(f"operator {name}", lambda xp: getattr(xp, name))

    def run(*args: Any, **params: Any) -> Any:
        x = args[0]
        if (x.__class__ is np.ndarray and x.size >= least and x.size > SIZES[0] and x.dtype.kind == "f"
                and codegen.available() and not (rows and any(map(_lies_otherwise, args)))):
            result = programs.run(args, params)
            if result is not NOTHING:
                return laid_out_as(result, x) if name == "attend" else result
        return plain(*args, **params)

    run.__name__ = run.__qualname__ = name
    return run


def _lies_otherwise(x: Any) -> bool:
    return x.__class__ is np.ndarray and not x.flags.c_contiguous


class Programs:
    """The programs of one line, by the shapes and parameters that it was given.

    Args:
        title: what reports call them.
        line: the function for a namespace.
    """

    __slots__ = ("forms", "found", "line", "title")

    def __init__(self, title: str, line: Line) -> None:
        self.title, self.line = title, line
        self.found: dict[Any, _Made | None] = {}
        # by what arguments have in common: how many were planned for; or the form of all of them, None if there is none
        self.forms: dict[Any, int | PolymorphicProgram | None] = {}

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """What the line gives, by its program; `NOTHING` where there is none."""
        given = [*args, *params.values()]
        key, arrays = _key(given, params)
        if key is None:
            return NOTHING
        made = self.found.get(key)
        if made is None:
            if key in self.found:
                return NOTHING
            if len(self.found) >= PROGRAMS:
                self.found.clear()
            made = self.found[key] = self._made(args, params, arrays)
            if made is None:
                return NOTHING
        if not made.in_order:
            arrays = [arrays[i] for i in made.program.inputs]
        if made.short is not None:
            return run_quietly(made.short, arrays)
        found = run_quietly(made.program.run, arrays)
        if found is None:
            return NOTHING
        for i, places in made.kept:
            given[i][:] = [found[k] for k in places]
        return _put_together(made.result, found)

    def _made(self, args: Sequence[Any], params: dict[str, Any], arrays: Sequence[np.ndarray]) -> _Made | None:
        """The program for these arguments: planned, or after the pattern of those that were, once there are some."""
        if debug_output.is_enabled("ir", "kernels", "llvm", "asm"):  # which are shown of plans
            return _program(self.title, self.line, args, params)
        from ..shapes.symbolic_shapes import shape_signature

        rest = _rest([*args, *params.values()])
        for fixed in (frozenset[int](), frozenset(arrays[0].shape[-1:] if arrays else ())):
            like = shape_signature(arrays, fixed)
            if like is None:
                break
            key = (like.key, rest, *params)
            form = self.forms.get(key, 0)
            if isinstance(form, int):
                if form < FEW:
                    if len(self.forms) >= PROGRAMS:
                        self.forms.clear()
                    self.forms[key] = form + 1
                    break
                from ..shapes.polymorphic_programs import build_polymorphic_program

                form = self.forms[key] = build_polymorphic_program(self.title, self.line, args, params, like)
            if form is not None:
                return _Made(form.program(like.extents), form.result, form.kept, form.arrays)
        return _program(self.title, self.line, args, params)


def _rest(given: Sequence[Any]) -> tuple[Any, ...]:
    """What decides which program fits, besides arrays."""
    return tuple([len(x) if x.__class__ is list else np.ndarray if x.__class__ is np.ndarray else (x.__class__, x)
                  for x in given])


def _key(given: Sequence[Any], params: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """What decides which program fits, and the arrays; no key where none can."""
    parts: list[Any] = [*params]
    arrays: list[np.ndarray] = []
    for value in given:
        kind = value.__class__
        if kind is np.ndarray:
            arrays.append(value)
            parts += (value.shape, value.strides, value.dtype)
        elif kind is list:
            for x in value:
                if x.__class__ is not np.ndarray:
                    return None, arrays
                arrays.append(x)
                parts += (x.shape, x.strides, x.dtype)
            parts.append(len(value))
        elif value is None or kind in _PLAIN:
            parts += (kind, value)
        elif hasattr(value, "numpy"):  # a dtype
            parts.append(value)
        else:
            return None, arrays
    return tuple(parts), arrays


def _program(title: str, line: Line, args: Sequence[Any], params: dict[str, Any]) -> _Made | None:
    from ...runtime import compilation
    from ..debug_output import report
    from ..lowering.tracing import traced
    from ..schedule.program import Program

    try:
        graph, targets, result, kept, count = traced(title, line, args, params)
        since = compilation.library_count()
        program = Program(graph, targets, graph.conditions)
        report(program, title, since)
        return _Made(program, result, kept, count)
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
