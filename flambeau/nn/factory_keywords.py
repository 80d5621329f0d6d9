"""`factory_kwargs`: the keyword arguments of a module that its tensors are made with."""

from __future__ import annotations

from typing import Any

__all__ = ["factory_kwargs"]


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The keyword arguments for functions that create tensors: `device`, `dtype`, `memory_format`.

    Args:
        kwargs: those three, or "factory_kwargs", a dict of them.

    Raises:
        TypeError: another name, or a name is given twice.

    >>> import flambeau as torch
    >>> torch.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": torch.float64}})
    {'dtype': flambeau.float64, 'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    if unknown := kwargs.keys() - {"device", "dtype", "memory_format", "factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unknown}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in ("device", "dtype", "memory_format"):
        if name in kwargs:
            if name in result:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            result[name] = kwargs[name]
    return result
