"""How generated code draws: launches that take functions of the default generator, by what is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...runtime.filling import Filling, NewArray, with_filling
from ..fastpath.repeated_layouts import has_values

ndarray = np.ndarray
F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


def _uniforms(draws: Any, a: ndarray, args: tuple[Any, ...]) -> Any:
    return Filling(draws.singles, (NewArray(a.shape, F32),)) if a.dtype is F32 else None


def _normals(draws: Any, a: ndarray, args: tuple[Any, ...]) -> Any:
    from ...codegen.random.draws import normal_launches

    launches = normal_launches(a.size) if a.dtype is F32 and a.size >= 16 else None
    return None if launches is None else Filling(draws.transformed, (NewArray(a.shape, F32), [launches]))


def _integers(draws: Any, a: ndarray, args: tuple[Any, ...], _: Any) -> Any:
    low, high = (0, args[0]) if len(args) == 2 else args[:2]
    if a.dtype is not I64 or low.__class__ is not int or high.__class__ is not int or not 0 < high - low < 1 << 28 or (
            abs(low) > 1 << 62):
        return None
    return Filling(draws.remainders, (NewArray(a.shape, I64), [high - low], [low]))


def _permutation(draws: Any, a: ndarray, args: tuple[Any, ...], _: Any) -> Any:
    if len(args) > 1 or args[0].__class__ is not int or a.dtype is not I64:
        return None
    return Filling(draws.permutation, (NewArray(a.shape, I64),))


def _events(draws: Any, a: ndarray, args: tuple[Any, ...]) -> Any:
    return Filling(draws.events, (NewArray(a.shape, F32), 0)) if a.dtype is F32 else None


def _of_sizes(filling_of: Callable[..., Any]) -> Callable[..., Any]:
    """What an array is drawn by whose shape is given, by numbers that are no tensors."""
    return lambda draws, a, args, _: None if has_values(args[0]) else filling_of(draws, a, args)


def _like(filling_of: Callable[..., Any]) -> Callable[..., Any]:
    """What an array is drawn by that has the layout of a tensor."""
    return lambda draws, a, args, empty_like: None if len(args) > 1 or empty_like(args[0]._array) is None else (
        filling_of(draws, a, args))


def _launching(filling_of: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a call that gives its launch, or None; generated code alone runs that.

    Its arguments are the functions that draw, the array that was drawn, the call's arguments, and a function that
    returns None for arrays whose layout is not drawn.
    """
    def launch_of(draws: Any, a: ndarray, args: tuple[Any, ...], empty_like: Callable[..., Any]) -> Any:
        filling = filling_of(draws, a, args, empty_like)
        return None if filling is None else with_filling(lambda *_: None, filling)

    return launch_of


#: what is drawn -> what makes its launch
LAUNCHES: dict[str, Callable[..., Any]] = {name: _launching(filling_of) for name, filling_of in {
    "uniforms": _of_sizes(_uniforms), "normals": _of_sizes(_normals), "uniforms_like": _like(_uniforms),
    "normals_like": _like(_normals), "integers": _integers, "permutation": _permutation,
    "events": _like(_events)}.items()}

__all__ = ["LAUNCHES"]
