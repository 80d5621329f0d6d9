"""Weak references and dictionaries of tensors by identity."""

from __future__ import annotations

import copy
import gc

import flambeau as torch
from flambeau.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_references_compare_by_identity() -> None:
    x, y = torch.ones(2), torch.ones(2)
    assert WeakIdRef(x) == WeakIdRef(x) != WeakIdRef(y)
    assert hash(WeakIdRef(x)) == id(x)
    reference = TensorWeakRef(x)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None


def test_dictionary() -> None:
    x, y = torch.ones(2), torch.ones(2)
    d = WeakTensorKeyDictionary({x: 1})
    d[y] = [2]
    assert d[x] == 1
    assert y in d
    assert torch.ones(2) not in d
    assert 3 not in d
    assert len(d) == 2
    assert {id(k) for k in d} == {id(x), id(y)}
    assert len(d.keyrefs()) == 2
    other = copy.deepcopy(d)
    assert other == d
    assert other[y] is not d[y]
    assert len(WeakIdKeyDictionary() | d) == 2
    del d[x], y
    gc.collect()
    assert len(d) == 0
