"""Placements: how a tensor would be laid out over one dimension of a `DeviceMesh`.

They are descriptions, which packages make when they are imported. The tensors that they describe are left out.
"""

from __future__ import annotations

import copyreg
import operator
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The base class of placements.

    >>> from flambeau.distributed.placement_types import Placement, Replicate
    >>> isinstance(Replicate(), Placement)
    True
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is a `Shard`, of this dimension if one is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether it is a `Replicate`."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether it is a `Partial`, of this reduction if one is given."""
        return False


class Shard(Placement):
    """Each process has a slice along one dimension of the tensor, cut as `chunk` cuts.

    Args:
        dim: the dimension of the tensor.

    Raises:
        TypeError: `dim` is no integer (PyTorch's text).

    >>> from flambeau.distributed.placement_types import Shard
    >>> Shard(1), Shard(1).is_shard(0), Shard(0) == Shard(0)
    (Shard(dim=1), False, True)
    """

    def __init__(self, dim: int) -> None:
        try:
            self._dim = operator.index(dim)
        except TypeError:
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                "    1. torch._C._distributed.Shard(dim: typing.SupportsInt | typing.SupportsIndex)\n\n"
                f"Invoked with: {dim!r}") from None

    @property
    def dim(self) -> int:
        """The dimension of the tensor."""
        return self._dim

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """The size of one part of a dimension, and where it begins.

        Args:
            curr_local_size: the size of the dimension.
            num_chunks: the number of parts.
            rank: which part.

        >>> from flambeau.distributed.placement_types import Shard
        >>> [Shard.local_shard_size_and_offset(5, 3, rank) for rank in range(3)]
        [(2, 0), (2, 2), (1, 4)]
        """
        full = -(-curr_local_size // num_chunks)
        begin = min(curr_local_size, full * rank)
        return min(curr_local_size, full * (rank + 1)) - begin, begin

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self._dim

    def _split_tensor(self, tensor: Any, num_chunks: int, *, with_padding: bool = True,
                      contiguous: bool = True) -> tuple[list[Any], list[int]]:
        """The parts of a tensor, and by how much each was padded to the size of the first."""
        if self._dim > tensor.ndim:
            raise AssertionError(f"Sharding dim {self._dim} greater than tensor ndim {tensor.ndim}")
        size = tensor.size(self._dim)
        full = -(-size // num_chunks)
        parts, paddings = [], []
        for rank in range(num_chunks):
            length, begin = self.local_shard_size_and_offset(size, num_chunks, rank)
            part = tensor.narrow(self._dim, begin, length)
            if with_padding:
                paddings.append(full - length)
                if full > length:
                    shape = [*part.shape]
                    shape[self._dim] = full
                    padded = part.new_zeros(shape)
                    padded.narrow(self._dim, 0, length).copy_(part)
                    part = padded
            parts.append(part.contiguous() if contiguous else part)
        return parts, paddings

    def __reduce__(self) -> Any:
        return copyreg.__newobj__, (type(self),), {"dim": self._dim}  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._dim = state["dim"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shard) and self._dim == other._dim

    def __hash__(self) -> int:
        return hash(self._dim)

    def __repr__(self) -> str:
        return f"Shard(dim={self._dim})"

    def __str__(self) -> str:
        return f"S({self._dim})"


class _StridedShard(Placement):
    """A `Shard` of a dimension that a later dimension of the mesh has cut into `split_factor` parts before."""

    def __init__(self, dim: int, *, split_factor: int = 1) -> None:
        self._dim, self._split_factor = operator.index(dim), operator.index(split_factor)

    @property
    def dim(self) -> int:
        """The dimension of the tensor."""
        return self._dim

    def __reduce__(self) -> Any:
        state = {"dim": self._dim, "split_factor": self._split_factor}
        return copyreg.__newobj__, (type(self),), state  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._dim, self._split_factor = state["dim"], state["split_factor"]

    @property
    def split_factor(self) -> int:
        """The parts that the dimension was in."""
        return self._split_factor

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, _StridedShard)
                and (self._dim, self._split_factor) == (other._dim, other._split_factor))

    def __hash__(self) -> int:
        return hash((self._dim, self._split_factor))

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self._dim}, sf={self._split_factor})"

    def __str__(self) -> str:
        return f"_S({self._dim}, {self._split_factor})"


class Replicate(Placement):
    """Each process has the whole tensor.

    >>> from flambeau.distributed.placement_types import Replicate
    >>> Replicate(), str(Replicate()), Replicate().is_replicate()
    (Replicate(), 'R', True)
    """

    def is_replicate(self) -> bool:
        return True

    def __reduce__(self) -> Any:  # with an empty state, without which PyTorch's classes are left uninitialized
        return copyreg.__newobj__, (type(self),), {}  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replicate)

    def __hash__(self) -> int:
        return -1

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """Each process has a summand of the tensor, which a reduction over the processes completes.

    Args:
        reduce_op: the reduction, "sum", "avg", "product", "min" or "max"; None is "sum".

    Raises:
        TypeError: `reduce_op` is no string (PyTorch's text).

    >>> from flambeau.distributed.placement_types import Partial
    >>> Partial(), Partial("avg").reduce_op, Partial().is_partial("avg")
    (Partial(sum), 'avg', False)
    """

    def __init__(self, reduce_op: str | None = None) -> None:
        if not (reduce_op is None or isinstance(reduce_op, str)):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                "    1. torch._C._distributed.Partial()\n"
                "    2. torch._C._distributed.Partial(reduce_op: str | None)\n\n"
                f"Invoked with: {reduce_op!r}")
        self._reduce_op = "sum" if reduce_op is None else reduce_op

    @property
    def reduce_op(self) -> str:
        """The reduction."""
        return self._reduce_op

    def __reduce__(self) -> Any:
        state = {**vars(self), "reduce_op": self._reduce_op}
        del state["_reduce_op"]
        return copyreg.__newobj__, (type(self),), state  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state := dict(state), _reduce_op=state.pop("reduce_op"))

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or reduce_op == self._reduce_op

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partial) and self._reduce_op == other._reduce_op

    def __hash__(self) -> int:
        return hash(self._reduce_op)

    def __repr__(self) -> str:
        return f"Partial({self._reduce_op})"

    def __str__(self) -> str:
        return f"P({self._reduce_op})"



for _class in (Placement, Shard, _StridedShard, Replicate, Partial):  # the names that files have
    _class.__module__ = f"{__name__.rpartition('.')[0]}.tensor.placement_types"
