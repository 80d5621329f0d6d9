"""`cond`, `while_loop`, `scan`, `map`, `associative_scan` by their definitions; errors with PyTorch's texts."""

import pytest

import flambeau as torch
from flambeau._higher_order_ops import associative_scan, map, scan


def test_cond_calls_one_branch():
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    for pred in (True, torch.tensor(True), torch.tensor([1])):
        assert torch.equal(torch.cond(pred, lambda x: x.sqrt(), lambda x: x.neg(), (x,)), x.sqrt())
    y = torch.cond(x.sum() > 9, torch.sqrt, torch.neg, [x])
    y.sum().backward()
    assert x.grad.tolist() == [-1, -1]
    assert torch.cond(False, lambda: 1, lambda: 2) == 2


@pytest.mark.parametrize(("arguments", "text"), [
    ((torch.tensor([True, False]), abs, abs), "single-element"), (("a", abs, abs), "bool or tensor, but got a"),
    ((True, 5, abs), "branches to be callable"), ((True, abs, abs, torch.ones(2)), "nested dict/list/tuple"),
    ((True, abs, abs, ({1},)), "tensor leaves")])
def test_errors_of_cond(arguments, text):
    with pytest.raises(RuntimeError, match=text):
        torch.cond(*arguments)


def test_while_loop():
    x = torch.ones(2, requires_grad=True)
    count, y = torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))
    y.sum().backward()
    assert (count.item(), y.tolist(), x.grad.tolist()) == (3, [8, 8], [8, 8])
    for cond_fn, body_fn, carried, text in (
            (lambda i: 5, lambda i: (i,), (torch.tensor(0),), "boolean"),
            (lambda i: i < 2, lambda i: (i, i), (torch.tensor(0),), "same number of outputs"),
            (lambda i: i < 2, lambda i: (i,), torch.tensor(0), "tuple or list"),
            (lambda i: torch.ones(2) > 0, lambda i: (i,), (torch.tensor(0),), "scalar")):
        with pytest.raises(RuntimeError, match=text):
            torch.while_loop(cond_fn, body_fn, carried)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans_are_loops(dim, reverse):
    x = torch.arange(12.0).reshape(3, 4) + 1
    carry, y = scan(lambda c, x: (c + x, c * x), torch.zeros(x.shape[1 - dim]), x, dim=dim, reverse=reverse)
    total, expected = torch.zeros(x.shape[1 - dim]), []
    for at in (reversed if reverse else list)(range(x.shape[dim])):
        expected.append(total * x.select(dim, at))
        total = total + x.select(dim, at)
    assert torch.equal(carry, total)
    assert torch.equal(y, torch.stack(expected[::-1] if reverse else expected, dim))

    found = associative_scan(lambda a, b: a + b, x, dim, reverse=reverse, combine_mode="generic")
    flipped = x.flip(dim) if reverse else x
    sums = flipped.cumsum(dim)
    assert torch.equal(found, sums.flip(dim) if reverse else sums)


def test_scans_over_trees():
    gates, inputs = torch.rand(7), torch.rand(7)

    def combine(first, second):
        return {"a": first["a"] * second["a"], "b": first["b"] * second["a"] + second["b"]}

    found = associative_scan(combine, {"a": gates, "b": inputs}, 0, combine_mode="generic")["b"]
    state, expected = torch.tensor(0.0), []
    for gate, new in zip(gates, inputs, strict=True):
        state = state * gate + new
        expected.append(state)
    torch.testing.assert_close(found, torch.stack(expected))


def test_map_stacks_results():
    out = map(lambda x, y: {"sum": x + y}, torch.arange(6.0).reshape(3, 2), torch.ones(2))
    assert torch.equal(out["sum"], torch.arange(6.0).reshape(3, 2) + 1)
    with pytest.raises(RuntimeError, match="cannot be 0"):
        map(lambda x: x, torch.ones(0, 2))


def test_errors_of_scans():
    with pytest.raises(ValueError, match="CUDA or XPU"):
        associative_scan(torch.add, torch.ones(2), 0)
    with pytest.raises(IndexError, match="-1, 0"):
        associative_scan(torch.add, torch.ones(2), 5, combine_mode="generic")
    with pytest.raises(RuntimeError, match="same length"):
        scan(lambda c, x: (c, c), torch.ones(1), [torch.ones(2), torch.ones(3)])
