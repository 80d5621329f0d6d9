"""`torch.testing._internal.two_tensor`: a tensor of two tensors, on each of which operators run."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ...utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from ...utils._pytree import tree_flatten, tree_map, tree_unflatten


class TwoTensor(torch.Tensor):
    """Two tensors of the same metadata; operators run on the first ones, then on the second ones.

    Args:
        a, b: the tensors.
        outer_size, outer_stride: size and strides of this tensor; by default those of `a`.
        requires_grad: whether it requires a gradient; by default as `a`.

    Raises:
        AssertionError: the tensors differ in device, layout, dtype, size or strides.

    >>> import flambeau as torch
    >>> from flambeau.testing._internal.two_tensor import TwoTensor
    >>> TwoTensor(torch.zeros(2), torch.ones(2)) + 1
    TwoTensor(tensor([1., 1.]), tensor([2., 2.]))
    """

    a: torch.Tensor
    b: torch.Tensor

    @staticmethod
    def __new__(cls, a: torch.Tensor, b: torch.Tensor, outer_size: Any = None, outer_stride: Any = None, *,
                requires_grad: bool | None = None) -> Any:
        """A wrapper of the metadata of `a`."""
        for name in ("device", "layout", "requires_grad", "dtype", "shape"):
            if getattr(a, name) != getattr(b, name):
                raise AssertionError(f"the two tensors differ in {name}: {getattr(a, name)} and {getattr(b, name)}")
        if a.stride() != b.stride():
            raise AssertionError(f"the two tensors differ in strides: {a.stride()} and {b.stride()}")
        base: Any = torch.Tensor
        made: Any = base._make_wrapper_subclass(
            cls, a.size() if outer_size is None else outer_size,
            strides=a.stride() if outer_stride is None else outer_stride, storage_offset=a.storage_offset(),
            device=a.device, layout=a.layout, dtype=a.dtype,
            requires_grad=a.requires_grad if requires_grad is None else requires_grad)
        return made

    def __init__(self, a: torch.Tensor, b: torch.Tensor, outer_size: Any = None, outer_stride: Any = None, *,
                 requires_grad: bool | None = None) -> None:
        self.a, self.b = a, b

    def __repr__(self) -> str:  # type: ignore[override]
        return f"TwoTensor({self.a!r}, {self.b!r})"

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Any], meta: None, outer_size: Any,
                             outer_stride: Any) -> TwoTensor:
        a, b = inner_tensors["a"], inner_tensors["b"]
        own: type = TwoTensor
        made: TwoTensor = own(a, b, outer_size, outer_stride) if type(a) is torch.Tensor else own(a, b)
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}

        def part(name: str) -> Any:
            def of(x: Any) -> Any:
                return getattr(x, name) if isinstance(x, TwoTensor) else x

            return func(*tree_map(of, args), **tree_map(of, kwargs))

        first, spec = tree_flatten(part("a"))
        second, _ = tree_flatten(part("b"))
        made = [cls(x, y) if isinstance(x, torch.Tensor) else x for x, y in zip(first, second, strict=True)]
        return return_and_correct_aliasing(func, args, kwargs, tree_unflatten(made, spec))

    def get_elem_a(self) -> torch.Tensor:
        """The first tensor."""
        return self.a


class TwoTensorMode(TorchDispatchMode):
    """A mode in which tensors that are made become pairs of equal ones."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_factory = not any(isinstance(x, torch.Tensor) for x in tree_flatten((args, kwargs))[0])
        return TwoTensor(result, result.clone()) if is_factory and isinstance(result, torch.Tensor) else result


__all__ = ["TwoTensor", "TwoTensorMode"]
