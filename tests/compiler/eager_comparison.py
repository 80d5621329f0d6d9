"""Helpers that call a compiled function and the eager one alternately, and compare results and state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

import flambeau as torch
from flambeau import dtypes
from flambeau.compiler.execution.compiled_function import CompiledFunction

Tensor = torch.Tensor


def compiled_of(made: Any) -> CompiledFunction:
    """The `Compiled` behind a compiled function, method or module."""
    found = made if isinstance(made, CompiledFunction) else made.__dict__.get("_run", getattr(made, "__func__", None))
    assert isinstance(found, CompiledFunction)
    return found


def programs(made: Any) -> int:
    """How many programs a compiled function has."""
    return sum(len(kind.entries) for kind in caches(made))


def caches(made: Any) -> list[Any]:
    """What a compiled function, and its forms with state, know about the calls of each signature."""
    found = compiled_of(made)
    stateful = [each for made in found.stateful.values() if made is not None
                for each in made.compiled.values()]
    return [kind for each in (found, *stateful) for kind in each._signatures.values()]


def reasons(made: Any) -> list[str]:
    """Why calls of a compiled function are not replayed."""
    return [kind.skip_reason for kind in caches(made) if kind.skip_reason is not None]


@contextmanager
def counted_captures() -> Iterator[list[Any]]:
    """A list that gets an entry for each call that is captured meanwhile."""
    captures: list[Any] = []
    real = CompiledFunction._trace_call

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        captures.append(self)
        return real(self, *args, **kwargs)

    with mock.patch.object(CompiledFunction, "_trace_call", counting):
        yield captures


def same(found: Any, expected: Any, tolerance: float = 1e-5, path: str = "result") -> None:
    """Let two results be alike: containers, tensors with dtype, shape, strides and grad mode, and anything else."""
    if isinstance(expected, Tensor):
        assert type(found) is type(expected), path
        assert found.dtype is expected.dtype, path
        assert found.shape == expected.shape, path
        assert found.stride() == expected.stride(), path
        assert found.requires_grad == expected.requires_grad, path
        assert found.is_leaf == expected.is_leaf, path
        a, b = (dtypes.widen(t.detach()._array) for t in (found, expected))
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=1)) if b.dtype.kind in "fc" else 0
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=path)
        if expected.is_leaf:
            same(found._grad, expected._grad, tolerance, f"{path}.grad")
    elif isinstance(expected, dict):
        assert list(found) == list(expected), path
        for key, value in expected.items():
            same(found[key], value, tolerance, f"{path}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        assert type(found) is type(expected), path
        assert len(found) == len(expected), path
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            same(a, b, tolerance, f"{path}[{i}]")
    else:
        assert type(found) is type(expected), path
        assert found == expected, path


class Scenario:
    """A function with its arguments and state.

    Args:
        function: the function.
        arguments: returns the arguments of call `i`, equal for equal `i`.
        state: returns the tensors and other objects that are compared after each call.
        between: called after call `i`; may change state from outside the function.
    """

    def __init__(self, function: Callable[..., Any], arguments: Callable[[int], tuple] = lambda i: (),
                 state: Callable[[], Any] = lambda: None, between: Callable[[int], None] = lambda i: None) -> None:
        self.function, self.arguments, self.state, self.between = function, arguments, state, between


def compare_with_eager(build: Callable[[], Scenario], count: int = 7, tolerance: float = 1e-5, **options: Any) -> Any:
    """Call a function and its compiled form alternately, each with a world of its own; return the compiled one."""
    torch.manual_seed(0)
    theirs = build()
    torch.manual_seed(0)
    mine = build()
    made = torch.compile(mine.function, **options)
    for i in range(count):
        outcomes = []
        for world, function in ((theirs, theirs.function), (mine, made)):
            torch.manual_seed(100 + i)
            arguments = world.arguments(i)
            try:
                outcomes.append((function(*arguments), None))
            except Exception as error:
                outcomes.append((None, error))
            outcomes.append((arguments, world.state(), torch.get_rng_state()))
        (want, wrong), expected, (got, mistaken), found = outcomes
        assert (type(mistaken), str(mistaken)) == (type(wrong), str(wrong)), f"call {i}: {mistaken!r}, not {wrong!r}"
        same(got, want, tolerance, f"result of call {i}")
        same(found, expected, tolerance, f"state after call {i}")
        theirs.between(i)
        mine.between(i)
    return made


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    """Normal random numbers, independent of the library's stream."""
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def parameters(module: Any) -> dict[str, Any]:
    """All parameters and buffers, by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def state_of(optimizer: Any) -> list[Any]:
    """What an optimizer remembers, parameter by parameter."""
    return [dict(optimizer.state.get(p, {})) for group in optimizer.param_groups for p in group["params"]]


