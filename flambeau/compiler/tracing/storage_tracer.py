"""`StorageTracer`: the part of the tracer that maps tensors to IR values through the memory that they share.

Arrays are identified by the array that owns their memory (`aliasing.Storage`), so views need no bookkeeping and writes
are functionalized. A tensor that is neither an argument nor computed by the function is lifted to an input.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ..._tensor.dispatch.interception import Interceptor
from ..._tensor.tensor import wrap
from ...backends.bit_views import BitView, bits_of, memory_of
from ...engine.saved.version_counters import WRITES
from ...ir.graph.value import Graph, Unsupported, Value
from ...ir.lowering.namespace import lower_operator
from ...ops.declare import REGISTRY
from . import aliasing
from .aliasing import Storage
from .break_frames import BreakFrame, break_frames

_PACKAGE = __name__.partition(".")[0]


class LiftedInput(NamedTuple):
    """A tensor that is neither an argument nor computed by the function: it is lifted to an input of the graph.

    Attributes:
        number: the number of the input.
        tensor: the tensor; None if only an array was seen.
        array: the memory that the input stands for (`aliasing.leaf_array`).
        tensor_array: the tensor's array when it was first seen.
    """

    number: int
    tensor: Any
    array: np.ndarray
    tensor_array: np.ndarray


def _check_no_bits(a: np.ndarray) -> None:
    if isinstance(a, BitView):
        raise Unsupported("an argument with a conjugate or negative bit")


def _tensor_state(x: Any) -> tuple:
    """Return an argument's mutable state other than its elements and gradient; last, its version."""
    return x._array, x._node, x._requires_grad, *hook_state(x), 0 if x._counter is None else x._counter[0]


def hook_state(x: Any) -> tuple[Any, ...]:
    """Return a summary of the hooks of a tensor and of its node, which changes when one is added."""
    node = x._node if x._node is not None or x._accumulator is None else x._accumulator()
    extra = None if node is None else node.extra
    on_node = 0 if extra is None else len(extra.pre_hooks or ()) + len(extra.post_hooks or ())
    return len(x._hooks or ()), len(x._post_accumulate_hooks or ()), bool(x._retains_grad), on_node


def user_location() -> str:
    """Return `file:line` of the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        if frame.f_back is None:
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class StorageTracer(Interceptor):
    """Records the IR values of tensors, writes to them, and where the inputs of the graph come from.

    Attributes:
        graph: the graph.
        num_leaves: the number of inputs of the graph.
        lifted: tensors from outside the function, which are inputs.
        argument_sources: by input number, the sources of arguments (see `Trace.sources`).
        arguments_at_entry: the tensor arguments, and their state when the function began.
        failure: why the call cannot be replayed, or None.
        break_frames: the stack when it failed.
        storages: by identity of the owner of the memory.
        entry_grads: by identity, tensors and the gradients that they had when first used.
        versions: by identity of a version counter: [counter, the version that the traced writes explain].
        views: by identity, views that the function created of external memory; weak references, because their
            autograd graphs must be freed as usual.
        on_break: called where the graph breaks, each time, with the tensor whose elements Python reads, if it does; or
            None.
        outside_of_graphs: a block of the call that is excluded from compilation.
    """

    on_break: Callable[..., None] | None = None
    outside_of_graphs: Callable[[], AbstractContextManager[None]] = nullcontext

    def __init__(self) -> None:
        self.graph = Graph()
        self.num_leaves = 0
        self.lifted: list[LiftedInput] = []
        self.argument_sources: dict[int, tuple] = {}
        self.arguments_at_entry: list[tuple[Any, tuple]] = []
        self.failure: str | None = None
        self.break_frames: tuple[BreakFrame, ...] = ()
        self.storages: dict[int, Storage] = {}
        self.entry_grads: dict[int, tuple[Any, Any]] = {}
        self.versions: dict[int, list[Any]] = {}
        self.views: dict[int, weakref.ref[Any]] = {}

    def graph_break(self, reason: str) -> None:
        """Record that the call cannot be replayed, and the user's line; only the first reason is kept."""
        if self.on_break is not None:
            self.on_break()
        if self.failure is None:
            self.failure = f"{reason} ({user_location()})"
            self.break_frames = break_frames(sys._getframe(1))

    def internal_error(self, what: str, error: Exception) -> None:
        """Break the graph because of an error in the tracer, and warn; the call continues eagerly."""
        self.graph_break(f"{what}: internal error, {type(error).__name__}: {error}")
        warnings.warn(f"{what} cannot be compiled because of an internal error of flambeau, {type(error).__name__}: "
                      f"{error}. The call runs eagerly. Please report it.", RuntimeWarning, stacklevel=2)

    def bind_arguments(self, tensors: Sequence[Any]) -> None:
        """Make a call's tensor arguments inputs of the graph; arguments that share memory are views of one input."""
        try:
            for members in aliasing.group_by_storage(tensors):
                first = members[0]
                places = {aliasing.place(tensors[i]._array) for i in members}
                if len(places) == 1:
                    self.argument_sources[self.num_leaves] = ("argument", first)
                    self.add_input(tensors[first])
                else:
                    self._add_aliased_inputs([tensors[i] for i in members], members)
        except Unsupported as error:
            self.graph_break(str(error))
        for x in tensors:
            self.note_entry_grad(x)
        self.arguments_at_entry = [(x, _tensor_state(x)) for x in tensors]

    def add_input(self, tensor: Any) -> Value:
        """Make a tensor's array an input of the graph."""
        a = tensor._array
        _check_no_bits(a)
        storage, leaf = aliasing.input_storage(self.graph, a, self.num_leaves)
        self.num_leaves += 1
        if id(aliasing.owner(a)) in self.storages:
            raise Unsupported("two arguments that share memory")
        self._register(aliasing.owner(a), storage)
        return leaf

    def _add_aliased_inputs(self, tensors: Sequence[Any], positions: Sequence[int]) -> None:
        """Make arguments that share memory views of one input, which spans the memory of all of them."""
        for x in tensors:
            _check_no_bits(x._array)
        lowest = min(range(len(tensors)), key=lambda i: aliasing.address(tensors[i]._array))
        span = aliasing.span([x._array for x in tensors])
        storage, _ = aliasing.input_storage(self.graph, span, self.num_leaves)
        self.argument_sources[self.num_leaves] = ("memory of", positions[lowest], span.size)
        self.num_leaves += 1
        storage.root = aliasing.owner(tensors[lowest]._array)
        self.storages[id(storage.root)] = storage

    def note_entry_grad(self, tensor: Any) -> None:
        """Record a tensor's gradient when the tensor is first used."""
        if id(tensor) not in self.entry_grads:
            self.entry_grads[id(tensor)] = (tensor, tensor._grad)

    def value_of(self, tensor: Any) -> Value:
        """Return the IR value that a tensor holds now; a tensor that is not known is lifted to an input."""
        a = tensor._array
        storage = self._storage_of(tensor, a)
        return storage.read(a) if a.__class__ is np.ndarray else self._with_bits(storage.read(memory_of(a)), a)

    def _storage_of(self, tensor: Any, a: Any) -> Storage:
        """The storage of a tensor, lifted if it is not known; its gradient and version at entry are noted."""
        storage = self.storages.get(id(aliasing.owner(a)))
        if storage is None:
            storage = self._lift(tensor, a)
        if tensor._requires_grad and tensor._node is None:
            self.note_entry_grad(tensor)
        if tensor._counter is not None:
            self._check_version(tensor)
        return storage

    def _with_bits(self, value: Value, a: np.ndarray) -> Value:
        """Return the elements of an array with bits for the value in its memory, or the reverse."""
        for name, bit in zip(("conj", "neg"), bits_of(a), strict=True):
            if bit:
                value, = lower_operator(self.graph, REGISTRY[name], [value], {})
        return value

    def known_value(self, a: np.ndarray) -> Value | None:
        """Return the IR value of an array; None if its memory is not known yet."""
        storage = self.storages.get(id(aliasing.owner(a)))
        return None if storage is None else storage.read(a)

    def _lift(self, tensor: Any, a: np.ndarray) -> Storage:
        """Make an array that existed before the call an input of the graph."""
        if type(a) is not np.ndarray:
            raise Unsupported(f"a tensor of {type(a).__name__}")
        root = aliasing.owner(a)
        if not a.ndim and a is root and not a.flags.writeable:  # the shared cotangent with which backward begins
            return self._register(root, aliasing.result_storage(self.graph, a, self.graph.constant(a)))
        memory = aliasing.leaf_array(a)
        storage, _ = aliasing.input_storage(self.graph, memory, self.num_leaves)
        self.lifted.append(LiftedInput(self.num_leaves, tensor, memory, a))
        self.num_leaves += 1
        storage.root = root
        return self._register(root, storage)

    def _register(self, root: np.ndarray, storage: Storage) -> Storage:
        """Register a storage by its owner; the storage of an array made in this call is removed with the array."""
        key, storages = id(root), self.storages
        storages[key] = storage
        if storage.leaf is None:
            storage.alive = weakref.ref(root, lambda _: storages.pop(key, None))
        return storage

    def bind(self, a: np.ndarray, value: Value) -> None:
        """Record the IR value of a new array."""
        if value.dtype != a.dtype:
            value = self.graph.cast(value, a.dtype)
        if value.shape != a.shape:
            raise Unsupported(f"a result of shape {a.shape} traced as {value.shape}")
        storage = self.storages.get(id(aliasing.owner(a)))
        if storage is not None and storage.value is None:
            storage.set_view(a, value)
            return
        self._register(aliasing.owner(a), aliasing.result_storage(self.graph, a, value))

    def value_of_array(self, a: np.ndarray) -> Value:
        """Return the IR value of an array that belongs to no tensor; an unknown one is lifted to an input."""
        known = self.known_value(a)
        return self._lift(None, a).read(a) if known is None else known

    def write(self, target: Any, value: Value) -> None:
        """Record that a tensor was overwritten with an IR value."""
        a = target._array
        if value.dtype != a.dtype:
            value = self.graph.cast(value, a.dtype)
        if value.shape != a.shape:
            value = self.graph.expand(value, a.shape)
        self.value_of(target)
        if a.__class__ is not np.ndarray:
            value, a = self._with_bits(value, a), memory_of(a)
        self.storages[id(aliasing.owner(a))].write(a, value)

    def ones_like(self, tensor: Any) -> Any:
        """Return a tensor of ones, which is no value of the graph yet, with the shape and dtype of another."""
        return wrap(np.ones(tensor._array.shape, tensor._array.dtype))

    def on_host_copy(self, source: Any, copy: Any) -> None:
        """Called when Python reads the elements of a tensor in a device's memory, from a copy."""
        self.graph_break("Python reads elements of a tensor on another device")

    def on_transfer(self, source: Any, made: np.ndarray) -> None:
        """Called when a tensor's elements were copied to another device."""
        self.graph_break("a tensor is copied to another device")

    def on_view(self, tensor: Any) -> None:
        """Called when the function makes a view of memory that existed before the call."""
        self.views[id(tensor)] = weakref.ref(tensor)

    def on_version_bump(self, tensor: Any, times: int = 1) -> None:
        """Called when a traced write bumps, or is about to bump, a tensor's version counter."""
        if not tensor._inference:
            self._version(tensor)[1] += times

    def _version(self, tensor: Any) -> list[Any]:
        """Return [a tensor's version counter, the version that the traced writes explain]."""
        counter = tensor._counter
        if counter is None:
            counter = tensor._counter = [0]
        known = self.versions.get(id(counter))
        if known is None:
            storage = self.storages.get(id(aliasing.owner(tensor._array)))
            is_created = storage is not None and storage.leaf is None
            known = self.versions[id(counter)] = [counter, 0 if is_created else counter[0]]
        return known

    def _check_version(self, tensor: Any) -> None:
        if tensor._counter is None or tensor._inference:
            return
        counter, traced = self._version(tensor)
        if counter[0] & WRITES > traced & WRITES:
            raise Unsupported("a write to a tensor that was not traced")

    def is_created(self, tensor: Any) -> bool:
        """Whether the function made a tensor itself."""
        storage = self.storages.get(id(aliasing.owner(tensor._array)))
        view = self.views.get(id(tensor))
        return (view is not None and view() is tensor) or (storage is not None and storage.leaf is None)


__all__ = ["LiftedInput", "StorageTracer", "hook_state", "user_location"]
