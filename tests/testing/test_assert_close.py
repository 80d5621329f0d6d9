"""`assert_close` compared with PyTorch: results and error messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau

pytorch = pytest.importorskip("torch")

INF, NAN = math.inf, math.nan

#: functions from a module to a pair
PAIRS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "vectors": lambda t: (t.tensor([1.0, 2, 3]), t.tensor([1.0, 2.5, 4])),
    "scalars": lambda t: (t.tensor(1.0), t.tensor(2.0)),
    "whole scalars": lambda t: (t.tensor(1), t.tensor(2)),
    "whole numbers": lambda t: (t.tensor([1, 2]), t.tensor([1, 3])),
    "expected zero": lambda t: (t.tensor([0.0, 1]), t.tensor([0.0, 0])),
    "actual zero": lambda t: (t.tensor([0.0, 0]), t.tensor([0.0, 1])),
    "booleans": lambda t: (t.tensor([True, False]), t.tensor([True, True])),
    "bytes": lambda t: (t.tensor([1, 200], dtype=t.uint8), t.tensor([1, 100], dtype=t.uint8)),
    "complex": lambda t: (t.tensor([1 + 2j]), t.tensor([1 + 3j])),
    "nan": lambda t: (t.tensor([NAN, 1]), t.tensor([NAN, 1])),
    "nan and a number": lambda t: (t.tensor([NAN, 1]), t.tensor([0.0, 1])),
    "infinities": lambda t: (t.tensor([INF, 1]), t.tensor([-INF, 1])),
    "equal infinities": lambda t: (t.tensor([INF, -INF]), t.tensor([INF, -INF])),
    "a matrix": lambda t: (t.tensor([[1.0, 2], [3, 4]]), t.tensor([[1.0, 2], [3, 5]])),
    "half": lambda t: (t.tensor([1.0, 1], dtype=t.float16), t.tensor([1.0005, 1.1], dtype=t.float16)),
    "bfloat16": lambda t: (t.tensor([1.0, 1], dtype=t.bfloat16), t.tensor([1.01, 1.1], dtype=t.bfloat16)),
    "nearly, float32": lambda t: (t.tensor([1.0]), t.tensor([1.000001])),
    "nearly, float64": lambda t: (t.tensor([1.0], dtype=t.float64), t.tensor([1.000001], dtype=t.float64)),
    "other dtypes": lambda t: (t.tensor([1.0]), t.tensor([1.0], dtype=t.float64)),
    "unsigned and signed": lambda t: (t.tensor([1, 2], dtype=t.uint16), t.tensor([1, 3], dtype=t.int32)),
    "other shapes": lambda t: (t.tensor([1.0]), t.tensor([[1.0]])),
    "other strides": lambda t: (t.ones(2, 3), t.ones(3, 2).T),
    "empty": lambda t: (t.zeros(0, 2), t.zeros(0, 2)),
    "empty of other shapes": lambda t: (t.zeros(0, 2), t.zeros(0, 3)),
    "with a graph": lambda t: (t.tensor([1.0], requires_grad=True), t.tensor([2.0], requires_grad=True)),
    "a parameter": lambda t: (t.nn.Parameter(t.tensor([1.0])), t.tensor([1.0])),
    "large numbers": lambda t: (t.tensor([2**40]), t.tensor([1])),
    "int": lambda t: (1, 2), "float": lambda t: (1.0, 2.0), "nearly": lambda t: (1.0, 1 + 1e-8),
    "int and float": lambda t: (1, 1.0), "python complex": lambda t: (1j, 2j),
    "python nan": lambda t: (NAN, NAN), "python infinity": lambda t: (INF, 1.0), "equal": lambda t: (INF, INF),
    "tiny": lambda t: (0.0, 1e-9), "not quite zero": lambda t: (1e-3, 0.0),
    "bool": lambda t: (True, False), "NumPy's bool": lambda t: (np.bool_(True), True), "bool, int": lambda t: (True, 1),
    "NumPy's float": lambda t: (np.float32(1), 1.5), "NumPy's int": lambda t: (np.int64(1), 2),
    "none": lambda t: (None, None), "none, number": lambda t: (None, 1), "number, none": lambda t: (1, None),
    "strings": lambda t: ("a", "a"), "string, number": lambda t: ("a", 1), "sets": lambda t: (set(), set()),
    "types": lambda t: (float, int), "byte strings": lambda t: (b"ab", b"ac"),
    "lengths": lambda t: ([1, 2], [1]), "list and tuple": lambda t: ([1, 2], (1, 3)),
    "range and list": lambda t: (range(3), [0, 1, 3]),
    "keys": lambda t: ({"a": 1}, {"b": 2}), "in a mapping": lambda t: ({"a": t.ones(1)}, {"a": t.zeros(1)}),
    "deep": lambda t: ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}),
    "second of two": lambda t: ([t.ones(1), t.zeros(1)], [t.ones(1), t.ones(1)]),
    "unordered keys": lambda t: ({1: 1, "a": 2}, {1: 1, "a": 3}),
    "lengths within": lambda t: ((1, (1, 2)), (2, (1,))),
    "arrays": lambda t: (np.array([1.0, 2]), np.array([1.0, 3])),
    "arrays of other dtypes": lambda t: (np.array([1.0], np.float32), np.array([1.0])),
    "tensor and list": lambda t: (t.tensor([1.0]), [1.0]),
    "tensor and array": lambda t: (t.tensor([1.0]), np.array([1.0])),
}

def in_brackets(text: str) -> str:
    return f"<<{text}>>"


OPTIONS: list[dict[str, Any]] = [
    {}, {"rtol": 0, "atol": 0}, {"rtol": 0.1, "atol": 0.1}, {"rtol": 1.0}, {"atol": 1.0}, {"equal_nan": True},
    {"check_dtype": False}, {"check_stride": True}, {"check_device": False, "check_layout": False},
    {"allow_subclasses": False}, {"msg": "mine"}, {"msg": in_brackets}, {"rtol": -1.0, "atol": 0.0}]


def outcome(t: Any, make: Any, **options: Any) -> tuple[str, str]:
    try:
        t.testing.assert_close(*make(t), **options)
    except Exception as error:
        text = str(error)
        if "unexpected exception" in text:  # what the pair was is said in other words
            return type(error).__name__, text[:10]
        return type(error).__name__, text.replace("flambeau.", "torch.")
    return "", ""


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: str({
    key: getattr(value, "__name__", value) for key, value in options.items()}))
@pytest.mark.parametrize("name", PAIRS)
def test_equals_pytorch(name: str, options: dict[str, Any]) -> None:
    assert outcome(flambeau, PAIRS[name], **options) == outcome(pytorch, PAIRS[name], **options)


def test_messages_have_index_and_difference() -> None:
    with pytest.raises(AssertionError) as caught:
        flambeau.testing.assert_close({"a": [flambeau.zeros(2, 2)]}, {"a": [flambeau.tensor([[0.0, 0], [4, 0]])]})
    assert str(caught.value).splitlines() == [
        "Tensor-likes are not close!", "", "Mismatched elements: 1 / 4 (25.0%)",
        "Greatest absolute difference: 4.0 at index (1, 0) (up to 1e-05 allowed)",
        "Greatest relative difference: 1.0 at index (1, 0) (up to 1.3e-06 allowed)", "",
        "The failure occurred for item ['a'][0]"]


def test_structures_are_compared_before_values() -> None:
    with pytest.raises(AssertionError, match="length of the sequences"):
        flambeau.testing.assert_close([1, [1, 2]], [2, [1]], msg="not shown")


def test_internal_errors_are_wrapped() -> None:
    with pytest.raises(RuntimeError, match=r"Comparing\n\nTensorLikePair\(") as caught:
        flambeau.testing.assert_close(flambeau.ones(1), flambeau.zeros(1), rtol=-1.0, atol=0.0)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize("name", ["vectors", "other dtypes", "whole numbers", "nan", "tensor and list", "lengths",
                                  "half", "other shapes"])
@pytest.mark.parametrize("options", [{}, {"rtol": 1.0, "atol": 0.1}, {"rtol": 1.0}, {"equal_nan": False},
                                     {"msg": "mine"}], ids=str)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_assert_allclose(name: str, options: dict[str, Any]) -> None:
    def said(t: Any) -> tuple[str, str]:
        try:
            t.testing.assert_allclose(*PAIRS[name](t), **options)
        except Exception as error:
            return type(error).__name__, str(error).replace("flambeau.", "torch.")
        return "", ""

    assert said(flambeau) == said(pytorch)


def test_assert_allclose_warns() -> None:
    with pytest.warns(FutureWarning, match=r"`torch.testing.assert_allclose\(\)` is deprecated since 1.12"):
        flambeau.testing.assert_allclose([1.0], [1.0])


def test_under_the_alias() -> None:
    import subprocess
    import sys

    code = ("import flambeau.alias; flambeau.alias.install(); from torch.testing import assert_close, make_tensor; "
            "import torch; torch.testing.assert_close(torch.ones(2), torch.ones(2)); print(assert_close.__module__)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "flambeau.testing.close"
