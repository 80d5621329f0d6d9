"""A communication hook that averages gradients over all processes at first, over a few of them later."""

from __future__ import annotations

from typing import Any

from ....c10d.buckets import GradBucket
from ....c10d.process_group import ProcessGroup
from ....runtime.futures import Future
from ...groups.making import new_subgroups
from .default_hooks import _allreduce_fut

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The state of `post_localSGD_hook`.

    Args:
        process_group: the processes of the first steps; all if None.
        subgroup: those of the later steps; those of this machine if None.
        start_localSGD_iter: the number of first steps.
        post_local_gradient_allreduce: whether gradients are averaged at all in later steps.
    """

    __slots__ = ("iter", "post_local_gradient_allreduce", "process_group", "start_localSGD_iter", "subgroup")

    def __init__(self, process_group: ProcessGroup | None, subgroup: ProcessGroup | None, start_localSGD_iter: int,
                 post_local_gradient_allreduce: bool = True) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step at its last bucket.

        Args:
            bucket: a bucket.
        """
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Any]:
    """Average gradients over all processes in the first steps, over a subgroup in later ones.

    A `PeriodicModelAverager` averages the parameters after the optimizer's steps.

    Args:
        state: the groups, and the number of first steps.
        bucket: the gradients.
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        future: Future[Any] = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return _allreduce_fut(state.subgroup, bucket.buffer())
