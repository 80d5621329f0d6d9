"""Functions that are no declared operators, shown in a profile all the same: `randn`, `zeros`, `linear`.

While a profiler is on, their names lead to a form that opens a span. Nothing stands in their way
otherwise.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .._tensor import Tensor
from ..engine.profiler_events import recording

NAMES = (
    "arange", "bernoulli", "binomial", "empty", "empty_like", "empty_permuted", "empty_strided", "eye", "full",
    "full_like", "linspace", "logspace", "multinomial", "normal", "ones", "ones_like", "poisson", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "range", "scalar_tensor", "tril_indices",
    "triu_indices", "zeros", "zeros_like", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "bucketize", "cdist", "chain_matmul", "chunk",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity",
    "cross_entropy", "ctc_loss", "det", "dropout", "einsum", "embedding", "flatten", "group_norm", "histogram",
    "inner", "isclose", "isin", "kron", "layer_norm", "linear", "matmul", "max", "max_pool1d", "max_pool2d",
    "max_pool3d", "median", "min", "nll_loss", "norm", "outer", "pairwise_distance", "reshape", "rms_norm",
    "scaled_dot_product_attention", "searchsorted", "sort", "split", "tensordot", "tile", "unique",
)

#: where PyTorch's operator has another name than the function
_OPERATOR = {"cross_entropy": "cross_entropy_loss", "nll_loss": "nll_loss_nd", "unique": "_unique2"}

_MODULES = ("_tensor.functions", "", "nn.functional")  # where users find functions


def _timed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    name = f"aten::{_OPERATOR.get(name, name)}"

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        timeline = recording()
        if timeline is None:
            return function(*args, **kwargs)
        span = timeline.enter(name, given=args, parameters=len(kwargs))
        try:
            found = function(*args, **kwargs)
            if timeline.memory and isinstance(found, Tensor):
                timeline.made(span, [found._array], [x._array for x in args if isinstance(x, Tensor)])
            return found
        finally:
            timeline.leave(span)

    return wrapper


_FORM = _timed(len, "").__code__


def original(function: Any) -> Any:
    """The function that a form stands for; other things themselves."""
    return function.__wrapped__ if getattr(function, "__code__", None) is _FORM else function


class Handwritten:
    """Those functions' names, taken over for the time of a profile."""

    def __init__(self) -> None:
        self.originals: dict[Any, Callable[..., Any]] = {}  # the form that opens a span -> the function

    def take_over(self) -> None:
        """Let the names lead to the forms that open a span."""
        forms: dict[Any, Any] = {}
        for namespace in self._namespaces():
            for name in NAMES:
                function = namespace.get(name)
                if isinstance(function, FunctionType):
                    if function not in forms:
                        forms[function] = _timed(function, name)
                        self.originals[forms[function]] = function
                    namespace[name] = forms[function]

    def give_back(self) -> None:
        """Let them lead to the functions again."""
        for namespace in self._namespaces():
            for name in NAMES:
                held = namespace.get(name)
                if isinstance(held, FunctionType) and held in self.originals:
                    namespace[name] = self.originals[held]
        self.originals.clear()

    @staticmethod
    def _namespaces() -> list[dict[str, Any]]:
        package = __name__.partition(".")[0]
        modules = [sys.modules.get(f"{package}.{name}".rstrip(".")) for name in _MODULES]
        return [vars(module) for module in modules if module is not None]


__all__ = ["Handwritten", "original"]
