"""Collation: a list of samples becomes a batch of tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .... import dtypes
from ...._tensor.creation.from_data import as_tensor, tensor
from ...._tensor.memory.sharing import new_shared_tensor
from ...._tensor.shape.joining import stack_into_new
from ...._tensor.tensor import Tensor
from .containers import is_namedtuple, rebuild_mapping, rebuild_sequence

_Map = dict[Any, Callable[..., Any]]

#: NumPy dtypes of strings and objects
np_str_obj_array_pattern = re.compile(r"[SaUO]")

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}")


def default_convert(data: Any) -> Any:
    """Convert NumPy arrays and scalars to tensors, also in containers; everything else is unchanged.

    Args:
        data: a sample.

    >>> import numpy as np
    >>> from flambeau.utils.data import default_convert
    >>> default_convert({"x": np.array([0, 1]), "y": "text"})
    {'x': tensor([0, 1]), 'y': 'text'}
    """
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        if kind is np.ndarray and np_str_obj_array_pattern.search(data.dtype.str) is not None:
            return data
        return as_tensor(data)
    if isinstance(data, Mapping):
        return rebuild_mapping(data, lambda key: default_convert(data[key]))
    if is_namedtuple(data):
        return kind(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return rebuild_sequence(data, data, default_convert)
    return data


def collate(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """Collate samples by the functions of a map, and containers by their elements.

    Args:
        batch: a list of samples of the same structure.
        collate_fn_map: type, or tuple of types -> function of a batch, and of the map as `collate_fn_map`. The first
            type of which the samples are instances decides, unless their exact type is there.

    Raises:
        RuntimeError: sequences differ in length.
        TypeError: there is no function for the samples.

    >>> from flambeau.utils.data._utils.collate import collate
    >>> collate([{"a": 1}, {"a": 2}], collate_fn_map={int: lambda batch, *, collate_fn_map: sum(batch)})
    {'a': 3}
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for each in collate_fn_map:
            if isinstance(first, each):
                return collate_fn_map[each](batch, collate_fn_map=collate_fn_map)

    def collate_samples(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return rebuild_mapping(first, lambda key: collate_samples([sample[key] for sample in batch]))
    if is_namedtuple(first):
        return kind(*(collate_samples(samples) for samples in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if list(map(len, batch)).count(len(first)) != len(batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = list(zip(*batch, strict=False))
        if isinstance(first, tuple):
            return [collate_samples(samples) for samples in columns]
        return rebuild_sequence(first, columns, collate_samples)
    raise TypeError(default_collate_err_msg_format.format(kind))


# ----- the functions of `default_collate` ------------------------------------------------------


def collate_tensor_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """The tensors stacked; in a worker process, in shared memory."""
    from ...._tensor import functions
    from . import worker

    first = batch[0]
    if type(first) is not Tensor or type(first._array) is not np.ndarray:
        if getattr(first, "is_nested", False):
            raise RuntimeError("Batches of nested tensors are not currently supported by the default collate_fn; "
                               "please provide a custom collate_fn to handle them appropriately.")
        if first.layout.name.startswith("sparse"):
            raise RuntimeError("Batches of sparse tensors are not currently supported by the default collate_fn; "
                               "please provide a custom collate_fn to handle them appropriately.")
    out = None
    if worker._worker_info is not None:
        out = new_shared_tensor(first, (len(batch), *first.shape))
        if stack_into_new(batch, out):
            return out
    return functions.stack(batch, 0, out=out)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """The arrays as tensors, collated."""
    dtype = batch[0].dtype
    if np_str_obj_array_pattern.search(dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """A tensor of the scalars."""
    return as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """A tensor of the numbers, float64."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """A tensor of the numbers, int64 or bool."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: _Map | None = None) -> Any:
    """The batch, unchanged."""
    return batch


#: the functions of `default_collate`; programs add their own
default_collate_fn_map: _Map = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Collate samples: tensors, arrays and numbers become tensors with a new first dimension, also in containers.

    Args:
        batch: a list of samples of the same structure.

    Raises:
        RuntimeError: sequences or tensors differ in size.
        TypeError: the samples are of another type.

    >>> from flambeau.utils.data import default_collate
    >>> default_collate([{"x": 0, "name": "a"}, {"x": 1, "name": "b"}])
    {'x': tensor([0, 1]), 'name': ['a', 'b']}
    >>> default_collate([(0, 1.5), (2, 3.5)])
    [tensor([0, 2]), tensor([1.5000, 3.5000], dtype=flambeau.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
