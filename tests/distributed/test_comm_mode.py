"""`CommDebugMode` in one process: tables, files, checkpoints, modules that are called again."""

from __future__ import annotations

import gc
import json

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.tensor import DTensor, Partial, Replicate
from flambeau.distributed.tensor.debug import CommDebugMode
from flambeau.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from flambeau.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.first, self.second, self.checkpointed = nn.Linear(4, 8), nn.Linear(8, 4), checkpointed

    def forward(self, x):
        hidden = checkpoint(self.begin, x, use_reentrant=False) if self.checkpointed else self.begin(x)
        return self.second(hidden)

    def begin(self, x):
        return self.first(x).relu()


@pytest.fixture
def mesh():
    dist = torch.distributed
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.init_device_mesh("cpu", (1,))
    dist.destroy_process_group()
    gc.collect()  # modules are in cycles with their hooks, and while a DTensor lives operators are dispatched


def parallel(net, mesh):
    return parallelize_module(net, mesh, {"first": ColwiseParallel(), "second": RowwiseParallel()})


def test_modules_and_passes(mesh):
    net = parallel(Net(), mesh)
    with CommDebugMode() as mode:
        for _ in range(2):
            net(torch.ones(2, 4, requires_grad=True)).sum().backward()
    tracker = mode.advanced_module_tracker
    assert list(tracker.module_helper_dict) == ["Global", "Net", "Net.first", "Net.second"]
    assert [each["depth"] for each in tracker.module_helper_dict.values()] == [0, 1, 2, 2]
    assert tracker.module_parents_dict["Net.first"] == {"Global", "Net", "Net.first"}
    operations = mode.comm_module_operation_counts["Net.second"]["operations_list"]
    distributed = [(str(op["name"]), op["is_bw"]) for op in operations if op["input_shape"]]
    assert distributed.count(("aten.addmm.default", False)) == 2
    assert distributed.count(("aten.mm.default", True)) == 4
    assert mode.get_comm_counts()[torch.ops.c10d_functional.all_reduce] == mode.get_total_counts()
    assert not any(module._forward_hooks for module in [net] if module is not net.second)
    lines = [len(mode.generate_comm_debug_tracing_table(noise_level=level).splitlines()) for level in range(4)]
    assert lines == sorted(set(lines))  # each level shows more


def test_files(mesh, tmp_path):
    net = parallel(Net(), mesh)
    with CommDebugMode() as mode:
        net(torch.ones(2, 4)).sum().backward()
    mode.log_comm_debug_tracing_table_to_file(tmp_path / "table.txt", noise_level=1)
    table = (tmp_path / "table.txt").read_text()
    assert "\033" not in table
    assert "    *module type: class 'tests.distributed.test_comm_mode.Net'\n" in table
    assert "        *Parameter List\n         *weight: (Shard(dim=0),)\n         *bias: (Shard(dim=0),)\n" in table
    assert "            **aten.addmm.default\n              shape: [flambeau.Size([8]), " in table
    mode.generate_json_dump(tmp_path / "modules.json", noise_level=1)
    whole = json.loads((tmp_path / "modules.json").read_text())
    assert whole["fqn"] == "Global"
    (found,) = whole["children"]
    assert [each["fqn"] for each in found["children"]] == ["Net.first", "Net.second"]
    first = found["children"][0]
    assert first["parameters"] == [["weight", "(Shard(dim=0),)"], ["bias", "(Shard(dim=0),)"]]
    assert [each["name"] for each in first["operations_forward"]] == ["aten.addmm.default"]
    assert first["operations_backward"][0]["device_mesh"] == "DeviceMesh((1,), 'cpu', stride=(1,))"
    assert not first["operations_checkpointing"]


def test_what_a_checkpoint_computes_again(mesh):
    net = parallel(Net(checkpointed=True), mesh)
    with CommDebugMode() as mode:
        net(torch.ones(2, 4, requires_grad=True)).sum().backward()
    operations = mode.comm_module_operation_counts["Net.first"]["operations_list"]
    names = [str(op["name"]) for op in operations if op["is_activation_checkpointing"] and op["input_shape"]]
    assert "aten.addmm.default" in names
    assert "ACTIVATION CHECKPOINTING" in mode.generate_comm_debug_tracing_table()


def test_nothing_stays_after_an_error(mesh):
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("in forward")

    net, mode = Fails(), CommDebugMode()
    with pytest.raises(ValueError, match="in forward"), mode:
        net(torch.ones(1))
    assert not net._forward_hooks
    pending = DTensor.from_local(torch.ones(2), mesh, [Partial()])
    with mode, CommDebugMode() as inner:
        pending.redistribute(placements=[Replicate()])
    assert mode.get_total_counts() == inner.get_total_counts()
    pending.redistribute(placements=[Replicate()])
    assert mode.get_total_counts() == inner.get_total_counts()
    assert mode.generate_comm_debug_tracing_table(noise_level=0).startswith("Global\n")
