"""Operator logs of forward and recomputation, shown by `checkpoint(debug=True)` if the two differ."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..._tensor import Tensor
from ..._tensor.dispatch.interception import Interceptor
from ...ops.aten import overload_of
from ...ops.declare import Op
from .recomputation import CheckpointError

_PACKAGE_FOLDER = str(Path(__file__).resolve().parent.parent)
_DTYPE_ABBREVIATIONS = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64",
    "complex128": "c128", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "bool": "b8",
    "uint8": "u8"}

_MESSAGE = """ \
An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.
Scroll all the way down for guidance on how to navigate these logs.

+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|        1. Stack traces of the operators that ran in the original forward     |
+------------------------------------------------------------------------------+

{first_traces}
+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|        2. Stack traces of the operators that ran during recomputation        |
+------------------------------------------------------------------------------+

{again_traces}
+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|       3. Log of operators in the original forward and recomputation          |
+------------------------------------------------------------------------------+
(Scroll up to correlate stack traces with each operation listed below. This
 helps identify their source in the code.)

IMPORTANT: Differences in "detach" calls between the original forward and the
           recomputation are expected. They are introduced by the checkpointing
           mechanism and can be ignored.

Operations executed during the original forward:

{first}

Operations executed during recomputation:

{again}

+------------------------------------------------------------------------------+
 ERROR: Detected non-determinism while running activation checkpointing

 You are seeing this error because you passed `debug=True` to checkpoint and
 tensors to be saved during the original forward and differ between those saved
 during recomputation. This can happen if different operators were ran in the
 original forward and in the recomputation.

 To identify where the mismatch may be coming from, you can do the following:

 1) Compare the operators ran during original forward and recomputation to
    see where they differ. These operators are printed above in the order they
    were executed.

 2) Review the stack trace for each operator to locate its invocation source.
    Each operator's stack trace is printed in their execution order.

 Note that the logs can be quite long. Here's how they are structured:
 (Tip: you can Ctrl-f for these headers)

 1. Stack traces of the operators that ran in the original forward
 2. Stack traces of the operators that ran during recomputation
 3. Log of operators in the original forward and recomputation
 4. Error message                                             <--- You are here
--------------------------------------------------------------------------------
"""


class OperatorLog(Interceptor):
    """A context manager that logs each operator in it, with its stack trace."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.lines: list[str] = []
        self.stacks: list[str] = []
        self._indices: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next_index = 0

    def __enter__(self) -> OperatorLog:
        self._reset()  # one log per run
        super().__enter__()
        return self

    def _format(self, value: Any) -> str:
        if not isinstance(value, Tensor):
            return repr(value)
        entry = self._indices.get(id(value))
        if entry is None or entry[0]() is not value:
            entry = self._indices[id(value)] = weakref.ref(value), self._next_index
            self._next_index += 1
        return f"${entry[1]}"

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        """Log one line, `$2: f32[3] = torch._ops.aten.mul.Tensor($0, $1)`, and the stack outside flambeau."""
        arguments = [self._format(x) for x in inputs] + [f"{name}={self._format(x)}" for name, x in params.items()]
        outputs = ", ".join(
            f"{self._format(x)}: {_DTYPE_ABBREVIATIONS.get(x.dtype.name, x.dtype.name)}{list(x._array.shape)}"
            for x in outs)
        name = overload_of(op, inputs, in_place)
        self.lines.append(f"{outputs} = torch._ops.{name}({', '.join(arguments)})")
        frames = [f for f in traceback.extract_stack() if not f.filename.startswith(_PACKAGE_FOLDER)]
        self.stacks.append("".join(f"{f.filename}:{f.lineno}:{f.name}\n" for f in reversed(frames)))

    def traces(self, label: str) -> str:
        """All lines, each with its stack trace."""
        count = len(self.lines)
        return "".join(f"{line}   ({i} of {count} in {label})\n\n{stack}\n\n"
                       for i, (line, stack) in enumerate(zip(self.lines, self.stacks, strict=True), 1))


def comparing_logs() -> tuple[Callable[[], tuple[OperatorLog, OperatorLog]], Callable[[CheckpointError], NoReturn]]:
    """A `context_fn` that logs both runs, and a function that raises an error with both logs."""
    forward_log, recompute_log = OperatorLog(), OperatorLog()

    def explain(error: CheckpointError) -> NoReturn:
        raise CheckpointError(_MESSAGE.format(
            first_traces=forward_log.traces("original"), again_traces=recompute_log.traces("recompute"),
            first="\n".join(forward_log.lines), again="\n".join(recompute_log.lines))) from error

    return lambda: (forward_log, recompute_log), explain


__all__ = ["OperatorLog", "comparing_logs"]
