"""Archives written and read record by record, beside PyTorch."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import flambeau

RECORDS = {"a": b"12039810948234589", "b/c": b"", "d": b"x" * 1000}


@pytest.mark.parity
@pytest.mark.parametrize("by_path", [False, True])
def test_records_of_the_other_library(by_path: bool, tmp_path: Path) -> None:
    """Each library reads the records that the other one writes."""
    torch = pytest.importorskip("torch")
    for writing, reading in ((flambeau, torch), (torch, flambeau)):
        file: Any = str(tmp_path / f"{writing.__name__}.pt") if by_path else io.BytesIO()
        with writing.serialization._open_zipfile_writer(file) as writer:
            for name, data in RECORDS.items():
                writer.write_record(name, data, len(data))
            writer.write_record("part", b"12345", 3)
            writer.write_record("text", "little", 6)
            writer.write_record_metadata("later", 5)
        if not by_path:
            file.seek(0)
        with reading.serialization._open_file_like(file, "rb") as opened:
            assert reading.serialization._is_zipfile(opened)
            with reading.serialization._open_zipfile_reader(opened) as reader:
                assert {name: reader.get_record(name) for name in RECORDS} == RECORDS
                assert [reader.get_record(name) for name in ("part", "text")] == [b"123", b"little"]
                assert len(reader.get_record("later")) == 5


def test_modes_of_open_files() -> None:
    with pytest.raises(RuntimeError, match="Expected 'r' or 'w' in mode but got a"), (
            flambeau.serialization._open_file_like(io.BytesIO(), "a")):
        pass
    assert not flambeau.serialization._is_zipfile(io.BytesIO(b"PK\3\5"))
