"""Graphs and kernels as text: what `compile.explain`, `FLAMBEAU_DEBUG` and profiles show.

A kernel reads as lines of Python over values: `%9` is the value of that number, leaves have the names that they are
given. What is used once stands where it is used; views that only repeat elements or lay them out anew are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod

from ..dtypes import BFLOAT16
from ..runtime import thread_pool
from .graph import view_algebra as algebra
from .graph.extern_kernels import FallbackKernel
from .graph.value import Graph, Value
from .kernels.cost_model import assembled_piece, computed_values
from .kernels.pointwise import Kernel
from .schedule.scheduler import Schedule

_INFIX = {"pow": ("**", 8), "mul": ("*", 6), "div": ("/", 6), "add": ("+", 5), "sub": ("-", 5), "matmul": ("@", 6),
          "and": ("&", 4), "xor": ("^", 3), "or": ("|", 2), "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1),
          "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1)}
_PREFIX = {"neg": ("-", 7), "not": ("~", 7)}
_TIGHT = 9
#: what depends on its arguments' shapes
_SHAPED = ("matmul", "convolve", "reduce")
#: a line of a kernel is broken into statements where it would be longer
WIDTH = 96
#: kernels are named by so many of their operations
MAX_OPERATIONS_IN_TITLE = 5
#: operations that say little of a kernel
_UNREMARKABLE = ("cast", "copy", "select", "getitem", "neg")

Names = Mapping[Value, str]


def dtype_and_shape(value: Value) -> str:
    """Dtype and shape: `float32[3, 4]`."""
    return f"{'bfloat16' if value.dtype == BFLOAT16 else value.dtype}{list(value.shape)}"


def name_of(value: Value, names: Names) -> str:
    """What a value is called."""
    if value.op == "constant":
        return literal(value)
    return names.get(value) or repr(value)


def literal(constant: Value) -> str:
    """A constant as it would be written."""
    if constant.size != 1:
        array = constant.graph.array(constant)
        counts = array.ndim == 1 and array.dtype.kind in "iu" and (array == range(array.size)).all()
        return f"arange({array.size})" if counts else f"constant{list(constant.shape)}"
    return str(constant.graph.array(constant).reshape(())[()])


def view_text(view: Value, names: Names, exact: bool = False) -> str:
    """A value as it is read: by its own name, if it has one, else its base and how the base's elements are seen.

    Views that repeat elements, or that only give them another shape, are left out.

    Args:
        exact: another shape is told, too.
    """
    base = view.base
    name = name_of(base, names)
    if view.op != "view":
        return name
    if view in names:
        return names[view]
    moved = _permuted_dimensions(view)
    if moved is not None:
        last = [*range(view.ndim - 2), view.ndim - 1, view.ndim - 2]
        return f"{name}.mT" if moved == last else f"{name}.permute({', '.join(map(str, moved))})"
    kept = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if s]
    shape, strides = tuple(n for n, _ in kept), tuple(s for _, s in kept)
    if algebra.is_dense(shape, strides) and prod(shape) == base.size:
        if not exact or prod(shape) != view.size:
            return name
        return f"{name}.reshape({', '.join(map(str, view.shape))})"
    return name + (_slice(view) or f".as_strided({view.shape}, {view.strides}, {view.offset})")


def _permuted_dimensions(view: Value) -> list[int] | None:
    """The dimensions of the base that a view shows in another order; None where it does more or less than that."""
    base = view.base
    if view.offset or view.ndim != base.ndim or sorted(view.shape) != sorted(base.shape):
        return None
    dense = algebra.dense_strides(base.shape)
    found: list[int] = []
    for n, s in zip(view.shape, view.strides, strict=True):
        place = next((d for d in range(base.ndim) if d not in found and base.shape[d] == n
                      and (n == 1 or dense[d] == s)), None)
        if place is None:
            return None
        found.append(place)
    return None if found == sorted(found) else found


def _slice(view: Value) -> str | None:
    """A view as places of the base's first dimensions and slices of the others; None where it is no such thing."""
    base = view.base
    dense, left = algebra.dense_strides(base.shape), view.offset
    taken = base.ndim - view.ndim
    if taken < 0:
        return None
    parts: list[str] = []
    for d, (extent, stride) in enumerate(zip(base.shape, dense, strict=True)):
        start, left = divmod(left, stride) if stride else (0, left)
        if d < taken:
            parts.append(str(start))
            continue
        n, step = view.shape[d - taken], view.strides[d - taken]
        if n != 1 and (not stride or step % stride or not step):
            return None
        step = 1 if n == 1 else step // stride
        if start + (n - 1) * step >= extent:
            return None
        whole = not start and step == 1 and n == extent
        parts.append(":" if whole else f"{start}:{start + (n - 1) * step + 1}" + (f":{step}" if step != 1 else ""))
    while parts and parts[-1] == ":":
        parts.pop()
    return f"[{', '.join(parts)}]" if parts else None


def statements(kernel: Kernel, names: Names) -> list[str]:
    """What a kernel computes, as lines of Python: one for each output, and for what is used more than once."""
    part = assembled_piece(kernel)
    if part is not None:
        arg, strides, offset = part
        where = f"{offset}:{offset + arg.size}" if algebra.is_dense(arg.shape, strides) else f"{offset}..."
        return [f"{kernel.outputs[0]}.flat[{where}] = {view_text(arg, names)}"]
    values = computed_values(kernel)
    if values and values[0].op == "extern":
        whole = values[0]
        outs = ", ".join(name_of(v, names) for v in kernel.outputs)
        return [f"{outs} = {_call_text(whole, [view_text(arg, names, True) for arg in whole.args])}"]
    uses = Counter(arg.base for value in values for arg in value.args)
    written = {value: (repr(value), _TIGHT) for value in kernel.outputs}
    lines: list[str] = []
    texts: dict[Value, tuple[str, int]] = {}

    def said(arg: Value, exact: bool) -> tuple[str, int]:
        base = arg.base
        if base not in texts:
            return view_text(arg, names, exact), _TIGHT
        text, tightness = texts[base]
        seen = view_text(arg, {base: "\0"}, exact)
        return (text, tightness) if seen == "\0" else (seen.replace("\0", f"({text})"), _TIGHT)

    for value in values:
        text, tightness = _operation_text(value, said)
        if value in written or uses[value] > 1 or len(text) > WIDTH:
            lines.append(f"{value} = {text}")
            texts[value] = (repr(value), _TIGHT)
        else:
            texts[value] = (text, tightness)
    return lines


def _call_text(whole: Value, given: list[str]) -> str:
    """What is computed as a whole, as a call; of its parameters those that are short."""
    kernel = whole.attrs
    if isinstance(kernel, FallbackKernel):
        name = str(kernel) if len(str(kernel)) <= WIDTH else f"{str(kernel)[:WIDTH - 3]}..."
        return f"{name}({', '.join(given)})" if given or not name.endswith(")") else name
    params = [f"{name}={value}" for name, value in kernel.params.items() if len(str(value)) <= WIDTH // 4]
    return f"{kernel.name}({', '.join([*given, *params])})"


def expression(value: Value, names: Names) -> str:
    """A value as one line of Python over leaves; where that is long, its number."""
    lengths: dict[Value, int] = {}
    stack = [value.base]
    while stack:
        base = stack[-1]
        missing = [arg.base for arg in base.args if arg.base not in lengths]
        if missing and base.op not in ("extern", "getitem"):
            stack.extend(missing)
            continue
        stack.pop()
        lengths[base] = 2 + sum(lengths.get(arg.base, 0) for arg in base.args)
    if lengths[value.base] > WIDTH // 2:
        return name_of(value.base, names)

    def said(arg: Value, exact: bool) -> tuple[str, int]:
        base = arg.base
        if base.op in ("input", "constant", "extern", "getitem", "assemble"):
            return view_text(arg, names, exact), _TIGHT
        text, tightness = _operation_text(base, said)
        seen = view_text(arg, {base: "\0"}, exact)
        return (text, tightness) if seen == "\0" else (seen.replace("\0", f"({text})"), _TIGHT)

    return said(value, False)[0]


def _operation_text(value: Value, said: Callable[[Value, bool], tuple[str, int]]) -> tuple[str, int]:
    """One operation on what its arguments say, and how tightly it binds."""
    op = value.op
    if op == "copy":
        return said(value.args[0], False)
    given = [said(arg, op in _SHAPED) for arg in value.args]
    texts = [text for text, _ in given]
    if op in _INFIX:
        sign, level = _INFIX[op]
        left, right = ((f"({text})" if inner < level or (inner == level and at == (op != "pow")) else text)
                       for at, (text, inner) in enumerate(given))
        return f"{left} {sign} {right}", level
    if op in _PREFIX:
        sign, level = _PREFIX[op]
        [(text, inner)] = given
        return f"{sign}{f'({text})' if inner <= level else text}", level
    if op == "cast":
        return f"{'bfloat16' if value.dtype == BFLOAT16 else value.dtype}({texts[0]})", _TIGHT
    if op == "select":
        return f"where({', '.join(texts)})", _TIGHT
    if op == "reduce":
        name, dims, _ = value.attrs
        every = len(dims) == value.args[0].ndim
        return f"{name}({texts[0]}{'' if every else f', dim={dims[0] if len(dims) == 1 else dims}'})", _TIGHT
    if op == "convolve":
        form, stride, padding, dilation, groups = value.attrs
        name = {"forward": "conv", "image": "conv_transpose", "weight": "conv_weight_grad"}[form]
        how = [f"{key}={given}" for key, given, usual in (("stride", stride, 1), ("padding", padding, 0),
                                                          ("dilation", dilation, 1)) if any(x != usual for x in given)]
        how += [f"groups={groups}"] * (groups != 1)
        return f"{name}({', '.join([*texts, *how])})", _TIGHT
    return f"{op}({', '.join(texts)})", _TIGHT


def kernel_title(kernel: Kernel) -> str:
    """A kernel's name: its family and the operations that it is made of, in the order of computation.

    An operation is named once.
    """
    if kernel.name == "foreign":
        whole = kernel.outputs[0].args[0].attrs
        name, *_ = re.split(r"[(\[]", str(whole))
        return f"numpy {name}"
    found: list[str] = []
    for value in computed_values(kernel):
        op = value.attrs[0] if value.op == "reduce" else value.op
        if op not in found and op != kernel.name and op not in ("extern", "getitem", "assemble"):
            found.append(op)
    told = [op for op in found if op not in _UNREMARKABLE] or found
    more = "…" if len(told) > MAX_OPERATIONS_IN_TITLE else ""
    return f"{kernel.name} {'+'.join(told[:MAX_OPERATIONS_IN_TITLE])}{more}".rstrip()


def kernel_listing(schedule: Schedule, names: Names) -> str:
    """The values that are computed, kernel by kernel, as the schedule runs them."""
    lines: list[str] = []
    for number, kernel in enumerate(schedule.kernels):
        if number == schedule.kernels_before_conditions and schedule.conditions:
            lines += conditions(schedule, names)
        lines.append(f"kernel {number}: {kernel_title(kernel)}")
        lines += [f"  {_definition_text(value, names)}" for value in computed_values(kernel)]
    if schedule.kernels_before_conditions >= len(schedule.kernels):
        lines += conditions(schedule, names)
    return "\n".join(lines)


def conditions(schedule: Schedule, names: Names) -> list[str]:
    """The truths on which all depends, where the program looks at them."""
    return [f"stop unless {name_of(value, names)} is {outcome}" for value, outcome in schedule.conditions]


def graph_listing(graph: Graph, names: Names, count: int | None = None) -> str:
    """The values of a graph in the order of their making, the first `count` of them."""
    return "\n".join(_definition_text(value, names) for value in graph.values[:count])


def _definition_text(value: Value, names: Names) -> str:
    called = f"    # {names[value]}" if value in names else ""
    if value.op == "extern":
        why = f"    # {value.attrs.why}" if isinstance(value.attrs, FallbackKernel) and value.attrs.why else ""
        return f"%{value.number} = {_call_text(value, list(map(repr, value.args)))}{why}"
    return value.text + called


def operands(schedule: Schedule, kernel: Kernel, names: Names) -> tuple[list[str], list[str]]:
    """A kernel's outputs and inputs, each with dtype and shape; an output may be written where a graph_input lies."""
    over = {target.value: target.overwrites for target in schedule.targets
            if target.overwrites is not None
            and schedule.locations[target.value] == schedule.locations[target.overwrites]}
    outs = [f"{name_of(v, names)} {dtype_and_shape(v)}" + (f" over {name_of(over[v], names)}" if v in over else "")
            for v in kernel.outputs]
    bases = dict.fromkeys(base for base, _ in kernel.inputs if not (base.op == "constant" and base.size == 1))
    return outs, [f"{name_of(v, names)} {dtype_and_shape(v)}" for v in bases]


def chunk_counts(kernel: Kernel) -> Sequence[int]:
    """How many chunks each launch has."""
    return [each.chunks % thread_pool.CALLER_ONLY for each in kernel.launches]


__all__ = [
    "chunk_counts",
    "conditions",
    "dtype_and_shape",
    "expression",
    "graph_listing",
    "kernel_listing",
    "kernel_title",
    "name_of",
    "operands",
    "statements",
    "view_text",
]
