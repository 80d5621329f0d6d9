"""`allow_mutation_on_saved_tensors`: backward uses the values that were saved."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.autograd.graph import allow_mutation_on_saved_tensors


def start():
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    return a, a.clone()


def write_through_a_view(b):
    b[1:].mul_(0)


def write_by_index(b):
    b[0] = 7


def write_as_out(b):
    with torch.no_grad():
        torch.add(torch.ones(3), 1, out=b)


def write_random_numbers(b):
    b.normal_()


def write_by_mask(b):
    b[b > 1] = 0


def write_over_detached(b):
    b.detach().zero_()


def write_data(b):
    b.data.fill_(3)


@pytest.mark.parametrize("write", [
    lambda b: b.sin_(), lambda b: b.mul_(2), lambda b: b.zero_(), lambda b: b.copy_(torch.zeros(3)),
    lambda b: b.fill_(1), write_through_a_view, write_by_index, write_as_out, write_random_numbers, write_by_mask,
    write_over_detached, write_data, lambda b: b.view(-1).t().exp_(), lambda b: b.masked_fill_(b > 0, 1),
    lambda b: b.index_add_(0, torch.tensor([0]), torch.ones(1))])
def test_backward_sees_what_was_saved(write):
    with allow_mutation_on_saved_tensors() as context:
        a, b = start()
        out = (b ** 2).sum()
        write(b)
        assert len(context.cloned) == 1
        out.backward()
        assert len(context.cloned) == 0
    assert a.grad.tolist() == [2.0, 4.0, 6.0]


def test_without_it_a_write_is_an_error():
    _, b = start()
    out = (b ** 2).sum()
    b.sin_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_a_view_is_saved_and_its_base_written():
    with allow_mutation_on_saved_tensors():
        a, b = start()
        out = (b[:2] ** 2).sum()
        b.mul_(5)
        out.backward()
    assert a.grad.tolist() == [2.0, 4.0, 0.0]


def test_copies_are_made_once_for_each_version():
    with allow_mutation_on_saved_tensors() as context:
        _, b = start()
        one, two = b ** 2, b ** 2
        b.sin_()
        assert len(context.cloned) == 1
        three = b ** 2
        b.cos_()
        assert len(context.cloned) == 2
        del one, two
        assert len(context.cloned) == 1
        del three
        assert len(context.cloned) == 0


def test_freed_tensors_are_not_copied():
    with allow_mutation_on_saved_tensors() as context:
        _, b = start()
        out = (b ** 2).sum()
        out.backward()
        b.data.zero_()
        assert len(context.cloned) == 0
        out = (b ** 2).sum()
        with torch.no_grad():
            b.zero_()
        assert len(context.cloned) == 1
        del out
        assert len(context.cloned) == 0


def test_twice():
    with allow_mutation_on_saved_tensors():
        a, b = start()
        out = (b ** 3).sum()
        b.zero_()
        g, = torch.autograd.grad(out, a, create_graph=True)
        again, = torch.autograd.grad(g.sum(), a)
    assert g.tolist() == [3.0, 12.0, 27.0]
    assert again.tolist() == [6.0, 12.0, 18.0]


def test_an_optimizer_steps_between_forward_and_backward():
    with allow_mutation_on_saved_tensors():
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        out = (w ** 2).sum()
        w.grad = torch.ones(2)
        torch.optim.SGD([w], lr=1.0).step()
        w.grad = None
        out.backward()
    assert w.tolist() == [1.0, 2.0]
    assert w.grad.tolist() == [4.0, 6.0]


def test_only_inside_its_own_block():
    message = "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
    with allow_mutation_on_saved_tensors():
        _, b = start()
        out = (b ** 2).sum()
    with pytest.raises(AssertionError, match=message):
        out.backward()
    with allow_mutation_on_saved_tensors() as context:
        with pytest.raises(AssertionError, match=message):
            out.backward()
        _, b = start()
        out = (b ** 2).sum()
        context.clear()
        with pytest.raises(AssertionError, match=message):
            out.backward()


def test_blocks_do_not_nest():
    with allow_mutation_on_saved_tensors(), pytest.raises(RuntimeError, match="contexts cannot be nested"), \
            allow_mutation_on_saved_tensors():
        pass
    with allow_mutation_on_saved_tensors():
        pass
