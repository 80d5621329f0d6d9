"""`DistributedDataParallel`: gradients, buffers, options, hooks, errors."""

from tests.distributed.ranks import Log


def main(torch, rank, size):
    dist, log = torch.distributed, Log(torch)
    nn = torch.nn
    ddp = nn.parallel.DistributedDataParallel
    from importlib import import_module

    hooks = import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks")
    power = import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")

    def network():
        torch.manual_seed(rank)  # the first process's parameters are copied
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))

    def inputs(step):
        return torch.arange(12.).reshape(3, 4).sin() + rank + step

    def train(model, steps=4, lr=0.1, loss=lambda out: (out ** 2).sum()):
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        losses = []
        for step in range(steps):
            optimizer.zero_grad()
            value = loss(model(inputs(step)))
            value.backward()
            optimizer.step()
            losses.append(value.item())
        return losses, model.state_dict(), [p.grad for p in model.parameters()]

    log("plain", lambda: train(ddp(network())))
    log("small buckets", lambda: train(ddp(network(), bucket_cap_mb=0.0001)))
    log("views", lambda: train(ddp(network(), gradient_as_bucket_view=True)))
    log("own buffers", lambda: train(ddp(network(), broadcast_buffers=False)))
    log("static", lambda: train(ddp(network(), static_graph=True)))

    def seeded(make, *args):
        torch.manual_seed(5)
        return make(*args)

    def backward(model, *args):
        model(*args).sum().backward()
        return list(model.parameters())

    log("bfloat16", lambda: [p.grad for p in backward(ddp(seeded(nn.Linear, 4, 2).bfloat16()), inputs(0).bfloat16())])

    # hooks
    for name in ("allreduce_hook", "fp16_compress_hook"):
        def hooked(name=name):
            model = ddp(network())
            model.register_comm_hook(None, getattr(hooks, name))
            return train(model, 2)[:2]
        log(name, hooked)

    def powered(hook, **options):
        model = ddp(seeded(nn.Linear, 4, 40), bucket_cap_mb=1)
        model.register_comm_hook(power.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=1, **options),
                                 hook)
        return train(model, 5, 0.001)[:2]
    log("powerSGD", lambda: powered(power.powerSGD_hook))
    log("powerSGD of rank 2", lambda: powered(power.powerSGD_hook, matrix_approximation_rank=2, warm_start=False))

    def own_hook():
        model = ddp(seeded(nn.Linear, 4, 2))
        seen = []

        def hook(state, bucket):
            seen.append((bucket.index(), bucket.is_last(), list(bucket.buffer().shape), len(bucket.gradients()),
                         [list(p.shape) for p in bucket.parameters()]))
            return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda done: done.value()[0] * 2)
        model.register_comm_hook(None, hook)
        return train(model, 2), seen
    log("own hook", own_hook)

    # accumulation, parameters without gradients
    def accumulated():
        model = ddp(seeded(nn.Linear, 4, 2))
        with model.no_sync():
            model(inputs(0)).sum().backward()
            local = [p.grad.clone() for p in model.parameters()]
        model(inputs(1)).sum().backward()
        return local, [p.grad for p in model.parameters()]
    log("no_sync", accumulated)

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.a, self.b, self.c = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x, both=False):
            return self.a(x) + self.b(x) if both else self.a(x) if rank == 0 else self.b(x)

    def unused(**options):
        model = ddp(Branches(), find_unused_parameters=True, **options)
        grads = []
        for step in range(2):
            model(inputs(step)).sum().backward()
            grads.append([None if p.grad is None else p.grad.clone() for p in model.parameters()])
        return grads
    log("unused", unused)
    log("unused in views", lambda: unused(gradient_as_bucket_view=True))

    def undeclared():
        model = ddp(Branches())
        model(inputs(0), True).sum().backward()
        try:
            model(inputs(1), True).sum().backward()
        except RuntimeError as error:
            return str(error).partition(". ")[0], [p.grad is None for p in model.module.c.parameters()]
    log("unused without saying so", undeclared)

    def shared():
        model = ddp(nn.Sequential(layer := seeded(nn.Linear, 4, 4), nn.ReLU(), layer), static_graph=True)
        return train(model, 3)
    log("shared parameters", shared)

    def sparse():
        torch.manual_seed(3)
        model = ddp(nn.Embedding(6, 2, sparse=True))
        model(torch.tensor([rank, 1, 1])).sum().backward()
        return model.module.weight.grad.to_dense()
    log("sparse", sparse)

    # uneven inputs
    def uneven(**options):
        model = ddp(seeded(nn.Linear, 4, 2))
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        with model.join(**options):
            for step in range(2 + rank):
                optimizer.zero_grad()
                (model(inputs(step)) ** 2).sum().backward()
                optimizer.step()
        return model.state_dict()
    log("join", uneven)
    log("join by the number that is left", lambda: uneven(divide_by_initial_world_size=False))
    log("join that throws", lambda: uneven(throw_on_early_termination=True))

    # state of the optimizer divided between processes
    zero = import_module(f"{torch.__name__}.distributed.optim").ZeroRedundancyOptimizer

    def divided():
        model = ddp(nn.Sequential(seeded(nn.Linear, 4, 6), nn.Tanh(), nn.Linear(6, 2)))
        optimizer = zero(model.parameters(), torch.optim.Adam, lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            (model(inputs(step)) ** 2).sum().backward()
            optimizer.step()
        kept = sorted(each["exp_avg"].numel() for each in optimizer.optim.state.values())
        optimizer.consolidate_state_dict(to=1)
        if rank == 0:
            return model.state_dict(), kept
        whole = optimizer.state_dict()
        report = ({key: value["exp_avg_sq"] for key, value in whole["state"].items()},
                  [group["params"] for group in whole["param_groups"]])
        optimizer.load_state_dict(whole)
        return model.state_dict(), kept, report
    log("ZeRO", divided)
    log("ZeRO without its state", lambda: zero(nn.Linear(2, 2).parameters(), torch.optim.SGD, lr=0.1).state_dict())

    # the same without wrappers, and with recomputation
    composable = import_module(f"{torch.__name__}.distributed._composable")

    def composed(kind):
        model = nn.Sequential(seeded(nn.Linear, 4, 6), nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Tanh()),
                              nn.Linear(6, 2))
        kinds = [type(m).__name__ for m in (composable.replicate(model), composable.checkpoint(model[1]))]
        if kind == "hook":
            model.register_comm_hook(None, hooks.fp16_compress_hook)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(4):
            if kind == "accumulated":
                model.set_requires_gradient_sync(step % 2 == 1)
            torch.manual_seed(step)
            (model(inputs(step)) ** 2).sum().backward()
            if kind != "accumulated" or step % 2:
                optimizer.step()
                optimizer.zero_grad()
        return kinds, type(model[:1]).__name__, list(model.state_dict()), model.state_dict()
    for kind in ("plain", "hook", "accumulated"):
        log(f"replicate and checkpoint, {kind}", lambda kind=kind: composed(kind))
    log("replicate twice", lambda: composable.replicate(composable.replicate(nn.Linear(2, 2))))
    log("reentrant", lambda: composable.checkpoint(nn.Linear(2, 2), use_reentrant=True))
    log("unknown option", lambda: composable.checkpoint(nn.Linear(2, 2), other=1))
    log("device_id", lambda: composable.replicate(nn.Linear(2, 2), device_id="cpu"))

    def renamed():
        @composable.contract()
        def wrap(module):
            return nn.Sequential(module)
        return wrap(nn.Linear(2, 2, bias=False))
    log("other names", renamed)

    fsdp = import_module(f"{torch.__name__}.distributed.fsdp")
    fsdp_hooks = import_module(f"{torch.__name__}.distributed.algorithms._comm_hooks.default_hooks")

    def sharded(hook, strategy):
        model = fsdp.FullyShardedDataParallel(
            nn.Sequential(seeded(nn.Linear, 4, 6), nn.Tanh(), nn.Linear(6, 2)), use_orig_params=True,
            device_id=torch.device("cpu"), sharding_strategy=getattr(fsdp.ShardingStrategy, strategy))
        model.register_comm_hook(fsdp_hooks.LowPrecisionState(dist.group.WORLD), getattr(fsdp_hooks, hook))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(3):
            (model(inputs(step)) ** 2).sum().backward()
            with fsdp.FullyShardedDataParallel.summon_full_params(model, with_grads=True):
                grads = [p.grad.clone() for p in model.parameters()]
            optimizer.step()
            optimizer.zero_grad()
        return grads, model.state_dict()
    for hook, strategy in (("reduce_scatter_hook", "FULL_SHARD"), ("allreduce_hook", "NO_SHARD")):
        log(f"{hook} with {strategy}", lambda hook=hook, strategy=strategy: sharded(hook, strategy))

    # errors
    log("no parameters", lambda: ddp(nn.ReLU()))
    log("twice", lambda: [m := ddp(nn.Linear(2, 2)), m.register_comm_hook(None, hooks.allreduce_hook),
                          m.register_comm_hook(None, hooks.allreduce_hook)])
    log("not callable", lambda: ddp(nn.Linear(2, 2)).register_comm_hook(None, 3))
    log("device_ids", lambda: ddp(nn.Linear(2, 2), device_ids=[0, 1]))
    log("state dict", lambda: list(ddp(network()).state_dict()))
    return log.entries
