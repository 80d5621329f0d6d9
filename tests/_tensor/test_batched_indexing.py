"""Indexing and assignment under `vmap`: as a loop over the batch, for keys of every kind, shared and each its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.func import grad, vmap

SIZE = 3
random = np.random.default_rng(0)


def numbers(*shape: int) -> Any:
    return torch.tensor(random.normal(size=shape))


def indices(*shape: int, below: int = 3) -> Any:
    return torch.tensor(random.integers(-below, below, shape))


I, J, K = indices(4), indices(2, 4), indices(2, 1)
MASK = torch.tensor(random.random((4, 3)) < 0.6)
ROWS = torch.tensor([True, False, True, True])

#: keys into (4, 3, 5), whose index tensors all elements share
SHARED: dict[str, Callable[[Any], Any]] = {
    "x[2]": lambda x: x[2], "x[-1]": lambda x: x[-1], "x[1:3]": lambda x: x[1:3], "x[::2]": lambda x: x[::2],
    "x[...]": lambda x: x[...], "x[None]": lambda x: x[None], "x[:, None]": lambda x: x[:, None],
    "x[1, 2, 3]": lambda x: x[1, 2, 3], "x[..., 0]": lambda x: x[..., 0], "x[:, 1:, -2:]": lambda x: x[:, 1:, -2:],
    "x[1:1]": lambda x: x[1:1], "x[0, ..., None, 1]": lambda x: x[0, ..., None, 1], "x[()]": lambda x: x[()],
    "x[True]": lambda x: x[True], "x[False]": lambda x: x[False],
    "x[i]": lambda x: x[I], "x[j]": lambda x: x[J], "x[:, i]": lambda x: x[:, I], "x[..., j]": lambda x: x[..., J],
    "x[i, i]": lambda x: x[I, I], "x[i, :, i]": lambda x: x[I, :, I], "x[k, :, i]": lambda x: x[K, :, I],
    "x[:, j, k]": lambda x: x[:, J, K], "x[i, i, i]": lambda x: x[I, I, I], "x[1, :, i]": lambda x: x[1, :, I],
    "x[i, None, i]": lambda x: x[I, None, I], "x[None, i]": lambda x: x[None, I], "x[[0, 2]]": lambda x: x[[0, 2]],
    "x[:, [0, 2], 1:3]": lambda x: x[:, [0, 2], 1:3], "x[i, 0]": lambda x: x[I, 0], "x[0, i]": lambda x: x[0, I],
    "x[mask]": lambda x: x[MASK], "x[rows]": lambda x: x[ROWS], "x[rows, :, i]": lambda x: x[ROWS, :, I[:3]],
    "x[:, rows[:3]]": lambda x: x[:, ROWS[:3]], "x[mask, 1]": lambda x: x[MASK, 1],
    "x[torch.tensor(1)]": lambda x: x[torch.tensor(1)], "x[np.array]": lambda x: x[np.array([0, 1])],
}

#: keys of an index tensor that differs from element to element, and its shape
OWN: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "x[n]": ((), lambda x, n: x[n]), "x[:, n]": ((), lambda x, n: x[:, n]), "x[..., n]": ((), lambda x, n: x[..., n]),
    "x[n, 0]": ((), lambda x, n: x[n, 0]), "x[n, n]": ((), lambda x, n: x[n, n]),
    "x[n, :, n]": ((), lambda x, n: x[n, :, n]), "x[1:, n]": ((), lambda x, n: x[1:, n]),
    "x[v]": ((4,), lambda x, v: x[v]), "x[:, v]": ((4,), lambda x, v: x[:, v]),
    "x[..., v]": ((4,), lambda x, v: x[..., v]), "x[v, v]": ((4,), lambda x, v: x[v, v]),
    "x[v, :, v]": ((4,), lambda x, v: x[v, :, v]), "x[v, i]": ((4,), lambda x, v: x[v, I]),
    "x[i, :, v]": ((4,), lambda x, v: x[I, :, v]), "x[:, v, j]": ((4,), lambda x, v: x[:, v, J]),
    "x[j, v]": ((4,), lambda x, v: x[J, v]), "x[m]": ((2, 4), lambda x, m: x[m]),
    "x[:, m]": ((2, 4), lambda x, m: x[:, m]), "x[m, :, i]": ((2, 4), lambda x, m: x[m, :, I]),
    "x[None, v]": ((4,), lambda x, v: x[None, v]),
    "x[v, None]": ((4,), lambda x, v: x[v, None]), "x[0, v]": ((4,), lambda x, v: x[0, v]),
    "x[1:, v, 2:]": ((4,), lambda x, v: x[1:, v, 2:]), "x[v, v, v]": ((4,), lambda x, v: x[v, v, v]),
    "x[rows, v]": ((3,), lambda x, v: x[ROWS, v]), "x[empty]": ((0,), lambda x, v: x[v]),
}


def same(found: Any, expected: Any) -> None:
    assert found.dtype is expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


def as_a_loop(function: Callable[..., Any], args: Sequence[Any], on: Sequence[bool]) -> None:
    """Compare `vmap` with a loop: the batch first, last, and twice."""
    def looped(given: Sequence[Any]) -> Any:
        return torch.stack([function(*[x[k] if b else x for x, b in zip(given, on, strict=True)]) for k in range(SIZE)])

    expected = looped(args)
    dims = tuple(0 if b else None for b in on)
    same(vmap(function, dims)(*args), expected)
    last = tuple(-1 if b else None for b in on)
    same(vmap(function, last)(*[x.movedim(0, -1) if b else x for x, b in zip(args, on, strict=True)]), expected)
    twice = [torch.stack([x, x + (x.is_floating_point())]) if b else x for x, b in zip(args, on, strict=True)]
    nested = torch.stack([looped([x[k] if b else x for x, b in zip(twice, on, strict=True)]) for k in range(2)])
    same(vmap(vmap(function, dims), dims)(*twice), nested)


def which(count: int) -> list[tuple[bool, ...]]:
    """Every choice of batched arguments but none."""
    return [tuple(bool(n >> i & 1) for i in range(count)) for n in range(1, 2**count)]


def with_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the sum of squares by the first argument."""
    return grad(lambda x, *rest: (function(x, *rest) ** 2).sum())


@pytest.mark.parametrize("key", SHARED)
def test_shared_keys(key: str) -> None:
    x = numbers(SIZE, 4, 3, 5)
    as_a_loop(SHARED[key], [x], [True])
    as_a_loop(with_gradient(SHARED[key]), [x], [True])


@pytest.mark.parametrize("key", OWN)
@pytest.mark.parametrize("on", which(2))
def test_own_keys(key: str, on: tuple[bool, ...]) -> None:
    shape, take = OWN[key]
    x = numbers(SIZE, 4, 3, 5) if on[0] else numbers(4, 3, 5)
    index = indices(SIZE, *shape) if on[1] else indices(*shape)
    as_a_loop(take, [x, index], on)
    as_a_loop(with_gradient(take), [x, index], on)


def assigned(key: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """`x` with a value written at what a function indexes, which tells its key."""
    def write(x: Any, value: Any) -> Any:
        x = x * 1
        x[key(_KEY)] = value
        return x

    return write


class _Key:
    def __getitem__(self, key: Any) -> Any:
        return key


_KEY = _Key()


@pytest.mark.parametrize("key", [key for key in SHARED if key not in ("x[False]",)])
@pytest.mark.parametrize("on", [(True, False), (True, True)])
def test_assignment_at_shared_keys(key: str, on: tuple[bool, ...]) -> None:
    x = numbers(SIZE, 4, 3, 5)
    part = SHARED[key](x[0]).shape
    at = assigned(SHARED[key])
    for shape in {(), part, part[1:]}:
        if key in REPEATING and shape == part:
            continue  # which of two values stays is not said
        value = numbers(*((SIZE, *shape) if on[1] else shape))
        as_a_loop(at, [x, value], on)
        as_a_loop(with_gradient(at), [x, value], on)
        as_a_loop(lambda v, x, at=at: with_gradient(lambda v, x: at(x, v))(v, x), [value, x], on[::-1])
    as_a_loop(lambda x, at=at: at(x, 2.5), [x], [True])


#: keys that name places twice
REPEATING = frozenset(k for k in SHARED if "i" in k or "j" in k or "k]" in k)


@pytest.mark.parametrize("key", [key for key in OWN if OWN[key][0] == ()])
@pytest.mark.parametrize("on", [(True, True, False), (True, False, True), (True, True, True)])
def test_assignment_at_own_keys(key: str, on: tuple[bool, ...]) -> None:
    take = OWN[key][1]
    x = numbers(SIZE, 4, 3, 5)
    index = indices(SIZE) if on[1] else indices()
    part = take(x[0], torch.tensor(0)).shape

    def write(x: Any, index: Any, value: Any) -> Any:
        x = x * 1
        x[take(_KEY, index)] = value
        return x

    for shape in {(), part, part[1:]}:
        value = numbers(*((SIZE, *shape) if on[2] else shape))
        as_a_loop(write, [x, index, value], on)
        as_a_loop(with_gradient(write), [x, index, value], on)
        as_a_loop(lambda v, x, n: with_gradient(lambda v, x, n: write(x, n, v))(v, x, n), [value, x, index],
                  (on[2], on[0], on[1]))
    if on == (True, True, True):
        as_a_loop(lambda x, n: write(x, n, 1.5), [x, index], (True, True))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("on", [on for on in which(3) if on[0]])
def test_index_put(accumulate: bool, on: tuple[bool, ...]) -> None:
    x = numbers(SIZE, 4, 3, 5)
    index = torch.tensor([[0, 2, 1], [2, 1, 0], [1, 0, 2]])
    index = index if on[1] else index[0]
    masked = torch.tensor([True, True, False, True])
    for indices_of, shape in [(lambda i: (i,), (3, 3, 5)), (lambda i: (i,), (5,)), (lambda i: (i,), ()),
                              (lambda i: (i, i), (3, 5)), (lambda i: (masked, i), (3, 5)),
                              (lambda i: (i, torch.tensor([[0], [2]])), (2, 3, 5))]:
        value = numbers(*((SIZE, *shape) if on[2] else shape))

        def put(x: Any, i: Any, v: Any, indices_of: Any = indices_of) -> Any:
            return x.index_put(indices_of(i), v, accumulate)

        as_a_loop(put, [x, index, value], on)
        as_a_loop(with_gradient(put), [x, index, value], on)
        as_a_loop(with_gradient(lambda v, x, i, put=put: put(x, i, v)), [value, x, index], (on[2], on[0], on[1]))


def test_writes_reach_the_given_tensor() -> None:
    x = numbers(SIZE, 4)
    y = x.clone()

    def write(row: Any) -> Any:
        row[1] = 7.0
        row[2:].add_(1)
        return row

    vmap(write)(x)
    y[:, 1] = 7.0
    y[:, 2:] += 1
    same(x, y)


def test_a_view_written_through_keeps_its_history() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        part = y[1:]
        part[0] = x[0] * 3
        part.mul_(x[1:])
        return (y * y).sum()

    as_a_loop(grad(function), [numbers(SIZE, 4)], [True])


@pytest.mark.parametrize("key", ["x[n]", "x[:, v]", "x[v, :, v]", "x[j, v]", "x[rows, v]"])
def test_a_batch_within_a_gradient_within_a_batch(key: str) -> None:
    shape, take = OWN[key]
    each = vmap(take, (0, 0))
    x, index = numbers(SIZE, 2, 4, 3, 5), indices(SIZE, 2, *shape)
    as_a_loop(with_gradient(each), [x, index], [True, True])
    shared = vmap(take, (None, 0))
    as_a_loop(with_gradient(shared), [x[:, 0], index], [True, True])


def _written(x: Any) -> Any:
    y = x * 2
    y[1:, I % 3] = x[0, 0, 0]
    part = y[:, 1]
    part[MASK[:, :1].expand(4, 5)] *= x[3, 2, 0]
    y.transpose(0, 1)[0, I] = x[I, 1]
    y.diagonal().mul_(3)
    return y


@pytest.mark.parametrize("function", [*SHARED.values(), _written, lambda x: x.as_strided((2, 3), (1, 4)) * x[0, 0, 0],
                                      lambda x: x.unfold(2, 3, 1), lambda x: x.diagonal(1, 0, 2),
                                      lambda x: torch.nn.functional.embedding(J % 3, x[0], padding_idx=1)])
def test_cotangents_in_batches(function: Callable[[Any], Any]) -> None:
    """`is_grads_batched` gives what one cotangent after the other gives."""
    x = numbers(4, 3, 5).requires_grad_()
    y = function(x * x)
    cotangents = numbers(SIZE, *y.shape)
    found, = torch.autograd.grad(y, x, cotangents, is_grads_batched=True, retain_graph=True)
    for k in range(SIZE):
        expected, = torch.autograd.grad(y, x, cotangents[k], retain_graph=True)
        same(found[k], expected)


def test_a_batched_mask_raises() -> None:
    x, mask = numbers(SIZE, 4), torch.tensor(random.random((SIZE, 4)) < 0.5)
    said = "vmap: We do not support batching operators that can support dynamic shape."
    with pytest.raises(RuntimeError, match=said):
        vmap(lambda x, m: x[m])(x, mask)

    def write(x: Any, m: Any) -> Any:
        x = x.clone()
        x[m] = 0.0
        return x

    with pytest.raises(RuntimeError, match=said):
        vmap(write)(x, mask)
    same(vmap(lambda x: write(x, mask[0]))(x), torch.where(mask[0], 0.0, x))


def test_unbatched_targets_reject_batched_values() -> None:
    def write(x: Any) -> Any:
        y = torch.zeros(4, dtype=torch.float64)
        y[torch.tensor([0])] = x[0]
        return y

    with pytest.raises(RuntimeError, match="vmap: index_put_\\(self, \\*extra_args\\) is not possible"):
        vmap(write)(numbers(SIZE, 4))

    def write_part(x: Any) -> Any:
        y = torch.zeros(4, dtype=torch.float64)
        y[1:] = x[1:]
        return y

    with pytest.raises(RuntimeError, match="vmap: inplace arithmetic\\(self, \\*extra_args\\) is not possible"):
        vmap(write_part)(numbers(SIZE, 4))
    same(vmap(lambda x: x.new_zeros(4).index_put_((torch.tensor([0]),), x[0]))(numbers(SIZE, 4) * 0),
         torch.zeros(SIZE, 4, dtype=torch.float64))


@pytest.mark.parametrize(("key", "error", "said"), [
    (7, IndexError, "index 7 is out of bounds for dimension 0 with size 4"),
    ((0, 0), IndexError, "too many indices for tensor of dimension 1"),
    (torch.tensor([4]), IndexError, "index 4 is out of bounds for dimension 0 with size 4"),
])
def test_errors(key: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        vmap(lambda x: x[key])(numbers(SIZE, 4))


def test_zero_dimensional_elements() -> None:
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        vmap(lambda x: x[0])(numbers(SIZE))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        vmap(lambda x: next(iter(x)))(numbers(SIZE))
    same(vmap(lambda x: torch.stack([*x]))(torch.eye(SIZE)), torch.eye(SIZE))
