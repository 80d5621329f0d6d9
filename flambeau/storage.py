"""`torch.storage`: typed and untyped storages."""

from __future__ import annotations

from typing import Any

from . import dtypes
from ._tensor import Tensor
from ._tensor.creation.from_data import asarray
from ._tensor.memory.storage import TypedStorage, UntypedStorage, check_storage_arguments, storage_name

__all__ = ["TypedStorage", "UntypedStorage"]


class _LegacyStorageMeta(type):
    """Metaclass of the classes of typed storages: every typed storage of the dtype is an instance."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The base of `FloatStorage` and its like, deprecated: their instances are typed storages."""

    def __new__(cls, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None, device: Any = None,
                _internal: bool = False) -> Any:
        if not hasattr(cls, "dtype"):
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        expected = (f"{cls}.__new__ received an invalid combination of arguments. Expected one of:\n * no arguments\n"
                    " * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n")
        for name, value in (("device", device), ("dtype", dtype)):
            if value is not None:
                raise RuntimeError(f"{expected}Keyword argument '{name}' cannot be specified")
        check_storage_arguments(args, wrap_storage, expected)
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)


for _dtype in dtypes.ALL:
    if _dtype not in dtypes.WITHOUT_STORAGE_CLASS:
        _name = storage_name(_dtype)
        globals()[_name] = _LegacyStorageMeta(_name, (_LegacyStorage,), {
            "dtype": _dtype, "__module__": __name__.rpartition(".")[0],
            "__doc__": f"A typed storage of {_dtype.name}; deprecated, use `UntypedStorage`.\n\n>>> import flambeau as "
                       f"torch\n>>> torch.{_name}(2).size()\n2"})


class _QuantizedStorage(_LegacyStorage):
    """The base of storages of quantized dtypes, which have no instances."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.{cls.__name__}: flambeau has no quantized tensors")


for _dtype in dtypes.WITHOUT_DATA:
    if _dtype.name.startswith(("q", "quint")):
        _name = f"{_dtype.scalar_name}Storage"
        globals()[_name] = _LegacyStorageMeta(_name, (_QuantizedStorage,), {
            "dtype": _dtype, "__module__": __name__.rpartition(".")[0],
            "__doc__": f"A typed storage of {_dtype.name}, which is left out.\n\n>>> import flambeau as torch\n"
                       f">>> torch.{_name}.dtype\nflambeau.{_dtype.name}"})

_storage_classes = {value for value in globals().values() if isinstance(value, type) and issubclass(
    value, (TypedStorage, UntypedStorage)) and value not in (_LegacyStorage, _QuantizedStorage)}


def _dtype_to_storage_type_map() -> dict[dtypes.dtype, str]:
    """The names of the typed storages' classes by dtype."""
    return {value.dtype: value.__name__ for value in _storage_classes if issubclass(value, _LegacyStorage)}


def _storage_type_to_dtype_map() -> dict[str, dtypes.dtype]:
    """The dtypes of the typed storages' classes by name."""
    return {name: dtype for dtype, name in _dtype_to_storage_type_map().items()}


def __getattr__(name: str) -> Any:
    if name == "Storage":  # the class of the default dtype
        return globals()[storage_name(dtypes.get_default_dtype())]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def is_storage(obj: Any) -> bool:
    """Whether an object is a storage.

    >>> import flambeau as torch
    >>> torch.is_storage(torch.ones(2).untyped_storage())
    True
    """
    return isinstance(obj, (TypedStorage, UntypedStorage))


def from_file(filename: Any, shared: bool | None = None, size: int | None = 0, *, dtype: dtypes.dtype | None = None,
              layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor of one dimension on a file that is mapped into memory (`UntypedStorage.from_file`).

    Args:
        filename: of the file.
        shared: whether writes go to the file, which is made or lengthened if needed.
        size: the number of elements.
        dtype: of the elements; default: the default dtype.
        layout: strided.
        device: the CPU.
        requires_grad: whether operators on it are recorded.
        pin_memory: not supported.

    Raises:
        RuntimeError: the file cannot be opened, or it is too small and not shared (PyTorch's texts).

    >>> import os, tempfile
    >>> import flambeau as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "numbers")
    ...     torch.from_file(name, shared=True, size=2, dtype=torch.int32).fill_(7)
    tensor([7, 7], dtype=flambeau.int32)
    """
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    dtype = dtype or dtypes.get_default_dtype()
    memory = UntypedStorage.from_file(filename, bool(shared), (size or 0) * dtype.itemsize)
    return asarray(memory, dtype=dtype, device=device, requires_grad=requires_grad)


def _load_from_bytes(b: bytes) -> Any:
    """Read one storage of a plain pickle (`pickle.dumps` of a tensor in PyTorch): bytes written by `torch.save`."""
    import io

    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)
