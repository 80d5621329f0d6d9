"""What the array API namespace offers: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...devices import CPU
from .data_types import _KINDS


class Info:
    """The inspection interface of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """What is there beside the required functions.

        >>> from flambeau.interop import array_api as xp
        >>> xp.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of new arrays.

        >>> from flambeau.interop import array_api as xp
        >>> xp.__array_namespace_info__().default_device()
        device(type='cpu')
        """
        return CPU

    def devices(self) -> tuple[Any, ...]:
        """All devices.

        >>> from flambeau.interop import array_api as xp
        >>> xp.__array_namespace_info__().devices()
        (device(type='cpu'),)
        """
        return (CPU,)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays, by kind.

        >>> from flambeau.interop import array_api as xp
        >>> xp.__array_namespace_info__().default_dtypes()["real floating"]
        flambeau.float32
        """
        real = dtypes.get_default_dtype()
        return {"real floating": real,
                "complex floating": dtypes.complex128 if real is dtypes.float64 else dtypes.complex64,
                "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of a kind, of several, or all of the standard, by name.

        Raises:
            ValueError: the kind is unknown.

        >>> from flambeau.interop import array_api as xp
        >>> sorted(xp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        found: dict[str, Any] = {}
        for each in kinds:
            if each not in _KINDS:
                raise ValueError(f"Unrecognized data type kind: {each!r}")
            found.update((dtype.name, dtype) for dtype in _KINDS[each])
        return found


def __array_namespace_info__() -> Info:
    """Devices, dtypes and capabilities of the namespace.

    >>> from flambeau.interop import array_api as xp
    >>> xp.__array_namespace_info__().devices()
    (device(type='cpu'),)
    """
    return Info()
