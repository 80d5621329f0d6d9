"""Archives: record layout, mmap, byte order, zip files of other writers, corrupt files."""

from __future__ import annotations

import gzip
import io
import mmap
import os
import zipfile

import numpy as np
import pytest

import flambeau as torch
from flambeau.serialization import archive


def written(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return file


def rewritten(file, change=lambda name, data: data, **options):
    """The records of an archive, changed and written by another program."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w", **options) as new:
        for name in old.namelist():
            data = change(name.partition("/")[2], old.read(name))
            if data is not None:
                new.writestr(name, data)
    out.seek(0)
    return out


def test_the_layout(tmp_path):
    torch.save([torch.ones(3), torch.ones(5)], tmp_path / "some.name.pt")
    with zipfile.ZipFile(tmp_path / "some.name.pt") as file:
        assert file.testzip() is None
        assert file.namelist() == [f"some.name/{name}" for name in (
            "data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1", "version",
            ".data/serialization_id")]
    with open(tmp_path / "some.name.pt", "rb") as file:
        reader = archive.ArchiveReader(file)
        assert reader.offset("data/0") % 64 == reader.offset("data/1") % 64 == 0


def test_only_writing_is_asked_of_a_file():
    class Sink:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)

        def flush(self):
            pass

    sink = Sink()
    torch.save(torch.arange(3), sink)
    assert torch.load(io.BytesIO(sink.data)).tolist() == [0, 1, 2]


def test_mapping(tmp_path):
    path = tmp_path / "x.pt"
    x = torch.arange(1000.0)
    torch.save([x, x[10:], torch.ones(3, dtype=torch.bfloat16), torch.empty(0)], path)
    a, b, c, _ = torch.load(path, mmap=True)
    assert torch.equal(a, x)
    a[10] = -1  # in memory only
    assert b[0] == -1
    assert c.tolist() == [1, 1, 1]
    assert a.untyped_storage().nbytes() == 4000
    assert torch.load(path)[0][10] == 10
    file = io.BytesIO()
    torch.save(b, file)  # the storage, not its file
    assert len(file.getvalue()) < 6000
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(written(1), mmap=True)


@pytest.mark.skipif(not hasattr(mmap, "MAP_SHARED"), reason="POSIX's way of mapping")
def test_mapping_shared(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(3), path)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        x = torch.load(path, mmap=True)
        x[1] = 5
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert torch.load(path).tolist() == [0, 5, 0]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.complex64, torch.int16, torch.uint8,
                                  torch.uint32])
def test_the_other_byte_order(kind):
    x = torch.tensor([1, 2, 300 % 256]).to(kind)

    def turn(name, data):
        if name == "byteorder":
            return b"big"
        if name == "data/0":
            item = x._array.real.dtype.itemsize if kind is not torch.uint32 else 1  # stored as bytes
            return np.frombuffer(data, f"u{item}").byteswap().tobytes()
        return data

    assert torch.equal(torch.load(rewritten(written(x), turn)), x)
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        torch.load(rewritten(written(x), lambda name, data: b"middle" if name == "byteorder" else data))


def test_files_that_do_not_say_their_byte_order():
    from flambeau.utils.serialization import config

    x = torch.tensor([1, 256])
    file = io.BytesIO()
    torch.save(x, file, _disable_byteorder_record=True)
    file.seek(0)
    assert torch.equal(torch.load(file), x)
    file.seek(0)
    torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
    try:
        assert config.load.endianness is torch.serialization.get_default_load_endianness()
        assert torch.load(file)[0] == 1 << 56
    finally:
        torch.serialization.set_default_load_endianness(None)


def test_archives_of_other_programs():
    x = torch.arange(100)
    assert torch.equal(torch.load(rewritten(written(x), compression=zipfile.ZIP_DEFLATED)), x)
    assert torch.equal(torch.load(gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(written(x).getvalue())))), x)


def test_checksums_can_be_left_out():
    torch.serialization.set_crc32_options(False)
    try:
        assert not torch.serialization.get_crc32_options()
        assert torch.load(written(torch.ones(2))).tolist() == [1, 1]
    finally:
        torch.serialization.set_crc32_options(True)


def test_skipping_the_data():
    with torch.serialization.skip_data():
        file = written(torch.ones(3))
        full = torch.load(written(torch.ones(2)))
    assert torch.load(file).tolist() == [0, 0, 0]
    assert full.shape == (2,)
    assert len(file.getvalue()) == len(written(torch.ones(3)).getvalue())


@pytest.mark.parametrize(("change", "text"), [
    (lambda name, data: None if name == "version" else data, "Expected hasRecord"),
    (lambda name, data: b"99" if name == "version" else data, "maximum supported version for reading is 10"),
    (lambda name, data: b"0" if name == "version" else data, "minimum supported version for reading is 1"),
    (lambda name, data: None if name == "data.pkl" else data, "failed locating file data.pkl: file not found"),
    (lambda name, data: None if name == "data/0" else data, "failed locating file data/0: file not found"),
    (lambda name, data: data[:4] if name == "data/0" else data, "it has 4 bytes, but 12 are required"),
])
def test_damaged_archives(change, text):
    with pytest.raises(RuntimeError, match=text):
        torch.load(rewritten(written(torch.ones(3)), change))


def test_torchscript_is_refused():
    file = rewritten(written(1), lambda name, data: data)
    with zipfile.ZipFile(file, "a") as more:
        more.writestr("archive/constants.pkl", b"")
    for weights_only, error in ((True, RuntimeError), (False, NotImplementedError)):
        file.seek(0)
        with pytest.warns(UserWarning, match="looks like a TorchScript archive"), pytest.raises(error):
            torch.load(file, weights_only=weights_only)


def test_closed_and_unseekable_files():
    file = written(1)
    file.close()
    with pytest.raises(ValueError, match="I/O operation on closed file"):
        torch.load(file)
    with pytest.raises(ValueError, match="I/O operation on closed file"):
        torch.save(1, file)
    with pytest.raises(AttributeError, match="from a file that is seekable"):
        torch.load(object())
    read, write = os.pipe()
    os.close(write)
    with open(read, "rb") as pipe, pytest.raises(OSError, match="eek"):
        torch.load(pipe)


def test_storages_are_loaded_on_meta():
    x = torch.ones(2, 3).t()
    loaded, part, parameter = torch.load(written([x, x[1:], torch.nn.Parameter(torch.ones(2))]), map_location="meta")
    assert (str(loaded.device), loaded.shape, loaded.stride()) == ("meta", (3, 2), (1, 3))
    assert part.storage_offset() == 1
    assert part.untyped_storage()._cdata == loaded.untyped_storage()._cdata
    assert isinstance(parameter, torch.nn.Parameter)
    assert parameter.is_meta
    assert parameter.requires_grad


def test_other_formats_are_refused(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"")
    with pytest.raises(RuntimeError, match="safetensors"):
        torch.load(tmp_path / "x.safetensors")


def test_big_archives_say_so(tmp_path, monkeypatch):
    """Past 4 GiB the sizes move to fields of 64 bits: made believe here by a smaller limit."""
    monkeypatch.setattr(archive, "_MAX32", 600)
    header = archive._zip64(700, 100)
    assert header == b"\x01\x00\x10\x00" + (700).to_bytes(8, "little") * 2
    assert archive._zip64(5, 700) == b"\x01\x00\x08\x00" + (700).to_bytes(8, "little")
    assert archive._zip64(5, 5) == b""
    x = [torch.arange(300), torch.ones(2)]
    torch.save(x, tmp_path / "x.pt")
    path = tmp_path / "x.pt"
    data = path.read_bytes()
    assert data.count(b"PK\x01\x02") == 8
    with open(path, "rb") as file:
        assert archive._LOCAL_HEADER.unpack(file.read(30))[0] == b"PK\3\4"


def test_a_package_of_locations():
    from flambeau.serialization import locations

    before = list(locations._packages)
    try:
        torch.serialization.register_package(5, lambda storage: "attic" if len(storage) == 8 else None,
                                             lambda storage, where: storage if where == "attic" else None)
        file = written([torch.ones(2), torch.ones(3)])
        assert b"attic" in file.getvalue()
        assert torch.load(file)[0].tolist() == [1, 1]
        assert torch.serialization.location_tag(torch.ones(2).untyped_storage()) == "attic"
    finally:
        locations._packages[:] = before
    file.seek(0)
    with pytest.raises(RuntimeError, match="don't know how to restore data location of"):
        torch.load(file)
