"""Stub for PyTorch's tests by device: the CPU is the only one."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable
from typing import Any

from ..placeholder import Placeholder
from .parametrization import bound, instances_of


def instantiate_device_type_tests(generic: type, scope: dict[str, Any], *args: Any, **kwargs: Any) -> None:
    """Replace the generic class in the scope by `<name>CPU`, for any requested devices."""
    members: dict[str, Any] = {}
    for name, function in vars(generic).items():
        if not (name.startswith("test") and callable(function)):
            continue
        marks = vars(function)
        arguments = function.__code__.co_varnames[:function.__code__.co_argcount] \
            if hasattr(function, "__code__") else ()
        original = getattr(function, "__wrapped__", function)
        if hasattr(original, "__code__"):
            arguments = original.__code__.co_varnames[:original.__code__.co_argcount]
        given: dict[str, Any] = {"devices": ["cpu"]} if marks.get("devices_wanted") else \
            {"device": "cpu"} if "device" in arguments else {}
        for suffix, values, decorators in instances_of(function):
            for dtypes in marks.get("dtypes") or [()]:
                several = isinstance(dtypes, tuple)
                kinds = [str(d).rpartition(".")[2] for d in (dtypes if several else (dtypes,))]
                chosen = {} if not dtypes else {"dtypes": dtypes} if several else {"dtype": dtypes}
                full = "_".join(filter(None, (name, suffix, "cpu", *kinds)))
                members[full] = bound(function, {**given, **values, **chosen}, decorators)
    for name in [n for n in vars(generic) if n.startswith("test") and callable(vars(generic)[n])]:
        delattr(generic, name)
    made = f"{generic.__name__}CPU"
    scope.pop(generic.__name__, None)
    scope[made] = type(made, (generic,), {**members, "device_type": "cpu", "__module__": generic.__module__})


def dtypes(*kinds: Any, device_type: str = "all") -> Callable[..., Any]:
    """Decorator: one test for each dtype."""
    def mark(function: Any) -> Any:
        if device_type in ("all", "cpu"):
            function.dtypes = kinds
        return function

    return mark


def dtypesIfCPU(*kinds: Any) -> Callable[..., Any]:
    """Decorator: the dtypes for the CPU."""
    def mark(function: Any) -> Any:
        function.dtypes = kinds
        return function

    return mark


def deviceCountAtLeast(count: int) -> Callable[..., Any]:
    """Decorator: the test takes a list of devices, and there is one."""
    def mark(function: Any) -> Any:
        @functools.wraps(function)
        def test(self: Any, **kwargs: Any) -> Any:
            if count > 1:
                raise unittest.SkipTest(f"wants {count} devices")
            return function(self, **kwargs)

        test.devices_wanted = True  # type: ignore[attr-defined]
        return test

    return mark


def _as_it_is(function: Any) -> Any:
    return function


def _for_another_device(name: str) -> Callable[..., Any]:
    def mark(function: Any) -> Any:
        @functools.wraps(function)
        def test(*args: Any, **kwargs: Any) -> Any:
            raise unittest.SkipTest(f"{name}: for another device")

        return test

    return mark


onlyCPU = onlyNativeDeviceTypes = onlyAcceleratorOrCPU = onlyNativeDeviceTypesAnd = _as_it_is
skipCPUIfNoLapack = skipCPUIfNoFFT = skipCPUIfNoMkl = skipCPUIfNoMklSparse = _as_it_is
ops = toleranceOverride = precisionOverride = lambda *args, **kwargs: _as_it_is


def __getattr__(name: str) -> Any:
    if name.startswith("only"):
        return _for_another_device(name)
    if name.startswith(("dtypesIf", "skipCUDAVersion", "skipIf", "skipCUDAIf", "skipMPSIf")) \
            and not name.endswith("NoLapack"):
        return lambda *args, **kwargs: args[0] if len(args) == 1 and callable(args[0]) and not kwargs \
            and not isinstance(args[0], type) and hasattr(args[0], "__code__") else _as_it_is
    if name.startswith("largeTensor"):
        return lambda *args, **kwargs: unittest.skip("needs much memory")
    if name.startswith(("skip", "expectedFailure", "tf32")):
        return _as_it_is
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder(f"torch.testing._internal.common_device_type.{name}", internal=True)
