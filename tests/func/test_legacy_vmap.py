"""`torch._vmap_internals`, the deprecated `vmap`, compared with PyTorch."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def observed(t: Any, call: Callable[[Any, Any], Any]) -> Any:
    """The results of a call of PyTorch's or flambeau's, or its error."""
    legacy = importlib.import_module("torch._vmap_internals") if t is torch else t._vmap_internals
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(t, legacy.vmap)
        except Exception as error:
            result = (type(error).__name__, str(error))
    leaves = [x.tolist() if isinstance(x, t.Tensor) else x for x in (result if isinstance(result, tuple) else [result])]
    return leaves, [(w.category.__name__, str(w.message)) for w in caught]


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "one result": lambda t, vmap: vmap(lambda x, y: x * y.sum(), (0, 1), 1)(t.ones(2, 3), t.arange(4.).reshape(2, 2)),
    "several": lambda t, vmap: vmap(lambda x: (x, t.ones(2)), out_dims=(1, 0))(t.arange(6.).reshape(3, 2)),
    "nested": lambda t, vmap: vmap(vmap(lambda x, y: x - y, (None, 0)), (0, None))(t.arange(2.), t.arange(3.)),
    "gradient": lambda t, vmap: vmap(lambda v: t.func.grad(lambda x: (x * x).sum())(v))(t.arange(4.).reshape(2, 2)),
    "number": lambda t, vmap: vmap(lambda x: 3)(t.ones(2)),
    "number among results": lambda t, vmap: vmap(lambda x: (x, 3))(t.ones(2)),
    "list": lambda t, vmap: vmap(lambda x: [x])(t.ones(2)),
    "negative dimension": lambda t, vmap: vmap(lambda x: x, -1)(t.ones(2, 3)),
    "too few dimensions": lambda t, vmap: vmap(lambda x: (x, x), out_dims=(0,))(t.ones(2)),
    "dimensions of results": lambda t, vmap: vmap(lambda x: x, out_dims=[0])(t.ones(2)),
    "no tensor": lambda t, vmap: vmap(lambda x: x)(3),
    "no argument": lambda t, vmap: vmap(lambda: 1)(),
    "sizes": lambda t, vmap: vmap(lambda x, y: x)(t.ones(2), t.ones(3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    found, expected = (observed(t, CALLS[name]) for t in (flambeau, torch))
    assert str(found).replace("<lambda>", "").replace("flambeau", "torch") == str(expected).replace("<lambda>", "")
