"""Checkpoints of one library read by the other, by other numbers of processes; state dicts of distributed models."""

from __future__ import annotations

import pytest

from .ranks import differences, run, same

pytestmark = pytest.mark.parity


def test_files_of_each_library_are_read_by_the_other(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    written, read = {}, {}
    for library, other, size in (("flambeau", "torch", 3), ("torch", "flambeau", 3)):
        monkeypatch.setenv("FLAMBEAU_TEST_CHECKPOINT", str(tmp_path / library))
        monkeypatch.setenv("FLAMBEAU_TEST_CHECKPOINT_MODE", "write")
        written[library] = run("checkpoint_files", library, 3)
        monkeypatch.setenv("FLAMBEAU_TEST_CHECKPOINT_MODE", "read")
        read[library] = run("checkpoint_files", other, size)
        if library == "flambeau":
            assert same(run("checkpoint_files", other, 2)[0]["state"], read[library][0]["state"])
    assert same(written["flambeau"], written["torch"])
    assert same(read["flambeau"][0], read["torch"][0])
    assert read["flambeau"][0]["state"]["plain"][2][1][0] == 7
    for report in read.values():
        for name in ("saved tensors, True", "saved tensors, False"):
            assert [x[1:3] for x in report[1][name]] == [
                ["(Replicate(),)", [0, 1, 2]], ["(Shard(dim=1),)", [0, 1, 2]], ["(Partial(sum),)", [0, 1]],
                ["(Shard(dim=0),)", [0, 1]]]
    assert read["torch"][2]["state"]["nested"]["text"] == "a"


def test_state_dicts_of_distributed_models():
    pytest.importorskip("torch")
    assert not differences("state_dicts", 2)


@pytest.mark.filterwarnings("ignore:torch.distributed is", "ignore:Detected an existing checkpoint")
def test_checkpoints_in_file_systems_of_fsspec():
    pytest.importorskip("torch")  # brings fsspec
    import flambeau as torch
    from flambeau.distributed import checkpoint as dcp
    from flambeau.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter

    found = {"x": torch.zeros(3), "n": 0}
    for number in (1, 2):  # the second takes the place of the first
        dcp.save({"x": torch.arange(3.) * number, "n": number}, storage_writer=FsspecWriter("memory://checkpoints/a"))
    dcp.load(found, storage_reader=FsspecReader("memory://checkpoints/a"))
    assert (found["x"].tolist(), found["n"]) == ([0, 2, 4], 2)
    assert FsspecReader.validate_checkpoint_id("memory://x")
    assert not FsspecReader.validate_checkpoint_id("nothing://x")
