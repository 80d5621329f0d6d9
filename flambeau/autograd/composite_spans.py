"""Profiler spans of functions that are not declared operators: `randn`, `zeros`, `linear`, ...

While a profiler is active, their names are bound to wrappers that open a span. Without one they have no overhead.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from .._tensor import Tensor
from ..engine.profiler_events import active_timeline

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

#: functions whose operator has another name in PyTorch
_OPERATOR = {"cross_entropy": "cross_entropy_loss", "nll_loss": "nll_loss_nd", "unique": "_unique2"}

_MODULES = ("_tensor.functions", "", "nn.functional")  # the namespaces of functions


def _wrap(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    name = f"aten::{_OPERATOR.get(name, name)}"

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        timeline = active_timeline()
        if timeline is None:
            return function(*args, **kwargs)
        span = timeline.enter(name, inputs=args, n_parameters=len(kwargs))
        try:
            result = function(*args, **kwargs)
            if timeline.memory and isinstance(result, Tensor):
                timeline.record_allocations(span, [result._array], [x._array for x in args if isinstance(x, Tensor)])
            return result
        finally:
            timeline.leave(span)

    return wrapper


_WRAPPER_CODE = _wrap(len, "").__code__


def unwrap(function: Any) -> Any:
    """The function below a profiling wrapper; any other object itself."""
    return function.__wrapped__ if getattr(function, "__code__", None) is _WRAPPER_CODE else function


class CompositeSpans:
    """The wrappers of composite functions, installed for the duration of a profile."""

    def __init__(self) -> None:
        self.originals: dict[Any, Callable[..., Any]] = {}  # wrapper -> function

    def install(self) -> None:
        """Bind the names to wrappers that open a span."""
        wrappers: dict[Any, Any] = {}
        for module in self._modules():
            for name in NAMES:
                function = getattr(module, name, None)  # imports the modules of functions that were not used before
                function = self.originals.get(function, function)  # the package looks up what is bound already
                if isinstance(function, FunctionType):
                    if function not in wrappers:
                        wrappers[function] = _wrap(function, name)
                        self.originals[wrappers[function]] = function
                    vars(module)[name] = wrappers[function]

    def remove(self) -> None:
        """Bind the names to the functions again."""
        for module in self._modules():
            for name in NAMES:
                wrapper = vars(module).get(name)
                if isinstance(wrapper, FunctionType) and wrapper in self.originals:
                    vars(module)[name] = self.originals[wrapper]
        self.originals.clear()

    @staticmethod
    def _modules() -> list[ModuleType]:
        package = __name__.partition(".")[0]
        return [importlib.import_module(f"{package}.{name}".rstrip(".")) for name in _MODULES]


__all__ = ["CompositeSpans", "unwrap"]
