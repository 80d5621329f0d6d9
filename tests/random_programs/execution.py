"""Execution of a program's statements one by one with `torch` bound to a library, recording their effects."""

from __future__ import annotations

import re
import traceback
import warnings
import weakref
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from .observation import described, numbers_of, observe, snapshot, without_values
from .prelude import PRELUDE

# what is PyTorch's alone in a text: memory addresses, and where in its sources a warning is
_OF_THE_MACHINE = (re.compile(r"(?<=0x)[0-9a-f]+"), re.compile(r" \(Triggered internally at [^)]*\)"),
                   re.compile(r"\nException raised from .*", re.DOTALL),
                   re.compile(r" If you are a Facebook employee.*", re.DOTALL))  # which backends have the operator
# advice on PyTorch's own speed, and what it says of its own parts
_OF_PYTORCH = ("gradient layout contract", "torch.jit.script", "performance drop", "is in beta", "ComplexHalf",
               "lower the performance")
_VERSIONS = re.compile(r"(, which is output \d+ of [\w:]+,)? is at version (\d+); expected version (\d+)")


def plain(text: object) -> str:
    """A message without addresses, lines of source code and backends, and with how many versions apart two are.

    Which operator made what was written to depends, for views, on how long PyTorch's nodes live.
    """
    said = str(text).replace("flambeau.", "torch.")
    for pattern in _OF_THE_MACHINE:
        said = pattern.sub("", said)
    return _VERSIONS.sub(lambda found: f" is {int(found[2]) - int(found[3])} versions late", said)


@dataclass
class Step:
    """What one statement did: the error it raised, the warnings, what hooks noted, what was seen of the tensors."""

    text: str
    error: str | None = None
    warned: list[str] = field(default_factory=list)
    noted: list[Any] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)
    trace: str = ""


class _Prelude:
    """The prelude's classes in one library: made once, noting for the session that is at work."""

    made: ClassVar[dict[str, dict[str, Any]]] = {}
    at_work: weakref.ref[Session] | None = None  # its tensors live no longer than the program

    @classmethod
    def of(cls, library: ModuleType) -> dict[str, Any]:
        found = cls.made.get(library.__name__)
        if found is None:
            found = {"torch": library, "note": cls.note, "__name__": "program"}
            exec(compile(PRELUDE, "<prelude>", "exec"), found)
            cls.made[library.__name__] = found
        return found

    @classmethod
    def note(cls, *values: Any) -> None:
        session = None if cls.at_work is None else cls.at_work()
        assert session is not None
        session.step.noted.append([snapshot(value) for value in values])


class Session:
    """A program at work: the names it has defined, and the modes it has entered."""

    def __init__(self, library: ModuleType, noise: int | None = None) -> None:
        self.library = library
        self.noise = None if noise is None else np.random.default_rng(noise)
        self.step = Step("")
        self.modes: list[Any] = []
        self.recorded: list[tuple[int, int]] = []  # birth numbers of nodes made while running backward
        self.births: dict[str, tuple[Any, int]] = {}  # by name: a weak reference, the first version
        self.names: dict[str, Any] = dict(_Prelude.of(library))
        self.names |= {"look": self._look, "enter": self._enter, "leave": self._leave, "fail": _fail,
                       "safe": _safe, "described": described, "without_values": without_values,
                       "numbers_of": numbers_of, "plain": plain}

    def run(self, text: str) -> Step:
        """Run one statement; its error is part of what it did."""
        step = self.step = Step(text)
        began = self._birth_number() if "create_graph" in text else 0
        _Prelude.at_work = weakref.ref(self)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(compile(text, "<program>", "exec"), self.names)
            except Exception as error:
                step.error = f"{type(error).__name__}: {plain(error)}"
                step.trace = traceback.format_exc()
            except BaseException as error:  # an interrupt that a hook raised, say
                if str(error) != "from a hook":
                    raise
                step.error = f"{type(error).__name__}: {error}"
        if self.noise is not None:
            self._disturb()
        if began:
            self.recorded.append((began, self._birth_number()))
        self._note_births()
        step.warned = [f"{w.category.__name__}: {plain(w.message)}" for w in caught
                       if not any(text in str(w.message) for text in _OF_PYTORCH)]
        return step

    def tensors(self) -> dict[str, Any]:
        """The program's own tensors, by name."""
        tensor = self.library.Tensor
        return {name: value for name, value in self.names.items() if isinstance(value, tensor)}

    def close(self) -> None:
        """Leave the modes that are still on."""
        while self.modes:
            self.modes.pop().__exit__(None, None, None)
        self.library.set_grad_enabled(True)

    def _birth_number(self) -> int:
        library = self.library
        with library.inference_mode(False), library.enable_grad():
            return int((library.ones(1, requires_grad=True) * 1).grad_fn._sequence_nr())

    def _disturb(self) -> None:
        """Change the elements of the tensors that a statement made by about as much as another rounding would."""
        assert self.noise is not None
        for name, x in self.tensors().items():
            known = self.births.get(name)
            if (known is None or known[0]() is not x) and x.is_floating_point() and (
                    x._base is None and x.dtype.itemsize > 2):
                step = 1e-13 if x.dtype.itemsize == 8 else 1e-6
                with self.library.inference_mode(x.is_inference()):
                    change = self.library.tensor(step * self.noise.uniform(-1, 1, tuple(x.shape)), dtype=x.dtype)
                    (x if x.is_inference() else x.data).add_(change)

    def _note_births(self) -> None:
        """Note the versions that tensors are born with: how often gradients were written to before does not matter."""
        for name, x in self.tensors().items():
            known = self.births.get(name)
            if (known is None or known[0]() is not x) and not x.is_inference():
                try:
                    self.births[name] = weakref.ref(x), x._version
                except RuntimeError:  # a copy of an inference tensor, half one itself
                    self.births.pop(name, None)

    # ----- what programs may call -----

    def _look(self) -> None:
        births = {name: version for name, (_, version) in self.births.items()}
        self.step.seen = observe(self.tensors(), self.recorded, births)

    def _enter(self, mode: Any) -> None:
        mode.__enter__()
        self.modes.append(mode)

    def _leave(self) -> None:
        if self.modes:
            self.modes.pop().__exit__(None, None, None)


def _safe(x: Any) -> Any:
    """A tensor that hooks may be put on: PyTorch crashes where a view requires grad only because its base does."""
    if x.requires_grad and x._base is not None and x.grad_fn is None:
        raise ValueError("PyTorch would crash")
    return x


def _fail(*_: Any) -> None:
    raise ValueError("a hook that fails")


def run(program: list[str], library: ModuleType, noise: int | None = None) -> list[Step]:
    """What each statement of a program does under a library.

    Args:
        noise: the seed of small changes to all tensors that are made.
    """
    session = Session(library, noise)
    try:
        return [session.run(text) for text in program]
    finally:
        session.close()
