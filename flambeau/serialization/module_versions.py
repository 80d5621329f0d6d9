"""Versions of the modules that read and write files."""

from __future__ import annotations

import warnings
from typing import Any

from ..warning_location import user_stacklevel


def check_module_version_greater_or_equal(module: Any, req_version_tuple: tuple[Any, ...],
                                          error_if_malformed: bool = True) -> bool:
    """Whether a module's version is at least a required one, part by part.

    Args:
        module: an object with `__version__`, such as "1.2.3".
        req_version_tuple: the required parts; those of the version become their types.
        error_if_malformed: whether a version of another form is an error, or a warning and True.

    Raises:
        RuntimeError: the version has another form.

    >>> import numpy
    >>> import flambeau as torch
    >>> torch.serialization.check_module_version_greater_or_equal(numpy, (1, 20))
    True
    """
    try:
        parts = module.__version__.split(".")
        found = tuple(type(required)(parts[at]) for at, required in enumerate(req_version_tuple))
        return found >= req_version_tuple
    except Exception as error:
        message = (f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be "
                   f"compared with tuple {req_version_tuple!s}")
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", UserWarning,
                      stacklevel=user_stacklevel())
        return True
