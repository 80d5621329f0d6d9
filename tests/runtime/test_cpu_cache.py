"""The size of the L2 cache, from what the system reports."""

from __future__ import annotations

from flambeau.runtime import cpu_cache


def entry(folder, number, **files):
    made = folder / f"index{number}"
    made.mkdir()
    for name, text in files.items():
        (made / name).write_text(text + "\n")


def test_the_l2_data_cache(tmp_path):
    entry(tmp_path, 0, level="1", type="Data", size="48K")
    entry(tmp_path, 1, level="2", type="Instruction", size="64K")
    entry(tmp_path, 2, level="2", type="Unified", size="2M")
    assert cpu_cache._l2_size_on_linux(tmp_path) == 2 << 20


def test_unreadable_entries(tmp_path):
    assert cpu_cache._l2_size_on_linux(tmp_path) is None
    entry(tmp_path, 0, level="2", type="Unified", size="much")
    entry(tmp_path, 1, level="2", type="Unified")
    assert cpu_cache._l2_size_on_linux(tmp_path) is None
    entry(tmp_path, 2, level="2", type="Unified", size="524288")
    assert cpu_cache._l2_size_on_linux(tmp_path) == 512 << 10


def test_of_this_machine():
    assert 1 << 16 <= cpu_cache.l2_size() <= 1 << 30
