"""Attributes of functions that are compiled or that `compiler.disable` excludes, by which packages recognise them."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

NAMES = ("_torchdynamo_disable", "_torchdynamo_disable_msg", "_torchdynamo_disable_recursive",
         "_torchdynamo_orig_callable")


def function(x: Any) -> Any:
    return x


@pytest.mark.parametrize("options", [{}, {"recursive": False}, {"reason": "logs"},
                                     {"recursive": False, "reason": "logs"}])
def test_attributes(options: dict[str, Any]) -> None:
    for decorate in (lambda t: t.compiler.disable(function, **options),
                     lambda t: t.compiler.disable(**options)(function)):
        ours, theirs = decorate(flambeau), decorate(torch)
        if options.get("recursive", True):
            assert [getattr(ours, name) for name in NAMES] == [getattr(theirs, name) for name in NAMES]
        assert ours._torchdynamo_disable is theirs._torchdynamo_disable is True
        assert ours.__name__ == theirs.__name__ == "function"


def test_compilation_is_supported() -> None:
    from torch._dynamo.eval_frame import is_dynamo_supported

    assert flambeau._dynamo.eval_frame.is_dynamo_supported() == is_dynamo_supported()


class Affine(flambeau.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = flambeau.nn.Parameter(flambeau.tensor([2.0, 3.0]))

    def forward(self, x: Any) -> Any:
        return (x * self.weight + 1).tanh()

    def training_step(self, x: Any) -> Any:
        return self(x).square().sum()


def test_steps_compiled_with_the_options_of_a_module() -> None:
    module = flambeau.compile(Affine(), fullgraph=True)
    step = module.dynamo_ctx(module._orig_mod.training_step)
    assert step.fullgraph
    assert any(name.startswith("_torchdynamo") for name in dir(step))
    assert step._torchdynamo_orig_callable == module._orig_mod.training_step
    for scale in (1.0, 2.0, 3.0):
        x = flambeau.tensor([scale, -scale])
        assert step(x).item() == pytest.approx(Affine().training_step(x).item(), rel=1e-6)
