"""How an operator is declared: its forward once, and one small rule per input.

    @elementwise
    def mul(xp, input, other):
        return input * other
    mul.vjp(input=lambda g, other: g * other,
            other=lambda g, input: g * input)

Arrays are positional, parameters are keyword-only, and both are spelt as PyTorch spells
them: the declaration is also the public signature. A rule asks for what it needs by
name; that, and nothing else, is kept for backward. It may ask for

    g               the cotangent of the output (`g0`, `g1`, ... where there are several; `gs`, a list,
                    where their number is not fixed)
    xp              the namespace the lines run over: arrays or tensors
    <input>         an input's value
    <input>_shape   only its shape
    <input>_dtype   only its dtype
    <input>_strides only its strides, in bytes
    out             the result (`out0`, ... or the outputs' names where there are several)
    <parameter>     a keyword parameter
    needs           which inputs want a gradient (joint rules)

The kind says what follows from the forward and the rules:

    elementwise     rules are partial derivatives times `g`: they serve forward mode too;
                    un-broadcasting is the engine's work; an in-place form exists
    linear          forward mode applies the operator to the tangent
    view            linear, and the result shares memory with its first input
    op              forward mode from `jvp`, or by differentiating the vjp
    composite       a formula of other operators: nothing more to say

Rules are written for real numbers and holomorphic functions without a thought for
complex conjugation: the engine conjugates around them (PyTorch's Wirtinger convention).
Functions that are not holomorphic say so and state PyTorch's formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

REGISTRY: dict[str, Op] = {}

ELEMENTWISE, LINEAR, VIEW, OP, COMPOSITE = "elementwise", "linear", "view", "op", "composite"

# How a node holds what it saved.
NOTHING, ONE_INPUT, TWO_INPUTS, ONE_OUTPUT, SEVERAL = range(5)

#: what an operator has to say to numbers that it does not support: an exception, or what makes one (or None) of the
#: arguments
Refusal = Exception | Callable[..., Exception | None]

#: in `refuses`, the words that stand for several dtypes, the wider ones first; any dtype's own name may stand there too
KINDS = {
    "integer": ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    "float": ("float16", "bfloat16", "float32", "float64"),
    "unsigned": ("uint16", "uint32", "uint64"),  # those that PyTorch has few kernels for
    "narrow": ("float16", "bfloat16"),
    "complex": ("complex64", "complex128"),
}

# Parameters that count dimensions.
_COUNTING = frozenset(("dim", "dims", "dim0", "dim1", "dimension"))

_STAR_ARGS = 0x04  # inspect.CO_VARARGS, without importing inspect


class DeclarationError(TypeError):
    """A declaration that contradicts itself, found at import."""


class Rule:
    """A function and the names of what it asks for."""

    __slots__ = ("function", "names")

    def __init__(self, function: Callable[..., Any], qualname: str) -> None:
        code = function.__code__
        self.function = function
        self.names = code.co_varnames[: code.co_argcount]
        function.__qualname__ = function.__name__ = qualname  # so that tracebacks read mul.vjp[other]


class Plan:
    """What one use of an operator keeps, and how its rules find it again.

    A node holds `saved` (tensors and outputs) and `consts` (shapes, dtypes, parameters);
    at backward all values stand in one tuple, `(*gs, xp, needs, *saved, *consts)`, and each
    step picks its own from it.
    """

    __slots__ = ("consts", "joint", "layout", "needs", "op", "outs", "run", "saves_tensors", "steps", "tensors",
                 "wide_run")

    def __init__(self, op: Op, mask: int, inputs: int) -> None:
        self.op = op
        names = op.input_names(inputs)
        self.needs = tuple(bool(mask >> i & 1) for i in range(inputs))
        self.wide_run: Any = None  # the same where inputs were broadcast
        self.run: Any = None  # the short way to run the rules on arrays, chosen when first recorded
        rules: tuple[Rule | None, dict[int, Rule | None]] = op.joint_rule, {}
        if op.joint_rule is not None:
            wanted = set(op.joint_rule.names)
        else:
            rules = None, {i: op.rule_for(names[i]) for i in range(inputs) if self.needs[i]}
            wanted = {name for rule in rules[1].values() if rule for name in rule.names}
        n = 1 if op.many else op.n_outputs
        self.tensors = tuple(i for i, name in enumerate(names) if name in wanted)
        if op.variadic and op.inputs[-1] in wanted:
            self.tensors += tuple(range(len(op.inputs) - 1, inputs))
        self.outs = tuple(i for i, name in enumerate(op.output_names()) if name in wanted)
        consts: list[tuple[str, Any]] = []
        for i, name in enumerate(names):
            if name + "_shape" in wanted:
                consts.append(("shape", i))
            if name + "_dtype" in wanted:
                consts.append(("dtype", i))
            if name + "_strides" in wanted:
                consts.append(("strides", i))
        if op.variadic:
            star = op.inputs[-1]
            first = len(op.inputs) - 1
            if star + "_shapes" in wanted:
                consts.append(("shapes", first))
            if star + "_dtypes" in wanted:
                consts.append(("dtypes", first))
        consts += [("param", name) for name in op.params if name in wanted]
        self.consts = tuple(consts)
        self.saves_tensors = bool(self.tensors or self.outs)

        place = {"gs": 0} if op.many else {("g" if n == 1 else f"g{k}"): k for k in range(n)}
        if n > 1:
            place["g"] = 0
        place["xp"], place["needs"] = n, n + 1
        position = n + 2
        for i in self.tensors:
            place[names[i]] = position
            position += 1
        for k in self.outs:
            place[op.output_names()[k]] = position
            position += 1
        for what, which in consts:
            if what == "param":
                key = which
            elif what in ("shapes", "dtypes"):
                key = f"{op.inputs[-1]}_{what}"
            else:
                key = f"{names[which]}_{what}"
            place[key] = position
            position += 1
        if op.variadic and op.inputs[-1] in wanted:
            place[op.inputs[-1]] = -1  # filled as one list, last

        def picker(rule: Rule) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
            indexes = [place[name] for name in rule.names]
            if len(indexes) == 1:
                only = indexes[0]
                return lambda values: (values[only],)
            return itemgetter(*indexes)

        self.joint = (op.joint_rule.function, picker(op.joint_rule)) if op.joint_rule is not None else None
        self.steps = tuple((i, rule.function, picker(rule)) for i, rule in rules[1].items() if rule)
        self.layout = SEVERAL
        if not self.saves_tensors:
            self.layout = NOTHING
        elif not self.outs and len(self.tensors) <= 2:
            self.layout = ONE_INPUT if len(self.tensors) == 1 else TWO_INPUTS
        elif not self.tensors and len(self.outs) == 1:
            self.layout = ONE_OUTPUT


class Op:
    """A declared operator: forward, rules, and what its kind implies. Made by the decorators below."""

    def __init__(self, forward: Callable[..., Any], kind: str, options: dict[str, Any]) -> None:
        code = forward.__code__
        positional = list(code.co_varnames[: code.co_argcount])
        self.forward = forward
        self.kind = kind
        self.takes_xp = bool(positional) and positional[0] == "xp"
        if self.takes_xp:
            positional.pop(0)
        self.variadic = bool(code.co_flags & _STAR_ARGS)
        n_kwonly = code.co_kwonlyargcount
        self.params = code.co_varnames[code.co_argcount: code.co_argcount + n_kwonly]
        if self.variadic:
            positional.append(code.co_varnames[code.co_argcount + n_kwonly])
        self.inputs = tuple(positional)
        self.n_optional = len(forward.__defaults__ or ())  # trailing inputs that may be None
        self.defaults: dict[str, Any] = dict(forward.__kwdefaults__ or {})
        self.name: str = options.pop("name", None) or forward.__name__
        self.doc = forward.__doc__
        self.node: str = options.pop("node", None) or _camel(self.name) + "Backward0"
        #: names of the outputs where there are several; a namedtuple of them is returned if `named`
        self.outputs: tuple[str, ...] | None = options.pop("outputs", None)
        self.named: bool = options.pop("named", self.outputs is not None)
        #: a list of outputs, as many as the arguments make it (unbind, split): rules ask for `gs`, the list
        self.many: bool = options.pop("many", False)
        self.n_outputs = 2 if self.many else len(self.outputs) if self.outputs else 1
        #: inputs' dtypes: "none" keeps them, "common" promotes them to one, "float" makes integers floats too
        self.promote: str = options.pop("promote", "common" if kind == ELEMENTWISE else "none")
        #: a result of comparison or classification: never differentiable
        self.differentiable: bool = options.pop("differentiable", True)
        self.holomorphic: bool = options.pop("holomorphic", True)
        #: inputs in which a linear operator is linear
        self.linear_in: tuple[str, ...] = options.pop("linear_in", ())
        #: where users find it: "torch", "method", "inplace", "nn.functional", "special", "linalg", ...
        default = ("torch", "method", "inplace") if kind == ELEMENTWISE else ("torch", "method")
        self.expose: tuple[str, ...] = options.pop("expose", default)
        #: the tuple parameter that may be spread over positional arguments: x.permute(1, 0)
        self.spread: str | None = options.pop("spread", None)
        #: `dtype=` converts the input first (sum, softmax, ...)
        self.dtype_converts: bool = options.pop("dtype_converts", False)
        #: float16 and bfloat16 are computed in float32 and rounded; False where only data moves
        self.widens: bool = options.pop("widens", kind != VIEW)
        #: inputs whose numbers are not rounded to float16 or bfloat16 first
        self.unrounded: tuple[str, ...] = options.pop("unrounded", ())
        #: several outputs that are views of one input refuse in-place writes (unbind, split, ...)
        self.multi_view: bool = options.pop("multi_view", False)
        #: inputs that may be Python numbers
        self.numbers: tuple[str, ...] = options.pop("numbers", self.inputs[1:] if kind == ELEMENTWISE else ())
        #: (input or parameter name, operator) used instead where that argument is a number
        self.for_number: dict[str, Op] = {}
        #: inputs that keep their own dtype while the others are promoted (the condition of `where`)
        self.unpromoted: tuple[str, ...] = options.pop("unpromoted", ())
        #: parameters whose numbers count for the promoted dtype as an input's would (the exponent of `pow`)
        self.promoting: tuple[str, ...] = options.pop("promoting", ())
        #: dtype's name -> the exception that says it is not supported, or what gives it of the arguments; `{}` is
        #: what messages call the dtype. Declared by words that may stand for several dtypes (see `KINDS`)
        self.refuses: dict[str, Refusal] = _by_dtype(options.pop("refuses", {}))
        #: called with the inputs before anything is computed; raises what is wrong with them
        self.check: Callable[..., None] | None = options.pop("check", None)
        self.aliases: tuple[str, ...] = options.pop("aliases", ())
        #: the positional arguments in the order users give them, where parameters stand between the inputs
        self.order: tuple[str, ...] | None = options.pop("order", None)
        #: how many parameters a call must give where all arguments come by position, as they are declared; None where
        #: positions mean something else
        self.by_place: int | None = None if self.order or self.spread or self.variadic else max(
            (i + 1 for i, name in enumerate(self.params) if name not in self.defaults), default=0)
        #: `out=` must have the result's dtype; a text says so in the words of one operator
        self.exact_out: bool | str = options.pop("exact_out", False)
        #: `out=` may share no memory with the inputs, not even all of it
        self.apart: bool = options.pop("apart", False)
        #: what `vmap`'s hidden dimensions, which stand in front, are to the operator (see
        #: `_tensor.dispatch.batched_tensor`):
        #: "elementwise"; "dims", parameters that count dimensions are shifted; "reduce", and None means all of them;
        #: "trailing", it works on the last ones; "size", its `size` is the result's shape; "rows", the first
        #: dimension is a batch already; or a function, stated by `batching`. None: it runs once for each element
        counts = any(p in _COUNTING for p in self.params)
        self.batches: str | Callable[..., Any] | None = options.pop(
            "batches", "elementwise" if kind == ELEMENTWISE else "dims" if counts else None)
        #: inputs that PyTorch draws no edge for (indices, masks, targets)
        self.edgeless: tuple[str, ...] = options.pop("edgeless", ())
        #: unlike the name where several operators share a public name (overloads)
        key: str = options.pop("key", self.name)
        if options:
            raise DeclarationError(f"{self.name}: unknown options {sorted(options)}")
        self.rules: dict[str, Rule | None] = {}
        self.joint_rule: Rule | None = None
        self.tangent_rule: Rule | None = None
        self.plans: dict[tuple[int, int], Plan] = {}
        #: set by the tensor layer: the public function
        self.call: Callable[..., Any] | None = None
        #: set by the tensor layer: what applies it to one plain tensor; False where nothing does
        self.short_way: Any = None
        self.in_place: Callable[..., Any] | None = None
        #: what is recorded of the in-place form, beside a tensor and beside a number, where it is another node
        self.written: tuple[Op, Op] | None = None
        if key in REGISTRY:
            raise DeclarationError(f"{key} is declared twice")
        REGISTRY[key] = self

    def __repr__(self) -> str:
        return f"<{self.kind} operator {self.name}>"

    # ----- rules -----

    def vjp(self, **rules: Callable[..., Any] | None) -> Op:
        """State, by input, the vector-Jacobian product; None where the input has no gradient."""
        for name, function in rules.items():
            if name not in self.inputs:
                raise DeclarationError(f"{self.name}.vjp: no input named {name!r}; the inputs are {self.inputs}")
            self.rules[name] = None if function is None else self._rule(function, f"{self.name}.vjp[{name}]")
        return self

    def joint_vjp(self, function: Callable[..., Any]) -> Op:
        """State one rule that returns a tuple, one gradient per input: for rules that share work."""
        self.joint_rule = self._rule(function, f"{self.name}.vjp")
        return self

    def jvp(self, function: Callable[..., Any]) -> Op:
        """State the tangent. Asks for `t_<input>` (a tangent, or None) besides what a vjp may ask for."""
        self.tangent_rule = self._rule(function, f"{self.name}.jvp", tangents=True)
        return self

    def overwriting(self, node: str, number: str | None = None, **rules: Callable[..., Any]) -> Op:
        """State the node of the in-place form where it has another name, and its rules where they are others.

        Args:
            node: its name.
            number: its name where the second input is a number.
        """
        self.written = (self._alike(node, rules), self._alike(number or node, rules))
        return self

    def _alike(self, node: str, rules: dict[str, Callable[..., Any]]) -> Op:
        made: Op = object.__new__(Op)
        made.__dict__.update(self.__dict__)
        made.node, made.differentiable, made.plans, made.written, made.short_way = node, True, {}, None, None
        made.rules = dict(self.rules)
        for name, function in rules.items():
            made.rules[name] = made._rule(function, f"{self.name}_.vjp[{name}]")
        return made

    def batching(self, function: Callable[..., Any]) -> Op:
        """State what the operator does to a batch: `function(xp, batch, *inputs, **parameters)`.

        The inputs have `batch.k` more dimensions in front, those of `batch.sizes`, where `batch.on` says so
        (`batch.full` gives them to another); so has what is returned.
        """
        self.batches = function
        return self

    def _rule(self, function: Callable[..., Any], qualname: str, tangents: bool = False) -> Rule:
        rule = Rule(function, qualname)
        allowed = {"xp", "needs", *self.params, *self.output_names(), *self.inputs}
        allowed |= {f"{i}_{what}" for i in self.inputs for what in ("shape", "dtype", "strides")}
        if self.variadic:
            allowed |= {self.inputs[-1] + "_shapes", self.inputs[-1] + "_dtypes"}
        if tangents:
            allowed |= {"t_" + i for i in self.inputs}
        else:
            several = {"gs"} if self.many else {"g", *(f"g{k}" for k in range(self.n_outputs))}
            allowed |= {"g"} if self.n_outputs == 1 else several
        unknown = [name for name in rule.names if name not in allowed]
        if unknown:
            raise DeclarationError(f"{qualname} asks for {unknown}; it may ask for {sorted(allowed)}")
        return rule

    def rule_for(self, name: str) -> Rule | None:
        """The rule of an input by name; an input without one cannot be differentiated."""
        return self.rules.get(name)

    def input_names(self, count: int) -> tuple[str, ...]:
        """The inputs' names; those of a variadic operator are numbered."""
        if not self.variadic:
            return self.inputs[:count]
        fixed = self.inputs[:-1]
        return fixed + tuple(f"{self.inputs[-1]}{i}" for i in range(count - len(fixed)))

    def output_names(self) -> tuple[str, ...]:
        """The names by which rules ask for results."""
        if self.outputs is None:
            return ("out",)
        return self.outputs

    def plan(self, mask: int, inputs: int) -> Plan:
        """The plan for a set of inputs (a bit mask) that want gradients; made once."""
        found = self.plans.get((mask, inputs))
        if found is None:
            found = self.plans[mask, inputs] = Plan(self, mask, inputs)
        return found

    # ----- overloads and aliases -----

    def when_number(self, argument: str, other: Op) -> Op:
        """Use the operator `other` where `argument` is a Python number."""
        self.for_number[argument] = other
        return self


def lacks(kernel: str, *kinds: str, empty: bool = True) -> dict[str, Refusal]:
    """For `refuses=`: PyTorch's words for numbers that a kernel of its is not made for.

    Args:
        kinds: of numbers, as in `KINDS`, or names of dtypes.
        empty: the kernel is asked for tensors without elements, too.
    """
    error = no_kernel(kernel)

    def unless_empty(input: Any, *_: Any, **__: Any) -> Exception | None:
        return None if 0 in input.shape else error

    return dict.fromkeys(kinds, error if empty else unless_empty)


def no_kernel(name: str) -> NotImplementedError:
    """PyTorch's words for a kernel that it has not for the dtype which `{}` stands for."""
    return NotImplementedError(f"\"{name}\" not implemented for '{{}}'")


def _by_dtype(refuses: dict[str, Refusal]) -> dict[str, Refusal]:
    """By dtype what was said by kind; what is said of a few dtypes goes before what is said of more."""
    found = {name: refuses[kind] for kind, names in KINDS.items() if kind in refuses for name in names}
    return found | {name: error for name, error in refuses.items() if name not in KINDS}


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))


def _declarator(kind: str) -> Callable[..., Any]:
    def declare(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is not None:
            return Op(function, kind, options)
        return lambda f: Op(f, kind, options)

    return declare


elementwise = _declarator(ELEMENTWISE)
view = _declarator(VIEW)
op = _declarator(OP)
composite = _declarator(COMPOSITE)


def linear(*inputs: Any, **options: Any) -> Any:
    """Declare an operator linear in the named inputs (each by itself); in its first where none is named."""
    if inputs and callable(inputs[0]):
        return Op(inputs[0], LINEAR, {"linear_in": (), **options})
    return lambda f: Op(f, LINEAR, {"linear_in": inputs, **options})
