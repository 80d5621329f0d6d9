"""Gather and scatter kernels against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
SHAPES = [(37,), (6, 40), (40, 6), (3, 20, 7), (5, 0), (0, 5), (1, 9), (9, 1)]


def array(shape, dtype=torch.float32, seed=0):
    random = np.random.default_rng(seed)
    if dtype.is_floating_point:
        return torch.tensor(random.standard_normal(shape)).to(dtype)
    return torch.tensor(random.integers(0, 100, shape)).to(dtype)


def places(size, shape, seed=1, low=0, dtype=torch.int64):
    return torch.tensor(np.random.default_rng(seed).integers(low, max(size, 1), shape)).to(dtype)


def same(both):
    a, b = both
    assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
    np.testing.assert_array_equal(b.double().numpy(), a.double().numpy())


def layouts(x):
    yield x
    yield x.transpose(0, -1).clone().transpose(0, -1)
    if x.numel():
        yield x[:1].expand(x.shape)


def indices(size, shape):
    """Indices in several layouts."""
    for dtype in (torch.int64, torch.int32):
        yield places(size, shape, dtype=dtype)
    index = places(size, shape)
    yield index.transpose(0, -1).clone().transpose(0, -1)
    if index.numel():
        yield index[:1].expand(shape)


def smaller(shape, dim):
    return tuple(n if d == dim else max(n - 1, 0) for d, n in enumerate(shape))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.uint8, torch.bool,
                                   torch.complex64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gather_and_scatter(impls, dtype, shape):
    def make(shape, seed=0):
        if dtype is torch.complex64:
            return torch.complex(array(shape, seed=seed), array(shape, seed=seed + 1))
        return array(shape, dtype, seed)

    def check(function, *arguments):
        a, b = impls.both(lambda: function(*arguments))
        if dtype is torch.complex64:
            a, b = torch.view_as_real(a), torch.view_as_real(b)
        same((a, b))

    for x in layouts(make(shape)):
        for dim, size in enumerate(shape):
            for part in (shape, smaller(shape, dim)):
                if not size and 0 not in part:
                    continue
                for index in indices(size, part):
                    check(torch.gather, x, dim, index)
                    for source in layouts(make(shape, 5)):
                        check(torch.scatter_add, x, dim, index, source)
                        check(torch.scatter, x, dim, index, source)
                    check(torch.scatter, x, dim, index, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.float16, torch.bool], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows(impls, dtype, shape):
    def check(function, *arguments):
        same(impls.both(lambda: function(*arguments)))

    for x in layouts(array(shape, dtype)):
        for dim, size in enumerate(shape):
            if not size:
                continue
            index = places(size, (11,))
            source = array((*shape[:dim], 11, *shape[dim + 1:]), dtype, 7)
            for each in (index, index.int(), index.repeat(2)[::2]):
                check(torch.index_select, x, dim, each)
                check(torch.index_add, x, dim, each, source)
            along = index.view((1,) * dim + (-1,) + (1,) * (len(shape) - dim - 1))
            check(torch.take_along_dim, x, along, dim)
            lead = (slice(None),) * dim
            for each in (places(size, (11,), low=-size), places(size, (3, 4), low=-size), places(size, ()),
                         places(size, (4, 3)).t(), places(size, (0,))):
                check(x.__getitem__, (*lead, each))


def test_gradients(impls):
    x, index = array((6, 20), torch.float64), places(20, (6, 9))
    rows, table = places(6, (3, 4), low=-6), array((30, 8))

    def gradient(f, x, weighted):
        x = x.clone().requires_grad_()
        y = f(x)
        (y * array(y.shape, x.dtype, 9) if weighted else y).sum().backward()
        return x.grad

    for f in (lambda x: torch.gather(x, 1, index), lambda x: x[rows], lambda x: x[:, rows.abs()],
              lambda x: torch.index_select(x, 1, index[0]), lambda x: torch.cummax(x, 1)[0],
              lambda x: torch.sort(x, 1)[0], lambda x: torch.topk(x, 3, 0)[0], lambda x: torch.max(x, 1)[0],
              lambda x: torch.max(x, 1, keepdim=True)[0], lambda x: torch.median(x, 0)[0],
              lambda x: torch.scatter_add(torch.zeros(6, 20, dtype=x.dtype), 1, index, x[:, :9])):
        for weighted in (False, True):
            same(impls.both(lambda f=f, w=weighted: gradient(f, x, w)))
    for options in ({}, {"padding_idx": 2}, {"scale_grad_by_freq": True}):
        for weighted in (False, True):
            same(impls.both(lambda o=options, w=weighted: gradient(
                lambda t: F.embedding(rows.abs(), t, **o), table, w)))


@pytest.mark.parametrize("wrong", [20, -1])
def test_out_of_range_indices_raise_the_same_errors(impls, wrong):
    x = array((6, 20))
    index = places(20, (6, 20))
    index[3, 4] = wrong

    def said(f):
        with pytest.raises((RuntimeError, IndexError)) as caught:
            f(index)
        return type(caught.value), str(caught.value)

    for f in (lambda i: torch.gather(x, 1, i), lambda i: torch.scatter(x, 1, i, x),
              lambda i: torch.scatter_add(x, 1, i, x), lambda i: torch.index_select(x, 1, i[3]),
              lambda i: torch.index_add(x, 1, i[3], x), lambda i: F.embedding(i, array((20, 4))),
              lambda i: x[:, i - 25], lambda i: x[i + 7]):
        expected, found = impls.both(lambda f=f: said(f))
        assert expected == found


def test_the_input_is_not_modified(impls):
    x = array((6, 20))
    before = x.clone()
    impls.kernels(lambda: (torch.scatter_add(x, 1, places(20, (6, 20)), x), torch.index_add(x, 0, places(6, (6,)), x)))
    same((before, x))
