"""The k largest elements of a row, with ties in the order of PyTorch's `topk`.

Without ties any sort gives the result. The order of equal elements depends on the algorithm, so ties replay it: the
C++ library's partial sort (a heap) for a small k, else its introselect and introsort with their thresholds, on ranks
that are smaller for larger elements.
"""

from __future__ import annotations

import numpy as np

_INSERTION = 16  # up to this many, introsort uses an insertion sort


def largest(row: np.ndarray, k: int) -> np.ndarray:
    """Indices of the `k` largest elements of `row` in descending order; NaN is the largest.

    Args:
        row: float32 or float64, (n,).
        k: at most n.

    Returns:
        int64, (k,).
    """
    nan = np.isnan(row)
    negated = np.where(nan, -np.inf, -row)
    order = np.argsort(negated, kind="stable")
    edge = negated[order[:k + 1]]
    if not nan.any() and (edge[1:] != edge[:-1]).all():
        return order[:k]
    ranks = np.where(nan, 0, np.unique(negated, return_inverse=True)[1] + 1)
    segment = _Segment(ranks.tolist())
    n = row.size
    if k * 64 <= n:
        segment.partial_sort(0, k, n)
    else:
        segment.select(0, k - 1, n)
        segment.sort(0, k - 1)
    return np.array(segment.places[:k], dtype=np.int64)


class _Segment:
    """Ranks with their original places, rearranged together; ranges are [first, last)."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks
        self.places = list(range(len(ranks)))

    def _swap(self, a: int, b: int) -> None:
        ranks, places = self.ranks, self.places
        ranks[a], ranks[b] = ranks[b], ranks[a]
        places[a], places[b] = places[b], places[a]

    def _move(self, to: int, source: int) -> None:
        self.ranks[to], self.places[to] = self.ranks[source], self.places[source]

    # ----- heap

    def _sift(self, first: int, hole: int, size: int, rank: int, place: int) -> None:
        ranks, top, child = self.ranks, hole, hole
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if ranks[first + child] < ranks[first + child - 1]:
                child -= 1
            self._move(first + hole, first + child)
            hole = child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * (child + 1)
            self._move(first + hole, first + child - 1)
            hole = child - 1
        while hole > top and ranks[first + (hole - 1) // 2] < rank:
            parent = (hole - 1) // 2
            self._move(first + hole, first + parent)
            hole = parent
        ranks[first + hole], self.places[first + hole] = rank, place

    def _pop(self, first: int, last: int, to: int) -> None:
        rank, place = self.ranks[to], self.places[to]
        self._move(to, first)
        self._sift(first, 0, last - first, rank, place)

    def _heap_select(self, first: int, middle: int, last: int) -> None:
        size = middle - first
        for parent in range((size - 2) // 2, -1, -1) if size >= 2 else ():
            self._sift(first, parent, size, self.ranks[first + parent], self.places[first + parent])
        for i in range(middle, last):
            if self.ranks[i] < self.ranks[first]:
                self._pop(first, middle, i)

    def partial_sort(self, first: int, middle: int, last: int) -> None:
        """Sort the smallest elements into [first, middle)."""
        self._heap_select(first, middle, last)
        while middle - first > 1:
            middle -= 1
            self._pop(first, middle, middle)

    # ----- quickselect and quicksort

    def select(self, first: int, nth: int, last: int) -> None:
        """Introselect: the `nth` element at its sorted position, smaller ones before it."""
        if first == last or nth == last:
            return
        depth = 2 * ((last - first).bit_length() - 1)
        while last - first > 3:
            if depth == 0:
                self._heap_select(first, nth + 1, last)
                self._swap(first, nth)
                return
            depth -= 1
            cut = self._partition(first, last)
            if cut <= nth:
                first = cut
            else:
                last = cut
        self._insertion_sort(first, last)

    def sort(self, first: int, last: int) -> None:
        """Sort [first, last)."""
        if first >= last:
            return
        self._quicksort(first, last, 2 * ((last - first).bit_length() - 1))
        if last - first > _INSERTION:
            self._insertion_sort(first, first + _INSERTION)
            for i in range(first + _INSERTION, last):
                self._insert(i)
        else:
            self._insertion_sort(first, last)

    def _quicksort(self, first: int, last: int, depth: int) -> None:
        while last - first > _INSERTION:
            if depth == 0:
                self.partial_sort(first, last, last)
                return
            depth -= 1
            cut = self._partition(first, last)
            self._quicksort(cut, last, depth)
            last = cut

    def _partition(self, first: int, last: int) -> int:
        ranks, middle = self.ranks, first + (last - first) // 2
        self._swap(first, self._median(first + 1, middle, last - 1))
        pivot, low, high = ranks[first], first + 1, last
        while True:
            while ranks[low] < pivot:
                low += 1
            high -= 1
            while pivot < ranks[high]:
                high -= 1
            if low >= high:
                return low
            self._swap(low, high)
            low += 1

    def _median(self, a: int, b: int, c: int) -> int:
        ranks = self.ranks
        if ranks[a] < ranks[b]:
            return b if ranks[b] < ranks[c] else c if ranks[a] < ranks[c] else a
        return a if ranks[a] < ranks[c] else c if ranks[b] < ranks[c] else b

    def _insertion_sort(self, first: int, last: int) -> None:
        for i in range(first + 1, last):
            if self.ranks[i] < self.ranks[first]:
                self.ranks.insert(first, self.ranks.pop(i))
                self.places.insert(first, self.places.pop(i))
            else:
                self._insert(i)

    def _insert(self, at: int) -> None:
        rank, place = self.ranks[at], self.places[at]
        while rank < self.ranks[at - 1]:
            self._move(at, at - 1)
            at -= 1
        self.ranks[at], self.places[at] = rank, place
