"""Tie breaking of sorts and selections: a replay of the unstable algorithms that PyTorch runs on the CPU.

Algorithms that exchange elements are not stable, so the index that `sort`, `topk`,
`kthvalue` and `mode` return for a repeated value depends on every exchange: Hoare's quickselect with a median
of three for `kthvalue`; introselect, heap selection and introsort (Musser, Software: Practice and
Experience 27, 1997), as C++ standard libraries write them, for the others. Callers use this module only
for slices with ties. Long segments are partitioned by array operations: the elements at which both scans
stop are known beforehand, and are exchanged pairwise until the scans meet.

Elements are integer keys, smallest first; `places` are their original indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

#: partition(keys, places, depth limit, least length): a kernel that splits segments of more than the least length, and
#: returns those that were split too often, (start, end) each; None where that were many. `backends.compiled` adds it.
PARTITIONS: list[Callable[[np.ndarray, np.ndarray, int, int], np.ndarray | None]] = []
#: insert(keys, places): a kernel of the stable insertion sort of elements that are near their places
INSERTIONS: list[Callable[[np.ndarray, np.ndarray], None]] = []
SHORT = 256  # below this a Python loop beats array operations
INSERTION = 16

Pairs = list[tuple[int, int]]  # (key, place)


class Segment:
    """Keys with their original places, rearranged together."""

    __slots__ = ("keys", "places")

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys.astype(np.int64)
        self.places = np.arange(len(keys))

    def exchange(self, i: int | np.ndarray, j: int | np.ndarray) -> None:
        """Swap the elements at i with those at j, numbers or disjoint index arrays."""
        for array in (self.keys, self.places):
            saved = np.array(array[i])
            array[i] = array[j]
            array[j] = saved

    def pairs(self, first: int, last: int) -> Pairs:
        return list(zip(self.keys[first:last].tolist(), self.places[first:last].tolist(), strict=True))


def topk_places(keys: np.ndarray, k: int) -> np.ndarray:
    """The places of the k smallest keys, smallest first: heap selection for small k, else introselect."""
    n = len(keys)
    segment = Segment(keys)
    if k * 64 <= n:
        pairs = _heap_select_long(segment, k)
        _sort_heap(pairs)
        return np.array([place for _, place in pairs], np.int64)
    if n <= SHORT:
        short, places = segment.keys.tolist(), segment.places.tolist()
        _introselect_lists(short, places, k - 1, _depth_limit(n))
        head, head_places = short[:k - 1], places[:k - 1]  # the k-th is in its place already
        _introsort_lists(head, head_places, _depth_limit(k - 1))
        _insertion_sort(head, head_places, 0, k - 1)
        return np.array([*head_places, places[k - 1]], np.int64)
    _introselect(segment, k - 1)
    _introsort(segment, 0, k - 1)
    return segment.places[:k]


def kth_place(keys: np.ndarray, k: int) -> int:
    """The place that quickselect finds for the key of rank k, from 0."""
    segment = Segment(keys)
    left, right = 0, len(keys) - 1
    keys = segment.keys
    while right - left > SHORT:
        segment.exchange((left + right) >> 1, left + 1)
        for a, b in ((left + 1, right), (left, right), (left + 1, left)):
            if keys[a] > keys[b]:
                segment.exchange(a, b)
        pivot = keys[left]
        up = np.flatnonzero(keys[left + 2:right + 1] >= pivot) + (left + 2)
        down = np.flatnonzero(keys[left + 1:right] <= pivot)[::-1] + (left + 1)
        common = min(len(up), len(down))
        met = int(np.count_nonzero(up[:common] <= down[:common]))
        swaps = met - 1 if met and up[met - 1] == down[met - 1] else met
        segment.exchange(up[:swaps], down[:swaps])
        i = min([*up[met:met + 1].tolist(), *down[:swaps][-1:].tolist()])
        j = max([*down[met:met + 1].tolist(), *up[:swaps][-1:].tolist()])
        segment.exchange(left, j)
        if j <= k:
            left = i
        if j >= k:
            right = j - 1
    short, places = keys[left:right + 1].tolist(), segment.places[left:right + 1].tolist()
    return _quickselect_lists(short, places, k - left) if left <= k <= right else int(segment.places[k])


def _quickselect_lists(keys: list[int], places: list[int], k: int) -> int:
    def exchange(a: int, b: int) -> None:
        keys[a], keys[b] = keys[b], keys[a]
        places[a], places[b] = places[b], places[a]

    left, right = 0, len(keys) - 1
    while right > left:
        if right == left + 1:
            if keys[left] > keys[right]:
                exchange(left, right)
            break
        exchange((left + right) >> 1, left + 1)
        for a, b in ((left + 1, right), (left, right), (left + 1, left)):
            if keys[a] > keys[b]:
                exchange(a, b)
        pivot, i, j = keys[left], left + 1, right
        while True:
            i += 1
            while pivot > keys[i]:
                i += 1
            j -= 1
            while keys[j] > pivot:
                j -= 1
            if j < i:
                break
            exchange(i, j)
        exchange(left, j)
        if j <= k:
            left = i
        if j >= k:
            right = j - 1
    return places[k]


def sorted_places(keys: np.ndarray) -> np.ndarray:
    """The places of all keys, smallest first, in the order of introsort."""
    segment = Segment(keys)
    if not _introsort_by_kernel(segment):
        _introsort(segment, 0, len(keys))
    return segment.places


def last_of_run(keys: np.ndarray, key: int) -> int:
    """The place of the last element equal to `key` once introsort has sorted all of them."""
    segment = Segment(keys)
    if not _introsort_by_kernel(segment):
        _introsort(segment, 0, len(keys), key)
    return int(segment.places[np.flatnonzero(segment.keys == key)[-1]])


def _depth_limit(length: int) -> int:
    return 2 * (length.bit_length() - 1)


def _introselect(segment: Segment, nth: int) -> None:
    first, last = 0, len(segment.keys)
    depth = _depth_limit(last)
    while last - first > SHORT and depth:
        depth -= 1
        cut = _partition(segment, first, last)
        if cut <= nth:
            first = cut
        else:
            last = cut
    keys, places = segment.keys[first:last].tolist(), segment.places[first:last].tolist()
    _introselect_lists(keys, places, nth - first, depth)
    segment.keys[first:last], segment.places[first:last] = keys, places


def _introselect_lists(keys: list[int], places: list[int], nth: int, depth: int) -> None:
    first, last = 0, len(keys)
    while last - first > 3:
        if depth == 0:
            pairs = list(zip(keys[first:last], places[first:last], strict=True))
            _heap_select(pairs, nth + 1 - first)
            pairs[0], pairs[nth - first] = pairs[nth - first], pairs[0]
            keys[first:last], places[first:last] = zip(*pairs, strict=True)
            return
        depth -= 1
        cut = _partition_lists(keys, places, first, last)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion_sort(keys, places, first, last)


def _insertion_sort(keys: list[int], places: list[int], first: int, last: int) -> None:
    order = sorted(range(first, last), key=keys.__getitem__)
    keys[first:last], places[first:last] = [keys[i] for i in order], [places[i] for i in order]


def _introsort_by_kernel(segment: Segment) -> bool:
    """Introsort by the compiled kernel; False where there is none, and nothing was done."""
    keys, places = segment.keys, segment.places
    for partition, insert in zip(PARTITIONS, INSERTIONS, strict=True):
        left = partition(keys, places, _depth_limit(len(keys)), INSERTION)
        if left is None:
            continue
        for start, end in left.tolist():
            short, short_places = keys[start:end].tolist(), places[start:end].tolist()
            _introsort_lists(short, short_places, 0)
            keys[start:end], places[start:end] = short, short_places
        insert(keys, places)
        return True
    return False


def _introsort(segment: Segment, first: int, last: int, key: int | None = None) -> None:
    """Introsort; with `key`, only the partitions that determine the order of elements equal to it."""
    pending = [(first, last, _depth_limit(last - first))] if last > first else []
    while pending:
        start, end, depth = pending.pop()
        while end - start > SHORT and depth:
            depth -= 1
            cut = _partition(segment, start, end)
            pivot = segment.keys[start]
            if key is None or key >= pivot:
                pending.append((cut, end, depth))
            if key is not None and key > pivot:
                end = start
            else:
                end = cut
        if end - start > INSERTION:
            keys, places = segment.keys[start:end].tolist(), segment.places[start:end].tolist()
            _introsort_lists(keys, places, depth)
            segment.keys[start:end], segment.places[start:end] = keys, places
    if key is None:  # the last pass is an insertion sort, which is stable
        order = np.argsort(segment.keys[first:last], kind="stable")
        segment.keys[first:last] = segment.keys[first:last][order]
        segment.places[first:last] = segment.places[first:last][order]


def _introsort_lists(keys: list[int], places: list[int], depth: int) -> None:
    """Introsort without the final insertion sort."""
    pending = [(0, len(keys), depth)]
    while pending:
        start, end, depth = pending.pop()
        while end - start > INSERTION:
            if depth == 0:
                pairs = list(zip(keys[start:end], places[start:end], strict=True))
                _heap_select(pairs, end - start)
                _sort_heap(pairs)
                keys[start:end], places[start:end] = zip(*pairs, strict=True)
                break
            depth -= 1
            cut = _partition_lists(keys, places, start, end)
            pending.append((cut, end, depth))
            end = cut


def _median_of_three(keys: Sequence[int] | np.ndarray, first: int, last: int) -> int:
    low, middle, high = first + 1, first + (last - first) // 2, last - 1
    a, b, c = keys[low], keys[middle], keys[high]
    if a < b:
        return middle if b < c else (high if a < c else low)
    return low if a < c else (high if b < c else middle)


def _partition_lists(keys: list[int], places: list[int], start: int, end: int) -> int:
    """Hoare's partition around a median of three put first; the start of the upper part."""
    median = _median_of_three(keys, start, end)
    pivot = keys[median]
    keys[start], keys[median] = pivot, keys[start]
    places[start], places[median] = places[median], places[start]
    i, j = start + 1, end - 1
    while True:
        while keys[i] < pivot:
            i += 1
        while pivot < keys[j]:
            j -= 1
        if i >= j:
            return i
        keys[i], keys[j] = keys[j], keys[i]
        places[i], places[j] = places[j], places[i]
        i += 1
        j -= 1


def _partition(segment: Segment, first: int, last: int) -> int:
    """`_partition_lists` for a long segment."""
    keys = segment.keys
    segment.exchange(first, _median_of_three(keys, first, last))
    pivot = keys[first]
    up = np.flatnonzero(keys[first + 1:last] >= pivot) + (first + 1)
    down = np.flatnonzero(keys[first + 1:last] <= pivot)[::-1] + (first + 1)
    common = min(len(up), len(down))
    swaps = int(np.count_nonzero(up[:common] < down[:common]))
    segment.exchange(up[:swaps], down[:swaps])
    return min([*up[swaps:swaps + 1].tolist(), *down[:swaps][-1:].tolist()])


def _sift(heap: Pairs, hole: int, length: int, pair: tuple[int, int]) -> None:
    """Put `pair` into the heap's hole: the hole goes down to a leaf first, and then the pair comes up."""
    top, child = hole, hole
    while child < (length - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] < heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    parent = (hole - 1) // 2
    while hole > top and heap[parent][0] < pair[0]:
        heap[hole] = heap[parent]
        hole, parent = parent, (parent - 1) // 2
    heap[hole] = pair


def _make_heap(heap: Pairs) -> None:
    for parent in range((len(heap) - 2) // 2, -1, -1):
        _sift(heap, parent, len(heap), heap[parent])


def _heap_select(pairs: Pairs, k: int) -> None:
    heap = pairs[:k]
    _make_heap(heap)
    for i in range(k, len(pairs)):
        if pairs[i][0] < heap[0][0]:
            replaced, pairs[i] = pairs[i], heap[0]
            _sift(heap, 0, k, replaced)
    pairs[:k] = heap


def _heap_select_long(segment: Segment, k: int) -> Pairs:
    """The heap of the k smallest; only elements below the heap's top are inserted."""
    heap, keys = segment.pairs(0, k), segment.keys
    _make_heap(heap)
    start, n = k, len(keys)
    while start < n:
        end = min(start + max(4 * k, SHORT, start), n)
        for i in (np.flatnonzero(keys[start:end] < heap[0][0]) + start).tolist():
            if keys[i] < heap[0][0]:
                _sift(heap, 0, k, (int(keys[i]), i))
        start = end
    return heap


def _sort_heap(heap: Pairs) -> None:
    for end in range(len(heap) - 1, 0, -1):
        pair, heap[end] = heap[end], heap[0]
        _sift(heap, 0, end, pair)
