"""Broadcasting of parameters, probabilities and logits, lazily computed attributes, triangles as vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final

from .._tensor import Tensor, enable_grad
from .._tensor import functions as fn
from ..dtypes import finfo, get_default_dtype
from ..shapes import Size

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
           "tril_matrix_to_vec", "vec_to_tril_matrix"]

#: Euler's constant γ
euler_constant: Final = 0.5772156649015329

#: the types of Python numbers that stand for a parameter
_Number = (int, float, bool)


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Tensors and numbers as tensors of one shape.

    Args:
        values: tensors of shapes that broadcast, and numbers. Numbers get the dtype of the first tensor, or the
            default dtype if there is none.

    Raises:
        ValueError: a value is neither a number nor a tensor.

    >>> import flambeau as torch
    >>> torch.distributions.utils.broadcast_all(torch.zeros(2), 1)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    tensors = [_is_tensor_like(value) for value in values]
    if all(tensors):
        return tuple(fn.broadcast_tensors(*values))
    if not all(is_tensor or isinstance(value, _Number) for is_tensor, value in zip(tensors, values, strict=True)):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                         "__torch_function__.")
    model = next((value for value in values if isinstance(value, Tensor)), None)
    options = {"dtype": get_default_dtype()} if model is None else {"dtype": model.dtype, "device": model.device}
    return tuple(fn.broadcast_tensors(*(
        value if is_tensor else fn.tensor(value, **options)
        for is_tensor, value in zip(tensors, values, strict=True))))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Numbers of the standard normal distribution, drawn as `Tensor.normal_` does."""
    sample: Tensor = fn.empty(shape, dtype=dtype, device=device).normal_()
    return sample


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    total: Tensor = value.reshape((*value.shape[:-dim], -1)).sum(-1)
    return total


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: the softmax over the last dimension, or the sigmoid.

    Args:
        logits: floating, any shape.
        is_binary: whether a logit is the log odds of one event.

    >>> import flambeau as torch
    >>> torch.distributions.utils.logits_to_probs(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """
    probs: Tensor = fn.sigmoid(logits) if is_binary else fn.softmax(logits, dim=-1)
    return probs


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities clamped to [ε, 1 - ε], ε the machine epsilon of their dtype.

    >>> import flambeau as torch
    >>> torch.distributions.utils.clamp_probs(torch.tensor([0., 0.5]))
    tensor([1.1921e-07, 5.0000e-01])
    """
    eps = finfo(probs.dtype).eps
    clamped: Tensor = probs.clamp(min=eps, max=1 - eps)
    return clamped


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities: log p, or the log odds log p - log(1 - p).

    Args:
        probs: floating, any shape; clamped to [ε, 1 - ε] first.
        is_binary: whether a probability is that of one event.

    >>> import flambeau as torch
    >>> torch.distributions.utils.probs_to_logits(torch.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    clamped = clamp_probs(probs)
    logits: Tensor = fn.log(clamped)
    return logits - fn.log1p(-clamped) if is_binary else logits


if TYPE_CHECKING:
    lazy_property: Any  # an instance's value takes its place, which the type of a descriptor cannot express
else:
    class lazy_property:
        """A decorator: an attribute that is computed at its first use, with gradients enabled, and stored.

        >>> import flambeau as torch
        >>> class Square:
        ...     @torch.distributions.utils.lazy_property
        ...     def area(self):
        ...         print("computed")
        ...         return 4
        >>> square = Square()
        >>> square.area, square.area
        computed
        (4, 4)
        """

        def __init__(self, wrapped: Callable[[Any], Any]) -> None:
            self.wrapped = wrapped
            update_wrapper(self, wrapped)

        def __get__(self, instance: Any, obj_type: Any = None) -> Any:
            if instance is None:
                return _lazy_property_and_property(self.wrapped)
            with enable_grad():
                value = self.wrapped(instance)
            setattr(instance, self.wrapped.__name__, value)
            return value

    class _lazy_property_and_property(lazy_property, property):
        """A lazy property looked up on its class, where documentation tools expect a property."""

        def __init__(self, wrapped: Callable[[Any], Any]) -> None:
            property.__init__(self, wrapped)


def _lower_triangle(n: int, diag: int, device: Any) -> Tensor:
    index = fn.arange(n, device=device)
    mask: Tensor = index < index.view(-1, 1) + (diag + 1)
    return mask


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of matrices as vectors, row by row.

    Args:
        mat: (..., n, n).
        diag: the highest diagonal that is included.

    Returns:
        (..., k), k the number of elements on and below that diagonal.

    Raises:
        ValueError: the matrices have no such diagonal.

    >>> import flambeau as torch
    >>> torch.distributions.utils.tril_matrix_to_vec(torch.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 3., 4.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    vec: Tensor = mat[..., _lower_triangle(n, diag, mat.device)]
    return vec


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Vectors as lower triangles of matrices, row by row: the inverse of `tril_matrix_to_vec`.

    Args:
        vec: (..., k).
        diag: the highest diagonal that is filled.

    Returns:
        (..., n, n), with zeros elsewhere.

    Raises:
        ValueError: no n has a triangle of k elements.

    >>> import flambeau as torch
    >>> torch.distributions.utils.vec_to_tril_matrix(torch.tensor([1., 3., 4.]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    # n(n + 1)/2 + n·diag − ... = k, solved for n
    p = 1 + 2 * diag
    n = (-p + (p ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower "
                         "triangular part of a square D x D matrix.")
    size = round(n)
    mat: Tensor = vec.new_zeros(vec.shape[:-1] + Size((size, size)))
    mat[..., _lower_triangle(size, diag, vec.device)] = vec
    return mat
