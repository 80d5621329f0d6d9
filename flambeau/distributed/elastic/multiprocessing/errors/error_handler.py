"""Writes a process's error, as JSON, to the file that the launcher has named."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import time
import traceback
import warnings
from typing import Any

__all__ = ["ErrorHandler"]

logger = logging.getLogger(__name__)


class ErrorHandler:
    """Writes errors to the file that the variable TORCHELASTIC_ERROR_FILE names, if it is set.

    >>> import json, os, tempfile
    >>> from flambeau.distributed.elastic.multiprocessing.errors import ErrorHandler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["TORCHELASTIC_ERROR_FILE"] = name = os.path.join(folder, "error.json")
    ...     ErrorHandler().record_exception(ValueError("wrong"))
    ...     del os.environ["TORCHELASTIC_ERROR_FILE"]
    ...     with open(name) as file:
    ...         json.load(file)["message"]["message"]
    'ValueError: wrong'
    """

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Before the program: have crashes print tracebacks."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:  # stderr without a descriptor
            warnings.warn(f"Unable to enable fault handler. {type(error).__name__}: {error}", stacklevel=2)

    def record_exception(self, e: BaseException) -> None:
        """Write an error, with the traceback of the exception that is being handled.

        Args:
            e: the error.
        """
        path = self._get_error_file_path()
        if path:
            details = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": details}}, file)

    def override_error_code_in_rootcause_data(self, rootcause_error_file: str, rootcause_error: dict[str, Any],
                                              error_code: int = 0) -> None:
        """Add the exit code, which the process that failed could not know.

        Args:
            rootcause_error_file: where the error was read from.
            rootcause_error: the error.
            error_code: the exit code.
        """
        message = rootcause_error.get("message")
        if isinstance(message, dict):
            message["errorCode"] = error_code
        else:
            logger.warning("%s has %s: the exit code %s is not added", rootcause_error_file,
                           "no `message`" if message is None else "a text as its `message`", error_code)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copy the error of a process that this one has started to this one's file.

        Args:
            rootcause_error_file: the other one's file.
            error_code: its exit code.
        """
        with open(rootcause_error_file, encoding="utf-8") as file:
            error = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, error, error_code)
        path = self._get_error_file_path()
        if path is None:
            logger.error("no error file defined for parent, to copy child error file (%s)", rootcause_error_file)
            return
        with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
            logger.warning("%s already exists and will be overwritten. Original contents:\n%s", path, file.read())
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(error, file)
        except OSError as reason:
            warnings.warn(f"Unable to write error to file. {type(reason).__name__}: {reason}", stacklevel=2)
