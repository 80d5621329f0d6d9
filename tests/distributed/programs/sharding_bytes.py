"""What redistributions and fully sharded steps send, in bytes, and what stays in memory."""


def main(torch, rank, size):
    from flambeau.distributed.device_mesh import init_device_mesh
    from flambeau.distributed.fsdp import fully_shard
    from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    dist, nn = torch.distributed, torch.nn
    mesh = init_device_mesh("cpu", (size,))
    backend = mesh.get_group()._get_backend("cpu")

    def sent(call):
        before = backend.bytes_sent
        call()
        return backend.bytes_sent - before

    rows = 64 * size
    x = torch.arange(float(rows * rows)).reshape(rows, rows)
    whole = x.numel() * 4
    cut = distribute_tensor(x, mesh, [Shard(0)])
    pending = DTensor.from_local(x, mesh, [Partial()])
    report = {"whole": whole}
    report["all_gather"] = sent(lambda: cut.redistribute(placements=[Replicate()]))
    report["all_to_all"] = sent(lambda: cut.redistribute(placements=[Shard(1)]))
    report["all_reduce"] = sent(lambda: pending.redistribute(placements=[Replicate()]))
    report["reduce_scatter"] = sent(lambda: pending.redistribute(placements=[Shard(0)]))
    report["chunk"] = sent(lambda: distribute_tensor(x, mesh, [Replicate()], src_data_rank=None).redistribute(
        placements=[Shard(0)]))
    report["elementwise"] = sent(lambda: (cut * 2 + cut).relu())
    weight = distribute_tensor(x, mesh, [Shard(0)])
    report["column parallel product"] = sent(
        lambda: distribute_tensor(x, mesh, [Replicate()], src_data_rank=None) @ weight.t())
    report["norm"] = sent(lambda: torch.linalg.vector_norm(cut))

    def model(**options):
        torch.manual_seed(0)
        net = nn.Sequential(*(nn.Linear(rows, rows, bias=False) for _ in range(3)))
        for layer in net:
            fully_shard(layer, **options)
        return fully_shard(net, **options)

    def step(net):
        net(torch.ones(2, rows)).sum().backward()

    nets = {"fully sharded step": model(), "step with whole parameters": model(reshard_after_forward=False)}
    for name, net in nets.items():
        report[name] = sent(lambda: step(net))
        report[f"parts after a {name}"] = sum(p.to_local().nbytes for p in net.parameters())
    if size == 4:
        net = model(reshard_after_forward=2)
        rows_of_two = net[0]._fsdp_state.group.smaller_mesh.shard_group._get_backend("cpu")
        report["step that keeps halves"] = sent(lambda: step(net)), rows_of_two.bytes_sent
        output = net(torch.ones(2, rows))
        kept = net[0].weight
        report["halves"] = kept.placements, kept.device_mesh.shape, kept.to_local().nbytes, torch.equal(
            kept.full_tensor(), nets["fully sharded step"][0].weight.full_tensor())
        output.sum().backward()
        report["parts after a step that keeps halves"] = sum(p.to_local().nbytes for p in net.parameters())
    net = nets["fully sharded step"]
    net.set_requires_gradient_sync(False)
    report["accumulating step"] = sent(lambda: step(net))
    net.set_requires_gradient_sync(True)
    report["parameters"] = 3 * whole
    with torch.no_grad():
        net(torch.ones(2, rows))
    memory = net[0]._fsdp_state.group._memory
    report["released"] = not memory.arrays[0].any()
    dist.barrier()
    return report
