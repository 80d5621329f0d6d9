"""`Reducer`: gradients averaged over processes in buckets, while the backward pass still runs."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._tensor.tensor import Tensor, wrap
from ..engine.engine import queue_callback
from ..engine.grad_mode import no_grad
from ..engine.gradient_buckets import GradientBuckets
from ..runtime.futures import Future
from .buckets import Bucket, GradBucket, compute_bucket_assignment_by_size
from .options import AllreduceOptions, BroadcastOptions
from .pass_statistics import PassMarks, PassStatistics
from .process_group import ProcessGroup
from .reduction_errors import ready_twice, unfinished
from .sparse_reduction import sum_sparse
from .work import end

_BUCKET_BYTES = 25 << 20
FIRST_BUCKET_BYTES = 1 << 20  # small, so that the first reduction starts early


class Reducer:
    """Gradients averaged over processes in buckets, each as soon as it is complete.

    Args:
        params: the parameters.
        bucket_indices: the numbers of the parameters in each bucket, the first bucket to be ready first.
        per_bucket_size_limits: the bytes of each bucket at most.
        process_group: the processes.
        expect_sparse_gradients: which parameters get sparse gradients.
        bucket_bytes_cap: bytes of a bucket after the buckets are made anew in the order of the first backward pass.
        find_unused_parameters: whether parameters that a pass does not reach count as complete.
        gradient_as_bucket_view: whether gradients share memory with buckets.
        param_to_name_mapping: number of a parameter -> its name, for errors.
        first_bucket_bytes_cap: bytes of the first bucket.
    """

    def __init__(self, params: Sequence[Tensor], bucket_indices: Sequence[Sequence[int]],
                 per_bucket_size_limits: Sequence[int], process_group: ProcessGroup,
                 expect_sparse_gradients: Sequence[bool] = (), bucket_bytes_cap: int = _BUCKET_BYTES,
                 find_unused_parameters: bool = False, gradient_as_bucket_view: bool = False,
                 param_to_name_mapping: dict[int, str] | None = None,
                 first_bucket_bytes_cap: int = FIRST_BUCKET_BYTES) -> None:
        self.parameters = list(params)
        self.group = process_group
        self.sparse = list(expect_sparse_gradients) or [False] * len(self.parameters)
        self.caps = [first_bucket_bytes_cap, bucket_bytes_cap]
        self.find_unused, self.views = find_unused_parameters, gradient_as_bucket_view
        self.names = param_to_name_mapping or {}
        self.hook: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        self.after_pass: Callable[[], None] | None = None  # called once the averages of a pass are there
        self.static = False
        self.static_uses: list[int] | None = None  # with a static graph: how often each parameter gets a gradient
        self.uses = [0] * len(self.parameters)
        self.expects_reduction = self.records_order = False
        self.finished = True
        self.passes = 0
        self.rebuilt = False
        self.order: list[int] = []  # the parameters in the order their gradients were ready
        self.divisor = process_group.size()
        self.timeline: list[tuple[int, float, float]] = []  # of the last pass: bucket, start and end of its reduction
        self.marks, self.statistics = PassMarks(), PassStatistics()
        self.local_used = np.zeros(len(self.parameters), np.int32)
        self._make_buckets(bucket_indices)
        self._handles = []
        own = weakref.ref(self)
        for index, parameter in enumerate(self.parameters):
            self._handles.append(parameter.register_post_accumulate_grad_hook(_hook_of(own, index)))

    def _make_buckets(self, indices: Sequence[Sequence[int]]) -> None:
        self.buckets = [Bucket(each, self.parameters, any(self.sparse[i] for i in each)) for each in indices]
        self.gradient_buckets = GradientBuckets(self.parameters, indices)
        self.places = {index: (bucket, position) for bucket in self.buckets
                       for position, index in enumerate(bucket.indices)}

    # ----- before a pass ---------------------------------------------------------------------

    def prepare_for_forward(self) -> None:
        """Sample the pass before, if it is one that is sampled."""
        if self.marks.comm_end and self.statistics.wanted(self.passes):
            self._sample()
        self.marks.forward_start = time.time_ns()

    def _sample(self) -> None:
        described: dict[str, Any] = {
            "unused_parameter_size": sum(self.parameters[i].nbytes for i in self.unused),
            "prev_iteration_grad_ready_order_indices": ", ".join(map(str, self.order)),
            "num_buckets_reduced": self.next_bucket, "has_rebuilt_buckets": int(self.rebuilt)}
        if self.rebuilt:
            described["rebuilt_bucket_sizes"] = ", ".join(str(each.flat.nbytes) for each in self.buckets)
            described["rebuilt_per_bucket_param_indices"] = ", ".join(
                " ".join(map(str, each.indices)) for each in self.buckets)
        self.statistics.sample(self.marks, self.passes, **described)

    def _rebuild_buckets(self) -> bool:
        """Make the buckets anew in the order in which the first pass completed the gradients."""
        if self.rebuilt or not self.order or (self.find_unused and not self.static):
            return False
        self.rebuilt = True
        seen = list(dict.fromkeys(self.order))
        seen += [i for i in range(len(self.parameters)) if i not in set(seen)]
        order = wrap(np.array(seen, np.int32))
        options = BroadcastOptions()
        options.asyncOp = False
        end(self.group.broadcast([order], options))  # all processes reduce the same gradients at once
        seen = order._array.tolist()
        buckets, _ = compute_bucket_assignment_by_size([self.parameters[i] for i in seen], self.caps, self.sparse, seen)
        self._make_buckets(buckets)
        return True

    def prepare_for_backward(self, outputs: Tensor | Sequence[Tensor]) -> None:
        """Expect a backward pass from these results.

        Args:
            outputs: the results, whose graph says which parameters it does not reach; none if all are reached.

        Raises:
            RuntimeError: the pass before has not reached all parameters (PyTorch's text).
        """
        if not self.finished:
            self._raise_unfinished()
        self.expects_reduction = True
        self.passes += 1
        self.next_bucket = 0
        self.uses = [0] * len(self.parameters)
        self.timeline = []
        self.callback_queued = False
        self.records_order = not self.rebuilt and (self.static or not self.find_unused)
        if self.rebuilt and self.statistics.wanted(self.passes):
            self.records_order, self.order = True, []
        self.marks.compute_start = self.marks.comm_start = self.marks.comm_end = 0
        divisor = 1 if self.hook is not None else self.divisor
        for bucket in self.buckets:
            bucket.expect(divisor)
        self.unused: set[int] = set()
        if self.static and self.static_uses is not None:
            self.unused = {i for i, count in enumerate(self.static_uses) if not count}
        elif self.find_unused and (isinstance(outputs, Tensor) or outputs):
            reached = _reached_leaves([outputs] if isinstance(outputs, Tensor) else outputs)
            self.unused = {i for i, parameter in enumerate(self.parameters) if id(parameter) not in reached}
        self.early = sorted(self.unused)

    def _raise_unfinished(self) -> None:
        missing = [i for i in range(len(self.parameters)) if not self.uses[i] and i not in self.unused]
        raise RuntimeError(unfinished(self.find_unused, self.group.rank(), missing))

    # ----- during a pass ---------------------------------------------------------------------

    def _gradient_is_there(self, index: int) -> None:
        """A leaf has accumulated its gradient."""
        self.local_used[index] = 1  # also where gradients accumulate without being averaged
        if not self.expects_reduction:
            return
        if not self.callback_queued:
            self.callback_queued, self.finished = True, False
            self.marks.compute_start = time.time_ns()
            queue_callback(self._finish)
            for unused in self.early:
                self._mark_ready(unused)
        self.uses[index] += 1
        if self.static:
            if self.static_uses is None or self.uses[index] < self.static_uses[index]:
                if self.records_order:
                    self.order.append(index)
                return  # the first pass counts; later ones know which gradient is the last
        elif self.uses[index] > 1 or index in self.unused:
            raise RuntimeError(ready_twice(index, self.names.get(index)))
        elif self.records_order:
            self.order.append(index)
        self._mark_ready(index)

    def _mark_ready(self, index: int) -> None:
        bucket, position = self.places[index]
        bucket.copy_in(position, self.parameters[index]._grad)
        bucket.pending -= 1
        if not bucket.pending:
            self._start_ready_buckets()

    def _start_ready_buckets(self) -> None:
        while self.next_bucket < len(self.buckets) and not self.buckets[self.next_bucket].pending:
            self._start(self.next_bucket)
            self.next_bucket += 1

    def _start(self, number: int) -> None:
        bucket = self.buckets[number]
        bucket.started = True
        started = time.perf_counter()
        if not self.marks.comm_start:
            self.marks.comm_start = time.time_ns()
        if self.hook is not None:
            bucket.future = self._run_comm_hook(self._as_grad_bucket(number))
            if not isinstance(bucket.future, Future):
                raise RuntimeError("callback must return a torch.futures.Future object, but got "
                                   f"{type(bucket.future).__name__}")
        elif bucket.sparse:
            bucket.future = _reduce_sparse(self.group, bucket.sparse_gradient, self.divisor)
        else:
            bucket.future = self.group.allreduce([bucket.flat], AllreduceOptions()).get_future()
        timeline = self.timeline
        if isinstance(bucket.future, Future):
            bucket.future.add_done_callback(
                lambda _: timeline.append((number, started, time.perf_counter())))

    def _as_grad_bucket(self, number: int) -> GradBucket:
        bucket = self.buckets[number]
        return GradBucket(number, number == len(self.buckets) - 1,
                          bucket.sparse_gradient if bucket.sparse else bucket.flat,
                          [self.parameters[i] for i in bucket.indices], bucket.lengths)

    def _run_comm_hook(self, bucket: GradBucket) -> Any:
        assert self.hook is not None
        state, hook = self.hook
        return hook(state, bucket)

    def _get_zeros_like_grad_buckets(self) -> list[GradBucket]:
        """Buckets of zeros, for processes that have no more inputs."""
        for bucket in self.buckets:
            bucket.flat._array[...] = np.zeros((), bucket.flat._array.dtype)
        return [self._as_grad_bucket(i) for i in range(len(self.buckets))]

    # ----- at the end of a pass --------------------------------------------------------------

    def _finish(self) -> None:
        """Wait for all buckets and write the averages to the gradients."""
        if self.static and self.static_uses is None:
            self.static_uses = list(self.uses)
            for index in range(len(self.parameters)):
                self._mark_ready(index)
        if self.next_bucket < len(self.buckets):
            return  # some parameters have no gradient yet: `prepare_for_backward` reports it
        self.expects_reduction, self.finished = False, True
        self.marks.compute_end = time.time_ns()
        used, self.local_used = self.local_used, np.zeros_like(self.local_used)
        if self.find_unused or self.static:
            total = wrap(used.copy())
            options = AllreduceOptions()
            options.asyncOp = False
            end(self.group.allreduce([total], options))
            used = total._array
        counts = used.tolist()
        for bucket in self.buckets:
            assert bucket.future is not None
            value = bucket.future.wait()
            self._store(bucket, value[0] if isinstance(value, (list, tuple)) else value, counts)
        self.marks.comm_end = time.time_ns()
        if self.after_pass is not None:
            self.after_pass()

    def _store(self, bucket: Bucket, reduced: Any, used: Sequence[int]) -> None:
        with no_grad():
            if bucket.sparse:
                self.parameters[bucket.indices[0]].grad = reduced
                return
            if reduced is not bucket.flat:
                bucket.flat._array[...] = reduced.detach().to(bucket.flat.dtype)._array.reshape(-1)
            bucket.copy_out(self.parameters, used, self.views)

    # ----- options ---------------------------------------------------------------------------

    def _register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        if self.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.hook = state, hook
        for bucket in self.buckets:
            bucket.expect(1)  # the hook divides

    def _set_static_graph(self) -> None:
        self.static = True

    def _remove_autograd_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _check_reducer_finalized(self) -> None:
        if not self.finished:
            self._raise_unfinished()


def _hook_of(reducer: weakref.ref[Reducer], index: int) -> Callable[[Tensor], None]:
    def hook(parameter: Tensor) -> None:
        found = reducer()
        if found is not None:
            found._gradient_is_there(index)

    return hook


def _reached_leaves(outputs: Sequence[Tensor]) -> set[int]:
    """The identities of the leaves from which tensors were computed."""
    found: set[int] = set()
    seen: set[int] = set()
    stack: list[Any] = []
    for output in outputs:
        if output.grad_fn is not None:
            stack.append(output.grad_fn)
        elif output.requires_grad:
            found.add(id(output))
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        stack.extend(each for each, _ in node.next_functions if each is not None)
    return found


def _reduce_sparse(group: ProcessGroup, gradient: Any, divisor: int) -> Future[Any]:
    """The average of sparse gradients: indices and values of all processes, coalesced."""
    future: Future[Any] = Future()
    with no_grad():
        future.set_result(sum_sparse(group, gradient) / divisor)
    return future


__all__ = ["FIRST_BUCKET_BYTES", "Reducer"]
