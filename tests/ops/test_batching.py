"""Every operator's record under `vmap`: the result is that of a loop over the batch, stacked.

Each sample is tried with all its tensors batched, with each of them batched alone, with the
batch in another dimension, with two nested batches, and with gradients taken inside.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.func import vmap
from tests.ops.spec import RECORDS, Record, Sample, load, public
from tests.ops.test_generic import FLOATING, Function, functions, samples_of, tensors_in, with_tensors

load()

#: records whose operators run once for each element: why
ONE_BY_ONE: dict[str, str] = {
    "argwhere": "as many rows as there are elements: none fits two batches",
    "nonzero_static": "a loop in PyTorch, too",
    "nn.functional.embedding_bag": "a loop in PyTorch, too: bags of their own for each element",
    "bincount": "a loop in PyTorch, too: as many counts as the greatest number says",
    "histc": "a loop in PyTorch, too",
    "histogram": "a loop in PyTorch, too",
    "isin": "a loop in PyTorch, too, where the elements tested for are batched",
    "nn.functional.ctc_loss": "a loop in PyTorch, too",
    "nn.functional.multi_margin_loss": "a loop in PyTorch, too",
    "nn.functional.multilabel_margin_loss": "a loop in PyTorch, too",
}

_DYNAMIC = "vmap: We do not support batching operators that can output dynamic shape."
_MASK = "vmap: We do not support batching operators that can support dynamic shape."
#: records that refuse some batches, as in PyTorch: how the refusal begins
REFUSED: dict[str, str] = {
    "allclose": "vmap over torch.allclose isn't supported yet.",
    "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
    "index_put": _MASK,
    "masked_select": "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask)",
    "nonzero": _DYNAMIC,
    "unique": _DYNAMIC,
    "unique_consecutive": _DYNAMIC,
}

#: records of matrices with a property that their elements would lose in other places
GROWING = frozenset(("linalg.cholesky", "cholesky", "cholesky_solve", "cholesky_inverse"))

#: records whose integers have a meaning that others would not have
FIXED = frozenset(("nn.functional.embedding_bag", "segment_reduce"))

ALL = sorted(RECORDS)


def variations(t: Any, count: int, name: str = "") -> Any:
    """A batch of tensors like `t`: itself, permutations of its elements; structured matrices are scaled."""
    if name in GROWING:
        return torch.stack([t.detach() * (1 + k / 4) for k in range(count)])
    if name in FIXED and not t.is_floating_point():
        return torch.stack([t] * count)
    flat = t.detach().reshape(-1)
    return torch.stack([flat.roll(k).reshape(t.shape) for k in range(count)]) if t.numel() else torch.stack([t] * count)


def calls(sample: Sample) -> Iterator[tuple[str, list[bool]]]:
    n = len(tensors_in(sample.args) + tensors_in(tuple(sample.kwargs.values())))
    yield "all", [True] * n
    if n > 1:
        for k in range(n):
            yield f"only {k}", [i == k for i in range(n)]


def run_on(call: Callable[..., Any], sample: Sample, tensors: Sequence[Any]) -> list[Any]:
    left = iter(tensors)
    made = with_tensors(sample, lambda _: next(left))
    return tensors_in(call(*made.args, **made.kwargs))


def element(tensors: Sequence[Any], on: Sequence[bool], k: int) -> list[Any]:
    """What element number `k` of the batch is given, in memory of its own."""
    return [t[k].clone() if b else t for t, b in zip(tensors, on, strict=True)]


def one_by_one(call: Callable[..., Any], sample: Sample, tensors: Sequence[Any], on: Sequence[bool],
               count: int) -> list[Any]:
    rows = [run_on(call, sample, element(tensors, on, k)) for k in range(count)]
    return [torch.stack(list(column)) for column in zip(*rows, strict=True)]


def same(found: Any, expected: Any, what: str) -> None:
    assert found.dtype is expected.dtype, f"{what}: {found.dtype} in a batch, {expected.dtype} alone"
    assert found.shape == expected.shape, f"{what}: {tuple(found.shape)} in a batch, {tuple(expected.shape)} alone"
    found, expected = found.detach().resolve_conj(), expected.detach().resolve_conj()
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-7, atol=1e-9,
                               err_msg=what)


def tried(record: Record, sample: Sample, check: Callable[[Sequence[Any], Sequence[bool], str], None]) -> None:
    tensors = tensors_in(sample.args) + tensors_in(tuple(sample.kwargs.values()))
    for what, on in calls(sample):
        given = [variations(t, 3, record.name) if b else t.detach() for t, b in zip(tensors, on, strict=True)]
        with warnings.catch_warnings():
            if record.name in ONE_BY_ONE:
                warnings.filterwarnings("ignore", message="There is a performance drop")
            else:
                warnings.filterwarnings("error", message="There is a performance drop")
            try:
                check(given, on, what)
            except RuntimeError as error:
                if record.name not in REFUSED or not str(error).startswith(REFUSED[record.name]):
                    raise


@pytest.mark.parametrize("name", ALL)
def test_vmap_equals_a_loop(name: str) -> None:
    record = RECORDS[name]
    call = public(torch, name)
    dtype = None if record.floats else torch.int64
    for sample in samples_of(record, dtype):
        if not tensors_in(sample.args) + tensors_in(tuple(sample.kwargs.values())):
            continue

        def check(given: Sequence[Any], on: Sequence[bool], what: str, sample: Sample = sample) -> None:
            dims = tuple(0 if b else None for b in on)

            def function(*tensors: Any) -> Any:
                return run_on(call, sample, tensors)

            found = vmap(function, dims)(*given)
            expected = one_by_one(call, sample, given, on, 3)
            for got, want in zip(found, expected, strict=True):
                same(got, want, f"{what} of {sample}")
            last = [t.movedim(0, -1) if b else t for t, b in zip(given, on, strict=True)]
            for got, want in zip(vmap(function, tuple(-1 if b else None for b in on))(*last), expected, strict=True):
                same(got, want, f"{what}, batch last, of {sample}")
            twice = [torch.stack([t, t]) if b else t for t, b in zip(given, on, strict=True)]
            for got, want in zip(vmap(vmap(function, dims), dims)(*twice), expected, strict=True):
                same(got, torch.stack([want, want]), f"{what}, nested, of {sample}")

        tried(record, sample, check)


@pytest.mark.parametrize("name", sorted(n for n in ALL if RECORDS[n].differentiable and n in FLOATING))
def test_batched_gradients_equal_those_of_a_loop(name: str) -> None:
    for f in functions(name):
        gradients_agree(RECORDS[name], f)


def gradients_agree(record: Record, f: Function) -> None:
    call = public(torch, record.name)
    wants = [t.requires_grad for t in tensors_in(f.sample.args) + tensors_in(tuple(f.sample.kwargs.values()))]

    def gradients(*tensors: Any) -> Any:
        """The gradients of the sum of the outputs' squares."""

        def total(*chosen: Any) -> Any:
            left = iter(chosen)
            outs = run_on(call, f.sample, [next(left) if w else t for t, w in zip(tensors, wants, strict=True)])
            parts = [(o * o.conj()).real.sum() if o.is_complex() else (o * o).sum() for o in outs
                     if o.is_floating_point() or o.is_complex()]
            return sum(parts, torch.zeros((), dtype=torch.float64))

        chosen = tuple(t for t, w in zip(tensors, wants, strict=True) if w)
        return torch.func.grad(total, tuple(range(len(chosen))))(*chosen)

    def check(given: Sequence[Any], on: Sequence[bool], what: str) -> None:
        dims = tuple(0 if b else None for b in on)
        expected = [torch.stack(list(c)) for c in zip(*[
            gradients(*element(given, on, k)) for k in range(3)], strict=True)]
        for got, want in zip(vmap(gradients, dims)(*given), expected, strict=True):
            same(got, want, f"gradient, {what} of {f.sample}")

    tried(record, f.sample, check)

