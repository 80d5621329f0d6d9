"""Launches that are repeated step after step over memory that moves on, such as the steps of a recurrent layer.

A step is a few launches of some microseconds: between them there is no Python. Programs have a power of two of steps,
so that any number of steps is a few runs of few programs.
"""

from __future__ import annotations

from collections.abc import Sequence

from .launch import FIRST, Launch, Program

#: the most steps of a program
STEPS = 64


class RepeatedLaunches:
    """Launches over base addresses that move on by a constant number of bytes from a step to the next.

    Args:
        launches: pairs of a launch and the base and offset of each of its pointers.
        strides: for each base, the bytes from a step to the next.
    """

    __slots__ = ("_launches", "_programs", "_strides")

    def __init__(self, launches: Sequence[tuple[Launch, Sequence[tuple[int, int]]]], strides: Sequence[int]) -> None:
        self._launches, self._strides = tuple(launches), tuple(strides)
        self._programs: dict[int, Program] = {}

    def run(self, addresses: Sequence[int], count: int) -> None:
        """Run `count` steps.

        Args:
            addresses: the bases' addresses in the first step.
        """
        done = 0
        while done < count and self._launches:
            steps = min(1 << ((count - done).bit_length() - 1), STEPS)
            program = self._programs.get(steps)
            if program is None:
                program = self._programs[steps] = self._program(steps)
            record = program.record()
            for i, (address, stride) in enumerate(zip(addresses, self._strides, strict=True), FIRST):
                record[i] = address + done * stride
            program(record)
            done += steps

    def _program(self, steps: int) -> Program:
        return Program([(each, [(base, offset + step * self._strides[base]) for base, offset in pointers])
                        for step in range(steps) for each, pointers in self._launches], 0, len(self._strides))


__all__ = ["RepeatedLaunches"]
