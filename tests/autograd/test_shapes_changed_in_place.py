"""Shapes that change in place: of views by operators, and of leaves by `.data`."""

from __future__ import annotations

import warnings

import pytest

from tests.autograd.differential import attempt, same

VIEWS = {"none": lambda b: b, "a part": lambda b: b[:1], "another shape": lambda b: b.view(3, 2), "t": lambda b: b.t()}
RESHAPED = {"unsqueeze_": (0,), "squeeze_": (), "squeeze_ one": (0,), "t_": (), "transpose_": (0, 1),
            "as_strided_": ((2,), (1,))}


@pytest.mark.parametrize("then", ["nothing", "it is written to", "its base is written to"])
@pytest.mark.parametrize("how", RESHAPED)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_whose_shape_changes_in_place_keeps_its_history(view, how, then):
    def program(torch):
        x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
        base = x * 1
        v = VIEWS[view](base)
        getattr(v, how.partition(" ")[0])(*RESHAPED[how])
        if then != "nothing":
            (v if then == "it is written to" else base).mul_(2)
        node = v.grad_fn
        grad, = torch.autograd.grad((v * v).sum(), x, retain_graph=True)
        return node, v._version, grad.tolist(), base.grad_fn.name()

    same(program)


@pytest.mark.parametrize("had_grad", [False, True])
@pytest.mark.parametrize("shape", [(3,), (6,), (3, 2), (2, 1), (1, 2, 3), ()])
def test_gradients_of_a_leaf_with_other_data(shape, had_grad):
    def program(torch):
        x = torch.ones(2, 3, requires_grad=True)
        if had_grad:
            x.grad = torch.ones(2, 3)
        y = (x.sum() if shape == () else x * 2).sum()
        x.data = torch.ones(shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's advice on layouts
            return attempt(y.backward), x.grad

    same(program)
