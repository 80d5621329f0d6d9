"""Operators that have no formula for tangents, and the switch of forward mode."""

from __future__ import annotations

import importlib

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CALLS = {
    "igamma": lambda m, dual: m.igamma(dual, dual), "igammac": lambda m, dual: m.igammac(dual, m.ones(3)),
    "zeta": lambda m, dual: m.special.zeta(dual, m.ones(3)),
    "zeta at a number": lambda m, dual: m.special.zeta(dual, 2.0),
    "ctc_loss": lambda m, dual: m.nn.functional.ctc_loss(dual.reshape(3, 1, 1).expand(3, 1, 2), m.ones(1, 1).long(),
                                                         m.tensor([3]), m.tensor([1])),
}


@pytest.mark.parametrize("call", CALLS)
def test_pytorchs_error(call):
    texts = []
    for module in (torch, flambeau):
        forward_ad = importlib.import_module(f"{module.__name__}.autograd.forward_ad")
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(module.full((3,), 2.0), module.ones(3))
            with pytest.raises(NotImplementedError) as raised:
                CALLS[call](module, dual)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]


def test_the_switch_of_the_extension():
    forward_ad = importlib.import_module("flambeau.autograd.forward_ad")
    extension = importlib.import_module("flambeau.environment.extension")
    try:
        extension._set_fwd_grad_enabled(False)
        assert not forward_ad._is_fwd_grad_enabled()
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(flambeau.ones(2), flambeau.ones(2))
            assert forward_ad.unpack_dual(dual * 2).tangent is None
        with forward_ad._set_fwd_grad_enabled(True):
            assert extension._is_fwd_grad_enabled()
        assert not extension._is_fwd_grad_enabled()
    finally:
        extension._set_fwd_grad_enabled(True)
