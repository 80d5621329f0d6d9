"""Text of graphs and kernels, for `compile.explain`, `FLAMBEAU_DEBUG` and profiles.

A kernel is printed as Python statements over values: `%9` is value number 9, inputs have names. An expression that is
used once is printed inline; views that only broadcast or reshape are omitted.
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
from .kernels.pointwise import FALLBACK, Kernel
from .schedule.scheduler import Schedule

_INFIX = {"pow": ("**", 8), "mul": ("*", 6), "div": ("/", 6), "add": ("+", 5), "sub": ("-", 5), "matmul": ("@", 6),
          "and": ("&", 4), "xor": ("^", 3), "or": ("|", 2), "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1),
          "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1)}
_PREFIX = {"neg": ("-", 7), "not": ("~", 7)}
_ATOM = 9
#: operations whose meaning depends on their arguments' shapes
_SHAPED = ("matmul", "convolve", "reduce")
#: an expression longer than this becomes a statement of its own
WIDTH = 96
#: the most operations in the title of a kernel
MAX_OPERATIONS_IN_TITLE = 5
#: operations left out of titles where there are others
_OMITTED_FROM_TITLE = ("cast", "copy", "select", "getitem", "neg")

Names = Mapping[Value, str]


def dtype_and_shape(value: Value) -> str:
    """Dtype and shape: `float32[3, 4]`."""
    return f"{'bfloat16' if value.dtype == BFLOAT16 else value.dtype}{list(value.shape)}"


def name_of(value: Value, names: Names) -> str:
    """The name of a value; a constant's literal."""
    if value.op == "constant":
        return literal(value)
    return names.get(value) or repr(value)


def literal(constant: Value) -> str:
    """A constant as a Python literal."""
    if constant.size != 1:
        array = constant.graph.array(constant)
        counts = array.ndim == 1 and array.dtype.kind in "iu" and (array == range(array.size)).all()
        return f"arange({array.size})" if counts else f"constant{list(constant.shape)}"
    return str(constant.graph.array(constant).reshape(())[()])


def view_text(view: Value, names: Names, exact: bool = False) -> str:
    """An operand: its name, or its base's name with the view applied. Broadcasts and reshapes are omitted.

    Args:
        exact: show reshapes, too.
    """
    base = view.base
    name = name_of(base, names)
    if view.op != "view":
        return name
    if view in names:
        return names[view]
    order = _permuted_dimensions(view)
    if order is not None:
        transposed = [*range(view.ndim - 2), view.ndim - 1, view.ndim - 2]
        return f"{name}.mT" if order == transposed else f"{name}.permute({', '.join(map(str, order))})"
    dims = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if s]
    shape, strides = tuple(n for n, _ in dims), tuple(s for _, s in dims)
    if algebra.is_dense(shape, strides) and prod(shape) == base.size:
        if not exact or prod(shape) != view.size:
            return name
        return f"{name}.reshape({', '.join(map(str, view.shape))})"
    return name + (_slice(view) or f".as_strided({view.shape}, {view.strides}, {view.offset})")


def _permuted_dimensions(view: Value) -> list[int] | None:
    """The permutation that a view is of its base; None where it is another kind of view."""
    base = view.base
    if view.offset or view.ndim != base.ndim or sorted(view.shape) != sorted(base.shape):
        return None
    dense = algebra.dense_strides(base.shape)
    order: list[int] = []
    for n, s in zip(view.shape, view.strides, strict=True):
        dim = next((d for d in range(base.ndim) if d not in order and base.shape[d] == n
                      and (n == 1 or dense[d] == s)), None)
        if dim is None:
            return None
        order.append(dim)
    return None if order == sorted(order) else order


def _slice(view: Value) -> str | None:
    """A view as indices of the base's first dimensions and slices of the others; None where it is another kind."""
    base = view.base
    dense, rest = algebra.dense_strides(base.shape), view.offset
    indexed = base.ndim - view.ndim
    if indexed < 0:
        return None
    parts: list[str] = []
    for d, (extent, stride) in enumerate(zip(base.shape, dense, strict=True)):
        start, rest = divmod(rest, stride) if stride else (0, rest)
        if d < indexed:
            parts.append(str(start))
            continue
        n, step = view.shape[d - indexed], view.strides[d - indexed]
        if n != 1 and (not stride or step % stride or not step):
            return None
        step = 1 if n == 1 else step // stride
        if start + (n - 1) * step >= extent:
            return None
        is_full = not start and step == 1 and n == extent
        parts.append(":" if is_full else f"{start}:{start + (n - 1) * step + 1}" + (f":{step}" if step != 1 else ""))
    while parts and parts[-1] == ":":
        parts.pop()
    return f"[{', '.join(parts)}]" if parts else None


def statements(kernel: Kernel, names: Names) -> list[str]:
    """The statements of a kernel: one for each output and each value that is used more than once."""
    piece = assembled_piece(kernel)
    if piece is not None:
        arg, strides, offset = piece
        index = f"{offset}:{offset + arg.size}" if algebra.is_dense(arg.shape, strides) else f"{offset}..."
        return [f"{kernel.outputs[0]}.flat[{index}] = {view_text(arg, names)}"]
    values = computed_values(kernel)
    if values and values[0].op == "extern":
        extern = values[0]
        results = ", ".join(name_of(v, names) for v in kernel.outputs)
        return [f"{results} = {_call_text(extern, [view_text(arg, names, True) for arg in extern.args])}"]
    uses = Counter(arg.base for value in values for arg in value.args)
    outputs = {value: (repr(value), _ATOM) for value in kernel.outputs}
    lines: list[str] = []
    texts: dict[Value, tuple[str, int]] = {}

    def operand_text(arg: Value, exact: bool) -> tuple[str, int]:
        base = arg.base
        if base not in texts:
            return view_text(arg, names, exact), _ATOM
        text, precedence = texts[base]
        viewed = view_text(arg, {base: "\0"}, exact)
        return (text, precedence) if viewed == "\0" else (viewed.replace("\0", f"({text})"), _ATOM)

    for value in values:
        text, precedence = _operation_text(value, operand_text)
        if value in outputs or uses[value] > 1 or len(text) > WIDTH:
            lines.append(f"{value} = {text}")
            texts[value] = (repr(value), _ATOM)
        else:
            texts[value] = (text, precedence)
    return lines


def _call_text(value: Value, args: list[str]) -> str:
    """An extern kernel as a call, with its short parameters."""
    kernel = value.attrs
    if isinstance(kernel, FallbackKernel):
        name = str(kernel) if len(str(kernel)) <= WIDTH else f"{str(kernel)[:WIDTH - 3]}..."
        return f"{name}({', '.join(args)})" if args or not name.endswith(")") else name
    params = [f"{name}={value}" for name, value in kernel.params.items() if len(str(value)) <= WIDTH // 4]
    return f"{kernel.name}({', '.join([*args, *params])})"


def expression(value: Value, names: Names) -> str:
    """A value as one Python expression over inputs; its number where the expression is long."""
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

    def operand_text(arg: Value, exact: bool) -> tuple[str, int]:
        base = arg.base
        if base.op in ("input", "constant", "extern", "getitem", "assemble"):
            return view_text(arg, names, exact), _ATOM
        text, precedence = _operation_text(base, operand_text)
        viewed = view_text(arg, {base: "\0"}, exact)
        return (text, precedence) if viewed == "\0" else (viewed.replace("\0", f"({text})"), _ATOM)

    return operand_text(value, False)[0]


def _operation_text(value: Value, operand_text: Callable[[Value, bool], tuple[str, int]]) -> tuple[str, int]:
    """One operation as text, and its operator precedence; `operand_text` gives the text of an argument."""
    op = value.op
    if op == "copy":
        return operand_text(value.args[0], False)
    operands = [operand_text(arg, op in _SHAPED) for arg in value.args]
    texts = [text for text, _ in operands]
    if op in _INFIX:
        symbol, level = _INFIX[op]
        left, right = ((f"({text})" if inner < level or (inner == level and is_second == (op != "pow")) else text)
                       for is_second, (text, inner) in enumerate(operands))
        return f"{left} {symbol} {right}", level
    if op in _PREFIX:
        symbol, level = _PREFIX[op]
        [(text, inner)] = operands
        return f"{symbol}{f'({text})' if inner <= level else text}", level
    if op == "cast":
        return f"{'bfloat16' if value.dtype == BFLOAT16 else value.dtype}({texts[0]})", _ATOM
    if op == "select":
        return f"where({', '.join(texts)})", _ATOM
    if op == "reduce":
        name, dims, _ = value.attrs
        is_full = len(dims) == value.args[0].ndim
        return f"{name}({texts[0]}{'' if is_full else f', dim={dims[0] if len(dims) == 1 else dims}'})", _ATOM
    if op == "convolve":
        kind, stride, padding, dilation, groups = value.attrs
        name = {"forward": "conv", "image": "conv_transpose", "weight": "conv_weight_grad"}[kind]
        options = [f"{key}={numbers}" for key, numbers, default in (
            ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)) if any(
                n != default for n in numbers)]
        options += [f"groups={groups}"] * (groups != 1)
        return f"{name}({', '.join([*texts, *options])})", _ATOM
    return f"{op}({', '.join(texts)})", _ATOM


def kernel_title(kernel: Kernel) -> str:
    """The title of a kernel: its family and its distinct operations, in the order of computation."""
    if kernel.name == FALLBACK:
        extern = kernel.outputs[0].args[0].attrs
        name, *_ = re.split(r"[(\[]", str(extern))
        return f"numpy {name}"
    ops: list[str] = []
    for value in computed_values(kernel):
        op = value.attrs[0] if value.op == "reduce" else value.op
        if op not in ops and op != kernel.name and op not in ("extern", "getitem", "assemble"):
            ops.append(op)
    shown = [op for op in ops if op not in _OMITTED_FROM_TITLE] or ops
    ellipsis = "…" if len(shown) > MAX_OPERATIONS_IN_TITLE else ""
    return f"{kernel.name} {'+'.join(shown[:MAX_OPERATIONS_IN_TITLE])}{ellipsis}".rstrip()


def kernel_listing(schedule: Schedule, names: Names) -> str:
    """The computed values, kernel by kernel, in the order of the schedule."""
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
    """The data guards, as lines of text."""
    return [f"stop unless {name_of(value, names)} is {outcome}" for value, outcome in schedule.conditions]


def graph_listing(graph: Graph, names: Names, count: int | None = None) -> str:
    """The first `count` values of a graph, in creation order."""
    return "\n".join(_definition_text(value, names) for value in graph.values[:count])


def _definition_text(value: Value, names: Names) -> str:
    comment = f"    # {names[value]}" if value in names else ""
    if value.op == "extern":
        why = f"    # {value.attrs.why}" if isinstance(value.attrs, FallbackKernel) and value.attrs.why else ""
        return f"%{value.number} = {_call_text(value, list(map(repr, value.args)))}{why}"
    return value.text + comment


def operands(schedule: Schedule, kernel: Kernel, names: Names) -> tuple[list[str], list[str]]:
    """A kernel's outputs and inputs, with dtypes and shapes; `over` names the input that an output overwrites."""
    overwritten = {target.value: target.overwrites for target in schedule.targets
            if target.overwrites is not None
            and schedule.locations[target.value] == schedule.locations[target.overwrites]}
    outputs = [f"{name_of(v, names)} {dtype_and_shape(v)}"
               + (f" over {name_of(overwritten[v], names)}" if v in overwritten else "") for v in kernel.outputs]
    bases = dict.fromkeys(base for base, _ in kernel.inputs if not (base.op == "constant" and base.size == 1))
    return outputs, [f"{name_of(v, names)} {dtype_and_shape(v)}" for v in bases]


def chunk_counts(kernel: Kernel) -> Sequence[int]:
    """The number of chunks of each launch."""
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
