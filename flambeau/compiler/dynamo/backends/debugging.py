"""`torch._dynamo.backends.debugging`: backends that run graphs without compiling them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ...functorch.compilers import nop as boxed_nop
from ...functorch.partitioners import default_partition
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


__all__ = ["aot_eager", "boxed_nop", "eager", "eager_noexcept"]
