"""Pipelines of files: lists of paths, open files, and their contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..lengths import raise_no_length
from ..utils.common import get_file_binaries_from_pathnames, get_file_pathnames_from_root
from .utils import IterableWrapperIterDataPipe

__all__ = ["FileListerIterDataPipe", "FileOpenerIterDataPipe", "StreamReaderIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe[str]):
    """The paths of the files in directories (`list_files`).

    Args:
        root: a directory or file, several, or a pipeline of them.
        masks: patterns of file names; an empty one matches all.
        recursive: whether subdirectories are searched.
        abspath: whether paths are absolute.
        non_deterministic: whether the order may be that of the file system.
        length: the length, if it is known.

    >>> import os
    >>> from flambeau.utils.data.datapipes.iter import FileLister
    >>> [os.path.basename(path) for path in FileLister(os.path.dirname(os.__file__), "abc.*")]
    ['abc.py']
    """

    def __init__(self, root: str | Sequence[str] | IterDataPipe[str] = ".", masks: str | list[str] = "", *,
                 recursive: bool = False, abspath: bool = False, non_deterministic: bool = False,
                 length: int = -1) -> None:
        super().__init__()
        if isinstance(root, str):
            root = [root]
        self.datapipe = root if isinstance(root, IterDataPipe) else IterableWrapperIterDataPipe(root)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(path, self.masks, self.recursive, self.abspath,
                                                    self.non_deterministic)

    def __len__(self) -> int:
        if self.length == -1:
            raise_no_length(self)
        return self.length


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe[Any]):
    """Pairs of path and open file (`open_files`).

    Args:
        datapipe: the paths.
        mode: "r", "t", "rt", "b" or "rb".
        encoding: the encoding of text.
        length: the length, if it is known.

    Raises:
        ValueError: the mode is another, or binary with an encoding.

    >>> from flambeau.utils.data.datapipes.iter import FileOpener
    >>> [(path, file.read()) for path, file in FileOpener(["/dev/null"])]
    [('/dev/null', '')]
    """

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None,
                 length: int = -1) -> None:
        super().__init__()
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[Any]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise_no_length(self)
        return self.length


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[Any]):
    """Pairs of path and contents of open files (`read_from_stream`).

    Args:
        datapipe: pairs of path and file.
        chunk: bytes that are read at once; None: the whole file.

    >>> import io
    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([("a", io.BytesIO(b"123"))]).read_from_stream(chunk=2))
    [('a', b'12'), ('a', b'3')]
    """

    def __init__(self, datapipe: IterDataPipe[Any], chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            while data := stream.read(self.chunk):
                yield path, data
            stream.close()
