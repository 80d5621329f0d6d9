"""`DTensorSpec`: how a tensor is placed on a mesh of processes."""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from ...shapes import Size
from ..device_mesh import DeviceMesh
from ..placement_types import Placement
from ._sharding import is_shard, local_shape_and_offset, row_major_strides


class TensorMeta(NamedTuple):
    """Shape, strides (in elements) and dtype of a whole tensor."""

    shape: Any
    stride: tuple[int, ...]
    dtype: Any


class ShardOrderEntry(NamedTuple):
    """The dimensions of a mesh that cut a dimension of a tensor, in their order."""

    tensor_dim: int
    mesh_dims: tuple[int, ...]


class DTensorSpec:
    """A mesh, a placement for each of its dimensions, and the metadata of the whole tensor.

    Args:
        mesh: the processes.
        placements: one for each dimension of the mesh.
        tensor_meta: shape, strides and dtype.
    """

    __slots__ = ("_hash", "_strides", "mesh", "placements", "tensor_meta")

    def __init__(self, mesh: DeviceMesh, placements: Sequence[Placement],
                 tensor_meta: TensorMeta | None = None) -> None:
        self.mesh, self.placements, self.tensor_meta = mesh, tuple(placements), tensor_meta
        self._hash: int | None = None
        self._strides: tuple[int, ...] | None = ()

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self.mesh

    @property
    def _meta(self) -> TensorMeta:
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def shape(self) -> Any:
        """The shape of the whole tensor."""
        return self._meta.shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The strides of the whole tensor."""
        return self._meta.stride

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._meta.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of the tensor."""
        return len(self._meta.shape)

    @property
    def num_shards(self) -> int:
        """The number of parts that the tensor is in."""
        return prod(n for n, p in zip(self.mesh.shape, self.placements, strict=True) if is_shard(p))

    @property
    def dim_map(self) -> list[int]:
        """For each dimension of the tensor, the dimension of the mesh that cuts it, or -1."""
        found = [-1] * self.ndim
        for i, placement in enumerate(self.placements):
            if is_shard(placement):
                found[placement.dim] = i  # type: ignore[attr-defined]
        return found

    @property
    def sums(self) -> list[int]:
        """The dimensions of the mesh over which a reduction is pending."""
        return [i for i, placement in enumerate(self.placements) if placement.is_partial()]

    def is_replicated(self) -> bool:
        """Whether each process has the whole tensor."""
        return all(placement.is_replicate() for placement in self.placements)

    def is_sharded(self) -> bool:
        """Whether a dimension is cut."""
        return any(map(is_shard, self.placements))

    def local_shape(self) -> tuple[int, ...]:
        """The shape of this process's part."""
        return local_shape_and_offset(self.shape, self.mesh.shape, self.mesh.get_coordinate(), self.placements)[0]

    @property
    def strides_unless_row_major(self) -> tuple[int, ...] | None:
        """The strides of the whole tensor; None if it is row-major."""
        if self._strides == () and self._meta.shape:
            meta = self._meta
            self._strides = None if tuple(meta.stride) == row_major_strides(meta.shape) else meta.stride
        return self._strides or None

    def with_placements(self, placements: Sequence[Placement]) -> DTensorSpec:
        """The same tensor, placed otherwise."""
        return DTensorSpec(self.mesh, placements, self.tensor_meta)

    def shallow_copy_with_tensor_meta(self, tensor_meta: TensorMeta | None) -> DTensorSpec:
        """The same placements of another tensor."""
        return DTensorSpec(self.mesh, self.placements, tensor_meta)

    def _key(self) -> tuple[Any, ...]:
        meta = self.tensor_meta
        return self.placements, None if meta is None else (tuple(meta.shape), meta.stride, meta.dtype)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.mesh, self._key()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DTensorSpec) and self.mesh == other.mesh
                                 and self._key() == other._key()
                                 and tuple(map(type, self.placements)) == tuple(map(type, other.placements)))

    def __reduce__(self) -> Any:
        """PyTorch's form, so that each library reads the files of the other."""
        cuts: dict[int, list[int]] = {}
        for i, placement in enumerate(self.placements):
            if is_shard(placement):
                cuts.setdefault(placement.dim, []).append(i)  # type: ignore[attr-defined]
        return copyreg.__newobj__, (DTensorSpec,), {  # type: ignore[attr-defined]
            "mesh": self.mesh, "placements": self.placements, "tensor_meta": self.tensor_meta,
            "shard_order": tuple(ShardOrderEntry(dim, tuple(cuts[dim])) for dim in sorted(cuts)),
            "use_strided_shard_as_shard_order": False, "_hash": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DTensorSpec.__init__(self, state["mesh"], state["placements"], state["tensor_meta"])

    def __str__(self) -> str:
        placed = ", ".join(map(str, self.placements))
        meta = self.tensor_meta
        what = "unknown" if meta is None else f"{meta.dtype}{list(meta.shape)}".rpartition(".")[2]
        return f"Spec({placed} on {what} over {self.mesh.shape})" if meta is None else f"Spec({what}({placed}))"

    __repr__ = __str__


def spec_of(mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int], stride: Sequence[int],
            dtype: Any) -> DTensorSpec:
    """A `DTensorSpec` of its parts."""
    return DTensorSpec(mesh, placements, TensorMeta(Size(shape), tuple(stride), dtype))


__all__ = ["DTensorSpec", "TensorMeta", "spec_of"]
