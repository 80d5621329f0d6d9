"""`BlockMask`: which blocks of queries and keys attend to each other, and the mask inside a block."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, Self

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...dtypes import int32

__all__ = ["BlockMask", "noop_mask"]

DEFAULT_BLOCK_SIZE = 128
#: the block size of a mask that masks nothing
LARGE_BLOCK_SIZE = 1 << 30

_TENSORS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
            "full_q_num_blocks", "full_q_indices", "dq_write_order", "dq_write_order_full", "dq_kv_order")
#: the attributes from which `rows` is computed
_OF_ROWS = frozenset(_TENSORS[:4])


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function that masks nothing.

    Args:
        batch: index of the batch element.
        head: index of the head.
        token_q: index of the query.
        token_kv: index of the key.

    >>> import flambeau as torch
    >>> from flambeau.nn.attention.flex_attention import create_mask, noop_mask
    >>> create_mask(noop_mask, 1, 1, 1, 2)
    tensor([[[[True, True]]]])
    """
    return batch.new_ones((), dtype=fn.ones(0).eq(0).dtype, device=batch.device)


def sliced_mask_mod(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function of an indexed `BlockMask`; raises RuntimeError."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is "
        "reset. You must set it from the original BlockMask's mask_mod.\n\nIncorrect usage:\n"
        "  base_mask = create_block_mask(my_mask_fn, ...)\n  sliced_mask = base_mask[:, :, block_idx]\n"
        "  sliced_mask.mask_mod = apply_offset(sliced_mask.mask_mod, offset)  # WRONG!\n\nCorrect usage:\n"
        "  base_mask = create_block_mask(my_mask_fn, ...)\n  sliced_mask = base_mask[:, :, block_idx]\n"
        "  sliced_mask.mask_mod = apply_offset(base_mask.mask_mod, offset)  # Use base_mask!")


def ordered_to_dense(num_blocks: Tensor, indices: Tensor, columns: int) -> Tensor:
    """(..., rows) numbers of blocks and (..., rows, n) their indices as (..., rows, columns) zeros and ones."""
    entries = fn.arange(indices.shape[-1], device=indices.device)
    valid = fn.where(entries < num_blocks.unsqueeze(-1), indices, columns).long()
    dense = fn.zeros((*indices.shape[:-1], columns + 1), dtype=int32, device=indices.device)
    return dense.scatter(-1, valid, 1)[..., :columns].contiguous()


def dense_to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of `ordered_to_dense`; the indices of ones come first."""
    dense = dense.to(int32)
    return dense.sum(-1).to(int32), fn.argsort(dense, dim=-1, descending=True, stable=True).to(int32)


def _transposed(num_blocks: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    if num_blocks is None or indices is None:
        return None, None
    return dense_to_ordered(ordered_to_dense(num_blocks, indices, indices.shape[-1]).transpose(-2, -1))


def _cropped(num_blocks: Tensor | None, indices: Tensor | None, rows: int,
             columns: int) -> tuple[Tensor | None, Tensor | None]:
    if num_blocks is None or indices is None:
        return None, None
    indices, num_blocks = indices[:, :, :rows, :columns], num_blocks[:, :, :rows]
    num_blocks = fn.where(num_blocks < columns, num_blocks, columns)
    return (indices < num_blocks[:, :, :, None]).sum(-1).to(int32), indices


class BlockMask:
    """A block-sparse mask: for each block of queries, the blocks of keys that it attends to.

    Blocks are full, which the mask function leaves as they are, or partial. Numbers of blocks are (B, H, rows), their
    indices (B, H, rows, columns) with the valid ones first; B and H may be 1. `from_kv_blocks` makes one from the
    blocks of keys, `create_block_mask` from a mask function.

    Args:
        seq_lengths: numbers of queries and of keys.
        kv_num_blocks: number of partial blocks for each block of queries.
        kv_indices: their indices.
        full_kv_num_blocks: number of full blocks.
        full_kv_indices: their indices.
        q_num_blocks: the same for each block of keys.
        q_indices: see above.
        full_q_num_blocks: see above.
        full_q_indices: see above.
        BLOCK_SIZE: numbers of queries and of keys in a block.
        mask_mod: `mask_mod(b, h, q_idx, kv_idx)`, whether a query attends to a key.
        dq_write_order: order of additions in PyTorch's backward pass on GPUs.
        dq_write_order_full: the same for full blocks.
        dq_kv_order: order of the blocks of keys.
        dq_kv_order_spt: whether it is reversed.

    Raises:
        RuntimeError: `kv_indices` has no two dimensions.

    >>> from flambeau.nn.attention.flex_attention import create_block_mask
    >>> print(create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 8, 8, BLOCK_SIZE=4))
    BlockMask(shape=(1, 1, 8, 8), sparsity=25.00%,
    (0, 0)
    ██
    ████
    )
    """

    def __init__(self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
                 full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None, q_num_blocks: Tensor | None,
                 q_indices: Tensor | None, full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
                 BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK_SIZE, DEFAULT_BLOCK_SIZE),
                 mask_mod: Callable[..., Tensor] = noop_mask, *, dq_write_order: Tensor | None = None,
                 dq_write_order_full: Tensor | None = None, dq_kv_order: Tensor | None = None,
                 dq_kv_order_spt: bool | None = None) -> None:
        _check_blocks(kv_indices, full_kv_num_blocks, full_kv_indices)
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        if dq_write_order_full is not None and dq_write_order is None:
            raise ValueError("dq_write_order_full requires dq_write_order")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.dq_write_order = dq_write_order
        self.dq_write_order_full = dq_write_order_full
        self.dq_kv_order = dq_kv_order
        self.dq_kv_order_spt = dq_kv_order_spt
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod
        self.rows = _rows(self)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _OF_ROWS and "rows" in self.__dict__:
            super().__setattr__("rows", _rows(self))

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
                       full_kv_indices: Tensor | None = None,
                       BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
                       mask_mod: Callable[..., Tensor] | None = None, seq_lengths: tuple[int, int] | None = None,
                       compute_q_blocks: bool = True, *, dq_write_order: Tensor | None = None,
                       dq_write_order_full: Tensor | None = None,
                       dq_kv_order: Tensor | bool | None = None) -> Self:
        """A mask from the blocks of keys.

        Args:
            kv_num_blocks: (B, H, rows), number of partial blocks for each block of queries.
            kv_indices: (B, H, rows, columns), their indices.
            full_kv_num_blocks: the same for full blocks.
            full_kv_indices: see above.
            BLOCK_SIZE: numbers of queries and of keys in a block.
            mask_mod: whether a query attends to a key; by default always.
            seq_lengths: numbers of queries and of keys, by default whole blocks.
            compute_q_blocks: whether to compute the blocks of queries for each block of keys.
            dq_write_order: see the class.
            dq_write_order_full: see the class.
            dq_kv_order: see the class.

        Raises:
            RuntimeError: `kv_indices` has no two dimensions.

        >>> import flambeau as torch
        >>> from flambeau.nn.attention.flex_attention import BlockMask
        >>> count, index = torch.tensor([[[1, 1]]]), torch.tensor([[[[0, 1], [1, 0]]]])
        >>> BlockMask.from_kv_blocks(count, index, BLOCK_SIZE=4).to_dense()
        tensor([[[[1, 0],
                  [0, 1]]]], dtype=flambeau.int32)
        """
        _check_blocks(kv_indices, full_kv_num_blocks, full_kv_indices)
        if dq_kv_order is not None and not isinstance(dq_kv_order, bool | Tensor):
            raise ValueError("dq_kv_order must be a bool, Tensor, or None")
        partial, full = (_transposed(kv_num_blocks, kv_indices), _transposed(full_kv_num_blocks, full_kv_indices)) if (
            compute_q_blocks) else ((None, None), (None, None))
        sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, partial[0], partial[1],
                   full[0], full[1], sizes, noop_mask if mask_mod is None else mask_mod, dq_write_order=dq_write_order,
                   dq_write_order_full=dq_write_order_full,
                   dq_kv_order=dq_kv_order if isinstance(dq_kv_order, Tensor) else None,
                   dq_kv_order_spt=dq_kv_order if isinstance(dq_kv_order, bool) else None)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Lengths, tensors, block size and mask function.

        Args:
            flatten: lengths and block size as two elements each instead of a tuple.
        """
        lengths, sizes = (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        return (*lengths, *(getattr(self, name) for name in _TENSORS), self.dq_kv_order_spt, *sizes, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of elements of a dense mask."""
        return prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of elements in blocks that are skipped."""
        blocks = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            blocks = blocks + self.full_kv_num_blocks.sum()
        return 100 * (1 - blocks.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """(B, H, rows, columns), 1 for the blocks that are not skipped, int32."""
        dense = ordered_to_dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return dense
        full = ordered_to_dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])
        return dense | full

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the blocks.

        Args:
            grid_size: the largest numbers of rows and columns.
            limit: the largest number of batch elements and heads.
        """
        dense = self.to_dense()
        *batch, rows, columns = dense.shape
        height, width = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        row_step, column_step = max(1, -(-rows // height)), max(1, -(-columns // width))
        parts = []
        for number, index in enumerate(product(*map(range, batch))):
            if number == limit:
                parts += ["...", "To print out more, set BlockMask.to_string(limit=N)",
                          "You can also index (BlockMask[batch, head]) to choose a specific batch or head"]
                break
            lines = [f"{index}"]
            for r in range(0, rows, row_step):
                shares = [dense[index][r:r + row_step, c:c + column_step].float().mean().item()
                          for c in range(0, columns, column_step)]
                lines.append("".join(2 * ("█" if x == 1 else " " if x == 0 else "░") for x in shares))
            parts.append("\n".join(lines) + "\n")
        return "\n".join(parts)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        def shape(x: Tensor | None) -> Any:
            return None if x is None else x.shape

        lines = [f"    {name}={shape(getattr(self, name))},\n" for name in _TENSORS[:8]]
        return (f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
                f"    sparsity={self.sparsity():.2f}%,\n"
                f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)")

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of chosen batch elements, heads and rows of blocks; its `mask_mod` must be set."""
        if self.dq_kv_order is not None:
            raise NotImplementedError("Slicing BlockMask with tensor dq_kv_order is not supported yet. Construct a new "
                                      "BlockMask with matching precomputed dq_write_order metadata.")
        padded = (*(index if isinstance(index, tuple) else (index,)), *(slice(None),) * 3)[:3]
        places = tuple((slice(i + n, i + n + 1) if -n <= i < 0 else slice(i, i + 1)) if isinstance(i, int) else i
                       for i, n in zip(padded, self.kv_num_blocks.shape[:3], strict=True))
        chosen: dict[str, Any] = {name: None if x is None else x[places] for name in _TENSORS[:4]
                                  for x in [getattr(self, name)]}
        result = BlockMask.from_kv_blocks(**chosen, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=sliced_mask_mod,
                                          seq_lengths=self.seq_lengths, compute_q_blocks=self.q_indices is not None)
        return self._with_write_order(result)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask cropped to the upper left corner."""
        if self.dq_kv_order is not None:
            raise NotImplementedError("Adjusting BlockMask with tensor dq_kv_order is not supported yet. Construct a "
                                      "new BlockMask with matching precomputed dq_write_order metadata.")
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        blocks: dict[str, Any] = dict(zip(_TENSORS[:4], (
            *_cropped(self.kv_num_blocks, self.kv_indices, rows, columns),
            *_cropped(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)), strict=True))
        result = self.from_kv_blocks(**blocks, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod,
                                     seq_lengths=(new_q_len, new_kv_len), compute_q_blocks=self.q_indices is not None)
        return self._with_write_order(result)

    def _with_write_order(self, derived: BlockMask) -> BlockMask:
        derived.dq_kv_order_spt = self.dq_kv_order_spt
        if self.dq_write_order is not None:
            derived.dq_write_order, derived.dq_write_order_full = write_order(derived, self.dq_kv_order_spt)
        return derived

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on a device.

        Args:
            device: the device.
        """
        tensors: Any = {name: None if x is None else x.to(device) for name in _TENSORS for x in [getattr(self, name)]}
        return BlockMask(self.seq_lengths, **tensors, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod,
                         dq_kv_order_spt=self.dq_kv_order_spt)


def _check_blocks(kv_indices: Tensor, full_num_blocks: Tensor | None, full_indices: Tensor | None) -> None:
    if kv_indices.dim() < 2:
        raise RuntimeError("BlockMask must have at least 2 dimensions")
    if (full_num_blocks is None) != (full_indices is None):
        raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")


def _rows(mask: BlockMask) -> tuple[Any, ...] | None:
    """The blocks as Python numbers, [b][h][row] -> ((block of keys, whether it is full), ...) by block.

    `flex_attention` reads them instead of the tensors, so that a compiled function is specialised to the blocks.
    """
    def listed(num_blocks: Tensor, indices: Tensor) -> list[Any]:
        return [[[row[:n] for n, row in zip(ns, rows, strict=True)] for ns, rows in zip(nh, heads, strict=True)]
                for nh, heads in zip(num_blocks.tolist(), indices.tolist(), strict=True)]

    if mask.kv_indices.dim() != 4 or mask.BLOCK_SIZE[0] == LARGE_BLOCK_SIZE:
        return None
    partial = listed(mask.kv_num_blocks, mask.kv_indices)
    full: Any = None
    if mask.full_kv_num_blocks is not None and mask.full_kv_indices is not None:
        full = listed(mask.full_kv_num_blocks, mask.full_kv_indices)
    return tuple(tuple(tuple(
        tuple(sorted([*((c, False) for c in row), *((c, True) for c in (full[b][h][r] if full else ()))]))
        for r, row in enumerate(rows)) for h, rows in enumerate(heads)) for b, heads in enumerate(partial))


def write_order(mask: BlockMask, is_reversed: bool | None = False) -> tuple[Tensor, Tensor | None]:
    """The place of each block in the order of additions to the gradient of its queries: `dq_write_order`, and the same
    for full blocks.
    """
    if mask.q_num_blocks is None or mask.q_indices is None:
        raise ValueError("BlockMask must have q_num_blocks and q_indices to compute dq_write_order")
    dense = mask.to_dense()
    rank = dense.cumsum(-1) - dense
    if is_reversed:
        rank = dense.sum(-1, keepdim=True) - 1 - rank

    def of(indices: Tensor) -> Tensor:  # (B, H, columns, rows) rows of each column
        return rank.transpose(-2, -1).gather(-1, indices.long().clamp(0, rank.shape[-2] - 1)).to(int32)

    return of(mask.q_indices), None if mask.full_q_indices is None else of(mask.full_q_indices)
