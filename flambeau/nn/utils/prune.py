"""Pruning: masks on parameters, applied by forward pre-hooks."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from operator import index
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...devices import contiguous_format
from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """Base of pruning methods: a hook that sets `name` to mask · original before each forward.

    Subclasses define `compute_mask` and `PRUNING_TYPE`: "unstructured", "structured" or "global".

    >>> import flambeau as torch
    >>> from flambeau.nn.utils import prune
    >>> class EveryOther(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    >>> layer = torch.nn.Linear(2, 1)
    >>> _ = EveryOther.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[0., 1.]])
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor, on top of `default_mask`."""

    def apply_mask(self, module: Any) -> Tensor:
        """The pruned tensor: mask · original.

        Raises:
            AssertionError: the method is not applied to a tensor.
        """
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None,
              **kwargs: Any) -> BasePruningMethod:
        """Prune a parameter, on top of earlier pruning.

        Args:
            module: the module.
            name: name of its parameter.
            args: arguments of the method's constructor.
            importance_scores: a tensor like the parameter by which units are chosen; the parameter by default.
            kwargs: keyword arguments of the method's constructor.
        """
        method = cls._combined_with_earlier(module, name, cls(*args, **kwargs))
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}, "
                                 f"got {importance_scores.shape} vs {original.shape}")
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = fn.ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone()
        try:
            module.register_buffer(name + "_mask", method.compute_mask(importance_scores, default_mask=default_mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    @staticmethod
    def _combined_with_earlier(module: Any, name: str, method: BasePruningMethod) -> BasePruningMethod:
        """The method, in a container with the earlier one of the same tensor, whose hook is removed."""
        method._tensor_name = name
        earlier = [(key, hook) for key, hook in module._forward_pre_hooks.items()
                   if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(earlier) > 1:
            raise AssertionError("Avoid adding multiple pruning hooks to the same tensor "
                                 f"{name} of module {module}. Use a PruningContainer.")
        for key, hook in earlier:
            del module._forward_pre_hooks[key]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            return container
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """The pruned tensor, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t, "
                                 f"got {importance_scores.shape} vs {t.shape}")
        if default_mask is None:
            default_mask = fn.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor a parameter again."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters[self._tensor_name + "_orig"]
        original.data = weight.data
        del module._parameters[self._tensor_name + "_orig"]
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, original)


class PruningContainer(BasePruningMethod):
    """A sequence of pruning methods on one tensor; a new method acts on what the earlier ones left.

    >>> from flambeau.nn.utils import prune
    >>> len(prune.PruningContainer())
    0
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Append a method.

        Raises:
            TypeError: it is not a pruning method.
            ValueError: it acts on another tensor.
        """
        if method is not None:
            if not isinstance(method, BasePruningMethod):
                raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
            if self._tensor_name != method._tensor_name:
                raise ValueError("Can only add pruning methods acting on the parameter named "
                                 f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask`, with the last method's mask in what it leaves."""
        method = self._pruning_methods[-1]
        rank = t.dim()
        where: Any
        if method.PRUNING_TYPE == "unstructured":
            where = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute '
                                     "`dim` defined.")
            dim = method.dim + rank if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {rank}")
            kept = default_mask.sum(dim=[d for d in range(rank) if d != dim]) != 0
            where = tuple(kept if d == dim else slice(None) for d in range(rank))
        elif method.PRUNING_TYPE == "global":
            where = (slice(None),) * rank
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(dtype=t.dtype)
        mask[where] = method.compute_mask(t[where], default_mask=default_mask[where]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing; the mask is one.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.Identity().prune(torch.ones(2))
    tensor([1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The default mask."""
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Add a mask of ones to a parameter."""
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """Base of methods that prune `amount` units: a number, or a fraction of all."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many of `size` units are pruned."""
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        return count


class RandomUnstructured(_ByAmount):
    """Prunes random elements.

    Args:
        amount: how many (int), or which fraction (float).

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.RandomUnstructured(2).prune(torch.ones(4)).sum()
    tensor(2.)
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The default mask with random zeros."""
        count = self._count(t.nelement())
        mask = default_mask.clone(memory_format=contiguous_format)
        if count != 0:
            mask.view(-1)[fn.topk(fn.rand_like(t).view(-1), k=count).indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> BasePruningMethod:  # type: ignore[override]
        """Prune random elements of a parameter."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """Prunes the elements of least magnitude.

    Args:
        amount: how many (int), or which fraction (float).

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.L1Unstructured(2).prune(torch.tensor([1., -3., 2., 4.]))
    tensor([ 0., -3.,  0.,  4.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The default mask with zeros at the least magnitudes."""
        count = self._count(t.nelement())
        mask = default_mask.clone(memory_format=contiguous_format)
        if count != 0:
            mask.view(-1)[fn.topk(fn.abs(t).view(-1), k=count, largest=False).indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any,  # type: ignore[override]
              importance_scores: Tensor | None = None) -> BasePruningMethod:
        """Prune the elements of least magnitude, or least importance, of a parameter."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(_ByAmount):
    """Prunes random slices of a dimension.

    Args:
        amount: how many (int), or which fraction (float).
        dim: the dimension.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.RandomStructured(1, dim=0).prune(torch.ones(2, 3)).sum()
    tensor(3.)
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The default mask with random slices zero."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if count == 0:
            return default_mask
        noise = fn.rand(size)
        return _slices_kept(t, self.dim, noise > fn.kthvalue(noise, k=count).values, default_mask)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> BasePruningMethod:  # type: ignore[override]
        """Prune random slices of a parameter."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_ByAmount):
    """Prunes the slices of a dimension that have the least norm.

    Args:
        amount: how many (int), or which fraction (float).
        n: order of the norm, see `torch.norm`.
        dim: the dimension.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.LnStructured(1, 2, dim=0).prune(torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[0., 0.],
            [3., 4.]])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The default mask with the slices of least norm zero."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if count == 0:
            return default_mask
        kept = fn.topk(_compute_norm(t, self.n, self.dim), k=size - count, largest=True).indices
        return _slices_kept(t, self.dim, kept, default_mask)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, n: Any, dim: int,  # type: ignore[override]
              importance_scores: Tensor | None = None) -> BasePruningMethod:
        """Prune the slices of a parameter that have the least norm."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask: zeros and ones, of the shape of the tensor.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.CustomFromMask(torch.tensor([0, 1])).prune(torch.ones(2))
    tensor([0., 1.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of the default mask and the given one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match "
                                 f"self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        """Prune a parameter by a mask."""
        return super().apply(module, name, mask=mask)


# ----- functions ------------------------------------------------------------------------


def identity(module: Any, name: str) -> Any:
    """Add a mask of ones to a parameter.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.identity(torch.nn.Linear(2, 1), "bias").bias_mask
    tensor([1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune random elements of a parameter.

    Args:
        module: the module, which is changed and returned.
        name: name of its parameter.
        amount: how many (int), or which fraction (float).

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.random_unstructured(torch.nn.Linear(4, 1), "weight", 3).weight_mask.sum()
    tensor(1.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Tensor | None = None) -> Any:
    """Prune the elements of least magnitude of a parameter.

    Args:
        module: the module, which is changed and returned.
        name: name of its parameter.
        amount: how many (int), or which fraction (float).
        importance_scores: a tensor like the parameter whose magnitudes count instead.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(4, 1), "weight", 0.5).weight_mask.sum()
    tensor(2.)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune random slices of a dimension of a parameter.

    Args:
        module: the module, which is changed and returned.
        name: name of its parameter.
        amount: how many (int), or which fraction (float).
        dim: the dimension.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.random_structured(torch.nn.Linear(4, 2), "weight", 1, dim=0).weight_mask.sum()
    tensor(4.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int,
                  importance_scores: Tensor | None = None) -> Any:
    """Prune the slices of a dimension that have the least norm.

    Args:
        module: the module, which is changed and returned.
        name: name of its parameter.
        amount: how many (int), or which fraction (float).
        n: order of the norm.
        dim: the dimension.
        importance_scores: a tensor like the parameter whose norms count instead.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.ln_structured(torch.nn.Linear(4, 2), "weight", 1, n=1, dim=1).weight_mask.sum()
    tensor(6.)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune elements of several parameters, compared with each other.

    Args:
        parameters: pairs of a module and the name of its parameter.
        pruning_method: a class of unstructured pruning.
        importance_scores: dictionary of such pairs to tensors by which elements are chosen instead.
        kwargs: arguments of the method, such as `amount`.

    Raises:
        TypeError: an argument has the wrong type, or the method is not unstructured.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils import prune
    >>> layer = torch.nn.Linear(4, 2)
    >>> prune.global_unstructured([(layer, "weight"), (layer, "bias")], prune.L1Unstructured, amount=5)
    >>> layer.weight_mask.sum() + layer.bias_mask.sum()
    tensor(5.)
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    all_scores = parameters_to_vector([scores.get((module, name), getattr(module, name))
                                       for module, name in parameters])
    all_masks = parameters_to_vector([getattr(module, name + "_mask", fn.ones_like(getattr(module, name)))
                                      for module, name in parameters])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
                        f"Found method {pruning_method} of type {method.PRUNING_TYPE}")
    container.add_pruning_method(method)
    mask = container.compute_mask(all_scores, all_masks)
    start = 0
    for module, name in parameters:
        tensor = getattr(module, name)
        custom_from_mask(module, name, mask=mask[start:start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune a parameter by a mask.

    Args:
        module: the module, which is changed and returned.
        name: name of its parameter.
        mask: zeros and ones, of the shape of the parameter.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.custom_from_mask(torch.nn.Linear(1, 2), "bias", torch.tensor([0, 1])).bias_mask
    tensor([0., 1.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Make a pruned tensor a parameter again; its zeros stay.

    Raises:
        ValueError: the parameter is not pruned.

    >>> import flambeau as torch
    >>> layer = torch.nn.utils.prune.identity(torch.nn.Linear(2, 1), "bias")
    >>> sorted(torch.nn.utils.prune.remove(layer, "bias").state_dict())
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a parameter of the module or of its submodules is pruned.

    >>> import flambeau as torch
    >>> torch.nn.utils.prune.is_pruned(torch.nn.Linear(2, 1))
    False
    """
    return any(isinstance(hook, BasePruningMethod)
               for _, submodule in module.named_modules() for hook in submodule._forward_pre_hooks.values())


# ----- checks ---------------------------------------------------------------------------


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if index(amount) < 0 if isinstance(amount, numbers.Integral) else not 0.0 <= float(amount) <= 1.0:
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and index(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Tensor) -> None:
    if len(t.shape) <= 1:
        raise ValueError("Structured pruning can only be applied to multidimensional tensors. "
                         f"Found tensor of shape {t.shape} with {len(t.shape)} dims")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> Any:
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The norm of each slice of a dimension."""
    dims = list(range(t.dim()))
    del dims[dim]
    return fn.norm(t, p=n, dim=dims)


def _slices_kept(t: Tensor, dim: int, kept: Tensor, default_mask: Tensor) -> Tensor:
    """The default mask with the slices of `dim` that are not `kept` (indices or bools) zero."""
    mask = fn.zeros_like(t)
    where: list[Any] = [slice(None)] * t.dim()
    where[dim] = kept
    mask[tuple(where)] = 1
    mask *= default_mask.to(dtype=mask.dtype)
    return mask
