"""`torch.utils.checkpoint`: activations are computed again in backward instead of being kept.

There are two ways. One records the graph and leaves its saved tensors empty until they are read
(`recomputation`); the other, "reentrant", records one node, which runs the function again and
calls backward on that, inside backward.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from .._tensor import Tensor
from .._tensor.creation.random import fork_rng, get_rng_state, set_rng_state
from .._tensor.dispatch.custom_function import Function
from ..engine.api import backward as run_backward
from ..engine.engine import reaches_all_leaves
from ..engine.grad_mode import enable_grad, grad_mode
from .recomputation import CheckpointError, GraphExecGroup, Region
from .selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]

_SUPPRESSED = ("torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised "
               "during the checkpointed forward. This is not supported because checkpoint cannot return a value for a "
               "failed forward.")


class _Settings:
    """What blocks around calls of `checkpoint` have set; None leaves it to the call."""

    early_stop: bool | None = None
    debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A block whose checkpoints stop recomputing after the last tensor they need, or never before the end.

    It holds for the calls of `checkpoint` in the block, wherever their backward runs.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = torch.tensor(1., requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(lambda x: (x.exp(), print("to the end"))[0], x, use_reentrant=False)
    to the end
    >>> y.backward()
    to the end
    """
    before = _Settings.early_stop
    _Settings.early_stop = enable
    try:
        yield
    finally:
        _Settings.early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A block that overrides `debug` of the calls of `checkpoint` in it; None leaves it to the calls.

    >>> import flambeau as torch
    >>> from flambeau.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
    >>> with set_checkpoint_debug_enabled(True):
    ...     y = checkpoint(torch.exp, torch.tensor(0., requires_grad=True), use_reentrant=False)
    """
    before = _Settings.debug
    _Settings.debug = enabled
    try:
        yield
    finally:
        _Settings.debug = before


def noop_context_fn() -> Contexts:
    """Two blocks that do nothing: the default of `checkpoint`'s `context_fn`.

    >>> from flambeau.utils.checkpoint import noop_context_fn
    >>> len(noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


def _description(x: Tensor) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


_CHECKS: dict[str, Callable[[Any], Any]] = {"default": _description, "none": lambda x: None}


# ----- with reentrance -------------------------------------------------------------------


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leaves with the same values and the same `requires_grad`, for each tensor of a tuple.

    Raises:
        RuntimeError: it is not a tuple.

    >>> import flambeau as torch
    >>> torch.utils.checkpoint.detach_variable((torch.ones(1, requires_grad=True) * 2, 3))
    (tensor([2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x._requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no tensor among the inputs requires grad.

    >>> import flambeau as torch
    >>> torch.utils.checkpoint.check_backward_validity([torch.ones(1, requires_grad=True), 2])
    """
    if not any(isinstance(x, Tensor) and x._requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2)


class CheckpointFunction(Function):
    """The node of a reentrant checkpoint: its backward runs the function again, and backward on that."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function without recording it."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = get_rng_state() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(x, Tensor) else x for x in args]
        ctx.tensor_indices = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the function again, recorded, and send the gradients through it.

        Raises:
            RuntimeError: certain tensors' gradients only were asked for, or no output requires grad.
        """
        if not reaches_all_leaves():
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                               "passing an `inputs` parameter to .backward(). To resolve this error, you can either "
                               "set use_reentrant=False, or call .backward() without passing the `inputs` argument.")
        inputs = list(ctx.inputs)
        for i, x in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[i] = x
        leaves = detach_variable(tuple(inputs))
        with _drawing_again(ctx.rng_state), enable_grad():
            outputs = ctx.run_function(*leaves)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        roots = [(out, g) for out, g in zip(outputs, grads, strict=False)
                 if isinstance(out, Tensor) and out._requires_grad]
        if not roots:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([out for out, _ in roots], [g for _, g in roots])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in leaves))


@contextlib.contextmanager
def _drawing_again(state: Tensor | None) -> Iterator[None]:
    """A block that draws the numbers that followed a state; the stream outside goes on as it was."""
    with fork_rng(enabled=state is not None):
        if state is not None:
            set_rng_state(state)
        yield


# ----- without ---------------------------------------------------------------------------


def _without_reentrance(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, preserve: bool,
                        context_fn: Callable[[], Contexts], determinism_check: str, debug: bool,
                        early_stop: bool) -> Any:
    explain: Callable[[CheckpointError], NoReturn] | None = None
    if debug if _Settings.debug is None else _Settings.debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        from .operator_log import comparing_logs

        context_fn, explain = comparing_logs()
    describe = _CHECKS.get(determinism_check)
    if describe is None:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    first, again = context_fn()
    state = get_rng_state() if preserve else None

    def recompute(*inputs: Any) -> None:
        with _drawing_again(state), again:
            function(*inputs, **kwargs)

    if not grad_mode.get():
        return function(*args, **kwargs)
    region = Region(recompute, args, describe, explain=explain,
                    early_stop=early_stop if _Settings.early_stop is None else _Settings.early_stop)
    with region.hooks(), first:
        result = function(*args, **kwargs)
        region.complete = True
    if not region.complete:
        raise RuntimeError(_SUPPRESSED)
    return result


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], Contexts] = noop_context_fn, determinism_check: str = "default",
               debug: bool = False, early_stop: bool = True, **kwargs: Any) -> Any:
    """Run a function without keeping what its backward needs: that is computed again then.

    See https://docs.pytorch.org/docs/stable/checkpoint.html

    Args:
        function: must do the same when it is run again.
        args: its arguments, which are kept.
        use_reentrant: False: the graph is recorded, and empty; any backward works, as do keyword arguments, nested
            calls and outputs of any kind. True: the function is one node, whose backward runs another one inside;
            `grad` and `backward(inputs=...)` are errors. To be stated; default: True, with a warning.
        context_fn: gives two context managers, for the first run and for the recomputation (not if reentrant).
        determinism_check: "default" compares shapes and dtypes of what is recomputed, "none" does not.
        debug: let an error of that comparison show the operators of both runs (not if reentrant).
        early_stop: stop recomputing after the last tensor that is needed.
        kwargs: `preserve_rng_state=True`: draw the same random numbers again; others go to the function.

    Returns:
        What the function returns.

    Raises:
        ValueError: an argument is of no use with this `use_reentrant`, or has no such value.
        CheckpointError: in backward, if the recomputation differs.

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
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _without_reentrance(function, args, kwargs, preserve=preserve, context_fn=context_fn,
                                   determinism_check=determinism_check, debug=debug, early_stop=early_stop)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def _in_turn(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def forward(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return forward


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          **kwargs: Any) -> Any:
    """Run functions one after the other, in segments each of which but the last is checkpointed.

    See https://docs.pytorch.org/docs/stable/checkpoint.html

    Args:
        functions: a `Sequential`, or a sequence of functions of one argument.
        segments: how many there are to be.
        input: the first one's argument.
        use_reentrant: as for `checkpoint`.
        kwargs: `preserve_rng_state=True`, as for `checkpoint`.

    Returns:
        What the last function returns.

    Raises:
        ValueError: another keyword argument.

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
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    from ..nn import Sequential

    steps = list(functions.children()) if isinstance(functions, Sequential) else functions
    size = len(steps) // segments
    done = 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(_in_turn(steps[start:start + size]), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve)
        done = start + size
    return _in_turn(steps[done:])(input)


# ----- devices: the states of their generators -------------------------------------------


class DefaultDeviceType:
    """The kind of device whose generators' states are kept where no argument lies on one.

    >>> from flambeau.utils.checkpoint import DefaultDeviceType
    >>> DefaultDeviceType.get_device_type()
    'cpu'
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the kind of device."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The kind of device."""
        return DefaultDeviceType._default_device_type or "cpu"


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices on which the arguments lie, and their generators' states; the CPU is not among them.

    >>> import flambeau as torch
    >>> torch.utils.checkpoint.get_device_states(torch.ones(1))
    ([], [])
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set what `get_device_states` gave.

    Raises:
        RuntimeError: for a device that is not there: any.

    >>> import flambeau as torch
    >>> torch.utils.checkpoint.set_device_states([], [])
    """
    for number, _ in zip(devices, states, strict=False):
        raise RuntimeError(f"there is no device {device_type or DefaultDeviceType.get_device_type()}:{number} beside "
                           "the CPU")


__all__ = ["SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
           "GraphExecGroup", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint",
           "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable", "get_device_states",
           "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states"]
