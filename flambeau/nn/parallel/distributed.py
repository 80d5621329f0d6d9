"""`DistributedDataParallel`: one model in several processes, whose gradients are averaged over their inputs."""

from __future__ import annotations

import contextlib
import copy
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from ... import trees
from ..._tensor.tensor import Tensor, wrap
from ...c10d.buckets import GradBucket, broadcast_coalesced, compute_bucket_assignment_by_size
from ...c10d.join import Join, Joinable, JoinHook, total_over
from ...c10d.options import AllgatherOptions, AllreduceOptions
from ...c10d.reduce_op import ReduceOp
from ...c10d.reducer import Reducer
from ...c10d.work import end
from ...c10d.world import default_group
from ...devices import device
from ...engine.grad_mode import is_grad_enabled, no_grad
from ...engine.gradient_buckets import current_buckets
from ...engine.profiler_events import USER, record_span
from ...modes import active_tracer, special
from ...runtime.futures import Future
from ..modules.module import Module
from ..parameter import UninitializedParameter
from .local_parameters import localize_parameters
from .logging_data import logging_data

__all__ = ["DistributedDataParallel"]

_BROADCAST_BYTES = 250 << 20
_MIB = 1 << 20


class _DDPJoinHook(JoinHook):
    """The collectives of a process that has no more inputs."""

    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        assert isinstance(ddp, DistributedDataParallel), (
            f"DDP join hook requires passing in a DistributedDataParallel instance as the state, got "
            f"{type(ddp).__name__}")
        ddp._divide_by_initial_world_size = divide_by_initial_world_size
        self.ddp = ddp

    def main_hook(self) -> None:
        ddp = self.ddp
        reducer = ddp.reducer
        if not reducer.order:
            reducer.order = list(range(len(reducer.parameters)))
        reducer._rebuild_buckets()
        ddp._sync_buffers_where_some_join()
        sync = bool(total_over(ddp.process_group, 0))
        ddp.require_forward_param_sync = sync
        if not sync:
            return
        for bucket in reducer._get_zeros_like_grad_buckets():
            if reducer.hook is not None:
                reducer._run_comm_hook(bucket).wait()
            else:
                ddp.process_group.allreduce([bucket.buffer()], AllreduceOptions()).wait()
        if reducer.find_unused or reducer.static:
            ddp.process_group.allreduce([wrap(np.zeros(len(reducer.parameters), np.int32))]).wait()

    def post_hook(self, is_last_joiner: bool) -> None:
        self.ddp._sync_final_model(is_last_joiner)


class DistributedDataParallel(Module, Joinable):
    """Data parallelism over processes: each runs the same model on its own inputs, and gradients are averaged.

    Parameters and buffers are copied from the first process when it is made. Gradients are averaged in buckets; the
    average of a bucket starts as soon as its gradients are complete, while the backward pass goes on.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html

    Args:
        module: the module whose gradients are averaged over processes.
        device_ids: None, on a CPU.
        output_device: None, on a CPU.
        dim: the batch dimension; without effect.
        broadcast_buffers: whether buffers are copied from the first process before each forward.
        init_sync: whether parameters are copied from the first process at the start.
        process_group: the processes; all if None.
        bucket_cap_mb: MiB of gradients that are averaged at once, 25 if None.
        find_unused_parameters: whether parameters may get no gradient.
        check_reduction: deprecated, without effect.
        gradient_as_bucket_view: whether gradients share memory with buckets.
        static_graph: whether the graph is the same in each iteration.
        delay_all_reduce_named_params: refused.
        param_to_hook_all_reduce: refused.
        mixed_precision: refused.
        device_mesh: the processes, as a mesh of one dimension.
        skip_all_reduce_unused_params: whether to average gradients that no process has: without effect on results.
        bucket_cap_mb_list: MiB of each bucket.
        batched_grad_copy: without effect.
        forward_sync_buffers: the later name of `broadcast_buffers`.

    Raises:
        ValueError: there is no process group.
        RuntimeError: no parameter requires a gradient, or processes have different parameters (PyTorch's texts).

    >>> import flambeau as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    _active_ddp_module: Any = None
    _has_started = False
    _error = ""  # what the checks of arguments raised

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False,
                 delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
                 mixed_precision: Any = None, device_mesh: Any = None, skip_all_reduce_unused_params: bool = False,
                 bucket_cap_mb_list: list[int] | None = None, batched_grad_copy: bool = False,
                 forward_sync_buffers: bool | None = None) -> None:
        super().__init__()
        Joinable.__init__(self)
        if any(each is not None for each in (mixed_precision, delay_all_reduce_named_params, param_to_hook_all_reduce)):
            raise NotImplementedError("mixed_precision, delay_all_reduce_named_params and param_to_hook_all_reduce "
                                      "are for "
                                      "accelerators")
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            if device_mesh.ndim != 1:
                raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
            process_group = device_mesh.get_group(mesh_dim=0)
            if device_mesh is not device_mesh._get_root_mesh():  # tensor parallelism over its other dimensions
                localize_parameters(module)
        self.process_group = default_group() if process_group is None else process_group
        self.device_mesh = device_mesh
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore = ignored
        self._module_parameters = [p for name, p in module.named_parameters() if name not in ignored]
        if not any(p.requires_grad for p in self._module_parameters):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that "
                               "requires a gradient.")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if device_ids or output_device is not None:
            places = {p.device for p in self._module_parameters}
            raise ValueError("DistributedDataParallel device_ids and output_device arguments only work with "
                             "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                             f"{device_ids}, output_device {output_device}, and module parameters {places}.")
        if any(isinstance(p, UninitializedParameter) for p in self._module_parameters):
            raise RuntimeError("Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
                               "Run a dummy forward pass to correctly initialize the modules")
        self.device_ids, self.output_device, self.dim = None, None, dim
        self.is_multi_device_module = False
        self.device_type = "cpu"
        self.device = device("cpu")
        self.module = module
        sync = broadcast_buffers if forward_sync_buffers is None else forward_sync_buffers
        self.forward_sync_buffers = True if sync is None else sync
        self.find_unused_parameters, self.static_graph = find_unused_parameters, False
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MIB)
        self._bucket_limits = ([int(each * _MIB) for each in bucket_cap_mb_list] if bucket_cap_mb_list else
                               [_MIB, self.bucket_bytes_cap] if bucket_cap_mb is None else
                               [min(_MIB, self.bucket_bytes_cap), self.bucket_bytes_cap])
        self.broadcast_bucket_size = _BROADCAST_BYTES
        self._divide_by_initial_world_size = True
        self._comm_hooks: list[tuple[Any, Any]] = []
        self._buffer_hook: tuple[Any, Any] | None = None
        if init_sync:
            self._verify_shapes()
            self._sync_module_states()
        self._make_reducer()
        if static_graph:
            self._set_static_graph()

    @property
    def broadcast_buffers(self) -> bool:
        """Whether buffers are copied from the first process before each forward."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    # ----- making ----------------------------------------------------------------------------

    def _reduced(self) -> tuple[list[Tensor], list[bool], dict[int, str]]:
        """The parameters that get gradients, whether those are sparse, and their names."""
        parameters: dict[int, Tensor] = {}
        sparse, names = [], {}
        for prefix, module in self.module.named_modules():
            for name, parameter in module.named_parameters(recurse=False):
                full = f"{prefix}.{name}" if prefix else name
                wanted = parameter.requires_grad and full not in self.parameters_to_ignore
                if wanted and id(parameter) not in parameters:
                    names[len(parameters)] = full
                    parameters[id(parameter)] = parameter
                    sparse.append(bool(getattr(module, "sparse", False)) and hasattr(module, "embedding_dim"))
        return list(parameters.values()), sparse, names

    def _make_reducer(self) -> None:
        parameters, sparse, names = self._reduced()
        buckets, limits = compute_bucket_assignment_by_size(parameters, self._bucket_limits, sparse)
        self.reducer = Reducer(parameters, buckets[::-1], limits[::-1], self.process_group, sparse,
                               self.bucket_bytes_cap,
                               self.find_unused_parameters, self.gradient_as_bucket_view, names, self._bucket_limits[0])
        self._bucket_sizes = ", ".join(str(each.flat.nbytes) for each in self.reducer.buckets)

    def _verify_shapes(self) -> None:
        """Check that all processes have parameters of the same shapes."""
        shapes = [tuple(p.shape) for p in self._module_parameters if p.requires_grad]
        own = np.array([len(shapes), *(n for shape in shapes for n in (len(shape), *shape))], np.int64)
        count = wrap(np.array([own.size], np.int64))
        group = self.process_group
        counts = [wrap(np.zeros(1, np.int64)) for _ in range(group.size())]
        options = AllgatherOptions()
        options.asyncOp = False
        end(group.allgather([counts], [count], options))
        padded = np.full(max(int(each.item()) for each in counts), -1, np.int64)
        padded[:own.size] = own
        received = [wrap(np.zeros_like(padded)) for _ in counts]
        end(group.allgather([received], [wrap(padded)], options))
        for rank, each in enumerate(received):
            theirs = each._array
            if np.array_equal(theirs, padded):
                continue
            if theirs[0] != padded[0]:
                raise RuntimeError(f"DDP expects same model across all ranks, but Rank {group.rank()} has {padded[0]} "
                                   f"params, while rank {rank} has inconsistent {theirs[0]} params.")
            raise RuntimeError(self._differing_shape(theirs, padded, rank, shapes))

    def _differing_shape(self, theirs: np.ndarray, own: np.ndarray, rank: int, shapes: list[tuple[int, ...]]) -> str:
        position = 1
        for index, shape in enumerate(shapes):
            length = 1 + len(shape)
            if not np.array_equal(theirs[position:position + length], own[position:position + length]):
                return (f"[{self.process_group.rank()}]: params[{index}] in this process with sizes {list(shape)} "
                        f"appears "
                        f"not to match sizes of the same param in process {rank}.")
            position += length
        return f"the parameters of rank {rank} differ from those of rank {self.process_group.rank()}"

    def _sync_module_states(self, source: int = 0) -> None:
        """Copy parameters and buffers from one process to all."""
        states = [each.detach() for name, each in (*self.module.named_parameters(), *self.module.named_buffers())
                  if name not in self.parameters_to_ignore]
        unique = list({id(each._array): each for each in states}.values())
        if unique:
            broadcast_coalesced(self.process_group, unique, self.broadcast_bucket_size, source)

    def _synchronized_buffers(self) -> list[Tensor]:
        return [each for name, each in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not default_group():
            raise RuntimeError("DDP Pickling/Unpickling are only supported when using DDP with the default process "
                               "group. "
                               "That is, when you have called init_process_group and have not passed process_group "
                               "argument "
                               "to DDP constructor")
        state = copy.copy(self.__dict__)
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__["process_group"] = default_group()
        super().__setstate__(state)
        self._make_reducer()
        if self.static_graph:
            self.reducer._set_static_graph()

    # ----- running ---------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module, and expect a backward pass."""
        synchronizes = is_grad_enabled() and self.require_backward_grad_sync
        with record_span("DistributedDataParallel.forward", USER):
            return self._forward(synchronizes, self.module, inputs, kwargs)

    def _call_through(self, module: Any, *inputs: Any, **kwargs: Any) -> Any:
        """Call another form of `module`, which the compiler has made, in its place."""
        own = self.__dict__
        if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]:
            return self(*inputs, **kwargs)
        synchronizes = is_grad_enabled() and self.require_backward_grad_sync
        with record_span("DistributedDataParallel.forward", USER):
            return self._forward(synchronizes, module, inputs, kwargs)

    def _forward(self, synchronizes: bool, module: Any, inputs: Any, kwargs: Any) -> Any:
        if special[0] and (tracer := active_tracer.get()) is not None:
            tracer.graph_break("DistributedDataParallel prepares the averages of gradients")
        self._before_forward()
        DistributedDataParallel._active_ddp_module = self
        outer = current_buckets.set(self.reducer.gradient_buckets if synchronizes else None)
        try:
            output = module(*inputs, **kwargs)
        finally:
            DistributedDataParallel._active_ddp_module = None
            current_buckets.reset(outer)
        return self._post_forward(output)

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What precedes a forward pass of the module that hooks make; the arguments."""
        self._before_forward()
        return inputs, kwargs

    def _post_forward(self, output: Any) -> Any:
        """Expect a backward pass of a result; the result."""
        if is_grad_enabled() and self.require_backward_grad_sync:
            self.require_forward_param_sync = True
            searches = self.find_unused_parameters and not self.static_graph
            self.reducer.prepare_for_backward(_tensors_of(output) if searches else [])
        else:
            self.require_forward_param_sync = False
            self.reducer.expects_reduction = False
        return output

    def _take_over_optimizers(self) -> None:
        """Let optimizers that run in backward passes wait for the averages (`_apply_optimizer_in_backward`)."""
        updated: list[Any] = [p for p in self._module_parameters if hasattr(p, "_in_backward_optimizers")]
        if not updated:
            return
        for parameter in updated:
            for handle in parameter._in_backward_hooks:
                handle.remove()

        def update() -> None:
            for parameter in updated:
                for optimizer in parameter._in_backward_optimizers:
                    optimizer.step()
                parameter.grad = None

        self.reducer.after_pass = update

    def _before_forward(self) -> None:
        if not self._has_started:
            self._has_started = True
            self._take_over_optimizers()
        work = Join.notify_join_context(self)
        if work is not None and not self._divide_by_initial_world_size:
            work.wait()
            self.reducer.divisor = int(work.result()[0].item())
        if is_grad_enabled():
            if self.require_backward_grad_sync:
                self.reducer._check_reducer_finalized()
                self.reducer.prepare_for_forward()
            self.reducer._rebuild_buckets()
        if self._join_config.enable:
            self._sync_buffers_where_some_join()
            total_over(self.process_group, int(self.require_backward_grad_sync))
        elif self._will_sync_buffers():
            self._sync_buffers(0)

    def _will_sync_buffers(self) -> bool:
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self._synchronized_buffers())

    def _sync_buffers_where_some_join(self) -> None:
        if self._will_sync_buffers():
            self._sync_buffers(self._greatest_rank(self._join_config.enable and not self._has_joined))

    _has_joined = False

    def _greatest_rank(self, condition: bool) -> int:
        """The greatest rank for which a condition holds."""
        own = wrap(np.array([self.process_group.rank() if condition else -1], np.int64))
        self.process_group.allreduce([own], op=ReduceOp.MAX).wait()
        if own.item() < 0:
            raise ValueError("BUG! Expected rank_cond to be true for at least one process. This indicates a bug in "
                             "PyTorch, please report an issue.")
        return int(own.item())

    def _sync_buffers(self, source: int) -> None:
        with no_grad():
            if self._buffer_hook is not None:
                state, hook = self._buffer_hook
                futures = hook(state, dict(self.module.named_buffers()))
                for each in futures or ():
                    each.wait()
                return
            broadcast_coalesced(self.process_group, self._synchronized_buffers(), self.broadcast_bucket_size, source)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients accumulate without being averaged; the first pass after it averages their sum.

        >>> import flambeau as torch
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     model(torch.ones(3, 2)).sum().backward()
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.weight.grad
        tensor([[6., 6.]])
        >>> dist.destroy_process_group()
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def train(self, mode: bool = True) -> DistributedDataParallel:
        """Set the module to training or evaluation."""
        super().train(mode)
        return self

    # ----- uneven inputs ---------------------------------------------------------------------

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Join:
        """A block in which processes may have different numbers of inputs.

        Args:
            divide_by_initial_world_size: whether gradients are divided by the number of all processes, not of those
                that
                have inputs.
            enable: whether the block does anything.
            throw_on_early_termination: whether all processes raise as soon as one has no more inputs.
        """
        self._has_joined = False
        return _DDPJoin([self], enable, throw_on_early_termination,
                        divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process without inputs does."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    def _sync_final_model(self, is_last_joiner: bool) -> None:
        self._sync_module_states(self._greatest_rank(is_last_joiner))
        self.reducer.divisor = self.process_group.size()

    # ----- options ---------------------------------------------------------------------------

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Set what averages a bucket of gradients.

        Args:
            state: its first argument.
            hook: `hook(state, bucket)` returns a future of a tensor: the averages.

        Raises:
            TypeError: it cannot be called.
            ValueError: its annotations are other types (PyTorch's texts).
            RuntimeError: there is one already.
        """
        self._check_comm_hook(hook)
        self.reducer._register_comm_hook(state, hook)
        self._comm_hooks.append((hook, state))

    def _check_comm_hook(self, hook: Any) -> None:
        if not callable(hook):
            self._log_and_throw(TypeError, "Communication hook must be callable.")
        signature = inspect.signature(hook)
        bucket = signature.parameters.get("bucket")
        # annotations that are text are not looked up
        if bucket is not None and bucket.annotation not in (inspect.Parameter.empty, GradBucket) and not isinstance(
                bucket.annotation, str):
            self._log_and_throw(ValueError, "Communication hook: bucket annotation should be dist.GradBucket.")
        returned = signature.return_annotation
        if returned not in (inspect.Signature.empty, Future[Tensor]) and not isinstance(returned, str):
            self._log_and_throw(ValueError, "Communication hook: return annotation should be "
                                            "torch.futures.Future[torch.Tensor].")

    def _log_and_throw(self, kind: type[Exception], text: str) -> NoReturn:
        self._error = text
        raise kind(text)

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        group = weakref.proxy(self)
        size = self.process_group.size()
        to = "bfloat16" if "BF16" in str(comm_hook_type) else "float16" if "FP16" in str(comm_hook_type) else None

        def hook(state: Any, bucket: Any) -> Any:
            flat = bucket.buffer()
            narrow = flat if to is None else flat.to(getattr(__import__(__name__.partition(".")[0]), to))
            work = group.process_group.allreduce([narrow.div_(size)])
            return work.get_future().then(lambda done: done.value()[0].to(flat.dtype))

        self.reducer._register_comm_hook(None, hook)

    def _register_buffer_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any],
                                   comm_hook_location: Any = None) -> None:
        assert callable(hook), f"hook must be callable, got {type(hook).__name__}"
        self._buffer_hook = state, hook

    def _set_static_graph(self) -> None:
        """Promise that the graph is the same in each iteration.

        Raises:
            RuntimeError: training has begun (PyTorch's text).
        """
        if self.reducer.passes:
            self._log_and_throw(RuntimeError, "_set_static_graph() should be called before training loop starts and "
                                              "after DistributedDataParallel is constructed.")
        self.static_graph = True
        self.reducer._set_static_graph()

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What the reducer is made of, and statistics of passes that were sampled."""
        return logging_data(self)

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        """Set how many passes there are to one whose times are taken, after the first ten.

        Raises:
            ValueError: it is less than 1 (PyTorch's text).
        """
        if sample_rate < 1:
            raise ValueError("DDP runtime logging sample rate should be equal or greater than 1")
        self.reducer.statistics.rate = sample_rate

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Leave some parameters and buffers of a module alone, before it is wrapped."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore


class _DDPJoin(Join):
    def __exit__(self, *args: Any) -> None:
        for each in self._joinables:
            each._has_joined = True  # type: ignore[attr-defined]
        try:
            super().__exit__(*args)
        finally:
            for each in self._joinables:
                each._has_joined = False  # type: ignore[attr-defined]


def _tensors_of(output: Any) -> list[Tensor]:
    """The tensors in a module's result, also in objects' attributes."""
    leaves = trees.tree_leaves(output)
    found = [each for each in leaves if isinstance(each, Tensor)]
    for each in leaves:
        if not isinstance(each, Tensor) and hasattr(each, "__dict__") and not isinstance(each, (type, Module)):
            found += [value for value in trees.tree_leaves(dict(vars(each))) if isinstance(value, Tensor)]
    return found
