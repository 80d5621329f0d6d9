"""`AsyncCollectiveTensor`, the result of a collective that may still be running: its first use waits."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor.custom_functions.function import Function
from ..c10d.work import Work
from ..engine.grad_mode import grad_mode
from ..trees import tree_map


class AsyncCollectiveTensor(Tensor):
    """A tensor that a collective fills: operators that read it wait first, those that make views of it do not.

    Args:
        elem: the tensor that is filled.

    Attributes:
        elem: that tensor.
        completed: whether somebody has waited.

    >>> import flambeau as torch
    >>> from flambeau.distributed import _functional_collectives as collectives
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = collectives.all_reduce(torch.ones(2), "sum", dist.group.WORLD)
    >>> x.completed
    False
    >>> x + 1, x.completed
    (tensor([2., 2.]), True)
    >>> dist.destroy_process_group()
    """

    elem: Tensor
    completed: bool

    @staticmethod
    def __new__(cls, elem: Tensor) -> AsyncCollectiveTensor:
        out: AsyncCollectiveTensor = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            layout=elem.layout, device=elem.device, requires_grad=elem.requires_grad)
        out.elem, out.completed = elem, False
        return out

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the tensors that it is made of, and the rest."""
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Any], meta: Any, outer_size: Any,
                             outer_stride: Any) -> AsyncCollectiveTensor:
        """The tensor of its parts."""
        if meta is not None:
            raise AssertionError("meta must be None for AsyncCollectiveTensor unflatten")
        return AsyncCollectiveTensor(inner_tensors["elem"])

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"AsyncCollectiveTensor({self.wait()})"

    def trigger_wait(self) -> Tensor:
        """Return the tensor, without its history, once the collective has ended."""
        if not self.completed:
            _end(self.elem)
            self.completed = True
        return self.elem

    def wait(self) -> Tensor:
        """Return the tensor once the collective has ended; differentiable."""
        return wait_tensor(self)

    def _get_acs_underlying_tensor(self) -> Tensor:
        return self.elem

    def tolist(self) -> Any:
        """Return the elements once the collective has ended."""
        return self.trigger_wait().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Return the array once the collective has ended."""
        return self.wait().numpy(force=force)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        makes_view = _makes_view(func)
        works: list[Work | None] = []

        def inner(value: Any) -> Any:
            if not isinstance(value, AsyncCollectiveTensor):
                return value
            if not makes_view:
                return value.trigger_wait()
            works.append(getattr(value.elem, "_unfinished", None))
            return value.elem

        out = func(*tree_map(inner, args), **tree_map(inner, kwargs or {}))
        if not makes_view:
            return out
        return tree_map(lambda each: pending(each, works[0]) if isinstance(each, Tensor) else each, out)


AsyncCollectiveTensor.__module__ = f"{__package__}._functional_collectives"


def _makes_view(func: Any) -> bool:
    """Whether a result of an operator shares memory with its first argument, which it does not write."""
    arguments = func._schema.arguments if hasattr(func, "_schema") else ()
    alias = arguments[0].alias_info if arguments else None
    return alias is not None and not alias.is_write


def pending(tensor: Tensor, work: Work | None) -> AsyncCollectiveTensor:
    """Return a tensor as the result of a collective that `work` stands for."""
    if work is not None:
        tensor._unfinished = work  # type: ignore[attr-defined]
    return AsyncCollectiveTensor(tensor)


def _end(tensor: Tensor) -> None:
    """Wait for the collective that fills a tensor."""
    work = tensor.__dict__.pop("_unfinished", None)
    if work is not None:
        work.wait()


class _Wait(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return tensor.trigger_wait().view_as(tensor.elem)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0]


def wait_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor once the collective that fills it has ended.

    Args:
        tensor: the result of a function of this module.
    """
    if not isinstance(tensor, AsyncCollectiveTensor):
        _end(tensor)
        return tensor
    if tensor.requires_grad and grad_mode.get():
        return _Wait.apply(tensor)
    return tensor.trigger_wait()


__all__ = ["AsyncCollectiveTensor", "pending", "wait_tensor"]
