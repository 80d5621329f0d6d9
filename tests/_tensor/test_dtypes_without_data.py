"""Dtypes that programs name though NumPy has none of them: the quantized ones, bits and small integers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from flambeau import dtypes

NAMES = [d.name for d in dtypes.WITHOUT_DATA]


def outcome(call: Callable[[], Any]) -> str:
    try:
        return str(call()).replace("flambeau.", "torch.")
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("flambeau.", "torch.")


@pytest.mark.parity
@pytest.mark.parametrize("name", [*NAMES, "complex32", "chalf", "bit"])
def test_attributes(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = getattr(flambeau, name), getattr(torch, name)
    for get in (str, lambda d: d.itemsize, lambda d: d.is_complex, lambda d: d.is_floating_point,
                lambda d: d.is_signed, lambda d: d.to_real()):
        assert outcome(lambda d=ours, get=get: get(d)) == outcome(lambda d=theirs, get=get: get(d))
    assert outcome(lambda: flambeau.finfo(ours)) == outcome(lambda: torch.finfo(theirs))


@pytest.mark.parametrize("name", NAMES)
def test_there_are_no_tensors(name: str) -> None:
    d = getattr(flambeau, name)
    assert pickle.loads(pickle.dumps(d)) is d
    assert copy.deepcopy(d) is d
    assert d not in (flambeau.float32, None)
    for call in (lambda: flambeau.zeros(2, dtype=d), lambda: flambeau.ones(2).to(d), lambda: flambeau.ones(2).type(d)):
        with pytest.raises(NotImplementedError, match=rf"tensors of flambeau\.{name} are not implemented"):
            call()


@pytest.mark.parity
def test_complex_dtypes_of_dtypes() -> None:
    torch = pytest.importorskip("torch")
    for name in sorted({d.name for d in (*dtypes.ALL, *dtypes.WITHOUT_DATA)}):
        ours, theirs = getattr(flambeau, name), getattr(torch, name)
        assert outcome(ours.to_complex) == outcome(theirs.to_complex)
