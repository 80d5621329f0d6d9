"""Nodes: one recorded application of an operator, and the edges to what it came from.

A node is born after the nodes it points to, so birth numbers (`_sequence_nr`) order the
graph: newest first is a valid order for backward, and PyTorch's.
"""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from .. import dtypes
from ..backends.compiled.thresholds import MET
from ..backends.errstate import run_in_quiet
from ..modes import configured
from ..ops.backward_plan import NOTHING, ONE_INPUT, ONE_OUTPUT, SEVERAL, TWO_INPUTS, BackwardPlan
from ..ops.declare import Op
from .anomaly_mode import Anomaly
from .saved_tensors import HAS_HOOKS, IS_FREED, IS_NONE, Hooks, Packed, place_of
from .tensor_interface import layer as layer  # the layers above import it from here
from .version_counters import IS_DETACHED, WRITES, was_detached

next_number: Callable[[], int] = count().__next__

FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


class _Freed:
    """Stands where something saved was, once it was freed."""


FREED = _Freed()


class RemovableHandle:
    """Takes a hook away again: `handle.remove()`, or at the end of a `with` block."""

    _next_id = count().__next__

    def __init__(self, hooks: Any, *, extra_dict: Any = None) -> None:
        self.id = RemovableHandle._next_id()
        self.hooks_dict_ref = weakref.ref(hooks)
        others = extra_dict if isinstance(extra_dict, list) else [extra_dict] if extra_dict is not None else []
        self.extra_dict_ref = tuple(weakref.ref(d) for d in others)

    def remove(self) -> None:
        """Take the hook away; nothing happens if it is gone already."""
        configured[0] += 1
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class HookDict(OrderedDict):
    """Hooks in the order they were registered; a plain dict takes no weak reference."""


class Extra:
    """What few nodes have: hooks and metadata."""

    __slots__ = ("metadata", "post_hooks", "pre_hooks", "retained", "shown", "tangents", "tensor_hooks", "within",
                 "written")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, HookDict] | None = None  # output number -> hooks on that cotangent
        self.retained: dict[int, Any] | None = None  # output number -> weak reference to the tensor
        self.shown: dict[int, Any] | None = None  # output number -> shape and dtype, where somebody noted them
        self.pre_hooks: HookDict | None = None
        self.post_hooks: HookDict | None = None
        self.metadata: dict[Any, Any] | None = None
        self.tangents: dict[int, Any] | None = None  # of saved outputs, by output number
        self.within: Any = None  # weak reference to the node that runs this one on a part of its own cotangent
        self.written: Any = None  # weak reference to the view that the operator wrote to


class _NodeType(type):
    # PyTorch's node classes live in no module a user can name; their reprs show the bare name
    def __repr__(cls) -> str:
        return f"<class '{cls.__name__}'>"


class Node(metaclass=_NodeType):
    """One step of the graph: called with the cotangents of its outputs, it gives those of its inputs.

    >>> import flambeau as torch
    >>> x = torch.tensor(2., requires_grad=True)
    >>> node = (x * x).grad_fn
    >>> node.name(), node(torch.tensor(1.))
    ('MulBackward0', (tensor(2., grad_fn=<MulBackward0>), tensor(2., grad_fn=<MulBackward0>)))
    """

    __slots__ = ("__weakref__", "edge0", "edge1", "edge_outputs", "extra", "more_edges", "n_edges", "outputs", "run",
                 "seq")

    # The node each input came from (None where no gradient is wanted). The first two stand by themselves: a tuple
    # would be one more object for the garbage collector to walk, three times a node's own share in a long graph.
    edge0: Node | None
    edge1: Node | None
    more_edges: tuple[Node | None, ...]
    n_edges: int
    edge_outputs: tuple[int, ...] | None  # which output of that node; None where all are the first
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...] | None  # shapes and dtypes, where several outputs
    run: Callable[[Any, Any], Any] | None  # the short way on arrays; None where `vjp` must do
    seq: int
    extra: Extra | None
    is_leaf = False
    renumbered = False  # whether somebody changed birth numbers, which then order the graph no longer by themselves
    runs_undefined = False  # whether it runs even if no cotangent arrived
    materializes = True  # whether missing cotangents of several outputs become zeros

    @property
    def edges(self) -> tuple[Node | None, ...]:
        """The node that each input came from; None where no gradient is wanted."""
        n = self.n_edges
        if n == 2:
            return (self.edge0, self.edge1)
        if n == 1:
            return (self.edge0,)
        return (self.edge0, self.edge1, *self.more_edges) if n else ()

    @edges.setter
    def edges(self, edges: tuple[Node | None, ...]) -> None:
        n = self.n_edges = len(edges)
        self.edge0 = edges[0] if n else None
        self.edge1 = edges[1] if n > 1 else None
        self.more_edges = edges[2:]

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        """The cotangents of the inputs, one each (None where there is none).

        Args:
            cotangents: of the output; a list where there are several outputs.
            tensors: whether values are tensors, to be recorded; else bare arrays.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Forget what was saved."""

    def check_saved(self) -> None:
        """Refuse to run without a cotangent where it could not run with one: freed, or written to since."""

    def _more(self) -> Extra:
        if self.extra is None:
            self.extra = Extra()
            self.run = None  # the short way knows nothing of it
        return self.extra

    # ----- PyTorch's interface -----

    def name(self) -> str:
        """The name of the operator's backward, `MulBackward0`."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that the inputs came from, each with the number of the output it was."""
        numbers = self.edge_outputs or (0,) * len(self.edges)
        drawn = self.drawn_edges()
        found = tuple(zip([revealed(node) for node in self.edges], numbers, strict=True))
        return found if drawn is None else tuple(found[i] for i in drawn)

    def drawn_edges(self) -> list[int] | None:
        """Which inputs have an edge in `next_functions`: indices and masks have none. None: all."""
        return None

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whatever the user wants to keep with this node."""
        more = self._more()
        if more.metadata is None:
            more.metadata = {}
        return more.metadata

    @property
    def _input_metadata(self) -> list[Any]:
        return list(self.outputs or ())

    def _sequence_nr(self) -> int:
        return self.seq

    def _set_sequence_nr(self, number: int) -> None:
        Node.renumbered = True
        self.seq = number

    @property
    def requires_grad(self) -> bool:
        return True

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; what it returns replaces `grad_inputs`."""
        more = self._more()
        if more.post_hooks is None:
            more.post_hooks = HookDict()
        handle = RemovableHandle(more.post_hooks)
        more.post_hooks[handle.id] = fn
        return handle

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; what it returns replaces `grad_outputs`."""
        more = self._more()
        if more.pre_hooks is None:
            more.pre_hooks = HookDict()
        handle = RemovableHandle(more.pre_hooks)
        more.pre_hooks[handle.id] = fn
        return handle

    def register_tensor_hook(self, output: int, hooks: HookDict) -> None:
        """Let the hooks of the tensor that is output number `output` see its cotangent first."""
        more = self._more()
        if more.tensor_hooks is None:
            more.tensor_hooks = {}
        more.tensor_hooks[output] = hooks

    def __call__(self, *cotangents: Any) -> Any:
        """Run this step by hand: cotangents of the outputs in, of the inputs out."""
        from .engine import run_node

        found = run_node(self, cotangents)
        return found[0] if len(found) == 1 else tuple(found)


class OpNode(Node):
    """A node of a declared operator: its plan says what was saved and which rules run.

    While it works it is a plain OpNode, whatever its operator: CPython's attribute access is
    quick where an object's class is always the same. Looked at, it takes the class that users
    know it by, `MulBackward0` (`revealed`).
    """

    __slots__ = ("consts", "fix", "plan", "saved0", "saved1", "versions")
    # What was saved, laid out as `plan.layout` says: nothing, one input, two inputs, an output and its version
    # counter, or a tuple of whatever it is. FREED in the first place once it was freed.
    saved0: Any
    saved1: Any
    versions: tuple[int, ...] | None  # their versions when saved; None where all were 0
    consts: tuple[Any, ...]
    plan: BackwardPlan
    fix: tuple[Any, ...] | None  # (shapes, dtypes, conjugate): what to mend in the gradients, if anything

    @property
    def op(self) -> Op:
        """The operator that was applied."""
        return self.plan.op

    def name(self) -> str:
        name = self.plan.op.node
        return f"torch::autograd::{name}" if name in _NAMESPACED else name

    @property
    def saved(self) -> tuple[Any, ...] | None:
        """Tensors, then (array, counter) of outputs; None once freed."""
        first = self.saved0
        if first is FREED:
            return None
        layout = self.plan.layout
        if layout == NOTHING:
            return ()
        if layout == ONE_INPUT:
            return (first,)
        if layout == TWO_INPUTS:
            return (first, self.saved1)
        return ((first, self.saved1),) if layout == ONE_OUTPUT else first

    @saved.setter
    def saved(self, saved: tuple[Any, ...]) -> None:
        layout = self.plan.layout
        self.saved0 = self.saved1 = None
        if layout == ONE_INPUT:
            self.saved0, = saved
        elif layout == TWO_INPUTS:
            self.saved0, self.saved1 = saved
        elif layout == ONE_OUTPUT:
            (self.saved0, self.saved1), = saved
        elif layout == SEVERAL:
            self.saved0 = saved

    def check_saved(self) -> None:
        if self.plan.saves_tensors:
            self.unpack(False)

    def release(self) -> None:
        if self.plan.layout:
            self.saved0 = FREED
            self.saved1 = None

    def drawn_edges(self) -> list[int] | None:
        op = self.op
        if not op.nondifferentiable_inputs:
            return None
        without = op.nondifferentiable_inputs
        star = len(op.inputs) - 1 if op.variadic and op.inputs[-1] in without else len(self.edges)
        last = len(op.inputs) - 1
        return [i for i in range(len(self.edges)) if i < star and op.inputs[min(i, last)] not in without]

    def unpack(self, tensors: bool) -> list[Any]:
        """The saved values, versions checked."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED_MESSAGE)
        values = []
        versions = self.versions
        n_tensors = len(saved) - len(self.plan.saved_outputs)
        for i, entry in enumerate(saved):
            expected = 0 if versions is None else versions[i]
            if i < n_tensors:
                if entry is None or entry.__class__ in dtypes.PYTHON_CATEGORY:
                    values.append(entry)
                    continue
                if entry.__class__ is Packed:
                    values.append(self._unpacked(entry, tensors))
                    continue
                counter = entry._counter
                if counter is not None and counter[0] != expected:
                    raise RuntimeError(self._first_modified(saved, versions))
                values.append(entry if tensors else entry._array)
            else:
                array, counter = entry
                if counter is None:
                    values.append(self._unpacked(array, tensors))
                    continue
                number = self.plan.saved_outputs[i - n_tensors]
                if counter[0] != expected:
                    raise RuntimeError(self._first_modified_output(saved[n_tensors:], versions, n_tensors))
                values.append(self._output(array, number, counter) if tensors else array)
        return values

    def _first_modified_output(self, saved: Sequence[Any], versions: tuple[int, ...] | None, start: int) -> str:
        """`_first_modified`, of saved outputs."""
        names = self._kept_names()[start:]
        for _, i in sorted(zip(names, range(len(saved)), strict=True)):
            array, counter = saved[i]
            expected = 0 if versions is None else versions[start + i]
            if counter is not None and counter[0] != expected:
                return _modified_output(self, array, self.plan.saved_outputs[i], counter[0], expected)
        raise AssertionError("no output was written to")

    def _first_modified(self, saved: tuple[Any, ...], versions: tuple[int, ...] | None) -> str:
        """What to say of saved inputs that were written to: of the first by name, as PyTorch looks at them."""
        found = []
        for i, name in enumerate(self._kept_names()[: len(saved) - len(self.plan.saved_outputs)]):
            counter = getattr(saved[i], "_counter", None)
            expected = 0 if versions is None else versions[i]
            if counter is not None and counter[0] != expected:
                found.append((name, i, expected))
        _, i, expected = min(found)
        return _modified(saved[i], saved[i]._counter[0], expected)

    def _unpacked(self, packed: Packed, tensors: bool) -> Any:
        value = packed.unpack(self)
        if packed.as_number:
            return value
        if packed.is_output and self.extra is not None and self.extra.tangents:
            value._tangents = self.extra.tangents.get(packed.number)
        return value if tensors else value._array

    def _output(self, array: np.ndarray, number: int, counter: list[int]) -> Any:
        """A tensor for a saved output: this node's, with the tangent it had."""
        tensor = layer.wrap_output(array, self, number, counter)
        if self.extra is not None and self.extra.tangents and number in self.extra.tangents:
            tensor._tangents = self.extra.tangents[number]
        return tensor

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        plan = self.plan
        fix = self.fix
        gs = tuple(cotangents) if self.op.n_outputs > 1 else (cotangents,)
        unpacked = self.unpack(tensors) if plan.saves_tensors else []
        if fix is not None:
            if not tensors and fix[3]:
                gs = tuple(None if g is None else dtypes.widen(g) for g in gs)
                unpacked = [dtypes.widen(v) if v.__class__ is np.ndarray else v for v in unpacked]
            if fix[2]:
                conj = layer.functions.conj if tensors else np.conjugate
                gs = tuple(None if g is None else conj(g) for g in gs)
        if self.op.tensor_list:
            gs = (list(gs),)
        values = (*gs, layer.functions if tensors else layer.arrays, plan.needs, *unpacked, *self.consts)
        if plan.joint is not None:
            if self.op.variadic:
                values = self._gather_variadic(values)
            function, pick = plan.joint
            given = pick(values)
            result = list(run_in_quiet(function, given) if MET[0] and not tensors else function(*given))
            result += [None] * (len(self.edges) - len(result))
            for i, need in enumerate(plan.needs):
                if not need:
                    result[i] = None
        else:
            result = [None] * len(self.edges)
            for i, function, pick in plan.steps:
                given = pick(values)
                result[i] = run_in_quiet(function, given) if MET[0] and not tensors else function(*given)
        return result if fix is None else self._mend(result, tensors)

    def _gather_variadic(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.plan.saved_inputs:
            count = len(self.edges) - len(self.op.inputs) + 1
            start = self.op.n_outputs + 2 + len(self.plan.saved_inputs) - count
            return (*values, list(values[start: start + count]))
        return values

    def _mend(self, result: list[Any], tensors: bool) -> list[Any]:
        """Sum over broadcast axes, conjugate back, and give each gradient its input's dtype."""
        assert self.fix is not None
        shapes, types, conjugate, _ = self.fix
        xp = layer.functions if tensors else layer.arrays
        for i, g in enumerate(result):
            if g is None:
                continue
            if conjugate:
                g = xp.conj(g) if tensors else np.conjugate(g)
            if shapes is not None and g.shape != shapes[i]:
                g = xp.sum_to_size(g, shapes[i])
            if types is not None:
                array_type = g._array.dtype if tensors else g.dtype
                wanted = types[i]
                if array_type != wanted:
                    if array_type.kind == "c" and wanted.kind != "c":
                        g = xp.real(g)
                    g = xp.to(g, dtypes.of(wanted))
            result[i] = g
        return result

    # ----- what was saved, under PyTorch's names -----

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            return self._kept_value(name.removeprefix("_raw").removeprefix("_saved_"), name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _kept_names(self) -> list[str]:
        op, plan = self.op, self.plan
        last = len(op.inputs) - 1
        found = [op.inputs[min(i, last)] for i in plan.saved_inputs]  # those of a variadic input share its name
        if op.outputs is None:
            found += ["result" for _ in plan.saved_outputs]
        else:
            found += [op.outputs[k] for k in plan.saved_outputs]
        return ["self" if name == "input" else name for name in found]

    def _kept_value(self, wanted: str, attribute: str) -> Any:
        places = [place for place, name in enumerate(self._kept_names()) if name == wanted]
        if places:
            read = functools.partial(place_of, self) if attribute.startswith("_raw") else self._read_saved
            if self.op.variadic and wanted == self.op.inputs[-1]:
                return tuple(map(read, places))
            return read(places[0])
        for (what, which), value in zip(self.plan.consts, self.consts, strict=True):
            if what == "param" and which == wanted and type(value) is not list:
                return value
            if what == "shape" and which == 0 and wanted == "self_sym_sizes":
                return tuple(value)
        if wanted == "alpha" and self.plan.op.node in _SCALED:
            return 1
        if wanted in self._names_unkept():
            return None
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute}'")

    def _place(self, place: int) -> tuple[Any, list[int] | None, int | None]:
        """What is held in one place, its version counter, and which output it is (None: an input)."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED_MESSAGE)
        at = place - len(saved) + len(self.plan.saved_outputs)
        if at >= 0:
            return *saved[place], self.plan.saved_outputs[at]
        return saved[place], getattr(saved[place], "_counter", None), None

    def _read_saved(self, place: int) -> Any:
        entry, counter, number = self._place(place)
        if entry.__class__ is Packed:
            entry = self._unpacked(entry, True)
        elif counter is not None and counter[0] != (expected := 0 if self.versions is None else self.versions[place]):
            text = _modified(entry, counter[0], expected) if number is None else (
                _modified_output(self, entry, number, counter[0], expected))
            raise RuntimeError(text)
        elif number is not None:
            return self._output(entry, number, counter or [0])
        return layer.wrap(np.asarray(entry)) if entry.__class__ in dtypes.PYTHON_CATEGORY else entry

    def _held(self, place: int) -> Any:
        entry, _, number = self._place(place)
        if entry.__class__ is Packed:
            return entry.data
        if number is None:
            return layer.wrap(np.asarray(entry)) if entry.__class__ in dtypes.PYTHON_CATEGORY else entry
        return layer.wrap(entry)

    def _unpack_hook_of(self, place: int) -> Any:
        entry = self._place(place)[0]
        return entry.unpack_hook if entry.__class__ is Packed else None

    def _pack_saved(self, place: int, hooks: Hooks) -> None:
        if self.saved is None:
            raise RuntimeError(IS_FREED)
        entry, counter, number = self._place(place)
        if entry.__class__ is Packed:
            raise RuntimeError(HAS_HOOKS)
        if entry is None:
            raise RuntimeError(IS_NONE)
        if number is not None:
            shown = layer.wrap(entry)
            shown._counter = counter
            packed = Packed(self._output(entry, number, counter or [0]), hooks, is_output=True, shown=shown)
        elif entry.__class__ in dtypes.PYTHON_CATEGORY:
            packed = Packed(layer.functions.tensor(entry), hooks, as_number=True)
        else:
            packed = Packed(entry, hooks, shown=entry.detach())
        self.hold_packed({place: packed})

    def hold_packed(self, packed: dict[int, Packed]) -> None:
        """Hold packed values, by their places, instead of the tensors saved there."""
        saved = list(self.saved or ())
        first_output = len(saved) - len(self.plan.saved_outputs)
        for place, value in packed.items():
            saved[place] = value if place < first_output else (value, None)
        self.saved = tuple(saved)
        self.run = None  # the short ways read arrays

    def __dir__(self) -> list[str]:
        names = ["_saved_" + name for name in dict.fromkeys(self._kept_names())]
        names += ["_raw" + name for name in names]
        for (what, which), value in zip(self.plan.consts, self.consts, strict=True):
            if what == "param" and type(value) is not list:  # a list is what an operator leaves to its rule
                names.append("_saved_" + which)
            elif what == "shape" and which == 0:
                names.append("_saved_self_sym_sizes")
        names += ["_saved_" + name for name in self._names_unkept()]
        if self.plan.op.node in _SCALED and "_saved_alpha" not in names:
            names.append("_saved_alpha")
        return sorted([*object.__dir__(self), *names])

    def _names_unkept(self) -> list[str]:
        """What rules that did not run up to here would have asked for: PyTorch shows it as None."""
        op = self.plan.op
        if op.variadic or op.joint_vjp_rule is not None:
            return []
        kept = set(self._kept_names())
        wanted = {name for rule in op.vjp_rules.values() if rule for name in rule.names}
        return [name for name in ("self" if name == "input" else name for name in op.inputs
                                  if name in wanted) if name not in kept]

    @property
    def saved_tensors(self) -> Iterator[Any]:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'saved_tensors'")


#: nodes that show the factor of their second operand, though it be 1
_SCALED = frozenset(("AddBackward0", "SubBackward0"))

#: nodes that PyTorch writes by hand, in a namespace
_NAMESPACED = frozenset(("CopyBackwards",))

_classes: dict[str, type] = {}


def revealed(node: Node | None) -> Node | None:
    """The node, under the class that bears its name: what a user may see of it."""
    if type(node) is OpNode:
        name = node.plan.op.node
        cls = _classes.get(name)
        if cls is None:
            cls = _classes[name] = _NodeType(name, (OpNode,), {"__slots__": ()})
        node.__class__ = cls
    return node


def _type_text(array: np.ndarray) -> str:
    d = dtypes.of(array.dtype)
    name = f"CPU{d.legacy.removesuffix('Tensor')}Type" if array.dtype.kind == "c" else f"torch.{d.legacy}"
    return f"{name} {list(array.shape)}"


def _modified(tensor: Any, version: int, expected: int) -> str:
    if was_detached(version, expected):
        return IS_DETACHED
    origin = ""
    if not tensor.is_leaf:
        origin = f", which is output {tensor._output_nr} of {operator_of(tensor.grad_fn)},"
    return _modified_text(tensor._array, origin, version, expected)


def operator_of(node: Node) -> str:
    """The operator's name as PyTorch's messages have it: the node's, without `Backward0` (`Sum1` of `SumBackward1`)."""
    name = node.name()
    head, found, tail = name.rpartition("Backward")
    if not found or (tail and not tail.isdigit()):
        return name
    return head if tail == "0" else head + tail


def _modified_output(node: OpNode, array: np.ndarray, number: int, version: int, expected: int) -> str:
    if was_detached(version, expected):
        return IS_DETACHED
    view = None if node.extra is None or node.extra.written is None else node.extra.written()
    if view is not None and view._base is not None and view._view_version in (-1, expected):
        node, number = view.grad_fn, view._output_nr
    return _modified_text(array, f", which is output {number} of {operator_of(node)},", version, expected)


def _modified_text(array: np.ndarray, origin: str, version: int, expected: int) -> str:
    hint = ("enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False).")
    if Anomaly.enabled:
        hint = ("the backtrace further above shows the operation that failed to compute its gradient. The variable in "
                "question was changed in there or anywhere later. Good luck!")
    return ("one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{_type_text(array)}]{origin} is at version {version & WRITES}; expected version {expected & WRITES} "
            f"instead. Hint: {hint}")


class LeafHooks:
    """The leaves that hooks were put on: while one still has some, a leaf's turn comes as soon as it is ready."""

    #: weak references to leaf tensors and to their nodes, by identity
    found: dict[int, weakref.ref[Any]] = {}  # noqa: RUF012

    @classmethod
    def put_on(cls, leaf: Any) -> None:
        """Note that a leaf tensor, or its node, has hooks from now on."""
        key = id(leaf)
        cls.found[key] = weakref.ref(leaf, lambda _: cls.found.pop(key, None))

    @classmethod
    def any(cls) -> bool:
        """Whether a leaf that is alive has hooks; those that have none any more are forgotten."""
        # copied at once: a list of pairs may let the collector run, and with it what takes entries out
        for key, reference in cls.found.copy().items():
            leaf = reference()
            if leaf is not None and _has_hooks(leaf):
                return True
            if cls.found.get(key) is reference:
                cls.found.pop(key, None)
        return False


def _has_hooks(leaf: Any) -> bool:
    if isinstance(leaf, AccumulateGrad):
        extra = leaf.extra
        return extra is not None and bool(extra.pre_hooks or extra.post_hooks or extra.retained or extra.metadata
                                          or any((extra.tensor_hooks or {}).values()))
    return bool(leaf._hooks or leaf._post_accumulate_hooks) or leaf._grad_type != ()


class AccumulateGrad(Node):
    """The end of an edge: adds the cotangent that reaches it into `variable.grad`.

    >>> import flambeau as torch
    >>> x = torch.tensor(2., requires_grad=True)
    >>> node = (x * 3).grad_fn.next_functions[0][0]
    >>> node.variable is x
    True
    """

    __slots__ = ("met", "variable")
    is_leaf = True
    met: Any  # whether a product has met it before, whose gradients may be `gathered` then

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        # written out: a loop on one leaf makes one of these in every turn
        self.edge0 = self.edge1 = self.edge_outputs = self.outputs = self.extra = self.run = self.met = None
        self.more_edges = ()
        self.n_edges = 0
        self.seq = next_number()

    def vjp(self, cotangents: Any, tensors: bool) -> tuple[()]:
        from .accumulate_grad import accumulate

        accumulate(self.variable, cotangents if type(cotangents) is list else [cotangents], tensors)
        return ()

    def _more(self) -> Extra:
        LeafHooks.put_on(self)
        return super()._more()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"

    def _sequence_nr(self) -> int:
        return 2**64 - 1

    def __call__(self, *cotangents: Any) -> Any:
        from .engine import run_node

        return tuple(run_node(self, cotangents))
