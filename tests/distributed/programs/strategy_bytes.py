"""Bytes that each process sends in a training step of each strategy."""

from importlib import import_module

#: units of a network, and its batch
UNITS, BATCH = 4, 256


def main(torch, rank, size):
    dist, nn = torch.distributed, torch.nn
    name = torch.__name__
    fsdp = import_module(f"{name}.distributed.fsdp")
    optim = import_module(f"{name}.distributed.optim")
    parallel = import_module(f"{name}.distributed.tensor.parallel")
    pp = import_module(f"{name}.distributed.pipelining")
    mesh = import_module(f"{name}.distributed.device_mesh").init_device_mesh("cpu", (size,))
    width = 64 * size

    def units():
        torch.manual_seed(0)
        return nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(UNITS)))

    def adam(parameters):
        return torch.optim.Adam(parameters)

    def zero(parameters):
        return optim.ZeroRedundancyOptimizer(parameters, torch.optim.Adam)

    def sent(model, make_optimizer=adam):
        backend = dist.group.WORLD._get_backend("cpu")
        optimizer = make_optimizer(model.parameters())

        def step():
            model(torch.ones(BATCH // size, width)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        for _ in range(2):  # buckets are made anew after the first step
            step()
        before = backend.bytes_sent
        step()
        return backend.bytes_sent - before

    def sharded(**options):
        model = units()
        for unit in model:
            fsdp.fully_shard(unit, **options)
        return fsdp.fully_shard(model, **options)

    ddp = nn.parallel.DistributedDataParallel
    report = {"parameters": UNITS * width * width * 4, "activations": BATCH * width * 4,
              "DDP": sent(ddp(units())), "ZeRO-1": sent(ddp(units()), zero),
              "fully_shard": sent(sharded()), "fully_shard, whole between passes":
              sent(sharded(reshard_after_forward=False))}

    # pairs of linear layers, the first one cut by columns, the second one by rows; all processes have the whole batch
    model = units()
    parallel.parallelize_module(model, mesh, {str(i): parallel.RowwiseParallel() if i % 2 else
                                              parallel.ColwiseParallel() for i in range(UNITS)})
    backend = mesh.get_group()._get_backend("cpu")
    before = backend.bytes_sent
    model(torch.ones(BATCH, width, requires_grad=True)).sum().backward()
    report["TP"] = backend.bytes_sent - before

    stage = pp.PipelineStage(units()[rank:rank + 1], rank, size, torch.device("cpu"))
    schedule = pp.Schedule1F1B(stage, 4 * size, loss_fn=lambda out, target: (out - target).square().mean())
    backend = dist.group.WORLD._get_backend("cpu")

    def pipelined():
        x = torch.ones(BATCH, width)
        schedule.step(*([x] if rank == 0 else []), target=x if rank == size - 1 else None)
    pipelined()
    before = backend.bytes_sent
    pipelined()
    report["PP"] = backend.bytes_sent - before
    return report
