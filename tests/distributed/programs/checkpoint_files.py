"""Distributed tensors and a trained model in a checkpoint that is in a folder of the environment: written, or read."""

from __future__ import annotations

import os
import warnings
from importlib import import_module

from tests.distributed.ranks import Log


def state_of(torch, size, value):
    """Tensors in several placements, nested and plain objects; all of them multiples of `value`."""
    names = import_module(f"{torch.__name__}.distributed.tensor")
    mesh = torch.distributed.init_device_mesh("cpu", (size,))
    whole = torch.arange(35.).reshape(5, 7) * value
    place = names.distribute_tensor
    return {"rows": place(whole, mesh, [names.Shard(0)]), "columns": place(whole + 0, mesh, [names.Shard(1)]),
            "copies": place(whole + 0, mesh, [names.Replicate()]), "plain": whole + 0,
            "half": place((whole[:, :4] / 3).bfloat16(), mesh, [names.Shard(1)]),
            "nested": {"scalar": torch.tensor(2.5) * value, "list": [torch.ones(2) * value, {"number": 3 * value}],
                       "long": torch.arange(5) * value, "text": "a" * value}}


def pickled(torch, mesh, pair):
    """Distributed tensors and a parameter, for `torch.save`."""
    names = import_module(f"{torch.__name__}.distributed.tensor")
    x = torch.arange(12.).reshape(4, 3)
    place = names.DTensor.from_local
    return [place(x, mesh, [names.Replicate()]), place(x, mesh, [names.Shard(1)]).detach().requires_grad_(),
            place(x.bfloat16(), pair, [names.Partial()]), torch.nn.Parameter(place(x, pair, [names.Shard(0)]))]


def main(torch, rank, size):
    """Write with one number of processes, read with another."""
    warnings.simplefilter("ignore")
    checkpoint = import_module(f"{torch.__name__}.distributed.checkpoint")
    folder, log = os.environ["FLAMBEAU_TEST_CHECKPOINT"], Log(torch)
    if os.environ["FLAMBEAU_TEST_CHECKPOINT_MODE"] == "write":
        metadata = checkpoint.save(state_of(torch, size, 1), checkpoint_id=folder)
        log("tensors", lambda: {name: [list(entry.size), str(entry.properties.dtype).rpartition(".")[2], sorted(
            (list(chunk.offsets), list(chunk.sizes)) for chunk in entry.chunks)] if hasattr(entry, "size") else "object"
            for name, entry in metadata.state_dict_metadata.items()})
        log("paths", lambda: {key: list(path) for key, path in metadata.planner_data.items()})
        log("stored", lambda: sorted((index.fqn, [] if index.offset is None else list(index.offset),
                                      place.relative_path) for index, place in metadata.storage_data.items()))
        log("files", lambda: (torch.distributed.barrier(), sorted(os.listdir(folder)))[1])
        mesh = torch.distributed.init_device_mesh("cpu", (size,), mesh_dim_names=("all",))
        pair = torch.distributed.DeviceMesh("cpu", [0, 1])
        if rank < 2:
            torch.save(pickled(torch, mesh, pair), f"{folder}.{rank}.pt")
        return log.entries
    state = state_of(torch, size, 0)
    checkpoint.load(state, checkpoint_id=folder)
    if rank < 2:
        for weights_only in (True, False):
            log(f"saved tensors, {weights_only}", lambda w=weights_only: [
                [type(x).__name__, str(x.placements), x.device_mesh.mesh.tolist(), x.device_mesh.mesh_dim_names,
                 x.requires_grad, list(x.shape), x.to_local(), str(x.dtype).rpartition(".")[2]]
                for x in torch.load(f"{folder}.{rank}.pt", weights_only=w)] if size == 3 else None)
    log("state", lambda: {key: value.full_tensor() if hasattr(value, "full_tensor") else value
                          for key, value in state.items()})
    return log.entries
