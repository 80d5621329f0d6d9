"""`torch._C.DispatchKey`: the names of PyTorch's dispatch keys, and sets of them.

Operators are not dispatched by keys here. One key has an effect: where that of autocast is excluded, autocast is off.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from ..amp import state as autocast

_BACKENDS = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta")
_KEYS = (
    "Undefined CompositeExplicitAutogradNonFunctional CompositeExplicitAutograd "
    "CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd AutogradNestedTensor AutogradOther "
    "Autograd Conjugate ZeroTensor Negative BackendSelect ADInplaceOrView PythonTLSSnapshot Python "
    "FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode FuncTorchBatchedDecomposition "
    "FuncTorchBatched FuncTorchVmapMode FuncTorchGradWrapper PythonDispatcher PreDispatch Functionalize "
    "AutocastCPU AutocastMPS AutocastXPU AutocastHPU AutocastIPU AutocastCUDA AutocastPrivateUse1")
_KINDS = ("Dense", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "AutogradFunctionality")


def _all_names() -> list[str]:
    names = _KEYS.split()
    for kind in _KINDS:
        prefix = {"Dense": "", "AutogradFunctionality": "Autograd"}.get(kind, kind)
        names += [kind, f"StartOf{kind}Backends", *(prefix + backend for backend in _BACKENDS.split())]
        names.append(f"EndOf{kind}Backends")
    return names


DispatchKey = enum.IntEnum("DispatchKey", _all_names(), module="torch._C", start=0)  # type: ignore[misc]


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, keys: Any = ()) -> None:
        self._keys = frozenset(keys if isinstance(keys, Iterable) else (keys,))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def has(self, key: Any) -> bool:
        """Whether a key is in the set."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with a key."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(self._keys - {key})


class _ExcludeDispatchKeyGuard:
    """A block in which the handlers of some keys are off: of autocast's, autocast."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._keys = keys
        self._stack = ExitStack()

    def __enter__(self) -> None:
        if self._keys.has(DispatchKey["AutocastCPU"]):
            self._stack.enter_context(autocast.excluded())

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
