"""What processes report when one of three is killed, or does not come in time, or the network is full."""

import os
import pickle
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path


def main(torch, rank, size, kind, fault):
    """The error of the call that cannot end, and the seconds that it took."""
    dist, nn = torch.distributed, torch.nn
    x = torch.ones(10 if kind == "small" else 1 << 20)
    model = nn.parallel.DistributedDataParallel(nn.Linear(64, 64)) if kind == "DDP" else None
    if kind == "pipeline":
        from flambeau.distributed import pipelining as pp

        stage = pp.PipelineStage(nn.Linear(64, 64), rank, size, torch.device("cpu"))
        schedule = pp.Schedule1F1B(stage, 4, loss_fn=nn.functional.mse_loss)

    def step():
        if kind in ("small", "large"):
            dist.all_reduce(x)
        elif kind == "barrier":
            dist.barrier()
        elif kind == "recv":
            dist.recv(x, 1) if rank != 1 else [dist.send(x, each) for each in (0, 2)]
        elif kind == "DDP":
            model(torch.ones(8, 64)).sum().backward()
        else:
            batch = torch.ones(8, 64)
            schedule.step(*([batch] if rank == 0 else []), target=batch if rank == size - 1 else None)

    step()
    if fault == "full" and rank == 1:
        throttle(dist.group.WORLD._get_backend(torch.device("cpu")), 40_000)
    elif rank == 1:
        if fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(3.5)  # longer than the group's timeout
        return None
    start = time.monotonic()
    try:
        for _ in range(20):  # what was sent before the end still arrives
            step()
    except RuntimeError as error:
        return type(error).__name__, str(error), time.monotonic() - start
    return None


def throttle(group, rate):
    """Let a process send so many bytes a second."""
    for transport in {group._transport, group._collectives}:
        send = transport.send

        def slowly(peer, tag, buffer, deadline, send=send):
            time.sleep(min(len(buffer) / rate, 3.5))
            send(peer, tag, buffer, deadline)

        transport.send = slowly


def fork(kind, fault, sockets, folder, size=3):
    """Be all processes; ranks 0 and 2 write what they report."""
    import flambeau as torch
    from flambeau.c10d import gloo

    if sockets == "True":
        gloo.share_memory = lambda *arguments: None
    children = []
    for rank in range(size):
        child = os.fork()
        if not child:
            try:
                torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                                     world_size=size, timeout=timedelta(seconds=1.5))
                Path(folder, str(rank)).write_bytes(pickle.dumps(main(torch, rank, size, kind, fault)))
            except BaseException as error:  # must not return into the parent's code
                print(f"rank {rank}: {error!r}", file=sys.stderr, flush=True)
            finally:
                os._exit(0)
        children.append(child)
    for rank in (0, 2):
        os.waitpid(children[rank], 0)
    os.kill(children[1], signal.SIGKILL)  # a slow one sleeps for seconds more
    os.waitpid(children[1], 0)
