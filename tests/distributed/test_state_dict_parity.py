"""State dicts of models and optimizers by `torch.distributed.checkpoint` in one process, compared with PyTorch."""

from __future__ import annotations

import warnings

import pytest

import flambeau

from .ranks import same

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

ALL = [{}, {"full_state_dict": True}, {"cpu_offload": True}, {"ignore_frozen_params": True}, {"strict": False},
       {"broadcast_from_rank0": True}, {"broadcast_from_rank0": True, "full_state_dict": True},
       {"keep_submodule_prefixes": False}]


def names_of(lib):
    if lib is flambeau:
        return flambeau.distributed.checkpoint.state_dict
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


def plain(value):
    """A state dict without objects of the library."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def trained(lib, steps=2, wrap=False):
    """A model with shared and frozen parameters, and two optimizers with state."""
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Linear(2, 2), lib.nn.Linear(2, 2))
    model[2].weight = model[0].weight
    model[1].bias.requires_grad_(False)
    with lib.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(lib.arange(parameter.numel()).reshape(parameter.shape) / 10 + i)
    call = lib.compile(model) if wrap else model
    groups = [{"params": [model[1].weight]}, {"params": [model[1].bias], "lr": 0.2}]
    optimizers = [lib.optim.SGD(groups, 0.1, momentum=0.5),
                  lib.optim.AdamW([model[0].weight, model[0].bias, model[2].bias], 0.1)]
    for _ in range(steps):
        model(lib.ones(1, 2)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
    return call, optimizers


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("options", [{}, {"flatten_optimizer_state_dict": True}, {"full_state_dict": True},
                                     {"cpu_offload": True, "ignore_frozen_params": True}], ids=str)
def test_states_of_optimizers(options, wrap):
    def run(lib):
        names = names_of(lib)
        model, optimizers = trained(lib, wrap=wrap)
        chosen = names.StateDictOptions(**options)
        if options.get("flatten_optimizer_state_dict"):  # betas are no number
            optimizers = optimizers[:1]
        found = plain(names.get_state_dict(model, optimizers, options=chosen))
        other, others = trained(lib, steps=0)
        states = names.get_state_dict(model, optimizers, options=chosen)
        result = names.set_state_dict(other, others[:len(optimizers)], model_state_dict=states[0],
                                      optim_state_dict=states[1], options=chosen)
        return found, repr(result), plain(names.get_state_dict(other, others[:len(optimizers)], options=chosen))

    ours, theirs = outcome(run, flambeau), outcome(run, torch)
    assert same(plain(ours), plain(theirs)), (ours, theirs)


def changed(lib, change):
    names = names_of(lib)
    model, optimizers = trained(lib)
    state = names.get_optimizer_state_dict(model, optimizers)
    change(state)
    for strict in (True, False):
        names.set_optimizer_state_dict(model, optimizers, state, options=names.StateDictOptions(strict=strict))


@pytest.mark.parametrize("change", [
    lambda state: state["state"].pop("1.weight"), lambda state: state.clear(),
    lambda state: state["param_groups"].pop(0)], ids=["state", "all", "group"])
def test_states_of_optimizers_that_lack_something(change):
    assert outcome(changed, flambeau, change) == outcome(changed, torch, change)


@pytest.mark.parametrize("call", [
    lambda names, model: names.get_optimizer_state_dict(model, []),
    lambda names, model: names.get_state_dict(model, [])[1],
    lambda names, model: names.set_state_dict(model, [], model_state_dict={}, optim_state_dict={}),
    lambda names, model: repr(names.set_model_state_dict(model, {model: dict(model[0].state_dict())})),
    lambda names, model: repr(names.set_model_state_dict(model, {})),
    lambda names, model: repr(names.set_model_state_dict(model, {}, options=names.StateDictOptions(strict=False)))])
def test_states_of_nothing(call):
    def run(lib):
        return call(names_of(lib), model_of(lib))

    assert outcome(run, flambeau) == outcome(run, torch)
