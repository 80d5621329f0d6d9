"""Products of sparse and dense matrices: kernels, and the operators that use them."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.compiled.families import sparse
from flambeau.kernels import threads

SHAPES = [(5, 7, 11, 3), (100, 50, 2000, 1), (1, 9, 30, 37), (300, 20, 100, 130), (400, 3, 10, 2), (3, 4, 0, 64),
          (50, 50, 800, 2)]


def elements(rows, columns, count, index="int64", dtype="float32"):
    """Compressed rows, rows, columns and values, sorted by row; many rows are empty."""
    rng = np.random.default_rng(rows + count)
    listed = np.sort(rng.integers(0, rows, count) // 2 * 2 % rows).astype(index)
    starts = np.zeros(rows + 1, index)
    np.cumsum(np.bincount(listed, minlength=rows), out=starts[1:])
    return starts, listed, rng.integers(0, columns, count).astype(index), rng.standard_normal(count).astype(dtype)


def normal(*shape, dtype="float32"):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("index", "dtype"), [("int32", "float64"), ("int64", "float32")])
@pytest.mark.parametrize(("rows", "columns", "count", "width"), SHAPES)
def test_products_equal_those_of_numpy(rows, columns, count, width, index, dtype):
    starts, listed, inner, values = elements(rows, columns, count, index, dtype)
    dense, left = normal(columns, width, dtype=dtype), normal(rows, width, dtype=dtype)
    want, transposed = np.zeros((rows, width), dtype), np.zeros((columns, width), dtype)
    np.add.at(want, listed, values[:, None] * dense[inner])
    np.add.at(transposed, inner, values[:, None] * left[listed])
    for outer, compressed in ((starts, True), (listed, False)):
        out = sparse.gather(outer, inner, values, dense, (rows, columns), compressed)
        np.testing.assert_array_equal(out, want)
        out = sparse.scatter(outer, inner, values, left, (rows, columns), compressed)
        np.testing.assert_array_equal(out, transposed)
        out = sparse.sample(outer, inner, left, dense.T, compressed)
        np.testing.assert_allclose(out, (left[listed] * dense[inner]).sum(1), 1e-4, 1e-5)


def test_strided_operands_and_vectors():
    starts, listed, inner, values = elements(30, 20, 200)
    dense = normal(40, 18)[::2, ::-1]
    want = np.zeros((30, 18), "float32")
    np.add.at(want, listed, values[:, None] * dense[inner])
    np.testing.assert_array_equal(sparse.gather(starts, inner, values, dense, (30, 20), True), want)
    np.testing.assert_array_equal(sparse.gather(starts, inner, values, dense.T.copy().T, (30, 20), True), want)
    pairs = np.stack([listed, inner], 1)
    np.testing.assert_array_equal(sparse.gather(*pairs.T, np.repeat(values, 2)[::2], dense, (30, 20), False), want)
    vector = sparse.gather(starts, inner, values, dense[:, 4], (30, 20), True)
    np.testing.assert_array_equal(vector, want[:, 4])


def test_results_do_not_depend_on_threads():
    starts, _, inner, values = elements(2000, 300, 20_000)
    dense, left = normal(300, 70), normal(2000, 70)

    def run():
        return (sparse.gather(starts, inner, values, dense, (2000, 300), True),
                sparse.scatter(starts, inner, values, left, (2000, 300), True),
                sparse.sample(starts, inner, left, dense.T, True))

    before, results = threads.count(), []
    try:
        for count in (1, 3):
            threads.limit(count)
            results.append(run())
    finally:
        threads.limit(before)
    for x, y in zip(*results, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("wrong", [-1, 20, 1 << 40])
def test_invalid_indices_are_left_to_numpy(wrong):
    starts, listed, inner, values = elements(30, 20, 200)
    dense, left = normal(20, 5), normal(30, 5)
    columns, rows, compressed = inner.copy(), listed.copy(), starts.copy()
    columns[100], rows[100], compressed[9] = wrong, wrong + 10, -wrong
    for kernel, operand in ((sparse.gather, dense), (sparse.scatter, left)):
        assert kernel(starts, columns, values, operand, (30, 20), True) is None
        assert kernel(listed, columns, values, operand, (30, 20), False) is None
        assert kernel(compressed, inner, values, operand, (30, 20), True) is None
    assert sparse.sample(starts, columns, left, dense.T, True) is None
    assert sparse.gather(rows, inner, values, dense, (30, 20), False) is None  # not sorted, or out of range
    assert sparse.gather(starts, inner, values, dense[:19], (30, 20), True) is None
    assert sparse.gather(starts, inner, values, dense.astype("float64"), (30, 20), True) is None


def test_rows_of_very_different_lengths_are_shared_by_elements():
    from flambeau.codegen.sparse import products

    dtype, index = np.dtype("float32"), np.dtype("int64")
    [each] = products.launches("gather", dtype, index, True, 10_000, 10_000, 200_000, 64, (0, 256))
    assert each.chunks > 100


def sparse_matrix(layout):
    rng = np.random.default_rng(0)
    a = torch.tensor((rng.random((40, 30)) < 0.3) * rng.standard_normal((40, 30))).float()
    with warnings.catch_warnings(action="ignore"):
        if layout == "uncoalesced":
            coo = a.to_sparse()
            return torch.sparse_coo_tensor(coo.indices().flip(1), coo.values().flip(0), (40, 30))
        return a.to_sparse() if layout == "coo" else a.to_sparse_csr() if layout == "csr" else a.to_sparse_csc()


@pytest.mark.parametrize("layout", ["coo", "uncoalesced", "csr", "csc"])
def test_products_of_tensors_and_their_gradients(layout):
    a, dense = sparse_matrix(layout), torch.tensor(normal(30, 24), requires_grad=True)
    full, plain = a.to_dense(), dense.detach().clone().requires_grad_()
    weight = torch.tensor(normal(40, 24))
    (a @ dense * weight).sum().backward()
    (full @ plain * weight).sum().backward()
    torch.testing.assert_close(a @ dense, full @ plain)
    torch.testing.assert_close(dense.grad, plain.grad)
    torch.testing.assert_close(a @ dense[:, 0], full @ plain[:, 0])


@pytest.mark.parametrize(("layout", "create_graph"), [("coo", False), ("coo", True), ("uncoalesced", False),
                                                      ("csr", False)])
def test_gradient_of_the_sparse_factor_has_its_places(layout, create_graph):
    a, dense = sparse_matrix(layout).requires_grad_(), torch.tensor(normal(30, 24), requires_grad=True)
    weight = torch.tensor(normal(40, 24))
    out = (torch.sparse.mm(a, dense) * weight).sum()
    [grad] = torch.autograd.grad(out, a, create_graph=create_graph)
    assert grad.layout is a.layout
    mask = a.detach().to_dense() != 0
    torch.testing.assert_close(grad.detach().to_dense(), (weight @ dense.detach().t()) * mask)
