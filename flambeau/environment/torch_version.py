"""`torch.torch_version`: a version string that compares as a version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_PATTERN = re.compile(r"""\s* v? (?:(\d+)!)? (\d+(?:\.\d+)*)
    (?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?
    (?:(?:-(\d+))|(?:[-_.]?(post|rev|r)[-_.]?(\d*)))? (?:[-_.]?(dev)[-_.]?(\d*))?
    (?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))? \s*""", re.VERBOSE | re.IGNORECASE)
_PRE = {"a": "a", "alpha": "a", "b": "b", "beta": "b", "c": "rc", "rc": "rc", "pre": "rc", "preview": "rc"}


def _key(version: str) -> tuple[Any, ...] | None:
    """A sort key of a version as PEP 440 orders versions; None for a string that is no version."""
    match = _PATTERN.fullmatch(version)
    if match is None:
        return None
    epoch, release, pre, pre_number, implicit_post, post, post_number, dev, dev_number, local = match.groups()
    numbers = [int(part) for part in release.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    posted = int(implicit_post or post_number or 0) if implicit_post or post else None
    if pre:
        pre_key: tuple[Any, ...] = (0, _PRE[pre.lower()], int(pre_number or 0))
    else:
        pre_key = (-1,) if dev and posted is None else (1,)
    local_key = [(1, int(part), "") if part.isdigit() else (0, 0, part.lower())
                 for part in re.split(r"[-_.]", local)] if local else []
    return (int(epoch or 0), tuple(numbers), pre_key, -1 if posted is None else posted,
            (0, int(dev_number or 0)) if dev else (1, 0), (1, local_key) if local else (0, []))


class TorchVersion(str):
    """A version string that compares with strings, tuples and version objects as versions do.

    >>> from flambeau.environment.torch_version import TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    __slots__ = ()
    __module__ = "torch.torch_version"

    def _keys(self, other: Any) -> tuple[Any, Any]:
        """What to compare: keys of both versions, or the strings if one is no version."""
        text = other if isinstance(other, str) or not isinstance(other, Iterable) else ".".join(map(str, other))
        mine, others = _key(str.__str__(self)), _key(str(text))
        return (str.__str__(self), str(text)) if mine is None or others is None else (mine, others)

    def __lt__(self, other: Any) -> bool:
        mine, others = self._keys(other)
        return bool(mine < others)

    def __le__(self, other: Any) -> bool:
        mine, others = self._keys(other)
        return bool(mine <= others)

    def __gt__(self, other: Any) -> bool:
        mine, others = self._keys(other)
        return bool(mine > others)

    def __ge__(self, other: Any) -> bool:
        mine, others = self._keys(other)
        return bool(mine >= others)

    def __eq__(self, other: object) -> bool:
        mine, others = self._keys(other)
        return bool(mine == others)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


__all__ = ["TorchVersion"]
