"""`torch.testing._internal.logging_tensor`: tensors, and a mode, that log the operators that run on them."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as torch

from ...utils._dtype_abbrs import dtype_abbrs
from ...utils._python_dispatch import TorchDispatchMode
from ...utils._pytree import tree_map
from ...utils._traceback import CapturedTraceback
from ...utils.weak import WeakTensorKeyDictionary

_NAME = "LoggingTensor"


def _log(text: str, args: Any, kwargs: Any, results: Any) -> None:
    """Log a call; its arguments and results are formatted by the handler."""
    logging.getLogger(_NAME).info(text, args, kwargs, results)


def _name_of(func: Any) -> str:
    return f"{func.__module__}.{func.__name__}"


class LoggingTensor(torch.Tensor):
    """A tensor around another one, `elem`, that logs each operator and runs it on `elem`.

    Args:
        elem: the other tensor.
        requires_grad: whether this one requires a gradient.

    >>> import flambeau as torch
    >>> from flambeau.testing._internal.logging_tensor import LoggingTensor, capture_logs
    >>> with capture_logs() as logs:
    ...     _ = LoggingTensor(torch.ones(2)) + 1
    >>> logs
    ['$1: f32[2] = torch._ops.aten.add.Tensor($0, 1)']
    """

    elem: torch.Tensor
    __slots__ = ("elem",)
    context: Callable[[], Any] = contextlib.nullcontext

    @staticmethod
    def __new__(cls, elem: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """A wrapper of the metadata of `elem`."""
        base: Any = torch.Tensor
        made: Any = base._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            layout=elem.layout, device=elem.device, requires_grad=kwargs.get("requires_grad", False))
        made.elem = elem.detach() if made.requires_grad else elem
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        printed: Any = super().__repr__
        text: str = printed(tensor_contents=f"{self.elem}")
        return text

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def unwrap(x: Any) -> Any:
            return x.elem if isinstance(x, cls) else x

        def wrap(x: Any) -> Any:
            return cls(x) if isinstance(x, torch.Tensor) else x

        kwargs = kwargs or {}
        with cls.context():
            results = tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs)))
        _log(_name_of(func), args, kwargs, results)
        return results


class LoggingTensorMode(TorchDispatchMode):
    """A mode that logs each operator."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        results = func(*args, **kwargs)
        _log(_name_of(func), args, kwargs, results)
        return results


class LoggingTensorReentrant(LoggingTensor):
    """A `LoggingTensor` in whose operators handlers are called again."""

    context = torch.overrides.enable_reentrant_dispatch


class LoggingTensorHandler(logging.Handler):
    """Appends a line of text for each operator to a list.

    Args:
        log_list: the list.
        use_shortid_for_all_tensors: number all tensors, not those alone that log.
        with_type: add dtype and sizes to results.
        tracebacks_list: gets the traceback of each line.
    """

    def __init__(self, log_list: list[str], use_shortid_for_all_tensors: bool, with_type: bool,
                 tracebacks_list: list[Any] | None) -> None:
        super().__init__()
        self.log_list, self.with_type, self.tracebacks_list = log_list, with_type, tracebacks_list
        self.use_shortid_for_all_tensors = use_shortid_for_all_tensors
        self.memo: Any = WeakTensorKeyDictionary()
        self.next_id = 0

    def _shortid(self, t: torch.Tensor) -> int:
        if t not in self.memo:
            self.memo[t] = self.next_id
            self.next_id += 1
        number: int = self.memo[t]
        return number

    def _fmt(self, a: object, with_type: bool = False) -> str:
        if not isinstance(a, torch.Tensor if self.use_shortid_for_all_tensors else LoggingTensor):
            return repr(a)
        kind = f": {dtype_abbrs[a.dtype]}[{', '.join(map(str, a.shape))}]" if with_type and self.with_type else ""
        return f"${self._shortid(a)}{kind}"

    def emit(self, record: logging.LogRecord) -> None:
        """Append the line of an operator."""
        called: Any = record.args
        args = [str(tree_map(self._fmt, a)) for a in called[0]]
        args += [f"{name}={tree_map(self._fmt, a)}" for name, a in called[1].items()]
        results = tree_map(functools.partial(self._fmt, with_type=True), called[2])
        self.log_list.append(f"{results} = {record.msg}({', '.join(args)})")
        if self.tracebacks_list is not None:
            self.tracebacks_list.append(record.traceback)  # type: ignore[attr-defined]


def log_input(name: str, var: object) -> None:
    """Log a value as an input, with a name."""
    _log("input", (name,), {}, var)


class GatherTraceback(logging.Filter):
    """Adds the traceback of the call to each record."""

    def __init__(self, python: bool = True, script: bool = True, cpp: bool = False) -> None:
        super().__init__()
        self.python, self.script, self.cpp = python, script, cpp

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the traceback; the record is logged."""
        record.traceback = CapturedTraceback.extract()
        return True


@contextlib.contextmanager
def capture_logs(is_mode: bool = False, python_tb: bool = False, script_tb: bool = False,
                 cpp_tb: bool = False) -> Iterator[Any]:
    """A block that gives the list of its log lines, with a list of tracebacks where they are asked for.

    Args:
        is_mode: number all tensors, as a mode sees plain ones.
        python_tb, script_tb, cpp_tb: gather tracebacks.
    """
    lines: list[str] = []
    tracebacks: list[Any] | None = [] if python_tb or script_tb or cpp_tb else None
    logger = logging.getLogger(_NAME)
    handler = LoggingTensorHandler(lines, is_mode, True, tracebacks)
    if tracebacks is not None:
        handler.addFilter(GatherTraceback(python_tb, script_tb, cpp_tb))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield lines if tracebacks is None else (lines, tracebacks)
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def capture_logs_with_logging_tensor_mode(python_tb: bool = False, script_tb: bool = False,
                                          cpp_tb: bool = False) -> Iterator[Any]:
    """`capture_logs` in a `LoggingTensorMode`.

    >>> import flambeau as torch
    >>> from flambeau.testing._internal.logging_tensor import capture_logs_with_logging_tensor_mode
    >>> x = torch.ones(2)
    >>> with capture_logs_with_logging_tensor_mode() as logs:
    ...     _ = x.sin()
    >>> logs
    ['$1: f32[2] = torch._ops.aten.sin.default($0)']
    """
    with LoggingTensorMode(), capture_logs(True, python_tb, script_tb, cpp_tb) as logs:
        yield logs


__all__ = ["GatherTraceback", "LoggingTensor", "LoggingTensorHandler", "LoggingTensorMode", "LoggingTensorReentrant",
           "capture_logs", "capture_logs_with_logging_tensor_mode", "log_input"]
