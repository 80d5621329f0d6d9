"""`torch.utils.checkpoint`: activation checkpointing, which recomputes activations in backward instead of saving them.

There are two variants. The non-reentrant one records the graph, and fills its saved tensors when they are first read
(`recomputation`). The reentrant one records a single node, whose backward runs the function again with grad enabled
and calls backward on the result.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from .._tensor import Tensor
from .._tensor.creation.generators import (
    device_generators,
    device_states,
    fork_rng,
    get_rng_state,
    restore_device_states,
    set_rng_state,
)
from .._tensor.custom_functions.function import Function
from ..engine.api import backward as run_backward
from ..engine.engine import reaches_all_leaves
from ..engine.grad_mode import enable_grad, grad_mode
from ..modes import active_autocasts, active_tracer, special
from ..trees import tree_leaves
from .checkpointing.recomputation import CheckpointError, GraphExecGroup, Region
from .checkpointing.selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
    recorder_of,
)

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]

_SUPPRESSED = ("torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised "
               "during the checkpointed forward. This is not supported because checkpoint cannot return a value for a "
               "failed forward.")


class _Settings:
    """Settings of the context managers below; None: the argument of `checkpoint` applies."""

    early_stop: bool | None = None
    debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A context manager that overrides `early_stop` of the calls of `checkpoint` in it.

    It applies to calls in the block, wherever their backward runs.

    Args:
        enable: True: stop recomputing after the last saved tensor; False: run the function to its end.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = torch.tensor(1., requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(lambda x: (x.exp(), print("to the end"))[0], x, use_reentrant=False)
    to the end
    >>> y.backward()
    to the end
    """
    previous = _Settings.early_stop
    _Settings.early_stop = enable
    try:
        yield
    finally:
        _Settings.early_stop = previous


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A context manager that overrides `debug` of the calls of `checkpoint` in it.

    Args:
        enabled: the value; None: do not override.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
    >>> with set_checkpoint_debug_enabled(True):
    ...     y = checkpoint(torch.exp, torch.tensor(0., requires_grad=True), use_reentrant=False)
    """
    previous = _Settings.debug
    _Settings.debug = enabled
    try:
        yield
    finally:
        _Settings.debug = previous


def noop_context_fn() -> Contexts:
    """Two context managers that do nothing: the default of `context_fn` of `checkpoint`.

    >>> from flambeau.utils.checkpoint import noop_context_fn
    >>> len(noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


def _tensor_metadata(x: Tensor) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


_METADATA_FNS: dict[str, Callable[[Any], Any]] = {"default": _tensor_metadata, "none": lambda x: None}


# ----- reentrant -------------------------------------------------------------------


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tuple with its tensors detached; `requires_grad` is unchanged.

    Raises:
        RuntimeError: `inputs` is not a tuple.

    >>> import flambeau as torch
    >>> torch.utils.checkpoint.detach_variable((torch.ones(1, requires_grad=True) * 2, 3))
    (tensor([2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x._requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor in `inputs` requires grad.

    >>> import flambeau as torch
    >>> torch.utils.checkpoint.check_backward_validity([torch.ones(1, requires_grad=True), 2])
    """
    if not any(isinstance(x, Tensor) and x._requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2)


class CheckpointFunction(Function):
    """The node of a reentrant checkpoint: its backward runs the function again and differentiates the result.

    >>> import flambeau as torch
    >>> x = torch.tensor(1., requires_grad=True)
    >>> y = torch.utils.checkpoint.CheckpointFunction.apply(torch.exp, True, x)
    >>> y.backward()
    >>> x.grad
    tensor(2.7183)
    """

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function without recording a graph."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = _rng_states() if preserve_rng_state else None
        ctx.autocast = _autocast_now()
        ctx.inputs = [None if isinstance(x, Tensor) else x for x in args]
        ctx.tensor_indices = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the function again with grad enabled, and call backward on its outputs.

        Raises:
            RuntimeError: backward computes gradients of given inputs only, or no output requires grad.
        """
        if not reaches_all_leaves():
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                               "passing an `inputs` parameter to .backward(). To resolve this error, you can either "
                               "set use_reentrant=False, or call .backward() without passing the `inputs` argument.")
        inputs = list(ctx.inputs)
        for i, x in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[i] = x
        leaves = detach_variable(tuple(inputs))
        with _replay_rng(ctx.rng_state), enable_grad(), _replay_autocast(ctx.autocast):
            outputs = ctx.run_function(*leaves)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        outputs_with_grad = [(out, g) for out, g in zip(outputs, grads, strict=False)
                             if isinstance(out, Tensor) and out._requires_grad]
        if not outputs_with_grad:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([out for out, _ in outputs_with_grad], [g for _, g in outputs_with_grad])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in leaves))


def _rng_states() -> tuple[Tensor, dict[int, Any]]:
    """The states of the default generators, those of devices too."""
    return get_rng_state(), device_states()


@contextlib.contextmanager
def _replay_rng(states: tuple[Tensor, dict[int, Any]] | None) -> Iterator[None]:
    """A context manager in which generators continue from states; their own are restored afterwards."""
    with fork_rng(enabled=states is not None):
        if states is not None:
            set_rng_state(states[0])
            restore_device_states(states[1])
        yield


#: the types of devices that have an autocast
_AUTOCAST_TYPES = ("cpu", "cuda")
#: type -> whether autocast is on, and its dtype; whether casts are kept
_Autocasts = tuple[dict[str, tuple[bool, Any]], bool]


def _autocast_now() -> _Autocasts | None:
    """What `_replay_autocast` repeats; None: autocast is off."""
    if not active_autocasts[0]:
        return None
    from ..amp import state

    return {each: (state.is_autocast_enabled(each), state.get_autocast_dtype(each)) for each in _AUTOCAST_TYPES}, (
        state.is_autocast_cache_enabled())


@contextlib.contextmanager
def _replay_autocast(settings: _Autocasts | None) -> Iterator[None]:
    """A block in which autocast is as it was in forward, whatever it is in backward."""
    if settings is None and not active_autocasts[0]:
        yield
        return
    from ..amp import state
    from ..amp.autocast_mode import autocast

    types, keeps = settings or (dict.fromkeys(_AUTOCAST_TYPES, (False, None)), None)
    with contextlib.ExitStack() as stack:
        for each, (enabled, dtype) in types.items():
            if enabled or state.is_autocast_enabled(each):
                stack.enter_context(autocast(each, dtype=dtype, enabled=enabled, cache_enabled=keeps))
        yield


# ----- non-reentrant ---------------------------------------------------------------------------


@contextlib.contextmanager
def checkpointed_region(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *,
                        preserve_rng_state: bool, context_fn: Callable[[], Contexts], determinism_check: str,
                        debug: bool, early_stop: bool) -> Iterator[None]:
    """A block in which what `function` does is recorded without saved tensors: backward calls it again.

    Args:
        function: does what the block does, with these arguments.
        args, kwargs: its arguments.
        preserve_rng_state, context_fn, determinism_check, debug, early_stop: as for `checkpoint`.

    Raises:
        ValueError: an argument is not supported, or its value is unknown.
        RuntimeError: an exception in the block was suppressed.
    """
    explain: Callable[[CheckpointError], NoReturn] | None = None
    if debug if _Settings.debug is None else _Settings.debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        from .checkpointing.operator_log import comparing_logs

        context_fn, explain = comparing_logs()
    metadata_of = _METADATA_FNS.get(determinism_check)
    if metadata_of is None:
        raise ValueError(f"determinism_check should be one of {list(_METADATA_FNS)}, but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    state, autocast_settings = _rng_states() if preserve_rng_state else None, _autocast_now()

    def recompute(*inputs: Any) -> None:
        with _replay_rng(state), _replay_autocast(autocast_settings), recompute_context:
            function(*inputs, **kwargs)

    if not grad_mode.get():
        yield
        return
    region = Region(recompute, args, metadata_of, explain=explain,
                    early_stop=early_stop if _Settings.early_stop is None else _Settings.early_stop)
    with region.hooks(), forward_context:
        yield
        region.forward_done = True
    if not region.forward_done:
        raise RuntimeError(_SUPPRESSED)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], Contexts] = noop_context_fn, determinism_check: str = "default",
               debug: bool = False, early_stop: bool = True, **kwargs: Any) -> Any:
    """Run a function without saving its activations: backward recomputes them.

    Within a compiled function, the program's backward pass recomputes what the function computes but its results;
    without `preserve_rng_state` it reads the random numbers that were drawn, which are saved.

    See https://docs.pytorch.org/docs/stable/checkpoint.html

    Args:
        function: a deterministic function.
        args: its arguments, which are saved.
        use_reentrant: False: the graph is recorded without saved tensors; every kind of backward, keyword arguments,
            nested calls and arbitrary outputs are supported. True: the function is one node, whose backward calls
            backward; `grad` and `backward(inputs=...)` raise. Pass it explicitly; default: True, with a warning.
        context_fn: returns two context managers, for forward and for the recomputation (non-reentrant only).
        determinism_check: "default" compares shapes, dtypes and devices of the recomputed tensors, "none" does not.
        debug: list the operators of both runs if that comparison fails (non-reentrant only).
        early_stop: stop recomputing after the last saved tensor.
        kwargs: `preserve_rng_state=True`: recompute with the same random numbers; others are passed to the function.

    Returns:
        The result of the function.

    Raises:
        ValueError: an argument is not supported with this `use_reentrant`, or its value is unknown.
        CheckpointError: in backward, if the recomputation differs from forward.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import checkpoint
    >>> x = torch.tensor(0.5, requires_grad=True)
    >>> y = checkpoint(lambda x: x.sin().exp().sin(), x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor(-0.0628)
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants.", UserWarning, stacklevel=2)
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if special[0] and (tracer := active_tracer.get()) is not None and not (use_reentrant and (
            kwargs or context_fn is not noop_context_fn)):  # a compiled program computes activations again itself
        policy = None
        if context_fn is not noop_context_fn:
            contexts = context_fn()
            policy, context_fn = recorder_of(contexts[0]), lambda: contexts
        if policy is not None or context_fn is noop_context_fn:
            was_run, result = tracer.run_checkpointed(function, args, kwargs, preserve_rng_state, policy)
            if was_run:
                return result
    if not use_reentrant:
        with checkpointed_region(function, args, kwargs, preserve_rng_state=preserve_rng_state, context_fn=context_fn,
                                 determinism_check=determinism_check, debug=debug, early_stop=early_stop):
            return function(*args, **kwargs)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def _compose(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def forward(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return forward


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          **kwargs: Any) -> Any:
    """Run functions in sequence, divided into segments; all segments but the last are checkpointed.

    See https://docs.pytorch.org/docs/stable/checkpoint.html

    Args:
        functions: a `Sequential`, or a sequence of functions of one argument.
        segments: number of segments.
        input: argument of the first function.
        use_reentrant: as for `checkpoint`.
        kwargs: `preserve_rng_state=True`, as for `checkpoint`.

    Returns:
        The result of the last function.

    Raises:
        ValueError: an unknown keyword argument.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import checkpoint_sequential
    >>> x = torch.tensor(0.5, requires_grad=True)
    >>> checkpoint_sequential([torch.sin, torch.exp, torch.sin, torch.exp], 2, x, use_reentrant=False)
    tensor(2.7156, grad_fn=<ExpBackward0>)
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            "version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True. "
            "Refer to docs for more details on the differences between the two variants.", UserWarning, stacklevel=2)
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    from ..nn import Sequential

    steps = list(functions.children()) if isinstance(functions, Sequential) else functions
    size = len(steps) // segments
    checkpointed = 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(_compose(steps[start:start + size]), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve_rng_state)
        checkpointed = start + size
    return _compose(steps[checkpointed:])(input)


# ----- devices: the states of their generators -------------------------------------------


class DefaultDeviceType:
    """The device type whose generator states are saved if no argument is on another device.

    >>> from flambeau.utils.checkpoint import DefaultDeviceType
    >>> DefaultDeviceType.get_device_type()
    'cpu'
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the device type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The device type."""
        return DefaultDeviceType._default_device_type or "cpu"


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """(indices, generator states) of the CUDA devices that tensors among the arguments are on.

    >>> import flambeau as torch
    >>> torch.utils.checkpoint.get_device_states(torch.ones(1))
    ([], [])
    """
    indices = sorted({x._device.index or 0 for x in tree_leaves(args)
                      if isinstance(x, Tensor) and x._device.type == "cuda"})
    states = device_states(indices)
    return indices, [states[each] for each in indices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Restore generator states that `get_device_states` returned.

    Raises:
        RuntimeError: there is no such device.

    >>> import flambeau as torch
    >>> torch.utils.checkpoint.set_device_states([], [])
    """
    count = len(device_generators[0]())
    for number, state in zip(devices, states, strict=False):
        if not 0 <= number < count:
            raise RuntimeError(f"device {device_type or DefaultDeviceType.get_device_type()}:{number} does not exist")
        restore_device_states({number: state})


__all__ = ["SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
           "GraphExecGroup", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint",
           "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable", "get_device_states",
           "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states"]
