"""Kernel IR: what one thread of a GPU kernel does, as statements over scalar IR.

All arithmetic, that of indices included, is scalar IR. A statement that produces a value (a load, a loop, a shuffle)
binds a fresh variable to it, once; so an expression means the same wherever its variables are known. Mutable state is
in `Local`s, which `get` reads and `set` writes.

>>> from flambeau.codegen.gpu.kernel_ir import KernelBuilder
>>> b = KernelBuilder("double", threads=32)
>>> x, y = b.buffer("float32"), b.buffer("float32")
>>> i = b.block * 32 + b.thread
>>> with b.when(i < 1000):
...     b.store(y, i, b.load(x, i) * 2)
>>> print(b.kernel().text)
kernel double threads=32 shared=0
parameters global0.float32 global1.float32
%0 = add.int32 mul(x1, 32), x0
if lt(%0, 1000)
  x4 = load global0[%0]
  store global1[%0] = mul(x4, 2.0)
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..scalar import scalar_ir
from ..scalar.scalar_ir import Node, Operand, cast, variable
from . import kernel_text
from .statements import (
    Atomic,
    Barrier,
    Buffer,
    GetLocal,
    If,
    Load,
    Local,
    Loop,
    Mma,
    SetLocal,
    Shuffle,
    Store,
    While,
)

INT32 = np.dtype(np.int32)
#: threads of a warp
WARP = 32
#: the number of the variables that every kernel has: thread, and block in three dimensions
THREAD, BLOCK_X, BLOCK_Y, BLOCK_Z = range(4)
#: alignment of shared arrays in bytes
ALIGNMENT = 16
ATOMICS = ("add", "min", "max")


class Kernel:
    """A kernel: the statements of one thread.

    Attributes:
        family: the start of its name.
        threads: threads of a block.
        parameters: global buffers and the variables of scalars, in the order of the arguments.
        shared: bytes of shared memory.
        body: the statements.
    """

    def __init__(self, family: str, threads: int, parameters: Sequence[Buffer | Node], shared: int,
                 body: Sequence[Any]) -> None:
        self.family, self.threads, self.shared = family, threads, shared
        self.parameters, self.body = tuple(parameters), list(body)

    @functools.cached_property
    def name(self) -> str:
        """The function's name, which is different for kernels that differ."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()[:16]
        return f"{self.family}_{digest}"

    @functools.cached_property
    def text(self) -> str:
        """The kernel as text; expressions that occur more than once have names."""
        return kernel_text.text_of(self)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def substitute(root: Node, known: dict[Node, Node]) -> Node:
    """The expression with variables replaced; `known`, which grows, maps nodes to their replacements.

    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> x, y = variable(0, "float32"), variable(7, "float32")
    >>> substitute(x * x + 1, {x: y})
    add(mul(x7, x7), 1.0)
    """
    stack = [root]
    while stack:
        node = stack[-1]
        if node in known:
            stack.pop()
            continue
        missing = [arg for arg in node.args if arg not in known]
        if missing:
            stack.extend(missing)
            continue
        known[node] = scalar_ir.make(node.op, tuple([known[arg] for arg in node.args]), node.dtype,
                                     node.const) if node.args else node
        stack.pop()
    return known[root]


def number(value: int, dtype: np.dtype = INT32) -> Node:
    """An integer constant."""
    return scalar_ir.constant(value, dtype)


class KernelBuilder:
    """Builds a kernel statement by statement.

    Args:
        family: the start of the kernel's name.
        threads: threads of a block, a multiple of 32.

    Attributes:
        thread, block, block_y, block_z: the indices of thread and block, int32.
    """

    def __init__(self, family: str, threads: int) -> None:
        if threads % WARP or not 0 < threads <= 1024:
            raise ValueError(f"a block of {threads} threads: it takes a multiple of {WARP}, at most 1024")
        self.family, self.threads = family, threads
        self.thread, self.block, self.block_y, self.block_z = (variable(i, INT32) for i in range(4))
        self._variables, self._locals, self._shared = 4, 0, 0
        self._parameters: list[Buffer | Node] = []
        self._bodies: list[list[Any]] = [[]]

    def _fresh(self, dtype: np.dtype) -> Node:
        self._variables += 1
        return variable(self._variables - 1, dtype)

    def _add(self, statement: Any) -> None:
        self._bodies[-1].append(statement)

    # ----- parameters and memory -----

    def buffer(self, dtype: np.dtype | str) -> Buffer:
        """A global buffer, the next parameter."""
        made = Buffer(np.dtype(dtype), "global", len(self._parameters))
        self._parameters.append(made)
        return made

    def scalar(self, dtype: np.dtype | str) -> Node:
        """A number, the next parameter."""
        made = self._fresh(np.dtype(dtype))
        self._parameters.append(made)
        return made

    def shared(self, dtype: np.dtype | str, size: int) -> Buffer:
        """An array in shared memory, whose elements are undefined."""
        kind = np.dtype(dtype)
        made = Buffer(kind, "shared", self._shared, size)
        self._shared += -(-size * kind.itemsize // ALIGNMENT) * ALIGNMENT
        return made

    def constants(self, values: Sequence[int], dtype: np.dtype | str = INT32) -> Buffer:
        """An array of integers that the code contains."""
        return Buffer(np.dtype(dtype), "constant", 0, len(values), values=tuple(values))

    def indirect(self, table: Buffer, slot: Node, dtype: np.dtype | str) -> Buffer:
        """The global array whose address is in a table of int64."""
        return Buffer(np.dtype(dtype), "indirect", table.position, 0, table, slot)

    def load(self, buffer: Buffer, index: Node | int, where: Node | None = None) -> Node:
        """An element; 0 where `where` is false."""
        return self.load_vector(buffer, index, 1, where)[0]

    def load_vector(self, buffer: Buffer, index: Node | int, width: int, where: Node | None = None) -> list[Node]:
        """Consecutive elements in one access; the index is a multiple of their number."""
        results = tuple([self._fresh(buffer.dtype) for _ in range(width)])
        self._add(Load(results, buffer, self.integer(index), where))
        return list(results)

    def store(self, buffer: Buffer, index: Node | int, value: Node, where: Node | None = None) -> None:
        """Write an element, cast to the buffer's dtype."""
        self.store_vector(buffer, index, [value], where)

    def store_vector(self, buffer: Buffer, index: Node | int, values: Sequence[Node],
                     where: Node | None = None) -> None:
        """Write consecutive elements in one access."""
        self._add(Store(buffer, self.integer(index), tuple([cast(value, buffer.dtype) for value in values]), where))

    def atomic(self, op: str, buffer: Buffer, index: Node, value: Node, where: Node | None = None) -> None:
        """Combine an element with a value indivisibly.

        Raises:
            TypeError: the hardware has no such operation on the dtype.
        """
        kind = buffer.dtype
        if op not in ATOMICS or kind.itemsize < 4 or (kind.kind == "f" and op != "add"):
            raise TypeError(f"no atomic {op} of {kind}")
        self._add(Atomic(op, buffer, index, cast(value, kind), where))

    def integer(self, value: Node | int) -> Node:
        """An index as a node."""
        return value if isinstance(value, Node) else number(value)

    # ----- threads -----

    def barrier(self) -> None:
        """Wait for all threads of the block."""
        self._add(Barrier())

    def shuffle_xor(self, value: Node, lanes: int) -> Node:
        """The value of the thread of the warp whose number differs by `lanes` (exclusive or)."""
        if not 0 < lanes < WARP:
            raise ValueError(f"a shuffle by {lanes} lanes")
        result = self._fresh(value.dtype)
        self._add(Shuffle(result, value, lanes))
        return result

    def mma(self, shape: str, a: Sequence[Node], b: Sequence[Node], c: Sequence[Node]) -> list[Node]:
        """a b + c by the tensor cores; all threads of the warp take part (`fragments`)."""
        results = tuple([self._fresh(each.dtype) for each in c])
        self._add(Mma(shape, results, tuple(a), tuple(b), tuple(c)))
        return list(results)

    # ----- state and control flow -----

    def local(self, value: Node) -> Local:
        """A mutable variable of this value."""
        made = Local(value.dtype, self._locals)
        self._locals += 1
        self.set(made, value)
        return made

    def set(self, local: Local, value: Node) -> None:
        """Assign to a local variable."""
        if value.dtype != local.dtype:
            raise TypeError(f"a value of {value.dtype} for a variable of {local.dtype}")
        self._add(SetLocal(local, value))

    def get(self, local: Local) -> Node:
        """The present value of a local variable."""
        result = self._fresh(local.dtype)
        self._add(GetLocal(result, local))
        return result

    @contextmanager
    def loop(self, start: Operand, stop: Operand, step: Operand = 1) -> Iterator[Node]:
        """A loop over start, start + step, ... below stop."""
        nodes = [each for each in (start, stop, step) if isinstance(each, Node)]
        dtype = nodes[0].dtype if nodes else INT32
        first, end, by = (each if isinstance(each, Node) else number(int(each), dtype) for each in (start, stop, step))
        index = self._fresh(dtype)
        self._bodies.append([])
        yield index
        body = self._bodies.pop()
        self._add(Loop(index, first, end, by, body))

    @contextmanager
    def loop_while(self, going: Local) -> Iterator[None]:
        """A loop that runs as long as a local variable of bool is true."""
        if going.dtype != scalar_ir.BOOL:
            raise TypeError(f"a loop while a variable of {going.dtype} is true")
        self._bodies.append([])
        yield
        body = self._bodies.pop()
        self._add(While(going, body))

    @contextmanager
    def when(self, condition: Node) -> Iterator[None]:
        """Statements for the threads for which a condition holds."""
        self._bodies.append([])
        yield
        body = self._bodies.pop()
        self._add(If(condition, body))

    def kernel(self) -> Kernel:
        """The kernel of the statements so far."""
        assert len(self._bodies) == 1
        return Kernel(self.family, self.threads, self._parameters, self._shared, self._bodies[0])


__all__ = ["ATOMICS", "BLOCK_X", "THREAD", "WARP", "Kernel", "KernelBuilder", "number", "substitute"]
