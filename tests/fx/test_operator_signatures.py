"""Signatures of PyTorch's functions of tensors, and arguments matched to them, compared with PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

#: their signatures for lists of numbers, and of quantized tensors, are TorchScript's
_OF_SCRIPTS = {"as_tensor", "tensor", "einsum", "dequantize", "native_channel_shuffle"}


def signatures(t: Any, path: str) -> Any:
    """The signatures of a function that have a tensor in them."""
    function = t
    for name in path.split("."):
        function = getattr(function, name, None)
    if not callable(function) or isinstance(function, type):
        return None
    schemas = importlib.import_module(f"{t.__name__}.fx.operator_schemas")
    try:
        found = schemas.get_signature_for_torch_op(function)
    except RuntimeError:
        return None
    texts = {str(each).replace("flambeau.", "torch.").replace("Optional[Generator]", "Optional[Any]")
             for each in found or ()}
    return {text for text in texts if "Tensor" in text} or None


@pytest.mark.parametrize("space", ["", "nn.functional.", "linalg.", "fft.", "special."])
def test_signatures(space: str) -> None:
    owner = importlib.import_module(f"torch.{space}".rstrip("."))
    names = [name for name in dir(owner) if not name.startswith(("_", "quantize", "fake_quantize")) and
             name not in _OF_SCRIPTS]
    pairs = {name: (signatures(flambeau, space + name), signatures(pytorch, space + name)) for name in names}
    both = {name: pair for name, pair in pairs.items() if None not in pair}
    assert len(both) > {"": 400, "nn.functional.": 30}.get(space, 10)
    assert [name for name, (found, expected) in both.items() if found != expected] == []


@pytest.mark.parametrize(("name", "args", "kwargs"), [
    ("add", ("x", "x"), {"out": "x"}), ("nn.functional.avg_pool2d", ("x", 2), {}), ("max_pool2d", ("x", 2), {}),
    ("clamp", ("x", 1), {"out": "x"}), ("matmul", ("x", "x"), {"out": "x"}), ("bitwise_and", ("x", "x"), {})])
def test_normalized_arguments(name: str, args: Any, kwargs: Any) -> None:
    found = []
    for t in (flambeau, pytorch):
        function = t
        for part in name.split("."):
            function = getattr(function, part)
        x = t.ones(1, 4, 4, dtype=t.int32)
        given = [x if each == "x" else each for each in args], dict.fromkeys(kwargs, x)
        normalize = importlib.import_module(f"{t.__name__}.fx.operator_schemas").normalize_function
        types = tuple(t.Tensor if each == "x" else int for each in args), dict.fromkeys(kwargs, t.Tensor)
        result = normalize(function, tuple(given[0]), given[1], types[0], types[1], normalize_to_only_use_kwargs=True)
        found.append(result and {key: "x" if value is x else value for key, value in result.kwargs.items()})
    assert found[0] == found[1]
