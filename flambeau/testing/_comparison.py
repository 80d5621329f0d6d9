"""`torch.testing._comparison`: tolerances and messages of comparisons, which packages import for their own tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._tensor import Tensor
from ..dtypes import dtype
from .close import assert_allclose, assert_close
from .mismatch import scalar_message, tensor_message
from .pairs import (
    BooleanPair,
    ErrorMeta,
    NonePair,
    NumberPair,
    ObjectPair,
    Pair,
    TensorLikePair,
    UnsupportedInputs,
    not_close_error_metas,
    originate_pairs,
    tolerances_of,
)
from .tolerances import TOLERANCES, max_tolerances

Identifier = str | Callable[[str], str] | None


def default_tolerances(*inputs: Tensor | dtype,
                       dtype_precisions: Mapping[dtype, tuple[float, float]] | None = None) -> tuple[float, float]:
    """The largest default rtol and the largest default atol of several tensors or dtypes.

    Args:
        inputs: tensors and dtypes.
        dtype_precisions: (rtol, atol) by dtype in place of the defaults of `assert_close`; (0, 0) for others.

    Raises:
        TypeError: an input is neither a tensor nor a dtype.

    >>> import flambeau as torch
    >>> from flambeau.testing._comparison import default_tolerances
    >>> default_tolerances(torch.ones(2), torch.float64)
    (1.3e-06, 1e-05)
    """
    return max_tolerances(*map(_dtype_of, inputs), table=dtype_precisions or TOLERANCES)


def get_tolerances(*inputs: Tensor | dtype, rtol: float | None, atol: float | None,
                   id: tuple[Any, ...] = ()) -> tuple[float, float]:
    """The tolerances that are passed, or the default ones of the inputs.

    Args:
        inputs: tensors and dtypes.
        rtol: relative tolerance; requires `atol`.
        atol: absolute tolerance; requires `rtol`.
        id: indices and keys of the inputs in their containers.

    Raises:
        ErrorMeta: only one of `rtol` and `atol` is passed.

    >>> import flambeau as torch
    >>> from flambeau.testing._comparison import get_tolerances
    >>> get_tolerances(torch.float64, rtol=None, atol=None)
    (1e-07, 1e-07)
    """
    return tolerances_of(*map(_dtype_of, inputs), rtol=rtol, atol=atol, id=id)


def make_scalar_mismatch_msg(actual: complex, expected: complex, *, rtol: float, atol: float,
                             identifier: Identifier = None) -> str:
    """The message for two scalars that differ.

    Args:
        actual: the number.
        expected: what it should be.
        rtol: relative tolerance.
        atol: absolute tolerance.
        identifier: what is compared, or a function of the default ("Scalars") that returns it.

    >>> from flambeau.testing._comparison import make_scalar_mismatch_msg
    >>> print(make_scalar_mismatch_msg(1.0, 2.0, rtol=0.0, atol=0.5, identifier="Losses").splitlines()[0])
    Losses are not close!
    """
    return scalar_message(actual, expected, rtol, atol, _identified(identifier, "Scalars"))


def make_tensor_mismatch_msg(actual: Tensor, expected: Tensor, matches: Tensor, *, rtol: float, atol: float,
                             identifier: Identifier = None) -> str:
    """The message for two tensors that differ.

    Args:
        actual: the tensor.
        expected: what it should be, of the same shape and dtype.
        matches: bool tensor of that shape: the elements that are close.
        rtol: relative tolerance.
        atol: absolute tolerance.
        identifier: what is compared, or a function of the default ("Tensor-likes") that returns it.

    >>> import flambeau as torch
    >>> from flambeau.testing._comparison import make_tensor_mismatch_msg
    >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0])
    >>> print(make_tensor_mismatch_msg(x, y, x == y, rtol=0.0, atol=0.0))
    Tensor-likes are not equal!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 2.0 at index (1,)
    Greatest relative difference: 0.5 at index (1,)
    """
    return tensor_message(actual, expected, matches, rtol, atol, _identified(identifier, "Tensor-likes"))


def _dtype_of(x: Any) -> dtype:
    if isinstance(x, dtype):
        return x
    if isinstance(x, Tensor):
        return x.dtype
    raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(x)} instead.")


def _identified(identifier: Identifier, default: str) -> str:
    if callable(identifier):
        return identifier(default)
    return default if identifier is None else identifier


__all__ = ["BooleanPair", "ErrorMeta", "NonePair", "NumberPair", "ObjectPair", "Pair", "TensorLikePair",
           "UnsupportedInputs", "assert_allclose", "assert_close", "default_tolerances", "get_tolerances",
           "make_scalar_mismatch_msg", "make_tensor_mismatch_msg", "not_close_error_metas", "originate_pairs"]
