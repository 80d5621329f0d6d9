"""Call stubs: a Python function generated for each cache entry, which checks the guards and calls the program.

The stub checks signature and guards, writes array addresses into the launch record, calls the compiled code, and
constructs the results. Everything known at compile time is a constant of the stub. `CacheEntry.stub_source` is its
source.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.tensor import wrap
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.leaf_hooks import LeafHooks
from ...modes import inference_used, module_changes, special
from ...runtime import launch, thread_pool
from ...trees import is_container, tree_unflatten
from ..guards.arguments import OutputTensor, TensorRef, bump_version
from ..guards.guard import TENSOR_MATCH, guard_expression, is_
from ..guards.object_kinds import is_range_or_slice
from ..guards.tensor_state import are_hooked
from ..symbolic.expressions import Expression, Symbol
from ..symbolic.formulas import Formula
from ..tracing.aliasing import address, owner
from .buffer_donation import allocate_or_reuse
from .cache_entry import GUARDS_FAILED, CacheEntry
from .template import NUMBER, symbol_values

#: how Python writes functions of two operands
_SIGNS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//"}
#: the largest number of arguments whose memory is compared pair by pair
_MAX_PAIRWISE = 4


class StubSource:
    """The lines of a generated function, and the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "special": special, "grad_mode": grad_mode.get, "inference": inference.get,
            "default_dtype": dtypes.get_default_dtype, "module_changes": module_changes, "GUARDS_FAILED": GUARDS_FAILED,
            "Tensor": Tensor,
            "owner": owner, "address": address, "bump_version": bump_version, "inference_used": inference_used,
            "pool": thread_pool.pool, "empty": np.empty, "array": np.array,
            "allocate_or_reuse": allocate_or_reuse, "wrap": wrap, "unflatten": tree_unflatten, "is_": is_,
            "hooked": LeafHooks.registered, "are_hooked": are_hooked}
        self._names_by_id: dict[int, str] = {}

    def name(self, thing: Any, prefix: str) -> str:
        """Return a global variable of the stub that holds `thing`."""
        variable = self._names_by_id.get(id(thing))
        if variable is None:
            variable = self._names_by_id[id(thing)] = f"{prefix}{len(self._names_by_id)}"
            self.names[variable] = thing
        return variable

    def add(self, depth: int, line: str) -> None:
        """Add a line."""
        self.lines.append("    " * depth + line)

    def add_guard(self, depth: int, *conditions: str) -> None:
        """Add code that returns `GUARDS_FAILED` add_guard all conditions hold."""
        self.add(depth, f"if not ({' and '.join(conditions)}):")
        self.add(depth + 1, "return GUARDS_FAILED")


def call_stub(entry: CacheEntry, args: tuple, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """Return the call stub of an entry for calls with these arguments; None if there is none."""
    if entry.call_stub is None:
        entry.call_stub = (None,)
        if not kwargs and not any(is_container(x) for x in args):
            generated = generate_call_stub(entry, list(args))
            if generated is not None:
                entry.call_stub, entry.stub_source = generated[:1], generated[1]
    return entry.call_stub[0]


def emit_checks(stub: StubSource, entry: CacheEntry, arguments: list[Any], active: str) -> list[str] | None:
    """Emit the beginning of a call stub, up to where all guards hold.

    Args:
        stub: what the lines are added to.
        entry: the entry.
        arguments: positional arguments that its calls have.
        active: a condition on `special`: no mode is active in which stubs do not apply.

    Returns:
        The numbers of the arguments that are tensors; None for guards that stubs do not check.
    """
    program = entry.program
    tensor_arguments = [x for x in arguments if isinstance(x, Tensor)]
    if entry.trace.storage_offsets or any(x._inference for x in tensor_arguments):
        return None
    if len({id(owner(x._array)) for x in tensor_arguments}) != len(tensor_arguments):
        return None
    stub.names["entry"] = entry
    stub.add(0, "def call_compiled(*args):")
    stub.add_guard(1, active, f"len(args) == {len(arguments)}")
    if arguments:
        stub.add(1, f"{', '.join(f'a{i}' for i in range(len(arguments)))}, = args")
    tensors: list[str] = []
    for i, x in enumerate(arguments):
        if isinstance(x, Tensor):
            a = x._array
            pin = entry.pins[len(tensors)]
            kind, dtype = stub.name(type(x), "type_"), stub.name(a.dtype, "dtype_")
            stub.add_guard(1, f"a{i}.__class__ is {kind}")
            stub.add(1, f"x{i} = a{i}._array")
            stub.add_guard(1, f"x{i}.shape == {a.shape}", f"x{i}.strides == {a.strides}", f"x{i}.dtype is {dtype}",
                           f"a{i}._requires_grad is {x._requires_grad}",
                           f"a{i}._node is {'not ' * (x._node is not None)}None")
            _emit_pin_check(stub, i, a, pin)
            tensors.append(f"{i}")
        elif i in entry.free_arguments:
            stub.add_guard(1, f"a{i}.__class__ is {type(x).__name__}")
        elif isinstance(x, (bool, int, float, complex, str, bytes, type(None))):
            stub.add_guard(1, f"a{i}.__class__ is {stub.name(type(x), 'type_')}", _equal(stub, f"a{i}", x))
        elif is_range_or_slice(x):
            stub.add_guard(1, f"a{i}.__class__ is {type(x).__name__}", f"repr(a{i}) == {repr(x)!r}")
        else:
            stub.add_guard(1, f"a{i} is {stub.name(x, 'object_')}")
    stub.add_guard(1, f"grad_mode() is {grad_mode.get()}", f"inference() is {inference.get()}",
                   f"default_dtype() is {stub.name(dtypes.get_default_dtype(), 'dtype_')}")
    stub.add_guard(1, "module_changes[0] == entry.module_version or entry.modules_match()")
    sources = [entry.trace.sources[number] for number in program.inputs]
    inputs = {id(source[1]) for source in sources if source[0] == "tensor"}
    guards = [guard for guard in (*entry.guards, *entry.optimizer_guards)
              if guard.kind != TENSOR_MATCH or id(guard.holder) not in inputs]  # inputs' arrays are compared by `is`
    if guards:
        stub.add(1, "try:")
        for guard in guards:
            stub.add_guard(2, guard_expression(guard, stub.name))
        stub.add(1, "except (LookupError, AttributeError, ValueError):")
        stub.add(2, "return GUARDS_FAILED")
    if entry.tensor_flags_match.hooked:
        stub.add_guard(1, "entry.tensor_flags_match()")
    else:
        stub.add_guard(1, "not hooked or entry.tensor_flags_match()")
    if entry.trace.ran_backward and tensors:
        stub.add_guard(1, f"not hooked or not are_hooked({', '.join(f'a{i}' for i in tensors)})")
    inference_tensors = [f"a{i}._inference" for i in tensors]
    if inference_tensors:
        stub.add_guard(1, f"(not inference_used[0] or not ({' or '.join(inference_tensors)}))")
    if not all(pin is not None and pin[1] is not None for pin in entry.pins):
        _emit_alias_check(stub, entry, tensors)
    if entry.trace.param_groups:
        stub.add_guard(1, "entry.optimizers_match()")
    if not _emit_guards(stub, entry, tensors):
        return None
    if entry.free_arguments:
        _emit_computed_inputs(stub, entry, arguments)
    return tensors


def generate_call_stub(entry: CacheEntry, arguments: list[Any]) -> tuple[Callable[..., Any], str] | None:
    """Generate the call stub of an entry for calls like one with these positional arguments.

    Returns:
        The function and its source; None for guards on storage offsets, inference tensors, and aliased arguments.
    """
    stub = StubSource()
    tensors = emit_checks(stub, entry, arguments, "not special[0]")
    if tensors is None:
        return None
    program = entry.program
    names, record = stub.names, program.template
    names |= {"record": record, "acquire": program.lock.acquire, "release": program.lock.release, "entry": entry}
    stub.add(1, "if not acquire(False):")
    stub.add(2, "return GUARDS_FAILED")
    stub.add(1, "try:")
    owners = []  # variables that keep the arrays alive
    for i, number in enumerate(program.inputs):
        source = entry.trace.sources[number]
        place = launch.FIRST + i
        if source[0] == "argument":
            owners.append(f"x{tensors[source[1]]}")
            stub.add(2, f"record[{place}] = id({owners[-1]})")
        elif source[0] == "gradient of":
            owners.append(f"g{number}")
            stub.add(2, f"record[{place}] = id({owners[-1]})")
        elif source[0] == "number":
            array = entry.scalar_arrays[number]
            record[place] = id(array)
            owners.append(stub.name(array, "number"))
            stub.add(2, f"{owners[-1]}[()] = n{number}")
        elif source[0] == "computed":
            owners.append(f"c{number}")
            stub.add(2, f"record[{place}] = id({owners[-1]})")
        else:
            record[place] = id(source[2])
            owners.append(stub.name(source[2], "array"))
    for k, (shape, kind_of_out) in enumerate(program.output_specs):
        ref = entry.donated.get(k)
        allocate = "empty(" if ref is None else f"allocate_or_reuse({_tensor_name(stub, ref, tensors)}, "
        stub.add(2, f"o{k} = {allocate}{shape}, {stub.name(kind_of_out, 'dtype_')})")
        stub.add(2, f"record[{program.first_out + k}] = id(o{k})")
        owners.append(f"o{k}")
    record[launch.FIRST + program.execution_plan.arena_entry] = program.arena[1]
    if program.single is not None:
        names["call"] = program.single.call
        stub.add(2, "record[0] = pool()")
        stub.add(2, "if call(record):")
    else:
        owners.append(f"*{stub.name(program.internal_arrays(program.arena), 'rest')}")
        stub.add(2, f"if not entry.program.run_segments(record, [{', '.join(owners)}]):")
    stub.add(3, "return GUARDS_FAILED")
    stub.add(1, "finally:")
    stub.add(2, "release()")
    emit_results(stub, entry, tensors)
    source_text = "\n".join(stub.lines) + "\n"
    exec(compile(source_text, "<compiled call>", "exec"), names)
    return names["call_compiled"], source_text


def _emit_computed_inputs(stub: StubSource, entry: CacheEntry, arguments: list[Any]) -> None:
    """Compute the inputs that depend on numbers among the arguments; what is rare is left to `computed_inputs`."""
    template = entry.template
    assert template is not None
    values = symbol_values(template.symbols, arguments)
    names = [f"a{dim}" if at == NUMBER and dim in entry.free_arguments else repr(value)
             for (at, dim), value in zip((symbol.places[0] for symbol in template.symbols), values, strict=True)]
    for symbol in template.symbols:
        numbers = [f"a{dim}" for at, dim in symbol.places if at == NUMBER and dim in entry.free_arguments]
        if len(numbers) > 1:
            stub.add_guard(1, " == ".join(numbers))
    for name, low, high in zip(names, template.low, template.high, strict=True):
        if name.startswith("a"):
            stub.add_guard(1, f"{low!r} <= {name} <= {high!r}")
    if template.traces.has_guards:
        stub.add_guard(1, f"{stub.name(template.traces.holds, 'holds')}(({''.join(f'{name}, ' for name in names)}))")
    constants = {number: source[1] for number, source in entry.trace.sources.items() if source[0] == "computed"}
    returned = {i: each[1] for i, each in enumerate(entry.trace.outputs) if each[0] == "computed"}
    if not constants and not returned:
        return
    stub.add(1, "try:")
    for i, number in returned.items():
        stub.add(2, f"v{i} = {_number_source(stub, number, names)}")
    for number, constant in constants.items():
        stub.add(2, f"c{number} = {_number_source(stub, constant.start, names)}")
        if constant.dtype.kind == "f":
            limit = float(np.finfo(constant.dtype).max) / 2
            stub.add_guard(2, f"{-limit!r} < c{number} < {limit!r}")
        elif constant.start.__class__ is Expression:
            stub.add_guard(2, f"c{number}.__class__ is int")
        stub.add(2, f"c{number} = array(c{number}, {stub.name(constant.dtype, 'dtype_')})")
    stub.add(1, "except (ArithmeticError, ValueError, TypeError):")
    stub.add(2, "return GUARDS_FAILED")


def _number_source(stub: StubSource, x: Any, names: list[str]) -> str:
    """Return the source of an expression of symbols, which have these names."""
    kind = x.__class__
    if kind is Expression:
        operands = [_number_source(stub, operand, names) for operand in x.operands]
        sign = _SIGNS.get(x.function)
        if sign is not None and len(operands) == 2:
            return f"({operands[0]} {sign} {operands[1]})"
        return f"{stub.name(x.function, 'function')}({', '.join(operands)})"
    if kind is Symbol:
        return names[x.number]
    if kind is Formula:
        return f"{stub.name(x, 'formula')}.value(({''.join(f'{name}, ' for name in names)}))"
    return repr(x) if kind in (int, float) and isfinite(x) else stub.name(x, "value")


def _emit_alias_check(stub: StubSource, entry: CacheEntry, tensors: list[str]) -> None:
    """Guard on the arguments not sharing memory with each other, nor with lifted tensors."""
    if len(tensors) > _MAX_PAIRWISE:
        stub.add_guard(1, f"entry.are_distinct({', '.join(f'x{i}' for i in tensors)})")
        return
    for i in tensors:
        stub.add(1, f"m{i} = x{i} if x{i}.base is None else owner(x{i})")
    conditions = [f"m{i} is not m{j}" for i, j in combinations(tensors, 2)]
    if entry.memory_owners:
        conditions += [f"id(m{i}) not in {stub.name(entry.memory_owners, 'owners')}" for i in tensors]
    if conditions:
        stub.add_guard(1, *conditions)


def _emit_pin_check(stub: StubSource, i: int, a: np.ndarray, pin: tuple[Any, Any, int] | None) -> None:
    """Guard on an argument being the pinned tensor, in the pinned memory."""
    if pin is None:
        return
    if pin[0] is not None:
        stub.add_guard(1, f"{stub.name(pin[0], 'pin')}() is a{i}")
    if pin[1] is not None:
        array = stub.name(weakref.ref(a), "array")
        stub.add_guard(1, f"({array}() is x{i} or ({stub.name(pin[1], 'pin')}() is owner(x{i}) "
                        f"and address(x{i}) == {pin[2]}))")


def _equal(stub: StubSource, name: str, x: Any) -> str:
    """Return the condition that a constant is equal to `x`; 0.0 and -0.0 differ, NaN is equal to itself."""
    if isinstance(x, (float, complex)) and (x != x or x == 0 or isinstance(x, complex)):
        return f"repr({name}) == {repr(x)!r}"
    return f"{name} == {stub.name(x, 'value')}"


def _tensor_name(stub: StubSource, ref: TensorRef, tensors: list[str]) -> str:
    """Return the variable of a tensor."""
    return f"a{tensors[ref.which]}" if ref.kind == "argument" else stub.name(ref.which, "t")


def _emit_guards(stub: StubSource, entry: CacheEntry, tensors: list[str]) -> bool:
    trace = entry.trace
    gradients = [number for number, source in trace.sources.items() if source[0] == "gradient of"]
    for ref in trace.grad_absent:
        stub.add_guard(1, f"{_tensor_name(stub, ref, tensors)}._grad is None")
    for ref, has_grad in trace.grad_presence:
        stub.add_guard(1, f"{_tensor_name(stub, ref, tensors)}._grad is {'not ' * has_grad}None")
    for i in tensors if trace.user_attributes else ():
        stub.add_guard(1, f"{stub.name(trace.user_attributes, 'user_attributes')}.isdisjoint(a{i}.__dict__)")
    for group, key, index, compare, other, outcome in trace.scalar_guards:
        value = f"{stub.name(group, 'group')}[{key!r}]" + ("" if index is None else f"[{index}]")
        stub.add_guard(1, f"{stub.name(compare, 'compare')}({value}, {stub.name(other, 'value')}) is {outcome}")
    for number in entry.program.inputs:
        source = trace.sources[number]
        if source[0] == "tensor" and source[1] is not None:
            tensor = stub.name(source[1], "t")
            stub.add_guard(1, f"{tensor}._array is {stub.name(source[3], 'array')}",
                           f"{tensor}._requires_grad is {source[1]._requires_grad}")
        elif source[0] == "gradient of":
            leaf = trace.leaf(number)
            if trace.grad_strides.get(number) is None:
                return False
            stub.add(1, f"g{number} = {_tensor_name(stub, source[1], tensors)}._grad")
            stub.add_guard(1, f"g{number} is not None")
            stub.add(1, f"g{number} = g{number}._array")
            stub.add_guard(1, f"g{number}.size == {leaf.size}",
                           f"g{number}.dtype is {stub.name(leaf.dtype, 'dtype_')}",
                           f"g{number}.strides == {trace.grad_strides[number]}")
        elif source[0] == "number":
            _, group, key, index = source
            stub.add(1, f"n{number} = {stub.name(group, 'group')}[{key!r}]"
                         + ("" if index is None else f"[{index}]"))
    if gradients:
        if not set(gradients) <= set(entry.program.inputs):
            return False
        stub.add_guard(1, f"entry.do_not_alias([{', '.join(f'x{i}' for i in tensors)}], "
                        f"[{', '.join(f'g{number}' for number in gradients)}])")
    return True


def emit_results(stub: StubSource, entry: CacheEntry, tensors: list[str]) -> None:
    """Emit the end of a call stub: writes to tensors' state, and the results of the arrays `o0`, `o1`, ..."""
    trace = entry.trace
    written = []
    for at, times in trace.version_bumps:
        stub.add(1, f"bump_version(a{tensors[at]}, {times})")
    for source in entry.written_sources:
        if source[0] == "gradient of":
            stub.add(1, f"{_tensor_name(stub, source[1], tensors)}._grad._bump_version()")
        elif source[1] is not None:
            written.append(source[1])
    if written:
        stub.add(1, f"for t in {stub.name(tuple(written), 'written')}:")
        stub.add(2, "counter = t._counter")
        stub.add(2, "if counter is None:")
        stub.add(3, "t._counter = [1]")
        stub.add(2, "else:")
        stub.add(3, "counter[0] += 1")

    def array(layout: Any) -> str:
        if layout.array >= 0:
            shape, dtype = entry.program.output_specs[layout.array]
            dense = np.empty(shape, dtype)
            if (layout.dtype, layout.shape, layout.strides, layout.offset) == (dtype, dense.shape, dense.strides, 0):
                return f"o{layout.array}"
            new = f"[{', '.join(f'o{k}' for k in range(len(entry.program.output_specs)))}]"
        else:
            new = "[]"
        return f"entry.output_array({stub.name(layout, 'layout')}, {new}, [{', '.join(f'a{i}' for i in tensors)}])"

    for ref, layout in trace.grad_updates:
        if ref.kind != "result":
            grad = "None" if layout is None else f"wrap({array(layout)})"
            stub.add(1, f"{_tensor_name(stub, ref, tensors)}._grad = {grad}")
    if entry.backward is not None or any(ref.kind == "result" for ref, _ in trace.grad_updates) or not all(
            each.is_plain if isinstance(each, OutputTensor) else each[0] in ("argument", "same", "constant", "computed")
            for each in trace.outputs):
        new = ", ".join(f"o{k}" for k in range(len(entry.program.output_specs)))
        computed = [f"{number}: c{number}" for number, source in trace.sources.items() if source[0] == "computed"]
        computed += [f"{-1 - i}: v{i}" for i, each in enumerate(trace.outputs) if each[0] == "computed"]
        stub.add(1, f"return entry.make_result([{new}], [{', '.join(f'a{i}' for i in tensors)}], "
                    f"{{{', '.join(computed)}}})")
        return
    results = []
    for i, each in enumerate(trace.outputs):
        if isinstance(each, OutputTensor):
            stub.add(1, f"r{i} = wrap({array(each.layout)})")
            if each.requires_grad:
                stub.add(1, f"r{i}._requires_grad = True")
                stub.add(1, f"r{i}._node = {stub.name(entry.freed_nodes[i], 'freed_nodes')}")
            results.append(f"r{i}")
        elif each[0] == "argument":
            results.append(f"a{tensors[each[1]]}")
        elif each[0] == "computed":
            results.append(f"v{i}")
        else:
            results.append(stub.name(each[1], "same"))
    if trace.tree.is_leaf():
        stub.add(1, f"return {results[0]}")
    else:
        stub.add(1, f"return unflatten([{', '.join(results)}], {stub.name(trace.tree, 'tree')})")


__all__ = ["StubSource", "call_stub", "emit_checks", "emit_results", "generate_call_stub"]
