"""Collectives of tensors and objects, groups and messages."""

from datetime import timedelta

from tests.distributed.ranks import Log


def main(torch, rank, size):
    dist, log = torch.distributed, Log(torch)
    op = dist.ReduceOp

    def values(dtype, count=5):
        x = (torch.arange(count) % 7 + 1 + rank)
        return (x % 2 == 0) if dtype is torch.bool else x.to(dtype)

    # reductions: every operation and dtype, small and large, in rows and in columns
    names = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool", "int16",
             "complex64",
             "complex32", "float8_e4m3fn", "uint16")
    for name in names:
        for kind in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
            x = values(getattr(torch, name))
            log(f"all_reduce {name} {kind}", lambda: (dist.all_reduce(x, getattr(op, kind)), x.to(torch.complex64)
                                                      if x.is_complex() else x))
    for count in (0, 1, 3000, 40001):
        for name in ("float32", "bfloat16", "int64", "complex64"):
            x = values(getattr(torch, name), count)
            log(f"all_reduce {count} {name}", lambda: (dist.all_reduce(x), x))
        x = values(torch.float64, count)
        log(f"reduce {count}", lambda: (dist.reduce(x, 1, op.MAX), x if rank == 1 else None))
        x = values(torch.float32, count)
        log(f"broadcast {count}", lambda: (dist.broadcast(x, size - 1), x))
        outputs = [torch.zeros(count) for _ in range(size)]
        log(f"all_gather {count}", lambda: (dist.all_gather(outputs, values(torch.float32, count)), outputs))
    x = torch.arange(6.).reshape(2, 3).t() + rank
    log("all_reduce of columns", lambda: (dist.all_reduce(x), x, list(x.stride())))
    x = torch.tensor(1.0 + rank)
    log("all_reduce of a scalar", lambda: (dist.all_reduce(x), x))
    tensors = [torch.ones(2) * rank, torch.ones(3)]
    log("all_reduce_coalesced", lambda: (dist.all_reduce_coalesced(tensors), tensors))

    # gathering and scattering
    one = torch.tensor([[rank, rank + 10.]])
    out = torch.zeros(size, 2)
    log("all_gather_into_tensor", lambda: (dist.all_gather_into_tensor(out, one), out))
    stacked = torch.zeros(size, 1, 2)
    log("stacked", lambda: (dist.all_gather_into_tensor(stacked, one), stacked))
    lists = [[torch.zeros(1, 2), torch.zeros(3)] for _ in range(size)]
    log("all_gather_coalesced", lambda: (dist.all_gather_coalesced(lists, [one, torch.ones(3) * rank]), lists))
    gathered = [torch.zeros(1, 2) for _ in range(size)] if rank == 1 else None
    log("gather", lambda: (dist.gather(one, gathered, dst=1), gathered))
    mine = torch.zeros(2)
    parts = [torch.ones(2) * i for i in range(size)] if rank == 0 else None
    log("scatter", lambda: (dist.scatter(mine, parts, src=0), mine))
    for kind in ("SUM", "AVG", "MAX"):
        out = torch.zeros(4)
        log(f"reduce_scatter {kind}", lambda: (dist.reduce_scatter(
            out, [torch.arange(4.) * i + rank for i in range(size)], getattr(op, kind)), out))
        log(f"reduce_scatter_tensor {kind}", lambda: (dist.reduce_scatter_tensor(
            out, torch.arange(4. * size) + rank, getattr(op, kind)), out))
    out = torch.zeros(size * 2)
    log("all_to_all_single", lambda: (dist.all_to_all_single(out, torch.arange(size * 2.) + 100 * rank), out))
    uneven = torch.zeros(size * (rank + 1))
    log("all_to_all_single uneven", lambda: (dist.all_to_all_single(
        uneven, torch.arange(sum(range(1, size + 1)) * 1.) + 100 * rank, [rank + 1] * size, list(range(1, size + 1))),
        uneven))
    outs = [torch.zeros(rank + 1) for _ in range(size)]
    log("all_to_all", lambda: (dist.all_to_all(outs, [torch.ones(i + 1) * rank for i in range(size)]), outs))

    # objects
    objects = [None] * size
    log("all_gather_object", lambda: (dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank}), objects))
    several = ["a", 1, [2.5]] if rank == 1 else [None] * 3
    log("broadcast_object_list", lambda: (dist.broadcast_object_list(several, src=1), several))
    target = [None] * size if rank == 0 else None
    log("gather_object", lambda: (dist.gather_object(rank, target), target))
    received = [None]
    log("scatter_object_list", lambda: (dist.scatter_object_list(received, ["a", "bb", "ccc"][:size], src=0), received))
    if rank == 0:
        log("send_object_list", lambda: dist.send_object_list([1, "two"], dst=1))
    if rank == 1:
        pair = [None, None]
        log("recv_object_list", lambda: (dist.recv_object_list(pair, src=0), pair))

    # messages
    if rank == 0:
        log("send", lambda: [each.wait() for each in [dist.isend(torch.ones(3) * i, 1, tag=i) for i in range(3)]])
    if rank == 1:
        buffers = [torch.zeros(3) for _ in range(3)]
        log("recv", lambda: ([dist.recv(buffers[i], 0, tag=i) for i in (2, 0, 1)], buffers))
    if rank:
        log("to anyone", lambda: dist.send(torch.ones(1) * rank, 0, tag=9))
    else:
        buffer = torch.zeros(1)
        log("recv of anyone", lambda: sorted((dist.recv(buffer, tag=9), buffer.item()) for _ in range(size - 1)))
    mine = torch.zeros(2)
    exchange = [dist.P2POp(dist.isend, torch.ones(2) * rank, (rank + 1) % size),
                dist.P2POp(dist.irecv, mine, (rank - 1) % size)]
    log("batch_isend_irecv", lambda: ([work.wait() for work in dist.batch_isend_irecv(exchange)], mine))

    # works
    x = torch.ones(4) * rank
    work = dist.all_reduce(x, async_op=True)
    log("work", lambda: (work.wait(), work.is_completed(), work.get_future().wait(), x))
    works = [dist.all_reduce(torch.ones(1000) * i, async_op=True) for i in range(5)]
    log("works", lambda: [(each.wait(), each.get_future().value()[0][0]) for each in works])
    log("then", lambda: dist.all_reduce(torch.ones(2), async_op=True).get_future().then(
        lambda done: done.value()[0] / size).wait())
    with dist._coalescing_manager():
        pair = [torch.ones(2) * rank, torch.ones(3)]
        for each in pair:
            dist.all_reduce(each)
    log("coalesced", lambda: pair)

    # groups
    first = dist.new_group([0, 1])
    last = dist.new_group([size - 1, 0])
    log("group", lambda: [dist.get_rank(first), dist.get_world_size(first), dist.get_rank(last),
                          dist.get_world_size(last)])
    x = torch.ones(2) * (rank + 1)
    log("all_reduce in a group", lambda: (dist.all_reduce(x, group=first), x))
    if rank in (0, size - 1):
        log("ranks", lambda: [dist.get_process_group_ranks(last), dist.get_group_rank(last, size - 1),
                              dist.get_global_rank(last, 1), last.rank(), last.size()])
        x = torch.ones(2) * (rank + 1)
        log("broadcast in a group", lambda: (dist.broadcast(x, src=size - 1, group=last), x))
        log("broadcast by group rank", lambda: (dist.broadcast(x, group_src=0, group=last), x))
    own, groups = dist.new_subgroups(1)
    log("new_subgroups", lambda: [own.size(), len(groups)])

    # gradients
    from importlib import import_module

    nn = import_module(f"{torch.__name__}.distributed.nn.functional")
    functional = import_module(f"{torch.__name__}.distributed._functional_collectives")
    world = dist.group.WORLD

    def differentiated(call, shape=(2 * size, 2)):
        x = (torch.arange(1., 1 + shape[0] * shape[1]).reshape(shape) + rank).requires_grad_()
        y = call(x)
        y = torch.cat(list(y)) if isinstance(y, (tuple, list)) else y
        (y * (torch.arange(1. * y.numel()).reshape(y.shape) + rank)).sum().backward()
        return y, x.grad, y.grad_fn is not None

    for text, call in {
            "nn.all_reduce": lambda x: nn.all_reduce(x, group=world),
            "nn.broadcast": lambda x: nn.broadcast(x, 1, world),
            "nn.reduce": lambda x: nn.reduce(x, 1, group=world) * (rank == 1),
            "nn.all_gather": lambda x: nn.all_gather(x, world),
            "nn.gather": lambda x: nn.gather(x, 1, world),
            "nn.scatter": lambda x: nn.scatter([x * i for i in range(size)], 1, world),
            "nn.reduce_scatter": lambda x: nn.reduce_scatter(torch.zeros(2 * size, 2), [x * i for i in range(size)],
                                                             group=world),
            "nn.all_to_all": lambda x: nn.all_to_all([torch.zeros(2, 2) for _ in range(size)], list(x.split(2)), world),
            "nn.all_to_all_single": lambda x: nn.all_to_all_single(torch.zeros(2 * size, 2), x, group=world),
            "all_gather_tensor_autograd": lambda x: functional.all_gather_tensor_autograd(x, 1, world),
            "reduce_scatter_tensor_autograd": lambda x: functional.reduce_scatter_tensor_autograd(x, "sum", 0, world),
            "all_to_all_single_autograd": lambda x: functional.all_to_all_single_autograd(x, None, None,
                                                                                          world)}.items():
        log(text, lambda: differentiated(call))
    x = torch.arange(4. * size).reshape(2, 2 * size) + rank
    log("functional", lambda: [each + 0 for each in (
        functional.all_reduce(x, "avg", world), functional.all_gather_tensor(x, 1, world),
        functional.broadcast(x, 1, world), functional.reduce_scatter_tensor(x, "max", 1, world),
        functional.all_reduce(x, "sum", list(range(size))))])

    mesh = import_module(f"{torch.__name__}.distributed.device_mesh").init_device_mesh(
        "cpu", (1, size), mesh_dim_names=("a", "b"))
    log("mesh", lambda: [list(mesh.shape), mesh.get_coordinate(), mesh["b"].size(), mesh["b"].get_local_rank(),
                         mesh.get_group("a").size(), mesh.mesh.tolist(), mesh.ndim, repr(mesh["b"])])
    log("group of a mesh", lambda: mesh.get_group())

    # errors that all ranks raise
    ones = torch.ones
    for text, call in {
            "few outputs": lambda: dist.all_gather([ones(2)], ones(2)),
            "dtypes": lambda: dist.all_gather([ones(2), ones(2).int()], ones(2)),
            "shapes": lambda: dist.all_gather([ones(2)] * (size - 1) + [ones(3)], ones(2)),
            "into": lambda: dist.all_gather_into_tensor(ones(size + 1), ones(2)),
            "into dtype": lambda: dist.all_gather_into_tensor(ones(2 * size).int(), ones(2)),
            "reduce_scatter": lambda: dist.reduce_scatter(ones(2), [ones(2)]),
            "splits": lambda: dist.all_to_all_single(ones(2), ones(2), [1] * (size + 1), [1] * size),
            "split sizes": lambda: dist.all_to_all_single(ones(size), ones(size), [2] * size, [1] * size),
            "all_to_all": lambda: dist.all_to_all([ones(2)], [ones(2)]),
            "root": lambda: dist.broadcast(ones(2), 5),
            "self": lambda: dist.send(ones(2), rank),
            "unknown group": lambda: dist.get_rank("x"),
            "no rank": lambda: dist.broadcast(ones(2)),
            "two ranks": lambda: dist.broadcast(ones(2), 0, group_src=0),
            "not a tensor": lambda: dist.all_reduce([ones(2)]),
            "new_group": lambda: dist.new_group([0, 9]),
            "new_subgroups": lambda: dist.new_subgroups(size + 1),
            "complex": lambda: dist.all_reduce(ones(2, dtype=torch.complex64), op.MAX),
            "premultiplied": lambda: dist.all_reduce(ones(2), dist._make_nccl_premul_sum(2.0)),
            "coalesced sizes": lambda: dist.all_gather_coalesced([[ones(2)]], [ones(2)]),
            "twice": lambda: dist.init_process_group("gloo"),
            "p2p": lambda: dist.batch_isend_irecv([1]),
            "timeout": lambda: dist.new_group(timeout=3)}.items():
        log(text, call)
    log("monitored_barrier", lambda: dist.monitored_barrier(timeout=timedelta(seconds=20)))
    log("barrier", lambda: dist.barrier(async_op=True).wait())
    return log.entries
