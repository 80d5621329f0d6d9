"""Shapes and dtypes of all values of a graph, found by running it."""

from __future__ import annotations

import copy
import traceback
from contextlib import nullcontext
from typing import Any, NamedTuple

import flambeau as torch

from ..._subclasses.fake_tensor import FakeCopyMode
from .._compatibility import compatibility
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


@compatibility(is_backward_compatible=True)
class TensorMetadata(NamedTuple):
    """What is known of a tensor."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    """The metadata of a tensor."""
    strided = result.layout is torch.strided
    memory_format = None
    if include_contiguity and strided:
        memory_format = next((each for each in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
                              if result.is_contiguous(memory_format=each)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride() if strided else (),
                          memory_format, result.is_quantized, {})


@compatibility(is_backward_compatible=True)
class ShapeProp(Interpreter):
    """Runs a graph and stores the metadata of each value in `Node.meta["tensor_meta"]`, its type in `meta["type"]`.

    Args:
        gm: the module.
        fake_mode: a mode of fake tensors: no values are computed.

    >>> import flambeau as torch
    >>> from flambeau.fx.passes.shape_prop import ShapeProp
    >>> gm = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
    >>> _ = ShapeProp(gm).propagate(torch.ones(4, 2))
    >>> list(gm.graph.output_node().meta["tensor_meta"].shape)
    [4, 3]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_module, self.fake_mode = None, fake_mode
        if fake_mode is not None:
            self.fake_module = deepcopy_to_fake_tensor(self.module, fake_mode)
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        """Execute a node, and store the metadata of its value."""
        try:
            if self.fake_module is not None:
                self.module = self.fake_module
            try:
                with nullcontext() if self.fake_mode is None else self.fake_mode:
                    result = super().run_node(n)
            finally:
                self.module = self.real_module
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found: list[Any] = []

        def metadata(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                found.append(x)
                return _extract_tensor_metadata(x)
            return x

        meta = map_aggregate(result, metadata)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the module with arguments; the result."""
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in args)
        return super().run(*args)


def deepcopy_to_fake_tensor(obj: Any, fake_mode: Any) -> Any:
    """A deep copy of a module, its tensors fake."""
    with FakeCopyMode(fake_mode):
        return copy.deepcopy(obj)
