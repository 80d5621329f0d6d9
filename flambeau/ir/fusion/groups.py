"""Fusion: grouping of elementwise operations and reductions into kernels over one iteration space.

A group iterates once over a *space*, the elements of an array in row-major order. Its members may have different shapes
of equal size; the space is their coarsest common refinement. Its reductions are over the same dimensions of the space
(one result per *row*, which members may use), over all other dimensions (one per *column*), or over all dimensions.
A value joins the group of its arguments if it reads them elementwise or as row results, and if no argument from outside
depends on the group.

A matmul or a convolution takes an elementwise group over its output as its *epilogue*: the group is then computed
before the result is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ...dtypes import NARROW
from ...runtime.symbolic_integers import typical
from ..graph import view_algebra as algebra
from ..graph.value import BACKWARD, ELEMENTWISE, FLOAT32, Graph, Value, reachable
from ..kernels.families import CPU, KernelFamilies
from .dependency_order import DependencyOrder
from .intervals import (
    Intervals,
    broadcasts_row_results,
    complement,
    includes_innermost,
    interval_extent,
    merge_intervals,
    reduced_intervals,
    refine_outside_rows,
    row_intervals,
    shows_whole_base,
    suffix_intervals,
)

#: the most operands of a kernel
MAX_OPERANDS = 56
#: the most members of a group
MAX_MEMBERS = 400

#: for contractions of more than LARGE elements, the most arrays of that size that an epilogue may read and write:
#: contractions write block by block, an access order in which memory is slower
LARGE, MAX_EPILOGUE_ARRAYS = 1 << 13, 3

#: operations that are a kernel of their own
OPAQUE = ("matmul", "convolve", "assemble", "extern")

class FusionGroup:
    """Values that one kernel computes.

    Attributes:
        number: in the dependency order.
        members: in creation order.
        space: the iteration space, which refines the shapes of all members.
        rows: the reduced dimensions, as intervals; None without reductions.
        rows_used: whether a member reads a row result.
        contraction: the matmul or convolution whose epilogue this group is.
        reads: the bases that other groups or the caller provide.
        phase: of its members (`Graph.phases`): that of those that are computed again, if there are any.
        alive: False after the group was merged into another.
    """

    def __init__(self, first: Value, space: tuple[int, ...], number: int = -1) -> None:
        self.number = number
        self.members: list[Value] = [first]
        self.space = space
        self.size = prod(space)
        self.rows: Intervals | None = None
        self.rows_used = False
        self.contraction: Value | None = None
        self.reads: set[Value] = set()
        self.phase = first.graph.phases.get(first, BACKWARD)
        self.alive = True

    @property
    def first_number(self) -> int:
        """The number of the first member."""
        return self.members[0].number

    @property
    def is_opaque(self) -> bool:
        """Whether it is one operation that does not fuse."""
        return self.members[0].op in OPAQUE

    @property
    def has_reductions(self) -> bool:
        """Whether a member is a reduction."""
        return any(v.op == "reduce" for v in self.members)


def common_phase(x: int, y: int) -> int | None:
    """Return the phase of a kernel that computes values of two phases; None if none should.

    Values that are computed again are computed late, and those of different places at different times.

    >>> common_phase(BACKWARD, 4), common_phase(3, 4), common_phase(0, BACKWARD)
    (4, None, None)
    """
    if x == y:
        return x
    return max(x, y) if min(x, y) == BACKWARD else None


class Fusion:
    """The fusion groups of everything that some values depend on.

    Args:
        graph: the graph.
        outputs: the values to compute; no views.
        first: the outputs to compute as early as possible (data guards).
        families: make the kernels' launches.

    Attributes:
        groups: in topological order.
        of: the group of each value.
        stored: the values that are written to memory.
        widened: by value that is widened by the kernels that read it, the narrow value that is stored instead.
        kernels_before_conditions: the number of leading groups that `first` needs.
    """

    def __init__(self, graph: Graph, outputs: Sequence[Value], first: Sequence[Value] = (),
                 families: KernelFamilies = CPU) -> None:
        self.graph, self.families = graph, families
        self._first = [v for v in first if v.op != "input"]
        self.outputs, self._output_set = list(outputs), frozenset(outputs)
        self.of: dict[Value, FusionGroup] = {}
        self.live = reachable(outputs)
        self.readers: dict[Value, list[FusionGroup]] = {}
        self.order = DependencyOrder()
        self._scalars: FusionGroup | None = None  # the last group of single elements
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
        self.widened: dict[Value, Value] = {}
        if families.reads_narrow:
            self._read_narrow()
        self.groups = self._topological_order()
        self.stored = self._stored_values()

    # ----- vertical and horizontal fusion -----

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
        if joined is None and prod(space) > 1 and value not in self.graph.late:
            # horizontal fusion, with groups that read the same array
            for arg in (each for each in value.args if each.base.size > 1):
                for group in reversed(self.readers.get(arg.base, ())):
                    if (group.alive and not group.is_opaque and group not in candidates
                            and group.phase == self.graph.phases.get(value, BACKWARD)
                            and group.size == prod(space) and self._try_join(group, value, space)):
                        joined = group
                        break
                if joined is not None:
                    break
        if joined is None and self.families.merges_scalars and prod(space) == 1 and value.op != "reduce":
            group = self._scalars
            if group is not None and group.alive and group not in candidates and not group.rows and (
                    group.phase == self.graph.phases.get(value, BACKWARD) and self._try_join(group, value, space)):
                return
            self._scalars = self._start_group(value, space)
            return
        if joined is None:
            self._start_group(value, space)

    def _try_join(self, group: FusionGroup, value: Value, space: tuple[int, ...]) -> bool:
        """Add a value to a group, if that is legal."""
        if len(group.members) >= MAX_MEMBERS or len(group.reads) >= MAX_OPERANDS - 16:
            return False
        phase = common_phase(group.phase, self.graph.phases.get(value, BACKWARD))
        if phase is None:
            return False
        rows, rows_used = group.rows, group.rows_used
        size = prod(space)
        if size == group.size:
            refined = algebra.common_refinement(group.space, space)
            if refined is None:
                return False
            if value.op == "reduce":
                reduced = reduced_intervals(value)
                all_dims = merge_intervals(suffix_intervals(refined))
                if rows is None:
                    rows = row_intervals(value, refined)
                elif reduced != rows:
                    if value.attrs[0] != "sum" or (reduced != all_dims and reduced != complement(refined, rows)):
                        return False
                    if (not rows_used and reduced != all_dims and includes_innermost(reduced)
                            and not includes_innermost(rows)
                            and all(v.attrs[0] == "sum" for v in group.members if v.op == "reduce")):
                        rows = reduced  # the column results are not used in the group: swap rows and columns
        elif rows is not None and size * interval_extent(rows) == group.size and (
                value.op in ELEMENTWISE or (value.attrs[0] == "sum" and value.size == 1)):
            refined = refine_outside_rows(group.space, rows, space)
            if refined is None:
                return False
        else:
            return False
        for arg in value.args:
            if self.of.get(arg.base) is not group:
                continue
            kind = self._access_kind(group, refined, rows, arg, size)
            if kind is None:
                return False
            rows_used = rows_used or kind == "row"
        if not self._is_independent_of(group, [arg.base for arg in value.args]):
            return False
        group.space, group.rows, group.rows_used, group.phase = refined, rows, rows_used, phase
        group.members.append(value)
        self.of[value] = group
        self._record_reads(group, value)
        return True

    def _access_kind(self, group: FusionGroup, refined: tuple[int, ...], rows: Intervals | None, arg: Value,
                size: int) -> str | None:
        """How a value of `size` elements reads `arg` inside the group: "full", "row", or None if it cannot."""
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
                return "row" if broadcasts_row_results(refined, rows, arg) else None
        return None

    def _level(self, group: FusionGroup, base: Value, rows: Intervals | None) -> str | None:
        """Whether a member has one element per element of the space ("full") or per row ("row"); None for neither."""
        if base.op == "reduce":
            return "row" if base.args[0].size == group.size and reduced_intervals(base) == rows else None
        if base.size == group.size and not (group.size == 1 and rows):
            return "full"
        if rows is not None and base.size * interval_extent(rows) == group.size:
            return "row"
        return "full" if base.size == group.size else None

    def _is_independent_of(self, group: FusionGroup, bases: Iterable[Value]) -> bool:
        """Whether none of these values, if in another group, depends on the group."""
        for base in bases:
            other = self.of.get(base)
            if other is not None and other is not group and self.order.is_before(group.number, other.number):
                return False
        return True

    def _merge(self, into: FusionGroup, other: FusionGroup) -> None:
        """Merge two groups, if that is legal."""
        if into.size != other.size or other.is_opaque or into.is_opaque:
            return
        if len(into.members) + len(other.members) > MAX_MEMBERS or len(into.reads | other.reads) > MAX_OPERANDS - 16:
            return
        phase = common_phase(into.phase, other.phase)
        if phase is None:
            return
        refined = algebra.common_refinement(into.space, other.space)
        if refined is None:
            return
        rows = into.rows if into.rows is not None else other.rows
        if into.rows is not None and other.rows is not None and into.rows != other.rows:
            return
        if not (self._is_independent_of(into, [b for b in other.reads if self.of.get(b) is not into])
                and self._is_independent_of(other, [b for b in into.reads if self.of.get(b) is not other])):
            return
        for inner, outer in ((into, other), (other, into)):  # each must be able to read the other's members
            for member in inner.members:
                for arg in member.args:
                    if self.of.get(arg.base) is outer:
                        size = member.args[0].size if member.op == "reduce" else member.size
                        probe = FusionGroup(arg.base, refined)
                        kind = self._access_kind(probe, refined, rows, arg, size)
                        if kind is None:
                            return
        self.order.merge(into.number, other.number)
        into.space, into.rows, into.phase = refined, rows, phase
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
        contractions = [v for v in self.live if v.op == "matmul" or (v.op == "convolve" and v.attrs[0] != "weight")]
        for contraction in contractions:
            contraction_group = self.of[contraction]
            for reader in self.readers.get(contraction, ()):
                members = self._epilogue_members(contraction, reader) if reader.alive else []
                if members and self._can_be_epilogue(contraction, contraction_group, reader, members):
                    group = self._split(reader, members) if len(members) < len(reader.members) else reader
                    self._attach_epilogue(group, contraction, contraction_group)
                    break

    def _attach_epilogue(self, group: FusionGroup, contraction: Value, contraction_group: FusionGroup) -> None:
        """Make a group the epilogue of a contraction, whose own group was `contraction_group`."""
        self.order.merge(group.number, contraction_group.number)
        group.contraction = contraction
        group.members.insert(0, contraction)
        group.reads.discard(contraction)
        for base in contraction_group.reads:
            group.reads.add(base)
            readers = self.readers[base]
            readers.remove(contraction_group)
            if group not in readers:
                readers.append(group)
        self.of[contraction] = group
        contraction_group.alive = False

    def _epilogue_members(self, contraction: Value, group: FusionGroup) -> list[Value]:
        """The members of a group that can be an epilogue; empty where that does not pay.

        Sums over members that are stored anyway stay behind in the group.
        """
        if group.contraction is not None or group.is_opaque or group.size != contraction.size:
            return []
        sums = [m for m in group.members if m.op == "reduce"]
        elementwise = [m for m in group.members if m.op != "reduce"]
        if any(m.size != contraction.size for m in elementwise):
            return []
        if sums:
            summed = {arg.base for each in sums for arg in each.args}
            if len(summed) > 1 or not summed.issubset(elementwise) or not all(
                    self._must_be_stored(v, group) for v in summed):
                return []
            if any(arg.base in sums for m in elementwise for arg in m.args):
                return []
        return elementwise

    def _must_be_stored(self, value: Value, group: FusionGroup) -> bool:
        """Whether a member of a group is an output or read by another group."""
        return value in self._output_set or any(c.alive and c is not group for c in self.readers.get(value, ()))

    def _split(self, group: FusionGroup, moved: list[Value]) -> FusionGroup:
        """Move these members into a group of their own, which precedes the rest."""
        new_group = FusionGroup(moved[0], group.space, self.order.add())
        new_group.members = moved
        group.members = [m for m in group.members if m.op == "reduce"]
        for base in group.reads:
            self.readers[base].remove(group)
        group.reads = set()
        for member in moved:
            self.of[member] = new_group
        for each in (new_group, group):
            for member in each.members:
                self._record_reads(each, member)
        return new_group

    def _can_be_epilogue(self, contraction: Value, contraction_group: FusionGroup, group: FusionGroup,
                         members: list[Value]) -> bool:
        """Whether these members of a group can be the epilogue of a contraction."""
        if common_phase(contraction_group.phase, group.phase) is None:
            return False
        reads = {arg.base for m in members for arg in m.args
                 if self.of.get(arg.base) is not group and arg.base.op != "constant"}
        traffic = self._epilogue_traffic(group, contraction, members, reads) if typical(contraction.size) > LARGE else 0
        if traffic > MAX_EPILOGUE_ARRAYS:
            return False
        for member in members:
            for arg in member.args:
                if arg.base is contraction:
                    if not shows_whole_base(arg):
                        return False
                elif self.of.get(arg.base) is not group and arg.shape and algebra.reshape_strides(
                        arg.shape, arg.strides, contraction.shape) is None:
                    return False
        # the contraction runs where the group does: nothing that the group reads may depend on it
        return self._is_independent_of(contraction_group, [b for b in reads if b is not contraction])

    def _epilogue_traffic(self, group: FusionGroup, contraction: Value, members: list[Value], reads: set[Value]) -> int:
        """The number of arrays of the contraction's size that an epilogue would read and write."""
        read = sum(base is not contraction and base.size == contraction.size for base in reads)
        return read + sum(self._must_be_stored(member, group) for member in (contraction, *members))

    # ----- narrow values -----

    def _read_narrow(self) -> None:
        """Let kernels read narrow floats instead of what another kernel has widened them to."""
        for value in [v for v in self.of if v.op == "cast" and v.dtype == FLOAT32 and v.args[0].dtype in NARROW]:
            group, source = self.of[value], value.args[0].base
            readers = [each for each in self.readers.get(value, ()) if each.alive and each is not group]
            if value in self._output_set or source.op == "constant" or not readers or not shows_whole_base(
                    value.args[0]) or any(self._reads_as_stored(each, value) for each in readers):
                continue
            self.widened[value] = source
            for each in readers:
                self.readers[value].remove(each)
                self._replace_read(each, value, source)
            if not any(arg.base is value for member in group.members for arg in member.args):
                self._drop(group, value)

    def _reads_as_stored(self, group: FusionGroup, value: Value) -> bool:
        """Whether a group reads a value otherwise than element by element."""
        return group.is_opaque or group.size == 1 or (
            group.contraction is not None and any(arg.base is value for arg in group.contraction.args))

    def _replace_read(self, group: FusionGroup, value: Value, source: Value) -> None:
        group.reads.discard(value)
        group.reads.add(source)
        known = self.readers.setdefault(source, [])
        if group not in known:
            known.append(group)
        if source in self.of:
            self.order.add_predecessors(group.number, [self.of[source].number])

    def _drop(self, group: FusionGroup, value: Value) -> None:
        """Remove a member that nothing needs any more, and its group if it was the last."""
        group.members.remove(value)
        del self.of[value]
        needed = {self.widened.get(arg.base, arg.base) for member in group.members for arg in member.args}
        for base in [each for each in group.reads if each not in needed]:
            group.reads.discard(base)
            self.readers[base].remove(group)
        group.alive = bool(group.members)

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
        stored = {v for v in self.outputs if v in self.of}
        for group in self.groups:
            stored |= {base for base in group.reads if base in self.of}
        return stored


__all__ = ["Fusion", "FusionGroup"]
