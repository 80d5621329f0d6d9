"""Checkpoints in one process and in forked ones: layout, planners, other numbers of processes, killed saves."""

from __future__ import annotations

import json
import os
import pickle
import signal
from concurrent.futures import Future

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint import _async_process_executor
from flambeau.distributed.checkpoint._nested_dict import flatten_state_dict, unflatten_state_dict
from flambeau.distributed.checkpoint._traverse import get_element
from flambeau.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from flambeau.distributed.checkpoint.filesystem import SerializationFormat
from flambeau.distributed.checkpoint.format_utils import (
    BroadcastingTorchSaveReader,
    DynamicMetaLoadPlanner,
    dcp_to_torch_save,
    torch_save_to_dcp,
)
from flambeau.distributed.checkpoint.global_plan import _validate_global_plan
from flambeau.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from flambeau.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.planner import SavePlan, WriteItemType
from flambeau.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
from flambeau.distributed.checkpoint.staging import AsyncStager, BlockingAsyncStager, DefaultStager, StagingOptions
from flambeau.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
from flambeau.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from flambeau.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from .forked import processes

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is|Detected an existing checkpoint:UserWarning",
                                        "ignore:Detected an existing checkpoint:UserWarning")


def nested():
    return {"a": {"w": torch.arange(6.).reshape(2, 3), "n": 1}, "l": [torch.ones(2), {"x": "text"}], "t": (1, 2)}


# ----- one process -------------------------------------------------------------------------


def test_round_trip(tmp_path):
    state = nested()
    metadata = dcp.save(state, checkpoint_id=tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".metadata", "__0_0.distcp"]
    assert list(metadata.state_dict_metadata) == ["a.w", "a.n", "l.0", "l.1.x", "t"]
    assert metadata.planner_data["l.1.x"] == ("l", 1, "x")
    assert metadata.version == "1.0.0"
    target = {"a": {"w": torch.zeros(2, 3), "n": 0}, "l": [torch.zeros(2), {"x": ""}], "t": ()}
    memory = target["a"]["w"]
    dcp.load(target, checkpoint_id=str(tmp_path))
    assert target["a"]["w"] is memory  # tensors are written to
    assert (memory.tolist(), target["a"]["n"], target["l"][1], target["t"]) == (
        state["a"]["w"].tolist(), 1, {"x": "text"}, (1, 2))


@pytest.mark.parametrize("options", [{"thread_count": 3}, {"single_file_per_rank": False}, {"sync_files": False}],
                         ids=str)
def test_files(tmp_path, options):
    state = {str(i): torch.full((10 * i + 1,), float(i)) for i in range(5)} | {"n": 7}
    dcp.save(state, storage_writer=dcp.FileSystemWriter(tmp_path, **options))
    count = {"thread_count": 3, "single_file_per_rank": 6}.get(next(iter(options)), 1)
    assert sorted(os.listdir(tmp_path)) == [".metadata", *(f"__0_{i}.distcp" for i in range(count))]
    target = {key: torch.zeros_like(value) if key != "n" else 0 for key, value in state.items()}
    dcp.load(target, storage_reader=dcp.FileSystemReader(tmp_path))
    assert target["n"] == 7
    assert all(torch.equal(target[str(i)], state[str(i)]) for i in range(5))


def test_views_store_their_elements_only(tmp_path):
    big = torch.arange(100_000.)
    dcp.save({"x": big[:3], "y": big[::50_000]}, checkpoint_id=tmp_path)
    assert os.path.getsize(tmp_path / "__0_0.distcp") < 10_000
    target = {"x": torch.zeros(3), "y": torch.zeros(2)}
    dcp.load(target, checkpoint_id=tmp_path)
    assert (target["x"].tolist(), target["y"].tolist()) == ([0, 1, 2], [0, 50_000])


def test_a_second_checkpoint_takes_the_place_of_the_first_in_one_step(tmp_path):
    dcp.save({"x": torch.ones(2)}, checkpoint_id=tmp_path)
    (tmp_path / "__3_0.distcp").write_bytes(b"of a save that was killed")
    writer = dcp.FileSystemWriter(tmp_path)

    class Dying(dcp.DefaultSavePlanner):
        def resolve_data(self, item):
            raise KeyboardInterrupt

    with pytest.raises(dcp.CheckpointException, match="KeyboardInterrupt"):
        dcp.save({"x": torch.zeros(2)}, storage_writer=writer, planner=Dying())
    target = {"x": torch.zeros(2)}
    dcp.load(target, checkpoint_id=tmp_path)
    assert target["x"].tolist() == [1, 1]
    with pytest.warns(UserWarning, match="Detected an existing checkpoint"):
        dcp.save({"x": torch.full((2,), 2.)}, checkpoint_id=tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".metadata", "__0_2.distcp"]
    dcp.load(target, checkpoint_id=tmp_path)
    assert target["x"].tolist() == [2, 2]
    with pytest.raises(dcp.CheckpointException, match=r"Checkpoint already exists and self\.overwrite"):
        dcp.save({"x": torch.zeros(2)}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))


def test_stateful_objects(tmp_path):
    class Counter:
        def __init__(self, count):
            self.count = count

        def state_dict(self):
            return {"count": self.count, "x": torch.tensor(float(self.count))}

        def load_state_dict(self, state):
            self.count = state["count"] + state["x"].item()

    model, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    counter = Counter(0)
    dcp.save({"model": model, "counter": Counter(5)}, checkpoint_id=tmp_path)
    dcp.load({"model": other, "counter": counter}, checkpoint_id=tmp_path)
    assert counter.count == 10
    assert torch.equal(model.weight, other.weight)


def test_errors_name_what_is_wrong(tmp_path):
    dcp.save({"x": torch.ones(2), "n": 1}, checkpoint_id=tmp_path)
    for target, text in [({"y": torch.ones(2)}, "Missing key in checkpoint state_dict: y."),
                         ({"x": torch.ones(3)}, r"Size mismatch between saved flambeau.Size\(\[2\]\) and current"),
                         ({"x": 1}, "Invalid checkpoint metadata for x, expected BytesStorageMetadata")]:
        with pytest.raises(dcp.CheckpointException, match=text) as caught:
            dcp.load(target, checkpoint_id=tmp_path)
        assert list(caught.value.failures) == [0]
    target = {"x": torch.zeros(2), "y": 5}
    dcp.load(target, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert (target["x"].tolist(), target["y"]) == ([1, 1], 5)
    with pytest.raises(dcp.CheckpointException, match="metadata is None; global metadata read failed"):
        dcp.load({}, checkpoint_id=tmp_path / "nothing")
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({})
    with pytest.raises(RuntimeError, match="Cannot detect which StorageReader"):
        dcp.load({}, checkpoint_id="s3://bucket")
    with pytest.raises(ValueError, match=r"duplicated flatten key a\.b"):
        flatten_state_dict({"a": {"b": 1}, "a.b": 2})
    with pytest.raises(NotImplementedError, match=r"archives of torch\.save"):
        dcp.FileSystemWriter(tmp_path, serialization_format=SerializationFormat.SAFETENSORS)


def test_old_calls(tmp_path):
    with pytest.warns(FutureWarning, match="`save_state_dict` is deprecated"):
        dcp.save_state_dict({"x": torch.ones(2)}, dcp.FileSystemWriter(tmp_path), no_dist=True)
    target = {"x": torch.zeros(2)}
    with pytest.warns(FutureWarning, match="`load_state_dict` is deprecated"):
        dcp.load_state_dict(target, dcp.FileSystemReader(tmp_path), no_dist=True)
    assert target["x"].tolist() == [1, 1]
    with pytest.warns(UserWarning, match="The argument order of load has been changed"):
        dcp.load(target, dcp.FileSystemReader(tmp_path))


def test_planners_of_programs(tmp_path):
    class Halves(dcp.DefaultSavePlanner):
        def transform_object(self, item, object):
            found = super().transform_object(item, object)
            return found if item.type is WriteItemType.BYTE_IO else found.half()

    class Renaming(dcp.DefaultLoadPlanner):
        def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
            super().set_up_planner({f"old_{key}": value for key, value in state_dict.items()}, metadata, is_coordinator)

    dcp.save({"old_x": torch.ones(2) / 3}, checkpoint_id=tmp_path, planner=Halves())
    target = {"x": torch.zeros(2)}
    dcp.load(target, checkpoint_id=tmp_path, planner=Renaming())
    assert torch.equal(target["x"], (torch.ones(2) / 3).half().float())


def test_plans_are_cached(tmp_path):
    try:
        for value in (1., 2.):
            dcp.save({"x": torch.full((2,), value)}, checkpoint_id=tmp_path,
                     planner=dcp.DefaultSavePlanner(enable_plan_caching=True))
        dcp.save({"y": torch.ones(3)}, checkpoint_id=tmp_path, planner=dcp.DefaultSavePlanner(enable_plan_caching=True))
    finally:
        for name in ("save_plan", "final_save_plan", "all_plans", "global_plan", "metadata"):
            getattr(dcp.SavePlanner, f"_cached_{name}").clear()
    assert list(dcp.FileSystemReader(tmp_path).read_metadata().state_dict_metadata) == ["y"]


def test_what_is_loaded_without_a_model(tmp_path):
    dcp.save(nested(), checkpoint_id=tmp_path)
    everything = _load_state_dict_from_keys(checkpoint_id=tmp_path)
    assert everything["l"][1] == {"x": "text"}
    assert everything["a"]["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert list(_load_state_dict_from_keys({"a"}, checkpoint_id=tmp_path)) == ["a"]
    assert _load_state_dict_from_keys("a.n", checkpoint_id=tmp_path) == {"a": {"n": 1}}
    with pytest.raises(AssertionError, match="must be empty"):
        _EmptyStateDictLoadPlanner().set_up_planner({"x": 1}, Metadata({}))


def test_files_of_torch_save(tmp_path):
    state = {"a": {"w": torch.arange(4.)}, "n": 3}
    torch.save(state, tmp_path / "model.pt")
    torch_save_to_dcp(tmp_path / "model.pt", tmp_path / "checkpoint")
    dcp_to_torch_save(tmp_path / "checkpoint", tmp_path / "again.pt")
    again = torch.load(tmp_path / "again.pt")
    assert (again["a"]["w"].tolist(), again["n"]) == ([0, 1, 2, 3], 3)
    torch.save({"w": torch.arange(4.)}, tmp_path / "flat.pt")
    target = {"w": torch.zeros(4)}
    dcp.load(target, checkpoint_id=tmp_path / "flat.pt", planner=DynamicMetaLoadPlanner(),
             storage_reader=BroadcastingTorchSaveReader())
    assert target["w"].tolist() == [0, 1, 2, 3]
    with pytest.raises(AssertionError, match="pass checkpoint_id"):
        BroadcastingTorchSaveReader().set_up_storage_reader(Metadata({}), True)
    with pytest.raises(dcp.CheckpointException, match="Non-tensor value identified at n"):
        dcp.load({"n": 1}, checkpoint_id=tmp_path / "flat.pt", planner=DynamicMetaLoadPlanner(),
                 storage_reader=BroadcastingTorchSaveReader())


def test_meta_tensors_get_memory(tmp_path):
    dcp.save({"x": torch.arange(3.)}, checkpoint_id=tmp_path)
    target = {"x": torch.zeros(3, device="meta")}
    dcp.load(target, checkpoint_id=tmp_path)
    assert target["x"].tolist() == [0, 1, 2]


# ----- in the background -------------------------------------------------------------------


def test_async_save_copies_first(tmp_path):
    x = torch.ones(1000)
    future = dcp.async_save({"x": x, "n": [1, (2,)]}, checkpoint_id=tmp_path)
    x.zero_()
    assert isinstance(future.result(), Metadata)
    target = {"x": torch.zeros(1000), "n": 0}
    dcp.load(target, checkpoint_id=tmp_path)
    assert target["x"].sum() == 1000
    assert target["n"] == [1, (2,)]
    with pytest.raises(dcp.CheckpointException):
        dcp.async_save({"x": x}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False)).result()


def test_stagers(tmp_path):
    state = {"x": torch.ones(3), "o": {"n": 1}}
    cached = BlockingAsyncStager(cache_staged_state_dict=True)
    first, second = cached.stage(state), cached.stage(state)
    assert first["x"].data_ptr() == second["x"].data_ptr() != state["x"].data_ptr()
    with pytest.raises(AssertionError, match="Non-blocking copy requires that the current accelerator"):
        DefaultStager()
    stager = DefaultStager(StagingOptions(use_shared_memory=False, use_non_blocking_copy=False))
    assert isinstance(stager, AsyncStager)
    response = dcp.async_save(state, checkpoint_id=tmp_path, async_stager=stager)
    assert isinstance(response.staging_completion, Future)
    response.staging_completion.result()
    assert list(response.upload_completion.result().state_dict_metadata) == ["x", "o.n"]
    stager.close()


# ----- plans -------------------------------------------------------------------------------


def chunk(offsets, sizes):
    return ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))


def test_parts_that_do_not_fit():
    def errors(chunks, plans=2):
        entry = TensorStorageMetadata(TensorProperties(), torch.Size([4, 6]), chunks)
        return " ".join(_validate_global_plan([SavePlan([])] * plans, Metadata({"x": entry})))

    assert not errors([chunk([0, 0], [4, 3]), chunk([0, 3], [4, 3])])
    assert not errors([chunk([i, j], [2, 2]) for j in (4, 0, 2) for i in (2, 0)])
    assert "overlapping chunks" in errors([chunk([0, 0], [4, 4]), chunk([0, 3], [4, 3])])
    assert "out of bounds" in errors([chunk([0, 3], [4, 4])])
    assert "invalid fill tensor-volume: 24 chunks-volume: 12" in errors([chunk([0, 0], [4, 3])])
    assert not errors([chunk([0, 0], [4, 3])], plans=1)


def test_what_is_read_for_other_parts():
    stored = TensorStorageMetadata(TensorProperties(), torch.Size([6, 4]), [chunk([i, 0], [2, 4]) for i in (0, 2, 4)])
    found = create_read_items_for_chunk_list("x", stored, [chunk([1, 1], [4, 2])])
    assert [(item.storage_index, item.storage_offsets, item.dest_offsets, item.lengths) for item in found] == [
        (MetadataIndex("x", [0, 0]), (1, 1), (0, 0), (1, 2)), (MetadataIndex("x", [2, 0]), (0, 1), (1, 0), (2, 2)),
        (MetadataIndex("x", [4, 0]), (0, 1), (3, 0), (1, 2))]
    scalar = TensorStorageMetadata(TensorProperties(), torch.Size([]), [chunk([], [])])
    assert len(create_read_items_for_chunk_list("x", scalar, [chunk([], [])])) == 1


def test_metadata_can_be_sent():
    properties = pickle.loads(pickle.dumps(TensorProperties(torch.float16, memory_format=torch.channels_last)))
    assert properties == TensorProperties(torch.float16, memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match=r"Invalid torch\.memory_format"):
        pickle.dumps(TensorProperties(memory_format=torch.channels_last_3d))
    assert get_element({"a": [{"b": 1}]}, ("a", 0, "b")) == 1
    assert get_element({"a": [1]}, ("a", 1), "none") == get_element({}, ("a",), "none") == "none"
    assert unflatten_state_dict(*flatten_state_dict(nested())).keys() == nested().keys()


# ----- several processes -------------------------------------------------------------------


def test_other_numbers_of_processes(tmp_path):
    whole = torch.arange(30.).reshape(5, 6)
    folder = tmp_path / "checkpoint"

    def write(rank):
        mesh = dist.init_device_mesh("cpu", (4,))
        state = {"rows": distribute_tensor(whole, mesh, [Shard(0)]),  # of 5 rows, the last rank has none
                 "columns": distribute_tensor(whole, mesh, [Shard(1)]),
                 "copies": distribute_tensor(whole, mesh, [Replicate()]), "plain": whole + 1, "rank": rank}
        metadata = dcp.save(state, checkpoint_id=folder)
        assert len(metadata.state_dict_metadata["copies"].chunks) == 1

    assert processes(4, write, tmp_path) == [0] * 4

    def read(rank):
        mesh = dist.init_device_mesh("cpu", (2,))
        parts = {name: distribute_tensor(whole * 0, mesh, [placement]) for name, placement in (
            ("rows", Shard(1)), ("columns", Shard(0)), ("copies", Shard(0)))}
        state = {**parts, "plain": torch.zeros(5, 6)}
        dcp.load(state, checkpoint_id=folder)
        for name in parts:
            assert isinstance(state[name], DTensor)
            assert torch.equal(state[name].full_tensor(), whole), (name, state[name])
        assert torch.equal(state["plain"], whole + 1)

    assert processes(2, read, tmp_path) == [0, 0]
    alone = {name: torch.zeros(5, 6) for name in ("rows", "columns", "copies", "plain")}
    dcp.load(alone, checkpoint_id=folder)
    assert torch.equal(alone["rows"], whole)
    assert torch.equal(alone["columns"], whole)


def test_errors_of_one_rank_are_raised_at_all(tmp_path):
    def body(rank):
        class Failing(dcp.DefaultSavePlanner):
            def resolve_data(self, item):
                if rank == 1:
                    raise OSError("disk full")
                return super().resolve_data(item)

        state = {str(i): torch.ones(4) for i in range(4)}
        for _ in range(2):
            with pytest.raises(dcp.CheckpointException, match="disk full") as caught:
                dcp.save(state, checkpoint_id=tmp_path / "checkpoint", planner=Failing())
            assert list(caught.value.failures) == [1]

    assert processes(3, body, tmp_path) == [0] * 3


def test_a_save_that_is_killed_leaves_the_checkpoint_before(tmp_path):
    folder = tmp_path / "checkpoint"

    def body(rank):
        class Killed(dcp.DefaultSavePlanner):
            def resolve_data(self, item):
                if rank == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().resolve_data(item)

        state = {str(i): torch.full((4,), 1.) for i in range(4)}
        dcp.save(state, checkpoint_id=folder)
        with pytest.raises(RuntimeError, match="rank 1 has left the process group, or its process has ended"):
            dcp.save({key: value * 2 for key, value in state.items()}, checkpoint_id=folder, planner=Killed())

    assert processes(2, body, tmp_path) == [0, signal.SIGKILL]
    target = {str(i): torch.zeros(4) for i in range(4)}
    dcp.load(target, checkpoint_id=folder)
    assert all(value.tolist() == [1] * 4 for value in target.values())
    dcp.save({"0": torch.ones(4) * 3}, checkpoint_id=folder)
    assert len(os.listdir(folder)) == 2  # nothing of the save that was killed is left


def test_saving_beside_collectives_of_the_program(tmp_path):
    def body(rank):
        x = torch.ones(100_000) * (rank + 1)
        futures = [dcp.async_save({"x": x, "part": x[:10]}, checkpoint_id=tmp_path / str(i)) for i in range(2)]
        for _ in range(20):
            y = torch.ones(5000)
            dist.all_reduce(y)
            assert y[0] == 3
        for future in futures:
            future.result()

    assert processes(3, body, tmp_path) == [0] * 3
    target = {"x": torch.zeros(100_000)}
    dcp.load(target, checkpoint_id=tmp_path / "1")
    assert target["x"][0] in (1, 2, 3)


def test_without_talking_to_others(tmp_path):
    folder = tmp_path / "checkpoint"

    def body(rank):
        dcp.save({"x": torch.full((3,), float(rank))}, checkpoint_id=folder, use_collectives=False)
        target = {"x": torch.zeros(3)}
        dcp.load(target, checkpoint_id=folder)
        assert target["x"].tolist() == [rank] * 3

    assert processes(2, body, tmp_path) == [0, 0]
    assert sorted(os.listdir(folder)) == ["__0.metadata", "__0_0.distcp", "__1.metadata", "__1_0.distcp"]


def test_safetensors_files_of_one_process(tmp_path):
    state = {"a": torch.arange(6.).reshape(2, 3), "b": torch.ones(2).bfloat16(), "c": torch.tensor(3),
             "d": torch.ones(0)}
    writer = HuggingFaceStorageWriter(tmp_path, {"a": 1, "b": 2, "c": 2, "d": 1}, thread_count=2)
    dcp.save(state, storage_writer=writer, no_dist=True)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 24 + 4 + 8
    assert index["weight_map"]["a"] == index["weight_map"]["d"] == "model-00001-of-00002.safetensors"
    found = {name: torch.zeros_like(value) for name, value in state.items()}
    dcp.load(found, storage_reader=HuggingFaceStorageReader(tmp_path, thread_count=2), no_dist=True)
    assert all(torch.equal(found[name], state[name]) for name in state)
    with pytest.raises(dcp.CheckpointException, match="hold tensors only, and n is none"):
        dcp.save({"n": 3}, storage_writer=HuggingFaceStorageWriter(tmp_path / "other"), no_dist=True)
    (tmp_path / "other" / "x.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(dcp.CheckpointException, match="is no safetensors file"):
        dcp.load(found, storage_reader=HuggingFaceStorageReader(tmp_path / "other"), no_dist=True)


def test_safetensors_files_of_two_processes(tmp_path):
    folder = tmp_path / "files"

    def body(rank):
        mesh = dist.init_device_mesh("cpu", (2,))
        whole = torch.arange(35.).reshape(5, 7)
        state = {name: distribute_tensor(whole + i, mesh, [placement]) for i, (name, placement) in enumerate(
            {"rows": Shard(0), "columns": Shard(1), "copies": Replicate()}.items())}
        dcp.save(state, storage_writer=HuggingFaceStorageWriter(folder, save_distributed=True,
                                                                enable_consolidation=True))
        for place in (folder, folder / "sharded"):
            found = {name: distribute_tensor(torch.zeros(5, 7), mesh, [Shard(1)]) for name in state}
            dcp.load(found, storage_reader=HuggingFaceStorageReader(place))
            for i, value in enumerate(found.values()):
                assert torch.equal(value.full_tensor(), whole + i)
        found = torch.zeros(5, 7)
        dcp.load({"columns": found}, storage_reader=HuggingFaceStorageReader(folder / "sharded"))
        assert torch.equal(found, whole + 1)

    assert processes(2, body, tmp_path) == [0, 0]


def test_a_process_writes(tmp_path):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        state, found = {"x": torch.arange(3.), "n": 4}, {"x": torch.zeros(3), "n": 0}
        written = dcp.async_save(state, checkpoint_id=tmp_path, async_checkpointer_type=AsyncCheckpointerType.PROCESS)
        state["x"].zero_()  # a copy is written
        assert written.result().version == "1.0.0"
        dcp.load(found, checkpoint_id=tmp_path)
        assert (found["x"].tolist(), found["n"]) == ([0, 1, 2], 4)
        with pytest.raises(dcp.CheckpointException, match="No such file"):
            dcp.async_save(state, checkpoint_id="/proc/none/x",
                           async_checkpointer_type=AsyncCheckpointerType.PROCESS).result()
        _async_process_executor._process._process.kill()
        _async_process_executor._process._process.join()
        with pytest.raises((RuntimeError, OSError), match=r"Exit code: -9|Broken pipe"):
            dcp.async_save(state, checkpoint_id=tmp_path,
                           async_checkpointer_type=AsyncCheckpointerType.PROCESS).result()
    finally:
        if _async_process_executor._process is not None:
            _async_process_executor._process.close()
            _async_process_executor._process = None
        dist.destroy_process_group()
