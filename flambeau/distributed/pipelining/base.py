"""What all stages of a pipeline do: passes of microbatches, and the links that tensors come and go through."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ...c10d.process_group import ProcessGroup
from ...engine.grad_mode import is_grad_enabled
from ...nn.modules.module import Module
from ...nn.parallel.distributed import DistributedDataParallel
from ...trees import tree_leaves
from ..fsdp import FSDPModule
from ..groups.queries import get_rank, get_world_size
from .backward import Gradients, WeightGradients, _describe, stage_backward, stage_backward_input
from .gradients import reduce_accumulated, scale
from .links import Link, PipeliningMetadataError, TensorMeta

__all__ = ["_PipelineStageBase"]


def _as_tuple(output: Any) -> tuple[Any, ...]:
    return tuple(output) if type(output) in (tuple, list) else (output,)


class _PipelineStageBase:
    """A stage of a pipeline.

    Args:
        submodule: the module.
        stage_index: its number.
        num_stages: how many there are, in all processes.
        device: where it computes.
        group: the processes of the pipeline; all if None.
        dw_builder: returns functions that compute gradients of weights, for modules whose backward pass leaves them.

    Raises:
        ValueError: the number is too large.
        RuntimeError: there are more processes than stages.
    """

    def __init__(self, submodule: Module, stage_index: int, num_stages: int, device: Any,
                 group: ProcessGroup | None = None,
                 dw_builder: Callable[[], Callable[..., None]] | None = None) -> None:
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group, self.dw_builder = device, group, dw_builder
        self.group_rank, self.group_size = get_rank(group), get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(f"Pipeline group size {self.group_size} cannot be larger than number of stages "
                               f"{num_stages}")
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}
        self.has_backward = False
        self.chunks: int | None = None
        self.log_prefix = f"[Stage {stage_index}]"
        #: stage that sends inputs -> the positions that they have, None for all
        self._sources: dict[int, list[int] | None] = {}
        #: stage that gets results -> their positions, None for all
        self._targets: dict[int, list[int] | None] = {}
        self.fwd_cache: dict[int, tuple[tuple[Any, ...], list[Any], int]] = {}
        self.bwd_cache: dict[int, Gradients] = {}
        self.output_chunks: list[Any] = []
        self._weights: dict[int, Any] = {}  # what computes the gradients of weights that wait
        self._links: dict[tuple[str, int], Link] = {}
        self.ready = 0.0  # when all that the last pass needed had come

    @property
    def is_first(self) -> bool:
        """Whether it is the first stage."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it is the last stage."""
        return self.stage_index == self.num_stages - 1

    # ----- links -----------------------------------------------------------------------------

    def _link(self, name: str, source: int, target: int, links: dict[tuple[str, int, int], Link]) -> Link:
        key = name, source, target
        if key not in links:  # two stages of one process share the link between them
            number = 2 * (source * self.num_stages + target) + (name == "gradients")
            links[key] = Link(name, number, source, target, self.stage_index_to_group_rank.__getitem__, self.group)
        return links[key]

    def connect(self, links: dict[tuple[str, int, int], Link], microbatches: int) -> None:
        """Begin a step.

        Args:
            links: the links of the process so far: (name, source, target) -> link.
            microbatches: the number of microbatches.
        """
        self.chunks = microbatches
        own = self.stage_index
        self._links = {("inputs", each): self._link("activations", each, own, links) for each in self._sources}
        self._links |= {("outputs", each): self._link("activations", own, each, links) for each in self._targets}
        if self.has_backward:
            self._links |= {("input gradients", each): self._link("gradients", own, each, links)
                            for each in self._sources}
            self._links |= {("output gradients", each): self._link("gradients", each, own, links)
                            for each in self._targets}

    def clear_runtime_states(self) -> None:
        """Forget the last step."""
        for cache in (self.fwd_cache, self.bwd_cache, self._weights):
            cache.clear()
        self.output_chunks.clear()

    def expect(self, microbatch: int, backward: bool) -> None:
        """Expect the inputs, or the gradients of the results, of a microbatch."""
        kind = "output gradients" if backward else "inputs"
        for (name, _), link in self._links.items():
            if name == kind:
                link.expect(microbatch)

    def _receive_inputs(self, microbatch: int) -> tuple[Tensor, ...]:
        """The inputs from other stages, in the order of the module's arguments."""
        placed: dict[int, Tensor] = {}
        for source, positions in self._sources.items():
            link = self._links["inputs", source]
            tensors = link.receive(microbatch)
            assert link.metas is not None
            for i, (tensor, meta) in enumerate(zip(tensors, link.metas, strict=True)):
                tensor.requires_grad_(meta.requires_grad and self.has_backward and is_grad_enabled())
                placed[i if positions is None else positions[i]] = tensor
            if self.has_backward and microbatch in self.fwd_cache:
                raise RuntimeError(f"{self.log_prefix} microbatch {microbatch} has passed already")
            self._begin_gradients("input gradients", source, link)
        return tuple(placed[i] for i in sorted(placed))

    def _begin_gradients(self, kind: str, other: int, link: Link) -> None:
        """The gradients of a link's tensors have their shapes."""
        if self.has_backward:
            gradients = self._links[kind, other]
            if gradients.metas is None:
                gradients.metas = tuple(TensorMeta(each.shape, each.dtype, False) for each in link.metas or ()
                                        if each.requires_grad)

    def _send_outputs(self, microbatch: int, outputs: tuple[Any, ...]) -> None:
        for target, positions in self._targets.items():
            tensors = list(outputs) if positions is None else [outputs[i] for i in positions]
            for tensor in tensors:
                if not isinstance(tensor, Tensor):
                    raise PipeliningMetadataError(
                        f"{self.log_prefix} a stage but the last returns tensors, got {type(tensor).__name__}: other "
                        "values cannot be sent")
            link = self._links["outputs", target]
            graph = is_grad_enabled() and self.has_backward
            link.send(microbatch, tensors if graph else [each.detach() for each in tensors])
            self._begin_gradients("output gradients", target, link)

    def _receive_gradients(self, microbatch: int, outputs: tuple[Any, ...]) -> list[Tensor | None]:
        """The gradient of each result: the sum of what the stages send that got it."""
        total: list[Tensor | None] = [None] * len(outputs)
        for target, positions in self._targets.items():
            sent = self._links["outputs", target].metas or ()
            which = list(positions) if positions is not None else list(range(len(sent)))
            which = [i for i, meta in zip(which, sent, strict=True) if meta.requires_grad]
            for i, gradient in zip(which, self._links["output gradients", target].receive(microbatch), strict=True):
                before = total[i]
                total[i] = gradient if before is None else before + gradient
        return total

    def _send_gradients(self, microbatch: int) -> None:
        gradients = self.bwd_cache.pop(microbatch)
        for source, positions in self._sources.items():
            sent = self._links["inputs", source].metas or ()
            which = list(positions) if positions is not None else list(range(len(sent)))
            tensors = []
            for i, meta in zip(which, sent, strict=True):
                if meta.requires_grad:
                    gradient = gradients[i]
                    tensors.append(meta.empty() if gradient is None else gradient)
            self._links["input gradients", source].send(microbatch, tensors)

    def finish(self) -> None:
        """Wait until all messages of the step have been sent."""
        for link in self._links.values():
            link.finish()

    # ----- passes ----------------------------------------------------------------------------

    def _arguments(self, received: tuple[Tensor, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
                   ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The module's arguments: what other stages sent, or the program's."""
        return (args if self.is_first else received), kwargs

    def _not_synchronized(self) -> Any:
        module = self.submod
        return module.no_sync() if isinstance(module, DistributedDataParallel) else contextlib.nullcontext()

    def forward_one_chunk(self, fwd_chunk_id: int, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None,
                          save_forward_output: bool = True) -> Any:
        """Receive a microbatch, compute its results and send them.

        Args:
            fwd_chunk_id: the microbatch.
            args: the first stage's arguments.
            kwargs: the program's keyword arguments.
            save_forward_output: whether the last stage keeps the results.

        Returns:
            The module's result.

        Raises:
            RuntimeError: the module failed.
        """
        received = self._receive_inputs(fwd_chunk_id)
        self.ready = time.perf_counter()
        arguments, keywords = self._arguments(received, args, kwargs or {})
        try:
            with self._not_synchronized():
                output = self.submod(*arguments, **keywords)
        except Exception as error:
            raise RuntimeError(f"\n            {self.log_prefix} failed to run forward:\n            args: "
                               f"{_describe(arguments)}\n            kwargs: {keywords}\n            ") from error
        outputs = _as_tuple(output)
        if self.is_last and save_forward_output:
            self.output_chunks.append(output)
        if self.has_backward:
            inputs = list(received) + [each for each in tree_leaves((arguments, keywords))
                                       if isinstance(each, Tensor) and not any(each is one for one in received)]
            self.fwd_cache[fwd_chunk_id] = outputs, inputs, len(received)
        self._send_outputs(fwd_chunk_id, outputs)
        return output

    def backward_one_chunk(self, bwd_chunk_id: int, loss: Tensor | None = None, full_backward: bool = True,
                           last_backward: bool = False) -> None:
        """Receive the gradients of a microbatch's results, compute those of its inputs and send them.

        Args:
            bwd_chunk_id: the microbatch.
            loss: its loss, of the last stage.
            full_backward: whether the gradients of weights are computed, too; else `backward_weight_one_chunk` does so.
            last_backward: whether it is the step's last pass of this stage, after which gradients are averaged over
                processes.
        """
        if not self.has_backward:
            return
        outputs, inputs, received = self.fwd_cache.pop(bwd_chunk_id)
        start: Any = outputs
        gradients: Any = None
        if self.is_last:
            start = loss
        else:
            gradients = self._receive_gradients(bwd_chunk_id, outputs)
        self.ready = time.perf_counter()
        if full_backward or self.dw_builder is not None:
            found = self._whole_backward(start, gradients, inputs, last_backward)
            if self.dw_builder is not None:
                self._weights[bwd_chunk_id] = self.dw_builder()
                if full_backward:
                    self._weights.pop(bwd_chunk_id)()
        elif isinstance(self.submod, FSDPModule):
            raise NotImplementedError(
                f"{self.log_prefix} its module is fully_shard's, whose hooks need whole backward passes: use a "
                "schedule that does not divide them, such as ScheduleInterleaved1F1B")
        elif self.is_first:  # no stage waits for its gradients
            found = (None,) * len(inputs)
            self._weights[bwd_chunk_id] = lambda: self._whole_backward(start, gradients, inputs, False)
        else:
            roots = [start] if isinstance(start, Tensor) else list(start)
            found, waiting = stage_backward_input(roots, gradients, inputs, self.submod.parameters())
            self._weights[bwd_chunk_id] = waiting
        self.bwd_cache[bwd_chunk_id] = tuple(found[:received])
        if self.is_last and not self.is_first:
            for each in outputs:  # results that the program gets hold no graph
                if isinstance(each, Tensor) and not each._is_view():
                    each.detach_()
        self._send_gradients(bwd_chunk_id)

    def _whole_backward(self, output: Any, gradients: Any, inputs: Sequence[Any], last: bool) -> Gradients:
        if isinstance(self.submod, FSDPModule):  # gradients add up whole, and are divided in the last pass
            self.submod.set_is_last_backward(last)
            self.submod.set_reshard_after_backward(last)
            self.submod.set_requires_gradient_sync(last)
        if last and isinstance(self.submod, DistributedDataParallel):
            found = [each for each in tree_leaves(output) if isinstance(each, Tensor)]
            self.submod.reducer.prepare_for_backward(found if self.submod.find_unused_parameters else [])
        return stage_backward(output, gradients, inputs)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Compute the gradients of weights of a microbatch whose `backward_one_chunk` left them.

        Args:
            bwd_chunk_id: the microbatch.
            last_backward: whether it is the step's last pass of this stage, after which gradients are averaged.

        Raises:
            AssertionError: that pass has not run.
        """
        if not self.has_backward:
            return
        if bwd_chunk_id not in self._weights:
            raise AssertionError(f"{self.log_prefix} Attempted to run backward_weight_one_chunk for chunk "
                                 f"{bwd_chunk_id} without first calling `backward_one_chunk(full_backward=False)`")
        waiting = self._weights.pop(bwd_chunk_id)
        self.ready = time.perf_counter()
        with self._not_synchronized():
            waiting.run() if isinstance(waiting, WeightGradients) else waiting()
        if last_backward and isinstance(self.submod, DistributedDataParallel):
            reduce_accumulated(self.submod)

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide the gradients of the parameters.

        Args:
            grad_scale_factor: the number of microbatches if the loss is a mean, 1 if it is a sum.
        """
        scale(self.submod.parameters(), grad_scale_factor)
