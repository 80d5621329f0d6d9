"""Differential tests: runs a program on flambeau and on PyTorch and compares results, warnings and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau

try:
    import torch as pytorch
except ImportError:
    pytorch = None


#: warnings of PyTorch alone, and those that it gives once in a process
_ONCE = ("torch.jit", "Using backward() with create_graph=True", "index_reduce() is in beta",
         "A window was not provided", "stft with return_complex=False")


def said(text: object) -> str:
    """A message without intended differences: the package's name and the location in PyTorch's C++ code."""
    return str(text).replace("flambeau.", "torch.").partition(" (Triggered internally")[0]


def plain(value: Any) -> Any:
    """A result that can be compared: tensors as dtype, strides and values, nodes by name."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if hasattr(value, "next_functions"):
        return graph(value)
    if hasattr(value, "untyped_storage"):
        return [said(value.dtype), tuple(value.stride()), value.requires_grad, plain_numbers(value.detach().tolist())]
    if isinstance(value, (str, int, float, complex, bool, type(None))):
        return said(value) if isinstance(value, str) else value
    return said(repr(value))


def plain_numbers(values: Any) -> Any:
    """Nested numbers, to six digits; NaN as text, because NaN != NaN."""
    if isinstance(values, list):
        return [plain_numbers(v) for v in values]
    if isinstance(values, float):
        return float(f"{values:.6g}") if values == values else "nan"
    return values


def graph(node: Any) -> str:
    """A node and those it points to, by their names."""
    if node is None:
        return "None"
    return f"{node.name()}({', '.join(graph(next_node) for next_node, _ in node.next_functions)})"


def attempt(step: Callable[[], Any]) -> Any:
    """The result of a step, or its exception as text."""
    try:
        return step()
    except Exception as error:
        return f"{type(error).__name__}: {said(error)}"


def outcome(program: Callable[[Any], Any], torch: Any) -> tuple[Any, list[str]]:
    """A program's result and warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = plain(attempt(lambda: program(torch)))
    return result, [f"{w.category.__name__}: {said(w.message)}" for w in caught
                    if not any(text in str(w.message) for text in _ONCE)]


def same(program: Callable[[Any], Any]) -> Any:
    """Run a program on both and compare; return flambeau's result for further assertions."""
    if pytorch is None:
        pytest.skip("PyTorch is not installed")
    mine, theirs = outcome(program, flambeau), outcome(program, pytorch)
    assert mine == theirs, f"\n  flambeau {mine}\n  PyTorch  {theirs}"
    return mine[0]


def function(torch: Any, forward: Any, backward: Any = None, **more: Any) -> Any:
    """`apply` of a Function with these static methods."""
    parts = {"forward": forward, "backward": backward or (lambda ctx, *gs: gs[0]), **more}
    return type("Made", (torch.autograd.Function,), {k: staticmethod(f) for k, f in parts.items()}).apply
