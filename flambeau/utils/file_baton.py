"""`torch.utils.file_baton`: a lock between processes, held by whoever created a file."""

from __future__ import annotations

import os
import time
import warnings


class FileBaton:
    """A lock that is a file.

    Args:
        lock_file_path: the file.
        wait_seconds: how long `wait` sleeps between two looks.
        warn_after_seconds: the time after which `wait` warns; None for never.

    >>> import os, tempfile
    >>> from flambeau.utils.file_baton import FileBaton
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     baton = FileBaton(os.path.join(folder, "lock"))
    ...     baton.try_acquire(), baton.try_acquire(), baton.release()
    (True, False, None)
    """

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path, self.wait_seconds = lock_file_path, wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Create the file; whether this process did."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until the file is gone."""
        start, warned = time.time(), self.warn_after_seconds is None
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if not warned and time.time() - start > (self.warn_after_seconds or 0):
                warnings.warn(f'Waited on lock file "{self.lock_file_path}" for {self.warn_after_seconds} seconds.',
                              stacklevel=2)
                warned = True

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
        os.remove(self.lock_file_path)


__all__ = ["FileBaton"]
