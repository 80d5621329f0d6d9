"""`Reducer`: gradients averaged over processes in buckets, while the backward pass still runs."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor.sparse.constructors import sparse_coo_tensor
from .._tensor.tensor import Tensor, wrap
from ..backends.sparse_array import SparseArray
from ..engine.engine import queue_callback
from ..engine.grad_mode import no_grad
from ..engine.gradient_buckets import GradientBuckets
from ..runtime.futures import Future
from .memory import array_of
from .options import AllreduceOptions, BroadcastOptions
from .process_group import ProcessGroup
from .work import end

_BUCKET_BYTES = 25 << 20
FIRST_BUCKET_BYTES = 1 << 20  # small, so that the first reduction starts early


class GradBucket:
    """Gradients that are averaged at once: what a communication hook gets.

    Args:
        index: the bucket's number; 0 is the first that is ready.
        last: whether it is the last of the pass.
        flat: its gradients, one after another.
        parameters: the parameters that they belong to.
        lengths: their numbers of elements.
    """

    def __init__(self, index: int, last: bool, flat: Tensor, parameters: Sequence[Tensor],
                 lengths: Sequence[int]) -> None:
        self._index, self._last, self._flat = index, last, flat
        self._parameters, self._lengths = list(parameters), list(lengths)

    def index(self) -> int:
        """The bucket's number."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last bucket of the pass."""
        return self._last

    def buffer(self) -> Tensor:
        """All gradients, one after another, in a tensor of one dimension."""
        return self._flat

    def set_buffer(self, tensor: Tensor) -> None:
        """Replace the gradients.

        Args:
            tensor: as many elements.
        """
        self._flat = tensor

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return self._parameters

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer."""
        starts = np.cumsum([0, *self._lengths])
        with no_grad():
            return [self._flat[int(starts[i]):int(starts[i]) + length].view(parameter.shape)
                    for i, (parameter, length) in enumerate(zip(self._parameters, self._lengths, strict=True))]


class _Bucket:
    """Gradients of one dtype that are averaged at once; a sparse one is alone."""

    def __init__(self, indices: Sequence[int], parameters: Sequence[Tensor], sparse: bool) -> None:
        self.indices, self.sparse = list(indices), sparse
        members = [parameters[i] for i in indices]
        if any(each.dtype != members[0].dtype for each in members):
            raise RuntimeError("All parameters in a bucket must have the same dtype.")
        self.lengths = [each.numel() for each in members]
        self.offsets = np.cumsum([0, *self.lengths]).tolist()
        self.flat = wrap(np.zeros(0 if sparse else self.offsets[-1], members[0]._array.dtype))
        self.parts = [] if sparse else [  # of each gradient
            self.flat._array[start:start + each.numel()].reshape(each._array.shape)
            for start, each in zip(self.offsets, members, strict=False)]
        self.scales: dict[int, np.ndarray] = {}  # by number of processes, what gradients are multiplied by
        self.pending = len(self.indices)
        self.started = False
        self.future: Future[Any] | None = None
        self.sparse_gradient: Any = None


def compute_bucket_assignment_by_size(tensors: Sequence[Tensor], bucket_size_limits: Sequence[int],
                                      expect_sparse_gradient: Sequence[bool] = (),
                                      tensor_indices: Sequence[int] = ()) -> tuple[list[list[int]], list[int]]:
    """Divide tensors into buckets of one dtype each, in their order.

    Args:
        tensors: the tensors.
        bucket_size_limits: bytes of the first bucket of a dtype, of the second, ...; the last value holds for the
        others. expect_sparse_gradient: which tensors get a bucket of their own.
        tensor_indices: the numbers of the tensors; their positions if empty.

    Returns:
        The numbers in each bucket, and the limit that each bucket had.
    """
    buckets: list[list[int]] = []
    limits: list[int] = []
    open_buckets: dict[Any, tuple[list[int], int, int]] = {}
    for position, tensor in enumerate(tensors):
        number = tensor_indices[position] if tensor_indices else position
        if expect_sparse_gradient and expect_sparse_gradient[number]:
            buckets.append([number])
            limits.append(0)
            continue
        members, size, which = open_buckets.get(tensor.dtype, ([], 0, 0))
        limit = bucket_size_limits[min(which, len(bucket_size_limits) - 1)]
        members, size = [*members, number], size + tensor.numel() * tensor.element_size()
        if size >= limit:
            buckets.append(members)
            limits.append(limit)
            members, size, which = [], 0, which + 1
        open_buckets[tensor.dtype] = members, size, which
    for members, _, which in open_buckets.values():
        if members:
            buckets.append(members)
            limits.append(bucket_size_limits[min(which, len(bucket_size_limits) - 1)])
    if not tensor_indices:
        order = sorted(range(len(buckets)), key=lambda i: min(buckets[i]))
        buckets, limits = [buckets[i] for i in order], [limits[i] for i in order]
    return buckets, limits


def broadcast_coalesced(process_group: ProcessGroup, tensors: Sequence[Tensor], buffer_size: int = 250 << 20,
                        src: int = 0) -> None:
    """Copy tensors from one process to all, in buffers of one dtype."""
    with no_grad():
        buckets, _ = compute_bucket_assignment_by_size(tensors, [buffer_size])
        for bucket in buckets:
            flat = wrap(np.concatenate([np.ascontiguousarray(tensors[i].detach()._array).reshape(-1) for i in bucket]))
            options = BroadcastOptions()
            options.rootRank, options.asyncOp = src, False
            end(process_group.broadcast([flat], options))
            if process_group.rank() != src:
                start = 0
                for i in bucket:
                    count = tensors[i].numel()
                    tensors[i].detach().copy_(flat[start:start + count].view(tensors[i].shape))
                    start += count


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
        self.expects_reduction = False
        self.finished = True
        self.passes = 0
        self.rebuilt = False
        self.order: list[int] = []  # the parameters in the order their gradients were ready
        self.divisor = process_group.size()
        self.timeline: list[tuple[int, float, float]] = []  # of the last pass: bucket, start and end of its reduction
        self.local_used = np.zeros(len(self.parameters), np.int32)
        self._make_buckets(bucket_indices)
        self._handles = []
        own = weakref.ref(self)
        for index, parameter in enumerate(self.parameters):
            self._handles.append(parameter.register_post_accumulate_grad_hook(_hook_of(own, index)))

    def _make_buckets(self, indices: Sequence[Sequence[int]]) -> None:
        self.buckets = [_Bucket(each, self.parameters, any(self.sparse[i] for i in each)) for each in indices]
        self.gradient_buckets = GradientBuckets(self.parameters, indices)
        self.place = {index: (b, position) for b, bucket in enumerate(self.buckets)
                      for position, index in enumerate(bucket.indices)}

    # ----- before a pass ---------------------------------------------------------------------

    def prepare_for_forward(self) -> None:
        """Check that the last backward pass has ended.

        Raises:
            RuntimeError: some parameters got no gradient in it (PyTorch's text).
        """

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
        for bucket in self.buckets:
            bucket.pending, bucket.started = len(bucket.indices), False
            bucket.future = bucket.sparse_gradient = None
        self.unused: set[int] = set()
        if self.static and self.static_uses is not None:
            self.unused = {i for i, count in enumerate(self.static_uses) if not count}
        elif self.find_unused and (isinstance(outputs, Tensor) or outputs):
            reached = _reached_leaves([outputs] if isinstance(outputs, Tensor) else outputs)
            self.unused = {i for i, parameter in enumerate(self.parameters) if id(parameter) not in reached}
        self.early = sorted(self.unused)

    def _raise_unfinished(self) -> None:
        missing = [i for i in range(len(self.parameters)) if not self.uses[i] and i not in self.unused]
        text = ("Expected to have finished reduction in the prior iteration before starting a new one. This error "
                "indicates "
                "that your module has parameters that were not used in producing loss. ")
        if self.find_unused:
            text += ("Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` "
                     "outputs "
                     "participate in computing loss. You can fix this by making sure all `forward` function outputs "
                     "participate in calculating loss. ")
        else:
            text += ("You can enable unused parameter detection by passing the keyword argument "
                     "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking "
                     "sure "
                     "all `forward` function outputs participate in calculating loss. ")
        text += ("\nIf you already have done the above, then the distributed data parallel module wasn't able to "
                 "locate the "
                 "output tensors in the return value of your module's `forward` function. Please include the loss "
                 "function "
                 "and the structure of the return value of `forward` of your module when reporting this issue (e.g. "
                 "list, "
                 "dict, iterable).")
        if missing:
            text += (f"\nParameter indices which did not receive grad for rank {self.group.rank()}: "
                     f"{' '.join(map(str, missing))}\n In addition, you can set the environment variable "
                     "TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out information about which particular "
                     "parameters did not receive gradient on this rank as part of this error")
        raise RuntimeError(text)

    # ----- during a pass ---------------------------------------------------------------------

    def _gradient_is_there(self, index: int) -> None:
        """A leaf has accumulated its gradient."""
        self.local_used[index] = 1  # also where gradients accumulate without being averaged
        if not self.expects_reduction:
            return
        if not self.callback_queued:
            self.callback_queued, self.finished = True, False
            queue_callback(self._finish)
            for unused in self.early:
                self._mark_ready(unused)
        self.uses[index] += 1
        if self.static:
            if self.static_uses is None or self.uses[index] < self.static_uses[index]:
                self.order.append(index)
                return  # the first pass counts; later ones know which gradient is the last
        elif self.uses[index] > 1 or index in self.unused:
            name = self.names.get(index)
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the following reasons: "
                "1) Use "
                "of a module parameter outside the `forward` function. Please make sure model parameters are not "
                "shared "
                "across multiple concurrent forward-backward passes. or try to use _set_static_graph() as a "
                "workaround if "
                "this module graph does not change during training loop.2) Reused parameters in multiple reentrant "
                "backward passes. For example, if you use multiple `checkpoint` functions to wrap the same part of "
                "your "
                "model, it would result in the same set of parameters been used by different reentrant backward passes "
                "multiple times, and hence marking a variable ready multiple times. DDP does not support such use "
                "cases in "
                "default. You can try to use _set_static_graph() as a workaround if your module graph does not change "
                "over "
                f"iterations.\nParameter at index {index}{f' with name {name}' if name else ''} has been marked as "
                f"ready "
                "twice. This means that multiple autograd engine  hooks have fired for this particular parameter "
                "during "
                "this iteration. You can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or "
                "DETAIL to "
                "print parameter names for further debugging.")
        self.order.append(index)
        self._mark_ready(index)

    def _mark_ready(self, index: int) -> None:
        number, position = self.place[index]
        bucket = self.buckets[number]
        self._copy_in(bucket, index, position)
        bucket.pending -= 1
        if not bucket.pending:
            self._start_ready_buckets()

    def _copy_in(self, bucket: _Bucket, index: int, position: int) -> None:
        gradient = self.parameters[index]._grad
        if bucket.sparse:
            bucket.sparse_gradient = gradient
            return
        part = bucket.parts[position]
        factor = 1 if self.hook is not None else self.divisor
        if gradient is None:
            part[...] = np.zeros((), part.dtype)
            return
        if isinstance(gradient._array, SparseArray):
            gradient = gradient.to_dense()
        source = array_of(gradient)
        if part.dtype in (dtypes.BFLOAT16, dtypes.HALF):
            part[...] = source if factor == 1 else dtypes.cast(
                dtypes.widen(source) * np.float32(1 / factor), part.dtype)
        elif factor == 1 or part.dtype.kind == "V":
            part[...] = source
        else:
            scale = bucket.scales.get(factor)
            if scale is None:
                scale = bucket.scales[factor] = np.asarray(1 / factor, part.real.dtype)
            np.multiply(source, scale, out=part)

    def _start_ready_buckets(self) -> None:
        while self.next_bucket < len(self.buckets) and not self.buckets[self.next_bucket].pending:
            self._start(self.next_bucket)
            self.next_bucket += 1

    def _start(self, number: int) -> None:
        bucket = self.buckets[number]
        bucket.started = True
        started = time.perf_counter()
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
        used, self.local_used = self.local_used, np.zeros_like(self.local_used)
        if self.find_unused or self.static:
            total = wrap(used.copy())
            options = AllreduceOptions()
            options.asyncOp = False
            end(self.group.allreduce([total], options))
            used = total._array
        for bucket in self.buckets:
            assert bucket.future is not None
            value = bucket.future.wait()
            self._store(bucket, value[0] if isinstance(value, (list, tuple)) else value, used)
        if self.after_pass is not None:
            self.after_pass()

    def _store(self, bucket: _Bucket, reduced: Any, used: np.ndarray) -> None:
        with no_grad():
            if bucket.sparse:
                self.parameters[bucket.indices[0]].grad = reduced
                return
            if reduced is not bucket.flat:
                bucket.flat._array[...] = reduced.detach().to(bucket.flat.dtype)._array.reshape(-1)
            for position, index in enumerate(bucket.indices):
                if not used[index]:
                    continue  # no process has used it: its gradient stays as it is
                parameter, value = self.parameters[index], bucket.parts[position]
                gradient = parameter._grad
                if self.views:
                    if gradient is None or gradient._array is not value:
                        parameter.grad = wrap(value)
                elif gradient is None or not isinstance(gradient._array, np.ndarray):
                    parameter.grad = wrap(value.copy())
                else:
                    gradient._array[...] = value
                    gradient._bump_version()

    # ----- options ---------------------------------------------------------------------------

    def _register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        if self.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.hook = state, hook

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


def sum_sparse(group: ProcessGroup, tensor: Any) -> Tensor:
    """The sum of sparse tensors over all processes.

    Args:
        group: the processes.
        tensor: a sparse tensor, of the same shape in all.
    """
    own = tensor.coalesce()
    indices, values = own.indices(), own.values()
    counts = [wrap(np.zeros(1, np.int64)) for _ in range(group.size())]
    group.allgather([counts], [wrap(np.array([values.shape[0]], np.int64))]).wait()
    longest = max(int(each.item()) for each in counts)

    def gathered(rows: Any) -> list[Any]:
        padded = wrap(np.zeros((longest, *rows.shape[1:]), rows._array.dtype))
        padded._array[:rows.shape[0]] = rows._array
        received = [wrap(np.zeros_like(padded._array)) for _ in counts]
        group.allgather([received], [padded]).wait()
        return [each._array[:int(count.item())] for each, count in zip(received, counts, strict=True)]

    all_indices = np.concatenate(gathered(wrap(np.ascontiguousarray(indices._array.T))))
    all_values = np.concatenate(gathered(values.contiguous()))
    out: Tensor = sparse_coo_tensor(wrap(np.ascontiguousarray(all_indices.T)), wrap(all_values),
                                    tensor.shape).coalesce()
    return out


__all__ = ["FIRST_BUCKET_BYTES", "GradBucket", "Reducer", "broadcast_coalesced", "compute_bucket_assignment_by_size",
           "sum_sparse"]
