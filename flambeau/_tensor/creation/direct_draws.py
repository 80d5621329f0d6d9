"""Draws of few numbers by the CPU's default generator, in calls without options: one call of generated code.

The functions return None where there is more to do, and draw nothing then: the general ones of `draws` do it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import lru_cache
from math import ceil, prod
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.compiled.thresholds import SMALL_KERNELS
from ...modes import special
from ..fastpath.repeated_layouts import KnownCalls, has_values, is_new
from ..tensor import Tensor, wrap
from .factory_arguments import finished
from .generators import default_generator, lock

empty = np.empty
ndarray = np.ndarray
F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
_only_ints = {int}.issuperset
_ambient = devices.ambient
#: the most numbers: memory for more comes from the caching allocator
_MOST = 16384


def _shape_of(size: Any) -> tuple[int, ...] | None:
    """The shape that sizes, given one by one or as a sequence, have if they are of few elements."""
    if len(size) == 1 and size[0].__class__ is not int:
        size = size[0]
        if size.__class__ is not tuple:
            if not isinstance(size, (tuple, list)):
                return None
            size = tuple(size)
    if _only_ints(map(type, size)) and (not size or min(size) > 0) and prod(size) <= _MOST:
        return size
    return None


def _draws() -> Any:
    """The functions that draw from the default generator's state (`codegen.random.draws.Draws`), under the lock."""
    engine = default_generator._engine
    return None if engine is None or special[0] or _ambient[0] is not None else engine.draws


def new(array: np.ndarray) -> Tensor:
    """A tensor of what was drawn."""
    return finished(wrap(array), False)


def uniforms(size: Any) -> Tensor | None:
    """Numbers in [0, 1) of the default dtype."""
    with lock.quick:
        draws = _draws()
        if draws is None or dtypes.get_default_dtype() is not dtypes.float32:
            return None
        shape = _shape_of(size)
        if shape is None:
            return None
        array = draws.singles(empty(shape, F32))
    return new(array)


def normals(size: Any) -> Tensor | None:
    """Normal numbers of the default dtype, at least sixteen."""
    with lock.quick:
        draws = _draws()
        if draws is None or dtypes.get_default_dtype() is not dtypes.float32:
            return None
        shape = _shape_of(size)
        if shape is None or prod(shape) < 16:
            return None
        array = draws.normals(empty(shape, F32))
    return None if array is None else new(array)


def integers(low: Any, high: Any, size: Any) -> Tensor | None:
    """int64 numbers in [low, high)."""
    if low.__class__ is not int or high.__class__ is not int or not 0 < high - low < 1 << 28 or abs(low) > 1 << 62:
        return None
    with lock.quick:
        draws = _draws()
        shape = None if draws is None else _shape_of((size,))
        if shape is None:
            return None
        array = draws.remainders(empty(shape, I64), high - low, low)
    return new(array)


def permutation(n: Any) -> Tensor | None:
    """The numbers from 0 to n - 1 in random order, int64."""
    if n.__class__ is not int or not 1 < n <= _MOST:
        return None
    with lock.quick:
        draws = _draws()
        if draws is None:
            return None
        array = draws.permutation(empty(n, I64))
    return new(array)


def _empty_like(a: Any) -> np.ndarray | None:
    """An array of the layout of a float32 array that is contiguous and has few elements."""
    if a.__class__ is not ndarray or a.dtype is not F32 or not 0 < a.size <= _MOST or not a.flags.c_contiguous:
        return None
    result = empty(a.shape, F32)
    return result if result.strides == a.strides else None  # dimensions of size 1 may have other strides


def uniforms_like(x: Any) -> Tensor | None:
    """Numbers in [0, 1) of the layout of a tensor."""
    result = _empty_like(x._array)
    if result is not None:
        with lock.quick:
            draws = _draws()
            result = None if draws is None else draws.singles(result)
    return None if result is None else new(result)


def normals_like(x: Any) -> Tensor | None:
    """Normal numbers of the layout of a tensor, at least sixteen."""
    result = _empty_like(x._array)
    if result is None or result.size < 16:
        return None
    with lock.quick:
        draws = _draws()
        result = None if draws is None else draws.normals(result)
    return None if result is None else new(result)


def events(a: Any) -> np.ndarray | None:
    """1 with the probabilities of an array, else 0; None also where one is no probability."""
    result = _empty_like(a)
    if result is not None:
        with lock.quick:
            draws = _draws()
            drawn = None if draws is None else draws.events(result, a)
        result = drawn if drawn is result else None
    return result


@lru_cache(64)
def _choice(kept: float) -> tuple[int, int]:
    """The number of 53-bit integers that keep an element with that probability, and the bits of its reciprocal."""
    quotient = np.ones(1, np.float32)
    np.true_divide(quotient, np.float32(kept), out=quotient)
    return ceil(kept * 2.0**53), int(quotient.view(np.int32)[0])


def dropout_mask(a: Any, kept: float) -> np.ndarray | None:
    """The reciprocal of the probability `kept` with this probability, else 0, of the layout of an array."""
    result = _empty_like(a)
    if result is not None:
        with lock.quick:
            draws = _draws()
            result = None if draws is None else draws.choices(result, *_choice(kept))
    return result


def known_draws(kind: str, differentiable: bool = False) -> Callable[..., Any]:
    """The decorator of a function that draws from the default generator, of which calls by position are known.

    Generated code draws where nothing but the state is needed: while no device is set, the default dtype is float32,
    something was drawn directly since the state was set, and no other thread draws without the interpreter's lock.

    Args:
        kind: the key of `draw_launches.LAUNCHES`.
        differentiable: whether a draw from a tensor that requires gradients is recorded.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        known_calls = KnownCalls(differentiable, lambda: (
            devices.ambient, dtypes.other_default, default_generator.engine.indirect, lock.held))
        enter: Any = None

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal enter
            if enter is not None:
                result = enter(args, kwargs)
                if result is not None and result is not False:
                    return result
            result = function(*args, **kwargs)
            if SMALL_KERNELS[0] and not kwargs:
                known_calls.left -= 1
                if known_calls.left <= 0:
                    known_calls.begin_attempt()
                    launch = _launch(kind, args, result)
                    if launch is not None:
                        enter = known_calls.add(args, kwargs, launch)
            return result

        code = function.__code__  # contexts of devices look for its name
        call.__code__ = call.__code__.replace(  # type: ignore[attr-defined]
            co_name=code.co_name, co_qualname=code.co_qualname)
        return call

    return decorate


def _launch(kind: str, args: tuple[Any, ...], result: Any) -> Any:
    """The launch by which generated code draws what a call has drawn; None where it does not."""
    draws = _draws()
    if draws is None or dtypes.other_default[0] or not is_new(result) or any(map(has_values, args[1:])):
        return None
    a = result._array
    if not 0 < a.size <= _MOST or a.strides != empty(a.shape, a.dtype).strides:
        return None
    from .draw_launches import LAUNCHES

    return LAUNCHES[kind](draws, a, args, _empty_like)


known_uniforms, known_normals = known_draws("uniforms"), known_draws("normals")
known_uniforms_like, known_normals_like = known_draws("uniforms_like"), known_draws("normals_like")
known_integers, known_permutations = known_draws("integers"), known_draws("permutation")
known_events = known_draws("events", True)

__all__ = ["dropout_mask", "events", "integers", "known_draws", "known_events", "known_integers", "known_normals",
           "known_normals_like", "known_permutations", "known_uniforms", "known_uniforms_like", "new", "normals",
           "normals_like", "permutation", "uniforms", "uniforms_like"]
