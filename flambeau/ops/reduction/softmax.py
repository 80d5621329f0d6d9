"""Softmax and log-softmax, and their gradients as operators."""

from __future__ import annotations

from ..declare import not_implemented_error, op


def _unsupported_in_softmax(name):
    """Return PyTorch's errors for unsupported dtypes; its kernel for the last dimension has another name."""
    last, other = not_implemented_error(f"{name}_lastdim_kernel_impl"), not_implemented_error(f"{name}_kernel_impl")

    def error(input, *, dim, dtype=None):
        rank = input.ndim or 1
        if 0 in input.shape or not -rank <= dim < rank:
            return None
        return last if dim in (-1, max(input.ndim - 1, 0)) else other

    return dict.fromkeys(("bool", "integer", "complex"), error)


@op(node="SoftmaxBackward0", exact_out=True, unsupported_dtypes=_unsupported_in_softmax("softmax"),
    expose=("torch", "method", "special"))
def softmax(xp, input, *, dim, dtype=None):
    """exp(input) / Σ exp(input) along `dim`, without overflow.

    Args:
        dtype: converts the input first.

    >>> import flambeau as torch
    >>> torch.softmax(torch.tensor([0., 0., 1000.]), dim=0)
    tensor([0., 0., 1.])
    """
    return xp.softmax(input, dim, dtype)


def _softmax_backward(xp, g, out, dim):
    weighted = g * out
    return weighted - out * xp.sum(weighted, dim, True)


softmax.vjp(input=lambda xp, g, out, dim: xp._softmax_backward(g, out, dim=dim))
softmax.jvp(lambda xp, t_input, out, dim: _softmax_backward(xp, t_input, out, dim))  # self-adjoint


@op(node="LogSoftmaxBackward0", exact_out=True, unsupported_dtypes=_unsupported_in_softmax("log_softmax"),
    expose=("torch", "method", "special"))
def log_softmax(xp, input, *, dim, dtype=None):
    """log(softmax(input)) along `dim`, computed without overflow.

    >>> import flambeau as torch
    >>> torch.log_softmax(torch.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return xp.log_softmax(input, dim, dtype)


log_softmax.vjp(input=lambda xp, g, out, dim: xp._log_softmax_backward(g, out, dim=dim))
log_softmax.jvp(lambda xp, t_input, out, dim: t_input - xp.sum(xp.exp(out) * t_input, dim, True))


@op(name="_softmax_backward", node="SoftmaxBackwardDataBackward0", expose=())
def softmax_backward(xp, grad_output, output, *, dim):
    """The vjp of softmax, out · (g - Σ g · out)."""
    return xp._softmax_backward(grad_output, output, dim)


softmax_backward.vjp(
    grad_output=lambda xp, g, output, dim: xp._softmax_backward(g, output, dim=dim),
    output=lambda xp, g, grad_output, output, dim: g * grad_output - g * xp.sum(grad_output * output, dim, True)
    - grad_output * xp.sum(g * output, dim, True))


@op(name="_log_softmax_backward", node="LogSoftmaxBackwardDataBackward0", expose=())
def log_softmax_backward(xp, grad_output, output, *, dim):
    """The vjp of log_softmax, g - exp(out) · Σ g."""
    return xp._log_softmax_backward(grad_output, output, dim)


log_softmax_backward.vjp(
    grad_output=lambda xp, g, output, dim: g - xp.sum(g * xp.exp(output), dim, True),
    output=lambda xp, g, grad_output, output, dim: -(g * xp.exp(output) * xp.sum(grad_output, dim, True)))
