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


RETURNED: dict[str, Callable[[Any], Any]] = {
    "a tensor": lambda t: t.zeros(2), "a smaller tensor": lambda t: t.zeros(1), "one": lambda t: (t.zeros(2),),
    "another size": lambda t: (t.zeros(1),), "another dtype": lambda t: (t.zeros(2).double(),),
    "None": lambda t: (None,), "a number": lambda t: 5, "a tuple of a number": lambda t: (5,),
    "a list": lambda t: [t.zeros(2)],
    "nothing": lambda t: (), "two": lambda t: (t.zeros(2), t.zeros(2)),
}


def _outcome(library: Any, backward: Callable[[], Any], x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            backward()
        except (RuntimeError, TypeError) as error:
            return f"{type(error).__name__}: {error}".replace("flambeau.", "torch.")
    return None if x.grad is None else x.grad.tolist()


@pytest.mark.parametrize("returned", RETURNED)
@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_what_a_nodes_hook_returns_is_checked(register: str, returned: str) -> None:
    found = []
    for t in (pytorch, flambeau):
        x = t.ones(2, requires_grad=True)
        y = x.sin() * x
        replaced = RETURNED[returned](t)

        def hook(*_: Any, replaced: Any = replaced) -> Any:
            return replaced

        for node in (y.grad_fn, y.grad_fn.next_functions[0][0]):  # of two inputs and of one
            handle = getattr(node, register)(hook)
            found.append(_outcome(t, lambda y=y: y.sum().backward(retain_graph=True), x))
            handle.remove()
            x.grad = None
    assert found[2:] == found[:2]


@pytest.mark.parametrize("returned", RETURNED)
@pytest.mark.parametrize("kind", ["full_backward", "full_backward_pre"])
def test_what_a_modules_hook_returns_is_checked_after_the_hooks_of_its_output(kind: str, returned: str) -> None:
    found = []
    for t in (pytorch, flambeau):
        for requires_grad in (True, False):
            calls = []
            x = -t.ones(1, 2, requires_grad=requires_grad)
            module, replaced = t.nn.PReLU(2, init=1), RETURNED[returned](t)

            def hook(*_: Any, calls: list[str] = calls, replaced: Any = replaced) -> Any:
                calls.append("module")
                return replaced

            getattr(module, f"register_{kind}_hook")(hook)
            y = module(x)
            y.register_hook(lambda _, calls=calls: calls.append("tensor"))
            y.grad_fn.register_prehook(lambda _, calls=calls: calls.append("before"))
            y.grad_fn.register_hook(lambda *_, calls=calls: calls.append("after"))
            found.append((_outcome(t, lambda y=y: y.sum().backward(), module.weight), calls))
    assert found[2:] == found[:2]
