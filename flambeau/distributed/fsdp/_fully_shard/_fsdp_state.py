"""What `fully_shard` does around the forward and backward passes of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._tensor import Tensor
from ...._tensor.custom_functions.function import Function
from ....engine.engine import queue_callback
from ....engine.grad_mode import grad_mode
from ....nn.modules.module import Module
from ....trees import tree_map
from ._fsdp_api import MixedPrecisionPolicy
from ._fsdp_param_group import FSDPParamGroup, Reduction


class Iteration:
    """What all states below one root share.

    Attributes:
        root: the state whose module was called first.
        forward_root: the root while its forward pass runs.
        order: the groups in the order in which forward passes ended.
        reductions: those that are under way.
        callback_queued: whether the end of the backward pass is waited for.
        is_last_backward: whether reductions are waited for at its end.
    """

    def __init__(self, root: FSDPState) -> None:
        self.root = root
        self.in_forward = False
        self.order: list[FSDPState] = []
        self.reductions: list[Reduction] = []
        self.callback_queued = False
        self.is_last_backward = True


class FSDPState:
    """The hooks of one call of `fully_shard`.

    Args:
        modules: the modules of the call.
        group: their parameters; None if there are none.
        policy: the dtypes.
        reshard_after_forward: give whole parameters back after the forward pass; None: unless it is the root.
    """

    def __init__(self, modules: list[Module], group: FSDPParamGroup | None, policy: MixedPrecisionPolicy,
                 reshard_after_forward: bool | None) -> None:
        self.modules, self.group, self.policy = modules, group, policy
        self.reshard_after_forward = reshard_after_forward is not False
        self.automatic = reshard_after_forward is None
        self.iteration: Iteration | None = None
        self.forward_prefetch: list[FSDPState] = []
        self.backward_prefetch: list[FSDPState] | None = None
        self.in_backward = False
        self.unshard_in_backward = True
        self._entered: set[int] = set()
        for module in modules:
            module.register_forward_pre_hook(self._pre_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self._post_forward)
            module.register_state_dict_pre_hook(lambda *_: self._reshard())
            module.register_load_state_dict_pre_hook(lambda *_: self._reshard())

    def _reshard(self) -> None:
        if self.group is not None:
            self.group.reshard()
            for param in self.group.params:
                param.adopt_registered()

    def lazy_init(self) -> Iteration:
        """The iteration; the first module that is called becomes the root of those below it.

        Raises:
            RuntimeError: a state below has another root (PyTorch's text).
        """
        if self.iteration is None:
            iteration = Iteration(self)
            if self.automatic:
                self.reshard_after_forward = False
            for state in self.below():
                if state.iteration is not None:
                    raise RuntimeError("FSDP state has already been lazily initialized for a module. FSDP requires "
                                       "running forward through the root module first")
                state.iteration = iteration
        return self.iteration  # type: ignore[return-value]

    def below(self) -> list[FSDPState]:
        """This state, and those of submodules."""
        found: dict[int, FSDPState] = {}
        for root in self.modules:
            for module in root.modules():
                state = getattr(module, "_fsdp_state", None)
                if isinstance(state, FSDPState):
                    found[id(state)] = state
        return list(found.values())

    # ----- forward -----

    def _pre_forward(self, module: Module, args: Any, kwargs: Any) -> Any:
        if self.in_backward:  # a checkpoint recomputes
            return args, kwargs
        iteration = self.lazy_init()
        if not iteration.in_forward and iteration.root is self:
            iteration.in_forward = True
            iteration.order.clear()
        if self.group is not None:
            self.group.unshard()
        for other in self.forward_prefetch:
            if other.group is not None:
                other.group.unshard(async_op=True)
        if self.policy.cast_forward_inputs and self.policy.param_dtype is not None:
            args, kwargs = tree_map(self._converted(self.policy.param_dtype), (args, kwargs))
        if self.group is not None and grad_mode.get():
            args, kwargs = self._watch_inputs(args, kwargs)
        self._entered.add(id(module))
        return args, kwargs

    @staticmethod
    def _converted(dtype: Any) -> Callable[[Any], Any]:
        return lambda x: x.to(dtype=dtype) if isinstance(x, Tensor) and x.dtype.is_floating_point and (
            x.dtype is not dtype) else x

    def _watch_inputs(self, args: Any, kwargs: Any) -> Any:
        """Inputs whose gradients exist once the module's backward pass has ended."""
        found: list[Any] = []

        def note(x: Any) -> Any:
            if isinstance(x, Tensor) and x.requires_grad:
                found.append(x)
            return x

        tree_map(note, (args, kwargs))
        if not found:
            return args, kwargs
        replaced = dict(zip(map(id, found), _EndOfBackward.apply(self, *found), strict=True))
        return tree_map(lambda x: replaced.get(id(x), x), (args, kwargs))

    def _post_forward(self, module: Module, args: Any, output: Any) -> Any:
        if self.in_backward:
            return None
        iteration = self.lazy_init()
        self._entered.discard(id(module))
        if self.group is not None and self.reshard_after_forward and not self._entered:
            self.group.reshard_after_forward()
        iteration.order.append(self)
        if grad_mode.get():
            def watch(x: Any) -> Any:
                if isinstance(x, Tensor) and x.requires_grad:
                    x.register_hook(self._pre_backward)
                return x

            tree_map(watch, output)
        if iteration.root is self:
            iteration.in_forward = False
        if self.policy.output_dtype is not None:
            output = tree_map(self._converted(self.policy.output_dtype), output)
        return output

    # ----- backward -----

    def _pre_backward(self, grad: Any) -> Any:
        iteration = self.lazy_init()
        if not iteration.callback_queued:
            iteration.callback_queued = True
            queue_callback(iteration.root._end_of_backward)
        if self.in_backward:
            return grad
        self.in_backward = True
        if self.group is not None and self.unshard_in_backward:
            self.group.unshard()
        others = self.backward_prefetch
        if others is None:
            others = self._before(iteration)
        for other in others:
            if other.group is not None and other.unshard_in_backward:
                other.group.unshard(async_op=True)
        return grad

    def _before(self, iteration: Iteration) -> list[FSDPState]:
        """The state whose backward pass comes next: that of the module before, in the forward pass."""
        order = iteration.order
        for i in range(len(order) - 1, 0, -1):
            if order[i] is self:
                for other in reversed(order[:i]):
                    if other is not self and other.group is not None and not other.in_backward:
                        return [other]
                break
        return []

    def post_backward(self) -> None:
        """Reduce the gradients, and give the whole parameters back."""
        group, iteration = self.group, self.lazy_init()
        self.in_backward = False
        if group is None:
            return
        if group.reduce_grads:
            for reduction in iteration.reductions:  # one at a time is under way
                reduction.wait()
            iteration.reductions = group.reduce()
        if group.reshard_after_backward:
            group.reshard()

    def _end_of_backward(self) -> None:
        iteration = self.lazy_init()
        iteration.callback_queued = False
        for state in self.below():
            group = state.group
            if group is not None and (state.in_backward or (group.reduce_grads and group.has_gradients())):
                state.post_backward()
            state.in_backward = False
        if iteration.is_last_backward:
            for reduction in iteration.reductions:
                reduction.wait()
            iteration.reductions = []
        for state in self.below():  # what was prefetched, and not used
            if state.group is not None and state.group.reshard_after_backward and state is not self:
                state.group.reshard()


class _EndOfBackward(Function):
    """The identity of a module's inputs, whose backward is the end of the module's backward pass."""

    @staticmethod
    def forward(ctx: Any, state: FSDPState, *inputs: Any) -> Any:
        ctx.state = state
        return tuple(x.view_as(x) for x in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.state.post_backward()
        return (None, *grads)


__all__ = ["FSDPState"]
