"""Parts of tensors: whether two overlap, and where."""

from __future__ import annotations

from .metadata import ChunkStorageMetadata

__all__: list[str] = []


def _check_shard_metadata_pair_overlap(shard1: ChunkStorageMetadata, shard2: ChunkStorageMetadata) -> bool:
    """Whether two parts of a tensor have elements in common."""
    return all(a < b + n and b < a + m for a, m, b, n in zip(
        shard1.offsets, shard1.sizes, shard2.offsets, shard2.sizes, strict=True))


def _shards_get_overlap_region_wrt_saved_tensor(
        saved_shard: ChunkStorageMetadata,
        current_shard: ChunkStorageMetadata) -> list[tuple[int, int, int, int]]:
    """For each dimension: its number, where the common elements begin in the saved and in the other part, how many."""
    regions = []
    for dim, (saved, saved_size, current, current_size) in enumerate(zip(
            saved_shard.offsets, saved_shard.sizes, current_shard.offsets, current_shard.sizes, strict=True)):
        begin, end = max(saved, current), min(saved + saved_size, current + current_size)
        regions.append((dim, begin - saved, begin - current, end - begin))
    return regions
