"""The memory of CUDA devices: the caching allocator's statistics, and what empties and limits it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.allocator import readable
from .devices import index_of


def _allocator(device: Any) -> Any:
    return current_runtime().allocators[index_of(device)]


def _statistic(name: str, summary: str) -> Any:
    def read(device: Any = None) -> int:
        return int(_allocator(device).read(name))

    read.__doc__ = summary
    return read


memory_allocated = _statistic("allocated_bytes.all.current", "The bytes that tensors occupy on a device.")
max_memory_allocated = _statistic("allocated_bytes.all.peak", "The most bytes that tensors have occupied.")
memory_reserved = _statistic("reserved_bytes.all.current", "The bytes that the allocator holds.")
max_memory_reserved = _statistic("reserved_bytes.all.peak", "The most bytes that the allocator has held.")


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """All statistics of the allocator, by PyTorch's names."""
    found: OrderedDict[str, int] = _allocator(device).statistics()
    return found


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """All statistics of the allocator, nested by the parts of their names."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *groups, last = name.split(".")
        inner = nested
        for each in groups:
            inner = inner.setdefault(each, {})
        inner[last] = value
    return nested


def host_memory_stats() -> OrderedDict[str, int]:
    """The statistics of pinned memory: none are kept."""
    return OrderedDict()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin at the present values."""
    _allocator(device).reset_peak()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the totals begin at zero."""
    _allocator(device).reset_accumulated()


def empty_cache() -> None:
    """Give memory that no tensor occupies back to the devices."""
    for each in current_runtime().allocators:
        each.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free bytes, all bytes) of a device."""
    free, total = current_runtime().memory_info(index_of(device))
    return free, total


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit the allocator to a part of a device's memory.

    Raises:
        TypeError, ValueError: not a float in [0, 1] (PyTorch's texts).
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _allocator(device).fraction = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of a device's memory that the allocator is limited to."""
    return float(_allocator(device).fraction)


def memory_snapshot(mempool_id: Any = None) -> list[dict[str, Any]]:
    """The segments of all devices, and their blocks."""
    return [segment for each in current_runtime().allocators for segment in each.snapshot()]


def get_allocator_backend() -> str:
    """The name of the allocator: PyTorch's of its own one, whose algorithm this is."""
    return "native"


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Memory of the allocator, for other libraries: its address."""
    memory = current_runtime().allocate(index_of(device), size)
    address = memory.segment.address + memory.offset if memory.segment is not None else 0
    _held[address] = memory
    return int(address)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Free memory of `caching_allocator_alloc`."""
    _held.pop(mem_ptr, None)


_held: dict[int, Any] = {}

_ROWS = (("Allocated memory", "allocated_bytes", True), ("Active memory", "active_bytes", True),
         ("Requested memory", "requested_bytes", True), ("GPU reserved memory", "reserved_bytes", True),
         ("Non-releasable memory", "inactive_split_bytes", True), ("Allocations", "allocation", False),
         ("Active allocs", "active", False), ("GPU reserved segments", "segment", False),
         ("Non-releasable allocs", "inactive_split", False))


_OVERSIZE = (("Oversize allocations", "oversize_allocations"), ("Oversize GPU segments", "oversize_segments"))


def _cell(number: int, reference: int, is_bytes: bool) -> str:
    """A number in the unit that fits another one of its column."""
    units, step, most = (("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"), 1024, 768) if is_bytes else (
        ((" ", "K", "M"), 1000, 750))
    unit, scaled = units[0], float(reference)
    for each in units[1:]:
        if scaled < most * step:
            break
        unit, number, scaled = each, number // step, scaled / step
    return f"{number:6d} {unit}" if is_bytes else f"{number:7d} {unit} "


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the statistics of the allocator.

    Args:
        abbreviated: without the rows of the pools of small and large blocks.
    """
    stats = memory_stats(device)
    what = ("current", "peak", "allocated", "freed")
    lines = ["=" * 75, " {_:16} PyTorch CUDA memory summary, device ID {device:<17d} ", "-" * 75,
             "  {_:9} CUDA OOMs: {num_ooms:<12d} | {_:6} cudaMalloc retries: {num_alloc_retries:<8d}  ", "=" * 75,
             "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  "]
    pools = [("all", None)] if abbreviated else [
        ("all", None), ("large_pool", "      from large pool"), ("small_pool", "      from small pool")]
    for title, name, is_bytes in _ROWS:
        lines.append("-" * 75)
        for pool, label in pools:
            cells = [_cell(stats[f"{name}.{pool}.{each}"], stats[f"{name}.all.{each}"], is_bytes) for each in what]
            lines.append(f" {label or title:<21} | " + " | ".join(cells) + " ")
    for title, name in _OVERSIZE:
        lines.append("-" * 75)
        cells = [_cell(stats[f"{name}.{each}"], stats[f"{name}.{each}"], False) for each in what]
        lines.append(f" {title:<21} | " + " | ".join(cells) + " ")
    lines.append("=" * 75)
    values = {"_": "", "device": index_of(device), "num_ooms": stats["num_ooms"],
              "num_alloc_retries": stats["num_alloc_retries"]}
    return "|" + "|\n|".join(lines).format(**values) + "|\n"


def list_gpu_processes(device: Any = None) -> str:
    """This process, and the memory that it holds on a device."""
    return f"GPU:{index_of(device)}\nthis process uses {readable(memory_reserved(device))} of GPU memory"


NAMES: dict[str, Any] = {each.__name__: each for each in (
    memory_stats, memory_stats_as_nested_dict, host_memory_stats, reset_peak_memory_stats,
    reset_accumulated_memory_stats, empty_cache, mem_get_info, set_per_process_memory_fraction,
    get_per_process_memory_fraction, memory_snapshot, get_allocator_backend, caching_allocator_alloc,
    caching_allocator_delete, memory_summary, list_gpu_processes)}
NAMES |= {"memory_allocated": memory_allocated, "max_memory_allocated": max_memory_allocated,
          "memory_reserved": memory_reserved, "max_memory_reserved": max_memory_reserved,
          "memory_cached": memory_reserved, "max_memory_cached": max_memory_reserved,
          "reset_max_memory_allocated": reset_peak_memory_stats, "reset_max_memory_cached": reset_peak_memory_stats}

__all__ = ["NAMES"]
