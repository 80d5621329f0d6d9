"""`torch.distributed.utils`: what wrappers of modules do to arguments, storages and states of modules.

PyTorch's names, which packages import; all but the checks of states work on this process alone.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import Tensor
from ..c10d.buckets import broadcast_coalesced
from ..engine.grad_mode import no_grad
from ..nn import Module
from ..nn.utils.rnn import PackedSequence
from .module_states import _sync_module_states
from .reducers import _verify_params_across_processes

__all__ = ["_sync_module_states"]


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _pack_kwargs(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Arguments as positional ones, and the names of those at the end that have names.

    >>> from flambeau.distributed.utils import _pack_kwargs
    >>> _pack_kwargs(1, 2, a=3)
    ((1, 2, 3), ('a',))
    """
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(flat_args: tuple[Any, ...], kwarg_keys: tuple[str, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments, and those with names, of what `_pack_kwargs` returned.

    Raises:
        AssertionError: more names than arguments (PyTorch's text).
    """
    if len(kwarg_keys) > len(flat_args):
        raise AssertionError(f"too many keys {len(kwarg_keys)} vs. {len(flat_args)}")
    count = len(flat_args) - len(kwarg_keys)
    return flat_args[:count], dict(zip(kwarg_keys, flat_args[count:], strict=True))


def _apply_to_tensors(fn: Callable[[Tensor], Any], container: Any) -> Any:
    """A function's results in place of tensors, in nested containers and dataclasses.

    Args:
        fn: the function.
        container: tensors, and what holds them; of a `PackedSequence` the function sees the data, which it keeps.
    """
    def apply(value: Any) -> Any:
        if isinstance(value, Tensor):
            return fn(value)
        if isinstance(value, PackedSequence):
            apply(value.data)
            return value
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.replace(value, **{each.name: apply(getattr(value, each.name))
                                                 for each in dataclasses.fields(value)})
        if isinstance(value, OrderedDict):
            return type(value)((key, apply(each)) for key, each in value.items())
        if isinstance(value, dict):
            return {key: apply(each) for key, each in value.items()}
        if _is_namedtuple(value):
            return type(value)(*map(apply, value))
        if isinstance(value, (list, tuple, set)):
            return type(value)(map(apply, value))
        return value

    return apply(container)


def _cast_forward_inputs(dtype: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Arguments whose floating-point tensors have a dtype; unchanged if it is None."""
    if dtype is None:
        return args, kwargs

    def cast(tensor: Tensor) -> Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() and tensor.dtype != dtype else tensor

    return _apply_to_tensors(cast, args), _apply_to_tensors(cast, kwargs)


def _recursive_to(inputs: Any, target_device: Any, use_side_stream_for_tensor_copies: bool) -> Any:
    """Nested inputs on a device, in a list or tuple of one element: one for each of the devices."""
    def move(value: Any) -> Any:
        if isinstance(value, (Tensor, PackedSequence)):
            device = value.data.device if isinstance(value, PackedSequence) else value.device
            return (value if device == target_device else value.to(target_device),)
        if _is_namedtuple(value):
            return [type(value)(*each) for each in zip(*map(move, value), strict=False)]
        if isinstance(value, tuple) and value:
            return list(zip(*map(move, value), strict=False))
        if isinstance(value, list) and value:
            return [list(each) for each in zip(*map(move, value), strict=False)]
        if isinstance(value, dict) and value:
            return [type(value)(each) for each in zip(*map(move, value.items()), strict=False)]
        return [value]

    return move(inputs)


def _to_kwargs(inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_device: Any,
               use_side_stream_for_tensor_copies: bool) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """The arguments of a call on a device: a tuple of one tuple, and a tuple of one dict."""
    moved = _recursive_to(inputs, target_device, use_side_stream_for_tensor_copies) if inputs else []
    named = _recursive_to(kwargs, target_device, use_side_stream_for_tensor_copies) if kwargs else []
    count = max(len(moved), len(named))
    return (*moved, *[()] * (count - len(moved))), (*named, *[{} for _ in range(count - len(named))])


def _p_assert(cond: Any, s: str, raise_assertion_error: bool = True) -> None:
    """Print a text and the stack, and raise, unless a condition holds.

    Raises:
        AssertionError: it does not hold.
    """
    if not cond:
        print(s)
        traceback.print_stack()
        if raise_assertion_error:
            raise AssertionError(s)


@no_grad()
def _alloc_storage(tensor: Tensor, size: Any) -> None:
    """Give a tensor that has been freed memory for a number of elements; its values are not set."""
    storage, nbytes = tensor.untyped_storage(), size.numel() * tensor.element_size()
    if storage.nbytes() != nbytes:
        _p_assert(storage.nbytes() == 0, "Tensor storage should have been resized to be 0 but got PLACEHOLDER")
        storage.resize_(nbytes)


@no_grad()
def _free_storage(tensor: Tensor) -> None:
    """Free the memory of a tensor, which must be the only one that uses it.

    Raises:
        NotImplementedError: a tensor with elements keeps its memory in flambeau.
    """
    storage = tensor.untyped_storage()
    if storage.nbytes():
        _p_assert(tensor.storage_offset() == 0,
                  "Freeing a tensor's storage is unsafe when it is not the sole occupant\n"
                  f"storage offset: {tensor.storage_offset()}\nstorage size: {storage.nbytes()}\n"
                  f"tensor shape: {tensor.shape}")
        storage.resize_(0)


def _data_ptr_allocated(tensor: Tensor) -> bool:
    """Whether a tensor has memory."""
    return tensor.untyped_storage().data_ptr() > 0


def _verify_param_shape_across_processes(process_group: Any, tensors: Sequence[Tensor], logger: Any = None) -> Any:
    """Check that tensors have the same shapes in all processes.

    Raises:
        RuntimeError: they have not.
    """
    return _verify_params_across_processes(process_group, tensors, logger)


def _sync_params_and_buffers(process_group: Any, module_states: list[Tensor], broadcast_bucket_size: int,
                             src: int) -> None:
    """Copy tensors from one process to all."""
    if module_states:
        broadcast_coalesced(process_group, module_states, broadcast_bucket_size, src)


def _replace_by_prefix(state_dict: dict[str, Any], old_prefix: str, new_prefix: str) -> None:
    """Rename the keys that begin with a prefix, in place.

    Raises:
        ValueError: the prefixes are equal (PyTorch's text).
    """
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for key in [key for key in state_dict if key.startswith(old_prefix)]:
        state_dict[new_prefix + key[len(old_prefix):]] = state_dict.pop(key)


def _get_root_modules(modules: list[Module]) -> list[Module]:
    """The modules that are in no other of a list.

    Args:
        modules: the list.
    """
    inside = {child for module in modules for child in module.modules() if child is not module}
    return [module for module in modules if module not in inside]


