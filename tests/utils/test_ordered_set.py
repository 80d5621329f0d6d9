"""Sets in the order of addition, beside PyTorch's."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import pytest


def _program(package: str) -> list[str]:
    made: Any = importlib.import_module(f"{package}.utils._ordered_set").OrderedSet
    a, b = made([3, 1, 2]), made([2, 5])
    found = [a, made(), a | b, a & b, a - b, a ^ b, a | {9}, a.union([7], [8]), a.intersection([1, 3]),
             a.difference([1]), a.symmetric_difference([1, 4]), a.issubset([1, 2, 3, 4]), a.issuperset([1]), a <= b,
             a == made([1, 2, 3]), a == {1, 2, 3}, list(reversed(a)), len(a), 2 in a, bool(made()),
             pickle.loads(pickle.dumps(b)), copy.copy(b), a.pop(), a]
    a.update([4], [5])
    a.discard(77)
    found.append(copy.copy(a))
    a.intersection_update([4, 5])
    a.difference_update([4])
    a.add(1)
    a |= {2}
    a -= made([1])
    a.symmetric_difference_update([2, 3])
    found.append(a)
    for call in (lambda: a.remove(99), lambda: made().pop(), lambda: hash(a), lambda: [1].__add__(a)):
        with pytest.raises((KeyError, TypeError)) as info:
            call()
        found.append(info.type.__name__)
    return [repr(each) for each in found]


@pytest.mark.parity
def test_ordered_sets() -> None:
    pytest.importorskip("torch")
    assert _program("flambeau") == _program("torch")
