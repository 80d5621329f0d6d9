"""Results of collectives that another process joins late."""

import time
from importlib import import_module


def main(torch, rank, size):
    """What is known before the other process has come, and afterwards."""
    dist = torch.distributed
    collectives = import_module(f"{torch.__name__}.distributed._functional_collectives")
    tensor = import_module(f"{torch.__name__}.distributed.tensor")
    world, report = dist.group.WORLD, {}
    collectives.all_reduce(torch.ones(1), "sum", world).wait()  # imports what the first one needs
    dist.barrier()
    if rank:
        time.sleep(0.5)
    x = collectives.all_reduce(torch.full((2,), rank + 1.), "sum", world)
    view = x.view(2)
    report["early"] = rank == 0 and x.elem._unfinished.is_completed()  # nothing has waited for the late process
    report["late"] = [(view * 1).tolist(), view.completed]
    dist.all_reduce(x)  # reduces what it wraps
    report["second"] = collectives.reduce_scatter_tensor(torch.tensor([0.5, 0.5, 1., 1.]), "sum", 0, world).tolist()
    mesh = dist.init_device_mesh("cpu", (size,))
    parts = tensor.distribute_tensor(torch.ones(4, 2), mesh, [tensor.Shard(0)]).requires_grad_()
    whole = parts.redistribute(placements=[tensor.Replicate()], async_op=True)
    local = whole.view(4, 2).to_local()
    report["redistributed"] = [type(local).__name__, local.completed, local.wait().detach().tolist(),
                               (whole + 1).to_local().detach().tolist()]
    (whole * 2).sum().backward()
    report["gradient"] = parts.grad.to_local().tolist()
    return report
