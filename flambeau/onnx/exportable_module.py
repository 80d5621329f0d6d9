"""`ExportableModule`: a module that knows how it is exported to ONNX."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import flambeau as torch

__all__ = ["ExportableModule"]


class ExportableModule(torch.nn.Module, abc.ABC):  # type: ignore[misc]
    """A module with example arguments, dynamic shapes and names for its export to ONNX.

    Raises:
        TypeError: a subclass does not define `example_arguments`.

    Source: https://docs.pytorch.org/docs/stable/onnx_export.html

    >>> import flambeau as torch
    >>> class Twice(torch.onnx.ExportableModule):
    ...     def forward(self, x):
    ...         return x * 2
    ...     def example_arguments(self):
    ...         return (torch.ones(2, 3),), None
    ...     def output_names(self):
    ...         return ["twice"]
    >>> [each.name for each in Twice().to_onnx().model_proto.graph.output]
    ['twice']
    """

    @abc.abstractmethod
    def example_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
        """Example arguments by position, and those by name or None."""
        raise NotImplementedError

    def dynamic_shapes(self) -> Any:
        """Which sizes may differ from the example's, as `torch.export.export` takes them: none."""
        return None

    def input_names(self) -> Sequence[str] | None:
        """The names of the model's inputs: None, those of the arguments."""
        return None

    def output_names(self) -> Sequence[str] | None:
        """The names of the model's outputs: None, those of the operators."""
        return None

    def to_onnx(self, **kwargs: Any) -> Any:
        """Export the module.

        Args:
            kwargs: further arguments of `torch.onnx.export`.
        """
        return torch.onnx.export(self, **kwargs)
