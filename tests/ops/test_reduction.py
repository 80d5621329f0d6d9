"""Special cases of reductions: ties, zeros, infinities, empty inputs, names, accuracy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch

NAN, INF = math.nan, math.inf


def gradient(function: Callable[[Any], Any], values: Any) -> list[float]:
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    function(x).sum().backward()
    return x.grad.numpy().tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("function", "values", "expected"), [
    (lambda x: x.max(), [2, 2, 1], [0.5, 0.5, 0]),
    (lambda x: x.max(), [NAN, NAN, 1], [0.5, 0.5, 0]),
    (lambda x: x.max(0).values, [2, 2, 1], [1, 0, 0]),
    (lambda x: x.amax(), [2, 2, 1], [0.5, 0.5, 0]),
    (lambda x: torch.aminmax(x).min, [1, 1, 3], [0.5, 0.5, 0]),
    (lambda x: x.median(), [2, 2, 1], [0.5, 0.5, 0]),
    (lambda x: x.median(0).values, [2, 2, 1], [1, 0, 0]),
    (lambda x: x.cummax(0).values, [1, 1, 0], [1, 2, 0]),
    (lambda x: x.prod(), [0, 2, 3], [6, 0, 0]),
    (lambda x: x.prod(), [0, 0, 3], [0, 0, 0]),
    (lambda x: x.prod(0), [2, 0, 3], [0, 6, 0]),
    (lambda x: x.cumprod(0), [2, 0, 3], [1, 8, 0]),
    (lambda x: x.norm(), [0, 0], [0, 0]),
    (lambda x: x.norm(INF), [2, 2], [0.5, 0.5]),
    (lambda x: x.norm(0.5), [0, 1], [0, 1]),
    (lambda x: x.std(), [2, 2], [0, 0]),
    (lambda x: x.nansum(), [1, NAN], [1, 0]),
    (lambda x: x.logsumexp(0), [-INF, 1], [0, 1]),
])
def test_gradient_at_ties_zeros_and_infinities(function: Any, values: Any, expected: Any) -> None:
    assert gradient(function, [float(v) for v in values]) == pytest.approx(expected)


@pytest.mark.parametrize(("function", "values"), [
    (lambda x: x.amax(), [NAN, NAN, 1.0]),
    (lambda x: x.var(), [2.0]),
    (lambda x: x.std(0), [2.0]),
    (lambda x: x.logsumexp(0), [-INF, -INF]),
])
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_gradient_that_is_undefined(function: Any, values: Any) -> None:
    assert np.isnan(gradient(function, values)).all()


def second(function: Callable[[Any], Any], values: Any) -> np.ndarray:
    """The Hessian of a scalar function."""
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(function(x), x, create_graph=True)
    rows = [torch.autograd.grad(first[i], x, retain_graph=True)[0].numpy() for i in range(len(values))]
    return np.array(rows)


def test_second_derivative_of_a_product_with_zeros() -> None:
    np.testing.assert_allclose(second(torch.prod, [0.0, 2.0, 3.0]), [[0, 3, 2], [3, 0, 0], [2, 0, 0]])
    np.testing.assert_allclose(second(torch.prod, [0.0, 0.0, 3.0]), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(second(lambda x: x.cumprod(0).sum(), [2.0, 0.0, 3.0]),
                               [[0, 4, 0], [4, 0, 2], [0, 2, 0]])


_NO_MAX = ("max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
           "'dim' argument.")


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: x.sum(5), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    (lambda x: x.sum((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (lambda x: x.sum((0, "a")), TypeError, "sum(): argument 'dim' failed to unpack the object at pos 2"),
    (lambda x: x.long().mean(), RuntimeError, "mean(): could not infer output dtype."),
    (lambda x: x[:0].max(), RuntimeError, _NO_MAX),
    (lambda x: x[:0].max(0), IndexError, "max(): Expected reduction dim 0 to have non-zero size."),
    (lambda x: x[:0].argmax(), IndexError, "argmax(): Expected reduction dim to be specified for input.numel() == 0."),
    (lambda x: x.long().var(), RuntimeError, "std and var only support floating point and complex dtypes"),
    (lambda x: (x > 0).argmax(), RuntimeError, "argmax(): does not support bool input"),
    (lambda x: x.max(0, 1), TypeError, "max(): argument 'keepdim' (position 2) must be bool, not int"),
    (lambda x: x.max((0, 1)), TypeError, "max() received an invalid combination of arguments"),
    (lambda x: x.long().softmax(0), NotImplementedError, "\"softmax_kernel_impl\" not implemented for 'Long'"),
    (lambda x: x.topk(9), RuntimeError, "selected index k out of range"),
    (lambda x: x.kthvalue(0), RuntimeError, "kthvalue(): selected number k out of range for dimension 1"),
    (lambda x: x.long().norm(), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
    (lambda x: x.quantile(2.0), RuntimeError, "quantile() q must be in the range [0, 1] but got 2"),
])
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call(torch.ones(2, 3))
    assert text in str(caught.value)


def test_too_few_degrees_of_freedom_warn() -> None:
    with pytest.warns(UserWarning, match=r"std\(\): degrees of freedom is <= 0"):
        assert torch.isnan(torch.tensor([1.0]).std())


@pytest.mark.parametrize(("function", "name"), [
    (lambda x: x.sum(), "SumBackward0"), (lambda x: x.sum(0), "SumBackward1"), (lambda x: x.mean(), "MeanBackward0"),
    (lambda x: x.mean((0, 1)), "MeanBackward1"), (lambda x: x.prod(), "ProdBackward0"),
    (lambda x: x.prod(0), "ProdBackward1"), (lambda x: x.max(), "MaxBackward1"),
    (lambda x: x.max(0)[0], "MaxBackward0"),
    (lambda x: torch.max(x, x), "MaximumBackward0"), (lambda x: x.var(False), "VarBackward0"),
    (lambda x: x.std(0), "StdBackward0"), (lambda x: x.norm(), "LinalgVectorNormBackward0"),
    (lambda x: x.sort()[0], "SortBackward0"), (lambda x: x.sort(stable=True)[0], "SortBackward1"),
    (lambda x: x.topk(1)[0], "TopkBackward0"), (lambda x: x.softmax(0), "SoftmaxBackward0"),
    (lambda x: x.log_softmax(0), "LogSoftmaxBackward0"), (lambda x: x.logsumexp(0), "LogsumexpBackward0"),
    (lambda x: x.cumsum(0), "CumsumBackward0"), (lambda x: x.median(), "MedianBackward0"),
    (lambda x: x.median(0)[0], "MedianBackward1"), (lambda x: x.unique(), "Unique2Backward0"),
    (lambda x: torch.dist(x, x), "DistBackward0"), (lambda x: x.kthvalue(1)[0], "KthvalueBackward0"),
])
def test_names_in_the_graph(function: Any, name: str) -> None:
    assert function(torch.rand(2, 3, requires_grad=True)).grad_fn.name() == name


def test_results_are_named() -> None:
    found = torch.tensor([[1.0, 3.0], [4.0, 2.0]]).max(1)
    assert type(found).__match_args__ == ("values", "indices")
    assert not hasattr(found, "_fields")  # a struct sequence, no namedtuple
    assert [t.tolist() for t in found] == [[3, 4], [1, 0]]


@pytest.mark.parametrize(("shape", "dim"), [((100_000,), None), ((100_000, 3), 0), ((300, 300, 7), (0, 1)),
                                        ((500, 3, 100), (0, 2)), ((3, 100_000), 1)])
def test_long_float32_sums_stay_accurate(shape: tuple[int, ...], dim: Any) -> None:
    values = np.random.default_rng(0).random(shape, np.float32)
    exact = values.sum(axis=dim, dtype=np.float64)
    for strided in (values, values[..., ::1].T.copy().T):
        found = torch.tensor(strided).sum(dim).numpy()
        np.testing.assert_allclose(found, exact, rtol=5e-7)


def test_narrow_sums_accumulate_in_float32() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        assert torch.ones(4096, dtype=dtype).sum().item() == 4096
        assert torch.full((4096,), 0.5, dtype=dtype).mean().item() == 0.5


def test_sums_of_integers_are_int64_by_default() -> None:
    x = torch.tensor([200, 100], dtype=torch.uint8)
    assert x.sum().dtype is torch.int64
    assert x.sum().item() == 300
    assert x.sum(dtype=torch.uint8).item() == 44
    assert x.prod().item() == 20_000
    assert x.cumsum(0).dtype is torch.int64


def test_softmax_without_overflow() -> None:
    x = torch.tensor([1e4, 0.0, -1e4])
    assert x.softmax(0).tolist() == [1, 0, 0]
    assert x.log_softmax(0).tolist() == [0, -1e4, -2e4]


def test_no_numpy_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.tensor([INF, -INF]).sum()
        torch.zeros(0).mean()
        torch.tensor([NAN]).max()
