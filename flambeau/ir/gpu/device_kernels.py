"""Extern kernels that only GPUs have: what the CPU computes by NumPy, and indexing that asserts its range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...codegen.gpu import indexing
from ...codegen.gpu.launches import DeviceLaunch
from ...codegen.gpu.maps import maps
from ...codegen.gpu.sorting import histogram, prefix, search, segments, sorting
from ...runtime.launch import Spec
from ..graph.extern_kernels import ExternKernel
from ..graph.value import Unsupported, Value

Output = tuple[tuple[int, ...], np.dtype]


def _on_devices_only(outputs: Any, inputs: Any, **params: Any) -> Any:
    raise Unsupported("a kernel for GPUs only")


def device_kernel(name: str, inputs: Sequence[Value], outputs: Sequence[Output], **params: Any) -> list[Value]:
    """The outputs, dense arrays, of a kernel of `FAMILIES`.

    Args:
        inputs: its operands.
        outputs: shapes and dtypes.
        params: hashable.
    """
    return inputs[0].graph.extern(ExternKernel(name, _on_devices_only, params), inputs, outputs)


def _asserted_take(outputs: list[Spec], inputs: list[Spec], dim: int, wraps: bool) -> list[DeviceLaunch]:
    x, index, table = inputs
    return indexing.take(outputs[0], None, x, index, dim, table, wraps)


def _asserted_put(outputs: list[Spec], inputs: list[Spec], dim: int, op: str, wraps: bool, ordered: bool | None
                  ) -> list[DeviceLaunch]:
    source, index, table = inputs
    return indexing.put(outputs[0], None, source, index, dim, op, ordered, table, wraps)


def _assert_range(outputs: list[Spec], inputs: list[Spec], count: int, but: int | None) -> list[DeviceLaunch]:
    index, table = inputs
    return [each._replace(arguments=tuple(x._replace(operand=x.operand + 1) for x in each.arguments))
            for each in indexing.assert_range(index, table, count, but)]


def _last_writers(outputs: list[Spec], inputs: list[Spec], wraps: bool) -> list[DeviceLaunch]:
    index, *table = inputs
    return indexing.last_writers(outputs[0], index, table[0] if table else None, wraps)


def _count_true(outputs: list[Spec], inputs: list[Spec]) -> list[DeviceLaunch]:
    return prefix.count_true(outputs, inputs[0])


def _ranks(outputs: list[Spec], inputs: list[Spec]) -> list[DeviceLaunch]:
    return prefix.ranks(outputs[0], *inputs)


def _places(outputs: list[Spec], inputs: list[Spec]) -> list[DeviceLaunch]:
    return prefix.places(outputs[0], *inputs)


def _select_true(outputs: list[Spec], inputs: list[Spec]) -> list[DeviceLaunch]:
    return prefix.select_true(outputs[0], *inputs)


def _run_lengths(outputs: list[Spec], inputs: list[Spec]) -> list[DeviceLaunch]:
    return prefix.run_lengths(outputs[0], *inputs)


def _sort(outputs: list[Spec], inputs: list[Spec], descending: bool) -> list[DeviceLaunch]:
    return sorting.sort(outputs[0], outputs[1], inputs[0], descending)


def _first_of_sorted(outputs: list[Spec], inputs: list[Spec], descending: bool) -> list[DeviceLaunch]:
    return sorting.select(outputs[0], outputs[1], inputs[0], descending)


def _search(outputs: list[Spec], inputs: list[Spec], right: bool) -> list[DeviceLaunch]:
    boundaries, values, *sorter = inputs
    return search.launches(outputs[0], boundaries, values, sorter[0] if sorter else None, right)


def _segments(outputs: list[Spec], inputs: list[Spec], op: str, include: bool) -> list[DeviceLaunch]:
    initial, keys, order, values = inputs
    return segments.launches(outputs[0], initial, keys, order, values, op, include)


def _histogram(outputs: list[Spec], inputs: list[Spec]) -> list[DeviceLaunch]:
    return histogram.launches(outputs[0], inputs[0])


def _map(outputs: list[Spec], inputs: list[Spec], function: str, **params: Any) -> list[DeviceLaunch]:
    return maps.launches(function, outputs, inputs, **params)


#: by the name of an extern kernel, the function that makes its launches
FAMILIES: dict[str, Callable[..., list[DeviceLaunch]]] = {
    "asserted_take": _asserted_take, "asserted_put": _asserted_put, "assert_range": _assert_range,
    "last_writers": _last_writers, "count_true": _count_true, "ranks": _ranks, "places": _places,
    "select_true": _select_true, "sort": _sort, "first_of_sorted": _first_of_sorted, "search": _search, "map": _map,
    "segments": _segments, "histogram": _histogram, "run_lengths": _run_lengths,
}

__all__ = ["FAMILIES", "device_kernel"]
