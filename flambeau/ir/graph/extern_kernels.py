"""What is computed as a whole: by launches of a family of kernels, or by a function of arrays.

A whole is a value's `attrs`, so that two equal ones are one value. `ExternKernel` runs in compiled code like every
other
kernel; `FallbackKernel` is called by the interpreter, between two pieces of compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...runtime.launch import Launch, Spec


class ExternKernel:
    """A family of kernels with its parameters: `family(outputs, inputs, **params)` gives launches.

    Args:
        name: what it is called where kernels are shown.
        params: hashable.
        check: called after each run with the arrays of the outputs named in `checked`; raises what they say is wrong.
    """

    __slots__ = ("check", "checked", "family", "key", "name", "params")

    def __init__(self, name: str, family: Callable[..., list[Launch]], params: dict[str, Any],
                 check: Callable[..., None] | None = None, checked: Sequence[int] = ()) -> None:
        self.name, self.family, self.params = name, family, params
        self.check, self.checked = check, tuple(checked)
        self.key = (name, tuple(sorted(params.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExternKernel) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.name}({shown})"

    def launches(self, outputs: Sequence[Spec], inputs: Sequence[Spec]) -> list[Launch]:
        """The kernels for arrays that look so."""
        return self.family(list(outputs), list(inputs), **self.params)


class FallbackKernel:
    """A function of arrays that returns arrays; each is a value of its own, even if it looks like another.

    Args:
        name: what it is called where kernels are shown.
        run: takes the arrays of the arguments and returns a sequence of arrays.
        why: why it is no kernel.
        stream: what it changes besides, with `snapshot()` and `restore(snapshot)`: where random numbers come from.
    """

    __slots__ = ("name", "run", "stream", "why")

    def __init__(self, name: str, run: Callable[..., Sequence[np.ndarray]], why: str = "", stream: Any = None) -> None:
        self.name, self.run, self.why, self.stream = name, run, why, stream

    def __repr__(self) -> str:
        return self.name
