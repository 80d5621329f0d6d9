"""Gradients of few elements by generated code, and recorded calls by templates of nodes: bits, graphs and errors as
before kernels are loaded."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled import enable_kernels, few_positions
from flambeau.backends.compiled.thresholds import SMALL_KERNELS

pytestmark = pytest.mark.skipif(not codegen.available(), reason="no generated code")


@pytest.fixture(autouse=True)
def _kernels():
    enable_kernels()


def _random(*shape, seed=0, dtype=torch.float32):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def _integers(most, *shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, most, shape))


ROWS, COLUMNS = _integers(5, 3), _integers(6, 3, seed=1)
MASK = torch.tensor([True, False, True, True, False])
INDEXING = {
    "gather": lambda x: x.gather(1, _integers(6, 5, 4)), "gather(0)": lambda x: x.gather(0, _integers(5, 4, 6)),
    "fewer rows": lambda x: x.gather(1, _integers(6, 2, 9)),
    "take_along_dim": lambda x: torch.take_along_dim(x, _integers(6, 5, 6), 1),
    "rows": lambda x: x[ROWS], "columns": lambda x: x[:, COLUMNS], "elements": lambda x: x[ROWS, COLUMNS],
    "a matrix of rows": lambda x: x[_integers(5, 2, 3)], "negative rows": lambda x: x[ROWS - 5],
    "rows by mask": lambda x: x[MASK], "elements by mask": lambda x: x[_integers(2, 5, 6) == 0],
    "index_select": lambda x: x.index_select(1, COLUMNS), "index_select(0)": lambda x: x.index_select(0, ROWS),
    "scatter": lambda x: x.scatter(1, _integers(6, 5, 3), 0.5),
    "scatter_add": lambda x: x.scatter_add(1, _integers(6, 5, 6), x * 2),
    "index_add": lambda x: x.index_add(0, ROWS, x[:3]), "index_fill": lambda x: x.index_fill(1, COLUMNS, 2.0),
    "embedding": lambda x: torch.nn.functional.embedding(_integers(5, 2, 3), x),
    "sort": lambda x: x.sort(1)[0], "sort(0)": lambda x: x.sort(0, descending=True)[0], "topk": lambda x: x.topk(3)[0],
    "cummax": lambda x: x.cummax(1)[0], "cummin": lambda x: x.cummin(0)[0], "max": lambda x: x.max(1)[0],
    "min, keepdim": lambda x: x.min(0, keepdim=True)[0], "kthvalue": lambda x: x.kthvalue(2, 0)[0],
    "median": lambda x: x.median(1)[0], "max of a vector": lambda x: x.flatten().max(0)[0],
    "a permuted gradient": lambda x: x[ROWS].t() * _random(6, 3),
}


def _gradient(call, x):
    x = x.clone().requires_grad_()
    y = call(x)
    y.backward(_random(*y.shape, seed=3, dtype=x.dtype))
    return x.grad


def _without_kernels(call, x):
    SMALL_KERNELS[0] = False
    try:
        return _gradient(call, x)
    finally:
        SMALL_KERNELS[0] = True


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", INDEXING)
def test_gradients_of_indexing(name, dtype):
    for seed in range(3):
        x = _random(5, 6, seed=seed, dtype=dtype)
        found, expected = _gradient(INDEXING[name], x), _without_kernels(INDEXING[name], x)
        assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
        assert found.numpy().tobytes() == expected.numpy().tobytes()


def test_equal_positions_add_in_the_order_of_the_source():
    few = few_positions()
    source = np.array([[1e8], [1.0], [-1e8], [1.0]], np.float32)
    index = np.array([1, 1, 1, 1])
    assert few.add_slices(index, source, 0, (3, 1)).tolist() == [[0], [1], [0]]
    assert few.put_along(index.reshape(4, 1), source, 0, (3, 1), few.ADD).tolist() == [[0], [1], [0]]


def test_what_is_out_of_range_is_left_to_the_callers():
    few = few_positions()
    x = np.ones((3, 2), np.float32)
    for index in ([3, 0], [-1, 0]):
        given = np.array(index)
        assert few.add_slices(given, np.ones((2, 2), np.float32), 0, (3, 2)) is None
        assert few.take_slices(x, given, 0) is None
        assert few.take_along(x, given.reshape(2, 1), 0) is None
        assert few.add_at_indices([given, given], np.ones(2, np.float32), (3, 2)) is None
    assert few.clear_slices(x, np.array([-1]), 0).tolist() == [[1, 1], [1, 1], [0, 0]]
    assert few.clear_slices(x, np.array([-4]), 0) is None
    assert few.take_along(x.astype(np.float16), np.zeros((1, 1), np.int64), 0) is None
    assert few.take_along(np.float32(1.0), np.zeros((), np.int64), 0) is None


VIEWS = {"narrow": lambda x: x.narrow(1, 1, 2), "diagonal": lambda x: x.diagonal(), "flatten": lambda x: x.flatten(),
         "expand": lambda x: x.expand(2, -1, -1), "chunk": lambda x: x.chunk(2)[1],
         "split": lambda x: x.split(3, 1)[0], "unbind": lambda x: x.unbind(1)[2], "unfold": lambda x: x.unfold(1, 3, 2)}


@pytest.mark.parametrize(("name", "leaf"), [*[(name, True) for name in VIEWS], ("chunk", False), ("unbind", False)])
def test_recorded_views(name, leaf):
    def did():
        x = _random(4, 6).requires_grad_()
        source = x if leaf else x * 2
        y = VIEWS[name](source)
        node = y.grad_fn
        edges = [(each.name(), number) for each, number in node.next_functions]
        saved = {each: getattr(node, each) for each in dir(node) if each.startswith("_saved")}
        (y * _random(*y.shape)).sum().backward()
        kept = type(node).__name__, edges, saved, y._base is source, y.output_nr, y.shape, y.stride(), y._version
        with pytest.raises(RuntimeError) as error:
            y.add_(1)
        with torch.no_grad():
            hidden = VIEWS[name](source)
        return kept, x.grad.tolist(), str(error.value) if leaf else "", hidden.requires_grad, hidden.grad_fn is None

    expected = did()
    for _ in range(6):
        assert did() == expected


def test_recorded_views_see_writes_of_their_base():
    for _ in range(6):
        x = _random(4, 6).requires_grad_()
        base = x * 1
        view = base.narrow(1, 1, 2)
        base.mul_(3)
        assert type(view.grad_fn).__name__ == "AsStridedBackward0"
        view.sum().backward()
        assert x.grad.sum() == 24
        y = base.detach().narrow(1, 1, 2)
        assert not y.requires_grad


def test_views_of_what_records_nothing_are_no_templates():
    for size in (5, 7):
        x = torch.ones(size, 3, requires_grad=True)
        with torch.no_grad():
            hidden = x[:]
        for _ in range(3):
            assert hidden.expand(4, size, 3).grad_fn.next_functions == ((None, 0),)
        for _ in range(3):
            y = torch.ones(size, 3, requires_grad=True)
            y[:].expand(4, size, 3).sum().backward()
            assert y.grad.sum() == 12 * size
            assert hidden.expand(4, size, 3).grad_fn.next_functions == ((None, 0),)


JOINS = {"cat": lambda *x: torch.cat(x), "cat(1)": lambda *x: torch.cat(x, 1),
         "stack": lambda *x: torch.stack(x, dim=1)}


@pytest.mark.parametrize("name", JOINS)
def test_recorded_joins(name):
    def did(first, second, third):
        x, y = (_random(3, 4, seed=i).requires_grad_(needs) for i, needs in enumerate((first, second)))
        z = x if third else _random(3, 4, seed=5)
        joined = JOINS[name](x, y, z)
        node = joined.grad_fn
        edges = [None if each is None else each.name() for each, _ in node.next_functions]
        parts = JOINS[name](*(x * 2).unbind(1)[:2], y[:, 0]) if name == "cat" else None
        loss = (joined * _random(*joined.shape)).sum() + (0 if parts is None else parts.square().sum())
        loss.backward()
        return type(node).__name__, edges, joined.tolist(), joined.stride(), [
            None if each.grad is None else each.grad.tolist() for each in (x, y, z)]

    for flags in ((True, True, False), (True, False, False), (True, True, True), (False, True, False)):
        SMALL_KERNELS[0] = False
        expected = did(*flags)
        SMALL_KERNELS[0] = True
        for _ in range(4):
            assert did(*flags) == expected


def test_joins_leave_out_empty_vectors_again():
    nothing = torch.tensor([])  # what caches of keys and values start with
    for _ in range(4):
        x = torch.ones(2, 3, requires_grad=True)
        joined = torch.cat([nothing, x], -2)
        joined.sum().backward()
        assert joined.shape == (2, 3)
        assert torch.equal(x.grad, torch.ones(2, 3))


def test_joins_of_shapes_that_do_not_fit_raise_again():
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)
    for _ in range(4):
        torch.cat([x, y])
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        torch.cat([x, torch.ones(2, 4)])


def test_several_outputs_of_which_some_get_a_gradient():
    for _ in range(3):
        x = _random(4, 6).requires_grad_()
        first, _, third = x.split(2, 1)
        (first.sum() + third.square().sum()).backward()
        expected = torch.cat([torch.ones(4, 2), torch.zeros(4, 2), 2 * x.detach()[:, 4:]], 1)
        assert torch.equal(x.grad, expected)
        assert torch.equal(torch.autograd.grad(x.sort(1)[0].sum(), x)[0], torch.ones(4, 6))
        values, vectors = torch.linalg.eigh(x[:, :4] @ x[:, :4].T)
        assert torch.autograd.grad(values.sum() + vectors.square().sum(), x)[0].isfinite().all()
