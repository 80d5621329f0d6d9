"""Generation of a program from a seed: statement by statement, each chosen for the existing tensors.

The program runs under PyTorch while it is generated, so existing tensors are known and most statements are
valid; a few are invalid on purpose. PyTorch's results are saved for the comparison.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .execution import Session, Step

Statement = Callable[["Writer"], str]

#: how statements are written, and how often each is chosen
STATEMENTS: list[tuple[Statement, float]] = []
#: those that eager programs have, too
WIDE: list[tuple[Statement, float]] = []
#: those that mix NumPy's scalars, dtypes, devices, `out=` and transforms
MIXED: list[tuple[Statement, float]] = []
#: those that draw random numbers
DRAWING: list[tuple[Statement, float]] = []

_OF_GRAD_MODE = ("backward(", "autograd.grad(", ".data =", "requires_grad", "copy.")
_LARGEST = 30.0
_MOST_TENSORS = 14


class Unfit(Exception):
    """There is no tensor to write this statement about."""


def statement(weight: float, among: list[tuple[Statement, float]] = STATEMENTS) -> Callable[[Statement], Statement]:
    """Declare a way of writing a statement."""

    def declare(function: Statement) -> Statement:
        among.append((function, weight))
        return function

    return declare


class Writer:
    """A program being written: its random choices and the tensors it has made."""

    def __init__(self, seed: int, library: ModuleType) -> None:
        self.random = random.Random(seed)
        self.session = Session(library)
        self.steps: list[Step] = []
        self.count = 0
        self.handles = 0
        self.last: str | None = None
        self.double = self.chance(0.5)  # whether all is in double precision, and so compared closely

    # ----- choices -----

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def choose(self, *options: Any) -> Any:
        return self.random.choice(options)

    def fresh(self) -> str:
        """A new tensor's name."""
        self.count += 1
        return f"x{self.count}"

    def handle(self) -> str:
        """A new hook handle's name."""
        self.handles += 1
        return f"h{self.handles}"

    def value(self, name: str) -> Any:
        """The tensor currently bound to a name."""
        return self.session.names[name]

    def pick(self, fits: Callable[[Any], bool] = lambda t: True) -> str:
        """The name of a tensor that fits, rather one of the latest."""
        names = [name for name, t in self.session.tensors().items() if fits(t)]
        if not names:
            raise Unfit
        if self.last in names and self.chance(0.3):
            return self.last
        return names[max(self.random.randrange(len(names)), self.random.randrange(len(names)))]

    def floating(self, fits: Callable[[Any], bool] = lambda t: True) -> str:
        """The name of a tensor with real, or complex, elements."""
        return self.pick(lambda t: (t.is_floating_point() or t.is_complex()) and fits(t))

    def real(self, fits: Callable[[Any], bool] = lambda t: True) -> str:
        """The name of a tensor with real elements."""
        return self.pick(lambda t: t.is_floating_point() and fits(t))

    def writable(self, fits: Callable[[Any], bool] = lambda t: True) -> str:
        """The name of a tensor whose elements do not partly overlap: what a write to such ones does is not defined."""
        return self.floating(lambda t: not interleaved(t) and fits(t))

    def beside(self, name: str) -> str:
        """The name of a tensor that broadcasts with another."""
        shape = self.value(name).shape
        return self.floating(lambda t: all(a == b or 1 in (a, b)
                                           for a, b in zip(reversed(t.shape), reversed(shape), strict=False)))

    def apart(self, name: str) -> Callable[[Any], bool]:
        """Whether a tensor shares no memory with another, but maybe is it: what overlapping copies do is not said."""
        target = self.value(name)
        memory = target.untyped_storage().data_ptr()
        return lambda t: (t is target and t.numel() > 1) or t.untyped_storage().data_ptr() != memory

    def into(self, name: str) -> str:
        """The name of a tensor, apart in memory, that another's shape can take in."""
        target = self.value(name)
        is_apart = self.apart(name)

        def fits(t: Any) -> bool:
            return is_apart(t) and t.ndim <= target.ndim and all(
                a in (1, b) for a, b in zip(reversed(t.shape), reversed(target.shape), strict=False)) and (
                    target.is_complex() == t.is_complex())  # PyTorch's gradient of real parts so copied fails

        return self.floating(fits)

    def number(self) -> float:
        return round(self.random.uniform(-1.5, 1.5), 2)

    def dim(self, t: Any, wrong: float = 0.01) -> int:
        """A dimension of a tensor, counted from either end."""
        if self.chance(wrong):
            return t.ndim + self.choose(0, 1)
        if not t.ndim:
            return self.choose(0, -1)
        return self.random.randrange(-t.ndim, t.ndim)

    def shape(self) -> tuple[int, ...]:
        return self.choose((), (1,), (2,), (3,), (3,), (4,), (6,), (2, 3), (2, 3), (3, 2), (1, 3), (3, 1), (2, 2),
                           (3, 3), (4, 3), (0,), (0, 3), (2, 2, 2), (2, 1, 3), (2, 3, 2))

    def literal(self, shape: tuple[int, ...], make: Callable[[], Any]) -> str:
        """Nested lists of numbers of a shape."""
        if not shape:
            return repr(make())
        return "[" + ", ".join(self.literal(shape[1:], make) for _ in range(shape[0])) + "]"

    # ----- the program -----

    def add(self, text: str) -> Step:
        """Put a statement at the program's end and run it."""
        step = self.session.run(text)
        self.steps.append(step)
        self.last = f"x{self.count}" if f"x{self.count}" in self.session.names else None
        return step

    def tidy(self) -> None:
        """Forget tensors that have grown large, in value or in number."""
        shown = self.session.tensors()
        large = [name for name, t in shown.items() if _is_large(t)]
        if len(shown) - len(large) > _MOST_TENSORS:
            large += self.random.sample(sorted(set(shown) - set(large)), 3)
        if large:
            self.add("del " + ", ".join(large))


def interleaved(t: Any) -> bool:
    """Whether elements of a tensor partly overlap in memory."""
    reach = 0
    for stride, size in sorted(zip(t.stride(), t.shape, strict=True)):
        if size > 1:
            if 0 < stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def _is_large(t: Any) -> bool:
    t = t.detach()
    if t.is_meta:
        return True
    if not (t.is_floating_point() or t.is_complex()) or not t.numel():
        return bool(t.numel() > 100)
    return bool(t.numel() > 100 or not t.abs().max() < _LARGEST)


def written(seed: int, library: ModuleType, draws: bool = False, wide: bool = True,
            mixed: bool = False) -> tuple[list[str], list[Step]]:
    """The program of a seed, and what each of its statements does under `library`.

    Args:
        wide: whether it has modules and rarer functions.
        mixed: whether it mixes NumPy's scalars, dtypes, devices, `out=` and transforms.
        draws: whether it draws random numbers.
    """
    from . import (  # noqa: F401
        backward_statements,
        dtype_statements,
        forward_statements,
        index_statements,
        inplace_statements,
        layer_statements,
        mixed_statements,
        random_statements,
        transform_statements,
        view_statements,
        wide_statements,
    )

    w = Writer(seed, library)
    functions, weights = zip(*STATEMENTS, *(WIDE if wide else ()), *(MIXED if mixed else ()),
                              *(DRAWING if draws else ()), strict=True)
    looks = w.choose(0.1, 0.3, 1.0)
    modes = w.choose(0.0, 0.0, 0.03, 0.12)
    length = w.choose(12, 20, 30, 40)
    try:
        for _ in range(w.choose(2, 3, 4)):
            w.add(_leaf(w))
        while len(w.steps) < length:
            if w.chance(modes):
                w.add(_mode(w))
            try:
                text = w.random.choices(functions, weights)[0](w)
            except Unfit:
                continue
            # what is made there, gradients too, are inference tensors in PyTorch
            backward = any(word in text for word in _OF_GRAD_MODE)
            keeps = any(word in text for word in ("queeze_(", ".t_(", "transpose_("))  # whose history must follow
            if backward and library.is_inference_mode_enabled():
                continue
            if w.chance(modes / 2) and not keeps:
                mode = _mode_name(w)
                if not (backward and "inference" in mode):
                    text = f"with {mode}:\n    " + text.replace("\n", "\n    ")
            step = w.add(text)
            if step.error and w.last and ("out=" in text or f"\n{w.last}[" in text):  # what it leaves is not defined
                w.add(f"del {w.last}")
            w.tidy()
            if w.chance(looks):
                w.add("look()")
        w.add("look()")
    finally:
        w.session.close()
    return [step.text for step in w.steps], w.steps


def _leaf(w: Writer) -> str:
    from .forward_statements import created

    return created(w, leaf=True)


def _mode_name(w: Writer) -> str:
    if w.session.library.is_inference_mode_enabled():
        return w.choose("torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(True)",
                        "torch.inference_mode()")
    return w.choose("torch.no_grad()", "torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(False)",
                    "torch.set_grad_enabled(True)", "torch.inference_mode()", "torch.inference_mode(False)")


def _mode(w: Writer) -> str:
    if w.session.modes and w.chance(0.7):
        return "leave()"
    return f"enter({_mode_name(w)})"
