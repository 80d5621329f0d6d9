"""`ShardedTensor`: a tensor whose parts are in several processes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import flambeau as torch

from ... import distributed_c10d as c10d
from .. import sharding_spec as shard_spec
from ..loading_group import _get_current_process_group
from ..sharding_spec._internals import check_tensor, validate_non_overlapping_shards_metadata
from ..sharding_spec.api import _dispatch_custom_op, _has_custom_op, rank_and_device
from ..tensor_metadata import ShardedTensorMetadata, TensorProperties
from .checks import global_metadata, local_metadata
from .shard import Shard

#: functions on sharded tensors, those of this package and those of programs
_SHARDED_OPS: dict[Any, Callable[..., Any]] = {}
_CUSTOM_SHARDED_OPS: dict[Any, Callable[..., Any]] = {}
_FORMATS = "Only `torch.contiguous_format` or `torch.preserve_format` is supported!"


def flat_size(size: Sequence[Any]) -> Any:
    """A shape that was passed as numbers or as one sequence."""
    return torch.Size(size[0] if len(size) == 1 and isinstance(size[0], (list, tuple)) else size)


class ShardedTensorBase(torch.Tensor):
    """A tensor without elements that knows its parts in this process."""

    _sharding_spec: shard_spec.ShardingSpec
    _metadata: ShardedTensorMetadata
    _local_shards: list[Shard]

    @staticmethod
    def __new__(cls: Any, sharding_spec: shard_spec.ShardingSpec, *size: Any, **kwargs: Any) -> Any:
        if not isinstance(sharding_spec, shard_spec.ShardingSpec):
            raise ValueError(f"Expecting ShardingSpec but got: {type(sharding_spec)}")
        sizes, dtype = flat_size(size), kwargs.get("dtype") or torch.get_default_dtype()
        options = {"layout": kwargs.get("layout", torch.strided), "pin_memory": kwargs.get("pin_memory", False),
                   "requires_grad": kwargs.get("requires_grad", False)}
        metadata = sharding_spec.build_metadata(sizes, tensor_properties=TensorProperties(dtype, **options))
        base: Any = torch.Tensor
        result: Any = base._make_wrapper_subclass(cls, sizes, dtype=dtype, **options)
        result._sharding_spec, result._metadata, result._local_shards = sharding_spec, metadata, []
        return result

    def metadata(self) -> ShardedTensorMetadata:
        """All parts of the tensor."""
        return self._metadata

    def local_shards(self) -> list[Shard]:
        """The parts in this process."""
        return self._local_shards

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"A {cls.__name__} object is being used from c++ while calling {func.__module__}."
                           f"{func.__name__} but the there is no custom __torch_dispatch__ implementation for it.")


class ShardedTensor(ShardedTensorBase):
    """A tensor whose parts are in several processes; all processes make it.

    Args:
        sharding_spec: how it is divided.
        size: its shape.
        dtype, layout, requires_grad, pin_memory, memory_format: of its parts, which are contiguous.
        process_group: the processes.
        init_rrefs: refused: flambeau has no RPC.

    >>> import flambeau.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> spec = shard_spec.ChunkShardingSpec(0, ["rank:0/cpu"])
    >>> tuple(ShardedTensor(spec, 2, 3).local_tensor().shape)
    (2, 3)
    >>> dist.destroy_process_group()
    """

    @staticmethod
    def __new__(cls: Any, sharding_spec: shard_spec.ShardingSpec, *size: Any, **kwargs: Any) -> Any:
        return ShardedTensorBase.__new__(cls, sharding_spec, *size, **kwargs)

    def __init__(self, sharding_spec: shard_spec.ShardingSpec, *size: Any, dtype: Any = None,
                 layout: Any = torch.strided, requires_grad: bool = False, pin_memory: bool = False,
                 memory_format: Any = torch.contiguous_format, process_group: Any = None,
                 init_rrefs: bool = False) -> None:
        self._prepare_init(process_group, init_rrefs)
        if layout != torch.strided:
            raise ValueError("Only torch.strided layout is currently supported")
        if memory_format != torch.contiguous_format:
            raise ValueError("Only torch.contiguous_format memory_format is currently supported")
        self._metadata.tensor_properties.memory_format = memory_format
        properties = self._metadata.tensor_properties
        for each in self._metadata.shards_metadata:
            rank, device = rank_and_device(self._process_group, each.placement)
            if rank == c10d.get_rank():
                local = torch.empty(each.shard_sizes, dtype=properties.dtype, device=device,
                                    requires_grad=properties.requires_grad, pin_memory=properties.pin_memory)
                self._local_shards.append(Shard(local, each))

    def _prepare_init(self, process_group: Any = None, init_rrefs: bool = False) -> None:
        if init_rrefs:
            raise RuntimeError("RPC Framework needs to be initialized using torch.distributed.rpc.init_rpc if "
                               "init_rrefs is set to True; flambeau has no RPC")
        self._init_rrefs = init_rrefs
        self._sharded_tensor_id = None
        self._process_group = self._normalize_pg(process_group)

    @classmethod
    def _normalize_pg(cls, process_group: Any) -> Any:
        return c10d._get_default_group() if process_group is None else process_group

    @classmethod
    def _init_from_local_shards(cls, local_shards: list[Shard], *global_size: Any, process_group: Any = None,
                                init_rrefs: bool = False) -> ShardedTensor:
        """A tensor of the parts that each process has.

        Args:
            local_shards: this process's parts.
            global_size: the shape; with None among its sizes the parts follow each other along dimension 0.
            process_group: the processes.
            init_rrefs: refused.
        """
        recalculate = any(size is None for size in global_size)
        group, rank = cls._normalize_pg(process_group), c10d.get_rank()
        sizes = flat_size([0 if size is None else size for size in global_size])
        local = local_metadata(local_shards, sizes, rank, group) if local_shards else None
        gathered: list[Any] = [None] * c10d.get_world_size(group)
        c10d.all_gather_object(gathered, local, group=group)
        metadata = global_metadata(gathered, recalculate)
        if recalculate:
            mine = [each for each in metadata.shards_metadata if each.placement.rank() == rank]  # type: ignore[union-attr]
            if len(mine) != 1 or not local_shards:
                raise AssertionError(f"should has and only has one metadata for local rank, actual:{mine}")
            local_shards[0].metadata = mine[0]
        spec = shard_spec._infer_sharding_spec_from_shards_metadata(metadata.shards_metadata)
        return cls._made(spec, metadata, local_shards, group, init_rrefs)

    @classmethod
    def _made(cls, spec: Any, metadata: ShardedTensorMetadata, local_shards: list[Shard], group: Any,
              init_rrefs: bool) -> ShardedTensor:
        properties = metadata.tensor_properties
        result: ShardedTensor = cls.__new__(cls, spec, metadata.size, dtype=properties.dtype, layout=properties.layout,
                                            pin_memory=properties.pin_memory, requires_grad=properties.requires_grad)
        result._prepare_init(group, init_rrefs)
        result._local_shards = local_shards
        return result

    @classmethod
    def _init_from_local_tensor(cls, local_tensor: Any, sharding_spec: shard_spec.ShardingSpec, *global_size: Any,
                                process_group: Any = None, init_rrefs: bool = False) -> ShardedTensor:
        """A tensor whose part in this process is one tensor.

        Raises:
            ValueError: it is not contiguous.
        """
        if not local_tensor.is_contiguous():
            raise ValueError("local_tensor is not a contiguous Tensor.")
        metadata = sharding_spec.build_metadata(flat_size(global_size),
                                                TensorProperties.create_from_tensor(local_tensor))
        group = cls._normalize_pg(process_group)
        mine = [Shard(local_tensor, each) for each in metadata.shards_metadata
                if rank_and_device(group, each.placement)[0] == c10d.get_rank()]
        return cls._init_from_local_shards_and_global_metadata(mine, metadata, group, init_rrefs, sharding_spec)

    @classmethod
    def _init_from_local_shards_and_global_metadata(
            cls, local_shards: list[Shard], sharded_tensor_metadata: ShardedTensorMetadata, process_group: Any = None,
            init_rrefs: bool = False, sharding_spec: Any = None) -> ShardedTensor:
        """A tensor of this process's parts, where each process knows all parts already.

        Raises:
            RuntimeError: this process has another number of parts.
            ValueError: a part has another dtype, device or size than the metadata say.
        """
        group, rank = cls._normalize_pg(process_group), c10d.get_rank()
        shards, properties = sharded_tensor_metadata.shards_metadata, sharded_tensor_metadata.tensor_properties
        mine = [each for each in shards if rank_and_device(group, each.placement)[0] == rank]
        if len(local_shards) != len(mine):
            raise RuntimeError(f"Number of local shards ({len(local_shards)}) does not match number of local shards "
                               f"metadata in sharded_tensor_metadata ({len(mine)}) on rank ({rank}) ")
        if not shards:
            raise ValueError("shards_metadata must not be empty!")
        if properties.layout != torch.strided:
            raise ValueError("Only torch.strided layout is currently supported")
        for shard in local_shards:
            _compare(shard, properties)
        validate_non_overlapping_shards_metadata(shards)
        check_tensor(shards, list(sharded_tensor_metadata.size))
        spec = sharding_spec or shard_spec._infer_sharding_spec_from_shards_metadata(shards)
        return ShardedTensor._made(spec, sharded_tensor_metadata, local_shards, group, init_rrefs)

    def sharding_spec(self) -> shard_spec.ShardingSpec:
        """How the tensor is divided."""
        return self._sharding_spec

    def local_tensor(self) -> Any:
        """The one part in this process.

        Raises:
            NotImplementedError: there is none, or there are several.
        """
        if len(self._local_shards) != 1:
            raise NotImplementedError("Only single local shard is supported. Number of shards: "
                                      f"{len(self._local_shards)}")
        return self._local_shards[0].tensor

    def gather(self, dst: int = 0, out: Any = None, enforce_dtype: bool = False, dtype: Any = None) -> None:
        """Write all parts into a tensor of one process; all processes call it.

        Args:
            dst: the process.
            out: its tensor, of the whole shape; None in all others.
            enforce_dtype: deprecated: send in the dtype of `out`.
            dtype: the dtype in which the parts are sent.

        Raises:
            ValueError: `out` is missing, has another shape, or was passed by another process.
        """
        if enforce_dtype:
            warnings.warn("`enforce_dtype` is deprecated. Please use `dtype` instead.", FutureWarning, stacklevel=2)
        rank, size = c10d.get_rank(self._process_group), self._metadata.size
        if rank == dst and out is None:
            raise ValueError(f"Argument ``dst_tensor`` must be specified on destination rank {dst}")
        if rank == dst and tuple(out.size()) != tuple(size):
            raise ValueError(f"Argument ``dst_tensor`` have size {tuple(out.size())},but should be {tuple(size)}")
        if rank != dst and out is not None:
            raise ValueError("Argument ``dst_tensor`` must NOT be specified on non-destination ranks.")
        filled, starts = [0] * c10d.get_world_size(self._process_group), []
        for each in self._metadata.shards_metadata:
            owner: Any = each.placement.rank()  # type: ignore[union-attr]
            starts.append((owner, filled[owner], each))
            filled[owner] += prod(each.shard_sizes)
        if enforce_dtype:
            dtype = out.dtype if rank == dst else self._local_shards[0].tensor.dtype if self._local_shards else dtype
        with torch.no_grad():
            data = torch.empty(max(filled), dtype=dtype)
            for shard in self._local_shards:
                elements = shard.tensor.flatten()
                if elements.numel() == 0:
                    warnings.warn(f"Gathering a tensor with zero elements on rank {rank}", stacklevel=2)
                    continue
                start = next(start for _, start, each in starts if each == shard.metadata)
                data[start:start + elements.numel()].copy_(elements)
            received = [torch.empty_like(data) for _ in filled] if rank == dst else None
            c10d.gather(data, received, dst=dst, group=self._process_group)
            if received is None:
                return
            for owner, start, each in starts:
                target = out
                for dim, (offset, length) in enumerate(zip(each.shard_offsets, each.shard_sizes, strict=True)):
                    target = target.narrow(dim, min(offset, target.size(dim)), length)
                target.copy_(received[owner][start:start + prod(each.shard_sizes)].view(each.shard_sizes))

    def _with_parts(self, change: Callable[[Any], Any], group: Any = None, device: Any = None, dtype: Any = None,
                    requires_grad: bool | None = None) -> ShardedTensor:
        """The tensor of changed parts."""
        metadata = copy.deepcopy(self._metadata)
        properties = metadata.tensor_properties
        properties.dtype = properties.dtype if dtype is None else dtype
        properties.requires_grad = properties.requires_grad if requires_grad is None else requires_grad
        parts = []
        for shard in self._local_shards:
            each = copy.deepcopy(shard.metadata)
            if device is not None and each.placement is not None:
                each.placement._device = device
            parts.append(Shard(change(shard.tensor), each))
        if device is not None:
            for each in metadata.shards_metadata:
                if each.placement is not None:
                    each.placement._device = device
        return ShardedTensor._init_from_local_shards_and_global_metadata(
            parts, metadata, self._process_group if group is None else group, sharding_spec=self._sharding_spec
            if device is None else None)

    def cpu(self, memory_format: Any = torch.preserve_format, process_group: Any = None) -> Any:
        """The tensor with its parts in the memory of processors; itself where they are there."""
        if memory_format not in (torch.preserve_format, torch.contiguous_format):
            raise RuntimeError(_FORMATS)
        if all(each.placement.device().type == "cpu" for each in self._metadata.shards_metadata):  # type: ignore[union-attr]
            return self
        return self._with_parts(lambda x: x.cpu(), process_group, torch.device("cpu"))

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = torch.preserve_format,
             process_group: Any = None) -> Any:
        """The tensor with its parts on each process's present CUDA device."""
        if memory_format not in (torch.preserve_format, torch.contiguous_format):
            raise RuntimeError(_FORMATS)
        present = torch.device("cuda", torch.cuda.current_device())
        return self._with_parts(lambda x: x.cuda(present, non_blocking), process_group, present)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor with its parts in another dtype or on another device.

        Args:
            args: a dtype, a device, a tensor, or a device and a dtype.
            kwargs: `dtype`, `device`, `copy`, `non_blocking`, `process_group`.
        """
        here = self._local_shards[0].tensor.device if self._local_shards else torch.device("cpu")
        dtype, device = kwargs.get("dtype") or self.dtype, kwargs.get("device") or here
        if len(args) == 2:
            device, dtype = args
        elif len(args) == 1:
            if isinstance(args[0], torch.dtype):
                dtype = args[0]
            elif isinstance(args[0], (torch.device, str, int)):
                device = args[0]
            elif isinstance(args[0], torch.Tensor):
                dtype, device = args[0].dtype, args[0].device
            else:
                raise RuntimeError(f"ShardedTensor.to() have wrong arguments: {args}")
        device = torch.device(device) if isinstance(device, (str, int)) else device
        copies = kwargs.get("copy", False)
        if not copies and dtype == self.dtype and device == here:
            return self
        return self._with_parts(lambda x: x.to(device=device, dtype=dtype, copy=copies), kwargs.get("process_group"),
                                device, dtype)

    def is_pinned(self) -> bool:
        """Whether the parts are in pinned memory."""
        return self._metadata.tensor_properties.pin_memory

    def remote_shards(self) -> Any:
        """References to the parts of other processes: there are none without RPC.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("ShardedTensor created with init_rrefs=False, no RRefs to remote shards available")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = next((x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, ShardedTensor)), None)
        if found is not None:
            for table in (_CUSTOM_SHARDED_OPS, _SHARDED_OPS):
                if func in table:
                    return table[func](types, args, kwargs, found._process_group)
                if table is _CUSTOM_SHARDED_OPS and _has_custom_op(found._sharding_spec, func):
                    return _dispatch_custom_op(found._sharding_spec, func, types, args, kwargs, found._process_group)
        raise RuntimeError(f"torch function '{func.__name__}', with args: {args} and kwargs: {kwargs} not supported "
                           "for ShardedTensor!")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"ShardedTensor({self._metadata})"

    @dataclass
    class ProcessGroupState:
        """The process that pickled a tensor, and the numbers of processes."""

        local_rank: int
        global_rank: int
        local_world_size: int
        global_world_size: int

    @staticmethod
    def _state_of(group: Any) -> ShardedTensor.ProcessGroupState:
        return ShardedTensor.ProcessGroupState(c10d.get_rank(group), c10d.get_rank(), c10d.get_world_size(group),
                                               c10d.get_world_size())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickled, (self._local_shards, self._metadata, self._state_of(self._process_group),
                            self._sharding_spec, self._init_rrefs)


def _compare(shard: Shard, properties: TensorProperties) -> None:
    """Raise unless a part is what the metadata say."""
    placement, tensor = shard.metadata.placement, shard.tensor
    if placement is None:
        raise AssertionError("Must specify placement for `Shard`!")
    if not tensor.is_contiguous():
        raise ValueError("Only torch.contiguous_format memory_format is currently supported")
    for name, expected, actual, of_all in (
            ("layout", properties.layout, tensor.layout, True),
            ("size", shard.metadata.shard_sizes, list(tensor.size()), False),
            ("pin_memory", properties.pin_memory, tensor.is_pinned(), True),
            ("device", placement.device(), tensor.device, False), ("dtype", properties.dtype, tensor.dtype, True),
            ("requires_grad", properties.requires_grad, tensor.requires_grad, True)):
        if expected != actual:
            kind = "tensor property" if of_all else "local ShardMetadata"
            raise ValueError(f"Local shards' tensor {name} property is incompatible with {kind} on rank "
                             f"{placement.rank()}: {kind} {name}={expected}, local shard tensor {name}={actual}.")


def _unpickled(local_shards: list[Shard], metadata: ShardedTensorMetadata, state: ShardedTensor.ProcessGroupState,
               spec: Any, init_rrefs: bool) -> ShardedTensor:
    """A pickled tensor, in the process that pickled it.

    Raises:
        RuntimeError: there is no process group, or this is another process.
    """
    if not c10d.is_initialized():
        raise RuntimeError('Need to initialize default process group using "init_process_group" before loading '
                           "ShardedTensor")
    group = _get_current_process_group()
    now = ShardedTensor._state_of(group)
    for name in ("local_rank", "global_rank", "local_world_size", "global_world_size"):
        saved, present = getattr(state, name), getattr(now, name)
        if saved != present:
            raise RuntimeError(f"{name.replace('_', ' ').capitalize()} at save time was {saved}, but at load time was "
                               f"{present}")
    return ShardedTensor._made(spec, metadata, local_shards, group, init_rrefs)


__all__ = ["ShardedTensor", "ShardedTensorBase"]
