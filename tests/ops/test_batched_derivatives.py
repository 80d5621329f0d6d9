"""`vmap` over derivatives, as in `jacrev`, `jacfwd` and `hessian`: batched gradients and tangents.

Each result must be that of a loop over the batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.func import jvp, vjp, vmap
from tests.ops.spec import RECORDS, load, public
from tests.ops.test_batching import ONE_BY_ONE, run_on
from tests.ops.test_generic import FLOATING, Function, functions, tensors_in

load()

NAMES = sorted(name for name in FLOATING if RECORDS[name].differentiable)
#: records whose derivatives loop over the batch (not because of their own rule): why
LOOPS = {
    "index_reduce": "where elements meet is looked up for each element",
    "nn.functional.embedding_bag": "its bags are arrays, which belong to one element",
}
#: records whose forward mode takes the primal's memory for the tangent's
STRIDED = frozenset(("as_strided", "as_strided_copy"))


def near(found: Any, expected: Any, what: str) -> None:
    found, expected = found.detach().resolve_conj(), expected.detach().resolve_conj()
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-7, atol=1e-9, err_msg=what)


def of_floats(name: str, f: Function) -> tuple[Callable[..., Any], list[Any]]:
    """A function of its floating inputs alone, to its floating outputs; and those inputs."""
    call = public(torch, name)
    tensors = tensors_in(f.sample.args) + tensors_in(tuple(f.sample.kwargs.values()))

    def function(*chosen: Any) -> tuple[Any, ...]:
        left = iter(chosen)
        outs = run_on(call, f.sample, [next(left) if t.requires_grad else t for t in tensors])
        return tuple(o for o in outs if o.is_floating_point() or o.is_complex())

    return function, [t.detach() for t in tensors if t.requires_grad]


def pairs(like: Sequence[Any]) -> list[Any]:
    return [torch.stack([torch.randn(t.shape, dtype=t.dtype) for _ in range(2)]) for t in like]


@contextmanager
def at_once(name: str) -> Iterator[None]:
    """A block in which a loop over the batch is a mistake, unless the record is known for it."""
    loops = name in ONE_BY_ONE or name in LOOPS
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore" if loops else "error", message="There is a performance drop")
        yield


@pytest.mark.parametrize("name", NAMES)
def test_batched_cotangents(name: str) -> None:
    for f in functions(name):
        function, primals = of_floats(name, f)
        with at_once(name):
            cotangents_agree(function, primals, str(f.sample))


def cotangents_agree(function: Callable[..., Any], primals: list[Any], what: str) -> None:
    outs, pull = vjp(function, *primals)
    if not primals or not any(o.requires_grad for o in function(*(p.clone().requires_grad_() for p in primals))):
        return
    cotangents = pairs(outs)
    found = vmap(lambda *c: pull(tuple(c)))(*cotangents)
    for k in range(2):
        for got, want in zip(found, pull(tuple(c[k] for c in cotangents)), strict=True):
            near(got[k], want, what)


@pytest.mark.parametrize("name", NAMES)
def test_batched_tangents(name: str) -> None:
    if name in STRIDED:
        pytest.xfail("the geometry is that of the primal's memory")
    for f in functions(name):
        function, primals = of_floats(name, f)
        with at_once(name):
            tangents_agree(function, primals, str(f.sample))


def tangents_agree(function: Callable[..., Any], primals: list[Any], sample: str) -> None:
    n = len(primals)
    if not n:
        return
    tangents = pairs(primals)
    try:
        expected = [jvp(function, tuple(primals), tuple(t[k] for t in tangents))[1] for k in range(2)]
    except (NotImplementedError, RuntimeError):
        return  # no forward mode there

    def push(*given: Any) -> Any:
        return jvp(function, given[:n], given[n:])[1]

    none, first = (None,) * n, (0,) * n
    twice = [torch.stack([p, p]) for p in primals]
    for what, dims, given in (("tangents", none + first, [*primals, *tangents]),
                              ("both", first + first, [*twice, *tangents]),
                              ("primals", first + none, [*twice, *(t[0] for t in tangents)])):
        found = vmap(push, dims)(*given)
        for k in range(2):
            for got, want in zip(found, expected[0 if what == "primals" else k], strict=True):
                near(got[k], want, f"{what} of {sample}")
