"""One program run by flambeau and by PyTorch: results, gradients, warnings and errors are compared."""

from __future__ import annotations

import re
import textwrap
import warnings
from typing import Any

import numpy as np


def _plain(value: Any, torch: Any) -> Any:
    """A value as arrays and built-in types; a tensor with its dtype and the name of its node."""
    if isinstance(value, torch.Tensor):
        node = "" if value.grad_fn is None else re.sub(r" object at .*", "", repr(value.grad_fn))
        return (str(value.dtype).rpartition(".")[2], node, value.detach().to(torch.float32).numpy()
                if str(value.dtype).endswith("bfloat16") else value.detach().numpy())
    if isinstance(value, dict):
        return {key: _plain(each, torch) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, torch) for each in value]
    if value is None or isinstance(value, bool | int | float | complex):
        return value
    return str(value).replace("flambeau.", "torch.")


def _outcome(torch: Any, program: str) -> tuple[Any, list[str]]:
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(re.sub(r"\bfrom torch\b", f"from {torch.__name__}", textwrap.dedent(program)), names)
            result = _plain(names["result"], torch)
        except Exception as error:
            result = f"{type(error).__name__}: {error}".replace("flambeau.", "torch.")
    caught = [each for each in caught if "Sparse invariant checks" not in str(each.message)]  # once per process
    said = [f"{each.category.__name__}: {each.message}".replace("flambeau.", "torch.") for each in caught]
    return result, [text.partition(" (Triggered internally")[0] for text in said]


def _compare(actual: Any, expected: Any, close: float, where: str) -> None:
    if isinstance(expected, np.ndarray):
        assert actual.shape == expected.shape, where
        np.testing.assert_allclose(actual, expected, rtol=close, atol=close, err_msg=where)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected), where
        for key, value in expected.items():
            _compare(actual[key], value, close, f"{where}[{key!r}]")
    elif isinstance(expected, list | tuple):
        assert isinstance(actual, list | tuple), (where, actual, expected)
        assert len(actual) == len(expected), (where, actual, expected)
        for i, value in enumerate(expected):
            _compare(actual[i], value, close, f"{where}[{i}]")
    elif isinstance(expected, float):
        np.testing.assert_allclose(actual, expected, rtol=close, atol=close, err_msg=where)
    else:
        assert actual == expected, (where, actual, expected)


def compare(program: str, close: float = 1e-5) -> None:
    """Run `program`, which sets `result`, with both; `torch`, `nn`, `F` are defined."""
    import torch

    import flambeau

    (actual, actual_warnings), (expected, expected_warnings) = _outcome(flambeau, program), _outcome(torch, program)
    _compare(actual, expected, close, "result")
    assert actual_warnings == expected_warnings
