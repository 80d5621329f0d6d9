"""Signatures of calls, and what a compiled function knows about the calls of one signature."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.parameter import Parameter
from ...amp import state as autocast
from ...backends.bit_views import bits_of
from ...engine.grad_mode import grad_mode, inference
from ..guards.object_kinds import is_range_or_slice
from ..tracing.aliasing import group_by_storage, owner, place
from ..tracing.trace import Trace
from .cache_entry import CacheEntry
from .template import layouts_of, numbers_of


def argument_signature(x: Any) -> Any:
    """Return the key of an argument: tensor metadata, the value of a constant, the identity of any other object."""
    if isinstance(x, Tensor):
        a = x._array
        return ("tensor", a.shape, a.strides, a.dtype, x._requires_grad, x._node is None, type(x), x._inference,
                *bits_of(a))
    if isinstance(x, (float, complex, np.generic)):
        return (type(x), repr(x))  # distinguishes 0.0 from -0.0; NaN equals itself
    if isinstance(x, (bool, int, str, bytes, type(None))):
        return (type(x), x)
    if is_range_or_slice(x):
        return (type(x), repr(x))
    return ("object", id(x))


def without_numbers(signature: tuple, sizes: bool) -> list[Any]:
    """Return a signature with the types of numbers instead of their values; `sizes`: without shapes, too."""
    return [x if x.__class__ is not tuple or not x else x[0] if x[0] in (int, float)
            else (len(x[1]), *x[3:]) if sizes and x[0] == "tensor" else x for x in signature]


def objects_of(signature: tuple) -> tuple:
    """Return the keys of a signature's arguments that are keyed by identity."""
    return tuple([x for x in signature if x.__class__ is tuple and x and x[0] == "object"])


def without_values(signature: tuple, positions: frozenset[int]) -> tuple:
    """Return a signature without the values of the arguments at these positions, which are numbers."""
    return tuple([x[:1] if i - 1 in positions else x for i, x in enumerate(signature)])


def alias_signature(tensors: Sequence[Any]) -> tuple:
    """Return which tensors are the same object or share memory, and their offsets; () if none do."""
    if len({id(owner(x._array)) for x in tensors}) == len(tensors):
        return ()
    groups = []
    for members in group_by_storage(tensors):
        if len(members) > 1:
            places = [place(tensors[i]._array) for i in members]
            start = min(each[0] for each in places)
            same = [next(j for j in members if tensors[j] is tensors[i]) for i in members]
            groups.append((tuple(members), tuple(each[0] - start for each in places), tuple(same)))
    return tuple(groups)


def is_static_argument(x: Any) -> bool:
    """Whether an argument's key, and guards on modules and functions, determine how a function uses it."""
    from ...nn import Module

    if isinstance(x, Tensor):
        return type(x) in (Tensor, Parameter)
    return is_range_or_slice(x) or isinstance(x, (bool, int, float, complex, str, bytes, type(None), type,
                                                  types.FunctionType, types.BuiltinFunctionType, dtypes.dtype, Module,
                                                  np.generic))


def signature_of(arguments: list[Any], tree: Any) -> tuple:
    """Return the signature of a call: keys of its arguments, aliasing among them, and modes.

    Args:
        arguments: the arguments, flattened.
        tree: their structure.
    """
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    return (repr(tree), *map(argument_signature, arguments), alias_signature(tensors), grad_mode.get(),
            inference.get(), dtypes.get_default_dtype(), autocast.casts_to())


class SignatureCache:
    """The cache entries and pending traces of one signature.

    Attributes:
        pending_traces: traces that wait for one that agrees, perhaps of several branches.
        entries: cache entries, the latest first.
        num_traces: traces since the last entry was made.
        skip_reason: why calls run eagerly for good, or None.
        mismatch: the difference between the last two traces.
        object_refs: (position, weak reference) of arguments that are keyed by identity, which may be reused.
        num_mutations: traces that changed guarded values.
        has_unstable_objects: whether arguments may be other objects in each call, and there is no entry yet.
        may_use_record: whether one trace that agrees with the persistent cache suffices; only for the first entry.
        family: the key of its shape family.
        layouts: shapes and strides of the tensors.
        numbers: the numbers among the arguments.
        seconds: how long the last traced call took.
        is_of_template: whether a template gives the entries; others do not belong here.
        values: the guards of the last pending trace, and their values after it.
    """

    __slots__ = ("entries", "family", "has_unstable_objects", "is_of_template", "layouts", "may_use_record",
                 "mismatch", "num_mutations", "num_traces", "numbers", "object_refs", "pending_traces", "seconds",
                 "skip_reason", "values")

    def __init__(self, arguments: Sequence[Any], family: tuple | None = None) -> None:
        self.family, self.layouts = family, layouts_of([x for x in arguments if isinstance(x, Tensor)])
        self.numbers = numbers_of(arguments)
        self.object_refs = [(i, weak_reference(x)) for i, x in enumerate(arguments)
                            if argument_signature(x)[0] == "object"]
        self.seconds = 0.0
        self.pending_traces: list[Trace] = []
        self.entries: list[CacheEntry] = []
        self.num_traces = 0
        self.skip_reason: str | None = None
        self.mismatch: str | None = None
        self.num_mutations = 0
        self.has_unstable_objects = False
        self.may_use_record, self.is_of_template = True, False
        self.values: tuple[Any, list[Any]] | None = None

    def matches(self, arguments: Sequence[Any]) -> bool:
        """Whether the arguments that are keyed by identity are the same objects."""
        return all(ref() is arguments[i] for i, ref in self.object_refs)


def weak_reference(x: Any) -> Callable[[], Any]:
    """Return a weak reference to an object, or a strong one if it does not support weak references."""
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x


__all__ = ["SignatureCache", "alias_signature", "argument_signature", "is_static_argument", "objects_of",
           "signature_of", "without_numbers", "without_values"]
