"""Backward graphs divided at the buckets of `DistributedDataParallel`: reductions start between the pieces.

A piece computes the gradients of one bucket, and what later pieces need of what it computes. Each piece is a node of
the autograd graph whose edges lead to the leaves of its bucket and to later pieces, so the engine accumulates the
gradients of a piece, and hooks start its reduction, before the next piece runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...engine.gradient_buckets import GradientBuckets
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Value
from ...modes import special
from ..tracing.joint_graph import JointGraph
from . import profiling
from .subgraphs import subgraph_program

#: inputs of a piece's program
SAVED, RECEIVED, LEAF = range(3)


class Division(NamedTuple):
    """What the pieces have in common.

    Attributes:
        joint: the joint graph.
        name: the name in profiles.
        depends: by value, the results whose cotangents it depends on.
        make_program: makes a program of a graph and its targets.
    """

    joint: JointGraph
    name: str
    depends: dict[Value, frozenset[int]]
    make_program: Callable[[Graph, list[Target]], Any]


class Piece:
    """A part of a backward graph.

    Args:
        division: what the pieces have in common.
        number: its position among the pieces.
        received: the values that it gets: the cotangents of the results, or values that earlier pieces computed.

    Attributes:
        gradients: the inputs of the joint graph whose gradients it computes, in the order of the traced backward pass.
        saved, leaves: positions of the values that it reads among those that the forward program saved, and among the
            inputs of the forward program.
        passed: what it passes on: a value, the piece that gets it, and the position among what that piece receives.
    """

    def __init__(self, division: Division, number: int, received: Sequence[Value] = ()) -> None:
        self.division, self.number = division, number
        self.received = list(received)
        self.gradients: list[int] = []
        self.saved: dict[int, Value] = {}
        self.leaves: dict[int, Value] = {}
        self.passed: list[tuple[Value, int, int]] = []
        self._programs: dict[frozenset[int], tuple[Any, list[tuple[int, int]], set[Value]]] = {}

    def _compile(self, missing: frozenset[int]) -> tuple[Any, list[tuple[int, int]], set[Value]]:
        """The program for passes without some cotangents, where its inputs come from, and what is left out."""
        joint, depends = self.division.joint, self.division.depends
        absent = {value for value, of in depends.items() if of <= missing} if missing else set()
        inputs = [*self.saved.values(), *self.received, *self.leaves.values()]
        sources = [(kind, i) for kind, values in ((SAVED, self.saved), (RECEIVED, self.received), (LEAF, self.leaves))
                   for i in range(len(values))]
        wanted = [joint.gradients[i] for i in self.gradients if self._has_gradient(i, missing)]
        targets = [value for value in wanted if value is not None] + self._computed_for_others(absent)
        return subgraph_program(self.division.make_program, inputs, absent, targets, {}), sources, absent

    def _has_gradient(self, number: int, missing: frozenset[int]) -> bool:
        joint = self.division.joint
        return joint.gradients[number] is not None and not (missing and joint.uses and joint.uses[number] <= missing)

    def _computed_for_others(self, absent: set[Value]) -> list[Value]:
        """The values that it computes for later pieces, each once."""
        values = dict.fromkeys(value for value, _, _ in self.passed)
        return [value for value in values if value not in absent and value not in self.received]

    def prepare(self) -> None:
        """Make the program for passes with all cotangents."""
        self._programs[frozenset()] = self._compile(frozenset())

    def programs(self) -> list[Any]:
        """The programs that it has made."""
        return [program for program, _, _ in self._programs.values()]

    def run(self, saved: Sequence[np.ndarray], received: Sequence[Any], leaves: Sequence[np.ndarray],
            missing: frozenset[int]) -> list[Any]:
        """Return the gradients, then what is passed on; None for what depends only on cotangents that are None.

        Args:
            saved, received, leaves: the arrays of the values of the same names, dense in row-major order.
            missing: the results without a cotangent.
        """
        found = self._programs.get(missing)
        if found is None:
            found = self._programs[missing] = self._compile(missing)
        program, sources, absent = found
        by_kind = (saved, received, leaves)
        arrays = [by_kind[kind][i] for kind, i in (sources[number] for number in program.inputs)]
        name = self.division.name
        new = program.run(arrays, callback=profiling.watch(program, name) if special[0] else None)
        assert new is not None
        joint = self.division.joint
        remaining = iter(new)
        results: list[Any] = []
        for number in self.gradients:
            value = joint.gradients[number]
            if value is None or not self._has_gradient(number, missing):
                results.append(None)
                continue
            gradient = next(remaining).reshape(value.shape)
            dims = joint.layouts.get(number)
            results.append(gradient if dims is None else gradient.transpose(dims))
        computed = {value: next(remaining).reshape(value.shape) for value in self._computed_for_others(absent)}
        for value, array in zip(self.received, received, strict=True):
            computed.setdefault(value, array)
        results += [None if value in absent else computed[value] for value, _, _ in self.passed]
        return results


def divide(division: Division, buckets: GradientBuckets, saved: Sequence[Value], leaves: Sequence[Value],
           read: Sequence[Any] = ()) -> list[Piece]:
    """Divide a backward graph: a piece for each bucket that has gradients.

    A parameter may change as soon as its bucket is reduced, where an optimizer runs in the backward pass. So what reads
    it is computed before, as in uncompiled code, whoever needs the result.

    Args:
        division: what the pieces have in common.
        buckets: the buckets; inputs that are in none are in the last piece.
        saved, leaves: the values that the backward graph reads of the forward graph.
        read: the tensors of `leaves`; None for those that are arguments.
    """
    joint, depends = division.joint, division.depends
    last = len(joint.inputs)
    numbers: dict[int, list[int]] = {}
    for i, (tensor, value) in enumerate(zip(joint.inputs, joint.gradients, strict=True)):
        bucket = None if tensor is None else buckets.number_of(tensor)
        if value is None or value.base not in depends:
            bucket = -1  # nothing is computed for it
        numbers.setdefault(last if bucket is None else bucket, []).append(i)
    if numbers.keys() - {-1}:
        numbers[min(numbers.keys() - {-1})] += numbers.pop(-1, [])
    pieces: list[Piece] = []
    home: dict[Value, int] = dict.fromkeys(joint.cotangents, 0)
    places = {value: i for i, value in enumerate(saved)}, {value: i for i, value in enumerate(leaves)}
    readers = _readers([value for value in joint.gradients if value is not None], depends, {
        leaf: number for leaf, tensor in zip(leaves, read, strict=False)
        if tensor is not None and (number := buckets.number_of(tensor)) is not None}, set(saved))
    for bucket in sorted(numbers):
        piece = Piece(division, len(pieces), () if pieces else joint.cotangents)
        pieces.append(piece)
        of_piece = [(-1 if (value := joint.gradients[i]) is None else value.number, i) for i in numbers[bucket]]
        piece.gradients = [i for _, i in sorted(of_piece)]
        roots = [joint.gradients[i] for i in piece.gradients]
        roots += [value for number in sorted(readers) if number <= bucket for value in readers.pop(number)]
        _assign([value for value in roots if value is not None], piece, pieces, home, depends, places)
    return pieces


def _readers(roots: Sequence[Value], depends: dict[Value, frozenset[int]], buckets: dict[Value, int],
             saved: Collection[Value]) -> dict[int, list[Value]]:
    """By bucket, the values of a backward graph whose computation reads a parameter of it.

    Args:
        roots: the gradients.
        depends: by value of the backward graph, the results whose cotangents it depends on.
        buckets: the buckets of the values that are parameters.
        saved: the values that are read from memory, however they were computed.
    """
    seen: set[Value] = set()
    stack = [value.base for value in roots]
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            if value not in saved and value not in buckets:
                stack.extend(arg.base for arg in value.args)
    found: dict[int, list[Value]] = {}
    made_of: dict[Value, frozenset[int]] = {}  # the buckets of what a value that no cotangent reaches is made of
    for value in sorted(seen, key=lambda each: each.number):
        if value in buckets:
            made_of[value] = frozenset((buckets[value],))
        elif value not in saved:
            read = frozenset().union(*(made_of.get(arg.base, ()) for arg in value.args))
            if value not in depends:
                made_of[value] = read
            else:
                for number in read:
                    found.setdefault(number, []).append(value)
    return found


def _assign(roots: Sequence[Value], piece: Piece, pieces: Sequence[Piece], home: dict[Value, int],
            depends: dict[Value, frozenset[int]], places: tuple[dict[Value, int], dict[Value, int]]) -> None:
    """Give a piece what its gradients need and no earlier piece computes."""
    saved, leaves = places
    received: set[Value] = set(piece.received)
    seen: set[Value] = set()
    stack = list(roots)
    while stack:
        value = stack.pop().base  # views are made where they are read
        if value in seen:
            continue
        seen.add(value)
        if value not in depends:
            if value in saved:
                piece.saved[saved[value]] = value
            elif value in leaves:
                piece.leaves[leaves[value]] = value
            elif value.op != "constant":
                stack.extend(value.args)
            continue
        at = home.get(value)
        if at is not None and at != piece.number:
            if value not in received:
                received.add(value)
                pieces[at].passed.append((value, piece.number, len(piece.received)))
                piece.received.append(value)
            continue
        home[value] = piece.number
        if value.op == "extern":
            for part in value.graph.extern_outputs[value]:
                home[part] = piece.number
        if value not in received:
            stack.extend(value.args)


__all__ = ["Division", "Piece", "divide"]
