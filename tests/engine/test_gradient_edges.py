"""Gradient edges as roots and as inputs, from `get_gradient_edge` or constructed."""

from __future__ import annotations

import pytest

from tests.autograd.differential import attempt, same


def edges(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).exp()
    return x, y, torch.autograd.graph.get_gradient_edge(y), torch.autograd.graph.get_gradient_edge(y.sum())


SEEDS = {
    "none": lambda torch: None,
    "fits": lambda torch: torch.ones(2),
    "another shape": lambda torch: torch.ones(3),
    "complex": lambda torch: torch.ones(2, dtype=torch.complex64),
    "double": lambda torch: torch.ones(2, dtype=torch.float64),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("root", [2, 3])
def test_an_edge_is_a_root(root, seed):
    def program(torch):
        found = edges(torch)
        return torch.autograd.grad(found[root], found[0], SEEDS[seed](torch))

    same(program)


def test_a_constructed_edge_is_a_root_with_a_cotangent():
    def program(torch):
        x, y, _, _ = edges(torch)
        edge = torch.autograd.graph.GradientEdge(y.grad_fn, y.output_nr)
        return torch.autograd.grad(edge, x, torch.ones(2)), edge == torch.autograd.graph.get_gradient_edge(y)

    same(program)


def test_a_leafs_edge_and_one_of_several_outputs():
    def program(torch):
        get = torch.autograd.graph.get_gradient_edge
        x = torch.ones(2, 3, requires_grad=True)
        parts = x.unbind()
        torch.autograd.backward(get(parts[1]), torch.ones(3))
        torch.autograd.backward(get(x), torch.ones(2, 3))
        return x.grad, attempt(lambda: torch.autograd.grad(get(x), x)), get(x).node, get(x).output_nr

    same(program)


def test_an_unused_edge_has_no_zeros():
    def program(torch):
        x, y, edge, _ = edges(torch)
        other = torch.autograd.graph.get_gradient_edge(torch.ones(2, requires_grad=True))
        root = (y * y).sum()
        ask = lambda inputs, **how: attempt(lambda: torch.autograd.grad(root, inputs, retain_graph=True, **how))
        return [ask((x, edge), materialize_grads=True), ask((x, other), materialize_grads=True),
                ask((x, other), allow_unused=True), ask((x, other)), ask([]),
                attempt(lambda: torch.autograd.graph.get_gradient_edge(torch.ones(2)))]

    same(program)


def test_a_leaf_with_new_data_is_another_leaf():
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        edge, y = torch.autograd.graph.get_gradient_edge(x), x * 2
        with torch.no_grad():
            x.set_(torch.zeros(2))
        ask = lambda inputs: attempt(lambda: torch.autograd.grad(y.sum(), inputs, torch.tensor(3.0), retain_graph=True))
        return ask(x), [g.tolist() for g in ask(edge)], x._version

    same(program)
