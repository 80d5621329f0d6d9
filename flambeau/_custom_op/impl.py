"""`CustomOp`: an operator that the program defines by its schema, with kernels and a derivative by registration."""

from __future__ import annotations

import inspect
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

from .._library.infer_schema import infer_schema
from .._library.utils import is_functional_schema
from ..library import Library, get_ctx
from ..ops.overloads import OpOverload, namespace_of
from ..ops.schemas import FunctionSchema
from .autograd import DerivativeByName, refusing_kernel

SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}

#: qualified name -> its operator, which lives until it is destroyed
global_registry: dict[str, CustomOp] = {}


class _Registration(NamedTuple):
    func: Any
    location: str


def _warn_deprecated() -> None:
    warnings.warn("torch._custom_op is deprecated and will be removed in PyTorch 2.6, please use the equivalent "
                  "torch.library API instead.", DeprecationWarning, stacklevel=3)


class CustomOp:
    """An operator that the program defines; `custom_op` makes it.

    Raises:
        RuntimeError: it is made otherwise.
    """

    def __init__(self, lib: Any, cpp_ns: Any, schema: Any, operator_name: Any, ophandle: Any, *,
                 _private_access: bool = False) -> None:
        _warn_deprecated()
        if not _private_access:
            raise RuntimeError("The CustomOp constructor is private and we do not guarantee BC for it. Please use "
                               "custom_op(...) to create a CustomOp object")
        self._lib: Library = lib
        self._schema: FunctionSchema = schema
        self._opname, self._qualname = operator_name, f"{cpp_ns}::{operator_name}"
        self._overload: OpOverload = ophandle
        self._impls: dict[str, _Registration] = {}
        self._output_differentiability: list[bool] | None = None
        self._has_derivative_kernel = False
        self.__name__ = None
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._overload(*args, **kwargs)

    def _destroy(self) -> None:
        self._lib._destroy()
        namespace_of(self._qualname.partition("::")[0])._packets.pop(self._opname, None)
        del global_registry[self._qualname]

    # ----- what is registered -----

    def _has_impl(self, kind: str) -> bool:
        return kind in self._impls

    def _get_impl(self, kind: str) -> _Registration:
        return self._impls[kind]

    def _register_impl(self, kind: str, func: Any, stacklevel: int = 2) -> None:
        if kind in self._impls:
            raise RuntimeError(
                f"Attempting to register a {kind} impl for operator {self._qualname} that already has a {kind} impl "
                f"registered from Python at {self._impls[kind].location}. This is not supported.")
        frame = sys._getframe(stacklevel)
        self._impls[kind] = _Registration(func, f"{frame.f_code.co_filename}:{frame.f_lineno}")

    def _registered_keys(self) -> dict[str, Any]:
        """Dispatch key -> kernel, however it was registered."""
        kernels: Any = self._overload.kernel  # type: ignore[attr-defined]
        found: dict[str, Any] = kernels.by_key
        return found

    def impl(self, device_types: str | Iterable[str], _stacklevel: int = 2) -> Callable[..., Any]:
        """Register a kernel for device types; a decorator.

        Raises:
            ValueError: another device type than cpu and cuda.
            RuntimeError: there is a kernel.
        """
        types = [device_types] if isinstance(device_types, str) else list(device_types)
        for each in types:
            if each not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(f"CustomOp.impl(device_types=[{each}, ...]): we only support device_type in "
                                 f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}.")

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for each in sorted(set(types)):
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[each]
                computing = (key, "CompositeExplicitAutograd", "CompositeImplicitAutograd")
                if not self._has_impl(each) and any(name in self._registered_keys() for name in computing):
                    raise RuntimeError(
                        f"impl(..., device_types={each}): the operator {self._qualname} already has an implementation "
                        "for this device type via a pre-existing torch.library or TORCH_LIBRARY registration.")
                self._register_impl(each, function, stacklevel=_stacklevel)
                self._lib.impl(self._opname, function, key)
            return function

        return register

    def impl_factory(self) -> Callable[..., Any]:
        """Register the kernel of an operator without tensors among its arguments; a decorator."""
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._register_impl("factory", function)
            self._lib.impl(self._opname, function, "CompositeExplicitAutograd")
            return function

        return register

    def impl_abstract(self, _stacklevel: int = 2) -> Callable[..., Any]:
        """Register the fake kernel; a decorator.

        Raises:
            RuntimeError: there is one, or the operator is a function of others.
        """
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            keys = self._registered_keys()
            if not self._has_impl("abstract"):
                self._refuse_kernels_for_shapes(keys)
            self._register_impl("abstract", function, stacklevel=_stacklevel)
            self._lib.impl(self._opname, function, "Meta")
            return function

        return register

    def _refuse_kernels_for_shapes(self, keys: dict[str, Any]) -> None:
        if "CompositeImplicitAutograd" in keys:
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has an implementation for this device type "
                "via a pre-existing registration to DispatchKey::CompositeImplicitAutograd.CompositeImplicitAutograd "
                "operators do not need an abstract impl; instead, the operator will decompose into its constituents "
                "and those can have abstract impls defined on them.")
        if "Meta" in keys:
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has a DispatchKey::Meta implementation via "
                "a pre-existing torch.library or TORCH_LIBRARY registration. Please either remove that registration or "
                "don't call impl_abstract.")

    # ----- the derivative -----

    def impl_save_for_backward(self, _stacklevel: int = 2) -> Callable[..., Any]:
        """Register what is saved for the derivative, `(inputs, output) -> saved`; a decorator.

        Raises:
            RuntimeError: the operator writes, returns views, or has a derivative.
        """
        def register(function: Callable[..., Any]) -> None:
            self._register_derivative("save_for_backward", function, _stacklevel + 1)

        return register

    def impl_backward(self, output_differentiability: Any = None, _stacklevel: int = 2) -> Callable[..., Any]:
        """Register the derivative, `(ctx, saved, *grads) -> {argument: gradient}`; a decorator.

        Args:
            output_differentiability: for each result whether it has a gradient.

        Raises:
            RuntimeError: the operator writes, returns views, or has a derivative.
        """
        if output_differentiability is not None and not (
                isinstance(output_differentiability, list)
                and all(isinstance(each, bool) for each in output_differentiability)
                and len(output_differentiability) == len(self._schema.returns)):
            raise RuntimeError("impl_backward(output_differentiability): expected output_differentiability to be a "
                               "list of bools with length equal to the number of outputs of this CustomOp got: "
                               f"{output_differentiability}")

        def register(function: Callable[..., Any]) -> None:
            self._register_derivative("backward", function, _stacklevel + 1)
            self._output_differentiability = output_differentiability

        return register

    def _register_derivative(self, kind: str, function: Callable[..., Any], stacklevel: int) -> None:
        self._refuse_schema_without_derivative()
        if not self._has_derivative_kernel:
            self._refuse_kernels_for_autograd(self._registered_keys())
            self._register_autograd_kernel()
        self._register_impl(kind, function, stacklevel=stacklevel)

    def _refuse_schema_without_derivative(self) -> None:
        def refuse(what: str) -> NoReturn:
            raise RuntimeError(f"Cannot use torch._custom_ops APIs to register backward formula for {what}. Got "
                               f"operator {self._qualname} with schema: {str(self._schema).rpartition('::')[2]}")

        if self._schema.is_mutable:
            refuse("non-functional operator")
        if not self._schema.returns:
            refuse("operator with no returns")
        if any(each.alias_info is not None for each in self._schema.returns):
            refuse("operator that returns views")
        allowed = {"int": "int", "SymInt": "SymInt", "bool": "bool", "float": "float", "Tensor": "Tensor",
                   "Tensor[]": "List[Tensor]"}
        for each in self._schema.returns:
            if each.type_name not in allowed:
                refuse(f"operator with return not in {list(allowed.values())} (got {each.type_name})")

    def _refuse_kernels_for_autograd(self, keys: dict[str, Any]) -> None:
        if "CompositeImplicitAutograd" in keys:
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has an implementation "
                "for this device type via a pre-existing registration to DispatchKey::CompositeImplicitAutograd."
                "CompositeImplicitAutograd operators do not need an autograd formula; instead, the operator will "
                "decompose into its constituents and those can have autograd formulas defined on them.")
        for key in ("Autograd", "AutogradCPU", "AutogradCUDA"):
            if key in keys:
                raise RuntimeError(
                    f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has an Autograd "
                    f"kernel registered to DispatchKey::{key} vi a pre-existing torch.library or TORCH_LIBRARY "
                    "registration. Please either remove those registrations or don't use the torch._custom_ops APIs")

    def _register_autograd_kernel(self) -> None:
        """Register the kernel that runs the derivative once both of its functions are there."""
        operator = weakref.proxy(self)
        without_derivative = refusing_kernel(operator)
        rules: list[DerivativeByName] = []

        def kernel(*args: Any, **kwargs: Any) -> Any:
            there = [kind for kind in ("save_for_backward", "backward") if operator._has_impl(kind)]
            if not there:
                return without_derivative(*args, **kwargs)
            if len(there) == 1:
                missing = "save_for_backward" if there == ["backward"] else "backward"
                raise RuntimeError(
                    f"We found a '{there[0]}' registration for {operator} at {operator._get_impl(there[0]).location} "
                    f"but were unable to find a '{missing}' registration. To use the CustomOp API to register a "
                    "backward formula, please provide us both a backward function and a 'save for backward' function "
                    "via `impl_backward` and `impl_save_for_backward` respectively.")
            if not rules:
                backward = operator._get_impl("backward")
                rules.append(DerivativeByName(operator, operator._opname, operator._schema, operator._overload,
                                              operator._output_differentiability,
                                              operator._get_impl("save_for_backward").func, backward.func,
                                              backward.location))
            return rules[0](*args, **kwargs)

        self._lib.impl(self._opname, kernel, "Autograd")
        self._has_derivative_kernel = True


def validate_namespace(ns: str) -> None:
    """Raise ValueError for a namespace that operators of programs may not have."""
    if "." in ns:
        raise ValueError(f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)')
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else. ")


def parse_qualname(qualname: str) -> tuple[str, str]:
    """The namespace and the name in `namespace::name`.

    Raises:
        ValueError: it has another form.

    >>> from flambeau._custom_op.impl import parse_qualname
    >>> parse_qualname("mylib::scale")
    ('mylib', 'scale')
    """
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(f"Expected there to be a namespace in {qualname}, i.e. The operator name should look "
                         "something like ns::foo")
    if "." in name:
        raise ValueError("The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. "
                         f"Please name your operator something like ns::foo. Got: {qualname}")
    return namespace, name


def _check_schema(schema: FunctionSchema) -> None:
    text = str(schema).rpartition("::")[2]
    if not is_functional_schema(schema):
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do not return views of "
            f"the inputs, and has at least one return). Got the following non-functional schema: {text}")
    if any(each.name == "self" for each in schema.arguments):
        raise ValueError("custom_op does not support arguments named 'self'. Please rename your argument. Got: " + text)


def _check_prototype(function: Callable[..., Any], schema: FunctionSchema) -> None:
    """Raise ValueError where a function's signature is not that of a schema."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    where = "custom_op(..., manual_schema)(func): "
    if any(each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) for each in parameters):
        raise ValueError(f"{where}positional-only args, varargs, and kwargs are not supported. Please rewrite `func` "
                         f"to not have them. Got `func` with signature: {signature}")
    if signature.return_annotation is not signature.empty or any(
            each.annotation is not each.empty for each in parameters):
        raise ValueError(f"{where}When passing in a manual schema, we expect `func` to have no type annotations to "
                         f"avoid ambiguity. Got `func` with signature: {signature}")
    both = f"func's signature: {signature}, manual_schema: {str(schema).rpartition('::')[2]}"
    for keyword_only in (False, True):
        here = [each for each in parameters if (each.kind is each.KEYWORD_ONLY) is keyword_only]
        there = [each for each in schema.arguments if each.kwarg_only is keyword_only]
        if len(here) != len(there):
            raise ValueError(f"{where}When passing in a manual schema, we expect `func`'s signature to match "
                             f"`manual_schema` (aside from type annotations). {both}")
        for parameter, argument in zip(here, there, strict=True):
            if parameter.name != argument.name:
                raise ValueError(f"{where}When passing in a manual schema, we expect `func`'s signature to match "
                                 f"`manual_schema` (aside from type annotations). {both}")
            if parameter.default is not parameter.empty or argument.has_default:
                raise ValueError(f"{where}neither func nor manual_schema should have default arguments. Got {both}")


def define_custom_op(qualname: str, schema_text: str) -> CustomOp:
    """Define an operator by its schema without the name.

    Raises:
        ValueError: it writes to an argument, returns a view or nothing, or has an argument `self`.
        AssertionError: it is no schema.
        RuntimeError: it is defined already.
    """
    namespace, _, name = qualname.partition("::")
    try:
        schema = FunctionSchema(f"{qualname}{schema_text}")
    except RuntimeError:
        raise AssertionError(f"Invalid function schema: {name}{schema_text}") from None
    _check_schema(schema)
    library = Library(namespace, "FRAGMENT")
    library.define(f"{name}{schema_text}")
    return CustomOp(library, namespace, schema, name, get_op(qualname), _private_access=True)


def check_prototype_name(qualname: str, function: Any) -> None:
    """Raise ValueError for something that is no function, or has another name than the operator."""
    if not inspect.isfunction(function):
        raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}")
    name = parse_qualname(qualname)[1]
    if function.__name__ != name:
        raise ValueError(f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
                         f"'{function.__name__}'. Please either change the name of `func` or the qualname that is "
                         "passed to `custom_op`")


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable[[Any], CustomOp]:
    """Make an operator whose prototype is the decorated function.

    Args:
        qualname: its qualified name, `mylib::name`.
        manual_schema: its schema; default: from the type hints.

    Raises:
        ValueError: the function does not fit.
        RuntimeError: the operator is defined already.

    >>> import warnings
    >>> from flambeau._custom_op.impl import custom_op
    >>> with warnings.catch_warnings(action="ignore"):
    ...     @custom_op("manual::halved", "(Tensor x) -> Tensor")
    ...     def halved(x):
    ...         raise NotImplementedError
    >>> halved
    <CustomOp(op="manual::halved")>
    """
    _warn_deprecated()

    def decorate(function: Any) -> CustomOp:
        check_prototype_name(qualname, function)
        validate_namespace(parse_qualname(qualname)[0])
        text = infer_schema(function, mutates_args=()) if manual_schema is None else manual_schema
        if manual_schema is not None:
            schema = FunctionSchema(f"{qualname}{text}")
            _check_schema(schema)
            _check_prototype(function, schema)
        made = define_custom_op(qualname, text)
        made._register_autograd_kernel()
        made.__name__, made.__module__ = function.__name__, function.__module__
        made.__doc__ = function.__doc__
        return made

    return decorate


def get_op(qualname: str) -> OpOverload:
    """The overload of an operator.

    Raises:
        ValueError: there is none.
    """
    namespace, name = parse_qualname(qualname)
    found = namespace_of(namespace)._packets.get(name)
    if found is None or "default" not in found._overloads:
        raise ValueError(f"Could not find the operator {qualname}. Please make sure you have already registered the "
                         "operator and (if registered from C++) loaded it via torch.ops.load_library.")
    overload: OpOverload = found.default
    return overload


def find_custom_op(qualname: str, also_check_torch_library: bool = False) -> CustomOp:
    """The `CustomOp` of a name; of an operator that a library has defined one is made.

    Raises:
        RuntimeError, ValueError: there is none.
    """
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(f'Could not find custom op "{qualname}". Did you register it via the torch._custom_ops API?')
    overload = get_op(qualname)
    return CustomOp(Library(overload.namespace, "FRAGMENT"), overload.namespace, overload._schema,
                    qualname.partition("::")[2], overload, _private_access=True)


__all__ = ["CustomOp", "custom_op", "get_ctx"]
