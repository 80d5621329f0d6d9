"""`torch.ops.aten`: the overloads of declared operators have PyTorch's names."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.ops.aten import overload_of
from flambeau.ops.declare import REGISTRY


def test_scalar_overloads_belong_to_the_operator_of_tensors() -> None:
    for key in ("_copysign_scalar", "_fmod_scalar", "_remainder_scalar", "_lerp_scalar", "_masked_fill_scalar",
                "_rsub_scalar", "_fill_scalar"):
        name = key.strip("_").removesuffix("_scalar")
        assert str(overload_of(REGISTRY[key])) == f"aten.{name}.Scalar"


def test_comparisons_have_an_overload_for_scalars() -> None:
    x = torch.ones(2)
    assert str(overload_of(REGISTRY["eq"], [x, x])) == "aten.eq.Tensor"
    assert str(overload_of(REGISTRY["eq"], [x, 1])) == "aten.eq.Scalar"
    assert overload_of(REGISTRY["eq"], [x, 1]) is torch.ops.aten.eq.Scalar
    assert str(overload_of(REGISTRY["add"], [x, x], in_place=True)) == "aten.add_.Tensor"


def test_no_overload_name_ends_in_an_internal_suffix() -> None:
    for key, op in REGISTRY.items():
        if op.kind != "composite":
            assert not overload_of(op).overloadpacket.__name__.endswith(("_scalar", "_scaled")), key


@pytest.mark.parametrize("dims", [2, 3])
def test_unpooling_to_a_size(dims):
    x = torch.arange(4. ** dims).reshape(1, *[4] * dims)
    values, indices = getattr(torch.nn.functional, f"max_pool{dims}d")(x, 2, return_indices=True)
    unpool = getattr(torch.ops.aten, f"max_unpool{dims}d")
    extra = ([2] * dims, [0] * dims) if dims == 3 else ()
    expected = getattr(torch.nn.functional, f"max_unpool{dims}d")(values, indices, 2)
    assert torch.equal(unpool(values, indices, [4] * dims, *extra), expected)
    assert unpool(values, indices, [4] * (dims - 1) + [9], *extra).shape == (1, *[4] * (dims - 1), 9)
    with pytest.raises(RuntimeError, match=r"elements .* in output_size, but got 1 elements"):
        unpool(values, indices, [4], *extra)
