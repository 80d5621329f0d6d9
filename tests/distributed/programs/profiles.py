"""Collectives in profiles: their names, and the files of traces."""

import json
import os
import tempfile


def main(torch, rank, size):
    dist = torch.distributed
    x, parts = torch.ones(4), [torch.zeros(4) for _ in range(size)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)))
    with torch.profiler.profile() as prof:
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        dist.all_gather(parts, x)
        dist.barrier()
        dist.reduce(x, 0)
        dist.all_gather_into_tensor(torch.zeros(4 * size), x)
        dist.all_to_all_single(torch.zeros(4), x)
        dist.all_reduce(x, async_op=True).wait()
        dist.gather(x, parts if rank == 0 else None, dst=0)
        dist.scatter(x, parts if rank == 0 else None, src=0)
        dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
        model(torch.ones(2, 4)).sum().backward()
        with torch.profiler.record_function("own"):
            x.add(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
    page = None
    if torch.__name__ == "flambeau":  # the explorer's page of this rank's graph
        from flambeau import viz

        with viz.watching(model) as watch:
            model(torch.ones(2, 4)).sum().backward()
        with tempfile.TemporaryDirectory() as folder:
            page = viz.explore(watch, path=f"{folder}/page.html", open_browser=False).read_text(encoding="utf-8")
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = [event["name"] for event in events if event["name"].startswith(("c10d::", "gloo:", "own", "Distributed"))]
    tables = {each.key: each.count for each in prof.key_averages() if each.key.startswith("c10d::")}
    return {"names": sorted(names), "table": tables, "info": trace["distributedInfo"], "trace": trace, "page": page}
