"""`torch.distributed.checkpoint.hf_storage`: checkpoints as safetensors files, which Hugging Face's libraries read."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import threading
from typing import Any

from ..._tensor.tensor import wrap
from ...runtime.futures import Future
from ...serialization.safetensors import Entry, map_safetensor, read_safetensors_header, write_safetensors
from ...shapes import Size
from ._consolidate_hf_safetensors import consolidate_safetensors_files
from ._hf_utils import (
    CUSTOM_METADATA_KEY,
    DCP_VERSION_KEY,
    FORMAT_KEY,
    FORMAT_VALUE,
    HF_DCP_VERSION,
    SAVED_OFFSETS_KEY,
    SHARDED_DIR_NAME,
    SUFFIX,
    _gen_file_name,
    _HFStorageInfo,
    _metadata_fn,
)
from .filesystem import FileSystemReader, FileSystemWriter, SerializationFormat, _StorageInfo, _sync
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors to safetensors files, with an index of the tensors.

    Args:
        path: the folder.
        fqn_to_index_mapping: by name of a tensor, the number of the file that it is written to, from 1 on; one file if
            None.
        thread_count: how many threads write.
        save_distributed: whether each process writes files of its parts.
        enable_consolidation: whether such files go to a folder `sharded`, and whole tensors to `path` afterwards.
        thread_count_consolidation: how many threads write whole tensors.

    >>> import tempfile, warnings
    >>> import flambeau as torch
    >>> import flambeau.distributed.checkpoint as dcp
    >>> from flambeau.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
    >>> state = {"weight": torch.zeros(2)}
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
    ...     _ = dcp.save({"weight": torch.ones(2)}, storage_writer=HuggingFaceStorageWriter(folder))
    ...     dcp.load(state, storage_reader=HuggingFaceStorageReader(folder))
    >>> state
    {'weight': tensor([1., 1.])}
    """

    def __init__(self, path: str, fqn_to_index_mapping: dict[str, int] | None = None, thread_count: int = 1,
                 save_distributed: bool = False, enable_consolidation: bool = False,
                 thread_count_consolidation: int = 1) -> None:
        super().__init__(path, thread_count=thread_count)
        self.serialization_format = SerializationFormat.SAFETENSORS
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed, self.enable_consolidation = save_distributed, enable_consolidation
        self.consolidated_output_path: str | None = None
        if enable_consolidation:
            self.consolidated_output_path = str(self.path)
            self.path = self.fs.concat_path(self.path, SHARDED_DIR_NAME)
        self.thread_count_consolidation = thread_count_consolidation

    def _metadata_file(self) -> Any:
        return self.fs.concat_path(self.path, _metadata_fn)

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        storage: dict[str, Any] = {}
        if self.fqn_to_index_mapping is not None:
            storage["fqn_to_index_mapping"] = self.fqn_to_index_mapping
        return [dataclasses.replace(plan, storage_data={**storage, "shard_index": i} if self.save_distributed
                                    else dict(storage)) for i, plan in enumerate(plans, start=1)]

    def _groups(self, plan: SavePlan, planner: SavePlanner) -> list[tuple[str, list[WriteItem]]]:
        mapping = plan.storage_data.get("fqn_to_index_mapping")
        files: dict[int, list[WriteItem]] = {}
        for item in plan.items:
            files.setdefault(1 if mapping is None else mapping[item.index.fqn], []).append(item)
        largest = 1 if mapping is None else max(mapping.values())
        return [(_gen_file_name(index, largest, plan.storage_data.get("shard_index")), items)
                for index, items in files.items()]

    def _write_file(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        arrays, placed = {}, {}
        for item in items:
            if item.type is WriteItemType.BYTE_IO:
                raise ValueError(f"safetensors files hold tensors only, and {item.index.fqn} is none")
            assert item.tensor_data is not None
            name_of = item.index.fqn
            arrays[name_of] = planner.resolve_data(item).detach()._array  # type: ignore[union-attr]
            placed[name_of] = {SAVED_OFFSETS_KEY: list(item.tensor_data.chunk.offsets)}
        metadata = {CUSTOM_METADATA_KEY: json.dumps(placed), DCP_VERSION_KEY: str(HF_DCP_VERSION),
                    FORMAT_KEY: FORMAT_VALUE}
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            write_safetensors(stream, arrays, metadata)
            if self.sync_files:
                _sync(stream)
        return [WriteResult(item.index, arrays[item.index.fqn].nbytes,
                            _StorageInfo(name, 0, arrays[item.index.fqn].nbytes)) for item in items]

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        if self.save_distributed and not self.enable_consolidation:
            return  # each process's files say what they hold
        if self.save_distributed:
            names = self.fqn_to_index_mapping or dict.fromkeys(metadata.state_dict_metadata, 1)
            assert self.consolidated_output_path is not None
            consolidate_safetensors_files(str(self.path), self.consolidated_output_path, names,
                                          self.thread_count_consolidation)
            return
        written = [result for each in results for result in each]
        index = {"metadata": {"total_size": sum(result.storage_data.length for result in written)},
                 "weight_map": {result.index.fqn: result.storage_data.relative_path for result in written}}
        with self.fs.create_stream(self._metadata_file(), "w") as stream:
            json.dump(index, stream, indent=2)

    @property
    def metadata_path(self) -> str:
        """The name of the index."""
        return _metadata_fn


class HuggingFaceStorageReader(FileSystemReader):
    """Reads safetensors files, whole tensors or parts that processes have written.

    Args:
        path: the folder.
        thread_count: how many threads read.
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count
        self._places: dict[tuple[str, str], Entry] = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        tensors: dict[str, Any] = {}
        storage: dict[MetadataIndex, Any] = {}
        for path in sorted(each for each in self.fs.ls(self.path) if each.endswith(SUFFIX)):
            entries, strings = read_safetensors_header(path)
            placed = json.loads(strings.get(CUSTOM_METADATA_KEY) or "{}")
            for name, entry in entries.items():
                offsets = placed[name][SAVED_OFFSETS_KEY] if placed else [0] * len(entry.shape)
                self._places[path, name] = entry
                chunk = ChunkStorageMetadata(offsets=Size(offsets), sizes=Size(entry.shape))
                end = [n + offset for n, offset in zip(entry.shape, offsets, strict=True)]
                found = tensors.get(name)
                if found is None:
                    tensors[name] = TensorStorageMetadata(properties=TensorProperties(dtype=entry.dtype),
                                                          size=Size(end), chunks=[chunk])
                else:
                    found.chunks.append(chunk)
                    found.size = Size(map(max, found.size, end))
                storage[MetadataIndex(fqn=name, offset=offsets)] = _HFStorageInfo(path, Size(entry.shape), entry.dtype)
        metadata = Metadata(state_dict_metadata=tensors, storage_data=storage)
        metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: queue.SimpleQueue[tuple[str, list[ReadItem]]] = queue.SimpleQueue()
        by_file: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            by_file.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for each in by_file.items():
            files.put(each)
        errors: list[BaseException] = []

        def read_files() -> None:
            while not errors:
                try:
                    path, items = files.get_nowait()
                except queue.Empty:
                    return
                try:
                    for item in items:
                        self._read(path, item, planner)
                except BaseException as error:
                    errors.append(error)

        threads = [threading.Thread(target=read_files) for _ in range(1, min(self.thread_count, len(by_file)))]
        for thread in threads:
            thread.start()
        read_files()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _read(self, path: str | os.PathLike[str], item: ReadItem, planner: LoadPlanner) -> None:
        name = item.storage_index.fqn
        entry = self._places.get((str(path), name))
        if entry is None:  # another process has read the metadata
            entry = self._places[str(path), name] = read_safetensors_header(path)[0][name]
        part = tuple(slice(offset, offset + n) for offset, n in zip(item.storage_offsets, item.lengths, strict=True))
        stored = map_safetensor(path, entry)[part]
        target = planner.resolve_tensor(item).detach()
        if target.size() != Size(stored.shape):
            raise AssertionError(f"req {item.storage_index} mismatch sizes {target.size()} vs {Size(stored.shape)}")
        target.copy_(wrap(stored.copy()))
        planner.commit_tensor(item, target)
