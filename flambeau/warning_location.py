"""Warnings of the package: they point to the first frame outside it; some are given once in a process."""

from __future__ import annotations

import sys
import warnings

from .modes import determinism

_PACKAGE = __name__.rpartition(".")[0]
#: modules whose functions stand between a public function and its caller
_WRAPPERS = (f"{_PACKAGE}._tensor.fastpath.repeated_calls", f"{_PACKAGE}._tensor.argument_errors.parsed_calls")


def user_stacklevel(*also: str) -> int:
    """The `stacklevel` of a `warnings.warn` in the caller that points to the first frame outside the package.

    Args:
        also: further top-level packages whose frames are skipped, such as `pickle`.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (_PACKAGE, *also):
        level, frame = level + 1, frame.f_back
    return level


def stacklevel_beside_wrappers(level: int) -> int:
    """The `stacklevel` of a `warnings.warn` in the caller that points `level` frames up, not counting wrappers."""
    found, frame = 1, sys._getframe(1)
    while level > 1 and frame.f_back is not None:
        found, frame = found + 1, frame.f_back
        if frame.f_globals.get("__name__") not in _WRAPPERS:
            level -= 1
    return found


def alert_not_deterministic(name: str) -> None:
    """Refuse an operator of which PyTorch has no deterministic version, or warn of it, as the program demands.

    Raises:
        RuntimeError: operators must be deterministic (PyTorch's text).
    """
    if determinism[0]:
        setting = "True, warn_only=True" if determinism[0] == 1 else "True"
        text = (f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms"
                f"({setting})'. You can ")
        if determinism[0] == 2:
            text += ("turn off determinism just for this operation, or you can use the 'warn_only=True' option, if "
                     "that's acceptable for your application. You can also ")
        text += ("file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
                 "deterministic support for this operation.")
        if determinism[0] == 2:
            raise RuntimeError(text)
        warnings.warn(text, UserWarning, stacklevel=user_stacklevel())


#: the texts of the warnings that were given once
given: set[str] = set()
#: whether warnings that are given once are given always (`set_warn_always`)
always = [False]


def warn_once(text: str) -> None:
    """Give a `UserWarning` the first time in a process."""
    if text not in given or always[0]:
        given.add(text)
        warnings.warn(text, UserWarning, stacklevel=user_stacklevel())
