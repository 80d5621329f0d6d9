"""Functionalization of traces: writes become operators that return new values, and views are computed again after them.

The program runs as it is, so its values are those of the writes. For each memory the trace keeps the node of its
present contents; a view is the operators that lead to it from there. After a write to a view, the new contents are
computed backward through these operators, and other views of the memory are computed from them when they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..._tensor.overriding.dispatch import without_handlers
from ...environment.extension import _storage_address
from ...ops import aten
from ...utils._pytree import tree_leaves, tree_map
from ..proxy import Proxy

#: operators that make a tensor another view of its memory
_IN_PLACE_VIEWS = frozenset(("squeeze_", "unsqueeze_", "transpose_", "t_", "as_strided_"))


class _Memory:
    """A memory: the node of its contents, and how often it was written.

    Args:
        tensor: the tensor that is all of it.
        proxy: its node.
    """

    def __init__(self, tensor: Any, proxy: Proxy) -> None:
        self.tensor, self.proxy, self.writes = tensor, proxy, 0


class _Step:
    """An operator from a tensor to a view of it.

    Args:
        overload, args, kwargs: the operator, and its arguments without the tensor.
        index: which of its results the view is; None if it has one.
        before, after: the metadata of the tensor and of the view.
    """

    def __init__(self, overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any], index: int | None, before: Any,
                 after: Any) -> None:
        self.overload, self.args, self.kwargs, self.index = overload, args, kwargs, index
        self.before, self.after = before, after


class _Known:
    """A tensor of the program: its memory, the steps to it, its node, and up to which write the node is valid."""

    def __init__(self, tensor: Any, memory: _Memory, steps: list[_Step], proxy: Proxy) -> None:
        self.tensor, self.memory, self.steps, self.proxy, self.writes = tensor, memory, steps, proxy, 0


def _metadata(x: Any) -> Any:
    with without_handlers():
        return x.detach().to("meta")


class Functionalizer:
    """Makes nodes without writes of the operators of a trace.

    Args:
        tracer: the tracer.
        copies: whether views become copies, `view_copy`.
    """

    def __init__(self, tracer: Any, *, copies: bool) -> None:
        self.tracer, self.copies = tracer, copies
        self.known: dict[int, _Known] = {}
        self.inputs: dict[int, Proxy] = {}

    def operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator and make its nodes; the result."""
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        nodes = {id(x): self.read(x) for x in tensors if id(x) in self.known or self.tracer.tracked(x) is not None}
        before = [_metadata(x) for x in tensors[:1]]
        result = func(*args, **kwargs)
        given = tree_map(lambda x: nodes.get(id(x), x) if isinstance(x, torch.Tensor) else x, (args, kwargs))
        if func is aten.native_batch_norm.default and any(id(x) in nodes for x in args[3:5]):
            return self._batch_norm(result, given[0], args)
        if func.overloadpacket.__name__ in _IN_PLACE_VIEWS:
            return self._change_view(func, given, args, kwargs, before[0], result)
        if func._schema.is_mutable:
            return self._write(func, args[0], given, result)
        source = self.known.get(id(tensors[0])) if tensors else None
        address = _storage_address(source.tensor) if source is not None else None
        parts = result if isinstance(result, (list, tuple)) else [result]
        if source is None or not any(isinstance(x, torch.Tensor) and _storage_address(x) == address for x in parts):
            proxy = self._node(func, *given)
            self.tracer.track(result, proxy)
            return result
        overload = self._view(func)
        proxy = self._node(overload, *given)
        self.tracer.track(result, proxy)
        for i, x in enumerate(parts):
            index = i if isinstance(result, (list, tuple)) else None
            step = _Step(overload, args[1:], kwargs, index, before[0], _metadata(x))
            self.known[id(x)] = _Known(x, source.memory, [*source.steps, step], self.tracer.tensor_tracker[id(x)][1])
        return result

    def read(self, x: Any) -> Proxy:
        """The node of a tensor's present value."""
        entry = self.known.get(id(x))
        if entry is None:
            proxy = self.tracer.tracked(x)
            entry = self.known[id(x)] = _Known(x, _Memory(x, proxy), [], proxy)
            self.inputs.setdefault(id(x), proxy)
        if entry.writes != entry.memory.writes:
            entry.proxy, entry.writes = self._through(entry.memory.proxy, entry.steps), entry.memory.writes
            self.tracer.tensor_tracker[id(x)] = x, entry.proxy
        return entry.proxy

    def finish(self, args: Any, result: Any) -> None:
        """Compute results that are views of written memory, and write the inputs."""
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor) and (id(x) in self.known or id(x) in self.tracer.tensor_tracker):
                self.read(x)
        for x in tree_leaves(args):
            entry = self.known.get(id(x))
            if entry is not None and not entry.steps and entry.memory.writes:
                self._node(aten.copy_.default, (self.inputs[id(x)], entry.memory.proxy), {}, _metadata(x))

    # ----- nodes -----

    def _node(self, overload: Any, args: Any, kwargs: Any, metadata: Any = None) -> Proxy:
        name = self.tracer.graph._target_to_str(overload.overloadpacket.__name__)
        proxy = self.tracer.create_proxy("call_function", overload, args, kwargs, name=name)
        if metadata is not None:
            proxy.node.meta["val"] = metadata
        return proxy

    def _view(self, overload: Any) -> Any:
        """The overload of a view, or of its copy."""
        packet = getattr(aten, f"{overload.overloadpacket.__name__}_copy", None) if self.copies else None
        return overload if packet is None else getattr(packet, overload._overloadname, overload)

    def _through(self, proxy: Any, steps: list[_Step]) -> Any:
        for step in steps:
            made: Any = self._node(step.overload, (proxy, *step.args), step.kwargs)
            proxy = made if step.index is None else made[step.index]
            proxy.node.meta["val"] = step.after
        return proxy

    def _write(self, func: Any, target: Any, given: Any, result: Any) -> Any:
        name = func.overloadpacket.__name__
        packet = getattr(aten, "normal_functional" if name == "normal_" else name[:-1], None)
        functional = getattr(packet, "p" if name == "bernoulli_" and func._overloadname == "float" else
                             func._overloadname, None)
        if functional is None:
            raise RuntimeError(f"functionalize: no operator without a write takes the place of {func}")
        self.read(target)
        entry = self.known[id(target)]
        value = self._node(functional, given[0], given[1], _metadata(target))
        for at in reversed(range(len(entry.steps))):
            value = self._backward(entry.steps[at], value, self._through(entry.memory.proxy, entry.steps[:at]) if (
                entry.steps[at].overload.overloadpacket.__name__.removesuffix("_copy") in _PARTS) else None)
        entry.memory.proxy = value
        entry.memory.writes += 1
        self.read(target)
        if isinstance(result, torch.Tensor) and id(result) not in self.known:
            self.known[id(result)] = _Known(result, entry.memory, entry.steps, entry.proxy)
            self.known[id(result)].writes = entry.writes
            self.tracer.tensor_tracker[id(result)] = result, entry.proxy
        return result

    def _change_view(self, func: Any, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any], before: Any,
                     result: Any) -> Any:
        """A tensor that becomes another view of its memory: one more step leads to it."""
        entry = self.known.get(id(args[0]))
        if entry is None:  # made outside of the function
            return result
        name = func.overloadpacket.__name__[:-1]
        overload = self._view(aten.transpose.int if name == "transpose" else getattr(
            getattr(aten, name), func._overloadname))
        after = _metadata(args[0])
        entry.proxy = self._node(overload, given[0], given[1], after)
        entry.steps = [*entry.steps, _Step(overload, args[1:], kwargs, None, before, after)]
        self.tracer.tensor_tracker[id(args[0])] = args[0], entry.proxy
        return result

    def _batch_norm(self, result: Any, given: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
        """Nodes of a normalization that updates running averages: its operator returns their new values, too."""
        if args[3] is None or args[4] is None or not args[5]:
            self.tracer.track(result, self._node(aten.native_batch_norm.default, given, {}))
            return result
        proxy: Any = self._node(aten._native_batch_norm_legit_functional.default, given, {})
        self.tracer.track(result, proxy)
        for i in (3, 4):
            entry = self.known.get(id(args[i]))
            if entry is None:  # made outside of the function
                continue
            if entry.steps:
                raise RuntimeError("functionalize: a running average that is a view is not supported")
            entry.memory.proxy = proxy[i]
            entry.memory.proxy.node.meta["val"] = _metadata(args[i])
            entry.memory.writes += 1
            self.read(args[i])
        return result

    def _backward(self, step: _Step, value: Proxy, whole: Proxy | None) -> Proxy:
        """The tensor before a step, of the view after it; `whole` is its value before the write."""
        name = step.overload.overloadpacket.__name__.removesuffix("_copy")
        if name in ("detach", "alias"):
            return value
        if name in _PARTS:
            scatter, arguments = _PARTS[name](step)
            return self._node(scatter, (whole, value, *arguments), {}, step.before)
        if name not in _WHOLE:
            raise RuntimeError(f"functionalize: a write to a view made by {step.overload} is not supported")
        overload, arguments = _WHOLE[name](step)
        return self._node(self._view(overload), (value, *arguments), {}, step.before)


#: views of all elements -> the operator that leads back, and its arguments
_WHOLE: dict[str, Callable[[_Step], tuple[Any, tuple[Any, ...]]]] = {
    **dict.fromkeys(("view", "_unsafe_view", "_reshape_alias"), lambda step: (
        aten.view.default, (list(step.before.shape),))),
    "t": lambda step: (aten.t.default, ()),
    "transpose": lambda step: (aten.transpose.int, step.args),
    "permute": lambda step: (aten.permute.default, (
        [sorted(range(step.before.dim()), key=lambda i: step.args[0][i] % step.before.dim())[d]
         for d in range(step.before.dim())],)),
    "unsqueeze": lambda step: (aten.squeeze.dim, step.args),
    "squeeze": lambda step: (aten.view.default, (list(step.before.shape),)),
}


def _slice_arguments(step: _Step) -> tuple[Any, ...]:
    return (*step.args, *(0, None, None, 1)[len(step.args):])


def _split_arguments(step: _Step) -> tuple[Any, ...]:
    sizes, dim = step.args[0], step.args[1] if len(step.args) > 1 else step.kwargs.get("dim", 0)
    assert step.index is not None
    length = step.after.shape[dim]
    start = step.index * sizes if isinstance(sizes, int) else sum(sizes[:step.index])
    return dim, start, start + length, 1


#: views of some elements -> the operator that writes them into the whole, and its arguments
_PARTS: dict[str, Callable[[_Step], tuple[Any, tuple[Any, ...]]]] = {
    "select": lambda step: (aten.select_scatter.default, step.args),
    "slice": lambda step: (aten.slice_scatter.default, _slice_arguments(step)),
    "diagonal": lambda step: (aten.diagonal_scatter.default, step.args),
    "as_strided": lambda step: (aten.as_strided_scatter.default, step.args),
    "unbind": lambda step: (aten.select_scatter.default, (step.args[0] if step.args else 0, step.index)),
    **dict.fromkeys(("split", "split_with_sizes"), lambda step: (aten.slice_scatter.default, _split_arguments(step))),
}

__all__ = ["Functionalizer"]
