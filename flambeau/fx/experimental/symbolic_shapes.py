"""Conditions on sizes: sizes are known numbers here, so that each condition is decided by its value."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from functools import reduce
from typing import Any

import flambeau as torch

from ...compiler.errors import ConstraintViolationError

__all__ = [
    "CallMethodKey",
    "ConstraintViolationError",
    "ConvertIntKey",
    "DimConstraints",
    "DimDynamic",
    "DivideByKey",
    "GuardOnDataDependentSymNode",
    "InnerTensorKey",
    "ShapeEnv",
    "StatefulSymbolicContext",
    "StatelessSymbolicContext",
    "SymbolicContext",
    "canonicalize_bool_expr",
    "compute_unbacked_bindings",
    "constrain_range",
    "constrain_unify",
    "definitely_false",
    "definitely_true",
    "free_symbols",
    "free_unbacked_symbols",
    "fx_placeholder_targets",
    "fx_placeholder_vals",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_scalar",
    "guard_size_oblivious",
    "guarding_hint_or_throw",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "hint_int",
    "is_accessor_node",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_symbolic",
    "optimization_hint",
    "parallel_and",
    "parallel_or",
    "rebind_unbacked",
    "resolve_unbacked_bindings",
    "size_hint",
    "statically_known_false",
    "statically_known_true",
    "sym_and",
    "sym_eq",
    "sym_or",
    "uninteresting_files",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """Raised in PyTorch where a condition depends on data; there are no such conditions here."""


class DimDynamic(enum.Enum):
    """How a dimension of an input is traced in PyTorch."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    SIZE_LIKE_UNBACKED = 3
    INFER_STRIDE = 4
    OBLIVIOUS_SIZE = 5
    UNBACKED = 6


@dataclass(frozen=True)
class CallMethodKey:
    """A step of a path: a method."""

    name: str

    def get(self, o: Any) -> Any:
        """The method's result."""
        return getattr(o, self.name)()


@dataclass(frozen=True)
class InnerTensorKey:
    """A step of a path: an attribute."""

    inner_name: str

    def get(self, o: Any) -> Any:
        """The attribute's value."""
        return getattr(o, self.inner_name)


@dataclass(frozen=True)
class DivideByKey:
    """A step of a path: a division."""

    divisor: int

    def get(self, o: int) -> int:
        """The quotient."""
        return o // self.divisor


class ConvertIntKey:
    """A step of a path: a bool as number."""

    def get(self, b: bool) -> int:
        """The number."""
        return int(b)


class SymbolicContext:
    """How the sizes of an input are traced in PyTorch."""


@dataclass(frozen=True)
class StatelessSymbolicContext(SymbolicContext):
    """How each dimension of an input is traced in PyTorch."""

    dynamic_sizes: Any = None
    dynamic_strides: Any = None
    constraint_sizes: Any = None
    constraint_strides: Any = None
    view_base_context: Any = None


@dataclass(frozen=True)
class StatefulSymbolicContext(StatelessSymbolicContext):
    """How each dimension of an input is traced in PyTorch, with its source."""

    tensor_source: Any = None
    shape_env_to_source_to_symbol_cache: Any = None


class DimConstraints:
    """Conditions on sizes; there are none here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class ShapeEnv:
    """The symbols of sizes: there are none, because sizes are known numbers.

    Attributes:
        guards: the conditions under which a graph is valid: none.
        settings: the keyword arguments with which it was made.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.guards: list[Any] = []
        self.var_to_val: dict[Any, Any] = {}
        self.var_to_range: dict[Any, Any] = {}
        self.pending_fresh_unbacked_symbols: list[Any] = []
        self.frozen = False

    def freeze(self) -> None:
        """Take no more conditions."""
        self.frozen = True

    def create_symintnode(self, sym: Any, *, hint: int | None, source: Any = None) -> Any:
        """The number of a size."""
        return sym if hint is None else hint

    def create_unbacked_symint(self) -> Any:
        """Refuse: there are no unknown sizes."""
        raise NotImplementedError("flambeau has no symbolic sizes: sizes are known numbers")

    create_unbacked_symfloat = create_unbacked_symbool = create_unbacked_symint

    def format_guards(self, verbose: bool = False) -> str:
        """The conditions as text."""
        return "\n".join(f" - {guard}" for guard in self.guards)

    def evaluate_expr(self, orig_expr: Any, *args: Any, **kwargs: Any) -> Any:
        """The value of an expression."""
        return orig_expr

    def is_unbacked_symint(self, symbol: Any) -> bool:
        """Whether a size is unknown."""
        return False


def guard_bool(a: Any) -> bool:
    """The value of a condition."""
    return bool(a)


def guard_int(a: Any) -> int:
    """The value of a size."""
    return int(a)


def guard_float(a: Any) -> float:
    """The value of a number."""
    return float(a)


def guard_scalar(a: Any) -> Any:
    """The value of a number.

    Raises:
        AssertionError: it is none.
    """
    if isinstance(a, (bool, int, float)):
        return a
    raise AssertionError(f"unrecognized scalar {a}")


def guard_or_false(a: Any) -> bool:
    """The value of a condition; False where it is not known, which is nowhere."""
    return bool(a)


def guard_or_true(a: Any) -> bool:
    """The value of a condition; True where it is not known, which is nowhere."""
    return bool(a)


guard_size_oblivious = definitely_true = guard_or_false


def definitely_false(a: Any) -> bool:
    """Whether a condition is False."""
    return not a


def statically_known_true(x: Any) -> bool:
    """Whether a condition is True.

    Raises:
        AssertionError: it is no condition.
    """
    if not isinstance(x, bool):
        raise AssertionError(f"Expected bool, got {type(x)}")
    return x


def statically_known_false(x: Any) -> bool:
    """Whether a condition is False."""
    return not statically_known_true(x)


def is_concrete_int(a: Any) -> bool:
    """Whether a size is a known number: always."""
    if not isinstance(a, int):
        raise AssertionError(f"Expected int or SymInt, got {type(a)}")
    return True


def is_concrete_float(a: Any) -> bool:
    """Whether a number is known: always."""
    if not isinstance(a, (int, float)):
        raise AssertionError(f"Expected float or SymFloat, got {type(a)}")
    return True


def is_concrete_bool(a: Any) -> bool:
    """Whether a condition is known: always."""
    if not isinstance(a, bool):
        raise AssertionError(f"Expected bool or SymBool, got {type(a)}")
    return True


def is_symbolic(val: Any) -> bool:
    """Whether a number is a symbol: never."""
    return False


def has_free_symbols(val: Any) -> bool:
    """Whether a value contains symbols: never."""
    return False


has_free_unbacked_symbols = has_symbolic_sizes_strides = is_nested_int = has_free_symbols


def has_static_value(a: Any) -> bool:
    """Whether a number is known: always."""
    return True


def check_consistent(new: Any, old: Any) -> None:
    """Check that a tensor has the shape of another one, or that two numbers are equal.

    Raises:
        AssertionError: they differ.
    """
    if isinstance(new, torch.Tensor):
        if not isinstance(old, torch.Tensor) or new.shape != old.shape:
            raise AssertionError(f"{old.shape} != {new.shape} (old != new)")
    elif isinstance(new, (int, float)) and new != old:
        raise AssertionError(f"{old} != {new} (old != new)")


def free_symbols(val: Any) -> Any:
    """The symbols in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The value of a size."""
    return a


size_hint = optimization_hint = guarding_hint_or_throw = hint_int


def sym_eq(x: Any, y: Any) -> bool:
    """Whether numbers, or sequences of numbers, are equal.

    Raises:
        AssertionError: they cannot be compared.
    """
    if isinstance(x, (tuple, list)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    if isinstance(x, int) and isinstance(y, int):
        return x == y
    raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")


def sym_and(x: Any, *others: Any) -> Any:
    """`x & y & ...`"""
    return reduce(lambda a, b: a & b, others, x)


def sym_or(x: Any, *others: Any) -> Any:
    """`x | y | ...`"""
    return reduce(lambda a, b: a | b, others, x)


def parallel_and(*args: Any) -> bool:
    """Whether all conditions are True."""
    return all(args)


def parallel_or(*args: Any) -> bool:
    """Whether any condition is True."""
    return any(args)


def canonicalize_bool_expr(expr: Any) -> Any:
    """A condition in normal form: as it is."""
    return expr


def constrain_range(a: Any, *, min: int | None, max: int | None = None) -> None:
    """Check that a size is in a range.

    Raises:
        ValueError: it is not.
    """
    if not (float("-inf") if min is None else min) <= a <= (float("inf") if max is None else max):
        raise ValueError(f"Invalid value {a} for range [{min}:{max}]")


def constrain_unify(a: Any, b: Any) -> None:
    """Check that two sizes are equal.

    Raises:
        AssertionError: they are not.
    """
    if a != b:
        raise AssertionError(f"Expected equal ints, got {a} != {b}")


def expect_true(a: Any, skip: int = 0) -> bool:
    """The value of a condition.

    Raises:
        AssertionError: it is no condition.
    """
    if not isinstance(a, bool):
        raise AssertionError(f"Expected bool, got {type(a)}")
    return a


def compute_unbacked_bindings(shape_env: Any, example_value: Any, *args: Any, **kwargs: Any) -> Any:
    """The unknown sizes in a value: none."""
    return None


def resolve_unbacked_bindings(shape_env: Any, bindings: Any) -> Any:
    """Paths of unknown sizes: as they are."""
    return bindings


def rebind_unbacked(shape_env: Any, n: Any, result: Any) -> None:
    """Bind the unknown sizes of a node: there are none."""


def is_accessor_node(node: Any) -> bool:
    """Whether a node reads a size, a stride or the storage offset of a tensor."""
    return node.op == "call_method" and node.target in ("size", "stride", "storage_offset", "item")


def fx_placeholder_targets(gm: Any) -> list[str]:
    """The names of a module's parameters."""
    return [node.target for node in gm.graph.nodes if node.op == "placeholder"]


def fx_placeholder_vals(gm: Any) -> list[Any]:
    """The example values of a module's parameters."""
    return [node.meta["val"] for node in gm.graph.nodes if node.op == "placeholder"]


def uninteresting_files() -> set[str]:
    """The files whose frames recorded stacks leave out."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return {os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")}

