"""`FileSystemWriter` and `FileSystemReader`: checkpoints in folders, in PyTorch's layout.

Each process writes files `__RANK_NUMBER.distcp`, one archive of `torch.save` after another, and the coordinator writes
`.metadata`, which says where each tensor is. A file is never overwritten: a second checkpoint in the folder gets new
numbers, its `.metadata` takes the place of the first one's in one step, after all files have reached the disk, and
only then are files removed that it does not name. So the folder has a whole checkpoint at every moment.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pickle
import queue
import re
import threading
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from ..._tensor import Tensor
from ...runtime.futures import Future
from ...serialization import load, save
from ...serialization.pickling import pickler, unpickler
from .default_planner import narrow_tensor_by_index
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .staging import BlockingAsyncStager
from .storage import StorageReader, StorageWriter, WriteResult
from .utils import _create_file_view

__all__ = ["FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_metadata_fn = ".metadata"
CURRENT_DCP_VERSION: Final[str] = "1.0.0"
DEFAULT_SUFFIX = ".distcp"
_PathLike = str | os.PathLike[str]


@dataclass
class _StorageInfo:
    """Where one item is: the file, the first byte, the number of bytes."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value is not None}


@dataclass
class _StoragePrefix:
    """The beginning of the names of one process's files."""

    prefix: str


class SerializationFormat(Enum):
    """How tensors are written; as safetensors only by `HuggingFaceStorageWriter`."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemBase(ABC):
    """What readers and writers need of a file system."""

    @abstractmethod
    def create_stream(self, path: _PathLike, mode: str) -> Any:
        """Open a file, as a context."""

    @abstractmethod
    def concat_path(self, path: _PathLike, suffix: str) -> _PathLike:
        """Return the path of a file in a folder."""

    @abstractmethod
    def rename(self, path: _PathLike, new_path: _PathLike) -> None:
        """Rename a file, in place of one that has the new name."""

    @abstractmethod
    def init_path(self, path: _PathLike) -> _PathLike:
        """Return a path as this file system writes it."""

    @abstractmethod
    def mkdir(self, path: _PathLike) -> None:
        """Make a folder and those that it is in."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: _PathLike) -> bool:
        """Whether an id is a path of this file system."""

    @abstractmethod
    def exists(self, path: _PathLike) -> bool:
        """Whether there is a file or a folder."""

    @abstractmethod
    def rm_file(self, path: _PathLike) -> None:
        """Remove a file."""


class FileSystem(FileSystemBase):
    """The file system of this machine.

    >>> import flambeau as torch
    >>> torch.distributed.checkpoint.filesystem.FileSystem.validate_checkpoint_id("https://x")
    False
    """

    @contextlib.contextmanager
    def create_stream(self, path: _PathLike, mode: str) -> Iterator[Any]:
        with Path(path).open(mode) as stream:
            yield stream

    def concat_path(self, path: _PathLike, suffix: str) -> _PathLike:
        return Path(path) / suffix

    def rename(self, path: _PathLike, new_path: _PathLike) -> None:
        Path(path).replace(new_path)

    def init_path(self, path: _PathLike) -> _PathLike:
        return Path(path)

    def mkdir(self, path: _PathLike) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _PathLike) -> bool:
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        return any(parent.exists() and os.access(parent, os.W_OK) for parent in Path(checkpoint_id).parents)

    def exists(self, path: _PathLike) -> bool:
        return Path(path).exists()

    def rm_file(self, path: _PathLike) -> None:
        Path(path).unlink()

    def ls(self, path: _PathLike) -> list[str]:
        """The paths in a folder."""
        return [str(each) for each in Path(path).iterdir()]

    def sync(self, path: _PathLike) -> None:
        """Let the names in a folder reach the disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sync(stream: Any) -> None:
    stream.flush()
    try:
        os.fsync(stream.fileno())
    except (AttributeError, io.UnsupportedOperation):
        os.sync()


def _metadata_path(fs: FileSystem, folder: _PathLike, rank: int | None) -> _PathLike:
    return fs.concat_path(folder, _metadata_fn if rank is None else f"__{rank}{_metadata_fn}")


def _item_size(item: WriteItem) -> int:
    assert item.tensor_data is not None
    size = item.tensor_storage_size()
    assert size is not None
    return size


def _split_by_size_and_type(bins: int, items: list[WriteItem]) -> list[list[WriteItem]]:
    """The items in so many lists, the bytes of whose tensors differ little."""
    if bins == 1:
        return [items]
    lists: list[list[WriteItem]] = [[] for _ in range(bins)]
    sizes = [0] * bins
    for i, item in enumerate(item for item in items if item.type is WriteItemType.BYTE_IO):
        lists[i % bins].append(item)
    tensors = [item for item in items if item.type is not WriteItemType.BYTE_IO]
    for item in sorted(tensors, key=_item_size, reverse=True):
        smallest = sizes.index(min(sizes))
        lists[smallest].append(item)
        sizes[smallest] += _item_size(item)
    return lists


def _write_item(stream: Any, data: Tensor | io.BytesIO, item: WriteItem, name: str) -> WriteResult:
    start = stream.tell()
    if isinstance(data, io.BytesIO):
        stream.write(data.getbuffer())
    else:
        tensor = data.detach()
        if tensor.untyped_storage().nbytes() != tensor.nbytes:
            tensor = tensor.clone()  # a part of a memory, of which the rest is not stored
        save(tensor, stream)
    length = stream.tell() - start
    return WriteResult(item.index, length, _StorageInfo(name, start, length))


class _InFolder:
    """A storage whose checkpoints are folders."""

    path: _PathLike

    @property
    def checkpoint_id(self) -> _PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)


class _FileSystemWriter(_InFolder, StorageWriter):
    """Writes checkpoints to folders; see `FileSystemWriter`."""

    def __init__(self, path: _PathLike, single_file_per_rank: bool = True, sync_files: bool = True,
                 thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, overwrite: bool = True,
                 _extensions: Any = None,
                 serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE, *args: Any,
                 **kwargs: Any) -> None:
        super().__init__()
        if _extensions or serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError("flambeau writes checkpoints as archives of torch.save, without extensions: "
                                      "leave `_extensions` and `serialization_format` away; safetensors files are "
                                      "written by HuggingFaceStorageWriter")
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank, self.sync_files, self.thread_count = single_file_per_rank, sync_files, thread_count
        self.per_thread_copy_ahead, self.overwrite = per_thread_copy_ahead, overwrite
        self.serialization_format: SerializationFormat = serialization_format
        self.save_id = str(uuid.uuid4())
        self.rank: int | None = None
        self.use_collectives = True

    def reset(self, checkpoint_id: _PathLike | None = None) -> None:
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.rank, self.use_collectives = kwargs.get("rank"), kwargs.get("use_collectives", True)

    def _metadata_file(self) -> _PathLike:
        """The file of an earlier checkpoint's metadata."""
        return _metadata_path(self.fs, self.path, None if self.use_collectives else 0)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.fs.mkdir(self.path)
        if self.fs.exists(self._metadata_file()):
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
            warnings.warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since {self.overwrite=}. Past version "
                "2.5 of PyTorch, `overwrite` will default to False. Set this variable to True to maintain this "
                "functionality or False to raise when an existing checkpoint is found.", stacklevel=2)
        if self.rank is not None and not self.use_collectives:
            plan = dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{self.rank}_"))
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [plan if plan.storage_data is not None else
                dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_")) for rank, plan in enumerate(plans)]

    def _unused_names(self, prefix: str) -> Iterator[str]:
        """Names of files that do not exist, of an earlier checkpoint or of one that was not finished."""
        number = -1
        taken = {os.path.basename(path) for path in self.fs.ls(self.path)}
        while True:
            number += 1
            if f"{prefix}{number}{DEFAULT_SUFFIX}" not in taken:
                yield f"{prefix}{number}{DEFAULT_SUFFIX}"

    def _groups(self, plan: SavePlan, planner: SavePlanner) -> list[tuple[str, list[WriteItem]]]:
        """The files that this process writes: their names and items."""
        groups = (_split_by_size_and_type(self.thread_count, plan.items) if self.single_file_per_rank
                  else [[item] for item in plan.items])
        return list(zip(self._unused_names(plan.storage_data.prefix), groups, strict=False))

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        groups = self._groups(plan, planner)
        waiting: queue.SimpleQueue[tuple[str, list[WriteItem]]] = queue.SimpleQueue()
        for each in groups:
            waiting.put(each)
        results: list[WriteResult] = []
        errors: list[BaseException] = []

        def write_files() -> None:
            while not errors:
                try:
                    name, items = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    results.extend(self._write_file(name, items, planner))
                except BaseException as error:
                    errors.append(error)

        threads = [threading.Thread(target=write_files, name="checkpoint writer")
                   for _ in range(1, min(self.thread_count, len(groups)))]
        for thread in threads:
            thread.start()
        write_files()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        if self.sync_files:
            self.fs.sync(self.path)
        future: Future[list[WriteResult]] = Future()
        future.set_result(results)
        return future

    def _write_file(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        in_order = sorted(items, key=lambda item: item.type is not WriteItemType.BYTE_IO)
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            results = [_write_item(stream, planner.resolve_data(item), item, name) for item in in_order]
            if self.sync_files:
                _sync(stream)
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        metadata.version = CURRENT_DCP_VERSION
        metadata.storage_data = {result.index: result.storage_data for each in results for result in each}
        metadata.storage_meta = self.storage_meta()
        rank = None if self.use_collectives else self.rank
        path = _metadata_path(self.fs, self.path, rank)
        temporary = self.fs.concat_path(self.path, os.path.basename(path) + ".tmp")
        with self.fs.create_stream(temporary, "wb") as stream:
            pickler(pickle, stream, 4, lambda _: None).dump(metadata)
            if self.sync_files:
                _sync(stream)
        self.fs.rename(temporary, path)
        if self.sync_files:
            self.fs.sync(self.path)
        self._remove_unnamed(metadata.storage_data, rank)

    def _remove_unnamed(self, storage_data: dict[MetadataIndex, _StorageInfo], rank: int | None) -> None:
        """Remove data files of the checkpoint before this one, and of those that were not finished."""
        named = {each.relative_path for each in storage_data.values()}
        pattern = re.compile(rf"__{r'[0-9]+' if rank is None else rank}_[0-9]+{re.escape(DEFAULT_SUFFIX)}")
        for each in self.fs.ls(self.path):
            name = os.path.basename(each)
            if pattern.fullmatch(name) and name not in named:
                with contextlib.suppress(FileNotFoundError):
                    self.fs.rm_file(each)

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)


class FileSystemWriter(_FileSystemWriter, BlockingAsyncStager):
    """Writes checkpoints to folders.

    Args:
        path: the folder.
        single_file_per_rank: whether a process writes one file, or one for each tensor.
        sync_files: whether to wait until files have reached the disk; without it, a machine that stops may lose both
            this checkpoint and the one before.
        thread_count: how many threads write; each writes a file.
        per_thread_copy_ahead: without effect.
        cache_staged_state_dict: whether `async_save` copies to the same memory each time.
        overwrite: whether a checkpoint may take the place of another.
        serialization_format: `SerializationFormat.TORCH_SAVE`.

    Raises:
        NotImplementedError: extensions, or safetensors.
    """

    def __init__(self, path: _PathLike, single_file_per_rank: bool = True, sync_files: bool = True,
                 thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
                 overwrite: bool = True, _extensions: Any = None,
                 serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE) -> None:
        _FileSystemWriter.__init__(self, path, single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead,
                                   overwrite, _extensions, serialization_format)
        BlockingAsyncStager.__init__(self, cache_staged_state_dict)


class FileSystemReader(_InFolder, StorageReader):
    """Reads checkpoints from folders, PyTorch's, too.

    Args:
        path: the folder.

    Raises:
        NotImplementedError: extensions.
    """

    def __init__(self, path: _PathLike, _extension_registry: Any = None) -> None:
        super().__init__()
        if _extension_registry is not None:
            raise NotImplementedError("flambeau reads checkpoints without extensions")
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())
        self.rank: int | None = None
        self.use_collectives = True

    def reset(self, checkpoint_id: _PathLike | None = None) -> None:
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with self.fs.create_stream(_metadata_path(self.fs, self.path, kwargs.get("rank")), "rb") as stream:
            metadata: Metadata = unpickler(pickle, stream, lambda _: None).load()
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        assert metadata.storage_data is not None, "the metadata do not say where tensors are"
        self.storage_data = metadata.storage_data
        self.rank, self.use_collectives = kwargs.get("rank"), kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: dict[str, list[tuple[int, ReadItem]]] = {}
        for item in plan.items:
            info = self.storage_data[item.storage_index]
            if info.transform_descriptors:
                raise NotImplementedError(f"{item.storage_index.fqn} was written through extensions "
                                          f"{info.transform_descriptors}, which flambeau lacks")
            files.setdefault(info.relative_path, []).append((info.offset, item))
        for name, items in files.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                for _, item in sorted(items, key=lambda each: each[0]):
                    self._read_item(stream, item, planner)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _read_item(self, stream: Any, item: ReadItem, planner: LoadPlanner) -> None:
        info = self.storage_data[item.storage_index]
        view = _create_file_view(stream, info.offset, info.length)
        if item.type is LoadItemType.BYTE_IO:
            planner.load_bytes(item, io.BytesIO(view.read()))
            return
        stored = load(view, map_location="cpu", weights_only=True)
        stored = narrow_tensor_by_index(stored, item.storage_offsets, item.lengths)
        target = planner.resolve_tensor(item).detach()
        if target.size() != stored.size():
            raise AssertionError(f"req {item.storage_index} mismatch sizes {target.size()} vs {stored.size()}")
        target.copy_(stored)
        planner.commit_tensor(item, target)
