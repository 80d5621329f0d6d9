"""`torch._decomp`: tables of functions that compute operators of other ones.

The table `post_autograd` starts with the functions of `decompositions` and with those that follow from declarations.
Programs add theirs. An export takes operators apart as eager mode computes them, and needs none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...ops import aten
from ...ops.overloads import OpOverload, OpOverloadPacket
from ...ops.schemas import aten_out_overloads, aten_overloads
from ...ops.tags import Tag
from ...trees import tree_leaves
from ..decomposition import CustomDecompTable
from . import entries

#: kind -> overload -> function; programs see it as `global_decomposition_table` once its first table is filled
_tables: dict[str, dict[Any, Callable[..., Any]]] = {
    "post_autograd": entries.decomposition_table, "pre_autograd": {}, "meta": {}}
pre_autograd_decomposition_table = _tables["pre_autograd"]
meta_table = _tables["meta"]
#: the operators that are no entries of `core_aten_decompositions`
_kept: set[Any] = set()


#: operators whose declarations are formulas of other operators
_BY_DECLARATION = """
    _prelu_kernel addcdiv binary_cross_entropy_with_logits celu clamp_max.Tensor clamp_min.Tensor deg2rad
    elu frac gelu glu hardshrink heaviside huber_loss isneginf isposinf ldexp.Tensor leaky_relu logit mish mse_loss
    multi_margin_loss mvlgamma rad2deg renorm round.decimals rsub.Tensor silu sinc smooth_l1_loss softplus softshrink
    trace xlogy.Tensor
""".split()  # noqa: SIM905
#: operators that are the gradient of one whose derivative is a formula of other operators
_BY_GRADIENT = """
    binary_cross_entropy gelu glu hardsigmoid hardswish hardtanh huber_loss leaky_relu logit mish mse_loss silu
    smooth_l1_loss soft_margin_loss softplus
""".split()  # noqa: SIM905
#: operators that are one primitive
_BY_PRIMITIVE = """
    abs acos acosh add.Tensor asin asinh atan atan2 atanh bitwise_and.Tensor bitwise_not bitwise_or.Tensor
    bitwise_xor.Tensor ceil conj_physical cos cosh digamma div.Tensor eq.Tensor erf erfc exp exp2 expm1 floor fmax fmin
    fmod.Tensor gcd ge.Tensor gt.Tensor hypot igamma igammac le.Tensor lgamma log log10 log1p log2 lt.Tensor maximum
    minimum mul.Tensor ne.Tensor neg nextafter pow.Tensor_Tensor reciprocal remainder.Tensor round rsqrt sign signbit
    sin sinh sqrt sub.Tensor tan tanh trunc
""".split()  # noqa: SIM905
#: entries that `core_aten_decompositions` has not, though they are no core operators, and the reverse
_NOT_IN_CORE = ["addmv", "ldexp.Tensor", "round.decimals", "var_mean.correction"]
_IN_CORE = ["embedding_dense_backward", "var.dim"]


def _overload(name: str) -> Any:
    operator, _, overload = name.partition(".")
    return getattr(getattr(aten, operator), overload or "default")


@functools.cache
def _filled() -> dict[Any, Callable[..., Any]]:
    """The table `post_autograd`.

    On first use all entries are made: what is written out, what follows from declarations, and the variants that write
    of both. That takes as long as importing the rest of the package.
    """
    # Modules that enter their functions.
    from . import decompositions, derived, elements, layers, reductions, shapes  # noqa: F401

    table = entries.decomposition_table
    for names, make in ((_BY_DECLARATION, derived.by_declaration), (_BY_PRIMITIVE, derived.by_primitive),
                        ([f"{name}_backward" for name in _BY_GRADIENT], derived.by_gradient)):
        for name in names:
            overload = _overload(name)
            function = make(overload)
            if function is None:
                raise RuntimeError(f"no formula of {overload}")
            table.setdefault(overload, function)
    kept = {_overload(name) for name in _BY_PRIMITIVE + _NOT_IN_CORE}
    kept.update(overload for overload in table if Tag.core in overload.tags)
    _kept.update(kept - {_overload(name) for name in _IN_CORE})
    for overload, function in tuple(table.items()):
        if overload.is_view or any(r.type_name != "Tensor" for r in overload._schema.returns):
            continue
        name = overload.overloadpacket.__name__
        arguments = [(a.name, a.type_name) for a in overload._schema.arguments]
        for packet, write in ((f"{name}_", derived.in_place), (name, derived.into_out)):
            for each in aten_overloads(packet) if write is derived.in_place else aten_out_overloads(packet):
                variant = getattr(getattr(aten, packet), each)
                if [(a.name, a.type_name) for a in variant._schema.arguments if not a.is_out] == arguments:
                    table.setdefault(variant, write(variant, function))
                    if overload in _kept:
                        _kept.add(variant)
    return table


def _table(type: str) -> dict[Any, Callable[..., Any]]:
    if type not in _tables:
        raise AssertionError(f"type must be one of post_autograd, pre_autograd, or meta, got {type}")
    return _filled() if type == "post_autograd" else _tables[type]


def _overloads(op: Any) -> list[Any]:
    return [getattr(op, name) for name in op.overloads()] if isinstance(op, OpOverloadPacket) else [op]


def register_decomposition(aten_op: Any, registry: dict[Any, Any] | None = None, *, type: str = "post_autograd",
                           unsafe: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that enters a function for operators in a table.

    Args:
        aten_op: an overload, a packet (all its overloads) or a sequence of them.
        registry: the table; that of `type` for None.
        unsafe: whether something else than a function is entered.

    Raises:
        AssertionError: an unknown type.
        RuntimeError: there is one for an overload already.

    >>> import flambeau as torch
    >>> @torch._decomp.register_decomposition(torch.ops.aten.square.default, table := {})
    ... def square(x):
    ...     return x * x
    >>> table
    {<OpOverload(op='aten.square', overload='default')>: <function square at ...>}
    """
    table = _table(type) if registry is None else registry

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for leaf in tree_leaves(aten_op):
            for overload in _overloads(leaf):
                if overload in table:
                    raise RuntimeError(f"duplicate registrations for {overload}")
                table[overload] = function
        return function

    return enter


def get_decompositions(aten_ops: Iterable[Any], type: str = "post_autograd") -> dict[Any, Callable[..., Any]]:
    """The entries of a table for operators; of a packet those of all its overloads. Others are left out.

    Raises:
        AssertionError: an unknown type.
    """
    table = _table(type)
    return {overload: table[overload] for op in aten_ops for overload in _overloads(op) if overload in table}


def remove_decompositions(decompositions: dict[Any, Callable[..., Any]],
                          aten_ops: Sequence[Any]) -> None:
    """Take operators out of a table, if they are in it."""
    for op in aten_ops:
        for overload in _overloads(op):
            decompositions.pop(overload, None)


def core_aten_decompositions() -> CustomDecompTable:
    """The entries for operators that are no core operators of ATen, and no primitives.

    >>> import flambeau as torch
    >>> torch.ops.aten.mish.default in torch._decomp.core_aten_decompositions()
    True
    """
    return CustomDecompTable({overload: function for overload, function in _filled().items()
                              if overload not in _kept})


def __getattr__(name: str) -> Any:
    if name == "decomposition_table":
        return _filled()
    if name == "global_decomposition_table":
        _filled()
        return _tables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["OpOverload", "core_aten_decompositions", "decomposition_table", "get_decompositions",
           "global_decomposition_table", "meta_table", "pre_autograd_decomposition_table", "register_decomposition",
           "remove_decompositions"]
