"""Datasets, samplers and collation compared with PyTorch: values, orders, random states, warnings and errors."""

from __future__ import annotations

from collections import OrderedDict, UserDict, UserList, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.utils.data.differential import assert_same

pytest.importorskip("torch")
pytestmark = pytest.mark.parity

Point = namedtuple("Point", "x y")


class Own(dict):
    pass


class OwnList(list):
    pass


@dataclass
class Sample:
    x: int


DATASETS: dict[str, Callable[[Any], Any]] = {
    "base": lambda t: t.utils.data.Dataset()[0],
    "no iterator": lambda t: iter(t.utils.data.IterableDataset()),
    "tensors": lambda t: t.utils.data.TensorDataset(t.arange(4), t.ones(4, 2))[1:3],
    "tensors of other sizes": lambda t: t.utils.data.TensorDataset(t.ones(2), t.ones(3)),
    "stack": lambda t: list(t.utils.data.StackDataset([1, 2], ["a", "b"])),
    "stack, dict": lambda t: t.utils.data.StackDataset(a=[1, 2], b=[3, 4]).__getitems__([1, 0]),
    "stack, batched": lambda t: t.utils.data.StackDataset([1, 2], t.utils.data.Subset([5, 6, 7], [2, 0])
                                                          ).__getitems__([1, 0]),
    "stack of nothing": lambda t: t.utils.data.StackDataset(),
    "stack, mixed": lambda t: t.utils.data.StackDataset([1], a=[1]),
    "stack, sizes": lambda t: t.utils.data.StackDataset([1], [1, 2]),
    "concat": lambda t: [t.utils.data.ConcatDataset([[0, 1], [], [2]])[i] for i in (0, 2, -1, -3)],
    "concat, beyond": lambda t: t.utils.data.ConcatDataset([[0, 1]])[2],
    "concat, below": lambda t: t.utils.data.ConcatDataset([[0, 1]])[-3],
    "concat of nothing": lambda t: t.utils.data.ConcatDataset([]),
    "concat of streams": lambda t: t.utils.data.ConcatDataset([t.utils.data.IterableDataset()]),
    "cummulative sizes": lambda t: t.utils.data.ConcatDataset([[0, 1], [2]]).cummulative_sizes,
    "chain of lists": lambda t: len(t.utils.data.ChainDataset([[1]])),
    "subset": lambda t: (list(t.utils.data.Subset("abc", [2, 0])),
                         t.utils.data.Subset(t.arange(5), [4, 2, 0])[[0, 2]]),
    "subclass of subset": lambda t: type("Own", (t.utils.data.Subset,), {"__getitem__": len})([1], [0]),
    "split": lambda t: [list(s) for s in t.utils.data.random_split(range(10), [3, 7])],
    "split, fractions": lambda t: [list(s) for s in t.utils.data.random_split(
        range(11), [0.3, 0.3, 0.4], generator=t.Generator().manual_seed(7))],
    "split, empty part": lambda t: [len(s) for s in t.utils.data.random_split(range(1), [0.5, 0.5])],
    "split, wrong sum": lambda t: t.utils.data.random_split(range(3), [1, 1]),
    "split, wrong fraction": lambda t: t.utils.data.random_split(range(3), [-0.5, 1.5]),
    "no process group": lambda t: t.utils.data.DistributedSampler([1]),
}


@pytest.mark.parametrize("case", DATASETS)
def test_datasets(case: str) -> None:
    assert_same(DATASETS[case])


SAMPLERS: dict[str, Callable[[Any, Any], Any]] = {
    "sequential": lambda t, d: d.SequentialSampler(range(3)),
    "random": lambda t, d: d.RandomSampler(range(40)),
    "random, generator": lambda t, d: d.RandomSampler(range(5), generator=t.Generator().manual_seed(3)),
    "random, replacement": lambda t, d: d.RandomSampler(range(5), replacement=True, num_samples=70),
    "random, more": lambda t, d: d.RandomSampler(range(3), num_samples=8),
    "random, not a bool": lambda t, d: d.RandomSampler(range(3), replacement=1),
    "random, empty": lambda t, d: d.RandomSampler([]),
    "subset": lambda t, d: d.SubsetRandomSampler([7, 8, 9, 10]),
    "weighted": lambda t, d: d.WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 9),
    "weighted, once": lambda t, d: d.WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 3, replacement=False),
    "weighted, count": lambda t, d: d.WeightedRandomSampler([1.0], True),
    "weighted, replacement": lambda t, d: d.WeightedRandomSampler([1.0], 1, replacement=1),
    "weighted, matrix": lambda t, d: d.WeightedRandomSampler([[1.0]], 1),
    "batch": lambda t, d: d.BatchSampler(range(7), 3, False),
    "batch, drop": lambda t, d: d.BatchSampler(range(7), 3, True),
    "batch, size": lambda t, d: d.BatchSampler(range(7), 0, True),
    "batch, drop_last": lambda t, d: d.BatchSampler(range(7), 1, 1),
    "distributed": lambda t, d: d.DistributedSampler(range(11), 3, 1),
    "distributed, drop": lambda t, d: d.DistributedSampler(range(11), 3, 2, drop_last=True, seed=4),
    "distributed, few": lambda t, d: d.DistributedSampler(range(2), 5, 4, shuffle=False),
    "distributed, rank": lambda t, d: d.DistributedSampler(range(2), 2, 2),
}


@pytest.mark.parametrize("case", SAMPLERS)
def test_samplers(case: str) -> None:
    def program(t: Any) -> Any:
        sampler = SAMPLERS[case](t, t.utils.data)
        epochs = [list(sampler)]
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(1)
        return [*epochs, list(sampler), len(sampler)]

    assert_same(program)


BATCHES: dict[str, Callable[[Any], Any]] = {
    "tensors": lambda t: [t.ones(2), t.zeros(2)],
    "tensors of other sizes": lambda t: [t.ones(2), t.zeros(3)],
    "arrays": lambda t: [np.ones(2, np.float32), np.zeros(2, np.float32)],
    "array scalars": lambda t: [np.int16(3), np.int16(4)],
    "texts in arrays": lambda t: [np.array(["a"]), np.array(["b"])],
    "objects in arrays": lambda t: [np.array([None]), np.array([None])],
    "numbers": lambda t: [1, 2], "floats": lambda t: [1.5, 2.5], "bools": lambda t: [True, False],
    "texts": lambda t: ["a", "b"], "bytes": lambda t: [b"a", b"b"],
    "tuples": lambda t: [(1, 2.0), (3, 4.0)], "lists": lambda t: [[1, 2], [3, 4]],
    "other lengths": lambda t: [[1, 2], [3]], "named tuples": lambda t: [Point(1, "a"), Point(2, "b")],
    "dicts": lambda t: [{"a": 1, "b": [t.ones(1)]}, {"a": 2, "b": [t.zeros(1)]}],
    "missing key": lambda t: [{"a": 1}, {"b": 2}],
    "own dict": lambda t: [Own(a=1), Own(a=2)], "own list": lambda t: [OwnList([1]), OwnList([2])],
    "ordered dict": lambda t: [OrderedDict(b=1, a=2), OrderedDict(b=3, a=4)],
    "read-only mapping": lambda t: [MappingProxyType({"a": 1}), MappingProxyType({"a": 2})],
    "ranges": lambda t: [range(2), range(2)], "nothing": lambda t: [None, None], "sets": lambda t: [{1}, {2}],
    "dataclasses": lambda t: [Sample(1), Sample(2)], "complex": lambda t: [1j, 2j],
    "mixed numbers": lambda t: [1, 2.5], "first decides": lambda t: [1.5, 2], "empty": lambda t: [],
    "user containers": lambda t: [UserDict(a=UserList([1])), UserDict(a=UserList([2]))],
    "scalars": lambda t: [t.tensor(1), t.tensor(2)], "gradients": lambda t: [t.ones(1, requires_grad=True)] * 2,
}


@pytest.mark.parametrize("case", BATCHES)
def test_collation(case: str) -> None:
    assert_same(lambda t: t.utils.data.default_collate(BATCHES[case](t)))
    assert_same(lambda t: t.utils.data.default_convert(BATCHES[case](t)))


def test_functions_of_collation() -> None:
    def program(t: Any) -> Any:
        collate = t.utils.data._utils.collate
        own = {Sample: lambda batch, *, collate_fn_map: [sample.x for sample in batch],
               (int, float): lambda batch, *, collate_fn_map: max(batch)}
        samples = [{"a": Sample(1), "b": 1.5, "c": True}, {"a": Sample(2), "b": 2.5, "c": False}]
        return collate.collate(samples, collate_fn_map=own), [str(key) for key in collate.default_collate_fn_map][1:]

    assert_same(program)


def test_in_a_worker_batches_are_in_shared_memory() -> None:
    def program(t: Any) -> Any:
        worker, collate = t.utils.data._utils.worker, t.utils.data.default_collate
        worker._worker_info = "a worker"
        try:
            return [(batch, batch.is_shared()) for batch in (
                collate([t.ones(2, dtype=t.bfloat16), t.zeros(2, dtype=t.bfloat16)]), collate([np.ones(1)] * 2),
                collate([t.ones(2, 3).t()] * 2), collate([t.ones(0)] * 2))]
        finally:
            worker._worker_info = None

    assert_same(program)


def test_seeds_of_workers() -> None:
    for seed, worker in ((13434589827475259383, 4), (0, 0), (1, 2), (2**63 - 1, 7)):
        assert_same(lambda t, seed=seed, worker=worker: t.utils.data._utils.worker._generate_state(seed, worker))


@pytest.mark.parametrize("name", ["DataLoader", "default_collate", "random_split", "DistributedSampler",
                                  "RandomSampler", "WeightedRandomSampler", "BatchSampler", "ConcatDataset", "Subset"])
def test_signatures(name: str) -> None:
    import inspect

    def program(t: Any) -> Any:
        parameters = inspect.signature(getattr(t.utils.data, name)).parameters.values()
        return [(p.name, str(p.kind), str(type(p.default)).replace("flambeau", "torch")) for p in parameters]

    assert_same(lambda t: [each[:2] for each in program(t)])


def test_public_names() -> None:
    assert_same(lambda t: t.utils.data.__all__)
    assert_same(lambda t: [name for name in dir(t.utils.data) if not name.startswith("__") and name not in (
        "annotations", "iterators", "seeds", "graph")])
