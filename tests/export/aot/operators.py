"""Functions of operators that programs in the process run outside their kernels, by family, with arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau.nn import functional as F

#: name -> a function, and what makes its arguments
GROUPS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {}


def group(make: Callable[[], tuple[Any, ...]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function by its name, with what makes its arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        GROUPS[function.__name__] = function, make
        return function

    return add


@group(lambda: (torch.randn(4, 33), torch.randint(-3, 3, (3, 20))))
def ordering(x: Any, i: Any) -> Any:
    return (
        *x.sort(1),
        *x.sort(0, descending=True),
        *x.topk(3),
        *x.topk(2, 0, largest=False),
        *x.kthvalue(4, 1),
        *x.median(1),
        x.median(),
        x.quantile(0.3, 1),
        *torch.where(x > 1, torch.nan, x).nanmedian(1),
        *torch.where(x > 1, torch.nan, x).median(1),
        *torch.sort(i, 1, stable=True),
        torch.argsort(i > 0, dim=1, stable=True),
        x.half().sort(1)[0],
    )


@group(lambda: (torch.randn(4, 9).sort(1)[0], torch.randn(4, 5), torch.randint(0, 9, (7,))))
def search(sequences: Any, values: Any, i: Any) -> Any:
    return (
        torch.searchsorted(sequences, values),
        torch.searchsorted(sequences, values, right=True, out_int32=True),
        torch.bucketize(values, sequences[0]),
        torch.isin(i, torch.tensor([1, 4])),
    )


@group(lambda: (torch.randn(5, 4), torch.randn(5, 3), torch.randn(2, 4, 3), torch.randn(2)))
def bilinear(x: Any, y: Any, weight: Any, bias: Any) -> Any:
    return F.bilinear(x, y, weight, bias)


@group(lambda: (torch.randn(2, 3, 8, 7), torch.randn(12, 6)))
def windows(x: Any, columns: Any) -> Any:
    options = {"padding": (1, 2), "stride": (2, 1), "dilation": (1, 2)}
    each = F.unfold(x, (3, 2), **options)
    return each, F.fold(each, (8, 7), (3, 2), **options), F.unfold(x[0], 2), F.fold(columns, (3, 4), 2)


@group(lambda: (torch.randint(-20, 20, (5, 6)), torch.randint(1, 5, (6,)) * -1, torch.randn(5, 6), torch.rand(6) - 2))
def division(i: Any, j: Any, x: Any, y: Any) -> Any:
    return (
        i // 3, i // j, i % j, torch.fmod(i, j), torch.div(i, j, rounding_mode="trunc"), i.int() // -7, i**3, i.sign(),
        (i.abs() + 2**40) // 1000003, x // y, x % y, torch.div(x, 0.3, rounding_mode="floor"), x // torch.zeros(6),
        torch.tensor([2**63 - 1, -(2**63), 2**62 + 1]) // (j[:3].abs() + 0 * i[0, :3]),
    )  # fmt: skip


@group(lambda: (torch.randn(4, 9), torch.tensor([0, -2]), torch.randn(2, 9), torch.randn(3)))
def writes_at_indices(x: Any, i: Any, rows: Any, v: Any) -> Any:
    y = x.clone()
    y[:, i] = 1.5
    y[i] += rows
    y[y > 1] = 0.25
    return (
        y,
        torch.index_put(x, (i,), rows),
        x.index_put((torch.tensor([0, 2, 0]), torch.tensor([1, 3, 1])), v, accumulate=True),
        x.index_fill(1, i, 2.0),
        x.index_copy(0, i + 2, rows),
        x.scatter(1, torch.tensor([[3, 0], [1, 2]]), rows),
        x.scatter_add(1, torch.tensor([[3, 3], [1, 2]]), rows),
    )


def _places() -> tuple[Any, ...]:
    return torch.randn(4, 9), torch.randint(0, 9, (3, 7)), torch.randn(3, 8), torch.randint(0, 4, (3, 9))


@group(_places)
def reductions_at_indices(x: Any, i: Any, v: Any, j: Any) -> Any:
    results = []
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            results.append(x.scatter_reduce(1, i, v, reduce, include_self=include_self))
    whole = (x * 10).long()
    results.append(whole.scatter_reduce(0, j, whole[:3] * 2, "amax"))
    results.append(whole.scatter_reduce(0, j, whole[:3] - 30, "mean"))
    return tuple(results)


@group(lambda: (torch.randn(2, 5, 3), torch.randn(2, 4, 3), torch.randn(40, 3)))
def distances(a: Any, b: Any, many: Any) -> Any:
    orders = [torch.cdist(a, b, p) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))]
    return (*orders, torch.cdist(many, many[:30] + 1), torch.pdist(a[0]))


@group(lambda: (torch.randn(2, 3, 5, 6), torch.rand(2, 4, 3, 2) * 2.6 - 1.3, torch.randn(2, 3, 4, 5, 6),
                torch.rand(2, 4, 3, 2, 3) * 2.6 - 1.3))  # fmt: skip
def sampling(image: Any, grid: Any, volume: Any, points: Any) -> Any:
    results = [
        F.grid_sample(image, grid, mode, padding, corners)
        for mode, padding, corners in (
            ("bilinear", "zeros", False),
            ("bilinear", "reflection", True),
            ("nearest", "border", False),
            ("bicubic", "reflection", False),
        )
    ]
    return (*results, F.grid_sample(volume, points, align_corners=False))


@group(lambda: (torch.randn(20, 3), torch.randint(0, 20, (9,)), torch.tensor([0, 2, 2, 7]), torch.rand(9)))
def bags(table: Any, i: Any, offsets: Any, factors: Any) -> Any:
    return (
        F.embedding_bag(i, table, offsets, mode="mean"),
        F.embedding_bag(i, table, offsets, mode="sum", per_sample_weights=factors),
    )


def _systems() -> tuple[Any, ...]:
    a = torch.randn(3, 5, 5) + 3 * torch.eye(5)
    return a, torch.randn(3, 5, 2)


@group(_systems)
def linear_systems(a: Any, b: Any) -> Any:
    lower = torch.linalg.cholesky(a @ a.mT + torch.eye(5))
    return (
        lower,
        torch.cholesky_solve(b, lower),
        torch.linalg.solve(a, b),
        torch.linalg.solve(a, b[..., 0]),
        torch.linalg.solve_triangular(a.triu(), b, upper=True),
        torch.linalg.solve_triangular(a.tril(), b.mT, upper=False, left=False),
        torch.linalg.inv(a),
        torch.linalg.det(a),
        *torch.linalg.slogdet(a),
    )


@group(lambda: (torch.randn(2, 16), torch.randn(2, 300), torch.randn(2, 6, 10), torch.randn(2, 5)))
def transforms(x: Any, long: Any, image: Any, odd: Any) -> Any:
    spectrum = torch.fft.rfft(x)
    kept = torch.zeros_like(spectrum)
    kept[:, :3] = spectrum[:, :3] * (1 + 2j)
    return (
        torch.view_as_real(torch.fft.rfft(long)),
        torch.fft.irfft(torch.fft.rfft(long) * 1j, n=300),
        torch.fft.irfft(torch.fft.rfft(odd), n=5),
        torch.view_as_real(torch.fft.fft2(image, norm="ortho")),
        torch.fft.irfft2(torch.fft.rfft2(image) / 2, s=(6, 10)),
        torch.fft.irfft(kept, n=16),
        torch.stft(long, 20, 8, window=torch.hann_window(20), return_complex=True).abs().pow(2),
    )


@group(lambda: (torch.rand(3, 4), torch.rand(3, 4) + 1))
def complex_numbers(a: Any, b: Any) -> Any:
    x, y = torch.complex(a, b), torch.polar(b, a)
    rotated = torch.view_as_real(torch.view_as_complex(torch.stack((a, b), -1)) * y)
    return (
        y.angle(),
        (x / (y + 2)).real,
        torch.view_as_real(x.exp() * x.log() - x.conj()),
        (x @ y.mT).abs(),
        x.sum(0).imag,
        x.mean().real.clone(),
        rotated.flatten(1),
        torch.where(a > 0.5, x, y).sgn().imag,
    )


@group(lambda: (torch.randint(-100, 100, (3, 5, 7), dtype=torch.int8), torch.randint(-(2**40), 2**40, (3, 7, 4))))
def integer_products(x: Any, y: Any) -> Any:
    weight = torch.arange(-21, 21, dtype=torch.int32).reshape(6, 7)
    return (
        x.int()[0] @ weight.T,
        (x.int() @ weight.T).float() * 0.25,
        torch.bmm(x.long(), y),
        x[1] @ x[2].T,
        x.long()[0] @ y[0, :, 0],
        torch.addmm(weight.long(), weight.long()[:, :5], x[0].long()),
    )
