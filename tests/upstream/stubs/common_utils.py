"""Stub for PyTorch's module of test helpers."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import os
import random
import sys
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.autograd

from ..placeholder import Placeholder
from .case import TestCase, set_warn_always_context
from .installed import FUNCTIONS, take
from .parametrization import instantiate_parametrized_tests, parametrize, subtest

__all__ = ["TestCase", "disable_gc", "freeze_rng_state", "gradcheck", "gradgradcheck",
           "instantiate_parametrized_tests", "parametrize", "run_tests", "set_warn_always_context", "subtest"]

IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
IS_LINUX = sys.platform.startswith("linux")
IS_X86, IS_ARM64 = os.uname().machine in ("x86_64", "i386"), os.uname().machine in ("arm64", "aarch64")
TEST_NUMPY, TEST_SCIPY = True, False
NO_MULTIPROCESSING_SPAWN = False
SEED = 1234


def _nothing(*function: Any, **settings: Any) -> Any:
    """A decorator that does nothing, with or without settings of its own."""
    return function[0] if len(function) == 1 and callable(function[0]) and not settings else lambda decorated: decorated


def __getattr__(name: str) -> Any:
    if name.startswith(("IS_", "TEST_")):  # other builds, devices and modes: unsupported
        return False
    if name.startswith(("skipIf", "skipBut", "markDynamo", "unMark", "xfailIf", "expectedFailureIfTorchDynamo")):
        return _nothing
    if name.startswith("__"):
        raise AttributeError(name)
    if name in FUNCTIONS:
        return take(name)
    return Placeholder(f"torch.testing._internal.common_utils.{name}", internal=True)


def run_tests(*args: Any, **kwargs: Any) -> None:
    """Nothing: the runner runs them."""


def slowTest(function: Any) -> Any:
    """Slow tests are run, too."""
    return function


def skip_but_pass_in_sandcastle_if(condition: bool, reason: str) -> Callable[..., Any]:
    """A skip where the condition holds."""
    return unittest.skipIf(condition, reason)


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Random numbers go on after the block as if it had drawn none."""
    kept, own, theirs = torch.get_rng_state(), random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(kept)
        random.setstate(own)
        np.random.set_state(theirs)


@contextlib.contextmanager
def disable_gc() -> Iterator[None]:
    """No cyclic garbage collection in the block: objects are freed by reference counts alone."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def gradcheck(fn: Any, inputs: Any, **kwargs: Any) -> Any:
    """gradcheck as PyTorch's tests call it: fast mode, with batched gradients."""
    from torch.autograd import gradcheck as check

    return check(fn, inputs, **{"check_batched_grad": True, "fast_mode": True, **kwargs})


def gradgradcheck(fn: Any, inputs: Any, grad_outputs: Any = None, **kwargs: Any) -> Any:
    """gradgradcheck as PyTorch's tests call it."""
    from torch.autograd import gradgradcheck as check

    return check(fn, inputs, grad_outputs, **{"check_batched_grad": True, "fast_mode": True, **kwargs})


def to_gpu(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Where there is no other device."""
    return value


class NoTest:
    """Stands where a base class of tests for another device would."""


@contextlib.contextmanager
def set_default_dtype(dtype: Any) -> Iterator[None]:
    """The default dtype of a block."""
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        yield
    finally:
        torch.set_default_dtype(before)


def set_rng_seed(seed: int = 1234) -> None:
    """Seed the generators of tensors, Python and NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def get_function_arglist(function: Any) -> list[str]:
    """The names of a function's parameters."""
    return list(inspect.signature(function).parameters)


dtype2prec_DONTUSE = {torch.float: 1e-5, torch.double: 1e-5, torch.half: 1e-2, torch.bfloat16: 1e-1}


def _assertGradAndGradgradChecks(test_case: Any, apply_fn: Any, inputs: Any, **kwargs: Any) -> None:
    """First and second derivatives agree with differences."""
    test_case.assertTrue(gradcheck(apply_fn, inputs, **kwargs))
    test_case.assertTrue(gradgradcheck(apply_fn, inputs, **kwargs))


def suppress_warnings(function: Any) -> Any:
    """Decorator: the test's warnings are ignored."""
    @functools.wraps(function)
    def test(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)

    return test


def expectedFailureIf(condition: bool) -> Callable[..., Any]:
    """A test that must fail where the condition holds."""
    return unittest.expectedFailure if condition else _nothing


def xfailIf(condition: bool) -> Callable[..., Any]:
    """The same under its other name."""
    return expectedFailureIf(condition)


def wrapDeterministicFlagAPITest(function: Any) -> Any:
    """Runs the test as it is."""
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapped
