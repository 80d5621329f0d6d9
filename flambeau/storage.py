"""`torch.storage`: typed and untyped storages."""

from __future__ import annotations

from typing import Any

from ._tensor.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """Read one storage of a plain pickle (`pickle.dumps` of a tensor in PyTorch): bytes written by `torch.save`."""
    import io

    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)
