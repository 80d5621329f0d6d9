"""Functions and programs in several processes: results, restarts from a checkpoint, failures, output in files."""

from __future__ import annotations

import os
import signal
import time
import warnings

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint import state_dict as state_dicts
from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError
from flambeau.distributed.launcher.api import LaunchConfig, elastic_launch


def config(**options):
    options = {"nproc_per_node": 2, "max_restarts": 0, "rdzv_backend": "c10d", "start_method": "fork",
               "monitor_interval": 0.01, **options}
    return LaunchConfig(1, 1, **options)


def total(factor):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    x = torch.ones(2) * (dist.get_rank() + 1) * factor
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x.tolist()


def test_functions_return_their_results():
    assert elastic_launch(config(), total)(10) == {0: [30, 30], 1: [30, 30]}


def trained(folder, fails_at):
    """Trains from the last checkpoint on; rank 1 dies at a step of the first attempt."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), dist.get_rank()
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters(), 0.1)
    state = {"step": 0}
    if os.path.exists(os.path.join(folder, ".metadata")):
        state["model"], state["optimizer"] = state_dicts.get_state_dict(model, optimizer)
        dcp.load(state, checkpoint_id=folder)
        state_dicts.set_state_dict(model, optimizer, model_state_dict=state["model"],
                                   optim_state_dict=state["optimizer"])
    first = state["step"]
    for step in range(first, 4):
        x = torch.full((4, 3), step + rank + 1.) / 10
        model(x).square().sum().backward()
        if (attempt, rank, step) == (0, 1, fails_at):
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()
        optimizer.zero_grad()
        states = state_dicts.get_state_dict(model, optimizer)
        saved = {"model": states[0], "optimizer": states[1], "step": step + 1}
        dcp.save(saved, storage_writer=dcp.FileSystemWriter(folder, sync_files=False))
    return attempt, first, net.weight.flatten().tolist()


def test_training_goes_on_from_its_checkpoint_after_a_rank_was_killed(tmp_path, capfd):
    whole = elastic_launch(config(), trained)(str(tmp_path / "whole"), None)
    broken = elastic_launch(config(max_restarts=2), trained)(str(tmp_path / "broken"), 2)
    assert {rank: (attempt, first) for rank, (attempt, first, _) in broken.items()} == {0: (1, 2), 1: (1, 2)}
    assert [each[2] for each in broken.values()] == [each[2] for each in whole.values()]
    assert "restart 1 of 2" in capfd.readouterr().err


def failing():
    if os.environ["RANK"] == "1":
        raise ValueError("not this one")
    time.sleep(60)


def test_failures_name_the_rank_and_its_error():
    with pytest.raises(ChildFailedError, match="ValueError: not this one") as caught:
        elastic_launch(config(role="trainer"), failing)()
    number, first = caught.value.get_first_failure()
    assert (number, first.local_rank, first.exitcode) == (1, 1, 1)
    assert "failing FAILED" in str(caught.value)


def test_programs_and_files_of_output(tmp_path):
    logs = DefaultLogsSpecs(str(tmp_path), redirects=Std.ALL)
    assert elastic_launch(config(logs_specs=logs, run_id="job"), "sh")("-c", "echo out $RANK; echo err >&2") == {
        0: None, 1: None}
    folder = tmp_path / "job" / "attempt_0"
    assert [(folder / str(rank) / "stdout.log").read_text() for rank in range(2)] == ["out 0\n", "out 1\n"]
    assert (folder / "1" / "stderr.log").read_text() == "err\n"

    def speaking():
        os.write(1, b"said\n")
        os.write(2, b"written")

    elastic_launch(config(logs_specs=DefaultLogsSpecs(str(tmp_path), {0: Std.OUT, 1: Std.ERR}), run_id="f"), speaking)()
    folder = tmp_path / "f" / "attempt_0"
    assert (folder / "0" / "stdout.log").read_text() == "said\n"
    assert (folder / "1" / "stderr.log").read_text() == "written"
    assert not (folder / "0" / "stderr.log").exists()


def test_what_is_left_out_or_wrong():
    with pytest.raises(ValueError, match="rdzv_backend='etcd' is left out"):
        elastic_launch(LaunchConfig(1, 1, 1), total)(1)
    with pytest.raises(ValueError, match="shutdown_timeout must be non-negative, got -1"):
        config(shutdown_timeout=-1)
    with pytest.raises(NotImplementedError, match="use `redirects` in place of `tee`"):
        elastic_launch(config(logs_specs=DefaultLogsSpecs(tee=Std.OUT)), total)(1)
    with pytest.raises(ValueError, match="does not match"):
        Std.from_str("5:x")
    assert config(rdzv_timeout=5).rdzv_configs == {"timeout": 5}
