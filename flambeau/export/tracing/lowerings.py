"""Lowerings: the operator that PyTorch calls for a public function, with the arguments in its schema's order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..._tensor.overriding.dispatch import without_handlers
from ..._tensor.overriding.overload_calls import _fits
from ...ops import aten
from ...ops.overloads import OpOverload
from ...ops.schemas import aten_overloads
from ...overrides import resolve_name
from ...utils._pytree import tree_leaves
from .symbolic_numbers import SizesDisagree, SymbolicInt, in_lane, is_symbolic

#: the types of integers in a trace
INTEGERS = (int, SymbolicInt)
#: what lowers a call: a function of the builder, the public function and its arguments; NotImplemented: nothing does
Lowering = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]

_BINARY = {
    **{f"__{name}__": name for name in ("add", "mul", "sub", "pow", "matmul", "eq", "ne", "lt", "le", "gt", "ge", "neg",
                                        "abs")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "mul", "sub", "pow")},
    "__radd__": "add", "__rmul__": "mul", "__truediv__": "div", "__div__": "div", "__itruediv__": "div_",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__invert__": "bitwise_not",
    "__rsub__": "rsub", "true_divide": "div",
    "divide": "div",
    "multiply": "mul", "subtract": "sub", "negative": "neg", "absolute": "abs", "concat": "cat", "concatenate": "cat",
    "greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le", "not_equal": "ne", "clip": "clamp",
    "swapaxes": "swapaxes", "swapdims": "swapdims", "logsigmoid": "log_sigmoid", "bitwise_not": "bitwise_not",
    "special_expit": "sigmoid",
    "fix": "trunc", "ger": "outer", "arctan2": "atan2",
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
#: names of operators whose functions are made of others in PyTorch too, or return no tensors
_NOT_LOWERED = frozenset((
    "size", "stride", "dim", "numel", "item", "is_floating_point", "is_complex", "equal", "is_nonzero", "is_same_size",
    "data", "requires_grad_", "storage_offset", "is_contiguous", "result_type", "can_cast", "promote_types",
    "retain_grad", "output_nr", "is_leaf", "names", "rename", "sparse_dim", "dense_dim", "is_pinned", "allclose",
    "is_coalesced", "is_signed", "is_inference", "is_conj", "is_neg", "norm", "mse_loss", "l1_loss", "smooth_l1_loss",
    "huber_loss", "normalize", "interpolate", "backward", "set_", "qscheme", "tensor_split", "nonzero",
    "layout", "device", "dtype", "grad", "requires_grad", "get_device", "is_distributed", "cpu", "stft", "istft",
    "block_diag", "cartesian_prod", "lu", "unique", "unique_consecutive", "atleast_1d", "atleast_2d",
    "atleast_3d", "nll_loss_", "register_hook", "share_memory_", "is_shared", "element_size", "nelement",
    "ndimension", "is_set_to", "untyped_storage", "storage", "data_ptr", "tolist", "numpy", "manual_seed",
))
_FACTORIES = frozenset(("zeros", "ones", "empty", "full", "arange", "eye", "linspace", "logspace", "rand", "randn",
                        "randint", "randperm", "scalar_tensor", "empty_strided"))
_LIKES = frozenset(("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like",
                    "new_zeros", "new_ones", "new_empty", "new_full"))


def overload(name: str, which: str = "default") -> OpOverload:
    """One of PyTorch's overloads."""
    return getattr(getattr(aten, name), which)


@functools.cache
def _name_of(func: Any) -> str:
    name = resolve_name(func) or getattr(func, "__name__", "")
    return str(name)


def lowering_of(func: Any) -> Lowering | None:
    """What lowers a public function; None where its calls are recorded one by one."""
    try:
        name = _name_of(func)
    except TypeError:
        return None
    if name.endswith(".__get__"):
        return _PROPERTIES.get(name.split(".")[-2])
    short = name.rpartition(".")[2]
    if ".linalg." in name or ".special." in name or ".fft." in name:
        short = "_".join(name.split(".")[-2:])
    found = _LOWERINGS.get(short)
    if found is not None:
        return found
    if short in _NOT_LOWERED or ".init." in name:
        return None
    target = _BINARY.get(short, short)
    if target in _FACTORIES:
        return functools.partial(_factory, target)
    if target in _LIKES:
        return functools.partial(_like, target)
    return functools.partial(_generic, target) if aten_overloads(target) else None


# ----- calls whose arguments are those of the schema -----

def _generic(name: str, builder: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs.get("out") is not None or "names" in kwargs:
        return NotImplemented
    found = resolve(name, args, kwargs)
    if found is None:
        return NotImplemented
    which, given, named = found
    return call(builder, which, given, named, func, args, kwargs)


def resolve(name: str, args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]] | None:
    """The overload that a call of a public function selects, and its arguments; None where none fits."""
    named = {_RENAMED.get(key, key): value for key, value in kwargs.items() if not (
        value is None and key in ("dtype", "out", "memory_format", "generator", "layout", "device"))}
    for which in _ordered(name):
        each = overload(name, which)
        schema = each._given_schema
        if schema is None or which.endswith("out") or "Dimname" in str(schema):
            continue
        given = _spread(args, schema)
        names = {a.name for a in schema.arguments}
        own = {("self" if key == "input" and "input" not in names else "input" if (
            key == "self" and "self" not in names) else key): value for key, value in named.items()}
        try:
            bound = schema.bind(given, own)
        except RuntimeError:
            continue
        types = {a.name: a.type_name for a in schema.arguments}
        if all(_matches(name, which, value, types[key]) for key, value in bound.items()):
            return each, given, own
    return None


_RENAMED = {"axis": "dim", "keepdims": "keepdim", "x": "self"}
_PREFERRED = {"floor_divide": ("default",), "mean": ("default", "dim"),
              "std": ("dim", "correction"), "var": ("dim", "correction"),
              "sum": ("default", "dim_IntList"), "where": ("self", "ScalarOther", "ScalarSelf", "Scalar"),
              "clamp": ("default", "Tensor"), "softmax": ("int",), "log_softmax": ("int",), "cumsum": ("default",),
              "transpose": ("int",), "select": ("int",), "repeat_interleave": ("self_int", "self_Tensor"),
              "any": ("default", "dim", "dims"), "all": ("default", "dim", "dims"), "squeeze": ("default", "dim",
                                                                                                "dims"),
              "norm": ("ScalarOpt_dim",), "max": ("default", "dim", "other"), "min": ("default", "dim", "other")}


def _ordered(name: str) -> list[str]:
    """The overloads of a name, those that calls from Python prefer first."""
    names = aten_overloads(name)
    if name.rstrip("_") in ("add", "sub", "mul", "div"):
        return [x for x in ("Tensor", "Tensor_mode") if x in names]
    first = [x for x in _PREFERRED.get(name, ()) if x in names]
    return first + [x for x in names if x not in first]


def _matches(name: str, which: str, value: Any, type_name: str) -> bool:
    value = _plain_number(value)
    if type_name == "Tensor" and name.rstrip("_") in ("add", "sub", "mul", "div", "floor_divide") and isinstance(
            value, (int, float, complex)):
        return True
    if type_name == "float" and isinstance(value, INTEGERS):
        return True
    if name == "std" and which == "dim" and type_name == "bool" and not isinstance(value, bool):
        return False
    return _fits(value, type_name)


def _plain_number(value: Any) -> Any:
    """A value whose numbers are those of the example."""
    if isinstance(value, (list, tuple)):
        return [_plain_number(x) for x in value]
    return in_lane(value, 0)


def _spread(args: tuple[Any, ...], schema: Any) -> tuple[Any, ...]:
    """Positional arguments, those of a size that is given as numbers in one list."""
    positional = [a for a in schema.arguments if not a.kwarg_only]
    for i, argument in enumerate(positional):
        if i < len(args) and argument.type_name in ("SymInt[]", "int[]") and isinstance(args[i], INTEGERS) and (
                len(args) >= len(positional) or all(a.has_default for a in positional[len(args):])):
            rest = args[i:]
            if all(isinstance(x, INTEGERS) for x in rest) and (len(positional) == i + 1):
                return (*args[:i], list(rest))
    return args


def call(builder: Any, which: OpOverload, given: tuple[Any, ...], named: dict[str, Any], func: Any,
         args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A node for an overload; its value is that of the public function on fake tensors."""
    return builder.emit(which, given, named, func, args, kwargs)


def emit(builder: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """A node for `name.overload`, computed by the overload itself."""
    packet, _, which = name.partition(".")
    found = overload(packet, which or "default")
    return builder.emit(found, args, kwargs, found, args, kwargs)


def _factory(name: str, builder: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs.get("out") is not None:
        return NotImplemented
    options = {key: kwargs[key] for key in ("dtype", "layout", "generator") if kwargs.get(key) is not None}
    device = kwargs.get("device")
    options["device"] = torch.device("cpu" if device is None else device)
    options["pin_memory"] = bool(kwargs.get("pin_memory"))
    rest = {key: value for key, value in kwargs.items() if key not in (
        "dtype", "layout", "generator", "device", "pin_memory", "requires_grad", "names")}
    if name in ("zeros", "ones", "empty", "rand", "randn"):
        size = rest.pop("size", None)
        if size is None:
            size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        positional: tuple[Any, ...] = (list(size),)
    elif name == "full":
        positional = (list(args[0] if args else rest.pop("size")), args[1] if len(args) > 1 else rest.pop("fill_value"))
    elif name == "arange":
        positional = (*args, *(rest[key] for key in ("start", "end", "step") if key in rest))
    else:
        positional = (*args, *rest.values())
    which = {"arange": ("default", "start", "start_step")[len(positional) - 1] if name == "arange" else "default",
             "empty": "memory_format", "eye": "m" if len(positional) > 1 else "default",
             "randint": "low" if len(positional) == 3 else "default"}.get(name, "default")
    if name == "randint":
        positional = (*positional[:-1], list(positional[-1]))
    return call(builder, overload(name, which), positional, options, func, args, kwargs)


def _like(name: str, builder: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = {key: kwargs[key] for key in ("dtype", "layout", "device", "memory_format")
               if kwargs.get(key) is not None}
    if "device" in options:
        options["device"] = torch.device(options["device"])
    options["pin_memory"] = bool(kwargs.get("pin_memory"))
    rest = [value for key, value in kwargs.items() if key in ("size", "fill_value", "low", "high")]
    positional = (*args, *rest)
    if name.startswith("new_") and name != "new_full":
        size = positional[1] if len(positional) == 2 and isinstance(positional[1], (tuple, list)) else positional[1:]
        positional = (positional[0], list(size))
    which = "low_dtype" if name == "randint_like" and len(positional) == 3 else "default"
    return call(builder, overload(name, which), positional, options, func, args, kwargs)


# ----- functions with a lowering of their own -----

def _bound(names: str, defaults: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**defaults, **dict(zip(names.split(), args, strict=False)), **kwargs}


def _rtruediv(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return emit(builder, "mul.Tensor", emit(builder, "reciprocal", args[0]), args[1])


def _rsub(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(args[1], torch.Tensor):
        return emit(builder, "rsub.Tensor", *args)
    return emit(builder, "rsub.Scalar", *args)


def _rpow(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return emit(builder, "pow.Scalar", args[1], args[0])


def _linear(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input weight bias", {"bias": None}, args, kwargs)
    return call(builder, overload("linear"), (given["input"], given["weight"], given["bias"]), {}, func, args, kwargs)


def _softmax(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound("input dim _stacklevel dtype", {"dtype": None}, args, {
            ("input" if key == "self" else key): value for key, value in kwargs.items()})
        if func.__module__ and not _name_of(func).startswith("torch.nn.") and len(args) > 2:
            given["dtype"] = args[2]
        if given.get("dim") is None:
            return NotImplemented
        extra = () if given["dtype"] is None else (given["dtype"],)
        return call(builder, overload(name, "int"), (given["input"], given["dim"], *extra), {}, func, args, kwargs)

    return lower


def _dropout(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound("input p training inplace", {"p": 0.5, "training": True, "inplace": False}, args, kwargs)
        if not _name_of(func).startswith("torch.nn."):
            given = _bound("input p train", {"inplace": False}, args, kwargs)
            given["training"] = given["train"]
        which = overload(name + ("_" if given["inplace"] else ""))
        return call(builder, which, (given["input"], given["p"], given["training"]), {}, func, args, kwargs)

    return lower


def _embedding(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if not _name_of(func).startswith("torch.nn."):
        return _generic("embedding", builder, func, args, kwargs)
    given = _bound("input weight padding_idx max_norm norm_type scale_grad_by_freq sparse", {
        "padding_idx": None, "max_norm": None, "scale_grad_by_freq": False, "sparse": False}, args, kwargs)
    if given["max_norm"] is not None:
        return NotImplemented
    padding = given["padding_idx"]
    if padding is None:
        padding = -1
    elif padding < 0:
        padding += given["weight"].shape[0]
    return call(builder, overload("embedding"), (given["weight"], given["input"], padding,
                                                 given["scale_grad_by_freq"], given["sparse"]), {}, func, args, kwargs)


def _layer_norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input normalized_shape weight bias eps", {"weight": None, "bias": None, "eps": 1e-5}, args, kwargs)
    return call(builder, overload("layer_norm"), (given["input"], list(given["normalized_shape"]), given["weight"],
                                                  given["bias"], given["eps"], False), {}, func, args, kwargs)


def _group_norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input num_groups weight bias eps", {"weight": None, "bias": None, "eps": 1e-5}, args, kwargs)
    return call(builder, overload("group_norm"), (given["input"], given["num_groups"], given["weight"], given["bias"],
                                                  given["eps"], False), {}, func, args, kwargs)


def _batch_norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if not _name_of(func).startswith("torch.nn."):
        return _generic("batch_norm", builder, func, args, kwargs)
    given = _bound("input running_mean running_var weight bias training momentum eps", {
        "weight": None, "bias": None, "training": False, "momentum": 0.1, "eps": 1e-5}, args, kwargs)
    return call(builder, overload("batch_norm"), (
        given["input"], given["weight"], given["bias"], given["running_mean"], given["running_var"], given["training"],
        given["momentum"], given["eps"], False), {}, func, args, kwargs)


def _instance_norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input running_mean running_var weight bias use_input_stats momentum eps", {
        "running_mean": None, "running_var": None, "weight": None, "bias": None, "use_input_stats": True,
        "momentum": 0.1, "eps": 1e-5}, args, kwargs)
    return call(builder, overload("instance_norm"), (
        given["input"], given["weight"], given["bias"], given["running_mean"], given["running_var"],
        given["use_input_stats"], given["momentum"], given["eps"], False), {}, func, args, kwargs)


_REDUCTION = {"none": 0, "mean": 1, "sum": 2}


def _cross_entropy(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input target weight size_average ignore_index reduce reduction label_smoothing", {
        "weight": None, "ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0}, args, kwargs)
    return call(builder, overload("cross_entropy_loss"), (
        given["input"], given["target"], given["weight"], _REDUCTION[given["reduction"]], given["ignore_index"],
        given["label_smoothing"]), {}, func, args, kwargs)


def _nll_loss(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input target weight size_average ignore_index reduce reduction", {
        "weight": None, "ignore_index": -100, "reduction": "mean"}, args, kwargs)
    return call(builder, overload("nll_loss_nd"), (
        given["input"], given["target"], given["weight"], _REDUCTION[given["reduction"]], given["ignore_index"]), {},
        func, args, kwargs)


def _broadcast_loss(name: str, extra: str = "", default: float = 1.0) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound(f"input target size_average reduce reduction {extra or 'weight'}", {
            "reduction": "mean", extra or "weight": default if extra else None}, args, kwargs)
        if not extra and given["weight"] is not None:
            return NotImplemented
        pair = emit(builder, "broadcast_tensors", [given["input"], given["target"]])
        values = () if not extra else (given[extra],)
        return emit(builder, name, *pair, _REDUCTION[given["reduction"]], *values)

    return lower


def _bce(name: str, positional: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound(positional, {"weight": None, "pos_weight": None, "reduction": "mean"}, args, kwargs)
        extra = (given["pos_weight"],) if "logits" in name else ()
        return call(builder, overload(name), (given["input"], given["target"], given["weight"], *extra,
                                              _REDUCTION[given["reduction"]]), {}, func, args, kwargs)

    return lower


def _activation(name: str, parameters: str = "", **defaults: Any) -> Lowering:
    """An activation of `nn.functional`, whose option `inplace` selects the operator that writes."""
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound(f"input {parameters} inplace", {**defaults, "inplace": False}, args, {
            ("input" if key == "self" else key): value for key, value in kwargs.items()})
        which = overload(name + ("_" if given["inplace"] else ""))
        return call(builder, which, (given["input"], *(given[key] for key in parameters.split())), {}, func, args,
                    kwargs)

    return lower


def _functional_only(lowering: Lowering, otherwise: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if _name_of(func).startswith("torch.nn."):
            return lowering(builder, func, args, kwargs)
        return _generic(otherwise, builder, func, args, kwargs)

    return lower


def _max_pool(name: str, dims: int) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound("input kernel_size stride padding dilation ceil_mode return_indices", {
            "stride": None, "padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}, args, kwargs)
        if given["return_indices"]:
            return NotImplemented
        window, stride, padding, dilation = (_tuple(given[key], dims) for key in (
            "kernel_size", "stride", "padding", "dilation"))
        return call(builder, overload(name), (given["input"], window, [] if stride is None else stride,
                                              _unless(padding, 0), _unless(dilation, 1), given["ceil_mode"]), {},
                    func, args, kwargs)

    return lower


def _tuple(value: Any, count: int) -> Any:
    if value is None or isinstance(value, (list, tuple)):
        return value if value is None else list(value)
    return [value] * count


def _unless(value: list[int], neutral: int) -> Any:
    return neutral if all(x == neutral for x in value) else value


def _avg_pool(name: str, dims: int) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound("input kernel_size stride padding ceil_mode count_include_pad divisor_override", {
            "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True, "divisor_override": None},
            args, {("input" if key == "self" else key): value for key, value in kwargs.items()})
        window, stride, padding = (_tuple(given[key], dims) for key in ("kernel_size", "stride", "padding"))
        extra = () if dims == 1 else (given["divisor_override"],)
        return call(builder, overload(name), (given["input"], window, [] if stride is None else stride,
                                              _unless(padding, 0), given["ceil_mode"], given["count_include_pad"],
                                              *extra), {}, func, args, kwargs)

    return lower


def _adaptive_pool(name: str, dims: int) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound("input output_size return_indices", {"return_indices": False}, args, kwargs)
        size = _tuple(given["output_size"], dims)
        if None in size:
            size = [n if each is None else each for each, n in zip(size, given["input"].shape[-dims:], strict=True)]
        if "max" not in name:
            return call(builder, overload(name), (given["input"], size), {}, func, args, kwargs)
        pair = call(builder, overload(name), (given["input"], size), {}, func, (given["input"], size, True), {})
        return pair if given["return_indices"] else pair[0]

    return lower


def _interpolate(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input size scale_factor mode align_corners recompute_scale_factor antialias", {
        "size": None, "scale_factor": None, "mode": "nearest", "align_corners": None, "recompute_scale_factor": None,
        "antialias": False}, args, kwargs)
    if given["antialias"] or given["recompute_scale_factor"]:
        return NotImplemented
    dims = given["input"].dim() - 2
    name = {"nearest": "upsample_nearest{}d", "nearest-exact": "_upsample_nearest_exact{}d",
            "linear": "upsample_linear1d", "bilinear": "upsample_bilinear2d", "trilinear": "upsample_trilinear3d",
            "bicubic": "upsample_bicubic2d"}.get(given["mode"], "").format(dims)
    if not name:
        return NotImplemented
    scale = given["scale_factor"]
    scales = None if scale is None else [float(x) for x in _tuple(scale, dims)]
    corners = () if "nearest" in given["mode"] else (bool(given["align_corners"]),)
    return call(builder, overload(name, "vec"), (given["input"], _tuple(given["size"], dims), *corners, scales), {},
                func, args, kwargs)


def _pad(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input pad mode value", {"mode": "constant", "value": None}, args, kwargs)
    return call(builder, overload("pad"), (given["input"], list(given["pad"]), given["mode"], given["value"]), {}, func,
                args, kwargs)


def _norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input p dim keepdim dtype", {"p": "fro", "dim": None, "keepdim": False, "dtype": None}, args, {
        ("input" if key == "self" else key): value for key, value in kwargs.items()})
    p, dim = given["p"], given["dim"]
    if given.get("out") is not None or given["dtype"] is not None or p == "nuc":
        return NotImplemented
    dims = None if dim is None else list(dim) if isinstance(dim, (list, tuple)) else [dim]
    order = 2.0 if p in ("fro", None) else p
    return emit(builder, "linalg_vector_norm", given["input"], *(() if dims is None and order == 2.0 else (
        order, dims, given["keepdim"])))


def _to(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    others = {key: value for key, value in kwargs.items() if key not in ("dtype", "device")}
    while rest:
        value = rest.pop(0)
        if isinstance(value, torch.dtype):
            dtype = value
        elif isinstance(value, torch.Tensor):
            builder.check_metadata(x)
            return call(builder, overload("to", "device"), (x, value.device, value.dtype), others, func, args, kwargs)
        elif isinstance(value, (str, torch.device)):
            device = value
        else:
            return NotImplemented
    builder.check_metadata(x)
    if device is not None:
        options = {"dtype": dtype or x.dtype, "layout": torch.strided, "device": torch.device(device), **others}
        return call(builder, overload("to", "dtype_layout"), (x,), options, func, args, kwargs)
    if dtype is None:
        return NotImplemented
    given = (x, dtype, *(others[key] for key in ("non_blocking", "copy", "memory_format") if key in others))
    return call(builder, overload("to", "dtype"), given[:2], others, func, args, kwargs)


def _conversion(dtype_name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        builder.check_metadata(args[0])
        dtype = getattr(torch, dtype_name)
        return call(builder, overload("to", "dtype"), (args[0], dtype), {}, func, args, kwargs)

    return lower


def _cpu(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    builder.check_metadata(x)
    options = {"dtype": x.dtype, "layout": torch.strided, "device": torch.device("cpu")}
    return call(builder, overload("to", "dtype_layout"), (x,), options, func, args, kwargs)


def _type(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
    return _conversion(repr(dtype).rpartition(".")[2])(builder, func, args, kwargs) if isinstance(
        dtype, torch.dtype) else NotImplemented


def _contiguous(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = kwargs.get("memory_format", torch.contiguous_format)
    if args[0].is_contiguous(memory_format=given):
        return args[0]
    options = {} if given is torch.contiguous_format else {"memory_format": given}
    return call(builder, overload("contiguous"), args[:1], options, func, args, kwargs)


def _tensor(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(args[0] if args else kwargs.get("data"), torch.Tensor):
        return NotImplemented
    if any(is_symbolic(x) or isinstance(x, torch.Tensor) for x in tree_leaves((args, kwargs))):
        raise SizesDisagree("a tensor of numbers of Python")
    with without_handlers():
        value = func(*args, **{**kwargs, "requires_grad": False})
    return lifted(builder, value, detach=True)


def _new_tensor(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    options = {"dtype": x.dtype, **{key: value for key, value in kwargs.items() if key in ("dtype",) and value}}
    return _tensor(builder, torch.tensor, tuple(rest), {**options, **({"data": kwargs["data"]} if "data" in kwargs
                                                                     else {})})


def lifted(builder: Any, value: Any, detach: bool = False) -> Any:
    """A constant of the program as a value of the trace: a copy, so that writes do not change it."""
    constant = builder.constant(value)
    copy = builder.emit(overload("lift_fresh_copy"), (constant,), {}, _copied, (constant,), {})
    return builder.emit(overload("detach_"), (copy,), {}, lambda x: x, (copy,), {}) if detach else copy


def _copied(x: Any) -> Any:
    out = x.clone()
    out.constant = x.constant
    return out


def _split(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input split_size dim", {"dim": 0}, args, {
        {"self": "input", "tensor": "input", "split_size_or_sections": "split_size"}.get(key, key): value
        for key, value in kwargs.items()})
    sizes = given["split_size"]
    which = overload("split", "Tensor") if isinstance(sizes, INTEGERS) else overload("split_with_sizes")
    sizes = sizes if isinstance(sizes, INTEGERS) else list(sizes)
    return call(builder, which, (given["input"], sizes, given["dim"]), {}, func, args, kwargs)


def _unbind(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input dim", {"dim": 0}, args, {("input" if k == "self" else k): v for k, v in kwargs.items()})
    return call(builder, overload("unbind", "int"), (given["input"], given["dim"]), {}, func, args, kwargs)


def _einsum(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    equation, *operands = args
    if not isinstance(equation, str):
        return NotImplemented
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    return call(builder, overload("einsum"), (equation, operands), {}, func, args, kwargs)


def _broadcast_tensors(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensors = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    return call(builder, overload("broadcast_tensors"), (tensors,), {}, func, args, kwargs)


def _meshgrid(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensors = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    indexing = kwargs.get("indexing")
    if indexing is None:
        return call(builder, overload("meshgrid"), (tensors,), {}, func, args, kwargs)
    return call(builder, overload("meshgrid", "indexing"), (tensors,), {"indexing": indexing}, func, args, kwargs)


def _conv(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound("input weight bias stride padding dilation groups", {
            "bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}, args, kwargs)
        dims = int(name[-2])
        which = overload(name, "padding" if isinstance(given["padding"], str) else "default")
        padding = given["padding"]
        return call(builder, which, (
            given["input"], given["weight"], given["bias"], _tuple(given["stride"], dims), padding if isinstance(
                padding, str) else _tuple(padding, dims), _tuple(given["dilation"], dims), given["groups"]), {}, func,
            args, kwargs)

    return lower


def _conv_transpose(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = _bound("input weight bias stride padding output_padding groups dilation", {
            "bias": None, "stride": 1, "padding": 0, "output_padding": 0, "groups": 1, "dilation": 1}, args, kwargs)
        dims = int(name[-2])
        which = overload(name, "default" if dims == 1 else "input")
        return call(builder, which, (
            given["input"], given["weight"], given["bias"], *(_tuple(given[key], dims) for key in (
                "stride", "padding", "output_padding")), given["groups"], _tuple(given["dilation"], dims)), {}, func,
            args, kwargs)

    return lower


def _gelu(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input", {"approximate": "none"}, args, kwargs)
    return call(builder, overload("gelu"), (given["input"],), {"approximate": given["approximate"]}, func, args, kwargs)


def _clamp(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input min max", {"min": None, "max": None}, args, {
        ("input" if key == "self" else key): value for key, value in kwargs.items()})
    if given.get("out") is not None:
        return NotImplemented
    has_tensor = any(isinstance(given[key], torch.Tensor) for key in ("min", "max"))
    return call(builder, overload("clamp", "Tensor" if has_tensor else "default"), (
        given["input"], given["min"], given["max"]), {}, func, args, kwargs)


def _kl_div(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input target size_average reduce reduction log_target", {"reduction": "mean", "log_target": False},
                   args, kwargs)
    if not _name_of(func).startswith("torch.nn."):
        return NotImplemented
    reduction = given["reduction"]
    kind = 2 if reduction == "batchmean" else _REDUCTION[reduction]
    options = {"log_target": True} if given["log_target"] else {}
    out = emit(builder, "kl_div", given["input"], given["target"], kind, **options)
    return emit(builder, "div.Tensor", out, given["input"].shape[0]) if reduction == "batchmean" else out


def _tensordot(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("a b dims", {"dims": 2}, args, kwargs)
    dims = given["dims"]
    if given.get("out") is not None or isinstance(dims, torch.Tensor):
        return NotImplemented
    left, right = (list(range(-dims, 0)), list(range(dims))) if isinstance(dims, int) else (
        [x] if isinstance(x, int) else list(x) for x in dims)
    return call(builder, overload("tensordot"), (given["a"], given["b"], left, right), {}, func, args, kwargs)


def _one_hot(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input num_classes", {"num_classes": -1}, args, {
        ("input" if key in ("self", "tensor") else key): value for key, value in kwargs.items()})
    count = given["num_classes"]
    if isinstance(count, int) and count < 0:
        return NotImplemented
    arguments = given["input"], count
    return builder.emit(overload("one_hot"), arguments, {}, _one_hot_metadata, arguments, {})


def _multinomial_metadata(x: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    return x.new_empty((*x.shape[:-1], num_samples), dtype=torch.int64)


def _multinomial(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input num_samples replacement", {"replacement": False}, args, {
        ("input" if key == "self" else key): value for key, value in kwargs.items()})
    if given.get("out") is not None or given.get("generator") is not None:
        return NotImplemented
    arguments = given["input"], given["num_samples"], given["replacement"]
    return builder.emit(overload("multinomial"), arguments, {}, _multinomial_metadata, arguments, {})


def _recurrent_metadata(x: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
                        bidirectional: bool, batch_first: bool) -> Any:
    states = list(hx) if isinstance(hx, (list, tuple)) else [hx]
    if x.dim() != 3 or x.shape[-1] != params[0].shape[-1] or states[0].shape[1] != x.shape[0 if batch_first else 1]:
        raise RuntimeError(f"input of shape {tuple(x.shape)} does not fit the weights of a recurrent network")
    size = states[0].shape[-1] * (2 if bidirectional else 1)
    out = x.new_empty((*x.shape[:-1], size))
    if batch_first:  # the memory of (L, N, size)
        out = out.new_empty((x.shape[1], x.shape[0], size)).transpose(0, 1)
    return (out, *(h.new_empty(h.shape) for h in states))


def _one_hot_metadata(x: Any, count: int) -> Any:
    return x.new_zeros((*x.shape, count))


def _roll(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = _bound("input shifts dims", {"dims": ()}, args, kwargs)
    shifts, dims = (list(x) if isinstance(x, (list, tuple)) else [x] for x in (given["shifts"], given["dims"]))
    return call(builder, overload("roll"), (given["input"], shifts, dims), {}, func, args, kwargs)


def _flip(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    dims = kwargs.get("dims", args[1:])
    dims = list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else list(dims)
    return call(builder, overload("flip"), (args[0], dims), {}, func, args, kwargs)


def _property(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        return call(builder, overload(name), args, {}, func, args, kwargs)

    return lower


# ----- indexing -----

_END = 2**63 - 1


def _getitem(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, key = args
    result = _indexed(builder, x, key, copies_nothing=True)
    return NotImplemented if result is None else result


def _indexed(builder: Any, x: Any, key: Any, copies_nothing: bool = False) -> Any:
    """The views and the gather that indexing consists of; None where the operators below record it."""
    parts = _steps(builder, x, key)
    if parts is None:
        return None
    x, indices, taken = parts
    if indices:
        return emit(builder, "index.Tensor", x, indices)
    return emit(builder, "slice.Tensor", x, 0, 0, _END) if not taken and copies_nothing and x.dim() else x


def _steps(builder: Any, x: Any, key: Any) -> tuple[Any, list[Any], bool] | None:
    """(the view that the basic parts of a key select, the index tensors of its dimensions, whether it is another)."""
    items = list(key) if isinstance(key, tuple) else [key]
    items = [_plain(item) for item in items]
    if any(not (item is None or item is Ellipsis or isinstance(item, (int, SymbolicInt, slice, torch.Tensor))) or (
            isinstance(item, bool)) for item in items):
        return None
    used = sum(item.dim() if isinstance(item, torch.Tensor) and item.dtype in (torch.bool, torch.uint8) else 1
               for item in items if item is not None and item is not Ellipsis)
    dim, taken = 0, False
    indices: dict[int, Any] = {}
    for item in items:
        if item is Ellipsis:
            dim += x.dim() - sum(1 for i in indices if i < 0) - used - dim + _consumed(items, item)
            continue
        if item is None:
            x, taken = emit(builder, "unsqueeze", x, dim), True
            dim += 1
        elif isinstance(item, INTEGERS):
            x, taken = emit(builder, "select.int", x, dim, item), True
            used -= 1
        elif isinstance(item, slice):
            start, stop, step = item.start, item.stop, item.step
            to_the_end = stop is None or (isinstance(stop, INTEGERS) and stop >= _END)
            if (start is None or start == 0) and to_the_end and step in (None, 1) and not is_symbolic(x.shape[dim]):
                dim += 1
                continue
            values = [0 if start is None else start, _END if stop is None else stop]
            x, taken = emit(builder, "slice.Tensor", x, dim, *values, *(() if step is None else (step,))), True
            dim += 1
        else:
            indices[dim] = item
            dim += item.dim() if item.dtype in (torch.bool, torch.uint8) else 1
    listed: list[Any] = []
    if indices:
        for d in range(max(indices) + 1):
            if d in indices:
                listed.append(indices[d])
            elif not any(e < d < e + indices[e].dim() for e in indices if indices[e].dtype == torch.bool):
                listed.append(None)
    return x, listed, taken


def _consumed(items: list[Any], ellipsis: Any) -> int:
    """How many dimensions the items before the ellipsis stand for in the result so far."""
    before = items[:items.index(ellipsis)]
    return sum(1 for item in before if isinstance(item, (slice, torch.Tensor)))


def _plain(item: Any) -> Any:
    if isinstance(item, list):
        with without_handlers():
            return torch.tensor(item)
    return item


def _setitem(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, key, value = args
    base_node = builder.argument(x)
    constant = None
    if not isinstance(value, torch.Tensor):
        with without_handlers():
            constant = torch.tensor(value, dtype=x.dtype if not isinstance(value, complex) else None)
        value = lifted(builder, constant)
    parts = _steps(builder, x, key)
    if parts is None:
        return NotImplemented
    view, indices, _ = parts
    if value.dim() > view.dim():  # leading dimensions of size 1 are dropped
        first = next((i for i, n in enumerate(value.shape) if is_symbolic(n) or n != 1), value.dim())
        if first:
            value = emit(builder, "view", value, list(value.shape[first:]))
    if indices:
        emit(builder, "index_put_", view, indices, value)
    elif constant is not None and view.dim():
        emit(builder, "fill_.Tensor", view, value)
    else:
        emit(builder, "copy_", view, value)
    if view is not x:  # the write is seen through the view; the tensor keeps its node
        builder.rebind(x, base_node)
    return None


_LOWERINGS: dict[str, Lowering] = {
    "__rtruediv__": _rtruediv, "__rdiv__": _rtruediv, "__rsub__": _rsub, "rsub": _rsub, "__rpow__": _rpow,
    "linear": _linear, "softmax": _softmax("softmax"), "log_softmax": _softmax("log_softmax"),
    "dropout": _dropout("dropout"), "alpha_dropout": _dropout("alpha_dropout"),
    "feature_dropout": _dropout("feature_dropout"), "embedding": _embedding, "layer_norm": _layer_norm,
    "group_norm": _group_norm, "batch_norm": _batch_norm, "instance_norm": _instance_norm,
    "cross_entropy": _cross_entropy, "nll_loss": _nll_loss, "mse_loss": _broadcast_loss("mse_loss"),
    "l1_loss": _broadcast_loss("l1_loss"), "smooth_l1_loss": _broadcast_loss("smooth_l1_loss", "beta"),
    "huber_loss": _broadcast_loss("huber_loss", "delta"),
    "binary_cross_entropy": _bce("binary_cross_entropy", "input target weight size_average reduce reduction"),
    "binary_cross_entropy_with_logits": _bce(
        "binary_cross_entropy_with_logits", "input target weight size_average reduce reduction pos_weight"),
    "relu": _activation("relu"), "relu6": _activation("relu6"), "silu": _activation("silu"),
    "mish": _activation("mish"), "hardswish": _activation("hardswish"), "hardsigmoid": _activation("hardsigmoid"),
    "leaky_relu": _activation("leaky_relu", "negative_slope", negative_slope=0.01),
    "elu": _activation("elu", "alpha", alpha=1.0), "selu": _activation("selu"),
    "hardtanh": _activation("hardtanh", "min_val max_val", min_val=-1.0, max_val=1.0), "gelu": _gelu,
    "max_pool1d": _max_pool("max_pool1d", 1), "max_pool2d": _max_pool("max_pool2d", 2),
    "max_pool3d": _max_pool("max_pool3d", 3), "avg_pool1d": _avg_pool("avg_pool1d", 1),
    "avg_pool2d": _avg_pool("avg_pool2d", 2), "avg_pool3d": _avg_pool("avg_pool3d", 3),
    **{f"adaptive_{kind}_pool{d}d": _adaptive_pool(f"adaptive_{kind}_pool{d}d", d)
       for kind in ("avg", "max") for d in (1, 2, 3)},
    "interpolate": _interpolate, "pad": _pad, "norm": _norm, "to": _to, "type": _type, "contiguous": _contiguous,
    "tensor": _tensor, "new_tensor": _new_tensor, "split": _split, "unbind": _unbind, "einsum": _einsum,
    "meshgrid": _meshgrid, "broadcast_tensors": _broadcast_tensors,
    **{f"conv{d}d": _conv(f"conv{d}d") for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": _conv_transpose(f"conv_transpose{d}d") for d in (1, 2, 3)},
    **{name: _conversion(dtype) for name, dtype in (
        ("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("long", "int64"),
        ("int", "int32"), ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"))},
    "cpu": _cpu, "one_hot": _one_hot, "kl_div": _kl_div, "multinomial": _multinomial,
    "tensordot": _tensordot,
    "clamp": _clamp, "clip": _clamp, "roll": _roll, "flip": _flip, "__getitem__": _getitem,
    "__setitem__": _setitem,
}
#: operators that are not run on fake tensors, since they check elements -> what has their results' metadata
METADATA: dict[str, Callable[..., Any]] = {
    "one_hot": _one_hot_metadata, "multinomial": _multinomial_metadata, **dict.fromkeys(
        ("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent_metadata)}
_PROPERTIES: dict[str, Lowering] = {"mT": _property("mT"), "T": _property("numpy_T"), "mH": _property("mH"),
                                    "H": _property("matrix_H"), "real": _property("real"), "imag": _property("imag")}

__all__ = ["Lowering", "call", "emit", "lifted", "lowering_of", "overload", "resolve"]
