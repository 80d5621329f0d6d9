"""Attributes that cannot be deleted or set, hooks assigned as a dictionary, and deprecated attributes."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from tests.autograd.differential import same


@pytest.mark.parametrize("name", ["data", "requires_grad", "_grad_fn", "_backward_hooks", "grad", "volatile"])
def test_deleting(name):
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        delattr(x, name)

    same(program)


@pytest.mark.parametrize(("name", "value"), [("data", None), ("data", 3), ("_grad_fn", 3), ("requires_grad", 3),
                                             ("requires_grad", None), ("volatile", True), ("_grad_fn", None)])
def test_setting(name, value):
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        setattr(x, name, value)
        return x.requires_grad, x.volatile

    same(program)


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
def test_user_defined_hook_dictionaries(leaf, when):
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        y = x if leaf else x * 2
        if when == "before":
            z = y * 3
        y._backward_hooks = hooks = OrderedDict()
        hooks[0] = lambda g: g * 5
        if when == "after":
            z = y * 3
        z.sum().backward(retain_graph=True)
        first = x.grad.clone()
        y._backward_hooks = None
        z.sum().backward()
        return first, x.grad, y._backward_hooks

    same(program)


def test_to_dense_returns_self():
    def program(torch):
        x = torch.ones(2)
        return x.to_dense() is x

    same(program)


@pytest.mark.parametrize("make", [
    lambda torch: torch.nn.Parameter(torch.ones(2)), lambda torch: torch.nn.Parameter(torch.ones(2, device="meta")),
    lambda torch: torch.nn.Linear(2, 2).to("meta").weight, lambda torch: torch.nn.LayerNorm(2, device="meta").bias,
    lambda torch: torch.ones(2).view(torch.int32), lambda torch: torch.nn.Linear(2, 2).double().weight,
    lambda torch: torch.ones(2, dtype=torch.complex64).conj().resolve_conj(),
])
def test_the_dictionary_holds_what_the_program_sets(make):
    """Packages pass `parameter.__dict__` on as arguments of the class."""
    def program(torch):
        x = make(torch)
        x.note = 3
        return vars(x)

    same(program)
