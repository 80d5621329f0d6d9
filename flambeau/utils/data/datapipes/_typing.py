"""The metaclasses of pipelines."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from .iterator_hooks import hook_iterator, hook_reset


class _DataPipeMeta(ABCMeta):
    """The metaclass of pipelines."""


class _IterDataPipeMeta(_DataPipeMeta):
    """The metaclass of streams, which adds to `__iter__`, `__next__` and `reset` what `iterator_hooks` says."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> Any:
        if "reset" in namespace:
            hook_reset(namespace)
        if "__iter__" in namespace:
            hook_iterator(namespace)
        return super().__new__(mcs, name, bases, namespace, **kwargs)
