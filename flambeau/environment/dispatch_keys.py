"""`torch._C.DispatchKey`: the names of PyTorch's dispatch keys, and sets of them.

Operators are not dispatched by keys here. One key has an effect: where that of autocast is excluded, autocast is off.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from .._tensor import Tensor
from .._tensor.overriding.dispatch import extra_keys, handles
from ..amp import state as autocast
from ..devices import strided
from ..modes import inference
from ..ops.tags import Numbered

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


#: PyTorch's numbers of `_KEYS` and of `_KINDS`, in their order; those of the kinds' backends follow each other
_NUMBERS = (0, 155, 154, 153, 151, 22, 20, 150, 16, 18, 17, 11, 19, 41, 13, 42, 14, 152, 34, 36, 39, 46, 45, 15,
            24, 31, 27, 29, 28, 32, 33)
_NUMBERS_OF_KINDS = (1, 5, 8, 9, 10, 21)


def _all_numbers() -> dict[str, int]:
    numbers = dict(zip(_KEYS.split(), _NUMBERS, strict=True))
    start = 48
    for kind, number in zip(_KINDS, _NUMBERS_OF_KINDS, strict=True):
        prefix = {"Dense": "", "AutogradFunctionality": "Autograd"}.get(kind, kind)
        backends = [f"StartOf{kind}Backends", *(prefix + backend for backend in _BACKENDS.split())]
        numbers |= {kind: number} | {name: start + i for i, name in enumerate(backends)}
        start += len(backends)
        numbers[f"EndOf{kind}Backends"] = start - 1
    return numbers


_enumeration: Any = Numbered
DispatchKey = _enumeration("DispatchKey", _all_numbers(), module="torch")
DispatchKey.__doc__ = """A key of PyTorch's dispatcher.

>>> import flambeau as torch
>>> int(torch.DispatchKey.CPU)
49
"""

def _priority(key: Any) -> tuple[int, int]:
    """The place of a key in PyTorch's order: that of what it does, then its backend's."""
    number = int(key)
    if number < 48:
        return number, 0
    return _NUMBERS_OF_KINDS[(number - 48) // (len(_BACKENDS.split()) + 1)], number


class DispatchKeySet:
    """A set of dispatch keys.

    >>> import flambeau as torch
    >>> torch.DispatchKeySet(torch.DispatchKey.AutogradCPU) | torch.DispatchKeySet(torch.DispatchKey.CPU)
    DispatchKeySet(CPU, AutogradCPU)
    """

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

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in sorted(self._keys, key=_priority))})"

    def has(self, key: Any) -> bool:
        """Whether a key is in the set."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with a key."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(self._keys - {key})


def _autocast_keys() -> frozenset[Any]:
    return frozenset(key for key in DispatchKey if key.name.startswith("Autocast"))


def dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys that no operator of this thread goes through."""
    off = set() if autocast._is_any_autocast_enabled() else set(_autocast_keys())
    if inference.get():
        off |= {DispatchKey["AutogradOther"], DispatchKey["AutogradNestedTensor"]}
    return DispatchKeySet(off)


def dispatch_tls_local_include_set() -> DispatchKeySet:
    """The keys that all operators of this thread go through."""
    return DispatchKeySet([DispatchKey[name] for name in (
        "BackendSelect", *([] if inference.get() else ["ADInplaceOrView"]))])


def dispatch_keys(x: Tensor) -> DispatchKeySet:
    """The keys that a tensor gives an operator.

    >>> import flambeau as torch
    >>> torch._C._dispatch_keys(torch.ones(2, device="meta"))
    DispatchKeySet(Meta, ADInplaceOrView, AutogradMeta)
    """
    backend = {"cpu": "CPU", "meta": "Meta", "cuda": "CUDA"}[x.device.type]
    kind = "NestedTensor" if x.is_nested and type(x) is Tensor else {
        "strided": "", "sparse_coo": "Sparse", "jagged": ""}.get(str(x.layout).rpartition(".")[2], "SparseCsr")
    names = [kind + backend]
    if x.layout is strided:
        names += [*(["Conjugate"] if x.is_conj() else []), *(["Negative"] if x.is_neg() else [])]
    if not x.is_inference():
        names += ["ADInplaceOrView", f"Autograd{backend}"]
    if handles(type(x)):
        names += ["Python", "PythonTLSSnapshot"]
    if backend != "Meta":
        names.append(f"Autocast{backend}")
    found = DispatchKeySet([DispatchKey[name] for name in names])
    extra = extra_keys.get(id(x))
    return found | extra[1] if extra is not None and extra[0]() is x else found


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


class ExcludeDispatchKeyGuard(_ExcludeDispatchKeyGuard):
    """The same for as long as the object lives."""

    def __init__(self, keys: DispatchKeySet) -> None:
        super().__init__(keys)
        super().__enter__()

    def __enter__(self) -> None:
        pass

    def __del__(self) -> None:
        self._stack.close()
