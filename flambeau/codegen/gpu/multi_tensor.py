"""Multi-tensor kernels: one elementwise program over many tuples of arrays, in one launch.

An optimizer's step is such a program: its operands are parameter, gradient and state of every tensor. Tables in device
memory hold the arrays' addresses and sizes; a chunk table says which part of which tensor a block computes. Only the
tables change from step to step, if anything does.

>>> from flambeau.codegen.scalar.scalar_ir import variable
>>> p, g, rate = variable(0, "float32"), variable(1, "float32"), variable(2, "float32")
>>> sgd = MultiTensor([p - rate * g], [0], ["float32", "float32"], ["float32"])
>>> sgd.chunks([5000, 3])
[(0, 0), (0, 4096), (1, 0)]
>>> sgd.launch(3).grid
(3, 1, 1)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..scalar.scalar_ir import Node, cast, variable
from .coordinates import INT64
from .kernel_ir import Kernel, KernelBuilder, substitute
from .launches import Argument, DeviceLaunch

#: elements of a chunk, and threads of a block
CHUNK, THREADS = 4096, 256


class MultiTensor:
    """An elementwise program over tuples of arrays that are updated in place.

    Args:
        results: the new values; variables are the operands' elements, then the scalars.
        targets: for each result the operand that it overwrites.
        dtypes: of the operands.
        scalars: dtypes of the scalars, which are arguments of the launch.

    Raises:
        ValueError: two results overwrite one operand, or a target is no operand.
    """

    def __init__(self, results: Sequence[Node], targets: Sequence[int], dtypes: Sequence[np.dtype | str],
                 scalars: Sequence[np.dtype | str] = ()) -> None:
        if len(set(targets)) != len(results) or not all(0 <= each < len(dtypes) for each in targets):
            raise ValueError(f"{len(results)} results into operands {list(targets)} of {len(dtypes)}")
        self.results, self.targets = list(results), list(targets)
        self.dtypes = [variable(0, each).dtype for each in dtypes]
        self.scalars = [variable(0, each).dtype for each in scalars]
        self.kernel = self._kernel()

    def _kernel(self) -> Kernel:
        b = KernelBuilder("multi_tensor", THREADS)
        tables = [b.buffer(INT64) for _ in self.dtypes]
        sizes, tensors, starts = (b.buffer(INT64) for _ in range(3))
        numbers = [b.scalar(each) for each in self.scalars]
        tensor = b.load(tensors, b.block)
        start = b.load(starts, b.block)
        rest = b.load(sizes, tensor) - start
        arrays = [b.indirect(table, tensor, dtype) for table, dtype in zip(tables, self.dtypes, strict=True)]
        for part in range(CHUNK // THREADS):
            within = cast(b.thread, INT64) + part * THREADS
            inside, at = within < rest, start + within
            known = {variable(i, array.dtype): b.load(array, at, inside) for i, array in enumerate(arrays)}
            known |= {variable(i, x.dtype): x for i, x in enumerate(numbers, len(arrays))}
            values = [substitute(each, known) for each in self.results]
            for target, value in zip(self.targets, values, strict=True):
                b.store(arrays[target], at, value, inside)
        return b.kernel()

    def chunks(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """The chunk table: for each block the number of its tensor, and the first element."""
        return [(tensor, start) for tensor, size in enumerate(sizes) for start in range(0, size, CHUNK)]

    def launch(self, blocks: int, scalars: Sequence[float] = ()) -> DeviceLaunch:
        """The launch for so many chunks.

        Its operands are the tables: of addresses, one for each operand; of sizes; of the chunks' tensors and starts.
        All hold int64.
        """
        return DeviceLaunch(self.kernel, (blocks, 1, 1), tuple(map(Argument, range(len(self.dtypes) + 3))),
                            tuple(scalars))


def adamw(dtype: np.dtype | str) -> MultiTensor:
    """AdamW's step in PyTorch's order of operations.

    The operands are parameter, gradient, first and second moment; the scalars, of the dtype of arithmetic: 1 - lr ·
    weight_decay, beta1, beta2, lr / (1 - beta1^t), sqrt(1 - beta2^t), eps.
    """
    from ..scalar.scalar_ir import sqrt, to_opmath

    kind = variable(0, dtype).dtype
    p, g, m, v = (to_opmath(variable(i, kind)) for i in range(4))
    decay, beta1, beta2, step, correction, eps = (variable(4 + i, p.dtype) for i in range(6))
    first = m + (g - m) * (1 - beta1)
    second = v * beta2 + g * g * (1 - beta2)
    new = p * decay - first / (sqrt(second) / correction + eps) * step
    return MultiTensor([new, first, second], [0, 2, 3], [kind] * 4, [p.dtype] * 6)


def sgd(dtype: np.dtype | str, nesterov: bool = False) -> MultiTensor:
    """SGD's step with momentum: operands parameter, gradient, buffer; scalars lr, momentum, 1 - dampening, decay."""
    from ..scalar.scalar_ir import to_opmath

    kind = variable(0, dtype).dtype
    p, g, buffer = (to_opmath(variable(i, kind)) for i in range(3))
    rate, momentum, share, decay = (variable(3 + i, p.dtype) for i in range(4))
    gradient = g + p * decay
    new = buffer * momentum + gradient * share
    direction = gradient + new * momentum if nesterov else new
    return MultiTensor([p - direction * rate, new], [0, 2], [kind] * 3, [p.dtype] * 4)


__all__ = ["CHUNK", "MultiTensor", "adamw", "sgd"]
