"""Profiled steps of `DistributedDataParallel` whose layers have buckets of their own: eager, and compiled."""

import json
import os
import tempfile

WIDTH, LAYERS, STEPS = 384, 5, 5


def main(torch, rank, size):
    nn = torch.nn
    torch.set_num_threads(1)
    traces = []
    for compiled in (False, True):
        layers = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
        net = nn.parallel.DistributedDataParallel(torch.compile(layers) if compiled else layers, bucket_cap_mb=0.1)
        x = torch.ones(WIDTH, WIDTH)
        for _ in range(3 if compiled else 1):
            net(x).sum().backward()  # buckets are in the order of gradients since then
        traces.append([profile_of(torch, lambda: net(x).sum().backward()) for _ in range(STEPS)])
    return traces


def profile_of(torch, step):
    with torch.profiler.profile() as prof:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)
