"""`torch._dynamo.backends.debugging`: backends that run graphs without compiling them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch

from ...functorch.aot_autograd import make_boxed_compiler
from ...functorch.compilers import default_decompositions
from ...functorch.compilers import nop as boxed_nop
from ...functorch.partitioners import default_partition, min_cut_rematerialization_partition
from .common import aot_autograd

log = logging.getLogger(__name__)


def eager(gm: Any, fake_tensor_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Run the graph's functions one by one.

    >>> import flambeau as torch
    >>> from flambeau.compiler.dynamo.backends.debugging import eager
    >>> torch.compile(lambda x: x + 1, backend=eager)(torch.ones(2))
    tensor([2., 2.])
    """
    if kwargs:
        log.warning("eager backend ignoring extra kwargs %s", kwargs)
    forward: Callable[..., Any] = gm.forward
    return forward


def eager_noexcept(gm: Any, fake_tensor_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Run the graph's functions one by one; an error in them is one of the compiler.

    Raises:
        TorchDynamoException: by the function that it returns, where the graph raises.
    """
    if kwargs:
        log.warning("eager_noexcept backend ignoring extra kwargs %s", kwargs)
    from ... import errors

    def inner(*args: Any) -> Any:
        try:
            return gm(*args)
        except Exception as error:
            raise errors.TorchDynamoException("Unexpected exception when running generated GraphModule") from error

    return inner


def aot_eager(gm: Any, fake_tensor_inputs: Sequence[Any], fw_compiler: Callable[..., Any] | None = None,
              bw_compiler: Callable[..., Any] | None = None, **kwargs: Any) -> Callable[..., Any]:
    """Run the operators of the forward and of the backward graph one by one.

    >>> import flambeau as torch
    >>> from flambeau.compiler.dynamo.backends.debugging import aot_eager
    >>> torch.compile(lambda x: x + 1, backend=aot_eager)(torch.ones(2))
    tensor([2., 2.])
    """
    forward = fw_compiler or boxed_nop
    found: Callable[..., Any] = aot_autograd(fw_compiler=forward, bw_compiler=bw_compiler or forward,
                                             partition_fn=default_partition)(gm, fake_tensor_inputs, **kwargs)
    return found


def aot_eager_default_partitioner(gm: Any, fake_tensor_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """`aot_eager`, whose backward graph computes nothing again."""
    return aot_eager(gm, fake_tensor_inputs, **kwargs)


def aot_eager_decomp_partition(gm: Any, fake_tensor_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """`aot_eager` with the decompositions of AOTAutograd, and a backward graph that computes again what is cheap.

    >>> import flambeau as torch
    >>> x = torch.zeros(2, requires_grad=True)
    >>> torch.compile(lambda x: x.exp().sin(), backend="aot_eager_decomp_partition")(x).sum().backward()
    >>> x.grad
    tensor([0.5403, 0.5403])
    """
    if kwargs:
        log.warning("aot_eager_decomp_partition backend ignoring extra kwargs %s", kwargs)
    found: Callable[..., Any] = aot_autograd(
        fw_compiler=boxed_nop, bw_compiler=boxed_nop, decompositions=default_decompositions,
        partition_fn=min_cut_rematerialization_partition)(gm, fake_tensor_inputs)
    return found


def pre_dispatch_eager(gm: Any, fake_tensor_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Run the graph of the operators that the graph's functions call.

    >>> import flambeau as torch
    >>> torch.compile(lambda x: x + 1, backend="pre_dispatch_eager")(torch.ones(2))
    tensor([2., 2.])
    """
    from ....fx.experimental.proxy_tensor import make_fx

    if kwargs:
        log.warning("pre_dispatch_eager backend ignoring extra kwargs %s", kwargs)
    forward: Callable[..., Any] = make_fx(gm, pre_dispatch=True)(*fake_tensor_inputs).forward
    return forward


def ts(gm: Any, fake_tensor_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Run the graph as a script of TorchScript.

    >>> import flambeau as torch
    >>> torch.compile(lambda x: x + 1, backend="ts")(torch.ones(2))
    tensor([2., 2.])
    """
    script: Callable[..., Any] = torch.jit.script(gm)
    return script


def aot_ts(gm: Any, fake_tensor_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Run the forward and the backward graph of operators as scripts of TorchScript.

    >>> import flambeau as torch
    >>> x = torch.zeros(2, requires_grad=True)
    >>> torch.compile(lambda x: x.exp().sin(), backend="aot_ts")(x).sum().backward()
    >>> x.grad
    tensor([0.5403, 0.5403])
    """
    found: Callable[..., Any] = aot_autograd(fw_compiler=make_boxed_compiler(ts))(gm, fake_tensor_inputs, **kwargs)
    return found


__all__ = ["aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner", "aot_ts", "boxed_nop", "eager",
           "eager_noexcept", "pre_dispatch_eager", "ts"]
