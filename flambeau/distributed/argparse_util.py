"""Actions of `argparse` whose defaults are environment variables, PET_<NAME>."""

from __future__ import annotations

import os
from argparse import Action, ArgumentParser, Namespace
from typing import Any

__all__ = ["check_env", "env"]


class env(Action):
    """An option with the default that the variable PET_<DEST> has, if it is set.

    Args:
        dest: the option's name in the result.
        default: its value without the option and the variable.
        required: whether the option must be given, if no default is known.
        kwargs: of `argparse.Action`.

    >>> import argparse
    >>> from flambeau.distributed.argparse_util import env
    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--foo", action=env, default="bar")
    >>> parser.parse_args([]).foo
    'bar'
    """

    def __init__(self, dest: str, default: Any = None, required: bool = False, **kwargs: Any) -> None:
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, required=required and not default, **kwargs)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any,
                 option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values)


class check_env(Action):
    """A flag that is also set by a variable PET_<DEST> other than 0.

    Args:
        dest: the option's name in the result.
        default: whether it is set without the option and the variable.
        kwargs: of `argparse.Action`.

    >>> import argparse
    >>> from flambeau.distributed.argparse_util import check_env
    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--verbose", action=check_env)
    >>> parser.parse_args([]).verbose, parser.parse_args(["--verbose"]).verbose
    (False, True)
    """

    def __init__(self, dest: str, default: bool = False, **kwargs: Any) -> None:
        given = os.environ.get(f"PET_{dest.upper()}")
        super().__init__(dest=dest, const=True, default=default if given is None else bool(int(given)), nargs=0,
                         **kwargs)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any,
                 option_string: str | None = None) -> None:
        setattr(namespace, self.dest, self.const)
