"""Collectives as messages: rings for large arrays, trees and direct messages for small ones.

Every function works on one-dimensional contiguous arrays. With n processes and arrays of N bytes a ring's `all_reduce`
sends 2 (n - 1) / n N bytes from each process, `reduce_scatter` and `all_gather` half of that: the least that is
possible. Where a message to several processes costs one copy, what `direct.py` has takes the place of rings and trees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import direct
from .reduce_op import Combine
from .transport.transport import Deadline, Transport, as_bytes

_SMALL = 4096  # bytes up to which one step of direct messages takes less time than the 2 (n - 1) steps of a ring
_SEGMENT = 1 << 20  # bytes that travel while those before them are reduced or passed on


def _segments(array: np.ndarray) -> list[np.ndarray]:
    """Parts of an array of about a segment's bytes each; an empty array is one part."""
    step = max(1, _SEGMENT // array.itemsize)
    return [array[start:start + step] for start in range(0, max(1, array.size), step)]


def even_chunks(array: np.ndarray, n: int) -> list[np.ndarray]:
    """An array in `n` parts whose lengths differ by one at most."""
    bounds = [array.size * i // n for i in range(n + 1)]
    return [array[bounds[i]:bounds[i + 1]] for i in range(n)]


def ring_reduce_scatter(net: Transport, tag: int, chunks: Sequence[np.ndarray], reduce: Combine,
                        deadline: Deadline) -> None:
    """Reduce chunk `r` at rank `r`; the other chunks hold partial results afterwards."""
    n, rank = net.size, net.rank
    following, previous = (rank + 1) % n, (rank - 1) % n
    for step in range(n - 1):
        outgoing, own = chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n]
        parts = _segments(own)
        arriving = [np.empty_like(part) for part in parts]
        receipts = [net.expect(previous, tag, as_bytes(part)) for part in arriving]
        sends = _segments(outgoing)
        for i in range(max(len(sends), len(parts))):
            if i < len(sends):
                net.send(following, tag, as_bytes(sends[i]), deadline)
            if i < len(parts):
                receipts[i].wait(deadline)
                reduce(parts[i], arriving[i])


def ring_all_gather(net: Transport, tag: int, chunks: Sequence[np.ndarray], deadline: Deadline) -> None:
    """Give all processes chunk `r` of rank `r`."""
    n, rank = net.size, net.rank
    if n == 1:
        return
    following, previous = (rank + 1) % n, (rank - 1) % n
    receipts = [[net.expect(previous, tag, as_bytes(part)) for part in _segments(chunks[(rank - step - 1) % n])]
                for step in range(n - 1)]
    for part in _segments(chunks[rank]):
        net.send(following, tag, as_bytes(part), deadline)
    for step in range(n - 1):
        parts = _segments(chunks[(rank - step - 1) % n])
        for receipt, part in zip(receipts[step], parts, strict=True):
            receipt.wait(deadline)
            if step < n - 2:  # each part is passed on as soon as it is there
                net.send(following, tag, as_bytes(part), deadline)


def reduce_scatter(net: Transport, tag: int, chunks: Sequence[np.ndarray], output: np.ndarray, reduce: Combine,
                   deadline: Deadline) -> None:
    """Reduce chunk `r` of all processes to the output of rank `r`."""
    if net.direct:
        own = output
        if any(np.may_share_memory(output, chunk) for chunk in chunks):
            own = np.empty_like(output)  # what is written is not sent afterwards
        own[...] = chunks[net.rank]
        direct.reduce_scatter(net, tag, chunks, own, reduce, deadline)
        if own is not output:
            output[...] = own
        return
    work = [chunk.copy() for chunk in chunks]
    ring_reduce_scatter(net, tag, work, reduce, deadline)
    output[...] = work[net.rank]


def all_reduce(net: Transport, tag: int, array: np.ndarray, reduce: Combine, deadline: Deadline) -> None:
    """Reduce an array over all processes, which all get the same bits."""
    n = net.size
    if n == 1:
        return
    if array.nbytes > _SMALL:
        chunks = even_chunks(array, n)
        if net.direct:
            direct.all_reduce(net, tag, chunks, reduce, deadline)
            return
        ring_reduce_scatter(net, tag, chunks, reduce, deadline)
        ring_all_gather(net, tag, chunks, deadline)
        return
    inputs = [array.copy() if rank == net.rank else np.empty_like(array) for rank in range(n)]
    direct_all_gather(net, tag, inputs, deadline)
    array[...] = inputs[0]
    for incoming in inputs[1:]:
        reduce(array, incoming)


def direct_all_gather(net: Transport, tag: int, chunks: Sequence[np.ndarray], deadline: Deadline) -> None:
    """Give all processes chunk `r` of rank `r`, in one step."""
    others = [rank for rank in range(net.size) if rank != net.rank]
    receipts = [net.expect(rank, tag, as_bytes(chunks[rank])) for rank in others]
    others = others[net.rank:] + others[:net.rank]  # not all to the same receiver at once
    net.multicast(others, tag, as_bytes(chunks[net.rank]), deadline)
    for receipt in receipts:
        receipt.wait(deadline)


def all_gather(net: Transport, tag: int, chunks: Sequence[np.ndarray], deadline: Deadline) -> None:
    """Give all processes chunk `r` of rank `r`; the chunks may differ in length."""
    if not net.direct and max((each.nbytes for each in chunks), default=0) > _SMALL:
        ring_all_gather(net, tag, chunks, deadline)
    else:
        direct_all_gather(net, tag, chunks, deadline)


def broadcast(net: Transport, tag: int, array: np.ndarray, root: int, deadline: Deadline) -> None:
    """Copy an array from one process to all, along a binomial tree, segment by segment."""
    n = net.size
    if net.direct:
        direct.broadcast(net, tag, array, root, deadline)
        return
    place = (net.rank - root) % n
    distance = 1
    while distance < n and not place & distance:
        distance *= 2
    parts = _segments(array)
    receipts = []
    if place:
        parent = (place - distance + root) % n
        receipts = [net.expect(parent, tag, as_bytes(part)) for part in parts]
    children = []
    step = distance // 2 if place else 1 << max(0, (n - 1).bit_length() - 1)
    while step:
        if place + step < n:
            children.append((place + step + root) % n)
        step //= 2
    for i, part in enumerate(parts):
        if place:
            receipts[i].wait(deadline)
        for child in children:
            net.send(child, tag, as_bytes(part), deadline)


def reduce(net: Transport, tag: int, array: np.ndarray, root: int, reduce: Combine, deadline: Deadline) -> None:
    """Reduce an array over all processes at one of them; those of the others keep their values."""
    n = net.size
    if n == 1:
        return
    if array.nbytes <= _SMALL:
        inputs = [array.copy() if rank == net.rank else np.empty_like(array) for rank in range(n)]
        gather(net, tag, array, inputs if net.rank == root else None, root, deadline)
        if net.rank == root:
            array[...] = inputs[0]
            for incoming in inputs[1:]:
                reduce(array, incoming)
        return
    chunks = even_chunks(array, n)
    if net.direct:
        own = chunks[net.rank] if net.rank == root else chunks[net.rank].copy()
        direct.reduce_scatter(net, tag, chunks, own, reduce, deadline)
        gather(net, tag, own, chunks if net.rank == root else None, root, deadline)
        return
    if net.rank != root:
        chunks = even_chunks(array.copy(), n)
    ring_reduce_scatter(net, tag, chunks, reduce, deadline)
    gather(net, tag, chunks[net.rank], chunks if net.rank == root else None, root, deadline)


def gather(net: Transport, tag: int, array: np.ndarray, outputs: Sequence[np.ndarray] | None, root: int,
           deadline: Deadline) -> None:
    """Copy the arrays of all processes to `outputs` of one of them."""
    if net.rank != root:
        net.send(root, tag, as_bytes(array), deadline)
        return
    assert outputs is not None
    receipts = [net.expect(rank, tag, as_bytes(outputs[rank])) for rank in range(net.size) if rank != root]
    if outputs[root] is not array:
        outputs[root][...] = array
    for receipt in receipts:
        receipt.wait(deadline)


def scatter(net: Transport, tag: int, array: np.ndarray, inputs: Sequence[np.ndarray] | None, root: int,
            deadline: Deadline) -> None:
    """Copy array `r` of one process's `inputs` to rank `r`."""
    if net.rank != root:
        net.expect(root, tag, as_bytes(array)).wait(deadline)
        return
    assert inputs is not None
    for step in range(1, net.size):
        rank = (root + step) % net.size
        net.send(rank, tag, as_bytes(inputs[rank]), deadline)
    array[...] = inputs[root]


def all_to_all(net: Transport, tag: int, outputs: Sequence[np.ndarray], inputs: Sequence[np.ndarray],
               deadline: Deadline) -> None:
    """Copy input `r` of each process to rank `r`, where it is the output with the sender's number."""
    n, rank = net.size, net.rank
    receipts = [net.expect((rank - step) % n, tag, as_bytes(outputs[(rank - step) % n])) for step in range(1, n)]
    outputs[rank][...] = inputs[rank]
    for step in range(1, n):
        net.send((rank + step) % n, tag, as_bytes(inputs[(rank + step) % n]), deadline)
    for receipt in receipts:
        receipt.wait(deadline)


def barrier(net: Transport, tag: int, deadline: Deadline) -> None:
    """Return once all processes have called this, after log2(n) steps (dissemination)."""
    n, rank, distance = net.size, net.rank, 1
    nothing = memoryview(b"\0")
    while distance < n:
        net.exchange((rank + distance) % n, nothing, (rank - distance) % n, memoryview(bytearray(1)), tag, deadline)
        distance *= 2


__all__ = ["all_gather", "all_reduce", "all_to_all", "as_bytes", "barrier", "broadcast", "even_chunks", "gather",
           "reduce", "reduce_scatter",
           "ring_all_gather", "ring_reduce_scatter", "scatter"]
