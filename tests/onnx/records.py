# ruff: noqa: E501  (a record is a line)
"""One record for each operator that is translated to ONNX: a function, and the inputs that it is exported with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

F = torch.nn.functional
aten = torch.ops.aten
Record = tuple[Callable[..., Any], tuple[Any, ...]]


def x(*shape: int) -> Any:
    return torch.randn(shape or (3, 4), generator=torch.Generator().manual_seed(sum(shape) + 1))


def p(*shape: int) -> Any:
    return torch.rand(shape or (3, 4), generator=torch.Generator().manual_seed(7)) * 0.8 + 0.1


def i(*values: Any) -> Any:
    return torch.tensor(values)


RECORDS: dict[str, Record] = {}
for _name in """abs neg exp log sqrt sin cos tan asin acos atan sinh cosh asinh atanh erf sigmoid tanh reciprocal
        rsqrt log2 log10 log1p expm1 exp2 erfc square frac trunc floor ceil round relu sign isnan isinf
        isfinite logit deg2rad rad2deg nan_to_num positive sgn""".split():  # noqa: SIM905
    RECORDS[_name] = (getattr(torch, _name), (p(),))
RECORDS["acosh"] = (torch.acosh, (p() + 1,))
for _name in """silu mish hardswish hardsigmoid relu6 hardtanh leaky_relu elu selu celu softplus gelu glu hardshrink
        softshrink""".split():  # noqa: SIM905
    RECORDS[_name] = (getattr(F, _name), (x(4, 6) * 3,))
RECORDS["log_sigmoid"] = (F.logsigmoid, (x(),))
for _name in """add sub mul div maximum minimum remainder fmod floor_divide atan2 hypot xlogy eq ne lt le gt ge""".split():  # noqa: SIM905
    RECORDS[_name] = (getattr(torch, _name), (x(), p(4)))
for _name in """logical_and logical_or logical_xor""".split():  # noqa: SIM905
    RECORDS[_name] = (getattr(torch, _name), (x() > 0, x(4) > 0))
for _name in """bitwise_and bitwise_or bitwise_xor""".split():  # noqa: SIM905
    RECORDS[_name] = (getattr(torch, _name), (i(1, 2, 3), i(3, 5, 6)))
    RECORDS[f"{_name}.bool"] = (getattr(torch, _name), (x() > 0, x(4) > 0))
RECORDS.update({
    "fft_rfft": (lambda a: torch.fft.rfft(a, dim=1).abs(), (x(3, 7),)),
    "fft_irfft2": (lambda a: torch.fft.irfft2(torch.fft.rfft2(a) * torch.polar(a[:, :5], a[:, :5]), s=(4, 8)), (x(4, 8),)),
    "fft_fft2": (lambda a: torch.fft.fft2(a, norm="ortho").real + torch.fft.ifft(a).conj().imag, (x(4, 6),)),
    "polar": (lambda a: torch.view_as_real(torch.polar(a, a) / torch.complex(a, a * 2)), (x(),)),
    "angle": (lambda a: torch.angle(torch.complex(a, a * 2 - 1)), (x(),)),
    "matmul.complex": (lambda a: (torch.fft.fft(a) @ torch.fft.fft(a).mT).abs(), (x(),)),
    "cumprod": (lambda a: a.cumprod(1), (x(2, 7),)),
    "unsafe_split": (lambda a: torch.unsafe_split(a, 3), (x(7, 2),)),
    "bilinear": (F.bilinear, (x(5, 4), x(5, 3), x(2, 4, 3), x(2))),
    "affine_grid_generator": (lambda t: F.affine_grid(t, (2, 1, 3, 4), align_corners=False), (x(2, 2, 3),)),
    "_weight_norm": (lambda v, g: torch._weight_norm(v, g, 0), (x(), p(3, 1))),
    "im2col": (lambda a: F.unfold(a, (3, 2), padding=(1, 2), stride=(2, 1), dilation=(1, 2)), (x(2, 3, 8, 7),)),
    "__and__": (lambda a, b: a & b, (x() > 0, x(4) > 0)),
    "__or__": (lambda a, b: a | b, (i(1, 2), i(4, 2))),
    "__xor__": (lambda a, b: a ^ b, (i(1, 2), i(4, 2))),
    "add.alpha": (lambda a, b: torch.add(a, b, alpha=3), (x(), x(4))),
    "rsub": (lambda a: 1 - a, (x(),)),
    "sub.alpha": (lambda a, b: torch.sub(a, b, alpha=2), (x(), x(4))),
    "add.mixed": (lambda a, b: a + b * 2.5, (i(1, 2, 3, 4), i(1, 2, 3, 4))),
    "div.floor": (lambda a, b: torch.div(a, b, rounding_mode="floor"), (i(-7, 7, 5), i(2, -2, 3))),
    "div.trunc": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), (x(), p(4))),
    "floor_divide.int": (torch.floor_divide, (i(-7, 7, 5, -6), i(2, -2, 3, 3))),
    "remainder.int": (torch.remainder, (i(-7, 7, 5), i(2, -2, 3))),
    "pow": (lambda a: a ** 3, (x(),)),
    "pow.Tensor": (torch.pow, (p(), x(4))),
    "pow.Scalar": (lambda a: 2 ** a, (x(),)),
    "prelu": (F.prelu, (x(2, 3, 4), p(3))),
    "threshold": (lambda a: F.threshold(a, 0.1, 5.0), (x(),)),
    "gelu.tanh": (lambda a: F.gelu(a, approximate="tanh"), (x(),)),
    "softmax": (lambda a: a.softmax(1), (x(),)),
    "log_softmax": (lambda a: a.log_softmax(0), (x(),)),
    "bitwise_not": (lambda a: ~a, (x() > 0,)),
    "bitwise_not.int": (lambda a: ~a, (i(1, 2),)),
    "logical_not": (torch.logical_not, (x(),)),
    "where": (lambda a, b: torch.where(a > 0, a, b), (x(), x(4))),
    "masked_fill": (lambda a: a.masked_fill(a > 0, 2.0), (x(),)),
    "clamp": (lambda a: a.clamp(-0.5, 0.5), (x(),)),
    "clamp_min": (lambda a: a.clamp_min(0.1), (x(),)),
    "clamp_max": (lambda a: a.clamp_max(0.1), (x(),)),
    "lerp": (lambda a, b: torch.lerp(a, b, 0.3), (x(), x())),
    "addcmul": (lambda a, b: torch.addcmul(a, b, b, value=2), (x(), x())),
    "dropout": (lambda a: F.dropout(a, 0.5, False), (x(),)),
    "addcdiv": (lambda a, b: torch.addcdiv(a, b, b), (x(), p())),
    "clone": (torch.clone, (x(),)),
    "detach": (lambda a: a.detach() + 1, (x(),)),
    "contiguous": (lambda a: a.t().contiguous(), (x(),)),
    # losses
    "mse_loss": (F.mse_loss, (x(), p())),
    "l1_loss": (F.l1_loss, (x(), p())),
    "huber_loss": (F.huber_loss, (x(), p())),
    "smooth_l1_loss": (lambda a, b: F.smooth_l1_loss(a, b, beta=0.5), (x(), p())),
    "binary_cross_entropy": (F.binary_cross_entropy, (p(), p())),
    "kl_div": (F.kl_div, (x(), p())),
    "binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, (x(), p())),
    "cross_entropy_loss": (F.cross_entropy, (x(), i(0, 3, 1))),
    "cosine_similarity": (F.cosine_similarity, (x(), p())),
    "cross_entropy_loss.smooth": (lambda a, t: F.cross_entropy(a, t, label_smoothing=0.2), (x(), i(0, 3, 1))),
    "nll_loss_nd": (lambda a, t: F.nll_loss(a.log_softmax(1), t), (x(), i(0, 3, 1))),
    # reductions
    "sum": (torch.sum, (x(),)),
    "sum.dim_IntList": (lambda a: a.sum((0, 2), keepdim=True), (x(2, 3, 4),)),
    "mean": (torch.mean, (x(),)),
    "mean.dim": (lambda a: a.mean(-1), (x(),)),
    "amax": (lambda a: a.amax(1), (x(),)),
    "amin": (lambda a: a.amin((0, 1)), (x(),)),
    "prod": (torch.prod, (p(),)),
    "prod.dim_int": (lambda a: a.prod(1), (p(),)),
    "logsumexp": (lambda a: a.logsumexp(1), (x(),)),
    "max": (torch.max, (x(),)),
    "min": (torch.min, (x(),)),
    "max.dim": (lambda a: a.max(1), (x(),)),
    "min.dim": (lambda a: a.min(0, keepdim=True), (x(),)),
    "argmax": (torch.argmax, (x(),)),
    "argmax.dim": (lambda a: a.argmax(1, keepdim=True), (x(),)),
    "argmin": (lambda a: a.argmin(0), (x(),)),
    "any": (lambda a: (a > 1).any(), (x(),)),
    "all": (lambda a: (a > -9).all(1), (x(),)),
    "var": (torch.var, (x(),)),
    "var.dim": (lambda a: a.var(1, unbiased=False), (x(),)),
    "std": (lambda a: a.std(0), (x(),)),
    "var_mean": (lambda a: torch.var_mean(a, 1), (x(),)),
    "std_mean": (lambda a: torch.std_mean(a, 1), (x(),)),
    "linalg_vector_norm": (lambda a: torch.linalg.vector_norm(a, 3, 1), (x(),)),
    "linalg_vector_norm.inf": (lambda a: torch.linalg.vector_norm(a, float("inf")), (x(),)),
    "linalg_norm": (torch.linalg.norm, (x(),)),
    "cumsum": (lambda a: a.cumsum(1), (x(),)),
    "topk": (lambda a: a.topk(2), (x(),)),
    "sort": (lambda a: a.sort(1, descending=True), (x(),)),
    "argsort": (lambda a: a.argsort(0), (x(),)),
    # products
    "mm": (torch.mm, (x(), x(4, 2))),
    "bmm": (torch.bmm, (x(2, 3, 4), x(2, 4, 5))),
    "matmul": (torch.matmul, (x(2, 3, 4), x(4, 5))),
    "mv": (torch.mv, (x(), x(4))),
    "dot": (torch.dot, (x(4), x(4))),
    "addmm": (lambda a, b, c: torch.addmm(a, b, c, beta=2, alpha=3), (x(2), x(), x(4, 2))),
    "baddbmm": (torch.baddbmm, (x(2, 3, 5), x(2, 3, 4), x(2, 4, 5))),
    "addmv": (torch.addmv, (x(3), x(), x(4))),
    "linear": (F.linear, (x(2, 3, 4), x(5, 4), x(5))),
    "linear.2d": (F.linear, (x(), x(5, 4), x(5))),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), (x(), x())),
    "outer": (torch.outer, (x(3), x(4))),
    "tensordot": (lambda a, b: torch.tensordot(a, b, ([1], [0])), (x(), x(4, 2))),
    "cdist": (torch.cdist, (x(), x(5, 4))),
    "searchsorted": (lambda a: torch.searchsorted(torch.tensor([0.0, 0.5, 1.0]), a), (x(),)),
    # creation
    "zeros": (lambda a: a + torch.zeros(4), (x(),)),
    "ones": (lambda a: a + torch.ones(4), (x(),)),
    "full": (lambda a: a + torch.full((4,), 2.5), (x(),)),
    "zeros_like": (torch.zeros_like, (x(),)),
    "ones_like": (torch.ones_like, (x(),)),
    "full_like": (lambda a: torch.full_like(a, 3), (x(),)),
    "new_zeros": (lambda a: a.new_zeros(2), (x(),)),
    "new_ones": (lambda a: a.new_ones(2), (x(),)),
    "new_full": (lambda a: a.new_full((2,), 7), (x(),)),
    "arange": (lambda a: a + torch.arange(4), (x(),)),
    "arange.start_step": (lambda a: torch.arange(1, 9, 2) + a.sum(), (x(),)),
    "linspace": (lambda a: a + torch.linspace(0, 1, 4), (x(),)),
    "eye": (lambda a: a @ torch.eye(4), (x(),)),
    "lift_fresh_copy": (lambda a: a + torch.tensor([1.0, 2.0, 3.0, 4.0]), (x(),)),
    # shapes
    "view": (lambda a: a.view(2, 6), (x(),)),
    "reshape": (lambda a: a.reshape(-1, 3), (x(),)),
    "flatten": (lambda a: a.flatten(1, 2), (x(2, 3, 4, 5),)),
    "flatten.end": (lambda a: a.flatten(1), (x(2, 3, 4),)),
    "unflatten": (lambda a: a.unflatten(1, (2, 2)), (x(),)),
    "view_as": (lambda a, b: a.view_as(b), (x(), x(2, 6))),
    "reshape_as": (lambda a, b: a.reshape_as(b), (x(), x(2, 6))),
    "permute": (lambda a: a.permute(2, 0, 1), (x(2, 3, 4),)),
    "transpose": (lambda a: a.transpose(0, -1), (x(2, 3, 4),)),
    "t": (lambda a: a.t(), (x(),)),
    "numpy_T": (lambda a: a.T, (x(),)),
    "mT": (lambda a: a.mT, (x(2, 3, 4),)),
    "movedim": (lambda a: a.movedim(0, -1), (x(2, 3, 4),)),
    "swapaxes": (lambda a: a.swapaxes(0, 1), (x(),)),
    "unsqueeze": (lambda a: a.unsqueeze(1), (x(),)),
    "squeeze": (lambda a: a.squeeze(), (x(1, 3, 1),)),
    "squeeze.dim": (lambda a: a.squeeze(0), (x(1, 3, 1),)),
    "expand": (lambda a: a.expand(2, -1, 4), (x(3, 1),)),
    "broadcast_to": (lambda a: a.broadcast_to(2, 3, 4), (x(),)),
    "expand_as": (lambda a, b: a.expand_as(b), (x(4), x())),
    "broadcast_tensors": (torch.broadcast_tensors, (x(4), x(3, 1))),
    "repeat": (lambda a: a.repeat(2, 1, 3), (x(),)),
    "tile": (lambda a: a.tile(2), (x(),)),
    "repeat_interleave": (lambda a: a.repeat_interleave(2, 1), (x(),)),
    "cat": (lambda a, b: torch.cat([a, b], 1), (x(), x(3, 2))),
    "stack": (lambda a, b: torch.stack([a, b], -1), (x(), x())),
    "split": (lambda a: a.split(3, 1), (x(),)),
    "split_with_sizes": (lambda a: a.split([1, 3], 1), (x(),)),
    "chunk": (lambda a: a.chunk(2), (x(),)),
    "tensor_split": (lambda a: torch.ops.aten.tensor_split.sections(a, 2, 1), (x(),)),
    "unbind": (lambda a: a.unbind(1), (x(),)),
    "select": (lambda a: a[1], (x(),)),
    "slice": (lambda a: a[1:, ::2], (x(),)),
    "narrow": (lambda a: a.narrow(1, 1, 2), (x(),)),
    "slice_scatter": (lambda a, b: torch.slice_scatter(a, b, 1, 1, 3), (x(), x(3, 2))),
    "select_scatter": (lambda a, b: torch.select_scatter(a, b, 0, 1), (x(), x(4))),
    "flip": (lambda a: a.flip(0, 1), (x(),)),
    "roll": (lambda a: a.roll((1, -1), (0, 1)), (x(),)),
    "roll.flat": (lambda a: a.roll(2), (x(),)),
    "pad": (lambda a: F.pad(a, (1, 2, 0, 1), value=3.0), (x(),)),
    "pad.reflect": (lambda a: F.pad(a, (1, 2), mode="reflect"), (x(2, 3, 4),)),
    "pad.replicate": (lambda a: F.pad(a, (1, 2), mode="replicate"), (x(2, 3, 4),)),
    "pad.circular": (lambda a: F.pad(a, (1, 2), mode="circular"), (x(2, 3, 4),)),
    "tril": (torch.tril, (x(),)),
    "triu": (lambda a: a.triu(1), (x(),)),
    "diagonal": (lambda a: a.diagonal(1, 1, 2), (x(2, 3, 4),)),
    "unfold": (lambda a: a.unfold(1, 2, 1), (x(),)),
    # indexing
    "index_select": (lambda a, b: a.index_select(1, b), (x(), i(0, 2))),
    "gather": (lambda a, b: a.gather(1, b), (x(), i([0, 1], [2, 3], [1, 1]))),
    "take": (torch.take, (x(), i(0, 5))),
    "embedding": (lambda a, w: F.embedding(a, w), (i([0, 2], [1, 1]), x())),
    "embedding_bag": (lambda a, o, w: (F.embedding_bag(a, w, o, mode="sum"),
                                       F.embedding_bag(a, w, o, include_last_offset=True)),
                      (i(0, 2, 1, 1, 2), i(0, 2, 4), x())),
    "one_hot": (lambda a: F.one_hot(a, 5), (i(0, 4),)),
    "scatter": (lambda a, b, s: a.scatter(1, b, s), (x(), i([0], [1], [2]), x(3, 1))),
    "scatter.value": (lambda a, b: a.scatter(1, b, 9.0), (x(), i([0], [1], [2]))),
    "scatter_add": (lambda a, b, s: a.scatter_add(1, b, s), (x(), i([0, 0], [1, 1], [2, 3]), x(3, 2))),
    "index_add": (lambda a, b, s: a.index_add(0, b, s), (x(), i(0, 0), x(2, 4))),
    "index_copy": (lambda a, b, s: a.index_copy(1, b, s), (x(), i(2, 0), x(3, 2))),
    "index_fill": (lambda a, b: a.index_fill(1, b, 7.0), (x(), i(2, 0))),
    "scatter_reduce": (lambda a, b, s: a.scatter_reduce(1, b, s, "amax"), (x(), i([0, 0], [1, 1], [2, 3]), x(3, 2))),
    "index": (lambda a, b: a[b], (x(), i(0, -1))),
    "index.two": (lambda a, b: a[b, b], (x(), i(0, 2))),
    "index.middle": (lambda a, b: a[:, b, b], (x(2, 3, 4), i(0, 2))),
    "index.apart": (lambda a, b: a[b, :, b], (x(2, 3, 4), i(0, 1))),
    "index_put": (lambda a, b: a.index_put((b,), torch.tensor(3.0)), (x(), i(0, 2))),
    "index_put.middle": (lambda a, b, v: setting(a, (slice(None), b), v), (x(), i(0, 2), x(3, 2))),
    "index_put.mask": (lambda a: setting(a, a > 0, 1.0), (x(),)),
    "meshgrid": (lambda a, b: torch.meshgrid(a, b, indexing="xy"), (x(3), x(4))),
    "round.decimals": (lambda a: torch.cat([(100 * a).round(decimals=d) for d in (2, 0, -1)]), (x(),)),
    "hann_window": (lambda a: a * torch.hann_window(4), (x(2, 4),)),
    "kaiser_window": (lambda a: a * torch.kaiser_window(4, True, 3.0), (x(2, 4),)),
    "triu_indices": (lambda a: a[tuple(torch.triu_indices(2, 3))], (x(),)),
    "isin": (torch.isin, (i(1, 2, 3), i(2, 5))),
    "pixel_shuffle": (lambda a: F.pixel_shuffle(a, 2), (x(1, 8, 2, 3),)),
    "pixel_unshuffle": (lambda a: F.pixel_unshuffle(a, 2), (x(1, 2, 4, 6),)),
    "to": (lambda a: a.to(torch.float64), (x(),)),
    "to.int": (lambda a: a.long(), (x(),)),
    "type_as": (lambda a, b: a.type_as(b), (x(), i(1))),
    # networks
    "conv1d": (F.conv1d, (x(2, 3, 8), x(4, 3, 3), x(4))),
    "conv2d": (lambda a, w: F.conv2d(a, w, stride=2, padding=1, groups=3), (x(2, 3, 6, 6), x(6, 1, 3, 3))),
    "conv2d.same": (lambda a, w: F.conv2d(a, w, padding="same", dilation=2), (x(1, 2, 6, 6), x(3, 2, 2, 3))),
    "conv3d": (F.conv3d, (x(1, 2, 4, 4, 4), x(3, 2, 2, 2, 2))),
    "conv2d.unbatched": (F.conv2d, (x(2, 6, 6), x(3, 2, 3, 3))),
    "conv_transpose1d": (F.conv_transpose1d, (x(1, 2, 5), x(2, 3, 3))),
    "conv_transpose2d": (lambda a, w: F.conv_transpose2d(a, w, stride=2, padding=1, output_padding=1), (x(1, 2, 4, 4), x(2, 3, 3, 3))),
    "conv_transpose3d": (F.conv_transpose3d, (x(1, 2, 3, 3, 3), x(2, 2, 2, 2, 2))),
    "convolution": (lambda a, w: aten.convolution.default(a, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1), (x(1, 2, 4, 4), x(3, 2, 3, 3))),
    "max_pool1d": (lambda a: F.max_pool1d(a, 2), (x(1, 2, 6),)),
    "max_pool2d": (lambda a: F.max_pool2d(a, 3, 2, 1, ceil_mode=True), (x(1, 2, 6, 6),)),
    "max_pool3d": (lambda a: F.max_pool3d(a, 2), (x(1, 2, 4, 4, 4),)),
    **{f"max_pool{d}d_with_indices": (lambda a, d=d: getattr(F, f"max_pool{d}d")(a, 3, 2, 1, return_indices=True), (x(2, 3, *[6] * d),)) for d in (1, 2, 3)},
    **{name: (lambda a, d=d: getattr(F, f"max_unpool{d}d")(*getattr(F, f"max_pool{d}d")(a, 2, return_indices=True), 2), (x(2, 3, *[6] * d),)) for name, d in (("max_unpool2d.vectors", 1), ("max_unpool2d", 2), ("max_unpool3d", 3))},
    "max_unpool2d.one image": (lambda a: F.max_unpool2d(*F.max_pool2d(a, 3, 2, return_indices=True), 3, 2, output_size=(8, 6)), (x(3, 8, 6),)),
    "avg_pool1d": (lambda a: F.avg_pool1d(a, 2), (x(1, 2, 6),)),
    "avg_pool2d": (lambda a: F.avg_pool2d(a, 3, 2, 1, count_include_pad=False), (x(1, 2, 6, 6),)),
    "avg_pool3d": (lambda a: F.avg_pool3d(a, 2), (x(1, 2, 4, 4, 4),)),
    **{f"adaptive_avg_pool{d}d": (lambda a, d=d: getattr(F, f"adaptive_avg_pool{d}d")(a, 2), (x(1, 2, *[4] * d),)) for d in (1, 2, 3)},
    **{f"adaptive_{k}_pool{d}d.uneven": (lambda a, k=k, d=d: getattr(F, f"adaptive_{k}_pool{d}d")(a, (3, 2, 5)[:d]), (x(2, 3, 8, 9, 5)[(...,) + (0,) * (3 - d)].clone(),)) for k in ("avg", "max") for d in (1, 2, 3)},
    **{f"adaptive_max_pool{d}d": (lambda a, d=d: getattr(F, f"adaptive_max_pool{d}d")(a, 1), (x(1, 2, *[4] * d),)) for d in (1, 2, 3)},
    "batch_norm": (lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b), (x(2, 3, 4), x(3), p(3), x(3), x(3))),
    "batch_norm.training": (lambda a: F.batch_norm(a, None, None, training=True), (x(4, 3, 5),)),
    "instance_norm": (lambda a, w: F.instance_norm(a, weight=w), (x(2, 3, 5), x(3))),
    "layer_norm": (lambda a, w, b: F.layer_norm(a, (4,), w, b), (x(), x(4), x(4))),
    "layer_norm.plain": (lambda a: F.layer_norm(a, (3, 4)), (x(2, 3, 4),)),
    "rms_norm": (lambda a, w: F.rms_norm(a, (4,), w), (x(), x(4))),
    "group_norm": (lambda a, w, b: F.group_norm(a, 2, w, b), (x(2, 4, 3, 3), x(4), x(4))),
    "scaled_dot_product_attention": (F.scaled_dot_product_attention, (x(2, 2, 3, 4), x(2, 2, 5, 4), x(2, 2, 5, 4))),
    "scaled_dot_product_attention.causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (x(2, 2, 3, 4),)),
    "scaled_dot_product_attention.mask": (lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m > -9), (x(2, 2, 3, 4), x(3, 3))),
    "scaled_dot_product_attention.bias": (lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m, scale=0.3), (x(2, 2, 3, 4), x(3, 3))),
    "scaled_dot_product_attention.gqa": (lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), (x(2, 4, 3, 4), x(2, 2, 3, 4))),
    "upsample_nearest1d": (lambda a: F.interpolate(a, scale_factor=2), (x(1, 2, 5),)),
    "upsample_nearest2d": (lambda a: F.interpolate(a, size=(7, 5)), (x(1, 2, 3, 4),)),
    "upsample_nearest3d": (lambda a: F.interpolate(a, scale_factor=2), (x(1, 1, 2, 3, 2),)),
    "upsample_linear1d": (lambda a: F.interpolate(a, scale_factor=2, mode="linear"), (x(1, 2, 5),)),
    "upsample_bilinear2d": (lambda a: F.interpolate(a, size=(7, 5), mode="bilinear", align_corners=True), (x(1, 2, 3, 4),)),
    "upsample_bicubic2d": (lambda a: F.interpolate(a, scale_factor=2, mode="bicubic"), (x(1, 2, 4, 4),)),
    "upsample_trilinear3d": (lambda a: F.interpolate(a, scale_factor=2, mode="trilinear"), (x(1, 1, 2, 3, 2),)),
    "_upsample_nearest_exact2d": (lambda a: F.interpolate(a, size=(7, 5), mode="nearest-exact"), (x(1, 2, 3, 4),)),
    "grid_sampler": (lambda a, g: F.grid_sample(a, g, align_corners=False), (x(1, 2, 4, 4), x(1, 3, 3, 2).clamp(-1, 1))),
})


def setting(a: Any, key: Any, value: Any) -> Any:
    """A copy of a tensor, written."""
    a = a.clone()
    a[key] = value
    return a
