"""`SchemaCheckMode`: operators write and share memory as their schemas say, and others are found out."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau._subclasses.schema_check_mode import Aliasing, Mutation, SchemaCheckMode

from .test_fastpaths import NAMES, RECORDS, Make, public


@pytest.mark.parametrize("name", NAMES)
def test_operators_do_as_their_schemas_say(name: str) -> None:
    for sample in list(RECORDS[name].samples(Make(torch, torch.float64, False)))[:2] if RECORDS[name].floats else ():
        try:
            public(torch, name)(*sample.args, **sample.kwargs)
        except Exception:
            continue
        with SchemaCheckMode():
            public(torch, name)(*sample.args, **sample.kwargs)


def test_writes_and_views_are_recorded() -> None:
    x = torch.ones(2, 2)
    with SchemaCheckMode() as mode:
        x.add_(1)
        x.t()
    assert mode.ops == ["aten::add_", "aten::t"]
    assert mode.mutated == [Mutation("aten::add_", "input")]
    assert Aliasing("aten::t", "input", "output_0") in mode.aliasing


@pytest.mark.parametrize(("kernel", "message"), [
    (lambda x: x.view(-1), "Argument x is not defined to alias output but was aliasing"),
    (lambda x: x.mul_(2) * 3, "Argument x is not defined as mutable but was mutated"),
    (lambda x: x, "Argument x is not defined to alias output but was aliasing")])
def test_operators_that_do_otherwise_are_found(kernel: Any, message: str) -> None:
    library = torch.library.Library("otherwise", "FRAGMENT")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", kernel, "CPU")
    with SchemaCheckMode(), pytest.raises(RuntimeError, match=message):
        torch.ops.otherwise.f(torch.ones(2))
    library._destroy()


def test_schema_info() -> None:
    info = torch._C._SchemaInfo("foo::f(Tensor(a!) x, Tensor(b) y, Tensor z) -> Tensor(b)")
    kind, make = torch._C._SchemaArgType, torch._C._SchemaArgument
    assert [info.is_mutable(i) for i in range(3)] == [True, False, False]
    assert info.may_alias(make(kind.output, 0), make(kind.input, 1))
    assert not info.may_alias(make(kind.output, 0), make(kind.input, 2))
    x = torch.ones(2)
    info.add_argument_values({"x": x, "z": x})
    assert info.is_mutable("z")
    assert info.may_alias(make(kind.input, 0), make(kind.input, 2))


@pytest.mark.parametrize(("function", "factor", "shape"), [
    ("pixel_shuffle", 1, (1, 4, 2, 2)), ("pixel_shuffle", 2, (1, 4, 1, 1)), ("pixel_unshuffle", 1, (1, 4, 2, 2)),
    ("pixel_unshuffle", 2, (1, 1, 2, 2)), ("channel_shuffle", 1, (1, 4, 2, 2)), ("channel_shuffle", 4, (1, 4, 2, 2))])
def test_shuffles_that_move_nothing_are_copies(function: str, factor: int, shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    with SchemaCheckMode():
        getattr(torch.nn.functional, function)(x, factor).zero_()
    assert x.sum() == x.numel()
