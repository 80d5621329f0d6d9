"""Signals that end a launcher are exceptions in it, so that it ends its processes before."""

from __future__ import annotations

import os
import signal
from typing import Any, NoReturn

__all__ = ["SignalException"]


class SignalException(Exception):
    """A signal ended the launcher.

    Args:
        msg: what happened.
        sigval: the signal.

    >>> import signal
    >>> from flambeau.distributed.elastic.multiprocessing import SignalException
    >>> SignalException("ended", signal.SIGTERM).sigval.name
    'SIGTERM'
    """

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


def _terminate_process_handler(signum: int, frame: Any) -> NoReturn:
    """What a launcher does when it gets a signal that ends it."""
    raise SignalException(f"Process {os.getpid()} got signal: {signum}", sigval=signal.Signals(signum))
