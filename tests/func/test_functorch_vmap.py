"""`torch._functorch.vmap` and `torch._C._functorch`: the parts of vmap that packages call and replace."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def functorch(module: Any) -> Any:
    return importlib.import_module("torch._C._functorch") if module is torch else flambeau._C._functorch


@pytest.mark.parametrize("dim", [0, 1])
def test_batch_dimensions_are_added_and_removed(dim: int) -> None:
    found = []
    for t in (torch, flambeau):
        f, seen = functorch(t), []

        def inside(x: Any, t: Any = t, f: Any = f, seen: list[Any] = seen) -> Any:
            level = f.maybe_get_level(x)
            other = f._add_batch_dim(t.arange(6.0).reshape(2, 3), dim, level)
            seen.append((tuple(other.shape), f.is_batchedtensor(other), f.maybe_get_level(t.ones(1)),
                         f._remove_batch_dim(other * 2, level, 2 if dim == 0 else 3, 0).tolist(),
                         f.get_unwrapped(x).tolist()))
            with pytest.raises(RuntimeError, match=r"^No wrappers present!$"):
                f.get_unwrapped(t.ones(1))
            return x

        t.vmap(inside)(t.arange(4.0).reshape(2, 2) if dim == 0 else t.arange(6.0).reshape(3, 2))
        found.append(seen)
    assert found[1] == found[0]


class Pair:
    """A container with a batch dimension, which is no registered pytree."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


def test_parts_of_vmap_are_replaceable(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for t in (torch, flambeau):
        v = importlib.import_module("torch._functorch.vmap") if t is torch else flambeau._functorch.vmap
        calls: list[Any] = []

        def process(in_dims: Any, args: Any, func: Any, v: Any = v) -> Any:
            flat, spec = v.tree_flatten(args)
            return flat[0].first.shape[0], v._broadcast_to_and_flatten(in_dims, spec), flat, spec

        def create(dims: Any, flat: Any, level: int, spec: Any, v: Any = v, calls: Any = calls) -> Any:
            calls.append((list(dims), level))
            return v.tree_unflatten([Pair(*(v._add_batch_dim(x, d, level) for x in (p.first, p.second)))
                                     for p, d in zip(flat, dims, strict=True)], spec)

        def unwrap(outs: Any, out_dims: Any, level: int, size: int, func: Any, v: Any = v, calls: Any = calls) -> Any:
            calls.append((out_dims, level, size, v._get_name(func)))
            return v._maybe_remove_batch_dim(v._get_name(func), outs, level, size, out_dims)

        for name, replacement in (("_process_batched_inputs", process), ("_create_batched_inputs", create),
                                  ("_unwrap_batched", unwrap)):
            monkeypatch.setattr(v, name, replacement)

        def product(pair: Pair) -> Any:
            return (pair.first * pair.second).sum()

        result = t.vmap(product)(Pair(t.arange(6.0).reshape(3, 2), t.ones(3, 2)))
        found.append((calls, result.tolist()))
    assert found[1] == found[0]


def test_an_output_as_a_tuple() -> None:
    module = importlib.import_module("flambeau.compiler.functorch.eager_transforms")
    assert module._as_tuple(1) == (1,)
    assert module._as_tuple((1, 2)) == (1, 2)
