"""`torch._utils_internal`: paths, and what a company's builds of PyTorch replace: switches, and logs that are sent.

As in PyTorch's public builds every switch has its default, and nothing is sent.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, NoReturn

TEST_MASTER_ADDR = "127.0.0.1"
TEST_MASTER_PORT = 29500
DISABLE_JUSTKNOBS = True

#: the folder that the package is in
torch_parent = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def get_file_path(*path_components: str) -> str:
    """A path below the folder that the package is in."""
    return os.path.join(torch_parent, *path_components)


def get_file_path_2(*path_components: str) -> str:
    """A path of its parts.

    >>> import flambeau._utils_internal as internal
    >>> internal.get_file_path_2("a", "b")
    'a/b'
    """
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """A path if it can be written to, else a new temporary folder."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """A path without links."""
    return os.path.realpath(path)


def prepare_multiprocessing_environment(path: str) -> None:
    """What processes need before they start: nothing."""


def throw_abstract_impl_not_imported_error(opname: str, module: str, context: str) -> NoReturn:
    """Raise NotImplementedError: an operator has no fake kernel, which a module may have."""
    text = f"{opname}: We could not find the fake impl for this operator. "
    if module not in sys.modules:
        text += (f"The operator specified that you may need to import the '{module}' Python module to load the fake "
                 f"impl. {context}")
    raise NotImplementedError(text)


def justknobs_check(name: str, default: bool = True) -> bool:
    """The value of a switch: its default."""
    return default


def justknobs_getval_int(name: str) -> int:
    """The value of a switch that is a number: 0."""
    return 0


def is_fb_unit_test() -> bool:
    """Whether a company's tests run: they do not."""
    return False


def get_default_numa_options() -> None:
    """How processes are bound to processors by default: they are not."""


def signpost_event(category: str, name: str, parameters: dict[str, Any]) -> None:
    """Note an event for a company's logs, which are not there."""


def log_compilation_event(metrics: Any) -> None:
    """Note a compilation for a company's logs, which are not there."""


def log_export_usage(**kwargs: Any) -> None:
    """Note an export for a company's logs, which are not there."""


def log_torchscript_usage(api: str, **kwargs: Any) -> None:
    """Note a use of TorchScript for a company's logs, which are not there."""


def log_trace_structured_event(*args: Any, **kwargs: Any) -> None:
    """Note an event of a trace for a company's logs, which are not there."""


def maybe_upload_prof_stats_to_manifold(profile_path: str) -> str | None:
    """The address that a profile was sent to: none."""
    return None
