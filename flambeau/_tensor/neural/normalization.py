"""Normalization functions: shape checks and updates of running statistics."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import resolve
from ...backends.elementless_array import ElementlessArray
from ...engine.grad_mode import grad_mode
from ...engine.tensor_interface import layer
from ...kernels.memory_format import is_channels_last
from ...modes import active_tracer, device_memory, dispatch_in_use, lazy_storages, special
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ...warning_location import warn_once
from ..argument_errors.guards import raise_refusal
from ..argument_errors.messages import explained, unfit
from ..argument_errors.type_names import not_a_tensor, type_name
from ..creation.factory_arguments import finished
from ..dispatch.apply import apply
from ..dispatch.handlers import handlers
from ..fastpath.repeated_calls import observing, repeated
from ..linalg.norms import check_norm_dtype
from ..overriding.dispatch import SavedStatistics, is_on_accelerator
from ..shape.lazy_clones import make_writable
from ..tensor import Tensor, wrap

__all__ = [
    "_weight_norm",
    "batch_norm",
    "group_norm",
    "layer_norm",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "norm_except_dim",
    "rms_norm",
]


# ----- batch_norm ------------------------------------------------------------------------


def _check_channels(input: Tensor, params: dict[str, Tensor | None], training: bool) -> None:
    shape = input._array.shape
    channels = shape[1] if len(shape) > 1 else 0
    for name, x in params.items():
        if x is not None:
            if x._array.size != channels:
                raise RuntimeError(f"{name} should contain {channels} elements not {x._array.size}")
        elif name.startswith("running") and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    if input.dtype.is_floating_point:  # for others there is no kernel
        for x in params.values():
            _check_mixed(input, x)


def _update_running(average: Tensor | None, value: np.ndarray, momentum: float, factor: float = 1.0) -> None:
    """average ← (1 - momentum) · average + momentum · factor · value."""
    if average is None or isinstance(value, ElementlessArray):
        return
    if special[0]:
        if isinstance(average._array, ElementlessArray):
            return
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.on_running_average(average, value, momentum, factor)
        if lazy_storages[0]:
            make_writable(average._array)
        if device_memory.count and is_on_accelerator(average):
            handlers.update_average_on_device(average, value, momentum, factor, _update_running)
            return
        if not isinstance(value, np.ndarray):  # of a trace of a handler's call; the call itself updates
            return
    if factor != 1.0:
        value = value * factor
    a = average._array
    if a.dtype in dtypes.NARROW:
        a[...] = dtypes.cast((1 - momentum) * dtypes.widen(a) + momentum * value, a.dtype)
    else:
        kind = a.dtype.type
        a *= kind(1 - momentum)
        a += kind(momentum) * value


def _batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                running_var: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Tensor, list[Any]]:
    _check_channels(input, {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias},
                    training)
    for name, average in (("running_mean", running_mean), ("running_var", running_var)):
        if average is not None and average._requires_grad and grad_mode.get():
            raise RuntimeError(f"The function 'native_batch_norm' is not differentiable with respect to argument "
                               f"'{name}'. This input cannot have requires_grad True.")
    if special[0]:
        from ..dispatch.batched_tensor import is_batched

        if is_batched(input, weight, bias, running_mean, running_var):
            return _batch_norm_of_batches(input, weight, bias, running_mean, running_var, training, momentum, eps)
        from ..dispatch.forward_mode import tangent_levels

        if not training and tangent_levels((input, weight, bias)) and tangent_levels((running_mean, running_var)):
            raise RuntimeError("batch_norm is not differentiable wrt running_mean and running_var, they cannot have "
                               "forward grad defined")
    if input._array.ndim < 2:
        wrap_dim(1, input._array.ndim)
    statistics: list[Any] = []
    if training and dispatch_in_use[0] and not is_on_accelerator(input):
        statistics = SavedStatistics({"running_mean": running_mean, "running_var": running_var, "momentum": momentum})
    out = apply(REGISTRY["_batch_norm"], [input, weight, bias], {
        "running_mean": None if running_mean is None or training else _widened(running_mean),
        "running_var": None if running_var is None or training else _widened(running_var),
        "training": training, "eps": eps, "saved": statistics})
    if training and statistics and input._array.size:  # none where a handler gave the result
        _update_running(running_mean, statistics[0], momentum)
        if running_var is not None:
            shape = input._array.shape
            count = prod(shape) // max(shape[1], 1)
            _update_running(running_var, statistics[2], momentum, count / max(count - 1, 1) if count != 1 else np.nan)
    return out, statistics


def _widened(x: Tensor) -> np.ndarray:
    """The array of a tensor, of 32 bits at least."""
    if x._device.type == "cuda":
        array: np.ndarray = (x.detach().float() if x.dtype.itemsize < 4 else x)._array
        return array
    return dtypes.widen(resolve(x._array))


_UNBATCHED_AVERAGES = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
    "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
    "resources on how to patch your module to work with vmap")


def _batch_norm_of_batches(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                           running_var: Tensor | None, training: bool, momentum: float,
                           eps: float) -> tuple[Tensor, list[Any]]:
    """`_batch_norm` inside `vmap`: the batch dimensions become channels, (N, batch · C, ...).

    Raises:
        RuntimeError: the input is batched and a running average is not.
    """
    from ..dispatch.batched_tensor import expand_levels, make_batched, vmap_levels

    if input._array.ndim < 2:  # no channels: nothing to normalize
        return input.clone(), [wrap(np.empty(0, input._array.dtype)) for _ in range(2)]
    averages = [x for x in (running_mean, running_var) if x is not None]
    levels = vmap_levels([input, *averages])
    if training and not all(set(vmap_levels([input])) <= set(vmap_levels([x])) for x in averages):
        raise RuntimeError(_UNBATCHED_AVERAGES)
    fn = layer.functions
    sizes = tuple(level.size for level in levels)
    count = prod(sizes)
    shape = input._array.shape
    channels = shape[1]
    x = expand_levels(input, levels)
    x = fn.movedim(fn.reshape(x, (count, *shape)), 0, 1)  # (N, h, C, ...)
    x = fn.reshape(x, (shape[0], count * channels, *shape[2:]))
    flat = [None if x is None else wrap(np.array(resolve(expand_levels(x, levels)._array)).reshape(-1))
            for x in (running_mean, running_var)]
    out, statistics = _batch_norm(x, None, None, flat[0], flat[1], training, momentum, eps)
    if training:
        for average, updated in zip((running_mean, running_var), flat, strict=True):
            if average is not None and updated is not None and vmap_levels([average]) == levels:
                target = getattr(average, "_value", average)
                target._array[...] = updated._array.reshape(target._array.shape)
    out = fn.movedim(fn.reshape(out, (shape[0], count, *shape[1:])), 1, 0)
    out = make_batched(fn.reshape(out, (*sizes, *shape)), levels)
    statistics = [make_batched(wrap(a.reshape(*sizes, channels)), levels) for a in statistics]
    across = (channels, *(1 for _ in shape[2:]))
    if weight is not None:
        out = out * fn.reshape(weight, across)
    if bias is not None:
        out = out + fn.reshape(bias, across)
    return out, statistics


def _batch_norm_of_nothing(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """An input without elements: PyTorch checks nothing, and the parameters get gradients of zeros."""
    result = layer.functions.clone(input)
    if weight is not None:
        result = result * weight[0]
    return result if bias is None else result + bias[0]


@repeated
def _batch_norm_without_averages(input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    if not input._array.size:
        return _batch_norm_of_nothing(input, weight, bias)
    return _batch_norm(input, weight, bias, None, None, True, 0.0, eps)[0]


def _is_known(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
              running_var: Tensor) -> bool:
    """Whether a call in training is recorded, and one without the averages can be a known call."""
    if special[0] or dispatch_in_use[0] or device_memory.count or not grad_mode.get() or input._array.ndim < 2 or not (
            input._requires_grad or (weight is not None and weight._requires_grad) or (
                bias is not None and bias._requires_grad)):
        return False
    a, channels = input._array, input._array.shape[1:2]
    if a.__class__ is not np.ndarray:
        return False
    for average in (running_mean, running_var):
        b = average._array
        if b.__class__ is not np.ndarray or b.dtype is not a.dtype or b.shape != channels or average._requires_grad:
            return False
    return True


def _batch_norm_with_averages(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
                              running_var: Tensor, momentum: float, eps: float) -> Tensor:
    """Batch norm in training, and the averages updated by the statistics that its node has saved."""
    out: Tensor = _batch_norm_without_averages(input, weight, bias, eps)
    node: Any = out._node
    mean, _, variance = node.consts[node.plan.saved_list]
    count = prod(input._array.shape) // input._array.shape[1]
    _update_running(running_mean, mean, momentum)
    _update_running(running_var, variance, momentum, count / max(count - 1, 1) if count != 1 else np.nan)
    return out


def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
               running_var: Tensor | None, training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    """(x - mean) / √(var + eps) · weight + bias, by channel (dimension 1).

    Args:
        input: (N, C, ...).
        weight, bias: (C).
        running_mean, running_var: (C), used in evaluation mode; in training mode the batch statistics are used and
            these are updated with `momentum`.

    Raises:
        RuntimeError: the number of elements of an argument is not C.

    >>> import flambeau as torch
    >>> torch.batch_norm(torch.tensor([[0.], [2.]]), None, None, None, None, True, 0.1, 0., False).flatten()
    tensor([-1.,  1.])
    """
    try:
        if training and running_mean is running_var is None:
            return _batch_norm_without_averages(input, weight, bias, eps)
        if not input._array.size:
            return _batch_norm_of_nothing(input, weight, bias)
        if training and running_mean is not None and running_var is not None and _is_known(
                input, weight, bias, running_mean, running_var):
            return _batch_norm_with_averages(input, weight, bias, running_mean, running_var, momentum, eps)
        return _batch_norm(input, weight, bias, running_mean, running_var, bool(training), momentum, eps)[0]
    except Exception:
        raise_refusal(explained("torch", "batch_norm", (input, weight, bias, running_mean, running_var, training,
                                                        momentum, eps, cudnn_enabled), {}))
        raise


def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                      running_var: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Tensor, ...]:
    """`batch_norm`, and the mean and 1 / √(var + eps) of the batch, (C) each; without `training` they are empty.

    >>> import flambeau as torch
    >>> x = torch.tensor([[1.], [3.]])
    >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.)[1:]
    (tensor([2.]), tensor([1.]))
    """
    out, statistics = _batch_norm(input, weight, bias, running_mean, running_var, bool(training), momentum, eps)
    param_dtype = next((x._array.dtype for x in (weight, bias, running_mean, running_var) if x is not None),
                       input._array.dtype)
    if training and not statistics:  # a handler gave the result without elements
        return out, *(input.new_empty(input._array.shape[1], dtype=dtypes.of(param_dtype)) for _ in range(2))
    if training:
        mean, rstd = (a.to(dtypes.of(param_dtype)) if isinstance(a, Tensor) else
                      finished(wrap(dtypes.cast(a, param_dtype)), False) for a in statistics[:2])
        return out, mean, rstd
    empty = np.empty(0, param_dtype)
    return out, finished(wrap(empty), False), finished(wrap(empty.copy()), False)


# ----- layer_norm, rms_norm --------------------------------------------------------------


def _normalized(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not "
                        f"{type_name(shape)}")
    return tuple(map(int, shape))


def _check_normalized(input: Tensor, normalized: tuple[int, ...], params: dict[str, Tensor | None], comma: str) -> None:
    if not normalized:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                           "element, but got normalized_shape = []")
    if comma == ", ":  # of `layer_norm`
        _check_mixed(input, *params.values())
    for name, x in params.items():
        if x is not None and x._array.shape != normalized:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                               f"{list(x._array.shape)} and normalized_shape = {list(normalized)}")
    shape = input._array.shape
    if len(shape) < len(normalized) or shape[len(shape) - len(normalized):] != normalized:
        raise RuntimeError(f"Given normalized_shape={list(normalized)}, expected input with shape "
                           f"[*{comma}{', '.join(map(str, normalized))}], but got input of size{list(shape)}")


def _check_mixed(input: Tensor, weight: Tensor | None, bias: Tensor | None = None) -> None:
    """Check that a weight, or a bias without one, has the input's dtype, or float32 where the input is narrower."""
    kind, first = input._array.dtype, weight if weight is not None else bias
    if first is not None and first._array.dtype != kind:
        if first._array.dtype != np.float32:
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if kind not in dtypes.NARROW:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _check_same(weight: Tensor | None, bias: Tensor | None) -> None:
    """Check that a bias has the weight's dtype."""
    if weight is not None and bias is not None and bias._array.dtype != weight._array.dtype:
        raise RuntimeError(f"expected scalar type {weight.dtype.scalar_name} but found {bias.dtype.scalar_name}")


def _layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None,
                eps: float) -> tuple[Tensor, list[Any]]:
    if not isinstance(input, Tensor):
        raise not_a_tensor("layer_norm", input)
    normalized = _normalized(normalized_shape)
    try:
        _check_normalized(input, normalized, {"weight": weight, "bias": bias}, ", ")
        _check_same(weight, bias)
    except AttributeError:
        raise_refusal(unfit(("layer_norm",), (input, normalized_shape, weight, bias, eps), {}))
        raise
    statistics: list[Any] = []
    return apply(REGISTRY["_layer_norm"], [input, weight, bias], {
        "normalized_shape": normalized, "eps": eps, "saved": statistics}), statistics


@repeated
def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:
    """(x - mean) / √(var + eps) · weight + bias, over the last dimensions.

    Args:
        normalized_shape: the sizes of the last dimensions, over which to normalize; the shape of weight and bias.

    Raises:
        RuntimeError: the shapes do not match.

    >>> import flambeau as torch
    >>> torch.layer_norm(torch.tensor([[0., 2.]]), (2,), eps=0.)
    tensor([[-1.,  1.]])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)[0]


def native_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, and the mean and 1 / √(var + eps) of each normalized slice, with size 1 in its dimensions.

    >>> import flambeau as torch
    >>> torch.native_layer_norm(torch.tensor([[1., 3.]]), (2,), None, None, 0.)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    out, statistics = _layer_norm(input, normalized_shape, weight, bias, eps)
    if len(statistics) == 4:
        return out, statistics[2], statistics[3]
    shape = input._array.shape
    n = len(tuple(normalized_shape))
    size = (*shape[:len(shape) - n], *(1 for _ in range(n)))
    kind = input._array.dtype
    mean, rstd = (_statistic(out, dtypes.cast(np.ascontiguousarray(a), kind), size) for a in statistics)
    return out, mean, rstd


def statistics_of(out: Tensor, params: dict[str, Any]) -> list[Tensor]:
    """The statistics that layer or group normalization saved, as results of the operator that returns them, too."""
    shape = out._array.shape
    if "group" in params:
        size = shape[0], params["group"]
    else:
        n = len(params["normalized_shape"])
        size = (*shape[:len(shape) - n], *(1 for _ in range(n)))
    return [_statistic(out, dtypes.cast(np.ascontiguousarray(a), out._array.dtype), size) for a in params["saved"][:2]]


def _statistic(out: Any, a: np.ndarray, size: tuple[int, ...]) -> Tensor:
    """A saved statistic as a tensor of shape `size`, batched like the result `out`."""
    if out._array.__class__ is np.ndarray or a.size == prod(size):
        return finished(wrap(a.reshape(size)), False)
    from ..dispatch.batched_tensor import make_batched

    levels = out._levels
    return make_batched(wrap(a.reshape(*(level.size for level in levels), *size)), levels)


#: the default `eps`, for the dtypes that the fast path supports
_EPSILON = {np.dtype(kind): float(np.finfo(kind).eps) for kind in (np.float32, np.float64)}


@repeated
def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """x / √(mean(x²) + eps) · weight, over the last dimensions.

    Args:
        eps: default: the machine epsilon of the dtype.

    >>> import flambeau as torch
    >>> torch.rms_norm(torch.tensor([[3., 4.]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    normalized = _normalized(normalized_shape)
    if len(normalized) > input._array.ndim:
        raise ValueError(f"Input tensor must have at least {len(normalized)} dimensions, but got {input._array.ndim}")
    _check_normalized(input, normalized, {"weight": weight}, "")
    fn = layer.functions
    x = input
    if weight is not None and weight._array.dtype != x._array.dtype:
        warn_once(f"Mismatch dtype between input and weight: input dtype = {dtypes.C_NAMES[x.dtype.name]}, "
                  f"weight dtype = {dtypes.C_NAMES[weight.dtype.name]}, Cannot dispatch to fused implementation.")
    narrow = x._array.dtype in dtypes.NARROW
    if narrow:
        x = x.to(dtypes.float32)
    supported = x._array.dtype in _EPSILON
    if not supported and x._array.dtype.kind != "c":
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{x.dtype.scalar_name}'")
    if eps is None:
        eps = _EPSILON.get(x._array.dtype) or dtypes.finfo(x.dtype.to_real()).eps
    elif isinstance(eps, np.generic):  # a number, whose dtype does not count
        eps = eps.item()
    if special[0] == observing[0] and supported and (weight is None or weight._array.dtype is x._array.dtype) and (
            not grad_mode.get() or not (x._requires_grad or (weight is not None and weight._requires_grad))):
        out = apply(REGISTRY["_rms_norm"], [x, weight], {"normalized_shape": normalized, "eps": eps})
        return out.to(input.dtype) if narrow else out
    dims = tuple(range(-len(normalized), 0))
    mean = fn.mean(x ** 2, dims, True)
    out = x * fn.rsqrt(apply(REGISTRY["_add_scalar"], [mean], {"other": eps}))
    if weight is not None:
        out = out * weight
    out = out.contiguous()
    return out if out.dtype is input.dtype else out.to(input.dtype)


# ----- group_norm ------------------------------------------------------------------------


def _group_norm(input: Tensor, group: int, weight: Tensor | None, bias: Tensor | None,
                eps: float) -> tuple[Tensor, list[Any]]:
    statistics: list[Any] = []
    out = apply(REGISTRY["_group_norm"], [input, weight, bias], {"group": group, "eps": eps, "saved": statistics})
    return out, statistics


@repeated
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5, cudnn_enabled: bool = True) -> Tensor:
    """(x - mean) / √(var + eps) · weight + bias, over each sample and group of channels.

    Args:
        input: (N, C, ...).
        weight, bias: (C).

    Raises:
        RuntimeError: C is not divisible by `num_groups`.

    >>> import flambeau as torch
    >>> torch.group_norm(torch.tensor([[0., 2., 3., 5.]]), 2, eps=0.)
    tensor([[-1.,  1., -1.,  1.]])
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions" if not shape else
                         "Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{list(shape)} and num_groups={num_groups}")
    for name, x in (("weight", weight), ("bias", bias)):
        if x is not None and x._array.shape != (shape[1],):
            shown = weight if weight is not None else x  # PyTorch's message of the bias shows it, too
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but "
                               f"got {name} of shape {list(shown._array.shape)} and input of shape {list(shape)}")
    if weight is not None or bias is not None:
        _check_mixed(input, weight, bias)
        _check_same(weight, bias)
    a = input._array
    if a.__class__ is np.ndarray and not a.flags.c_contiguous and not is_channels_last(a.shape, a.strides):
        input = input.contiguous()
    return _group_norm(input, num_groups, weight, bias, eps)[0]


def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm`, and the mean and 1 / √(var + eps) of each group, (N, group) each.

    >>> import flambeau as torch
    >>> torch.native_group_norm(torch.tensor([[1., 3.]]), None, None, 1, 2, 1, 1, 0.)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    out, statistics = _group_norm(input, group, weight, bias, eps)
    if len(statistics) == 4:
        return out, statistics[2], statistics[3]
    param_dtype = next((x._array.dtype for x in (weight, bias) if x is not None), input._array.dtype)
    mean, rstd = (_statistic(out, dtypes.cast(a, param_dtype), (N, group)) for a in statistics)
    return out, mean, rstd


# ----- weight norm -----------------------------------------------------------------------


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The p-norm over all dimensions except one, which are kept with size 1.

    Args:
        v: a tensor.
        pow: p.
        dim: the dimension of separate norms; -1 for one norm of the entire tensor, which is 0-D.

    >>> import flambeau as torch
    >>> torch.norm_except_dim(torch.tensor([[3., 4.], [0., 2.]]))
    tensor([[5.],
            [2.]])
    """
    rank = v.dim()
    if dim == -1:
        check_norm_dtype(v)
        return apply(REGISTRY["_norm_whole"], [v], {"ord": pow})
    if dim == 0:
        rows = v.contiguous().view(v.size(0), -1)
        check_norm_dtype(v)
        norms = apply(REGISTRY["_norm_in_dims"], [rows], {"ord": pow, "dim": (1,), "keepdim": False})
        return norms.view(v.size(0), *(1,) * (rank - 1))
    if dim == rank - 1:
        columns = v.contiguous().view(-1, v.size(dim))
        check_norm_dtype(v)
        norms = apply(REGISTRY["_norm_in_dims"], [columns], {"ord": pow, "dim": (0,), "keepdim": False})
        return norms.view(*(1,) * (rank - 1), v.size(dim))
    return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """g · v / ‖v‖, with norms over all dimensions except `dim`."""
    fn = layer.functions
    if dim in (0, v.dim() - 1) and dim != -1:
        return fn._weight_norm_interface(v.contiguous(), g.contiguous(), dim=dim)
    return v * (g / norm_except_dim(v, 2, dim))
