"""Which values are computed together: clusters of elementwise operations and reductions over one space.

A cluster goes once over a *space*, the elements of an array in row-major order, whatever shape its members give it:
its shape is the coarsest that cuts all of theirs. Its reductions are over the same dimensions of the space (one result
a *row*, which members may use again), over all the others (one a *column*), or over all. A value joins the cluster of
those that it is computed from if it finds them there element by element, or row by row, and if nothing that it needs
from elsewhere is computed from the cluster.

A product of matrices, or a convolution, takes the cluster in whose space it lies as its *epilogue*, if that is
elementwise: then what is computed from a product is computed before it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from ..graph import view_algebra as algebra
from ..graph.value import ELEMENTWISE, Graph, Value, reachable
from .dependency_order import Precedence

#: inputs and outputs that a kernel may have
OPERANDS = 56
#: members of one cluster
MEMBERS = 400

#: elements of a product that is large, and how many arrays of its size its epilogue may read and write then: products
#: are computed block by block, in which order memory is slower
LARGE, ARRAYS = 1 << 13, 3

#: elements from which sums over leading dimensions are columns', and of what they leave of each
COLUMNS, ROW = 1 << 9, 64

#: what is computed by a kernel of its own
OPAQUE = ("matmul", "convolve", "assemble", "whole")

Intervals = tuple[tuple[int, int], ...]


def merged(intervals: Iterable[tuple[int, int]]) -> Intervals:
    """Dimensions as intervals of the space's suffix products, neighbours made one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if low == high:
            continue
        if found and found[-1][1] == low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def suffixes(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Each dimension as an interval: the product of the extents behind it, and that with its own.

    >>> suffixes((2, 3, 4))
    [(12, 24), (4, 12), (1, 4)]
    """
    found, suffix = [], 1
    for extent in reversed(shape):
        found.append((suffix, suffix * extent))
        suffix *= extent
    return found[::-1]


class Cluster:
    """Values that one kernel computes.

    Attributes:
        members: in the order of their making.
        space: the shape in which all of them can be seen.
        rows: the dimensions, as intervals, over which rows are reduced; None while nothing is.
        product: the product of matrices whose epilogue this is.
    """

    def __init__(self, first: Value, space: tuple[int, ...], number: int = -1) -> None:
        self.number = number  # in the clustering's precedence
        self.members: list[Value] = [first]
        self.space = space
        self.size = prod(space)
        self.rows: Intervals | None = None
        self.rows_used = False
        self.product: Value | None = None
        self.reads: set[Value] = set()  # bases that are computed elsewhere
        self.alive = True

    @property
    def first(self) -> int:
        """The number of the member that was made first."""
        return self.members[0].number

    @property
    def is_opaque(self) -> bool:
        """Whether it is computed as a whole."""
        return self.members[0].op in OPAQUE

    @property
    def has_reductions(self) -> bool:
        """Whether a member is a reduction."""
        return any(v.op == "reduce" for v in self.members)


def algebra_fine(space: Sequence[int], rows: Intervals) -> tuple[int, ...]:
    """The space cut also where these intervals begin and end."""
    cuts = {1}
    for low, high in (*suffixes(space), *rows):
        cuts |= {low, high}
    ordered = sorted(cuts)
    return tuple(b // a for a, b in pairwise(ordered))[::-1]


def _elementary(space: Sequence[int], rows: Intervals) -> list[tuple[int, int]]:
    return [each for each in suffixes(algebra_fine(space, rows))
            if any(low <= each[0] and each[1] <= high for low, high in rows)]


def dims_of(value: Value) -> Intervals:
    """A reduction's dimensions, as intervals of the space of what it reduces."""
    cuts = suffixes(value.args[0].shape)
    return merged([cuts[d] for d in value.attrs[1]])


class Clustering:
    """The clusters of what some values are computed from.

    Args:
        graph: the graph.
        wanted: values that are to be there in the end; no views.
        first: those of them that are to be there as soon as can be.

    Attributes:
        clusters: in an order in which they can be computed.
        of: the cluster of each value.
        stored: the values that are to have memory, apart from leaves and constants.
        early: how many of the clusters come before all others, since `first` asks for them.
    """

    def __init__(self, graph: Graph, wanted: Sequence[Value], first: Sequence[Value] = ()) -> None:
        self.graph = graph
        self._first = [v for v in first if v.op != "leaf"]
        self.wanted, self._wanted = list(wanted), frozenset(wanted)
        self.of: dict[Value, Cluster] = {}
        self.live = reachable(wanted)
        self.readers: dict[Value, list[Cluster]] = {}
        self.order = Precedence()
        for value in self.live:
            if value.op in ("leaf", "constant", "view"):
                continue
            if value.op == "part":
                self.of[value] = self.of[value.args[0]]
            elif value.op in OPAQUE:
                self._begin(value, value.shape)
            else:
                self._place(value)
        self._fuse_epilogues()
        self.clusters = self._ordered()
        self.stored = self._stored()

    # ----- joining -----

    def _begin(self, value: Value, space: tuple[int, ...]) -> Cluster:
        cluster = Cluster(value, space, self.order.add())
        self.of[value] = cluster
        self._note_reads(cluster, value)
        if value.op == "reduce":
            cluster.rows = _rows_for(value, space)
        return cluster

    def _note_reads(self, cluster: Cluster, value: Value) -> None:
        self.order.put_before(cluster.number, [self.of[arg.base].number for arg in value.args
                                               if self.of.get(arg.base, cluster) is not cluster])
        for arg in value.args:
            base = arg.base
            if self.of.get(base) is not cluster and base.op != "constant":
                cluster.reads.add(base)
                readers = self.readers.setdefault(base, [])
                if cluster not in readers:
                    readers.append(cluster)

    def _place(self, value: Value) -> None:
        space = value.args[0].shape if value.op == "reduce" else value.shape
        candidates: list[Cluster] = []
        for arg in value.args:
            cluster = self.of.get(arg.base)
            if cluster is not None and not cluster.is_opaque and cluster not in candidates:
                candidates.append(cluster)
        joined: Cluster | None = None
        for cluster in sorted(candidates, key=lambda c: (-c.size, -c.first)):
            if joined is None:
                if self._joins(cluster, value, space):
                    joined = cluster
            elif cluster.alive and cluster is not joined:
                self._merge(joined, cluster)
        if joined is None and prod(space) > 1:  # beside those that read the same: but a number is no reason
            for arg in (each for each in value.args if each.base.size > 1):
                for cluster in reversed(self.readers.get(arg.base, ())):
                    if (cluster.alive and not cluster.is_opaque and cluster not in candidates
                            and cluster.size == prod(space) and self._joins(cluster, value, space)):
                        joined = cluster
                        break
                if joined is not None:
                    break
        if joined is None:
            self._begin(value, space)

    def _joins(self, cluster: Cluster, value: Value, space: tuple[int, ...]) -> bool:
        """Let a value join a cluster, if it can."""
        if len(cluster.members) >= MEMBERS or len(cluster.reads) >= OPERANDS - 16:
            return False
        rows, used = cluster.rows, cluster.rows_used
        size = prod(space)
        if size == cluster.size:
            fine = algebra.refined(cluster.space, space)
            if fine is None:
                return False
            if value.op == "reduce":
                dims = dims_of(value)
                whole = merged(suffixes(fine))
                if rows is None:
                    rows = _rows_for(value, fine)
                elif dims != rows:
                    if value.attrs[0] != "sum" or (dims != whole and dims != _other(fine, rows)):
                        return False
                    if not used and dims != whole and _has_fastest(dims) and not _has_fastest(rows) and all(
                            v.attrs[0] == "sum" for v in cluster.members if v.op == "reduce"):
                        rows = dims  # nobody uses the columns' results: call them columns
        elif rows is not None and size * _extent(rows) == cluster.size and (
                value.op in ELEMENTWISE or (value.attrs[0] == "sum" and value.size == 1)):
            fine = _cut_outside(cluster.space, rows, space)
            if fine is None:
                return False
        else:
            return False
        for arg in value.args:
            if self.of.get(arg.base) is not cluster:
                continue
            kind = self._access(cluster, fine, rows, arg, size)
            if kind is None:
                return False
            used = used or kind == "row"
        if not self._may_depend(cluster, [arg.base for arg in value.args]):
            return False
        cluster.space, cluster.rows, cluster.rows_used = fine, rows, used
        cluster.members.append(value)
        self.of[value] = cluster
        self._note_reads(cluster, value)
        return True

    def _access(self, cluster: Cluster, fine: tuple[int, ...], rows: Intervals | None, arg: Value,
                size: int) -> str | None:
        """How a value of so many elements finds `arg` in the cluster: "full", "row", or not at all (None)."""
        base = arg.base
        level = self._level(cluster, base, rows)
        if level is None:
            return None
        if size == cluster.size and level == "full":
            return "full" if is_whole(arg) else None
        if level == "row":
            assert rows is not None
            if size == base.size:
                return "row" if is_whole(arg) else None
            if not arg.shape:
                return "row"
            if size == cluster.size:
                return "row" if _repeats(fine, rows, arg) else None
        return None

    def _level(self, cluster: Cluster, base: Value, rows: Intervals | None) -> str | None:
        """Whether a member has an element for each of the space ("full"), for each row ("row"), or else (None)."""
        if base.op == "reduce":
            return "row" if base.args[0].size == cluster.size and dims_of(base) == rows else None
        if base.size == cluster.size and not (cluster.size == 1 and rows):
            return "full"
        if rows is not None and base.size * _extent(rows) == cluster.size:
            return "row"
        return "full" if base.size == cluster.size else None

    def _may_depend(self, cluster: Cluster, bases: Iterable[Value]) -> bool:
        """Whether nothing among these, where it is computed elsewhere, is computed from the cluster."""
        for base in bases:
            other = self.of.get(base)
            if other is not None and other is not cluster and self.order.is_before(cluster.number, other.number):
                return False
        return True

    def _merge(self, into: Cluster, other: Cluster) -> None:
        """Make two clusters one, if that can be."""
        if into.size != other.size or other.is_opaque or into.is_opaque:
            return
        if len(into.members) + len(other.members) > MEMBERS or len(into.reads | other.reads) > OPERANDS - 16:
            return
        fine = algebra.refined(into.space, other.space)
        if fine is None:
            return
        rows = into.rows if into.rows is not None else other.rows
        if into.rows is not None and other.rows is not None and into.rows != other.rows:
            return
        if not (self._may_depend(into, [b for b in other.reads if self.of.get(b) is not into])
                and self._may_depend(other, [b for b in into.reads if self.of.get(b) is not other])):
            return
        for inner, outer in ((into, other), (other, into)):  # what one reads of the other it must find there
            for member in inner.members:
                for arg in member.args:
                    if self.of.get(arg.base) is outer:
                        size = member.args[0].size if member.op == "reduce" else member.size
                        probe = Cluster(arg.base, fine)
                        kind = self._access(probe, fine, rows, arg, size)
                        if kind is None:
                            return
        self.order.merge(into.number, other.number)
        into.space, into.rows = fine, rows
        into.rows_used = into.rows_used or other.rows_used
        into.members = sorted(into.members + other.members, key=lambda v: v.number)
        for member in other.members:
            self.of[member] = into
        into.reads = {b for b in into.reads | other.reads if self.of.get(b) is not into}
        for base in other.reads:
            readers = self.readers[base]
            readers.remove(other)
            if into not in readers:
                readers.append(into)
        other.alive = False

    # ----- epilogues -----

    def _fuse_epilogues(self) -> None:
        products = [v for v in self.live if v.op == "matmul" or (v.op == "convolve" and v.attrs[0] != "weight")]
        for product in products:
            mine = self.of[product]
            for reader in self.readers.get(product, ()):
                front = self._front(product, reader) if reader.alive else []
                if front and self._is_epilogue(product, mine, reader, front):
                    cluster = self._split(reader, front) if len(front) < len(reader.members) else reader
                    self._take(cluster, product, mine)
                    break

    def _take(self, cluster: Cluster, product: Value, mine: Cluster) -> None:
        """Make a cluster a product's epilogue, which was the cluster `mine`."""
        self.order.merge(cluster.number, mine.number)
        cluster.product = product
        cluster.members.insert(0, product)
        cluster.reads.discard(product)
        for base in mine.reads:
            cluster.reads.add(base)
            readers = self.readers[base]
            readers.remove(mine)
            if cluster not in readers:
                readers.append(cluster)
        self.of[product] = cluster
        mine.alive = False

    def _front(self, product: Value, cluster: Cluster) -> list[Value]:
        """The members that may be computed with a product, the others from what they leave; none where that is no gain.

        Sums of what is stored anyway are such others: the product itself is then neither stored nor read.
        """
        if cluster.product is not None or cluster.is_opaque or cluster.size != product.size:
            return []
        sums = [m for m in cluster.members if m.op == "reduce"]
        front = [m for m in cluster.members if m.op != "reduce"]
        if any(m.size != product.size for m in front):
            return []
        if sums:
            summed = {arg.base for each in sums for arg in each.args}
            if len(summed) > 1 or not summed.issubset(front) or not all(self._is_read(v, cluster) for v in summed):
                return []
            if any(arg.base in sums for m in front for arg in m.args):
                return []
        return front

    def _is_read(self, value: Value, cluster: Cluster) -> bool:
        """Whether a member of a cluster has to be stored: somebody else wants it."""
        return value in self._wanted or any(c.alive and c is not cluster for c in self.readers.get(value, ()))

    def _split(self, cluster: Cluster, front: list[Value]) -> Cluster:
        """These members as a cluster of their own, which comes before what is left."""
        found = Cluster(front[0], cluster.space, self.order.add())
        found.members = front
        cluster.members = [m for m in cluster.members if m.op == "reduce"]
        for base in cluster.reads:
            self.readers[base].remove(cluster)
        cluster.reads = set()
        for member in front:
            self.of[member] = found
        for each in (found, cluster):
            for member in each.members:
                self._note_reads(each, member)
        return found

    def _is_epilogue(self, product: Value, mine: Cluster, cluster: Cluster, members: list[Value]) -> bool:
        """Whether these members of a cluster can be computed before a product is stored."""
        reads = {arg.base for m in members for arg in m.args
                 if self.of.get(arg.base) is not cluster and arg.base.op != "constant"}
        if product.size > LARGE and self._arrays(cluster, product, members, reads) > ARRAYS:
            return False
        for member in members:
            for arg in member.args:
                if arg.base is product:
                    if not is_whole(arg):
                        return False
                elif self.of.get(arg.base) is not cluster and arg.shape and algebra.reshaped(
                        arg.shape, arg.strides, product.shape) is None:
                    return False
        # executed where the cluster is: nothing that the cluster reads may be computed from the product
        return self._may_depend(mine, [b for b in reads if b is not product])

    def _arrays(self, cluster: Cluster, product: Value, members: list[Value], reads: set[Value]) -> int:
        """How many arrays of a product's size its epilogue would read and write."""
        read = sum(base is not product and base.size == product.size for base in reads)
        return read + sum(self._is_read(member, cluster) for member in (product, *members))

    # ----- the result -----

    def _ordered(self) -> list[Cluster]:
        clusters = list(dict.fromkeys(self.of[v] for v in self.live if v in self.of))
        done: set[Cluster] = set()
        order: list[Cluster] = []

        def visit(start: Cluster) -> None:
            stack: list[tuple[Cluster, bool]] = [(start, False)]
            while stack:
                cluster, entered = stack.pop()
                if cluster in done:
                    continue
                if entered:
                    done.add(cluster)
                    order.append(cluster)
                    continue
                stack.append((cluster, True))
                needed = {self.of[b] for b in cluster.reads if b in self.of} - done - {cluster}
                stack.extend((each, False) for each in sorted(needed, key=lambda c: -c.first))

        for value in self._first:
            visit(self.of[value])
        self.early = len(order)
        for cluster in sorted(clusters, key=lambda c: max(m.number for m in c.members)):
            visit(cluster)
        return order

    def _stored(self) -> set[Value]:
        stored = {v for v in self.wanted if v in self.of}
        for cluster in self.clusters:
            stored |= {base for base in cluster.reads if base in self.of}
        return stored


def _rows_for(value: Value, space: Sequence[int]) -> Intervals:
    """What are rows to a cluster, by the first of its reductions: the dimensions that this one reduces.

    Where large sums run over leading dimensions, which would go through memory crosswise, rows are what lies beside
    each other instead, and the sums are columns': nothing else in the cluster can use them then.
    """
    dims = dims_of(value)
    if value.attrs[0] != "sum" or _has_fastest(dims) or prod(space) < COLUMNS:
        return dims
    other = _other(space, dims)
    return dims if other is None or len(other) != 1 or _extent(other) < ROW else other


def _other(space: Sequence[int], rows: Intervals) -> Intervals | None:
    """The dimensions that are not among these."""
    fine = algebra_fine(space, rows)
    inside = set(_elementary(space, rows))
    return merged([each for each in suffixes(fine) if each not in inside])


def _cut_outside(space: Sequence[int], rows: Intervals, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The space cut so that its dimensions outside `rows` cut those of a shape of as many elements; None where they
    do not nest.

    >>> _cut_outside((12, 5), ((1, 5),), (3, 4))
    (3, 4, 5)
    >>> _cut_outside((4, 6, 5), ((1, 5),), (6, 4)) is None
    True
    """
    fine = algebra_fine(space, rows)
    inside = set(_elementary(space, rows))
    is_row = [cut in inside for cut in suffixes(fine)]
    kept = algebra.refined([n for n, row in zip(fine, is_row, strict=True) if not row], shape)
    if kept is None:
        return None
    found: list[int] = []
    left = list(kept)
    for extent, row in zip(reversed(fine), reversed(is_row), strict=True):
        if row:
            found.append(extent)
            continue
        while extent > 1:
            found.append(left.pop())
            extent //= found[-1]
    return tuple(reversed(found))


def _has_fastest(dims: Intervals) -> bool:
    return bool(dims) and dims[0][0] == 1


def _extent(rows: Intervals) -> int:
    return prod(high // low for low, high in rows)


def is_whole(arg: Value) -> bool:
    """Whether a value shows its base's elements in their order."""
    return arg.op != "view" or (arg.offset == 0 and arg.size == arg.base.size and algebra.is_dense(
        arg.shape, arg.strides))


def _repeats(space: tuple[int, ...], rows: Intervals, arg: Value) -> bool:
    """Whether a view over the space shows each of its base's elements along one row."""
    if arg.op != "view" or arg.offset:
        return False
    whole = algebra.refined(space, arg.shape)
    if whole is None:
        return False
    fine = algebra_fine(whole, rows)
    if algebra.refined(fine, arg.shape) != fine and prod(fine) > 1:
        return False
    strides = algebra.split(arg.shape, arg.strides, fine)
    inside = set(_elementary(whole, rows))
    expected = 1
    for cut, extent, step in reversed(list(zip(suffixes(fine), fine, strides, strict=True))):
        if extent == 1:
            continue
        if cut in inside:
            if step:
                return False
        else:
            if step != expected:
                return False
            expected *= extent
    return True
