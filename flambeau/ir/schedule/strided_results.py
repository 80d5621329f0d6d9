"""Elementwise results written where an array is assembled of them, at every second place for example, by no copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.launch import Spec
from ..fusion.intervals import shows_whole_base
from ..graph.value import Value
from ..kernels.pointwise import Kernel


def written_in_place(kernels: Sequence[Kernel], kept: set[Value]) -> tuple[list[Kernel], set[int]]:
    """The kernels, of which elementwise ones write their results into assembled arrays, and the copies not needed.

    Args:
        kept: values that are read by other than kernels.
    """
    readers: dict[Value, list[int]] = {}
    for number, kernel in enumerate(kernels):
        for base, _ in kernel.inputs:
            readers.setdefault(base, []).append(number)
    result, dropped = list(kernels), set[int]()
    for number, kernel in enumerate(kernels):
        if kernel.name != "elementwise" or kernel.factory is None or kernel.output_offsets or any(
                value in kept or len(readers.get(value, ())) != 1 for value in kernel.outputs):
            continue
        copies = [readers[value][0] for value in kernel.outputs]
        places = [_place(kernels[copy], value) for copy, value in zip(copies, kernel.outputs, strict=True)]
        if any(each is None for each in places) or len({kernels[copy].outputs[0] for copy in copies}) > 1 or (
                len(set(copies)) < len(copies)):
            continue
        found = _at_places(kernel, [each for each in places if each is not None], kernels[copies[0]].outputs[0])
        if found is not None:
            result[number] = found
            dropped.update(copies)
    return result, dropped


def _place(copy: Kernel, value: Value) -> tuple[int, int] | None:
    """The step between neighbours, in elements, and the offset, in bytes, that a kernel copies all of a value to."""
    if copy.name != "copy" or len(copy.inputs) != 1 or copy.outputs[0].op != "assemble":
        return None
    assembled, (shift,) = copy.outputs[0], copy.output_offsets
    has_background, *locations = assembled.attrs
    if has_background:
        return None
    for arg, (strides, offset) in zip(assembled.args, locations, strict=True):
        if arg.base is value and offset * assembled.dtype.itemsize == shift and shows_whole_base(arg) and arg.ndim == 1:
            return strides[0], shift
    return None


def _at_places(kernel: Kernel, places: Sequence[tuple[int, int]], assembled: Value) -> Kernel | None:
    """The kernel with its results at places in an assembled array; None where they are not dense."""
    assert kernel.factory is not None
    family, (nodes, outputs, inputs) = kernel.factory
    specs = []
    for spec, (step, _) in zip(outputs, places, strict=True):
        dense = Spec.dense(spec.shape, spec.dtype).strides
        if any(n != 1 and s != t for n, s, t in zip(spec.shape, spec.strides, dense, strict=True)):
            return None
        specs.append(Spec(spec.shape, tuple(s * step for s in spec.strides), spec.dtype))
    factory: tuple[Any, ...] = nodes, specs, inputs
    offsets = tuple(shift for _, shift in places)
    # a thread reads all before it writes: inputs at the same places may be overwritten
    same = frozenset(i for i, (spec, (_, offset)) in enumerate(zip(inputs, kernel.inputs, strict=True))
                     if offset in offsets and spec.dtype == specs[0].dtype and len(offsets) * spec.dtype.itemsize == (
                         places[0][0] * spec.dtype.itemsize) and all(
                             n == 1 or s == t for n, s, t in zip(specs[0].shape, spec.strides, specs[0].strides,
                                                                 strict=True)))
    return Kernel("elementwise", family(*factory), [assembled] * len(specs), kernel.inputs, same, offsets,
                  (family, factory))


__all__ = ["written_in_place"]
