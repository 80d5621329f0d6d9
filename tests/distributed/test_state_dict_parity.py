"""State dicts of models by `torch.distributed.checkpoint` in one process, compared with PyTorch."""

from __future__ import annotations

import warnings

import pytest

import flambeau
from flambeau.distributed.names import MODULES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

ALL = [{}, {"full_state_dict": True}, {"cpu_offload": True}, {"ignore_frozen_params": True}, {"strict": False},
       {"broadcast_from_rank0": True}, {"broadcast_from_rank0": True, "full_state_dict": True},
       {"keep_submodule_prefixes": False}]


def names_of(lib):
    if lib is flambeau:
        return MODULES["checkpoint.state_dict"]
    from torch.distributed.checkpoint import state_dict
    return state_dict


def model_of(lib, device="cpu"):
    with lib.device(device):
        model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3))
    model[0].bias.requires_grad_(False)
    return model


def get(lib, options, submodules=False):
    names, model = names_of(lib), model_of(lib)
    state = names.get_model_state_dict(model, submodules={model[0]} if submodules else None,
                                       options=names.StateDictOptions(**options))
    return type(state).__name__, {key: (tuple(value.shape), value.requires_grad, any(
        value.data_ptr() == each.data_ptr() for each in model.state_dict().values())) for key, value in state.items()}


def put(lib, options, device, change):
    names, model = names_of(lib), model_of(lib, device)
    state = {key: value.clone() + 1 for key, value in model_of(lib).state_dict().items()}
    if change:
        del state["0.weight"]
        state["x"] = lib.ones(1)
    result = names.set_model_state_dict(model, state, options=names.StateDictOptions(**options))
    return repr(result), model[0].weight.device.type, model[0].bias.requires_grad


def outcome(call, *args):
    try:
        with warnings.catch_warnings(action="ignore"):
            return call(*args)
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]


@pytest.mark.parametrize("options", ALL, ids=str)
def test_get(options):
    for submodules in (False, True):
        assert outcome(get, flambeau, options, submodules) == outcome(get, torch, options, submodules)


@pytest.mark.parametrize("options", ALL, ids=str)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_set(options, device):
    for change in (False, True):
        assert outcome(put, flambeau, options, device, change) == outcome(put, torch, options, device, change)


def put_into_offloaded(lib, full):
    names, model = names_of(lib), lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Linear(3, 3))
    state = {key: value.clone() + 1 for key, value in model.state_dict().items()}
    model[0].to("meta")
    result = names.set_model_state_dict(model, state, options=names.StateDictOptions(full_state_dict=full))
    return repr(result), [(each.device.type, each.requires_grad, each.data_ptr() == state[name].data_ptr())
                          for name, each in model.named_parameters()]


@pytest.mark.parametrize("full", [False, True])
def test_set_where_some_tensors_are_meta(full):
    assert outcome(put_into_offloaded, flambeau, full) == outcome(put_into_offloaded, torch, full)
