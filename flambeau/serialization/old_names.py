"""Functions that PyTorch's reader of old files uses, under their public names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_PACKAGE = __name__.partition(".")[0]


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A new folder that is removed at the end of the block.

    >>> import os
    >>> from flambeau.serialization import mkdtemp
    >>> with mkdtemp() as folder:
    ...     os.path.isdir(folder)
    True
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        yield folder


def normalize_storage_type(storage_type: type) -> Any:
    """The class of storages of this name.

    >>> import flambeau as torch
    >>> torch.serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
    True
    """
    return getattr(sys.modules[_PACKAGE], storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The class of tensors that belongs to the class of a storage.

    Raises:
        AttributeError: there is none, as for typed and untyped storages.

    >>> import flambeau as torch
    >>> torch.serialization.storage_to_tensor_type(torch.UntypedStorage(1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      ...
    AttributeError: ...
    """
    kind = type(storage)
    return getattr(import_module(kind.__module__), kind.__name__.replace("Storage", "Tensor"))


__all__ = ["mkdtemp", "normalize_storage_type", "storage_to_tensor_type"]
