"""Products of programs that a library computes (cuBLAS), with their epilogue as an elementwise kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...backends.cuda_devices.cublaslt import adds_bias
from ...codegen.gpu import elementwise
from ...codegen.gpu.kernel_ir import substitute
from ...codegen.gpu.launches import Argument, DeviceLaunch
from ...codegen.scalar import scalar_ir
from ...codegen.scalar.scalar_ir import Node, topological_order
from ...dtypes import NARROW
from ...runtime.launch import Spec

#: the smallest K from which a product and its epilogue are two kernels: the sums pass through memory
_DEEP = 128


class ProductLaunch(NamedTuple):
    """A launch of the library's.

    Attributes:
        out, a, b: the operands that are the result and the factors.
        out_dtype: of the result.
        dtype, m, n, k, transposed, rows, steps, batch, tf32: as for `backends.cuda_devices.runtime.Product`.
        bias: the operand that is added to each row; None: nothing is.
    """

    out: int
    a: int
    b: int
    out_dtype: np.dtype
    dtype: np.dtype
    m: int
    n: int
    k: int
    transposed: tuple[bool, bool]
    rows: tuple[int, int, int]
    steps: tuple[int, int, int]
    batch: int
    tf32: bool
    scratch: int = 0
    unaligned: None = None
    bias: int | None = None


def launches(outputs: Sequence[Spec], a: Spec, b: Spec, extras: Sequence[Spec], epilogue: Sequence[Node] | None,
             tf32: bool) -> list[Any] | None:
    """The launches of a product; None where the library does not apply, or a fused epilogue is worth more.

    The operands are the outputs, the factors, the extras and scratch memory. An epilogue that is more than a bias and a
    rounding reads the product from scratch memory: in float32 or float64, or rounded where nothing else is read.

    >>> square = Spec.dense((8, 8), np.dtype(np.float32))
    >>> [one] = launches([square], square, square, [], None, False)
    >>> one.m, one.transposed
    (8, (False, False))
    """
    nodes, count = list(epilogue or ()), len(outputs)
    sums = np.dtype(np.float32) if a.dtype in NARROW else a.dtype
    plain = count == 1 and not extras and outputs[0].dtype in (a.dtype, sums) and (
        not nodes or nodes[0].op == "input" or (
            nodes[0].op == "cast" and nodes[0].args[0].op == "input" and nodes[0].args[0].dtype == sums))
    bias, wide = None, sums
    joined = _is_one_product(outputs[0], a, b)
    if not plain and (len(a.shape) == 2 or joined) and (found := _biased(nodes, outputs[0], a, extras)) is not None:
        bias, nodes, wide = found
        plain = count == 1 and nodes[0].op == "input" and outputs[0].dtype == wide
    if not plain and (a.shape[-1] < _DEEP or not nodes):
        return None
    target = outputs[0] if plain else Spec.dense(outputs[0].shape, _product_dtype(nodes) or wide)
    matrices = [_matrices(each) for each in (target, a, b)]
    batch = target.shape[0] if len(target.shape) == 3 else 1
    if any(each is None for each in matrices) or len({len(each.shape) for each in (target, a, b)}) != 1 or (
            len(a.shape) == 3 and not a.shape[0] == b.shape[0] == batch):
        return None
    out, x, y = (each for each in matrices if each is not None)
    if out[0]:
        return None
    m = a.shape[-2]
    if joined:
        m, batch = batch * m, 1
        x, out = ((False, each.strides[1] // each.dtype.itemsize, 0) for each in (a, target))
    scratch = 0 if plain else target.size * target.dtype.itemsize
    place = count + 2 + len(extras)
    made: list[Any] = [ProductLaunch(0 if plain else place, count, count + 1, target.dtype, a.dtype, m,
                                     b.shape[-1], a.shape[-1], (x[0], y[0]), (x[1], y[1], out[1]),
                                     (x[2], y[2], out[2]), batch, tf32, scratch,
                                     bias=None if bias is None else count + 1 + bias)]
    if not plain:
        operands = [*range(count), place, *range(count + 2, place)]
        made += [_with_operands(each, operands) for each in elementwise.launches(nodes, outputs, [target, *extras])]
    return made


def _is_one_product(output: Spec, a: Spec, b: Spec) -> bool:
    """Whether a batch of products is one of the rows of all matrices with one matrix."""
    return len(a.shape) == len(b.shape) == len(output.shape) == 3 and b.strides[0] == 0 and all(
        each.strides[0] == each.shape[1] * each.strides[1] and each.strides[2] == each.dtype.itemsize
        and each.strides[1] >= each.shape[2] * each.dtype.itemsize for each in (output, a)) and (
        a.shape[0] == output.shape[0]) and output.size > 0


def _biased(nodes: Sequence[Node], output: Spec, a: Spec, extras: Sequence[Spec]
            ) -> tuple[int, list[Node], np.dtype] | None:
    """An epilogue that reads nothing but the product with a bias that the library adds, and rounds.

    Args:
        nodes: of the epilogue.
        output: the first output.
        a: the first factor.

    Returns:
        the number of the bias among the inputs, the epilogue of the biased product, and the dtype of that; or None.
    """
    dtype = a.dtype
    if not output.size or not adds_bias(dtype, output.size // output.shape[-1], output.shape[-1], a.shape[-1]):
        return None
    narrow = dtype in NARROW
    product = scalar_ir.variable(0, np.float32)
    for number, extra in enumerate(extras, 1):
        if extra.dtype != dtype or extra.shape != output.shape or extra.strides != (
                *(0,) * (len(output.shape) - 1), dtype.itemsize):
            continue
        vector = scalar_ir.variable(number, dtype)
        wide = scalar_ir.cast(vector, np.float32) if narrow else vector
        sums = (product + wide, wide + product)
        known = {scalar_ir.cast(each, dtype) if narrow else each: scalar_ir.variable(0, dtype) for each in sums}
        rest = [substitute(node, known) for node in nodes]
        read = [node.dtype for node in topological_order(rest) if node.op == "input" and node.const == 0]
        if rest != list(nodes) and read == [dtype] and (narrow or [node.op for node in rest] == ["input"]):
            return number, rest, dtype
    return None


def _product_dtype(nodes: Sequence[Node]) -> np.dtype | None:
    """The dtype in which an epilogue reads the product; None where it does not."""
    for node in topological_order(nodes):
        if node.op == "input" and node.const == 0:
            return np.dtype(node.dtype)
    return None


def _with_operands(launch: DeviceLaunch, operands: Sequence[int]) -> DeviceLaunch:
    """A launch whose arguments are these operands."""
    unaligned = None if launch.unaligned is None else _with_operands(launch.unaligned, operands)
    return launch._replace(arguments=tuple(map(Argument, operands)), unaligned=unaligned)


def _matrices(spec: Spec) -> tuple[bool, int, int] | None:
    """Whether matrices are stored column by column, the distance of rows (or columns), and of matrices."""
    if len(spec.shape) not in (2, 3) or not spec.size:
        return None
    strides = [each // spec.dtype.itemsize for each in spec.strides]
    (rows, columns), (down, across) = spec.shape[-2:], strides[-2:]
    step = strides[0] if len(strides) == 3 else 0
    if (columns == 1 or across == 1) and (rows == 1 or down >= columns):
        return False, columns if rows == 1 else down, step
    if (rows == 1 or down == 1) and (columns == 1 or across >= rows):
        return True, rows if columns == 1 else across, step
    return None


__all__ = ["ProductLaunch", "launches"]
