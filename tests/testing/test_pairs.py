"""`torch.testing._comparison.Pair` and what is derived from it: messages and values are PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import flambeau

LIBRARIES = ["flambeau", pytest.param("torch", marks=pytest.mark.parity)]
OPTIONS: list[dict[str, Any]] = [{}, {"check_dtype": True}, {"rtol": 0, "atol": 0.5}, {"rtol": 0.1},
                                 {"equal_nan": True}]


def _values(torch: Any) -> list[tuple[Any, Any]]:
    x = torch.tensor([1.0, 2.0, 3.0])
    return [(None, 1), (None, None), (True, np.bool_(False)), (1, 1.0), (1.0, 1.1), (float("nan"), float("nan")),
            (x, x + 1), (x, x.double()), (x.to_sparse(), (x + 1).to_sparse()), ([1, x], [1, x + 1]),
            ({"a": x}, {"b": x}), ([1], [1, 2]), ("a", "b"), (x, x[:2]), (torch.tensor(1.0), torch.tensor(2.0)),
            (x.to("meta"), x.to("meta")), (object, 3), (np.float32(1), np.float32(2)), (x.int(), x.int() + 1),
            ((1, {"b": x}), [1, {"b": x - 1}])]


def _results(library: str) -> list[Any]:
    torch, module = importlib.import_module(library), importlib.import_module(f"{library}.testing._comparison")
    pairs = (module.NonePair, module.BooleanPair, module.NumberPair, module.TensorLikePair)
    found: list[Any] = []
    for actual, expected in _values(torch):
        for options in OPTIONS:
            try:
                errors = module.not_close_error_metas(actual, expected, pair_types=pairs, **options)
                found.append([(e.type, e.msg, e.id, str(e.to_error()), str(e.to_error("m")),
                               str(e.to_error(lambda text: f"<{text}>"))) for e in errors])
            except (AssertionError, TypeError, ValueError) as error:
                found.append((type(error), str(error)))
    return [str(x).replace("flambeau.", "torch.") for x in found]


@pytest.mark.parity
def test_errors_are_pytorchs() -> None:
    assert _results("flambeau") == _results("torch")


@pytest.mark.parametrize("library", LIBRARIES)
def test_derived_pairs(library: str) -> None:
    torch, module = importlib.import_module(library), importlib.import_module(f"{library}.testing._comparison")

    class ImagePair(module.TensorLikePair):  # type: ignore[name-defined, misc]
        def _process_inputs(self, actual: Any, expected: Any, *, id: Any, allow_subclasses: bool) -> Any:
            if isinstance(actual, str):
                self._inputs_not_supported()
            return super()._process_inputs(torch.tensor(actual), torch.tensor(expected), id=id,
                                           allow_subclasses=allow_subclasses)

        def _compare_values(self, actual: Any, expected: Any) -> None:
            self._compare_regular_values_close(actual, expected, rtol=self.rtol, atol=self.atol, equal_nan=True,
                                               identifier=lambda name: f"Images, {name.lower()}")

    types = (ImagePair, module.ObjectPair)
    assert module.not_close_error_metas([[1.0, 2.0]], [[1.0, 2.0]], pair_types=types, sequence_types=()) == []
    error, = module.not_close_error_metas([1.0, 2.0], [1.0, 4.0], pair_types=types, sequence_types=())
    assert error.msg.startswith("Images, tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n")
    error, = module.not_close_error_metas({"a": "x"}, {"a": "y"}, pair_types=types)
    assert str(error.to_error()) == "x != y\n\nThe failure occurred for item ['a']"


@pytest.mark.parametrize("library", LIBRARIES)
def test_repr_and_unexpected_errors(library: str) -> None:
    torch, module = importlib.import_module(library), importlib.import_module(f"{library}.testing._comparison")
    pair, = module.originate_pairs(1, 2, pair_types=(module.NumberPair,), rtol=0, atol=1)
    assert repr(pair) == ("NumberPair(\n    id=(),\n    actual=1,\n    expected=2,\n    rtol=0,\n    atol=1,\n"
                          "    equal_nan=False,\n    check_dtype=False,\n)")
    assert pair.compare() is None

    class Broken(module.Pair):  # type: ignore[name-defined, misc]
        def compare(self) -> None:
            raise KeyError("k")

    with pytest.raises(RuntimeError, match="Comparing\n\nBroken"):
        module.not_close_error_metas(1, 1, pair_types=(Broken,))
    with pytest.raises(module.ErrorMeta) as error:
        module.get_tolerances(torch.float32, rtol=1.0, atol=None, id=(3,))
    assert str(error.value.to_error()).startswith("Both 'rtol' and 'atol' must be either specified or omitted")
    assert error.value.type is ValueError


def test_the_module_has_what_assert_close_uses() -> None:
    assert flambeau.testing._comparison.assert_close is flambeau.testing.assert_close
