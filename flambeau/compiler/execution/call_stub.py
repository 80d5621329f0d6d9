"""The short way into a program: a Python function written for one kind of call.

It looks at the arguments and at everything else that the run depended on, fills in the addresses, calls the compiled
code, and makes the results: nothing is looked up that is known beforehand. `Replay.source` shows its lines.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.tensor import wrap
from ...engine.grad_mode import grad_mode, inference
from ...engine.node import LeafHooks
from ...modes import configured, inferred, special
from ...runtime import launch, thread_pool
from ...trees import is_container, tree_unflatten
from ..guards.arguments import Held, Made, advance
from ..guards.environment import LOOKS, expression, is_, is_span
from ..guards.tensor_state import are_hooked
from ..tracing.aliasing import address, owner
from .buffer_donation import again
from .cache_entry import MISSED, Replay

#: arguments whose memory is compared pair by pair
_FEW = 4


class _Lines:
    """Lines of Python, and the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "special": special, "grad_mode": grad_mode.get, "inference": inference.get,
            "default_dtype": dtypes.get_default_dtype, "configured": configured, "MISSED": MISSED, "Tensor": Tensor,
            "owner": owner, "address": address, "advance": advance, "inferred": inferred,
            "pool": thread_pool.pool, "empty": np.empty, "again": again, "wrap": wrap,
            "unflatten": tree_unflatten, "is_": is_, "hooked": LeafHooks.found,
            "are_hooked": are_hooked}
        self._known: dict[int, str] = {}

    def name(self, thing: Any, prefix: str) -> str:
        """A name for an object."""
        found = self._known.get(id(thing))
        if found is None:
            found = self._known[id(thing)] = f"{prefix}{len(self._known)}"
            self.names[found] = thing
        return found

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def unless(self, depth: int, *conditions: str) -> None:
        """Leave where one of these does not hold."""
        self.add(depth, f"if not ({' and '.join(conditions)}):")
        self.add(depth + 1, "return MISSED")


def call_stub(replay: Replay, args: tuple, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """The function written for calls like this one; None where there is none."""
    if replay.short is None:
        replay.short = (None,)
        if not kwargs and not any(is_container(x) for x in args):
            made = fast_call(replay, list(args))
            if made is not None:
                replay.short, replay.source = made[:1], made[1]
    return replay.short[0]


def fast_call(replay: Replay, arguments: list[Any]) -> tuple[Callable[..., Any], str] | None:
    """The function for calls like one with these positional arguments, and its source; None where there is none."""
    program = replay.program
    given = [x for x in arguments if isinstance(x, Tensor)]
    if replay.trace.starts or any(x._inference for x in given):
        return None
    if len({id(owner(x._array)) for x in given}) != len(given):
        return None
    lines = _Lines()
    names = lines.names
    record = program.template
    names |= {"record": record, "acquire": program.lock.acquire, "release": program.lock.release, "replay": replay}
    lines.add(0, "def call_compiled(*args):")
    lines.unless(1, "not special[0]", f"len(args) == {len(arguments)}")
    if arguments:
        lines.add(1, f"{', '.join(f'a{i}' for i in range(len(arguments)))}, = args")
    tensors: list[str] = []
    for i, x in enumerate(arguments):
        if isinstance(x, Tensor):
            a = x._array
            pin = replay.pins[len(tensors)]
            kind, dtype = lines.name(type(x), "type_"), lines.name(a.dtype, "dtype_")
            lines.unless(1, f"a{i}.__class__ is {kind}")
            lines.add(1, f"x{i} = a{i}._array")
            lines.unless(1, f"x{i}.shape == {a.shape}", f"x{i}.strides == {a.strides}", f"x{i}.dtype is {dtype}",
                         f"a{i}._requires_grad is {x._requires_grad}",
                         f"a{i}._node is {'not ' * (x._node is not None)}None")
            _pinned(lines, i, a, pin)
            tensors.append(f"{i}")
        elif isinstance(x, (bool, int, float, complex, str, bytes, type(None))):
            lines.unless(1, f"a{i}.__class__ is {lines.name(type(x), 'type_')}", _equal(lines, f"a{i}", x))
        elif is_span(x):
            lines.unless(1, f"a{i}.__class__ is {type(x).__name__}", f"repr(a{i}) == {repr(x)!r}")
        else:
            lines.unless(1, f"a{i} is {lines.name(x, 'object_')}")
    lines.unless(1, f"grad_mode() is {grad_mode.get()}", f"inference() is {inference.get()}",
                 f"default_dtype() is {lines.name(dtypes.get_default_dtype(), 'dtype_')}")
    lines.unless(1, "configured[0] == replay.configured or replay.is_configured()")
    sources = [replay.trace.sources[number] for number in program.inputs]
    inputs = {id(source[1]) for source in sources if source[0] == "tensor"}
    seen = [each for each in (*replay.environment, *replay.remembered)
            if each.kind != LOOKS or id(each.holder) not in inputs]  # whose arrays are compared anyhow
    if seen:
        lines.add(1, "try:")
        for each in seen:
            lines.unless(2, expression(each, lines.name))
        lines.add(1, "except (LookupError, AttributeError, ValueError):")
        lines.add(2, "return MISSED")
    if replay.flags_are_same.hooked:
        lines.unless(1, "replay.flags_are_same()")
    else:
        lines.unless(1, "not hooked or replay.flags_are_same()")
    if replay.trace.ran_backward and tensors:
        lines.unless(1, f"not hooked or not are_hooked({', '.join(f'a{i}' for i in tensors)})")
    inference_tensors = [f"a{i}._inference" for i in tensors]
    if inference_tensors:
        lines.unless(1, f"(not inferred[0] or not ({' or '.join(inference_tensors)}))")
    if not all(pin is not None and pin[1] is not None for pin in replay.pins):
        _apart(lines, replay, tensors)
    if replay.trace.groups:
        lines.unless(1, "replay.optimizers_are_same()")
    if not _guards(lines, replay, tensors):
        return None
    lines.add(1, "if not acquire(False):")
    lines.add(2, "return MISSED")
    lines.add(1, "try:")
    owners = []  # the arrays by name
    for i, number in enumerate(program.inputs):
        source = replay.trace.sources[number]
        place = launch.FIRST + i
        if source[0] == "argument":
            owners.append(f"x{tensors[source[1]]}")
            lines.add(2, f"record[{place}] = id({owners[-1]})")
        elif source[0] == "gradient of":
            owners.append(f"g{number}")
            lines.add(2, f"record[{place}] = id({owners[-1]})")
        elif source[0] == "number":
            array = replay.numbers[number]
            record[place] = id(array)
            owners.append(lines.name(array, "number"))
            lines.add(2, f"{owners[-1]}[()] = n{number}")
        else:
            record[place] = id(source[2])
            owners.append(lines.name(source[2], "array"))
    for k, (shape, kind_of_out) in enumerate(program.output_specs):
        held = replay.renewed.get(k)
        made = "empty(" if held is None else f"again({_held(lines, held, tensors)}, "
        lines.add(2, f"o{k} = {made}{shape}, {lines.name(kind_of_out, 'dtype_')})")
        lines.add(2, f"record[{program.first_out + k}] = id(o{k})")
        owners.append(f"o{k}")
    record[launch.FIRST + program.execution_plan.arena_entry] = program.arena[1]
    if program.single is not None:
        names["call"] = program.single.call
        lines.add(2, "record[0] = pool()")
        lines.add(2, "if call(record):")
    else:
        owners.append(f"*{lines.name(program.internal_arrays(program.arena), 'rest')}")
        lines.add(2, f"if not replay.program.run_segments(record, [{', '.join(owners)}]):")
    lines.add(3, "return MISSED")
    lines.add(1, "finally:")
    lines.add(2, "release()")
    _results(lines, replay, tensors)
    source_text = "\n".join(lines.lines) + "\n"
    exec(compile(source_text, "<compiled call>", "exec"), names)
    return names["call_compiled"], source_text


def _apart(lines: _Lines, replay: Replay, tensors: list[str]) -> None:
    """Leave where arguments do not have memory of their own each, apart from what the function found."""
    if len(tensors) > _FEW:
        lines.unless(1, f"replay.fits({', '.join(f'x{i}' for i in tensors)})")
        return
    for i in tensors:
        lines.add(1, f"m{i} = x{i} if x{i}.base is None else owner(x{i})")
    conditions = [f"m{i} is not m{j}" for i, j in combinations(tensors, 2)]
    if replay.owners:
        conditions += [f"id(m{i}) not in {lines.name(replay.owners, 'owners')}" for i in tensors]
    if conditions:
        lines.unless(1, *conditions)


def _pinned(lines: _Lines, i: int, a: np.ndarray, pin: tuple[Any, Any, int] | None) -> None:
    """Leave where an argument is not the tensor, or lies not in the memory, that it must."""
    if pin is None:
        return
    if pin[0] is not None:
        lines.unless(1, f"{lines.name(pin[0], 'pin')}() is a{i}")
    if pin[1] is not None:
        known = lines.name(weakref.ref(a), "array")
        lines.unless(1, f"({known}() is x{i} or ({lines.name(pin[1], 'pin')}() is owner(x{i}) "
                        f"and address(x{i}) == {pin[2]}))")


def _equal(lines: _Lines, name: str, x: Any) -> str:
    """The condition that a number or text is what it was; zeros of both signs are two, NaN is equal to itself."""
    if isinstance(x, (float, complex)) and (x != x or x == 0 or isinstance(x, complex)):
        return f"repr({name}) == {repr(x)!r}"
    return f"{name} == {lines.name(x, 'value')}"


def _held(lines: _Lines, held: Held, tensors: list[str]) -> str:
    """A tensor's name."""
    return f"a{tensors[held.which]}" if held.kind == "argument" else lines.name(held.which, "t")


def _guards(lines: _Lines, replay: Replay, tensors: list[str]) -> bool:
    trace = replay.trace
    gradients = [number for number, source in trace.sources.items() if source[0] == "gradient of"]
    for held in trace.without:
        lines.unless(1, f"{_held(lines, held, tensors)}._grad is None")
    for held, has_one in trace.looked_at:
        lines.unless(1, f"{_held(lines, held, tensors)}._grad is {'not ' * has_one}None")
    for i in tensors if trace.hung else ():
        lines.unless(1, f"{lines.name(trace.hung, 'hung')}.isdisjoint(a{i}.__dict__)")
    for group, key, index, compare, other, outcome in trace.decisions:
        value = f"{lines.name(group, 'group')}[{key!r}]" + ("" if index is None else f"[{index}]")
        lines.unless(1, f"{lines.name(compare, 'compare')}({value}, {lines.name(other, 'value')}) is {outcome}")
    for number in replay.program.inputs:
        source = trace.sources[number]
        if source[0] == "tensor" and source[1] is not None:
            tensor = lines.name(source[1], "t")
            lines.unless(1, f"{tensor}._array is {lines.name(source[3], 'array')}",
                         f"{tensor}._requires_grad is {source[1]._requires_grad}")
        elif source[0] == "gradient of":
            leaf = trace.leaf(number)
            if trace.gradient_strides.get(number) is None:
                return False
            lines.add(1, f"g{number} = {_held(lines, source[1], tensors)}._grad")
            lines.unless(1, f"g{number} is not None")
            lines.add(1, f"g{number} = g{number}._array")
            lines.unless(1, f"g{number}.size == {leaf.size}", f"g{number}.dtype is {lines.name(leaf.dtype, 'dtype_')}",
                         f"g{number}.strides == {trace.gradient_strides[number]}")
        elif source[0] == "number":
            _, group, key, index = source
            lines.add(1, f"n{number} = {lines.name(group, 'group')}[{key!r}]"
                         + ("" if index is None else f"[{index}]"))
    if gradients:
        if not set(gradients) <= set(replay.program.inputs):
            return False
        lines.unless(1, f"replay.are_apart([{', '.join(f'x{i}' for i in tensors)}], "
                        f"[{', '.join(f'g{number}' for number in gradients)}])")
    return True


def _results(lines: _Lines, replay: Replay, tensors: list[str]) -> None:
    trace = replay.trace
    written = []
    for at, times in trace.bumps:
        lines.add(1, f"advance(a{tensors[at]}, {times})")
    for source in replay.written:
        if source[0] == "gradient of":
            lines.add(1, f"{_held(lines, source[1], tensors)}._grad._bump_version()")
        elif source[1] is not None:
            written.append(source[1])
    if written:
        lines.add(1, f"for t in {lines.name(tuple(written), 'written')}:")
        lines.add(2, "counter = t._counter")
        lines.add(2, "if counter is None:")
        lines.add(3, "t._counter = [1]")
        lines.add(2, "else:")
        lines.add(3, "counter[0] += 1")

    def array(shown: Any) -> str:
        if shown.array >= 0:
            shape, dtype = replay.program.output_specs[shown.array]
            dense = np.empty(shape, dtype)
            if (shown.dtype, shown.shape, shown.strides, shown.offset) == (dtype, dense.shape, dense.strides, 0):
                return f"o{shown.array}"
            place = f"[{', '.join(f'o{k}' for k in range(len(replay.program.output_specs)))}]"
        else:
            place = "[]"
        return f"replay.array({lines.name(shown, 'shown')}, {place}, [{', '.join(f'a{i}' for i in tensors)}])"

    for held, shown in trace.gradients:
        if held.kind != "result":
            made = "None" if shown is None else f"wrap({array(shown)})"
            lines.add(1, f"{_held(lines, held, tensors)}._grad = {made}")
    if replay.backward is not None or any(held.kind == "result" for held, _ in trace.gradients) or not all(
            each.is_plain if isinstance(each, Made) else each[0] in ("argument", "same", "constant")
            for each in trace.results):
        made = ", ".join(f"o{k}" for k in range(len(replay.program.output_specs)))
        lines.add(1, f"return replay.results([{made}], [{', '.join(f'a{i}' for i in tensors)}])")
        return
    found = []
    for i, each in enumerate(trace.results):
        if isinstance(each, Made):
            lines.add(1, f"r{i} = wrap({array(each.shown)})")
            if each.requires_grad:
                lines.add(1, f"r{i}._requires_grad = True")
                lines.add(1, f"r{i}._node = {lines.name(replay.spent[i], 'spent')}")
            found.append(f"r{i}")
        elif each[0] == "argument":
            found.append(f"a{tensors[each[1]]}")
        else:
            found.append(lines.name(each[1], "same"))
    if trace.tree.is_leaf():
        lines.add(1, f"return {found[0]}")
    else:
        lines.add(1, f"return unflatten([{', '.join(found)}], {lines.name(trace.tree, 'tree')})")


__all__ = ["call_stub", "fast_call"]
