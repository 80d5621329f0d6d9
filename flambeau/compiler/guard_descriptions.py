"""What a program depends on, and what keeps a function from having one, in plain words."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor import Tensor
from ..engine.grad_mode import grad_mode
from ..ir import printing
from ..ir.debug_output import pluralize
from ..trees import is_container, tree_flatten
from .execution.cache_entry import CacheEntry
from .guards.environment import is_range_or_slice, paths
from .tracing.provenance import Provenance, place_of
from .tracing.provenance_tracer import arguments_of

#: how a comparison with an outcome is written
_SIGNS = {(operator.eq, True): "==", (operator.eq, False): "!=", (operator.ne, True): "!=", (operator.ne, False): "==",
          (operator.lt, True): "<", (operator.lt, False): ">=", (operator.le, True): "<=", (operator.le, False): ">",
          (operator.gt, True): ">", (operator.gt, False): "<=", (operator.ge, True): ">=", (operator.ge, False): "<"}
_ADVICE = (
    ("hands a tensor's numbers to the interpreter",
     """What Python computes from these numbers cannot be written down. Return the tensor and read it outside,
or compute with tensors (torch.where). A condition on a tensor is no obstacle: `if loss > 3:` is compiled."""),
    ("depends on a tensor's numbers",
     """A program's arrays have sizes that are known beforehand. Keep the size, and mask elements instead
(torch.where)."""),
    ("an array that was another one in the next call",
     "The function uses a tensor that it makes, or finds, anew each time. Pass it as an argument."),
    (" in one call, ",
     """Something changes from call to call that is no argument: a number, a counter, a list. Pass it as an argument,
or make it a tensor that is changed in place."""),
    (" by the function, which a program does not repeat",
     """A program computes tensors; what else the function changes would be changed no more. Return it, or make
it a tensor that is changed in place."""),
    (" changes from call to call", "Pass it as an argument, or make it a tensor that is changed in place."),
    ("an iterator, of which", "Ask it for what comes next outside, and pass that as an argument."),
    ("something that a program does not repeat", "Return what is to be shown, and show it outside."),
    ("too many things outside", "Pass what the function needs of it as an argument."),
    ("random numbers are drawn", "Draw with torch: each call of a program draws its own. Or pass the numbers."),
    ("share memory", "Two of the function's tensors show the same memory: clone() one of them."),
    ("what it holds is not looked at", "Pass the tensors and numbers that the function needs of it."),
    ("no llvmlite", "Kernels are compiled by llvmlite: `pip install llvmlite`, and no FLAMBEAU_JIT=0."),
)
#: names that are told of what a function sees outside
_NAMES = 12


def guards_of(entry: CacheEntry, origins: Provenance, function: Callable[..., Any],
              call: tuple[tuple, dict[str, Any]]) -> list[str]:
    """What has to hold for a call to be replayed, then what may change from call to call."""
    trace = entry.trace
    found = [text for name, x in arguments_of(function, *call) for text in _argument(name, x)]
    default = str(dtypes.get_default_dtype()).rpartition(".")[2]
    found.append(f"the default dtype is {default}, and grad mode is {'on' if grad_mode.get() else 'off'}")
    for _, key, index, compare, other, outcome in trace.scalar_guards:
        found.append(f"{key}{'' if index is None else f'[{index}]'} {_SIGNS[compare, bool(outcome)]} {other}")
    found += dict.fromkeys(_condition(g, origins) for g in trace.data_guards)
    if trace.grad_absent:
        found.append(f"{pluralize(len(trace.grad_absent), 'tensor')} still without .grad")
    for has_one, said in ((True, "with"), (False, "without")):
        if count := sum(each is has_one for _, each in trace.grad_presence):
            found.append(f"{pluralize(count, 'tensor')} {said} a .grad, which the function looks at")
    if trace.modules:
        found.append(f"{pluralize(len(trace.modules), 'module')} as before: "
                     "train or eval, parameters, hooks, attributes")
    optimizers = {id(optimizer) for optimizer, _ in trace.param_groups}
    if optimizers:
        found.append(f"{pluralize(len(optimizers), 'optimizer')} as before: groups, parameters, flags, states")
    names = dict.fromkeys(paths(entry.guards))
    if names:
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        found.append(f"these names mean what they meant: {', '.join([*names][:_NAMES])}{more}")
    outside = sum(source[0] in ("tensor", "gradient of") for source in trace.sources.values())
    if outside:
        found.append(f"{pluralize(outside, 'tensor')} found outside, "
                     "the same as before; the numbers in them may change")
    numbers = dict.fromkeys(f"{source[2]}{'' if source[3] is None else f'[{source[3]}]'}"
                            for source in trace.sources.values() if source[0] == "number")
    if numbers:
        found.append(f"(free to change: {', '.join(numbers)})")
    return found


def _argument(name: str, x: Any) -> Iterator[str]:
    if isinstance(x, Tensor):
        a = x._array
        order = "" if a.flags.c_contiguous else f", strides {x.stride()}"
        grad = "" if not x._requires_grad else ", requires grad" + ("" if x._node is None else " and has a history")
        dtype = str(dtypes.of(a.dtype)).rpartition(".")[2]
        yield f"{name} is a tensor of {dtype}{list(a.shape)}{order}{grad}"
    elif is_container(x):
        leaves = tree_flatten(x)[0]
        if not leaves:
            yield f"{name} is an empty {type(x).__name__}"
        for i, each in enumerate(leaves):
            yield from _argument(f"{name}[{i}]", each)
    elif is_range_or_slice(x) or isinstance(
            x, (bool, int, float, complex, str, bytes, type(None), np.generic, dtypes.dtype)):
        yield f"{name} is {x!r}"
    else:
        yield f"{name} is the same {type(x).__name__}"


def _condition(guard: Any, origins: Provenance) -> str:
    place = place_of(guard.where)
    said = printing.expression(guard.value, origins.names)
    where = guard.where if place is None else place.said
    return f"{said} is {guard.outcome}\n  {where}"


def advice(why: str) -> str | None:
    """What can be done about a reason, if there is something to say."""
    return next((text for part, text in _ADVICE if part in why), None)


__all__ = ["advice", "guards_of"]
