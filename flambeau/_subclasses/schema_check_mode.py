"""`torch._subclasses.schema_check_mode`: a mode that compares what operators do to memory with what schemas say."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

from .. import devices
from .._tensor import Tensor
from .._tensor.shape.lazy_clones import identity
from ..environment.schema_info import SchemaArgType, SchemaArgument, SchemaInfo, overlaps
from ..ops import aten
from ..utils._python_dispatch import TorchDispatchMode
from ..utils._pytree import tree_leaves, tree_map_only

__all__ = ["Aliasing", "Mutation", "SchemaCheckMode"]


class Mutation(NamedTuple):
    """An argument that an operator has written."""

    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    """A result that shares memory with an argument."""

    op_name: str
    arg_name: str
    output_number: str


#: operators whose results share memory although their schemas say that they do not
_UNSAFE = ("aten::_unsafe_view", "aten::unsafe_split", "aten::unsafe_split_with_sizes")


def _copy(value: Any) -> Any:
    return tree_map_only(Tensor, lambda x: x.detach().clone(), value)


def _unwrapped(value: Any) -> Any:
    return tree_map_only(Tensor, lambda x: getattr(x, "elem", x) if type(x) is not Tensor else x, value)


def _place(x: Any) -> Any:
    """The strides and the storage of a tensor; None for another value or layout."""
    x = _unwrapped(x)
    if type(x) is not Tensor or x.layout is devices.sparse_csr:
        return None
    return (x.stride(), identity(x._array)) if x.layout is devices.strided else ()


def _written(before: Any, after: Any, place: Any) -> bool:
    if type(before) is not Tensor or type(after) is not Tensor or place is None or (
            devices.sparse_csr in (before.layout, after.layout)):
        return False
    from .._tensor.functions import allclose

    return before.shape != after.shape or place != _place(after) or not allclose(before, after, equal_nan=True)


class SchemaCheckMode(TorchDispatchMode):
    """A mode that checks each operator: it writes no arguments and shares no memory but as its schema says.

    Attributes:
        ops: the names of the operators.
        mutated: the arguments that were written.
        aliasing: the results that share memory with arguments.

    Raises:
        RuntimeError: an operator did otherwise.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.schema_check_mode import SchemaCheckMode
    >>> x = torch.ones(2)
    >>> with SchemaCheckMode() as mode:
    ...     x.add_(1)
    tensor([2., 2.])
    >>> mode.mutated
    [Mutation(op_name='aten::add_', arg_name='input')]
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []
        self.mutated: list[Mutation] = []
        self.aliasing: list[Aliasing] = []

    def reset_cache(self) -> None:
        """Forget what was recorded."""
        self.ops.clear()
        self.mutated.clear()
        self.aliasing.clear()

    def display_ops(self) -> None:
        """Print the names of the operators."""
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = func._schema
        self.ops.append(schema.name)
        bound = schema.bind(tuple(args), dict(kwargs))
        before = {name: tree_leaves(_unwrapped(_copy(value))) for name, value in bound.items()}
        places = {name: [_place(x) for x in tree_leaves(value)] for name, value in bound.items()}
        out = func(*args, **kwargs)
        outs = _unwrapped(out if isinstance(out, tuple) else (out,))
        info = SchemaInfo(schema)
        info.add_argument_values(bound)
        for i, argument in enumerate(schema.arguments):
            value = _unwrapped(bound.get(argument.name))
            if value is None:
                continue
            name = "input" if argument.name == "self" else argument.name
            here = SchemaArgument(SchemaArgType.input, i)
            for j, each in enumerate(outs):
                if overlaps(each, value) and schema.name not in _UNSAFE:
                    if not info.may_contain_alias(SchemaArgument(SchemaArgType.output, j), here):
                        raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")
                    self.aliasing.append(Aliasing(schema.name, name, f"output_{j}"))
                if value is each and isinstance(value, Tensor) and not info.is_mutable(here) and func not in (
                        aten.lift.default, aten.lift_fresh.default):
                    raise RuntimeError("Dispatcher operators below autograd are not allowed to directly return "
                                       "inputs.\n"
                                       f"However, we found that `outputs[{j}] is {name}")
            if any(_written(*each) for each in zip(before[argument.name], tree_leaves(value), places[argument.name],
                                                   strict=True)):
                if not info.is_mutable(here):
                    raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
                self.mutated.append(Mutation(schema.name, name))
        for i, j in combinations(range(min(len(schema.returns), len(outs))), 2):
            if overlaps(outs[i], outs[j]) and not info.may_contain_alias(
                    SchemaArgument(SchemaArgType.output, i), SchemaArgument(SchemaArgType.output, j)):
                raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")
        return out
