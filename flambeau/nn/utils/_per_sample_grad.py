"""Gradients of each sample: parameters are expanded along the batch, and the module is mapped over it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..._tensor import Tensor
from ...autograd import Function
from ...func import functional_call, vmap
from ...trees import tree_flatten, tree_unflatten
from ..modules.batchnorm import _BatchNorm
from ..modules.module import Module
from ..modules.rnn import RNNBase

__all__ = ["call_for_per_sample_grads"]


class _Expanded(Function):  # type: ignore[misc]
    """A parameter expanded along the batch, whose gradient is added to `grad_sample` and goes no further."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, batch_size: int, scale: int) -> Tensor:
        ctx.parameter, ctx.scale = parameter, scale
        return parameter.unsqueeze(0).expand(batch_size, *parameter.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        found = gradient * ctx.scale if ctx.scale != 1 else gradient
        before = getattr(ctx.parameter, "grad_sample", None)
        ctx.parameter.grad_sample = found if before is None else before + found
        return None, None, None


def _batch_size(args: Any, kwargs: Any, batch_first: bool) -> int:
    """The length of the batch of all tensors.

    Raises:
        RuntimeError: there is no tensor, or the lengths differ.
    """
    size: int | None = None
    for leaf in tree_flatten((args, kwargs))[0]:
        if not isinstance(leaf, Tensor):
            continue
        found = leaf.shape[0 if batch_first else 1]
        if size is not None and size != found:
            raise RuntimeError(f"When computing batch size, found at least one input with batch size {size} and one "
                               f"with batch size {found}. Please specify it explicitly using the batch size kwarg in "
                               "call_for_per_sample_grads")
        size = found
    if size is None:
        raise RuntimeError("Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so "
                           "ExpandedWeights cannot compute the batch size from the inputs. Please specify it "
                           "explicitly")
    return size


def call_for_per_sample_grads(module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum",
                              batch_first: bool = True) -> Callable[..., Any]:
    """A function like `module` whose backward pass puts the gradient of each sample into `parameter.grad_sample`.

    Args:
        module: a module that treats the samples of a batch independently.
        batch_size: the number of samples; None: read from the arguments.
        loss_reduction: "sum" or "mean": how the loss combines samples, whose gradients are scaled accordingly.
        batch_first: whether the batch is dimension 0; otherwise it is dimension 1.

    Raises:
        RuntimeError: an argument is invalid, samples depend on each other, or gradients are there already.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> layer = torch.nn.Linear(3, 1)
    >>> call_for_per_sample_grads(layer)(torch.ones(4, 3)).sum().backward()
    >>> layer.weight.grad_sample.shape
    flambeau.Size([4, 1, 3])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError("Current Expanded Weights accumulates the gradients, which will be incorrect for "
                               "multiple calls without clearing gradients. Please clear out the grad_sample parameter "
                               f"of {parameter} or post an issue to pytorch/pytorch to prioritize correct behavior")
    for each in module.modules():
        if isinstance(each, _BatchNorm):
            raise RuntimeError("Expanded Weights encountered but cannot handle function batch_norm")

    @wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size = _batch_size(args, kwargs, batch_first) if batch_size is None else batch_size
        axis = 0 if batch_first else 1
        leaves, structure = tree_flatten((args, kwargs))
        tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        # hidden states have the batch in dimension 1 whatever the order of the sequences is
        hidden = 1 if isinstance(module, RNNBase) else axis
        axes = [axis, *[hidden] * (len(tensors) - 1)]
        for at, dim in zip(tensors, axes, strict=True):
            if leaves[at].shape[dim] != size:
                raise RuntimeError("Expected ExpandedWeights to have batch size matching input but got input batch "
                                   f"size of {leaves[at].shape[dim]} with ExpandedWeight of batch size {size}")
        scale = size if loss_reduction == "mean" else 1
        expanded = {name: _Expanded.apply(parameter, size, scale) for name, parameter in module.named_parameters()
                    if parameter.requires_grad}

        def of_sample(parameters: dict[str, Tensor], *samples: Tensor) -> Any:
            filled = list(leaves)
            for at, sample, dim in zip(tensors, samples, axes, strict=True):
                filled[at] = sample.unsqueeze(dim)
            new_args, new_kwargs = tree_unflatten(filled, structure)
            out = functional_call(module, parameters, new_args, new_kwargs)
            parts, out_structure = tree_flatten(out)
            dims = [axis, *[hidden] * (len(parts) - 1)]
            return tree_unflatten([part.squeeze(dim) for part, dim in zip(parts, dims, strict=True)], out_structure)

        mapped = vmap(of_sample, in_dims=(0, *axes), randomness="different",
                      out_dims=(axis, hidden) if isinstance(module, RNNBase) else axis)
        return mapped(expanded, *[leaves[at] for at in tensors])

    return wrapper
