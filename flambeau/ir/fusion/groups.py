"""Which values are computed together: groups of elementwise operations and reductions over one space.

A group goes once over a *space*, the elements of an array in row-major order, whatever shape its members give it:
its shape is the coarsest that cuts all of theirs. Its reductions are over the same dimensions of the space (one result
a *row*, which members may use again), over all the others (one a *column*), or over all. A value joins the group of
those that it is computed from if it finds them there element by element, or row by row, and if nothing that it needs
from elsewhere is computed from the group.

A product of matrices, or a convolution, takes the group in whose space it lies as its *epilogue*, if that is
elementwise: then what is computed from a product is computed before it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from ..graph import view_algebra as algebra
from ..graph.value import ELEMENTWISE, Graph, Value, reachable
from .dependency_order import DependencyOrder

#: inputs and outputs that a kernel may have
MAX_OPERANDS = 56
#: members of one group
MAX_MEMBERS = 400

#: elements of a product that is large, and how many arrays of its size its epilogue may read and write then: products
#: are computed block by block, in which order memory is slower
LARGE, ARRAYS = 1 << 13, 3

#: elements from which sums over leading dimensions are columns', and of what they leave of each
COLUMNS, ROW = 1 << 9, 64

#: what is computed by a kernel of its own
OPAQUE = ("matmul", "convolve", "assemble", "extern")

Intervals = tuple[tuple[int, int], ...]


def merge_intervals(intervals: Iterable[tuple[int, int]]) -> Intervals:
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


def suffix_intervals(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Each dimension as an interval: the product of the extents behind it, and that with its own.

    >>> suffix_intervals((2, 3, 4))
    [(12, 24), (4, 12), (1, 4)]
    """
    found, suffix = [], 1
    for extent in reversed(shape):
        found.append((suffix, suffix * extent))
        suffix *= extent
    return found[::-1]


class FusionGroup:
    """Values that one kernel computes.

    Attributes:
        members: in the order of their making.
        space: the shape in which all of them can be seen.
        rows: the dimensions, as intervals, over which rows are reduced; None while nothing is.
        product: the product of matrices whose epilogue this is.
    """

    def __init__(self, first: Value, space: tuple[int, ...], number: int = -1) -> None:
        self.number = number  # in the fusion's precedence
        self.members: list[Value] = [first]
        self.space = space
        self.size = prod(space)
        self.rows: Intervals | None = None
        self.rows_used = False
        self.contraction: Value | None = None
        self.reads: set[Value] = set()  # bases that are computed elsewhere
        self.alive = True

    @property
    def first_number(self) -> int:
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


def refine_space(space: Sequence[int], rows: Intervals) -> tuple[int, ...]:
    """The space cut also where these intervals begin and end."""
    cuts = {1}
    for low, high in (*suffix_intervals(space), *rows):
        cuts |= {low, high}
    ordered = sorted(cuts)
    return tuple(b // a for a, b in pairwise(ordered))[::-1]


def elementary_intervals(space: Sequence[int], rows: Intervals) -> list[tuple[int, int]]:
    """Return the dimensions of the space, cut at the ends of `rows`, that lie inside `rows`."""
    return [each for each in suffix_intervals(refine_space(space, rows))
            if any(low <= each[0] and each[1] <= high for low, high in rows)]


def reduced_intervals(value: Value) -> Intervals:
    """A reduction's dimensions, as intervals of the space of what it reduces."""
    cuts = suffix_intervals(value.args[0].shape)
    return merge_intervals([cuts[d] for d in value.attrs[1]])


class Fusion:
    """The groups of what some values are computed from.

    Args:
        graph: the graph.
        wanted: values that are to be there in the end; no views.
        first: those of them that are to be there as soon as can be.

    Attributes:
        groups: in an order in which they can be computed.
        of: the group of each value.
        stored: the values that are to have memory, apart from leaves and constants.
        early: how many of the groups come before all others, since `first` asks for them.
    """

    def __init__(self, graph: Graph, wanted: Sequence[Value], first: Sequence[Value] = ()) -> None:
        self.graph = graph
        self._first = [v for v in first if v.op != "input"]
        self.wanted, self._wanted = list(wanted), frozenset(wanted)
        self.of: dict[Value, FusionGroup] = {}
        self.live = reachable(wanted)
        self.readers: dict[Value, list[FusionGroup]] = {}
        self.order = DependencyOrder()
        for value in self.live:
            if value.op in ("input", "constant", "view"):
                continue
            if value.op == "getitem":
                self.of[value] = self.of[value.args[0]]
            elif value.op in OPAQUE:
                self._start_group(value, value.shape)
            else:
                self._assign_group(value)
        self._fuse_epilogues()
        self.groups = self._topological_order()
        self.stored = self._stored_values()

    # ----- joining -----

    def _start_group(self, value: Value, space: tuple[int, ...]) -> FusionGroup:
        group = FusionGroup(value, space, self.order.add())
        self.of[value] = group
        self._record_reads(group, value)
        if value.op == "reduce":
            group.rows = row_intervals(value, space)
        return group

    def _record_reads(self, group: FusionGroup, value: Value) -> None:
        self.order.add_predecessors(group.number, [self.of[arg.base].number for arg in value.args
                                               if self.of.get(arg.base, group) is not group])
        for arg in value.args:
            base = arg.base
            if self.of.get(base) is not group and base.op != "constant":
                group.reads.add(base)
                readers = self.readers.setdefault(base, [])
                if group not in readers:
                    readers.append(group)

    def _assign_group(self, value: Value) -> None:
        space = value.args[0].shape if value.op == "reduce" else value.shape
        candidates: list[FusionGroup] = []
        for arg in value.args:
            group = self.of.get(arg.base)
            if group is not None and not group.is_opaque and group not in candidates:
                candidates.append(group)
        joined: FusionGroup | None = None
        for group in sorted(candidates, key=lambda c: (-c.size, -c.first_number)):
            if joined is None:
                if self._try_join(group, value, space):
                    joined = group
            elif group.alive and group is not joined:
                self._merge(joined, group)
        if joined is None and prod(space) > 1:  # beside those that read the same: but a number is no reason
            for arg in (each for each in value.args if each.base.size > 1):
                for group in reversed(self.readers.get(arg.base, ())):
                    if (group.alive and not group.is_opaque and group not in candidates
                            and group.size == prod(space) and self._try_join(group, value, space)):
                        joined = group
                        break
                if joined is not None:
                    break
        if joined is None:
            self._start_group(value, space)

    def _try_join(self, group: FusionGroup, value: Value, space: tuple[int, ...]) -> bool:
        """Let a value join a group, if it can."""
        if len(group.members) >= MAX_MEMBERS or len(group.reads) >= MAX_OPERANDS - 16:
            return False
        rows, used = group.rows, group.rows_used
        size = prod(space)
        if size == group.size:
            fine = algebra.common_refinement(group.space, space)
            if fine is None:
                return False
            if value.op == "reduce":
                dims = reduced_intervals(value)
                whole = merge_intervals(suffix_intervals(fine))
                if rows is None:
                    rows = row_intervals(value, fine)
                elif dims != rows:
                    if value.attrs[0] != "sum" or (dims != whole and dims != complement(fine, rows)):
                        return False
                    if not used and dims != whole and includes_innermost(dims) and not includes_innermost(rows) and all(
                            v.attrs[0] == "sum" for v in group.members if v.op == "reduce"):
                        rows = dims  # nobody uses the columns' results: call them columns
        elif rows is not None and size * interval_extent(rows) == group.size and (
                value.op in ELEMENTWISE or (value.attrs[0] == "sum" and value.size == 1)):
            fine = refine_outside_rows(group.space, rows, space)
            if fine is None:
                return False
        else:
            return False
        for arg in value.args:
            if self.of.get(arg.base) is not group:
                continue
            kind = self._access_kind(group, fine, rows, arg, size)
            if kind is None:
                return False
            used = used or kind == "row"
        if not self._is_independent_of(group, [arg.base for arg in value.args]):
            return False
        group.space, group.rows, group.rows_used = fine, rows, used
        group.members.append(value)
        self.of[value] = group
        self._record_reads(group, value)
        return True

    def _access_kind(self, group: FusionGroup, fine: tuple[int, ...], rows: Intervals | None, arg: Value,
                size: int) -> str | None:
        """How a value of so many elements finds `arg` in the group: "full", "row", or not at all (None)."""
        base = arg.base
        level = self._level(group, base, rows)
        if level is None:
            return None
        if size == group.size and level == "full":
            return "full" if shows_whole_base(arg) else None
        if level == "row":
            assert rows is not None
            if size == base.size:
                return "row" if shows_whole_base(arg) else None
            if not arg.shape:
                return "row"
            if size == group.size:
                return "row" if broadcasts_row_results(fine, rows, arg) else None
        return None

    def _level(self, group: FusionGroup, base: Value, rows: Intervals | None) -> str | None:
        """Whether a member has an element for each of the space ("full"), for each row ("row"), or else (None)."""
        if base.op == "reduce":
            return "row" if base.args[0].size == group.size and reduced_intervals(base) == rows else None
        if base.size == group.size and not (group.size == 1 and rows):
            return "full"
        if rows is not None and base.size * interval_extent(rows) == group.size:
            return "row"
        return "full" if base.size == group.size else None

    def _is_independent_of(self, group: FusionGroup, bases: Iterable[Value]) -> bool:
        """Whether nothing among these, where it is computed elsewhere, is computed from the group."""
        for base in bases:
            other = self.of.get(base)
            if other is not None and other is not group and self.order.is_before(group.number, other.number):
                return False
        return True

    def _merge(self, into: FusionGroup, other: FusionGroup) -> None:
        """Make two groups one, if that can be."""
        if into.size != other.size or other.is_opaque or into.is_opaque:
            return
        if len(into.members) + len(other.members) > MAX_MEMBERS or len(into.reads | other.reads) > MAX_OPERANDS - 16:
            return
        fine = algebra.common_refinement(into.space, other.space)
        if fine is None:
            return
        rows = into.rows if into.rows is not None else other.rows
        if into.rows is not None and other.rows is not None and into.rows != other.rows:
            return
        if not (self._is_independent_of(into, [b for b in other.reads if self.of.get(b) is not into])
                and self._is_independent_of(other, [b for b in into.reads if self.of.get(b) is not other])):
            return
        for inner, outer in ((into, other), (other, into)):  # what one reads of the other it must find there
            for member in inner.members:
                for arg in member.args:
                    if self.of.get(arg.base) is outer:
                        size = member.args[0].size if member.op == "reduce" else member.size
                        probe = FusionGroup(arg.base, fine)
                        kind = self._access_kind(probe, fine, rows, arg, size)
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
                front = self._epilogue_members(product, reader) if reader.alive else []
                if front and self._can_be_epilogue(product, mine, reader, front):
                    group = self._split(reader, front) if len(front) < len(reader.members) else reader
                    self._attach_epilogue(group, product, mine)
                    break

    def _attach_epilogue(self, group: FusionGroup, product: Value, mine: FusionGroup) -> None:
        """Make a group a product's epilogue, which was the group `mine`."""
        self.order.merge(group.number, mine.number)
        group.contraction = product
        group.members.insert(0, product)
        group.reads.discard(product)
        for base in mine.reads:
            group.reads.add(base)
            readers = self.readers[base]
            readers.remove(mine)
            if group not in readers:
                readers.append(group)
        self.of[product] = group
        mine.alive = False

    def _epilogue_members(self, product: Value, group: FusionGroup) -> list[Value]:
        """The members that may be computed with a product, the others from what they leave; none where that is no gain.

        Sums of what is stored anyway are such others: the product itself is then neither stored nor read.
        """
        if group.contraction is not None or group.is_opaque or group.size != product.size:
            return []
        sums = [m for m in group.members if m.op == "reduce"]
        front = [m for m in group.members if m.op != "reduce"]
        if any(m.size != product.size for m in front):
            return []
        if sums:
            summed = {arg.base for each in sums for arg in each.args}
            if len(summed) > 1 or not summed.issubset(front) or not all(self._must_be_stored(v, group) for v in summed):
                return []
            if any(arg.base in sums for m in front for arg in m.args):
                return []
        return front

    def _must_be_stored(self, value: Value, group: FusionGroup) -> bool:
        """Whether a member of a group has to be stored: somebody else wants it."""
        return value in self._wanted or any(c.alive and c is not group for c in self.readers.get(value, ()))

    def _split(self, group: FusionGroup, front: list[Value]) -> FusionGroup:
        """These members as a group of their own, which comes before what is left."""
        found = FusionGroup(front[0], group.space, self.order.add())
        found.members = front
        group.members = [m for m in group.members if m.op == "reduce"]
        for base in group.reads:
            self.readers[base].remove(group)
        group.reads = set()
        for member in front:
            self.of[member] = found
        for each in (found, group):
            for member in each.members:
                self._record_reads(each, member)
        return found

    def _can_be_epilogue(self, product: Value, mine: FusionGroup, group: FusionGroup, members: list[Value]) -> bool:
        """Whether these members of a group can be computed before a product is stored."""
        reads = {arg.base for m in members for arg in m.args
                 if self.of.get(arg.base) is not group and arg.base.op != "constant"}
        if product.size > LARGE and self._epilogue_traffic(group, product, members, reads) > ARRAYS:
            return False
        for member in members:
            for arg in member.args:
                if arg.base is product:
                    if not shows_whole_base(arg):
                        return False
                elif self.of.get(arg.base) is not group and arg.shape and algebra.reshape_strides(
                        arg.shape, arg.strides, product.shape) is None:
                    return False
        # executed where the group is: nothing that the group reads may be computed from the product
        return self._is_independent_of(mine, [b for b in reads if b is not product])

    def _epilogue_traffic(self, group: FusionGroup, product: Value, members: list[Value], reads: set[Value]) -> int:
        """How many arrays of a product's size its epilogue would read and write."""
        read = sum(base is not product and base.size == product.size for base in reads)
        return read + sum(self._must_be_stored(member, group) for member in (product, *members))

    # ----- the result -----

    def _topological_order(self) -> list[FusionGroup]:
        groups = list(dict.fromkeys(self.of[v] for v in self.live if v in self.of))
        done: set[FusionGroup] = set()
        order: list[FusionGroup] = []

        def visit(start: FusionGroup) -> None:
            stack: list[tuple[FusionGroup, bool]] = [(start, False)]
            while stack:
                group, entered = stack.pop()
                if group in done:
                    continue
                if entered:
                    done.add(group)
                    order.append(group)
                    continue
                stack.append((group, True))
                needed = {self.of[b] for b in group.reads if b in self.of} - done - {group}
                stack.extend((each, False) for each in sorted(needed, key=lambda c: -c.first_number))

        for value in self._first:
            visit(self.of[value])
        self.kernels_before_conditions = len(order)
        for group in sorted(groups, key=lambda c: max(m.number for m in c.members)):
            visit(group)
        return order

    def _stored_values(self) -> set[Value]:
        stored = {v for v in self.wanted if v in self.of}
        for group in self.groups:
            stored |= {base for base in group.reads if base in self.of}
        return stored


def row_intervals(value: Value, space: Sequence[int]) -> Intervals:
    """What are rows to a group, by the first of its reductions: the dimensions that this one reduces.

    Where large sums run over leading dimensions, which would go through memory crosswise, rows are what lies beside
    each other instead, and the sums are columns': nothing else in the group can use them then.
    """
    dims = reduced_intervals(value)
    if value.attrs[0] != "sum" or includes_innermost(dims) or prod(space) < COLUMNS:
        return dims
    other = complement(space, dims)
    return dims if other is None or len(other) != 1 or interval_extent(other) < ROW else other


def complement(space: Sequence[int], rows: Intervals) -> Intervals | None:
    """The dimensions that are not among these."""
    fine = refine_space(space, rows)
    inside = set(elementary_intervals(space, rows))
    return merge_intervals([each for each in suffix_intervals(fine) if each not in inside])


def refine_outside_rows(space: Sequence[int], rows: Intervals, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The space cut so that its dimensions outside `rows` cut those of a shape of as many elements; None where they
    do not nest.

    >>> refine_outside_rows((12, 5), ((1, 5),), (3, 4))
    (3, 4, 5)
    >>> refine_outside_rows((4, 6, 5), ((1, 5),), (6, 4)) is None
    True
    """
    fine = refine_space(space, rows)
    inside = set(elementary_intervals(space, rows))
    is_row = [cut in inside for cut in suffix_intervals(fine)]
    kept = algebra.common_refinement([n for n, row in zip(fine, is_row, strict=True) if not row], shape)
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


def includes_innermost(dims: Intervals) -> bool:
    """Return whether the intervals include the innermost dimension, of stride 1."""
    return bool(dims) and dims[0][0] == 1


def interval_extent(rows: Intervals) -> int:
    """Return the number of elements of one row."""
    return prod(high // low for low, high in rows)


def shows_whole_base(arg: Value) -> bool:
    """Whether a value shows its base's elements in their order."""
    return arg.op != "view" or (arg.offset == 0 and arg.size == arg.base.size and algebra.is_dense(
        arg.shape, arg.strides))


def broadcasts_row_results(space: tuple[int, ...], rows: Intervals, arg: Value) -> bool:
    """Whether a view over the space shows each of its base's elements along one row."""
    if arg.op != "view" or arg.offset:
        return False
    whole = algebra.common_refinement(space, arg.shape)
    if whole is None:
        return False
    fine = refine_space(whole, rows)
    if algebra.common_refinement(fine, arg.shape) != fine and prod(fine) > 1:
        return False
    strides = algebra.split_strides(arg.shape, arg.strides, fine)
    inside = set(elementary_intervals(whole, rows))
    expected = 1
    for cut, extent, step in reversed(list(zip(suffix_intervals(fine), fine, strides, strict=True))):
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
