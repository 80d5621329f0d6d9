"""Training on two hosts, network namespaces that a link joins: it is slow and loses packets, then it is cut.

    unshare --user --map-root-user --net python -m tests.distributed.programs.network FOLDER

The first host is the caller's namespace, the second one that of a child. `tc` limits the link (`tbf`) and lets a
queue that is too short drop packets; where the kernel has `netem`, packets are delayed and lost at random, too. The
ranks train, each step with a checkpoint. Then the link is cut in the middle of a step. Both ranks must report the other
within the timeout. The link is mended, and the same processes go on from the last checkpoint.
"""

import json
import os
import re
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

ADDRESSES = "10.77.0.1", "10.77.0.2"
RATE = "100mbit"
SHORT = "32kb"  # the queue's length: bursts of TCP do not fit
STEPS, CUT = 6, 3
TIMEOUT = 2.0


def sh(*words):
    """Run a command; what it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=20).stdout


def join(other):
    """Two interfaces, one of them in the namespace of process `other`."""
    sh("ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(other))
    enter = ("nsenter", "-t", str(other), "--net", *(["--user"] if os.getuid() else []))
    for prefix, name, address in ((), "here", ADDRESSES[0]), (enter, "there", ADDRESSES[1]):
        sh(*prefix, "ip", "link", "set", "lo", "up")
        sh(*prefix, "ip", "addr", "add", f"{address}/24", "dev", name)
        sh(*prefix, "ip", "link", "set", name, "up")
        try:
            sh(*prefix, "tc", "qdisc", "add", "dev", name, "root", "handle", "1:", "netem", "delay", "3ms", "loss",
               "0.5%")
            parent = ["parent", "1:1"]
        except subprocess.CalledProcessError:  # a kernel without netem
            parent = ["root"]
        sh(*prefix, "tc", "qdisc", "add", "dev", name, *parent, "handle", "10:", "tbf", "rate", RATE, "burst", "16kb",
           "limit", SHORT)


def dropped():
    """The packets that the first host's queues have dropped."""
    return sum(map(int, re.findall(r"dropped (\d+)", sh("tc", "-s", "qdisc", "show", "dev", "here"))))


def parts(torch):
    """The model, its optimizer and the global batches, the same in each process."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(256, 128), nn.Tanh(), nn.Linear(128, 16))
    generator = torch.Generator().manual_seed(1)
    batches = [(torch.randn(8, 256, generator=generator), torch.randn(8, 16, generator=generator))
               for _ in range(STEPS)]
    return model, torch.optim.Adam(model.parameters(), 1e-3), batches


def alone(torch):
    """The losses of one process."""
    model, optimizer, batches = parts(torch)
    losses = []
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def train(torch, rank, folder, port, cut=None):
    """Train from the last checkpoint on; the losses by step, and the error and its seconds if the link is cut."""
    dist = torch.distributed
    from flambeau.distributed import checkpoint as dcp
    from flambeau.distributed.checkpoint import state_dict as states

    dist.init_process_group("gloo", init_method=f"tcp://{ADDRESSES[0]}:{port}", rank=rank, world_size=2,
                            timeout=timedelta(seconds=TIMEOUT))
    net, optimizer, batches = parts(torch)
    model = torch.nn.parallel.DistributedDataParallel(net)
    path = Path(folder, "checkpoint")
    state = {"step": 0}
    if (path / ".metadata").exists():
        state["model"], state["optimizer"] = states.get_state_dict(model, optimizer)
        dcp.load(state, checkpoint_id=path)
        states.set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    losses, error, seconds = {}, None, 0.0
    for step in range(state["step"], STEPS):
        x, y = (each.chunk(2)[rank] for each in batches[step])
        start = time.monotonic()
        try:
            loss = torch.nn.functional.mse_loss(model(x), y)
            if step == cut and rank == 0:
                sh("ip", "link", "set", "here", "down")
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
        except RuntimeError as caught:
            error, seconds = str(caught), time.monotonic() - start
            break
        losses[step] = mean.item() / 2
        model_state, optimizer_state = states.get_state_dict(model, optimizer)
        dcp.save({"model": model_state, "optimizer": optimizer_state, "step": step + 1}, checkpoint_id=path)
    dist.destroy_process_group()
    return losses, error, seconds


def large(torch, rank, port):
    """The error, and its seconds, of a message that is larger than what the system holds for a connection."""
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"tcp://{ADDRESSES[0]}:{port}", rank=rank, world_size=2,
                            timeout=timedelta(seconds=TIMEOUT))
    x = torch.ones(1 << 23)
    dist.send(x[:100], 1) if rank == 0 else dist.recv(x[:100], 0)
    if rank == 0:
        sh("ip", "link", "set", "here", "down")
    start = time.monotonic()
    try:
        dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
    except RuntimeError as caught:
        return str(caught), time.monotonic() - start
    finally:
        dist.destroy_process_group()


def host(rank, folder):
    """Be one rank; write what it saw."""
    import warnings

    import flambeau as torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    report = {}
    first, report["error"], report["seconds"] = train(torch, rank, folder, 29511, CUT)
    report["dropped"] = dropped() if rank == 0 else None
    meet(folder, rank, "cut")
    if rank == 0:
        sh("ip", "link", "set", "here", "up")
    then, _, _ = train(torch, rank, folder, 29512)
    report["losses"] = [first, then]
    report["large"] = large(torch, rank, 29513)
    report["alone"] = alone(torch)
    Path(folder, f"report{rank}").write_text(json.dumps(report))


def meet(folder, rank, name):
    """Wait for the other rank, by files."""
    Path(folder, f"{name}{rank}").touch()
    end = time.monotonic() + 60
    while not Path(folder, f"{name}{1 - rank}").exists():
        assert time.monotonic() < end, "the other rank has not come"
        time.sleep(0.02)


def main(folder):
    """Make the second host, join them, be the first."""
    second = subprocess.Popen(["unshare", "--net", sys.executable, __file__, folder, "second"])
    try:
        meet(folder, 0, "made")
        join(second.pid)
        meet(folder, 0, "joined")
        host(0, folder)
        assert second.wait(60) == 0
    finally:
        second.kill()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    if len(sys.argv) > 2:
        meet(sys.argv[1], 1, "made")
        meet(sys.argv[1], 1, "joined")
        host(1, sys.argv[1])
    else:
        main(sys.argv[1])
