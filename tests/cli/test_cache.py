"""`flambeau cache` lists the persistent cache, `flambeau cache clear [kind]` deletes entries."""

from __future__ import annotations

import os

import pytest

from flambeau.cli import main
from flambeau.runtime.cache_store import CODE, PLANS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FLAMBEAU_CACHE_LIMIT", "3M")
    for name in ("a", "b"):
        CODE.write(name, bytes(1000))
    PLANS.write("c", b"")
    os.utime(tmp_path / "code" / "a", (0, 0))
    return tmp_path


def test_the_list(folder, capsys):
    assert main(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    size = sum(file.stat().st_size for file in (folder / "code").iterdir())
    assert lines[0].split() == ["kind", "entries", "bytes", "oldest", "newest"]
    kind, entries, shown, day, *_ = lines[1].split()
    assert (kind, entries, shown) == ("code", "2", f"{size:,}")
    assert day in ("1969-12-31", "1970-01-01")
    assert lines[3].split() == ["programs", "0", "0", "-", "-"]
    assert lines[6].split()[:2] == ["total", "3"]
    assert lines[8].split() == ["directory", str(folder)]
    assert lines[9].split() == ["limit", "3,145,728", "bytes"]


def test_clearing(folder, capsys):
    assert main(["cache", "clear", "code"]) == 0
    assert capsys.readouterr().out == f"deleted 2 entries of code in {folder}\n"
    assert PLANS.read("c") == b""
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"deleted 1 entry of all kinds in {folder}\n"
    assert PLANS.read("c") is None


def test_unknown_kinds_raise(folder, capsys):
    with pytest.raises(SystemExit):
        main(["cache", "clear", "tensors"])
    assert "invalid choice: 'tensors'" in capsys.readouterr().err
    assert PLANS.read("c") == b""
