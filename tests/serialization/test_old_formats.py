"""Legacy formats: files of PyTorch before 1.6 can be loaded."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau.serialization import legacy


class _Global:
    """Pickled as a name that need not be importable here."""

    def __init__(self, module, name):
        self.text = f"c{module}\n{name}\n".encode()


class _Pickler(pickle._Pickler):
    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, _Global):
            self.write(obj.text)
        else:
            super().save(obj, save_persistent_id)


def pickled(*objects):
    out = io.BytesIO()
    for obj in objects:
        _Pickler(out, protocol=2).dump(obj)
    return out.getvalue()


def row_of_pickles(identity, keys, data):
    """A file of PyTorch 0.4 with one tensor in it."""
    class Row(_Pickler):
        def persistent_id(self, obj):
            return identity if obj == "the storage" else None

    class Tensor:
        def __reduce_ex__(self, protocol):
            return rebuild, ("the storage", 1, (2,), (1,), False, OrderedDict())

    def rebuild():
        """Written as `torch._utils._rebuild_tensor_v2`."""

    class Naming(Row):
        def save_global(self, obj, name=None):
            if obj is rebuild:
                self.write(b"ctorch._utils\n_rebuild_tensor_v2\n")
            else:
                super().save_global(obj, name)

        dispatch = {**_Pickler.dispatch, type(rebuild): save_global}  # noqa: RUF012

    out = io.BytesIO()
    out.write(pickled(legacy.MAGIC_NUMBER, legacy.PROTOCOL_VERSION, {"little_endian": True}))
    Naming(out, protocol=2).dump(Tensor())
    out.write(pickled(keys) + data)
    return out.getvalue()


FLOATS = struct.pack("<q4f", 4, 0, 1, 2, 3)


def test_legacy_pickle_sequence(tmp_path):
    file = row_of_pickles(("storage", _Global("torch", "FloatStorage"), "1", "cpu", 4, None), ["1"], FLOATS)
    assert torch.load(io.BytesIO(file)).tolist() == [1, 2]
    (tmp_path / "x.pt").write_bytes(file)
    assert torch.load(tmp_path / "x.pt").tolist() == [1, 2]
    assert torch.load(io.BytesIO(file), weights_only=False).tolist() == [1, 2]


def test_legacy_views_of_storages():
    identity = ("storage", _Global("torch.cuda", "FloatStorage"), "1", "cuda:0", 4, ("2", 1, 3))
    file = row_of_pickles(identity, ["1"], FLOATS)
    assert torch.load(io.BytesIO(file), map_location="cpu").tolist() == [2, 3]
    assert torch.load(io.BytesIO(file), map_location="cpu", weights_only=False).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match=r"Attempting to deserialize object on a CUDA device but torch\.cuda"):
        torch.load(io.BytesIO(file))


@pytest.mark.parametrize(("data", "text"), [
    (FLOATS[:-3], "unexpected EOF, expected 3 more bytes. The file might be corrupted."),
    (b"", "unexpected EOF, expected 8 more bytes"),
    (struct.pack("<q", 5) + FLOATS[8:], "storage has wrong byte size: expected 16 got 20"),
])
def test_truncated_legacy_files(data, text):
    identity = ("storage", _Global("torch", "FloatStorage"), "1", "cpu", 4, None)
    with pytest.raises(RuntimeError, match=text):
        torch.load(io.BytesIO(row_of_pickles(identity, ["1"], data)))


def test_other_pickles_raise():
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        torch.load(io.BytesIO(pickle.dumps(5, protocol=2)))
    with pytest.raises(RuntimeError, match="Invalid protocol version: 5"):
        torch.load(io.BytesIO(pickled(legacy.MAGIC_NUMBER, 5)))


def tar_of_three(path):
    """A file of PyTorch 0.1.9: storages, tensors and the object, each a file of its own."""
    storages = pickled(1) + pickled((7, "cpu", _Global("torch", "FloatStorage"))) + FLOATS + pickled([(8, 7, 2, 2)])
    tensors = pickled(2)
    for key, storage, size, stride, offset in ((11, 7, (2, 2), (2, 1), 0), (12, 8, (2,), (1,), 0)):
        tensors += pickled((key, storage, _Global("torch", "FloatTensor")))
        tensors += struct.pack("<ii", len(size), 0) + struct.pack(f"<{2 * len(size) + 1}q", *size, *stride, offset)

    class Naming(_Pickler):
        def persistent_id(self, obj):
            return {"first": "11", "second": "12"}.get(obj) if isinstance(obj, str) else None

    whole = io.BytesIO()
    Naming(whole, protocol=2).dump(["first", "second", 3])
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in (("storages", storages), ("tensors", tensors), ("pickle", whole.getvalue())):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def test_a_tar_file(tmp_path):
    path = tmp_path / "old.pt"
    tar_of_three(path)
    a, b, three = torch.load(path, weights_only=False)
    assert a.tolist() == [[0, 1], [2, 3]]
    assert b.tolist() == [2, 3]
    assert three == 3
    a[1, 0] = 9
    assert b[0] == 9
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with files saved in the legacy"):
        torch.load(path)


@pytest.mark.parity
def test_a_tar_file_as_pytorch_reads_it(tmp_path):
    oracle = pytest.importorskip("torch")
    tar_of_three(tmp_path / "old.pt")
    a, b, _ = oracle.load(tmp_path / "old.pt", weights_only=False)
    assert a.tolist() == [[0, 1], [2, 3]]
    assert b.tolist() == [2, 3]


class Changed(torch.nn.Module):
    """A module whose source the test changes."""


def test_changed_source_warns(monkeypatch):
    file = io.BytesIO()
    torch.save(Changed(), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    torch.load(file, weights_only=False)
    monkeypatch.setattr(legacy, "_source", lambda cls: (None, "class Changed: ..."))
    file.seek(0)
    with pytest.warns(torch.serialization.SourceChangeWarning, match="source code of class .*Changed' has changed"):
        torch.load(file, weights_only=False)


def test_mapping_needs_an_archive(tmp_path):
    path = str(tmp_path / "x.pt")
    torch.save(torch.ones(1), path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(path, mmap=True)
    with torch.serialization.skip_data(), pytest.raises(RuntimeError, match="Cannot use skip_data=True"):
        torch.save(1, path, _use_new_zipfile_serialization=False)
