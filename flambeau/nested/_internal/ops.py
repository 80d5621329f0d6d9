"""The operators of nested tensors, by function and by operator below autograd.

A function in `FUNCTIONS` is composed of functions of values, so that its gradients of any order follow. Elementwise
operators run on values below autograd, and are recorded as those of other tensors are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.overriding.aten_arguments import declared
from ..._tensor.overriding.protocol import SUBCLASSES_DISABLED, disabled
from ...nn import functional
from ...ops.aten import declarations_of
from ...ops.declare import ELEMENTWISE, REGISTRY
from . import reductions, structure_ops
from .nested_tensor import (
    NestedTensor,
    functions_of_operators,
    make,
    named,
    nested_of,
    values_of,
)
from .reductions import reduction
from .sdpa import jagged_scaled_dot_product_attention
from .structure_ops import checked, dense_values, is_nested, nested_like, of_rows, padded, rows, unpadded

methods: Any = Tensor  # its methods are installed when the package is imported

# ----- products and layers ----------------------------------------------------------------------


def _shapes(a: Any, b: Any) -> str:
    def shown(x: Any, first: bool) -> str:
        return structure_ops._shown(x) if is_nested(x) and first else f"torch.Size([{', '.join(map(str, x.shape))}])"

    return f"{shown(a, True)} and {shown(b, not is_nested(a))}"


def matmul(a: Any, b: Any) -> Any:
    """Products of matrices: of components with one matrix or one for each, and over the ragged dimension."""
    refused = RuntimeError(f"matmul(): not supported between inputs of shapes {_shapes(a, b)}")
    if is_nested(a) and not is_nested(b):
        structure, n = a._structure, len(a.shape)
        if structure.ragged_idx == n - 1 or b.dim() < 2:
            raise refused
        if b.dim() == 2:
            return nested_of(fn.matmul(values_of(a), b), structure, "MatmulBackward0")
        if b.dim() == n and structure.ragged_idx == n - 2 and b.shape[0] == structure.batch and (
                tuple(b.shape[1:-2]) == tuple(a.shape[1:-2])):
            return _batched(a, b, "MatmulBackward0")
        raise refused
    if is_nested(a) and is_nested(b):
        n = len(a.shape)
        if n == len(b.shape) and a._structure.ragged_idx == n - 1 and b._structure.ragged_idx == n - 2 and (
                a._structure.ragged_size == b._structure.ragged_size):
            left = padded(a, 0.0).movedim(1, -1)
            right = padded(b, 0.0).movedim(1, -2)
            return named(fn.matmul(left, right), "MatmulBackward0")
    raise refused


def _batched(a: NestedTensor, b: Tensor, node: str) -> NestedTensor:
    """The product of each component with a matrix of its own."""
    structure = a._structure
    out = fn.matmul(padded(a, 0.0).movedim(1, -2), b).movedim(-2, 1)
    return of_rows(unpadded(out, structure), structure, node)


def bmm(a: Any, b: Any) -> Any:
    checked(a, "bmm_default(self: jt_all, mat2: any)", "self", contiguous=False)
    if len(a.shape) != 3:
        raise ValueError("bmm(): input must be 3D")
    if len(b.shape) != 3:
        raise ValueError("bmm(): mat2 must be 3D")
    return named(matmul(a, b), "BmmBackward0") if is_nested(b) else _batched(a, b, "BmmBackward0")


def linear(x: Any, weight: Any, bias: Any = None) -> NestedTensor:
    checked(x, "linear_default(input: jt, weight: t, bias: t?)", "input")
    return nested_of(fn.linear(values_of(x), weight, bias), x._structure, "LinearBackward0")


def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
               *unused: Any) -> NestedTensor:
    out = functional.layer_norm(values_of(x), tuple(normalized_shape), weight, bias, eps)
    return nested_of(out, x._structure, "NativeLayerNormBackward0")


def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> NestedTensor:
    out = functional.rms_norm(values_of(x), tuple(normalized_shape), weight, eps)
    return nested_of(out, x._structure, "MulBackward0")


def embedding(indices: Any, weight: Any, *args: Any, **options: Any) -> NestedTensor:
    out = functional.embedding(indices._values, weight, *args, **options)
    return nested_of(out, indices._structure, "EmbeddingBackward0")


def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False, train: Any = None) -> NestedTensor:
    out = functional.dropout(values_of(x), p, training if train is None else train)
    return nested_of(out, x._structure, "NativeDropoutBackward0")


def conv1d(x: Any, weight: Any, *args: Any, **options: Any) -> Any:
    checked(x, "convolution_default(input: jt, weight: t, bias: t?, stride: any, padding: any, dilation: any, "
            "transposed: any, output_padding: any, groups: any)", "input")
    raise NotImplementedError("aten.convolution.default")


def where(condition: Any, *others: Any) -> Any:
    if not others:
        raise NotImplementedError("aten.nonzero.default")
    if not is_nested(condition):
        raise ValueError("NestedTensor where_self(condition: jt_all, self: any, other: any): expected condition to be "
                         "a jagged layout NestedTensor")
    x, y = (_operand(each, condition, "where.self") for each in others)
    return nested_of(fn.where(condition._values, x, y), condition._structure, "WhereBackward0")


def _operand(x: Any, like: NestedTensor, name: str) -> Any:
    """An operand of a function of values."""
    if is_nested(x):
        _check_same(x, like, name)
        return values_of(x)
    return dense_values(x, like) if isinstance(x, Tensor) and x.dim() else x


def masked_fill(x: Any, mask: Any, value: Any) -> NestedTensor:
    like = x if is_nested(x) else mask
    x, mask = (_operand(each, like, "masked_fill.Scalar") for each in (x, mask))
    return nested_of(fn.masked_fill(x, mask, value), like._structure, "MaskedFillBackward0")


def equal(a: Any, b: Any) -> bool:
    return bool(is_nested(a) and is_nested(b) and a._structure.same(b._structure) and fn.equal(a._values, b._values))


def allclose(*args: Any, **options: Any) -> Any:
    raise NotImplementedError("aten.allclose.default")


# ----- factories and copies ---------------------------------------------------------------------


def _like(name: str) -> Callable[..., Any]:
    def make_like(x: Any, *args: Any, requires_grad: bool = False, **options: Any) -> NestedTensor:
        out = make(getattr(fn, name)(x._values, *args, **options), x._structure)
        return out.requires_grad_() if requires_grad else out

    return make_like


def _new(name: str) -> Callable[..., Any]:
    def make_new(x: Any, *size: Any, **options: Any) -> Any:
        sizes = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        if tuple(sizes):
            raise RuntimeError("new_empty() not supported for NJT with shape != ()")
        return getattr(x._values, name)(sizes, **options)

    return make_new


def to(x: Any, *args: Any, **options: Any) -> Any:
    values = x._values.detach()
    converted = values.to(*args, **options)
    if converted is values or (converted._array is values._array):
        return x
    return nested_of(values_of(x).to(*args, **options), x._structure, "ToCopyBackward0")


def _to(dtype: Any) -> Callable[..., Any]:
    return lambda x, **options: to(x, dtype)


def type_(x: Any, dtype: Any = None, **options: Any) -> Any:
    return x._values.type() if dtype is None else to(x, dtype)


def _numpy_t(x: Any) -> Any:
    return structure_ops.permute(x, *reversed(range(len(x.shape))))


def is_same_size(a: Any, b: Any) -> bool:
    return tuple(a.shape) == tuple(b.shape)


def chosen(x: Any, mask: Any) -> Any:
    return structure_ops.masked_select(x, mask)


#: name -> implementation; of `torch`, of `Tensor` and of `nn.functional` alike
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(structure_ops, name) for name in (
        "unsqueeze", "squeeze", "transpose", "permute", "view", "flatten", "unflatten", "expand", "expand_as",
        "contiguous", "clone", "unbind", "select", "narrow", "split", "chunk", "cat", "stack", "index_put",
        "index_put_", "to_padded_tensor")},
    "reshape": structure_ops.view, "broadcast_to": structure_ops.expand, "swapaxes": structure_ops.transpose,
    "swapdims": structure_ops.transpose, "concat": structure_ops.cat, "concatenate": structure_ops.cat,
    "movedim": lambda x, *args: _refuse("movedim"), "masked_select": structure_ops.masked_select,
    **{name: reduction(name) for name in ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "any", "all",
                                          "max", "min")},
    "softmax": reductions.softmax, "log_softmax": reductions.log_softmax,
    "matmul": matmul, "bmm": bmm, "linear": linear, "layer_norm": layer_norm, "rms_norm": rms_norm,
    "embedding": embedding, "dropout": dropout, "conv1d": conv1d, "where": where, "masked_fill": masked_fill,
    "equal": equal, "allclose": allclose, "scaled_dot_product_attention": jagged_scaled_dot_product_attention,
    **{f"{name}_like": _like(f"{name}_like") for name in ("zeros", "ones", "empty", "full", "rand", "randn",
                                                          "randint")},
    **{f"new_{name}": _new(f"new_{name}") for name in ("zeros", "ones", "empty")},
    "to": to, "type": type_, "is_same_size": is_same_size,
    **{name: _to(dtype) for name, dtype in (
        ("double", dtypes.float64), ("float", dtypes.float32), ("half", dtypes.float16),
        ("bfloat16", dtypes.bfloat16), ("long", dtypes.int64), ("int", dtypes.int32), ("short", dtypes.int16),
        ("bool", dtypes.bool_), ("char", dtypes.int8), ("byte", dtypes.uint8))},
    "cpu": lambda x, **options: x, "numel": lambda x: x.numel(), "is_pinned": lambda x, *args: False,
    "numpy": lambda x, **options: _unreadable(".numpy() is not supported for tensor subclasses."),
    "tolist": lambda x: _unreadable(".tolist() is not supported for tensor subclasses, got NestedTensor"),
    "data_ptr": lambda x: 0, "storage_offset": lambda x: x._values.storage_offset(),
    "__getitem__": structure_ops.getitem, "__matmul__": matmul, "__rmatmul__": lambda x, y: matmul(y, x),
    "item": lambda x: _unreadable(f"a Tensor with {x.numel()} elements cannot be converted to Scalar"),
    "untyped_storage": lambda x: _unreadable("a nested tensor has no storage of its own: see values()"),
    "size": lambda x, *args: x.size(*args), "stride": lambda x, *args: x.stride(*args),
    "is_contiguous": lambda x, **options: x.is_contiguous(**options), "values": values_of,
    "t": lambda x: _refuse("t"), "masked_scatter": lambda x, *args: _refuse("masked_scatter"),
}


def _refuse(name: str) -> Any:
    raise NotImplementedError(f"aten.{name}.default")


def _unreadable(text: str) -> Any:
    raise RuntimeError(text)


FUNCTIONS: dict[Any, Callable[..., Any]] = {}
_NAMED_ONLY = ("__getitem__", "__matmul__", "__rmatmul__")
for _name, _implementation in IMPLEMENTATIONS.items():
    for _place in (fn, methods, functional):
        if hasattr(_place, _name):
            FUNCTIONS[getattr(_place, _name)] = _implementation
del _name, _implementation, _place


class _Properties:
    """Properties of a tensor that are functions of it."""

    T = property(_numpy_t)
    mT = property(lambda x: structure_ops.transpose(x, -2, -1))  # noqa: N815


NestedTensor.T, NestedTensor.mT = _Properties.T, _Properties.mT  # type: ignore[attr-defined]


# ----- functions --------------------------------------------------------------------------------


def run_function(cls: type, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """A function of nested tensors: by its implementation, or, where it is elementwise, by its operator."""
    implementation = FUNCTIONS.get(func)
    if implementation is not None:
        result = implementation(*args, **kwargs)
        if result is not NotImplemented:
            return result
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    if any(type(x) is Tensor and x.dim() for x in args) and _is_elementwise(func):
        args = _broadcast(args)
    token = disabled.set(max(disabled.get(), SUBCLASSES_DISABLED))
    try:
        return func(*args, **kwargs)
    finally:
        disabled.reset(token)


_DUNDER = {"truediv": "div", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "rtruediv": "div",
           "radd": "add", "rsub": "sub", "rmul": "mul", "rpow": "pow", "rand": "bitwise_and", "ror": "bitwise_or"}


@functools.cache
def _is_elementwise(func: Any) -> bool:
    name = getattr(func, "__name__", "").strip("_")
    op = REGISTRY.get(_DUNDER.get(name, name))
    return (op is not None and op.kind == ELEMENTWISE) or name in ("add", "sub", "div", "pow", "mul", "floor_divide")


def _broadcast(args: Any) -> Any:
    """Arguments with dense tensors as nested ones, where they broadcast."""
    like = next((x for x in args if is_nested(x)), None)
    if like is None:
        return args
    out = []
    for x in args:
        if type(x) is Tensor and x.dim() and _fits(x, like):
            x = nested_like(x, like)
        out.append(x)
    return out


def _fits(x: Tensor, like: NestedTensor) -> bool:
    """Whether a dense tensor broadcasts against a nested one."""
    n, structure = len(like.shape), like._structure
    shape = (1,) * (n - x.dim()) + tuple(x.shape)
    if len(shape) != n or shape[0] not in (1, structure.batch):
        return False
    longest = max(like._structure.sizes, default=0)
    return all(s in (1, longest) if d == structure.ragged_idx else 1 in (s, full) or s == full
               for d, (s, full) in enumerate(zip(shape, like.shape, strict=True)) if d)


# ----- operators --------------------------------------------------------------------------------


def _check_same(x: NestedTensor, like: NestedTensor, name: str) -> None:
    if not x._structure.same(like._structure):
        raise RuntimeError(f"cannot call binary pointwise function {name} with inputs of shapes "
                           f"{structure_ops._shown(like)} and {structure_ops._shown(x)}")


def _name_of(func: Any) -> str:
    """`add.Tensor`."""
    return str(func).partition(".")[2]


def _elementwise(func: Any, args: Any, kwargs: Any) -> Any:
    """An elementwise operator on the values."""
    like = next(x for x in (*args, *kwargs.values()) if is_nested(x))

    def value(x: Any) -> Any:
        if is_nested(x):
            _check_same(x, like, _name_of(func))
            return x._values
        if isinstance(x, Tensor) and x.dim():
            if x.dim() < len(like.shape) - like._structure.ragged_idx:
                return x
            try:
                return dense_values(x, like)
            except ValueError:
                pass
            raise RuntimeError(f"cannot call binary pointwise function {_name_of(func)} with inputs of shapes "
                               f"{_shapes_of(args)}")
        return x

    out = func(*map(value, args), **{name: value(x) for name, x in kwargs.items()})
    if func.overloadpacket.__name__.endswith("_"):
        return args[0]
    if isinstance(out, tuple):
        return tuple(make(each, like._structure) for each in out)
    return make(out, like._structure)


def _shapes_of(args: Any) -> str:
    return " and ".join(f"torch.Size([{', '.join(map(str, x.shape))}])" for x in args if isinstance(x, Tensor))


def _copy(func: Any, args: Any, kwargs: Any) -> Any:
    target, source = args[:2]
    for x, name in ((target, "self"), (source, "src")):
        checked(x, "copy_default(self: jt_all, src: jt_all, non_blocking: any?)", name, contiguous=False)
    if target._structure.sizes != source._structure.sizes:
        raise RuntimeError("copy_ only supports Nested Tensors that have same size and the exact same offset tensor.")
    target._values.copy_(source._values)
    return target


def _expand(func: Any, args: Any, kwargs: Any) -> Any:
    """An expansion inside a derivative: sizes of the placeholder stand for the ragged dimension."""
    x, size = args[:2]
    sizes = [-1 if d in (0, x._structure.ragged_idx) else s for d, s in enumerate(size)]
    return make(x._values.expand(sizes[1:]), x._structure)


def _summed(func: Any, args: Any, kwargs: Any) -> Any:
    """A sum inside a derivative, which undoes broadcasting."""
    return IMPLEMENTATIONS["sum"](*args, **{k: v for k, v in kwargs.items() if k in ("dim", "keepdim", "dtype")})


def _on_values(func: Any, args: Any, kwargs: Any) -> Any:
    kwargs = {name: value for name, value in kwargs.items() if name not in ("layout", "pin_memory")}
    return make(func(args[0]._values, *args[1:], **kwargs), args[0]._structure)


OPERATORS: dict[str, Callable[..., Any]] = {
    "copy_": _copy, "expand": _expand, "sum": _summed, "detach": _on_values, "_to_copy": _on_values,
    "clone": lambda func, args, kwargs: structure_ops.clone(args[0], **kwargs),
    **{f"{name}_like": _on_values for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint")},
    "is_same_size": lambda func, args, kwargs: is_same_size(*args),
    "view": lambda func, args, kwargs: structure_ops.view(*args),
    "alias": _on_values, "_alias": _on_values, "view_as": _on_values,
}
#: operators that act on each element without being declared so
_ELEMENTWISE_TOO = frozenset(("fill_", "zero_", "fill", "masked_fill", "masked_fill_", "clamp", "clamp_", "add", "sub",
                              "div", "rsub", "where", "frexp", "nan_to_num", "threshold_backward", "add_", "sub_",
                              "mul_", "div_", "native_dropout"))


def run_operator(func: Any, args: Any, kwargs: Any) -> Any:
    """An operator below autograd.

    Raises:
        NotImplementedError: nested tensors do not have it.
    """
    name = func.overloadpacket.__name__
    implementation = OPERATORS.get(name)
    if implementation is not None:
        return implementation(func, args, kwargs)
    if name in _ELEMENTWISE_TOO or _declared_elementwise(func):
        return _elementwise(func, args, kwargs)
    raise NotImplementedError(str(func))


_kinds: dict[int, bool] = {}


def _declared_elementwise(func: Any) -> bool:
    found = _kinds.get(id(func))
    if found is None:
        internal = declared.get(id(func))
        ops = declarations_of(func) if internal is None else [internal]
        found = _kinds[id(func)] = bool(ops) and all(op.kind == ELEMENTWISE for op in ops)
    return found


def extract_kwargs(arg: NestedTensor) -> dict[str, Any]:
    """The arguments of `NestedTensor` with which values get the structure of a nested tensor."""
    structure = arg._structure
    return {"offsets": structure.offsets, "lengths": structure.lengths, "_ragged_idx": structure.ragged_idx}


functions_of_operators[:] = [run_function, run_operator]

__all__ = ["FUNCTIONS", "IMPLEMENTATIONS", "OPERATORS", "extract_kwargs", "rows", "run_function", "run_operator"]
