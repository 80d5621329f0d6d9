"""The persistent cache: entries, keys, damage, several processes, the limit and eviction."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flambeau.runtime import cache_store
from flambeau.runtime.cache_store import CACHES, CODE, MEASUREMENTS, PLANS, Cache
from tests.compiled_code import cache_files


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty store, whose size no process has checked."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "store"))
    monkeypatch.delenv("FLAMBEAU_CACHE_LIMIT", raising=False)
    monkeypatch.setattr(cache_store, "_size_checked", False)
    return tmp_path / "store"


def test_an_entry_is_a_file_of_its_cache(folder):
    assert CODE.read("a") is None
    CODE.write("a", b"payload")
    assert CODE.read("a") == b"payload"
    assert PLANS.read("a") is None
    assert cache_files(folder) == [folder / "code" / "a"]
    CODE.write("a", b"")
    assert CODE.read("a") == b""
    CODE.discard("a")
    CODE.discard("a")
    assert CODE.read("a") is None


def test_keys_depend_on_the_cache_its_format_the_version_and_each_text(monkeypatch):
    keys = {Cache("x", 1).key("ab", "c"), Cache("x", 1).key("a", "bc"), Cache("y", 1).key("ab", "c"),
            Cache("x", 2).key("ab", "c"), Cache("x", 1, ("runtime",)).key("ab", "c"),
            Cache("x", 1, None).key("ab", "c")}
    assert len(keys) == 6
    assert Cache("x", 1).key("ab", "c") in keys
    monkeypatch.setattr(cache_store, "__version__", "another")
    assert Cache("x", 1).key("ab", "c") not in keys


def test_source_hashes_follow_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_store, "_PACKAGE", tmp_path)
    (tmp_path / "part" / "inner").mkdir(parents=True)
    file = tmp_path / "part" / "inner" / "module.py"

    def hashes():
        cache_store.source_hash.cache_clear()
        cache_store.package_stamp.cache_clear()
        return cache_store.source_hash("part"), cache_store.package_stamp()

    try:
        file.write_text("a = 1\n")
        first = hashes()
        assert hashes() == first
        file.write_text("a = 12\n")
        second = hashes()
        assert all(x != y for x, y in zip(first, second, strict=True))
        os.utime(file, (1, 1))
        third = hashes()
        assert third[0] == second[0]
        assert third[1] != second[1]
    finally:
        monkeypatch.undo()
        hashes()


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:9], lambda b: b[:-1] + b"?",
                                    lambda b: b"?" + b, lambda b: b + b"?"])
def test_a_damaged_entry_is_deleted(folder, damage):
    CODE.write("a", b"payload")
    path = folder / "code" / "a"
    path.write_bytes(damage(path.read_bytes()))
    assert CODE.read("a") is None
    assert not path.exists()


def test_an_unwritable_folder_is_ignored(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "file"))
    CODE.write("a", b"payload")
    assert CODE.read("a") is None
    CODE.discard("a")
    assert cache_store.evict() == cache_store.clear() == 0
    assert [each.entries for each in cache_store.summaries()] == [0] * len(CACHES)


def test_a_failed_write_leaves_no_file(folder, monkeypatch):
    def refuse(*args):
        raise OSError("no space left")

    CODE.write("a", b"payload")
    monkeypatch.setattr(cache_store.os, "replace", refuse)
    CODE.write("a", b"another")
    assert CODE.read("a") == b"payload"
    assert list((folder / "code").iterdir()) == [folder / "code" / "a"]


def test_processes_that_write_and_read_one_entry(folder):
    program = """
import sys
from flambeau.runtime.cache_store import CODE
for i in range(300):
    CODE.write("a", bytes([int(sys.argv[1])]) * 5000)
    found = CODE.read("a")
    assert found is not None and len(found) == 5000 and len(set(found)) == 1, found
"""
    running = [subprocess.Popen([sys.executable, "-c", program, str(i)], stderr=subprocess.PIPE, text=True)
               for i in range(3)]
    assert [process.communicate()[1] for process in running] == [""] * 3
    assert os.listdir(folder / "code") == ["a"]


def fill(folder: Path) -> None:
    """Twenty entries of two kinds, the later ones used later."""
    for i in range(20):
        cache = (CODE, PLANS)[i % 2]
        cache.write(f"{i:02}", bytes(100))
        os.utime(os.path.join(cache.folder(), f"{i:02}"), (i + 1, i + 1))


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in cache_files(folder))


def test_the_least_recently_used_entries_are_evicted(folder, monkeypatch):
    fill(folder)
    size = (folder / "code" / "00").stat().st_size
    assert cache_store.evict() == 0
    monkeypatch.setenv("FLAMBEAU_CACHE_LIMIT", str(10 * size))
    assert CODE.read("00") is not None  # used now
    assert cache_store.evict() == 13 * size
    assert names(folder) == ["00", *(f"{i}" for i in range(14, 20))]


def test_the_size_is_checked_once_in_a_process_and_an_hour(folder, monkeypatch):
    fill(folder)
    monkeypatch.setenv("FLAMBEAU_CACHE_LIMIT", "1000")
    CODE.write("now", b"")
    assert len(names(folder)) == 21  # this process has checked
    monkeypatch.setattr(cache_store, "_size_checked", False)
    CODE.write("now", b"")
    assert len(names(folder)) == 21  # another process has
    os.utime(folder / ".checked", (1, 1))
    monkeypatch.setattr(cache_store, "_size_checked", False)
    CODE.write("now", b"")
    left = names(folder)
    assert "now" in left
    assert "19" in left
    assert "00" not in left
    assert len(left) < 8
    assert time.time() - (folder / ".checked").stat().st_mtime < 60


def test_files_of_killed_processes_are_deleted(folder):
    CODE.write("a", b"")
    old, new = folder / "code" / ".old.part", folder / "code" / ".new.part"
    old.write_bytes(bytes(10))
    new.write_bytes(bytes(10))
    os.utime(old, (1, 1))
    assert cache_store.evict() == 10
    assert sorted(os.listdir(folder / "code")) == [".new.part", "a"]


def test_limits(monkeypatch):
    for text, bytes_ in (("", 2 << 30), ("1500", 1500), ("500M", 500 << 20), ("1.5g", 3 << 29), ("2GiB", 2 << 30),
                         ("10KB", 10240), ("0", 0), ("-3", 0)):
        monkeypatch.setenv("FLAMBEAU_CACHE_LIMIT", text)
        assert cache_store.limit() == bytes_
    monkeypatch.setenv("FLAMBEAU_CACHE_LIMIT", "much")
    with pytest.warns(RuntimeWarning, match="FLAMBEAU_CACHE_LIMIT=much is no number of bytes"):
        assert cache_store.limit() == 2 << 30


def test_a_limit_of_0_writes_nothing(folder, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_LIMIT", "0")
    CODE.write("a", b"payload")
    assert not folder.exists()


def test_summaries_and_clearing(folder):
    fill(folder)
    MEASUREMENTS.write("m", b"1")
    found = {each.name: each for each in cache_store.summaries()}
    assert list(found) == ["code", "plans", "programs", "traces", "measurements"]
    assert (found["code"].entries, found["code"].oldest, found["code"].newest) == (10, 1, 19)
    assert found["code"].size == sum(file.stat().st_size for file in (folder / "code").iterdir())
    assert (found["programs"].entries, found["programs"].size, found["programs"].oldest) == (0, 0, None)
    assert cache_store.clear("plans") == 10
    assert {each.name: each.entries for each in cache_store.summaries()}["plans"] == 0
    assert MEASUREMENTS.read("m") == b"1"
    assert cache_store.clear() == 11
    assert list(folder.iterdir()) == []
    with pytest.raises(KeyError):
        cache_store.clear("else")


def test_the_folder_without_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv("FLAMBEAU_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform not in ("win32", "darwin"):
        assert cache_store.root() == str(tmp_path / "flambeau")
    assert Path(cache_store.root()).name == "flambeau"
