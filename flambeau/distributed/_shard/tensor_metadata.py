"""What is known of a tensor whose parts are in several processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import flambeau as torch

from .metadata import ShardMetadata


class MEM_FORMAT_ENCODING(Enum):
    """Memory formats in pickles."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


def _formats() -> dict[Any, MEM_FORMAT_ENCODING]:
    return {torch.contiguous_format: MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
            torch.channels_last: MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
            torch.preserve_format: MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT}


@dataclass
class TensorProperties:
    """What all parts of a tensor have in common.

    >>> import flambeau as torch
    >>> TensorProperties.create_from_tensor(torch.ones(2)).requires_grad
    False
    """

    dtype: torch.dtype = field(default=torch.get_default_dtype())
    layout: torch.layout = field(default=torch.strided)
    requires_grad: bool = False
    memory_format: torch.memory_format = field(default=torch.contiguous_format)
    pin_memory: bool = False

    def __getstate__(self) -> Any:
        if self.memory_format not in _formats():
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        return self.dtype, self.layout, self.requires_grad, _formats()[self.memory_format], self.pin_memory

    def __setstate__(self, state: Any) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        found = [memory_format for memory_format, each in _formats().items() if each == encoding]
        if not found:
            raise RuntimeError(f"Invalid torch.memory_format encoding: {encoding}")
        self.memory_format = found[0]

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """The properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, torch.contiguous_format,
                                tensor.is_pinned())


@dataclass
class ShardedTensorMetadata:
    """All parts of a tensor, its shape, and what the parts have in common."""

    shards_metadata: list[ShardMetadata] = field(default_factory=list)
    size: torch.Size = field(default=torch.Size([]))
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)


__all__ = ["MEM_FORMAT_ENCODING", "ShardedTensorMetadata", "TensorProperties"]
