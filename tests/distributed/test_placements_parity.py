"""Placements, which packages make when they are imported, compared with PyTorch's."""

from __future__ import annotations

import copy
import importlib
import pickle

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

MAKE = {
    "shard": lambda m: m.Shard(0), "shard_last": lambda m: m.Shard(dim=-1), "strided": lambda m: m._StridedShard(0),
    "strided_2": lambda m: m._StridedShard(0, split_factor=2), "replicate": lambda m: m.Replicate(),
    "partial": lambda m: m.Partial(), "partial_avg": lambda m: m.Partial("avg"), "none": lambda m: m.Partial(None),
    "subclass": lambda m: type("Own", (m.Shard,), {})(0)}


def names_of(lib):
    return importlib.import_module(f"{lib.__name__}.distributed.tensor.placement_types")


@pytest.mark.parametrize("name", MAKE)
def test_placements(name):
    def observed(lib):
        names = names_of(lib)
        placement = MAKE[name](names)
        others = [make(names) for make in MAKE.values()]
        return (repr(placement), str(placement), isinstance(placement, names.Placement),
                isinstance(placement, names.Shard), placement.is_shard(), placement.is_shard(0),
                placement.is_shard(dim=1), placement.is_replicate(), placement.is_partial(),
                placement.is_partial("avg"), [placement == other for other in (*others, None, 0)],
                [hash(placement) == hash(other) for other in others if placement == other],
                [getattr(placement, key, None) for key in ("dim", "split_factor", "reduce_op")],
                copy.copy(placement) == placement,
                name == "subclass" or pickle.loads(pickle.dumps(placement)) == placement)

    assert observed(flambeau) == observed(torch)


@pytest.mark.parametrize("wrong", [lambda m: m.Shard("a"), lambda m: m.Shard(1.0), lambda m: m.Partial(3),
                                   lambda m: m._StridedShard(0, 2)])
def test_errors_of_placements(wrong):
    errors = []
    for lib in (flambeau, torch):
        with pytest.raises(TypeError) as caught:
            wrong(names_of(lib))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_placements_are_the_same_under_all_names():
    from flambeau.distributed import _tensor, tensor
    from flambeau.distributed.tensor import _api, placement_types

    assert _tensor.Shard is placement_types.Shard is tensor.Shard
    assert _api.DTensor is _tensor.DTensor is tensor.DTensor
