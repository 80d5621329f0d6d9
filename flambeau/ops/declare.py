"""Operator declarations: the forward once, and one derivative formula per input.

    @elementwise
    def mul(xp, input, other):
        return input * other
    mul.vjp(input=lambda g, other: g * other,
            other=lambda g, input: g * input)

Tensors are positional, parameters are keyword-only, and both have PyTorch's names: the declaration is also the public
signature. A derivative formula (vjp) requests what it needs by parameter name, and exactly that is saved for
backward. It may request

    g               the gradient of the output (`g0`, `g1`, ... where there are several; `gs`, a list,
                    where the operator returns a list of tensors)
    xp              the namespace that the formula runs over: arrays, tensors or the compiler's IR values
    <input>         an input's value
    <input>_shape   only its shape
    <input>_dtype   only its dtype
    <input>_strides only its strides, in bytes
    out             the result (`out0`, ... or the outputs' names where there are several)
    <parameter>     a keyword parameter
    needs           which inputs require grad (joint formulas)

The kind implies the rest:

    elementwise     the formulas are partial derivatives times `g`, and serve forward mode too; the engine sums
                    gradients of broadcast inputs; an in-place variant exists
    linear          forward mode applies the operator to the tangent
    view            linear, and the result shares memory with its first input
    op              forward mode from `jvp`, or by differentiating the vjp
    composite       a formula of other operators, which record themselves

Formulas are written for real numbers and holomorphic functions without complex conjugation: the engine conjugates
around them (PyTorch's convention for Wirtinger derivatives). A function that is not holomorphic declares
`holomorphic=False` and states PyTorch's formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .backward_plan import BackwardPlan, Rule
from .registry import Registry
from .saved_attributes import parse_saved
from .unsupported_dtypes import UnsupportedDtype, by_dtype, not_implemented, not_implemented_error

REGISTRY = Registry()

ELEMENTWISE, LINEAR, VIEW, OP, COMPOSITE = "elementwise", "linear", "view", "op", "composite"

# Parameters that name dimensions.
_DIM_PARAMS = frozenset(("dim", "dims", "dim0", "dim1", "dimension"))

_VARARGS = 0x04  # inspect.CO_VARARGS, without importing inspect


#: options that only operators with a kernel of their own use
#: `exact_out` of most elementwise operators that keep their input's dtype
FOUND_DTYPE = "Found dtype {out} but expected {result}"

_NOT_OF_COMPOSITES = frozenset(("batching_rule", "check", "disjoint_out", "castable_out", "exact_out", "opmath",
                                "promote", "unpromoted", "unrounded", "unsupported_dtypes"))


class DeclarationError(TypeError):
    """A declaration contradicts itself; raised at import."""


class Op:
    """A declared operator: the forward, the derivative formulas, and the options of its declaration.

    The decorators `elementwise`, `linear`, `view`, `op` and `composite` create it; its registry key is the name, or
    the option `key` where several operators (overloads) share a name.
    """

    def __init__(self, forward: Callable[..., Any], kind: str, options: dict[str, Any]) -> None:
        code = forward.__code__
        positional = list(code.co_varnames[: code.co_argcount])
        self.forward = forward
        self.kind = kind
        ignored = _NOT_OF_COMPOSITES.intersection(options) if kind == COMPOSITE else ()
        if ignored:
            raise DeclarationError(f"{forward.__name__}: {', '.join(sorted(ignored))} of a composite has no effect: "
                                   "its operators promote, check and batch; declare it with `op`, or leave it out")
        self.takes_xp = bool(positional) and positional[0] == "xp"
        if self.takes_xp:
            positional.pop(0)
        self.variadic = bool(code.co_flags & _VARARGS)
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
        #: names of the outputs where there are several
        self.outputs: tuple[str, ...] | None = options.pop("outputs", None)
        #: whether several outputs are returned as a namedtuple
        self.returns_namedtuple: bool = options.pop("returns_namedtuple", self.outputs is not None)
        #: whether the result is a list of tensors whose length depends on the arguments (unbind, split); formulas
        #: request `gs`, the list of their gradients
        self.tensor_list: bool = options.pop("tensor_list", False)
        self.n_outputs = 2 if self.tensor_list else len(self.outputs) if self.outputs else 1
        #: whether formulas receive None, not zeros, for the gradient of one of several outputs that has none: where
        #: zero times what they multiply it with may be NaN
        self.undefined_gradients: bool = options.pop("undefined_gradients", False)
        #: dtype promotion of the inputs: "none", "common" (to one dtype), "float" (to one dtype, and integers to float)
        self.promote: str = options.pop("promote", "common" if kind == ELEMENTWISE else "none")
        #: False where the result never requires grad (comparisons, indices)
        self.differentiable: bool = options.pop("differentiable", True)
        self.holomorphic: bool = options.pop("holomorphic", True)
        self.complex_gradients: bool = options.pop("complex_gradients", True)  # else PyTorch records no complex result
        #: the inputs in which a linear operator is linear
        self.linear_in: tuple[str, ...] = options.pop("linear_in", ())
        #: public namespaces: "torch", "method", "inplace", "nn.functional", "special", "linalg", ...
        default = ("torch", "method", "inplace") if kind == ELEMENTWISE else ("torch", "method")
        self.expose: tuple[str, ...] = options.pop("expose", default)
        #: the tuple parameter that may be given as separate positional arguments: x.permute(1, 0)
        self.spread: str | None = options.pop("spread", None)
        #: whether `dtype=` converts the input first (sum, softmax, ...)
        self.dtype_converts: bool = options.pop("dtype_converts", False)
        #: whether float16 and bfloat16 are computed in float32 (PyTorch's opmath type) and rounded; False where the
        #: operator only moves data
        self.opmath: bool = options.pop("opmath", kind != VIEW)
        #: whether the derivative formulas only move elements, too, so that gradients of 16 bits are not widened
        self.moves_gradients: bool = options.pop("moves_gradients", False)
        #: inputs whose scalars are not rounded to float16 or bfloat16 first
        self.unrounded: tuple[str, ...] = options.pop("unrounded", ())
        #: whether several outputs are views of one input, which refuse in-place writes (unbind, split, ...)
        self.multi_output_view: bool = options.pop("multi_output_view", False)
        #: inputs that may be Python scalars
        self.scalar_inputs: tuple[str, ...] = options.pop("scalar_inputs",
                                                          self.inputs[1:] if kind == ELEMENTWISE else ())
        #: name of an argument -> the overload that is called where that argument is a Python scalar
        self.scalar_overloads: dict[str, Op] = {}
        #: inputs that are not promoted with the others (the condition of `where`)
        self.unpromoted: tuple[str, ...] = options.pop("unpromoted", ())
        #: scalar parameters that take part in dtype promotion (the exponent of `pow`)
        self.promoting_params: tuple[str, ...] = options.pop("promoting_params", ())
        #: dtype's name -> the error that it raises, or a function of the arguments that returns the error or None;
        #: `{}` in its text stands for the dtype. Declared by dtype or by category (`DTYPE_CATEGORIES`)
        self.unsupported_dtypes: dict[str, UnsupportedDtype] = by_dtype(options.pop("unsupported_dtypes", {}))
        #: called with the inputs before the forward; raises an error if they are invalid
        self.check: Callable[..., None] | None = options.pop("check", None)
        self.aliases: tuple[str, ...] = options.pop("aliases", ())
        #: the order of the positional arguments, where parameters stand between the inputs
        self.argument_order: tuple[str, ...] | None = options.pop("argument_order", None)
        #: how many parameters a call that passes all arguments by position must give; None where the positional
        #: arguments are not the inputs followed by the parameters
        self.required_params: int | None = None if self.argument_order or self.spread or self.variadic else max(
            (i + 1 for i, name in enumerate(self.params) if name not in self.defaults), default=0)
        #: whether `out=` must have the result's dtype; a text is the error of one operator, where `{out}` and
        #: `{result}` stand for the dtypes
        self.exact_out: bool | str | tuple[str, ...] = options.pop("exact_out", False)
        #: what the error of an `out=` of too small a dtype names: the function, and each result
        self.castable_out: tuple[str, ...] = options.pop("castable_out", ())
        #: whether `out=` may share no memory with the inputs, not even be one of them
        self.disjoint_out: bool = options.pop("disjoint_out", False)
        #: whether the in-place variant may write to an expanded tensor, since writing twice changes nothing
        self.expanded_target: bool = options.pop("expanded_target", False)
        #: the batching rule of `vmap`, whose batch dimensions come first (see `_tensor.dispatch.batched_tensor`):
        #: "elementwise"; "dims": parameters that name dimensions are shifted; "reduce": the same, and None stands for
        #: all dimensions; "trailing": the operator works on the last dimensions; "size": its `size` is the result's
        #: shape; or a function, stated with `Op.vmap`. None: the operator
        #: runs once per batch element
        has_dims = any(p in _DIM_PARAMS for p in self.params)
        self.batching_rule: str | Callable[..., Any] | None = options.pop(
            "batching_rule", "elementwise" if kind == ELEMENTWISE else "dims" if has_dims else None)
        #: inputs for which the node has no edge, as in PyTorch (indices, masks, targets)
        self.nondifferentiable_inputs: tuple[str, ...] = options.pop("nondifferentiable_inputs", ())
        #: the node's `_saved_*` attributes, where PyTorch's are not what the formulas request under its own names
        saved: str | None = options.pop("saved", None)
        try:
            self.saved_attributes = None if saved is None else parse_saved(
                saved, self.inputs, self.output_names(), self.params)
        except ValueError as error:
            raise DeclarationError(f"{self.name}: {error}") from None
        #: the registry key, where several operators (overloads) share a name
        key: str = options.pop("key", self.name)
        if options:
            raise DeclarationError(f"{self.name}: unknown options {sorted(options)}")
        self.vjp_rules: dict[str, Rule | None] = {}
        self.joint_vjp_rule: Rule | None = None
        self.jvp_rule: Rule | None = None
        self.backward_plans: dict[tuple[int, int], BackwardPlan] = {}
        # The tensor layer sets these:
        #: the public function
        self.call: Callable[..., Any] | None = None
        #: the function of a Python operator (`x + y`), of some binary elementwise operators
        self.operator_method: Callable[..., Any] | None = None
        #: the fast path for one strided tensor; None before it is looked up, False where there is none
        self.fast_path: Any = None
        #: the fast path for inputs that need no conversion, likewise
        self.without_promotion: Any = None
        #: what computes it on arrays
        self.kernel: Any = None
        #: the in-place variant
        self.in_place: Callable[..., Any] | None = None
        #: the operators that in-place variants record, with a tensor and with a scalar as the second input, where
        #: PyTorch's node has another name
        self.in_place_variants: tuple[Op, Op] | None = None
        if REGISTRY.declared(key) is not None:
            raise DeclarationError(f"{key} is declared twice")
        REGISTRY[key] = self

    def __repr__(self) -> str:
        return f"<{self.kind} operator {self.name}>"

    # ----- derivative formulas and batching rules -----

    def vjp(self, **rules: Callable[..., Any] | None) -> Op:
        """Declare the vector-Jacobian product of each input; None for an input without gradient."""
        for name, function in rules.items():
            if name not in self.inputs:
                raise DeclarationError(f"{self.name}.vjp: no input named {name!r}; the inputs are {self.inputs}")
            self.vjp_rules[name] = None if function is None else self._rule(function, f"{self.name}.vjp[{name}]")
        return self

    def joint_vjp(self, function: Callable[..., Any]) -> Op:
        """Declare one formula that returns all gradients, a tuple with one per input, where they share work."""
        self.joint_vjp_rule = self._rule(function, f"{self.name}.vjp")
        return self

    def jvp(self, function: Callable[..., Any]) -> Op:
        """Declare the Jacobian-vector product; it may also request `t_<input>`, the tangent of an input, or None."""
        self.jvp_rule = self._rule(function, f"{self.name}.jvp", tangents=True)
        return self

    def in_place_node(self, node: str, scalar: str | None = None, **rules: Callable[..., Any]) -> Op:
        """Declare the node of the in-place variant where it has another name, and its formulas where they differ.

        Args:
            node: its name.
            scalar: its name where the second input is a Python scalar.
            rules: its vjp, by input.
        """
        self.in_place_variants = (self._variant(node, rules), self._variant(scalar or node, rules))
        return self

    def _variant(self, node: str, rules: dict[str, Callable[..., Any]]) -> Op:
        """Return a copy of this operator with another node and other formulas."""
        variant = self.derived(node=node, differentiable=True, in_place_variants=None, vjp_rules=dict(self.vjp_rules))
        for name, function in rules.items():
            variant.vjp_rules[name] = variant._rule(function, f"{self.name}_.vjp[{name}]")
        return variant

    def derived(self, **changes: Any) -> Op:
        """Return a copy of the declaration with changes, without what other layers have made of it; in no registry.

        Args:
            changes: attributes of the copy.
        """
        copied: Op = object.__new__(Op)
        copied.__dict__.update(self.__dict__)
        copied.__dict__.pop("registry_key", None)
        copied.kernel = copied.call = copied.operator_method = copied.in_place = None
        copied.fast_path = copied.without_promotion = None
        copied.backward_plans = {}
        copied.__dict__.update(changes)
        return copied

    def vmap(self, function: Callable[..., Any]) -> Op:
        """Declare the batching rule: `function(xp, batch, *inputs, **parameters)` runs the operator on a batch.

        An input for which `batch.on` is true has `batch.k` more dimensions in front, of the sizes `batch.sizes`
        (`batch.expand_levels` adds them to another input); the result has them too.
        """
        self.batching_rule = function
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
            several = {"gs"} if self.tensor_list else {"g", *(f"g{k}" for k in range(self.n_outputs))}
            allowed |= {"g"} if self.n_outputs == 1 else several
        unknown = [name for name in rule.names if name not in allowed]
        if unknown:
            raise DeclarationError(f"{qualname} requests {unknown}; it may request {sorted(allowed)}")
        return rule

    def rule_for(self, name: str) -> Rule | None:
        """Return the vjp of an input by name; an input without one cannot be differentiated."""
        return self.vjp_rules.get(name)

    def input_names(self, count: int) -> tuple[str, ...]:
        """Return the names of `count` inputs; those of a variadic input are numbered."""
        if not self.variadic:
            return self.inputs[:count]
        fixed = self.inputs[:-1]
        return fixed + tuple(f"{self.inputs[-1]}{i}" for i in range(count - len(fixed)))

    def output_names(self) -> tuple[str, ...]:
        """Return the names by which formulas request results."""
        if self.outputs is None:
            return ("out",)
        return self.outputs

    def backward_plan(self, mask: int, inputs: int) -> BackwardPlan:
        """Return the cached plan for `inputs` inputs of which those in the bit mask require grad."""
        result = self.backward_plans.get((mask, inputs))
        if result is None:
            result = self.backward_plans[mask, inputs] = BackwardPlan(self, mask, inputs)
        return result

    # ----- overloads -----

    def scalar_overload(self, argument: str, overload: Op) -> Op:
        """Call the operator `overload` where `argument` is a Python scalar."""
        self.scalar_overloads[argument] = overload
        return self


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
    """Declare an operator that is linear in each of the named inputs, or in its first where none is named."""
    if inputs and callable(inputs[0]):
        return Op(inputs[0], LINEAR, {"linear_in": (), **options})
    return lambda f: Op(f, LINEAR, {"linear_in": inputs, **options})


__all__ = ["COMPOSITE", "ELEMENTWISE", "LINEAR", "OP", "REGISTRY", "VIEW", "DeclarationError", "Op", "composite",
           "elementwise", "linear", "not_implemented", "not_implemented_error", "op", "view"]
