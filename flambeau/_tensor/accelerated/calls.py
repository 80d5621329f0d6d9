"""Public functions while a device is in use: where they make tensors, and what they were given.

Within a function, tensors without `device=` are made where its arguments are. Those that the user gave are noted, so
that `placement` tells them from constants of the function's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ... import devices
from ...backends.cuda_devices import observe
from ...devices import CPU, META, device
from ...engine.grad_mode import grad_mode
from ...engine.nodes.op_node import OpNode
from ...engine.tensor_interface import layer
from ...modes import active_tracer, special
from ..overriding import entry_points
from ..overriding.dispatch import begin_dispatch, end_dispatch, no_dispatch
from ..tensor import Tensor
from . import fused_rules
from .placement import given

Implementation = Callable[..., Any]

#: name of a public function -> what runs instead of it, given the implementation, the device of its first tensor in a
#: device's memory (None: it has none), and the arguments; it returns NotImplemented to let the implementation run
HANDLERS: dict[str, Callable[[Implementation, device | None, tuple[Any, ...], dict[str, Any]], Any]] = {}

#: functions that run functions of the user's (hooks among them), which make tensors where the user says
RUN_FUNCTIONS = frozenset(("torch.Tensor.backward", "torch.autograd.grad", "torch.Tensor.map_", "torch.Tensor.apply_"))
#: how names of accessors of attributes end
CHANGE_ATTRIBUTES = (".__get__", ".__set__", ".__delete__")


def _tensors(values: Any) -> Iterator[Tensor]:
    for x in values:
        if isinstance(x, Tensor):
            yield x
        elif x.__class__ is list or x.__class__ is tuple:
            yield from _tensors(x)


def called_on_device(name: str, implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a public function; NotImplemented where nothing of it concerns a device."""
    if no_dispatch.get():
        return NotImplemented
    tensors = [*_tensors(args), *_tensors(kwargs.values())] if kwargs else list(_tensors(args))
    on = next((x._device for x in tensors if x._device.type == "cuda"), None)
    handler = HANDLERS.get(name)
    if handler is not None:
        with within(tensors, devices.ambient[0]) if on is not None else _nothing():
            result = handler(implementation, on, args, kwargs)
        if result is not NotImplemented:
            return result
    if on is None:
        ambient = devices.ambient[0]
        if ambient is None or ambient.type != "cuda" or not tensors or name in RUN_FUNCTIONS:
            return NotImplemented
        with within(tensors, None):
            return implementation(*args, **kwargs)
    if name in RUN_FUNCTIONS or name.endswith(CHANGE_ATTRIBUTES):
        return NotImplemented
    with within(tensors, on):
        return implementation(*args, **kwargs)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def within(tensors: list[Tensor], on: device | None) -> Iterator[None]:
    """A block that is the inside of a public function.

    Args:
        tensors: what the user gave it.
        on: where it makes tensors.
    """
    token = given.set(frozenset(map(id, tensors))) if given.get() is None else None
    before, devices.ambient[0] = devices.ambient[0], on
    try:
        yield
    finally:
        devices.ambient[0] = before
        if token is not None:
            given.reset(token)


@contextmanager
def making_on(on: device | None) -> Iterator[None]:
    """A block in which tensors without `device=` are made on a device."""
    before, devices.ambient[0] = devices.ambient[0], on
    try:
        yield
    finally:
        devices.ambient[0] = before


#: the operator whose rule a tracer replaces by kernels of its own
_TRACED = "_flash_attention"
#: [the table of recorded rules (`recorded.rule_table`)]; None: there is none
rules: list[Any] = [None]


def rule_of(function: Callable[..., Any], node: Any, g: Any, *rest: Any) -> Any:
    """A derivative rule, whose constants are made on the device of the gradient."""
    if special[0] and isinstance(node, OpNode) and node.op.name == _TRACED and (
            tracer := active_tracer.get()) is not None:
        saved = node.unpack(True) if node.plan.saves_tensors else []
        results = _run_rule(function, node, g, *rest)
        tracer.on_rule(node.op, g, saved, results)
        return results
    if isinstance(node, OpNode) and node.op.name in fused_rules.OPERATORS and not grad_mode.get():
        return _run_rule(fused_rules.run, node, g)
    table = rules[0]
    if table is None:
        return _run_rule(function, node, g, *rest)
    return table.run(function, node, g, lambda: _run_rule(function, node, g, *rest))


def _run_rule(function: Callable[..., Any], node: Any, g: Any, *rest: Any) -> Any:
    first = g if isinstance(g, Tensor) else next((x for x in g or () if isinstance(x, Tensor)), None)
    on = None if first is None else first._device
    if on is None or on is CPU or on is META:
        return function(node, g, *rest)
    token = given.set(frozenset())
    try:
        with making_on(on):
            return function(node, g, *rest)
    finally:
        given.reset(token)


_active = [False]


def _follow(runtime: Any) -> None:
    """Let public functions and operators ask for devices while there is a runtime."""
    if bool(runtime) is _active[0]:
        return
    _active[0] = bool(runtime)
    if runtime:
        entry_points.called_on_device[0] = called_on_device
        layer.rule_on_device = rule_of
        begin_dispatch()
        entry_points.begin_use()
    else:
        entry_points.end_use()
        end_dispatch()
        entry_points.called_on_device[0] = None


observe(_follow)

__all__ = ["CHANGE_ATTRIBUTES", "HANDLERS", "RUN_FUNCTIONS", "called_on_device", "making_on", "rule_of", "rules",
           "within"]
