"""Arguments of scripted code: numbers become what its annotations declare, as in TorchScript."""

from __future__ import annotations

import math
from typing import Optional

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn


def kept_float(p: float):
    return p


def kept_default(p: float = 1):
    return p


def kept_optional(p: Optional[float] = None):  # noqa: UP045 - what older programs write
    return p


def kept_union(p: float | None = 2):
    return p


def kept_int(p: int):
    return p


def kept_complex(p: complex):
    return p


def kept_bool(p: bool):
    return p


def kept_list(p: list[float]):
    return p


def kept_tuple(p: tuple[float, int]):
    return p


def kept_dict(p: dict[str, float]):
    return p


@pytest.mark.parametrize(("function", "args", "expected"), [
    (kept_float, (1,), 1.0),
    (kept_float, (True,), 1.0),
    (kept_float, (np.int64(2),), 2.0),
    (kept_float, (torch.tensor([3]),), 3.0),
    (kept_float, (torch.tensor(3.0, requires_grad=True),), 3.0),
    (kept_default, (), 1.0),
    (kept_optional, (1,), 1.0),
    (kept_optional, (), None),
    (kept_union, (), 2.0),
    (kept_int, (True,), 1),
    (kept_int, (torch.tensor(2.5),), 2),
    (kept_complex, (1,), 1 + 0j),
    (kept_bool, (1,), True),
    (kept_bool, (None,), False),
    (kept_list, ([1, 2.5],), [1.0, 2.5]),
    (kept_list, ((1, 2),), [1.0, 2.0]),
    (kept_tuple, ((1, 2),), (1.0, 2)),
    (kept_dict, ({"a": 1},), {"a": 1.0}),
])
def test_numbers_become_what_the_annotation_declares(function, args, expected):
    result = torch.jit.script(function)(*args)
    assert repr(result) == repr(expected)
    assert repr(torch.jit.script(function)(**dict(zip("p", args, strict=False)))) == repr(expected)


def test_lists_are_copied():
    @torch.jit.script
    def append(p: list[float]):
        p.append(1.0)
        return p

    given = [1, 2]
    assert append(given) == [1.0, 2.0, 1.0]
    assert given == [1, 2]


def test_scripted_module():
    class Scale(nn.Module):
        def forward(self, x, p: float = 2, *, q: float = 1):
            return x * p * q

    scripted = torch.jit.script(Scale())
    x = torch.tensor([1])
    assert scripted(x).dtype == torch.float32
    assert scripted(x, 3).tolist() == [3.0]
    assert scripted(x, p=1, q=2).dtype == torch.float32
    assert Scale()(x).dtype == torch.int64


def test_what_is_not_annotated_is_left_as_it_is():
    assert torch.jit.script(lambda p: p)(1) == 1
    assert torch.jit.script(math.floor)(2.5) == 2


def test_traced_functions_take_numbers_as_they_are():
    def scale(x, p: float = 1):
        return x * p

    assert torch.jit.trace(scale, torch.tensor([1]))(torch.tensor([2])).dtype == torch.int64
