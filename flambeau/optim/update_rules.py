"""Update rules of optimizers: the two namespaces that they are written over, and their application in place.

A rule is a function `rule(xp, param, grad, *state, ...)` over the functions of `arrays` or `tensors` below. Names that
end in an underscore write into their first argument. `apply_update` chooses the namespace:

- float32 and float64 arrays: in place, without operator dispatch. Large arrays are updated by the rule's compiled
  kernel; without one, block by block, so that a block stays in the L2 cache for the entire rule.
- everything else (other dtypes, traced values, `differentiable=True`): tensor operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._tensor import functions as fn
from .._tensor.dispatch.handlers import handlers
from .._tensor.dispatch.interception import run_with_hooks
from .._tensor.overriding.dispatch import handles, is_on_accelerator
from .._tensor.shape.lazy_clones import make_writable
from ..backends.compiled import enable_kernels, run_update, update_kernel
from ..backends.compiled.thresholds import FLOAT32_UPDATES, OPTIMIZER_UPDATES
from ..engine.saved.saved_tensor_mutation import before_write
from ..modes import active_tracer, device_memory, dispatch_in_use, lazy_storages, special

#: elements per block: a rule's about six arrays of this length fit in the L2 cache of one core
BLOCK = 16384
#: up to this size, float32 multiply-adds are rounded once, as in PyTorch
FMA_MAX_SIZE = 2048
FLOAT32 = np.dtype(np.float32)
#: [number of small NumPy updates before `enable_kernels`]: compiling a rule costs what some thousand updates save
_array_updates_left = [2000]
FLOATS = (FLOAT32, np.dtype(np.float64))


def _multiply_add(x: Any, y: Any, factor: Any, out: Any = None) -> Any:
    """x + factor · y, rounded once, as by the fused multiply-add of PyTorch's kernels.

    The product of two float32 values is exact in float64. Conversion costs time, so this holds only up to
    `FMA_MAX_SIZE` elements; in larger arrays and in float64 the product is rounded, too.
    """
    if x.size > FMA_MAX_SIZE or x.dtype != FLOAT32:
        return np.add(x, np.multiply(y, factor), out=out)
    product = y.astype(np.float64)
    product *= round_to_float32(factor) if factor.__class__ is float else factor
    product += x
    if out is None:
        return product.astype(FLOAT32)
    out[...] = product
    return out


def round_to_float32(value: float) -> float:
    """A scalar rounded to float32; cached, because an optimizer uses the same few at every step."""
    rounded = _rounded.get(value)
    if rounded is None:
        if len(_rounded) > 1000:
            _rounded.clear()
        rounded = _rounded[value] = float(np.float32(value))
    return rounded


_rounded: dict[float, float] = {}


def _array_add(x: Any, y: Any, alpha: float = 1) -> Any:
    return x + y if alpha == 1 else _multiply_add(x, y, alpha)


def _array_add_(x: Any, y: Any, alpha: float = 1) -> Any:
    return np.add(x, y, out=x) if alpha == 1 else _multiply_add(x, y, alpha, out=x)


def _array_addcmul(x: Any, a: Any, b: Any, value: float) -> Any:
    return _multiply_add(x, np.multiply(a, value), b)


def _array_addcmul_(x: Any, a: Any, b: Any, value: float) -> Any:
    return _multiply_add(x, np.multiply(a, value), b, out=x)


def _array_addcdiv_(x: Any, a: Any, b: Any, value: float) -> Any:
    quotient = np.multiply(a, value)
    quotient /= b
    x += quotient
    return x


def _array_lerp_(x: Any, y: Any, weight: float) -> Any:
    # start from the nearer end, so that weights 0 and 1 give exact results
    difference = np.subtract(y, x)
    if weight < 0.5:
        return _multiply_add(x, difference, weight, out=x)
    return _multiply_add(y, difference, round_to_float32(weight) - 1 if x.dtype == FLOAT32 else weight - 1, out=x)


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
    maximum_=lambda x, y: np.maximum(x, y, out=x),
    clamp_=lambda x, low, high: np.clip(x, low, high, out=x),
)


def _kept(x: Any) -> Any:
    """A copy of a tensor with a gradient, for operators that save it before the rule writes to it."""
    return x.clone() if getattr(x, "requires_grad", False) else x


tensors = SimpleNamespace(
    add=lambda x, y, alpha=1: x.add(y, alpha=alpha),
    add_=lambda x, y, alpha=1: x.add_(y, alpha=alpha),
    addcmul=lambda x, a, b, value: x.addcmul(a, b, value=value),
    addcmul_=lambda x, a, b, value: x.addcmul_(a, b, value=value),
    addcdiv_=lambda x, a, b, value: x.addcdiv_(a, b, value=value),
    lerp_=lambda x, y, weight: x.lerp_(y, weight),
    copy_=lambda x, y: x.copy_(y),
    neg=lambda x: x.neg(), abs=lambda x: x.abs(), sqrt=lambda x: x.sqrt(), sign=lambda x: x.sign(),
    mul=lambda x, y: x * _kept(y), sub=lambda x, y: x - y, div=lambda x, y: x / y,
    maximum=lambda x, y: fn.maximum(x, y),
    where=lambda condition, x, y: fn.where(condition, x, y),
    mul_=lambda x, y: x.mul_(y),
    div_=lambda x, y: x / y if x.requires_grad else x.div_(y),  # a root saves its result
    maximum_=lambda x, y: x.copy_(fn.maximum(_kept(x), y)),
    clamp_=lambda x, low, high: x.copy_(_kept(x).clamp(low, high)) if x.requires_grad else x.clamp_(low, high),
)


def apply_update(rule: Callable[..., None], param: Any, grad: Any, state: tuple, *scalars: Any,
                 differentiable: bool = False) -> None:
    """Apply `rule(xp, param, grad, *state, *scalars)`, which may write to the parameter and the state.

    Args:
        state: tensors of the parameter's shape, or None.
        differentiable: record the rule's operators in the autograd graph.
    """
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            scalars = tracer.trace_update(rule, param, grad, state, scalars, differentiable)
        run_with_hooks(rule, _apply_update, rule, param, grad, state, scalars, differentiable)
    else:
        _apply_update(rule, param, grad, state, scalars, differentiable)


def apply_updates(rule: Callable[..., None], operands: Sequence[tuple], scalars: tuple, differentiable: bool) -> None:
    """`apply_update` of several parameters with the same numbers: the kernel is looked up once.

    Args:
        operands: of each parameter (param, grad, *state), where the same state is None.
        scalars: the rule's numbers.
        differentiable: record the rule's operators in the autograd graph.
    """
    kernel: Any = None
    values: tuple[Any, ...] = ()
    dtype = FLOAT32
    plain = not (special[0] or differentiable or device_memory.count)
    for tensors in operands:
        if kernel is not None and (arrays := _owned_arrays(tensors, dtype)) is not None:
            kernel(arrays, values, True)
            _count_writes(tensors)
            continue
        param, grad, *state = tensors
        apply_update(rule, param, grad, tuple(state), *scalars, differentiable=differentiable)
        if plain and kernel is None and (found := _plain_arrays(tensors)) is not None and (
                dtype := found[0][0].dtype) == FLOAT32 and not FLOAT32_UPDATES[0]:
            kernel, values = update_kernel(rule, found[0], found[1], scalars) or (None, ())


def _owned_arrays(tensors: tuple, dtype: np.dtype) -> list[Any] | None:
    """The arrays of the tensors, if each is a C-contiguous NumPy array of one shape in memory of its own."""
    arrays = [t._array for t in tensors if t is not None]
    shape, flags = arrays[0].shape, _OWNED_C_CONTIGUOUS
    for a in arrays:
        if a.__class__ is not np.ndarray or a.dtype is not dtype or a.shape != shape:
            return None
        flags &= a.flags.num
    return arrays if flags == _OWNED_C_CONTIGUOUS and len(set(map(id, arrays))) == len(arrays) else None


def _count_writes(tensors: tuple) -> None:
    grad = tensors[1]
    for t in tensors:
        if t is not None and t is not grad:
            t._bump_version()


def _apply_update(rule: Callable[..., None], param: Any, grad: Any, state: tuple, scalars: tuple,
                  differentiable: bool) -> None:
    tensors = (param, grad, *state)
    if device_memory.count and is_on_accelerator(param):
        if differentiable or grad.is_sparse or not handlers.update_on_device(
                rule, tensors, scalars, lambda operands: _apply_update(
                    rule, operands[0], operands[1], operands[2:], scalars, False)):
            _apply_on_tensors(rule, tensors, scalars)
        return
    if special[0] and dispatch_in_use[0] and handles(type(param)):
        parts = getattr(type(param), "_update_operands", None)
        if parts is None or differentiable:
            _apply_on_tensors(rule, tensors, scalars)
        else:  # each process updates its part
            own, gradient, *rest = parts(tensors)
            _apply_update(rule, own, gradient, tuple(rest), scalars, False)
            param._bump_version()
        return
    if special[0] and lazy_storages[0]:
        for t in (param, *state):
            if t is not None:
                make_writable(t._array)
    values = None if differentiable else _plain_arrays(tensors)
    if values is None:
        _apply_on_tensors(rule, tensors, scalars)
        return
    arrays, missing, flags = values
    if special[0]:
        for t in (param, *state):
            if t is not None:
                before_write(t)
    threshold = FLOAT32_UPDATES if arrays[0].dtype == FLOAT32 else OPTIMIZER_UPDATES
    if arrays[0].size <= threshold[0] or not _disjoint(arrays, flags) or not run_update(
            rule, arrays, missing, scalars, flags & _C_CONTIGUOUS != 0):
        _apply_on_arrays(rule, tensors, flags, scalars)
    _count_writes(tensors)


#: module of a rule -> the optimizer, where it takes no sparse gradients
_DENSE_ONLY = {"adadelta": "Adadelta", "adam": "Adam", "adamax": "Adamax", "asgd": "ASGD", "nadam": "NAdam",
               "radam": "RAdam", "rmsprop": "RMSprop", "rprop": "Rprop"}


def _apply_on_tensors(rule: Callable[..., None], operands: tuple, scalars: tuple) -> None:
    """Apply the rule with tensor operators."""
    if operands[1].is_sparse:
        name = rule.__module__.rpartition(".")[2]
        if name in _DENSE_ONLY:
            raise RuntimeError(f"{_DENSE_ONLY[name]} does not support sparse gradients"
                               + (", please consider SparseAdam instead" if name == "adam" else ""))
    if operands[0].is_complex():  # real and imaginary parts are separate parameters
        operands = tuple([None if t is None else fn.view_as_real(t) for t in operands])
    rule(tensors, *operands, *scalars)


def _apply_on_arrays(rule: Callable[..., None], operands: tuple, flags: int, scalars: tuple) -> None:
    """Apply the rule with NumPy; large C-contiguous arrays block by block."""
    values: list[Any] = [None if t is None else t._array for t in operands]
    if not values[0].ndim:  # NumPy's functions make numbers of such arrays, to which nothing can be written
        values = [None if a is None else a.reshape(1) for a in values]
    size = values[0].size
    if size <= BLOCK or not flags & _C_CONTIGUOUS:
        rule(arrays, *values, *scalars)
        _array_updates_left[0] -= 1
        if not _array_updates_left[0]:
            enable_kernels()
        return
    flat = [None if a is None else a.reshape(-1) for a in values]
    for start in range(0, size, BLOCK):
        rule(arrays, *[None if a is None else a[start:start + BLOCK] for a in flat], *scalars)


#: bits of `ndarray.flags.num`: C-contiguous, C- or F-contiguous, owns its data, writeable
_C_CONTIGUOUS, _CONTIGUOUS, _OWNDATA, _WRITEABLE = 1, 3, 4, 0x400
_OWNED_C_CONTIGUOUS = _C_CONTIGUOUS | _OWNDATA | _WRITEABLE


def _disjoint(arrays: list[Any], flags: int) -> bool:
    """Whether a kernel may update the arrays in parallel: contiguous, writeable, no memory shared between two.

    Args:
        flags: the bitwise and of all `flags.num`.
    """
    if flags & _OWNED_C_CONTIGUOUS == _OWNED_C_CONTIGUOUS:
        return len(set(map(id, arrays))) == len(arrays)
    if not flags & _WRITEABLE or not all(a.flags.num & _CONTIGUOUS for a in arrays):
        return False
    return not any(np.may_share_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def _plain_arrays(tensors: tuple) -> tuple[list[Any], int, int] | None:
    """The arrays of the tensors, a bit mask of the positions that are None, and the flags that all arrays have.

    None unless all are NumPy arrays of one shape and of one dtype, float32 or float64.
    """
    arrays: list[Any] = []
    missing, bit, flags = 0, 1, -1
    shape = dtype = None
    for t in tensors:
        if t is None:
            missing += bit
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
            arrays.append(a)
            flags &= a.flags.num
        bit += bit
    return arrays, missing, flags


def advance_step(step: Any) -> float:
    """Increment a step tensor by one, and return its value."""
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


def scale_state(tensor: Any, factor: float) -> float:
    """Multiply a one-element state tensor in place, and return its value."""
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            return tracer.scale_state(tensor, factor)
    tensor *= factor
    return tensor.item()


def read_state(tensor: Any) -> float:
    """The value of a one-element state tensor."""
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            return tracer.read_state(tensor)
    return tensor.item()


def set_state_value(tensor: Any, value: float) -> None:
    """Set the value of a one-element state tensor."""
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.set_state(tensor, value)
            return
    tensor.fill_(value)


def scalar_operand(value: Any, like: Any = None) -> Any:
    """A scalar operand for tensor operators; while a function is traced, a tensor that is an input of the program.

    Args:
        like: a tensor whose dtype it has then; default float64.
    """
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            return tracer.scalar_as_tensor(value, None if like is None else like._array.dtype)
    return value


def scalar_value(value: Any) -> Any:
    """The value of a hyperparameter, which may be a one-element tensor."""
    return value.item() if hasattr(value, "item") else value
