"""`leaks()`: reports the graphs that are alive, and the objects that refer to them.

Between two steps of a training loop no graph should be alive. Usual causes are a list of losses, a running total, or
a recurrent state that is not detached.
"""

from __future__ import annotations

import gc
import re
import sys
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

from ..._tensor.tensor import Tensor
from ...engine.nodes.node import Node
from ...engine.nodes.op_node import OpNode
from .provenance import origin_of
from .saved_memory import format_bytes, saved_values

_MAX_DEPTH = 7  # levels of referrers that are searched
_MAX_HOLDERS = 4  # reported per object
_SLOTS = {"_grad": ".grad", "_base": "._base"}


class Holder(NamedTuple):
    """A reference that keeps an object alive.

    Attributes:
        path: the Python expression of the reference: `losses[0 … 9]`.
        where: "a global of __main__", "a local of train(), train.py:12".
        kind: "container", "name", "attribute", "gradient", "graph" or "cycle".
    """

    path: str
    where: str
    kind: str

    def __str__(self) -> str:
        return f"{self.path}, {self.where}" if self.path else self.where


@dataclass
class Leak:
    """Graphs that are held by the same objects.

    Attributes:
        names: the newest node of each, by name.
        references: weak references to these nodes.
        holders: the references that keep them alive.
        nodes: their total number of nodes.
        bytes: the memory that they save for backward.
        place: "train.py:12", the source line of the newest node, if recorded by `watching`.
        advice: a suggested change.
    """

    names: list[str]
    references: list[weakref.ref[Node]]
    holders: list[Holder]
    nodes: int
    bytes: int
    place: str
    advice: str

    @property
    def heads(self) -> list[Node]:
        """The newest node of each graph that is still alive."""
        return [node for node in (reference() for reference in self.references) if node is not None]

    def __str__(self) -> str:
        number = len(self.names)
        text = f"{number} graphs" if number != 1 else "a graph"
        lines = [f"{text} of {self.nodes} node{'s' * (self.nodes != 1)}{' together' * (number != 1)}, "
                 + (f"{format_bytes(self.bytes)} kept for backward" if self.bytes else
                    "nothing kept for backward any more")
                 + f", behind {self.names[-1]}" + (f" ({self.place})" if self.place else "")]
        lines += [f"    held by {holder}" for holder in self.holders] or [
            "    held by a reference that the garbage collector does not track"]
        return "\n".join([*lines, f"    → {self.advice}"] if self.advice else lines)


class Leaks(list[Leak]):
    """The leaks that were found; prints as a report.

    Attributes:
        cycles: nodes in reference cycles, which the garbage collector freed before the search: name -> count.
    """

    cycles: dict[str, int]

    def __str__(self) -> str:
        graphs = sum(len(leak.names) for leak in self)
        lines = [f"{graphs} graph{'s' * (graphs != 1)} alive" if self else "no graph is alive", *map(str, self)]
        if self.cycles:
            number = sum(self.cycles.values())
            freed = "it" if number == 1 else "them"
            text = f"{number} node{'s' * (number != 1)} ({', '.join(self.cycles)})"
            lines.append(f"{text} waited for the garbage collector, which has freed {freed} now")
            lines.append("    → a Function holds its own output on ctx, or a hook its tensor: save_for_backward(), "
                         "or a weak reference")
        return "\n".join(lines)


def leaks(keep: Any = ()) -> Leaks:
    """Find the graphs that are alive, and the references that keep them alive.

    Call it where no graph should be alive: after a step, with its loss deleted or passed as `keep`.

    Args:
        keep: a tensor, or several, whose graphs are expected to be alive.

    Returns:
        A list of `Leak`, the largest first; it prints as a report.

    >>> import flambeau as torch
    >>> from flambeau.viz import leaks
    >>> w = torch.ones(3, requires_grad=True)
    >>> losses = []
    >>> for _ in range(3):
    ...     loss = (w * w).sum()
    ...     loss.backward()
    ...     losses.append(loss)
    >>> del loss
    >>> found = [leak for leak in leaks() if leak.holders[0].path.startswith("losses")]
    >>> found[0].holders[0].path, found[0].nodes, found[0].advice
    ('losses[0 … 2]', 6, 'keep numbers, not tensors with a graph: loss.item(), or loss.detach()')
    """
    before = _names(gc.get_objects())
    gc.collect()
    alive = gc.get_objects()  # taken first, so that the search does not find its own objects
    expected_tensors = keep if isinstance(keep, (list, tuple)) else [keep]
    expected = _reachable([x._node for x in expected_tensors if x._node is not None])
    nodes = [thing for thing in alive if _is(thing, Node) and not thing.is_leaf]
    led_to = {id(edge) for node in nodes for edge in node.edges}
    led_to.update(id(getattr(node, "fn", None)) for node in nodes)
    heads = sorted((node for node in nodes if id(node) not in led_to and node not in expected),
                   key=lambda node: node.seq)
    tensors: dict[int, list[Any]] = {id(node): [] for node in heads}
    for thing in alive:
        if _is(thing, Tensor) and id(thing._node) in tensors:
            tensors[id(thing._node)].append(thing)
    targets = {id(node): tensors[id(node)] or [node] for node in heads}
    search = _Search(alive, [target for each in targets.values() for target in each])
    groups: dict[tuple[int, ...], list[Node]] = {}  # what holds them -> heads
    for node in heads:
        holding = {id(parent) for target in targets[id(node)] for parent in search.parents_of(target)}
        named = {hash(name) for target in targets[id(node)] for name in search.locals_of(target)}
        groups.setdefault(tuple(sorted(holding | named)), []).append(node)
    found = Leaks()
    found.cycles = dict(before - _names(alive))
    for members in groups.values():
        reached = _reachable(members)
        holders = search.holders([target for node in members for target in targets[id(node)]], reached)
        memory = {id(saved.memory): saved.bytes for node in reached for saved in saved_values(node)}
        origin = origin_of(members[-1])
        place = "" if origin is None or origin.place is None else f"{_base(origin.place.file)}:{origin.place.line}"
        number = sum(not node.is_leaf for node in reached)
        names = [node.name().rpartition("::")[2] for node in members]
        found.append(Leak(names, [weakref.ref(node) for node in members], holders, number, sum(memory.values()), place,
                          _advice(holders, number // len(members))))
    found.sort(key=lambda leak: (-leak.bytes, -leak.nodes))
    return found


def _names(alive: list[Any]) -> Counter[str]:
    """The number of live nodes by name."""
    nodes = [thing for thing in alive if _is(thing, Node) and not thing.is_leaf]
    return Counter(node.name().rpartition("::")[2] for node in nodes)


def _reachable(heads: Iterable[Node]) -> dict[Node, None]:
    """The nodes reachable from `heads`, including them."""
    found = dict.fromkeys(heads)
    waiting = list(found)
    while waiting:
        for successor in waiting.pop().edges:
            if successor is not None and successor not in found:
                found[successor] = None
                waiting.append(successor)
    return found


def _advice(holders: list[Holder], nodes_each: int) -> str:
    kinds = {holder.kind for holder in holders}
    if "gradient" in kinds:
        return "the gradient was made with create_graph=True: set .grad to None (zero_grad()) when it has been used"
    if kinds == {"cycle"}:
        return "a Function holds its own output on ctx, which only the garbage collector can free: save_for_backward()"
    if "container" in kinds:
        return "keep numbers, not tensors with a graph: loss.item(), or loss.detach()"
    if nodes_each > 200:
        return "if it is carried from step to step, the graph grows: detach() it between them"
    if "attribute" in kinds:
        return "keep detach() of it, or delete the attribute when the step is done"
    return "detach() it, or delete the name when the step is done" if kinds else ""


class _Search:
    """A breadth-first search from objects to their referrers, up to named objects.

    Args:
        alive: all objects that the garbage collector tracks.
        targets: where the search begins.
    """

    def __init__(self, alive: list[Any], targets: list[Any]) -> None:
        self.parents: dict[int, list[Any]] = {}
        self.locals: dict[int, list[tuple[str, str]]] = {}  # id of a value -> (name, frame)
        self.modules = {id(vars(module)): name for name, module in list(sys.modules.items())
                        if isinstance(module, ModuleType)}
        self.namespaces: set[int] = set()  # of frames: their variables are reported as locals
        for frame in _running(alive):
            code = frame.f_code
            if frame.f_locals is frame.f_globals:  # a script's globals
                self.modules.setdefault(id(frame.f_globals), str(frame.f_globals.get("__name__")))
                continue
            self.namespaces.add(id(frame.f_locals))
            where = f"a local of {code.co_qualname}(), {_base(code.co_filename)}:{frame.f_lineno}"
            for name, value in frame.f_locals.items():
                self.locals.setdefault(id(value), []).append((name, where))
        level = {id(target): target for target in targets}
        for _ in range(_MAX_DEPTH):
            if not level:
                break
            level = self._search_level(alive, level)

    def _search_level(self, alive: list[Any], level: dict[int, Any]) -> dict[int, Any]:
        """Record the referrers of the objects of a level; those without a name are the next level."""
        self.parents.update((key, []) for key in level)
        next_level: dict[int, Any] = {}
        for thing in alive:
            if _is(thing, _TRANSIENT) or id(thing) in self.namespaces:
                continue
            for referent in gc.get_referents(thing):
                if id(referent) in level and referent is level[id(referent)]:
                    found = self.parents[id(referent)]
                    if not found or found[-1] is not thing:
                        found.append(thing)
                    if id(thing) not in self.parents and not self._is_named(thing):
                        next_level[id(thing)] = thing
        return next_level

    def _is_named(self, thing: Any) -> bool:
        return id(thing) in self.modules or _is(thing, (type, FunctionType, ModuleType, OpNode))

    def parents_of(self, thing: Any) -> list[Any]:
        """The referrers of an object that were found."""
        return self.parents.get(id(thing), [])

    def locals_of(self, thing: Any) -> list[tuple[str, str]]:
        """The local variables whose value is an object."""
        return self.locals.get(id(thing), [])

    def holders(self, targets: list[Any], reached: dict[Node, None]) -> list[Holder]:
        """The references to the targets; a container that holds several is reported once."""
        steps: dict[int, tuple[Any, list[str]]] = {}
        found: list[Holder] = []
        for target in targets:
            found += [Holder(name, where, "name") for name, where in self.locals_of(target)]
            for parent in self.parents_of(target):
                steps.setdefault(id(parent), (parent, []))[1].extend(_steps(parent, target))
        inside = False
        for parent, ways in steps.values():
            node = self._node_of(parent)
            if node is None:
                found += self._named(parent, _series(ways), self._kind(parent, ways[0]), (id(parent),))
            elif node in reached:
                inside = True
            else:
                found.append(Holder("", f"{node.name()}, a node of another graph", "graph"))
        if inside and not found:
            found.append(Holder("", "itself alone", "cycle"))
        return sorted(dict.fromkeys(found), key=lambda holder: len(str(holder)))[:_MAX_HOLDERS]

    def _node_of(self, container: Any) -> Node | None:
        """The node that owns a container: its saved values, or attributes of `ctx`."""
        if _is(container, Node):
            found: Node = container
            return found
        if not _is(container, (dict, tuple, list)):
            return None
        for parent in self.parents_of(container):
            if _is(parent, Node):
                return self._node_of(parent)
            if _is(parent, (dict, tuple, list)) and any(_is(p, Node) for p in self.parents_of(parent)):
                return self._node_of(parent)
        return None

    def _kind(self, container: Any, step: str) -> str:
        if _is(container, Tensor):
            return "gradient" if step == ".grad" else "name"
        if id(container) in self.modules or _is(container, (CellType, FunctionType)):
            return "name"
        if _is(container, dict):
            owned = any(getattr(parent, "__dict__", None) is container for parent in self.parents_of(container))
            return "attribute" if owned else "container"
        if _is(container, (list, tuple, set, frozenset)) or type(container).__name__ == "deque":
            return "container"
        return "attribute"

    def _named(self, thing: Any, path: str, kind: str, seen: tuple[int, ...]) -> list[Holder]:
        """The named references to an object, each with the path from the name to the target."""
        module = self.modules.get(id(thing))
        if module is not None:
            head, _, rest = path.removeprefix("['").partition("']")
            return [Holder(_REGISTERED.sub(r".\2", head + rest), f"a global of {module}", kind)]
        if _is(thing, type):
            return [Holder(f"{thing.__qualname__}{_attribute(path)}", "an attribute of the class", "attribute")]
        if _is(thing, FunctionType):
            return [Holder(path.lstrip("."), f"a variable that the function {thing.__qualname__}() uses", kind)]
        if _is(thing, OpNode):
            return [Holder("", f"{thing.name()}, a node of another graph", "graph")]
        found = [Holder(_REGISTERED.sub(r".\2", f"{name}{path}"), where, kind) for name, where in self.locals_of(thing)]
        for parent in self.parents_of(thing):
            if id(parent) in seen:
                continue
            for step in _steps(parent, thing):
                longer = _attribute(path) if step == _ITSELF else f"{step}{path}"
                if _is(parent, FunctionType) and _is(thing, tuple):  # its cells
                    place, _, rest = path.removeprefix("[").partition("]")
                    longer = parent.__code__.co_freevars[int(place)] + rest
                found += self._named(parent, longer, kind, (*seen, id(parent)))
        if found:
            return found[:_MAX_HOLDERS]
        name = type(thing).__name__
        return [Holder(f"…{path}", f"in a{'n' * (name[0] in 'AEIOUaeiou')} {name}", kind)]


#: objects whose references last only while they run
_TRANSIENT = (FrameType, GeneratorType, CoroutineType, AsyncGeneratorType, _Search)
#: dictionaries of modules whose items are attributes
_REGISTERED = re.compile(r"\._(parameters|buffers|modules)\['(\w+)'\]")
_ITSELF = "\0"  # the step from an object to its dictionary


def _running(alive: list[Any]) -> Iterator[FrameType]:
    """The frames of all threads and of suspended generators."""
    innermost: list[FrameType | None] = list(sys._current_frames().values())
    while innermost:
        frame = innermost.pop()
        while frame is not None:
            if frame.f_code.co_filename != __file__:  # this file's frames refer to everything that was found
                yield frame
            frame = frame.f_back
    for thing in alive:
        if _is(thing, GeneratorType) and thing.gi_frame is not None and not thing.gi_running:
            yield thing.gi_frame


def _steps(container: Any, target: Any) -> list[str]:
    """The expression of each reference from a container to an object: `[0]`, `.name`."""
    if _is(container, dict):
        return [f"[{key!r}]" for key, value in list(container.items()) if value is target] or [" among its keys"]
    if _is(container, (list, tuple)) or type(container).__name__ == "deque":
        return [f"[{place}]" for place, value in enumerate(container) if value is target]
    if _is(container, (set, frozenset)):
        return [" among its items"]
    if _is(container, (CellType, type)):
        return [""]
    if _is(container, FunctionType):
        return [""] if target is container.__closure__ else ["'s defaults"]
    if _is(container, (MethodType, BuiltinFunctionType)):
        return [".__self__"]
    if _is(container, Tensor):
        return [text for slot, text in _SLOTS.items() if getattr(container, slot, None) is target] or [".__dict__"]
    dictionary = getattr(container, "__dict__", None)
    if dictionary is target:
        return [_ITSELF]
    if isinstance(dictionary, dict):
        names = [name for name, value in list(dictionary.items()) if value is target]
        if names:
            return [f".{name}" for name in names]
    slots = [name for cls in type(container).__mro__ for name in _slots(cls)
             if getattr(container, name, None) is target]
    return [f".{name}" for name in slots] or [" holds it"]


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _attribute(path: str) -> str:
    """`['loss'][0]`, of an object's dictionary, as `.loss[0]` of the object."""
    head, found, rest = path.removeprefix("['").partition("']")
    return f".{head}{rest}" if found and path.startswith("['") else path


def _series(steps: list[str]) -> str:
    """Several references from one container: `[0 … 9]`."""
    steps = sorted(dict.fromkeys(steps), key=lambda step: (len(step), step))
    if len(steps) == 1:
        return steps[0]
    first, last = steps[0], steps[-1]
    if first[1:-1].isdigit() and last[1:-1].isdigit():
        return f"{first[:-1]} … {last[1:]}"
    return f"{first} (and {len(steps) - 1} more)"


def _is(thing: Any, kinds: Any) -> bool:
    """`isinstance` by the real class: proxies may override `__class__`."""
    return issubclass(type(thing), kinds)


def _base(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


__all__ = ["Holder", "Leak", "Leaks", "leaks"]
