"""`torch.testing._comparison`: tolerances and messages are PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import flambeau
from flambeau.testing import _comparison as ours

pytorch = pytest.importorskip("torch")
theirs = importlib.import_module("torch.testing._comparison")

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32", "bool")


@pytest.mark.parametrize("names", [(a, b) for a in DTYPES for b in DTYPES], ids="-".join)
def test_default_tolerances(names: tuple[str, str]) -> None:
    def results(t: Any, module: Any) -> Any:
        first, second = (getattr(t, name) for name in names)
        inputs = (t.ones(2, dtype=first), second)
        return (module.default_tolerances(*inputs), module.get_tolerances(*inputs, rtol=None, atol=None),
                module.get_tolerances(*inputs, rtol=0.1, atol=0),
                module.default_tolerances(*inputs, dtype_precisions={first: (0.5, 0.25)}),
                module.default_tolerances(*inputs, dtype_precisions={}))

    assert results(flambeau, ours) == results(pytorch, theirs)


def test_inputs_of_default_tolerances_are_tensors_and_dtypes() -> None:
    for module in (ours, theirs):
        with pytest.raises(TypeError, match=r"^Expected a torch.Tensor or a torch.dtype, but got <class 'float'> inst"):
            module.default_tolerances(1.0)


@pytest.mark.parametrize("given", [{"rtol": 0.1, "atol": None}, {"rtol": None, "atol": 0.1}])
def test_one_tolerance_alone_is_refused(given: dict[str, float | None]) -> None:
    refusals: list[Exception] = []
    for t, module in ((flambeau, ours), (pytorch, theirs)):
        with pytest.raises(Exception) as raised:
            module.get_tolerances(t.float32, **given, id=(0, "a"))
        refusal: Any = raised.value
        refusals.append(refusal.to_error())
    assert type(refusals[0]) is type(refusals[1])
    assert str(refusals[0]) == str(refusals[1])


@pytest.mark.parametrize("identifier", [None, "Losses", lambda default: f"{default} of a step"],
                         ids=["default", "a text", "a function"])
@pytest.mark.parametrize("tolerances", [(0.0, 0.0), (0.1, 0.25)], ids=["equal", "close"])
def test_messages(identifier: Any, tolerances: tuple[float, float]) -> None:
    options = dict(zip(("rtol", "atol"), tolerances, strict=True), identifier=identifier)

    def messages(t: Any, module: Any) -> list[str]:
        x, y = t.tensor([[1.0, 2], [3, 4]]), t.tensor([[1.0, 4], [3, 4.5]])
        return [module.make_scalar_mismatch_msg(1.0, 2.0, **options), module.make_scalar_mismatch_msg(3, 0, **options),
                module.make_tensor_mismatch_msg(x, y, x == y, **options)]

    assert messages(flambeau, ours) == messages(pytorch, theirs)
