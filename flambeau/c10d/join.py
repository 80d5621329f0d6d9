"""`Join`: processes with fewer inputs than others take part in the collectives of those, until all have ended."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any

import numpy as np

from .._tensor.tensor import wrap
from .options import AllreduceOptions
from .process_group import ProcessGroup
from .work import Work

_MANY = 1000  # iterations after which a process that waits for the others warns

__all__ = ["Join", "JoinHook", "Joinable"]


def _sum_over(group: ProcessGroup, value: int, async_op: bool = False) -> Work:
    options = AllreduceOptions()
    options.asyncOp = async_op
    return group.allreduce([wrap(np.array([value], np.float32))], options)


def total_over(group: ProcessGroup, value: int) -> int:
    """The sum of a number over all processes."""
    return int(_sum_over(group, value).result()[0].item())


class JoinHook:
    """What a process without inputs does for one `Joinable`."""

    def main_hook(self) -> None:
        """Take part in the collectives of one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Run once all processes have joined.

        Args:
            is_last_joiner: whether this process was one of the last.
        """


class _JoinConfig:
    def __init__(self, enable: bool = False, throw_on_early_termination: bool = False,
                 is_first_joinable: bool = False) -> None:
        self.enable, self.throw_on_early_termination = enable, throw_on_early_termination
        self.is_first_joinable = is_first_joinable


class Joinable(ABC):
    """An object whose iterations have collectives."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process without inputs does for this object."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of its collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes of its collectives."""


class Join:
    """A block in which processes may have different numbers of inputs.

    Args:
        joinables: the objects whose collectives processes without inputs take part in; they notify the block once an
            iteration.
        enable: whether the block does anything.
        throw_on_early_termination: whether all processes raise as soon as one has no more inputs.
        kwargs: arguments of the objects' `join_hook`.

    Raises:
        ValueError: there are no objects, or they are in different groups.
        RuntimeError: with `throw_on_early_termination`, a process has no more inputs (PyTorch's text).
    """

    def __init__(self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False,
                 **kwargs: Any) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [each.join_hook(**kwargs) for each in joinables]
        self._enable, self._throw_on_early_termination = enable, throw_on_early_termination
        for i, each in enumerate(joinables):
            each._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)
        groups = [each.join_process_group for each in joinables]
        if any(each is not groups[0] for each in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._process_group: ProcessGroup = groups[0]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if not self._enable or kind:
            return
        last, iterations = True, 0
        while True:
            if iterations == _MANY:
                warnings.warn(f"Detected uneven input skew of greater than {_MANY}. This means that rank "
                              f"{self._process_group.rank()} has at least {_MANY} fewer inputs than other "
                              "currently-active ranks. This level of skew could lead to performance degradation during "
                              "training.", stacklevel=2)
            if not total_over(self._process_group, 0):
                break
            if self._throw_on_early_termination:
                _sum_over(self._process_group, 1)
                raise RuntimeError(f"Rank {self._process_group.rank()} exhausted all inputs.")
            last = False
            for hook in self._join_hooks:
                hook.main_hook()
            iterations += 1
        for hook in self._join_hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell the others that this process has an input; objects call it before an iteration's collectives.

        Args:
            joinable: the object.

        Returns:
            The work that counts the processes that have inputs; None outside of a block.
        """
        config = getattr(joinable, "_join_config", None)
        if config is None:
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        if not config.is_first_joinable or not config.enable:
            return None
        group = joinable.join_process_group
        work = _sum_over(group, 1, async_op=True)
        if config.throw_on_early_termination and total_over(group, 0):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
