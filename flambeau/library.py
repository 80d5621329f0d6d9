"""`torch.library`: operators that a program defines, with kernels, derivatives and batching rules."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ._library.custom_ops import OPDEFS, CustomOpDef, custom_op
from ._library.fake_impl import get_ctx
from ._library.infer_schema import infer_schema
from ._library.kernels import OperatorKernels, refuse_keyword_tensors
from ._library.registry import define_operator, kernels_of, operator_named, remove_operator
from ._tensor import Tensor
from ._tensor.overriding.replaced_kernels import ABOVE_AUTOGRAD, BELOW_AUTOGRAD, original_kernel, replace
from .backends.numpy.memory import owner
from .devices import device
from .ops.overloads import OpOverload, OpOverloadPacket
from .trees import tree_leaves

_DEFINED: set[str] = {"aten"}
#: namespace/operator/dispatch key of the kernels that libraries have registered
_impls: set[str] = set()


class Library:
    """A set of definitions and kernels.

    Args:
        ns: the namespace.
        kind: "DEF" (the only library of this kind for its namespace), "FRAGMENT", or "IMPL" (kernels only).
        dispatch_key: the default dispatch key of kernels.

    Raises:
        ValueError: an unknown kind.
        RuntimeError: a second library of kind "DEF".

    >>> import flambeau as torch
    >>> library = torch.library.Library("example", "DEF")
    >>> library.define("double(Tensor x) -> Tensor")
    'double'
    >>> library.impl("double", lambda x: x * 2, "CPU")
    >>> torch.ops.example.double(torch.ones(1))
    tensor([2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF":
            if ns in _DEFINED:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
                    "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define "
                    "operators for a single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to "
                    "explicitly indicate this.")
            _DEFINED.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._overloads: list[OpOverload] = []
        self._op_impls: set[str] = set()
        self._undo: list[Callable[[], None]] = []
        self._destroyer = weakref.finalize(self, _forget, ns, kind, self._overloads, self._op_impls, self._undo)
        self._destroyer.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema; its name. It lives as long as the library.

        Raises:
            RuntimeError: it is defined already, or an unknown kind of alias analysis.
            ValueError: the library is of kind "IMPL".
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise ValueError("Cannot define operators in a Library of kind IMPL")
        overload = define_operator(self.ns, schema, records_itself=True)
        overload.tags = list(tags) if isinstance(tags, (list, tuple)) else [tags]
        self._overloads.append(overload)
        return overload.name().partition("::")[2]

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
             allow_override: bool = True) -> None:
        """Register a kernel.

        Args:
            op_name: the operator's name or overload.
            fn: the kernel.
            dispatch_key: "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "Autograd", "Meta", ...
            with_keyset: whether the kernel's first argument is the set of dispatch keys, that of its own.
            allow_override: whether it may replace a kernel that is registered for the same dispatch key.

        Kernels live as long as the library. Of PyTorch's operators (`Library("aten", "IMPL")`) those are replaced that
        flambeau declares, for the dispatch keys "CPU", "AutogradCPU" and "Autograd".

        Raises:
            TypeError: the kernel is not callable.
            ValueError: an operator of another namespace.
            RuntimeError: another dispatch key than the library's, or a kernel is registered already.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = str(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd").rpartition(".")[2]
        if self.dispatch_key and key != self.dispatch_key:
            raise RuntimeError(
                f"impl(\"{op_name}\", ...): Explicitly provided dispatch key ({key}) is inconsistent with the dispatch "
                f"key of the enclosing TORCH_LIBRARY_IMPL block ({self.dispatch_key}).  Please declare a separate "
                "TORCH_LIBRARY_IMPL block for this dispatch key and move your impl() there.")
        if with_keyset:
            fn = _with_keys(fn, key)
        full = op_name._name if isinstance(op_name, OpOverload) else str(op_name)
        short = full.rpartition("::")[2]
        entry = f"{self.ns}/{short}/{key}"
        if entry in _impls and not allow_override:
            raise RuntimeError(f"This is not allowed since there's already a kernel registered from python overriding "
                               f"{short}'s behavior for {key} dispatch key and {self.ns} namespace.")
        if self.ns == "aten":
            self._undo.append(_replace_kernel(f"aten::{short}", key, fn))
        else:
            kernels = self._kernels(op_name)
            if key == "Meta":
                kernels.fake = fn
            if fn is fallthrough_kernel:
                kernels.by_key.pop(key, None)
            else:
                kernels.by_key[key] = fn
                self._undo.append(functools.partial(_remove_kernel, kernels, key, fn))
        _impls.add(entry)
        self._op_impls.add(entry)

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> NoReturn:
        """Not supported: a kernel for all operators.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("flambeau has no fallback kernels for a dispatch key")

    def _kernels(self, op_name: Any) -> OperatorKernels:
        if isinstance(op_name, str):
            if "::" in op_name and op_name.partition("::")[0] != self.ns:
                raise ValueError(f"Operator {op_name!r} is not in the namespace {self.ns!r} of this library")
            return kernels_of(f"{self.ns}::{op_name.rpartition('::')[2]}")
        return kernels_of(op_name)

    def register_symm_mem_args(self, op_name: Any, arg_names: Sequence[str]) -> None:
        """Name the arguments that several GPUs share; no effect, there are none."""
        self._kernels(op_name)

    def _register_fake(self, op_name: Any, fn: Callable[..., Any], _stacklevel: int = 1, *,
                       allow_override: bool = False) -> None:
        self._kernels(op_name).fake = fn

    def _register_torch_dispatch_rule(self, op_name: Any, torch_dispatch_class: Any, fn: Callable[..., Any]) -> None:
        self._kernels(op_name).handlers[torch_dispatch_class] = fn

    @property
    def m(self) -> list[OpOverload]:
        """What the library defines; `del library.m` removes it, and the library's kernels."""
        return self._overloads

    @m.deleter
    def m(self) -> None:
        self._destroy()

    def _destroy(self) -> None:
        """Remove the operators that the library defines."""
        self._destroyer()


def _with_keys(kernel: Callable[..., Any], key: str) -> Callable[..., Any]:
    """A kernel that is given a set of dispatch keys first."""
    keys: Any = importlib.import_module(f"{__package__}.environment.dispatch_keys")

    @functools.wraps(kernel)
    def call(*args: Any, **kwargs: Any) -> Any:
        return kernel(keys.DispatchKeySet(keys.DispatchKey[key]), *args, **kwargs)

    return call


def _replace_kernel(name: str, key: str, kernel: Callable[..., Any]) -> Callable[[], None]:
    """Let a kernel compute one of PyTorch's operators; a function that undoes it.

    Raises:
        NotImplementedError: for this dispatch key, or this operator, there are no kernels to replace.
    """
    if key not in ABOVE_AUTOGRAD | BELOW_AUTOGRAD or kernel is fallthrough_kernel:
        raise NotImplementedError(f"{name}: flambeau replaces the kernels of PyTorch's operators for the dispatch keys "
                                  f"{', '.join(sorted(ABOVE_AUTOGRAD | BELOW_AUTOGRAD))}, not for {key}. Define an "
                                  "operator in a namespace of your own.")
    return replace(operator_named(name), key, kernel)


def _remove_kernel(kernels: OperatorKernels, key: str, kernel: Callable[..., Any]) -> None:
    if kernels.by_key.get(key) is kernel:
        del kernels.by_key[key]
    if key == "Meta" and kernels.fake is kernel:
        kernels.fake = None


def _forget(ns: str, kind: str, overloads: list[OpOverload], op_impls: set[str],
            undo: list[Callable[[], None]]) -> None:
    for each in undo:
        each()
    undo.clear()
    _impls.difference_update(op_impls)
    op_impls.clear()
    for overload in overloads:
        remove_operator(overload)
    overloads.clear()
    if kind == "DEF":
        _DEFINED.discard(ns)


#: the libraries of operators that are defined without one: they are kept
_kept: list[Library] = []


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


_NAMELESS = re.compile(r"\(.*\) -> .*", re.DOTALL)


def define(qualname: Any, schema: Any, *rest: Any, lib: Library | None = None, tags: Any = (),
           alias_analysis: str = "") -> Any:
    """Define an operator.

    Args:
        qualname: its qualified name, `mylib::name`.
        schema: its schema without the name, `(Tensor x) -> Tensor`.
        lib: the library that owns it.
        tags: tags of the overload.

    Raises:
        ValueError: the schema has another form.

    >>> import flambeau as torch
    >>> torch.library.define("example_of_define::sin", "(Tensor x) -> Tensor")
    >>> torch.library.impl("example_of_define::sin", "cpu", torch.sin)
    >>> torch.ops.example_of_define.sin(torch.zeros(1))
    tensor([0.])
    """
    if isinstance(qualname, Library):  # the old form: a decorator that defines an operator of a library
        library = qualname

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(library.define(schema, *rest or (alias_analysis,)), function)
            return function

        return decorate
    if not isinstance(qualname, str):
        raise ValueError("define(qualname, schema): expected qualname to be instance of str, got "
                         f"{type(qualname)}")
    if not _NAMELESS.fullmatch(schema):
        raise ValueError('define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but '
                         f'got "{schema}"')
    namespace, _, name = qualname.partition("::")
    if lib is None:
        lib = Library(namespace, "FRAGMENT")
        _kept.append(lib)
    lib.define(name + schema, tags=tags)
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Register a kernel for device types; usable as a decorator.

    Args:
        qualname: the operator's qualified name.
        types: device types, or "default".
        func: the kernel.
        lib: ignored: kernels live as long as the operator.

    Raises:
        RuntimeError: no such device type, or no such operator.

    >>> import flambeau as torch
    >>> torch.library.define("example_of_impl::cos", "(Tensor x) -> Tensor")
    >>> @torch.library.impl("example_of_impl::cos", "cpu")
    ... def cos(x):
    ...     return torch.cos(x)
    >>> torch.ops.example_of_impl.cos(torch.zeros(1))
    tensor([1.])
    """
    if isinstance(qualname, Library):  # the old form: impl(library, name, dispatch_key)
        library, name, key = qualname, types, func or ""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function, key)
            return function

        return decorate
    keys = ["CompositeExplicitAutograd" if each == "default" else _dispatch_key(each)
            for each in ((types,) if isinstance(types, str) else types)]
    kernels = kernels_of(qualname)

    def register(function: Callable[..., Any]) -> None:
        for key in keys:
            kernels.by_key[key] = function
            if key == "Meta":
                kernels.fake = function

    return register if func is None else register(func)


def _dispatch_key(device_type: str) -> str:
    """The dispatch key of the kernels of a device type; a dispatch key's name is itself.

    Raises:
        RuntimeError: there is no such device type.
    """
    if device_type[:1].isupper():  # device types are in lower case
        return device_type
    found = device(device_type)
    if found.index is not None:
        raise RuntimeError(f"Expected device_type string to not have a device index; got {device_type}")
    return found.type.capitalize() if found.type in ("lazy", "meta", "vulkan") else found.type.upper()


def fallthrough_kernel() -> NoReturn:
    """A kernel for `Library.impl` that removes one.

    Raises:
        NotImplementedError: always, if it is called.

    >>> import flambeau as torch
    >>> library = torch.library.Library("examples", "FRAGMENT")
    >>> library.define("as_is(Tensor x) -> Tensor")
    'as_is'
    >>> library.impl("as_is", torch.library.fallthrough_kernel, "AutocastCPU")
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _decorator(register: Callable[[Callable[..., Any]], None], func: Callable[..., Any] | None) -> Any:
    """Register a function, or return a decorator that does."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        register(function)
        return function

    return decorate if func is None else decorate(func)


def register_kernel(op: Any, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /, *,
                    lib: Library | None = None) -> Any:
    """Register a kernel of an operator for device types, or for all (None); usable as a decorator.

    >>> import flambeau as torch
    >>> @torch.library.custom_op("examples::half_of", mutates_args=())
    ... def half_of(x: torch.Tensor) -> torch.Tensor:
    ...     return x / 2
    >>> @torch.library.register_kernel("examples::half_of", "cpu")
    ... def _(x):
    ...     return x * 0.5
    >>> half_of(torch.ones(2))
    tensor([0.5000, 0.5000])
    """
    kernels = kernels_of(op)

    def register(function: Callable[..., Any]) -> None:
        for each in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
            kernels.by_key["CompositeExplicitAutograd" if each is None else each.upper()] = function

    return _decorator(register, func)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None,
                  _stacklevel: int = 1, allow_override: bool = True) -> Any:
    """Register an operator's fake kernel; usable as a decorator.

    >>> import flambeau as torch
    >>> @torch.library.custom_op("examples::first_rows", mutates_args=())
    ... def first_rows(x: torch.Tensor, n: int) -> torch.Tensor:
    ...     return x[:n].clone()
    >>> @torch.library.register_fake("examples::first_rows")
    ... def _(x, n):
    ...     return x.new_empty(n, *x.shape[1:])
    >>> first_rows(torch.ones(3, 2, device="meta"), 2).shape
    flambeau.Size([2, 2])
    """
    kernels = kernels_of(op)
    return _decorator(lambda function: setattr(kernels, "fake", function), func)


def impl_abstract(qualname: str, func: Callable[..., Any] | None = None, *, lib: Library | None = None,
                  _stacklevel: int = 1) -> Any:
    """Deprecated: `register_fake`.

    >>> import warnings
    >>> import flambeau as torch
    >>> @torch.library.custom_op("examples::copied", mutates_args=())
    ... def copied(x: torch.Tensor) -> torch.Tensor:
    ...     return x.clone()
    >>> with warnings.catch_warnings(action="ignore"):
    ...     @torch.library.impl_abstract("examples::copied")
    ...     def _(x):
    ...         return torch.empty_like(x)
    """
    import warnings

    warnings.warn("`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use that "
                  "instead; we will remove `torch.library.impl_abstract` in a future version of PyTorch.",
                  FutureWarning, stacklevel=2)
    return register_fake(qualname, func, lib=lib)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None,
                      lib: Library | None = None) -> None:
    """Register an operator's derivative; see `CustomOpDef.register_autograd`.

    Raises:
        RuntimeError: the operator writes to an argument.

    >>> import flambeau as torch
    >>> @torch.library.custom_op("examples::cube", mutates_args=())
    ... def cube(x: torch.Tensor) -> torch.Tensor:
    ...     return x ** 3
    >>> def setup_context(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> def backward(ctx, grad):
    ...     return 3 * ctx.saved_tensors[0] ** 2 * grad
    >>> torch.library.register_autograd("examples::cube", backward, setup_context=setup_context)
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> cube(x).backward()
    >>> x.grad
    tensor([12.])
    """
    kernels_of(op).set_derivative(op, backward, setup_context)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable[..., Any] | None = None, /, *,
                            lib: Library | None = None) -> Any:
    """Register what a subclass or a mode does with an operator: `func(mode or class, func, types, args, kwargs)`.

    >>> import flambeau as torch
    >>> from flambeau.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         return func(*args, **(kwargs or {}))
    >>> @torch.library.custom_op("examples::logged", mutates_args=())
    ... def logged(x: torch.Tensor) -> torch.Tensor:
    ...     return x + 1
    >>> @torch.library.register_torch_dispatch("examples::logged", Log)
    ... def _(mode, func, types, args, kwargs):
    ...     print("logged")
    ...     return func(*args, **kwargs)
    >>> with Log():
    ...     _ = logged(torch.ones(1))
    logged
    """
    kernels = kernels_of(op)
    return _decorator(lambda function: kernels.handlers.__setitem__(torch_dispatch_class, function), func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Register an operator's batching rule, `func(info, in_dims, *args) -> (outputs, out_dims)`.

    >>> import flambeau as torch
    >>> @torch.library.custom_op("examples::negative", mutates_args=())
    ... def negative(x: torch.Tensor) -> torch.Tensor:
    ...     return -x
    >>> @torch.library.register_vmap("examples::negative")
    ... def _(info, in_dims, x):
    ...     return negative(x), in_dims[0]
    >>> torch.vmap(negative)(torch.ones(2, 1))
    tensor([[-1.],
            [-1.]])
    """
    kernels = kernels_of(op)
    refuse_keyword_tensors("register_vmap", kernels.overload._schema)

    def register(function: Callable[..., Any]) -> None:
        kernels.vmap = function
        kernels.reset()

    return _decorator(register, func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Register the dtype that an operator's floating point inputs are cast to under autocast.

    Raises:
        ValueError: an unknown device type.

    >>> import flambeau as torch
    >>> @torch.library.custom_op("examples::narrow_sine", mutates_args=())
    ... def narrow_sine(x: torch.Tensor) -> torch.Tensor:
    ...     return x.sin()
    >>> torch.library.register_autocast("examples::narrow_sine", "cpu", torch.bfloat16)
    >>> with torch.autocast("cpu"):
    ...     print(narrow_sine(torch.ones(2)).dtype)
    flambeau.bfloat16
    """
    if device_type not in ("cpu", "cuda", "xpu"):
        raise ValueError(f"Unknown device type: {device_type}")
    kernels_of(op).autocast_dtypes[device_type] = cast_inputs


class SafeKernelFunction:
    """The kernel of an operator for a dispatch key: `kernel.call_boxed(keys, *args)` calls it.

    Args:
        function: the kernel.
        origin: where it was registered, for its text.
    """

    def __init__(self, function: Callable[..., Any], origin: str) -> None:
        self._function, self._origin = function, origin

    def call_boxed(self, dispatch_keys: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The kernel's result; the keys are not used, as operators are not dispatched by keys."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"SafeKernelFunction(debug='registered at {self._origin}')"


def get_kernel(op: Any, dispatch_key: Any) -> SafeKernelFunction:
    """The kernel that is registered for a dispatch key; of PyTorch's operators the one that they have here.

    Args:
        op: a qualified name, `aten::add.Tensor`, an overload or a custom operator.
        dispatch_key: a key of the dispatcher or its name.

    Raises:
        ValueError: `op` is none of these.
        RuntimeError: there is no such operator, or no kernel of it.

    >>> import flambeau as torch
    >>> kernel = torch.library.get_kernel("aten::add.Tensor", "CPU")
    >>> kernel.call_boxed(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), torch.ones(2), torch.ones(2))
    tensor([2., 2.])
    """
    overload = operator_named(op) if isinstance(op, str) else getattr(op, "_opoverload", op)
    if not isinstance(overload, OpOverload):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    if overload.namespace == "aten":
        return SafeKernelFunction(original_kernel(overload), "flambeau.ops")
    kernels = kernels_of(overload)
    key = str(dispatch_key).rpartition(".")[2]
    found = kernels.by_key.get(key) or kernels.original
    if found is None:
        raise RuntimeError(f"no kernel for {key} for {overload.name()}")
    code = getattr(found, "__code__", None)
    return SafeKernelFunction(found, f"{code.co_filename}:{code.co_firstlineno}" if code else repr(found))


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None) -> NoReturn:
    """Not supported: there are no Triton kernels on the CPU.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> try:
    ...     torch.library.triton_op("examples::kernel", mutates_args=())(lambda x: x)
    ... except Exception as error:
    ...     print(type(error).__name__)
    RuntimeError
    """
    raise RuntimeError("triton_op: Triton is not available: flambeau computes on the CPU")


def wrap_triton(triton_kernel: Any, /) -> NoReturn:
    """Not supported: there are no Triton kernels on the CPU.

    Raises:
        RuntimeError: always.

    >>> import flambeau as torch
    >>> try:
    ...     torch.library.wrap_triton(lambda x: x)
    ... except Exception as error:
    ...     print(type(error).__name__)
    RuntimeError
    """
    raise RuntimeError("wrap_triton: Triton is not available: flambeau computes on the CPU")


_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """An operator does not behave as its registrations say.

    >>> import flambeau as torch
    >>> issubclass(torch.library.OpCheckError, Exception)
    True
    """


def opcheck(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
            test_utils: str | Sequence[str] = _TESTS, raise_exception: bool = True, atol: Any = None,
            rtol: Any = None) -> dict[str, Any]:
    """Check an operator on sample arguments: its schema, its derivative and its fake kernel.

    Args:
        op: the operator.
        args: sample arguments.
        kwargs: sample keyword arguments.
        test_utils: the checks to run.
        raise_exception: raise the first failure.
        atol, rtol: ignored.

    Returns:
        Check -> "SUCCESS" or the error.

    Raises:
        OpCheckError: a check failed.

    >>> import flambeau as torch
    >>> @torch.library.custom_op("example_of_opcheck::exp", mutates_args=())
    ... def exp(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.exp(x)
    >>> torch.library.opcheck(exp, (torch.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    overload = getattr(op, "_opoverload", op)
    if isinstance(overload, OpOverloadPacket):
        overload = overload.default
    if not isinstance(overload, OpOverload):
        raise ValueError(f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
                         f"torch.ops.aten.sin.default, got {type(op)}")
    tests = {"test_schema": _check_schema, "test_autograd_registration": _check_autograd,
             "test_faketensor": _check_fake, "test_aot_dispatch_dynamic": _check_gradients}
    results: dict[str, Any] = {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        if name not in tests:
            raise ValueError(f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of "
                             f"{tuple(tests)} but it was not")
        try:
            tests[name](overload, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            results[name] = error
            if raise_exception:
                raise OpCheckError(f"opcheck({op}, ...): {name} failed with {error} (scroll up for stack trace)"
                                   ) from error
    return results


def _check_schema(overload: OpOverload, args: Any, kwargs: Any) -> None:
    """Only arguments that the schema says are written, and only those that it says share memory with a result do."""
    bound = overload._schema.bind(args, kwargs)
    before = {name: [x._array.copy() for x in tree_leaves(value) if isinstance(x, Tensor)]
              for name, value in bound.items()}
    results = [x for x in tree_leaves(overload(*args, **kwargs)) if isinstance(x, Tensor) and x._array.size]
    memory = {id(owner(x._array)) for x in results}
    for argument in overload._schema.arguments:
        written = argument.alias_info is not None and argument.alias_info.is_write
        tensors = [x for x in tree_leaves(bound.get(argument.name)) if isinstance(x, Tensor)]
        for x, old in zip(tensors, before.get(argument.name, ()), strict=True):
            if not written and x._array.tobytes() != old.tobytes():
                raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
            if argument.alias_info is None and x._array.size and id(owner(x._array)) in memory:
                raise RuntimeError(f"Argument {argument.name} is not defined to alias output but was aliasing")


def _check_autograd(overload: OpOverload, args: Any, kwargs: Any) -> None:
    """The derivative is registered at the operator, not left to the operators of its kernel."""
    kernels = getattr(overload, "kernel", None)
    if not isinstance(kernels, OperatorKernels):  # an operator of PyTorch's
        return
    needs = any(isinstance(x, Tensor) and x.requires_grad for x in tree_leaves((args, kwargs)))
    if needs and kernels.records_itself and kernels.backward is None and "CPU" in kernels.by_key and not (
            {"Autograd", "AutogradCPU"} & kernels.by_key.keys()):
        result = overload(*args, **kwargs)
        if any(isinstance(x, Tensor) and x.requires_grad for x in tree_leaves(result)):
            raise AssertionError(
                "autograd_registration_check: at least one output of the operator has requires_grad=True but the "
                "operator does not have an autograd kernel defined at an autograd key (e.g. DispatchKey::Autograd). "
                "This could mean that you have incorrectly registered an autograd kernel to a non-Autograd "
                "DispatchKey.")


def _check_fake(overload: OpOverload, args: Any, kwargs: Any) -> None:
    """The fake kernel returns what the kernel returns."""
    kernels = getattr(overload, "kernel", None)
    if not isinstance(kernels, OperatorKernels) or kernels.fake is None:
        return
    real = [x for x in tree_leaves(overload(*args, **kwargs)) if isinstance(x, Tensor)]
    fake = [x for x in tree_leaves(kernels.fake(*args, **kwargs)) if isinstance(x, Tensor)]
    for x, y in zip(real, fake, strict=True):
        if x.shape != y.shape:
            raise AssertionError(f"Shapes {x.shape} and {y.shape} are not equal!")
        if x.dtype is not y.dtype:
            raise AssertionError(f"Dtypes {x.dtype} and {y.dtype} are not equal!")


def _check_gradients(overload: OpOverload, args: Any, kwargs: Any) -> None:
    """The backward pass runs, and its gradients have the inputs' shapes."""
    leaves = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x.requires_grad]
    outs = [x for x in tree_leaves(overload(*args, **kwargs)) if isinstance(x, Tensor) and x.requires_grad]
    if not leaves or not outs:
        return
    from .autograd import grad

    found = grad([x.sum() for x in outs], leaves, allow_unused=True)
    for x, g in zip(leaves, found, strict=True):
        if g is not None and g._array.shape != x._array.shape:
            raise AssertionError(f"a gradient has shape {np.shape(g._array)}, its input {x._array.shape}")


def _maybe_get_opdef(op: Any) -> CustomOpDef | None:
    """The custom operator of a name or an overload."""
    if isinstance(op, CustomOpDef):
        return op
    return OPDEFS.get(op.name() if isinstance(op, OpOverload) else op)


__all__ = ["CustomOpDef", "Library", "OpCheckError", "custom_op", "define", "fallthrough_kernel", "get_ctx",
           "get_kernel", "impl", "impl_abstract", "infer_schema", "opcheck", "register_autocast",
           "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap",
           "triton_op", "wrap_triton"]
