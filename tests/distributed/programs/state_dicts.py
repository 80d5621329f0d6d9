"""State dicts of a model of distributed tensors and its optimizer, whole, in parts and sent by rank 0."""

from __future__ import annotations

import warnings
from importlib import import_module

from tests.distributed.ranks import Log


def model_of(torch, size, scale):
    """Two linear layers whose weights are split over processes."""
    names = import_module(f"{torch.__name__}.distributed.tensor")
    mesh = torch.distributed.init_device_mesh("cpu", (size,))
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 3))
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_((torch.arange(parameter.numel()).reshape(parameter.shape) / 10 + i) * scale)
    for layer in (model[0], model[2]):
        layer.weight = torch.nn.Parameter(names.distribute_tensor(layer.weight.detach(), mesh, [names.Shard(0)]))
    optimizer = torch.optim.Adam(model.parameters(), 0.1 * scale)
    if scale:
        for parameter in model.parameters():
            parameter.grad = parameter.detach() + 1
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def main(torch, rank, size):
    """Get, change, set, get again."""
    warnings.simplefilter("ignore")
    names, log = import_module(f"{torch.__name__}.distributed.checkpoint.state_dict"), Log(torch)

    def plain(value):
        if isinstance(value, dict):
            return {str(key): plain(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(each) for each in value]
        return value.to_local() if hasattr(value, "to_local") else value

    for options in ({}, {"full_state_dict": True}, {"full_state_dict": True, "cpu_offload": True},
                    {"full_state_dict": True, "broadcast_from_rank0": True}, {"flatten_optimizer_state_dict": True}):
        chosen = names.StateDictOptions(**options)
        model, optimizer = model_of(torch, size, 1)
        states = names.get_state_dict(model, optimizer, options=chosen)
        log(f"get {options}", lambda: plain(states))
        if options.get("cpu_offload"):
            continue
        if options.get("broadcast_from_rank0") and rank:
            states = {}, {}
        other, other_optimizer = model_of(torch, size, 0)
        if options.get("broadcast_from_rank0"):  # PyTorch's `set_state_dict` waits forever if ranks have {}
            log(f"set optimizer {options}", lambda: names.set_optimizer_state_dict(
                other, other_optimizer, states[1], options=chosen))
            log(f"set {options}", lambda: repr(names.set_model_state_dict(other, states[0], options=chosen)))
        else:
            log(f"set {options}", lambda: repr(names.set_state_dict(
                other, other_optimizer, model_state_dict=states[0], optim_state_dict=states[1], options=chosen)))
        log(f"again {options}", lambda: plain(names.get_state_dict(other, other_optimizer)))
    wrapped = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    log("names", lambda: list(names.get_model_state_dict(wrapped)))
    log("set wrapped", lambda: repr(names.set_model_state_dict(wrapped, {"0.weight": torch.ones(2, 2),
                                                                         "0.bias": torch.ones(2)})))
    log("wrapped", lambda: wrapped.module.state_dict()["0.weight"])
    return log.entries
