"""The node and context of one application of a user's Function, in one object as in PyTorch.

What `forward` hangs on `ctx` is found on `y.grad_fn`; outputs that are no tensors count as outputs, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.nodes.node import FREED_MESSAGE, Node
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
from ...engine.tensor_interface import layer
from ...modes import special
from ..tensor import Tensor, wrap
from ..tracer_notifications import tell_created
from ..view_history import wrap_output

#: an output's shape and dtype; None where it was no tensor
Meta = tuple[tuple[int, ...], np.dtype] | None

NO_BACKWARD = ("You must implement either the backward or vjp method for your custom autograd.Function to use it with "
               "backward mode AD.")


class FunctionCtx:
    """What `forward` tells autograd: what to keep, what it wrote to, what has no gradient."""

    to_save: Sequence[Any]
    dirty_tensors: Sequence[Any]
    non_differentiable: Sequence[Any]
    saved_for_forward: Sequence[Any]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where they are `ctx.saved_tensors`; their versions are checked then."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, where they are `ctx.saved_tensors`."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor) and tensor is not None:
                raise TypeError("save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                                "attributes on ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs were written to in place; they must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing gradients reach `backward` as zeros (the default) or as None."""
        self.materialize_grads = value


class FunctionNode(Node, FunctionCtx):
    """The node, and context, of one application of a user's Function."""

    runs_undefined = True
    materializes_undefined = False  # done here, by the flag the user sets
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
            self._freed = True

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given."""
        if self._freed:
            raise RuntimeError(FREED_MESSAGE)
        return tuple([self._read(*entry) for entry in self._saved])

    def _read(self, kind: str, value: Any, counter: list[int] | None, version: int, number: int) -> Any:
        """One saved value, its version checked."""
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
            return tensor
        current = version if value._inference else 0 if value._counter is None else value._counter[0]
        if current != version:
            raise RuntimeError(modified_input_message(value, current, version))
        return value

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        import warnings

        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        if self._freed:
            raise RuntimeError(FREED_MESSAGE)
        return tuple(saved_tensor_of(self, i) for i in range(len(self._saved)))

    def _tensor_at(self, place: int) -> Any:
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

    def keep(self, outputs: Sequence[Any]) -> None:
        """Save what was asked for: outputs by their memory alone, lest node and output hold each other."""
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
                bool(version)  # an inference tensor's says that it cannot be saved
                saved.append(("tensor", x, None, version, 0))
        self._saved = tuple(saved)
        self.to_save = ()

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        metas = self._metas
        given = [None] * len(metas) if cotangents is None else cotangents if self.outputs is not None else [cotangents]
        shown: list[Any] = []
        for value, meta, live in zip(given, metas, self._live, strict=True):
            if value is not None:
                shown.append(value if tensors else wrap(np.asarray(value)))
            elif meta is not None and self.materialize_grads and (live or self._materialize_non_diff_grads):
                shown.append(wrap(np.zeros(*meta)))
                if special[0]:
                    tell_created(shown[-1]._array)
            else:
                shown.append(None)
        found = self._backward()(self, *shown)
        return self._checked(list(found) if isinstance(found, tuple) else [found], tensors)

    def _backward(self) -> Any:
        """What the user wrote: `backward`, or under its other name `vjp`."""
        cls, base = self._forward_cls, self._function_class
        if cls.backward is base.backward:
            if cls.vjp is base.vjp:
                raise NotImplementedError(NO_BACKWARD)
            return cls.vjp
        if cls.vjp is not base.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                               "should only implement one of them.")
        return cls.backward

    def _checked(self, found: list[Any], tensors: bool) -> list[Any]:
        n = self._n_args
        if len(found) > n and all(x is None for x in found[n:]):
            found = found[:n]
        if len(found) != n:
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {n}, got "
                               f"{len(found)})")
        for position, g in enumerate(found):
            if g is not None and position not in self._positions:
                raise RuntimeError(f"function {self.name()} returned a gradient different than None at position "
                                   f"{position + 1}, but the corresponding forward input was not a Variable")
        results: list[Any] = []
        for position, edge, (shape, dtype) in zip(self._positions, self.edges, self._input_metas, strict=True):
            g = found[position]
            if g is not None and not isinstance(g, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
            if g is None:
                results.append(None)
                continue
            if edge is None:  # nobody wants it, but the node's hooks are shown it
                results.append(g if tensors else g._array)
                continue
            if g._array.shape != shape:
                g = self._reduced(g, shape, len(results))
            if dtype is not None and g._array.dtype != dtype:
                if g._array.dtype.kind == "c" and dtype.kind != "c":
                    g = layer.functions.real(g)
                from ...dtypes import of

                g = g.to(of(dtype))
            results.append(g if tensors else g._array)
        return results

    def _reduced(self, g: Tensor, shape: tuple[int, ...], index: int) -> Tensor:
        have = g._array.shape
        lead = len(have) - len(shape)
        if lead < 0 or any(s not in (1, have[i + lead]) for i, s in enumerate(shape)):
            raise RuntimeError(f"Function {self.name()} returned an invalid gradient at index {index} - got "
                               f"{list(have)} but expected shape compatible with {list(shape)}")
        return layer.functions.sum_to_size(g, shape)


__all__ = ["FunctionCtx", "FunctionNode"]
