"""Compiled rules: the backward of an elementwise operator on large arrays is one call of a kernel."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.backends.compiled import compiled_operators
from flambeau.engine.rules import compiled_rules
from flambeau.ops.declare import REGISTRY

pytestmark = pytest.mark.skipif(compiled_operators(REGISTRY) is None, reason="no kernels without LLVM")


@pytest.mark.parametrize(("function", "binary"), [(torch.exp, True), (torch.sin, True), (torch.mul, False)])
def test_a_rule_of_one_saved_array_is_called_without_a_list_of_operands(function, binary, monkeypatch):
    for cache in ("_kernels", "_binary_kernels"):
        monkeypatch.setattr(compiled_rules, cache, {})
    x = torch.linspace(-1, 1, 1 << 18).requires_grad_()
    y = torch.linspace(1, 2, 1 << 18).requires_grad_()
    for _ in range(2):
        (function(x) if binary else function(x, y)).backward(torch.ones(1 << 18))
    assert bool(compiled_rules._binary_kernels) is binary
    assert compiled_rules._kernels
