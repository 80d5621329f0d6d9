"""Named tuples of results: `torch.return_types.max(values=..., indices=...)`."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from .. import config
from ..ops.declare import REGISTRY, Op
from ..trees import register


class NamedResult(tuple):
    """A tuple whose fields have names, printed as PyTorch prints its return types."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()
    n_fields = 0

    def __new__(cls, iterable: Any = (), /, dict: Any = {}) -> NamedResult:  # noqa: B006
        try:
            result = tuple.__new__(cls, iterable)
        except TypeError:
            raise TypeError("constructor requires a sequence") from None
        if len(result) != cls.n_fields:
            raise TypeError(f"torch.return_types.{cls.__name__}() takes a {cls.n_fields}-sequence "
                            f"({len(result)}-sequence given)")
        return result

    def __repr__(self) -> str:
        lines = ",\n".join(f"{name}={value!r}" for name, value in zip(self.__match_args__, self, strict=True))
        return f"{config.module_name}.return_types.{type(self).__name__}(\n{lines})"

    def __reduce__(self) -> Any:
        return type(self), (tuple(self), {})


_made: dict[str, type] = {}


#: the fields of functions that are not declared operators
_FIELDS = {"qr": ("Q", "R"), "svd": ("U", "S", "V"), "linalg_lu_factor": ("LU", "pivots"),
           "linalg_ldl_factor": ("LD", "pivots"), "_lu_with_info": ("LU", "pivots", "info"),
           "triangular_solve": ("solution", "cloned_coefficient"), "slogdet": ("sign", "logabsdet"),
           "histogramdd": ("hist", "bin_edges"),
           "_scaled_dot_product_flash_attention_for_cpu": ("output", "logsumexp")}

#: PyTorch's types of which it has another one for calls with `out=`, "max" and "max_out"
_WITH_OUT = """
    aminmax cummax cummin frexp geqrf histogram kthvalue linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex
    linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_qr
    linalg_slogdet linalg_solve_ex linalg_svd lu_unpack max median min mode nanmedian qr slogdet sort svd topk
    triangular_solve
""".split()  # noqa: SIM905


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return [__getattr__(each) for each in sorted([*_WITH_OUT, *(f"{each}_out" for each in _WITH_OUT),
                                                      "histogramdd"])]
    if name.startswith("__"):  # `import` asks for `__path__`
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    plain = name.removesuffix("_out") if name.removesuffix("_out") in _WITH_OUT else name
    fields = _FIELDS.get(plain) or next(
        (op.outputs for op in REGISTRY.values() if op.returns_namedtuple and op.name.removeprefix("_") == plain), None)
    if not fields:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return result_class(name, fields)


def result_class(name: str, fields: tuple[str, ...]) -> type:
    """The named tuple class of this name and these fields, cached."""
    result = _made.get(name)
    if result is None:
        members: dict[str, Any] = {"__slots__": (), "__match_args__": fields, "n_fields": len(fields),
                                   "n_sequence_fields": len(fields), "n_unnamed_fields": 0}
        for i, field in enumerate(fields):
            members[field] = property(itemgetter(i))
        result = _made[name] = config.made(type(name, (NamedResult,), members))
        pytree_register_structseq(result)
    return result


def pytree_register_structseq(cls: type) -> None:
    """Register a class of named tuples as a container.

    Args:
        cls: the class, made of an iterable of its elements.
    """
    register(cls, lambda values: (list(values), None), lambda values, context: cls(values))


def named_result(op: Op, with_out: bool = False) -> Callable[[Any], Any]:
    """The named tuple class of an operator's results; `with_out`: of calls with `out=`."""
    assert op.outputs is not None
    return named(op.name.removeprefix("_"), op.outputs, with_out)


def named(name: str, fields: tuple[str, ...], with_out: bool = False) -> type:
    """`result_class` of a function's name, or of its calls with `out=` where these have a class of their own."""
    return result_class(f"{name}_out" if with_out and name in _WITH_OUT else name, fields)
