"""Gradient rules as programs: which operators have them, and that large arrays run them."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.ir.decompositions import gradient_rules
from flambeau.ir.decompositions.composites import ProgramCache

FUNCTIONS = {
    "linalg_vector_norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "_norm_in_dims": lambda x: torch.nn.functional.pairwise_distance(x, torch.zeros(64, 64)),
    "logsumexp": lambda x: x.logsumexp(1),
    "std": lambda x: x.std(1),
}


@pytest.mark.skipif(not codegen.available(), reason="needs llvmlite")
@pytest.mark.parametrize("key", FUNCTIONS)
def test_gradients_of_large_arrays_run_programs(key, monkeypatch):
    assert key in gradient_rules.OPERATORS
    titles = []
    run = ProgramCache.run

    def noting(self, *args):
        titles.append(self.title)
        return run(self, *args)

    torch.ones(64, 64).exp()  # loads kernels
    x = torch.rand(64, 64, requires_grad=True)
    y = FUNCTIONS[key](x)
    monkeypatch.setattr(ProgramCache, "run", noting)
    y.sum().backward()
    assert any(title.startswith("gradient") for title in titles)
    expected, = torch.autograd.grad(FUNCTIONS[key](x).sum(), x, create_graph=True)  # by operators on tensors
    torch.testing.assert_close(x.grad, expected)
