"""Descriptions of guards for `explain`, and advice on what prevents compilation."""

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
from .guards.guard import user_paths
from .guards.object_kinds import is_range_or_slice
from .tracing.provenance import Provenance, place_of
from .tracing.provenance_tracer import arguments_of

#: by comparison and outcome, the operator that holds
_SIGNS = {(operator.eq, True): "==", (operator.eq, False): "!=", (operator.ne, True): "!=", (operator.ne, False): "==",
          (operator.lt, True): "<", (operator.lt, False): ">=", (operator.le, True): "<=", (operator.le, False): ">",
          (operator.gt, True): ">", (operator.gt, False): "<=", (operator.ge, True): ">=", (operator.ge, False): "<"}
#: advice, by a part of the reason
_ADVICE = (
    ("passes a tensor's elements to Python",
     """What Python computes from them cannot be traced. Return the tensor and read it outside, or compute with
tensors (torch.where). A condition on a tensor is allowed: `if loss > 3:` is compiled."""),
    ("depends on a tensor's elements",
     "The shapes of a program's arrays are fixed. Keep the size, and mask elements instead (torch.where)."),
    ("an array that was another one in the next call",
     "The function uses a tensor from outside that is another one in each call. Pass it as an argument."),
    (" in one call, ",
     """A value that is not an argument changes from call to call: a number, a counter, a list. Pass it as an argument,
or make it a tensor that is changed in place."""),
    (" by the function, which a program does not repeat",
     """A program replays tensor operators only, not changes of Python objects. Return the value, or make it a tensor
that is changed in place."""),
    (" changes from call to call", "Pass it as an argument, or make it a tensor that is changed in place."),
    ("an iterator, whose", "Call next() outside, and pass the item as an argument."),
    ("a side effect, which a program does not repeat", "Return what is to be shown, and show it outside."),
    ("too many things outside", "Pass what the function needs of them as an argument."),
    ("random numbers are drawn", "Draw with torch: a program draws new numbers in each call. Or pass the numbers."),
    ("share memory", "Two of the function's tensors share memory: clone() one of them."),
    ("whose contents cannot be guarded", "Pass the tensors and numbers that the function needs of it."),
    ("no llvmlite", "Kernels are compiled by llvmlite: `pip install llvmlite`, and no FLAMBEAU_JIT=0."),
)
#: the largest number of guarded names that are listed
_MAX_NAMES = 12


def guards_of(entry: CacheEntry, provenance: Provenance, function: Callable[..., Any],
              call: tuple[tuple, dict[str, Any]]) -> list[str]:
    """Describe the guards of a cache entry; last, the inputs that may change.

    Args:
        entry: the cache entry.
        provenance: names and lines of its trace.
        function: the function.
        call: the arguments of a call, positional and by keyword.
    """
    trace = entry.trace
    found = [text for name, x in arguments_of(function, *call) for text in _argument(name, x)]
    default = str(dtypes.get_default_dtype()).rpartition(".")[2]
    found.append(f"the default dtype is {default}, and grad mode is {'on' if grad_mode.get() else 'off'}")
    for _, key, index, compare, other, outcome in trace.scalar_guards:
        found.append(f"{key}{'' if index is None else f'[{index}]'} {_SIGNS[compare, bool(outcome)]} {other}")
    found += dict.fromkeys(_data_guard(g, provenance) for g in trace.data_guards)
    if trace.grad_absent:
        found.append(f"the .grad of {pluralize(len(trace.grad_absent), 'tensor')} is None")
    for has_grad, text in ((True, "is not None"), (False, "is None")):
        if count := sum(each is has_grad for _, each in trace.grad_presence):
            found.append(f"the .grad of {pluralize(count, 'tensor')}, which the function reads, {text}")
    if trace.modules:
        found.append(f"{pluralize(len(trace.modules), 'module')} unchanged: mode, parameters, hooks, attributes")
    optimizers = {id(optimizer) for optimizer, _ in trace.param_groups}
    if optimizers:
        found.append(f"{pluralize(len(optimizers), 'optimizer')} unchanged: groups, parameters, options, state")
    names = dict.fromkeys(user_paths(entry.guards))
    if names:
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        found.append(f"these names have the same values: {', '.join([*names][:_MAX_NAMES])}{more}")
    outside = sum(source[0] in ("tensor", "gradient of") for source in trace.sources.values())
    if outside:
        found.append(f"{pluralize(outside, 'tensor')} from outside: the same objects; their elements may change")
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


def _data_guard(guard: Any, provenance: Provenance) -> str:
    place = place_of(guard.where)
    condition = printing.expression(guard.value, provenance.names)
    where = guard.where if place is None else place.text
    return f"{condition} is {guard.outcome}\n  {where}"


def advice(reason: str) -> str | None:
    """Return advice on a reason for not compiling; None if there is none."""
    return next((text for part, text in _ADVICE if part in reason), None)


__all__ = ["advice", "guards_of"]
