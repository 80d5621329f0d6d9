"""Reasons for recompilation: the failed guard of a cache entry, or the difference between two signatures.

`FLAMBEAU_DEBUG=recompiles` prints them when a call of a compiled function is traced although there are entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ... import dtypes
from ...backends.numpy.memory import address, owner
from ...engine.nodes.leaf_hooks import LeafHooks
from ..guards.guard import differing_part
from ..guards.tensor_state import are_hooked
from .cache_entry import CacheEntry
from .template import pin_holds

#: what the entries of a signature after those of the arguments are on
_STATE = ("aliasing among the arguments", "grad mode", "inference mode", "the default dtype", "autocast")


def failed_guard(entry: CacheEntry, arguments: Sequence[Any]) -> str | None:
    """Describe the first guard that fails for a call, in the order of `CacheEntry.check_guards`; None if all hold.

    Args:
        entry: the cache entry.
        arguments: the tensors among the call's arguments.
    """
    trace = entry.trace
    for ref in trace.grad_absent:
        if ref.resolve(arguments)._grad is not None:
            return "a .grad that was None is a tensor"
    for ref, has_grad in trace.grad_presence:
        if (ref.resolve(arguments)._grad is not None) is not has_grad:
            return f"a .grad that was {'a tensor' if has_grad else 'None'} is {'None' if has_grad else 'a tensor'}"
    for at, x in enumerate(arguments):
        found = trace.user_attributes.intersection(x.__dict__)
        if found:
            return f"tensor argument {at} has the attribute {min(found)}"
    for at, start in trace.storage_offsets:
        array = arguments[at]._array
        if address(array) - address(owner(array)) != start:
            return f"tensor argument {at} has another storage offset"
    for at, (x, pin) in enumerate(zip(arguments, entry.pins, strict=True)):
        if pin is not None and not pin_holds(x, pin):
            return f"tensor argument {at} was the same tensor in all traced calls, and is another one"
    if trace.ran_backward and LeafHooks.registered and are_hooked(*arguments):
        return "an argument has hooks"
    gradients = [ref.resolve(arguments)._grad for ref in entry._grad_refs]
    if not entry.do_not_alias([x._array for x in arguments], [g._array for g in gradients if g is not None]):
        return "a gradient or a tensor from outside shares memory with another tensor"
    for group, key, index, compare, other, outcome in trace.scalar_guards:
        value = group[key]
        if bool(compare(value if index is None else value[index], other)) != outcome:
            return f"a comparison of the hyperparameter {key} with {other} has another outcome: it is {value}"
    if not entry.optimizers_match():
        return "an optimizer has other groups, parameters or options"
    if not entry.modules_match():
        return next((differing_part(each, each.current()) for each in entry._modules if not each.holds()),
                    "a module has changed")
    if not entry.tensor_flags_match(True):
        return "requires_grad or the hooks of a tensor from outside have changed"
    for each in (*entry.guards, *entry.optimizer_guards):
        if not each.holds():
            return _changed_value(each)
    return None


def _changed_value(guard: Any) -> str:
    name = guard.path or "an entry of an optimizer's state"
    try:
        now = guard.current()
    except (LookupError, AttributeError, ValueError, TypeError, RuntimeError):
        return f"{name} is gone"
    if all(isinstance(value, (bool, int, float, complex, str, bytes, type(None))) for value in (guard.value, now)):
        return f"{name} was {guard.value!r}, and is {now!r}"
    return f"{name} is another {type(now).__name__}" if type(now) is type(guard.value) else (
        f"{name} was a {type(guard.value).__name__}, and is a {type(now).__name__}")


def signature_difference(old: Sequence[Any], new: Sequence[Any]) -> str:
    """Describe the first difference of two signatures of a function.

    >>> import flambeau as torch
    >>> from flambeau.compiler.execution.signatures import signature_of
    >>> old, new = (signature_of([torch.ones(n), 3], ()) for n in (2, 4))
    >>> signature_difference(old, new)
    'argument 0 was float32[2], and is float32[4]'
    """
    if old[0] != new[0]:
        return f"the arguments were {old[0]}, and are {new[0]}"
    last = len(new) - len(_STATE)
    for at in range(1, last):
        if old[at] != new[at]:
            before, now = _argument(old[at]), _argument(new[at])
            if before == now:
                return f"argument {at - 1} has other strides, class, history or inference mode: {now}"
            return f"argument {at - 1} was {before}, and is {now}"
    return next(f"{name} has changed" for name, a, b in zip(_STATE, old[last:], new[last:], strict=True) if a != b)


def _argument(key: Any) -> str:
    if key[0] == "tensor":
        _, shape, _, dtype, requires_grad, *_ = key
        name = str(dtypes.of(dtype)).rpartition(".")[2]
        return f"{name}{[*shape]}{', requires grad' if requires_grad else ''}"
    return "another object" if key[0] == "object" else str(key[1])


def recompile_reasons(title: str, entries: Iterable[CacheEntry], arguments: Sequence[Any]) -> str:
    """Describe why none of the entries of a signature fits a call."""
    lines = [f"  {entry.name}: {failed_guard(entry, arguments) or 'a data guard: a condition on elements of tensors'}"
             for entry in entries]
    return "\n".join([f"{title}: traced again, since no program's guards hold", *lines])


__all__ = ["failed_guard", "recompile_reasons", "signature_difference"]
