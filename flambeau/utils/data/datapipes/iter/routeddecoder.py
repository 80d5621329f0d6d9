"""Pipelines that decode files; deprecated."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..lengths import length_of
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[Any]):
    """Pairs of path and decoded contents (`routed_decode`); deprecated.

    Args:
        datapipe: pairs of path and data.
        handlers: decoders (`Decoder`).
        key_fn: a function of the path that returns the extension.
    """

    def __init__(self, datapipe: Iterable[Any], *handlers: Callable[..., Any],
                 key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)
        warnings.warn(f"`{type(self).__name__}()` and its functional API `.routed_decode()` are deprecated since 1.12 "
                      "and will be removed in 1.13.\nSee https://github.com/pytorch/data/issues/163 for details.",
                      FutureWarning, stacklevel=2)

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Add decoders before the others."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield data[0], self.decoder(data)[data[0]]

    def __len__(self) -> int:
        return length_of(self.datapipe, self)
