"""Wrappers whose handler answers for sizes, strides, device or layout: the policies of `_make_wrapper_subclass`.

A tensor that was made with `dispatch_sizes_strides_policy="strides"` is asked for its strides by the operator
`aten.sym_stride`, one with "sizes" for its sizes, too. `dispatch_device` and `dispatch_layout` ask by `prim.device` and
`prim.layout`. A handler that returns None leaves the tensor's own answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...devices import contiguous_format
from ...ops.overloads import OpOverload, namespace_of
from ...ops.schemas import FunctionSchema
from ...shapes import Size
from .aten_arguments import aten_overload
from .dispatch import ask, no_dispatch, policy_of, without_handlers

Implementation = Callable[..., Any]

_NO_RANK = "dim returned invalid type NoneType, expected int"
_NO_DEVICE = "unpackString: expected bytes or unicode object"


def _prim(name: str) -> OpOverload:
    """An operator of the namespace `prim`, which only handlers see."""
    packet = namespace_of("prim").packet(name)
    return packet._overload("default", FunctionSchema(f"prim::{name}(Tensor a) -> {name.capitalize()}"))


def _answer(operator: OpOverload, *args: Any) -> Any:
    """What the handler of the first argument answers."""
    packet = operator.overloadpacket
    return ask(operator, [args[0]], args, {}, f"torch.ops.{packet.namespace}.{packet.__name__}")


def _asked(x: Any, field: str) -> bool:
    """Whether a tensor's handler is asked what a field of its policy names."""
    return not no_dispatch.get() and field in policy_of(x)


def _asking(field: str, operator: Callable[[], OpOverload], convert: Callable[[Any], Any] | None = None,
            refusal: str | None = None) -> Any:
    """A query that a tensor's handler answers if the policy says so.

    Args:
        field: the policy's field.
        operator: returns the operator.
        convert: what makes the query's result of the handler's.
        refusal: the text of the error if the handler returns None.
    """
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _asked(args[0], field):
            answer = _answer(operator(), args[0])
            if answer is None and refusal is not None:
                raise RuntimeError(refusal)
            if answer is not None:
                return answer if convert is None else convert(answer)
            return _own(implementation, args, kwargs)
        return implementation(*args, **kwargs)

    return run


def _own(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tensor's own answer."""
    with without_handlers():
        return implementation(*args, **kwargs)


def _length(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _asked(args[0], "sizes") and _dimensions(args[0]):
        answer = _answer(aten_overload("sym_size", "default"), args[0])
        return _own(implementation, args, kwargs) if answer is None else answer[0]
    return implementation(*args, **kwargs)


def _dimensions(x: Any) -> Any:
    """The number of dimensions as the handler says.

    Raises:
        RuntimeError: it does not.
    """
    answer = _answer(aten_overload("dim", "default"), x)
    if answer is None:
        raise RuntimeError(_NO_RANK)
    return answer


def _listing(field: str, operator: Callable[[], OpOverload], convert: Callable[[Any], Any]) -> Any:
    """A query of one or all dimensions."""
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _asked(args[0], field):
            given = [*args[1:], *kwargs.values()]
            if given and field == "sizes":
                _dimensions(args[0])
            answer = _answer(operator(), args[0])
            if answer is not None:
                return answer[given[0]] if given else convert(answer)
            return _own(implementation, args, kwargs)
        return implementation(*args, **kwargs)

    return run


def _is_contiguous(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _asked(args[0], "strides"):
        wanted = kwargs.get("memory_format", args[1] if len(args) > 1 else contiguous_format)
        plain = wanted is contiguous_format
        answer = _answer(aten_overload("is_contiguous", "default" if plain else "memory_format"), args[0],
                         *(() if plain else (wanted,)))
        return _own(implementation, args, kwargs) if answer is None else answer
    return implementation(*args, **kwargs)


def _data_ptr(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The address, which is none where the handler says that there are no elements."""
    if _asked(args[0], "sizes") and _answer(aten_overload("numel", "default"), args[0]) == 0:
        return 0
    return implementation(*args, **kwargs)


def _type_as(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A conversion to the dtype of a tensor, and to the device that its handler says."""
    other = args[1] if len(args) > 1 else kwargs["other"]
    if _asked(other, "device"):
        return args[0].to(other.device, other.dtype)
    return implementation(*args, **kwargs)


def _aten(name: str) -> Callable[[], OpOverload]:
    return lambda: aten_overload(name, "default")


_sizes = _listing("sizes", _aten("sym_size"), Size)
_count = _asking("sizes", _aten("sym_numel"))
_rank = _asking("sizes", _aten("dim"), refusal=_NO_RANK)

#: query -> what runs instead of it for a tensor with a policy; it is given the implementation and the arguments
ANSWERS: dict[str, Callable[[Implementation, tuple[Any, ...], dict[str, Any]], Any]] = {
    "torch.Tensor.device.__get__": _asking("device", lambda: _prim("device"), refusal=_NO_DEVICE),
    "torch.Tensor.is_cuda.__get__": _asking("device", lambda: _prim("device"), lambda found: found.type == "cuda",
                                            _NO_DEVICE),
    "torch.Tensor.layout.__get__": _asking(
        "layout", lambda: _prim("layout"), refusal="layout returned invalid type NoneType, expected Layout"),
    "torch.Tensor.stride": _listing("strides", _aten("sym_stride"), tuple),
    "torch.Tensor.size": _sizes, "torch.Tensor.shape.__get__": _sizes,
    "torch.Tensor.dim": _rank, "torch.Tensor.ndim.__get__": _rank, "torch.Tensor.ndimension": _rank,
    "torch.Tensor.numel": _count, "torch.Tensor.nelement": _count, "torch.numel": _count,
    "torch.Tensor.__len__": _length,
    "torch.Tensor.storage_offset": _asking("sizes", _aten("sym_storage_offset")),
    "torch.Tensor.is_contiguous": _is_contiguous, "torch.Tensor.data_ptr": _data_ptr,
    "torch.Tensor.type_as": _type_as,
}

__all__ = ["ANSWERS"]
