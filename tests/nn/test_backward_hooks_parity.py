"""Backward hooks of modules, of one and of all, compared with PyTorch: gradients, warnings and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from flambeau.nn.modules.base.hooks import GLOBAL_HOOKS

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

FORWARDS: dict[str, Callable[..., Any]] = {
    "one node": lambda x: x * 2, "several nodes": lambda x: (x * 2).sin() + x, "dict": lambda x: {"k": x * 2},
    "tuple": lambda x: (x * 2, x * 3), "outputs of one node": lambda x: x.unbind(0), "list": lambda x: [x * 2],
    "two inputs": lambda x, y: x * y, "list input": lambda x, y: x * y[0], "nested": lambda x: ({"k": x * 2},),
    "no gradient": lambda x: x.detach() * 1,
}
KINDS = ("backward", "full_backward", "full_backward_pre")


@pytest.fixture(autouse=True)
def _kind_of_global_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind of the first global hook is the only kind from then on."""
    monkeypatch.setattr(GLOBAL_HOOKS, "backward_is_full", None)
    monkeypatch.setattr(pytorch.nn.modules.module, "_global_is_full_backward_hook", None)


def _numbers(grads: Any) -> list[Any]:
    return [None if g is None else g.tolist() for g in grads]


def _run(library: Any, name: str, kind: str, of_all: bool) -> tuple[Any, ...]:
    class Forward(library.nn.Module):
        def forward(self, *args: Any) -> Any:
            return FORWARDS[name](*args)

    calls: list[Any] = []
    module = Forward()
    x = library.arange(6.).reshape(2, 3).requires_grad_()
    y = (library.ones(2, 3) * 2).requires_grad_()
    register = getattr(library.nn.modules.module, f"register_module_{kind}_hook") if of_all else (
        getattr(module, f"register_{kind}_hook"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        handle = register(lambda _, *grads: calls.append([_numbers(each) for each in grads]))
        try:
            out = module(*((x, y) if name == "two inputs" else (x, [y]) if name == "list input" else (x,)))
            while isinstance(out, (dict, list, tuple)):
                out = next(iter(out.values())) if isinstance(out, dict) else out[0]
            if out.requires_grad:
                out.sum().backward()
        except (RuntimeError, TypeError) as error:
            calls.append(f"{type(error).__name__}: {error}")
        finally:
            handle.remove()
    return calls, [(w.category, str(w.message).replace("flambeau", "torch")) for w in caught]


@pytest.mark.parametrize("of_all", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORWARDS)
def test_hooks_are_pytorchs(name: str, kind: str, of_all: bool) -> None:
    assert _run(flambeau, name, kind, of_all) == _run(pytorch, name, kind, of_all)


def test_full_and_other_hooks_of_all_modules_exclude_each_other() -> None:
    module = flambeau.nn.modules.module
    handle = module.register_module_full_backward_hook(lambda *_: None)
    try:
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks as a"):
            module.register_module_backward_hook(lambda *_: None)
    finally:
        handle.remove()
