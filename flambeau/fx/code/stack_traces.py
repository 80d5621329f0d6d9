"""Recorded Python stacks: the line of the program that a node comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_FRAME = re.compile(r"^File \"(.+)\", line (\d+), in (.+)$")


@dataclass(frozen=True)
class _ParsedStackTrace:
    """The innermost frame of a stack."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        """The frame on one line."""
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def _parse_stack_trace(stack_trace: str | None,
                       filter_fn: Callable[[str, str, str], bool] | None = None) -> _ParsedStackTrace | None:
    """The innermost frame of a stack as text that a function of file, name and code accepts."""
    lines = (stack_trace or "").strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        match = _FRAME.match(lines[i].strip())
        if match:
            file, number, name = match.groups()
            code = lines[i + 1].strip()
            if filter_fn is None or filter_fn(file, name, code):
                return _ParsedStackTrace(file, number, name, code)
    return None


def summary_comment(node: Any, additional_meta: list[str] | None) -> str:
    """The comment above a node in verbose code: annotations and the line of the program."""
    parts = [f"{key}: {node.meta[key]}" for key in additional_meta or () if key in node.meta]
    text = f"# {', '.join(parts)} #" if parts else "#"
    custom = node.meta.get("custom") or {}
    if custom:
        short = {key: f"{str(value)[:40]}..." if len(str(value)) > 40 else value for key, value in custom.items()}
        text += f" Annotation: {short}"
    group, recompute = node.meta.get("ac_graph_id"), node.meta.get("recompute")
    if group is not None:
        text += f" ac_graph_id: {group}" + (f" - {recompute.name}" if recompute is not None else "")
    elif recompute is not None:
        text += f" recompute: {recompute.name}"
    frame = _parse_stack_trace(node.stack_trace)
    return f"{text} {frame.get_summary_str() if frame else 'No stacktrace found for following nodes'}"


__all__ = ["summary_comment"]
