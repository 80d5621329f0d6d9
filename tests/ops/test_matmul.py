"""PyTorch's conventions of matmuls: graphs of composites, layouts of gradients, errors.

Expected values are PyTorch's.
"""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.numpy import distance

F = torch.nn.functional


def leaf(*shape: int) -> Any:
    return torch.ones(*shape, requires_grad=True)


def tree(node: Any) -> str:
    """The graph as text: `*` for a leaf, `-` for nothing."""
    if node is None:
        return "-"
    name = node.name()
    if "Accumulate" in name:
        return "*"
    return name.removesuffix("Backward0") + "(" + ",".join(tree(n) for n, _ in node.next_functions) + ")"


@pytest.mark.parametrize(("result", "expected"), [
    (lambda: leaf(2, 3) @ leaf(3, 4), "Mm(*,*)"),
    (lambda: leaf(3) @ leaf(3), "Dot(*,*)"),
    (lambda: leaf(2, 3) @ leaf(3), "Mv(*,*)"),
    (lambda: leaf(3) @ leaf(3, 4), "SqueezeBackward4(Mm(Unsqueeze(*),*))"),
    (lambda: leaf(5, 2, 3) @ leaf(3, 4), "UnsafeView(Mm(View(*),*))"),
    (lambda: leaf(5, 2, 3) @ leaf(3), "UnsafeView(Mv(View(*),*))"),
    (lambda: leaf(2, 3) @ leaf(5, 3, 4), "Clone(Transpose(UnsafeView(Mm(UnsafeView(Clone(Transpose(*))),T(*)))))"),
    (lambda: torch.ones(3, 2) @ leaf(5, 2, 3), "UnsafeView(Bmm(-,View(Expand(*))))"),
    (lambda: leaf(5, 2, 3) @ leaf(5, 3, 4), "UnsafeView(Bmm(View(Expand(*)),View(Expand(*))))"),
    (lambda: leaf(5, 2, 3) @ leaf(7, 1, 3, 4),
     "UnsafeView(Bmm(UnsafeView(Clone(Expand(*))),UnsafeView(Clone(Expand(*)))))"),
    (lambda: leaf(5, 2, 3) @ leaf(1, 3, 4), "UnsafeView(Mm(View(*),SqueezeBackward1(*)))"),
    (lambda: F.linear(leaf(2, 3), leaf(4, 3), leaf(4)), "Addmm(*,*,T(*))"),
    (lambda: F.linear(leaf(2, 3), leaf(4, 3)), "Mm(*,T(*))"),
    (lambda: F.linear(torch.ones(2, 3), leaf(4, 3), leaf(4)), "Addmm(*,-,T(*))"),
    (lambda: F.linear(leaf(5, 2, 3), leaf(4, 3), leaf(4)), "View(Addmm(*,View(*),T(*)))"),
    (lambda: F.linear(leaf(5, 2, 3), leaf(4, 3)), "UnsafeView(Mm(View(*),T(*)))"),
    (lambda: F.linear(leaf(3), leaf(4, 3), leaf(4)), "View(Addmm(*,View(*),T(*)))"),
    (lambda: F.linear(leaf(2, 3), leaf(3)), "Mv(*,T(*))"),
    (lambda: torch.outer(leaf(2), leaf(3)), "Mul(View(*),*)"),
    (lambda: torch.einsum("ii", leaf(3, 3)), "SumBackward1(Permute(Permute(Diagonal(*))))"),
    (lambda: torch.einsum("ij->ji", leaf(2, 3)), "Permute(*)"),
    (lambda: torch.einsum("i,j->ij", leaf(2), leaf(3)), "Mul(Permute(Unsqueeze(*)),Permute(Unsqueeze(*)))"),
    (lambda: torch.einsum("ij,jk->ik", leaf(2, 3), leaf(3, 4)),
     "View(Permute(View(Bmm(View(Permute(Permute(Unsqueeze(*)))),View(Permute(Permute(Unsqueeze(*))))))))"),
    (lambda: torch.matrix_power(leaf(3, 3), 5), "Mm(*,Mm(Mm(*,*),Mm(*,*)))"),
    (lambda: torch.linalg.multi_dot([leaf(2, 3), leaf(3, 4), leaf(4, 2)]), "View(Mm(*,Mm(*,*)))"),
    (lambda: torch.kron(leaf(2, 2), leaf(3, 3)), "UnsafeView(Mul(UnsafeView(*),UnsafeView(*)))"),
    (lambda: torch.linalg.inv(torch.eye(2).requires_grad_()), "LinalgInvEx(*)"),
])
def test_graph(result: Any, expected: str) -> None:
    assert tree(result().grad_fn) == expected


@pytest.mark.parametrize(("call", "text"), [
    (lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    (lambda: torch.ones(2, 3) @ torch.ones(2), "size mismatch, got input (2), mat (2x3), vec (2)"),
    (lambda: torch.mm(torch.ones(2), torch.ones(2, 2)), "self must be a matrix"),
    (lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2).double()),
     "expected m1 and m2 to have the same dtype, but got: float != double"),
    (lambda: F.linear(torch.ones(2, 3).double(), torch.ones(4, 3), torch.ones(4)),
     "mat1 and mat2 must have the same dtype, but got Double and Float"),
    (lambda: F.linear(torch.ones(2, 3), torch.ones(4, 2), torch.ones(4)),
     "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)"),
    (lambda: torch.dot(torch.ones(2), torch.ones(3)),
     ("inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 and 3 "
      "elements respectively")),
    (lambda: torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 3, 4)),
     "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 3]."),
    (lambda: torch.addmm(torch.ones(3), torch.ones(2, 3), torch.ones(3, 4)),
     ("The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target "
      "sizes: [2, 4].  Tensor sizes: [3]")),
    (lambda: torch.matmul(torch.tensor(1.), torch.ones(3)),
     "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
    (lambda: torch.einsum("ij,jk", torch.ones(2, 3), torch.ones(4, 3)),
     "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3"),
    (lambda: torch.einsum("ij->ik", torch.ones(2, 3)),
     "einsum(): output subscript k does not appear in the equation for any input operand"),
    (lambda: torch.einsum("ij", torch.ones(2, 3, 4)),
     ("einsum(): the number of subscripts in the equation (2) does not match the number of dimensions (3) for operand "
      "0 and no ellipsis was given")),
    (lambda: torch.linalg.inv(torch.zeros(2, 2)),
     ("linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is "
      "singular.")),
    (lambda: torch.linalg.cholesky(-torch.eye(2)),
     ("linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the "
      "leading minor of order 1 is not positive-definite).")),
])
def test_error(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == text


def test_bool_matrices_raise() -> None:
    with pytest.raises(NotImplementedError, match="\"addmm_impl_cpu_\" not implemented for 'Bool'"):
        torch.mm(torch.ones(2, 2).bool(), torch.ones(2, 2).bool())


def test_gradients_have_the_memory_order_of_their_matrices() -> None:
    x, w = leaf(2, 3), leaf(4, 3)
    F.linear(x, w, leaf(4)).sum().backward()
    assert w.grad.stride() == (3, 1)
    assert x.grad.stride() == (3, 1)
    y = torch.ones(3, 4).t().contiguous().t().requires_grad_()
    (g,) = torch.autograd.grad((leaf(2, 3) @ y).sum(), [y])
    assert g.stride() == (1, 3)


def test_saved_operands_are_version_checked() -> None:
    x, w = leaf(2, 3), leaf(4, 3)
    out = F.linear(x, w, leaf(4))
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_graph_is_freed_once() -> None:
    out = F.linear(leaf(2, 3), leaf(4, 3), leaf(4)).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_linear_of_a_batch_is_a_view() -> None:
    out = F.linear(leaf(5, 2, 3), leaf(4, 3), leaf(4))
    assert out._is_view()


def test_operands_multiplied_by_zero_are_not_read() -> None:
    nan = torch.full((2, 2), float("nan"))
    assert torch.addmm(nan, torch.ones(2, 2), torch.ones(2, 2), beta=0).tolist() == [[2, 2], [2, 2]]
    assert torch.addmm(torch.ones(2, 2), nan, torch.ones(2, 2), alpha=0).tolist() == [[1, 1], [1, 1]]


def test_integers_wrap_and_truncate() -> None:
    assert torch.mm(torch.full((1, 1), 200, dtype=torch.uint8), torch.full((1, 1), 2, dtype=torch.uint8)).item() == 144
    ones = torch.ones(2, 2, dtype=torch.int64)
    assert torch.addmm(ones, ones, ones, alpha=1.9).tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_sums_in_single(dtype: Any) -> None:
    x = torch.full((1, 4096), 0.01, dtype=dtype)
    expected = (x.float() @ x.float().t()).to(dtype)
    assert torch.equal(x @ x.t(), expected)


def test_einsum_takes_sublists_and_repeated_indices() -> None:
    a, b = torch.arange(6.).reshape(2, 3), torch.arange(12.).reshape(3, 4)
    assert torch.equal(torch.einsum(a, [0, 1], b, [1, 2], [2, 0]), (a @ b).t())
    assert torch.equal(torch.einsum("iij->j", torch.ones(2, 2, 3)), torch.full((3,), 2.0))
    assert torch.equal(torch.einsum("...i", a), a)


def test_gradient_of_a_singular_determinant() -> None:
    a = torch.tensor([[1., 2.], [2., 4.]], dtype=torch.float64, requires_grad=True)
    torch.det(a).backward()
    np.testing.assert_allclose(a.grad.numpy(), [[4, -2], [-2, 1]], atol=1e-12)


def test_failures_are_linalg_errors() -> None:
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        torch.linalg.inv(torch.tensor([[[1., 0], [0, 1]], [[1, 1], [1, 1]]]))


def test_distances_by_product_and_by_difference_agree() -> None:
    x, y = torch.randn(40, 3, dtype=torch.float64), torch.randn(30, 3, dtype=torch.float64)
    near = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    np.testing.assert_allclose(torch.cdist(x, y).numpy(), near.numpy(), rtol=1e-8)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize(("rows", "columns"), [((7, 5), (6, 5)), ((2, 1, 7, 40), (3, 6, 40))])
def test_blocks_of_distances_have_the_bits_of_all_at_once(p, rows, columns, monkeypatch) -> None:
    x, y = torch.randn(rows), torch.randn(columns)
    at_once = torch.cdist(x, y, p, "donot_use_mm_for_euclid_dist")
    monkeypatch.setattr(distance, "_BLOCK", 32)
    assert torch.equal(torch.cdist(x, y, p, "donot_use_mm_for_euclid_dist"), at_once)


def test_memory_of_distances_does_not_grow_with_the_width() -> None:
    x = torch.zeros(100, 10_000)
    tracemalloc.start()
    torch.cdist(x, x, p=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2 ** 20  # all differences take 400 MB


# ----- gradients along Hermitian matrices ------------------------------------------------


def difference(f: Any, a: np.ndarray, direction: np.ndarray, h: float = 1e-6) -> float:
    ahead, behind = (f(torch.tensor(a + s * h * direction)).item() for s in (1, -1))
    return (ahead - behind) / (2 * h)  # type: ignore[no-any-return]


@pytest.mark.parametrize("function", [
    lambda x: (torch.linalg.cholesky(x) * torch.arange(9.).reshape(3, 3)).sum(),
    lambda x: (torch.linalg.cholesky(x, upper=True) ** 3).sum(),
    lambda x: (torch.linalg.eigvalsh(x) ** 2 * torch.arange(3.)).sum(),
    lambda x: (torch.linalg.eigh(x)[1].abs() * torch.arange(9.).reshape(3, 3)).sum(),
    lambda x: (torch.cholesky_inverse(torch.linalg.cholesky(x)) * torch.arange(9.).reshape(3, 3)).sum(),
    lambda x: (torch.cholesky_solve(torch.ones(3, 1).double(), torch.linalg.cholesky(x)) ** 2).sum(),
    lambda x: torch.linalg.eigvals(x).real.pow(3).sum(),
    lambda x: torch.linalg.cond(x),
    lambda x: torch.linalg.lstsq(x[:, :2], torch.ones(3, 1).double()).solution.sum(),
])
def test_symmetric_gradients(function: Any) -> None:
    random = np.random.default_rng(0)
    a = random.standard_normal((3, 3))
    a = a @ a.T + np.eye(3)
    v = random.standard_normal((3, 3))
    v = v + v.T
    x = torch.tensor(a, requires_grad=True)
    (g,) = torch.autograd.grad(function(x), [x])
    np.testing.assert_allclose((g.numpy() * v).sum(), difference(function, a, v), rtol=1e-5)


@pytest.mark.parametrize(("left", "right"), [
    ((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 2, 3, 4, 5), (2, 2, 3, 5, 1)), ((0, 4, 5), (0, 5, 6)),
    ((2, 0, 4, 5), (2, 0, 5, 6)), ((2, 3, 0, 5), (2, 3, 5, 6)), ((2, 3, 4, 0), (2, 3, 0, 6))])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.complex64])
def test_batched_results_do_not_depend_on_requires_grad(left, right, dtype):
    generator = np.random.default_rng(0)
    x, y = (torch.from_numpy(generator.integers(-9, 9, shape)).to(dtype) for shape in (left, right))
    found = x @ y
    assert (found.shape, found.dtype, found.stride(), found._base) == (
        (*left[:-1], right[-1]), dtype, torch.empty(found.shape).stride(), None)
    assert np.array_equal(found.numpy(), x.numpy() @ y.numpy())
    turned = x.transpose(-1, -2).contiguous().transpose(-1, -2) @ y
    assert np.array_equal(turned.numpy(), found.numpy())
    if dtype.is_floating_point:
        recorded = x.clone().requires_grad_() @ y
        assert np.array_equal(recorded.detach().numpy(), found.numpy())
    with torch.inference_mode():
        assert (x @ y).is_inference()


M, V, B = torch.ones(2, 2), torch.ones(2), torch.ones(2, 2, 2)


@pytest.mark.parametrize(("name", "tensors"), [
    ("addmm", (M, M, M)), ("addmv", (V, M, V)), ("addr", (M, V, V)), ("addbmm", (M, B, B)), ("baddbmm", (B, B, B))])
def test_factors_may_stand_before_tensors(name: str, tensors: tuple[Any, ...]) -> None:
    function, (x, *factors) = getattr(torch, name), tensors
    for beta, alpha in ((2, 1), (0.5, 3)):
        expected = function(*tensors, beta=beta, alpha=alpha)
        with warnings.catch_warnings(action="ignore"):
            assert function(beta, x, alpha, *factors).equal(expected)
            assert getattr(x, name)(beta, alpha, *factors).equal(expected)
            assert getattr(x.clone(), name + "_")(beta, alpha, *factors).equal(expected)
            if alpha == 1:
                assert function(beta, x, *factors, out=torch.empty(0)).equal(expected)
    with pytest.raises(TypeError, match=r"invalid combination|positional"):
        function(x, 2, *factors)


@pytest.mark.parametrize(("call", "text"), [
    (lambda: torch.addr(M, V, V, beta=True), "Boolean beta only supported for Boolean results."),
    (lambda: torch.addr(M.int(), V.int(), V.int(), alpha=1.5),
     "For integral input tensors, argument alpha must not be a floating point number."),
    (lambda: torch.addmm(M, M, M, beta=1j), "value cannot be converted to type float without overflow"),
    (lambda: torch.addmv(V.char(), M.char(), V.char(), beta=300),
     "value cannot be converted to type int8_t without overflow"),
    (lambda: torch.linalg.svd(M, driver="gesvd"),
     "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."),
    (lambda: torch.linalg.cond(torch.ones(2, 3), 1),
     "linalg.cond(ord=1): A must be batches of square matrices, but they are 2 by 3 matrices"),
    (lambda: torch.linalg.eig(M / 0), "torch.linalg.eig: input tensor should not contain infs or NaNs."),
    (lambda: torch.linalg.lstsq(M, V[0]), "torch.linalg.lstsq: other must have at least 1 dimension."),
    (lambda: torch.linalg.lstsq(M, M, driver="x"),
     "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"),
    (lambda: torch.linalg.lstsq(M, M, driver="gels"), (
        "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not have "
        "full rank (error code: 2).")),
    (lambda: torch.linalg.eig(M, out=(torch.empty(0), torch.empty(0, dtype=torch.complex64))), (
        "torch.linalg.eig: Expected eigenvalues to be safely castable from ComplexFloat dtype, but got eigenvalues "
        "with dtype Float")),
    (lambda: torch.linalg.lu(M, out=tuple(torch.empty(0, dtype=torch.float64) for _ in range(3))),
     "Expected out tensor to have dtype float, but got double instead"),
])
def test_error_of_linear_algebra(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value) == text


def test_results_of_calls_with_out_have_types_of_their_own() -> None:
    out = torch.empty(0), torch.empty(0)
    assert type(torch.linalg.qr(M, out=out)).__name__ == "linalg_qr_out"
    assert type(torch.max(M, 0, out=(torch.empty(0), torch.empty(0).long()))).__name__ == "max_out"


def test_condition_number_of_empty_matrices_is_zero() -> None:
    for p in (None, -2, "fro", 1):
        assert torch.linalg.cond(torch.ones(2, 0, 0), p).tolist() == [0.0, 0.0]


def test_norms_take_numpys_names() -> None:
    assert torch.linalg.norm(M, 1, axis=(0, 1), keepdims=True).tolist() == [[2.0]]
    assert torch.linalg.vector_norm(x=M, axis=0).equal(torch.linalg.vector_norm(M, dim=0))


def test_least_squares_ignores_columns_below_the_tolerance() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0]])
    for driver, expected in (("gelsy", [0.0, 1 / 3]), ("gelsd", [1.0, 1 / 3]), ("gels", [1.0, 1 / 3])):
        found = torch.linalg.lstsq(a, torch.ones(3, 1), rcond=1.0, driver=driver)
        assert torch.allclose(found.solution.flatten(), torch.tensor(expected))


def test_sum_and_activation_in_one() -> None:
    x, y = torch.tensor([-3.0, 1.0]), torch.ones(2)
    assert torch._add_relu(x, y, alpha=2).tolist() == [0.0, 3.0]
    assert torch._add_relu(x, 2.5, out=torch.empty(0)).tolist() == [0.0, 3.5]
    assert torch._add_relu_(x, y) is x
    assert torch._addmm_activation(y, torch.eye(2), -torch.ones(2, 2), out=torch.empty(0)).tolist() == [[0.0, 0.0]] * 2
