"""Kernel IR as text: one line a statement, and a name for each expression that occurs more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import BFLOAT16
from ..scalar.scalar_ir import Node, topological_order


def text_of(kernel: Any) -> str:
    """The kernel as text, the same in every process."""
    parameters = " ".join(f"{each}.{dtype_name(each.dtype)}" for each in kernel.parameters)
    writer = _Writer(kernel.body)
    writer.write(kernel.body, "")
    return "\n".join([f"kernel {kernel.family} threads={kernel.threads} shared={kernel.shared}",
                      f"parameters {parameters}", *writer.lines])


def dtype_name(dtype: np.dtype) -> str:
    """The dtype's name; NumPy has none for bfloat16."""
    return "bfloat16" if dtype == BFLOAT16 else dtype.name


class _Writer:
    def __init__(self, body: Sequence[Any]) -> None:
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        uses: Counter[Node] = Counter()
        seen: set[Node] = set()
        stack = list(body)
        while stack:
            statement = stack.pop()
            stack.extend(getattr(statement, "body", ()))
            for root in statement.expressions():
                uses[root] += 1
                for node in topological_order([root]):
                    if node not in seen:
                        seen.add(node)
                        uses.update(node.args)
        self.shared = {node for node, count in uses.items() if count > 1 and node.args}

    def text(self, root: Node, indent: str) -> str:
        """The expression; lines that define shared parts of it are written before."""
        texts: dict[Node, str] = {}
        for node in topological_order([root]):
            if node in self.names:
                texts[node] = self.names[node]
            elif not node.args:
                texts[node] = repr(node)
            else:
                op = f"{node.op}[{dtype_name(node.dtype)}]" if node.op in ("cast", "bitcast") else node.op
                arguments = ", ".join(texts[arg] for arg in node.args)
                texts[node] = f"{op}({arguments})"
                if node in self.shared:
                    name = self.names[node] = f"%{len(self.names)}"
                    self.lines.append(f"{indent}{name} = {op}.{dtype_name(node.dtype)} {arguments}")
                    texts[node] = name
        return texts[root]

    def write(self, body: Sequence[Any], indent: str) -> None:
        """Write statements."""
        for statement in body:
            line = statement.line(lambda node: self.text(node, indent))
            self.lines.append(f"{indent}{line}")
            self.write(getattr(statement, "body", ()), indent + "  ")


__all__ = ["dtype_name", "text_of"]
