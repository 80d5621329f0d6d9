"""Packing ahead of time: products and convolutions find their weights in the order in which their code reads them.

In the process a kernel rearranges its weights in each run. Here the launches that do so run once, on this machine, when
the file is built; what they write is data of the file, and takes the place of the weights themselves where nothing else
reads those.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ...codegen.scalar.scalar_ir import Node
from ...ir.graph.value import Value
from ...ir.kernels.families import KernelFamilies
from ...ir.schedule.steps import ExecutionPlan, Step
from ...runtime import launch, object_emission, object_loader, target
from ...runtime.compilation import Library, Symbol
from ...runtime.launch import ALIGNMENT, Launch, Spec
from ...runtime.thread_pool import CALLER_ONLY

#: packed bytes above which, and above how many times the weights' own bytes, weights are packed in each run
LARGE, LARGER = 1 << 18, 1.6

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class ConstantInputs(KernelFamilies):
    """The families for a graph some of whose inputs are constant.

    Args:
        numbers: of these inputs.
    """

    def __init__(self, numbers: frozenset[int]) -> None:
        self._numbers = numbers

    def for_operands(self, a: Value, b: Value) -> KernelFamilies:
        """The families for a product or convolution of these values."""
        constant = self.is_constant(a), self.is_constant(b)
        return _ConstantOperands(*constant) if any(constant) else self

    def is_constant(self, value: Value) -> bool:
        """Whether a value is part of a constant input."""
        return value.base.op == "input" and value.base.attrs in self._numbers


class _ConstantOperands(KernelFamilies):
    """The families for products of operands of which one is constant."""

    def __init__(self, a: bool, b: bool) -> None:
        self._constant = a, b

    def matmul(  # type: ignore[override]
        self, outputs: Sequence[Spec], a: Spec, b: Spec, extras: Sequence[Spec], epilogue: Sequence[Node] | None
    ) -> list[Any]:
        from ...codegen.matmul import matmul

        launches = list(matmul.launches(outputs, a, b, extras, epilogue, self._constant))
        prepared = max((each.preparation.end for each in launches if each.preparation is not None), default=0)
        # where scratch memory has nothing but packed weights, it is no part of the arena
        return [each._replace(scratch=0) if each.scratch == prepared else each for each in launches]

    def convolution(  # type: ignore[override]
        self,
        kind: str,
        outputs: list[Spec],
        x: Spec,
        y: Spec,
        extras: list[Spec],
        epilogue: tuple[Node, ...] | None,
        geometry: dict[str, Any],
    ) -> list[Any]:
        from ...codegen.convolution import convolution

        if kind == "weight":
            return list(convolution.weight_gradient(outputs, x, y, **geometry))
        build = convolution.forward if kind == "forward" else convolution.input_gradient
        return list(build(outputs, x, y, extras, epilogue=epilogue, constant=self._constant[1], **geometry))


class PackedWeights:
    """The data that launches have prepared, each distinct array once."""

    def __init__(self) -> None:
        self._pieces: list[np.ndarray] = []
        self._known: dict[bytes, int] = {}
        self._size = 0

    def place(self, data: np.ndarray) -> int:
        """The offset of these bytes."""
        key = hashlib.sha256(data.tobytes()).digest()
        if key not in self._known:
            self._known[key] = self._size
            padding = -data.nbytes % ALIGNMENT
            self._pieces += [data, np.zeros(padding, np.uint8)]
            self._size += data.nbytes + padding
        return self._known[key]

    @property
    def data(self) -> np.ndarray:
        """All bytes."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.uint8)


def prepack(
    plan: ExecutionPlan, weights: Mapping[int, np.ndarray], packed: PackedWeights
) -> tuple[ExecutionPlan, dict[int, int]]:
    """A plan without the launches that rearrange constant weights.

    Args:
        plan: the plan.
        weights: by table entry, the bytes of a weight.
        packed: takes what the launches would have written.

    Returns:
        The plan, and by further table entry the offset in `packed`.
    """
    steps: list[Any] = []
    entries: dict[int, int] = {}
    for _, group in groupby(plan.steps, key=lambda step: step.kernel):
        found = [*group]
        prepared = _prepared(found, weights)
        if prepared is None:
            steps += found
            continue
        begin, data = prepared
        sources = {step.launch.preparation.source for step in found
                   if isinstance(step, Step) and isinstance(step.launch, Launch) and step.launch.preparation}
        entry = plan.entries + len(entries)
        entries[entry] = packed.place(data)
        for step in found:
            assert isinstance(step, Step)
            assert isinstance(step.launch, Launch)
            if step.launch.preparation is not None:
                continue
            words, pointers = list(step.launch.words), list(step.pointers)
            if step.launch.prepared:
                # the weight itself is not read any more: its pointer becomes that of something which is in memory
                pointers = [(plan.arena_entry, 0) if i in sources else p for i, p in enumerate(pointers)]
                for position in step.launch.prepared:
                    words[position] = len(pointers)
                pointers.append((entry, -begin))
            steps.append(step._replace(launch=step.launch._replace(words=tuple(words)), pointers=pointers))
    return plan._replace(steps=steps), entries


def _prepared(steps: Sequence[Any], weights: Mapping[int, np.ndarray]) -> tuple[int, np.ndarray] | None:
    """What the preparing launches of a kernel write, and where in its scratch memory; None if they stay."""
    launches = [step for step in steps if isinstance(step, Step) and isinstance(step.launch, Launch)]
    preparing = [(step, step.launch.preparation) for step in launches
                 if isinstance(step.launch, Launch) and step.launch.preparation is not None]
    if not preparing or len(launches) != len(steps):
        return None
    begin = min(each.begin for _, each in preparing)
    end = max(each.end for _, each in preparing)
    sources = {step.pointers[each.source][0] for step, each in preparing if each.source >= 0}
    if not sources <= weights.keys():
        return None
    own = sum(weights[entry].nbytes for entry in sources)
    has_memory = any(step.launch.scratch for step in launches if isinstance(step.launch, Launch))
    if has_memory and end - begin > max(LARGE, LARGER * own):
        return None
    scratch = np.zeros(end + ALIGNMENT, np.uint8)
    base = scratch.ctypes.data + -scratch.ctypes.data % ALIGNMENT
    for step, each in preparing:
        assert isinstance(step.launch, Launch)
        addresses = [0] * len(step.pointers) + [base]
        if has_memory:
            addresses[-2] = base
        if each.source >= 0:
            entry, offset = step.pointers[each.source]
            addresses[each.source] = weights[entry].ctypes.data + offset
        _run(step.launch, addresses)
    at = base - scratch.ctypes.data
    return begin, scratch[at + begin : at + end].copy()


def _run(each: Launch, addresses: Sequence[int]) -> None:
    """Run a launch on this machine."""
    pointers = (ctypes.c_void_p * len(addresses))(*addresses)
    words = (ctypes.c_int64 * max(1, len(each.words)))(*[int(_address(word)) for word in each.words])
    body = _BODY(_address(each.body))
    for chunk in range(int(each.chunks % CALLER_ONLY)):
        body(pointers, words, chunk)


_loaded: dict[int, tuple[Library, dict[str, int]]] = {}


def _address(word: Any) -> int:
    """A word; a function's address is that of code for this machine, whatever the target is."""
    if not isinstance(word, Symbol) or not target.is_foreign():
        return launch.resolve(word)
    library = word.library
    if id(library) not in _loaded:
        code = object_emission.emit_for(target.this_machine(), library.ir)
        _loaded[id(library)] = library, object_loader.load(code, library.names)
    return _loaded[id(library)][1][word.name]


__all__ = ["ConstantInputs", "PackedWeights", "prepack"]
