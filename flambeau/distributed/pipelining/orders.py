"""The orders in which processes compute the microbatches of a pipeline: a list of actions for each process.

A process has the stages r, r + R, r + 2 R, ... of R processes ("loop"), or r and 2 R - 1 - r ("v").
Messages are no actions: a process receives what an action needs before it, and sends what others need after it.
"""

from __future__ import annotations

from collections import Counter, deque

from .actions import BACKWARD_INPUT, BACKWARD_WEIGHT, FORWARD, FULL_BACKWARD, OVERLAP_F_B, _Action, _ComputationType

Order = dict[int, list[_Action]]


def generate_stage_to_rank_mapping(pp_size: int, num_stages: int, style: str = "loop") -> dict[int, int]:
    """The process that has each stage.

    Args:
        pp_size: the number of processes.
        num_stages: the number of stages, a multiple of it.
        style: `"loop"` or `"v"`.

    Raises:
        ValueError: the stages cannot be divided evenly, or there is no such style.
    """
    if num_stages % pp_size:
        raise ValueError(f"num_stages {num_stages} must be evenly divisible by pp_size {pp_size} for {style} style")
    if style == "loop":
        return {stage: stage % pp_size for stage in range(num_stages)}
    if style == "v":
        return {stage: stage % pp_size if stage // pp_size % 2 == 0 else pp_size - 1 - stage % pp_size
                for stage in range(num_stages)}
    raise ValueError(f"Style {style} is not supported.")


def gpipe(stages: int, microbatches: int) -> Order:
    """All forward passes, then all backward passes (Huang et al., arXiv:1811.06965)."""
    return {stage: [*(_Action(stage, FORWARD, i) for i in range(microbatches)),
                    *(_Action(stage, FULL_BACKWARD, i) for i in range(microbatches))] for stage in range(stages)}


def one_forward_one_backward(stages: int, microbatches: int) -> Order:
    """As many forward passes as there are later stages, then one forward and one backward pass in turn."""
    order = {}
    for stage in range(stages):
        warmup = min(stages - 1 - stage, microbatches)
        actions = [_Action(stage, FORWARD, i) for i in range(warmup)]
        for i in range(microbatches):
            if warmup + i < microbatches:
                actions.append(_Action(stage, FORWARD, warmup + i))
            actions.append(_Action(stage, FULL_BACKWARD, i))
        order[stage] = actions
    return order


def looped_breadth_first(ranks: int, local_stages: int, microbatches: int) -> Order:
    """All microbatches through a stage before the next stage of a process (Lamy-Poirier, arXiv:2211.05953)."""
    order = {}
    for rank in range(ranks):
        own = range(rank, ranks * local_stages, ranks)
        order[rank] = [*(_Action(stage, FORWARD, i) for stage in own for i in range(microbatches)),
                       *(_Action(stage, FULL_BACKWARD, i) for stage in reversed(own)
                         for i in reversed(range(microbatches)))]
    return order


def interleaved(ranks: int, local_stages: int, microbatches: int, zero_bubble: bool = False) -> Order:
    """Rounds of microbatches through all stages of a process (Narayanan et al., arXiv:2104.04473).

    Args:
        ranks: the number of processes.
        local_stages: the number of stages of each.
        microbatches: a multiple of the number of rounds, microbatches // ranks.
        zero_bubble: divide backward passes: gradients of weights wait and fill the bubbles (ZB1P, arXiv:2401.10241).
    """
    rounds = max(1, microbatches // ranks)
    size = microbatches // rounds
    passes = [(local, i) for first in range(0, rounds * size, size) for local in range(local_stages)
              for i in range(first, first + size)]
    total = len(passes)
    order = {}
    for rank in range(ranks):
        forwards = [_Action(local * ranks + rank, FORWARD, i) for local, i in passes]
        backwards = [((local_stages - 1 - local) * ranks + rank, i) for local, i in passes]
        weights = [_Action(stage, BACKWARD_WEIGHT, i) for stage, i in backwards]
        kind = BACKWARD_INPUT if zero_bubble else FULL_BACKWARD
        distance = (1 if zero_bubble else 2) * (ranks - 1 - rank)
        warmup = min((local_stages - 1) * size + distance, total)
        actions = forwards[:warmup]
        for k, (stage, i) in enumerate(backwards):
            if warmup + k < total:
                actions.append(forwards[warmup + k])
            actions.append(_Action(stage, kind, i))
            if zero_bubble and k >= rank:
                actions.append(weights[k - rank])
        if zero_bubble:
            actions += weights[max(0, total - rank):]
        order[rank] = actions
    return order


class _Writer:
    """Actions in the order they are written; each continues with the next microbatch of its stage and kind."""

    def __init__(self) -> None:
        self.actions: list[_Action] = []
        self.counts: Counter[tuple[int, _ComputationType]] = Counter()
        self.waiting: deque[tuple[int, int]] = deque()  # weights whose gradients wait

    def next(self, stage: int, kind: _ComputationType) -> _Action:
        """The next action of a kind."""
        key = stage, BACKWARD_INPUT if kind is FULL_BACKWARD else kind  # one count for both kinds of backward passes
        number = self.counts[key]
        self.counts[key] += 1
        if kind is BACKWARD_INPUT:
            self.waiting.append((stage, number))
        return _Action(stage, kind, number)

    def write(self, stage: int, *kinds: _ComputationType) -> None:
        """Add the next action of each kind."""
        self.actions += [self.next(stage, kind) for kind in kinds]

    def overlap(self, forward: int, backward: int) -> None:
        """Add a forward pass through one stage beside a backward pass through another."""
        self.actions.append(_Action(-1, OVERLAP_F_B, None,
                                    (self.next(forward, FORWARD), self.next(backward, FULL_BACKWARD))))

    def weight(self) -> None:
        """Add the weights' gradients that have waited longest, if any wait."""
        if self.waiting:
            stage, number = self.waiting.popleft()
            self.actions.append(_Action(stage, BACKWARD_WEIGHT, number))


def zero_bubble_v(ranks: int, microbatches: int) -> Order:
    """Two stages a process, down and up again, with divided backward passes (ZB-V, arXiv:2401.10241, section 6)."""
    order = {}
    filled = max(2 * ranks - 1, microbatches)  # as many as fill the pipeline; those beyond the last are left out
    for rank in range(ranks):
        first, second = rank, 2 * ranks - 1 - rank
        log = _Writer()
        f, i, w = FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT
        log.write(first, *[f] * (2 * (ranks - rank) - 1))
        for _ in range(rank):
            log.write(second, f)
            log.write(first, f)
        for _ in range(ranks - rank):
            log.write(second, f, i, w)
        while log.counts[second, f] < log.counts[first, f] or log.counts[first, f] < filled:
            if log.counts[first, f] < filled:
                log.write(first, f)
            log.write(first, i, w)
            log.write(second, f, i, w)
        for _ in range(rank):
            log.write(first, i)
            log.write(second, i)
        for _ in range(ranks - rank):
            log.write(first, i, w)
        for stage in (second, first):
            log.write(stage, *[w] * (log.counts[stage, i] - log.counts[stage, w]))
        order[rank] = [each for each in log.actions if (each.microbatch_index or 0) < microbatches]
    return order


def dual_pipe_v(ranks: int, microbatches: int) -> Order:
    """Two stages a process whose forward and backward passes overlap (DualPipeV, after arXiv:2412.19437)."""
    order = {}
    for rank in range(ranks):
        first, second, hops = rank, 2 * ranks - 1 - rank, ranks - 1 - rank
        log = _Writer()
        log.write(first, *[FORWARD] * (2 * hops))
        for _ in range(rank + 1):
            log.write(first, FORWARD)
            log.write(second, FORWARD)
        for _ in range(hops):
            log.write(second, BACKWARD_INPUT)
            log.weight()
            log.write(second, FORWARD)
        for step in range(microbatches - 2 * ranks + rank + 1):
            if step == 0 and rank == ranks - 1:
                log.write(first, FORWARD)
                log.write(second, FULL_BACKWARD)
            else:
                log.overlap(first, second)
            log.overlap(second, first)
        for _ in range(hops):
            log.write(second, FULL_BACKWARD)
            log.overlap(second, first)
        kind = FULL_BACKWARD
        for step in range(rank + 1):  # from the middle on, weights wait
            if step == (rank + 1) // 2 and rank % 2 == 1:
                kind = BACKWARD_INPUT
            log.write(second, kind)
            if step == (rank + 1) // 2 and rank % 2 == 0:
                kind = BACKWARD_INPUT
            log.write(first, kind)
        for _ in range(hops):
            log.weight()
            log.write(first, kind)
        for _ in range(rank + 1):
            log.weight()
        order[rank] = log.actions
    return order


__all__ = ["Order", "dual_pipe_v", "generate_stage_to_rank_mapping", "gpipe", "interleaved", "looped_breadth_first",
           "one_forward_one_backward", "zero_bubble_v"]
