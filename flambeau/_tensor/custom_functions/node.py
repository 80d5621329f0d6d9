"""FunctionNode: the graph node of a user's Function, which is also its context `ctx`, as in PyTorch.

Outputs that are no tensors are counted as outputs, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backends.bit_views import resolve
from ...backends.sparse_array import as_array
from ...devices import CPU
from ...engine.nodes.node import FREED_MESSAGE, Node, check_gradient_shape
from ...engine.saved.modified_in_place import modified_input_message, modified_output_message
from ...engine.saved.saved_tensors import (
    HAS_HOOKS,
    IS_FREED,
    IS_NONE,
    Hooks,
    Packed,
    SavedTensor,
    innermost_hooks,
    saved_tensor_of,
)
from ...engine.saved.version_counters import WRITES
from ...engine.tensor_interface import layer
from ...modes import device_memory, special
from ...warning_location import user_stacklevel
from ..dispatch.handlers import handlers
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_created
from ..views.history import wrap_output

#: shape and dtype of an output; None where it is no tensor
Meta = tuple[tuple[int, ...], np.dtype] | None

NO_BACKWARD = ("You must implement either the backward or vjp method for your custom autograd.Function to use it with "
               "backward mode AD.")


_READ_TWICE = ("saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
               "autograd.Function. Either access saved_tensors only once, or set clear_saved_tensors_on_access=False.")


class FunctionCtx:
    """The methods of `ctx` that `forward` calls."""

    to_save: Sequence[Any]
    dirty_tensors: Sequence[Any]
    non_differentiable: Sequence[Any]
    saved_for_forward: Sequence[Any]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `backward` as `ctx.saved_tensors`; their versions are checked there."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp` as `ctx.saved_tensors`."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor) and tensor is not None:
                raise TypeError("save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                                "attributes on ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare inputs that were modified in place; they must be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated, without effect: shared memory is tracked."""
        import warnings

        warnings.warn("`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. "
                      "Note that calls to `set_()` are not tracked", FutureWarning, stacklevel=2)

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare outputs that are not differentiable."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether undefined gradients are passed to `backward` as zeros (the default) or as None."""
        self.materialize_grads = value


class FunctionNode(Node, FunctionCtx):
    """The graph node and context of one call of a user's Function."""

    runs_undefined = True
    materializes_undefined = False  # done in `vjp`, by the flag `materialize_grads`
    _forward_cls: Any = None  # the user's class
    _function_class: Any = None  # `Function` itself
    to_save: Sequence[Any] = ()
    dirty_tensors: Sequence[Any] = ()
    non_differentiable: Sequence[Any] = ()
    saved_for_forward: Sequence[Any] = ()
    materialize_grads = True
    needs_input_grad: tuple[bool, ...] = ()
    _saved: Any = ()
    _freed = False
    _freed_message = FREED_MESSAGE
    _output_tangents: dict[int, dict[int, Any] | None] | None = None  # of the saved outputs, by number
    _materialize_non_diff_grads = True
    _metas: tuple[Meta, ...]  # of the outputs
    _live: list[bool]  # which outputs have a gradient
    _n_args: int
    _positions: tuple[int, ...]  # of the tensors among the arguments
    _input_metas: tuple[tuple[tuple[int, ...], np.dtype | None], ...]  # dtype None: gradients may have any

    def name(self) -> str:
        return type(self).__name__

    def release_variables(self) -> None:
        if self._saved:
            self._saved = ()
            self._output_tangents = None
            self._freed = True

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that were passed to `save_for_backward`."""
        if self._freed:
            raise RuntimeError(self._freed_message)
        result = tuple([self._read(*entry) for entry in self._saved])
        if self._forward_cls.clear_saved_tensors_on_access:
            self._saved, self._freed, self._freed_message = (), True, _READ_TWICE
        return result

    def _read(self, kind: str, value: Any, counter: list[int] | None, version: int, number: int) -> Any:
        """One saved value, after a check of its version."""
        if kind == "none":
            return None
        if kind == "packed":
            return value.unpack(self)
        if kind == "out":
            if counter is not None and counter[0] != version:
                raise RuntimeError(modified_output_message(self, value, number, counter[0], version))
            tensor = wrap_output(value, self, number, counter)  # type: ignore[arg-type]
            tensor._requires_grad = self._live[number]
            if not tensor._requires_grad:
                tensor._node = None
            if self._output_tangents is not None:
                tensor._tangents = self._output_tangents.get(number)
            return tensor
        current = version if value._inference else 0 if value._counter is None else value._counter[0]
        if (current ^ version) & WRITES:  # one that was detached is returned as it is
            raise RuntimeError(modified_input_message(value, current, version))
        return value

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        import warnings

        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'",
                      DeprecationWarning, stacklevel=user_stacklevel())
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        if self._freed:
            raise RuntimeError(FREED_MESSAGE)
        return tuple(saved_tensor_of(self, i) for i in range(len(self._saved)))

    def tensor_at(self, place: int) -> Any:
        if self._freed:
            raise RuntimeError(FREED_MESSAGE)
        return self._read(*self._saved[place])

    def _raw_data(self, place: int) -> Any:
        if self._freed:
            raise RuntimeError(FREED_MESSAGE)
        kind, value, *_ = self._saved[place]
        return value.data if kind == "packed" else wrap(value) if kind == "out" else value

    def _unpack_hook_of(self, place: int) -> Any:
        return self._saved[place][1].unpack_hook if not self._freed and self._saved[place][0] == "packed" else None

    def _pack_saved(self, place: int, hooks: Hooks) -> None:
        if self._freed:
            raise RuntimeError(IS_FREED)
        kind, value, counter, version, number = self._saved[place]
        if kind == "packed":
            raise RuntimeError(HAS_HOOKS)
        if kind == "none":
            raise RuntimeError(IS_NONE)
        x = self._read(kind, value, counter, version, number)
        packed = Packed(x, hooks, is_output=kind == "out", hook_input=x.detach())
        self._saved = (*self._saved[:place], ("packed", packed, None, 0, 0), *self._saved[place + 1:])

    def save_tensors(self, outputs: Sequence[Any]) -> None:
        """Save `to_save`; an output is saved as array and counter, since the tensor would be a reference cycle."""
        numbers = {id(out): k for k, out in enumerate(outputs) if isinstance(out, Tensor)}
        hooks = innermost_hooks() if special[0] else None
        saved: list[Any] = []
        for x in self.to_save:
            if x is None:
                saved.append(("none", None, None, 0, 0))
            elif not isinstance(x, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {len(saved)} is of type "
                                f"{type(x).__name__}")
            elif hooks is not None:
                saved.append(("packed", Packed(x, hooks, is_output=id(x) in numbers), None, 0, 0))
            elif id(x) in numbers:
                if x._counter is None:
                    x._counter = [0]
                saved.append(("out", x._array, x._counter, x._counter[0], numbers[id(x)]))
            else:
                version = 0 if x._counter is None else x._counter[0]
                bool(version)  # raises for an inference tensor, which cannot be saved
                saved.append(("tensor", x, None, version, 0))
        self._saved = tuple(saved)
        self.to_save = ()

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        metas = self._metas
        if cotangents is None:
            cotangents = [None] * len(metas)
        elif self.outputs is None:
            cotangents = [cotangents]
        arguments: list[Any] = []
        on = next((g._device for g in cotangents if g is not None), None) if tensors and device_memory.count else None
        for value, meta, live in zip(cotangents, metas, self._live, strict=True):
            if value is not None:
                arguments.append(value if tensors else wrap(as_array(value)))
            elif meta is not None and self.materialize_grads and (live or self._materialize_non_diff_grads):
                arguments.append(wrap(np.zeros(*meta)))
                if special[0]:
                    notify_created(arguments[-1]._array)
                    if on is not None and on is not CPU:
                        arguments[-1] = handlers.transfer(arguments[-1], on)
            else:
                arguments.append(None)
        result = self.apply(*arguments)
        return self._checked(list(result) if isinstance(result, tuple) else [result], tensors)

    def apply(self, *args: Any) -> Any:
        """Call the user's `backward`, with the gradients of the outputs."""
        if self._forward_cls.boxed_grads_call:
            args = list(args),
        return self._backward()(self, *args)

    def apply_boxed(self, *args: Any) -> Any:
        """Call the user's `backward` with one list of gradients."""
        return self._backward()(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Call the user's `jvp`, with the tangents of the inputs."""
        return self._forward_cls.jvp(self, *args)

    def _backward(self) -> Any:
        """The user's `backward`, or `vjp`, its alias."""
        cls, base = self._forward_cls, self._function_class
        if cls.backward is base.backward:
            if cls.vjp is base.vjp:
                raise NotImplementedError(NO_BACKWARD)
            return cls.vjp
        if cls.vjp is not base.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                               "should only implement one of them.")
        return cls.backward

    def _checked(self, result: list[Any], tensors: bool) -> list[Any]:
        n = self._n_args
        if len(result) > n and all(x is None for x in result[n:]):
            result = result[:n]
        if len(result) != n:
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {n}, got "
                               f"{len(result)})")
        for position, g in enumerate(result):
            if g is not None and position not in self._positions:
                raise RuntimeError(f"function {self.name()} returned a gradient different than None at position "
                                   f"{position + 1}, but the corresponding forward input was not a Variable")
        results: list[Any] = []
        for position, edge, (shape, dtype) in zip(self._positions, self.edges, self._input_metas, strict=True):
            g = result[position]
            if g is not None and not isinstance(g, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
            if g is None:
                results.append(None)
                continue
            if edge is None:  # no edge, but the node's hooks get the gradient
                results.append(g if tensors else resolve(g._array))
                continue
            if g._array.shape != shape:
                check_gradient_shape(self, len(results), g._array.shape, shape)
                g = layer.functions.sum_to_size(g, shape)
            if dtype is not None and g._array.dtype != dtype:
                if g._array.dtype.kind == "c" and dtype.kind != "c":
                    g = layer.functions.real(g)
                from ...dtypes import of

                g = g.to(of(dtype))
            results.append(g if tensors else resolve(g._array))
        return results


__all__ = ["FunctionCtx", "FunctionNode"]
