"""`torch.utils.flop_counter`: the number of floating point operations of matrix products and convolutions."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable
from math import prod
from typing import Any

from .._tensor import Tensor
from ..ops import aten
from ..ops.overloads import OpOverloadPacket
from ..trees import tree_leaves, tree_map
from ._python_dispatch import TorchDispatchMode
from .module_tracker import ModuleTracker

#: overload packet -> formula of the arguments and `out_val`
flop_registry: dict[Any, Callable[..., int]] = {}


def get_shape(i: Any) -> Any:
    """The shape of a tensor; any other value itself."""
    return i.shape if isinstance(i, Tensor) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as one of tensors."""
    @functools.wraps(f)
    def formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return formula


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator that registers the formula of operators.

    Args:
        targets: overload packets, such as `torch.ops.mylib.foo`.
        get_raw: whether the formula is given tensors and `out_val`, not shapes and `out_shape`.

    Raises:
        ValueError: a target is no overload packet.
        RuntimeError: it has a formula already.

    >>> import flambeau as torch
    >>> from flambeau.utils.flop_counter import FlopCounterMode, register_flop_formula
    >>> @torch.library.custom_op("examples::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor:
    ...     return 2 * x
    >>> @register_flop_formula(torch.ops.examples.twice)
    ... def count(x_shape, *, out_shape=None, **kwargs):
    ...     return out_shape.numel()
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = twice(torch.ones(2, 3))
    >>> counter.get_total_flops()
    6
    """
    def register(formula: Callable[..., int]) -> Callable[..., int]:
        if not get_raw:
            formula = shape_wrapper(formula)
        for target in tree_leaves(targets):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError("register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                                 "torch.ops.mylib.foo), JitFunction, or HigherOrderOperator, got "
                                 f"{target} which is of type {type(target)}")
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula
        return formula

    return register


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """2 m n k for a product of m x k and k x n."""
    m, k = a_shape
    k2, n = b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return m * n * 2 * k


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Those of the product."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """2 b m n k for b products of m x k and k x n."""
    b, m, k = a_shape
    b2, k2, n = b_shape
    if b != b2:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {b} and {b2}")
    if k != k2:
        raise AssertionError(f"bmm: inner dimensions must match (k == k2), got {k} and {k2}")
    return b * m * n * 2 * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Those of the product."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """The multiplications and additions of a convolution, without bias: one of each for every element of the weight at
    every position of the output, or of the input of a transposed convolution."""
    positions = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *filter_size = w_shape
    return prod(positions) * prod(filter_size) * x_shape[0] * c_out * c_in * 2


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool,
              *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """`conv_flop_count` of the operator's arguments."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


def _swapped(shape: Any) -> list[int]:
    return [shape[1], shape[0], *shape[2:]]


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(grad_out_shape: Any, x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any,
                       _dilation: Any, transposed: bool, _output_padding: Any, _groups: Any, output_mask: Any,
                       out_shape: Any, **kwargs: Any) -> int:
    """The gradient by the input is the other kind of convolution of the output's gradient and the weight; the gradient
    by the weight is a convolution of the input and the output's gradient."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, get_shape(out_shape[0]), not transposed)
    if output_mask[1]:
        image, kernel = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(_swapped(image), _swapped(kernel), _swapped(get_shape(out_shape[1])))
    return count


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Those of the two products of an attention, query keyᵀ and weights value.

    Raises:
        AssertionError: the shapes do not fit.
    """
    b, h_q, s_q, d_q = query_shape
    b2, h_kv, s_k, d2 = key_shape
    b3, h3, s3, d_v = value_shape
    if not (b == b2 == b3 and h_kv == h3 and d_q == d2 and s_k == s3):
        raise AssertionError(f"sdpa_flop_count: query/key/value shapes are incompatible: q={query_shape}, "
                             f"k={key_shape}, v={value_shape}")
    if h_q < h_kv or h_q % h_kv != 0:
        raise AssertionError(f"sdpa_flop_count: query heads ({h_q}) must be a multiple of key/value heads ({h_kv})")
    return bmm_flop((b * h_q, s_q, d_q), (b * h_q, d_q, s_k)) + bmm_flop((b * h_q, s_q, s_k), (b * h_q, s_k, d_v))


def sdpa_backward_flop_count(grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Those of an attention's backward: its scores again, and the two gradients of each product."""
    b, h_q, s_q, d_q = query_shape
    s_k, d_v = key_shape[2], value_shape[3]
    n = b * h_q
    scores = bmm_flop((n, s_q, d_q), (n, d_q, s_k))
    of_weights = bmm_flop((n, s_q, d_v), (n, d_v, s_k)) + bmm_flop((n, s_k, s_q), (n, s_q, d_v))
    of_scores = bmm_flop((n, s_q, s_k), (n, s_k, d_q)) + bmm_flop((n, d_q, s_q), (n, s_q, s_k))
    return scores + of_weights + of_scores


#: flambeau's operator -> (the packet under which it is counted, formula of its inputs and result)
_OWN: dict[str, tuple[OpOverloadPacket, Callable[[Any, Any, Any], int]]] = {
    "_conv_output": (aten.convolution_backward, conv_flop_count),
    "_conv_image": (aten.convolution_backward, lambda g, w, out: conv_flop_count(g, w, out, True)),
    "_conv_weight": (aten.convolution_backward, lambda g, x, out: conv_flop_count(
        _swapped(x), _swapped(g), _swapped(out))),
}


class FlopCounterMode:
    """A context manager that counts the floating point operations inside, by module and operator.

    Args:
        mods: deprecated.
        depth: the depth of the modules in the table.
        display: print the table at exit.
        custom_mapping: overload packet -> formula, for more operators.

    >>> import flambeau as torch
    >>> from flambeau.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict[Any, Any] | None = None) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self.mode: _Counting | None = None
        self.flop_registry = {**flop_registry, **{
            packet: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for packet, formula in (custom_mapping or {}).items()}}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """The number of all operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Module -> overload packet -> number of operations."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table.

        Args:
            depth: the depth of the modules shown; default: that of the mode.
        """
        depth = depth or self.depth or 999999
        total = self.get_total_flops()
        suffix = get_suffix_str(total)

        def rows_of(module: str, indent: int) -> list[list[str]]:
            counts = self.flop_counts[module]
            lines = [(module, sum(counts.values())), *((f" - {packet}", n) for packet, n in counts.items())]
            return [[" " * indent + name, convert_num_with_suffix(n, suffix), convert_to_percent_str(n, total)]
                    for name, n in lines]

        rows: list[list[str]] = []
        subsumed = False
        for module in sorted(self.flop_counts):
            level = module.count(".") + 1
            if module != "Global" and level <= depth:
                subsumed = subsumed or sum(self.flop_counts[module].values()) >= total
                rows += rows_of(module, level - 1)
        if "Global" in self.flop_counts and not subsumed:
            rows = rows_of("Global", 0) + [[" " + name, *rest] for name, *rest in rows]
        return _table(["Module", "FLOP", "% Total"], rows or [["Global", "0", "0%"]])

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Counting(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.mode is None:
            raise AssertionError("Internal error: FlopCounter.__exit__ called but mode is None")
        self.mode.__exit__(*exception)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, packet: Any, count: int) -> None:
        for module in set(self.mod_tracker.parents):
            self.flop_counts[module][packet] += count

    def _count_flops(self, packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
        """Count one call; its result."""
        formula = self.flop_registry.get(packet)
        if formula is not None:
            self._count(packet, formula(*args, **kwargs, out_val=out))
        return out


class _Counting(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        own = _OWN.get(func.overloadpacket.__name__) if func.namespace == "flambeau" else None
        if own is not None:
            packet, formula = own
            self.counter._count(packet, formula(args[0].shape, args[1].shape, out.shape))
            return out
        return self.counter._count_flops(func.overloadpacket, out, args, kwargs)


# ----- the table -----

suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The suffix with which a number has up to four digits, such as 1001M."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in units of a suffix."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """A part in percent."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    """A table with a rule below the header; the first column is aligned left, the others right."""
    rows = [[cell.strip() for cell in row] for row in rows]
    columns = list(zip(*rows, strict=True))
    numbers = [_all_numbers(column) for column in columns]
    rows = [[f"{float(cell):g}" if is_number else cell for cell, is_number in zip(row, numbers, strict=True)]
            for row in rows]
    widths = [max(len(title) + 2, *map(len, column)) for title, column in zip(header, zip(*rows, strict=True),
                                                                             strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(
        zip(line, widths, strict=True))) for line in lines)


def _all_numbers(column: Any) -> bool:
    try:
        return bool([float(cell) for cell in column])
    except ValueError:
        return False


__all__ = ["FlopCounterMode", "register_flop_formula"]
