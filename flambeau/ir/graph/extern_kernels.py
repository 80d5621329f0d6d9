"""Extern kernels: operations that fusion does not look into, computed by a kernel family or by a Python function.

The kernel is the `attrs` of an "extern" value, so equal kernels on equal arguments are one value. `ExternKernel` runs
in compiled code like every other kernel; `FallbackKernel` is called by the interpreter, between compiled segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...runtime.launch import Launch, Spec


class ExternKernel:
    """A family of kernels with its parameters: `family(outputs, inputs, **params)` gives launches.

    Args:
        name: shown in debug output.
        params: hashable values.
        optional: how many of the last outputs the family leaves out where nothing reads them.
        check: called after each run with the output arrays whose indices are in `checked`; raises the error, if any.
    """

    __slots__ = ("check", "checked", "family", "key", "name", "optional", "params")

    def __init__(self, name: str, family: Callable[..., list[Launch]], params: dict[str, Any],
                 check: Callable[..., None] | None = None, checked: Sequence[int] = (), optional: int = 0) -> None:
        self.name, self.family, self.params, self.optional = name, family, params, optional
        self.check, self.checked = check, tuple(checked)
        self.key = (name, tuple(sorted(params.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExternKernel) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.name}({params})"

    def launches(self, outputs: Sequence[Spec], inputs: Sequence[Spec]) -> list[Launch]:
        """The launches for operands of these shapes, dtypes and strides."""
        return self.family(list(outputs), list(inputs), **self.params)


class FallbackKernel:
    """A Python function of arrays that returns arrays; compared by identity, so never merged with another.

    Args:
        name: shown in debug output.
        run: takes the argument arrays and returns a sequence of arrays.
        why: why it has no compiled kernel.
        stream: the random number stream that it advances, with `snapshot()` and `restore(snapshot)`; None for none.
    """

    __slots__ = ("name", "run", "stream", "why")

    def __init__(self, name: str, run: Callable[..., Sequence[np.ndarray]], why: str = "", stream: Any = None) -> None:
        self.name, self.run, self.why, self.stream = name, run, why, stream

    def __repr__(self) -> str:
        return self.name
