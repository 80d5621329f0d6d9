"""`torch.storage`: the memory behind tensors, under PyTorch's module name."""

from __future__ import annotations

from typing import Any

from ._tensor.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """What PyTorch's plain pickles of tensors call: each storage is a file in one text."""
    import io

    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)
