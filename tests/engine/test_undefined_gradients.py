"""Nodes with undefined gradients: hooks receive None, saved tensors are checked and freed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.autograd.differential import same

HALF = '''
class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * b
    @staticmethod
    def backward(ctx, g):
        return None, g


class Seen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.set_materialize_grads(False)
        return a * 1
    @staticmethod
    def backward(ctx, g):
        say("Seen got", g)
        return g


x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
h = (x * 2).exp()
h.grad_fn.register_hook(lambda inputs, outputs: say("hook", inputs, outputs))
h.grad_fn.next_functions[0][0].register_prehook(lambda outputs: say("prehook", outputs))
y = Half.apply(Seen.apply(h).sin(), w)
'''


@pytest.mark.parametrize("rest", [
    "y.sum().backward(); say(x.grad, w.grad)",
    "y.sum().backward(retain_graph=True); h.sum().backward(); say(x.grad, w.grad)",
    "y.sum().backward()\ntry:\n    h.sum().backward()\nexcept RuntimeError as error:\n    say(str(error)[:60])",
    "h.add_(1)\ntry:\n    y.sum().backward()\nexcept RuntimeError as error:\n    say(str(error)[:60])\nsay(w.grad)",
    "torch.autograd.backward(y.sum(), inputs=[w]); say(w.grad)",
    "(y.sum() + h.sum()).backward(); say(x.grad, w.grad)",
    "say([g if g is None else g.tolist() for g in torch.autograd.grad(y.sum(), [w, x], allow_unused=True)])",
    "a, b = torch.ones(4, requires_grad=True).mul(1).split(2); a.sum().backward(); say(a)",
])
def test_operators_without_gradient_run(rest: str) -> None:
    def program(torch: Any) -> Any:
        told: list[Any] = []
        exec(HALF + rest, {"torch": torch, "say": lambda *values: told.append(values)})
        return told

    assert isinstance(same(program), list)  # and no exception's text


@pytest.mark.parametrize("data", [[2.0, float("inf")], [2.0], [2.0, 2.0]])
@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.parametrize("name", ["std_mean", "var_mean", "aminmax"])
def test_formulas_get_no_zeros_where_zeros_would_become_nan(name: str, output: int, data: list[float]) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(data, requires_grad=True)
        outputs = getattr(torch, name)(x)
        outputs[1 - output].data.fill_(7)
        return [torch.autograd.grad(outputs[output], x, retain_graph=True, create_graph=c)[0].detach()
                for c in (False, True)]

    assert isinstance(same(program), list)
