"""Sparse tensors compared with PyTorch: the same program on both, by layout and operation."""

from __future__ import annotations

import io
import itertools
import pickle
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import flambeau

pytorch = pytest.importorskip("torch")

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
DENSE = np.array([[0, 2, 0, -1], [3, 0, 0, 0], [0, 0, 0.5, 4], [0, 0, 0, 1]])


@pytest.fixture(autouse=True)
def _no_warnings_of_beta() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse .* beta state|Sparse invariant checks")
        yield


def make(torch: Any, layout: str, dtype: str = "float64", requires_grad: bool = False) -> Any:
    x = torch.tensor(DENSE.tolist(), dtype=getattr(torch, dtype))
    blocks = {"blocksize": (2, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    return x.to_sparse(layout=getattr(torch, layout), **blocks).requires_grad_(requires_grad)


def uncoalesced(torch: Any) -> Any:
    indices = torch.tensor([[0, 2, 0, 2], [1, 0, 1, 3]])
    values = torch.tensor([1., 2, 3, 4], dtype=torch.float64)
    return torch.sparse_coo_tensor(indices, values, (4, 4), check_invariants=True)


def text(x: Any) -> str:
    """What a result looks like, without the name of the library."""
    return repr(x).replace("flambeau.", "torch.")


def outcome(torch: Any, program: Callable[[Any], Any]) -> str:
    try:
        result = program(torch)
        name, flambeau.config.module_name = flambeau.config.module_name, "torch"  # lines are as long as PyTorch's
        try:
            return text(result)
        finally:
            flambeau.config.module_name = name
    except Exception as error:
        shown = str(error).split(" This could be")[0].replace("flambeau.", "torch.")
        return f"{type(error).__name__}: {shown}"


def assert_same(program: Callable[[Any], Any]) -> None:
    expected = outcome(pytorch, program)
    assert outcome(flambeau, program) == expected


UNARY = ("abs", "angle", "asin", "atan", "ceil", "deg2rad", "erf", "expm1", "floor", "frac", "isnan", "log1p", "neg",
         "relu", "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
         "nan_to_num", "isposinf")


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operators_that_keep_zeros(name: str, layout: str) -> None:
    assert_same(lambda torch: getattr(torch, name)(make(torch, layout)))


@pytest.mark.parametrize("name", UNARY)
def test_operators_that_keep_zeros_coalesce(name: str) -> None:
    assert_same(lambda torch: getattr(torch, name)(uncoalesced(torch)))


ONE_TENSOR: dict[str, Callable[[Any, Any], Any]] = {
    "to_dense": lambda torch, x: x.to_dense(),
    "to_coo": lambda torch, x: x.to_sparse_coo(),
    "to_csr": lambda torch, x: x.to_sparse_csr(),
    "to_csc": lambda torch, x: x.to_sparse_csc(),
    "to_bsr": lambda torch, x: x.to_sparse_bsr((2, 2)),
    "to_bsc": lambda torch, x: x.to_sparse_bsc((2, 2)),
    "to_sparse_dim": lambda torch, x: x.to_sparse(1),
    "double of it": lambda torch, x: x * 2,
    "half": lambda torch, x: x / 2,
    "floor division": lambda torch, x: x // 2,
    "sum with itself": lambda torch, x: x + x,
    "difference": lambda torch, x: x - x,
    "square": lambda torch, x: x * x,
    "pow": lambda torch, x: x ** 2,
    "pow 0": lambda torch, x: x ** 0,
    "plus one": lambda torch, x: x + 1,
    "plus dense": lambda torch, x: x + torch.ones(4, 4, dtype=x.dtype),
    "dense minus": lambda torch, x: torch.ones(4, 4, dtype=x.dtype) - x,
    "times 0-d": lambda torch, x: x * torch.tensor(3., dtype=x.dtype),
    "divided by dense": lambda torch, x: x / torch.ones(4, 4),
    "float32": lambda torch, x: x.to(torch.float32),
    "int64": lambda torch, x: x.to(torch.int64) * 1.5,
    "t": lambda torch, x: x.t(),
    "transpose": lambda torch, x: x.transpose(0, 1),
    "clone": lambda torch, x: x.clone(),
    "detach": lambda torch, x: x.detach(),
    "select": lambda torch, x: x.select(0, 1),
    "item": lambda torch, x: x[2, 3],
    "row": lambda torch, x: x[1],
    "sum": lambda torch, x: x.sum(),
    "sum of columns": lambda torch, x: x.sum(0, keepdim=True),
    "mm": lambda torch, x: x @ torch.arange(8., dtype=x.dtype).reshape(4, 2),
    "mm left": lambda torch, x: torch.arange(8., dtype=x.dtype).reshape(2, 4) @ x,
    "mv": lambda torch, x: x @ torch.arange(4., dtype=x.dtype),
    "addmm": lambda torch, x: torch.addmm(torch.ones(4, 2, dtype=x.dtype), x, torch.ones(4, 2, dtype=x.dtype), beta=2,
                                          alpha=3),
    "sparse.mm": lambda torch, x: torch.sparse.mm(x, torch.ones(4, 2, dtype=x.dtype)),
    "mm of itself": lambda torch, x: x @ x.to_sparse_coo() if x.layout == torch.sparse_coo else x @ x.clone(),
    "mm of wrong dtype": lambda torch, x: x @ torch.ones(4, 2, dtype=torch.float32),
    "zeros_like": lambda torch, x: torch.zeros_like(x),
    "_nnz": lambda torch, x: x._nnz(),
    "dims": lambda torch, x: (x.sparse_dim(), x.dense_dim(), x.dim(), x.numel(), x.is_sparse, x.is_sparse_csr,
                               x.layout),
    "indices": lambda torch, x: x.indices(),
    "values": lambda torch, x: x.values(),
    "crow": lambda torch, x: (x.crow_indices(), x.col_indices()),
    "ccol": lambda torch, x: (x.ccol_indices(), x.row_indices()),
    "is_coalesced": lambda torch, x: x.is_coalesced(),
    "numpy": lambda torch, x: x.numpy(),
    "cos": lambda torch, x: x.cos() if x.layout == torch.sparse_coo else None,
    "mask": lambda torch, x: torch.arange(16., dtype=x.dtype).reshape(4, 4).sparse_mask(x),
    "in place": lambda torch, x: x.clone().mul_(3),
    "negated in place": lambda torch, x: x.clone().neg_(),
    "pickle": lambda torch, x: pickle.loads(pickle.dumps(x)),
}


# an internal assertion in PyTorch, an error about an internal allocation, or a subtraction from a dense tensor
NOT_COMPARED = {("dense minus", layout) for layout in LAYOUTS if layout != "sparse_coo"} | {
    (name, layout) for name in ("plus one", "plus dense", "mm of itself") for layout in ("sparse_bsr", "sparse_bsc")}


@pytest.mark.parametrize(("name", "layout"), [pair for pair in itertools.product(ONE_TENSOR, LAYOUTS)
                                              if pair not in NOT_COMPARED])
def test_operators(name: str, layout: str) -> None:
    assert_same(lambda torch: ONE_TENSOR[name](torch, make(torch, layout)))


COO: dict[str, Callable[[Any, Any], Any]] = {
    "coalesce": lambda torch, x: x.coalesce(),
    "indices": lambda torch, x: x.indices(),
    "components": lambda torch, x: (x._indices(), x._values()),
    "index_select": lambda torch, x: x.index_select(1, torch.tensor([3, 1, 1])),
    "index_select first": lambda torch, x: x.index_select(0, torch.tensor([2])),
    "permute": lambda torch, x: x.permute(1, 0),
    "unsqueeze": lambda torch, x: x.unsqueeze(1),
    "cat": lambda torch, x: torch.cat([x, x], 1),
    "stack": lambda torch, x: torch.stack([x, x]),
    "narrow_copy": lambda torch, x: x.narrow_copy(1, 1, 3),
    "narrow": lambda torch, x: x.narrow_copy(7, 1, 3),
    "sparse.sum": lambda torch, x: torch.sparse.sum(x),
    "sparse.sum 0": lambda torch, x: torch.sparse.sum(x, 0),
    "sum 1": lambda torch, x: x.sum(1),
    "softmax": lambda torch, x: torch.sparse.softmax(x, 1),
    "log_softmax": lambda torch, x: torch.sparse.log_softmax(x, 0),
    "norm": lambda torch, x: x.norm(),
    "any": lambda torch, x: x.any(),
    "hspmm": lambda torch, x: torch.hspmm(x, torch.ones(4, 2, dtype=x.dtype)),
    "smm": lambda torch, x: torch.smm(x, torch.ones(4, 2, dtype=x.dtype)),
    "sspaddmm": lambda torch, x: torch.sspaddmm(x, x, torch.ones(4, 4, dtype=x.dtype)),
    "sspaddmm of sparse": lambda torch, x: torch.sspaddmm(x, x, x),
    "sparse.mm": lambda torch, x: torch.sparse.mm(x, x),
    "bmm": lambda torch, x: torch.bmm(torch.stack([x, x]), torch.ones(2, 4, 1, dtype=x.dtype)),
    "times dense": lambda torch, x: x * torch.arange(16., dtype=x.dtype).reshape(4, 4),
    "times row": lambda torch, x: x * torch.arange(4., dtype=x.dtype),
    "added to dense": lambda torch, x: torch.ones(4, 4, dtype=x.dtype).add_(x, alpha=2),
    "copied": lambda torch, x: x.clone().copy_(x * 2),
    "copied to dense": lambda torch, x: torch.ones(4, 4).copy_(x),
    "zero_": lambda torch, x: x.clone().zero_(),
    "sparse_resize_": lambda torch, x: x.clone().sparse_resize_((5, 6), 2, 0),
    "shrunk": lambda torch, x: x.clone().sparse_resize_((2, 2), 2, 0),
    "out": lambda torch, x: torch.add(x, x, out=torch.empty(4, 4, dtype=x.dtype, layout=torch.sparse_coo)),
    "setitem": lambda torch, x: x.__setitem__(0, 1),
    "unbind": lambda torch, x: x.unbind(),
    "expand": lambda torch, x: x.expand(2, 4, 4),
    "type": lambda torch, x: (x.type(), x.stride(), x.is_contiguous()),
    "iteration": lambda torch, x: list(x),
    "in place": lambda torch, x: x.clone().sin_(),
}


@pytest.mark.parametrize("name", COO)
@pytest.mark.parametrize("source", ["coalesced", "uncoalesced"])
def test_coo(name: str, source: str) -> None:
    x = uncoalesced if source == "uncoalesced" else lambda torch: make(torch, "sparse_coo")
    assert_same(lambda torch: COO[name](torch, x(torch)))


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "to_dense": lambda torch, x: x.to_dense(),
    "to_dense of all": lambda torch, x: x.to_dense(masked_grad=False),
    "values": lambda torch, x: x.values(),
    "sum": lambda torch, x: x.sum(),
    "mm": lambda torch, x: x @ torch.arange(8., dtype=x.dtype).reshape(4, 2),
    "mv": lambda torch, x: x @ torch.arange(4., dtype=x.dtype),
    "sparse.mm": lambda torch, x: torch.sparse.mm(x, torch.arange(8., dtype=x.dtype).reshape(4, 2)),
    "sparse.addmm": lambda torch, x: torch.sparse.addmm(torch.ones(4, 2, dtype=x.dtype), x,
                                                        torch.ones(4, 2, dtype=x.dtype), beta=2, alpha=3),
    "t": lambda torch, x: x.t().to_dense(),
    "clone": lambda torch, x: x.clone().to_dense(),
    "abs": lambda torch, x: x.abs().to_dense(),
    "neg": lambda torch, x: (-x).to_dense(),
    "relu": lambda torch, x: x.relu().to_dense(),
    "product": lambda torch, x: (x * 2).to_dense(),
    "square": lambda torch, x: (x * x).to_dense(),
    "sum with itself": lambda torch, x: (x + x).to_dense(),
    "dense plus": lambda torch, x: torch.ones(4, 4, dtype=x.dtype) + x,
    "to_csr": lambda torch, x: x.to_sparse_csr().to_dense(),
    "to_coo": lambda torch, x: x.to_sparse_coo().to_dense(),
    "float32": lambda torch, x: x.to(torch.float32).to_dense(),
    "sin": lambda torch, x: x.sin().to_dense() if x.layout == torch.sparse_coo else x.to_dense(),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_gradients(name: str, layout: str) -> None:
    def program(torch: Any) -> Any:
        x = make(torch, layout, requires_grad=True)
        y = GRADIENTS[name](torch, x)
        y.sum().backward()
        return y, y.grad_fn.name(), x.grad

    assert_same(program)


@pytest.mark.parametrize("name", ["sparse_mask", "to_sparse", "to_sparse_csr", "mul", "mm"])
def test_gradients_of_dense_tensors(name: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(16., dtype=torch.float64).reshape(4, 4).requires_grad_()
        mask = make(torch, "sparse_coo")
        y = {"sparse_mask": lambda: x.sparse_mask(mask), "to_sparse": x.to_sparse, "to_sparse_csr": x.to_sparse_csr,
             "mul": lambda: x * mask, "mm": lambda: mask @ x}[name]()
        y.to_dense().sum().backward()
        return y, x.grad

    assert_same(program)


@pytest.mark.parametrize("name", ["sparse.sum", "softmax", "log_softmax", "sparse.mm"])
def test_gradients_of_torch_sparse(name: str) -> None:
    def program(torch: Any) -> Any:
        x = make(torch, "sparse_coo", requires_grad=True)
        y = {"sparse.sum": lambda: torch.sparse.sum(x, 0), "softmax": lambda: torch.sparse.softmax(x, 1),
             "log_softmax": lambda: torch.sparse.log_softmax(x, 1), "sparse.mm": lambda: torch.sparse.mm(x, x)}[name]()
        y.to_dense().pow(2).sum().backward()
        return y, x.grad

    assert_same(program)


def test_gradient_of_the_constructor() -> None:
    def program(torch: Any) -> Any:
        v = torch.tensor([1., 2, 3], requires_grad=True)
        x = torch.sparse_coo_tensor(torch.tensor([[0, 1, 0], [1, 0, 1]]), v, (2, 2), check_invariants=True)
        (x.coalesce().values() * torch.tensor([5., 7])).sum().backward()
        return x, x.grad_fn.name(), v.grad

    assert_same(program)


@pytest.mark.parametrize("zip_file", [True, False])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("checked", [True, False])
def test_files_with_indices_outside(zip_file: bool, layout: str, checked: bool) -> None:
    def program(torch: Any) -> Any:
        index = torch.tensor([[0, 5]]) if layout == "sparse_coo" else torch.tensor([0, 2])
        made = torch.sparse_coo_tensor(index, torch.ones(2), (2,), check_invariants=False) if (
            layout == "sparse_coo") else torch.sparse_csr_tensor(index, torch.tensor([0, 5]), torch.ones(2), (1, 2),
                                                                 check_invariants=False)
        file = io.BytesIO()
        torch.save([made], file, _use_new_zipfile_serialization=zip_file)
        file.seek(0)
        with torch.sparse.check_sparse_tensor_invariants(checked):
            return torch.load(file)[0].shape

    outcomes = []
    for module in (pytorch, flambeau):
        try:
            outcomes.append(tuple(program(module)))
        except RuntimeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


INVALID: dict[str, Callable[[Any], Any]] = {
    "nnz": lambda torch: torch.sparse_coo_tensor([[0, 1]], [1., 2, 3], (3,), check_invariants=True),
    "outside": lambda torch: torch.sparse_coo_tensor([[0, 1]], [1., 2], (1,), check_invariants=True),
    "negative": lambda torch: torch.sparse_coo_tensor([[0, -1]], [1., 2], check_invariants=True),
    "one dimension": lambda torch: torch.sparse_coo_tensor([0, 1], [1., 2], check_invariants=False),
    "size": lambda torch: torch.sparse_coo_tensor([[0, 1]], [1., 2], (2, 2), check_invariants=False),
    "values": lambda torch: torch.sparse_coo_tensor([[0, 1]], [[1.], [2]], (2, 2), check_invariants=False),
    "not coalesced": lambda torch: torch.sparse_coo_tensor([[1, 1]], [1., 2], (2,), check_invariants=True,
                                                           is_coalesced=True),
    "overflow": lambda torch: torch.sparse_coo_tensor([[1]] * 4, [1.], (10**5,) * 4, check_invariants=True),
    **{f"csr {k}": partial(lambda given, torch: torch.sparse_csr_tensor(*given, check_invariants=True), arguments)
       for k, arguments in enumerate((
            ([0, 2, 4], [0, 1, 0, 1], [1., 2, 3, 4], (2, 2, 2)), ([0, 2, 4], [0, 1, 0, 1], [1., 2, 3], (2, 2)),
            ([0, 2, 4], [0, 1, 0, 1], [1., 2, 3, 4], (3, 2)), ([1, 2, 4], [0, 1, 0, 1], [1., 2, 3, 4], (2, 2)),
            ([0, 2, 3], [0, 1, 0, 1], [1., 2, 3, 4], (2, 2)), ([0, 3, 4], [0, 1, 0, 1], [1., 2, 3, 4], (2, 2)),
            ([0, 2, 4], [0, 1, 0, 2], [1., 2, 3, 4], (2, 2)), ([0, 2, 4], [1, 0, 0, 1], [1., 2, 3, 4], (2, 2)),
            ([[0, 2, 4]], [0, 1, 0, 1], [1., 2, 3, 4], (2, 2)), (0, [0], [1.], (2, 2))))},
    "bsr": lambda torch: torch.sparse_bsr_tensor([0, 1], [0], [[[1., 2]]], (1, 3), check_invariants=True),
    "layout": lambda torch: torch.sparse_compressed_tensor([0, 1], [0], [1.], (1, 1), check_invariants=True),
    "strided": lambda torch: torch.ones(2, layout=torch.sparse_coo),
    "blocksize": lambda torch: torch.ones(3, 3).to_sparse_bsr((2, 2)),
    "sparse_dim": lambda torch: torch.ones(3, 3).to_sparse(5),
    "dense_dim": lambda torch: torch.ones(3, 3).to_sparse(dense_dim=3),
    "all dense": lambda torch: torch.ones(3, 3).to_sparse(dense_dim=2),
    "dense_dim of csr": lambda torch: torch.eye(3).to_sparse_csr().to_sparse(dense_dim=0),
    "dense_dim of coo": lambda torch: torch.eye(3).to_sparse().to_sparse(dense_dim=0),
    "blocksize of coo": lambda torch: torch.eye(3).to_sparse(blocksize=(1, 1)),
}


@pytest.mark.parametrize("name", INVALID)
def test_errors(name: str) -> None:
    assert_same(INVALID[name])
    assert "Error" in outcome(flambeau, INVALID[name])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int32", "bool"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dtypes(dtype: str, layout: str) -> None:
    assert_same(lambda torch: (make(torch, layout, dtype), make(torch, layout, dtype).to_dense(),
                               make(torch, layout, dtype) * 2 if dtype != "bool" else None))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_and_dense_dimensions(layout: str) -> None:
    blocks = {"blocksize": (1, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}

    def program(torch: Any) -> Any:
        x = torch.arange(1., 17.).reshape(2, 2, 4)
        hybrid = {"dense_dim": 1}
        y = x.to_sparse(layout=getattr(torch, layout), **blocks)
        z = torch.ones(2, 4, 3).to_sparse(layout=getattr(torch, layout), **blocks, **hybrid)
        return y, y.to_dense(), z, z.to_dense(), torch.zeros_like(z)

    assert_same(program)


def test_embeddings_with_sparse_gradients() -> None:
    def program(torch: Any) -> Any:
        shown = []
        index = torch.tensor([[1, 2], [2, 4]])
        weight = torch.arange(12.).reshape(6, 2)
        for mode in ("sum", "mean"):
            bag = torch.nn.EmbeddingBag.from_pretrained(weight.clone(), freeze=False, mode=mode, sparse=True)
            optimizer = torch.optim.SGD(bag.parameters(), lr=.1, momentum=.9)
            for _ in range(2):
                optimizer.zero_grad()
                bag(index).pow(2).sum().backward()
                shown.append(bag.weight.grad.coalesce())
                optimizer.step()
            shown.append(bag.weight.data)
        embedding = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, padding_idx=1, sparse=True)
        embedding(index).sum().backward()
        shown.append(embedding.weight.grad)
        embedding(index).sum().backward()
        shown.append(embedding.weight.grad.coalesce())
        (embedding.weight * 2).sum().backward()
        shown.append(embedding.weight.grad)
        doubled = weight.clone().requires_grad_()
        torch.nn.functional.embedding(index, doubled * 2, sparse=True).sum().backward()
        return [*shown, doubled.grad.to_dense()]

    assert_same(program)


def test_files_are_exchanged() -> None:
    for layout in LAYOUTS[:3]:
        file = io.BytesIO()
        flambeau.save(make(flambeau, layout), file)
        file.seek(0)
        assert text(pytorch.load(file)) == text(make(pytorch, layout))
        file = io.BytesIO()
        pytorch.save(make(pytorch, layout), file)
        file.seek(0)
        assert text(flambeau.load(file)) == text(make(flambeau, layout))


def test_assert_close() -> None:
    for layout in LAYOUTS[:3]:
        assert_same(lambda torch, layout=layout: torch.testing.assert_close(make(torch, layout), make(torch, layout)))
        assert_same(lambda torch, layout=layout: torch.testing.assert_close(
            make(torch, layout), make(torch, layout) * 2))
        assert_same(lambda torch, layout=layout: torch.testing.assert_close(
            make(torch, layout), make(torch, layout).to_dense().to_sparse_csc()))


@pytest.mark.parametrize("masked", [True, False])
def test_gradcheck(masked: bool) -> None:
    y = flambeau.arange(8., dtype=flambeau.float64).reshape(4, 2)
    for layout in LAYOUTS[:2]:
        x = make(flambeau, layout, requires_grad=True)
        product = flambeau.sparse.mm if masked else flambeau.mm
        assert flambeau.autograd.gradcheck(lambda x, product=product: product(x, y), (x,), masked=masked)
        check = flambeau.sparse.as_sparse_gradcheck(flambeau.autograd.gradcheck)
        assert check(lambda x: x.to_sparse_csc(), (x,), masked=masked)


def test_invariants_setting() -> None:
    def program(torch: Any) -> Any:
        checks = torch.sparse.check_sparse_tensor_invariants
        states = [checks.is_enabled()]
        with checks():
            states.append(checks.is_enabled())
            try:
                torch.sparse_coo_tensor([[3]], [1.], (2,))
            except RuntimeError as error:
                states.append(str(error))
        return [*states, checks.is_enabled()]

    assert_same(program)


@pytest.mark.parametrize("shape", [(3, 4), (40, 30), (0, 3)])
def test_products_of_random_matrices(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    a = generator.standard_normal(shape) * (generator.random(shape) < 0.3)
    b = generator.standard_normal((shape[1], 5))
    for layout in LAYOUTS[:3]:
        x = flambeau.tensor(a).to_sparse(layout=getattr(flambeau, layout))
        np.testing.assert_allclose((x @ flambeau.tensor(b)).numpy(), a @ b, atol=1e-12)
        square = (x @ x.transpose(0, 1)).to_dense()
        np.testing.assert_allclose(square.numpy(), a @ a.T, atol=1e-12)


def test_sparse_tensors_are_plain_tensors() -> None:
    x = make(flambeau, "sparse_csr")
    assert type(x) is flambeau.Tensor
    assert not x.is_sparse
    assert x.is_sparse_csr


def _likes(torch: Any, layout: str) -> Iterator[Any]:
    flat, batched = make(torch, layout), torch.stack([make(torch, layout)] * 2) if layout == "sparse_coo" else None
    functions = [torch.zeros_like, torch.ones_like, torch.rand_like, torch.randn_like,
                 partial(torch.full_like, fill_value=2), partial(torch.randint_like, high=3)]
    functions += [partial(torch.zeros_like, layout=getattr(torch, other)) for other in LAYOUTS]
    hybrid = torch.sparse_csr_tensor([0, 1, 2], [0, 1], torch.ones(2, 3), (2, 2, 3))
    for x in (flat, batched, hybrid):
        for f in functions if x is not None else ():
            torch.manual_seed(0)
            yield partial(f, x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensors_like_a_sparse_one(layout):
    for ours, theirs in zip(_likes(flambeau, layout), _likes(pytorch, layout), strict=True):
        assert outcome(flambeau, lambda _, f=ours: f()) == outcome(pytorch, lambda _, f=theirs: f()), ours


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_gradient_of_the_absolute_sum(layout):
    def program(torch):
        x = make(torch, layout, requires_grad=True)
        x.sum().abs().backward()
        return x.grad

    assert outcome(flambeau, program) == outcome(pytorch, program)


def test_products_with_more_dimensions_and_with_none() -> None:
    """The number of elements, whether they are coalesced, and the values of products."""
    def program(torch: Any) -> list[Any]:
        number = torch.sparse_coo_tensor(torch.zeros(0, 1, dtype=torch.int64), torch.tensor([3.]), ())
        pair = torch.sparse_coo_tensor(torch.zeros(0, 2, dtype=torch.int64), torch.tensor([1., 2.]), ())
        x = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [0, 0, 1]]), torch.arange(3.) + 1, (2, 2))
        others = (number, pair, pair.coalesce(), x, torch.ones(3, 2, 2), torch.ones(2), torch.tensor(2.))
        return [(z._nnz(), z.is_coalesced(), z._indices().tolist(), z.to_dense().tolist())
                for y in (number, number.coalesce(), pair, x, x.coalesce()) for other in others
                if other.layout is torch.strided or not (y.ndim and other.ndim) for z in _both_ways(y, other)]

    assert program(flambeau) == program(pytorch)


def _both_ways(x: Any, y: Any) -> tuple[Any, Any]:
    return x * y, y * x


@pytest.mark.parametrize("target", ["strided", "sparse_coo", "sparse_csr", "sparse_bsc"])
@pytest.mark.parametrize("source", ["strided", "sparse_coo", "sparse_csr"])
def test_arguments_of_conversions(source: str, target: str) -> None:
    def program(torch: Any) -> list[Any]:
        x = torch.eye(3)[:, :2]
        x = x if source == "strided" else x.to_sparse(layout=getattr(torch, source))
        found: list[Any] = []
        for options in ({}, *({"blocksize": block} for block in ((2, 1), (2,), (0, 1), (1, 1))), {"dense_dim": 1}):
            try:
                y = x.to_sparse(layout=getattr(torch, target), **options)
                found.append((str(y.layout).rpartition(".")[2], y.to_dense().tolist()))
            except (RuntimeError, IndexError) as error:
                found.append((type(error), str(error)))
        return found

    assert program(flambeau) == program(pytorch)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("program", [
    lambda x: x.view(16), lambda x: x.reshape(16), lambda x: x.flatten(), lambda x: x.unflatten(0, (2, 2)),
    lambda x: x.view_as(x), lambda x: x.data_ptr(), lambda x: x.untyped_storage()])
def test_errors_of_what_needs_strided_memory(program: Callable[[Any], Any], layout: str) -> None:
    assert_same(lambda torch: program(make(torch, layout)))


@pytest.mark.parametrize("program", [
    lambda x: x.storage_offset(), lambda x: x.as_strided((1,), (1,)), lambda x: x.squeeze(), lambda x: x.repeat(2, 1),
    lambda x: x.tile(2), lambda x: x.chunk(2), lambda x: x.split(1), lambda x: x.diagonal(),
    lambda x: x.unfold(0, 1, 1), lambda x: x.narrow(0, 0, 1), lambda x: x[0:1], lambda x: x.std(), lambda x: x > 0,
    lambda x: x.eq(x), lambda x: x.det(), lambda x: x.softmax(1), lambda x: x.equal(x), lambda x: x.allclose(x),
    lambda x: x.max(), lambda x: x.exp(), lambda x: x[x.to_dense() > 0],
    lambda x: x.scatter(0, x.to_dense()[:1].long(), 1)])
def test_refusals_name_the_overload(program: Callable[[Any], Any]) -> None:
    assert_same(lambda torch: program(make(torch, "sparse_coo")))


RESIZED: dict[str, Callable[[Any], Any]] = {
    "more rows and columns": lambda torch: hybrid(torch, "csr").resize_(3, 4),
    "fewer rows": lambda torch: hybrid(torch, "csr").resize_(1, 4),
    "fewer columns": lambda torch: hybrid(torch, "csr").resize_(2, 2),
    "one dimension": lambda torch: hybrid(torch, "csr").resize_(3),
    "fewer batches": lambda torch: hybrid(torch, "batched").resize_(1, 2, 3),
    "no batches": lambda torch: hybrid(torch, "batched").resize_(2, 3),
    "batches and fewer rows": lambda torch: hybrid(torch, "batched").resize_(2, 1, 3),
}


def hybrid(torch: Any, kind: str) -> Any:
    """Compressed tensors of 2 x 3 matrices without zeros: batched ones, or with a dense dimension."""
    x = torch.arange(1., 13.)
    if kind == "batched":
        return x.reshape(2, 2, 3).to_sparse_csr()
    if kind == "dense dimension":
        return x.reshape(2, 3, 2).to_sparse_csr(dense_dim=1)
    return x[:6].reshape(2, 3).to_sparse(layout=getattr(torch, f"sparse_{kind}"))


@pytest.mark.parametrize("name", RESIZED)
def test_resized_compressed_tensors(name: str) -> None:
    assert outcome(flambeau, RESIZED[name]) == outcome(pytorch, RESIZED[name])


@pytest.mark.parametrize("shape", [(1, 6), (3, 2), (1, 1, 6)])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_copies_to_compressed_tensors_of_other_shapes(kind: str, shape: tuple[int, ...]) -> None:
    def program(torch: Any) -> Any:
        target = torch.ones(shape).to_sparse(layout=getattr(torch, f"sparse_{kind}"))
        return target.copy_(hybrid(torch, kind))

    assert outcome(flambeau, program) == outcome(pytorch, program)


@pytest.mark.parametrize("source", ["strided", *LAYOUTS])
@pytest.mark.parametrize("target", ["strided", *LAYOUTS])
def test_copies_between_layouts(target: str, source: str) -> None:
    def program(torch: Any) -> Any:
        x, y = (make(torch, name) if name != "strided" else torch.ones(4, 4) for name in (target, source))
        return x.clone().copy_(y)

    assert outcome(flambeau, program) == outcome(pytorch, program)


@pytest.mark.parametrize("sizes", [((2, 3), (1, 6)), ((2, 3), (4, 1)), ((2, 3), (2, 3))])
def test_copies_between_tensors_of_blocks(sizes: Any) -> None:
    def program(torch: Any) -> Any:
        x, y = (torch.arange(1., 25.).reshape(4, 6).to_sparse_bsr(size) for size in sizes)
        return x.copy_(y * 2)

    assert outcome(flambeau, program) == outcome(pytorch, program)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_scaled_sums_with_dense_tensors(name: str, order: int, kind: str) -> None:
    def program(torch: Any) -> Any:
        return getattr(torch, name)(*(hybrid(torch, kind), torch.ones(2, 3))[::order], alpha=3.)

    assert outcome(flambeau, program) == outcome(pytorch, program)


@pytest.mark.parametrize("name", ["select", "select_copy"])
@pytest.mark.parametrize("layout", ["sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("block", [(1, 1), (1, 2), (2, 1), (2, 2), (4, 2), (2, 4), (4, 4)])
@pytest.mark.parametrize("few", [False, True])
def test_selection_from_blocks(few: bool, block: tuple[int, int], layout: str, name: str) -> None:
    """A row or column of blocks is selected where its elements are evenly spaced; a copy always."""
    for dim, index in itertools.product((0, 1), (0, 3)):
        def program(torch: Any, dim: int = dim, index: int = index) -> Any:
            x = torch.arange(1., 17.).reshape(4, 4)
            if few:
                x[:, 2:] = 0
            return getattr(torch, name)(x.to_sparse(layout=getattr(torch, layout), blocksize=block), dim, index)

        assert outcome(flambeau, program) == outcome(pytorch, program)


@pytest.mark.parametrize("kind", ["batched", "dense dimension"])
@pytest.mark.parametrize("name", ["select", "select_copy"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_selection_from_batches_and_dense_dimensions(dim: int, name: str, kind: str) -> None:
    assert outcome(flambeau, lambda torch: getattr(torch, name)(hybrid(torch, kind), dim, 1)) == outcome(
        pytorch, lambda torch: getattr(torch, name)(hybrid(torch, kind), dim, 1))


INDICES: dict[str, Callable[[Any], Any]] = {
    "strided rows": lambda torch: torch.sparse_csr_tensor(
        torch.tensor([0, -1, 2, -1, 4])[::2], torch.tensor([0, 1, 0, 2]), torch.ones(4), (2, 3), check_invariants=True),
    "strided columns": lambda torch: torch.sparse_csc_tensor(
        torch.tensor([0, 2, 4]), torch.tensor([0, 9, 1, 9, 0, 9, 2])[::2], torch.ones(4), (3, 2),
        check_invariants=True),
    "checked alone": lambda torch: torch._validate_compressed_sparse_indices(
        True, torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 2]), 2, 3, 4),
    "wrong count": lambda torch: torch._validate_compressed_sparse_indices(
        False, torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 2]), 3, 2, 4),
    "outside": lambda torch: torch._validate_compressed_sparse_indices(
        True, torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 3]), 2, 3, 4),
    "none": lambda torch: torch._validate_compressed_sparse_indices(
        True, torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), 1, 1, 0),
}


@pytest.mark.parametrize("name", INDICES)
def test_invariants_of_indices(name: str) -> None:
    assert outcome(flambeau, INDICES[name]) == outcome(pytorch, INDICES[name])


@pytest.mark.parametrize(("size", "blocks", "layout"), [
    ((2, 3), (), "sparse_csr"), ((2, 4, 6), (2, 3), "sparse_bsc"), ((2, 4, 6), (2, 4), "sparse_bsc"),
    ((2, 4, 6), (2,), "sparse_bsr"), ((2, 4, 6), (2, 3), "sparse_csc"), ((2,), (), "sparse_csc")])
@pytest.mark.parametrize("nnz", [4, -1])
def test_room_for_elements_of_compressed_tensors(nnz: int, size: Any, blocks: Any, layout: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.ops.aten._sparse_compressed_tensor_with_dims(
            nnz, 0, size, blocks, torch.int32, dtype=torch.float32, layout=getattr(torch, layout))
        return x.shape, x.values().shape, x.transpose(-1, -2).layout, x._nnz()

    assert outcome(flambeau, program) == outcome(pytorch, program)


@pytest.mark.parametrize("beta", [0, 2])
@pytest.mark.parametrize("layouts", [each for each in itertools.product(("strided", "csr", "csc"), repeat=3)
                                     if each[1:] != ("strided", "strided")], ids="-".join)
def test_layouts_of_sums_with_products(layouts: tuple[str, ...], beta: int) -> None:
    def operands(torch: Any) -> list[Any]:
        x = torch.tensor([[1., 2, 0], [0, 3, 4], [5, 0, 0]])
        found = [x if name == "strided" else x.to_sparse(layout=getattr(torch, f"sparse_{name}")) for name in layouts]
        if beta == 0:
            empty = torch.full((3, 3), float("nan"))
            found[0] = empty if layouts[0] == "strided" else empty.to_sparse(layout=found[0].layout)
        return found

    def layout(torch: Any) -> Any:
        return torch.addmm(*operands(torch), beta=beta, alpha=3).layout

    assert outcome(flambeau, layout) == outcome(pytorch, layout)
    if "Error" not in outcome(flambeau, layout):
        dense = [x.to_dense() for x in operands(flambeau)]
        result = flambeau.addmm(*operands(flambeau), beta=beta, alpha=3).to_dense()
        assert not result.isnan().any()
        assert flambeau.equal(result, flambeau.addmm(*dense, beta=beta, alpha=3))


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("dim", [0, 1])
def test_selected_elements_are_in_order(dim: int, layout: str) -> None:
    def program(torch: Any) -> Any:
        return torch.select_copy(make(torch, layout), dim, 2).values()

    assert outcome(flambeau, program) == outcome(pytorch, program)


MIXED_PRODUCTS = {f"{x} * {y}": (x, y) for x, y in itertools.product(("strided", *LAYOUTS), repeat=2)}


@pytest.mark.parametrize("name", MIXED_PRODUCTS)
def test_elementwise_products_of_layouts(name: str) -> None:
    def program(torch: Any) -> Any:
        result = torch.mul(*(torch.full((4, 4), 2., dtype=torch.float64) if layout == "strided" else make(torch, layout)
                             for layout in MIXED_PRODUCTS[name]))
        return result.layout, result.to_dense()  # whether zeros of blocks are stored is not defined

    assert outcome(flambeau, program) == outcome(pytorch, program)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (3, 4)])
def test_products_with_dense_tensors_of_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    def program(torch: Any) -> Any:
        return torch.mul(make(torch, "sparse_csr"), torch.ones(shape, dtype=torch.float64))

    assert outcome(flambeau, program) == outcome(pytorch, program)


DENSE_PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "mm": lambda torch, x: torch.sparse.mm(x, x), "addmm": lambda torch, x: torch.sparse.addmm(x, x, x, beta=2),
    "gradient of mm": lambda torch, x: torch.autograd.grad(torch.sparse.mm(x, x * 2).sum(), x),
    "gradient of addmm": lambda torch, x: torch.autograd.grad(torch.sparse.addmm(x, x, x, alpha=3).sum(), x)}


@pytest.mark.parametrize("name", DENSE_PRODUCTS)
def test_functions_of_sparse_products_take_dense_factors(name: str) -> None:
    def program(torch: Any) -> Any:
        return DENSE_PRODUCTS[name](torch, torch.tensor([[1., 2.], [3., 4.]], requires_grad=name.startswith("grad")))

    assert outcome(flambeau, program) == outcome(pytorch, program)
