"""Launches of operators on float16 and bfloat16: the operands widened, computed in float32, the result rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled import compiled_operators
from ...backends.compiled.families.casting import cast_launch
from ...backends.compiled.narrow_kernels import NARROW_KERNELS
from ...backends.compiled.thresholds import threshold_of
from ...errstate import run_in_quiet
from ...ir.decompositions.composites import narrow_programs
from ...ops.declare import ELEMENTWISE, REGISTRY, Op
from ...runtime.filling import Filling, NewArray, with_filling
from ..dispatch.array_kernels import ROW_MAJOR, kernel_of, row_major
from .index_launches import target_loss
from .launch_makers import launch_of
from .without_promotion import conversion_of

ndarray = np.ndarray
asarray = np.asarray
F32 = np.dtype(np.float32)
Launch = Callable[..., Any] | None
#: operators that NumPy computes for few float32, too: relu's kernel keeps -0, which `numpy.maximum` does not
_BY_NUMPY = frozenset(("relu",))


def narrow_launch(op: Op, operands: list[Any], params: dict[str, Any], values: dict[str, Any],
                  conversion: Any) -> Launch:
    """The function of the arrays among an operator's operands that computes its result, or results; None: none.

    Args:
        params: those that the kernel is given.
        values: all parameters.
        conversion: what the fast path does with such operands.
    """
    if op.name == "_nll_loss":  # reads few elements
        launch = _of_target_loss(operands, values, conversion.narrow)
        if launch is not None:
            return launch
    by_kernel = NARROW_KERNELS.get(op.name)
    if by_kernel is not None and run_in_quiet(by_kernel, (operands, params)) is not None:
        return _of_kernel(by_kernel, operands, params)
    programs = narrow_programs(op)
    if programs is not None:
        launch = run_in_quiet(programs.launch, (operands, params))
        if launch is not None:
            return launch
    if op.n_outputs == 1 and all(x.__class__ is not ndarray or (x.flags.c_contiguous and x.size) for x in operands):
        launch = _between_casts(op, operands, values, conversion)
        if launch is not None:
            return launch
    if conversion.numbers is None and any(map(_is_number, operands)):
        return None
    kernel, narrow = kernel_of(op), conversion.narrow
    fixed = [(conversion.numbers[x] if _is_number(x) else x,) if x.__class__ is not ndarray else None for x in operands]
    finish, single = row_major if op.name in ROW_MAJOR else asarray, op.n_outputs == 1

    def rounded(result: Any) -> Any:
        result = asarray(result)
        return dtypes.cast(result, narrow) if result.dtype is F32 else result

    def run(*given: ndarray) -> Any:
        rest = iter(given)
        wide = [dtypes.widen(next(rest)) if each is None else each[0] for each in fixed]
        results = kernel(*wide, **params)
        return rounded(finish(results)) if single else tuple([rounded(row_major(asarray(each))) for each in results])

    if any(x.__class__ is ndarray and x.dtype is not narrow and x.dtype in dtypes.NARROW for x in operands):
        return None
    return run


def _of_kernel(kernel: Callable[..., Any], operands: list[Any], params: dict[str, Any]) -> Launch:
    fixed = [None if x.__class__ is ndarray else (x,) for x in operands]

    def compute(*given: ndarray) -> Any:
        rest = iter(given)
        return kernel([next(rest) if each is None else each[0] for each in fixed], params)

    return compute


def _of_target_loss(operands: list[Any], values: dict[str, Any], narrow: np.dtype) -> Launch:
    loss = target_loss(*operands, **values) if operands[0].dtype == narrow else None
    total = None if loss is None else loss(*operands[:2])
    round_ = None if total is None else cast_launch(total, narrow)
    if loss is None or round_ is None:
        return None

    def run(x: ndarray, target: ndarray) -> Any:
        total = loss(x, target)
        return None if total is None else round_(total)

    run.steps = ((loss, (0, 1)), (round_, (2,))), 1  # type: ignore[attr-defined]
    return run


def _cast_steps(arrays: Sequence[ndarray], needs: Sequence[bool], to: np.dtype
                ) -> tuple[list[tuple[Any, tuple[int, ...]]], list[int], list[ndarray]] | None:
    """The casts of those arrays that need one, as steps; all slots and arrays; None where a cast has no launch.

    Slots are numbered as in `flat_steps`: the arrays first, then the results of the steps.
    """
    steps: list[tuple[Any, tuple[int, ...]]] = []
    slots, converted = [], []
    for number, (x, is_needed) in enumerate(zip(arrays, needs, strict=True)):
        if not is_needed:
            slots.append(number)
            converted.append(x)
            continue
        cast = cast_launch(x, to)
        if cast is None:
            return None
        slots.append(len(arrays) + len(steps))
        steps.append((cast, (number,)))
        converted.append(cast(x))
    return steps, slots, converted


def converting_launch(op: Op, operands: list[ndarray], values: dict[str, Any], narrow: np.dtype) -> Launch:
    """The launch of an elementwise operator on arrays of several dtypes that are converted to one of 16 bits, computed
    in float32 and rounded; None where there is none."""
    casts = _cast_steps(operands, [x.dtype != narrow for x in operands], narrow)
    if casts is None:
        return None
    steps, slots, converted = casts
    conversion: Any = None
    if len(operands) == 1:
        conversion = SimpleNamespace(narrow=narrow, compute=F32, numbers=None)
    else:
        conversion = conversion_of(op, [x.dtype for x in converted])
        if conversion is None or conversion.narrow is None:
            return None
    compute = _between_casts(op, converted, values, conversion)
    if compute is None:
        return None
    return _one_after_the_other([*steps, (compute, tuple(slots))], len(operands))


def masked_fill_of_narrow(a: ndarray, mask: ndarray, value: Any) -> Launch:
    """The launch of `masked_fill` on bits of 16: elements are moved, never converted; None where there is none."""
    if a.dtype not in dtypes.NARROW or value.__class__ not in (int, float) or not a.size or not a.flags.c_contiguous:
        return None
    kernels = compiled_operators(REGISTRY)
    if kernels is None:
        return None
    number = dtypes.cast(asarray(value, np.float32), a.dtype).view(np.int16)
    where = kernels.launch(REGISTRY["where"], [mask, number, a.view(np.int16)], {}, None, [False, True, False])
    filling = getattr(where, "filling", None)
    if where is None or filling is None:
        return None
    sources = tuple([NewArray(each.shape, a.dtype) if each.__class__ is NewArray else 1 - each if each.__class__ is int
                     else each for each in filling.sources])
    dtype = a.dtype
    return with_filling(lambda x, chosen: where(chosen, x.view(np.int16)).view(dtype),
                        Filling(filling.function, sources, filling.owners, filling.result))


def _one_after_the_other(steps: list[tuple[Any, tuple[int, ...]]], count: int) -> Callable[..., Any]:
    """The function of so many arrays that gives the value of the last step; None as soon as one gives None."""
    def run(*arrays: ndarray) -> Any:
        found: list[Any] = list(arrays)
        for launch, slots in steps:
            value = launch(*[found[slot] for slot in slots])
            if value is None:
                return None
            found.append(value)
        return found[-1]

    run.steps = flat_steps(steps, count)  # type: ignore[attr-defined]
    return run


def flat_steps(launches: Sequence[tuple[Any, tuple[int, ...]]],
               count: int, last: int | None = None) -> tuple[list[tuple[Any, tuple[int, ...]]], int]:
    """Steps of one call each, of launches that may have several steps themselves; the number of the result's step.

    Args:
        count: of the arrays that are given.
        last: the slot of the result; None for that of the last launch.
    """
    at = list(range(count))  # of the arguments, then of each launch's result
    steps: list[tuple[Any, tuple[int, ...]]] = []
    for launch, sources in launches:
        given = [at[each] for each in sources]
        inner, result = getattr(launch, "steps", (((launch, tuple(range(len(given)))),), 0))
        first = count + len(steps)
        for step, slots in inner:
            steps.append((step, tuple([
                given[each] if each < len(given) else first + each - len(given) for each in slots])))
        at.append(first + result)
    return steps, at[-1 if last is None else last] - count


def _is_number(operand: Any) -> bool:
    return operand is not None and operand.__class__ is not ndarray


def _float32_launch(op: Op, arrays: list[Any], values: dict[str, Any], constant: list[bool], conversion: Any) -> Launch:
    """The launch of an operator on widened operands, with numbers as 0-d arrays."""
    if op.kind != ELEMENTWISE:
        return None if any(constant) else launch_of(op, arrays, values)
    kernels = None if op.name in _BY_NUMPY else compiled_operators(REGISTRY)
    if kernels is None or any(x is None for x in arrays):
        return None
    if max(x.size for x in arrays) <= threshold_of(op.name)[0]:
        kernels = kernels.rounded
    launch: Launch = kernels.launch(op, arrays, values, conversion.compute if len(arrays) > 1 else None, constant)
    return launch


def _between_casts(op: Op, operands: list[Any], values: dict[str, Any], conversion: Any) -> Launch:
    """The launch of an operator on float32 between casts; None where there is none."""
    constant = list(map(_is_number, operands))
    if conversion.numbers is None and any(constant):
        return None
    given = [x for x in operands if x.__class__ is ndarray]
    casts = _cast_steps(given, [x.dtype is conversion.narrow for x in given], F32)
    if casts is None:
        return None
    steps, slots, wide = casts
    rest = iter(wide)
    arrays = [conversion.numbers[x] if fixed else None if x is None else next(rest)
              for x, fixed in zip(operands, constant, strict=True)]
    compute = _float32_launch(op, arrays, values, constant, conversion)
    result = None if compute is None else run_in_quiet(compute, wide)
    if result.__class__ is not ndarray:
        return None
    steps.append((compute, tuple(slots)))
    if result.dtype is F32:
        round_ = cast_launch(result, conversion.narrow)
        if round_ is None:
            return None
        steps.append((round_, (len(given) + len(steps) - 1,)))

    return _one_after_the_other(steps, len(given))


__all__ = ["converting_launch", "flat_steps", "masked_fill_of_narrow", "narrow_launch"]
