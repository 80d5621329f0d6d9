"""`torch._export.utils`: what the inputs of a graph stand for."""

from __future__ import annotations

import importlib

import pytest

import flambeau


@pytest.mark.parity
def test_inputs_are_those_of_pytorch():
    torch = pytest.importorskip("torch")

    def run(module):
        utils = importlib.import_module(f"{module.__name__}._export.utils" if module is torch else
                                        "flambeau.export.utils")

        class Model(module.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = module.nn.Parameter(module.full((2,), 2.0))
                self.register_buffer("kept", module.full((2,), 3.0))
                self.register_buffer("left", module.full((2,), 4.0), persistent=False)
                self.constant = module.full((2,), 5.0)

            def forward(self, x):
                return x * self.weight + self.kept + self.left + self.constant

        program = module.export.export(Model(), (module.ones(2),))
        found = []
        for node in program.graph.nodes:
            for kind in ("param", "buffer", "lifted_tensor_constant"):
                value = getattr(utils, f"get_{kind}")(program, node)
                if getattr(utils, f"is_{kind}")(program, node):
                    found.append((kind, value.tolist()))
                else:
                    assert value is None
        return sorted(found)

    assert run(flambeau) == run(torch)
