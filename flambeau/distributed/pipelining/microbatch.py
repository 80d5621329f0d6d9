"""Microbatches: arguments split into chunks along a dimension, and results put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import config
from ..._tensor import Tensor
from ..._tensor.shape.joining import cat
from ..._tensor.shape.splitting import tensor_split
from ...trees import tree_flatten, tree_map, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]

DEFAULT_CHUNK_DIM = 0


class TensorChunkSpec:
    """The dimension along which an argument is split, or a result is put together.

    >>> from flambeau.distributed.pipelining.microbatch import TensorChunkSpec
    >>> print(TensorChunkSpec(1), TensorChunkSpec.from_tuple((0, 1))[1])
    TensorChunkSpec(1) TensorChunkSpec(1)

    Args:
        split_dim: the dimension.
    """

    split_dim: int

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{config.module_name}.distributed.pipelining.microbatch.TensorChunkSpec({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> Any:
        """Specifications of positional arguments, from their dimensions."""
        return tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> Any:
        """Specifications of keyword arguments, from their dimensions."""
        return tree_map(TensorChunkSpec, chunk_dims)


class _Replicate:
    """The specification of an argument that all microbatches get whole."""


class _CustomReducer:
    """The specification of a result whose chunks are reduced.

    Args:
        init_value: what the reduction starts with.
        reduce_fn: takes the value so far and a chunk's.
    """

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]) -> None:
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    """The specification of a loss whose chunks are reduced."""


def _is_whole(spec: Any) -> bool:
    return spec is _Replicate or isinstance(spec, _Replicate)


def _is_block_mask(value: Any) -> bool:
    from ...nn.attention.block_mask import BlockMask

    return isinstance(value, BlockMask)


def _size(value: Any, spec: Any, chunks: int) -> int:
    """How many chunks an argument has at most."""
    if _is_whole(spec):
        return chunks
    if isinstance(value, Tensor) or _is_block_mask(value):
        if not isinstance(spec, TensorChunkSpec):
            raise AssertionError(f"Expected TensorChunkSpec, got {type(spec)}")
        if isinstance(value, Tensor):
            return value.size(spec.split_dim)
        if spec.split_dim:
            raise AssertionError("BlockMask only supports split_dim=0")
        count = value.kv_num_blocks.size(0)
        return chunks if count == 1 else int(count)  # one mask serves all
    raise ValueError(f"Unsupported chunk spec: {spec} and value: {value} combination.")


def split_tensor(tensor: Tensor, spec: TensorChunkSpec, num_chunks: int) -> Sequence[Tensor]:
    """A tensor's chunks along a dimension; the first are longer by one where the size is no multiple.

    Args:
        tensor: what is split.
        spec: the dimension.
        num_chunks: at most the dimension's size.

    Raises:
        AssertionError: the dimension is smaller.
    """
    if tensor.size(spec.split_dim) < num_chunks:
        raise AssertionError(f"Tensor size {tensor.size(spec.split_dim)} is smaller than num_chunks")
    chunks: Sequence[Tensor] = tensor_split(tensor, num_chunks, spec.split_dim)
    if tensor.requires_grad and tensor.is_leaf:
        for chunk in chunks:
            chunk.retain_grad()
    return chunks


def _split_block_mask(mask: Any, chunks: int) -> list[Any]:
    """A mask of each chunk of the batch; its function gets the batch's numbers of the whole."""
    if mask.kv_num_blocks.size(0) == 1:
        return [mask] * chunks

    def parts(tensor: Tensor | None) -> Sequence[Any]:
        return [None] * chunks if tensor is None else tensor_split(tensor, chunks, 0)

    masks, start = [], 0
    for numbers, indices, full_numbers, full_indices in zip(
            parts(mask.kv_num_blocks), parts(mask.kv_indices), parts(mask.full_kv_num_blocks),
            parts(mask.full_kv_indices), strict=True):
        def shifted(b: Any, h: Any, q: Any, kv: Any, first: int = start) -> Any:
            return mask.mask_mod(b + first, h, q, kv)

        masks.append(type(mask).from_kv_blocks(
            kv_num_blocks=numbers, kv_indices=indices, full_kv_num_blocks=full_numbers,
            full_kv_indices=full_indices, BLOCK_SIZE=mask.BLOCK_SIZE, mask_mod=shifted,
            seq_lengths=mask.seq_lengths))
        start += numbers.size(0)
    return masks


def _split(arguments: dict[Any, Any], specs: dict[Any, Any], chunks: int) -> list[dict[Any, Any]]:
    """The arguments of each microbatch; fewer than `chunks` if an argument is too small."""
    if not arguments:
        return [{} for _ in range(chunks)]
    if len(arguments) != len(specs):
        raise AssertionError(f"args_dict.keys() = {list(arguments)} args_chunk_spec.keys() = {list(specs)}")
    values, structure = tree_flatten(arguments, _is_block_mask)
    flat_specs = tree_flatten(specs)[0]
    count = min([chunks, *(_size(value, spec, chunks) for value, spec in zip(values, flat_specs, strict=True))])
    columns = []
    for value, spec in zip(values, flat_specs, strict=True):
        if _is_whole(spec):
            columns.append([value] * count)
        elif isinstance(value, Tensor):
            columns.append(list(split_tensor(value, spec, count)))
        else:
            columns.append(_split_block_mask(value, count))
    return [tree_unflatten([column[i] for column in columns], structure) for i in range(count)]


def split_args_kwargs_into_chunks(args: tuple[Any, ...], kwargs: dict[str, Any] | None, chunks: int,
                                  args_chunk_spec: tuple[Any, ...] | None = None,
                                  kwargs_chunk_spec: dict[str, Any] | None = None
                                  ) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """The arguments of microbatches.

    Args:
        args, kwargs: the arguments of the whole batch.
        chunks: the number of microbatches; there are fewer if a tensor is smaller.
        args_chunk_spec, kwargs_chunk_spec: how each is split, in the structure of the arguments. Default: tensors along
            the first dimension, all else as it is.

    Returns:
        Positional and keyword arguments of each microbatch.

    Raises:
        AssertionError: a specification is missing.
        ValueError: a value cannot be split as its specification says.

    >>> import flambeau as torch
    >>> from flambeau.distributed.pipelining.microbatch import split_args_kwargs_into_chunks
    >>> split_args_kwargs_into_chunks((torch.arange(4),), {"scale": 2}, 2)
    ([(tensor([0, 1]),), (tensor([2, 3]),)], [{'scale': 2}, {'scale': 2}])
    """
    def default(value: Any) -> Any:
        return TensorChunkSpec(DEFAULT_CHUNK_DIM) if isinstance(value, Tensor) or _is_block_mask(value) \
            else _Replicate()

    kwargs = kwargs or {}
    args_specs = tree_map(default, args, is_leaf=_is_block_mask) if args_chunk_spec is None else args_chunk_spec
    kwargs_specs = tree_map(default, kwargs, is_leaf=_is_block_mask) if kwargs_chunk_spec is None \
        else kwargs_chunk_spec
    numbered, numbered_specs = dict(enumerate(args)), dict(enumerate(args_specs))
    args_split = _split(numbered, numbered_specs, chunks)
    kwargs_split = _split(kwargs, kwargs_specs, len(args_split))
    if len(kwargs_split) < len(args_split):  # e.g. when no positional argument is a tensor
        args_split = _split(numbered, numbered_specs, len(kwargs_split))
    if len(args_split) != len(kwargs_split):
        raise RuntimeError("args and kwargs are split into different number of chunks: "
                           f"{len(args_split)}, {len(kwargs_split)}")
    return [tuple(each[i] for i in range(len(each))) for each in args_split], kwargs_split


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """The result of the whole batch, from those of microbatches.

    Args:
        chunks: the results of microbatches.
        chunk_spec: how each tensor is put together, in the structure of the results; along the first dimension if None.

    Raises:
        ValueError: a result has not the specification's structure.
        AssertionError: a result that is no tensor differs between microbatches.

    >>> import flambeau as torch
    >>> from flambeau.distributed.pipelining.microbatch import merge_chunks
    >>> merge_chunks([torch.arange(2), torch.arange(3)], None)
    tensor([0, 1, 0, 1, 2])
    """
    if chunk_spec is None:
        first, structure = tree_flatten(chunks[0])
        specs: list[Any] = [TensorChunkSpec(DEFAULT_CHUNK_DIM)] * len(first)
    else:
        specs, structure = tree_flatten(chunk_spec)
    rows = []
    for chunk in chunks:
        row = tree_flatten(chunk)[0]
        if len(row) != len(specs):
            raise ValueError(f"Chunk {chunk} did not match chunk spec {chunk_spec}")
        rows.append(row)
    merged = []
    for column, spec in zip(zip(*rows, strict=True), specs, strict=True):
        if isinstance(spec, TensorChunkSpec):
            merged.append(cat(list(column), dim=spec.split_dim))
        elif isinstance(spec, _CustomReducer):
            value = spec.init_value
            for each in column:
                value = spec.reduce_fn(value, each)
            merged.append(value)
        else:
            for each in column[1:]:
                if not each == column[0]:
                    raise AssertionError(f"Expected {column[0]}, got {each}")
            merged.append(column[0])
    return tree_unflatten(merged, structure)
