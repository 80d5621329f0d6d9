"""The order in which PyTorch's messages list keywords: that of a C++ `std::unordered_map` from strings."""

from __future__ import annotations

from collections.abc import Iterable

_BUCKETS = 13  # libstdc++'s number for up to 13 keys
_SEED, _MULTIPLIER, _MASK = 0xC70F6907, 0xC6A4A7935BD1E995, (1 << 64) - 1


def _mixed(value: int) -> int:
    return value ^ (value >> 47)


def _hash(key: bytes) -> int:
    """libstdc++'s hash of a string (MurmurHash64A)."""
    result = _SEED ^ (len(key) * _MULTIPLIER & _MASK)
    whole = len(key) & ~7
    for at in range(0, whole, 8):
        word = int.from_bytes(key[at:at + 8], "little")
        result = (result ^ (_mixed(word * _MULTIPLIER & _MASK) * _MULTIPLIER & _MASK)) * _MULTIPLIER & _MASK
    if len(key) > whole:
        result = (result ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    return _mixed(_mixed(result) * _MULTIPLIER & _MASK)


def in_map_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order of a map into which they were inserted one by one.

    A key goes before those of its bucket, or to the front if it is the first there.

    >>> from flambeau._tensor.argument_errors.map_order import in_map_order
    >>> in_map_order(["device", "dtype", "requires_grad"])
    ['dtype', 'requires_grad', 'device']
    """
    result: list[str] = []
    buckets: dict[int, str] = {}  # the first key of each
    for key in keys:
        bucket = _hash(key.encode()) % _BUCKETS
        result.insert(result.index(buckets[bucket]) if bucket in buckets else 0, key)
        buckets[bucket] = key
    return result


__all__ = ["in_map_order"]
