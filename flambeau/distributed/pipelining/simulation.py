"""When the actions of a schedule would run, if each kind took a given time: bubbles, and orders that never end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .actions import BACKWARD_INPUT, BACKWARD_WEIGHT, FORWARD, FULL_BACKWARD, _Action, _ComputationType
from .orders import Order

#: times of a model whose gradients of inputs and of weights each take as long as its forward pass
TIMES: Mapping[_ComputationType, float] = {FORWARD: 1.0, BACKWARD_INPUT: 1.0, BACKWARD_WEIGHT: 1.0, FULL_BACKWARD: 2.0}

_Event = tuple[int, bool, int]  # stage, whether the backward pass, microbatch


class Span(NamedTuple):
    """An action, and when it starts and ends."""

    action: _Action
    start: float
    end: float


def _needs(action: _Action, stages: int) -> list[_Event]:
    stage, kind, number, _ = action
    assert number is not None
    if kind is FORWARD:
        return [(stage - 1, False, number)] if stage else []
    if kind is BACKWARD_WEIGHT:
        return [(stage, True, number)]
    return [(stage, False, number), *([(stage + 1, True, number)] if stage < stages - 1 else [])]


def simulate(order: Order, times: Mapping[_ComputationType, float] = TIMES, message: float = 0.0
             ) -> dict[int, list[Span]]:
    """The times of all actions of all processes.

    Args:
        order: process -> its actions.
        times: how long the kinds of actions take.
        message: how long a message between two processes takes.

    Raises:
        RuntimeError: processes wait for each other, or an action's input is never made.
    """
    stages = 1 + max(part.stage_index for actions in order.values() for each in actions for part in each.parts)
    made: dict[_Event, tuple[float, int]] = {}
    spans: dict[int, list[Span]] = {rank: [] for rank in order}
    position = dict.fromkeys(order, 0)
    clock = dict.fromkeys(order, 0.0)
    while True:
        progress = False
        for rank, actions in order.items():
            while position[rank] < len(actions):
                action = actions[position[rank]]
                now, ends = clock[rank], []
                for part in action.parts:
                    needed = _needs(part, stages)
                    if not all(event in made for event in needed):
                        break
                    start = max([now, *(time + (message if source != rank else 0.0)
                                        for time, source in map(made.__getitem__, needed))])
                    now = start + times[part.computation_type]
                    ends.append((part, start, now))
                else:
                    for part, _, end in ends:
                        if part.computation_type is not BACKWARD_WEIGHT:
                            backward = part.computation_type is not FORWARD
                            made[part.stage_index, backward, part.microbatch_index or 0] = end, rank
                    spans[rank] += [Span(*each) for each in ends]
                    clock[rank], progress = now, True
                    position[rank] += 1
                    continue
                break
        if all(position[rank] == len(actions) for rank, actions in order.items()):
            return spans
        if not progress:
            waiting = ", ".join(f"rank {rank} at {actions[position[rank]]}" for rank, actions in order.items()
                                if position[rank] < len(actions))
            raise RuntimeError(f"The schedule never ends: {waiting} wait for actions that do not come before them.")


def bubble(spans: Mapping[int, list[Span]]) -> float:
    """The share of the processes' time, from the first action to the last, in which they compute nothing.

    >>> from flambeau.distributed.pipelining.orders import gpipe
    >>> from flambeau.distributed.pipelining.simulation import bubble, simulate
    >>> round(bubble(simulate(gpipe(4, 4))), 4)  # (stages - 1) / (microbatches + stages - 1)
    0.4286
    """
    each = [span for rank in spans.values() for span in rank]
    whole = (max(span.end for span in each) - min(span.start for span in each)) * len(spans)
    return 1 - sum(span.end - span.start for span in each) / whole


__all__ = ["TIMES", "Span", "bubble", "simulate"]
