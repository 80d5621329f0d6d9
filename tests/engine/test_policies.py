"""Policies, preserved version counters, and changed sequence numbers."""

from __future__ import annotations

import pytest

import flambeau
from tests.autograd.differential import same


def test_multithreading():
    def program(torch):
        ask, use = torch.autograd.is_multithreading_enabled, torch.autograd.set_multithreading_enabled
        seen = [ask()]
        with use(False):
            seen.append(ask())
            use(True)
            seen.append(ask())
        seen.append(ask())
        use(False)
        seen.append(ask())
        use(True)
        return [*seen, ask()]

    same(program)


def test_writes_without_version_update():
    def program(torch):
        x, y = torch.ones(2, requires_grad=True).clone(), torch.ones(2)
        z = x * x
        x.requires_grad
        with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter((x, y)):
            x.mul_(2)
            y.add_(1)
        inside = x._version, y._version
        y.add_(1)
        return inside, y._version, torch.autograd.grad(z.sum(), x)

    same(program)


@pytest.mark.parametrize("hooked", [False, True])
def test_ready_nodes_run_by_sequence_number(hooked):
    def program(torch):
        leaves = [torch.ones(2, requires_grad=True) for _ in range(3)]
        if hooked:  # the other way through the graph
            leaves[0].register_hook(lambda g: None)
        a, b = leaves[0] + leaves[1], leaves[1] + leaves[2]
        c = a + b
        order = []
        for name, x, number in (("a", a, 100), ("b", b, 99), ("c", c, 98)):
            x.grad_fn._set_sequence_nr(number)
            x.register_hook(lambda g, name=name: order.append(name))
        c.sum().backward()
        return order, [x.grad for x in leaves], a.grad_fn._sequence_nr()

    before = flambeau.autograd.graph.Node.renumbered
    try:
        same(program)
    finally:
        flambeau.autograd.graph.Node.renumbered = before
