"""One test for each value of its parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

#: (name, arguments, decorators) of one instance
Instance = tuple[str, dict[str, Any], tuple[Callable[..., Any], ...]]


class subtest:
    """One set of values, with its own name and decorators."""

    def __init__(self, arg_values: Any, name: str | None = None, decorators: Sequence[Any] | None = None) -> None:
        self.arg_values, self.name, self.decorators = arg_values, name, tuple(decorators or ())


class parametrize:
    """Decorator: run the test once for each of the values; several of them multiply."""

    def __init__(self, arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None) -> None:
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values, self.name_fn = list(arg_values), name_fn

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__.setdefault("parameters", []).append(self)
        return function

    def instances(self) -> Iterator[Instance]:
        """The values, one at a time."""
        for index, value in enumerate(self.values):
            special = value if isinstance(value, subtest) else subtest(value)
            values = [special.arg_values] if len(self.names) == 1 else list(special.arg_values)
            if special.name is not None:
                name = special.name
            elif self.name_fn is not None:
                name = self.name_fn(*values)
            else:
                name = "_".join(_named(n, v, index) for n, v in zip(self.names, values, strict=True))
            yield name, dict(zip(self.names, values, strict=True)), special.decorators


def _named(name: str, value: Any, index: int) -> str:
    if isinstance(value, torch.dtype):
        return str(value).rpartition(".")[2]
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, (bool, int, float, complex, str)):
        return f"{name}_{value}".replace(".", "_")
    if isinstance(value, type):
        return f"{name}_{value.__name__}"
    return f"{name}{index}"


def instances_of(function: Callable[..., Any]) -> list[Instance]:
    """Every combination of a test's parameters."""
    made: list[Instance] = [("", {}, ())]
    for parameter in function.__dict__.get("parameters", []):
        made = [("_".join(filter(None, (name, before))), {**values, **others}, (*decorators, *more))
                for name, values, decorators in parameter.instances() for before, others, more in made]
    return made


def bound(function: Callable[..., Any], values: dict[str, Any],
          decorators: Sequence[Callable[..., Any]] = ()) -> Callable[..., Any]:
    """A test method whose parameters have their values."""
    @functools.wraps(function)
    def test(self: Any) -> Any:
        return function(self, **values)

    made: Callable[..., Any] = test
    for decorator in decorators:
        made = decorator(made)
    return made


def instantiate_parametrized_tests(generic: type) -> type:
    """Replace each parametrized test of a class by its instances."""
    for name, function in list(vars(generic).items()):
        if not (name.startswith("test") and callable(function) and "parameters" in vars(function)):
            continue
        delattr(generic, name)
        for suffix, values, decorators in instances_of(function):
            setattr(generic, f"{name}_{suffix}", bound(function, values, decorators))
    return generic
