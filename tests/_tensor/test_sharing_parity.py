"""Sharing and pinning compared with PyTorch: results, warnings and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def outcome(call: Callable[[Any], Any], module: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(module)
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [(w.category.__name__, str(w.message).partition(" (Triggered")[0]) for w in caught]


CASES: dict[str, Callable[[Any], Any]] = {
    "not shared": lambda t: t.ones(2).is_shared(),
    "shared": lambda t: t.ones(2).share_memory_().is_shared(),
    "view": lambda t: t.ones(2)[1:].share_memory_().is_shared(),
    "empty": lambda t: t.empty(0).share_memory_().is_shared(),
    "storage": lambda t: t.ones(2).untyped_storage().share_memory_().is_shared(),
    "new storage": lambda t: t.UntypedStorage._new_shared(3).tolist(),
    "module": lambda t: [p.is_shared() for p in t.nn.Linear(2, 2).share_memory().parameters()],
    "pinned": lambda t: t.ones(2).is_pinned(),
    "pinned on a device": lambda t: t.ones(2).is_pinned("cpu"),
    "pin": lambda t: t.ones(2).pin_memory(),
    "pin on a device": lambda t: t.ones(2).pin_memory("cpu"),
    "pin a storage": lambda t: t.ones(2).untyped_storage().pin_memory(),
    "pinned storage": lambda t: t.ones(2).untyped_storage().is_pinned(),
    "result of an operator": lambda t: ForkingPickler.dumps(t.ones(2, requires_grad=True) * 2),
    "strategies": lambda t: (t.multiprocessing.get_sharing_strategy(),
                             t.multiprocessing.get_all_sharing_strategies()),
    "other strategy": lambda t: t.multiprocessing.set_sharing_strategy([]),
    "names": lambda t: t.multiprocessing.__all__,
    "methods": lambda t: t.multiprocessing.get_all_start_methods(),
    "spawn": lambda t: t.multiprocessing.spawn(print, nprocs=0, start_method="fork"),
}


@pytest.mark.parametrize("case", CASES)
def test_as_pytorch(case: str) -> None:
    assert outcome(CASES[case], flambeau) == outcome(CASES[case], torch)
