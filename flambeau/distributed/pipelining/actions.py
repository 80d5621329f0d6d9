"""The actions of a pipeline's schedule: what a process computes for which stage and microbatch, and their text."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple


class _ComputationType(StrEnum):
    """What an action does; the values are the letters of its text."""

    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    REDUCE_GRAD = "REDUCE_GRAD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"

    @staticmethod
    def from_str(action: str) -> _ComputationType:
        """The kind that a text stands for.

        Raises:
            RuntimeError: there is none.
        """
        try:
            return _ComputationType(action)
        except ValueError as error:
            raise RuntimeError(f"Invalid computation type {action}") from error


FORWARD = _ComputationType.FORWARD
BACKWARD_INPUT = _ComputationType.BACKWARD_INPUT
BACKWARD_WEIGHT = _ComputationType.BACKWARD_WEIGHT
FULL_BACKWARD = _ComputationType.FULL_BACKWARD
OVERLAP_F_B = _ComputationType.OVERLAP_F_B

#: what a process computes; the other kinds are messages and sharding, which happen by themselves here
COMPUTATIONS = frozenset({FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, FULL_BACKWARD, OVERLAP_F_B})

_TEXT = re.compile(r"(\d+)(UNSHARD|RESHARD|REDUCE_GRAD|SEND_F|RECV_F|SEND_B|RECV_B|F|I|B|W)(\d*)$")
_OVERLAPPED = re.compile(r"\((.*)\)(\w+)$")


class _Action(NamedTuple):
    """One action: `2F0` is the forward pass of microbatch 0 through stage 2.

    Attributes:
        stage_index: the stage; -1 for actions that overlap.
        computation_type: what it does.
        microbatch_index: the microbatch, None for actions of the whole step.
        sub_actions: what overlaps.
    """

    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int | None = None
    sub_actions: tuple[_Action, ...] | None = None

    def __repr__(self) -> str:
        if self.sub_actions is not None:
            return f"({';'.join(map(repr, self.sub_actions))}){self.computation_type.value}"
        number = "" if self.microbatch_index is None else self.microbatch_index
        return f"{self.stage_index}{self.computation_type.value}{number}"

    def __str__(self) -> str:
        return repr(self)

    @property
    def is_compute_op(self) -> bool:
        """Whether it computes, rather than sends, receives or shards."""
        return self.computation_type in COMPUTATIONS

    @property
    def parts(self) -> tuple[_Action, ...]:
        """The actions that overlap in this one, or this one."""
        return self.sub_actions or (self,)

    @staticmethod
    def from_str(action_string: str) -> _Action | None:
        """The action that a text stands for, None for an empty text.

        Raises:
            RuntimeError: the text stands for none.
        """
        text = action_string.strip()
        if not text:
            return None
        if found := _OVERLAPPED.match(text):
            parts = [_Action.from_str(part) for part in found[1].split(";")]
            actions = tuple(part for part in parts if part is not None)
            return _Action(-1, _ComputationType.from_str(found[2]), None, actions or None)
        if found := _TEXT.match(text):
            return _Action(int(found[1]), _ComputationType(found[2]), int(found[3]) if found[3] else None)
        raise RuntimeError(f"Invalid action string: {action_string}, should be formatted as [stage][action type]"
                           "[(microbatch)] e.g. 2F0")


__all__ = ["BACKWARD_INPUT", "BACKWARD_WEIGHT", "COMPUTATIONS", "FORWARD", "FULL_BACKWARD", "OVERLAP_F_B", "_Action",
           "_ComputationType"]
