"""Models that are trained apart and averaged: averagers, the hook, the optimizer, errors."""

import warnings
from collections import OrderedDict
from importlib import import_module

from tests.distributed.ranks import Log


def main(torch, rank, size):
    dist, nn, log = torch.distributed, torch.nn, Log(torch)
    base = f"{torch.__name__}.distributed"
    averagers = import_module(f"{base}.algorithms.model_averaging.averagers")
    hierarchical = import_module(f"{base}.algorithms.model_averaging.hierarchical_model_averager")
    utils = import_module(f"{base}.algorithms.model_averaging.utils")
    hook = import_module(f"{base}.algorithms.ddp_comm_hooks.post_localSGD_hook")
    optimizers = import_module(f"{base}.optim")

    def network():
        torch.manual_seed(2)
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    def inputs(step):
        return torch.arange(12.).reshape(4, 3).sin() + rank * 0.3 + step

    def train(model, averager, wrap=None, steps=6):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        optimizer = wrap(optimizer, averager) if wrap else optimizer
        history = []
        for step in range(steps):
            optimizer.zero_grad()
            (model(inputs(step)) ** 2).sum().backward()
            optimizer.step()
            if not wrap:
                averager.average_parameters(model.parameters())
            history.append([p.detach().clone() for p in model.parameters()])
        return history, averager.step, optimizer

    log("periodic", lambda: train(network(), averagers.PeriodicModelAverager(2, 1))[:2])
    log("groups", lambda: train(network(), hierarchical.HierarchicalModelAverager(
        OrderedDict([(2, 2), (4, size)]), 1))[:2])

    def hooked(**options):
        model = nn.parallel.DistributedDataParallel(network())
        subgroup, _ = dist.new_subgroups(2)
        model.register_comm_hook(hook.PostLocalSGDState(None, subgroup, 2, **options), hook.post_localSGD_hook)
        history, count, optimizer = train(model, averagers.PeriodicModelAverager(3, 2),
                                          optimizers.PostLocalSGDOptimizer)
        state = optimizer.state_dict()
        other = optimizers.PostLocalSGDOptimizer(torch.optim.SGD(network().parameters(), lr=0.05, momentum=0.9),
                                                 averagers.PeriodicModelAverager(3))
        other.load_state_dict(state)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            del state["step"]
            other.load_state_dict(state)
        return history, count, [str(each.message) for each in seen], other.averager.step, repr(other)[:5]
    log("hook", hooked)
    log("hook without reductions", lambda: hooked(post_local_gradient_allreduce=False))

    def dtypes():
        a = nn.Parameter(torch.ones(2) * rank)
        b = nn.Parameter((torch.ones(3) * rank).to(torch.float64))
        c = nn.Parameter(torch.zeros(1))  # has no gradient
        (a.sum() + b.sum()).backward()
        utils.average_parameters_or_parameter_groups([{"params": [a, c]}, {"params": [b]}], None)
        return a, b, c, len(utils.get_params_to_average([a, b, c]))
    log("dtypes", dtypes)

    log("no period", lambda: averagers.PeriodicModelAverager(0))
    log("warm-up", lambda: averagers.PeriodicModelAverager(2, -1))
    log("no periods", lambda: hierarchical.HierarchicalModelAverager())
    log("negative period", lambda: hierarchical.HierarchicalModelAverager({0: 2}))
    log("sizes", lambda: hierarchical.HierarchicalModelAverager({2: 3}))
    log("no parameters", lambda: utils.get_params_to_average([3]))

    def every_step():
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            averagers.PeriodicModelAverager(1)
            hierarchical.HierarchicalModelAverager({1: size})
        return [str(each.message) for each in seen]
    log("every step", every_step)
    return log.entries
