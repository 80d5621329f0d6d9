"""Wrappers of `algorithms._checkpoint`: the same gradients and names of states as without them."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    OffloadWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from flambeau.distributed.fsdp.wrap import ModuleWrapPolicy


class Scaled(nn.Module):
    """A layer with a keyword, which counts its calls."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.calls = 0

    def forward(self, x, scale=None):
        self.calls += 1
        return self.inner(x).tanh() * scale


@pytest.mark.parametrize("make", [checkpoint_wrapper, offload_wrapper,
                                  lambda m: checkpoint_wrapper(m, CheckpointImpl.REENTRANT)])
def test_gradients_and_states_are_those_of_the_module(make):
    torch.manual_seed(0)
    module = Scaled()
    gradients = []
    for each in (module, make(module)):
        x, scale = torch.ones(2, 3, requires_grad=True), torch.full((3,), 2., requires_grad=True)
        each(x, scale=scale).sum().backward()
        gradients.append([x.grad.tolist(), scale.grad.tolist(), module.inner.weight.grad.tolist()])
        module.zero_grad()
    assert gradients[0] == gradients[1]
    wrapped = make(module)
    assert wrapped.calls == (3 if isinstance(wrapped, CheckpointWrapper) else 2)  # a recomputation; attributes are its
    assert list(wrapped.state_dict()) == list(module.state_dict()) == [name for name, _ in wrapped.named_parameters()]
    outer = nn.Sequential(wrapped)
    assert list(outer.state_dict()) == ["0.inner.weight", "0.inner.bias"]
    outer.load_state_dict(nn.Sequential(Scaled()).state_dict())


@pytest.mark.parametrize("options", [{"check_fn": lambda m: isinstance(m, nn.Linear)},
                                     {"auto_wrap_policy": ModuleWrapPolicy({nn.Linear})}])
def test_submodules_are_wrapped_in_place(options):
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    names = list(model.state_dict())
    apply_activation_checkpointing(model, **options)
    assert [type(m) for m in (model[0], model[1], model[1][0], model[1][1])] == [
        CheckpointWrapper, nn.Sequential, CheckpointWrapper, nn.ReLU]
    assert list(model.state_dict()) == names
    apply_activation_checkpointing(model, offload_wrapper, lambda m: isinstance(m, nn.ReLU))
    assert isinstance(model[1][1], OffloadWrapper)
    with pytest.raises(ValueError, match="to be callable or be a pre-defined wrap policy"):
        apply_activation_checkpointing(model, auto_wrap_policy=1)
