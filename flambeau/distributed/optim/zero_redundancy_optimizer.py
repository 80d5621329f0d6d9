"""`ZeroRedundancyOptimizer`: each process keeps the optimizer's state of a part of the parameters (ZeRO, stage 1)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from ..._tensor import Tensor
from ...c10d.buckets import broadcast_coalesced
from ...c10d.join import Join, Joinable, JoinHook
from ...c10d.world import default_group
from ...devices import device
from ...engine.grad_mode import no_grad
from ...optim.optimizer import Optimizer
from ..groups.queries import get_global_rank, get_rank
from ..object_collectives import gather_object

__all__ = ["ZeroRedundancyOptimizer"]

_BROADCAST_BYTES = 250 << 20


class _ZeroJoinHook(JoinHook):
    """What a process without inputs does: it steps, so that it sends its part of the parameters."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is divided between processes: each steps its parameters and sends them to the others.

    Args:
        params: all parameters, or groups of them, as for the optimizer itself.
        optimizer_class: the optimizer.
        process_group: the processes; all if None.
        parameters_as_bucket_view: without effect on results.
        overlap_with_ddp: refused.
        defaults: arguments of the optimizer.

    Raises:
        NotImplementedError: `overlap_with_ddp`.
        ValueError: a parameter is sparse, or two have different types (PyTorch's texts).

    >>> import flambeau as torch
    >>> from flambeau.distributed.optim import ZeroRedundancyOptimizer
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> optimizer = ZeroRedundancyOptimizer([x], torch.optim.SGD, lr=0.5)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 0.5000], requires_grad=True)
    >>> dist.destroy_process_group()
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("overlap_with_ddp needs an optimizer that steps inside a communication hook")
        self.process_group = default_group() if process_group is None else process_group
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.global_rank = get_rank()
        self._optim_class, self._optim_defaults = optimizer_class, defaults
        self._ready = False
        self._states: list[Any] = []
        self._owner: dict[int, int] = {}
        self._sizes = [0] * self.world_size
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self._ready = True
        self._check_types()
        self._divide(self.param_groups)
        self.optim = optimizer_class(self._own(), **defaults)
        self._sync_options(self.optim.param_groups, self.param_groups)

    def _check_types(self) -> None:
        text = "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got "
        kinds = {parameter.type(): parameter for group in self.param_groups for parameter in group["params"]}
        for kind, parameter in kinds.items():
            if parameter.is_sparse:
                raise ValueError(text + kind)
        if len(kinds) > 1:
            raise ValueError(text + "both " + " and ".join(list(kinds)[:2]))

    # ----- parts -----------------------------------------------------------------------------

    def _divide(self, groups: Iterable[dict[str, Any]]) -> None:
        """Give each parameter, the largest first, to the process that has the fewest elements."""
        for group in groups:
            for parameter in sorted(group["params"], key=lambda each: -each.numel()):
                rank = self._sizes.index(min(self._sizes))
                self._owner[id(parameter)] = rank
                self._sizes[rank] += parameter.numel()

    def _own(self, rank: int | None = None) -> list[dict[str, Any]]:
        """The groups with the parameters of one process alone."""
        wanted = self.rank if rank is None else rank
        return [{**group, "params": [each for each in group["params"] if self._owner[id(each)] == wanted]}
                for group in self.param_groups]

    def _partition_parameters(self) -> list[list[dict[str, Any]]]:
        return [self._own(rank) for rank in range(self.world_size)]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters.

        Args:
            param_group: the parameters, and options of their own.
        """
        super().add_param_group(param_group)
        if self._ready:
            self._divide(self.param_groups[-1:])
            self.optim.add_param_group(self._own()[-1])

    @staticmethod
    def _sync_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        for of, to in zip(source, target, strict=True):
            to.update({name: value for name, value in of.items() if name != "params"})

    # ----- steps -----------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step this process's parameters, and copy those of the others.

        Args:
            closure: computes the loss again.
            kwargs: arguments of the optimizer's `step`.
        """
        Join.notify_join_context(self)
        self._sync_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._sync_options(self.optim.param_groups, self.param_groups)
        with no_grad():
            for rank in range(self.world_size):
                tensors: list[Tensor] = [each for group in self._own(rank) for each in group["params"]]
                if tensors:
                    broadcast_coalesced(self.process_group, tensors, _BROADCAST_BYTES, rank)
        return loss

    # ----- state -----------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state at one process; all processes call this.

        Args:
            to: that process's rank in the group.
        """
        self._sync_options(self.param_groups, self.optim.param_groups)
        gathered: list[Any] = [None] * self.world_size
        gather_object(self.optim.state_dict(), gathered if self.rank == to else None,
                      get_global_rank(self.process_group, to), self.process_group)
        self._states = gathered if self.rank == to else []

    def state_dict(self) -> dict[str, Any]:
        """The whole state, in the form of the optimizer itself.

        Raises:
            RuntimeError: it was not gathered at this process (PyTorch's text).
        """
        if not self._states:
            raise RuntimeError("Optimizer state has not been consolidated on this rank. Please call "
                               f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to "
                               f"save the "
                               "global state.")
        whole = super().state_dict()
        numbers = {id(each): number for group, packed in zip(self.param_groups, whole["param_groups"], strict=True)
                   for each, number in zip(group["params"], packed["params"], strict=True)}
        whole["state"] = {}
        for rank, local in enumerate(self._states):
            for group, packed in zip(self._own(rank), local["param_groups"], strict=True):
                for each, number in zip(group["params"], packed["params"], strict=True):
                    if number in local["state"]:
                        whole["state"][numbers[id(each)]] = local["state"][number]
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this process's part of a whole state.

        Args:
            state_dict: the whole state.
        """
        self._states = []
        packed_groups = state_dict["param_groups"]
        numbers = {id(each): number for group, packed in zip(self.param_groups, packed_groups, strict=True)
                   for each, number in zip(group["params"], packed["params"], strict=True)}
        local = self.optim.state_dict()
        state = {}
        for group, packed in zip(self._own(), local["param_groups"], strict=True):
            for each, number in zip(group["params"], packed["params"], strict=True):
                if numbers[id(each)] in state_dict["state"]:
                    state[number] = copy.deepcopy(state_dict["state"][numbers[id(each)]])
        self._sync_options(packed_groups, local["param_groups"])
        self.optim.load_state_dict({"state": state, "param_groups": local["param_groups"]})
        self._sync_options(self.optim.param_groups, self.param_groups)

    # ----- uneven inputs ---------------------------------------------------------------------

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process without inputs does."""
        return _ZeroJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group
