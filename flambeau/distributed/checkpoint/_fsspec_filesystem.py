"""`FsspecWriter` and `FsspecReader`: checkpoints in file systems of the package fsspec, such as object stores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .filesystem import FileSystemBase, FileSystemReader, FileSystemWriter, SerializationFormat

__all__ = ["FsspecReader", "FsspecWriter"]

_PathLike = str | os.PathLike[str]


def _url_to_fs(path: _PathLike, **kwargs: Any) -> Any:
    from fsspec.core import url_to_fs  # type: ignore[import-untyped]

    return url_to_fs(path, **kwargs)


class FileSystem(FileSystemBase):
    """A file system that an URL names."""

    def __init__(self) -> None:
        self.fs: Any = None

    @contextlib.contextmanager
    def create_stream(self, path: _PathLike, mode: str) -> Iterator[Any]:
        assert self.fs is not None, "fs should not be None"
        path = os.fspath(path)
        with self.fs.open(path, mode) as stream:
            try:
                yield stream
            except BaseException:
                if any(letter in mode for letter in "w+a"):  # an unfinished file is of no use
                    with contextlib.suppress(Exception):
                        self.rm_file(path)
                raise

    def concat_path(self, path: _PathLike, suffix: str) -> _PathLike:
        return os.path.join(path, suffix)

    def init_path(self, path: _PathLike, **kwargs: Any) -> _PathLike:
        self.fs, _ = _url_to_fs(path, **kwargs)
        return path

    def rename(self, path: _PathLike, new_path: _PathLike) -> None:
        self.fs.rename(path, new_path)

    def mkdir(self, path: _PathLike) -> None:
        self.fs.makedirs(path, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _PathLike) -> bool:
        if isinstance(checkpoint_id, Path):
            return False
        try:
            _url_to_fs(checkpoint_id)
        except ValueError:
            return False
        return True

    def exists(self, path: _PathLike) -> bool:
        return bool(self.fs.exists(path))

    def rm_file(self, path: _PathLike) -> None:
        self.fs.rm(path)

    def ls(self, path: _PathLike) -> list[str]:
        """The paths in a folder."""
        found: list[str] = self.fs.ls(path, detail=False)
        return found

    def sync(self, path: _PathLike) -> None:
        """Nothing: what is written is there."""


class FsspecWriter(FileSystemWriter):
    """Writes checkpoints to a folder of a file system of fsspec.

    Args:
        path: an URL such as `memory://checkpoints/1` or `s3://bucket/1`.
        single_file_per_rank: as of `FileSystemWriter`, like the rest.
        sync_files: whether to wait until files have reached the disk, where there is one.
        thread_count: how many threads write.
        per_thread_copy_ahead: without effect.
        overwrite: whether a checkpoint may take the place of another.
        serialization_format: `SerializationFormat.TORCH_SAVE`.
        kwargs: options of the file system.
    """

    def __init__(self, path: _PathLike, single_file_per_rank: bool = True, sync_files: bool = True,
                 thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, overwrite: bool = True,
                 _extensions: Any = None,
                 serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE, **kwargs: Any) -> None:
        super().__init__(path, single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead,
                         overwrite=overwrite, _extensions=_extensions, serialization_format=serialization_format)
        self.fs = FileSystem()  # type: ignore[assignment]
        self.path = self.fs.init_path(path, **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)


class FsspecReader(FileSystemReader):
    """Reads checkpoints from a folder of a file system of fsspec.

    Args:
        path: an URL.
        kwargs: options of the file system.
    """

    def __init__(self, path: _PathLike, **kwargs: Any) -> None:
        super().__init__(path)
        self.fs = FileSystem()  # type: ignore[assignment]
        self.path = self.fs.init_path(path, **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: _PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)
