"""Lowerings of `torch.nn.functional`: layers, activations, pooling, losses."""

from __future__ import annotations

from typing import Any

from .calls import Lowering, bound, call, emit, generic, name_of, overload


def _linear(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input weight bias", {"bias": None}, args, kwargs)
    return call(builder, overload("linear"), (given["input"], given["weight"], given["bias"]), {}, func, args, kwargs)


def _softmax(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound("input dim _stacklevel dtype", {"dtype": None}, args, {
            ("input" if key == "self" else key): value for key, value in kwargs.items()})
        if func.__module__ and not name_of(func).startswith("torch.nn.") and len(args) > 2:
            given["dtype"] = args[2]
        if given.get("dim") is None:
            return NotImplemented
        extra = () if given["dtype"] is None else (given["dtype"],)
        return call(builder, overload(name, "int"), (given["input"], given["dim"], *extra), {}, func, args, kwargs)

    return lower


def _dropout(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound("input p training inplace", {"p": 0.5, "training": True, "inplace": False}, args, kwargs)
        if not name_of(func).startswith("torch.nn."):
            given = bound("input p train", {"inplace": False}, args, kwargs)
            given["training"] = given["train"]
        which = overload(name + ("_" if given["inplace"] else ""))
        return call(builder, which, (given["input"], given["p"], given["training"]), {}, func, args, kwargs)

    return lower


def _embedding(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if not name_of(func).startswith("torch.nn."):
        return generic("embedding", builder, func, args, kwargs)
    given = bound("input weight padding_idx max_norm norm_type scale_grad_by_freq sparse", {
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


def _embedding_bag(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if name_of(func).startswith("torch.nn."):  # takes the weight after the indices; calls the operator itself
        return NotImplemented
    return generic("embedding_bag", builder, func, args, kwargs)


def _layer_norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input normalized_shape weight bias eps", {"weight": None, "bias": None, "eps": 1e-5}, args, kwargs)
    return call(builder, overload("layer_norm"), (given["input"], list(given["normalized_shape"]), given["weight"],
                                                  given["bias"], given["eps"], False), {}, func, args, kwargs)


def _group_norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input num_groups weight bias eps", {"weight": None, "bias": None, "eps": 1e-5}, args, kwargs)
    return call(builder, overload("group_norm"), (given["input"], given["num_groups"], given["weight"], given["bias"],
                                                  given["eps"], False), {}, func, args, kwargs)


def _batch_norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if not name_of(func).startswith("torch.nn."):
        return generic("batch_norm", builder, func, args, kwargs)
    given = bound("input running_mean running_var weight bias training momentum eps", {
        "weight": None, "bias": None, "training": False, "momentum": 0.1, "eps": 1e-5}, args, kwargs)
    return call(builder, overload("batch_norm"), (
        given["input"], given["weight"], given["bias"], given["running_mean"], given["running_var"], given["training"],
        given["momentum"], given["eps"], False), {}, func, args, kwargs)


def _instance_norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input running_mean running_var weight bias use_input_stats momentum eps", {
        "running_mean": None, "running_var": None, "weight": None, "bias": None, "use_input_stats": True,
        "momentum": 0.1, "eps": 1e-5}, args, kwargs)
    return call(builder, overload("instance_norm"), (
        given["input"], given["weight"], given["bias"], given["running_mean"], given["running_var"],
        given["use_input_stats"], given["momentum"], given["eps"], False), {}, func, args, kwargs)


_REDUCTION = {"none": 0, "mean": 1, "sum": 2}


def _cross_entropy(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input target weight size_average ignore_index reduce reduction label_smoothing", {
        "weight": None, "ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0}, args, kwargs)
    return call(builder, overload("cross_entropy_loss"), (
        given["input"], given["target"], given["weight"], _REDUCTION[given["reduction"]], given["ignore_index"],
        given["label_smoothing"]), {}, func, args, kwargs)


def _nll_loss(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input target weight size_average ignore_index reduce reduction", {
        "weight": None, "ignore_index": -100, "reduction": "mean"}, args, kwargs)
    return call(builder, overload("nll_loss_nd"), (
        given["input"], given["target"], given["weight"], _REDUCTION[given["reduction"]], given["ignore_index"]), {},
        func, args, kwargs)


def _broadcast_loss(name: str, extra: str = "", default: float = 1.0) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound(f"input target size_average reduce reduction {extra or 'weight'}", {
            "reduction": "mean", extra or "weight": default if extra else None}, args, kwargs)
        if not extra and given["weight"] is not None:
            return NotImplemented
        pair = emit(builder, "broadcast_tensors", [given["input"], given["target"]])
        values = () if not extra else (given[extra],)
        return emit(builder, name, *pair, _REDUCTION[given["reduction"]], *values)

    return lower


def _bce(name: str, positional: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound(positional, {"weight": None, "pos_weight": None, "reduction": "mean"}, args, kwargs)
        extra = (given["pos_weight"],) if "logits" in name else ()
        return call(builder, overload(name), (given["input"], given["target"], given["weight"], *extra,
                                              _REDUCTION[given["reduction"]]), {}, func, args, kwargs)

    return lower


def _activation(name: str, parameters: str = "", **defaults: Any) -> Lowering:
    """An activation of `nn.functional`, whose option `inplace` selects the operator that writes."""
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound(f"input {parameters} inplace", {**defaults, "inplace": False}, args, {
            ("input" if key == "self" else key): value for key, value in kwargs.items()})
        which = overload(name + ("_" if given["inplace"] else ""))
        return call(builder, which, (given["input"], *(given[key] for key in parameters.split())), {}, func, args,
                    kwargs)

    return lower


def _functional_only(lowering: Lowering, otherwise: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if name_of(func).startswith("torch.nn."):
            return lowering(builder, func, args, kwargs)
        return generic(otherwise, builder, func, args, kwargs)

    return lower


def _max_pool(name: str, dims: int, with_indices: bool = False) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound("input kernel_size stride padding dilation ceil_mode return_indices", {
            "stride": None, "padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": with_indices}, args,
            kwargs)
        window, stride, padding, dilation = (_tuple(given[key], dims) for key in (
            "kernel_size", "stride", "padding", "dilation"))
        which = overload(f"{name}_with_indices" if given["return_indices"] else name)
        return call(builder, which, (given["input"], window, [] if stride is None else stride, _unless(padding, 0),
                                     _unless(dilation, 1), given["ceil_mode"]), {}, func, args, kwargs)

    return lower


def _tuple(value: Any, count: int) -> Any:
    if value is None or isinstance(value, (list, tuple)):
        return value if value is None else list(value)
    return [value] * count


def _unless(value: list[int], neutral: int) -> Any:
    return neutral if all(x == neutral for x in value) else value


def _avg_pool(name: str, dims: int) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound("input kernel_size stride padding ceil_mode count_include_pad divisor_override", {
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
        given = bound("input output_size return_indices", {"return_indices": False}, args, kwargs)
        size = _tuple(given["output_size"], dims)
        if None in size:
            size = [n if each is None else each for each, n in zip(size, given["input"].shape[-dims:], strict=True)]
        if "max" not in name:
            return call(builder, overload(name), (given["input"], size), {}, func, args, kwargs)
        pair = call(builder, overload(name), (given["input"], size), {}, func, (given["input"], size, True), {})
        return pair if given["return_indices"] else pair[0]

    return lower


def _max_unpool(dims: int) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound("input indices kernel_size stride padding output_size", {
            "stride": None, "padding": 0, "output_size": None}, args, kwargs)
        x, indices, size = given["input"], given["indices"], given["output_size"]
        window, padding = _tuple(given["kernel_size"], dims), _tuple(given["padding"], dims)
        stride = _tuple(given["stride"], dims) or window
        size = list(size)[-dims:] if size is not None else [
            (n - 1) * step + length - 2 * pad for n, step, length, pad in zip(
                x.shape[-dims:], stride, window, padding, strict=True)]
        if dims == 1:
            x, indices = emit(builder, "unsqueeze", x, -2), emit(builder, "unsqueeze", indices, -2)
            return emit(builder, "squeeze.dim", emit(builder, "max_unpool2d", x, indices, [1, *size]), -2)
        extra = (stride, padding) if dims == 3 else ()
        return emit(builder, f"max_unpool{dims}d", x, indices, size, *extra)

    return lower


def _interpolate(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input size scale_factor mode align_corners recompute_scale_factor antialias", {
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
    given = bound("input pad mode value", {"mode": "constant", "value": None}, args, kwargs)
    return call(builder, overload("pad"), (given["input"], list(given["pad"]), given["mode"], given["value"]), {}, func,
                args, kwargs)


def _conv(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        given = bound("input weight bias stride padding dilation groups", {
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
        given = bound("input weight bias stride padding output_padding groups dilation", {
            "bias": None, "stride": 1, "padding": 0, "output_padding": 0, "groups": 1, "dilation": 1}, args, kwargs)
        dims = int(name[-2])
        which = overload(name, "default" if dims == 1 else "input")
        return call(builder, which, (
            given["input"], given["weight"], given["bias"], *(_tuple(given[key], dims) for key in (
                "stride", "padding", "output_padding")), given["groups"], _tuple(given["dilation"], dims)), {}, func,
            args, kwargs)

    return lower


def _gelu(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input", {"approximate": "none"}, args, kwargs)
    return call(builder, overload("gelu"), (given["input"],), {"approximate": given["approximate"]}, func, args, kwargs)


def _kl_div(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input target size_average reduce reduction log_target", {"reduction": "mean", "log_target": False},
                  args, kwargs)
    if not name_of(func).startswith("torch.nn."):
        return NotImplemented
    reduction = given["reduction"]
    kind = 2 if reduction == "batchmean" else _REDUCTION[reduction]
    options = {"log_target": True} if given["log_target"] else {}
    out = emit(builder, "kl_div", given["input"], given["target"], kind, **options)
    return emit(builder, "div.Tensor", out, given["input"].shape[0]) if reduction == "batchmean" else out


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


NEURAL: dict[str, Lowering] = {
    "linear": _linear, "softmax": _softmax("softmax"), "log_softmax": _softmax("log_softmax"),
    "dropout": _dropout("dropout"), "alpha_dropout": _dropout("alpha_dropout"),
    "feature_dropout": _dropout("feature_dropout"), "embedding": _embedding,
    "embedding_bag": _embedding_bag, "layer_norm": _layer_norm,
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
    "max_pool3d": _max_pool("max_pool3d", 3),
    **{f"max_pool{d}d_with_indices": _max_pool(f"max_pool{d}d", d, True) for d in (1, 2, 3)},
    "avg_pool1d": _avg_pool("avg_pool1d", 1),
    "avg_pool2d": _avg_pool("avg_pool2d", 2), "avg_pool3d": _avg_pool("avg_pool3d", 3),
    **{f"adaptive_{kind}_pool{d}d": _adaptive_pool(f"adaptive_{kind}_pool{d}d", d)
       for kind in ("avg", "max") for d in (1, 2, 3)},
    **{f"max_unpool{d}d": _max_unpool(d) for d in (1, 2, 3)},
    "interpolate": _interpolate, "pad": _pad, **{f"conv{d}d": _conv(f"conv{d}d") for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": _conv_transpose(f"conv_transpose{d}d") for d in (1, 2, 3)}, "kl_div": _kl_div,
}
#: recurrent networks run on no fake tensors -> what has their results' metadata
NEURAL_METADATA: dict[str, Any] = dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent_metadata)

__all__ = ["NEURAL", "NEURAL_METADATA"]
