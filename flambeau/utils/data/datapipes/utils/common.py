"""Files and functions of pipelines: streams that close themselves, lists of files, checks of functions."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from io import IOBase
from typing import Any, NoReturn

__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks",
           "validate_input_col", "validate_pathname_binary_tuple"]

# ----- functions ---------------------------------------------------------------------------


def validate_input_col(fn: Callable[..., Any], input_col: int | tuple[Any, ...] | list[Any] | None) -> None:
    """Check that a function takes as many positional arguments as columns are selected.

    Raises:
        ValueError: it does not, or it has keyword-only parameters without defaults (PyTorch's texts).

    >>> from flambeau.utils.data.datapipes.utils.common import validate_input_col
    >>> validate_input_col(lambda a, b: a + b, [0, 1])
    """
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except ValueError:  # a builtin
        return
    wanted = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    required_keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    target: Any = fn.func if isinstance(fn, functools.partial) else fn
    name = getattr(target, "__name__", repr(target))
    if required_keywords:
        raise ValueError(f"The function {name} takes {len(required_keywords)} non-default keyword-only parameters, "
                         "which is not allowed.")
    if len(parameters) < wanted:
        if not any_number:
            raise ValueError(f"The function {name} takes {len(parameters)} parameters, but {wanted} are required.")
    elif any(p.default is p.empty for p in positional[wanted:]) or (len(positional) < wanted and not any_number):
        raise ValueError(
            f"The function {name} takes {len(positional)} positional parameters, but {wanted} are required.")


def _is_local(fn: Any) -> bool:
    if hasattr(fn, "__code__"):
        return bool(fn.__code__.co_flags & inspect.CO_NESTED)
    return "<locals>" in getattr(fn, "__qualname__", type(fn).__qualname__)


def _check_unpickable_fn(fn: Callable[..., Any]) -> None:
    """Warn of functions that `pickle` cannot handle: local functions and lambdas."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    target: Any = fn.func if isinstance(fn, functools.partial) else fn
    if find_spec("dill") is not None:
        return
    kind = "Local" if _is_local(target) else "Lambda" if getattr(target, "__name__", "") == "<lambda>" else None
    if kind is not None:
        warnings.warn(f"{kind} function is not supported by pickle, please use regular python function or "
                      "functools.partial instead.", stacklevel=2)


# ----- files -------------------------------------------------------------------------------


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a file's name matches one of the patterns; no pattern matches everything.

    >>> from flambeau.utils.data.datapipes.utils.common import match_masks
    >>> match_masks("a.txt", ["*.csv", "*.txt"])
    True
    """
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False,
                                 non_deterministic: bool = False) -> Iterator[str]:
    """The paths of the files in a directory, or of one file, whose names match; sorted unless `non_deterministic`.

    >>> import os
    >>> from flambeau.utils.data.datapipes.utils.common import get_file_pathnames_from_root
    >>> [os.path.basename(path) for path in get_file_pathnames_from_root(os.path.dirname(os.__file__), "abc.*")]
    ['abc.py']
    """
    def fail(error: OSError) -> NoReturn:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for path, folders, files in os.walk(root, onerror=fail):
        if not non_deterministic:
            files.sort()
            folders.sort()  # `walk` visits them in this order
        for file in files:
            if match_masks(file, masks):
                yield os.path.join(os.path.abspath(path) if abspath else path, file)
        if not recursive:
            break


def get_file_binaries_from_pathnames(pathnames: Any, mode: str, encoding: str | None = None) -> Iterator[Any]:
    """Pairs of path and open file."""
    if not isinstance(pathnames, Iterable):
        pathnames = [pathnames]
    if mode in ("b", "t"):
        mode = "r" + mode
    for pathname in pathnames:
        if not isinstance(pathname, str):
            raise TypeError(f"Expected string type for pathname, but got {type(pathname)}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding))  # noqa: SIM115  the wrapper closes it


def validate_pathname_binary_tuple(data: Any) -> None:
    """Check that a value is a pair of path and open file.

    Raises:
        TypeError: it is not (PyTorch's texts).
    """
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(
            f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError("binary stream within the tuple should have IOBase orits subclasses as type, but it is type "
                        f"{type(data[1])}")


class StreamWrapper:
    """An open file that is closed when nothing refers to it, or with the last of its children.

    Args:
        file_obj: the file.
        parent_stream: the archive that contains it.
        name: a name for messages.

    >>> import io
    >>> from flambeau.utils.data.datapipes.utils.common import StreamWrapper
    >>> stream = StreamWrapper(io.StringIO("text"))
    >>> stream.read()
    'text'
    """

    session_streams: dict[Any, int] = {}  # noqa: RUF012  shared on purpose: the open ones, for debugging
    debug_unclosed_streams = False

    def __init__(self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None) -> None:
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter = 0
        self.close_on_last_child = self.closed = False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close all streams in nested dicts, lists and tuples."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (dict, list, tuple)):
            for each in v.values() if isinstance(v, dict) else v:
                cls.close_streams(each, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the file, and its parent if that waits for its last child."""
        if self.closed:
            return
        if StreamWrapper.debug_unclosed_streams:
            del StreamWrapper.session_streams[self]
        parent = self.__dict__.get("parent_stream")
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Close the file when its children are closed; now if there are none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self) -> list[str]:
        return list({*self.__dict__, *StreamWrapper.__dict__, *dir(self.file_obj)})

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name},"
        return f"StreamWrapper<{name}{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.file_obj = obj
