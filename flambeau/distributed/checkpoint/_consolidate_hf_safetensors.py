"""Safetensors files of whole tensors, made of the files that several processes wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ... import distributed as dist
from ...c10d.process_group import ProcessGroup
from ...serialization.safetensors import map_safetensor, read_safetensors_header, write_safetensors
from ._hf_utils import (
    CUSTOM_METADATA_KEY,
    FORMAT_KEY,
    FORMAT_VALUE,
    SAVED_OFFSETS_KEY,
    SUFFIX,
    _gen_file_name,
    _metadata_fn,
)

__all__ = ["consolidate_safetensors_files", "consolidate_safetensors_files_on_every_rank"]


def _parts_by_name(folder: str) -> dict[str, list[tuple[Path, Any, list[int]]]]:
    """The parts of each tensor: the file, the place in it, and where the part is in the tensor."""
    found: dict[str, list[tuple[Path, Any, list[int]]]] = {}
    for path in sorted(Path(folder).glob(f"*{SUFFIX}")):
        entries, metadata = read_safetensors_header(path)
        placed = json.loads(metadata.get(CUSTOM_METADATA_KEY, "{}"))
        for name, entry in entries.items():
            offsets = placed[name][SAVED_OFFSETS_KEY] if name in placed else [0] * len(entry.shape)
            found.setdefault(name, []).append((path, entry, offsets))
    return found


def _whole(parts: list[tuple[Path, Any, list[int]]]) -> np.ndarray:
    shape = [max(offsets[d] + entry.shape[d] for _, entry, offsets in parts) for d in range(len(parts[0][1].shape))]
    whole = np.zeros(shape, parts[0][1].dtype.numpy)
    for path, entry, offsets in parts:
        place = tuple(slice(offset, offset + n) for offset, n in zip(offsets, entry.shape, strict=True))
        whole[place] = map_safetensor(path, entry)
    return whole


def _write_files(input_dir: str, output_dir: str, names: Mapping[str, list[str]],
                 threads: int) -> tuple[dict[str, str], int]:
    """Write files of whole tensors; by tensor its file, and the bytes of all tensors."""
    parts = _parts_by_name(input_dir)
    Path(output_dir).mkdir(parents=True, exist_ok=True)

    def write(file: str) -> int:
        arrays = {name: _whole(parts[name]) for name in names[file] if name in parts}
        with (Path(output_dir) / file).open("wb") as stream:
            write_safetensors(stream, arrays, {FORMAT_KEY: FORMAT_VALUE})
        return sum(array.nbytes for array in arrays.values())

    with ThreadPoolExecutor(max(1, threads)) as pool:
        total = sum(pool.map(write, names))
    return {name: file for file, each in names.items() for name in each if name in parts}, total


def _write_index(output_dir: str, weight_map: dict[str, str], total: int) -> None:
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (Path(output_dir) / _metadata_fn).write_text(json.dumps(index, indent=2), encoding="utf-8")


def _names_by_file(fqn_to_index_mapping: Mapping[str, int], largest: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, index in fqn_to_index_mapping.items():
        found.setdefault(_gen_file_name(index, largest), []).append(name)
    return found


def consolidate_safetensors_files(input_dir: str, output_dir: str, fqn_to_index_mapping: dict[str, int],
                                  num_threads: int = 1) -> None:
    """Write whole tensors of the parts that processes have written.

    Args:
        input_dir: the folder with the files of parts.
        output_dir: the folder of the result, with an index of the tensors.
        fqn_to_index_mapping: by name of a tensor, the number of the file, from 1 on.
        num_threads: how many threads write.
    """
    names = _names_by_file(fqn_to_index_mapping, max(fqn_to_index_mapping.values()))
    _write_index(output_dir, *_write_files(input_dir, output_dir, names, num_threads))


def consolidate_safetensors_files_on_every_rank(
        input_dir: str, output_dir: str, fqn_to_index_mapping: dict[str, int], num_threads: int = 1,
        process_group: ProcessGroup | None = None) -> None:
    """Write whole tensors, each process some of the files; all processes call this.

    Args:
        input_dir: the folder with the files of parts.
        output_dir: the folder of the result.
        fqn_to_index_mapping: by name of a tensor, the number of the file, from 1 on.
        num_threads: how many threads of a process write.
        process_group: the processes; all if None.
    """
    alone = not dist.is_initialized()
    rank, size = (0, 1) if alone else (dist.get_rank(process_group), dist.get_world_size(process_group))
    own = {name: index for name, index in fqn_to_index_mapping.items() if index % size == rank}
    names = _names_by_file(own, max(fqn_to_index_mapping.values()))
    written = _write_files(input_dir, output_dir, names, num_threads)
    if alone:
        _write_index(output_dir, *written)
        return
    gathered: list[Any] | None = [None] * size if rank == 0 else None
    dist.gather_object(written, gathered, group=process_group, group_dst=0)
    if gathered is not None:
        _write_index(output_dir, {name: file for files, _ in gathered for name, file in files.items()},
                     sum(total for _, total in gathered))
    dist.barrier(process_group)
