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
from ...engine.nodes.leaf_hooks import LeafHooks
from ...modes import configured, inferred, special
from ...runtime import launch, thread_pool
from ...trees import is_container, tree_unflatten
from ..guards.arguments import OutputTensor, TensorRef, bump_version
from ..guards.environment import TENSOR_MATCH, expression, is_, is_range_or_slice
from ..guards.tensor_state import are_hooked
from ..tracing.aliasing import address, owner
from .buffer_donation import allocate_or_reuse
from .cache_entry import GUARDS_FAILED, CacheEntry

#: arguments whose memory is compared pair by pair
_FEW = 4


class _Lines:
    """Lines of Python, and the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "special": special, "grad_mode": grad_mode.get, "inference": inference.get,
            "default_dtype": dtypes.get_default_dtype, "configured": configured, "GUARDS_FAILED": GUARDS_FAILED,
            "Tensor": Tensor,
            "owner": owner, "address": address, "bump_version": bump_version, "inferred": inferred,
            "pool": thread_pool.pool, "empty": np.empty, "allocate_or_reuse": allocate_or_reuse, "wrap": wrap,
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
        self.add(depth + 1, "return GUARDS_FAILED")


def call_stub(entry: CacheEntry, args: tuple, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """The function written for calls like this one; None where there is none."""
    if entry.call_stub is None:
        entry.call_stub = (None,)
        if not kwargs and not any(is_container(x) for x in args):
            made = generate_call_stub(entry, list(args))
            if made is not None:
                entry.call_stub, entry.stub_source = made[:1], made[1]
    return entry.call_stub[0]


def generate_call_stub(entry: CacheEntry, arguments: list[Any]) -> tuple[Callable[..., Any], str] | None:
    """The function for calls like one with these positional arguments, and its source; None where there is none."""
    program = entry.program
    given = [x for x in arguments if isinstance(x, Tensor)]
    if entry.trace.storage_offsets or any(x._inference for x in given):
        return None
    if len({id(owner(x._array)) for x in given}) != len(given):
        return None
    lines = _Lines()
    names = lines.names
    record = program.template
    names |= {"record": record, "acquire": program.lock.acquire, "release": program.lock.release, "entry": entry}
    lines.add(0, "def call_compiled(*args):")
    lines.unless(1, "not special[0]", f"len(args) == {len(arguments)}")
    if arguments:
        lines.add(1, f"{', '.join(f'a{i}' for i in range(len(arguments)))}, = args")
    tensors: list[str] = []
    for i, x in enumerate(arguments):
        if isinstance(x, Tensor):
            a = x._array
            pin = entry.pins[len(tensors)]
            kind, dtype = lines.name(type(x), "type_"), lines.name(a.dtype, "dtype_")
            lines.unless(1, f"a{i}.__class__ is {kind}")
            lines.add(1, f"x{i} = a{i}._array")
            lines.unless(1, f"x{i}.shape == {a.shape}", f"x{i}.strides == {a.strides}", f"x{i}.dtype is {dtype}",
                         f"a{i}._requires_grad is {x._requires_grad}",
                         f"a{i}._node is {'not ' * (x._node is not None)}None")
            _emit_pin_check(lines, i, a, pin)
            tensors.append(f"{i}")
        elif isinstance(x, (bool, int, float, complex, str, bytes, type(None))):
            lines.unless(1, f"a{i}.__class__ is {lines.name(type(x), 'type_')}", _equal(lines, f"a{i}", x))
        elif is_range_or_slice(x):
            lines.unless(1, f"a{i}.__class__ is {type(x).__name__}", f"repr(a{i}) == {repr(x)!r}")
        else:
            lines.unless(1, f"a{i} is {lines.name(x, 'object_')}")
    lines.unless(1, f"grad_mode() is {grad_mode.get()}", f"inference() is {inference.get()}",
                 f"default_dtype() is {lines.name(dtypes.get_default_dtype(), 'dtype_')}")
    lines.unless(1, "configured[0] == entry.module_version or entry.modules_match()")
    sources = [entry.trace.sources[number] for number in program.inputs]
    inputs = {id(source[1]) for source in sources if source[0] == "tensor"}
    seen = [each for each in (*entry.guards, *entry.optimizer_guards)
            if each.kind != TENSOR_MATCH or id(each.holder) not in inputs]  # whose arrays are compared anyhow
    if seen:
        lines.add(1, "try:")
        for each in seen:
            lines.unless(2, expression(each, lines.name))
        lines.add(1, "except (LookupError, AttributeError, ValueError):")
        lines.add(2, "return GUARDS_FAILED")
    if entry.tensor_flags_match.hooked:
        lines.unless(1, "entry.tensor_flags_match()")
    else:
        lines.unless(1, "not hooked or entry.tensor_flags_match()")
    if entry.trace.ran_backward and tensors:
        lines.unless(1, f"not hooked or not are_hooked({', '.join(f'a{i}' for i in tensors)})")
    inference_tensors = [f"a{i}._inference" for i in tensors]
    if inference_tensors:
        lines.unless(1, f"(not inferred[0] or not ({' or '.join(inference_tensors)}))")
    if not all(pin is not None and pin[1] is not None for pin in entry.pins):
        _emit_alias_check(lines, entry, tensors)
    if entry.trace.param_groups:
        lines.unless(1, "entry.optimizers_match()")
    if not _emit_guards(lines, entry, tensors):
        return None
    lines.add(1, "if not acquire(False):")
    lines.add(2, "return GUARDS_FAILED")
    lines.add(1, "try:")
    owners = []  # the arrays by name
    for i, number in enumerate(program.inputs):
        source = entry.trace.sources[number]
        place = launch.FIRST + i
        if source[0] == "argument":
            owners.append(f"x{tensors[source[1]]}")
            lines.add(2, f"record[{place}] = id({owners[-1]})")
        elif source[0] == "gradient of":
            owners.append(f"g{number}")
            lines.add(2, f"record[{place}] = id({owners[-1]})")
        elif source[0] == "number":
            array = entry.scalar_arrays[number]
            record[place] = id(array)
            owners.append(lines.name(array, "number"))
            lines.add(2, f"{owners[-1]}[()] = n{number}")
        else:
            record[place] = id(source[2])
            owners.append(lines.name(source[2], "array"))
    for k, (shape, kind_of_out) in enumerate(program.output_specs):
        held = entry.donated.get(k)
        made = "empty(" if held is None else f"allocate_or_reuse({_tensor_name(lines, held, tensors)}, "
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
        lines.add(2, f"if not entry.program.run_segments(record, [{', '.join(owners)}]):")
    lines.add(3, "return GUARDS_FAILED")
    lines.add(1, "finally:")
    lines.add(2, "release()")
    _emit_results(lines, entry, tensors)
    source_text = "\n".join(lines.lines) + "\n"
    exec(compile(source_text, "<compiled call>", "exec"), names)
    return names["call_compiled"], source_text


def _emit_alias_check(lines: _Lines, entry: CacheEntry, tensors: list[str]) -> None:
    """Leave where arguments do not have memory of their own each, apart from what the function found."""
    if len(tensors) > _FEW:
        lines.unless(1, f"entry.are_distinct({', '.join(f'x{i}' for i in tensors)})")
        return
    for i in tensors:
        lines.add(1, f"m{i} = x{i} if x{i}.base is None else owner(x{i})")
    conditions = [f"m{i} is not m{j}" for i, j in combinations(tensors, 2)]
    if entry.memory_owners:
        conditions += [f"id(m{i}) not in {lines.name(entry.memory_owners, 'owners')}" for i in tensors]
    if conditions:
        lines.unless(1, *conditions)


def _emit_pin_check(lines: _Lines, i: int, a: np.ndarray, pin: tuple[Any, Any, int] | None) -> None:
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


def _tensor_name(lines: _Lines, held: TensorRef, tensors: list[str]) -> str:
    """A tensor's name."""
    return f"a{tensors[held.which]}" if held.kind == "argument" else lines.name(held.which, "t")


def _emit_guards(lines: _Lines, entry: CacheEntry, tensors: list[str]) -> bool:
    trace = entry.trace
    gradients = [number for number, source in trace.sources.items() if source[0] == "gradient of"]
    for held in trace.grad_absent:
        lines.unless(1, f"{_tensor_name(lines, held, tensors)}._grad is None")
    for held, has_one in trace.grad_presence:
        lines.unless(1, f"{_tensor_name(lines, held, tensors)}._grad is {'not ' * has_one}None")
    for i in tensors if trace.user_attributes else ():
        lines.unless(1, f"{lines.name(trace.user_attributes, 'user_attributes')}.isdisjoint(a{i}.__dict__)")
    for group, key, index, compare, other, outcome in trace.scalar_guards:
        value = f"{lines.name(group, 'group')}[{key!r}]" + ("" if index is None else f"[{index}]")
        lines.unless(1, f"{lines.name(compare, 'compare')}({value}, {lines.name(other, 'value')}) is {outcome}")
    for number in entry.program.inputs:
        source = trace.sources[number]
        if source[0] == "tensor" and source[1] is not None:
            tensor = lines.name(source[1], "t")
            lines.unless(1, f"{tensor}._array is {lines.name(source[3], 'array')}",
                         f"{tensor}._requires_grad is {source[1]._requires_grad}")
        elif source[0] == "gradient of":
            leaf = trace.leaf(number)
            if trace.grad_strides.get(number) is None:
                return False
            lines.add(1, f"g{number} = {_tensor_name(lines, source[1], tensors)}._grad")
            lines.unless(1, f"g{number} is not None")
            lines.add(1, f"g{number} = g{number}._array")
            lines.unless(1, f"g{number}.size == {leaf.size}", f"g{number}.dtype is {lines.name(leaf.dtype, 'dtype_')}",
                         f"g{number}.strides == {trace.grad_strides[number]}")
        elif source[0] == "number":
            _, group, key, index = source
            lines.add(1, f"n{number} = {lines.name(group, 'group')}[{key!r}]"
                         + ("" if index is None else f"[{index}]"))
    if gradients:
        if not set(gradients) <= set(entry.program.inputs):
            return False
        lines.unless(1, f"entry.do_not_alias([{', '.join(f'x{i}' for i in tensors)}], "
                        f"[{', '.join(f'g{number}' for number in gradients)}])")
    return True


def _emit_results(lines: _Lines, entry: CacheEntry, tensors: list[str]) -> None:
    trace = entry.trace
    written = []
    for at, times in trace.version_bumps:
        lines.add(1, f"bump_version(a{tensors[at]}, {times})")
    for source in entry.written_sources:
        if source[0] == "gradient of":
            lines.add(1, f"{_tensor_name(lines, source[1], tensors)}._grad._bump_version()")
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
            shape, dtype = entry.program.output_specs[shown.array]
            dense = np.empty(shape, dtype)
            if (shown.dtype, shown.shape, shown.strides, shown.offset) == (dtype, dense.shape, dense.strides, 0):
                return f"o{shown.array}"
            place = f"[{', '.join(f'o{k}' for k in range(len(entry.program.output_specs)))}]"
        else:
            place = "[]"
        return f"entry.output_array({lines.name(shown, 'shown')}, {place}, [{', '.join(f'a{i}' for i in tensors)}])"

    for held, shown in trace.grad_updates:
        if held.kind != "result":
            made = "None" if shown is None else f"wrap({array(shown)})"
            lines.add(1, f"{_tensor_name(lines, held, tensors)}._grad = {made}")
    if entry.backward is not None or any(held.kind == "result" for held, _ in trace.grad_updates) or not all(
            each.is_plain if isinstance(each, OutputTensor) else each[0] in ("argument", "same", "constant")
            for each in trace.outputs):
        made = ", ".join(f"o{k}" for k in range(len(entry.program.output_specs)))
        lines.add(1, f"return entry.make_result([{made}], [{', '.join(f'a{i}' for i in tensors)}])")
        return
    found = []
    for i, each in enumerate(trace.outputs):
        if isinstance(each, OutputTensor):
            lines.add(1, f"r{i} = wrap({array(each.shown)})")
            if each.requires_grad:
                lines.add(1, f"r{i}._requires_grad = True")
                lines.add(1, f"r{i}._node = {lines.name(entry.freed_nodes[i], 'freed_nodes')}")
            found.append(f"r{i}")
        elif each[0] == "argument":
            found.append(f"a{tensors[each[1]]}")
        else:
            found.append(lines.name(each[1], "same"))
    if trace.tree.is_leaf():
        lines.add(1, f"return {found[0]}")
    else:
        lines.add(1, f"return unflatten([{', '.join(found)}], {lines.name(trace.tree, 'tree')})")


__all__ = ["call_stub", "generate_call_stub"]
