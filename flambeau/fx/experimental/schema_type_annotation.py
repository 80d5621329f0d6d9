"""Annotations of values, from the signatures of what computes them."""

from __future__ import annotations

import inspect
from typing import Any

import flambeau as torch

from ..code.torch_names import find
from ..interpreter import Transformer

__all__ = ["AnnotateTypesWithSchema"]

_PLAIN = (bool, int, float, str, torch.Tensor)


class AnnotateTypesWithSchema(Transformer):
    """Annotates the results of functions, modules and attribute reads.

    Args:
        module: the module.
        annotate_functionals: whether results of functions of `torch.nn.functional` are annotated.
        annotate_modules: whether results of modules of `torch.nn` are.
        annotate_get_attrs: whether attributes are.
    """

    def __init__(self, module: Any, annotate_functionals: bool = True, annotate_modules: bool = True,
                 annotate_get_attrs: bool = True) -> None:
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a function in the new graph."""
        result = super().call_function(target, args, kwargs)
        if self.annotate_functionals and (find(target) or "").startswith("torch.nn.functional."):
            result.node.type = result.node.type or _returned(target)
        return result

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a submodule in the new graph."""
        result = super().call_module(target, args, kwargs)
        module = self.fetch_attr(target)
        if self.annotate_modules and getattr(torch.nn, type(module).__name__, None) is type(module):
            result.node.type = result.node.type or _returned(module.forward)
        return result

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute read of the new graph."""
        result = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs:
            value = self.fetch_attr(target)
            kind = next((each for each in _PLAIN if isinstance(value, each)), None)
            result.node.type = result.node.type or kind
        return result


def _returned(function: Any) -> Any:
    """The annotation of a function's result; None: there is none."""
    try:
        found = inspect.signature(function, eval_str=True).return_annotation
    except (ValueError, TypeError, NameError):
        return None
    return None if found is inspect.Signature.empty else found
