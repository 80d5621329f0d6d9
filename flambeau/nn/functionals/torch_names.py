"""Functions that are in `torch` itself besides `nn.functional`; losses take their reduction there as a number."""

from __future__ import annotations

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.argument_errors.guards import guard
from ..._tensor.dispatch.apply import apply
from ..._tensor.dispatch.write_checks import check_writable, is_tracked
from ..._tensor.linalg.norms import check_norm_dtype
from ..._tensor.overriding.other_objects import reports_other_objects
from ...engine.grad_mode import no_grad
from ...ops.declare import REGISTRY
from . import embedding, loss, margin_loss, normalization, resample
from .reduction import reduce_loss

__all__ = ["binary_cross_entropy_with_logits", "channel_shuffle", "cosine_embedding_loss", "embedding_renorm_",
           "hinge_embedding_loss", "instance_norm", "kl_div", "margin_ranking_loss", "native_channel_shuffle",
           "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "triplet_margin_loss"]



def _reduction(number: int) -> str:
    """The name of a reduction that is given as a number; all but two numbers stand for none.

    Raises:
        TypeError: it is no number.
    """
    if number.__class__ is not int:
        raise TypeError("reduction must be int")  # a guard says more
    return "mean" if number == 1 else "sum" if number == 2 else "none"


pixel_shuffle, pixel_unshuffle = resample.pixel_shuffle, resample.pixel_unshuffle
channel_shuffle = native_channel_shuffle = resample.channel_shuffle


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div`, with the reduction as a number: 0 "none", 1 "mean", 2 "sum".

    >>> import flambeau as torch
    >>> torch.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1., 0.]), 2)
    tensor(0.6931)
    """
    return reduce_loss(loss.kl_div(input, target, reduction="none", log_target=log_target), _reduction(reduction))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     pos_weight: Tensor | None = None, reduction: int = 0) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits`, with the reduction as a number: 0 "none", 1 "mean", 2 "sum".

    >>> import flambeau as torch
    >>> torch.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2), reduction=2)
    tensor(1.3863)
    """
    if input.size() != target.size() and input.is_floating_point():  # PyTorch computes in the memory of 1 - target
        (1 - target.detach()).mul_(input.detach())
    return loss.bce_with_logits(input, target, weight, pos_weight, _reduction(reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """`nn.functional.poisson_nll_loss`, with the reduction as a number: 0 "none", 1 "mean", 2 "sum".

    >>> import flambeau as torch
    >>> torch.poisson_nll_loss(torch.zeros(2), torch.ones(2), True, False, 1e-8, 1)
    tensor(1.)
    """
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """`nn.functional.hinge_embedding_loss`, with the reduction as a number: 0 "none", 1 "mean", 2 "sum".

    >>> import flambeau as torch
    >>> torch.hinge_embedding_loss(torch.tensor([0.5, 0.25]), torch.tensor([1., -1.]))
    tensor([0.5000, 0.7500])
    """
    return margin_loss.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                        reduction: int = 0) -> Tensor:
    """`nn.functional.margin_ranking_loss` of any ranks, the reduction as a number: 0 "none", 1 "mean", 2 "sum".

    >>> import flambeau as torch
    >>> torch.margin_ranking_loss(torch.zeros(2), torch.ones(2), torch.ones(2))
    tensor([1., 1.])
    """
    if not isinstance(margin, (int, float)):
        raise TypeError("margin_ranking_loss(): argument 'margin' must be float")  # a guard says more
    return reduce_loss(apply(REGISTRY["_add_scalar"], [-target * (input1 - input2)], {
        "other": float(margin)}).clamp_min(0), _reduction(reduction))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          reduction: int = 0) -> Tensor:
    """`nn.functional.cosine_embedding_loss`, with the reduction as a number: 0 "none", 1 "mean", 2 "sum".

    >>> import flambeau as torch
    >>> torch.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([-1])).round()
    tensor([1.])
    """
    return margin_loss.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, reduction: int = 0) -> Tensor:
    """`nn.functional.triplet_margin_loss`, with the reduction as a number: 0 "none", 1 "mean", 2 "sum".

    >>> import flambeau as torch
    >>> torch.triplet_margin_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2))
    tensor([1.])
    """
    return margin_loss.triplet_loss(anchor, positive, negative, margin, p, eps, swap, _reduction(reduction))


def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                  running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
                  cudnn_enabled: bool) -> Tensor:
    """`nn.functional.instance_norm`, with its arguments in another order.

    >>> import flambeau as torch
    >>> torch.instance_norm(torch.tensor([[[0., 2.]]]), None, None, None, None, True, 0.1, 0., False)
    tensor([[[-1.,  1.]]])
    """
    return normalization.normalize_instances(input, running_mean, running_var, weight, bias, use_input_stats, momentum,
                                             eps)


def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale rows to a norm of at most `max_norm`, in place.

    Args:
        input: (n, d).
        indices: the rows.
        norm_type: the order of the norm.

    >>> import flambeau as torch
    >>> torch.embedding_renorm_(torch.tensor([[3., 4.], [3., 4.]]), torch.tensor([0]), 1., 2.)
    tensor([[0.6000, 0.8000],
            [3.0000, 4.0000]])
    """
    if input.dim() != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {input.dim()}-dimensional tensor for argument #1 "
                           "'self' (while checking arguments for embedding_renorm_)")
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError("Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, "
                           f"Int; but got torch.{indices.dtype.scalar_name}Tensor instead (while checking arguments "
                           "for embedding_renorm_)")
    if indices.numel():
        check_norm_dtype(input)
        if int(indices.max()) >= input.size(0) or int(indices.min()) < -input.size(0):
            wrong = next(i for i in indices.reshape(-1).sort()[0].tolist() if not -input.size(0) <= i < input.size(0))
            raise IndexError(f"select(): index {wrong} out of range for tensor of size {list(input.size())} at "
                             "dimension 0")
    check_writable(input, is_tracked((input,)))
    with no_grad():
        embedding._renormalize_rows(input, indices, max_norm, norm_type)
    return input


for _function in (binary_cross_entropy_with_logits, kl_div, poisson_nll_loss, hinge_embedding_loss,
                  margin_ranking_loss, cosine_embedding_loss, triplet_margin_loss, instance_norm, embedding_renorm_):
    globals()[_function.__name__] = reports_other_objects(_function, _function.__name__)
    guard(globals()[_function.__name__], "torch", _function.__name__)


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`softmax`; the conversion of float16 is for CUDA devices.

    >>> import flambeau as torch
    >>> torch._softmax(torch.zeros(2), 0, False)
    tensor([0.5000, 0.5000])
    """
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
    return fn.softmax(input, dim)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`log_softmax`; the conversion of float16 is for CUDA devices.

    >>> import flambeau as torch
    >>> torch._log_softmax(torch.zeros(1), 0, False)
    tensor([0.])
    """
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
    return fn.log_softmax(input, dim)


def _grid_sampler_2d_cpu_fallback(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                                  align_corners: bool) -> Tensor:
    """`grid_sampler_2d`.

    >>> import flambeau as torch
    >>> torch._grid_sampler_2d_cpu_fallback(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]])
    """
    return fn.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)
