"""Exceptions that are passed to another thread or process, with their traceback as text."""

from __future__ import annotations

import sys
from typing import Any, NoReturn


class KeyErrorMessage(str):
    """A text whose repr is itself: `KeyError` shows the repr of its argument.

    >>> from flambeau.runtime.exception_wrapper import KeyErrorMessage
    >>> KeyErrorMessage("two\\nlines")
    two
    lines
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception's type and formatted traceback.

    The traceback itself is not stored: it refers to the frames, whose variables refer to it.

    Args:
        exc_info: as of `sys.exc_info`; that of the exception being handled by default.
        where: where it was raised, for the message.

    >>> from flambeau.runtime.exception_wrapper import ExceptionWrapper
    >>> try:
    ...     [].pop()
    ... except IndexError:
    ...     wrapper = ExceptionWrapper(where="in a thread")
    >>> wrapper.reraise()
    Traceback (most recent call last):
    IndexError: Caught IndexError in a thread.
    Original Traceback (most recent call last):
    ...
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        import traceback  # 1 ms of `import flambeau`

        exc_info = exc_info or sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the same type, with the original traceback in its message.

        Raises:
            RuntimeError: the type's constructor does not take a message.
        """
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:  # it takes other arguments
            raise RuntimeError(message) from None
        raise exception
