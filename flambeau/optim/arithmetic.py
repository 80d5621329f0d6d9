"""The arithmetic of update rules: written once, run in place on arrays, or on tensors where arrays won't do.

A rule is a function `rule(xp, param, grad, *state, ...)` over the few functions below. Names that end in an
underscore write into their first argument. `run` picks what a rule runs on:

- plain float arrays: in place, without an operator's dispatch. Large ones are handed to the rule's compiled kernel;
  where there is none, they are updated piece by piece, so that each piece stays in the cache for the whole rule
- anything else (other dtypes, traced values, a step that is to be differentiated): tensors
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._tensor import functions as fn
from .._tensor.dispatch.interception import run_with_hooks
from ..backends.compiled import enable_kernels, run_update
from ..backends.compiled.thresholds import FLOAT32_UPDATES, OPTIMIZER_UPDATES
from ..engine.saved.saved_tensor_mutation import before_write
from ..modes import active_tracer, special

#: elements of a piece: a rule's six or so arrays of that length fit a core's second cache
PIECE = 16384
#: up to which size a float32 result is rounded once where PyTorch's is
EXACT = 2048
SINGLE = np.dtype(np.float32)
#: [updates of small arrays until these take kernels, too, if there are any]: compiling a rule takes as long as some
#: thousand of them save
_small = [2000]
FLOATS = (SINGLE, np.dtype(np.float64))


def _fused(x: Any, y: Any, factor: Any, out: Any = None) -> Any:
    """x + factor · y, rounded once, as the fused multiply-add of PyTorch's kernels does.

    In float32 the product is exact in float64. That costs time which nobody notices where the arrays are small;
    where they are large, or float64, the product is rounded too.
    """
    if x.size > EXACT or x.dtype != SINGLE:
        return np.add(x, np.multiply(y, factor), out=out)
    product = y.astype(np.float64)
    product *= single(factor) if factor.__class__ is float else factor
    product += x
    if out is None:
        return product.astype(SINGLE)
    out[...] = product
    return out


def single(value: float) -> float:
    """A number as float32 has it; an optimizer asks for the same few again and again."""
    found = _singles.get(value)
    if found is None:
        if len(_singles) > 1000:
            _singles.clear()
        found = _singles[value] = float(np.float32(value))
    return found


_singles: dict[float, float] = {}


def _array_add(x: Any, y: Any, alpha: float = 1) -> Any:
    return x + y if alpha == 1 else _fused(x, y, alpha)


def _array_add_(x: Any, y: Any, alpha: float = 1) -> Any:
    return np.add(x, y, out=x) if alpha == 1 else _fused(x, y, alpha, out=x)


def _array_addcmul(x: Any, a: Any, b: Any, value: float) -> Any:
    return _fused(x, np.multiply(a, value), b)


def _array_addcmul_(x: Any, a: Any, b: Any, value: float) -> Any:
    return _fused(x, np.multiply(a, value), b, out=x)


def _array_addcdiv_(x: Any, a: Any, b: Any, value: float) -> Any:
    quotient = np.multiply(a, value)
    quotient /= b
    x += quotient
    return x


def _array_lerp_(x: Any, y: Any, weight: float) -> Any:
    # from the nearer end, which then is exact
    difference = np.subtract(y, x)
    if weight < 0.5:
        return _fused(x, difference, weight, out=x)
    return _fused(y, difference, single(weight) - 1 if x.dtype == SINGLE else weight - 1, out=x)


def _array_copy_(x: Any, y: Any) -> Any:
    x[...] = y
    return x


arrays = SimpleNamespace(
    add=_array_add, add_=_array_add_, addcmul=_array_addcmul, addcmul_=_array_addcmul_,
    addcdiv_=_array_addcdiv_, lerp_=_array_lerp_,
    copy_=_array_copy_, neg=np.negative, abs=np.abs, sqrt=np.sqrt, mul=np.multiply, sub=np.subtract,
    div=np.divide, sign=np.sign, maximum=np.maximum, where=np.where,
    mul_=lambda x, y: np.multiply(x, y, out=x),
    div_=lambda x, y: np.divide(x, y, out=x),
    sub_=lambda x, y: np.subtract(x, y, out=x),
    sqrt_=lambda x: np.sqrt(x, out=x),
    maximum_=lambda x, y: np.maximum(x, y, out=x),
    clamp_=lambda x, low, high: np.clip(x, low, high, out=x),
)

tensors = SimpleNamespace(
    add=lambda x, y, alpha=1: x.add(y, alpha=alpha),
    add_=lambda x, y, alpha=1: x.add_(y, alpha=alpha),
    addcmul=lambda x, a, b, value: x.addcmul(a, b, value=value),
    addcmul_=lambda x, a, b, value: x.addcmul_(a, b, value=value),
    addcdiv_=lambda x, a, b, value: x.addcdiv_(a, b, value=value),
    lerp_=lambda x, y, weight: x.lerp_(y, weight),
    copy_=lambda x, y: x.copy_(y),
    neg=lambda x: x.neg(), abs=lambda x: x.abs(), sqrt=lambda x: x.sqrt(), sign=lambda x: x.sign(),
    mul=lambda x, y: x * y, sub=lambda x, y: x - y, div=lambda x, y: x / y,
    maximum=lambda x, y: fn.maximum(x, y),
    where=lambda condition, x, y: fn.where(condition, x, y),
    mul_=lambda x, y: x.mul_(y), div_=lambda x, y: x.div_(y), sub_=lambda x, y: x.sub_(y),
    sqrt_=lambda x: x.sqrt_(),
    maximum_=lambda x, y: x.copy_(fn.maximum(x, y)),
    clamp_=lambda x, low, high: x.clamp_(low, high),
)


def run(rule: Callable[..., None], param: Any, grad: Any, state: tuple, *scalars: Any,
        differentiable: bool = False) -> None:
    """Run `rule(xp, param, grad, *state, *scalars)`; it may write to the parameter and the state.

    Args:
        state: tensors in the parameter's shape, or None.
        differentiable: record what the rule does.
    """
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            scalars = tracer.trace_update(rule, param, grad, state, scalars, differentiable)
        run_with_hooks(rule, _run, rule, param, grad, state, scalars, differentiable)
    else:
        _run(rule, param, grad, state, scalars, differentiable)


def _run(rule: Callable[..., None], param: Any, grad: Any, state: tuple, scalars: tuple, differentiable: bool) -> None:
    tensors = (param, grad, *state)
    values = None if differentiable else _arrays_of(tensors)
    if values is None:
        _on_tensors(rule, tensors, scalars)
        return
    arrays, missing, flags = values
    if special[0]:
        for t in (param, *state):
            if t is not None:
                before_write(t)
    least = FLOAT32_UPDATES if arrays[0].dtype == SINGLE else OPTIMIZER_UPDATES
    if arrays[0].size <= least[0] or not _apart(arrays, flags) or not run_update(
            rule, arrays, missing, scalars, flags & _ROW_MAJOR != 0):
        _on_arrays(rule, tensors, flags, scalars)
    for t in tensors:
        if t is not None and t is not grad:
            t._bump_version()


def _on_tensors(rule: Callable[..., None], given: tuple, scalars: tuple) -> None:
    """The rule over tensors' operators."""
    if given[0].is_complex():  # real and imaginary parts are two parameters
        given = tuple([None if t is None else fn.view_as_real(t) for t in given])
    rule(tensors, *given, *scalars)


def _on_arrays(rule: Callable[..., None], given: tuple, flags: int, scalars: tuple) -> None:
    """The rule over NumPy, piece by piece where the arrays are large."""
    values: list[Any] = [None if t is None else t._array for t in given]
    size = values[0].size
    if size <= PIECE or not flags & _ROW_MAJOR:
        rule(arrays, *values, *scalars)
        _small[0] -= 1
        if not _small[0]:
            enable_kernels()
        return
    flat = [None if a is None else a.reshape(-1) for a in values]
    for start in range(0, size, PIECE):
        rule(arrays, *[None if a is None else a[start:start + PIECE] for a in flat], *scalars)


#: NumPy's flags: row by row, one way or the other, memory of its own, and that may be written to
_ROW_MAJOR, _DENSE, _OWN, _WRITEABLE = 1, 3, 4, 0x400
_USUAL = _ROW_MAJOR | _OWN | _WRITEABLE


def _apart(arrays: list[Any], flags: int) -> bool:
    """Whether arrays can be updated by several threads: each dense, writeable, and none in another's memory.

    Args:
        flags: those that all have.
    """
    if flags & _USUAL == _USUAL:
        return len(set(map(id, arrays))) == len(arrays)
    if not flags & _WRITEABLE or not all(a.flags.num & _DENSE for a in arrays):
        return False
    return not any(np.may_share_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def _arrays_of(tensors: tuple) -> tuple[list[Any], int, int] | None:
    """The tensors' arrays, bits of the places that are None, and flags that all arrays have.

    None where they are no plain floats of one dtype and shape.
    """
    found: list[Any] = []
    missing, place, flags = 0, 1, -1
    shape = dtype = None
    for t in tensors:
        if t is None:
            missing += place
        else:
            a = t._array
            if a.__class__ is not np.ndarray:
                return None
            if shape is None:
                shape, dtype = a.shape, a.dtype
                if dtype not in FLOATS:
                    return None
            elif a.shape != shape or a.dtype != dtype:
                return None
            found.append(a)
            flags &= a.flags.num
        place += place
    return found, missing, flags


def advance(step: Any) -> float:
    """Count a step tensor up by one, and return its value."""
    count = getattr(step, "_array", None)
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            return tracer.advance_step(step)
    if type(count) is np.ndarray:
        before_write(step)
        count[()] = count.item() + 1
        step._bump_version()
        return count.item()
    step += 1
    return step.item()


def scale(tensor: Any, factor: float) -> float:
    """Multiply a tensor of one number, which an optimizer remembers, and return its value."""
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            return tracer.scale_state(tensor, factor)
    tensor *= factor
    return tensor.item()


def remembered(tensor: Any) -> float:
    """The value of a tensor of one number."""
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            return tracer.read_state(tensor)
    return tensor.item()


def remember(tensor: Any, value: float) -> None:
    """Let a tensor of one number have another value."""
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.set_state(tensor, value)
            return
    tensor.fill_(value)


def shown(value: Any, like: Any = None) -> Any:
    """A number that operators on tensors can take: where a function is captured it may stand for others too.

    Args:
        like: a tensor of the dtype that it is to have there; else float64.
    """
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            return tracer.scalar_as_tensor(value, None if like is None else like._array.dtype)
    return value


def number(value: Any) -> Any:
    """A hyperparameter that may be given as a tensor of one element."""
    return value.item() if hasattr(value, "item") else value
