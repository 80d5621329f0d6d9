"""`DebugMode`: the mode, its hooks, and the comparison of two logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flambeau as torch

from ..._subclasses.fake_tensor import FakeTensor
from ..._tensor.overriding.function_modes import TorchFunctionMode
from ...nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from .._python_dispatch import TorchDispatchMode
from .._pytree import keystr as path_text
from .._pytree import tree_flatten_with_path, tree_leaves
from ..module_tracker import ModuleTracker
from ._calls import HASHES, TensorNumbers, _DebugCall, _NNModuleCall, _OpCall, hashes_of

_active: list[DebugMode] = []
#: hooks of operators: before the call, for the record, and for the log
_hooks: dict[str, list[Callable[..., dict[str, Any] | None]]] = {"pre_log": [], "record": [], "log": []}


def get_active_debug_mode() -> DebugMode | None:
    """The innermost mode in use; None if there is none.

    >>> from flambeau.utils._debug_mode import get_active_debug_mode
    >>> get_active_debug_mode() is None
    True
    """
    return _active[-1] if _active else None


class _Functions(TorchFunctionMode):
    """The part of a mode that sees functions."""

    def __init__(self, mode: DebugMode) -> None:
        super().__init__()
        self.mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mode, kwargs = self.mode, kwargs or {}
        if getattr(func, "__name__", "") in ("__get__", "__set__"):
            return func(*args, **kwargs)
        call = mode._enter(_OpCall(func, args, kwargs, mode.call_depth, mode.record_stack_trace))
        mode.call_depth += 1
        try:
            result = func(*args, **kwargs)
        finally:
            mode.call_depth -= 1
        mode._leave(call, result)
        return result


class DebugMode(TorchDispatchMode):
    """A context manager that logs the operators that run inside.

    Args:
        record_torchfunction: whether functions are logged, too; the operators stand below them.
        record_faketensor, record_realtensor: whether operators of fake and of other tensors are logged.
        record_tensor_attributes: names of attributes that are shown of each tensor.
        record_nn_module: whether modules are logged; what they compute stands below them.
        store_original_args: whether entries keep the arguments, not only their texts.
        record_stack_trace: whether entries have the line of the program.
        record_output: whether results are shown.
        record_ids: whether tensors are numbered.
        record_profiler_context, record_localtensor, run_compile_with_interpreter: without effect: operators that
            compiled functions run are not logged.

    >>> import flambeau as torch
    >>> from flambeau.utils._debug_mode import DebugMode
    >>> with DebugMode() as mode:
    ...     y = torch.ones(2, 3) @ torch.ones(3)
    >>> print(mode.debug_string())
        aten::ones([2, 3], device=cpu, pin_memory=False)  ->  t: f32[2, 3]
        aten::ones([3], device=cpu, pin_memory=False)  ->  t: f32[3]
        aten::mv(t: f32[2, 3], t: f32[3])  ->  t: f32[2]
    """

    supports_higher_order_operators = True

    def __init__(self, *, record_torchfunction: bool = False, record_faketensor: bool = False,
                 record_realtensor: bool = True, record_tensor_attributes: Sequence[str] | None = None,
                 record_nn_module: bool = False, store_original_args: bool = False, record_stack_trace: bool = False,
                 record_output: bool = True, record_ids: bool = False, record_profiler_context: bool = True,
                 record_localtensor: bool = True, run_compile_with_interpreter: bool = False) -> None:
        super().__init__()
        self.record_torchfunction, self.record_nn_module = record_torchfunction, record_nn_module
        self.record_faketensor, self.record_realtensor = record_faketensor, record_realtensor
        self.record_tensor_attributes = list(record_tensor_attributes or ())
        self.store_original_args, self.record_output = store_original_args, record_output
        self.record_stack_trace, self.record_ids = record_stack_trace, record_ids
        self.reset()

    def reset(self) -> None:
        """Forget the log."""
        self.logs: list[_DebugCall] = []
        self.call_depth = 0
        self._numbers = TensorNumbers() if self.record_ids else None

    @property
    def operators(self) -> list[_DebugCall]:
        """The log."""
        return self.logs

    def __enter__(self) -> DebugMode:
        self.reset()
        self._functions = _Functions(self) if self.record_torchfunction else None
        if self._functions is not None:
            self._functions.__enter__()
        super().__enter__()
        _active.append(self)
        self._handles: list[Any] = []
        if self.record_nn_module:
            names = ModuleTracker()

            def enter(module: torch.nn.Module, _: Any) -> None:
                self.logs.append(_NNModuleCall(names._name_of(module), self.call_depth + 1, self.record_stack_trace))
                self.call_depth += 1

            def leave(*_: Any) -> None:
                self.call_depth -= 1

            self._handles = [register_module_forward_pre_hook(enter),
                             register_module_forward_hook(leave, always_call=True)]
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        _active.remove(self)
        super().__exit__(*exception)
        if self._functions is not None:
            self._functions.__exit__(*exception)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.record_realtensor and not self.record_faketensor:
            return func(*args, **kwargs)
        call = _OpCall(func, args, kwargs, self.call_depth + 1, self.record_stack_trace)
        logged: dict[str, Any] = {}
        for hook in _hooks["pre_log"]:
            logged.update(hook(func, types, args, kwargs, call) or {})
        call.stringify_args(self.record_tensor_attributes, self._numbers, self.store_original_args)
        result = func(*args, **kwargs)
        is_fake = any(isinstance(x, FakeTensor) for x in tree_leaves((args, kwargs, result)))
        if not (self.record_faketensor if is_fake else self.record_realtensor):
            return result
        self.logs.append(call)
        self._leave(call, result)
        for hook in _hooks["record"]:
            call.record = {**(call.record or {}), **(hook(func, types, args, kwargs, result) or {})}
        for hook in _hooks["log"]:
            logged.update(hook(func, types, args, kwargs, result) or {})
        call.log = logged or None
        return result

    def _enter(self, call: _OpCall) -> _OpCall:
        call.stringify_args(self.record_tensor_attributes, self._numbers, self.store_original_args)
        self.logs.append(call)
        return call

    def _leave(self, call: _OpCall, result: Any) -> None:
        if self.record_output:
            call.stringify_output(result, self.record_tensor_attributes, self._numbers)

    def debug_string(self, show_stack_trace: bool | None = None) -> str:
        """The log as text, a line for each entry.

        Args:
            show_stack_trace: whether the program's line stands above the operators that it runs; None: if there are
                several lines or one of them was recorded.
        """
        shows = self.record_stack_trace if show_stack_trace is None else show_stack_trace
        lines: list[str] = []
        last = None
        for call in self.logs:
            indent = "  " * (call.call_depth + 1)
            frame = call.frame
            if shows and frame is not None:
                where = f"# File: {frame.filename}:{frame.lineno} in {frame.name}, code: {frame.line}"
                if where != last:
                    lines += ([""] if lines else []) + [indent + where]
                    last = where
            lines.append(indent + call.render(self.record_tensor_attributes))
        return "\n".join(lines)

    @staticmethod
    @contextmanager
    def dispatch_hooks(record_hook: Callable[..., Any] | None = None, log_hook: Callable[..., Any] | None = None,
                       pre_log_hook: Callable[..., Any] | None = None) -> Iterator[None]:
        """A context manager in which functions are called for each operator.

        Args:
            record_hook: given the handler's arguments and the result; the dictionary that it returns is added to the
                entry's `record`.
            log_hook: the same for `log`, which texts show.
            pre_log_hook: called before the operator, with the entry in place of the result.
        """
        added = [(name, hook) for name, hook in (("record", record_hook), ("log", log_hook), ("pre_log", pre_log_hook))
                 if hook is not None]
        for name, hook in added:
            _hooks[name].append(hook)
        try:
            yield
        finally:
            for name, hook in added:
                _hooks[name].remove(hook)

    @staticmethod
    @contextmanager
    def record_outputs() -> Iterator[None]:
        """A context manager in which entries record copies of results, as `record["output"]`."""
        def copied(func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any]:
            return {"output": torch.utils._pytree.tree_map(
                lambda x: x.clone() if isinstance(x, torch.Tensor) else x, result)}

        with DebugMode.dispatch_hooks(record_hook=copied):
            yield

    @staticmethod
    @contextmanager
    def log_tensor_hashes(hash_fn: Callable[..., Any] | str | list[str] = "norm",
                          hash_inputs: bool = False) -> Iterator[None]:
        """A context manager in which entries show hashes of results, and of inputs.

        Args:
            hash_fn: "norm", "hash_tensor", a list of both, or a function of a tensor.
            hash_inputs: whether inputs are hashed, before the operator runs.

        >>> import flambeau as torch
        >>> from flambeau.utils._debug_mode import DebugMode
        >>> with DebugMode() as mode, DebugMode.log_tensor_hashes():
        ...     y = torch.ones(3).neg()
        >>> print(mode.logs[1])
        aten::neg(t: f32[3])  ->  t: f32[3]  # {'hash': 3.0}
        """
        def hashed(x: torch.Tensor) -> Any:
            if callable(hash_fn):
                return hash_fn(x)
            found = tuple(HASHES[name](x, use_scalar=True)
                          for name in ([hash_fn] if isinstance(hash_fn, str) else hash_fn))
            return found[0] if isinstance(hash_fn, str) else found

        def of_inputs(func: Any, types: Any, args: Any, kwargs: Any, call: Any) -> dict[str, Any]:
            found = hashes_of((args, kwargs), hashed)
            return {"input_hash": found} if any(x is not None for x in tree_leaves(found)) else {}

        def of_results(func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any]:
            found = hashes_of(result, hashed)
            return {"hash": found} if any(x is not None for x in tree_leaves(found)) else {}

        with DebugMode.dispatch_hooks(log_hook=of_results, pre_log_hook=of_inputs if hash_inputs else None):
            yield

    @staticmethod
    def check_hash_mismatches(logs1: list[_DebugCall], logs2: list[_DebugCall],
                              compare_inputs: bool = False) -> list[dict[str, Any]]:
        """The entries of two logs of a program whose hashes differ.

        Args:
            logs1, logs2: the logs.
            compare_inputs: whether hashes of inputs are compared, too.

        Raises:
            ValueError: the logs have other lengths, or other entries.
        """
        if len(logs1) != len(logs2):
            raise ValueError(f"Log lengths don't match: {len(logs1)} vs {len(logs2)}")
        found: list[dict[str, Any]] = []
        for first, second in zip(logs1, logs2, strict=True):
            if (type(first), first.name) != (type(second), second.name):
                raise ValueError(f"Entries don't match: {first} vs {second}")
            for key in ("hash", *(("input_hash",) if compare_inputs else ())):
                sides = [dict(tree_flatten_with_path((call.log or {}).get(key))[0]) for call in (first, second)]
                for path, value in sides[0].items():
                    other = sides[1].get(path)
                    if value != other and value is not None and other is not None:
                        largest = max(abs(value), abs(other))
                        found.append({"call_type": "torch op", "call": first.name, "arg_name": None,
                                      "pytree_path": path_text(path), "hash1": value, "hash2": other,
                                      "rel_diff": abs(value - other) / largest if largest else 0.0,
                                      "is_input_hash": key == "input_hash"})
        return found


__all__ = ["DebugMode", "get_active_debug_mode"]
