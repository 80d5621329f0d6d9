"""Loaders compared with PyTorch: batches, their order, random numbers of workers, warnings and errors."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.utils.data.differential import assert_same

pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.skipif(sys.platform == "win32", reason="forks")]


def draws(t: Any, n: int = 7) -> Any:
    """A dataset whose samples are random numbers of all generators."""
    class Draws(t.utils.data.Dataset):
        def __len__(self) -> int:
            return n

        def __getitem__(self, i: int) -> Any:
            info = t.utils.data.get_worker_info()
            return i, t.rand(2), random.random(), np.random.rand(2), info.seed if info else -1, t.initial_seed()

    return Draws()


def stream(t: Any, n: int = 7, length: int | None = None, split: bool = True) -> Any:
    class Stream(t.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            info = t.utils.data.get_worker_info()
            if info is None or not split:
                return iter(range(n))
            return iter(range(info.id, n, info.num_workers))

    class Sized(Stream):
        def __len__(self) -> int:
            assert length is not None
            return length

        def __repr__(self) -> str:
            return "a stream"

    return Stream() if length is None else Sized()


def failing(t: Any, error: BaseException) -> Any:
    class Failing(t.utils.data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> Any:
            if i == 2:
                raise error
            return i

    return Failing()


class TwoArguments(Exception):
    def __init__(self, a: Any, b: Any) -> None:
        super().__init__(a, b)


class WithMessage(Exception):
    message = "text"

    def __init__(self, message: str) -> None:
        super().__init__(message)


def epochs(loader: Any, count: int = 0) -> Any:
    return [list(loader) for _ in range(count or (1 if loader.num_workers else 2))]


def until_errors(loader: Any) -> Any:
    """The batches and errors of an iteration that goes on after errors."""
    found: list[Any] = []
    iterator = iter(loader)
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Exception as error:
            found.append((type(error).__name__, str(error).partition("\n")[0].replace("flambeau", "torch")))


def generator(t: Any) -> Any:
    return t.Generator().manual_seed(11)


# every program gets the options of the workers; those with 2 run with 0 as well
PROGRAMS: dict[str, Callable[..., Any]] = {
    "default": lambda t, D, **w: epochs(D.DataLoader(draws(t, 3), **w)),
    "shuffled": lambda t, D, **w: epochs(D.DataLoader(draws(t), batch_size=2, shuffle=True, **w)),
    "generator": lambda t, D, **w: epochs(D.DataLoader(draws(t), 3, True, generator=generator(t), **w)),
    "no batches": lambda t, D, **w: epochs(D.DataLoader(draws(t, 3), batch_size=None, **w)),
    "drop last": lambda t, D, **w: epochs(D.DataLoader(draws(t), batch_size=3, drop_last=True, **w)),
    "sampler": lambda t, D, **w: epochs(D.DataLoader(draws(t), sampler=[3, 1, 2], batch_size=2, **w)),
    "weighted": lambda t, D, **w: epochs(D.DataLoader(draws(t), sampler=D.WeightedRandomSampler([1.0] * 7, 5), **w)),
    "batch sampler": lambda t, D, **w: epochs(D.DataLoader(draws(t), batch_sampler=[(0, 1), (4,), [2, 3, 6]], **w)),
    "collate": lambda t, D, **w: epochs(D.DataLoader(list("abcd"), batch_size=2, collate_fn="".join, **w)),
    "tensors": lambda t, D, **w: epochs(D.DataLoader(D.TensorDataset(t.arange(6), t.randn(6, 2)), 4, True, **w)),
    "part of a batch": lambda t, D, **w: next(iter(D.DataLoader(draws(t), batch_size=2, shuffle=True, **w))),
    "stream": lambda t, D, **w: epochs(D.DataLoader(stream(t), batch_size=2, **w)),
    "stream, no batches": lambda t, D, **w: epochs(D.DataLoader(stream(t), batch_size=None, **w)),
    "stream, drop last": lambda t, D, **w: epochs(D.DataLoader(stream(t), batch_size=2, drop_last=True, **w)),
    "lengths": lambda t, D, **w: [len(D.DataLoader(stream(t, length=7), batch_size=b, drop_last=d, **w))
                                  for b, d in ((3, False), (3, True), (None, False))],
    "too long": lambda t, D, **w: (lambda loader: (len(loader), list(loader)))(
        D.DataLoader(stream(t, length=3, split=False), batch_size=2, **w)),
    "pinned": lambda t, D, **w: list(D.DataLoader([1, 2], pin_memory=True, pin_memory_device="cuda", **w)),
    "errors": lambda t, D, **w: until_errors(D.DataLoader(failing(t, ValueError("text")), **w)),
    "key error": lambda t, D, **w: until_errors(D.DataLoader(failing(t, KeyError("key")), **w)),
    "two arguments": lambda t, D, **w: until_errors(D.DataLoader(failing(t, TwoArguments(1, 2)), **w)),
    "with message": lambda t, D, **w: until_errors(D.DataLoader(failing(t, WithMessage("text")), **w)),
    "other sizes": lambda t, D, **w: until_errors(D.DataLoader([t.ones(1), t.ones(2)], batch_size=2, **w)),
    "no getitem": lambda t, D, **w: until_errors(D.DataLoader(type("Own", (D.Dataset,), {"__len__": lambda s: 1})(),
                                                              **w)),
    "subset": lambda t, D, **w: epochs(D.DataLoader(D.Subset(draws(t), [5, 0, 2]), batch_size=2, **w)),
    "length": lambda t, D, **w: len(iter(D.DataLoader(draws(t), batch_size=2, **w))),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_loaders(name: str, workers: int) -> None:
    assert_same(lambda t: PROGRAMS[name](t, t.utils.data, num_workers=workers))


def seed_again(worker: int) -> None:
    random.seed(worker)


def raises(worker: int) -> None:
    raise RuntimeError("not ready")


WITH_WORKERS: dict[str, Callable[[Any, Any], Any]] = {
    "persistent": lambda t, D: epochs(D.DataLoader(draws(t), 2, True, num_workers=2, persistent_workers=True), 3),
    "persistent stream": lambda t, D: epochs(
        D.DataLoader(stream(t), 2, num_workers=2, persistent_workers=True), 2),
    "persistent, half": lambda t, D: (lambda loader: (next(iter(loader)), list(loader)))(
        D.DataLoader(draws(t), 2, num_workers=2, persistent_workers=True)),
    "prefetch": lambda t, D: epochs(D.DataLoader(draws(t), 1, num_workers=2, prefetch_factor=3)),
    "init": lambda t, D: epochs(D.DataLoader(draws(t), num_workers=2, worker_init_fn=seed_again)),
    "init error": lambda t, D: until_errors(D.DataLoader([1, 2, 3], num_workers=2, worker_init_fn=raises)),
    "any order": lambda t, D: sorted(b.item() for b in D.DataLoader([1, 2, 3, 4], num_workers=2, in_order=False)),
    "one worker, any order": lambda t, D: epochs(D.DataLoader(draws(t), num_workers=1, in_order=False)),
    "worker's attributes": lambda t, D: until_errors(D.DataLoader([0], num_workers=1, collate_fn=lambda batch: setattr(
        D.get_worker_info(), "id", 1))),
    "shared batches": lambda t, D: [b.is_shared() for b in D.DataLoader([1.0, 2.0], num_workers=1)],
    "views of one tensor": lambda t, D: list(D.DataLoader(t.arange(6).reshape(3, 2), None, num_workers=2)),
    "pickled iterator": lambda t, D: iter(D.DataLoader([1], num_workers=1)).__getstate__(),
    "too many": lambda t, D: D.DataLoader([1], num_workers=100_000) and None,
    "fork": lambda t, D: epochs(D.DataLoader(draws(t), num_workers=1, multiprocessing_context="fork")),
}


@pytest.mark.parametrize("name", WITH_WORKERS)
def test_loaders_with_workers(name: str) -> None:
    assert_same(lambda t: WITH_WORKERS[name](t, t.utils.data))


OPTIONS: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
    "workers": lambda t, D: {"num_workers": -1}, "timeout": lambda t, D: {"timeout": -1},
    "prefetch without workers": lambda t, D: {"prefetch_factor": 2},
    "prefetch": lambda t, D: {"num_workers": 1, "prefetch_factor": -2},
    "persistent": lambda t, D: {"persistent_workers": True},
    "sampler and shuffle": lambda t, D: {"sampler": [1], "shuffle": True},
    "batch sampler": lambda t, D: {"batch_sampler": [[1]], "batch_size": 2},
    "drop last": lambda t, D: {"batch_size": None, "drop_last": True},
    "batch size": lambda t, D: {"batch_size": 0}, "batch size, bool": lambda t, D: {"batch_size": True},
    "context without workers": lambda t, D: {"multiprocessing_context": "fork"},
    "context": lambda t, D: {"num_workers": 1, "multiprocessing_context": "thread"},
    "context's type": lambda t, D: {"num_workers": 1, "multiprocessing_context": 5},
    "stream, shuffle": lambda t, D: {"dataset": stream(t), "shuffle": True},
    "stream, sampler": lambda t, D: {"dataset": stream(t), "sampler": [1]},
    "stream, batch sampler": lambda t, D: {"dataset": stream(t), "batch_sampler": [[1]]},
    "empty, shuffle": lambda t, D: {"dataset": [], "shuffle": True},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_options(name: str) -> None:
    assert_same(lambda t: D.DataLoader(**{"dataset": [1, 2], **OPTIONS[name](t, D)}) and None
                if (D := t.utils.data) else None)


@pytest.mark.parametrize("name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset",
                                  "persistent_workers", "num_workers", "generator"])
def test_attributes(name: str) -> None:
    def program(t: Any) -> Any:
        loader = t.utils.data.DataLoader([1, 2])
        setattr(loader, name, getattr(loader, name))

    assert_same(program)


def test_profiles_contain_loading() -> None:
    def program(t: Any) -> Any:
        with t.autograd.profiler.profile() as profile:
            list(t.utils.data.DataLoader([1, 2]))
        return [event.count for event in profile.key_averages() if event.key.startswith("enumerate(DataLoader)")]

    assert_same(program)
