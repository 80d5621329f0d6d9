"""Functional modules compared with PyTorch: `functional_call` and the deprecated functions of `functorch`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau
from tests.autograd.differential import same

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::FutureWarning")]


def _model(t: Any) -> Any:
    return t.nn.Sequential(t.nn.Linear(3, 2), t.nn.BatchNorm1d(2)).eval()


def _forgetful(t: Any, x: Any) -> Any:
    module = t.func.replace_all_batch_norm_modules_(t.nn.Sequential(t.nn.BatchNorm1d(3), t.nn.ReLU()))
    assert module[0].running_mean is None
    assert not module[0].track_running_stats
    return t.func.vmap(module)(t.stack([x, x + 1]))


def _ensemble(t: Any, functorch: Any, x: Any) -> Any:
    function, parameters, buffers = functorch.combine_state_for_ensemble([_model(t) for _ in range(3)])
    return t.func.vmap(function, (0, 0, None))(parameters, buffers, x)


def _with_buffers(t: Any, functorch: Any, x: Any) -> Any:
    function, parameters, buffers = functorch.make_functional_with_buffers(_model(t))
    return function(parameters, buffers, x)


def _call(tensors: Callable[[Any], Any], **options: Any) -> Callable[..., Any]:
    return lambda t, _, x: t.func.functional_call(_model(t), tensors(t), (x,), **options)


CASES: dict[str, Callable[..., Any]] = {
    "one name": _call(lambda t: {"0.weight": t.ones(2, 3)}),
    "missing, strict": _call(lambda t: {"0.weight": t.ones(2, 3)}, strict=True),
    "unknown": _call(lambda t: {"0.q": t.ones(1)}),
    "unknown, strict": _call(lambda t: {"q": t.ones(1), "0.q": t.ones(1)}, strict=True),
    "unknown module": _call(lambda t: {"7.weight": t.ones(1)}), "no tensor": _call(lambda t: {"0.weight": 3}),
    "several": _call(lambda t: [{"0.weight": t.ones(2, 3)}, {"0.bias": t.ones(2)}]),
    "the same name twice": _call(lambda t: [{"0.bias": t.ones(2)}, {"0.bias": t.ones(2)}]),
    "no dict": _call(lambda t: 3), "no dicts": _call(lambda t: [3]),
    "replace_all_batch_norm_modules_": lambda t, _, x: _forgetful(t, x),
    "combine_state_for_ensemble": _ensemble, "make_functional_with_buffers": _with_buffers,
    "ensemble of none": lambda t, functorch, x: functorch.combine_state_for_ensemble([]),
    "ensemble of two classes": lambda t, functorch, x: functorch.combine_state_for_ensemble(
        [_model(t), t.nn.Linear(1, 1).eval()]),
    "ensemble of two modes": lambda t, functorch, x: functorch.combine_state_for_ensemble(
        [_model(t), _model(t).train()]),
}


def _run(t: Any, functorch: str, case: Callable[..., Any]) -> Any:
    t.manual_seed(0)
    try:
        return case(t, importlib.import_module(functorch), t.arange(6.).reshape(2, 3)).detach().numpy()
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}".replace("flambeau", "torch")


@pytest.mark.parametrize("name", CASES)
def test_functional_modules_are_pytorchs(name: str) -> None:
    expected = _run(pytorch, "functorch", CASES[name])
    result = _run(flambeau, "flambeau.functorch", CASES[name])
    if isinstance(expected, str) or isinstance(result, str):
        assert result == expected
    else:
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


class _Extra:
    """Programs whose replacements are no tensors of the module, or whose module cannot be called so."""

    @staticmethod
    def absent_attribute(t):
        class Adds(t.nn.Module):
            def forward(self, x):
                return x + self.extra

        module = Adds()
        return t.func.functional_call(module, {"extra": t.ones(1)}, t.ones(1)), hasattr(module, "extra")

    @staticmethod
    def plain_attribute(t):
        module = t.nn.Linear(1, 1)
        module.weight = t.nn.Parameter(t.full((1, 1), 2.))
        module.scale = t.ones(1)
        given = {"scale": t.zeros(1), "bias": None}
        return t.func.functional_call(module, given, t.ones(1)), module.scale, module.bias is None, given

    @staticmethod
    def circular(t):
        module = t.nn.Sequential(t.nn.Linear(1, 1))
        module[0].parent = module
        given = {"0.parent.0.weight": t.ones(1, 1), "0.bias": t.zeros(1)}
        return t.func.functional_call(module, given, t.ones(1), tie_weights=False)

    @staticmethod
    def no_tensor(t):
        return t.func.functional_call(t.nn.Linear(1, 1), {"weight": 3}, t.ones(1))

    @staticmethod
    def other_attribute(t):
        return t.func.functional_call(t.nn.Linear(1, 1), {"in_features": t.ones(1)}, t.ones(1))

    @staticmethod
    def scripted(t):
        return t.func.functional_call(t.jit.script(t.nn.Linear(1, 1)), {}, t.ones(1))

    @staticmethod
    def data_parallel(t):
        return t.func.functional_call(t.nn.DataParallel(t.nn.Linear(1, 1)), {}, t.ones(1))


@pytest.mark.parametrize("name", [name for name in vars(_Extra) if name[0] != "_"])
def test_rare_replacements(name):
    same(getattr(_Extra, name))
