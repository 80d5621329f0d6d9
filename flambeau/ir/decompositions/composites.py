"""Composite primitives on large arrays: softmax, norms, losses and attention as programs of fused kernels.

`primitives_with_programs` wraps NumPy's primitives, `declarations_with_programs` the declarations of operators that
have no primitive. A wrapped function leaves small arrays, and what the graph cannot express, to NumPy. For others it
traces its declaration over IR values once per shapes and parameters, and runs the cached program from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import codegen
from ...backends.compiled import SMALL_CALLS_BEFORE_KERNELS, enable_kernels, next_small_call
from ...backends.compiled.thresholds import MIN_ELEMENTS as SIZES
from ...backends.compiled.thresholds import SMALL_KERNELS
from ...backends.special_functions import ROUNDED
from ...dtypes import bfloat16, float16, float32, float64
from ...dtypes import dtype as dtype_type
from ...errstate import run_quietly
from ...ops.declare import REGISTRY, Op
from ...runtime import debug_output
from ..unsupported import Unsupported
from .attention_blocks import by_blocks

if TYPE_CHECKING:
    from ..lowering.tracing import Declaration
    from ..shapes.polymorphic_programs import PolymorphicProgram

#: primitives, and the number of elements from which their programs are faster than NumPy
MIN_ELEMENTS: dict[str, int] = dict.fromkeys((
    "softmax", "log_softmax", "safe_softmax", "_softmax_backward", "_log_softmax_backward", "layer_norm",
    "_layer_norm_backward", "batch_norm", "_batch_norm_backward", "group_norm", "_group_norm_backward",
    "scaled_dot_product_attention", "_attention_backward", "nll_loss", "logsumexp", "var", "std", "var_mean",
    "std_mean", "linalg_vector_norm", "_mse_loss_backward", "causal_mask", "tril", "triu"), 4096)
#: the same for operators whose declarations take many passes over arrays
DECOMPOSED_OPERATORS: dict[str, int] = dict.fromkeys((
    "mse_loss", "binary_cross_entropy", "soft_margin_loss"), 4096) | dict.fromkeys((
    "glu", "_glu_backward", "_rms_norm", "binary_cross_entropy_with_logits", "_bce_with_logits_backward",
     "smooth_l1_loss", "huber_loss"), 1024)
#: primitives that are computed in float64 where float32 arrays are small, and the most elements of these: NumPy and
#: programs then have the same bits
_IN_DOUBLE = frozenset((
    "softmax", "log_softmax", "logsumexp", "var", "std", "layer_norm", "group_norm", "batch_norm",
    "scaled_dot_product_attention"))
#: the same where results are reduced
_REDUCED_IN_DOUBLE = frozenset((
    "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"))
#: those of them with one array and one result, and those that may convert their input
_OF_ONE_ARRAY = frozenset(("softmax", "log_softmax", "logsumexp", "var", "std"))
_CONVERTING = frozenset(("softmax", "log_softmax"))
#: the same for declarations whose transcendental functions alone are computed in float64
_ROUNDED = frozenset(("glu",))
IN_DOUBLE = 1024
#: those that only move elements, and so are given float16 and bfloat16
_MOVING = frozenset(("tril", "triu"))
#: operators that are one composite with their parameters by position
COMPOSITES = {"_layer_norm": "layer_norm", "_group_norm": "group_norm", "_batch_norm": "batch_norm",
              "_flash_attention": "scaled_dot_product_attention"}
#: by composite: (arguments, parameters) -> `cache_of`
_caches: dict[str, Callable[..., Any]] = {}
#: the position of batch norm's argument `training`; with running averages it is computed in float32
_TRAINING = 5
#: the most cached programs of one primitive
MAX_PROGRAMS = 256
#: the largest arena, in bytes, that a program retains between runs: there may be a program for every sequence length
MAX_RETAINED_ARENA = 1 << 15
#: programs planned for one shape signature before a polymorphic program is built
PLANS_BEFORE_POLYMORPHIC = 2
_KEY_TYPES = frozenset((int, float, bool, str, tuple))
#: returned where there is no program
NO_RESULT: Any = object()
empty = np.empty
F32, F64 = float32.numpy, float64.numpy


class _CachedProgram:
    """A program, and the structure of its results.

    Attributes:
        result: output indices in the structure of the result: an index, None, or a tuple of these.
        list_outputs: pairs of a list argument's position and the output indices of its new elements.
        in_order: whether the program's inputs are the array arguments in order.
        fast_path: runs a program of one segment, one output and no arena; None for other programs.
    """

    __slots__ = ("fast_path", "in_order", "list_outputs", "program", "result")

    def __init__(self, program: Any, result: Any, list_outputs: list[tuple[int, list[int]]], arrays: int) -> None:
        self.program, self.result, self.list_outputs = program, result, list_outputs
        program.keeps_arena = program.execution_plan.arena <= MAX_RETAINED_ARENA
        self.in_order = list(program.inputs) == list(range(arrays))
        self.fast_path = None if list_outputs or result != 0 or len(program.output_specs) != 1 else _fast_path(program)


def _fast_path(program: Any) -> Callable[[Sequence[Any]], Any] | None:
    start = program.start
    if start is None or program.execution_plan.arena:
        return None
    from ...runtime.thread_pool import pool

    (shape, dtype), = program.output_specs

    def run(arrays: Sequence[Any]) -> Any:
        result, threads = empty(shape, dtype), pool()
        return NO_RESULT if start(threads, 0, *arrays, result) is threads else result

    return run


def primitives_with_programs(primitive: Callable[[str], Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The primitives of `MIN_ELEMENTS`, with programs for large arrays.

    Args:
        primitive: the primitive of a name; it is asked in the first call that needs it.
    """
    return {name: _wrapped(name, primitive, least) for name, least in MIN_ELEMENTS.items()}


def declarations_with_programs(arrays: Any) -> dict[str, Callable[..., Any]]:
    """The declarations of `DECOMPOSED_OPERATORS` over a namespace of arrays, with programs for large arrays."""
    return {name: _wrapped(name, arrays.declaration, least, rows=True)
            for name, least in DECOMPOSED_OPERATORS.items()}


def _wrapped(name: str, lookup: Callable[[str], Callable[..., Any]], least: int, rows: bool = False) -> (
        Callable[..., Any]):
    """A primitive with programs for arrays of at least `least` elements; for C-contiguous ones only if `rows`."""
    fallback: Callable[..., Any] | None = None
    of_matrix: Callable[..., Any] | None = None
    is_attention, is_batch_norm = name == "scaled_dot_product_attention", name == "batch_norm"
    in_double, reduced, converting = name in _IN_DOUBLE, name in _REDUCED_IN_DOUBLE, name in _CONVERTING
    has_small, of_one_array = in_double or reduced, name in _OF_ONE_ARRAY
    programs = ProgramCache(f"operator {name}", lambda xp: getattr(xp, name))
    moving = name in _MOVING
    rounded = name in _ROUNDED
    launches = ProgramCache(f"operator {name} in double", (
        lambda xp: partial(REGISTRY[name].forward, _Rounded(xp))) if rounded else (
        lambda xp: lambda *args, **params: _in_double(getattr(xp, name), partial(_cast, xp, F32, float64), partial(
            _cast, xp, F64, float32), args, params)))

    def run(*args: Any, **params: Any) -> Any:
        nonlocal fallback, of_matrix
        if fallback is None:
            fallback = lookup(name)
            if of_one_array or is_batch_norm:
                from ...kernels.composites_in_double import FUNCTIONS

                of_matrix = FUNCTIONS.get(name)
        x = args[0]
        if x.__class__ is not np.ndarray:
            return fallback(*args, **params)
        if has_small and x.size <= IN_DOUBLE and x.dtype is F32 and not (converting and _converts(args, params)) and (
                not is_attention or _are_small(args)) and (not is_batch_norm or args[_TRAINING]) and (
                in_double or params.get("reduction") != "none"):
            if not SMALL_KERNELS[0] and next_small_call() == SMALL_CALLS_BEFORE_KERNELS:
                enable_kernels()
            if is_batch_norm:
                result = of_matrix(*args)  # type: ignore[misc]
                return _in_double(fallback, _widened, _narrowed, args, params) if result is None else result
            if of_one_array:
                result = None if of_matrix is None else of_matrix(*args, **params)
                return _narrowed(fallback(x.astype(F64), *args[1:], **params)) if result is None else result
            return _in_double(fallback, _widened, _narrowed, args, params)
        if (x.size >= least and x.size > SIZES[0] and x.dtype.kind == "f" and codegen.available()
                and not (rows and any(map(_is_noncontiguous, args)))):
            result = programs.run(args, params)
            if result is not NO_RESULT:
                return match_layout(result, x) if is_attention else result
        if moving:
            result = narrow_programs(REGISTRY[name])(args, params)
            if result is not None:
                return result
        return fallback(*args, **params)

    def cache(args: Sequence[Any], params: dict[str, Any]) -> tuple[ProgramCache, int, int] | None:
        if not codegen.available() or args[0].dtype is not F32:
            return None
        if args[0].size <= IN_DOUBLE and args[0].size < least:
            if not (in_double or rounded or (reduced and params.get("reduction") != "none")) or (
                    converting and _converts(args, params)) or (is_attention and not _are_small(args)) or (
                    is_batch_norm and not args[_TRAINING]):
                return None
            return launches, 0, min(IN_DOUBLE, least - 1)
        return (programs, least, 1 << 62) if args[0].size >= least else None

    def launch(args: Sequence[Any], params: dict[str, Any], filling: bool = False) -> Callable[..., Any] | None:
        found = cache(args, params)
        return None if found is None else found[0].launch(args, params, filling)

    _caches[name] = cache
    run.launch = launch  # type: ignore[attr-defined]
    run.__name__ = run.__qualname__ = name
    return by_blocks(run) if is_attention else run


def cache_of(name: str, args: Sequence[Any], params: dict[str, Any]) -> tuple[ProgramCache, int, int] | None:
    """The programs of a composite that launches of these arguments run, and the least and most elements of the first
    array of arguments for which they are these; None: there is no launch.
    """
    find = _caches.get(name)
    return None if find is None else find(args, params)


def _in_double(function: Callable[..., Any], widened: Callable[[Any], Any], narrowed: Callable[[Any], Any],
               args: Sequence[Any], params: dict[str, Any]) -> Any:
    """A call with the float32 arrays among its arguments in float64, and its results, also those in lists, rounded."""
    result = narrowed(function(*map(widened, args), **params))
    for values in (*args, *params.values()):
        if values.__class__ is list:
            values[:] = [narrowed(each) for each in values]
    return result


def _widened(x: Any) -> Any:
    return x.astype(F64) if x.__class__ is np.ndarray and x.dtype is F32 else x


def _narrowed(x: Any) -> Any:
    return x.astype(F32) if x.__class__ is np.ndarray else np.array(x, F32)


def _cast(xp: Any, source: np.dtype, dtype: Any, x: Any) -> Any:
    return xp.to(x, dtype) if getattr(x, "dtype", None) == source else x


def _are_small(args: Sequence[Any]) -> bool:
    """Whether all arrays, keys and masks, too, are of float32 and few elements."""
    return all(x.__class__ is not np.ndarray or (x.size <= IN_DOUBLE and x.dtype is F32) for x in args)


def _converts(args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether a softmax converts its input to another dtype."""
    dtype = params["dtype"] if "dtype" in params else args[2] if len(args) > 2 else None
    return dtype is not None


class _Rounded:
    """A namespace whose transcendental functions of float32 are computed in float64 and rounded."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def __getattr__(self, name: str) -> Any:
        xp = self._xp
        function = getattr(xp, name)
        if name not in ROUNDED:
            return function
        return lambda x: xp.to(function(xp.to(x, float64)), float32)


def _is_noncontiguous(x: Any) -> bool:
    return x.__class__ is np.ndarray and not x.flags.c_contiguous


class ProgramCache:
    """The programs of one declaration, by shapes, strides, dtypes and parameters.

    Args:
        title: its name in debug output.
        declaration: a function from a namespace to the declaration.
        widens: whether the declaration itself converts float16 and bfloat16.
    """

    __slots__ = ("declaration", "polymorphic", "programs", "title", "widens")

    def __init__(self, title: str, declaration: Declaration, widens: bool = False) -> None:
        self.title, self.declaration, self.widens = title, declaration, widens
        self.programs: dict[Any, _CachedProgram | None] = {}
        # by shape signature: the number of programs planned so far, or the polymorphic program (None if there is none)
        self.polymorphic: dict[Any, int | PolymorphicProgram | None] = {}

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run the declaration by its program; `NO_RESULT` where there is none."""
        values = [*args, *params.values()]
        key, arrays = _key(values, params)
        if key is None:
            return NO_RESULT
        cached = self.programs.get(key)
        if cached is None:
            if key in self.programs:
                return NO_RESULT
            if len(self.programs) >= MAX_PROGRAMS:
                self.programs.clear()
            cached = self.programs[key] = self._build(args, params, arrays)
            if cached is None:
                return NO_RESULT
        if not cached.in_order:
            arrays = [arrays[i] for i in cached.program.inputs]
        if cached.fast_path is not None:
            return run_quietly(cached.fast_path, arrays)
        outputs = run_quietly(cached.program.run, arrays)
        if outputs is None:
            return NO_RESULT
        for i, indices in cached.list_outputs:
            values[i][:] = [outputs[k] for k in indices]
        return _restructure(cached.result, outputs)

    def launch(self, args: Sequence[Any], params: dict[str, Any], filling: bool = False) -> Callable[..., Any] | None:
        """The function of the arrays among these arguments that runs their program in one call; None: there is none.

        Args:
            filling: whether it gives (result, what the list among the arguments gets...).
        """
        key = _key([*args, *params.values()], params)[0]
        if self.run(args, params) is NO_RESULT:
            return None
        cached = self.programs[key]
        if cached is None or not cached.in_order:
            return None
        program = cached.program
        start: Any = program.start
        if start is None or program.single.shares:
            return None
        from ...runtime.filling import Filling, NewArray, with_filling
        from ...runtime.launch import allocate_aligned
        from ...runtime.thread_pool import lasting_pool, pool

        first = cached.result if cached.result.__class__ is int else cached.result[0]
        if first != 0 or (filling and len(cached.list_outputs) != 1):
            return None
        # the program holds the GIL while it runs, so that its arena is used by one call at a time
        memory, arena = allocate_aligned(program.execution_plan.arena)
        owners = memory, program  # of what `start` reads and writes
        (shape, dtype), *others = program.output_specs
        if filling:
            (_, stored), = cached.list_outputs

            def fill(*arrays: np.ndarray, _owners: Any = owners) -> Any:
                outputs, threads = [empty(shape, dtype), *[empty(*each) for each in others]], pool()
                if start(threads, arena, *arrays, *outputs) is threads:
                    return None
                return outputs[0], *[outputs[k] for k in stored]

            return fill
        address, owner = lasting_pool()
        call = Filling(start, ([address], [arena], *range(len(program.inputs)), NewArray(shape, dtype), *[
            NewArray(*each) for each in others]), (owners, owner))
        if len(program.inputs) == 1 and not others and not program.execution_plan.steps_before_conditions:
            return with_filling(lambda a, _owners=owners: start(pool(), arena, a, empty(shape, dtype)), call)

        def launch(*arrays: np.ndarray, _owners: Any = owners) -> Any:
            result, threads = empty(shape, dtype), pool()
            if start(threads, arena, *arrays, result, *[empty(*each) for each in others]) is threads:
                return None  # a condition does not hold
            return result

        return with_filling(launch, call)

    def _build(self, args: Sequence[Any], params: dict[str, Any],
               arrays: Sequence[np.ndarray]) -> _CachedProgram | None:
        """Build the program of these arguments, by a polymorphic program if the signature has one."""
        if debug_output.is_enabled("ir", "kernels", "llvm", "asm"):  # polymorphic programs have no schedule to show
            return _plan_program(self.title, self.declaration, args, params, self.widens)
        from ..shapes.symbolic_shapes import shape_signature

        static = _static_key([*args, *params.values()])
        for fixed in (frozenset[int](), frozenset(arrays[0].shape[-1:] if arrays else ())):
            signature = shape_signature(arrays, fixed)
            if signature is None:
                break
            key = (signature.key, static, *params)
            symbolic = self.polymorphic.get(key, 0)
            if isinstance(symbolic, int):
                if symbolic < PLANS_BEFORE_POLYMORPHIC:
                    if len(self.polymorphic) >= MAX_PROGRAMS:
                        self.polymorphic.clear()
                    self.polymorphic[key] = symbolic + 1
                    break
                from ..shapes.polymorphic_programs import build_polymorphic_program

                symbolic = self.polymorphic[key] = build_polymorphic_program(self.title, self.declaration, args, params,
                                                                             signature, self.widens)
            if symbolic is not None:
                return _CachedProgram(symbolic.program(signature.extents), symbolic.result, symbolic.list_outputs,
                                      symbolic.arrays)
        return _plan_program(self.title, self.declaration, args, params, self.widens)


def _static_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """The part of a signature's key that is not about arrays' shapes."""
    return tuple([len(x) if x.__class__ is list else np.ndarray if x.__class__ is np.ndarray else (x.__class__, x)
                  for x in values])


def _key(values: Sequence[Any], params: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """The key of a call's program, and the array arguments; key None where an argument cannot be part of a key."""
    parts: list[Any] = [*params]
    arrays: list[np.ndarray] = []
    for argument in values:
        cls = argument.__class__
        if cls is np.ndarray:
            arrays.append(argument)
            parts += (argument.shape, argument.strides, argument.dtype)
        elif cls is list:
            for x in argument:
                if x.__class__ is not np.ndarray:
                    return None, arrays
                arrays.append(x)
                parts += (x.shape, x.strides, x.dtype)
            parts.append(len(argument))
        elif argument is None or cls in _KEY_TYPES:
            parts += (cls, argument)
        elif hasattr(argument, "numpy"):  # a dtype
            parts.append(argument)
        else:
            return None, arrays
    return tuple(parts), arrays


def _plan_program(title: str, declaration: Declaration, args: Sequence[Any],
                  params: dict[str, Any], widens: bool) -> _CachedProgram | None:
    from ...runtime import compilation
    from ..debug_output import report
    from ..lowering.tracing import trace_declaration
    from ..schedule.program import Program

    try:
        graph, targets, result, list_outputs, count = trace_declaration(
            title, declaration, args, params, widens)
        since = compilation.library_count()
        program = Program(graph, targets, graph.conditions)
        report(program, title, since)
        return _CachedProgram(program, result, list_outputs, count)
    except Unsupported:
        return None


def between_casts(title: str, declaration: Declaration, narrow: dtype_type) -> ProgramCache:
    """The programs of a declaration on operands of 16 bits, which are widened, and whose float32 results are rounded.

    Args:
        narrow: float16 or bfloat16.
    """

    def with_casts(xp: Any) -> Callable[..., Any]:
        function = declaration(xp)
        widened, rounded = partial(_cast, xp, narrow.numpy, float32), partial(_cast, xp, F32, narrow)

        def call(*args: Any, **params: Any) -> Any:
            result = function(*map(widened, args), **params)
            return tuple(map(rounded, result)) if isinstance(result, (tuple, list)) else rounded(result)

        return call

    return ProgramCache(f"{title} of {narrow.name}", with_casts, widens=True)


#: the names of operators whose programs read 16 bits, and the number of elements from which they are faster
_NARROW: dict[str, int] = dict.fromkeys((
    "softmax", "log_softmax", "_safe_softmax", "_layer_norm", "_rms_norm", "_batch_norm", "_group_norm", "logsumexp",
    "var", "std", "var_mean", "std_mean", "linalg_vector_norm", "norm", "sum", "mean", "amax", "amin", "max", "min",
    "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "soft_margin_loss", "glu", "tril", "triu"), 4096)


@cache
def narrow_programs(op: Op) -> Any:
    """The function of an operator's operands, those of 16 bits not widened, and parameters that runs its program.

    It returns None where there is no program; `launch` takes the same, and returns the function of the arrays among the
    operands that runs the program in one call, or None. None: the operator has none.
    """
    least = _NARROW.get(op.name)
    if least is None:
        return None
    caches = {each.numpy: between_casts(f"operator {op.name}", (
        lambda xp: partial(op.forward, xp) if op.takes_xp else op.forward), each) for each in (float16, bfloat16)}

    def programs_of(values: Sequence[Any]) -> ProgramCache | None:
        x = values[0]
        if x.__class__ is not np.ndarray or x.size < least or x.size <= SIZES[0] or x.dtype not in caches or (
                any(map(_is_noncontiguous, values)) or not codegen.available()):
            return None
        return caches[x.dtype]

    def run(values: Sequence[Any], params: dict[str, Any]) -> Any:
        programs = programs_of(values)
        result = NO_RESULT if programs is None else programs.run(values, params)
        return None if result is NO_RESULT else result

    def launch(values: Sequence[Any], params: dict[str, Any]) -> Callable[..., Any] | None:
        programs = programs_of(values)
        return None if programs is None else programs.launch(values, params)

    run.launch = launch  # type: ignore[attr-defined]
    return run


def match_layout(result: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The result in the memory layout of another array, if the shapes are equal."""
    if like.flags.c_contiguous or like.shape != result.shape:
        return result
    out = np.empty_like(like)
    out[...] = result
    return out


def _restructure(result: Any, arrays: Sequence[np.ndarray]) -> Any:
    if result.__class__ is tuple:
        return tuple([_restructure(each, arrays) for each in result])
    return None if result is None else arrays[result]
